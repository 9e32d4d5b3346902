//! Types of workspaces: what a new workspace gets by its type and by the types that this one extends, and who has to agree
//! before it is ready.
//!
//! As in kcp, a type with `initializer: true` holds every new workspace of it in the phase `Initializing`, until whoever
//! initializes such workspaces takes the type's name off `status.initializers` of the LogicalCluster.

use std::collections::HashSet;
use std::sync::Arc;

use mailboat_machinery::{Machine, Status, Stored};
use mailboat_object::wire::Part;
use mailboat_object::{ClusterId, Key, KindId, Name};
use serde_json::{Value, json};

use super::tree::{self, resolve};
use super::{ROOT, Round, children, conditions, key};

/// Stands among the initializers of a workspace whose type brings bindings. Here these are made with the workspace.
const BINDINGS: &str = "system:apibindings";
pub(super) const INITIALIZING: &str = "Initializing";
const READY: &str = "Ready";
const INITIALIZED: &str = "WorkspaceInitialized";

pub(crate) fn kind() -> KindId {
    KindId::new("tenancy.kcp.io", "workspacetypes")
}

/// The type of a workspace and those that it extends, these first.
pub(super) fn types_of(machine: &Machine, workspace: &Stored) -> Vec<Arc<Stored>> {
    let named = find(machine, &workspace.body()["spec"]["type"], &workspace.key.cluster);
    named.and_then(|own| with_extended(machine, &own)).unwrap_or_default()
}

/// A type and those that it extends, these first; or which of them there is not.
pub(super) fn with_extended(machine: &Machine, own: &Arc<Stored>) -> Result<Vec<Arc<Stored>>, String> {
    let mut found = Vec::new();
    extended(machine, own, &mut HashSet::from([own.key.clone()]), &mut found)?;
    found.push(Arc::clone(own));
    Ok(found)
}

fn extended(
    machine: &Machine,
    of: &Stored,
    seen: &mut HashSet<Key>,
    found: &mut Vec<Arc<Stored>>,
) -> Result<(), String> {
    for wider in of.body()["spec"]["extend"]["with"].as_array().into_iter().flatten() {
        let missing = || format!("unable to find inherited workspace type {}", told(wider));
        let wider = at(machine, wider, &of.key.cluster).ok_or_else(missing)?;
        // Types that extend each other in a circle are all there is of them.
        if !seen.insert(wider.key.clone()) {
            continue;
        }
        found.push(Arc::clone(&wider));
        extended(machine, &wider, seen, found)?;
    }
    Ok(())
}

/// The exports of other workspaces to which every new workspace of a type is bound, each by the path of its workspace and its
/// name. One without a path is the new workspace's own.
pub(crate) fn default_exports(of: &Value) -> impl Iterator<Item = (&str, &str)> {
    let bindings = of["spec"]["defaultAPIBindings"].as_array().into_iter().flatten();
    bindings.filter_map(|binding| {
        let path = binding["path"].as_str().filter(|path| !path.is_empty())?;
        Some((path, binding["export"].as_str()?))
    })
}

/// The type that a reference in a cluster means: where it says so, else the nearest on the way up to the root.
pub(super) fn find(machine: &Machine, reference: &Value, from: &ClusterId) -> Result<Arc<Stored>, String> {
    if reference["path"].as_str().is_some_and(|path| !path.is_empty()) {
        return at(machine, reference, from).ok_or_else(|| children::missing(reference));
    }
    let path = tree::path_of(machine, from).unwrap_or_default();
    let mut path = path.as_str();
    loop {
        let here = resolve(machine, path).and_then(|cluster| at(machine, reference, &cluster));
        match (here, path.rsplit_once(':')) {
            (Some(found), _) => return Ok(found),
            (None, Some((parent, _))) => path = parent,
            (None, None) if path != ROOT => path = ROOT,
            (None, None) => return Err(format!("workspace type {:?} cannot be resolved", told(reference))),
        }
    }
}

fn at(machine: &Machine, reference: &Value, beside: &ClusterId) -> Option<Arc<Stored>> {
    let at = match reference["path"].as_str() {
        None | Some("") => beside.clone(),
        Some(path) => resolve(machine, path)?,
    };
    machine.get(&key(&at, kind(), "", reference["name"].as_str()?)).ok()
}

/// The type of the workspace that a cluster belongs to.
pub(super) fn of_cluster(machine: &Machine, cluster: &ClusterId) -> Option<Arc<Stored>> {
    if *cluster.0 == *ROOT {
        return machine.get(&key(cluster, kind(), "", ROOT)).ok();
    }
    let found = machine.get(&key(cluster, tree::logical_cluster(), "", "cluster")).ok()?;
    let owner = &found.body()["spec"]["owner"];
    let parent = ClusterId::new(owner["cluster"].as_str()?);
    let workspace = machine.get(&key(&parent, tree::kind(), "", owner["name"].as_str()?)).ok()?;
    find(machine, &workspace.body()["spec"]["type"], &parent).ok()
}

