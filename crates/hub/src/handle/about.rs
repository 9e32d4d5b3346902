//! What is not about objects: what there is, and how it is.

use std::fmt::Write as _;

use http::header::{HeaderValue, VARY};
use http::{HeaderMap, StatusCode};
use mailboat_machinery::Status;
use serde_json::{Value, json};

use super::unserved;
use crate::answer::{self, Answer, Keep};
use crate::discovery::Discovery;
use crate::hub::Serving;
use crate::media::{AGGREGATED_DISCOVERY, Accepted, Offer, check_named, takes_aggregated_discovery};
use crate::openapi::gnostic;
use crate::openapi::v2::{self, Form};
use crate::path::Asked;
use crate::place::Place;
use crate::query::Query;
use crate::{Hub, health, openapi};

/// Answers what is not about objects.
pub(super) fn about(
    hub: &Hub,
    place: &Place,
    asked: &Asked,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Answer, Status> {
    let discovery = || {
        let discovery = hub.peek(|machine| Discovery::of(&place.kinds(hub, machine), place.keeper(hub)));
        if place.view.is_some() { discovery.in_view() } else { discovery }
    };
    let aggregated = takes_aggregated_discovery(headers);
    // kcp has everything at once of the core group alone, and views of it have no such thing.
    let (whole_core, whole_groups) = match hub.serving() {
        Serving::Cluster(_) => (aggregated, aggregated),
        Serving::Workspaces(_) => (aggregated && place.view.is_none(), false),
    };
    let whole = |core: bool| {
        let served = place.cluster.as_ref().filter(|_| place.view.is_none());
        let kinds = served.and_then(|cluster| hub.peek(|machine| machine.served_kinds(cluster).cloned()));
        let content = match kinds {
            Some(kinds) => hub.discovered.aggregated(&kinds, core),
            None => serde_json::to_vec(&discovery().aggregated(core)).unwrap_or_default().into(),
        };
        let mark = mark(&content);
        answer::marked(headers, &mark, Keep::Everybody, || {
            answer::bytes(StatusCode::OK, AGGREGATED_DISCOVERY, content)
        })
    };
    let found = |value: Option<Value>| value.ok_or_else(Status::unserved);
    let value = match asked {
        Asked::Health { name, check } => return Ok(health::answer(hub, name, check.as_deref(), query)),
        Asked::Version => return Ok(answer::json(StatusCode::OK, &version(hub.serving()))),
        Asked::Paths => {
            let mut paths: Vec<String> = discovery().paths().iter().map(|path| format!("/{path}")).collect();
            paths.extend(["/healthz", "/livez", "/openapi/v3", "/readyz", "/version"].map(str::to_owned));
            return Ok(answer::json(StatusCode::OK, &json!({ "paths": paths })));
        }
        Asked::CoreVersions if whole_core => return Ok(whole(true)),
        Asked::Groups if whole_groups => return Ok(whole(false)),
        Asked::CoreVersions => discovery().core_versions(hub.address()),
        Asked::Groups => {
            let is_workspace = matches!(hub.serving(), Serving::Workspaces(_)) && place.view.is_none();
            discovery().groups(is_workspace.then(|| hub.address()))
        }
        Asked::Group(group) => found(discovery().one_group(group))?,
        Asked::Kinds { group, version } => {
            discovery().kinds(group, version).ok_or_else(|| unserved(hub, place, group))?
        }
        Asked::OpenApiV2 => return Ok(schemas_in_one(hub, place, headers)),
        Asked::OpenApiIndex => {
            let index = hub.peek(|machine| openapi::index(&place.kinds(hub, machine), &place.prefix));
            // So real servers call it, though it is JSON.
            return Ok(answer::bytes(StatusCode::OK, answer::TEXT, index.to_string()));
        }
        Asked::OpenApi { group, version } => {
            return Ok(schemas(hub, place, (group, version), query, headers));
        }
        Asked::Objects(_) => return Err(Status::unserved()),
    };
    if matches!(asked, Asked::CoreVersions | Asked::Kinds { .. }) {
        check_named(headers, false)?;
    }
    Ok(answer::object(
        StatusCode::OK,
        &value,
        Accepted::of(headers, Offer::Plain { in_view: place.view.is_some() })?.form,
    ))
}

/// All schemas in one document.
fn schemas_in_one(hub: &Hub, place: &Place, headers: &HeaderMap) -> Answer {
    let kinds = hub.peek(|machine| place.kinds(hub, machine));
    let mut answer = match Form::of(headers) {
        None => answer::nothing(StatusCode::NOT_ACCEPTABLE),
        Some(form) => answer::marked(headers, &v2::mark(&kinds, form), Keep::Asking, || {
            let document = v2::whole(&kinds);
            match form {
                Form::Json => answer::json(StatusCode::OK, &document),
                Form::Gnostic => answer::bytes(StatusCode::OK, form.media_type(), gnostic::write(&document)),
            }
        }),
    };
    // Whether or not it is made smaller, as real servers say it.
    answer.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    answer.headers_mut().append(VARY, HeaderValue::from_static("Accept"));
    answer
}

/// The schemas of one group and version. Whoever asks for them by the mark that they have may keep them for ever; whoever
/// asks by another is sent to where they are.
fn schemas(
    hub: &Hub,
    place: &Place,
    (group, version): (&str, &str),
    query: &Query,
    headers: &HeaderMap,
) -> Answer {
    let kinds = hub.peek(|machine| place.kinds(hub, machine));
    let path = openapi::path(group, version);
    let Some(mark) = openapi::marks(&kinds).remove(&path) else {
        return answer::nothing(StatusCode::NOT_FOUND);
    };
    let keep = match query.get("hash") {
        None => Keep::Asking,
        Some(known) if known == mark => Keep::ForEver,
        Some(_) => {
            let address = openapi::address(&place.prefix, &path, &mark);
            return answer::marked(headers, &mark, Keep::Asking, || answer::moved(&address));
        }
    };
    let document = || openapi::document(&kinds, group, version).unwrap_or_default();
    answer::marked(headers, &mark, keep, || answer::json(StatusCode::OK, &document()))
}

/// A mark that changes with a content.
fn mark(content: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(content).iter().fold(String::new(), |mut mark, byte| {
        let _ = write!(mark, "{byte:02X}");
        mark
    })
}

/// What clients take us for: the version of Kubernetes whose API this is. kcp is made of an older one.
fn version(serving: &Serving) -> Value {
    let mut version = json!({
        "major": "1", "gitCommit": "", "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "",
        "compiler": "", "platform": "",
    });
    let more = match serving {
        Serving::Cluster(_) => json!({
            "minor": "36", "emulationMajor": "1", "emulationMinor": "36", "minCompatibilityMajor": "1",
            "minCompatibilityMinor": "35", "gitVersion": concat!("v1.36.3+mailboat-", env!("CARGO_PKG_VERSION")),
        }),
        Serving::Workspaces(_) => json!({
            "minor": "32", "gitVersion": concat!("v1.32.3+mailboat-", env!("CARGO_PKG_VERSION")),
        }),
    };
    if let (Value::Object(version), Value::Object(more)) = (&mut version, more) {
        version.extend(more);
    }
    version
}
