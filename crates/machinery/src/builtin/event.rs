//! Events: one kind under two names. They are kept as those of the core group; `events.k8s.io` calls their members
//! otherwise, and asks more of them.

use serde_json::{Map, Value, json};

use super::default;
use crate::convert::Conversion;
use crate::metadata;
use crate::status::FieldError;

/// Fields by which events can be selected.
pub(super) const SELECTABLE: [&str; 11] = [
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

/// How Events of `events.k8s.io` are kept.
pub(super) const CONVERSION: Conversion = Conversion {
    show,
    keep,
    fields: &[
        ("reason", "reason"),
        ("regarding.kind", "involvedObject.kind"),
        ("regarding.namespace", "involvedObject.namespace"),
        ("regarding.name", "involvedObject.name"),
        ("regarding.uid", "involvedObject.uid"),
        ("regarding.apiVersion", "involvedObject.apiVersion"),
        ("regarding.resourceVersion", "involvedObject.resourceVersion"),
        ("regarding.fieldPath", "involvedObject.fieldPath"),
        ("reportingController", "reportingComponent"),
        ("type", "type"),
    ],
    check: Some(check_strictly),
};

/// What members are called in the core group, and in `events.k8s.io`.
const MEMBERS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];
/// So long may be what an event has to say, and the name of whoever says it.
const MESSAGE_LIMIT_BYTES: usize = 1024;
const INSTANCE_LIMIT_BYTES: usize = 128;

fn show(event: &mut Value) {
    rename(event, MEMBERS);
    // Who reports is said there only if somebody does.
    if let Value::Object(members) = event {
        members.retain(|name, value| {
            !matches!(name.as_str(), "reportingController" | "reportingInstance") || *value != ""
        });
    }
}

#[allow(clippy::unnecessary_wraps, reason = "it stands beside conversions that can fail")]
fn keep(event: &mut Value) -> Result<(), String> {
    rename(event, MEMBERS.map(|(here, there)| (there, here)));
    Ok(())
}

fn rename(event: &mut Value, names: [(&str, &str); 7]) {
    let Value::Object(members) = event else { return };
    let renamed = std::mem::take(members).into_iter().map(|(name, value)| {
        let new = names.iter().find(|(former, _)| *former == name).map(|(_, new)| (*new).to_owned());
        (new.unwrap_or(name), value)
    });
    *members = renamed.collect::<Map<String, Value>>();
}

/// Times that an event does not have are said to be none, and reporters to be nobody.
pub(super) fn default_event(event: &mut Value) {
    default(event, "involvedObject", json!({}));
    default(event, "source", json!({}));
    for member in ["eventTime", "firstTimestamp", "lastTimestamp"] {
        default(event, member, Value::Null);
    }
    for member in ["reportingComponent", "reportingInstance"] {
        default(event, member, "");
    }
}

pub(super) fn check_event(new: &Value, _: Option<&Value>) -> Vec<FieldError> {
    check(new, "reportingComponent")
}

/// What is asked of all events; those with a time of their own are held to the newer rules.
fn check(event: &Value, reporter: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let text = |member: &str| event[member].as_str().unwrap_or_default();
    let about = event["involvedObject"]["namespace"].as_str().unwrap_or_default();
    let at = event["metadata"]["namespace"].as_str().unwrap_or_default();
    let is_new = !event["eventTime"].is_null();
    let agree = match (about, is_new) {
        ("", false) => at == "default",
        ("", true) => matches!(at, "default" | "kube-system"),
        (_, false) => about == at,
        (_, true) => true,
    };
    if !agree {
        let what = "does not match event.namespace";
        errors.push(FieldError::invalid("involvedObject.namespace", &json!(about), what));
    }
    if !is_new {
        return errors;
    }
    if text("reportingComponent").is_empty() {
        errors.push(FieldError::required(reporter, ""));
    }
    errors.extend(metadata::check_qualified(text("reportingComponent"), reporter));
    if text("reportingInstance").is_empty() {
        errors.push(FieldError::required("reportingInstance", ""));
    }
    if text("reportingInstance").len() > INSTANCE_LIMIT_BYTES {
        let what = format!("can have at most {INSTANCE_LIMIT_BYTES} characters");
        errors.push(FieldError::invalid("reportingInstance", &json!(""), what));
    }
    for (member, limit) in [("action", INSTANCE_LIMIT_BYTES), ("reason", INSTANCE_LIMIT_BYTES)] {
        if text(member).is_empty() {
            errors.push(FieldError::required(member, ""));
        } else if text(member).len() > limit {
            errors.push(FieldError::invalid(
                member,
                &json!(""),
                format!("can have at most {limit} characters"),
            ));
        }
    }
    if text("message").len() > MESSAGE_LIMIT_BYTES {
        let what = format!("can have at most {MESSAGE_LIMIT_BYTES} characters");
        errors.push(FieldError::invalid("message", &json!(""), what));
    }
    errors
}

