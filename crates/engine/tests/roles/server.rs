//! A small API server: enough of one to see what the engine does to objects. What real servers do beyond this
//! is seen on real servers.

use std::collections::BTreeMap;

use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Reply, Verb};
use serde_json::{Map, Value, json};

/// What becomes of calls to a server.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Link {
    #[default]
    Up,
    /// None gets through.
    Away,
    /// They are taken, and none is answered.
    Hangs,
}

/// One cluster's objects, and the watch events that nobody has read yet.
#[allow(clippy::struct_excessive_bools, reason = "each is one way to misbehave")]
#[derive(Default)]
pub(crate) struct Server {
    pub(crate) objects: BTreeMap<Key, Value>,
    pub(crate) events: Vec<(Key, &'static str, Value)>,
    /// What each manager applied and still owns.
    applied: BTreeMap<(Key, Name), Value>,
    /// When each manager last applied.
    applied_at: BTreeMap<(Key, Name), u64>,
    /// Who else wrote, and when.
    updated: BTreeMap<(Key, Name), u64>,
    /// How every object was, from which version on; nothing if it was gone.
    history: Vec<(u64, Key, Option<Value>)>,
    pub(crate) version: u64,
    made: u64,
    /// The server's clock, in seconds.
    pub(crate) seconds: u64,
    /// Under which name users write.
    pub(crate) user: Option<&'static str>,
    /// What becomes of calls.
    pub(crate) link: Link,
    /// The next calls are carried out, and their answers lost.
    pub(crate) loses_replies: usize,
    /// Objects with this value are refused.
    pub(crate) refuses: Option<&'static str>,
    /// `data.a` cannot be changed once it is there.
    pub(crate) immutable: bool,
    /// What the server adds to `data` of whatever is written.
    pub(crate) defaults: Option<(&'static str, &'static str)>,
    /// The past is forgotten: how an object was cannot be asked.
    pub(crate) forgets: bool,
    /// How many calls were refused or did not get through.
    pub(crate) refusals: usize,
    /// How many objects were read one by one.
    pub(crate) gets: usize,
    /// How many writes came too late.
    pub(crate) conflicts: usize,
    /// How many calls were answered in any way.
    pub(crate) calls: usize,
    /// Its watches show nothing for now.
    pub(crate) silent: bool,
    /// Somebody changes an object just before each write to it.
    pub(crate) outruns: bool,
    /// Nothing is made in a namespace that is not there.
    pub(crate) strict: bool,
    /// How often it was asked to make a namespace.
    pub(crate) namespaces_asked: usize,
}

type Answer = Result<Reply, Fault>;

impl Server {
    /// Puts an object there, as some user does.
    pub(crate) fn put(&mut self, key: &Key, mut object: Value) {
        if object["metadata"].is_null() {
            object["metadata"] = json!({});
        }
        object["metadata"]["name"] = json!(key.name.as_str());
        if !key.namespace.is_empty() {
            object["metadata"]["namespace"] = json!(key.namespace.as_str());
        }
        let before = self.objects.get(key).cloned().unwrap_or_default();
        // Who changes a field takes it from those who applied it.
        for ((of, _), applied) in &mut self.applied {
            if of == key {
                disown(applied, &before, &object);
            }
        }
        self.updated.insert((key.clone(), Name::new(self.user.unwrap_or("user"))), self.seconds);
        self.store(key, object, true);
    }

    /// Takes an object away; one with finalizers only begins to go.
    pub(crate) fn remove(&mut self, key: &Key) {
        let Some(mut object) = self.objects.get(key).cloned() else { return };
        if object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty()) {
            object["metadata"]["deletionTimestamp"] = json!("2026-11-15T00:00:00Z");
            self.store(key, object, true);
            return;
        }
        self.version += 1;
        self.objects.remove(key);
        self.applied.retain(|(of, _), _| of != key);
        self.applied_at.retain(|(of, _), _| of != key);
        self.updated.retain(|(of, _), _| of != key);
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.history.push((self.version, key.clone(), None));
        self.events.push((key.clone(), "DELETED", object));
    }

    pub(crate) fn list(&self, kind: &KindId) -> Value {
        let items: Vec<&Value> =
            self.objects.iter().filter(|(key, _)| key.kind == *kind).map(|(_, o)| o).collect();
        json!({ "metadata": { "resourceVersion": self.version.to_string() }, "items": items })
    }

