//! What a server answers when it refuses: `metav1.Status` with the reasons, details and causes of real servers.

use std::collections::HashSet;
use std::fmt;

use mailboat_object::page::{StatusCause, StatusDetails};
use mailboat_object::{KindId, StatusBody};
use serde_json::{Value, json};

/// So many things that are wrong with an object are told, and the texts of no more than so many bytes: refusing must not cost more
/// than what is refused.
pub(crate) const MOST_ERRORS: usize = 100;
pub(crate) const MOST_ERRORS_BYTES: usize = 256 << 10;

/// A refusal, as the server says it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} {}: {}", .0.code, .0.reason, .0.message)]
pub struct Status(Box<StatusBody>, Details);

/// What a refusal says beside its sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Details {
    IfAny,
    /// That it has none: real servers say so where a generic part of them refuses.
    Always,
    /// How an expired list can be gone on with all the same.
    Continue(Box<str>),
}

/// One thing that is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The field, such as `spec.ports[0].port`.
    pub field: String,
    /// The machine-readable reason, such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// The sentence without the field, such as `Invalid value: 0: must be positive`.
    pub body: String,
}

impl Status {
    /// Its content.
    pub fn body(&self) -> &StatusBody {
        &self.0
    }

    /// The HTTP code.
    pub fn code(&self) -> u16 {
        self.0.code
    }

