//! Names that travel on the wire: labels, annotations, fixed object names, and the rules that make names.
//!
//! Renaming anything here orphans what is already delivered, so names kept from KubeStellar, kcp and the
//! api-syncagent stand exactly as those systems write them, and what is new lives under `mailboat.dev/`.

use std::fmt;
use std::str::FromStr;

/// API groups and their versions.
pub mod group {
    /// The group of placements, mailboxes' configuration and the inventory.
    pub const EDGE: &str = "edge.kubestellar.io";
    /// The version in which [`EDGE`] is served.
    pub const EDGE_VERSION: &str = "v2alpha1";
    /// The group of kcp's SyncTarget.
    pub const WORKLOAD: &str = "workload.kcp.io";
    /// The group of kcp's Location.
    pub const SCHEDULING: &str = "scheduling.kcp.io";
    /// The version in which [`WORKLOAD`] and [`SCHEDULING`] are served.
    pub const KCP_VERSION: &str = "v1alpha1";
    /// The group of PublishedResource.
    pub const SYNCAGENT: &str = "syncagent.kcp.io";
    /// What is appended to the group of a kind that must not take effect in the center.
    pub const DENATURED_SUFFIX: &str = ".denatured";
    /// The group under which denatured kinds of the core group are stored.
    pub const CORE_DENATURED: &str = "core.denatured";
}

/// APIExports of the provider workspace, and the APIBindings that refer to them.
pub mod export {
    /// Edge kinds. Claims nothing, so that binding it asks for no trust.
    pub const EDGE: &str = "edge.kubestellar.io";
    /// kcp's SyncTarget.
    pub const WORKLOAD: &str = "workload.kcp.io";
    /// kcp's Location.
    pub const SCHEDULING: &str = "scheduling.kcp.io";
    /// Deployments, Services and the other kinds that kcp does not serve by itself.
    pub const COMPUTE: &str = "kubernetes";
    /// Permission claims over mailboxes; bound in mailboxes only.
    pub const MAILBOX: &str = "mailbox.mailboat.dev";
    /// Kinds that must not take effect in the center, under groups ending in `.denatured`.
    pub const DENATURED: &str = "denatured.mailboat.dev";
    /// The APIBinding to [`EDGE`] in a mailbox.
    pub const BINDING_IN_MAILBOX: &str = "bind-edge";
    /// The APIBinding to [`EDGE`] in a workload workspace.
    pub const BINDING_IN_WORKLOAD_WORKSPACE: &str = "bind-espw";
    /// The APIBinding to [`EDGE`] in an inventory workspace.
    pub const BINDING_IN_INVENTORY_WORKSPACE: &str = "edge.kubestellar.io";
}

/// Labels.
pub mod label {
    /// `yes` on every object that the center placed in a mailbox.
    pub const PROJECTED: &str = "edge.kubestellar.io/projected";
    /// The value of [`PROJECTED`].
    pub const PROJECTED_YES: &str = "yes";
    /// On a SinglePlacementSlice: the EdgePlacement that it belongs to.
    pub const SOURCE_PLACEMENT: &str = "edge.kubestellar.io/source-placement";
    /// On a SyncTarget: its own name, so that one Location can select it.
    pub const SYNC_TARGET_ID: &str = "id";
    /// On every delivered object: which role of which installation owns it.
    pub const OWNER: &str = "mailboat.dev/owner";
    /// On everything that the registration of a syncer makes, on both sides (account, rights, token): such objects are
    /// never synced, whatever selects them.
    pub const REGISTRATION: &str = "mailboat.dev/registration";
    /// On what a syncer keeps for itself: never synced either.
    pub const SYSTEM: &str = "mailboat.dev/system";
}

