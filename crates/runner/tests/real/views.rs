//! What a view of kcp shows and hides: namesakes, claims, bindings, endpoints and workspaces that go.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use mailboat_object::json::Raw;
use mailboat_object::key::KindId;
use mailboat_store::{Doubt, Nature, PlaceId, Seen, Settings};
use mailboat_testkit::{ADMIN, apply, wait_until};
use serde_json::json;

use crate::definitions::crd;
use crate::harbor::{BOUND, EXPORT, Harbor, VIEW, boats};
use crate::rig::{Rig, SOON, api_of, connect, describe, key, patient};
use crate::waters::config_maps;

#[tokio::test]
async fn equal_names_in_two_workspaces_are_two_objects() {
    let harbor = Harbor::build(&[]).await;
    let (one, other) = (harbor.consumer().await, harbor.consumer().await);
    let keys = [one.boat("twin", "oak").await, other.boat("twin", "elm").await];
    let rig = harbor.rig(&[boats()]).await;
    let hull = |hull: &'static str| {
        move |boat: &mailboat_object::object::Object| {
            boat.get(&["spec", "hull"]).and_then(Raw::as_str).as_deref() == Some(hull)
        }
    };
    rig.until_present(&keys[0], "of oak", hull("oak")).await;
    rig.until_present(&keys[1], "of elm", hull("elm")).await;
    rig.exists([&keys[1]]);
    one.boats().delete("twin", &DeleteParams::default()).await.unwrap();
    rig.until_absent(&keys[0]).await;
    other.boat("twin", "ash").await;
    rig.until_present(&keys[1], "of ash", hull("ash")).await;
    rig.assert_faithful(&boats(), &[(one.cluster(), one.all_boats()), (other.cluster(), other.all_boats())])
        .await;
}

#[tokio::test]
async fn a_claim_rejected_makes_its_objects_unknown_and_accepted_again_known() {
    let harbor = Harbor::build(&["configmaps"]).await;
    let (one, other) = (harbor.consumer().await, harbor.consumer().await);
    let mut keys = Vec::new();
    for consumer in [&one, &other] {
        for number in 0..5 {
            let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": format!("c{number}"), "namespace": "default" } });
            apply(&consumer.client, &map.to_string()).await.unwrap();
            keys.push(consumer.key(&config_maps(), &format!("c{number}")));
        }
    }
    let rig = harbor.rig(&[config_maps()]).await;
    for key in &keys {
        rig.until_present(key, "there", |_| true).await;
    }
    rig.exists(&keys);
    // Only what was seen to be claimed can be seen to be claimed no more.
    for consumer in [&one, &other] {
        rig.until_unknown(&consumer.key(&config_maps(), "nowhere"), Doubt::Claimed).await;
    }

    let one_cluster = one.workspace.cluster.clone();
    let rejected = Instant::now();
    one.claim("Rejected").await;
    for key in keys.iter().take(5) {
        rig.until_unknown(key, Doubt::Withdrawn).await;
    }
    // Objects and bindings come by two watches, and delete events for what exists are often the first to be heard.
    rig.assert_never_wrong();
    println!("unknown {:.1?} after the claim was rejected", rejected.elapsed());
    let still: Api<ConfigMap> = Api::namespaced(one.client.clone(), "default");
    assert!(still.get("c0").await.is_ok(), "a rejected claim deletes nothing");
    // In this place nothing is known, in the other all goes on.
    assert!(rig.seen(&keys[5]).await.present().is_some(), "{}", rig.told());

    // Accepted again before kcp is done with taking objects out of the view, some of them stay out for good.
    let hidden = harbor.center.client(ADMIN, "").await.unwrap();
    let path = harbor.url().await;
    let path = path
        .split_once("/services/")
        .map(|(_, rest)| format!("/services/{rest}/clusters/*/api/v1/configmaps"));
    wait_until("its objects out of the view", SOON, || async {
        let request = http::Request::get(path.as_deref().unwrap_or_default()).body(Vec::new());
        let body = hidden.request_text(request.unwrap()).await.map_err(|error| error.to_string())?;
        if body.contains(&*one_cluster) { Err("still shown".to_owned()) } else { Ok(()) }
    })
    .await
    .unwrap();
    // The view may leave them out before kcp has taken the labels off by which it does.
    wait_until("no object is labelled for the view", SOON, || async {
        let maps = still.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let labels = maps.items.iter().flat_map(|map| map.metadata.labels.iter().flatten());
        let labelled = labels.filter(|(name, _)| name.starts_with("claimed.internal.apis.kcp.io/")).count();
        if labelled == 0 { Ok(()) } else { Err(format!("{labelled} are")) }
    })
    .await
    .unwrap();
    let accepted = Instant::now();
    one.claim("Accepted").await;
    for key in keys.iter().take(5) {
        rig.until_present(key, "there again", |_| true).await;
    }
    println!("present {:.1?} after it was accepted again", accepted.elapsed());

    // What is really deleted is not known to be: through a claim it looks like what was only hidden.
    rig.goes([&keys[5]]);
    let maps: Api<ConfigMap> = Api::namespaced(other.client.clone(), "default");
    maps.delete("c0", &DeleteParams::default()).await.unwrap();
    rig.until_unknown(&keys[5], Doubt::Claimed).await;
    let missing = rig.tell({
        let cluster = other.cluster();
        move |followers, _| {
            followers.store().range(&cluster, &config_maps(), None).map(|range| range.missing())
        }
    });
    assert_eq!(missing.await, Ok(Err(Doubt::Claimed)));
    rig.assert_never_wrong();
}

