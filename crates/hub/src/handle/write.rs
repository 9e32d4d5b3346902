//! Create, update, patch and delete.

use std::sync::Arc;

use http::StatusCode;
use mailboat_machinery::schema::left_out;
use mailboat_machinery::{
    DeleteOptions, Deleted, FieldError, List, ListRequest, Machine, Moment, Origin, Patch, Room, Status,
    Stored, WriteOptions, Written,
};
use mailboat_object::merge::merge;
use mailboat_object::wire::{Part, Propagation};
use mailboat_object::{Key, Uid, Version};
use serde_json::{Value, json};

use super::admit::{definitions, tells_of_itself};
use super::{Call, certificate, not_allowed};
use crate::access::rbac;
use crate::answer::{self, Answer};
use crate::hub::Serving;
use crate::media::{Sent, unsupported, unsupported_patch};
use crate::members;
use crate::path::ObjectPath;
use crate::place::Sight;
use crate::protobuf::{self, BadProtobuf};
use crate::query::FieldValidation;
use crate::shape;
use crate::workspaces::{binding, export, logical_cluster, types, workspace_kind};

/// How many rules that are not enforced are told at once, and how many finalizers that should have other names.
const WARNINGS: usize = 20;
/// Namespaces that no server lets go.
const IMMORTAL_NAMESPACES: [&str; 3] = ["default", "kube-public", "kube-system"];

