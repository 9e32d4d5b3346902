//! A SyncTarget's mailbox: made, furnished, repaired, made again, and removed.

use mailboat_api::condition::types;
use mailboat_api::names::export;
use mailboat_registration::SyncerId;
use mailboat_registration::inventory::KeptKubeconfig;
use mailboat_testkit::ADMIN;
use serde_json::{Value, json};

use crate::harbor::{Harbor, SYNCER_IMAGE};

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
    let syncer = SyncerId::new("florin", target["metadata"]["uid"].as_str().unwrap());
    mailbox.until(("v1", "ServiceAccount", "default", syncer.as_str()), "there", |_| true).await;
    let role = (RBAC, "ClusterRole", "", "mailboat-syncer");
    let made = mailbox.until(role, "there", |_| true).await;

    let reporter = (RBAC, "ClusterRole", "", syncer.as_str());
    inventory.until(reporter, "there", |_| true).await;
    inventory.until(("v1", "ServiceAccount", "default", syncer.as_str()), "there", |_| true).await;

    // Altered, it is put right.
    mailbox.patch(role, json!({ "rules": [] })).await;
    mailbox.until(role, "as it was", |found| found["rules"] == made["rules"]).await;
    mailbox.delete((RBAC, "ClusterRoleBinding", "", "mailboat-syncer")).await;
    mailbox.until((RBAC, "ClusterRoleBinding", "", "mailboat-syncer"), "there again", |_| true).await;

    // Given the edge's kubeconfig, the center installs its syncer. A workspace is edge enough for that.
    let edge = harbor.workspace("edge", &[export::COMPUTE]).await;
    let file = harbor.center.kubeconfig(ADMIN, &edge.workspace.path).unwrap();
    let kept = KeptKubeconfig::of("florin");
    let target_of = (EDGE, "SyncTarget", "", "florin");
    let named = |secret: &str| json!({ "metadata": { "annotations": { kept.annotation().0: secret } } });
    inventory.patch(target_of, named("nowhere/florin")).await;
    let says = |reason: &'static str| move |found: &Value| installed(found)["reason"] == reason;
    inventory.until(target_of, "without its Secret", says("SecretMissing")).await;
    for object in kept.objects(&std::fs::read_to_string(file).unwrap()) {
        inventory.put(&object).await;
    }
    inventory.patch(target_of, named(&kept.annotation().1)).await;
    inventory.until(target_of, "installed", says("Installed")).await;
    let deployment = ("apps/v1", "Deployment", syncer.as_str(), syncer.as_str());
    let secret = ("v1", "Secret", syncer.as_str(), syncer.as_str());
    let (runs, holds) = (edge.get(deployment).await.unwrap(), edge.get(secret).await.unwrap());
    assert_eq!(runs["spec"]["template"]["spec"]["containers"][0]["image"], SYNCER_IMAGE);

    // Its syncer is heard of.
    let the_one = (EDGE, "SyncerConfig", "", "the-one");
    let beat = jiff::Timestamp::now().to_string();
    mailbox.report(the_one, json!({ "lastSyncerHeartbeatTime": beat })).await;
    let reason =
        |kind: &'static str, reason: &'static str| move |found: &Value| said(found, kind)["reason"] == reason;
    inventory.until(target_of, "heard of", reason(types::READY, "Heard")).await;

    // Deleted, it is made again as another workspace. Nothing is heard from there, and the SyncTarget says why.
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
    let made_again = "MailboxMadeAgain";
    inventory.until(target_of, "not heard of", reason(types::SYNCER_AUTHORIZED, made_again)).await;
    inventory.until(target_of, "not ready", reason(types::READY, made_again)).await;
    let beat = jiff::Timestamp::now().to_string();
    again.report(the_one, json!({ "lastSyncerHeartbeatTime": beat })).await;
    inventory.until(target_of, "heard of again", reason(types::SYNCER_AUTHORIZED, "Heard")).await;
    again.until(role, "there", |found| found["rules"] == made["rules"]).await;

    // Its syncer gets another token, and nothing else at the edge is written.
    let token = |found: &Value| found["data"]["token"].clone();
    edge.until(secret, "renewed", |found| token(found) != token(&holds)).await;
    inventory.until(target_of, "installed again", says("Installed")).await;
    let still = edge.get(deployment).await.unwrap();
    assert_eq!(still["metadata"]["resourceVersion"], runs["metadata"]["resourceVersion"]);

    // It goes with its SyncTarget.
    inventory.delete((EDGE, "SyncTarget", "", "florin")).await;
    provider.until_gone(workspace).await;
    inventory.until_gone(reporter).await;
}

fn installed(target: &Value) -> Value {
    said(target, types::SYNCER_INSTALLED)
}

fn said(target: &Value, of: &str) -> Value {
    let conditions = target["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition["type"] == of);
    found.unwrap_or_default()
}