#[tokio::test]
async fn a_binding_deleted_makes_its_kind_unknown_there_and_nowhere_else() {
    let harbor = Harbor::build(&[]).await;
    let (one, other) = (harbor.consumer().await, harbor.consumer().await);
    let keys = [one.boat("oak", "oak").await, other.boat("oak", "oak").await];
    let rig = harbor.rig(&[boats()]).await;
    rig.assert_faithful(&boats(), &[(one.cluster(), one.all_boats()), (other.cluster(), other.all_boats())])
        .await;
    rig.exists([&keys[1]]);

    // kcp deletes the boats with the binding, and says so by ordinary delete events.
    one.bindings().delete(EXPORT, &DeleteParams::default()).await.unwrap();
    rig.until_unknown(&keys[0], Doubt::Withdrawn).await;
    rig.assert_faithful(&boats(), &[(other.cluster(), other.all_boats())]).await;

    // Bound anew it is empty, and now that is known.
    wait_until("the binding gone", BOUND, || async {
        match one.bindings().get_opt(EXPORT).await {
            Ok(None) => Ok(()),
            other => Err(format!(
                "{:?}",
                other.map(|found| found.map(|binding| binding.metadata.deletion_timestamp))
            )),
        }
    })
    .await
    .unwrap();
    harbor.bind(&one).await;
    rig.until_absent(&keys[0]).await;
    one.boat("elm", "elm").await;
    rig.assert_faithful(&boats(), &[(one.cluster(), one.all_boats()), (other.cluster(), other.all_boats())])
        .await;
}

