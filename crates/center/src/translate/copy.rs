//! An object as it stands in one mailbox.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use mailboat_api::names::{annotation, label};
use mailboat_engine::mark::MARK_ANNOTATION;
use mailboat_engine::route::View;
use mailboat_engine::want::{Body, Hold};
use mailboat_object::digest::digest_of;
use mailboat_object::key::Key;
use mailboat_object::object::{Keep, Object, Place};
use mailboat_store::seen::Seen;

use super::Edge;
use crate::customize::{Customizer, Parameters, Uncustomized, customize_text, wanted_customizer};
use crate::denature;

/// Annotations that are about the object in its own workspace. The count would say at an edge what is only true
/// in the center, and a mark there would be taken for a promise about the copy.
pub(crate) const OWN_ANNOTATIONS: [&str; 5] = [
    annotation::EXECUTING_COUNT,
    annotation::CONFIRM_WITHDRAWAL,
    annotation::DOWNSYNCED,
    annotation::UPSYNCED,
    MARK_ANNOTATION,
];

/// Whether an object is to differ from edge to edge.
pub(super) fn is_customized(source: &Object) -> bool {
    source.annotation(annotation::CUSTOMIZER).is_some() || expands(source)
}

/// What an object should be at an edge, as an object; itself where it is the same everywhere. `None` if that cannot be
/// said now.
pub fn form_at(source: &Arc<Object>, edge: &Edge, view: &View<'_>) -> Option<Arc<Object>> {
    if !is_customized(source) {
        return Some(Arc::clone(source));
    }
    let body = of(source, edge, view).ok()?;
    let place = Place::of(&source.key, "", Keep::Whole);
    Object::decode(&body.json, &place).ok().map(Arc::new)
}

/// What an object is in the mailbox of an edge.
pub(super) fn of(source: &Object, edge: &Edge, view: &View<'_>) -> Result<Body, Hold> {
    let plain = stripped(source)?;
    if !is_customized(source) {
        return Ok(plain);
    }
    let held = |error: &dyn fmt::Display, on: Option<Key>| Hold {
        reason: format!(
            "{} cannot be customized for Location {}: {error}",
            described(source),
            edge.location.name
        ),
        on,
    };
    let customizer = match wanted_customizer(source) {
        Some(wanted) => Some(find_customizer(wanted.map_err(|error| held(&error, None))?, view, held)?),
        None => None,
    };
    let text = std::str::from_utf8(&plain.json).unwrap_or_default();
    let no_parameters: BTreeMap<String, String> = BTreeMap::new();
    let needs_location = expands(source) || customizer.as_ref().is_some_and(Customizer::expands);
    let customized = if needs_location {
        let location = match view.get(&edge.location) {
            Seen::Present(location) => location,
            Seen::Unknown(doubt) => return Err(held(&doubt, Some(edge.location.clone()))),
            Seen::Absent(_) => return Err(held(&"the Location is gone", Some(edge.location.clone()))),
        };
        let parameters: &dyn Parameters = &**location;
        customize_text(text, expands(source), customizer.as_ref(), parameters)
    } else {
        customize_text(text, false, customizer.as_ref(), &no_parameters)
    };
    let json = customized.map_err(|error| held(&error, None))?;
    let digest = digest_of(json.as_bytes()).map_err(|malformed| held(&malformed, None))?;
    Ok(Body { json: Arc::from(json.as_bytes()), digest })
}

/// An object without what is only true where it stands, under the kind that it has in a mailbox.
fn stripped(source: &Object) -> Result<Body, Hold> {
    let mut edit = source.edit().map_err(|head_only| Hold { reason: head_only.to_string(), on: None })?;
    edit.strip().remove_status().remove_label(label::OWNER);
    for own in OWN_ANNOTATIONS {
        edit.remove_annotation(own);
    }
    edit.set_label(label::PROJECTED, label::PROJECTED_YES);
    if let Some(stored) = denature::denatured(&source.key.kind) {
        edit.set_api_version(&denature::api_version_in_group(&source.api_version(), stored.group()));
    }
    let edited = edit.finish().map_err(|malformed| Hold { reason: malformed.to_string(), on: None })?;
    Ok(Body { json: edited.json, digest: edited.content })
}

fn find_customizer(
    wanted: Key,
    view: &View<'_>,
    held: impl Fn(&dyn fmt::Display, Option<Key>) -> Hold,
) -> Result<Customizer, Hold> {
    let name = format!("{}/{}", wanted.namespace, wanted.name);
    match view.get(&wanted) {
        Seen::Present(found) => Customizer::of(found).map_err(|error| held(&error, Some(wanted))),
        Seen::Unknown(doubt) => {
            Err(held(&format_args!("what is known of its Customizer {name}: {doubt}"), Some(wanted)))
        }
        Seen::Absent(_) => Err(held(&Uncustomized::MissingCustomizer { customizer: name }, Some(wanted))),
    }
}

fn expands(source: &Object) -> bool {
    source.annotation(annotation::EXPAND_PARAMETERS).is_some_and(|text| text == "true")
}

fn described(source: &Object) -> String {
    if source.key.namespace.is_empty() {
        format!("{} {}", source.kind_name(), source.key.name)
    } else {
        format!("{} {}/{}", source.kind_name(), source.key.namespace, source.key.name)
    }
}
