//! `get objects --watch` goes on with mailboxes that come, and with those that serve the kind later.

use std::path::Path;

use mailboat_testkit::{Companion, wait_until};
use serde_json::{Value, json};

use super::{Fleet, Place, SOON, text};
use crate::harbor::{delete, put};
use crate::program::mailboat;

const VERSION: &str = "watch.mailboat.example/v1";
const DEFINITION: (&str, &str, &str, &str) =
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "ingots.watch.mailboat.example");

fn definition() -> Value {
    json!({
        "apiVersion": DEFINITION.0, "kind": DEFINITION.1, "metadata": { "name": DEFINITION.3 },
        "spec": {
            "group": "watch.mailboat.example", "scope": "Cluster",
            "names": { "plural": "ingots", "singular": "ingot", "kind": "Ingot", "listKind": "IngotList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    })
}

async fn cast(mailbox: &Place, name: &str) {
    put(&mailbox.client, &definition()).await;
    put(&mailbox.client, &json!({ "apiVersion": VERSION, "kind": "Ingot", "metadata": { "name": name } }))
        .await;
}

#[tokio::test]
async fn what_is_watched_goes_on_with_mailboxes_that_come_and_that_serve_the_kind_later() {
    let fleet = Fleet::board().await;
    let (florin, guilder) = (fleet.mailbox("florin").await, fleet.mailbox("guilder").await);
    cast(&florin, "first").await;
    let root = fleet.admin("root");
    let words = [
        "get",
        "objects",
        "--kind",
        "ingots",
        "--watch",
        "--espw",
        &fleet.provider,
        "--kubeconfig",
        text(&root),
    ];
    let program = Path::new(env!("CARGO_BIN_EXE_mailboat"));
    let watch = Companion::start(program, &words, &fleet.file("watch.log")).unwrap();
    let shown = async |edge: &str, name: &str| {
        let is_row = |line: &str| {
            let cells: Vec<&str> = line.split_whitespace().collect();
            cells.first() == Some(&edge) && cells.contains(&name)
        };
        let row = wait_until(format!("{name} of {edge} is shown"), SOON, || {
            let log = watch.log();
            std::future::ready(if log.lines().any(is_row) { Ok(()) } else { Err(log) })
        });
        row.await.unwrap_or_else(|late| panic!("{late}"));
    };
    shown("florin", "first").await;
    cast(&guilder, "second").await;
    shown("guilder", "second").await;

    let ensure =
        ["ensure", "location", "ore", "env=mine", "--imw", &fleet.inventory, "--espw", &fleet.provider];
    mailboat(&root, &ensure).await.well();
    let ore = fleet.at(&fleet.mailbox_of("ore").await).await;
    cast(&ore, "third").await;
    shown("ore", "third").await;
    put(&florin.client, &json!({ "apiVersion": VERSION, "kind": "Ingot", "metadata": { "name": "fourth" } }))
        .await;
    shown("florin", "fourth").await;

    let remove = ["remove", "location", "ore", "--imw", &fleet.inventory, "--espw", &fleet.provider];
    mailboat(&root, &remove).await.well();
    watch.kill().unwrap();
    for mailbox in [florin, guilder] {
        delete(&mailbox.client, DEFINITION).await;
    }
}
