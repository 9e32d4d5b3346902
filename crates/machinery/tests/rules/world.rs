//! A small server to test on.

use std::sync::Arc;

use mailboat_machinery::builtin;
use mailboat_machinery::{
    DeleteOptions, Deleted, Flavor, Kind, ListRequest, Machine, Moment, Origin, Patch, Rules, Schema, Seeded,
    Settings, Status, Stored, WriteOptions, Written,
};
use mailboat_object::{ClusterId, Key, KindId, Name};
use serde_json::{Value, json};

pub(crate) struct World {
    pub machine: Machine,
    pub seconds: u64,
    pub chance: Seeded,
}

pub(crate) fn cluster() -> ClusterId {
    ClusterId::new("guilder")
}

pub(crate) fn config_maps() -> KindId {
    KindId::new("", "configmaps")
}

pub(crate) fn boats() -> KindId {
    KindId::new("example.dev", "boats")
}

pub(crate) fn key(kind: &KindId, name: &str) -> Key {
    Key { cluster: cluster(), kind: kind.clone(), namespace: Name::new("default"), name: Name::new(name) }
}

#[allow(clippy::needless_pass_by_value, reason = "callers write `json!` in place")]
pub(crate) fn config_map(name: &str, data: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": data })
}

#[allow(clippy::needless_pass_by_value, reason = "callers write `json!` in place")]
pub(crate) fn boat(name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "example.dev/v1", "kind": "Boat", "metadata": { "name": name }, "spec": spec })
}

fn schema(properties: &Value, origin: Origin) -> Schema {
    let schema = json!({ "type": "object", "properties": properties });
    Schema::from_openapi(&schema, &Value::Null, origin).unwrap()
}

pub(crate) fn by(manager: &str) -> WriteOptions {
    WriteOptions { manager: Name::new(manager), ..WriteOptions::default() }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let mut machine = Machine::new(settings);
        let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let texts = json!({ "type": "object", "additionalProperties": { "type": "string" } });
        let config_map = schema(&json!({ "data": texts }), Origin::Native);
        let boat = schema(&json!({ "spec": open, "status": open }), Origin::Custom);
        let rules = builtin::rules(&config_maps());
        let kinds = [
            Kind::new(config_maps(), "ConfigMap", true, [("v1", config_map)], Origin::Native, rules),
            Kind::new(boats(), "Boat", true, [("v1", boat)], Origin::Custom, Rules::custom()).with_status(),
        ];
        machine.serve(&cluster(), kinds.map(Arc::new));
        Self { machine, seconds: 1_700_000_000, chance: Seeded(1) }
    }

    pub(crate) fn kcp() -> Self {
        Self::with(Settings { flavor: Flavor::Kcp, ..Settings::default() })
    }

    /// Calls with the machine and the next second.
    pub(crate) fn act<T>(&mut self, act: impl FnOnce(&mut Machine, &mut Moment<'_>) -> T) -> T {
        self.seconds += 1;
        act(&mut self.machine, &mut Moment { now_seconds: self.seconds, random: &mut self.chance })
    }

    pub(crate) fn create(&mut self, kind: &KindId, body: Value) -> Result<Written, Status> {
        self.act(|machine, moment| machine.create(&key(kind, ""), body, &by("alice"), moment))
    }

    pub(crate) fn update(&mut self, key: &Key, body: Value) -> Result<Written, Status> {
        self.act(|machine, moment| machine.update(key, body, &by("alice"), moment))
    }

    pub(crate) fn merge(&mut self, key: &Key, patch: &Value) -> Result<Written, Status> {
        self.act(|machine, moment| machine.patch(key, Patch::Merge(patch), &by("alice"), moment))
    }

    pub(crate) fn apply(
        &mut self,
        key: &Key,
        manager: &str,
        force: bool,
        intent: &Value,
    ) -> Result<Written, Status> {
        self.act(|machine, moment| machine.patch(key, Patch::Apply { intent, force }, &by(manager), moment))
    }

    pub(crate) fn delete(&mut self, key: &Key, options: &DeleteOptions) -> Result<Deleted, Status> {
        self.act(|machine, moment| machine.delete(key, options, moment))
    }

    pub(crate) fn list(&self, kind: &KindId) -> Vec<Arc<Stored>> {
        self.machine.list(&of(kind)).unwrap().items
    }
}

pub(crate) fn of(kind: &KindId) -> ListRequest {
    ListRequest { cluster: Some(cluster()), kind: kind.clone(), ..ListRequest::default() }
}

#[track_caller]
pub(crate) fn assert_refused<T: std::fmt::Debug>(
    answer: Result<T, Status>,
    code: u16,
    reason: &str,
) -> Status {
    let status = answer.expect_err("this must be refused");
    assert_eq!((status.code(), status.reason()), (code, reason), "{status}");
    status
}
