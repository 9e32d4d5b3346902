//! Create, update and patch.

use std::sync::Arc;

use mailboat_object::wire::Part;
use mailboat_object::{Key, Name, Uid};
use serde_json::Value;

use super::admit::Source;
use super::{Flavor, Machine, namespace};
use crate::field_set::FieldSet;
use crate::json_patch::{self, BadPatch};
use crate::kind::{Check, Generation, Kind, KindVersion, Section};
use crate::managed::{self, Change, ManagedFields, Turned};
use crate::metadata::{self, Incoming};
use crate::object::Stored;
use crate::random::Moment;
use crate::schema::{Admission, Origin, Schema};
use crate::size::{OBJECT_DEPTH_MAX, OBJECT_LIMIT_BYTES, is_deeper, json_bytes};
use crate::status::{FieldError, MOST_ERRORS, Status};
use crate::time::rfc3339;
use crate::{strategic, typed};

/// How a write is made.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// The field manager to write down.
    pub manager: Name,
    /// Which part of the object is written.
    pub part: Part,
    /// The [`Section`] through which it is written, where it is neither the whole nor the status.
    pub section: Option<&'static str>,
    /// The version through which it is written, such as `v1`, or as objects say it, `apps/v1`; empty: the kind's first.
    pub version: Name,
    /// Check and answer, but store nothing.
    pub dry_run: bool,
    /// Refuse members that are not declared, instead of dropping them.
    pub strict: bool,
    /// What was wrong with the body before it was a value, such as `duplicate field "data"`; refused if strict.
    pub flaws: Vec<String>,
    /// It comes through a view of kcp, where an apply is recorded as an update, and what the next one leaves out
    /// stays.
    pub through_view: bool,
}

