//! What belongs to one copy of an object and not to its content.
//!
//! An object that is delivered elsewhere gets its own uid, its own managers and its own finalizers there.
//! Such members neither travel with it nor count when copies are compared: if they did, two copies would
//! differ for ever, and every heartbeat of a controller would look like an edit.

/// Annotations that a cluster's own controllers keep for themselves, and kubectl's memory of the last apply.
///
/// - `last-applied-configuration` tells kubectl what *its* user applied *there*; carried along it would make
///   a later `kubectl apply` at the edge delete fields that it never set.
/// - The Deployment and DaemonSet ones count rollouts of that one copy, changed by its controller with each.
/// - The volume ones tie a claim to a volume and a node of that one cluster.
const COPYS_OWN_ANNOTATIONS: [&str; 9] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
    "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/bound-by-controller",
    "pv.kubernetes.io/provisioned-by",
    "volume.kubernetes.io/selected-node",
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
];

/// Labels that a server sets by itself: a Namespace's own name, forced on every write.
const COPYS_OWN_LABELS: [&str; 1] = ["kubernetes.io/metadata.name"];

/// Domains under `kcp.io` that belong to a role and not to kcp: its marks and its users' requests. They count,
/// because a changed mark or request must be seen; a role that may not carry one on removes it itself.
const ROLES_DOMAINS: [&str; 4] = ["edge.kcp.io", "scheduling.kcp.io", "syncagent.kcp.io", "workload.kcp.io"];

/// The workload syncer's marks on what it delivered, which stand in kcp's own domain for historical reasons.
const ROLES_KEYS: [&str; 2] = ["kcp.io/namespace-locator", "kcp.io/tenant-id"];

/// Whether a member of `metadata` travels with its object: what a user writes there, and nothing that a
/// server or another cluster's controllers set. `generateName` was used up when the object got its name.
pub fn metadata_member_travels(name: &str) -> bool {
    !matches!(
        name,
        "managedFields"
            | "resourceVersion"
            | "uid"
            | "generation"
            | "creationTimestamp"
            | "deletionTimestamp"
            | "deletionGracePeriodSeconds"
            | "selfLink"
            | "ownerReferences"
            | "finalizers"
            | "generateName"
    )
}

/// Whether a label travels with its object.
pub fn label_travels(key: &str) -> bool {
    !(is_kcps_own(key) || COPYS_OWN_LABELS.contains(&key))
}

/// Whether an annotation travels with its object.
pub fn annotation_travels(key: &str) -> bool {
    !(is_kcps_own(key) || COPYS_OWN_ANNOTATIONS.contains(&key))
}

/// Whether kcp itself keeps this label or annotation: all of `kcp.io` and below (`claimed.internal.apis.kcp.io`
/// among them, which changes with every permission claim) but for what belongs to the roles.
fn is_kcps_own(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else {
        // `experimental.summarizing.workload.kcp.io` is such a key without a name; it is a role's.
        return false;
    };
    below(domain, "kcp.io")
        && !ROLES_DOMAINS.iter().any(|role| below(domain, role))
        && !ROLES_KEYS.contains(&key)
}

fn below(domain: &str, parent: &str) -> bool {
    domain.strip_suffix(parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kcp_and_the_servers_set_stays_behind() {
        for key in [
            "kcp.io/cluster",
            "kcp.io/path",
            "internal.kcp.io/x",
            "diff.syncer.internal.kcp.io/2Ne7",
            "claimed.internal.apis.kcp.io/a1b2",
            "apis.kcp.io/binding",
        ] {
            assert!(!label_travels(key) && !annotation_travels(key), "{key}");
        }
        assert!(!label_travels("kubernetes.io/metadata.name"));
        for key in COPYS_OWN_ANNOTATIONS {
            assert!(!annotation_travels(key), "{key}");
        }
    }

    #[test]
    fn users_and_roles_keys_travel() {
        for key in [
            "app",
            "app.kubernetes.io/name",
            "edge.kubestellar.io/projected",
            "mailboat.dev/owner",
            "state.workload.kcp.io/2Ne7",
            "internal.workload.kcp.io/cluster",
            "experimental.summarizing.workload.kcp.io",
            "kcp.io/namespace-locator",
            "kcp.io/tenant-id",
            "syncagent.kcp.io/agent-name",
            "related-resources.syncagent.kcp.io/x.0",
            "edge.kcp.io/customizer",
            "notkcp.io/cluster",
            "example.com/kcp.io",
        ] {
            assert!(label_travels(key) && annotation_travels(key), "{key}");
        }
    }

    #[test]
    fn only_what_a_user_writes_travels_in_metadata() {
        for name in ["name", "namespace", "labels", "annotations"] {
            assert!(metadata_member_travels(name), "{name}");
        }
        for name in
            ["managedFields", "resourceVersion", "uid", "finalizers", "ownerReferences", "generateName"]
        {
            assert!(!metadata_member_travels(name), "{name}");
        }
    }
}
