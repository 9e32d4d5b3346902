//! The first look at what is stored: who is bound to what, what every workspace serves, and where it is reached.
//!
//! Ten thousand mailboxes have the same few bindings. What came of one that was looked into is remembered by what it
//! says, and holds for all that say the same, which go on resting.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use mailboat_machinery::{Kind, Kinds, Machine, Marks, Moment, Status, Stored};
use mailboat_object::{ClusterId, Key, KindId};
use xxhash_rust::xxh3::Xxh3;

use super::index::{self, Reference};
use super::{ROOT, Round, Workspaces, binding, export, tree, types};

/// What bindings say, and what came of them.
#[derive(Default)]
struct Known {
    /// By digests of spec and status.
    numbers: HashMap<u128, usize>,
    bindings: Vec<Followed>,
    /// By the bindings of a workspace.
    alike: BTreeMap<Vec<usize>, Alike>,
}

/// What workspaces with the same bindings have in common.
struct Alike {
    marks: Arc<Marks>,
    /// What those serve that define no kinds of their own.
    kinds: Option<Arc<Kinds>>,
}

/// What came of a binding in which nothing had to be changed.
struct Followed {
    reference: Reference,
    export: Key,
    kinds: Vec<Arc<Kind>>,
}

impl Workspaces {
    /// Begins with what is stored: what follows from it, and that there is a root.
    pub fn begin(&self, machine: &mut Machine, moment: &mut Moment<'_>) -> Result<(), Status> {
        let clusters: Vec<ClusterId> = machine.clusters().cloned().collect();
        for cluster in &clusters {
            machine.follow_definitions(cluster, moment);
        }
        let root = ClusterId::new(ROOT);
        let mut round = Round { workspaces: self, machine, moment };
        if !clusters.contains(&root) {
            round.found(&root, ROOT, "root:root", None)?;
        }
        round.found_types()?;
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
                    self.index_mut().note_emptying(&workspace.key, true);
                }
                // It may be reached otherwise than before.
                if !self.is_reached(&workspace) {
                    round.tell_address(&workspace);
                }
            }
            for of in round.all(cluster, &types::kind()) {
                round.follow_type(&of);
            }
            for export in round.all(cluster, &export::kind()) {
                round.follow_export(&export);
                round.follow_slices_of(&export);
            }
        }
        self.index_mut().was_always_so();
        Ok(())
    }

    /// Whether a workspace is said to be reached where it is.
    fn is_reached(&self, workspace: &Stored) -> bool {
        let told = workspace.text_at(&["spec", "URL"]).unwrap_or_default();
        told.strip_prefix(self.url()).is_some_and(|path| path.starts_with("/clusters/"))
    }
}

impl Round<'_, '_> {
    fn begin_bindings(&mut self, cluster: &ClusterId, known: &mut Known) {
        let bindings = self.all(cluster, &binding::kind());
        let said: Vec<Option<u128>> = bindings.iter().map(|binding| digest(binding)).collect();
        let number = |known: &Known, said: Option<u128>| known.numbers.get(&said?).copied();
        let numbers: Option<Vec<usize>> = said.iter().map(|said| number(known, *said)).collect();
        let served = self.machine.served_kinds(cluster);
        let plain = served.is_some_and(|kinds| Arc::ptr_eq(kinds, &self.workspaces.universal));
        let alike = numbers.as_ref().and_then(|numbers| known.alike.get(numbers));
        // Objects bear what was granted since their bindings were written, together with them. They must be known to
        // before anything is written here, which would take it off them.
        let marks = alike.map_or_else(|| self.marks_of(cluster), |alike| Arc::clone(&alike.marks));
        self.machine.assume_marks(cluster, &marks);
        let kinds = alike.and_then(|alike| alike.kinds.as_ref()).filter(|_| plain);
        if let (Some(kinds), Some(numbers)) = (kinds, &numbers) {
            self.machine.serve_exactly(cluster, kinds);
            for (binding, number) in bindings.iter().zip(numbers) {
                self.note_bound(binding, &known.bindings[*number]);
            }
            return;
        }
        let mut numbers = Vec::new();
        let mut all_followed = true;
        for (binding, said) in bindings.iter().zip(said) {
            if let Some(number) = number(known, said) {
                self.take_over(binding, &known.bindings[number]);
                numbers.push(number);
                continue;
            }
            match (self.look_into(binding), said) {
                (Some(followed), Some(said)) => {
                    known.numbers.insert(said, known.bindings.len());
                    numbers.push(known.bindings.len());
                    known.bindings.push(followed);
                }
                _ => all_followed = false,
            }
        }
        if all_followed {
            let kinds = self.machine.served_kinds(cluster).filter(|_| plain).map(Arc::clone);
            known.alike.insert(numbers, Alike { marks, kinds });
        } else {
            self.follow_claims(cluster);
        }
    }

