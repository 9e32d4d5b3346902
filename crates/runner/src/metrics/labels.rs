//! The words that label series: few, fixed, and none of them a name that a tenant gave.

use mailboat_object::wire::{Fault, FaultKind, Part, Verb};

pub(super) fn verb_word(verb: &Verb) -> &'static str {
    match verb {
        Verb::Get | Verb::GetAt(_) => "get",
        Verb::Create { .. } => "create",
        Verb::Apply { .. } => "apply",
        Verb::Replace { .. } => "replace",
        Verb::Merge { .. } => "merge",
        Verb::Json { .. } => "json",
        Verb::Delete { .. } => "delete",
    }
}

pub(super) fn part_word(part: Part) -> &'static str {
    match part {
        Part::Whole => "object",
        Part::Status => "status",
        Part::Scale => "scale",
        Part::Token => "token",
    }
}

pub(super) fn error_type(fault: &Fault) -> &'static str {
    match fault.kind {
        FaultKind::Retry(_) => "retry",
        FaultKind::Away => "away",
        FaultKind::Conflict => "conflict",
        FaultKind::Exists => "exists",
        FaultKind::NotFound => "not_found",
        FaultKind::NoNamespace => "no_namespace",
        FaultKind::Expired => "expired",
        FaultKind::Unserved => "unserved",
        FaultKind::Forbidden => "forbidden",
        FaultKind::Unauthorized => "unauthorized",
        FaultKind::Invalid => "invalid",
        FaultKind::TooLarge => "too_large",
        FaultKind::Bug => "bug",
    }
}

/// A group, version and kind as Go's `GroupVersionKind` prints itself: `apps/v1, Kind=Deployment`, and
/// `/v1, Kind=ConfigMap` for the group without a name.
pub(super) fn gvk_of(api_version: &str, kind_name: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind_name}")
}
