//! Namespaces, which take with them what stands in them.

use mailboat_object::key::{ClusterId, Key};
use serde_json::json;

use crate::roles::{NAMESPACES, key, namespaces};
use crate::servers::{Servers, kind_in, source_key, workspace_of};
use crate::truth::Ending;

impl Servers {
    /// Whoever makes an object sees to it that its namespace is there. One that is going stays so.
    pub(crate) fn make_namespace(&mut self, object: &Key) {
        let namespace = key(object.cluster.clone(), namespaces(), &object.namespace);
        if self.get(&namespace).is_none() {
            let name = namespace.name.as_str();
            let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            self.by_user(&namespace, &body, &json!({}));
        }
    }

    /// Somebody deletes a namespace: it is marked, and emptied a moment later. True if it was there.
    pub(crate) fn drop_namespace(&mut self, cluster: ClusterId, number: u8) -> bool {
        let name = NAMESPACES[usize::from(number) % NAMESPACES.len()];
        self.remove(&key(cluster, namespaces(), name))
    }

    /// What the namespace controller does: all that stands in namespaces that are going goes, and then they do. False if
    /// their objects' kind is not served just now: nothing goes then. The same while something in them waits for its copies.
    pub(crate) fn empty_namespaces(&mut self, cluster: &ClusterId) -> bool {
        let server = Self::of(cluster);
        let workspace = (server == 0).then(|| workspace_of(cluster));
        if let Some(workspace) = workspace {
            let state = self.truth.workspace(workspace);
            let kind = self.machines.first().and_then(|center| center.kind(cluster, &kind_in(workspace)));
            if state.gone || (kind.is_none() && !state.kind_dropped) {
                return state.gone;
            }
        }
        self.act(server, |machine, moment| machine.empty_namespaces(cluster, moment));
        if let Some(workspace) = workspace {
            // Whoever deletes a namespace means all that is in it.
            for name in self.truth.present_sources(workspace) {
                let key = source_key(workspace, &name);
                if self.get(&key).is_none() || self.is_going(&key) {
                    self.truth.source_gone(workspace, &name, Ending::ByUser);
                }
            }
            return !self.holds_namespaces(cluster);
        }
        let foreign = self.truth.foreign.keys().filter(|key| key.cluster == *cluster);
        let gone: Vec<Key> = foreign.filter(|key| self.get(key).is_none()).cloned().collect();
        for key in gone {
            self.truth.foreign.remove(&key);
        }
        true
    }
}
