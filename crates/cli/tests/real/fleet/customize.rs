//! Scenario `customize`: objects are another at each edge, and what cannot be made right is held and told.

use std::fs;

use serde_json::{Value, json};

use super::{EDGE, Fleet, Named, Place};
use crate::harbor::{config_map, patch, put};
use crate::program::mailboat;

const MENU: Named<'_> = ("v1", "ConfigMap", "pages", "menu");
const PRICES: Named<'_> = ("v1", "ConfigMap", "pages", "prices");
const CUSTOMIZER: Named<'_> = (EDGE, "Customizer", "pages", "prices");
const PLACEMENT: Named<'_> = (EDGE, "EdgePlacement", "", "pages");

#[tokio::test]
async fn customize() {
    let fleet = Fleet::board().await;
    let (workload, inventory) = (fleet.workload("pages").await, fleet.inventory().await);
    let (florin, guilder) = (fleet.edge("florin").await, fleet.edge("guilder").await);
    workload.apply("customize/workload.yaml").await;
    for (edge, name) in [(&florin, "florin"), (&guilder, "guilder")] {
        let menu = edge.until(MENU, "there", |_| true).await;
        assert_eq!(menu["data"]["today"], format!("at {name}: 100% fish"));
    }

    // What misses a parameter is held, and the reason is told.
    let told = held(&workload, "currency", 2).await;
    for (copy, edge) in told.iter().zip(["florin", "guilder"]) {
        assert_eq!((&copy["edge"], &copy["object"]["name"]), (&json!(edge), &json!("prices")), "{copy}");
        assert!(copy["message"].as_str().unwrap().contains(&format!("for Location {edge}:")), "{copy}");
    }
    assert!(florin.get(PRICES).await.is_none() && guilder.get(PRICES).await.is_none());
    let label = ["ensure", "location", "florin", "currency=fl", "--imw", &fleet.inventory];
    mailboat(&fleet.admin("root"), &label).await.well();
    currency(&florin, "fl").await;
    assert!(guilder.get(PRICES).await.is_none());
    let annotated = json!({ "metadata": { "annotations": { "currency": "gld" } } });
    patch(&inventory.client, (EDGE, "Location", "", "guilder"), annotated).await;
    currency(&guilder, "gld").await;
    workload.until(PLACEMENT, "with nothing held", |found| found["status"].get("held").is_none()).await;
    assert_eq!(offline(&workload, &inventory).await["data"], florin.get(PRICES).await.unwrap()["data"]);

    // What it is made by is changed, and it follows.
    let replaced = |path: &str, value: &str| json!({ "replacements": [{ "path": path, "value": value }] });
    patch(&workload.client, CUSTOMIZER, replaced("$.data.currency", r#""in %(currency)""#)).await;
    currency(&florin, "in fl").await;
    currency(&guilder, "in gld").await;
    patch(&workload.client, CUSTOMIZER, replaced("$.data[", r#""x""#)).await;
    held(&workload, "replacements[0].path", 2).await;
    currency(&florin, "in fl").await;

    configuration_travels(&fleet, &workload, &florin).await;
    workload.kubectl(&["delete", "edgeplacement", "pages"]).await.well();
    for edge in [&florin, &guilder] {
        edge.until_gone(MENU).await;
        edge.until_gone(PRICES).await;
    }
}

/// Syncers' configuration is placed like any object, and brings up what it names; `the-one` stays the center's.
async fn configuration_travels(fleet: &Fleet, workload: &Place, florin: &Place) {
    let upsync = json!([{ "apiGroup": "", "resources": ["configmaps"], "namespaces": ["pages"], "names": ["takings"] }]);
    for (kind, name, spec) in [
        ("SyncerConfig", "knobs", json!({ "upsync": upsync })),
        ("SyncerConfig", "the-one", json!({ "upsync": upsync })),
        ("EdgeSyncConfig", "knobs", json!({})),
    ] {
        let config = json!({ "apiVersion": EDGE, "kind": kind, "metadata": { "name": name }, "spec": spec });
        put(&workload.client, &config).await;
    }
    let placement = json!({
        "apiVersion": EDGE, "kind": "EdgePlacement", "metadata": { "name": "knobs" },
        "spec": {
            "locationSelectors": [{ "matchLabels": { "loc-name": "florin" } }],
            "downsync": [{ "apiGroup": "edge.kubestellar.io", "resources": ["edgesyncconfigs", "syncerconfigs"] }],
        },
    });
    put(&workload.client, &placement).await;
    let (mailbox, takings) = (fleet.mailbox("florin").await, ("v1", "ConfigMap", "pages", "takings"));
    let knobs = (EDGE, "SyncerConfig", "", "knobs");
    mailbox.until(knobs, "read by the syncer", |found| found.get("status").is_some()).await;
    mailbox.until((EDGE, "EdgeSyncConfig", "", "knobs"), "there", |_| true).await;
    let the_one = mailbox.get((EDGE, "SyncerConfig", "", "the-one")).await.unwrap();
    assert!(the_one["spec"].get("upsync").is_none(), "{the_one:#}");
    put(&florin.client, &config_map("pages", "takings", "12")).await;
    mailbox.until(takings, "brought up", |found| found["data"]["text"] == "12").await;
    workload.kubectl(&["delete", "edgeplacement", "knobs"]).await.well();
    mailbox.until_gone(knobs).await;
    florin.kubectl(&["delete", "configmap", "-n", "pages", "takings"]).await.well();
}

async fn currency(edge: &Place, text: &str) {
    let says = |prices: &Value| prices["data"] == json!({ "herring": "3", "currency": text });
    edge.until(PRICES, &format!("in {text}"), says).await;
}

/// Waits until the placement says that so many copies are held for a reason with these words, and gives them back.
async fn held(workload: &Place, words: &str, count: usize) -> Vec<Value> {
    let told = |found: &Value| -> Vec<Value> {
        let held = found["status"]["held"].as_array().into_iter().flatten();
        held.filter(|copy| copy["message"].as_str().is_some_and(|message| message.contains(words)))
            .cloned()
            .collect()
    };
    let what = format!("holding {count} for {words}");
    told(&workload.until(PLACEMENT, &what, |found| told(found).len() == count).await)
}

/// What the command shows for florin.
async fn offline(workload: &Place, inventory: &Place) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (place, object, name) in [
        (workload, PRICES, "object.yaml"),
        (workload, CUSTOMIZER, "customizer.yaml"),
        (inventory, (EDGE, "Location", "", "florin"), "location.yaml"),
    ] {
        fs::write(file(name), place.get(object).await.unwrap().to_string()).unwrap();
    }
    let (object, customizer, location) =
        (file("object.yaml"), file("customizer.yaml"), file("location.yaml"));
    let words = ["customize", &object, "--customizer", &customizer, "--location", &location];
    let shown = mailboat(folder.path(), &words).await.well();
    serde_saphyr::from_str(&shown.out).unwrap()
}
