//! Who is asked, or which policies are looked at, when something is written. Their defaults are those that a server fills in:
//! whoever applies one would otherwise find it changed on each server but this.

use serde_json::{Value, json};

use super::default;

/// Seconds that a webhook has to answer.
const TIMEOUT_SECONDS: u64 = 10;
const PORT: u64 = 443;

pub(super) fn default_mutating_webhooks(configuration: &mut Value) {
    default_webhooks(configuration);
    for webhook in elements(configuration, "webhooks") {
        default(webhook, "reinvocationPolicy", "Never");
    }
}

pub(super) fn default_webhooks(configuration: &mut Value) {
    for webhook in elements(configuration, "webhooks") {
        default(webhook, "failurePolicy", "Fail");
        default(webhook, "timeoutSeconds", TIMEOUT_SECONDS);
        default_match(webhook);
        default_scopes(webhook, "rules");
        let service = webhook.get_mut("clientConfig").and_then(|config| config.get_mut("service"));
        if let Some(service) = service.filter(|service| service.is_object()) {
            default(service, "port", PORT);
        }
    }
}

pub(super) fn default_policy(policy: &mut Value) {
    let Some(spec) = policy.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    default(spec, "failurePolicy", "Fail");
    if let Some(resources) = spec.get_mut("matchConstraints") {
        default_resources(resources);
    }
}

pub(super) fn default_policy_binding(binding: &mut Value) {
    let resources = binding.get_mut("spec").and_then(|spec| spec.get_mut("matchResources"));
    if let Some(resources) = resources {
        default_resources(resources);
    }
}

fn default_resources(resources: &mut Value) {
    if !resources.is_object() {
        return;
    }
    default_match(resources);
    for rules in ["resourceRules", "excludeResourceRules"] {
        default_scopes(resources, rules);
    }
}

fn default_match(of: &mut Value) {
    default(of, "matchPolicy", "Equivalent");
    default(of, "namespaceSelector", json!({}));
    default(of, "objectSelector", json!({}));
}

fn default_scopes(of: &mut Value, rules: &str) {
    for rule in elements(of, rules) {
        default(rule, "scope", "*");
    }
}

fn elements<'v>(of: &'v mut Value, list: &str) -> impl Iterator<Item = &'v mut Value> {
    let elements = of.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
    elements.filter(|element| element.is_object())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_webhook_does_not_say_is_filled_in() {
        let mut configuration = json!({ "webhooks": [{
            "name": "a", "rules": [{ "operations": ["CREATE"] }], "timeoutSeconds": 3,
            "clientConfig": { "service": { "name": "a" } },
        }] });
        default_mutating_webhooks(&mut configuration);
        let expected = json!({ "webhooks": [{
            "name": "a", "rules": [{ "operations": ["CREATE"], "scope": "*" }], "timeoutSeconds": 3,
            "clientConfig": { "service": { "name": "a", "port": 443 } }, "failurePolicy": "Fail",
            "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
            "reinvocationPolicy": "Never",
        }] });
        assert_eq!(configuration, expected);
    }

    #[test]
    fn what_is_no_policy_stays_as_it_is() {
        for body in [json!({}), json!({ "spec": 1 }), json!({ "spec": null, "webhooks": [1, null] })] {
            let mut filled = body.clone();
            for fill in [default_policy, default_policy_binding, default_webhooks, default_mutating_webhooks]
            {
                fill(&mut filled);
            }
            assert_eq!(filled, body);
        }
    }
}
