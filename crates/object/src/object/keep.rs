//! Copying what is kept of a body: all of it, or its head, which is shared by all objects that have the same.

use std::sync::Arc;

use super::decode::{Body, CLUSTER_ANNOTATION, is_in_the_head_itself};
use super::text::{Text, shared};
use super::{Keep, Object, Part, Place, Spans};
use crate::digest::Digest;
use crate::json::{Raw, Scanner, Span, escape, unescape};
use crate::key::Uid;

pub(super) fn keep(body: &Body<'_>, scanner: &Scanner<'_>, place: &Place<'_>) -> Object {
    let text = match place.keep {
        Keep::Whole => Arc::new(whole(body, scanner, place)),
        Keep::Head | Keep::HeadAndStatus => shared(head_of_body(body, scanner, place)),
    };
    let status = body.status.filter(|_| place.keep == Keep::HeadAndStatus);
    let head = &body.head;
    Object {
        key: head.key(place),
        uid: Uid::parse(&head.uid),
        version: head.version,
        generation: head.generation,
        deleting: head.deleting,
        content: Digest::of(body.content.finish()),
        status: body.status_digest,
        hands: head.hands.clone(),
        created: head.created,
        text,
        status_apart: status.map(|status| scanner.slice(status).into()),
        keep: place.keep,
    }
}

/// What would have been kept of the same body, had less been asked for.
pub(super) fn less(object: &Object, keep: Keep) -> Object {
    let keep = match (object.keep, keep) {
        (Keep::Whole, wanted) => wanted,
        (Keep::HeadAndStatus, Keep::Head) => Keep::Head,
        (kept, _) => kept,
    };
    let text = match (object.keep, keep) {
        (Keep::Whole, Keep::Head | Keep::HeadAndStatus) => shared(head_of_object(object)),
        _ => Arc::clone(&object.text),
    };
    let status = object.status_raw().filter(|_| keep == Keep::HeadAndStatus);
    Object {
        key: object.key.clone(),
        uid: object.uid.clone(),
        version: object.version,
        generation: object.generation,
        deleting: object.deleting,
        content: object.content,
        status: object.status,
        hands: object.hands.clone(),
        created: object.created,
        text,
        status_apart: status.map(|status| status.json().into()),
        keep,
    }
}

/// The annotation by which copies of ours are known again: their mark.
pub const MARK_ANNOTATION: &str = "mailboat.dev/mark";
/// How a mark says in which cluster it was put on its copy, and what may follow that.
const PUT_IN: &str = ",in=";
const AFTER_PUT_IN: [char; 2] = [',', '"'];

/// The members of `metadata` that are kept in a head, and are not among its fields.
#[derive(Default)]
struct Members<'a> {
    /// The cluster that the object is in.
    cluster: &'a str,
    labels: Option<Raw<'a>>,
    annotations: Option<Raw<'a>>,
    /// All others, by their key as it is written.
    rest: Vec<(&'a str, Raw<'a>)>,
}

fn head_of_body(body: &Body<'_>, scanner: &Scanner<'_>, place: &Place<'_>) -> Text {
    let raw = |span: Span| Raw::trusted(scanner.slice(span));
    let text = |member: Option<Span>, place: &str| match member {
        Some(member) => value_of(scanner.slice(member)).to_owned(),
        None if place.is_empty() => String::new(),
        None => format!("\"{}\"", escape(place)),
    };
    let members = Members {
        cluster: body.head.cluster(place),
        labels: body.head.labels.map(raw),
        annotations: body.head.annotations.map(raw),
        rest: body.head.rest.iter().map(|(key, value)| (scanner.slice(*key), raw(*value))).collect(),
    };
    head(&text(body.api_version, place.api_version), &text(body.kind, place.kind_name), &members)
}

fn head_of_object(object: &Object) -> Text {
    let root = object.root();
    let member = |name| root.member(name).map_or("", Raw::json);
    let mut members = Members { cluster: &object.key.cluster.0, ..Members::default() };
    for (key, value) in object.part(object.text.spans.metadata).into_iter().flat_map(Raw::escaped_members) {
        match &*unescape(key) {
            "labels" if value.is_map() => members.labels = Some(value),
            "annotations" if value.is_map() => members.annotations = Some(value),
            "labels" | "annotations" => {}
            name if is_in_the_head_itself(name) => {}
            _ => members.rest.push((key, value)),
        }
    }
    head(member("apiVersion"), member("kind"), &members)
}