    fn take_over(&mut self, binding: &Stored, followed: &Followed) {
        self.note_bound(binding, followed);
        self.machine.serve(&binding.key.cluster, followed.kinds.iter().cloned());
    }

    fn note_bound(&self, binding: &Stored, followed: &Followed) {
        let at = self.machine.version();
        let mut index = self.workspaces.index_mut();
        index.note_reference(followed.reference.clone(), &binding.key);
        let kinds: Vec<KindId> = followed.kinds.iter().map(|kind| kind.id.clone()).collect();
        index.bind(&binding.key, &followed.export, &kinds, &[], at);
    }

    /// Follows a binding as if it had just been written; none: what came of it does not hold for others.
    fn look_into(&mut self, binding: &Stored) -> Option<Followed> {
        self.workspaces.index_mut().note_binding(binding, true);
        let before = self.machine.version();
        self.follow_binding(binding);
        let reference = index::reference(binding);
        let own = reference.0 == binding.key.cluster.0;
        let whole = binding.body()["status"]["phase"] == "Bound";
        if binding.is_deleting() || own || !whole || self.machine.version() != before {
            return None;
        }
        let export = binding::export_of(self.machine, binding)?;
        let found = self.machine.get(&export).ok()?;
        let kinds = binding::kinds_of(self.workspaces, self.machine, &found);
        Some(Followed { reference, export, kinds: kinds.into_iter().map(|(kind, _)| kind).collect() })
    }
}

/// A digest of what a binding says; none if somebody has looked into it. Since when a condition holds is different in
/// each, and does not matter.
fn digest(binding: &Stored) -> Option<u128> {
    const TIME: &str = "\"lastTransitionTime\":\"";
    let (spec, status) = binding.resting_member("spec").zip(binding.resting_member("status"))?;
    let mut digest = Xxh3::new();
    let mut add = |text: &str| {
        digest.update(&text.len().to_le_bytes());
        digest.update(text.as_bytes());
    };
    add(&spec);
    for (at, part) in status.split(TIME).enumerate() {
        // A time, up to the next quotation mark, and what comes after it.
        add(if at == 0 { part } else { part.split_once('"').map_or("", |(_, rest)| rest) });
    }
    Some(digest.digest128())
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
        let claims = json!([
            { "group": "", "resource": "configmaps", "verbs": ["*"] },
            { "group": "apis.kcp.io", "resource": "apibindings", "verbs": ["*"] },
        ]);
        let export = json!({
            "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": { "name": "boats" },
            "spec": {
                "resources": [{ "group": "example.dev", "name": "boats", "schema": "v1.boats.example.dev",
                    "storage": { "crd": {} } }],
                "permissionClaims": claims,
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
                    "permissionClaims": [
                        { "group": "", "resource": "configmaps", "verbs": ["*"],
                            "state": "Accepted", "selector": { "matchAll": true } },
                        { "group": "apis.kcp.io", "resource": "apibindings", "verbs": ["*"],
                            "state": "Accepted", "selector": { "matchAll": true } },
                    ],
                },
            });
            make(hub, &path, apis("apibindings"), binding).await;
            let map = json!({ "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": "map", "namespace": "default" } });
            make(hub, &path, KindId::new("", "configmaps"), map).await;
        }
    }

    #[test]
    fn bindings_that_differ_in_times_alone_say_the_same() {
        let read = |at: &str, phase: &str| {
            let cluster = mailboat_object::ClusterId::new("one");
            let key = key(&cluster, super::binding::kind(), "", "boats");
            let json = json!({
                "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding",
                "metadata": { "name": "boats", "uid": "u", "resourceVersion": "7" },
                "spec": { "reference": { "export": { "name": "boats" } } },
                "status": { "phase": phase, "conditions": [
                    { "type": "Ready", "status": "True", "lastTransitionTime": at },
                    { "type": "Valid", "status": "True", "lastTransitionTime": at },
                ] },
            });
            let (flavor, mut texts) = (mailboat_machinery::Flavor::Kcp, mailboat_machinery::Texts::default());
            super::Stored::from_record(key, json.to_string().as_bytes(), flavor, &mut texts).unwrap()
        };
        let (one, other) = ("2026-01-01T00:00:00Z", "2026-11-16T12:39:51Z");
        let first = super::digest(&read(one, "Bound"));
        assert!(first.is_some());
        assert_eq!(super::digest(&read(other, "Bound")), first);
        assert_ne!(super::digest(&read(one, "Binding")), first);
        let opened = read(one, "Bound");
        opened.body();
        assert_eq!(super::digest(&opened), None);
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
        assert_eq!(seen(&hub), [(true, 2); 3]);
        drop(hub);
        let again = open(folder.path()).await;
        assert_eq!(seen(&again), [(true, 2); 3]);
        assert_eq!(again.peek(Machine::version), before, "something was written");
    }
}
