//! Requests for certificates: who asks and for what never changes, and each of two subresources writes its part of what
//! becomes of it.

use std::collections::HashSet;

use base64::Engine as _;
use serde_json::{Value, json};

use crate::kind::Section;
use crate::status::FieldError;
use crate::time::rfc3339;

/// Conditions that are set once, and only to say yes.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];
/// Shortest life that may be asked for.
const LIFE_SECONDS_MIN: i64 = 600;

/// How requests are written.
pub(super) const SECTIONS: &[Section] = &[
    Section {
        name: "",
        resets: &[&["spec"], &["status"]],
        prepared: true,
        keep: |new, old, _| {
            new["spec"] = old["spec"].clone();
            new["status"] = old["status"].clone();
        },
        check: |_, _| Vec::new(),
    },
    Section {
        name: "approval",
        resets: &[&["spec"], &["status", "certificate"]],
        prepared: true,
        keep: |new, old, now_seconds| {
            date_conditions(new, old, now_seconds);
            let conditions = new["status"].get("conditions").cloned();
            new["spec"] = old["spec"].clone();
            new["status"] = old["status"].clone();
            put_conditions(new, conditions);
        },
        check: check_conditions,
    },
    Section {
        name: "status",
        resets: &[&["spec"], &["status", "conditions"]],
        prepared: true,
        keep: |new, old, now_seconds| {
            new["spec"] = old["spec"].clone();
            keep_decisions(new, old);
            date_conditions(new, old, now_seconds);
        },
        check: |new, old| {
            let mut errors = check_conditions(new, old);
            errors.extend(check_no_decision(new, old));
            errors.extend(check_certificate(new));
            errors
        },
    },
];

fn conditions(request: &Value) -> &[Value] {
    request["status"]["conditions"].as_array().map_or(&[], Vec::as_slice)
}

fn conditions_mut(request: &mut Value) -> Option<&mut Vec<Value>> {
    request.pointer_mut("/status/conditions").and_then(Value::as_array_mut)
}

fn of_type<'v>(request: &'v Value, condition_type: &str) -> Vec<&'v Value> {
    conditions(request).iter().filter(|condition| condition["type"] == condition_type).collect()
}

fn put_conditions(request: &mut Value, conditions: Option<Value>) {
    let Value::Object(status) = &mut request["status"] else { return };
    match conditions {
        Some(conditions) => status.insert("conditions".to_owned(), conditions),
        None => status.remove("conditions"),
    };
}

/// A condition says since when it holds, even if whoever wrote it did not.
fn date_conditions(new: &mut Value, old: &Value, now_seconds: u64) {
    let now = json!(rfc3339(now_seconds));
    let Some(list) = conditions_mut(new) else { return };
    for condition in list.iter_mut().filter(|condition| condition.is_object()) {
        let known = conditions(old)
            .iter()
            .find(|known| known["type"] == condition["type"] && known["status"] == condition["status"]);
        let since = known.map(|known| known["lastTransitionTime"].clone()).filter(|time| !time.is_null());
        for (member, time) in [("lastUpdateTime", None), ("lastTransitionTime", since)] {
            if condition[member].is_null() {
                condition[member] = time.unwrap_or_else(|| now.clone());
            }
        }
    }
}

/// Whoever signs says nothing about whether he should: as many decisions as before are those from before.
fn keep_decisions(new: &mut Value, old: &Value) {
    for decision in DECISIONS {
        let before = of_type(old, decision);
        let Some(list) = conditions_mut(new) else { return };
        let now: Vec<&mut Value> =
            list.iter_mut().filter(|condition| condition["type"] == decision).collect();
        if now.len() == before.len() {
            now.into_iter().zip(before).for_each(|(now, before)| now.clone_from(before));
        }
    }
}

