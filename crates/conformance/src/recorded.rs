//! The requests that real clients were seen to send, by their shapes, and the cases that send such requests.
//!
//! `recorded.txt` holds what Mailboat's own processes, kubectl, Helm and client-go sent to hubs in the end-to-end runs
//! (`MAILBOAT_HUB_RECORD`, see `docs/hub.md`). Each shape has to be that of a request of at least one case: so nothing
//! is asked in earnest that is not compared with the real servers.

use std::collections::BTreeSet;

use http::HeaderMap;
use mailboat_hub::shape;
use serde_json::Value;

use crate::known::Known;
use crate::script::{Action, Ask, Body, File};

/// What was recorded.
const RECORDED: &str = include_str!("../recorded.txt");

/// The recorded shapes that no case has whose answers have to be equal: one that may differ shows nothing.
pub fn missing(files: &[File], known: &[Known]) -> Vec<String> {
    let shown: BTreeSet<String> = files
        .iter()
        .flat_map(|file| file.cases.iter().chain([&file.once]))
        .filter(|case| !known.iter().any(|known| known.concerns(case)))
        .flat_map(|case| &case.steps)
        .filter_map(|step| match &step.action {
            Action::Ask(ask) | Action::Until { ask, .. } | Action::Watch { ask, .. } => Some(shapes(ask)),
            Action::Let { .. } | Action::Events { .. } | Action::Rest { .. } => None,
        })
        .flatten()
        .collect();
    recorded().filter(|shape| !shown.contains(*shape)).map(str::to_owned).collect()
}

/// Bodies in protobuf are no text that a case could hold. kubectl sends them to hubs in `crates/hub/tests/real`.
const BINARY: &str = "sending application/vnd.kubernetes.protobuf";

fn recorded() -> impl Iterator<Item = &'static str> {
    RECORDED.lines().filter(|line| !line.is_empty() && !line.starts_with('#') && !line.contains(BINARY))
}

/// The shapes of a request as it is sent.
fn shapes(ask: &Ask) -> Vec<String> {
    let sent = !matches!(ask.body, Body::Nothing);
    let mut headers = HeaderMap::new();
    headers.insert("accept", http::HeaderValue::from_static(crate::play::ACCEPT));
    for (name, value) in &ask.headers {
        let read = (http::HeaderName::try_from(name), http::HeaderValue::try_from(value));
        if let (Ok(name), Ok(value)) = read
            && (sent || name != http::header::CONTENT_TYPE)
        {
            headers.insert(name, value);
        }
    }
    if headers.get(http::header::CONTENT_TYPE).is_some_and(|value| value == crate::play::NO_TYPE) {
        headers.remove(http::header::CONTENT_TYPE);
    }
    let (path, query) =
        ask.path.split_once('?').map_or((ask.path.as_str(), None), |(path, query)| (path, Some(query)));
    let mut shapes = shape::of_request(&ask.method, path, query, &headers);
    if ask.method == "DELETE" {
        let options: Value = match &ask.body {
            Body::Nothing => Value::Null,
            Body::Yaml(text) | Body::Text(text) => serde_saphyr::from_str(text).unwrap_or_default(),
        };
        shapes.push(shape::of_deletion(&options));
    }
    shapes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_real_clients_send_is_compared() {
        let missing = missing(&crate::run::read_files().unwrap(), &crate::run::read_known().unwrap());
        assert!(missing.is_empty(), "{} shapes have no case:\n{}", missing.len(), missing.join("\n"));
        assert!(recorded().count() > 50, "hardly anything was recorded");
    }

    #[test]
    fn a_case_that_is_gone_leaves_shapes_without_one() {
        let mut files = crate::run::read_files().unwrap();
        files.retain(|file| !file.name.starts_with("recorded"));
        assert!(missing(&files, &[]).iter().any(|shape| shape.starts_with("how: watch")));
    }

    #[test]
    fn a_case_that_may_differ_shows_nothing() {
        let files = crate::run::read_files().unwrap();
        let row =
            |cases: &str| Known { cases: cases.to_owned(), path: "*".to_owned(), reason: String::new() };
        assert!(missing(&files, &[row("nothing: *")]).is_empty());
        assert!(!missing(&files, &[row("kubectl: *")]).is_empty());
    }
}
