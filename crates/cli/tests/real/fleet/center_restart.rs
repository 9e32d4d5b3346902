//! Scenario `center-restart`: a center is killed in the midst of a change, another takes over, and nothing is withdrawn; with
//! nothing changed, nothing is written. What a changed placement would withdraw at once is asked about, and what a deleted
//! one placed goes with it, also if it was deleted while no center ran.

use std::cell::RefCell;
use std::collections::BTreeMap;

use futures::StreamExt as _;
use futures::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::{ApiGroup, Discovery, verbs};
use mailboat_testkit::wait_until;
use serde_json::{Value, json};

use super::{EDGE, Fleet, Named, Place, SOON};
use crate::harbor::{config_map, namespace, put};

/// At both edges together more than goes unasked.
const ITEMS: usize = 9;
const NAMESPACE: &str = "stock";
const MORE: &str = "more";
const PLACEMENT: Named<'_> = (EDGE, "EdgePlacement", "", "stock");
const SLICE: Named<'_> = (EDGE, "SinglePlacementSlice", "", "stock");

#[tokio::test]
async fn center_restart() {
    let fleet = Fleet::board().await;
    let workload = fleet.workload("stock").await;
    put(&workload.client, &namespace(NAMESPACE)).await;
    fill(&workload, "first").await;
    select(&workload, &[]).await;
    let (florin, guilder) = (fleet.edge("florin").await, fleet.edge("guilder").await);
    let (at_florin, at_guilder) = (fleet.mailbox("florin").await, fleet.mailbox("guilder").await);
    let edges = [&florin, &guilder];
    for place in [&at_florin, &at_guilder, &florin, &guilder] {
        all_say(place, "first").await;
    }
    let selected = |found: &Value| found["status"]["matchedObjectCount"] == ITEMS;
    workload.until(PLACEMENT, "counting what it selects", selected).await;
    let born: Vec<_> = join_all(edges.map(uids)).await;

    // With another in waiting, the one that writes is killed while a change is on its way.
    fleet.start_standby();
    said(&fleet, "standby", "seeking the lease").await;
    let changed = fill(&workload, "second");
    let killed = async {
        one_says(&at_florin, "second").await;
        fleet.kill_center();
    };
    futures::join!(changed, killed);
    for edge in edges {
        all_say(edge, "second").await;
    }
    said(&fleet, "standby", "this process holds the lease").await;
    assert_eq!(join_all(edges.map(uids)).await, born, "something was withdrawn and made again");

    // Killed and started with nothing changed, it writes nothing: what it makes next is all that is new.
    for mailbox in [&at_florin, &at_guilder] {
        all_say(mailbox, "second").await;
    }
    let provider = fleet.at(&fleet.provider).await;
    let places = [&at_florin, &at_guilder, &provider];
    let slice = workload.get(SLICE).await.unwrap();
    let before = at_rest(&places).await;
    let inventory = fleet.inventory().await;
    let spoken = [
        (&workload, "EdgePlacement", version(&workload, "EdgePlacement").await),
        (&workload, "StatusSummary", version(&workload, "StatusSummary").await),
        (&inventory, "SyncTarget", version(&inventory, "SyncTarget").await),
        (&inventory, "Location", version(&inventory, "Location").await),
    ];
    fleet.kill_standby();
    fleet.start_center();
    put(&workload.client, &config_map(NAMESPACE, "late", "late")).await;
    for mailbox in [&at_florin, &at_guilder] {
        mailbox.until(("v1", "ConfigMap", NAMESPACE, "late"), "there", |_| true).await;
    }
    let now = written(&places).await;
    assert!(differing(&before, &now).is_empty(), "written again: {:#?}", differing(&before, &now));
    assert_eq!(workload.get(SLICE).await.unwrap(), slice, "written again");
    // Nor does it take back what the last one said, only to say it once more.
    workload
        .until(PLACEMENT, "counting one more", |found| found["status"]["matchedObjectCount"] == ITEMS + 1)
        .await;
    let said = join_all(spoken.iter().map(|(place, kind, since)| said_since(place, kind, since))).await;
    for said in said.into_iter().flatten() {
        let status = &said["status"];
        let right = match said["kind"].as_str() {
            Some("EdgePlacement") => status["matchedObjectCount"].as_u64() >= Some(ITEMS as u64),
            Some("StatusSummary") => status["totals"]["wanted"].as_u64() >= Some(2 * ITEMS as u64),
            Some("SyncTarget") => is_ready(&said),
            _ => false,
        };
        assert!(right || said["metadata"]["name"] == MORE, "a center that starts said: {said:#}");
    }

    // Changed so that nearly all of it would go, it asks first, and nothing goes before it is answered.
    select(&workload, &["late"]).await;
    let awaits = |found: &Value| found["status"]["awaitingConfirmation"]["withdrawals"] == 2 * ITEMS;
    let asking = workload.until(PLACEMENT, "asking", awaits).await;
    let asked = &asking["status"]["awaitingConfirmation"];
    assert!(asking["status"]["conditions"].to_string().contains("ConfirmationAwaited"), "{asking:#}");
    for edge in edges {
        all_say(edge, "second").await;
    }
    let answer = format!("mailboat.dev/confirm-withdrawal={}", asked["changeId"].as_str().unwrap());
    workload.kubectl(&["annotate", "edgeplacement", "stock", &answer]).await.well();
    for edge in edges {
        until_empty(edge).await;
    }
    workload
        .until(PLACEMENT, "answered", |found| found["status"].get("awaitingConfirmation").is_none())
        .await;
    select(&workload, &[]).await;
    for edge in edges {
        all_say(edge, "second").await;
    }

    // In two processes, each does what is its own and leaves the rest to the other.
    fleet.kill_center();
    fleet.start_other_parts("scheduler,summarizer");
    place_more(&workload).await;
    let one = |found: &Value| found["destinations"].as_array().is_some_and(|all| all.len() == 1);
    workload.until((EDGE, "SinglePlacementSlice", "", MORE), "to florin", one).await;
    let more = ("v1", "ConfigMap", MORE, MORE);
    assert!(at_florin.get(more).await.is_none(), "nobody translates yet");
    fleet.start_parts("mailbox-controller,translator");
    florin.until(more, "there", |_| true).await;
    workload.until((EDGE, "StatusSummary", "", MORE), "there", |_| true).await;
    workload.kubectl(&["delete", "edgeplacement", MORE]).await.well();
    florin.until_gone(more).await;
    workload.until_gone((EDGE, "SinglePlacementSlice", "", MORE)).await;
    fleet.kill_standby();

    // Deleted while no center runs, it is still there for the next one, and is confirmed by that.
    fleet.kill_center();
    workload.kubectl(&["delete", "edgeplacement", "stock", "--wait=false"]).await.well();
    fleet.start_center();
    for edge in edges {
        until_empty(edge).await;
    }
    workload.until_gone(PLACEMENT).await;
    workload.until_gone(SLICE).await;
}

