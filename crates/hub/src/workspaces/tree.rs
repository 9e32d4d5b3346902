//! The tree of workspaces: how one is made, found and taken away.

use mailboat_machinery::{DeleteOptions, Emptied, ListRequest, Machine, Room, Status, Stored};
use mailboat_object::wire::Part;
use mailboat_object::{ClusterId, KindId};
use serde_json::{Value, json};

use super::{ROOT, Round, children, finalizers, has_finalizer, key, types};
use crate::access::rbac;
use crate::keeper;

const FINALIZER: &str = "core.kcp.io/logicalcluster";
/// Holds a LogicalCluster until everything in it is gone.
pub(super) const EMPTIED_FIRST: &str = "core.kcp.io/logicalcluster-deletion";
/// What stays to the end, so that whoever had rights in a workspace can look after what holds it.
const LAST: [&str; 2] = ["clusterroles", "clusterrolebindings"];
/// Who asked for a workspace, as kcp writes it down.
pub(crate) const OWNER: &str = "experimental.tenancy.kcp.io/owner";
pub(super) const PATH: &str = "kcp.io/path";
/// Of which type a cluster's workspace is, as kcp writes it down.
pub(super) const TYPE: &str = "internal.tenancy.kcp.io/type";
/// That of a workspace which nobody was asked about.
const UNIVERSAL: &str = "root:universal";
/// What is said of a workspace that has a place.
pub(super) const SCHEDULED: &str = "WorkspaceScheduled";

pub(crate) fn kind() -> KindId {
    KindId::new("tenancy.kcp.io", "workspaces")
}

pub(crate) fn logical_cluster() -> KindId {
    KindId::new("core.kcp.io", "logicalclusters")
}

/// The cluster that a path such as `root:org:team`, or an id, leads to.
pub(crate) fn resolve(machine: &Machine, reference: &str) -> Option<ClusterId> {
    if !reference.contains(':') && reference != ROOT {
        let id = ClusterId::new(reference);
        return machine.get(&key(&id, logical_cluster(), "", "cluster")).is_ok().then_some(id);
    }
    let mut words = reference.split(':');
    let first = words.next().unwrap_or_default();
    let mut at = ClusterId::new(first);
    machine.get(&key(&at, logical_cluster(), "", "cluster")).ok()?;
    for word in words {
        let workspace = machine.get(&key(&at, kind(), "", word)).ok()?;
        at = ClusterId::new(&workspace.text_at(&["spec", "cluster"])?);
    }
    Some(at)
}

/// The path of a cluster.
pub(super) fn path_of(machine: &Machine, cluster: &ClusterId) -> Option<String> {
    let found = machine.get(&key(cluster, logical_cluster(), "", "cluster")).ok()?;
    found.text_at(&["metadata", "annotations", PATH]).map(std::borrow::Cow::into_owned)
}

/// The path of the topmost workspace in which a cluster stands, below the root: whoever has that has all that stands in it.
pub(crate) fn tenant_of(machine: &Machine, cluster: &ClusterId) -> Option<String> {
    let path = path_of(machine, cluster)?;
    let end = path.match_indices(':').nth(1).map_or(path.len(), |(end, _)| end);
    Some(path[..end].to_owned())
}

/// Whether a cluster was made for a workspace, as the cluster itself says. That the workspace says so proves nothing.
pub(super) fn is_of(cluster: &Stored, workspace: &Stored) -> bool {
    let owner = &cluster.body()["spec"]["owner"];
    owner["uid"] == *workspace.uid.to_string()
        && owner["cluster"] == *workspace.key.cluster.0.as_str()
        && owner["name"] == *workspace.key.name.as_str()
}

impl Round<'_, '_> {
    pub(super) fn follow_workspace(&mut self, workspace: &Stored) {
        if workspace.is_deleting() {
            self.workspaces.index_mut().note_emptying(&workspace.key, true);
            self.empty(workspace);
        } else if workspace.body()["spec"]["cluster"].is_null() {
            self.make(workspace);
        }
    }

