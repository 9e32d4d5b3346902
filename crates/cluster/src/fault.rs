//! Faults, classified once: from what a server answered, and from why it could not be reached.
//!
//! The texts are for people. They carry a server's own words where those cannot hold a tenant's data: never a
//! body, a token or the value of a field.

mod reach;

use std::time::Duration;

use http::StatusCode;
use mailboat_object::wire::{Fault, FaultKind};
use serde::Deserialize;

pub(crate) use reach::{broken, unreachable};

use crate::nullable::null_is_empty;

/// What was asked, as far as it matters for reading the answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked<'a> {
    /// The object's name; empty for lists, watches and discovery.
    pub(crate) name: &'a str,
    /// The plural resource name and the kind: servers use either in `details.kind`.
    pub(crate) resource: &'a str,
    pub(crate) kind_name: &'a str,
    /// A JSON patch, whose failed `test` is answered like an invalid object.
    pub(crate) json_patch: bool,
}

/// An answer that is not a success.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) status: StatusCode,
    pub(crate) content_type: &'a str,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: &'a [u8],
}

/// No server may make us wait longer than this by its `Retry-After`.
const RETRY_AFTER_LIMIT: Duration = Duration::from_mins(1);
const TEXT_LIMIT_CHARACTERS: usize = 400;
const CAUSES_SHOWN: usize = 6;

/// What an answer that is not a success means.
pub(crate) fn classify(answer: &Answer<'_>, asked: &Asked<'_>) -> Fault {
    let body = serde_json::from_slice::<StatusBody>(answer.body).ok().filter(|body| body.kind == "Status");
    let Some(body) = body else { return without_status(answer) };
    let kind = kind_of(answer, asked, &body);
    let text = match kind {
        FaultKind::Invalid => refusal(answer.status, &body),
        FaultKind::Unauthorized => {
            "the server does not accept our credential (401): it may be expired or revoked; renew it in the \
             kubeconfig or token file, which is read again without a restart"
                .to_owned()
        }
        _ if body.message.is_empty() => format!("the server answered {}", answer.status),
        // A webhook's answer names no object, and so looks like one about access.
        _ => refuser(&body.message).unwrap_or_else(|| short(&body.message)),
    };
    Fault::new(kind, text)
}

/// A success whose body is not what an API server sends: a login page, a proxy's greeting.
pub(crate) fn no_api_server(status: StatusCode, content_type: &str) -> Fault {
    let media = content_type.split(';').next().unwrap_or_default().trim();
    let what = if media.is_empty() { "nothing that it names" } else { media };
    Fault::new(
        FaultKind::Away,
        format!(
            "the URL is no Kubernetes API server: it answered {} with {what}; check `server` in the kubeconfig",
            status.as_u16()
        ),
    )
}

fn kind_of(answer: &Answer<'_>, asked: &Asked<'_>, body: &StatusBody) -> FaultKind {
    let details = &body.details;
    let retry = || {
        let said = details.retry_after_seconds.map(Duration::from_secs);
        FaultKind::Retry(after(said).or(after(answer.retry_after)))
    };
    let has_cause = |reason: &str| details.causes.iter().any(|cause| cause.reason == reason);
    // etcd's and gRPC's own words for an object that the API server let pass and its store does not take.
    if ["etcdserver: request is too large", "trying to send message larger than max"]
        .iter()
        .any(|words| body.message.contains(words))
    {
        return FaultKind::TooLarge;
    }
    match answer.status.as_u16() {
        // A continue token that cannot be read is as good as one that is too old: the list starts again.
        400 if asked.name.is_empty() && body.message.contains("continue") => FaultKind::Expired,
        401 => FaultKind::Unauthorized,
        403 => forbidden(body, retry()),
        404 if names(body, asked) => FaultKind::NotFound,
        // A create or apply in a namespace that is not there (any more) names the namespace.
        404 if details.kind == "namespaces" && !details.name.is_empty() && !asked.name.is_empty() => {
            FaultKind::NoNamespace
        }
        404 => FaultKind::Unserved,
        405 if asked.name.is_empty() => FaultKind::Unserved,
        406 | 415 => FaultKind::Bug,
        409 if body.reason == "AlreadyExists" => FaultKind::Exists,
        409 => FaultKind::Conflict,
        410 => FaultKind::Expired,
        413 => FaultKind::TooLarge,
        422 if is_failed_precondition(body, asked) => FaultKind::Conflict,
        // Listing at a version that this server has not reached: it went back in time. Begin anew.
        504 if has_cause("ResourceVersionTooLarge")
            || body.message.contains("Too large resource version") =>
        {
            FaultKind::Expired
        }
        // An apply that does not fit the schema is answered like a fault of the server itself; trying again does
        // not help (kube-apiserver 1.36).
        500 if body.message.contains("typed patch object") => FaultKind::Invalid,
        408 | 429 | 500.. => retry(),
        _ => FaultKind::Invalid,
    }
}