#[tokio::test]
async fn the_endpoint_goes_with_the_last_binding_and_comes_back_with_the_next() {
    let harbor = Harbor::build(&[]).await;
    let slices = harbor.slices();
    let slice = wait_until("an endpoint slice", SOON, || slices.get(EXPORT)).await.unwrap();
    assert_eq!(
        slice.data["status"]["endpoints"].as_array().map_or(0, Vec::len),
        0,
        "a URL before any binding"
    );
    let consumer = harbor.consumer().await;
    let oak = consumer.boat("oak", "oak").await;
    let rig = harbor.rig(&[boats()]).await;
    rig.assert_faithful(&boats(), &[(consumer.cluster(), consumer.all_boats())]).await;

    consumer.bindings().delete(EXPORT, &DeleteParams::default()).await.unwrap();
    wait_until("no URL any more", BOUND, || async {
        let slice = harbor.slices().get(EXPORT).await.map_err(|error| error.to_string())?;
        let body = serde_json::to_vec(&slice).map_err(|error| error.to_string())?;
        match mailboat_cluster::endpoints(&body) {
            Ok(urls) if urls.is_empty() => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
    .unwrap();
    rig.until_unknown(&oak, Doubt::Withdrawn).await;
    rig.tell(|followers, news| {
        followers.store_mut().open(&PlaceId::new(VIEW), Nature::View, [], news);
    })
    .await;
    let seen = rig.seen(&oak).await;
    assert!(seen.doubt().is_some(), "{}", describe(&seen));

    harbor.bind(&consumer).await;
    let elm = consumer.boat("elm", "elm").await;
    harbor.follow(&rig, &[boats()]).await;
    rig.until_present(&elm, "there", |_| true).await;
    // The binding may have been written after the list of boats; what is missing is then known from the next event
    // on, or from the next bookmark, which kcp sends once a minute.
    let ash = consumer.boat("ash", "ash").await;
    rig.until_present(&ash, "there", |_| true).await;
    rig.assert_faithful(&boats(), &[(consumer.cluster(), consumer.all_boats())]).await;
}

#[tokio::test]
async fn a_workspace_deleted_leaves_nothing_known_and_its_namesake_is_another() {
    let harbor = Harbor::build(&[]).await;
    let (going, staying) = (harbor.consumer().await, harbor.consumer().await);
    let (oak, elm) = (going.boat("oak", "oak").await, staying.boat("elm", "elm").await);
    let rig = harbor.rig(&[boats()]).await;
    // The same workspace by itself, as a syncer sees it.
    // No watch ends when a workspace goes; only whoever asks anew is told. So these are short.
    let own = Rig::with(Settings { watch_seconds: (5, 6), ..patient() });
    let connection = connect(&harbor.center.access(ADMIN, &going.workspace.cluster).unwrap()).await;
    own.follow_whole(&going.workspace.cluster, connection.cluster(), &[boats(), config_maps()]).await;
    own.assert_faithful(&boats(), &[(going.cluster(), going.all_boats())]).await;
    rig.assert_faithful(
        &boats(),
        &[(going.cluster(), going.all_boats()), (staying.cluster(), staying.all_boats())],
    )
    .await;
    rig.exists([&elm]);

    // One finalizer holds the whole workspace in its terminating state.
    let maps: Api<ConfigMap> = Api::namespaced(going.client.clone(), "default");
    let held = serde_json::from_value(
        json!({ "metadata": { "name": "held", "finalizers": ["sea.example.com/anchor"] } }),
    )
    .unwrap();
    maps.create(&PostParams::default(), &held).await.unwrap();
    let workspaces = KindId::new("tenancy.kcp.io", "workspaces");
    let workspaces =
        api_of(&harbor.center.client(ADMIN, "root").await.unwrap(), &workspaces, "v1alpha1", "Workspace");
    let name = &going.workspace.name;
    workspaces.delete(name, &DeleteParams::default()).await.unwrap();
    rig.until_unknown(&oak, Doubt::Withdrawn).await;
    let namesake = json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": { "name": name }, "spec": {} });
    let namesake = serde_json::from_value(namesake).unwrap();
    let refused = workspaces.create(&PostParams::default(), &namesake).await;
    assert!(matches!(&refused, Err(kube::Error::Api(status)) if status.code == 409), "{refused:?}");

    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch("held", &PatchParams::default(), &patch).await.unwrap();
    wait_until("the workspace gone", BOUND, || async {
        match workspaces.get_opt(name).await {
            Ok(None) => Ok(()),
            other => Err(format!("{:?}", other.map(|found| found.map(|one| one.data["status"].to_string())))),
        }
    })
    .await
    .unwrap();
    own.until_unknown(&going.key(&config_maps(), "held"), Doubt::Forbidden).await;
    let seen = own.seen(&oak).await;
    assert!(matches!(seen, Seen::Unknown(Doubt::Unserved | Doubt::Forbidden)), "{}", describe(&seen));

    // The namesake is another cluster: what was known of the first says nothing of it.
    workspaces.create(&PostParams::default(), &namesake).await.unwrap();
    let cluster = wait_until("the namesake ready", BOUND, || async {
        let seen = workspaces.get(name).await.map_err(|error| error.to_string())?;
        match (seen.data["status"]["phase"].as_str(), seen.data["spec"]["cluster"].as_str()) {
            (Some("Ready"), Some(cluster)) => Ok(cluster.to_owned()),
            _ => Err(seen.data["status"].to_string()),
        }
    })
    .await
    .unwrap();
    assert_ne!(cluster, going.workspace.cluster, "a cluster's name was used again");
    let seen = rig.seen(&key(&cluster, &boats(), "default", "oak")).await;
    assert!(matches!(seen, Seen::Unknown(Doubt::NotEngaged)), "{}", describe(&seen));
    rig.assert_faithful(&boats(), &[(staying.cluster(), staying.all_boats())]).await;
}

#[tokio::test]
async fn a_crd_deleted_in_a_workspace_leaves_nothing_known_of_its_kind() {
    let center = mailboat_testkit::World::shared().await.unwrap().center();
    let workspace = center.workspace("natured").await.unwrap();
    let client = center.client(ADMIN, &workspace.path).await.unwrap();
    let crds = KindId::new("apiextensions.k8s.io", "customresourcedefinitions");
    apply(&client, &crd(&["hull"]).to_string()).await.unwrap();
    let boat = json!({ "apiVersion": "sea.example.com/v1", "kind": "Boat", "metadata": { "name": "oak", "namespace": "default" }, "spec": { "hull": "oak" } });
    apply(&client, &boat.to_string()).await.unwrap();
    let rig = Rig::new();
    let connection = connect(&center.access(ADMIN, &workspace.cluster).unwrap()).await;
    rig.follow_whole(&workspace.cluster, connection.cluster(), &[boats(), crds.clone(), config_maps()]).await;
    let oak = key(&workspace.cluster, &boats(), "default", "oak");
    rig.until_present(&oak, "there", |_| true).await;
    let maps = api_of(&client, &config_maps(), "v1", "ConfigMap");
    let before = maps.list(&ListParams::default()).await.unwrap().items.len();

    let deleted = Instant::now();
    let definitions = api_of(&client, &crds, "v1", "CustomResourceDefinition");
    definitions.delete("boats.sea.example.com", &DeleteParams::default()).await.unwrap();
    rig.until_unknown(&oak, Doubt::Unserved).await;
    println!("unknown {:.1?} after its CRD was deleted", deleted.elapsed());
    let known = rig.tell({
        let cluster = mailboat_object::key::ClusterId::new(&workspace.cluster);
        move |followers, _| followers.store().range(&cluster, &config_maps(), None).map(Iterator::count)
    });
    assert_eq!(known.await, Ok(before), "one kind's end is another's doubt");
    assert!(deleted.elapsed() < SOON + Duration::from_secs(5));
}
