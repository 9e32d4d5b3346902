//! The requests that real clients were seen to send, by their shapes, and the cases that send such requests.
//!
//! `recorded.txt` holds what Mailboat's own processes, kubectl, Helm and client-go sent to hubs in the end-to-end runs
//! (`MAILBOAT_HUB_RECORD`, see `docs/hub.md`). Each shape has to be that of a request of at least one case in which the
//! answer is compared: all of it, or a part that says more than that there was an answer. So nothing is asked in earnest
//! that is not compared with the real servers.

use std::collections::BTreeMap;

use http::HeaderMap;
use mailboat_hub::shape;
use serde_json::Value;

use crate::known::Known;
use crate::script::{Action, Ask, Body, Case, File, Step};

/// What was recorded.
const RECORDED: &str = include_str!("../recorded.txt");

/// With what the shapes begin to which real servers answer in another form. Each is sent in a case of its own, with a known
/// difference that says why (`docs/hub.md`).
const OTHERWISE: [&str; 1] = ["how: GET /openapi/v3 in a workspace, "];

/// How much of the answers to requests of a shape is compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Compared {
    /// That there is an answer, of which kind it is, and in what form.
    Head,
    /// Parts of what it says.
    Parts,
    /// All of it.
    Whole,
}

/// How much is compared of each recorded shape; none: no case has it whose answers have to be equal. One that may differ
/// shows nothing.
pub fn compared(files: &[File], known: &[Known]) -> BTreeMap<&'static str, Option<Compared>> {
    let mut most: BTreeMap<String, Compared> = BTreeMap::new();
    let cases = files.iter().flat_map(|file| file.cases.iter().chain([&file.once]));
    for case in cases.filter(|case| !known.iter().any(|known| known.concerns(case))) {
        for (ask, compared) in case.steps.iter().filter_map(|step| asked(case, step)) {
            for shape in shapes(ask) {
                let most = most.entry(shape).or_insert(compared);
                *most = compared.max(*most);
            }
        }
    }
    recorded().map(|shape| (shape, most.get(shape).copied())).collect()
}

/// Whether real servers answer to a shape in another form.
pub fn is_answered_otherwise(shape: &str) -> bool {
    OTHERWISE.iter().any(|start| shape.starts_with(start))
}

/// The recorded shapes of whose answers too little is compared.
pub fn missing(files: &[File], known: &[Known]) -> Vec<String> {
    let all = compared(files, known).into_iter();
    let short =
        all.filter(|(shape, compared)| *compared < Some(Compared::Parts) && !is_answered_otherwise(shape));
    short.map(|(shape, compared)| format!("{shape} ({compared:?})")).collect()
}

/// What a request asks, and how much of the answer is compared.
fn asked<'c>(case: &'c Case, step: &'c Step) -> Option<(&'c Ask, Compared)> {
    match &step.action {
        Action::Ask(ask) | Action::Until { ask, .. } => Some((ask, how_much(&ask.only))),
        Action::Watch { name, ask } => {
            let read = case.steps.iter().filter(|step| match &step.action {
                Action::Events { name: read, .. } | Action::Rest { name: read } => read == name,
                _ => false,
            });
            let read = read.map(|step| how_much(step.action.only())).max();
            Some((ask, read.unwrap_or(Compared::Head)))
        }
        Action::Let { .. } | Action::Events { .. } | Action::Rest { .. } => None,
    }
}

/// Parts say something if they lie in the body or in an event, and are more than its kind.
fn how_much(only: &[String]) -> Compared {
    let says = |part: &String| {
        let kind = [".kind", ".apiVersion", ".type"].iter().any(|end| part.ends_with(end));
        (part.starts_with(".body") || part.starts_with(".events")) && !kind
    };
    match only {
        [] => Compared::Whole,
        parts if parts.iter().any(says) => Compared::Parts,
        _ => Compared::Head,
    }
}

fn recorded() -> impl Iterator<Item = &'static str> {
    RECORDED.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
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
        let (files, known) = (crate::run::read_files().unwrap(), crate::run::read_known().unwrap());
        let all = compared(&files, &known);
        let count = |wanted: Compared| {
            all.iter().filter(|(shape, much)| **much == Some(wanted) && !is_answered_otherwise(shape)).count()
        };
        let otherwise = all.keys().filter(|shape| is_answered_otherwise(shape)).count();
        println!(
            "{} shapes: {} compared whole, {} in part, {otherwise} answered otherwise",
            all.len(),
            count(Compared::Whole),
            count(Compared::Parts)
        );
        let missing = missing(&files, &known);
        assert!(
            missing.is_empty(),
            "{} shapes have no case that compares what is answered:\n{}",
            missing.len(),
            missing.join("\n")
        );
        assert!(recorded().count() > 50, "hardly anything was recorded");
    }

    #[test]
    fn what_is_answered_otherwise_is_sent_all_the_same_and_is_a_known_difference() {
        let (files, known) = (crate::run::read_files().unwrap(), crate::run::read_known().unwrap());
        let (judged, sent) = (compared(&files, &known), compared(&files, &[]));
        for start in OTHERWISE {
            let shapes: Vec<_> = judged.iter().filter(|(shape, _)| shape.starts_with(start)).collect();
            assert!(!shapes.is_empty(), "nobody asks so any more: {start}");
            for (shape, much) in shapes {
                assert!(*much < Some(Compared::Parts), "it is compared: {shape}");
                assert_eq!(sent[shape], Some(Compared::Whole), "no case sends it: {shape}");
            }
        }
    }

    #[test]
    fn an_answer_of_which_hardly_anything_is_compared_shows_nothing() {
        let much = |only: &[&str]| how_much(&only.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>());
        assert_eq!(much(&[]), Compared::Whole);
        assert_eq!(much(&[".code", ".headers", ".body.kind", ".body.apiVersion"]), Compared::Head);
        assert_eq!(much(&[".events[*].type"]), Compared::Head);
        assert_eq!(much(&[".code", ".body.spec"]), Compared::Parts);
        let opened = "== a\nwatch w /api/v1/pods\n";
        for (text, expected) in [
            (opened.to_owned(), Compared::Head),
            (format!("{opened}events w 1\n"), Compared::Whole),
            (format!("{opened}events w 1\n  ? .events[0].object.spec\n"), Compared::Parts),
        ] {
            let file = File::parse("test", &text).unwrap();
            let case = &file.cases[0];
            assert_eq!(asked(case, &case.steps[0]).map(|(_, much)| much), Some(expected), "{text}");
        }
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
