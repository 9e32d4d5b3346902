//! Questions about access, as objects that are created and answered at once.

use mailboat_machinery::FieldError;
use mailboat_object::ClusterId;
use serde_json::{Value, json};

use super::rbac::Rule;
use super::{Asked, Decision, Rights, User};

/// Refuses a question that asks for nothing, or for two things.
pub fn check_access(spec: &Value) -> Result<(), FieldError> {
    if spec["resourceAttributes"].is_object() != spec["nonResourceAttributes"].is_object() {
        return Ok(());
    }
    let what = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    Err(FieldError::invalid("spec.resourceAttributes", &spec["resourceAttributes"], what))
}

/// Answers a `SelfSubjectAccessReview`: may whoever asks do this? The body is the one that was sent.
pub fn self_subject_access(rights: &Rights, cluster: &ClusterId, user: &User, body: Value) -> Value {
    let decision = decide(rights, cluster, user, &body["spec"]);
    answered(body, decision)
}

/// Answers a `SubjectAccessReview` or, with the namespace that it was sent to, a `LocalSubjectAccessReview`: may somebody
/// do this? What makes no sense is told as the sentence of a 422.
pub fn subject_access(
    rights: &Rights,
    cluster: &ClusterId,
    body: Value,
    namespace: Option<&str>,
) -> Result<Value, String> {
    let spec = &body["spec"];
    let of_object = &spec["resourceAttributes"];
    if of_object.is_object() == spec["nonResourceAttributes"].is_object() {
        return Err("exactly one of nonResourceAttributes or resourceAttributes must be specified".to_owned());
    }
    if namespace.is_some_and(|namespace| of_object["namespace"] != namespace) {
        return Err("spec.resourceAttributes.namespace must match metadata.namespace".to_owned());
    }
    let user = User {
        name: text(&spec["user"]).to_owned(),
        uid: text(&spec["uid"]).to_owned(),
        groups: texts(&spec["groups"]),
        extra: extra(&spec["extra"]),
    };
    if user.name.is_empty() && user.groups.is_empty() {
        return Err("at least one of user or group must be specified".to_owned());
    }
    let decision = decide(rights, cluster, &user, spec);
    Ok(answered(body, decision))
}

/// Answers a `SelfSubjectRulesReview`: what may whoever asks do in a namespace?
pub fn self_subject_rules(rights: &Rights, cluster: &ClusterId, user: &User, mut body: Value) -> Value {
    let namespace = text(&body["spec"]["namespace"]).to_owned();
    let rules = rights.rules(cluster, user, &namespace);
    let (of_paths, of_objects): (Vec<&Rule>, Vec<&Rule>) =
        rules.iter().partition(|rule| !rule.paths.is_empty());
    let json = |rules: Vec<&Rule>| rules.into_iter().map(Rule::to_json).collect::<Vec<_>>();
    // Servers do not repeat it.
    body["spec"] = json!({});
    body["status"] = json!({
        "incomplete": false, "nonResourceRules": json(of_paths), "resourceRules": json(of_objects),
    });
    body
}

/// Answers a `SelfSubjectReview`: who am I?
pub fn self_subject(user: &User, mut body: Value) -> Value {
    body["status"] = json!({ "userInfo": user_info(user) });
    body
}

/// Answers a `TokenReview`: whose token is this? `audiences` are those for which it is good.
pub fn token(whose: Result<(User, Vec<String>), String>, mut body: Value) -> Value {
    body["status"] = match whose {
        Ok((user, audiences)) => {
            json!({ "authenticated": true, "user": user_info(&user), "audiences": audiences })
        }
        Err(why) => json!({ "error": why, "user": {} }),
    };
    body
}

/// A user as reviews show one.
pub fn user_info(user: &User) -> Value {
    let mut info = json!({ "username": user.name });
    if !user.uid.is_empty() {
        info["uid"] = user.uid.as_str().into();
    }
    if !user.groups.is_empty() {
        info["groups"] = json!(user.groups);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

fn decide(rights: &Rights, cluster: &ClusterId, user: &User, spec: &Value) -> Decision {
    let of_path = &spec["nonResourceAttributes"];
    if of_path.is_object() {
        let asked = Asked::Path { verb: text(&of_path["verb"]), path: text(&of_path["path"]) };
        return rights.decide(cluster, user, &asked);
    }
    let of_object = &spec["resourceAttributes"];
    let part = |member: &str| text(&of_object[member]);
    let asked = Asked::Object {
        verb: part("verb"),
        group: part("group"),
        resource: part("resource"),
        subresource: part("subresource"),
        namespace: part("namespace"),
        name: part("name"),
    };
    rights.decide(cluster, user, &asked)
}

fn answered(mut body: Value, decision: Decision) -> Value {
    body["status"] = json!({ "allowed": decision.allowed });
    if !decision.reason.is_empty() {
        body["status"]["reason"] = decision.reason.into();
    }
    body
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn extra(value: &Value) -> std::collections::BTreeMap<String, Vec<String>> {
    let members = value.as_object().into_iter().flatten();
    members.map(|(key, values)| (key.clone(), texts(values))).collect()
}