/// 403 has four meanings: access that passes in a moment (kcp authorizes from caches that are a second behind), a namespace on its way
/// out, access refused (which is also how kcp answers for a workspace that is gone), and admission refusing this one object.
fn forbidden(body: &StatusBody, retry: FaultKind) -> FaultKind {
    let passing = [
        "unable to create APIBinding: no permission to bind to export",
        "not yet ready to handle request",
        // A claim on this object's kind is coming into force, and kcp's admission is ahead of kcp's labelling.
        "metadata.labels[claimed.internal.apis.kcp.io/",
    ];
    if passing.iter().any(|words| body.message.contains(words)) {
        return retry;
    }
    if body.details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating") {
        return retry;
    }
    let of_access = ["forbidden: User ", "cannot get path", "access denied"];
    if of_access.iter().any(|words| body.message.contains(words)) || body.details.name.is_empty() {
        return FaultKind::Forbidden;
    }
    FaultKind::Invalid
}

/// Whether a 404 speaks of the very object that was asked for.
fn names(body: &StatusBody, asked: &Asked<'_>) -> bool {
    let details = &body.details;
    !asked.name.is_empty()
        && details.name == asked.name
        && (details.kind.is_empty() || details.kind == asked.resource || details.kind == asked.kind_name)
}

/// A patch or an apply with the uid of an object that has been replaced is answered as if somebody wanted to
/// change the uid; a JSON patch whose `test` fails is answered without any cause.
fn is_failed_precondition(body: &StatusBody, asked: &Asked<'_>) -> bool {
    let causes = &body.details.causes;
    if causes.is_empty() {
        return asked.json_patch;
    }
    causes.iter().all(|cause| cause.field == "metadata.uid" && cause.message.ends_with("field is immutable"))
}