    pub(crate) fn call(&mut self, call: &Call) -> Answer {
        if self.link == Link::Away {
            self.refusals += 1;
            return Err(Fault::new(FaultKind::Away, "connection refused"));
        }
        if self.outruns
            && let Some(mut object) =
                self.objects.get(&call.key).cloned().filter(|_| !matches!(call.verb, Verb::Get))
        {
            object["metadata"]["labels"]["outran"] = json!(self.version.to_string());
            self.put(&call.key, object);
        }
        let answer = self.answer(call);
        self.calls += 1;
        self.conflicts += usize::from(matches!(&answer, Err(fault) if fault.kind == FaultKind::Conflict));
        if self.loses_replies > 0 && !call.dry_run {
            self.loses_replies -= 1;
            return Err(Fault::new(FaultKind::Retry(None), "the connection broke before the answer came"));
        }
        answer
    }

    fn answer(&mut self, call: &Call) -> Answer {
        let key = &call.key;
        let present = self.objects.get(key).cloned();
        self.namespaces_asked +=
            usize::from(key.kind.resource() == "namespaces" && matches!(call.verb, Verb::Create { .. }));
        if self.strict && present.is_none() && !key.namespace.is_empty() {
            let own = |object: &Key| object.kind.resource() == "namespaces" && object.name == key.namespace;
            if !matches!(call.verb, Verb::Get) && !self.objects.keys().any(own) {
                return Err(Fault::new(FaultKind::NoNamespace, "there is no such namespace"));
            }
        }
        match (&call.verb, present) {
            (Verb::Get, Some(present)) => {
                self.gets += 1;
                Ok(reply(&present, false))
            }
            (Verb::GetAt(_), _) if self.forgets => Err(Fault::new(FaultKind::Expired, "too old")),
            (Verb::GetAt(version), _) => {
                let before = self.history.iter().rev().find(|(at, of, _)| *at <= version.0 && of == key);
                let items: Vec<&Value> =
                    before.and_then(|(.., object)| object.as_ref()).into_iter().collect();
                let list = json!({ "metadata": { "resourceVersion": version.to_string() }, "items": items });
                Ok(reply(&list, false))
            }
            (Verb::Create { .. }, Some(_)) => Err(Fault::new(FaultKind::Exists, "already exists")),
            (Verb::Create { body, manager }, None) => {
                self.updated.insert((key.clone(), manager.clone()), self.seconds);
                Ok(self.reply(key, read(body), true, call.dry_run))
            }
            (Verb::Apply { body, manager, force }, present) => {
                self.apply(call, &read(body), manager, *force, present)
            }
            (Verb::Merge { body, manager }, Some(present)) => self.merge(call, &read(body), manager, present),
            (Verb::Delete { uid, version, .. }, Some(present)) => {
                if present["metadata"]["uid"] != json!(uid.to_string())
                    || version.is_some_and(|v| present["metadata"]["resourceVersion"] != json!(v.to_string()))
                {
                    return Err(Fault::new(FaultKind::Conflict, "the precondition does not hold"));
                }
                self.remove(key);
                Ok(reply(&json!({}), false))
            }
            (verb, None) => {
                self.gets += usize::from(matches!(verb, Verb::Get));
                Err(Fault::new(FaultKind::NotFound, "not found"))
            }
            (verb, Some(_)) => panic!("this server does not know {verb:?}"),
        }
    }

    fn apply(
        &mut self,
        call: &Call,
        intent: &Value,
        manager: &Name,
        force: bool,
        present: Option<Value>,
    ) -> Answer {
        let key = &call.key;
        self.check(intent, present.as_ref())?;
        check_uid(intent, present.as_ref())?;
        if let Some(present) = &present {
            check_version(intent, present)?;
        }
        let last = self.applied.get(&(key.clone(), manager.clone())).cloned();
        if !force && let Some(present) = &present {
            // A field that others own with another value.
            let theirs = differs(present, &owned(intent), last.as_ref().unwrap_or(&Value::Null));
            if theirs {
                self.refusals += 1;
                return Err(Fault::new(FaultKind::Conflict, "conflict with another field manager"));
            }
        }
        let created = present.is_none();
        let mut object = present.unwrap_or_else(|| json!({}));
        if let Some(last) = &last {
            let emptied = drop_missing(&mut object, last, intent);
            if emptied && key.kind.group().contains('.') {
                self.refusals += 1;
                return Err(Fault::new(
                    FaultKind::Invalid,
                    "spec: Invalid value: \"null\": must be an object",
                ));
            }
        }
        overlay(&mut object, &owned(intent));
        if let Some((member, value)) = self.defaults {
            object["data"][member] = json!(value);
        }
        if call.dry_run {
            return Ok(self.reply(key, object, created, true));
        }
        let at = (key.clone(), manager.clone());
        if last.as_ref() != Some(&owned(intent)) || !self.objects.get(key).is_some_and(|o| same(o, &object)) {
            self.applied_at.insert(at.clone(), self.seconds);
        }
        if owned_of(intent).is_empty() {
            self.applied.remove(&at);
            self.applied_at.remove(&at);
        } else {
            self.applied.insert(at, owned(intent));
        }
        Ok(self.reply(key, object, created, false))
    }

