//! How a request's object is taken in.

use serde_json::Value;

use super::write::Writing;
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
    fn refusal(self, what: String) -> Status {
        match self {
            Self::Body => Status::bad_request(what),
            // Real servers show the whole patched object here; a tenant's data is not repeated.
            Self::Patch => Status::invalid("", "", "", &[FieldError::invalid("patch", &Value::Null, what)]),
        }
    }
}

impl Writing<'_> {
    /// Takes in a whole object, as it was sent or as a patch made it.
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
                Some(found) => {
                    return Err(source.refusal(format!(
                        "the {member} in the data ({found}) does not match the expected {member} ({expected})"
                    )));
                }
            }
        }
        let incoming = self.admit(body, Admission::Body).map_err(|what| source.refusal(what))?;
        if self.kind.origin == Origin::Native {
            // A value of the wrong type does not get past the decoder.
            let errors = self.version.schema.validate(&incoming.body, false);
            if let Some(error) = errors.iter().find(|error| error.reason == FieldError::WRONG_TYPE) {
                return Err(source.refusal(format!("{}: {}", error.field, error.body)));
            }
        }
        Ok(incoming)
    }

    /// Takes a body in: metadata decoded, undeclared members dropped, defaults put in.
    pub(super) fn admit(&mut self, body: Value, how: Admission) -> Result<Incoming, String> {
        let mut incoming = Incoming::decode(body)?;
        incoming.drop_annotation(CLUSTER_ANNOTATION);
        let how = if self.kind.origin == Origin::Native { Admission::Native } else { how };
        self.version.schema.admit(&mut incoming.body, how, &mut self.unknown);
        if let Some(defaults) = self.kind.rules.defaults {
            defaults(&mut incoming.body);
        }
        Ok(incoming)
    }

    pub(super) fn check_intent(&self, intent: &Value) -> Result<(), Status> {
        if intent["apiVersion"] != *self.version.api_version || intent["kind"] != *self.kind.name {
            let (version, kind) = (&intent["apiVersion"], &intent["kind"]);
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