/// Has ConfigMaps of the namespace placed on both edges: all of them, or these.
async fn select(workload: &Place, names: &[&str]) {
    let mut test = json!({ "apiGroup": "", "resources": ["configmaps"], "namespaces": [NAMESPACE] });
    if !names.is_empty() {
        test["objectNames"] = json!(names);
    }
    let placement = json!({
        "apiVersion": EDGE, "kind": "EdgePlacement", "metadata": { "name": "stock" },
        "spec": { "locationSelectors": [{ "matchLabels": { "env": "prod" } }], "downsync": [test] },
    });
    put(&workload.client, &placement).await;
}

/// Has one ConfigMap in a namespace of its own placed on florin.
async fn place_more(workload: &Place) {
    put(&workload.client, &namespace(MORE)).await;
    put(&workload.client, &config_map(MORE, MORE, "more")).await;
    let placement = json!({
        "apiVersion": EDGE, "kind": "EdgePlacement", "metadata": { "name": MORE },
        "spec": {
            "locationSelectors": [{ "matchLabels": { "loc-name": "florin" } }],
            "downsync": [{ "apiGroup": "", "resources": ["configmaps"], "namespaces": [MORE] }],
        },
    });
    put(&workload.client, &placement).await;
}

async fn fill(workload: &Place, text: &str) {
    for item in 0..ITEMS {
        put(&workload.client, &config_map(NAMESPACE, &format!("item-{item}"), text)).await;
    }
}

/// The items that stand in a place.
async fn items(place: &Place) -> Vec<ConfigMap> {
    let maps: Api<ConfigMap> = Api::namespaced(place.client.clone(), NAMESPACE);
    let mut found = maps.list(&ListParams::default()).await.unwrap().items;
    found.retain(|map| map.metadata.name.as_deref().is_some_and(|name| name.starts_with("item-")));
    found
}

fn text(map: &ConfigMap) -> Option<&str> {
    map.data.as_ref()?.get("text").map(String::as_str)
}

async fn all_say(place: &Place, words: &str) {
    until_items(place, &format!("all {words}"), |items| {
        items.len() == ITEMS && items.iter().all(|map| text(map) == Some(words))
    })
    .await;
}

async fn one_says(place: &Place, words: &str) {
    let one = |items: &[ConfigMap]| items.iter().any(|map| text(map) == Some(words));
    until_items(place, &format!("one {words}"), one).await;
}

