//! Copying what is kept of a body into one allocation of its exact size.

use super::decode::Body;
use super::{Keep, Object, Part, Place, Spans};
use crate::digest::Digest;
use crate::json::{Scanner, Span, escape};
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