    fn merge(&mut self, call: &Call, patch: &Value, manager: &Name, present: Value) -> Answer {
        let key = &call.key;
        check_uid(patch, Some(&present))?;
        check_version(patch, &present)?;
        let before = present.clone();
        let mut object = present;
        match call.part {
            Part::Status => {
                mailboat_object::merge::merge(&mut object, &json!({ "status": patch["status"] }));
            }
            _ => mailboat_object::merge::merge(&mut object, patch),
        }
        self.check(&object, Some(&before))?;
        if call.dry_run {
            return Ok(reply(&object, false));
        }
        for ((of, _), applied) in &mut self.applied {
            if of == key {
                disown(applied, &before, &object);
            }
        }
        if call.part == Part::Whole {
            self.updated.insert((key.clone(), manager.clone()), self.seconds);
        }
        let finalizers = object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        if finalizers && !object["metadata"]["deletionTimestamp"].is_null() {
            object["metadata"]["finalizers"] = Value::Null;
            self.objects.insert(key.clone(), object.clone());
            self.remove(key);
            return Ok(reply(&object, false));
        }
        Ok(self.reply(key, object, false, false))
    }

    /// What an admission or a schema refuses.
    fn check(&mut self, object: &Value, before: Option<&Value>) -> Result<(), Fault> {
        let a = &object["data"]["a"];
        let changes =
            before.is_some_and(|before| !before["data"]["a"].is_null() && before["data"]["a"] != *a);
        if self.refuses.is_some_and(|refused| a == refused) || (self.immutable && !a.is_null() && changes) {
            self.refusals += 1;
            return Err(Fault::new(FaultKind::Invalid, "data.a: Invalid value: field is immutable"));
        }
        Ok(())
    }

    fn reply(&mut self, key: &Key, object: Value, created: bool, dry_run: bool) -> Reply {
        let object = if dry_run { object } else { self.store(key, object, false) };
        reply(&object, created)
    }