async fn until_empty(place: &Place) {
    until_items(place, "none", <[ConfigMap]>::is_empty).await;
}

async fn until_items(place: &Place, what: &str, fit: impl Fn(&[ConfigMap]) -> bool) {
    let waited = wait_until(format!("items: {what}"), SOON, || async {
        let items = items(place).await;
        let seen: Vec<_> = items.iter().map(|map| (map.metadata.name.as_deref(), text(map))).collect();
        if fit(&items) { Ok(()) } else { Err(format!("{seen:?}")) }
    });
    waited.await.unwrap_or_else(|late| panic!("{late}"));
}

async fn uids(place: &Place) -> BTreeMap<String, String> {
    let named = |map: ConfigMap| Some((map.metadata.name?, map.metadata.uid?));
    items(place).await.into_iter().filter_map(named).collect()
}

/// What is written by itself all the time: who leads, and what happened.
const NEVER_AT_REST: [&str; 2] = ["Event", "Lease"];
/// Configurations: their status is the syncers' word, with a beat in it.
const CONFIGURATIONS: [&str; 2] = ["EdgeSyncConfig", "SyncerConfig"];

/// The versions of all that stands in these places, of whatever kind; of configurations what they say, but for what comes late.
async fn written(places: &[&Place]) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::new();
    for place in places {
        let served = Discovery::new(place.client.clone()).run().await.unwrap();
        let kinds = served.groups().flat_map(ApiGroup::recommended_resources);
        let kinds = kinds.filter(|(kind, can)| {
            can.supports_operation(verbs::LIST) && !NEVER_AT_REST.contains(&kind.kind.as_str())
        });
        for (kind, _) in kinds {
            let all: Api<DynamicObject> = Api::all_with(place.client.clone(), &kind);
            for object in all.list(&ListParams::default()).await.unwrap() {
                let named = object.metadata.name.unwrap_or_default();
                let namespace = object.metadata.namespace.unwrap_or_default();
                let name = format!("{} {}.{} {namespace}/{named}", place.path, kind.plural, kind.group);
                let said = if CONFIGURATIONS.contains(&kind.kind.as_str()) {
                    object.data["spec"].to_string().replace("\"late\",", "").replace(",\"late\"", "")
                } else {
                    object.metadata.resource_version.unwrap_or_default()
                };
                versions.insert(name, said);
            }
        }
    }
    versions
}

/// The same, when twice in a row nothing was written between.
async fn at_rest(places: &[&Place]) -> BTreeMap<String, String> {
    let before = RefCell::new(BTreeMap::new());
    let waited = wait_until("nothing is written any more", SOON, async || {
        let now = written(places).await;
        let other = before.replace(now.clone());
        if other == now { Ok(now) } else { Err(format!("{:?}", differing(&other, &now))) }
    });
    waited.await.unwrap_or_else(|late| panic!("{late}"))
}

/// What of all that stood there is not as it was.
fn differing<'b>(before: &'b BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<&'b String> {
    before.iter().filter(|(name, said)| now.get(*name) != Some(*said)).map(|(name, _)| name).collect()
}

fn is_ready(target: &Value) -> bool {
    let conditions = target["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| one["type"] == "Ready" && one["status"] == "True")
}

fn all_of(place: &Place, kind: &str) -> Api<DynamicObject> {
    let (group, version) = EDGE.split_once('/').unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let plural =
        if kind.kind == "StatusSummary" { "statussummaries".to_owned() } else { kind.plural.clone() };
    Api::all_with(place.client.clone(), &ApiResource { plural, ..kind })
}

/// The moment of what stands there.
async fn version(place: &Place, kind: &str) -> String {
    let listed = all_of(place, kind).list(&ListParams::default()).await.unwrap();
    listed.metadata.resource_version.unwrap()
}

/// All that was said on objects of a kind since then.
async fn said_since(place: &Place, kind: &str, since: &str) -> Vec<Value> {
    let limited = WatchParams::default().timeout(1).disable_bookmarks();
    let events = all_of(place, kind).watch(&limited, since).await.unwrap();
    let objects = events.filter_map(async |event| match event.unwrap() {
        WatchEvent::Added(object) | WatchEvent::Modified(object) => Some(json!(object)),
        _ => None,
    });
    objects.collect().await
}

async fn said(fleet: &Fleet, who: &str, words: &str) {
    let waited = wait_until(format!("{who} said {words:?}"), SOON, async || {
        let log = fleet.log(who);
        if log.contains(words) { Ok(()) } else { Err(log) }
    });
    waited.await.unwrap_or_else(|late| panic!("{late}"));
}
