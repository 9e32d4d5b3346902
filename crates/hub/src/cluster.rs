//! A hub as one plain cluster.

use mailboat_machinery::{Flavor, Machine, Settings, WriteOptions};
use mailboat_object::{ClusterId, Key, KindId, Name};
use serde_json::json;

use crate::catalog::{self, BadCatalog};
use crate::hub::Hub;

/// The namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// A server that is one cluster, with the kinds of Kubernetes.
pub fn cluster() -> Result<Hub, BadCatalog> {
    let id = ClusterId::new("cluster");
    let mut machine = Machine::new(Settings { flavor: Flavor::Kubernetes, ..Settings::default() });
    machine.serve(&id, catalog::kinds()?);
    let hub = Hub::new(machine, id.clone());
    for name in NAMESPACES {
        let key = Key {
            cluster: id.clone(),
            kind: KindId::new("", "namespaces"),
            namespace: Name::EMPTY,
            name: Name::new(name),
        };
        let body = json!({ "metadata": { "name": name } });
        let options = WriteOptions { manager: Name::new("mailboat-hub"), ..WriteOptions::default() };
        // It may be there already.
        let _ = hub.write(|machine, moment| machine.create(&key, body, &options, moment));
    }
    Ok(hub)
}
