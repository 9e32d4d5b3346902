//! What binds workspaces to the export whose view shows them.

use mailboat_object::wire::Part;
use serde_json::json;

use crate::roles::{bindings, bound, key, skiffs};
use crate::script::{BOUND, Workspace};
use crate::servers::Servers;

/// The name of every workspace's binding.
const BINDING: &str = "export";
/// What kcp waits for before a binding is gone: that everything that it brought is.
const FINALIZER: &str = "apis.kcp.io/apibinding-finalizer";

impl Servers {
    /// A workspace binds the export.
    pub(crate) fn bind(&mut self, number: u8) {
        let binding = key(bound(number), bindings(), BINDING);
        let body = json!({
            "apiVersion": "apis.kcp.io/v1", "kind": "APIBinding",
            "metadata": { "name": BINDING, "finalizers": [FINALIZER] },
        });
        self.by_user(&binding, &body, &json!({}));
        self.rebind(number);
    }

    /// A binding is told under which identity its kind is served.
    pub(crate) fn rebind(&mut self, number: u8) {
        let schema = json!({ "UID": "schema", "identityHash": format!("identity-{}", self.truth.identity) });
        let kind = skiffs();
        let resource = json!({ "group": kind.group(), "resource": kind.resource(), "schema": schema });
        let status = json!({ "status": { "boundResources": [resource] } });
        let _ = self.merge(&key(bound(number), bindings(), BINDING), &status, Part::Status);
    }

    /// The deletion of a binding begins: it says so, and all that it brought goes.
    pub(crate) fn begin_to_unbind(&mut self, workspace: Workspace) {
        if let Workspace::Bound(number) = workspace {
            self.remove(&key(bound(number), bindings(), BINDING));
        }
    }

    /// A binding that is being deleted is gone.
    pub(crate) fn unbind(&mut self, workspace: Workspace) {
        if let Workspace::Bound(number) = workspace {
            let binding = key(bound(number), bindings(), BINDING);
            if self.get(&binding).is_some_and(|binding| binding.is_deleting()) {
                let _ = self.merge(&binding, &json!({ "metadata": { "finalizers": null } }), Part::Whole);
            }
        }
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
