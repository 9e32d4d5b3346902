//! Roles, and what binds them to users.

use serde_json::{Value, json};

use super::default;
use crate::status::FieldError;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn default_binding(binding: &mut Value) {
    if let Some(role) = binding.get_mut("roleRef") {
        default(role, "apiGroup", GROUP);
    }
    for subject in binding.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        if matches!(subject["kind"].as_str(), Some("User" | "Group")) {
            default(subject, "apiGroup", GROUP);
        }
    }
}

/// A role without rules says so.
pub(super) fn prepare_role(role: &mut Value, _: Option<&Value>) {
    if role["rules"].as_array().is_none_or(Vec::is_empty) {
        role["rules"] = Value::Null;
    }
}

pub(super) fn check_role(new: &Value, _: Option<&Value>) -> Vec<FieldError> {
    let rules = new["rules"].as_array().map_or(&[][..], Vec::as_slice);
    let mut errors = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        let empty = |member: &str| rule[member].as_array().is_none_or(Vec::is_empty);
        let mut need = |member: &str, sentence: &str| {
            errors.push(FieldError::required(&format!("rules[{index}].{member}"), sentence));
        };
        if empty("verbs") {
            need("verbs", "verbs must contain at least one value");
        }
        if !empty("nonResourceURLs") {
            continue;
        }
        if empty("apiGroups") {
            need("apiGroups", "resource rules must supply at least one api group");
        }
        if empty("resources") {
            need("resources", "resource rules must supply at least one resource");
        }
    }
    errors
}

/// What a binding binds to never changes: who reads the one should not get the other.
pub(super) fn check_binding(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let role = &new["roleRef"];
    match old {
        Some(old) if old["roleRef"] != *role => {
            // The server shows its own type, whose members are not called as in JSON.
            let text = |member: &str| json!(role[member].as_str().unwrap_or_default()).to_string();
            let shown = format!(
                "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
                text("apiGroup"),
                text("kind"),
                text("name")
            );
            vec![FieldError {
                field: "roleRef".to_owned(),
                reason: "FieldValueInvalid",
                body: format!("Invalid value: {shown}: cannot change roleRef"),
            }]
        }
        _ => Vec::new(),
    }
}