    fn make(&mut self, workspace: &Stored) {
        let parent = &workspace.key.cluster;
        let Some(parent_path) = path_of(self.machine, parent) else { return };
        let path = format!("{parent_path}:{}", workspace.key.name);
        let id = ClusterId::new(&self.fresh_id());
        let types = types::types_of(self.machine, workspace);
        let type_name =
            types.last().map_or_else(|| UNIVERSAL.to_owned(), |own| children::qualified(self.machine, own));
        let initializers = types::initializers(&types);
        if self.found(&id, &path, &type_name, Some((workspace, &initializers[..]))).is_err() {
            return;
        }
        self.bind_as_types_say(&id, &types);
        let url = format!("{}/clusters/{path}", self.workspaces.url());
        let mut patch = json!({
            "metadata": { "finalizers": finalizers(workspace, Some(FINALIZER), None) },
            "spec": { "cluster": *id.0, "URL": url },
        });
        if workspace.body()["spec"]["type"].is_null() {
            patch["spec"]["type"] = json!({ "name": "universal", "path": ROOT });
        }
        self.patch(&workspace.key, Part::Whole, &patch);
        let awaited = types::awaited(&initializers);
        let status = types::status(workspace.body(), &awaited, &[SCHEDULED], &self.now());
        self.patch(&workspace.key, Part::Status, &json!({ "status": status }));
    }

    /// Writes down where a workspace is reached now.
    pub(super) fn tell_address(&mut self, workspace: &Stored) {
        let Some(id) = self.cluster_of(workspace) else { return };
        let Some(path) = path_of(self.machine, &id) else { return };
        let url = format!("{}/clusters/{path}", self.workspaces.url());
        self.patch(&workspace.key, Part::Whole, &json!({ "spec": { "URL": url } }));
        let cluster = key(&id, logical_cluster(), "", "cluster");
        self.patch(&cluster, Part::Status, &json!({ "status": { "URL": url } }));
    }