/// How an object is to be changed.
#[derive(Clone, Copy, Debug)]
pub enum Patch<'p> {
    /// A JSON patch (RFC 6902).
    Json(&'p Value),
    /// A merge patch (RFC 7386).
    Merge(&'p Value),
    /// A strategic merge patch, for kinds that the server knows by itself.
    Strategic(&'p Value),
    /// Server-side apply.
    Apply {
        /// The intent.
        intent: &'p Value,
        /// Take over what others own.
        force: bool,
    },
}

/// What came of a write.
#[derive(Clone, Debug)]
pub struct Written {
    /// The object after it.
    pub object: Arc<Stored>,
    /// The write made it.
    pub created: bool,
    /// Something is different now. A write that changes nothing leaves the version alone.
    pub changed: bool,
    /// Members that are not declared and were dropped.
    pub unknown: Vec<String>,
}

/// A write on its way.
pub(super) struct Writing<'w> {
    pub kind: Arc<Kind>,
    pub version: KindVersion,
    pub key: &'w Key,
    pub options: &'w WriteOptions,
    /// Rules of its own for this way of writing.
    pub section: Option<&'static Section>,
    pub unknown: Vec<String>,
    /// What is written is a patched object, not a body.
    pub patched: bool,
}

impl Machine {
    /// Creates an object. The key's name is ignored: it stands in the body, or is generated.
    pub fn create(
        &mut self,
        key: &Key,
        body: Value,
        options: &WriteOptions,
        moment: &mut Moment<'_>,
    ) -> Result<Written, Status> {
        let mut writing = self.writing(key, options)?;
        let Incoming { mut body, version, managed } = writing.decode(body, Source::Body)?;
        ensure_namespace(&mut body, &writing)?;
        for member in
            ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"]
        {
            drop_metadata(&mut body, member);
        }
        let stem = body["metadata"]["generateName"].as_str().unwrap_or_default();
        if body["metadata"]["name"].is_null() && !stem.is_empty() {
            let name = moment.name(stem);
            body["metadata"]["name"] = name.into();
        }
        let name = Name::new(body["metadata"]["name"].as_str().unwrap_or_default());
        let key = Key { name, ..key.clone() };
        self.check_namespace(&key, &writing.kind)?;
        let former =
            managed.as_ref().and_then(|managed| ManagedFields::from_json(managed).ok()).unwrap_or_default();
        let managed = writing.managed_after(&writing.kind.rules.empty, &body, former, moment, false);
        if version.is_some() {
            return Err(Status::internal("resourceVersion should not be set on objects to be created"));
        }
        self.finish_create(writing, &key, body, managed, moment)
    }

    /// Replaces an object.
    pub fn update(
        &mut self,
        key: &Key,
        body: Value,
        options: &WriteOptions,
        moment: &mut Moment<'_>,
    ) -> Result<Written, Status> {
        if options.part == Part::Scale {
            return self.update_scale(key, &body, options, moment);
        }
        let mut writing = self.writing(key, options)?;
        let mut incoming = writing.decode(body, Source::Body)?;
        ensure_namespace(&mut incoming.body, &writing)?;
        check_name(&incoming.body, key)?;
        let Some(live) = self.find(key) else {
            if !writing.kind.rules.create_on_update {
                return Err(Status::not_found(&key.kind, &key.name));
            }
            self.check_namespace(key, &writing.kind)?;
            let empty = &writing.kind.rules.empty;
            let managed =
                writing.managed_after(empty, &incoming.body, ManagedFields::default(), moment, false);
            return self.finish_create(writing, key, incoming.body, managed, moment);
        };
        if let Some(uid) = incoming.body["metadata"]["uid"].as_str().filter(|uid| Uid::parse(uid) != live.uid)
        {
            // Where real servers keep the object is part of the sentence.
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{}/{}/{}, ResourceVersion: 0, \
                 AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                key.kind.resource(),
                key.namespace,
                key.name,
                live.uid
            );
            return Err(Status::conflict(&key.kind, &key.name, &why));
        }
        let managed = writing.managed_of_update(&live, &incoming, moment);
        self.modify(writing, &live, incoming, managed, moment.now_seconds)
    }

    /// Changes an object, or makes it if it is applied and not there.
    pub fn patch(
        &mut self,
        key: &Key,
        patch: Patch<'_>,
        options: &WriteOptions,
        moment: &mut Moment<'_>,
    ) -> Result<Written, Status> {
        if options.part == Part::Scale {
            return self.patch_scale(key, patch, options, moment);
        }
        let mut writing = self.writing(key, options)?;
        writing.patched = true;
        let live = self.find(key);
        if let Patch::Apply { intent, force } = patch {
            return self.apply(writing, live, intent, force, moment);
        }
        let live = live.ok_or_else(|| Status::not_found(&key.kind, &key.name))?;
        let patched = patched(&writing.version, &live, patch)?;
        let mut incoming = writing.decode(patched, Source::Patch)?;
        ensure_namespace(&mut incoming.body, &writing)?;
        check_name(&incoming.body, key)?;
        let managed = writing.managed_of_update(&live, &incoming, moment);
        self.modify(writing, &live, incoming, managed, moment.now_seconds)
    }

    fn apply(
        &mut self,
        mut writing: Writing<'_>,
        live: Option<Arc<Stored>>,
        intent: &Value,
        force: bool,
        moment: &mut Moment<'_>,
    ) -> Result<Written, Status> {
        let key = writing.key;
        writing.check_intent(intent)?;
        // The version is a precondition; nobody applies it.
        let mut intent = intent.clone();
        let base = intent["metadata"].get("resourceVersion").cloned();
        drop_metadata(&mut intent, "resourceVersion");
        let intent = &intent;
        let is_whole = writing.options.part == Part::Whole && writing.options.section.is_none();
        if live.is_none() && !is_whole && !writing.kind.rules.create_on_update {
            return Err(Status::not_found(&key.kind, &key.name));
        }
        let empty = writing.empty();
        let (kept, managed) = match &live {
            Some(live) => (live.body(), (**live.managed()).clone()),
            None => (&empty, ManagedFields::default()),
        };
        let before = &*writing.version.show(kept);
        let empty = &*writing.version.show(&empty);
        let (object, managed) = if writing.options.through_view {
            let merged = typed::merge(&writing.version.schema, before, intent).map_err(Status::internal)?;
            let managed = writing.managed_after_shown(before, &merged, managed, moment, live.is_some());
            (Some(merged), managed)
        } else {
            let kind = Arc::clone(&writing.kind);
            let serves = |version: &str| writing.remembers(version);
            let turned = |object: &Value, from: &str, to: &str| kind.turned(object, from, to);
            let reset = writing.reset();
            let change = writing.change(moment, reset.as_ref(), &serves, &turned);
            let schema = &writing.version.schema;
            let applied = managed::apply(schema, before, intent, managed, &change, empty, force)
                .map_err(|error| error.status(&writing.told()))?;
            (applied.object, applied.managed)
        };
        let changed = object.is_some();
        let mut object = object.unwrap_or_else(|| before.clone());
        if let Some(base) = base {
            object["metadata"]["resourceVersion"] = base;
        }
        let incoming = writing.admit(object, Admission::Applied).map_err(Status::bad_request)?;
        let mut incoming = writing.keep(incoming)?;
        if let (false, Some(_)) = (changed, &writing.version.conversion) {
            // What this version cannot say is not lost where nothing is changed.
            incoming.body.clone_from(kept);
        }
        if live.is_none() && !incoming.body["metadata"]["uid"].is_null() {
            let why = format!(
                "uid mismatch: the provided object specified uid {}, and no existing object was found",
                incoming.body["metadata"]["uid"].as_str().unwrap_or_default()
            );
            return Err(Status::conflict(&key.kind, &key.name, &why));
        }
        ensure_namespace(&mut incoming.body, &writing)?;
        check_name(&incoming.body, key)?;
        if let Some(live) = live {
            incoming.version = incoming.version.or(Some(live.version));
            return self.modify(writing, &live, incoming, managed, moment.now_seconds);
        }
        self.check_namespace(key, &writing.kind)?;
        self.finish_create(writing, key, incoming.body, managed, moment)
    }

    pub(super) fn writing<'w>(&self, key: &'w Key, options: &'w WriteOptions) -> Result<Writing<'w>, Status> {
        let kind = self.served(key)?;
        if (options.part == Part::Status && kind.rules.status.is_none())
            || (options.part == Part::Scale && kind.rules.scale.is_none())
            // Tokens are signed by a server, which has the key; nothing of them is stored.
            || options.part == Part::Token
        {
            return Err(Status::unserved());
        }
        let section = match (options.section, options.part) {
            (Some(name), _) => Some(kind.rules.section(name).ok_or_else(Status::unserved)?),
            (None, Part::Whole) => kind.rules.section(""),
            (None, Part::Status) => kind.rules.section("status"),
            (None, Part::Scale | Part::Token) => None,
        };
        let version = kind.version(&options.version).or_else(|| kind.form(&options.version));
        let version = version.cloned().ok_or_else(Status::unserved)?;
        Ok(Writing { kind, version, key, options, section, unknown: Vec::new(), patched: false })
    }

    /// The second half of every create: what the server fills in, what it checks, and the storing.
    fn finish_create(
        &mut self,
        writing: Writing<'_>,
        key: &Key,
        mut body: Value,
        managed: ManagedFields,
        moment: &mut Moment<'_>,
    ) -> Result<Written, Status> {
        writing.refuse_unknown(Source::Body)?;
        let (kind, rules) = (&writing.kind, &writing.kind.rules);
        if let (Some(_), Value::Object(members)) = (&rules.status, &mut body) {
            members.remove("status");
            members.extend(rules.empty.get("status").map(|status| ("status".to_owned(), status.clone())));
        }
        let uid = moment.uid();
        body["metadata"]["uid"] = uid.to_string().into();
        if let Some(prepare) = rules.prepare.filter(|_| writing.options.part == Part::Whole) {
            prepare(&mut body, None);
        }
        if writing.options.part == Part::Whole {
            self.provide(&writing, key, &mut body, moment)?;
        }
        body["metadata"]["creationTimestamp"] = rfc3339(moment.now_seconds).into();
        if rules.generation != Generation::None {
            body["metadata"]["generation"] = 1.into();
        }
        self.stamp(key, &mut body);
        writing.forget_empty(&mut body);
        refuse_unkept(&body)?;
        let mut errors = writing.kept_schema().validate(&body, false);
        errors.extend(writing.kept_schema().obey(&body, None, &errors));
        errors.extend(writing.check().into_iter().flat_map(|check| check(&body, None)));
        errors.extend(metadata::validate(&body["metadata"], kind.namespaced, rules.names));
        if kind.origin == Origin::Native {
            errors.extend(metadata::validate_native_finalizers(&body["metadata"]));
        }
        writing.refuse(&key.name, &errors)?;
        if let Some(present) = self.held(key) {
            return Err(if present.is_deleting() {
                Status::exists_deleting(&key.kind, &key.name)
            } else {
                Status::already_exists(&key.kind, &key.name)
            });
        }
        let shows_cluster = self.settings.flavor == Flavor::Kcp;
        let stored = Stored::new(key.clone(), uid, shows_cluster, body, Arc::new(managed));
        let object = if writing.options.dry_run { Arc::new(stored) } else { self.put(stored) };
        Ok(Written { object, created: true, changed: !writing.options.dry_run, unknown: writing.unknown })
    }

    /// The second half of every change.
    pub(super) fn modify(
        &mut self,
        writing: Writing<'_>,
        live: &Arc<Stored>,
        incoming: Incoming,
        managed: ManagedFields,
        now_seconds: u64,
    ) -> Result<Written, Status> {
        writing.refuse_unknown(Source::Patch)?;
        let key = &live.key;
        let Incoming { mut body, version, .. } = incoming;
        match version {
            None if writing.kind.rules.unconditional_update => {}
            None => {
                let error = FieldError::invalid(
                    "metadata.resourceVersion",
                    &Value::from(0),
                    "must be specified for an update",
                );
                return Err(Status::invalid(key.kind.group(), key.kind.resource(), &key.name, &[error]));
            }
            Some(version) if version != live.version => {
                let why = "the object has been modified; please apply your changes to the latest version and try again";
                return Err(Status::conflict(&key.kind, &key.name, why));
            }
            Some(_) => {}
        }
        writing.prepare_update(&mut body, live, now_seconds);
        if writing.options.part == Part::Whole && writing.options.section.is_none() {
            self.provide_changed(&writing, live, &mut body)?;
        }
        self.stamp(key, &mut body);
        writing.forget_empty(&mut body);
        refuse_unkept(&body)?;
        writing.refuse(&key.name, &writing.errors_of_update(&body, live))?;
        let managed = if managed.same_but_for_times(live.managed()) && typed::same(&body, live.body()) {
            // A change of nothing but times is none.
            Arc::clone(live.managed())
        } else {
            Arc::new(managed)
        };
        let changed = *managed != **live.managed() || body != *live.body();
        let stored = live.with(body, managed);
        let unknown = writing.unknown;
        if live.is_deleting()
            && stored.finalizers().is_empty()
            && !has_grace(live.body())
            && !namespace::is_held(&stored)
        {
            // The last finalizer is gone: so is the object.
            if !writing.options.dry_run {
                self.take(key);
            }
            return Ok(Written { object: Arc::new(stored), created: false, changed: true, unknown });
        }
        if !changed {
            return Ok(Written { object: Arc::clone(live), created: false, changed: false, unknown });
        }
        let object = if writing.options.dry_run { Arc::new(stored) } else { self.put(stored) };
        Ok(Written { object, created: false, changed: !writing.options.dry_run, unknown })
    }
}