/// A head's text. Whatever differs from copy to copy of one source is among the fields of a head and not in its text.
fn head(api_version: &str, kind: &str, members: &Members<'_>) -> Text {
    let mut json = String::with_capacity(256);
    json.push('{');
    for (name, value) in [("apiVersion", api_version), ("kind", kind)] {
        if !value.is_empty() {
            add(&mut json, name, value);
            json.push(',');
        }
    }
    json.push_str("\"metadata\":");
    let start = json.len();
    json.push('{');
    for (key, value) in &members.rest {
        comma(&mut json);
        add(&mut json, key, value.json());
    }
    let mut spans = Spans::default();
    if let Some(labels) = members.labels {
        comma(&mut json);
        spans.labels = add(&mut json, "labels", labels.json());
    }
    if let Some(annotations) = members.annotations {
        comma(&mut json);
        json.push_str("\"annotations\":");
        let from = json.len();
        json.push('{');
        for (key, value) in annotations.escaped_members().filter(|(key, _)| *key != CLUSTER_ANNOTATION) {
            comma(&mut json);
            let [before, after] = match key {
                MARK_ANNOTATION => without_own_cluster(value.json(), members.cluster),
                _ => [value.json(), ""],
            };
            add(&mut json, key, before);
            json.push_str(after);
        }
        json.push('}');
        spans.annotations = Part::of(Span::new(from, json.len()));
    }
    json.push('}');
    spans.metadata = Part::of(Span::new(start, json.len()));
    json.push('}');
    Text { json: json.into_boxed_str(), spans }
}

/// A mark without the cluster that it was put in, where that is the object's own: the object's key says that. A mark that was
/// copied along to another cluster keeps it.
fn without_own_cluster<'m>(mark: &'m str, cluster: &str) -> [&'m str; 2] {
    let own = mark.split_once(PUT_IN).and_then(|(before, rest)| {
        let after = rest.strip_prefix(cluster)?;
        after.starts_with(AFTER_PUT_IN).then_some([before, after])
    });
    own.unwrap_or([mark, ""])
}

/// A comma, unless this is the first member of a map.
fn comma(json: &mut String) {
    if !json.ends_with('{') {
        json.push(',');
    }
}

/// Adds a member, by its key as it is written, and says where its value stands.
fn add(json: &mut String, key: &str, value: &str) -> Part {
    json.push('"');
    json.push_str(key);
    json.push_str("\":");
    let start = json.len();
    json.push_str(value);
    Part::of(Span::new(start, json.len()))
}

/// The value of a member that stands there with its key, which is plain.
fn value_of(member: &str) -> &str {
    member.split_once(':').map_or("", |(_, value)| value.trim_start())
}

/// All of a body but `managedFields`, and where in it the parts stand.
fn whole(body: &Body<'_>, scanner: &Scanner<'_>, place: &Place<'_>) -> Text {
    let metadata = body.metadata.unwrap_or_default();
    let cut = body.head.cut.unwrap_or(Span::new(metadata.end, metadata.end));
    let api_version = escape(place.api_version);
    let kind = escape(place.kind_name);
    let before = [
        &["{"][..],
        &member_to_add("\"apiVersion\":\"", &api_version, body.api_version),
        &member_to_add("\"kind\":\"", &kind, body.kind),
        &[scanner.slice(Span::new(body.map.start + 1, metadata.start))],
    ];
    let kept = [
        scanner.slice(Span::new(metadata.start, cut.start)),
        scanner.slice(Span::new(cut.end, metadata.end)),
        scanner.slice(Span::new(metadata.end, body.map.end)),
    ];
    let metadata_at: usize = before.iter().copied().map(length).sum();
    let mut json = String::with_capacity(metadata_at + length(&kept));
    for piece in before.into_iter().flatten().chain(&kept) {
        json.push_str(piece);
    }
    // Where a part of the body stands now.
    let moved = |span: Span| {
        let removed = if span.start >= cut.end { cut.len() } else { 0 };
        let shift = |at: usize| metadata_at + at - metadata.start - removed;
        Part::of(Span::new(shift(span.start), shift(span.end)))
    };
    let spans = Spans {
        metadata: Part::of(Span::new(metadata_at, metadata_at + length(&kept[..2]))),
        labels: body.head.labels.map(moved).unwrap_or_default(),
        annotations: body.head.annotations.map(moved).unwrap_or_default(),
        status: body.status.map(moved).unwrap_or_default(),
    };
    Text { json: json.into_boxed_str(), spans }
}

fn length(pieces: &[&str]) -> usize {
    pieces.iter().map(|piece| piece.len()).sum()
}

/// A member that the body lacks and the place knows. Another always follows, at least `metadata`.
fn member_to_add<'t>(opening: &'t str, text: &'t str, found: Option<Span>) -> [&'t str; 3] {
    if found.is_some() || text.is_empty() { [""; 3] } else { [opening, text, "\","] }
}