    fn store(&mut self, key: &Key, mut object: Value, by_user: bool) -> Value {
        let before = self.objects.get(key);
        let (uid, created) = if let Some(before) = before {
            (before["metadata"]["uid"].clone(), before["metadata"]["creationTimestamp"].clone())
        } else {
            self.made += 1;
            (json!(format!("00000000-0000-0000-0000-{:012x}", self.made)), json!(time(self.seconds)))
        };
        object["metadata"]["uid"] = uid;
        object["metadata"]["creationTimestamp"] = created;
        let managed = self.managed(key);
        if let Some(before) = before {
            object["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
            object["metadata"]["managedFields"] = before["metadata"]["managedFields"].clone();
            if *before == object && !by_user {
                return object;
            }
        }
        object["metadata"]["managedFields"] = managed;
        let kind = if before.is_some() { "MODIFIED" } else { "ADDED" };
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(key.clone(), object.clone());
        self.history.push((self.version, key.clone(), Some(object.clone())));
        self.events.push((key.clone(), kind, object.clone()));
        object
    }

    fn managed(&self, key: &Key) -> Value {
        let mut entries = Vec::new();
        for ((of, manager), applied) in self.applied.iter().filter(|((of, _), _)| of == key) {
            let at = self.applied_at.get(&(of.clone(), manager.clone())).copied().unwrap_or_default();
            entries.push(json!({ "manager": manager.as_str(), "operation": "Apply", "apiVersion": "v1",
                "time": time(at), "fieldsType": "FieldsV1", "fieldsV1": fields(applied) }));
        }
        for ((_, manager), at) in self.updated.iter().filter(|((of, _), _)| of == key) {
            entries.push(json!({ "manager": manager.as_str(), "operation": "Update", "apiVersion": "v1",
                "time": time(*at), "fieldsType": "FieldsV1", "fieldsV1": {} }));
        }
        json!(entries)
    }
}

pub(crate) fn key(cluster: &str, kind: &str, namespace: &str, name: &str) -> Key {
    let (resource, group) = kind.split_once('.').unwrap_or((kind, ""));
    Key {
        cluster: ClusterId::new(cluster),
        kind: KindId::new(group, resource),
        namespace: Name::new(namespace),
        name: Name::new(name),
    }
}

/// A time of the server's clock, which begins at midnight.
fn time(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    format!("2026-11-{:02}T{:02}:{:02}:{:02}Z", 1 + days, rest / 3_600, rest / 60 % 60, rest % 60)
}

fn read(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

fn reply(object: &Value, created: bool) -> Reply {
    Reply { body: object.to_string().into_bytes().into(), created, warnings: vec![] }
}

fn same(before: &Value, object: &Value) -> bool {
    let strip = |value: &Value| {
        let mut value = value.clone();
        for member in ["managedFields", "resourceVersion", "creationTimestamp"] {
            if let Some(metadata) = value["metadata"].as_object_mut() {
                metadata.remove(member);
            }
        }
        value
    };
    strip(before) == strip(object)
}

/// An intent without what nobody owns.
fn owned(intent: &Value) -> Value {
    let mut intent = intent.clone();
    if let Some(metadata) = intent["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    intent
}

fn owned_of(intent: &Value) -> Map<String, Value> {
    let mut members = intent.as_object().cloned().unwrap_or_default();
    members.retain(|member, value| match member.as_str() {
        "apiVersion" | "kind" => false,
        "metadata" => value.get("labels").is_some() || value.get("annotations").is_some(),
        _ => true,
    });
    members
}

/// A set of fields as managed fields show it.
fn fields(applied: &Value) -> Value {
    fn of(value: &Value) -> Value {
        let Some(members) = value.as_object() else { return json!({}) };
        members.iter().map(|(member, value)| (format!("f:{member}"), of(value))).collect::<Map<_, _>>().into()
    }
    of(&Value::Object(owned_of(applied)))
}

/// Whether an intent differs from an object in a field that is there and not among those of `ours`.
fn differs(object: &Value, intent: &Value, ours: &Value) -> bool {
    match (object.as_object(), intent.as_object()) {
        (Some(members), Some(wanted)) => wanted.iter().any(|(member, value)| {
            members
                .get(member)
                .is_some_and(|found| differs(found, value, ours.get(member).unwrap_or(&Value::Null)))
        }),
        _ => object != intent && ours.is_null(),
    }
}

/// Takes out of what somebody applied the fields that another changed.
fn disown(applied: &mut Value, before: &Value, after: &Value) {
    let Some(members) = applied.as_object_mut() else { return };
    members.retain(|member, value| {
        let (old, new) = (before.get(member), after.get(member));
        if value.is_object() && new.is_some_and(Value::is_object) {
            disown(value, old.unwrap_or(&Value::Null), new.unwrap_or(&Value::Null));
            return true;
        }
        old == new
    });
}

fn check_uid(body: &Value, present: Option<&Value>) -> Result<(), Fault> {
    let wanted = &body["metadata"]["uid"];
    match present {
        _ if wanted.is_null() => Ok(()),
        Some(present) if present["metadata"]["uid"] == *wanted => Ok(()),
        _ => Err(Fault::new(FaultKind::Conflict, "the uid does not fit")),
    }
}

fn check_version(body: &Value, present: &Value) -> Result<(), Fault> {
    let wanted = &body["metadata"]["resourceVersion"];
    if wanted.is_null() || present["metadata"]["resourceVersion"] == *wanted {
        return Ok(());
    }
    Err(Fault::new(FaultKind::Conflict, "the version does not fit"))
}

/// Takes out of an object what was applied last and is not any more. True if that emptied a map.
fn drop_missing(object: &mut Value, last: &Value, intent: &Value) -> bool {
    let (Some(object), Some(last)) = (object.as_object_mut(), last.as_object()) else { return false };
    let mut emptied = false;
    for (member, value) in last {
        let Some(inner) = object.get_mut(member) else { continue };
        let held_something = inner.as_object().is_some_and(|members| !members.is_empty());
        match intent.get(member) {
            Some(wanted) => emptied |= drop_missing(inner, value, wanted),
            // Of a map only what was applied goes; it goes itself when nothing is left in it.
            None if inner.is_object() => emptied |= drop_missing(inner, value, &Value::Null),
            None => *inner = Value::Null,
        }
        let empty = inner.as_object().is_some_and(Map::is_empty);
        if inner.is_null() || empty {
            object.remove(member);
            emptied |= empty && held_something;
        }
    }
    emptied
}

fn overlay(object: &mut Value, intent: &Value) {
    match (object.as_object_mut(), intent.as_object()) {
        (Some(object), Some(intent)) => {
            for (member, value) in intent {
                overlay(object.entry(member).or_insert(Value::Null), value);
            }
        }
        _ => *object = intent.clone(),
    }
}