/// A reference to a type or an export, in one word.
pub(crate) fn told(reference: &Value) -> String {
    let text = |member: &str| reference[member].as_str().unwrap_or_default();
    let (path, name) = (text("path"), text("name"));
    if path.is_empty() { name.to_owned() } else { format!("{path}:{name}") }
}

/// Who has to agree before a workspace of these types is ready.
pub(super) fn initializers(types: &[Arc<Stored>]) -> Vec<String> {
    let own = types.iter().filter(|of| of.body()["spec"]["initializer"] == true);
    let mut all: Vec<String> = own.map(|of| format!("{}:{}", of.key.cluster.0, of.key.name)).collect();
    let binds = |of: &Arc<Stored>| {
        of.body()["spec"]["defaultAPIBindings"].as_array().is_some_and(|bindings| !bindings.is_empty())
    };
    if types.iter().any(binds) {
        all.push(BINDINGS.to_owned());
    }
    all
}

/// Those of them who are still waited for once the workspace is made.
pub(super) fn awaited(initializers: &[String]) -> Vec<String> {
    initializers.iter().filter(|one| *one != BINDINGS).cloned().collect()
}

/// What a Workspace says of how far it is, and its LogicalCluster likewise.
pub(super) fn status(present: &Value, awaited: &[String], more: &[&str], now: &str) -> Value {
    let left = format!("Initializers still exist: [{}]", awaited.join(" "));
    let mut wanted: Vec<(&str, bool, &str, &str)> = more.iter().map(|what| (*what, true, "", "")).collect();
    wanted.push((INITIALIZED, awaited.is_empty(), "InitializerExists", &left));
    let mut conditions = conditions(present, &wanted, now);
    for condition in conditions.as_array_mut().into_iter().flatten() {
        if condition.get("severity").is_some() {
            // It is how things go.
            condition["severity"] = "Info".into();
        }
    }
    let (phase, awaited) =
        if awaited.is_empty() { (READY, Value::Null) } else { (INITIALIZING, json!(awaited)) };
    json!({ "phase": phase, "initializers": awaited, "conditions": conditions })
}

impl Round<'_, '_> {
    /// Makes the bindings that a new workspace has by its types.
    pub(super) fn bind_as_types_say(&mut self, id: &ClusterId, types: &[Arc<Stored>]) {
        for binding in
            types.iter().rev().filter_map(|of| of.body()["spec"]["defaultAPIBindings"].as_array()).flatten()
        {
            let Some(export) = binding["export"].as_str() else { continue };
            let object = json!({
                "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": { "name": export },
                "spec": { "reference": { "export": { "path": binding["path"], "name": export } } },
            });
            // Two types may bring the same one.
            let _ = self.create(&key(id, super::binding::kind(), "", export), object);
        }
    }

    /// A workspace is ready when nobody is waited for any more; until then it says who is.
    pub(super) fn follow_initializing(&mut self, cluster: &Stored) {
        let body = cluster.body();
        if body["status"]["phase"] != INITIALIZING || cluster.is_deleting() {
            return;
        }
        let awaited = texts(&body["status"]["initializers"]);
        let now = self.now();
        let mut said = json!({ "status": status(body, &awaited, &[], &now) });
        if let Value::Object(members) = &mut said["status"] {
            // They stay as whoever took off the last one wrote them.
            members.remove("initializers");
        }
        self.patch(&cluster.key, Part::Status, &said);
        let owner = &body["spec"]["owner"];
        let (Some(parent), Some(name)) = (owner["cluster"].as_str(), owner["name"].as_str()) else { return };
        let Ok(workspace) = self.machine.get(&key(&ClusterId::new(parent), tree::kind(), "", name)) else {
            return;
        };
        if !tree::is_of(cluster, &workspace) {
            return;
        }
        let said = json!({ "status": status(workspace.body(), &awaited, &[tree::SCHEDULED], &now) });
        self.patch(&workspace.key, Part::Status, &said);
    }
}

/// How far a LogicalCluster is, in the order in which it gets there.
const PHASES: [&str; 4] = ["", "Scheduling", INITIALIZING, READY];

