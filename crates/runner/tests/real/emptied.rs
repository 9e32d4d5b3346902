//! Maps and lists of custom resources that become empty: an apply alone leaves null there, or is refused. What is no longer in
//! the source goes from the copy all the same, and then nothing is written any more.

use kube::api::ListParams;
use mailboat_engine::plan::{Refusal, Verdict};
use mailboat_engine::want::Delivery;
use mailboat_object::key::{Key, KindId};
use mailboat_testkit::{ADMIN, Access, World, apply, wait_until};
use serde_json::{Value, json};

use crate::harbor::BOUND;
use crate::rig::{SOON, api_of};
use crate::stubborn::{QUIET, Shop};
use crate::waters::{EDGE, shared_edge};

pub(crate) fn barges() -> KindId {
    KindId::new("sea.example.com", "barges")
}

/// A kind with maps and lists of every sort: declared, of free keys, preserved as they are, nullable, with a default.
fn definition() -> Value {
    let text = json!({ "type": "string" });
    let free = json!({ "type": "object", "additionalProperties": text });
    let mut maybe = free.clone();
    maybe["nullable"] = json!(true);
    let mut usual = free.clone();
    usual["default"] = json!({});
    let strict =
        json!({ "type": "object", "required": ["must"], "properties": { "must": text, "may": text } });
    let keyed = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
        "items": { "type": "object", "required": ["id"], "properties": { "id": text, "value": text } },
    });
    let properties = json!({
        "name": text,
        "data": free,
        "inner": { "type": "object", "properties": { "data": free, "size": { "type": "integer" } } },
        "loose": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        "maybe": maybe,
        "usual": usual,
        "strict": strict,
        "set": { "type": "array", "x-kubernetes-list-type": "set", "items": text },
        "keyed": keyed,
        "whole": { "type": "array", "items": text },
    });
    let schema = json!({
        "type": "object", "properties": { "spec": { "type": "object", "properties": properties } },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "barges.sea.example.com" },
        "spec": {
            "group": "sea.example.com",
            "names": { "plural": "barges", "singular": "barge", "kind": "Barge", "listKind": "BargeList" },
            "scope": "Namespaced",
            "versions": [
                { "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } },
            ],
        },
    })
}

fn full() -> Value {
    json!({
        "name": "pos", "data": { "a": "1", "b": "2" }, "inner": { "data": { "a": "1" }, "size": 3 },
        "loose": { "a": { "b": 1 } }, "maybe": { "a": "1" }, "usual": { "a": "1" }, "strict": { "must": "1", "may": "2" },
        "set": ["x", "y"], "keyed": [{ "id": "a", "value": "1" }], "whole": ["1"],
    })
}

/// Every way to have less in it, by what is said of it: a path, and what stands there now, or nothing.
fn less() -> Vec<(String, Value)> {
    let paths = [
        "/data",
        "/inner/data",
        "/inner",
        "/loose",
        "/loose/a",
        "/maybe",
        "/usual",
        "/strict",
        "/set",
        "/keyed",
        "/whole",
    ];
    let mut cases = Vec::new();
    for path in paths {
        let (around, member) = path.rsplit_once('/').unwrap();
        let mut without = full();
        without.pointer_mut(around).unwrap().as_object_mut().unwrap().remove(member);
        cases.push((format!("without {path}"), without));
        // What must have something in it cannot be empty.
        if path == "/strict" {
            continue;
        }
        let mut empty = full();
        let there = empty.pointer_mut(path).unwrap();
        *there = if there.is_array() { json!([]) } else { json!({}) };
        cases.push((format!("{path} is empty"), empty));
    }
    let mut bare = full();
    bare.as_object_mut().unwrap().retain(|name, _| name == "name");
    cases.push(("nothing but a name".to_owned(), bare));
    cases.push(("an empty spec".to_owned(), json!({})));
    cases
}

fn barge(name: &str, spec: Option<&Value>) -> Value {
    let mut barge =
        json!({ "apiVersion": "sea.example.com/v1", "kind": "Barge", "metadata": { "name": name } });
    if let Some(spec) = spec {
        barge["spec"] = spec.clone();
    }
    barge
}

/// What a value says: null, and what is empty, says nothing.
fn said(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), said(value)));
            let said: serde_json::Map<String, Value> =
                members.filter(|(_, value)| !value.is_null()).collect();
            if said.is_empty() { Value::Null } else { said.into() }
        }
        Value::Array(elements) if elements.is_empty() => Value::Null,
        other => other.clone(),
    }
}

