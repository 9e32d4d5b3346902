//! Questions about users and rights: created, answered, never stored.

use mailboat_machinery::time::rfc3339;
use mailboat_machinery::{FieldError, Status};
use mailboat_object::{ClusterId, Key, KindId, Name};
use serde_json::{Map, Value, json};

use super::write::read;
use crate::Hub;
use crate::access::user::CLUSTER_EXTRA;
use crate::access::{AccountError, BadToken, DEFAULT_SECONDS, User, review};
use crate::cluster::CLUSTER;
use crate::discovery::REVIEWS;
use crate::hub::now_seconds;
use crate::path::ObjectPath;

/// Whether a path is one of a question.
pub(super) fn is_question(path: &ObjectPath) -> bool {
    matches!(path.group.as_str(), "authentication.k8s.io" | "authorization.k8s.io")
        && path.version == "v1"
        && path.subresource.is_empty()
}

/// Whether a path is one by which a service account is given a token. An account is one of the core group: what another group
/// calls so is something else, and the right to make tokens for that is none to make them for accounts.
pub(super) fn is_token_request(path: &ObjectPath) -> bool {
    (path.group.as_str(), path.version.as_str()) == ("", "v1")
        && (path.resource.as_str(), path.subresource.as_str()) == ("serviceaccounts", "token")
        && !path.namespace.is_empty()
}

/// Answers a question.
pub(super) fn answer(
    hub: &Hub,
    cluster: &ClusterId,
    user: &User,
    path: &ObjectPath,
    mut body: Value,
    manager: &Name,
) -> Result<Value, Status> {
    let gate = hub.gate();
    furnish(&mut body, path, manager);
    let mut answered = match (path.group.as_str(), path.resource.as_str()) {
        ("authorization.k8s.io", "selfsubjectaccessreviews") => {
            review::check_access(&body["spec"])
                .map_err(|error| Status::invalid("authorization.k8s.io", "", "", &[error]))?;
            gate.rights(|rights| review::self_subject_access(rights, cluster, user, body))
        }
        ("authorization.k8s.io", "selfsubjectrulesreviews") => {
            gate.rights(|rights| review::self_subject_rules(rights, cluster, user, body))
        }
        ("authorization.k8s.io", resource @ ("subjectaccessreviews" | "localsubjectaccessreviews")) => {
            let local = resource == "localsubjectaccessreviews";
            let namespace = local.then(|| path.namespace.as_str());
            let asked = gate.rights(|rights| review::subject_access(rights, cluster, body, namespace));
            asked.map_err(|what| {
                let error = FieldError::invalid("spec", &Value::Null, what);
                Status::invalid("authorization.k8s.io", "SubjectAccessReview", "", &[error])
            })?
        }
        ("authentication.k8s.io", "selfsubjectreviews") => review::self_subject(user, body),
        ("authentication.k8s.io", "tokenreviews") => {
            let token = body["spec"]["token"].as_str().unwrap_or_default().to_owned();
            if token.is_empty() {
                return Err(Status::bad_request("token is required for TokenReview in authentication"));
            }
            let named = body["spec"]["audiences"].as_array().into_iter().flatten();
            let named: Vec<String> = named.filter_map(Value::as_str).map(str::to_owned).collect();
            let asked = if named.is_empty() { gate.accounts().audiences() } else { &named };
            let whose = hub.peek(|machine| gate.whose_for(machine, &token, asked));
            let whose = whose.map_err(|bad| match bad {
                BadToken::Audience => other_audiences(&gate.accounts().audiences_of(&token), asked),
                bad => bad.to_string(),
            });
            review::token(whose, body)
        }
        _ => return Err(Status::unserved()),
    };
    if *cluster == ClusterId::new(CLUSTER) {
        // Where an account lives is said in workspaces alone.
        for member in ["userInfo", "user"] {
            if let Some(Value::Object(extra)) = answered.pointer_mut(&format!("/status/{member}/extra")) {
                extra.remove(CLUSTER_EXTRA);
            }
        }
    }
    Ok(answered)
}

/// Why a token is good for none of the audiences that were asked about, as real servers say it.
fn other_audiences(named: &[String], asked: &[String]) -> String {
    let listed = |audiences: &[String]| {
        let quoted: Vec<String> = audiences.iter().map(|audience| format!("{audience:?}")).collect();
        format!("[{}]", quoted.join(" "))
    };
    let (named, asked) = (listed(named), listed(asked));
    format!("[invalid bearer token, token audiences {named} is invalid for the target audiences {asked}]")
}

