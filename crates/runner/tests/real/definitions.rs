//! A CRD that comes, changes, goes and comes again under the followers' eyes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use mailboat_cluster::Cluster;
use mailboat_engine::look::{LastSight, Otherwise};
use mailboat_engine::want::Origin;
use mailboat_object::key::{ClusterId, KindId};
use mailboat_object::object::Object;
use mailboat_runner::look;
use mailboat_store::Doubt;
use mailboat_testkit::{ADMIN, apply, wait_until};
use serde_json::{Value, json};

use crate::rig::{Rig, SOON, api_in, api_of, connect, key};
use crate::waters::{EDGE, shared_edge};

#[tokio::test]
async fn a_crd_added_changed_removed_and_added_again_is_followed_without_a_restart() {
    let world = shared_edge().await;
    let edge = world.edge(EDGE);
    let client = edge.client(ADMIN).await.unwrap();
    let boats = KindId::new("sea.example.com", "boats");
    let crds = KindId::new("apiextensions.k8s.io", "customresourcedefinitions");
    let definitions = api_of(&client, &crds, "v1", "CustomResourceDefinition");
    let harbor = api_in(&client, "default", &boats, "v1", "Boat");
    let everywhere = [(ClusterId::new(EDGE), api_of(&client, &boats, "v1", "Boat"))];
    let [oak, elm] = ["oak", "elm"].map(|name| key(EDGE, &boats, "default", name));

    let rig = Rig::new();
    let connection = connect(&edge.access(ADMIN).unwrap()).await;
    rig.follow_whole(EDGE, connection.cluster(), &[boats.clone(), crds.clone()]).await;
    rig.until_unknown(&oak, Doubt::Unserved).await;

    let added = Instant::now();
    apply(&client, &crd(&["hull"]).to_string()).await.unwrap();
    let boat = |name: &str| json!({ "apiVersion": "sea.example.com/v1", "kind": "Boat", "metadata": { "name": name }, "spec": { "hull": name } });
    apply(&client, &boat("oak").to_string()).await.unwrap();
    rig.until_present(&oak, "there", |_| true).await;
    println!("a new kind's first object was seen {:.1?} after its CRD was applied", added.elapsed());
    rig.exists([&oak]);
    rig.assert_faithful(&boats, &everywhere).await;

    // An open watch would go on without the new field.
    apply(&client, &crd(&["hull", "sail"]).to_string()).await.unwrap();
    wait_until("the new field kept by the server", SOON, || async {
        let patch = Patch::Merge(json!({ "spec": { "sail": "red" } }));
        let patched =
            harbor.patch("oak", &PatchParams::default(), &patch).await.map_err(|error| error.to_string())?;
        if patched.data["spec"]["sail"] == "red" { Ok(()) } else { Err(patched.data["spec"].to_string()) }
    })
    .await
    .unwrap();
    rig.until_present(&oak, "with the new field", |boat| boat.get(&["spec", "sail"]).is_some()).await;
    let wanted = serde_json::from_value(boat("elm")).unwrap();
    harbor.create(&PostParams::default(), &wanted).await.unwrap();
    let elm_was = rig.until_present(&elm, "there", |_| true).await;
    rig.exists([&elm]);
    rig.assert_faithful(&boats, &everywhere).await;

    // Its objects go with it, by ordinary delete events; what remains is that nothing is known of the kind.
    rig.goes([&oak, &elm]);
    definitions.delete("boats.sea.example.com", &DeleteParams::default()).await.unwrap();
    rig.until_unknown(&oak, Doubt::Unserved).await;
    rig.until_unknown(&elm, Doubt::Unserved).await;

    wait_until("the CRD gone", SOON, || async {
        match definitions.get_opt("boats.sea.example.com").await {
            Ok(None) => Ok(()),
            other => {
                Err(format!("{:?}", other.map(|found| found.map(|found| found.metadata.deletion_timestamp))))
            }
        }
    })
    .await
    .unwrap();
    let again = Instant::now();
    apply(&client, &crd(&["hull"]).to_string()).await.unwrap();
    apply(&client, &boat("oak").to_string()).await.unwrap();
    rig.until_present(&oak, "there again", |_| true).await;
    rig.until_absent(&elm).await;
    rig.assert_faithful(&boats, &everywhere).await;
    let took = again.elapsed();
    println!("the kind was known {took:.1?} after its CRD came back");
    assert!(took < Duration::from_secs(30), "only after {took:?}");

    // A fresh look does not take what went with the CRD for deleted; what is deleted now, it does.
    let server = connection.cluster();
    assert_eq!(judged(&rig, &server, &elm_was).await, Err(Otherwise::Redefined));
    let oak_was = rig.until_present(&oak, "there", |_| true).await;
    rig.goes([&oak]);
    harbor.delete("oak", &DeleteParams::default()).await.unwrap();
    rig.until_absent(&oak).await;
    assert_eq!(judged(&rig, &server, &oak_was).await, Ok(()));
}

/// What a fresh look says of an object that is known to be absent and was like this.
pub(crate) async fn judged(rig: &Rig, server: &Cluster, was: &Object) -> Result<(), Otherwise> {
    let absence = rig.seen(&was.key).await.absent().expect("it is absent");
    let found = look(Arc::new(server.clone()), was.key.clone()).await.unwrap();
    println!("{} was last seen at {}; {found:?}", was.key, was.version);
    found.judge(&LastSight::of(absence, Some(&Origin::of(was))))
}

/// A CRD of boats whose spec has these fields, all texts.
pub(crate) fn crd(fields: &[&str]) -> Value {
    let properties: Value =
        fields.iter().map(|field| ((*field).to_owned(), json!({ "type": "string" }))).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "boats.sea.example.com" },
        "spec": {
            "group": "sea.example.com",
            "names": { "plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList" },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": schema(&properties) },
                "subresources": { "status": {} },
            }],
        },
    })
}

pub(crate) fn schema(properties: &Value) -> Value {
    json!({
        "type": "object",
        "properties": {
            "spec": { "type": "object", "properties": properties },
            "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        },
    })
}