    /// Makes a cluster with what every workspace has.
    pub(super) fn found(
        &mut self,
        id: &ClusterId,
        path: &str,
        type_name: &str,
        of: Option<(&Stored, &[String])>,
    ) -> Result<(), Status> {
        self.machine.serve_exactly(id, &self.workspaces.universal);
        let mut spec = json!({});
        let mut annotations = json!({ PATH: path, TYPE: type_name });
        let mut subject = None;
        let mut awaited = Vec::new();
        if let Some((workspace, initializers)) = of {
            awaited = types::awaited(initializers);
            if !initializers.is_empty() {
                spec["initializers"] = json!(initializers);
            }
            spec["owner"] = json!({
                "apiVersion": "tenancy.kcp.io/v1alpha1", "resource": "workspaces", "name": *workspace.key.name,
                "cluster": *workspace.key.cluster.0, "uid": workspace.uid.to_string(),
            });
            let owner = workspace.metadata()["annotations"][OWNER].as_str();
            if let Some(owner) = owner {
                annotations[OWNER] = owner.into();
            }
            let owner: Option<Value> = owner.and_then(|text| serde_json::from_str(text).ok());
            subject = owner.and_then(|owner| owner["username"].as_str().map(str::to_owned));
        }
        let cluster = json!({
            "apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster",
            "metadata": {
                "name": "cluster", "annotations": annotations, "finalizers": [EMPTIED_FIRST],
            },
            "spec": spec,
        });
        let cluster_key = key(id, logical_cluster(), "", "cluster");
        self.create(&cluster_key, cluster)?;
        let url = format!("{}/clusters/{path}", self.workspaces.url());
        let mut status = json!({ "phase": "Ready", "URL": url });
        if !awaited.is_empty() {
            status["phase"] = types::INITIALIZING.into();
            status["initializers"] = json!(awaited);
        }
        self.patch(&cluster_key, Part::Status, &json!({ "status": status }));
        let namespace = json!({ "metadata": { "name": "default" } });
        self.create(&key(id, KindId::new("", "namespaces"), "", "default"), namespace)?;
        let account = keeper::default_account(id, "default");
        self.create(&account.0, account.1)?;
        if let Some(user) = subject {
            let group = "rbac.authorization.k8s.io";
            let binding = json!({
                "metadata": { "name": "workspace-admin" },
                "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin" },
                "subjects": [{ "apiGroup": group, "kind": "User", "name": user }],
            });
            let name = "workspace-admin";
            self.create(&key(id, KindId::new(group, "clusterrolebindings"), "", name), binding)?;
        }
        Ok(())
    }

    /// A name for a cluster that was never used before.
    fn fresh_id(&mut self) -> String {
        const LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
        let mut id = String::new();
        while id.len() < 16 {
            let mut number = self.moment.random.next();
            for _ in 0..8 {
                // The remainder is below 36.
                id.push(char::from(LETTERS[usize::try_from(number % 36).unwrap_or(0)]));
                number /= 36;
            }
        }
        id
    }

    /// The cluster that was made for a workspace. None: there is none, or it belongs to another.
    fn cluster_of(&self, workspace: &Stored) -> Option<ClusterId> {
        let id = ClusterId::new(workspace.body()["spec"]["cluster"].as_str()?);
        match self.machine.get(&key(&id, logical_cluster(), "", "cluster")) {
            Ok(cluster) if !is_of(&cluster, workspace) => None,
            // What says no more whose it is is what is left of one that was being emptied.
            Ok(_) | Err(_) => Some(id),
        }
    }

    /// Deletes what is in a workspace, and then it. A finalizer in it holds it. A cluster that belongs to another is left
    /// alone, whatever the workspace says: emptying it asks nobody's rights.
    ///
    /// As in kcp the LogicalCluster says first that it goes, so that nobody takes what happens to the objects for the
    /// wish of those who own them. Kinds that are bound or defined go with their bindings and definitions, and what has a
    /// namespace with that.
    fn empty(&mut self, workspace: &Stored) {
        if !has_finalizer(workspace, FINALIZER) {
            return;
        }
        if let Some(id) = self.cluster_of(workspace) {
            self.say_that_it_goes(&id);
            let own =
                self.workspaces.universal.values().filter(|kind| !kind.namespaced && !is_last(&kind.id));
            let kinds: Vec<KindId> = own.map(|kind| kind.id.clone()).collect();
            if self.delete_all(&id, kinds).left {
                self.machine.empty_namespaces(&id, self.moment);
                self.machine.follow_definitions(&id, self.moment);
                return;
            }
            if self.delete_all(&id, LAST.map(|resource| KindId::new(rbac::GROUP, resource))).more {
                return;
            }
            let cluster = key(&id, logical_cluster(), "", "cluster");
            if let Ok(found) = self.machine.get(&cluster) {
                let left = finalizers(&found, None, Some(EMPTIED_FIRST));
                self.patch(&cluster, Part::Whole, &json!({ "metadata": { "finalizers": left } }));
            }
            self.machine.stop_serving_all(&id);
            let at = self.machine.version();
            self.workspaces.index_mut().forget(&id, at);
        }
        self.workspaces.index_mut().note_emptying(&workspace.key, false);
        let patch = json!({ "metadata": { "finalizers": finalizers(workspace, None, Some(FINALIZER)) } });
        self.patch(&workspace.key, Part::Whole, &patch);
    }

    fn say_that_it_goes(&mut self, id: &ClusterId) {
        let at = key(id, logical_cluster(), "", "cluster");
        let Ok(cluster) = self.machine.get(&at) else { return };
        if cluster.is_deleting() {
            return;
        }
        if !has_finalizer(&cluster, EMPTIED_FIRST) {
            let held = finalizers(&cluster, Some(EMPTIED_FIRST), None);
            self.patch(&at, Part::Whole, &json!({ "metadata": { "finalizers": held } }));
        }
        let _ = self.machine.delete(&at, &DeleteOptions::default(), self.moment);
    }

    /// Deletes objects of these kinds, as many as go in one round.
    pub(super) fn delete_all(&mut self, id: &ClusterId, kinds: impl IntoIterator<Item = KindId>) -> Emptied {
        let (mut emptied, mut room) = (Emptied::default(), Room::default());
        for kind in kinds {
            let request = ListRequest { cluster: Some(id.clone()), kind, ..ListRequest::default() };
            emptied |= self.machine.delete_all(&request, &mut room, self.moment);
        }
        emptied
    }
}