impl Writing<'_> {
    /// The object of the kind that holds nothing.
    fn empty(&self) -> Value {
        let mut empty = self.kind.rules.empty.clone();
        empty["apiVersion"] = self.version.api_version.as_str().into();
        empty["kind"] = self.kind.name.as_str().into();
        empty
    }

    /// Whether managers that wrote through a version are known to those who write through this one. Servers forget those of
    /// other groups.
    fn remembers(&self, api_version: &str) -> bool {
        let group = |version: &str| version.split_once('/').map(|(group, _)| group.to_owned());
        self.kind.form(api_version).is_some() && group(api_version) == group(&self.version.api_version)
    }

    /// The schema of what is kept.
    pub(super) fn kept_schema(&self) -> &Schema {
        let kept = self.version.conversion.and_then(|_| self.kind.kept());
        &kept.unwrap_or(&self.version).schema
    }

    /// Members of the object itself that are written even where they are empty: whoever sends such a list owns that it is.
    pub(super) fn said_empty(&self, body: &Value) -> Vec<String> {
        let said = |name: &str| body[name].as_array().is_some_and(Vec::is_empty);
        let always = self.kind.rules.empty.as_object().into_iter().flatten();
        always.filter(|(name, value)| value.is_null() && said(name)).map(|(name, _)| name.clone()).collect()
    }

    /// Such a list is null once it was kept.
    fn forget_empty(&self, body: &mut Value) {
        for name in self.said_empty(body) {
            body[name] = Value::Null;
        }
    }

    /// What the server asks beyond the schema.
    pub(super) fn check(&self) -> Option<Check> {
        let of_version = self.version.conversion.and_then(|conversion| conversion.check);
        of_version.or(self.kind.rules.check)
    }

    /// The fields that this way of writing cannot change.
    fn reset(&self) -> Option<FieldSet> {
        if let Some(section) = self.section {
            return Some(FieldSet::of(section.resets.iter().copied()));
        }
        let status = self.kind.rules.status.as_ref()?;
        let paths: [&[&str]; 1] = [&["status"]];
        match self.options.part {
            Part::Whole => Some(FieldSet::of(paths)),
            Part::Status => Some(status.resets.clone()),
            Part::Scale | Part::Token => None,
        }
    }

    fn subresource(&self) -> Name {
        Name::new(match (self.options.section, self.options.part) {
            (Some(name), _) => name,
            (None, Part::Whole) => "",
            (None, Part::Status) => "status",
            (None, Part::Scale) => "scale",
            (None, Part::Token) => "token",
        })
    }

    fn change<'a>(
        &'a self,
        moment: &Moment<'_>,
        reset: Option<&'a FieldSet>,
        served: &'a dyn Fn(&str) -> bool,
        turned: &'a Turned<'a>,
    ) -> Change<'a> {
        Change {
            manager: &self.options.manager,
            api_version: &self.version.api_version,
            subresource: self.subresource(),
            now_seconds: moment.now_seconds,
            reset,
            served,
            turned,
        }
    }

    /// The managers after an update, beginning with those that the request brings, if it brings any.
    fn managed_of_update(&self, live: &Stored, incoming: &Incoming, moment: &Moment<'_>) -> ManagedFields {
        let brought = incoming.managed.as_ref().filter(|_| self.options.part == Part::Whole);
        let former = match brought {
            Some(managed) if managed::is_reset(managed) => ManagedFields::default(),
            Some(managed) => match ManagedFields::from_json(managed) {
                Ok(managed) if !managed.is_empty() => managed,
                _ => (**live.managed()).clone(),
            },
            None => (**live.managed()).clone(),
        };
        self.managed_after(live.body(), &incoming.body, former, moment, true)
    }

    pub(super) fn managed_after(
        &self,
        before: &Value,
        after: &Value,
        former: ManagedFields,
        moment: &Moment<'_>,
        exists: bool,
    ) -> ManagedFields {
        let (before, after) = (self.version.show(before), self.version.show(after));
        self.managed_after_shown(&before, &after, former, moment, exists)
    }

    /// The same, of objects as the version shows them that is written.
    fn managed_after_shown(
        &self,
        before: &Value,
        after: &Value,
        former: ManagedFields,
        moment: &Moment<'_>,
        exists: bool,
    ) -> ManagedFields {
        // What does not fit its schema and is not refused, since it is in a part that this write ignores, costs an
        // object its managers.
        if self.kind.origin == Origin::Custom && typed::check(&self.version.schema, after, true).is_err() {
            return ManagedFields::default();
        }
        let serves = |version: &str| self.remembers(version);
        let turned = |object: &Value, from: &str, to: &str| self.kind.turned(object, from, to);
        let reset = self.reset();
        let change = self.change(moment, reset.as_ref(), &serves, &turned);
        managed::update(&self.version.schema, before, after, former, &change, exists)
    }

    /// Refuses members that were dropped, if the request wants that.
    fn refuse_unknown(&self, source: Source) -> Result<(), Status> {
        if !self.options.strict || (self.unknown.is_empty() && self.options.flaws.is_empty()) {
            return Ok(());
        }
        let unknown = self.unknown.iter().map(|field| format!("unknown field {field:?}"));
        let fields: Vec<_> = self.options.flaws.iter().cloned().chain(unknown).collect();
        let (kind, version) = (&self.kind.name, &self.version.name);
        if matches!(source, Source::Patch) && self.patched {
            return Err(source.refusal(format!("strict decoding error: {}", fields.join(", "))));
        }
        Err(Status::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {kind}: strict decoding error: {}",
            version.as_str(),
            fields.join(", ")
        )))
    }

    pub(super) fn refuse(&self, name: &str, errors: &[FieldError]) -> Result<(), Status> {
        if errors.is_empty() {
            return Ok(());
        }
        // What the schema misses, the server's own checks may miss as well, in better words.
        let better = |error: &FieldError, other: &FieldError| {
            other.field == error.field && other.reason == error.reason && other.body.len() > error.body.len()
        };
        let missing = |error: &FieldError| error.body == "Required value";
        // One more than are told, so that it is told that there are more.
        let errors = &errors[..errors.len().min(MOST_ERRORS + 1)];
        let told: Vec<FieldError> = errors
            .iter()
            .filter(|error| !missing(error) || !errors.iter().any(|other| better(error, other)))
            .cloned()
            .collect();
        Err(Status::invalid(self.kind.id.group(), &self.kind.name, name, &told))
    }

    /// The object as apply errors name it.
    fn told(&self) -> String {
        let name = &self.key.name;
        let version = self.version.api_version.as_str();
        // The namespace is not yet known here, and the core group is one without a name.
        let group = if version.contains('/') { "" } else { "/" };
        format!("/{name}; {group}{version}, Kind={}", self.kind.name)
    }
}