/// Annotations.
pub mod annotation {
    /// `true` on a workload object or Customizer: `%(name)` is replaced by the destination's parameters.
    pub const EXPAND_PARAMETERS: &str = "edge.kubestellar.io/expand-parameters";
    /// On a workload object: the Customizer to apply, as `name` or `namespace/name`.
    pub const CUSTOMIZER: &str = "edge.kubestellar.io/customizer";
    /// `false` on a workload object: create it at the edge, but never overwrite or delete it there.
    pub const DOWNSYNC_OVERWRITE: &str = "edge.kubestellar.io/downsync-overwrite";
    /// On a delivered object at an edge: [`super::OwnedObject`].
    pub const DOWNSYNCED: &str = "edge.kubestellar.io/downsynced";
    /// On an object brought up into a mailbox: [`super::OwnedObject`].
    pub const UPSYNCED: &str = "edge.kubestellar.io/upsynced";
    /// On a mailbox Workspace: the name of its SyncTarget.
    pub const SYNC_TARGET_NAME: &str = "edge.kubestellar.io/sync-target-name";
    /// On a workload object whose status is asked back: to how many edges it goes.
    pub const EXECUTING_COUNT: &str = "kubestellar.io/executing-count";
    /// On an EdgePlacement, followed by a number; reserved by KubeStellar, read by nobody.
    pub const VALIDATION_ERROR_PREFIX: &str = "validation-error.kubestellar.io/";
    /// `adopt` on a source object: take over a same-named object at the destination that is not ours.
    pub const ON_CONFLICT: &str = "mailboat.dev/on-conflict";
    /// The value of [`ON_CONFLICT`] that asks for adoption.
    pub const ON_CONFLICT_ADOPT: &str = "adopt";
    /// On a held configuration object: the change id whose withdrawals the user lets go.
    pub const CONFIRM_WITHDRAWAL: &str = "mailboat.dev/confirm-withdrawal";
    /// On an APIBinding in a mailbox: the kinds that it brings, each with the beginning of the identity it has them by.
    pub const BRINGS: &str = "mailboat.dev/brings";
    /// On the provider's export: what is held that can be confirmed on no SyncTarget, in a sentence for people.
    pub const WITHDRAWAL_HELD: &str = "mailboat.dev/withdrawal-held";
    /// On a SyncTarget: `namespace/name` of a Secret with the edge's kubeconfig, for installing its syncer.
    pub const KUBECONFIG_SECRET: &str = "mailboat.dev/kubeconfig-secret";
    /// kcp's own: the logical cluster that an object lives in.
    pub const KCP_CLUSTER: &str = "kcp.io/cluster";
    /// kcp's own: the path of a logical cluster's workspace.
    pub const KCP_PATH: &str = "kcp.io/path";
    /// Kubernetes' own: who approved a schema in a `*.k8s.io` group.
    pub const API_APPROVED: &str = "api-approved.kubernetes.io";
}

/// Objects whose names never vary.
pub mod object {
    /// The SyncerConfig in a mailbox that the center writes.
    pub const THE_ONE: &str = "the-one";
    /// The LogicalCluster in every workspace.
    pub const LOGICAL_CLUSTER: &str = "cluster";
    /// Where the provider workspace is unless configured otherwise.
    pub const PROVIDER_WORKSPACE: &str = "root:espw";
    /// The ClusterRole in a mailbox that says what its syncer may; the center keeps it by what placements ask for.
    pub const SYNCER_ROLE: &str = "mailboat-syncer";
    /// The group that the center's users belong to.
    pub const CENTER_GROUP: &str = "mailboat:center";
}

/// Finalizers.
pub mod finalizer {
    /// On configuration objects in workload workspaces, so that a deleted one can still be confirmed.
    pub const CONFIGURATION: &str = "mailboat.dev/withdraw";
    /// On every object that the publisher syncs; the api-syncagent's own name.
    pub const PUBLISHED: &str = "syncagent.kcp.io/cleanup";
}

const MAILBOX_SEPARATOR: &str = "-mb-";

/// The name of a mailbox workspace: `<cluster of the SyncTarget>-mb-<UID of the SyncTarget>`.
///
/// The UID rather than the name, so that a SyncTarget deleted and made again gets a fresh mailbox.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MailboxName {
    /// The logical cluster that holds the SyncTarget.
    pub cluster: String,
    /// The SyncTarget's UID.
    pub sync_target_uid: String,
}

/// Why a text is no mailbox name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no mailbox name: expected one \"-mb-\" between a cluster id and a SyncTarget's UID")]
pub struct NotAMailboxName {
    /// The text that was read.
    pub name: String,
}

impl fmt::Display for MailboxName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{MAILBOX_SEPARATOR}{}", self.cluster, self.sync_target_uid)
    }
}

impl FromStr for MailboxName {
    type Err = NotAMailboxName;

