//! A machine with one kind, and short ways to write to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use mailboat_machinery::{
    DeleteOptions, Kind, ListRequest, Machine, Moment, Origin, Rules, Schema, Seeded, Settings, WriteOptions,
};
use mailboat_object::{ClusterId, Key, KindId, Name};
use serde_json::json;

use super::backend::Device;
use crate::storage::{Ledger, Refused, load};

pub(super) fn settings() -> Settings {
    Settings::default()
}

pub(super) fn key(name: &str) -> Key {
    Key {
        cluster: ClusterId::new("guilder"),
        kind: KindId::new("", "configmaps"),
        namespace: Name::new("default"),
        name: Name::new(name),
    }
}

pub(super) fn serve(machine: &mut Machine) {
    let versions = [("v1", Schema::permissive())];
    let kind = Kind::new(key("").kind, "ConfigMap", true, versions, Origin::Custom, Rules::custom());
    machine.serve(&key("").cluster, [Arc::new(kind)]);
}

pub(super) fn ledger_on(device: &Device) -> Ledger {
    let mut disk = device.open().unwrap();
    let mut machine = load(&mut disk, settings()).unwrap();
    serve(&mut machine);
    Ledger::new(machine, disk, |_| {}).unwrap()
}

/// Writes one object, whether it is there or not.
pub(super) fn config_map(machine: &mut Machine, name: &str, value: &str) {
    let seed = machine.version().0;
    let mut random = Seeded(seed);
    let mut moment = Moment { now_seconds: 1_700_000_000 + seed, random: &mut random };
    let body = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "value": value },
    });
    let options = WriteOptions::default();
    if machine.get(&key(name)).is_ok() {
        let patch = mailboat_machinery::Patch::Merge(&body);
        machine.patch(&key(name), patch, &options, &mut moment).unwrap();
    } else {
        machine.create(&key(""), body, &options, &mut moment).unwrap();
    }
}

pub(super) fn put(ledger: &Ledger, name: &str, value: &str) -> Result<(), Refused> {
    ledger.write(|machine| config_map(machine, name, value)).1.wait_blocking()
}

pub(super) fn delete(ledger: &Ledger, name: &str) -> Result<(), Refused> {
    let mut random = Seeded(1);
    let mut moment = Moment { now_seconds: 1_700_000_000, random: &mut random };
    let options = DeleteOptions::default();
    let (deleted, settled) = ledger.write(|machine| machine.delete(&key(name), &options, &mut moment));
    deleted.unwrap();
    settled.wait_blocking()
}

pub(super) fn values(machine: &Machine) -> BTreeMap<String, String> {
    let Key { cluster, kind, .. } = key("");
    let request = ListRequest { cluster: Some(cluster), kind, ..ListRequest::default() };
    let list = machine.list(&request).unwrap();
    let value = |object: &mailboat_machinery::Stored| {
        object.body()["data"]["value"].as_str().unwrap_or_default().to_owned()
    };
    list.items.iter().map(|object| (object.key.name.to_string(), value(object))).collect()
}

pub(super) fn names(ledger: &Ledger) -> Vec<String> {
    ledger.peek(values).into_keys().collect()
}