/// The live object with a patch laid over it. Managers are part of it only if the patch speaks of them: they are
/// the largest part of most objects.
fn patched(version: &KindVersion, live: &Arc<Stored>, patch: Patch<'_>) -> Result<Value, Status> {
    let live = version.shown(live);
    let touched = match patch {
        Patch::Json(patch) => json_patch::touches(patch, "/metadata/managedFields"),
        Patch::Merge(patch) | Patch::Strategic(patch) => patch["metadata"].get("managedFields").is_some(),
        Patch::Apply { .. } => false,
    };
    let mut value = if touched {
        live.to_value()
    } else {
        let mut body = live.body().clone();
        body["metadata"]["resourceVersion"] = live.version.to_string().into();
        body
    };
    match patch {
        Patch::Json(patch) => match json_patch::apply(&mut value, patch) {
            Ok(()) => {}
            Err(BadPatch::Malformed(what)) => return Err(Status::bad_request(what)),
            Err(BadPatch::Unfitting(_) | BadPatch::TooMuchCopied(_) | BadPatch::TooMuchShifted) => {
                return Err(Status::unprocessable_patch());
            }
            Err(error @ (BadPatch::TooLong(_) | BadPatch::TooDeep)) => {
                return Err(Status::bad_request(error.to_string()));
            }
        },
        Patch::Merge(patch) if !patch.is_object() => {
            return Err(Status::bad_request("a merge patch must be a map"));
        }
        Patch::Merge(patch) => mailboat_object::merge::merge(&mut value, patch),
        Patch::Strategic(patch) => {
            strategic::merge(&version.schema, &mut value, patch).map_err(|error| error.status())?;
        }
        Patch::Apply { .. } => {}
    }
    Ok(value)
}

