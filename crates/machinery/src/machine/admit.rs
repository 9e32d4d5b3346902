//! How a request's object is taken in.

use serde_json::Value;

use super::write::Writing;
use crate::builtin::times;
use crate::convert::named;
use crate::metadata::{CLUSTER_ANNOTATION, Incoming};
use crate::schema::{Admission, Origin};
use crate::status::{FieldError, Status};

/// Where a whole object comes from, which decides how its flaws are told.
#[derive(Clone, Copy)]
pub(super) enum Source {
    Body,
    Patch,
}

impl Source {
    pub(super) fn refusal(self, what: String) -> Status {
        match self {
            Self::Body => Status::bad_request(what),
            // Real servers show the whole patched object here; a tenant's data is not repeated.
            Self::Patch => Status::invalid("", "", "", &[FieldError::invalid("patch", &Value::Null, what)]),
        }
    }
}

impl Writing<'_> {
    /// Takes in a whole object, as it was sent or as a patch made it, and turns it into what is kept.
    pub(super) fn decode(&mut self, mut body: Value, source: Source) -> Result<Incoming, Status> {
        if !body.is_object() {
            return Err(source.refusal("the body must be a JSON object".to_owned()));
        }
        for (member, expected) in [("apiVersion", &self.version.api_version), ("kind", &self.kind.name)] {
            match body[member].as_str() {
                Some(found) if *found == **expected => {}
                None | Some("") if self.kind.origin == Origin::Native => {
                    body[member] = expected.as_str().into();
                }
                None | Some("") => return Err(source.refusal(format!("Object '{member}' is missing"))),
                Some(found) if self.kind.origin == Origin::Custom && member == "kind" => {
                    let what = format!("must be {expected}");
                    let error = FieldError::invalid("kind", &found.into(), what);
                    let name = body["metadata"]["name"].as_str().unwrap_or_default();
                    return Err(Status::invalid(self.kind.id.group(), found, name, &[error]));
                }
                Some(found) if member == "apiVersion" => {
                    return Err(source.refusal(format!(
                        "the API version in the data ({found}) does not match the expected API version ({expected})"
                    )));
                }
                Some(found) => {
                    return Err(source.refusal(format!(
                        "the {member} in the data ({found}) does not match the expected {member} ({expected})"
                    )));
                }
            }
        }
        if let Some(version) = body["metadata"]["resourceVersion"].as_str()
            && !version.is_empty()
            && version.parse::<u64>().is_err()
        {
            // Real servers find this out too late to say that it is the client's fault.
            let why = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
            return Err(Status::internal(why));
        }
        let said_empty = self.said_empty(&body);
        let mut incoming = self.admit(body, Admission::Body).map_err(|what| source.refusal(what))?;
        for name in said_empty {
            incoming.body[name] = Value::Array(Vec::new());
        }
        if self.kind.origin == Origin::Native {
            // A value of the wrong type does not get past the decoder.
            let errors = self.version.schema.validate(&incoming.body, false);
            if let Some(error) = errors.iter().find(|error| error.reason == FieldError::WRONG_TYPE) {
                let (kind, version) = (&self.kind.name, self.version.name.as_str());
                let what = match error.body.split_once("illegal base64") {
                    Some((_, what)) => format!("illegal base64{what}"),
                    None => format!("{}: {}", error.field, error.body),
                };
                return Err(source.refusal(match source {
                    Source::Body => {
                        format!("{kind} in version {version:?} cannot be handled as a {kind}: {what}")
                    }
                    Source::Patch => what,
                }));
            }
        }
        self.keep(incoming)
    }

    /// Turns what was taken in into what is kept.
    pub(super) fn keep(&self, mut incoming: Incoming) -> Result<Incoming, Status> {
        let (Some(conversion), Some(kept)) = (&self.version.conversion, self.kind.kept()) else {
            return Ok(incoming);
        };
        (conversion.keep)(&mut incoming.body)
            .map_err(|why| Status::other(500, "InternalError", format!("Internal error occurred: {why}")))?;
        named(&mut incoming.body, &kept.api_version);
        let how = if self.kind.origin == Origin::Native { Admission::Native } else { Admission::Body };
        kept.schema.admit(&mut incoming.body, how, &mut Vec::new());
        self.fill_in(&mut incoming);
        Ok(incoming)
    }

    fn fill_in(&self, incoming: &mut Incoming) {
        if let Some(defaults) = self.kind.rules.defaults {
            defaults(&mut incoming.body);
        }
        if self.kind.origin == Origin::Native {
            times::say(&self.kind.id, &mut incoming.body);
        }
    }

    /// Takes a body in: metadata decoded, undeclared members dropped, defaults put in.
    pub(super) fn admit(&mut self, body: Value, how: Admission) -> Result<Incoming, String> {
        let mut incoming = Incoming::decode(body)?;
        incoming.drop_annotation(CLUSTER_ANNOTATION);
        let how = if self.kind.origin == Origin::Native { Admission::Native } else { how };
        self.version.schema.admit(&mut incoming.body, how, &mut self.unknown);
        // The server's own defaults are those of what is kept.
        if self.version.conversion.is_none() {
            self.fill_in(&mut incoming);
        }
        Ok(incoming)
    }

    pub(super) fn check_intent(&self, intent: &Value) -> Result<(), Status> {
        if intent["apiVersion"] != *self.version.api_version || intent["kind"] != *self.kind.name {
            let text = |member: &str| intent[member].as_str().unwrap_or_default().to_owned();
            let (mut version, kind) = (text("apiVersion"), text("kind"));
            if !version.contains('/') {
                version.insert(0, '/');
            }
            return Err(Status::bad_request(format!("invalid object type: {version}, Kind={kind}")));
        }
        if !intent["metadata"]["managedFields"].is_null() {
            return Err(Status::bad_request("metadata.managedFields must be nil"));
        }
        if self.options.manager.is_empty() {
            let error = FieldError::required("fieldManager", "is required for apply patch");
            return Err(Status::invalid("meta.k8s.io", "PatchOptions", "", &[error]));
        }
        Ok(())
    }
}
