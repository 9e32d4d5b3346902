//! A SyncTarget's mailbox: made, furnished, repaired, made again, and removed.

use serde_json::json;

use crate::harbor::Harbor;

const EDGE: &str = "edge.kubestellar.io/v2alpha1";
const RBAC: &str = "rbac.authorization.k8s.io/v1";

#[tokio::test]
async fn mailbox_lifecycle() {
    let mut harbor = Harbor::new("lifecycle").await;
    let inventory = harbor.inventory().await;
    harbor.sail();
    let target = inventory.edge("florin", json!({ "env": "prod" })).await;
    let mailbox = harbor.mailbox(&target).await;
    for name in ["bind-edge", "bind-kubernetes", "bind-denatured", "bind-mailbox"] {
        let binding = ("apis.kcp.io/v1alpha2", "APIBinding", "", name);
        mailbox.until(binding, "bound", |binding| binding["status"]["phase"] == "Bound").await;
    }
    mailbox.until(("v1", "ServiceAccount", "default", "mailboat-syncer"), "there", |_| true).await;
    let role = (RBAC, "ClusterRole", "", "mailboat-syncer");
    let made = mailbox.until(role, "there", |_| true).await;

    // Altered, it is put right.
    mailbox.patch(role, json!({ "rules": [] })).await;
    mailbox.until(role, "as it was", |found| found["rules"] == made["rules"]).await;
    mailbox.delete((RBAC, "ClusterRoleBinding", "", "mailboat-syncer")).await;
    mailbox.until((RBAC, "ClusterRoleBinding", "", "mailboat-syncer"), "there again", |_| true).await;

    // Deleted, it is made again as another workspace.
    let provider = harbor.provider().await;
    let workspace = ("tenancy.kcp.io/v1alpha1", "Workspace", "", mailbox.workspace.name.as_str());
    provider.delete(workspace).await;
    provider
        .until(workspace, "made again", |found| {
            found["status"]["phase"] == "Ready"
                && found["spec"]["cluster"] != mailbox.workspace.cluster.as_str()
        })
        .await;
    let again = harbor.mailbox(&target).await;
    again.until(role, "there", |found| found["rules"] == made["rules"]).await;

    // It goes with its SyncTarget.
    inventory.delete((EDGE, "SyncTarget", "", "florin")).await;
    provider.until_gone(workspace).await;
}
