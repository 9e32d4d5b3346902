//! A small API server: enough of one to see what the engine does to objects. What real servers do beyond this
//! is seen on real servers.

use std::collections::BTreeMap;

use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Reply, Verb};
use serde_json::{Value, json};

/// One cluster's objects, and the watch events that nobody has read yet.
#[derive(Default)]
pub(crate) struct Server {
    pub(crate) objects: BTreeMap<Key, Value>,
    pub(crate) events: Vec<(Key, &'static str, Value)>,
    /// What each manager last applied.
    applied: BTreeMap<(Key, Name), Value>,
    /// How every object was, from which version on; nothing if it was gone.
    history: Vec<(u64, Key, Option<Value>)>,
    version: u64,
    made: u64,
    /// While true, no call gets through.
    pub(crate) away: bool,
    /// Objects with this value are refused.
    pub(crate) refuses: Option<&'static str>,
    /// How many calls were refused or did not get through.
    pub(crate) refusals: usize,
}

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
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.history.push((self.version, key.clone(), None));
        self.events.push((key.clone(), "DELETED", object));
    }

    pub(crate) fn list(&self, kind: &KindId) -> Value {
        let items: Vec<&Value> =
            self.objects.iter().filter(|(key, _)| key.kind == *kind).map(|(_, o)| o).collect();
        json!({ "metadata": { "resourceVersion": self.version.to_string() }, "items": items })
    }

    pub(crate) fn call(&mut self, call: &Call) -> Result<Reply, Fault> {
        if self.away {
            self.refusals += 1;
            return Err(Fault::new(FaultKind::Away, "connection refused"));
        }
        let key = &call.key;
        let present = self.objects.get(key).cloned();
        let read = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap();
        match (&call.verb, present) {
            (Verb::GetAt(version), _) => {
                let before = self.history.iter().rev().find(|(at, of, _)| *at <= version.0 && of == key);
                let items: Vec<&Value> =
                    before.and_then(|(.., object)| object.as_ref()).into_iter().collect();
                let list = json!({ "metadata": { "resourceVersion": version.to_string() }, "items": items });
                Ok(Reply { body: list.to_string().into_bytes().into(), created: false, warnings: vec![] })
            }
            (Verb::Create { .. }, Some(_)) => Err(Fault::new(FaultKind::Exists, "already exists")),
            (Verb::Create { body, .. }, None) => Ok(self.reply(key, read(body), true, call.dry_run)),
            (Verb::Apply { body, manager, force }, present) => {
                let intent = read(body);
                if self.refuses.is_some_and(|refused| intent["data"]["a"] == refused) {
                    self.refusals += 1;
                    return Err(Fault::new(FaultKind::Invalid, "data.a: Invalid value"));
                }
                check_uid(&intent, present.as_ref())?;
                let created = present.is_none();
                let last = self.applied.get(&(key.clone(), manager.clone())).cloned();
                let mut object = present.unwrap_or_else(|| json!({}));
                if let Some(last) = &last {
                    drop_missing(&mut object, last, &intent);
                }
                overlay(&mut object, &intent);
                let reply = self.reply(key, object, created, call.dry_run);
                if !call.dry_run {
                    self.applied.insert((key.clone(), manager.clone()), intent);
                }
                let _ = force;
                Ok(reply)
            }
            (Verb::Merge { body, .. }, Some(present)) => {
                let patch = read(body);
                check_uid(&patch, Some(&present))?;
                check_version(&patch, &present)?;
                let mut object = present;
                match call.part {
                    Part::Status => {
                        mailboat_object::merge::merge(&mut object, &json!({ "status": patch["status"] }));
                    }
                    _ => mailboat_object::merge::merge(&mut object, &patch),
                }
                let finalizers = object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
                if finalizers && !object["metadata"]["deletionTimestamp"].is_null() {
                    self.objects.insert(key.clone(), object.clone());
                    object["metadata"]["finalizers"] = Value::Null;
                    self.objects.insert(key.clone(), object.clone());
                    self.remove(key);
                    return Ok(Reply {
                        body: object.to_string().into_bytes().into(),
                        created: false,
                        warnings: vec![],
                    });
                }
                Ok(self.reply(key, object, false, call.dry_run))
            }
            (Verb::Delete { uid, version, .. }, Some(present)) => {
                if present["metadata"]["uid"] != json!(uid.to_string())
                    || version.is_some_and(|v| present["metadata"]["resourceVersion"] != json!(v.to_string()))
                {
                    return Err(Fault::new(FaultKind::Conflict, "the precondition does not hold"));
                }
                self.remove(key);
                Ok(Reply { body: b"{}".to_vec().into(), created: false, warnings: vec![] })
            }
            (_, None) => Err(Fault::new(FaultKind::NotFound, "not found")),
            (verb, Some(_)) => panic!("this server does not know {verb:?}"),
        }
    }

    fn reply(&mut self, key: &Key, object: Value, created: bool, dry_run: bool) -> Reply {
        let object = if dry_run { object } else { self.store(key, object, false) };
        Reply { body: object.to_string().into_bytes().into(), created, warnings: vec![] }
    }

    fn store(&mut self, key: &Key, mut object: Value, by_user: bool) -> Value {
        let before = self.objects.get(key);
        let uid = if let Some(before) = before {
            before["metadata"]["uid"].clone()
        } else {
            self.made += 1;
            json!(format!("00000000-0000-0000-0000-{:012x}", self.made))
        };
        object["metadata"]["uid"] = uid;
        if let Some(before) = before {
            object["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
            if *before == object && !by_user {
                return object;
            }
        }
        let kind = if before.is_some() { "MODIFIED" } else { "ADDED" };
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(key.clone(), object.clone());
        self.history.push((self.version, key.clone(), Some(object.clone())));
        self.events.push((key.clone(), kind, object.clone()));
        object
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

/// Takes out of an object what was applied last and is not any more.
fn drop_missing(object: &mut Value, last: &Value, intent: &Value) {
    let (Some(object), Some(last)) = (object.as_object_mut(), last.as_object()) else { return };
    for (member, value) in last {
        let Some(inner) = object.get_mut(member) else { continue };
        match intent.get(member) {
            Some(wanted) => drop_missing(inner, value, wanted),
            // Of a map only what was applied goes; it goes itself when nothing is left in it.
            None if inner.is_object() => drop_missing(inner, value, &Value::Null),
            None => *inner = Value::Null,
        }
        if inner.is_null() || inner.as_object().is_some_and(serde_json::Map::is_empty) {
            object.remove(member);
        }
    }
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
