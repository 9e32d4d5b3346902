//! Copying what is kept of a body into one allocation of its exact size.

use super::decode::Body;
use super::{Keep, Object, Part, Place, Spans};
use crate::digest::Digest;
use crate::json::{Raw, Scanner, Span, escape};
use crate::key::Uid;

pub(super) fn keep(body: &Body<'_>, scanner: &Scanner<'_>, place: &Place<'_>) -> Object {
    let (json, spans) = copy(body, scanner, place);
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
        json,
        spans,
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
    let (json, spans) =
        if keep == object.keep { (object.json.clone(), object.spans) } else { head_of(object, keep) };
    Object {
        key: object.key.clone(),
        uid: object.uid.clone(),
        version: object.version,
        generation: object.generation,
        deleting: object.deleting,
        content: object.content,
        status: object.status,
        hands: object.hands.clone(),
        json,
        spans,
        keep,
    }
}

fn head_of(object: &Object, keep: Keep) -> (Box<str>, Spans) {
    let root = object.root();
    let member = |name| root.member(name).map_or("", Raw::json);
    let (api_version, kind) = (member("apiVersion"), member("kind"));
    let metadata = object.part(object.spans.metadata).map_or("{}", Raw::json);
    let status = object.part(object.spans.status).filter(|_| keep == Keep::HeadAndStatus).map(Raw::json);
    let before = [
        &["{"][..],
        &present_member("\"apiVersion\":", api_version),
        &present_member("\"kind\":", kind),
        &["\"metadata\":"],
    ];
    let after = status.map_or(["}", "", ""], |status| [",\"status\":", status, "}"]);
    let metadata_at = before.iter().copied().map(length).sum();
    let metadata_end = metadata_at + metadata.len();
    let mut json = String::with_capacity(metadata_end + length(&after));
    for piece in before.into_iter().flatten().chain(&[metadata]).chain(&after) {
        json.push_str(piece);
    }
    let from = object.spans.metadata.start as usize;
    let moved = |part: Part| {
        let shift = |at: u32| metadata_at + at as usize - from;
        if part.start == part.end { part } else { Part::of(Span::new(shift(part.start), shift(part.end))) }
    };
    let status_at = metadata_end + after[0].len();
    let spans = Spans {
        metadata: Part::of(Span::new(metadata_at, metadata_end)),
        labels: moved(object.spans.labels),
        annotations: moved(object.spans.annotations),
        status: status
            .map(|status| Part::of(Span::new(status_at, status_at + status.len())))
            .unwrap_or_default(),
    };
    (json.into_boxed_str(), spans)
}

/// What is kept, and where in it the parts stand.
fn copy(body: &Body<'_>, scanner: &Scanner<'_>, place: &Place<'_>) -> (Box<str>, Spans) {
    let metadata = body.metadata.unwrap_or_default();
    let cut = body.head.cut.unwrap_or(Span::new(metadata.end, metadata.end));
    let api_version = escape(place.api_version);
    let kind = escape(place.kind_name);
    let before = [
        &["{"][..],
        &member_to_add("\"apiVersion\":\"", &api_version, body.api_version),
        &member_to_add("\"kind\":\"", &kind, body.kind),
        &before_metadata(body, scanner, place.keep),
    ];
    let kept = [
        scanner.slice(Span::new(metadata.start, cut.start)),
        scanner.slice(Span::new(cut.end, metadata.end)),
    ];
    let after = after_metadata(body, scanner, place.keep);

    let metadata_at = before.iter().copied().map(length).sum();
    let metadata_end = metadata_at + length(&kept);
    let mut json = String::with_capacity(metadata_end + length(&after));
    for piece in before.into_iter().flatten().chain(&kept).chain(&after) {
        json.push_str(piece);
    }
    // Where a part of the body stands now, if all between it and the metadata was copied.
    let moved = |span: Span| {
        let removed = if span.start >= cut.end { cut.len() } else { 0 };
        let shift = |at: usize| metadata_at + at - metadata.start - removed;
        Part::of(Span::new(shift(span.start), shift(span.end)))
    };
    let status = match place.keep {
        Keep::Whole => body.status.map(moved),
        Keep::Head => None,
        Keep::HeadAndStatus => {
            let start = metadata_end + after[0].len();
            body.status.map(|status| Part::of(Span::new(start, start + status.len())))
        }
    };
    let spans = Spans {
        metadata: Part::of(Span::new(metadata_at, metadata_end)),
        labels: body.head.labels.map(moved).unwrap_or_default(),
        annotations: body.head.annotations.map(moved).unwrap_or_default(),
        status: status.unwrap_or_default(),
    };
    (json.into_boxed_str(), spans)
}

fn length(pieces: &[&str]) -> usize {
    pieces.iter().map(|piece| piece.len()).sum()
}

/// A member with its value as JSON, if there is one.
fn present_member<'t>(opening: &'t str, value: &'t str) -> [&'t str; 3] {
    if value.is_empty() { [""; 3] } else { [opening, value, ","] }
}

/// A member that the body lacks and the place knows. Another always follows, at least `metadata`.
fn member_to_add<'t>(opening: &'t str, text: &'t str, found: Option<Span>) -> [&'t str; 3] {
    if found.is_some() || text.is_empty() { [""; 3] } else { [opening, text, "\","] }
}

fn before_metadata<'t>(body: &Body<'_>, scanner: &Scanner<'t>, keep: Keep) -> [&'t str; 5] {
    let metadata = body.metadata.unwrap_or_default();
    if keep == Keep::Whole {
        return [scanner.slice(Span::new(body.map.start + 1, metadata.start)), "", "", "", ""];
    }
    let [a, b] = body.api_version.map_or([""; 2], |member| [scanner.slice(member), ","]);
    let [c, d] = body.kind.map_or([""; 2], |member| [scanner.slice(member), ","]);
    [a, b, c, d, "\"metadata\":"]
}

fn after_metadata<'t>(body: &Body<'_>, scanner: &Scanner<'t>, keep: Keep) -> [&'t str; 3] {
    let metadata = body.metadata.unwrap_or_default();
    match (keep, body.status) {
        (Keep::Whole, _) => [scanner.slice(Span::new(metadata.end, body.map.end)), "", ""],
        (Keep::HeadAndStatus, Some(status)) => [",\"status\":", scanner.slice(status), "}"],
        (Keep::HeadAndStatus, None) | (Keep::Head, _) => ["}", "", ""],
    }
}