impl Call<'_> {
    pub(super) async fn create(&self, body: &[u8]) -> Result<Answer, Status> {
        self.hub.peek(|machine| self.check_seen(machine))?;
        if self.kind.namespaced && self.path.namespace.is_empty() {
            return Err(not_allowed());
        }
        self.query.check_write("CreateOptions")?;
        let mut options = self.write_options()?;
        let body = self.body(body, &mut options)?;
        let written = self
            .store(&options, |machine, options, more, moment| {
                let mut body = body.clone();
                if more.is_object() {
                    merge(&mut body, more);
                }
                machine.create(&self.key(), body, options, moment)
            })
            .await?;
        self.written(&written, &options.flaws)
    }

    pub(super) async fn update(&self, body: &[u8]) -> Result<Answer, Status> {
        self.hub.peek(|machine| self.check_seen(machine))?;
        self.query.check_write("UpdateOptions")?;
        let mut options = self.write_options()?;
        let body = self.body(body, &mut options)?;
        let written = self
            .store(&options, |machine, options, _, moment| {
                machine.update(&self.key(), body.clone(), options, moment)
            })
            .await?;
        self.written(&written, &options.flaws)
    }

    pub(super) async fn patch(&self, body: &[u8]) -> Result<Answer, Status> {
        self.hub.peek(|machine| self.check_seen(machine))?;
        if self.is_finalization() {
            return Err(not_allowed());
        }
        let sent = Sent::patch(self.headers)?;
        self.query.check_write("PatchOptions")?;
        let patch = read(body, sent)?;
        let mut options = self.write_options()?;
        let force = self.query.is("force");
        let patch = match sent {
            Sent::JsonPatch => Patch::Json(&patch),
            Sent::MergePatch => Patch::Merge(&patch),
            Sent::StrategicMergePatch if self.kind.origin == Origin::Native => Patch::Strategic(&patch),
            Sent::Apply => {
                // Who applies has to say who he is.
                options.manager = self.query.manager().unwrap_or_default();
                Patch::Apply { intent: &patch, force }
            }
            Sent::StrategicMergePatch => {
                return Err(unsupported(
                    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
                ));
            }
            Sent::Json | Sent::Yaml | Sent::Protobuf => {
                return Err(unsupported_patch());
            }
        };
        if force && !matches!(patch, Patch::Apply { .. }) {
            let error = FieldError::forbidden("force", "may not be specified for non-apply patch");
            return Err(Status::invalid("meta.k8s.io", "PatchOptions", "", &[error]));
        }
        let written = self
            .store(&options, |machine, options, more, moment| match patch {
                Patch::Apply { intent, force } if more.is_object() => {
                    let mut intent = intent.clone();
                    merge(&mut intent, more);
                    machine.patch(&self.key(), Patch::Apply { intent: &intent, force }, options, moment)
                }
                patch => machine.patch(&self.key(), patch, options, moment),
            })
            .await?;
        self.written(&written, &[])
    }

    pub(super) async fn delete(&self, body: &[u8]) -> Result<Answer, Status> {
        self.hub.peek(|machine| self.check_seen(machine))?;
        if !self.path.subresource.is_empty() {
            return Err(not_allowed());
        }
        let id = &self.kind.id;
        if id.group().is_empty()
            && id.resource() == "namespaces"
            && IMMORTAL_NAMESPACES.contains(&self.path.name.as_str())
        {
            return Err(Status::forbidden(id, &self.path.name, "this namespace may not be deleted"));
        }
        self.check_not_its_cluster()?;
        let options = self.delete_options(body)?;
        let deleted = self.hub.write(|machine, moment| {
            self.check_still_seen(machine)?;
            machine.delete(&self.key(), &options, moment)
        });
        self.deleted(&deleted.await?)
    }

    pub(super) async fn delete_collection(&self, body: &[u8]) -> Result<Answer, Status> {
        self.hub.peek(|machine| self.check_seen(machine))?;
        self.check_not_its_cluster()?;
        let namespaces = self.kind.id.group().is_empty() && self.kind.id.resource() == "namespaces";
        if namespaces || (self.kind.namespaced && self.path.namespace.is_empty()) {
            return Err(not_allowed());
        }
        let options = self.delete_options(body)?;
        let request = self.list_request()?;
        let mut list = self.hub.read(|machine| machine.list(&request)).await?;
        // What is deleted is told, and takes as much memory as a list of it, whether or not it goes.
        let memory = self.room_for(&list).await?;
        let mut deleted = Vec::new();
        let mut found = std::mem::take(&mut list.items).into_iter().peekable();
        while found.peek().is_some() {
            let mut round = Vec::new();
            let mut room = Room::default();
            while let Some(object) = found.next_if(|_| room.is_left()) {
                room.take(object.json_bytes());
                round.push(object);
            }
            // One round after the other, so that nobody waits for all of them.
            let gone = self.hub.write(|machine, moment| {
                let still = self.still_there(machine, &request, round)?;
                Self::delete_each(machine, still, &options, moment)
            });
            deleted.extend(gone.await?);
        }
        let mut list = List { items: deleted, continue_token: None, remaining: None, ..list };
        let mut answer = self.listed(&mut list)?;
        if let Some(memory) = memory {
            answer.extensions_mut().insert(memory);
        }
        Ok(answer)
    }

    /// Which of these are still there, and seen from where the request goes. What has taken the place of one since is another, which
    /// nobody asked about.
    fn still_there(
        &self,
        machine: &Machine,
        request: &ListRequest,
        mut found: Vec<Arc<Stored>>,
    ) -> Result<Vec<Arc<Stored>>, Status> {
        self.check_still_seen(machine)?;
        let version = machine.version();
        let is_seen = |now: &Stored| {
            let within = request.within.as_ref();
            within.is_none_or(|within| within.takes_cluster(&now.key.cluster, version) && within.takes(now))
        };
        found.retain(|object| {
            machine.get(&object.key).is_ok_and(|now| now.uid == object.uid && is_seen(&now))
        });
        Ok(found)
    }

    /// Deletes these. As on real servers they are told as they were found.
    fn delete_each(
        machine: &mut Machine,
        found: Vec<Arc<Stored>>,
        options: &DeleteOptions,
        moment: &mut Moment<'_>,
    ) -> Result<Vec<Arc<Stored>>, Status> {
        for object in &found {
            match machine.delete(&object.key, options, moment) {
                Err(status) if status.code() != 404 => return Err(status),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(found)
    }

    /// Refuses to delete what makes a workspace one, by itself or among all of its kind.
    fn check_not_its_cluster(&self) -> Result<(), Status> {
        if self.kind.id == logical_cluster() && !self.user.is_master() {
            let why = "LogicalCluster cannot be deleted";
            return Err(Status::forbidden(&self.kind.id, &self.path.name, why));
        }
        Ok(())
    }

    /// Refuses what was granted when the request came, and is no more: whoever sends a body slowly would otherwise write by a
    /// word that was taken back. It is asked where it is written, which nothing comes between.
    fn check_still_seen(&self, machine: &Machine) -> Result<(), Status> {
        self.place.check_granted(self.hub, machine, &self.user, self.verb, &self.path)?;
        self.check_seen(machine)
    }

    /// Refuses one who may change this, and not make it.
    fn check_create(&self) -> Result<(), Status> {
        if self.place.view.is_none() {
            self.hub.gate().check_object(&self.cluster, &self.user, "create", &self.path)?;
        }
        self.hub.peek(|machine| self.place.check_granted(self.hub, machine, &self.user, "create", &self.path))
    }

    /// Whether whoever asks may do this with an object somewhere else.
    pub(super) fn may(&self, key: &Key, verb: &str) -> bool {
        let path = ObjectPath {
            group: key.kind.group().to_owned(),
            resource: key.kind.resource().to_owned(),
            name: key.name.clone(),
            ..ObjectPath::default()
        };
        self.hub.gate().check_object(&key.cluster, &self.user, verb, &path).is_ok()
    }

    /// Writes. Roles, bindings and workspaces are tried first, since only what would be stored shows what they give away
    /// and become. What the server adds to what was sent is handed to `write`; null: nothing.
    async fn store(
        &self,
        options: &WriteOptions,
        write: impl Fn(&mut Machine, &WriteOptions, &Value, &mut Moment<'_>) -> Result<Written, Status>,
    ) -> Result<Written, Status> {
        let may_create = if self.verb == "create" { Ok(()) } else { self.check_create() };
        self.hub
            .write(|machine, moment| {
                self.check_still_seen(machine)?;
                let dry = WriteOptions { dry_run: true, ..options.clone() };
                let try_out = |machine: &mut Machine, moment: &mut Moment<'_>| {
                    write(machine, &dry, &Value::Null, moment)
                };
                if self.path.group == rbac::GROUP && !self.user.is_master() {
                    let tried = try_out(machine, moment)?;
                    let body = tried.object.body();
                    self.hub.gate().check_escalation(&self.cluster, &self.user, &self.path, body)?;
                }
                if self.kind.id == binding::kind() && self.path.subresource.is_empty() {
                    let tried = try_out(machine, moment)?;
                    self.check_bind(machine, &tried)?;
                }
                // Whoever may change what is there need not be one who may make something.
                if let Err(refused) = &may_create
                    && machine.get(&self.key()).is_err()
                    && try_out(machine, moment)?.created
                {
                    return Err(refused.clone());
                }
                if self.kind.id == export::slices() && self.path.subresource.is_empty() {
                    let tried = try_out(machine, moment)?;
                    self.check_slice(machine, &tried)?;
                }
                if self.kind.id == types::kind() && self.path.subresource.is_empty() {
                    let tried = try_out(machine, moment)?;
                    self.check_type(machine, &tried)?;
                }
                if self.path.subresource == "status"
                    && tells_of_itself(&self.kind.id)
                    && !self.user.is_master()
                {
                    return self.status_of_the_server(machine, moment, try_out);
                }
                let mut more = Value::Null;
                if self.kind.id == workspace_kind() && self.path.subresource.is_empty() {
                    let tried = try_out(machine, moment)?;
                    more = self.check_workspace(machine, &tried)?;
                }
                if self.kind.id == certificate::requests() {
                    if self.path.subresource.is_empty() {
                        more = certificate::asker(&self.user);
                    } else {
                        let tried = try_out(machine, moment)?;
                        self.check_signer(machine, &tried)?;
                    }
                }
                if self.kind.id == definitions() && matches!(self.hub.serving(), Serving::Workspaces(_)) {
                    let tried = try_out(machine, moment)?;
                    self.check_free(machine, &tried)?;
                }
                if self.kind.id == logical_cluster() && !self.user.is_master() {
                    let Ok(before) = machine.get(&self.key()) else {
                        let why = "LogicalCluster cannot be created";
                        return Err(Status::forbidden(&self.kind.id, &self.path.name, why));
                    };
                    let tried = try_out(machine, moment)?;
                    types::check(before.body(), tried.object.body(), &self.kind.id, &self.path.name)?;
                }
                if let Some(Sight::Waiting(waiting)) = &self.place.view {
                    let before = machine.get(&self.key())?;
                    let tried = try_out(machine, moment)?;
                    waiting.check(before.body(), tried.object.body(), &self.path.name)?;
                }
                write(machine, options, &more, moment)
            })
            .await
    }

    fn deleted(&self, deleted: &Deleted) -> Result<Answer, Status> {
        if !deleted.gone || self.kind.rules.returns_deleted {
            return self.object(StatusCode::OK, &deleted.object);
        }
        self.value(StatusCode::OK, &deleted.to_json(&self.kind))
    }

    /// A body as a value, with what is wrong with it as JSON noted.
    fn body(&self, body: &[u8], options: &mut WriteOptions) -> Result<Value, Status> {
        let sent = Sent::object(self.headers)?;
        if sent != Sent::Json || self.query.field_validation() == FieldValidation::Ignore {
            return read(body, sent);
        }
        let (value, duplicates) = members::read(body).map_err(|error| not_json(&error))?;
        options.flaws = duplicates.iter().map(|field| format!("duplicate field {field:?}")).collect();
        Ok(value)
    }

    fn written(&self, written: &Written, flaws: &[String]) -> Result<Answer, Status> {
        let code = if written.created { StatusCode::CREATED } else { StatusCode::OK };
        let mut answer = if self.path.subresource == "scale" {
            let scale = self.kind.scale_of(&written.object).ok_or_else(Status::unserved)?;
            self.value(code, &scale)?
        } else {
            self.object(code, &written.object)?
        };
        // One after the other: together they have a limit.
        let mut warnings = Vec::new();
        if self.query.field_validation() == FieldValidation::Warn {
            warnings.extend_from_slice(flaws);
            warnings.extend(written.unknown.iter().map(|field| format!("unknown field \"{field}\"")));
        }
        warnings.extend(self.left_out(written));
        if self.kind.origin == Origin::Custom && self.path.subresource.is_empty() {
            let unqualified = written.object.finalizers().into_iter().filter(|name| !name.contains('/'));
            let known = |name: &&str| !matches!(*name, "orphan" | "foregroundDeletion");
            warnings.extend(unqualified.filter(known).take(WARNINGS).map(|name| {
                format!(
                    "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name to avoid accidental \
                     conflicts with other finalizer writers"
                )
            }));
        }
        answer::warn(&mut answer, warnings);
        Ok(answer)
    }

    /// The rules in a definition that nobody will be held to here.
    fn left_out(&self, written: &Written) -> Vec<String> {
        let schema_of: fn(&Value) -> &Value = match self.kind.id.resource() {
            "customresourcedefinitions" => |version| &version["schema"]["openAPIV3Schema"],
            "apiresourceschemas" => |version| &version["schema"],
            _ => return Vec::new(),
        };
        let versions = written.object.body()["spec"]["versions"].as_array().into_iter().flatten();
        let left_out = versions.enumerate().flat_map(|(index, version)| {
            let told = move |(path, why)| format!("spec.versions[{index}].schema{path}: not enforced: {why}");
            left_out(schema_of(version)).into_iter().map(told)
        });
        left_out.take(WARNINGS).collect()
    }

    fn write_options(&self) -> Result<WriteOptions, Status> {
        let section = |name: &str| self.kind.rules.section(name).filter(|_| self.place.view.is_none());
        let (part, section) = match self.path.subresource.as_str() {
            "" => (Part::Whole, None),
            "status" if self.kind.rules.status.is_some() => (Part::Status, None),
            "scale" if self.kind.rules.scale.is_some() => (Part::Scale, None),
            name => (Part::Whole, Some(section(name).ok_or_else(|| self.no_part())?.name)),
        };
        Ok(WriteOptions {
            manager: self.manager(),
            part,
            section,
            version: self.version.api_version.clone(),
            dry_run: self.query.dry_run(),
            strict: self.query.field_validation() == FieldValidation::Strict,
            flaws: Vec::new(),
            through_view: self.place.view.is_some(),
        })
    }

    /// How to delete: what the body says, or the query if there is none. As on real servers nobody looks at the query where there
    /// is a body, whatever stands in either.
    pub(super) fn delete_options(&self, body: &[u8]) -> Result<DeleteOptions, Status> {
        let body = match body {
            [] => self.query.delete_options()?,
            body => read(body, Sent::object(self.headers)?)?,
        };
        if let Some(recorder) = &self.hub.recorder {
            recorder.note(shape::of_deletion(&body));
        }
        let grace = match &body["gracePeriodSeconds"] {
            Value::Null => None,
            // Less than nothing is the shortest that is something, as on real servers.
            given => {
                Some(given.as_i64().ok_or_else(bad_grace)?).map(|grace| u64::try_from(grace).unwrap_or(1))
            }
        };
        let mut errors = Vec::new();
        let tried: Vec<&Value> = body["dryRun"].as_array().into_iter().flatten().collect();
        let other = tried.iter().any(|word| **word != "All");
        if other {
            errors.push(FieldError::unsupported("dryRun", &body["dryRun"], &[json!("All")]));
        }
        let propagation = match body["propagationPolicy"].as_str() {
            None if body["orphanDependents"] == true => Some(Propagation::Orphan),
            None => None,
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => {
                let known = ["Foreground", "Background", "Orphan", "nil"].map(Value::from);
                errors.push(FieldError::unsupported("propagationPolicy", &json!(other), &known));
                None
            }
        };
        if body["orphanDependents"].is_boolean() && body["propagationPolicy"].is_string() {
            errors.push(FieldError::invalid(
                "propagationPolicy",
                &body["propagationPolicy"],
                "orphanDependents and deletionPropagation cannot be both set",
            ));
        }
        if !errors.is_empty() {
            return Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", &errors));
        }
        let preconditions = &body["preconditions"];
        let version = preconditions["resourceVersion"].as_str();
        let bad_version = || Status::bad_request("preconditions.resourceVersion: a whole number is expected");
        Ok(DeleteOptions {
            uid: preconditions["uid"].as_str().map(Uid::parse),
            version: version.map(|text| Version::parse(text).ok_or_else(bad_version)).transpose()?,
            propagation,
            grace_seconds: grace,
            dry_run: !tried.is_empty(),
        })
    }
}

fn bad_grace() -> Status {
    Status::bad_request("gracePeriodSeconds: a whole number is expected")
}

/// A body as a value.
pub(super) fn read(body: &[u8], sent: Sent) -> Result<Value, Status> {
    if sent == Sent::Protobuf {
        return match protobuf::read(body) {
            Ok(value) => Ok(value),
            // A kind of somebody's own: JSON is the only form that it has.
            Err(BadProtobuf::UnknownKind) => Err(unsupported("application/json, application/yaml")),
            Err(error) => Err(Status::bad_request(error.to_string())),
        };
    }
    if matches!(sent, Sent::Yaml | Sent::Apply) {
        // JSON is YAML, and most who say YAML send JSON.
        if let Ok(value) = serde_json::from_slice(body) {
            return Ok(value);
        }
        let text = std::str::from_utf8(body)
            .map_err(|_| Status::bad_request("error decoding YAML: the body is not text"))?;
        return serde_saphyr::from_str(text)
            .map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")));
    }
    serde_json::from_slice(body).map_err(|error| not_json(&error))
}

/// The place is told, the content is not.
fn not_json(error: &serde_json::Error) -> Status {
    let (line, column) = (error.line(), error.column());
    Status::bad_request(format!("the body is not JSON: line {line}, column {column}"))
}