fn check_no_decision(new: &Value, old: &Value) -> Vec<FieldError> {
    let added = |decision: &&str| of_type(new, decision).len() > of_type(old, decision).len();
    let refused = |decision: &str| {
        let why = format!("updates may not add a condition of type {decision:?}");
        FieldError::forbidden("status.conditions", &why)
    };
    DECISIONS.into_iter().filter(added).map(refused).collect()
}

fn check_conditions(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (mut seen, mut decided) = (HashSet::new(), false);
    for (index, condition) in conditions(new).iter().enumerate() {
        let at = |member: &str| format!("status.conditions[{index}].{member}");
        let of_type = condition["type"].as_str().unwrap_or_default();
        if of_type.is_empty() {
            errors.push(FieldError::required(&at("type"), ""));
        }
        let only_true = DECISIONS.contains(&of_type) || of_type == "Failed";
        let allowed: &[Value] =
            if only_true { &[json!("True")] } else { &[json!("False"), json!("True"), json!("Unknown")] };
        match condition["status"].as_str().unwrap_or_default() {
            "" => errors.push(FieldError::required(&at("status"), "")),
            status if !allowed.contains(&json!(status)) => {
                errors.push(FieldError::unsupported(&at("status"), &json!(status), allowed));
            }
            _ => {}
        }
        if !seen.insert(of_type) {
            errors.push(FieldError::duplicate(&at("type"), &json!(of_type)));
        } else if DECISIONS.contains(&of_type) {
            if decided {
                let why = "Approved and Denied conditions are mutually exclusive";
                errors.push(FieldError::invalid("status.conditions", &json!(of_type), why));
            }
            decided = true;
        }
    }
    for lasting in DECISIONS.into_iter().chain(["Failed"]) {
        if of_type(new, lasting).len() < of_type(old, lasting).len() {
            let why = format!("updates may not remove a condition of type {lasting:?}");
            errors.push(FieldError::forbidden("status.conditions", &why));
        }
    }
    errors
}

/// What was signed is not repeated where it is refused.
fn check_certificate(new: &Value) -> Option<FieldError> {
    let certificate = new["status"]["certificate"].as_str().filter(|text| !text.is_empty())?;
    if is_pem(certificate, "CERTIFICATE") {
        return None;
    }
    let why = "must contain at least one CERTIFICATE PEM block";
    Some(FieldError::invalid("status.certificate", &json!("<certificate data>"), why))
}

/// Whether a text in base64 holds a block of this kind.
fn is_pem(text: &str, kind: &str) -> bool {
    let decoded = base64::prelude::BASE64_STANDARD.decode(text).unwrap_or_default();
    String::from_utf8_lossy(&decoded).contains(&format!("-----BEGIN {kind}-----"))
}

/// A new request. Its signature is for whoever signs to look at: nobody does here.
pub(super) fn check_request(new: &Value, _: Option<&Value>) -> Vec<FieldError> {
    let spec = &new["spec"];
    let mut errors = Vec::new();
    if !is_pem(spec["request"].as_str().unwrap_or_default(), "CERTIFICATE REQUEST") {
        let why = "PEM block type must be CERTIFICATE REQUEST";
        errors.push(FieldError::invalid("spec.request", &spec["request"], why));
    }
    if spec["usages"].as_array().is_none_or(Vec::is_empty) {
        errors.push(FieldError::required("spec.usages", ""));
    }
    let signer = spec["signerName"].as_str().unwrap_or_default();
    if signer.is_empty() {
        errors.push(FieldError::required("spec.signerName", ""));
    } else if signer.split_once('/').is_none_or(|(domain, path)| !domain.contains('.') || path.is_empty()) {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.push(FieldError::invalid("spec.signerName", &spec["signerName"], why));
    }
    if spec["expirationSeconds"].as_i64().is_some_and(|seconds| seconds < LIFE_SECONDS_MIN) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(FieldError::invalid("spec.expirationSeconds", &spec["expirationSeconds"], why));
    }
    errors
}
