//! Workspaces that wait for whoever prepares those of their type: he sees them, enters each as the one who asked for it, and
//! takes his own name off what it waits for.
//!
//! As in kcp this is a view of its own, `/services/initializingworkspaces/<cluster of the type>:<type>`. It is open to
//! those who may `initialize` the type, and shows a workspace only as long as that waits for them.

use mailboat_machinery::{FieldError, Machine, Status, Stored};
use mailboat_object::wire::Part;
use mailboat_object::{ClusterId, Key, KindId, Name};
use serde_json::{Value, json};

use super::tree::{self, OWNER};
use super::{Round, conditions, key, types};
use crate::access::User;
use crate::access::user::is_special;

/// How paths into such views begin.
pub(crate) const PREFIX: &str = "/services/initializingworkspaces/";
/// What may be done with a LogicalCluster there, and with which part of it.
const ONE: [(&str, &str); 4] = [("get", ""), ("get", "status"), ("update", "status"), ("patch", "status")];
const ALL: [(&str, &str); 2] = [("list", ""), ("watch", "")];

/// The view of those who prepare the workspaces of one type.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// The type.
    pub of: Key,
    /// The type's name among what a workspace waits for.
    pub initializer: Name,
}

impl Waiting {
    /// The view of an initializer; none: nobody can be called so.
    pub(crate) fn of(initializer: &str) -> Option<Self> {
        let (cluster, name) = initializer.rsplit_once(':')?;
        let of = key(&ClusterId::new(cluster), types::kind(), "", name);
        Some(Self { of, initializer: Name::new(initializer) })
    }

    /// Whether something of it is asked for, and not something in a workspace that it shows.
    pub(crate) fn shows(kind: &KindId) -> bool {
        *kind == tree::logical_cluster()
    }

    /// Whether this can be done there at all, with one workspace or all of them.
    pub(crate) fn allows(one: bool, kind: &KindId, verb: &str, subresource: &str) -> bool {
        let known: &[(&str, &str)] = if one { &ONE } else { &ALL };
        Self::shows(kind) && known.contains(&(verb, subresource))
    }

    /// Who asked for a workspace that waits: in his name it is prepared.
    pub(crate) fn owner(&self, machine: &Machine, cluster: &ClusterId) -> Option<User> {
        let found = machine.get(&key(cluster, tree::logical_cluster(), "", "cluster")).ok()?;
        if !is_awaited(&found, &self.initializer) {
            return None;
        }
        let told: Value = serde_json::from_str(found.metadata()["annotations"][OWNER].as_str()?).ok()?;
        Some(User {
            name: told["username"].as_str()?.to_owned(),
            uid: told["uid"].as_str().unwrap_or_default().to_owned(),
            // What he is everywhere he lends to nobody: whoever prepares workspaces would rule all of them.
            groups: types::texts(&told["groups"]).into_iter().filter(|group| !is_special(group)).collect(),
            extra: serde_json::from_value(told["extra"].clone()).unwrap_or_default(),
        })
    }

    /// Refuses whatever is not to take this one off what a workspace waits for.
    pub(crate) fn check(&self, before: &Value, after: &Value, name: &Name) -> Result<(), Status> {
        let [was, is] = [before, after].map(|of| types::texts(&of["status"]["initializers"]));
        if was.len() == is.len() + 1 && !is.iter().any(|one| *one == *self.initializer) {
            return Ok(());
        }
        let told = format!("only removing the \"{}\" initializer is supported", self.initializer);
        let error = FieldError::invalid("status.initializers", &json!(is), &told);
        Err(Status::invalid("tenancy.kcp.io", "Workspace", name, &[error]))
    }
}

/// Whether a LogicalCluster waits for an initializer.
pub(super) fn is_awaited(cluster: &Stored, initializer: &Name) -> bool {
    let status = &cluster.body()["status"];
    status["phase"] == types::INITIALIZING
        && types::texts(&status["initializers"]).iter().any(|one| *one == **initializer)
}

impl Round<'_, '_> {
    /// Says where those are seen who wait for a type.
    pub(super) fn follow_type(&mut self, of: &Stored) {
        let url = format!("{}{PREFIX}{}:{}", self.workspaces.url(), of.key.cluster.0, of.key.name);
        let wanted = [("Ready", true, "", ""), ("VirtualWorkspaceURLsReady", true, "", "")];
        let status = json!({ "status": {
            "virtualWorkspaces": [{ "url": url }],
            "conditions": conditions(of.body(), &wanted, &self.now()),
        } });
        self.patch(&of.key, Part::Status, &status);
    }
}