/// Whether anything below is null.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().any(has_null),
        other => other.is_null(),
    }
}

async fn empties_everything(access: &Access, name: &str) {
    let client = access.client().await.unwrap();
    apply(&client, &definition().to_string()).await.unwrap();
    let all = api_of(&client, &barges(), "v1", "Barge");
    // kcp takes some seconds.
    wait_until("the kind served", BOUND, || async {
        all.list(&ListParams::default()).await.map(drop).map_err(|error| error.to_string())
    })
    .await
    .unwrap();
    let shop = Shop::open_at(access, name, Delivery::Apply).await;
    let mut cases: Vec<(String, Option<Value>)> =
        less().into_iter().map(|(why, spec)| (why, Some(spec))).collect();
    cases.push(("no spec".to_owned(), None));
    let mut keys: Vec<Key> = Vec::new();
    for (number, _) in cases.iter().enumerate() {
        let name = format!("barge-{number}");
        keys.push(shop.send(&name, barge(&name, Some(&full()))).await);
    }
    shop.until(&keys, "delivered", |verdict| *verdict == Verdict::Settled).await;
    shop.ledger.forget();
    for (number, (_, spec)) in cases.iter().enumerate() {
        let name = format!("barge-{number}");
        shop.send(&name, barge(&name, spec.as_ref())).await;
    }
    for ((why, spec), key) in cases.iter().zip(&keys) {
        let wanted = said(spec.as_ref().unwrap_or(&Value::Null));
        let found = wait_until(format!("{why}: taken out of {key}"), SOON, || async {
            let found = shop.read(key).await?;
            if said(&found["spec"]) == wanted {
                Ok(found)
            } else {
                Err(format!("{found} {:?}", shop.told(key)))
            }
        });
        let found = found.await.unwrap();
        println!("{name}, {why}: {} in {:?} writes", found["spec"], shop.ledger.attempts().get(key));
    }
    shop.until(&keys, "as wanted", |verdict| *verdict == Verdict::Settled).await;
    for ((why, _), key) in cases.iter().zip(&keys) {
        let found = shop.read(key).await.unwrap();
        // Null stays only where null may be, and is what the server makes of an empty map that is wanted.
        let spec = found["spec"].as_object().cloned().unwrap_or_default();
        let null =
            spec.iter().find(|(name, value)| !matches!(name.as_str(), "maybe" | "loose") && has_null(value));
        assert_eq!(null, None, "{why}: {}", found["spec"]);
        let writes = shop.ledger.attempts().get(key).copied().unwrap_or_default();
        assert!(writes <= 3, "{why}: {writes} writes");
        let refused = shop.told(key).iter().filter(|told| matches!(told, Verdict::Refused(_))).count();
        assert_eq!(refused, 0, "{why}: {:?}", shop.told(key));
    }
    shop.ledger.forget();
    tokio::time::sleep(QUIET).await;
    assert_eq!(shop.ledger.attempts(), std::collections::BTreeMap::new(), "it goes on");

    // What is refused for itself stays refused, and nothing is taken out of the copy for that.
    let mut wrong = full();
    wrong["strict"] = json!({ "may": "2" });
    let name = "barge-wrong";
    let key = shop.send(name, barge(name, Some(&full()))).await;
    shop.until(std::slice::from_ref(&key), "delivered", |verdict| *verdict == Verdict::Settled).await;
    shop.send(name, barge(name, Some(&wrong))).await;
    let rejected = |verdict: &Verdict| *verdict == Verdict::Refused(Refusal::Rejected);
    shop.until(std::slice::from_ref(&key), "refused", rejected).await;
    assert_eq!(shop.read(&key).await.unwrap()["spec"], full());
    shop.close().await;
}

#[tokio::test]
async fn what_becomes_empty_in_a_custom_resource_goes_from_its_copy_at_an_edge() {
    let world = shared_edge().await;
    empties_everything(&world.edge(EDGE).access(ADMIN).unwrap(), "emptied").await;
}

#[tokio::test]
async fn what_becomes_empty_in_a_custom_resource_goes_from_its_copy_in_a_workspace() {
    let world = World::shared().await.unwrap_or_else(|error| panic!("{error}"));
    let workspace = world.center().workspace("emptied").await.unwrap();
    empties_everything(&world.center().access(ADMIN, &workspace.path).unwrap(), "emptied").await;
}
