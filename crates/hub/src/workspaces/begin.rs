//! The first look at what is stored: who is bound to what, what every workspace serves, and where it is reached.
//!
//! Ten thousand mailboxes have the same few bindings. What came of one that was looked into is remembered by what it
//! says, and holds for all that say the same, which go on resting.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use mailboat_machinery::{Kind, Machine, Marks, Moment, Status, Stored};
use mailboat_object::{ClusterId, Key};

use super::index::{self, Reference};
use super::{ROOT, Round, Workspaces, binding, export, tree};

/// What bindings say, and what came of them.
#[derive(Default)]
struct Known {
    /// By spec and status.
    numbers: HashMap<(Arc<str>, Arc<str>), usize>,
    bindings: Vec<Followed>,
    /// By the bindings of a workspace.
    marks: BTreeMap<Vec<usize>, Arc<Marks>>,
}

/// What came of a binding in which nothing had to be changed.
struct Followed {
    reference: Reference,
    export: Key,
    kinds: Vec<Arc<Kind>>,
}

impl Workspaces {
    /// Begins with what is stored: what follows from it, and that there is a root.
    pub(crate) fn begin(&self, machine: &mut Machine, moment: &mut Moment<'_>) -> Result<(), Status> {
        let clusters: Vec<ClusterId> = machine.clusters().cloned().collect();
        for cluster in &clusters {
            machine.follow_definitions(cluster, moment);
        }
        let root = ClusterId::new(ROOT);
        let mut round = Round { workspaces: self, machine, moment };
        if !clusters.contains(&root) {
            round.found(&root, ROOT, None)?;
        }
        let mut known = Known::default();
        for cluster in &clusters {
            for slice in round.all(cluster, &export::slices()) {
                self.index_mut().note_slice(&slice, true);
            }
            round.begin_bindings(cluster, &mut known);
        }
        for cluster in &clusters {
            for workspace in round.all(cluster, &tree::kind()) {
                if workspace.is_deleting() {
                    self.index_mut().emptying.insert(workspace.key.clone());
                }
                // It may be reached otherwise than before.
                if !self.is_reached(&workspace) {
                    round.tell_address(&workspace);
                }
            }
            for export in round.all(cluster, &export::kind()) {
                round.follow_export(&export);
                round.follow_slices_of(&export);
            }
        }
        Ok(())
    }

    /// Whether a workspace is said to be reached where it is.
    fn is_reached(&self, workspace: &Stored) -> bool {
        let told = workspace.body()["spec"]["URL"].as_str().unwrap_or_default();
        told.strip_prefix(self.url()).is_some_and(|path| path.starts_with("/clusters/"))
    }
}

impl Round<'_, '_> {
    fn begin_bindings(&mut self, cluster: &ClusterId, known: &mut Known) {
        let mut numbers = Vec::new();
        let mut looked_into = false;
        for binding in self.all(cluster, &binding::kind()) {
            let says = binding.resting_member("spec").zip(binding.resting_member("status"));
            if let Some(number) = says.as_ref().and_then(|says| known.numbers.get(says)).copied() {
                self.take_over(&binding, &known.bindings[number]);
                numbers.push(number);
                continue;
            }
            looked_into = true;
            if let (Some(followed), Some(says)) = (self.look_into(&binding), says) {
                known.numbers.insert(says, known.bindings.len());
                numbers.push(known.bindings.len());
                known.bindings.push(followed);
            }
        }
        // Objects bear what was granted since their bindings were written, together with them.
        if let Some(marks) = known.marks.get(&numbers).filter(|_| !looked_into) {
            self.machine.assume_marks(cluster, marks);
        } else {
            let marks = self.follow_claims(cluster);
            known.marks.insert(numbers, marks);
        }
    }

    fn take_over(&mut self, binding: &Stored, followed: &Followed) {
        let cluster = &binding.key.cluster;
        let mut index = self.workspaces.index_mut();
        index.note_reference(followed.reference.clone(), &binding.key);
        index.bind(cluster, &followed.export);
        drop(index);
        self.machine.serve(cluster, followed.kinds.iter().cloned());
    }