/// Refuses what nobody but the server may do to a LogicalCluster: say for whom it was made and where it stands, what has to come
/// before it is ready and before it is gone, or send it back to an earlier phase.
pub(crate) fn check(before: &Value, after: &Value, kind: &KindId, name: &Name) -> Result<(), Status> {
    let refused = |why: &str| Err(Status::forbidden(kind, name, why));
    let [was, is] = [before, after].map(|of| texts(&of["status"]["initializers"]));
    let [former, phase] = [before, after].map(|of| of["status"]["phase"].as_str().unwrap_or_default());
    let initializing = phase == INITIALIZING;
    for member in ["initializers", "owner", "directlyDeletable"] {
        if before["spec"][member] != after["spec"][member] {
            return refused(&format!("spec.{member} is immutable"));
        }
    }
    for annotation in [tree::PATH, tree::TYPE, tree::OWNER] {
        let [was, is] = [before, after].map(|of| &of["metadata"]["annotations"][annotation]);
        if was != is {
            return refused(&format!("modification of reserved annotation: {annotation:?}"));
        }
    }
    let held = |of: &Value| texts(&of["metadata"]["finalizers"]).iter().any(|one| one == tree::EMPTIED_FIRST);
    if held(before) && !held(after) {
        return refused(&format!("removal of reserved finalizer: {:?}", tree::EMPTIED_FIRST));
    }
    if initializing && is.iter().any(|one| !was.contains(one)) {
        return refused("status.initializers must not grow");
    }
    if !initializing && was != is {
        return refused("status.initializers is immutable after initialization");
    }
    if former == INITIALIZING && !initializing && !is.is_empty() {
        return refused("status.initializers is not empty");
    }
    let place = |phase: &str| PHASES.iter().position(|one| *one == phase).unwrap_or(PHASES.len());
    if place(former) > place(phase) {
        return refused(&format!("cannot transition from {former:?} to {phase:?}"));
    }
    Ok(())
}

pub(super) fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use mailboat_machinery::{Patch, WriteOptions};

    use super::*;
    use crate::storage::Memory;
    use crate::workspaces::{ROOT, logical_cluster};
    use crate::{Hub, Options, workspaces};

    async fn make(hub: &Hub, resource: &str, object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let key = key(&ClusterId::new(ROOT), KindId::new("tenancy.kcp.io", resource), "", &name);
        let options = WriteOptions { manager: Name::new("test"), ..WriteOptions::default() };
        hub.write(|machine, moment| machine.create(&key, object, &options, moment)).await.unwrap();
    }

    #[tokio::test]
    async fn a_workspace_waits_for_all_who_prepare_it() {
        let options = Options { url: "https://127.0.0.1:6443".to_owned(), ..Options::default() };
        let hub = workspaces(Memory::default(), options).await.unwrap().hub;
        let a_type = |name: &str, wider: Value| {
            json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": { "name": name },
                "spec": { "initializer": true, "extend": { "with": wider } } })
        };
        make(&hub, "workspacetypes", a_type("wide", json!([]))).await;
        let wider = json!([{ "name": "wide", "path": "root" }, { "name": "universal", "path": "root" }]);
        make(&hub, "workspacetypes", a_type("narrow", wider)).await;
        let workspace = json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace",
            "metadata": { "name": "harbor" }, "spec": { "type": { "name": "narrow", "path": "root" } } });
        make(&hub, "workspaces", workspace).await;
        let cluster = hub.peek(|machine| resolve(machine, "root:harbor")).unwrap();
        let cluster = key(&cluster, logical_cluster(), "", "cluster");
        let workspace = key(&ClusterId::new(ROOT), tree::kind(), "", "harbor");
        let seen = |at: &Key| hub.peek(|machine| machine.get(at).unwrap().body()["status"].clone());
        for at in [&cluster, &workspace] {
            assert_eq!(seen(at)["phase"], INITIALIZING);
            assert_eq!(seen(at)["initializers"], json!(["root:wide", "root:narrow"]), "{at}");
        }
        let options = WriteOptions { part: Part::Status, ..WriteOptions::default() };
        for (left, phase) in [(json!(["root:narrow"]), INITIALIZING), (json!([]), READY)] {
            let patch = json!({ "status": { "initializers": left } });
            hub.write(|machine, moment| machine.patch(&cluster, Patch::Merge(&patch), &options, moment))
                .await
                .unwrap();
            for at in [&cluster, &workspace] {
                assert_eq!(seen(at)["phase"], phase, "{at} waits for {left}");
            }
        }
        let condition = &seen(&workspace)["conditions"][0];
        assert_eq!((&condition["type"], &condition["status"]), (&json!(INITIALIZED), &json!("True")));
    }

    #[test]
    fn nobody_adds_initializers_or_changes_them_afterwards() {
        let of = |spec: Value, status: Value, phase: &str| json!({ "spec": { "initializers": spec }, "status": { "initializers": status, "phase": phase } });
        let before = of(json!(["a", "b"]), json!(["a", "b"]), INITIALIZING);
        let refused = |before: &Value, after: &Value| {
            check(before, after, &logical_cluster(), &Name::new("cluster"))
                .err()
                .map(|status| status.to_string())
        };
        assert_eq!(refused(&before, &of(json!(["a", "b"]), json!(["b"]), INITIALIZING)), None);
        let grown = of(json!(["a", "b"]), json!(["a", "b", "c"]), INITIALIZING);
        assert!(refused(&before, &grown).unwrap().ends_with("status.initializers must not grow"));
        let other = of(json!(["a"]), json!(["a", "b"]), INITIALIZING);
        assert!(refused(&before, &other).unwrap().ends_with("spec.initializers is immutable"));
        let ready = of(json!(["a", "b"]), json!([]), READY);
        let again = of(json!(["a", "b"]), json!(["a"]), READY);
        assert!(refused(&ready, &again).unwrap().ends_with("immutable after initialization"));
    }
}