/// Whether a kind goes after all others.
fn is_last(kind: &KindId) -> bool {
    *kind == logical_cluster() || (kind.group() == rbac::GROUP && LAST.contains(&kind.resource()))
}

#[cfg(test)]
mod tests {
    use mailboat_machinery::WriteOptions;
    use mailboat_object::Name;

    use super::*;
    use crate::access::TokenFile;
    use crate::storage::Memory;
    use crate::{Hub, Options, workspaces};

    async fn make(hub: &Hub, cluster: &str, kind: KindId, object: Value) {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let key = key(&ClusterId::new(cluster), kind, &namespace, &name);
        let options = WriteOptions { manager: Name::new("test"), ..WriteOptions::default() };
        hub.write(|machine, moment| machine.create(&key, object, &options, moment)).await.unwrap();
    }

    /// What the keeper does, until there is nothing left to do; how much it was.
    async fn tidy(hub: &Hub, cluster: &ClusterId) -> usize {
        let mut done = 0;
        for _ in 0..20 {
            let round = hub.write(|machine, moment| {
                let tidied = hub.tidy_workspaces(machine, cluster, moment);
                Ok(tidied + machine.empty_namespaces(cluster, moment))
            });
            match round.await.unwrap() {
                0 => return done,
                more => done += more,
            }
        }
        panic!("it is never done");
    }

    #[tokio::test]
    async fn a_workspace_that_is_held_says_that_it_goes_and_keeps_its_rights_to_the_end() {
        let options = Options { url: "https://127.0.0.1:6443".to_owned(), tokens: TokenFile::default() };
        let hub = workspaces(Memory::default(), options).await.unwrap().hub;
        let workspace = json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": { "name": "harbor" } });
        make(&hub, ROOT, kind(), workspace).await;
        let id = hub.peek(|machine| resolve(machine, "root:harbor")).unwrap();
        let maps = KindId::new("", "configmaps");
        let map = |name: &str| {
            json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": "default", "finalizers": if name == "held" { json!(["example.com/hold"]) } else { json!(null) } } })
        };
        for name in ["free", "held"] {
            make(&hub, &id.0, maps.clone(), map(name)).await;
        }
        let roles = KindId::new(rbac::GROUP, "clusterroles");
        make(&hub, &id.0, roles.clone(), json!({ "metadata": { "name": "keeper" }, "rules": [] })).await;

        let at = key(&ClusterId::new(ROOT), kind(), "", "harbor");
        hub.write(|machine, moment| machine.delete(&at, &DeleteOptions::default(), moment)).await.unwrap();
        tidy(&hub, &id).await;
        let held = key(&id, maps.clone(), "default", "held");
        let seen = |kind: KindId, namespace: &str, name: &str| {
            hub.peek(|machine| {
                machine.get(&key(&id, kind, namespace, name)).ok().map(|found| found.is_deleting())
            })
        };
        assert_eq!(seen(logical_cluster(), "", "cluster"), Some(true), "it says that it goes");
        assert_eq!(seen(roles.clone(), "", "keeper"), Some(false), "rights stay");
        assert_eq!(seen(maps.clone(), "default", "free"), None);
        assert_eq!(seen(maps.clone(), "default", "held"), Some(true));
        let version = hub.peek(Machine::version);
        assert_eq!(tidy(&hub, &id).await, 0);
        assert_eq!(hub.peek(Machine::version), version, "waiting writes nothing");

        let free = json!({ "metadata": { "finalizers": null } });
        let options = WriteOptions { manager: Name::new("test"), ..WriteOptions::default() };
        hub.write(|machine, moment| {
            machine.patch(&held, mailboat_machinery::Patch::Merge(&free), &options, moment)
        })
        .await
        .unwrap();
        tidy(&hub, &id).await;
        assert_eq!(seen(roles, "", "keeper"), None);
        assert!(hub.peek(|machine| machine.get(&at).is_err()), "the workspace is gone");
        assert!(hub.peek(|machine| resolve(machine, &id.0)).is_none());
    }
}
