//! Workspaces whose roles and bindings are the same share one index of them: ten thousand mailboxes have the same handful.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use mailboat_machinery::Stored;
use mailboat_object::{ClusterId, Name};

use super::workspace::Workspace;
use super::{RESOURCES, Rights};

/// Workspaces with more roles and bindings than this are hardly like any other, and are not compared.
const COMPARED: usize = 64;

/// The indexes that are in use, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct Alike(HashSet<Arc<Workspace>>);

/// What the roles and bindings of a workspace say, as text: what came of it once need not be read again.
type Said = Vec<(&'static str, Name, Name, Vec<Arc<str>>)>;

/// What was read at the start, by what it says.
#[derive(Debug, Default)]
pub struct Reading {
    known: HashMap<Said, Arc<Workspace>>,
}

impl Alike {
    /// The index that is the same as this one.
    pub(super) fn share(&mut self, workspace: Workspace) -> Arc<Workspace> {
        if workspace.len() > COMPARED {
            return Arc::new(workspace);
        }
        if let Some(known) = self.0.get(&workspace) {
            return Arc::clone(known);
        }
        let workspace = Arc::new(workspace);
        self.0.insert(Arc::clone(&workspace));
        workspace
    }

    /// Takes an index back from a workspace that no longer has it, as its own: a copy if others have it.
    pub(super) fn unshare(&mut self, workspace: Arc<Workspace>) -> Workspace {
        // Two: here and in the hand. A large one is not here, and to look for it would be to read all of it: an inventory has two
        // roles and bindings for each of its edges.
        if workspace.len() <= COMPARED && Arc::strong_count(&workspace) <= 2 {
            self.0.remove(&workspace);
        }
        Arc::unwrap_or_clone(workspace)
    }
}

impl Rights {
    /// Takes all roles and bindings of a workspace as they were stored, kind by kind in the order of [`RESOURCES`]. Those
    /// that say the same as another's before are not looked into.
    pub fn read(
        &mut self,
        reading: &mut Reading,
        cluster: &ClusterId,
        objects: &[(&'static str, Arc<Stored>)],
    ) {
        if objects.is_empty() {
            return;
        }
        let said: Option<Said> = objects.iter().map(|(resource, object)| said(resource, object)).collect();
        if let Some(known) = said.as_ref().and_then(|said| reading.known.get(said)) {
            self.workspaces.insert(cluster.clone(), Arc::clone(known));
            return;
        }
        let mut workspace = Workspace::default();
        for (resource, object) in objects {
            workspace.set(resource, &object.key.namespace, &object.key.name, Some(object.body()));
        }
        let workspace = self.alike.share(workspace);
        if let Some(said) = said.filter(|said| said.len() <= COMPARED) {
            reading.known.insert(said, Arc::clone(&workspace));
        }
        self.workspaces.insert(cluster.clone(), workspace);
    }
}

/// What matters of a role or a binding; none if somebody has looked into it.
fn said(resource: &'static str, object: &Stored) -> Option<(&'static str, Name, Name, Vec<Arc<str>>)> {
    debug_assert!(RESOURCES.contains(&resource));
    object.resting_member("metadata")?;
    let members = ["rules", "aggregationRule", "roleRef", "subjects"];
    // What is not there says something as well.
    let texts = members.iter().map(|member| object.resting_member(member).unwrap_or_default()).collect();
    Some((resource, object.key.namespace.clone(), object.key.name.clone(), texts))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn give(rights: &mut Rights, cluster: &str, user: &str) {
        let cluster = ClusterId::new(cluster);
        let role = json!({ "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }] });
        let binding = json!({ "roleRef": { "kind": "ClusterRole", "name": "look" },
            "subjects": [{ "kind": "User", "name": user }] });
        rights.set(&cluster, "clusterroles", "", "look", Some(&role));
        rights.set(&cluster, "clusterrolebindings", "", "look", Some(&binding));
    }

    fn may(rights: &Rights, cluster: &str, user: &str) -> bool {
        let user = crate::access::User::authenticated(user, []);
        let asked = super::super::Asked::Object {
            verb: "get",
            group: "",
            resource: "pods",
            subresource: "",
            namespace: "",
            name: "",
        };
        rights.decide(&ClusterId::new(cluster), &user, &asked).allowed
    }

    #[test]
    fn what_is_the_same_is_kept_once_and_changes_by_itself() {
        let mut rights = Rights::new();
        for number in 0..100 {
            give(&mut rights, &format!("mailbox-{number}"), "alice");
        }
        assert_eq!(rights.alike.0.len(), 1, "what came in between is not kept");
        give(&mut rights, "mailbox-7", "bob");
        assert_eq!(rights.alike.0.len(), 2);
        assert!(may(&rights, "mailbox-7", "bob") && !may(&rights, "mailbox-7", "alice"));
        assert!(may(&rights, "mailbox-8", "alice") && !may(&rights, "mailbox-8", "bob"));
        for number in 0..100 {
            let cluster = ClusterId::new(&format!("mailbox-{number}"));
            rights.set(&cluster, "clusterrolebindings", "", "look", None);
            assert!(!may(&rights, &cluster.0, "alice") && !may(&rights, &cluster.0, "bob"));
            rights.set(&cluster, "clusterroles", "", "look", None);
        }
        assert!(rights.alike.0.is_empty() && rights.workspaces.is_empty());
    }
}
