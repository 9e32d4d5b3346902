//! `prep-for-cluster` from nothing: the inventory workspace, what describes the edge, and a manifest as its operator wants it.

use serde_json::Value;

use super::{EDGE, Fleet, IMAGE, text};
use crate::manifest::Manifest;
use crate::program::mailboat;

/// The center as the edge reaches it, which is not where these tests reach it.
const SERVER: &str = "https://center.example:6443";

#[tokio::test]
async fn an_edge_is_prepared_from_nothing_as_its_operator_wants_it() {
    let fleet = Fleet::board().await;
    let inventory = format!("{}:harbour", fleet.above);
    let file = fleet.file("krona.yaml");
    let words = [
        ["prep-for-cluster", "krona"],
        ["env=far", "--rotate"],
        ["--imw", &inventory],
        ["--espw", &fleet.provider],
        ["--syncer-image", IMAGE],
        ["-o", text(&file)],
        ["--server", SERVER],
        ["--namespace", "mail"],
        ["--edge-access", "namespaces=till"],
        ["--lifetime", "30d"],
    ];
    let prepared = mailboat(&fleet.admin("root"), words.as_flattened()).await.well();
    assert!(prepared.err.contains(&format!("workspace {inventory}: made")), "{prepared:#?}");
    let manifest = Manifest::read(&file);
    assert!(manifest.secret("kubeconfig").contains(SERVER), "{}", manifest.secret("kubeconfig"));
    assert_eq!(manifest.kind("Deployment")["metadata"]["namespace"], "mail");
    let narrow = |role: &&Value| role["kind"] == "RoleBinding" && role["metadata"]["namespace"] == "till";
    assert!(manifest.documents.iter().any(|document| narrow(&document)), "{}", manifest.text);

    // Done again, it finds what it made.
    let again = mailboat(&fleet.admin("root"), words.as_flattened()).await.well();
    assert!(again.err.contains("SyncTarget krona: unchanged"), "{again:#?}");
    let remove = ["remove", "location", "krona", "--imw", &inventory, "--espw", &fleet.provider];
    mailboat(&fleet.admin("root"), &remove).await.well();
    fleet.at(&inventory).await.until_gone((EDGE, "SyncTarget", "", "krona")).await;
}