    /// The machine-readable reason.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        let body = &*self.0;
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": body.status,
            "message": body.message, "code": body.code,
        });
        if !body.reason.is_empty() {
            status["reason"] = body.reason.as_str().into();
        }
        let mut details = json!({});
        let StatusDetails { name, group, kind, uid, causes, retry_after_seconds } = &body.details;
        for (key, text) in [("name", name), ("group", group), ("kind", kind), ("uid", uid)] {
            if !text.is_empty() {
                details[key] = text.as_str().into();
            }
        }
        if !causes.is_empty() {
            details["causes"] = causes
                .iter()
                .map(|cause| {
                    let mut shown = json!({ "reason": cause.reason, "message": cause.message });
                    if !cause.field.is_empty() {
                        shown["field"] = cause.field.as_str().into();
                    }
                    shown
                })
                .collect();
        }
        if let Some(seconds) = retry_after_seconds {
            details["retryAfterSeconds"] = (*seconds).into();
        }
        if details != json!({}) || self.1 == Details::Always {
            status["details"] = details;
        }
        if let Details::Continue(token) = &self.1 {
            status["metadata"]["continue"] = (**token).into();
        }
        status
    }

    /// A refusal that is not about objects: who asks, how, or how often.
    pub fn other(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self::new(code, reason, message.into())
    }

    fn new(code: u16, reason: &str, message: String) -> Self {
        let body = StatusBody {
            code,
            status: "Failure".to_owned(),
            reason: reason.to_owned(),
            message,
            details: StatusDetails::default(),
        };
        Self(Box::new(body), Details::IfAny)
    }

    /// The same, which says that it has no details.
    #[must_use]
    pub fn without_details(mut self) -> Self {
        self.1 = Details::Always;
        self
    }

    fn about(mut self, kind: &KindId, name: &str) -> Self {
        kind.group().clone_into(&mut self.0.details.group);
        kind.resource().clone_into(&mut self.0.details.kind);
        name.clone_into(&mut self.0.details.name);
        self
    }

    fn because(mut self, causes: Vec<StatusCause>) -> Self {
        self.0.details.causes = causes;
        self
    }

    /// 404: there is no such object.
    pub fn not_found(kind: &KindId, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{kind} {name:?} not found")).about(kind, name)
    }

    /// 404: the kind is not served. Real servers say this as text, without a Status.
    pub fn unserved() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource".to_owned())
    }

    /// 409: an object of this name is there already.
    pub fn already_exists(kind: &KindId, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{kind} {name:?} already exists")).about(kind, name)
    }

    /// The same, if the object is on its way out.
    pub(crate) fn exists_deleting(kind: &KindId, name: &str) -> Self {
        let message = format!("object is being deleted: {kind} {name:?} already exists");
        Self::new(409, "AlreadyExists", message).about(kind, name)
    }

    /// 409: somebody was faster, or a precondition does not hold.
    pub fn conflict(kind: &KindId, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {kind} {name:?}: {why}");
        Self::new(409, "Conflict", message).about(kind, name)
    }

    /// 409: a part of an object is not in the state that this needs.
    pub fn conflict_of(kind: &KindId, part: &str, name: &str, why: &str) -> Self {
        Self::conflict(&KindId::new(kind.group(), &format!("{}/{part}", kind.resource())), name, why)
    }

    /// 409: an apply meets fields of other managers. Each cause is a field and its manager.
    pub fn apply_conflict(causes: Vec<StatusCause>, message: String) -> Self {
        Self::new(409, "Conflict", message).because(causes)
    }

    /// 422: the object is not as it must be. `kind` is the kind's own name, such as `ConfigMap`.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let told = &errors[..told(errors)];
        let mut known = HashSet::new();
        let mut said: Vec<String> =
            told.iter().map(ToString::to_string).filter(|sentence| known.insert(sentence.clone())).collect();
        if told.len() < errors.len() {
            said.push("and more that is not told".to_owned());
        }
        let why = match said.as_slice() {
            [only] => only.clone(),
            all => format!("[{}]", all.join(", ")),
        };
        let cause = |error: &FieldError| StatusCause {
            reason: error.reason.to_owned(),
            field: error.field.clone(),
            message: error.body.clone(),
        };
        let mut status = Self::new(422, "Invalid", format!("{qualified} {name:?} is invalid: {why}"));
        status.0.details.causes = told.iter().map(cause).collect();
        group.clone_into(&mut status.0.details.group);
        kind.clone_into(&mut status.0.details.kind);
        name.clone_into(&mut status.0.details.name);
        status
    }

    /// 422: a JSON patch does not fit the object.
    pub fn unprocessable_patch() -> Self {
        Self::new(422, "Invalid", "the server rejected our request due to an error in our request".to_owned())
            .without_details()
    }

    /// 400: the request cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message.into())
    }

    /// 403: the namespace is going away, and nothing new may come into it.
    pub fn namespace_terminating(kind: &KindId, name: &str, namespace: &str) -> Self {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let cause = StatusCause {
            reason: "NamespaceTerminating".to_owned(),
            field: "metadata.namespace".to_owned(),
            message: format!("namespace {namespace} is being terminated"),
        };
        Self::new(403, "Forbidden", format!("{kind} {name:?} is forbidden: {why}"))
            .about(kind, name)
            .because(vec![cause])
    }

    /// 403: this must not be done to this object, or without a name to this kind.
    pub fn forbidden(kind: &KindId, name: &str, why: &str) -> Self {
        let message = match name {
            "" => format!("{kind} is forbidden: {why}"),
            name => format!("{kind} {name:?} is forbidden: {why}"),
        };
        Self::new(403, "Forbidden", message).about(kind, name)
    }

    /// 405: the kind does not do this.
    pub fn method_not_allowed(kind: &KindId, action: &str) -> Self {
        let message = format!("{action} is not supported on resources of kind {:?}", kind.to_string());
        Self::new(405, "MethodNotAllowed", message).about(kind, "")
    }

    /// 410: what happened since this version is no longer known.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message.into())
    }

    /// The same, with a token by which the rest of the list can be had as it is now.
    #[must_use]
    pub fn continued_by(mut self, token: String) -> Self {
        self.1 = Details::Continue(token.into());
        self
    }

    /// 504: the version lies in the future, and waiting for it was of no use.
    pub fn too_large_version(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut status = Self::new(504, "Timeout", message);
        status.0.details.retry_after_seconds = Some(1);
        status.0.details.causes = vec![StatusCause {
            reason: "ResourceVersionTooLarge".to_owned(),
            field: String::new(),
            message: "Too large resource version".to_owned(),
        }];
        status
    }

    /// The same, said of a kind by another name that it has.
    #[must_use]
    pub fn renamed(mut self, kind: &KindId, other: &KindId) -> Self {
        let details = &mut self.0.details;
        if details.kind == kind.resource() && details.group == kind.group() {
            other.group().clone_into(&mut details.group);
            let (former, new) = (format!("{kind} \""), format!("{other} \""));
            self.0.message = self.0.message.replacen(&former, &new, 1);
        }
        self
    }

    /// 413: more than a server takes.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::other(413, "RequestEntityTooLarge", message)
    }

    /// 429: there is too much under way; a second later there may be room.
    pub fn too_many(message: impl Into<String>) -> Self {
        let mut status = Self::new(429, "TooManyRequests", message.into());
        status.0.details.retry_after_seconds = Some(1);
        status
    }

    /// 429: a Pod must not go now, as the budget of its disruptions says; perhaps in so many seconds.
    pub fn disruption(why: String, retry_after_seconds: Option<u64>) -> Self {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let mut status = Self::new(429, "TooManyRequests", message.to_owned());
        status.0.details.retry_after_seconds = retry_after_seconds;
        let reason = "DisruptionBudget".to_owned();
        status.because(vec![StatusCause { reason, field: String::new(), message: why }])
    }

    /// 500 for fields that are not as they must be: so real servers refuse where nobody made an error of it.
    pub fn plain(errors: &[FieldError]) -> Self {
        let told: Vec<String> = errors[..told(errors)].iter().map(ToString::to_string).collect();
        let message = match told.as_slice() {
            [one] => one.clone(),
            _ => format!("[{}]", told.join(", ")),
        };
        Self::internal(message)
    }

    /// 500 without a reason: what real servers answer where they fail to say something better.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "", message.into())
    }
}

