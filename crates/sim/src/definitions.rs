//! What defines the sources' kind in a workspace: a CRD, or the binding to the export whose view shows it.

use mailboat_engine::look::{Definition, Serving, identity};
use mailboat_object::key::Key;
use mailboat_object::timestamp::unix_seconds;
use mailboat_object::wire::Part;
use serde_json::json;

use crate::roles::{bindings, bound, definitions, key, skiffs};
use crate::script::{BOUND, Workspace};
use crate::servers::{Servers, cluster_of, kind_in, kind_name};

/// The name of every workspace's binding.
const BINDING: &str = "export";
/// What servers wait for before a definition is gone: that everything that it brought is.
const FINALIZER: &str = "apis.kcp.io/apibinding-finalizer";

impl Servers {
    /// A workspace defines the kind of its sources, or binds the export.
    pub(crate) fn define(&mut self, workspace: Workspace) {
        let key = definition_key(workspace);
        let body = json!({
            "apiVersion": format!("{}/v1", key.kind.group()), "kind": kind_name(&key.kind),
            "metadata": { "name": key.name.as_str(), "finalizers": [FINALIZER] },
        });
        self.by_user(&key, &body, &json!({}));
        if let Workspace::Bound(number) = workspace {
            self.rebind(number);
        }
    }

    /// A definition is changed: a version is added, or somebody labels it.
    pub(crate) fn change_definition(&mut self, workspace: Workspace, value: u64) {
        let labels = json!({ "metadata": { "labels": { "changed": value.to_string() } } });
        let _ = self.merge(&definition_key(workspace), &labels, Part::Whole);
    }

    /// What a fresh look finds of it.
    pub(crate) fn definition(&self, workspace: Workspace) -> Serving {
        let Some(stored) = self.get(&definition_key(workspace)) else { return Serving::Itself };
        let made = stored.metadata()["creationTimestamp"].as_str().and_then(unix_seconds);
        let hash = &stored.body()["status"]["boundResources"][0]["schema"]["identityHash"];
        Serving::By(Definition {
            uid: stored.uid.clone(),
            deleting: stored.is_deleting(),
            version: stored.version,
            made_seconds: made,
            identity: hash.as_str().map(identity),
        })
    }

    /// A binding is told under which identity its kind is served.
    pub(crate) fn rebind(&mut self, number: u8) {
        let schema = json!({ "UID": "schema", "identityHash": format!("{}-identity", self.truth.identity) });
        let kind = skiffs();
        let resource = json!({ "group": kind.group(), "resource": kind.resource(), "schema": schema });
        let status = json!({ "status": { "boundResources": [resource] } });
        let _ = self.merge(&key(bound(number), bindings(), BINDING), &status, Part::Status);
    }

    /// The deletion of a definition begins: it says so, and all that it brought goes.
    pub(crate) fn begin_to_undefine(&mut self, workspace: Workspace) {
        self.remove(&definition_key(workspace));
    }

    /// A definition that is being deleted is gone. False as long as something of its kind is there.
    pub(crate) fn undefine(&mut self, workspace: Workspace) -> bool {
        if self.truth.workspace(workspace).kind_dropped && self.holds_any(workspace) {
            return false;
        }
        self.stop_serving_what_is_gone(workspace);
        let key = definition_key(workspace);
        if self.get(&key).is_some_and(|definition| definition.is_deleting()) {
            let _ = self.merge(&key, &json!({ "metadata": { "finalizers": null } }), Part::Whole);
        }
        true
    }

    /// The export gets another identity. What was stored under the old one is shown to nobody, and no event says so.
    pub(crate) fn replace_identity(&mut self) {
        self.truth.identity += 1;
        for number in 0..BOUND {
            let workspace = Workspace::Bound(number);
            if !self.truth.workspace(workspace).dying && !self.truth.workspace(workspace).kind_dropped {
                self.empty(workspace, &skiffs());
                self.truth.workspace_mut(workspace).identity += 1;
            }
        }
        if let Some(center) = self.machines.first_mut() {
            center.compact(center.version());
        }
    }
}

/// What defines the kind of a workspace's sources.
fn definition_key(workspace: Workspace) -> Key {
    match workspace {
        Workspace::Bound(number) => key(bound(number), bindings(), BINDING),
        Workspace::Workload | Workspace::Mailbox => {
            key(cluster_of(workspace), definitions(), &kind_in(workspace).to_string())
        }
    }
}
