//! Mailboxes: one workspace for each SyncTarget, and what stands in it from the beginning.
//!
//! A mailbox is a child of the provider workspace, named after the SyncTarget's workspace and uid, so that a
//! SyncTarget deleted and made again gets a fresh one. It holds no finalizers: one would block its deletion.

mod contents;
mod pulse;
mod rights;
mod route;

use mailboat_api::names::{MailboxName, annotation};
use mailboat_engine::want::Body;
use mailboat_object::key::{Key, KindId, Name};
use mailboat_object::object::Object;
use serde_json::json;

use crate::body::body;

pub use contents::{Common, contents, reporting};
pub use pulse::{Installed, Judged, Limits, Pulse, Standing, judge};
pub use rights::{SyncedKinds, rules};
pub(crate) use rights::{group_refusal, refusal};
pub use route::{Found, Furnished, MAILBOXES, Mailboxes, Reporters, workspaces};

/// The APIBinding to the compute kinds in a mailbox.
pub const COMPUTE_BINDING: &str = "bind-kubernetes";
/// The APIBinding to the denatured kinds in a mailbox.
pub const DENATURED_BINDING: &str = "bind-denatured";
/// The APIBinding by which the center sees into a mailbox.
pub const MAILBOX_BINDING: &str = "bind-mailbox";
/// The role of the syncer in its mailbox, kept by what comes through it.
pub const SYNCER_ROLE: &str = mailboat_api::names::object::SYNCER_ROLE;

/// An object that stands in a mailbox, or beside a SyncTarget, whatever is placed there.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// Its kind.
    pub kind: KindId,
    /// Its namespace; empty for what is cluster-scoped.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// The object.
    pub body: Body,
}

/// The name of a SyncTarget's mailbox.
pub fn name_of(target: &Object) -> MailboxName {
    MailboxName { cluster: target.key.cluster.to_string(), sync_target_uid: target.uid.to_string() }
}

/// The Workspace, in the provider workspace, that is a SyncTarget's mailbox.
pub fn workspace(target: &Object) -> Fixture {
    let name = name_of(target).to_string();
    let object = json!({
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "Workspace",
        "metadata": {
            "name": name,
            "annotations": { annotation::SYNC_TARGET_NAME: target.key.name.as_str() },
        },
        "spec": { "type": { "name": "universal", "path": "root" } },
    });
    let kind = KindId::new("tenancy.kcp.io", "workspaces");
    Fixture { kind, namespace: Name::EMPTY, name: Name::new(&name), body: body(&object) }
}

impl Fixture {
    fn cluster_scoped(group: &str, resource: &str, object: &serde_json::Value) -> Self {
        Self::namespaced(group, resource, "", object)
    }

    fn namespaced(group: &str, resource: &str, namespace: &str, object: &serde_json::Value) -> Self {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        Self {
            kind: KindId::new(group, resource),
            namespace: Name::new(namespace),
            name: Name::new(name),
            body: body(object),
        }
    }

    /// Where it stands in a cluster.
    pub fn key(&self, cluster: &mailboat_object::key::ClusterId) -> Key {
        Key {
            cluster: cluster.clone(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
