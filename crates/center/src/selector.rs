//! Label selectors as the APIs write them, understood once.

use mailboat_api::edge::ValidationError;
use mailboat_object::json::Raw;
use mailboat_object::select::{BadSelector, LabelSelector};

/// Understands one selector.
pub fn compile(selector: &mailboat_api::LabelSelector) -> Result<LabelSelector, BadSelector> {
    let unreadable = |what: String| BadSelector { path: "selector".to_owned(), what };
    let json = serde_json::to_vec(selector).map_err(|error| unreadable(error.to_string()))?;
    let raw = Raw::parse(&json).map_err(|malformed| unreadable(malformed.to_string()))?;
    LabelSelector::from_json(raw)
}

/// Understands a list of selectors, of which any may match. What cannot be understood is reported under its
/// path and left out.
pub fn compile_all(
    selectors: &[mailboat_api::LabelSelector],
    path: &str,
    errors: &mut Vec<ValidationError>,
) -> Vec<LabelSelector> {
    let mut compiled = Vec::with_capacity(selectors.len());
    for (index, selector) in selectors.iter().enumerate() {
        match compile(selector) {
            Ok(selector) => compiled.push(selector),
            Err(bad) => {
                errors.push(ValidationError { path: format!("{path}[{index}]"), message: bad.to_string() });
            }
        }
    }
    compiled
}