/// What is asked of events that are written as `events.k8s.io`: nothing of the old ways, and no change but a series.
fn check_strictly(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    const FIXED: [(&str, &str); 14] = [
        ("involvedObject", "involvedObject"),
        ("reason", "reason"),
        ("message", "message"),
        ("source", "source"),
        ("firstTimestamp", "firstTimestamp"),
        ("lastTimestamp", "lastTimestamp"),
        ("count", "count"),
        ("reason", "reason"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ];
    let mut errors = check(new, "reportingController");
    if let Some(old) = old {
        if new["series"] != old["series"] {
            errors.extend(check_series(new));
        }
        let changed = FIXED.into_iter().filter(|(member, _)| new[member] != old[member]);
        let told =
            changed.map(|(member, told)| FieldError::invalid(told, &new[member], "field is immutable"));
        errors.extend(told);
        return errors;
    }
    errors.extend(check_series(new));
    if new["eventTime"].is_null() {
        errors.push(FieldError::required("eventTime", ""));
    }
    let kind = new["type"].as_str().unwrap_or_default();
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(FieldError::invalid("type", &json!(""), format!("has invalid value: {kind}")));
    }
    for member in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        let unset = match &new[member] {
            Value::Null => true,
            Value::Object(members) => members.is_empty(),
            value => *value == 0,
        };
        if !unset {
            errors.push(FieldError::invalid(member, &json!(""), "needs to be unset"));
        }
    }
    errors
}

fn check_series(event: &Value) -> Vec<FieldError> {
    let series = &event["series"];
    let mut errors = Vec::new();
    if series.is_object() {
        if series["count"].as_i64().unwrap_or(0) < 2 {
            errors.push(FieldError::invalid("series.count", &json!(""), "should be at least 2"));
        }
        if series["lastObservedTime"].is_null() {
            errors.push(FieldError::required("series.lastObservedTime", ""));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_reads_under_both_names_and_comes_back_whole() {
        let kept = json!({
            "metadata": { "name": "a" }, "involvedObject": { "kind": "Pod", "name": "web" }, "reason": "Started",
            "message": "it runs", "source": { "component": "kubelet" }, "count": 3, "type": "Normal",
            "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": null, "eventTime": null,
            "reportingComponent": "", "reportingInstance": "",
        });
        let mut event = kept.clone();
        show(&mut event);
        let told = ["regarding", "note", "deprecatedSource", "deprecatedCount", "deprecatedFirstTimestamp"];
        assert!(told.iter().all(|member| event.get(member).is_some()), "{event}");
        assert!(
            event.get("reportingController").is_none() && event.get("involvedObject").is_none(),
            "{event}"
        );
        keep(&mut event).unwrap();
        default_event(&mut event);
        assert_eq!(event, kept);
    }

    #[test]
    fn the_newer_name_asks_more() {
        let mut event = json!({
            "metadata": { "namespace": "sea" }, "involvedObject": { "namespace": "sea" }, "reason": "Started",
            "source": {}, "eventTime": null,
        });
        assert!(check_event(&event, None).is_empty());
        let told: Vec<_> = check_strictly(&event, None).into_iter().map(|error| error.field).collect();
        assert_eq!(told, ["eventTime", "type"]);
        event["metadata"]["namespace"] = "land".into();
        assert_eq!(check_event(&event, None)[0].field, "involvedObject.namespace");
    }
}