/// A question as it is known to the server: its type, what its path says, and who asked it.
fn furnish(body: &mut Value, path: &ObjectPath, manager: &Name) {
    let asked = (path.group.as_str(), path.resource.as_str());
    let kind = REVIEWS.into_iter().find(|(group, resource, ..)| (*group, *resource) == asked);
    if let Some((group, _, kind, _)) = kind {
        body["apiVersion"] = format!("{group}/{}", path.version).into();
        body["kind"] = kind.into();
    }
    if !path.namespace.is_empty() {
        body["metadata"]["namespace"] = path.namespace.as_str().into();
    }
    match path.resource.as_str() {
        // Nothing is asked but who asks.
        "selfsubjectreviews" => {
            body["metadata"]["creationTimestamp"] = rfc3339(now_seconds()).into();
            if let Value::Object(members) = body {
                members.remove("spec");
            }
        }
        "selfsubjectrulesreviews" => {}
        _ => body["metadata"]["managedFields"] = managed(body, manager, None),
    }
}

/// Who said what in a question, as if it were kept.
fn managed(body: &Value, manager: &Name, part: Option<&str>) -> Value {
    let mut entry = json!({
        "manager": manager.as_str(), "operation": "Update", "apiVersion": body["apiVersion"],
        "time": rfc3339(now_seconds()), "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": said(&body["spec"], false) },
    });
    if let Some(part) = part {
        entry["subresource"] = part.into();
    }
    json!([entry])
}

fn said(value: &Value, is_optional: bool) -> Value {
    let mut fields = Map::new();
    if let Value::Object(members) = value {
        if is_optional {
            fields.insert(".".to_owned(), json!({}));
        }
        fields.extend(members.iter().map(|(name, value)| (format!("f:{name}"), said(value, true))));
    }
    Value::Object(fields)
}

/// Gives a service account a token.
pub(super) fn token(
    hub: &Hub,
    cluster: &ClusterId,
    path: &ObjectPath,
    mut body: Value,
    manager: &Name,
) -> Result<Value, Status> {
    body["apiVersion"] = "authentication.k8s.io/v1".into();
    body["kind"] = "TokenRequest".into();
    if body["spec"]["expirationSeconds"].is_null() {
        body["spec"]["expirationSeconds"] = DEFAULT_SECONDS.into();
    }
    let mut managed = managed(&body, manager, Some("token"));
    // Real servers have it there, empty, before anybody says anything.
    if let Some(Value::Object(bound)) = managed.pointer_mut("/0/fieldsV1/f:spec/f:boundObjectRef") {
        bound.remove(".");
    }
    body["metadata"]["managedFields"] = managed;
    if body["spec"].is_object() && body["spec"].get("boundObjectRef").is_none() {
        body["spec"]["boundObjectRef"] = Value::Null;
    }
    let key = Key {
        cluster: cluster.clone(),
        kind: KindId::new("", "serviceaccounts"),
        namespace: path.namespace.clone(),
        name: path.name.clone(),
    };
    hub.peek(|machine| {
        let account = machine.get(&key)?;
        body["metadata"]["name"] = path.name.as_str().into();
        body["metadata"]["namespace"] = path.namespace.as_str().into();
        body["metadata"]["uid"] = account.uid.to_string().into();
        body["metadata"]["creationTimestamp"] = rfc3339(now_seconds()).into();
        hub.gate()
            .accounts()
            .issue(machine, &account, body, now_seconds())
            .map_err(|error| refused(&error, &path.name))
    })
}

fn refused(error: &AccountError, account: &Name) -> Status {
    match error {
        AccountError::Invalid { field, what } => {
            let error =
                FieldError { field: (*field).to_owned(), reason: "FieldValueInvalid", body: what.clone() };
            Status::invalid("authentication.k8s.io", "TokenRequest", "", &[error])
        }
        AccountError::NotFound { kind, name } => Status::not_found(&KindId::new("", kind), name),
        AccountError::OtherUid { .. } => {
            Status::conflict(&KindId::new("", "serviceaccounts"), account, &error.to_string())
        }
        AccountError::OtherAccount(_) => Status::bad_request(error.to_string()),
        AccountError::Signing => Status::internal(error.to_string()),
    }
}

/// The body of a question, with the type that its path says.
pub(super) fn body(bytes: &[u8], headers: &http::HeaderMap) -> Result<Value, Status> {
    let body = read(bytes, crate::media::Sent::object(headers)?)?;
    if !body.is_object() {
        return Err(Status::bad_request("the body must be a JSON object"));
    }
    let mut body = body;
    // What is a text or a list cannot be written into.
    for member in ["metadata", "spec"] {
        match body.get(member) {
            Some(Value::Object(_)) => {}
            None | Some(Value::Null) => body[member] = json!({}),
            Some(_) => return Err(Status::bad_request(format!("{member}: it must be an object"))),
        }
    }
    Ok(body)
}