    fn from_str(name: &str) -> Result<Self, NotAMailboxName> {
        match name.split(MAILBOX_SEPARATOR).collect::<Vec<_>>().as_slice() {
            [cluster, uid] if !cluster.is_empty() && !uid.is_empty() => {
                Ok(Self { cluster: (*cluster).to_owned(), sync_target_uid: (*uid).to_owned() })
            }
            _ => Err(NotAMailboxName { name: name.to_owned() }),
        }
    }
}

/// The value of the annotations `downsynced` and `upsynced`: `Kind/namespace/name`.
///
/// The value repeats the object it stands on, because controllers copy annotations: a ReplicaSet that
/// inherited its Deployment's annotations must not look like something that was delivered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnedObject {
    /// The object's kind.
    pub kind: String,
    /// Its namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Why a text is no ownership value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value:?} is no ownership value: expected Kind/namespace/name")]
pub struct NotAnOwnedObject {
    /// The text that was read.
    pub value: String,
}

impl fmt::Display for OwnedObject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{}", self.kind, self.namespace, self.name)
    }
}

impl FromStr for OwnedObject {
    type Err = NotAnOwnedObject;

    fn from_str(value: &str) -> Result<Self, NotAnOwnedObject> {
        match value.split('/').collect::<Vec<_>>().as_slice() {
            [kind, namespace, name] if !kind.is_empty() && !name.is_empty() => Ok(Self {
                kind: (*kind).to_owned(),
                namespace: (*namespace).to_owned(),
                name: (*name).to_owned(),
            }),
            _ => Err(NotAnOwnedObject { value: value.to_owned() }),
        }
    }
}

/// The group under which objects of `natured_group` are stored where they must not take effect.
pub fn denatured_group(natured_group: &str) -> String {
    if natured_group.is_empty() {
        group::CORE_DENATURED.to_owned()
    } else {
        format!("{natured_group}{}", group::DENATURED_SUFFIX)
    }
}

/// The group that a denatured group stands for; `None` if `group` is not denatured.
pub fn natured_group(group: &str) -> Option<&str> {
    if group == group::CORE_DENATURED {
        return Some("");
    }
    group.strip_suffix(group::DENATURED_SUFFIX).filter(|natured| !natured.is_empty())
}

/// What an edge's cluster is called by its syncer and by the marks on what that syncer delivered: the SyncTarget's uid says
/// which edge it is, whoever asks and however it is reached.
pub fn edge_cluster(sync_target_uid: &str) -> String {
    format!("edge-{sync_target_uid}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mailbox_name_survives_the_round_trip() {
        let text = "niqdko2g2pwoadfb-mb-f99e773f-3db2-439e-8054-827c4ac55368";
        let name: MailboxName = text.parse().expect("a mailbox name");
        assert_eq!(name.cluster, "niqdko2g2pwoadfb");
        assert_eq!(name.sync_target_uid, "f99e773f-3db2-439e-8054-827c4ac55368");
        assert_eq!(name.to_string(), text);
    }

    #[test]
    fn what_is_no_mailbox_name_is_refused_and_quoted() {
        for text in ["", "root", "-mb-", "a-mb-", "-mb-b", "a-mb-b-mb-c"] {
            let refusal = text.parse::<MailboxName>().expect_err(text);
            assert!(refusal.to_string().contains(&format!("{text:?}")), "{refusal}");
        }
    }

    #[test]
    fn an_ownership_value_survives_the_round_trip() {
        for text in ["ConfigMap/commonstuff/httpd-htdocs", "ClusterRole//kyverno:admin"] {
            assert_eq!(text.parse::<OwnedObject>().expect(text).to_string(), text);
        }
    }

    #[test]
    fn what_is_no_ownership_value_is_refused() {
        for text in ["true", "", "Kind/name", "/ns/name", "Kind/ns/", "Kind/ns/name/more"] {
            text.parse::<OwnedObject>().expect_err(text);
        }
    }

    #[test]
    fn denatured_groups_lead_back_to_natured_ones() {
        for natured in ["", "rbac.authorization.k8s.io", "apiextensions.k8s.io"] {
            assert_eq!(natured_group(&denatured_group(natured)), Some(natured));
        }
        assert_eq!(denatured_group(""), "core.denatured");
        assert_eq!(natured_group("apps"), None);
        assert_eq!(natured_group(".denatured"), None);
    }
}