/// How many errors are told: the first, and those after it that there is room for.
fn told(errors: &[FieldError]) -> usize {
    let mut bytes = 0;
    let fits = |error: &&FieldError| {
        let is_first = bytes == 0;
        bytes += error.field.len() + error.body.len();
        is_first || bytes <= MOST_ERRORS_BYTES
    };
    errors.iter().take(MOST_ERRORS).take_while(fits).count()
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body)
    }
}

impl FieldError {
    /// A value that may not be.
    pub fn invalid(field: &str, value: &Value, detail: impl Into<String>) -> Self {
        Self::told(field, "FieldValueInvalid", "Invalid value", Some(value), &detail.into())
    }

    /// The reason of [`Self::wrong_type`].
    pub const WRONG_TYPE: &'static str = "FieldValueTypeInvalid";

    /// A value of the wrong type. Servers say which type it has, and not the value.
    pub fn wrong_type(field: &str, found: &str, detail: impl Into<String>) -> Self {
        Self::told(field, Self::WRONG_TYPE, "Invalid value", Some(&found.into()), &detail.into())
    }

    /// A value that is not one of the known ones.
    pub fn unsupported(field: &str, value: &Value, supported: &[Value]) -> Self {
        let supported: Vec<_> = supported.iter().map(ToString::to_string).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        Self::told(field, "FieldValueNotSupported", "Unsupported value", Some(value), &detail)
    }

    /// A value that is there twice.
    pub fn duplicate(field: &str, value: &Value) -> Self {
        Self::told(field, "FieldValueDuplicate", "Duplicate value", Some(value), "")
    }

    /// A value that is missing.
    pub fn required(field: &str, detail: &str) -> Self {
        Self::told(field, "FieldValueRequired", "Required value", None, detail)
    }

    /// A value that may not be set here and now.
    pub fn forbidden(field: &str, detail: &str) -> Self {
        Self::told(field, "FieldValueForbidden", "Forbidden", None, detail)
    }

    /// A text that is too long.
    pub fn too_long(field: &str, most: u64) -> Self {
        Self::told(
            field,
            "FieldValueTooLong",
            "Too long",
            None,
            &format!("may not be more than {most} bytes"),
        )
    }

    /// Too many elements.
    pub fn too_many(field: &str, count: u64, most: u64) -> Self {
        let detail = format!("must have at most {most} items");
        Self::told(field, "FieldValueTooMany", "Too many", Some(&Value::from(count)), &detail)
    }

    fn told(field: &str, reason: &'static str, word: &str, value: Option<&Value>, detail: &str) -> Self {
        let mut body = word.to_owned();
        let value = value.map(ToString::to_string);
        let detail = Some(detail).filter(|detail| !detail.is_empty());
        for part in [value.as_deref(), detail].into_iter().flatten() {
            body.push_str(": ");
            body.push_str(part);
        }
        Self { field: field.to_owned(), reason, body }
    }
}