/// Refuses what has grown beyond what a server keeps: many small patches make it as large, and as deep, as one wants.
fn refuse_unkept(body: &Value) -> Result<(), Status> {
    if is_deeper(body, OBJECT_DEPTH_MAX) {
        let why = format!("an object may be nested {OBJECT_DEPTH_MAX} levels deep at most");
        return Err(Status::bad_request(why));
    }
    if json_bytes(body, OBJECT_LIMIT_BYTES) > OBJECT_LIMIT_BYTES {
        return Err(Status::too_large(format!("Request entity too large: limit is {OBJECT_LIMIT_BYTES}")));
    }
    Ok(())
}

pub(super) fn drop_metadata(body: &mut Value, member: &str) {
    if let Value::Object(metadata) = &mut body["metadata"] {
        metadata.remove(member);
    }
}

fn ensure_namespace(body: &mut Value, writing: &Writing<'_>) -> Result<(), Status> {
    let found = body["metadata"]["namespace"].as_str().unwrap_or_default();
    let expected = &writing.key.namespace;
    if found.is_empty() && writing.kind.namespaced && !expected.is_empty() {
        body["metadata"]["namespace"] = expected.as_str().into();
    } else if *found != **expected {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

fn check_name(body: &Value, key: &Key) -> Result<(), Status> {
    let found = body["metadata"]["name"].as_str().unwrap_or_default();
    if *found == *key.name {
        return Ok(());
    }
    Err(Status::bad_request(format!(
        "the name of the object ({found}) does not match the name on the URL ({})",
        key.name
    )))
}

pub(super) fn has_grace(body: &Value) -> bool {
    body["metadata"]["deletionGracePeriodSeconds"].as_u64().is_some_and(|seconds| seconds > 0)
}
