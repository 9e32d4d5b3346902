//! Sources that wait for their copies, and what cannot go as long as they do.

use std::sync::Arc;

use mailboat_machinery::{ListRequest, Stored};
use mailboat_object::key::{ClusterId, Key};
use mailboat_object::wire::{Call, Part, Verb};
use serde_json::{Value, json};

use crate::roles::{FINALIZER, NAMESPACES, key, namespaces};
use crate::script::Workspace;
use crate::servers::{Servers, cluster_of, kind_in};

impl Servers {
    /// Whether an object is being deleted. Nobody edits it then, or deletes it once more.
    pub(crate) fn is_going(&self, key: &Key) -> bool {
        self.get(key).is_some_and(|object| object.is_deleting())
    }

    /// All sources that stand in a workspace, those that are going among them.
    pub(crate) fn sources_in(&self, workspace: Workspace) -> Vec<Arc<Stored>> {
        let cluster = Some(cluster_of(workspace));
        let request = ListRequest { cluster, kind: kind_in(workspace), ..ListRequest::default() };
        let list = self.machines.first().and_then(|center| center.list(&request).ok());
        list.map(|list| list.items).unwrap_or_default()
    }

    /// Whether something in a workspace waits for its copies.
    pub(crate) fn holds_any(&self, workspace: Workspace) -> bool {
        self.sources_in(workspace).iter().any(|source| source.is_deleting())
    }

    /// Whether a namespace of a cluster cannot go.
    pub(crate) fn holds_namespaces(&self, cluster: &ClusterId) -> bool {
        NAMESPACES.iter().any(|name| self.is_going(&key(cluster.clone(), namespaces(), name)))
    }

    /// A kind that is defined no more is not served, once nothing of it waits for its copies.
    pub(crate) fn stop_serving_what_is_gone(&mut self, workspace: Workspace) {
        if !self.truth.workspace(workspace).kind_dropped || self.holds_any(workspace) {
            return;
        }
        if let Some(center) = self.machines.first_mut() {
            center.stop_serving(&cluster_of(workspace), &kind_in(workspace));
        }
    }

    /// Somebody takes our finalizer off what goes with its kind or its workspace, which is held until then.
    pub(crate) fn wait_no_more(&mut self, workspace: Workspace) {
        let state = self.truth.workspace(workspace);
        if !state.dying && !state.kind_dropped {
            return;
        }
        for source in self.sources_in(workspace).iter().filter(|source| source.is_deleting()) {
            let _ = self.merge(&source.key, &json!({ "metadata": { "finalizers": null } }), Part::Whole);
        }
        self.undefine(workspace);
    }
}

/// Whether an object bears our finalizer.
pub(crate) fn bears_finalizer(object: &Stored) -> bool {
    let finalizers = object.metadata()["finalizers"].as_array();
    finalizers.is_some_and(|finalizers| finalizers.iter().any(|finalizer| finalizer == FINALIZER))
}

/// Whether a call writes the finalizers of an object, and nothing else of it.
pub(crate) fn writes_finalizers_alone(call: &Call) -> bool {
    let Verb::Merge { body, .. } = &call.verb else { return false };
    let Ok(Value::Object(patch)) = serde_json::from_slice(body) else { return false };
    let Some(metadata) = patch.get("metadata").and_then(Value::as_object).filter(|_| patch.len() == 1) else {
        return false;
    };
    let known = ["uid", "resourceVersion", "finalizers"];
    call.part == Part::Whole && metadata.keys().map(String::as_str).all(|member| known.contains(&member))
}
