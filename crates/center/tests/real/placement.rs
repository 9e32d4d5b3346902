//! What is placed arrives in the mailboxes of where it goes, in the form meant for each; and leaves again.

use mailboat_api::names::export;
use serde_json::{Value, json};

use crate::harbor::{Harbor, Place};

pub(crate) const EDGE: &str = "edge.kubestellar.io/v2alpha1";

/// A ConfigMap that says in each mailbox which edge it is for.
pub(crate) fn page(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": "shop", "name": name, "labels": { "app": "shop" },
                      "annotations": { "edge.kubestellar.io/expand-parameters": "true" } },
        "data": { "greeting": "Welcome to %(loc-name), where 100%% of prices are fair" } })
}

/// A placement of everything with the label `app: shop`, to Locations with these labels.
pub(crate) fn placement(name: &str, labels: &Value) -> Value {
    json!({ "apiVersion": EDGE, "kind": "EdgePlacement", "metadata": { "name": name },
        "spec": { "locationSelectors": [{ "matchLabels": labels }],
                  "downsync": [{ "apiGroup": "", "resources": ["configmaps"], "namespaces": ["shop"],
                                 "labelSelectors": [{ "matchLabels": { "app": "shop" } }] }] } })
}

fn map(name: &str) -> (&str, &str, &str, &str) {
    ("v1", "ConfigMap", "shop", name)
}

/// The names that `the-one` has for ConfigMaps.
fn told(the_one: &Value) -> Vec<&str> {
    let entries = the_one["spec"]["namespacedObjects"].as_array().into_iter().flatten();
    let maps = entries.filter(|entry| entry["resource"] == "configmaps");
    let places = maps.flat_map(|entry| entry["objectsByNamespace"].as_array().into_iter().flatten());
    places
        .flat_map(|place| place["names"].as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .collect()
}

async fn until_told(mailbox: &Place, names: &[&str]) -> Value {
    let what = format!("naming {names:?}");
    mailbox.until((EDGE, "SyncerConfig", "", "the-one"), &what, |the_one| told(the_one) == names).await
}

#[tokio::test]
async fn move_workload() {
    let mut harbor = Harbor::new("move").await;
    let inventory = harbor.inventory().await;
    let workload = harbor.workspace("wmw", &[export::EDGE]).await;
    harbor.sail();
    let florin = inventory.edge("florin", json!({ "env": "prod", "loc-name": "florin" })).await;
    let guilder = inventory.edge("guilder", json!({ "env": "test", "loc-name": "guilder" })).await;
    workload.put(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } })).await;
    workload.put(&page("page")).await;
    workload.put(&page("other")).await;
    workload.put(&placement("shops", &json!({ "env": "prod" }))).await;

    let (at_florin, at_guilder) = (harbor.mailbox(&florin).await, harbor.mailbox(&guilder).await);
    let slice = (EDGE, "SinglePlacementSlice", "", "shops");
    let goes_to = |name: &'static str| {
        move |slice: &Value| {
            let to = slice["destinations"].as_array().cloned().unwrap_or_default();
            matches!(to.as_slice(), [only] if only["syncTargetName"] == name)
        }
    };
    workload.until(slice, "to florin", goes_to("florin")).await;
    let copy = at_florin.until(map("page"), "copied", |_| true).await;
    assert_eq!(copy["data"]["greeting"], "Welcome to florin, where 100% of prices are fair");
    assert_eq!(copy["metadata"]["labels"]["edge.kubestellar.io/projected"], "yes");
    until_told(&at_florin, &["other", "page"]).await;
    assert!(at_guilder.list("v1", "ConfigMap", "shop").await.is_empty());

    // Changed, it follows; what is taken out of it disappears; what is deleted goes.
    workload.patch(map("page"), json!({ "metadata": { "annotations": { "note": "new" } } })).await;
    at_florin.until(map("page"), "noted", |copy| copy["metadata"]["annotations"]["note"] == "new").await;
    workload.patch(map("page"), json!({ "metadata": { "annotations": { "note": null } } })).await;
    at_florin.until(map("page"), "unnoted", |copy| copy["metadata"]["annotations"]["note"].is_null()).await;
    workload.delete(map("other")).await;
    at_florin.until_gone(map("other")).await;
    until_told(&at_florin, &["page"]).await;

    // A Location's label is a parameter, and is what placements choose by.
    let location = (EDGE, "Location", "", "florin");
    inventory.patch(location, json!({ "metadata": { "labels": { "loc-name": "capital" } } })).await;
    at_florin
        .until(map("page"), "renamed", |copy| {
            copy["data"]["greeting"] == "Welcome to capital, where 100% of prices are fair"
        })
        .await;

    // Moved by its placement's selector, and nothing is left behind.
    let shops = (EDGE, "EdgePlacement", "", "shops");
    workload
        .patch(shops, json!({ "spec": { "locationSelectors": [{ "matchLabels": { "env": "test" } }] } }))
        .await;
    let copy = at_guilder.until(map("page"), "copied", |_| true).await;
    assert_eq!(copy["data"]["greeting"], "Welcome to guilder, where 100% of prices are fair");
    at_florin.until_gone(map("page")).await;
    until_told(&at_florin, &[]).await;
    until_told(&at_guilder, &["page"]).await;
    workload.until(slice, "to guilder", goes_to("guilder")).await;

    // A center that is killed and starts again finds nothing to do.
    harbor.sink().await;
    let before = at_guilder.get(map("page")).await.unwrap();
    let one = (EDGE, "SyncerConfig", "", "the-one");
    let the_one = at_guilder.get(one).await.unwrap();
    workload.put(&page("while-away")).await;
    harbor.sail();
    until_told(&at_guilder, &["page", "while-away"]).await;
    let after = at_guilder.get(map("page")).await.unwrap();
    assert_eq!(
        after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"],
        "it was written again"
    );
    let told_now = at_guilder.get(one).await.unwrap();
    let generation = |object: &Value| object["metadata"]["generation"].as_u64().unwrap();
    assert_eq!(
        generation(&told_now),
        generation(&the_one) + 1,
        "the-one was written more often than it changed"
    );

    // The placement goes, and with it what it placed.
    workload.delete(shops).await;
    at_guilder.until_gone(map("page")).await;
    until_told(&at_guilder, &[]).await;
    workload.until_gone(slice).await;
}