    /// Follows a binding as if it had just been written; none: what came of it does not hold for others.
    fn look_into(&mut self, binding: &Stored) -> Option<Followed> {
        self.workspaces.index_mut().note_binding(binding, true);
        let before = self.machine.version();
        self.follow_binding(binding);
        let reference = index::reference(binding);
        let own = reference.0 == binding.key.cluster.0;
        if binding.is_deleting() || own || self.machine.version() != before {
            return None;
        }
        let export = binding::export_of(self.machine, binding)?;
        let found = self.machine.get(&export).ok()?;
        let kinds = binding::kinds_of(self.workspaces, self.machine, &found);
        Some(Followed { reference, export, kinds: kinds.into_iter().map(|(kind, _)| kind).collect() })
    }
}

#[cfg(test)]
mod tests {
    use mailboat_machinery::{Machine, Marks, WriteOptions};
    use mailboat_object::{KindId, Name};
    use serde_json::{Value, json};

    use super::super::{key, resolve};
    use crate::storage::Disk;
    use crate::{Hub, Options, workspaces};

    const MAILBOXES: [&str; 3] = ["one", "two", "three"];

    async fn open(folder: &std::path::Path) -> Hub {
        let options = Options { url: "https://127.0.0.1:6443".to_owned(), ..Options::default() };
        workspaces(Disk::open(folder).unwrap(), options).await.unwrap().hub
    }

    async fn make(hub: &Hub, path: &str, kind: KindId, object: Value) {
        let cluster = hub.peek(|machine| resolve(machine, path)).unwrap();
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        let key = key(&cluster, kind, &namespace, object["metadata"]["name"].as_str().unwrap());
        let options = WriteOptions { manager: Name::new("test"), ..WriteOptions::default() };
        hub.write(|machine, moment| machine.create(&key, object, &options, moment)).await.unwrap();
    }

    async fn furnish(hub: &Hub) {
        let apis = |resource| KindId::new("apis.kcp.io", resource);
        let workspace = |name: &str| json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": { "name": name } });
        make(hub, "root", super::tree::kind(), workspace("provider")).await;
        let schema = json!({
            "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema",
            "metadata": { "name": "v1.boats.example.dev" },
            "spec": {
                "group": "example.dev", "scope": "Namespaced",
                "names": { "plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList" },
                "versions": [{ "name": "v1", "served": true, "storage": true,
                    "schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } }],
            },
        });
        make(hub, "root:provider", apis("apiresourceschemas"), schema).await;
        let claim = json!({ "group": "", "resource": "configmaps", "verbs": ["*"] });
        let export = json!({
            "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": { "name": "boats" },
            "spec": {
                "resources": [{ "group": "example.dev", "name": "boats", "schema": "v1.boats.example.dev",
                    "storage": { "crd": {} } }],
                "permissionClaims": [claim],
            },
        });
        make(hub, "root:provider", apis("apiexports"), export).await;
        for name in MAILBOXES {
            make(hub, "root", super::tree::kind(), workspace(name)).await;
            let path = format!("root:{name}");
            let binding = json!({
                "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": { "name": "boats" },
                "spec": {
                    "reference": { "export": { "path": "root:provider", "name": "boats" } },
                    "permissionClaims": [{ "group": "", "resource": "configmaps", "verbs": ["*"],
                        "state": "Accepted", "selector": { "matchAll": true } }],
                },
            });
            make(hub, &path, apis("apibindings"), binding).await;
            let map = json!({ "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": "map", "namespace": "default" } });
            make(hub, &path, KindId::new("", "configmaps"), map).await;
        }
    }

    #[tokio::test]
    async fn after_a_restart_every_workspace_serves_what_it_did_and_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let hub = open(folder.path()).await;
        furnish(&hub).await;
        let before = hub.peek(Machine::version);
        let seen = |hub: &Hub| {
            hub.peek(|machine| {
                MAILBOXES.map(|name| {
                    let cluster = resolve(machine, &format!("root:{name}")).unwrap();
                    let served = machine.kind(&cluster, &KindId::new("example.dev", "boats")).is_some();
                    (served, machine.marks(&cluster).map_or(0, Marks::len))
                })
            })
        };
        assert_eq!(seen(&hub), [(true, 1); 3]);
        drop(hub);
        let again = open(folder.path()).await;
        assert_eq!(seen(&again), [(true, 1); 3]);
        assert_eq!(again.peek(Machine::version), before, "something was written");
    }
}
