//! Scenario `customize`: objects are another at each edge, and what cannot be made right is held and told.

use std::fs;

use serde_json::{Value, json};

use super::{EDGE, Fleet, Named, Place};
use crate::harbor::patch;
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

    workload.kubectl(&["delete", "edgeplacement", "pages"]).await.well();
    for edge in [&florin, &guilder] {
        edge.until_gone(MENU).await;
        edge.until_gone(PRICES).await;
    }
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