/// What is wrong with an object, by field, without the values of fields.
fn refusal(status: StatusCode, body: &StatusBody) -> String {
    let details = &body.details;
    let subject = if details.name.is_empty() {
        "this object".to_owned()
    } else {
        format!("{} {:?}", if details.kind.is_empty() { "object" } else { &details.kind }, details.name)
    };
    if details.causes.is_empty() {
        let said = match refuser(&body.message) {
            Some(refuser) => refuser,
            None if status == StatusCode::BAD_REQUEST => decoding(&body.message),
            None => unexplained(status, body),
        };
        return short(&format!("the server refuses {subject}: {said}"));
    }
    let mut shown: Vec<String> = Vec::new();
    for cause in &details.causes {
        let cause = cause.without_value();
        if !shown.contains(&cause) {
            shown.push(cause);
        }
    }
    let more = shown.len().saturating_sub(CAUSES_SHOWN);
    shown.truncate(CAUSES_SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    short(&format!("the server refuses {subject}: {}{more}", shown.join("; ")))
}

/// Who refuses an object, of those that say why in words of their own. Policies and webhooks quote what they object to, so these
/// words are left out: they stand in the server's own answer to whoever tries the same by hand.
fn refuser(message: &str) -> Option<String> {
    let named = |before: &str, quote: char| {
        let (_, rest) = message.split_once(before)?;
        let (name, _) = rest.split_once(quote)?;
        // What a user gives a name of these has nothing else in it.
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-:/_".contains(c);
        name.chars().all(plain).then(|| name.to_owned())
    };
    let webhook =
        named("admission webhook \"", '"').map(|name| format!("admission webhook {name:?} denied it"));
    let policy = || {
        named("ValidatingAdmissionPolicy '", '\'')
            .map(|name| format!("ValidatingAdmissionPolicy {name:?} denied it"))
    };
    let level =
        || named("violates PodSecurity \"", '"').map(|name| format!("it violates PodSecurity {name:?}"));
    let quota = || named("exceeded quota: ", ',').map(|name| format!("it exceeds the quota {name:?}"));
    webhook.or_else(policy).or_else(level).or_else(quota)
}

/// What is left of a refusal that nobody can read apart: its reason, and which field it names.
fn unexplained(status: StatusCode, body: &StatusBody) -> String {
    let reason = if body.reason.is_empty() { status.to_string() } else { body.reason.clone() };
    // `failed to create typed patch object (ns/name; v1, Kind=K): .spec.field: …`
    let field = body.message.split_once("typed patch object (").and_then(|(_, rest)| rest.split_once("): ."));
    let field =
        field.and_then(|(_, rest)| rest.split(": ").next()).filter(|path| !path.contains(['"', '=', ' ']));
    match field {
        Some(field) => format!("the apply does not fit the schema at .{field}"),
        None => format!("{reason}; the server's own words are left out, as they may quote the object"),
    }
}

fn decoding(message: &str) -> String {
    if message.contains("strict decoding error") {
        // This one lists the names of unknown or duplicate fields, and nothing else.
        return short(message);
    }
    short(message.split(':').next().unwrap_or_default())
}

fn without_status(answer: &Answer<'_>) -> Fault {
    let status = answer.status;
    let html = answer.content_type.starts_with("text/html");
    let kind = match status.as_u16() {
        300..=399 => return no_api_server(status, answer.content_type),
        404 if html => return no_api_server(status, answer.content_type),
        401 => FaultKind::Unauthorized,
        403 => FaultKind::Forbidden,
        // kcp and aggregated servers answer so for a group that they do not serve.
        404 => FaultKind::Unserved,
        410 => FaultKind::Expired,
        413 => FaultKind::TooLarge,
        408 | 429 | 500.. => FaultKind::Retry(after(answer.retry_after)),
        _ if html => return no_api_server(status, answer.content_type),
        _ => FaultKind::Invalid,
    };
    Fault::new(kind, format!("the server answered {status} without saying why"))
}

/// After how long a server wants to be asked again, if it says so. At once is no time: whoever cannot answer now does not mean that.
fn after(said: Option<Duration>) -> Option<Duration> {
    said.filter(|said| !said.is_zero()).map(|said| said.min(RETRY_AFTER_LIMIT))
}

/// One line of bounded length.
fn short(text: &str) -> String {
    let line: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TEXT_LIMIT_CHARACTERS).collect();
    if text.chars().nth(TEXT_LIMIT_CHARACTERS).is_some() { line + "…" } else { line }
}

/// `metav1.Status`, as far as it is read.
#[derive(Deserialize, Default, Debug)]
#[serde(default)]
struct StatusBody {
    kind: String,
    message: String,
    reason: String,
    #[serde(deserialize_with = "null_is_empty")]
    details: Details,
}

#[derive(Deserialize, Default, Debug)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    name: String,
    kind: String,
    #[serde(deserialize_with = "null_is_empty")]
    causes: Vec<Cause>,
    retry_after_seconds: Option<u64>,
}

#[derive(Deserialize, Default, Debug)]
#[serde(default)]
struct Cause {
    reason: String,
    message: String,
    field: String,
}

impl Cause {
    /// The field and what is wrong with it. API servers write `Invalid value: "<value>": <detail>`; the value
    /// is the tenant's and is left out, with the detail if it cannot be told where the value ends.
    fn without_value(&self) -> String {
        let message = match self.message.split_once(": ") {
            Some((problem @ ("Invalid value" | "Unsupported value" | "Duplicate value"), rest)) => {
                match after_value(rest) {
                    Some(detail) => format!("{problem}: {detail}"),
                    None => problem.to_owned(),
                }
            }
            _ => self.message.clone(),
        };
        let word = if message.is_empty() { self.reason.as_str() } else { message.as_str() };
        if self.field.is_empty() || self.field == "[]" {
            word.to_owned()
        } else {
            format!("{}: {word}", self.field)
        }
    }
}

/// What follows a value as Go prints it: a quoted string or a bare word, then a colon.
fn after_value(rest: &str) -> Option<&str> {
    let end = if rest.starts_with('"') {
        let mut escaped = false;
        let end = rest.bytes().enumerate().skip(1).find(|(_, byte)| {
            let ends = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            ends
        });
        end?.0 + 1
    } else if rest
        .starts_with(|first: char| first.is_ascii_digit() || first == '-' || first.is_ascii_lowercase())
    {
        rest.find(':')?
    } else {
        return None;
    };
    rest.get(end..)?.strip_prefix(": ").filter(|detail| !detail.is_empty())
}

#[cfg(test)]
#[path = "fault_tests.rs"]
mod tests;
