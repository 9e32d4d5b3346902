//! In which form kcp says what: the table behind every doubt.

use std::time::Duration;

use http::Request;
use mailboat_cluster::{Read, ReadMode, Transport as _};
use mailboat_object::key::{ClusterId, KindId, Name};
use mailboat_object::wire::{Call, FaultKind, Part, Verb};
use mailboat_testkit::{ADMIN, apply, wait_until};
use serde_json::{Value, json};

use crate::harbor::{Harbor, boats};
use crate::rig::{MANAGER, SOON, key};
use crate::waters::config_maps;

#[tokio::test]
async fn what_is_missing_is_told_apart_from_what_is_not_served_and_from_where_we_may_not_look() {
    let harbor = Harbor::build(&[]).await;
    let consumer = harbor.consumer().await;
    let cluster = &consumer.workspace.cluster;
    let here = harbor.connection.at(&format!("/clusters/{cluster}"));
    let view = harbor.connection.view(&harbor.url().await).unwrap();
    let in_view = view.cluster(&ClusterId::new(cluster));
    let get = |kind: &KindId, name: &str| Call {
        key: key(cluster, kind, "default", name),
        verb: Verb::Get,
        part: Part::Whole,
        dry_run: false,
    };
    let wrecks = KindId::new("sea.example.com", "wrecks");
    let nowhere = harbor.connection.at("/clusters/nosuchcluster1234");
    for (what, answer, kind) in [
        ("no such boat", here.call(get(&boats(), "none")).await, FaultKind::NotFound),
        ("no such boat in the view", in_view.call(get(&boats(), "none")).await, FaultKind::NotFound),
        ("no such map", here.call(get(&config_maps(), "none")).await, FaultKind::NotFound),
        ("a kind that is not served", here.call(get(&wrecks, "none")).await, FaultKind::Unserved),
        (
            "a kind that the view does not show",
            in_view.call(get(&config_maps(), "none")).await,
            FaultKind::Unserved,
        ),
        (
            "a workspace that is not there",
            nowhere.call(get(&config_maps(), "none")).await,
            FaultKind::Forbidden,
        ),
    ] {
        let fault = answer.expect_err(what);
        assert_eq!(fault.kind, kind, "{what}: {fault}");
    }
    // The same without our reading of it: an object's 404 is a Status with its name, a kind's is plain text.
    let (status, body) =
        raw(&harbor, &format!("/clusters/{cluster}/apis/sea.example.com/v1/namespaces/default/boats/none"))
            .await;
    let body: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("{body}"));
    assert_eq!((status, &body["details"]["name"]), (404, &json!("none")), "{body}");
    let (status, body) = raw(&harbor, &format!("/clusters/{cluster}/apis/sea.example.com/v1/wrecks")).await;
    assert!(status == 404 && !body.trim_start().starts_with('{'), "{status} {body}");
}

#[tokio::test]
async fn writing_through_a_view_by_apply_is_refused_before_it_is_sent() {
    let harbor = Harbor::build(&[]).await;
    let consumer = harbor.consumer().await;
    let oak = consumer.boat("oak", "oak").await;
    let view = harbor.connection.view(&harbor.url().await).unwrap();
    let body = json!({ "apiVersion": "sea.example.com/v1", "kind": "Boat", "metadata": { "name": "oak", "namespace": "default" }, "spec": { "hull": "elm" } });
    let call = |verb: Verb| Call { key: oak.clone(), verb, part: Part::Whole, dry_run: false };
    let apply = Verb::Apply { body: bytes_of(&body), manager: Name::new(MANAGER), force: true };
    let one = view.cluster(&consumer.cluster());
    assert!(!one.abilities().apply && !one.abilities().whole);
    let refused = one.call(call(apply.clone())).await.expect_err("apply through a view");
    assert_eq!(refused.kind, FaultKind::Bug, "{refused}");
    let all = view.all().call(call(Verb::Get)).await.expect_err("one object in all clusters at once");
    assert_eq!(all.kind, FaultKind::Bug, "{all}");
    // What a view takes, and what the workspace itself takes.
    let merge =
        Verb::Merge { body: bytes_of(&json!({ "spec": { "hull": "ash" } })), manager: Name::new(MANAGER) };
    one.call(call(merge)).await.unwrap_or_else(|fault| panic!("{fault}"));
    let here = harbor.connection.at(&format!("/clusters/{}", consumer.workspace.cluster));
    assert!(here.abilities().apply && here.abilities().whole);
    here.call(call(apply)).await.unwrap_or_else(|fault| panic!("{fault}"));
}

#[tokio::test]
async fn a_wildcard_does_not_do_what_a_cluster_does() {
    let harbor = Harbor::build(&["configmaps"]).await;
    let consumer = harbor.consumer().await;
    consumer.boat("oak", "oak").await;
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "chart", "namespace": "default" } });
    apply(&consumer.client, &map.to_string()).await.unwrap();
    let url = harbor.url().await;
    let path = url.split_once("/services/").map(|(_, rest)| format!("/services/{rest}/clusters/*")).unwrap();
    let list = async |query: &str| {
        let (status, body) = raw(&harbor, &format!("{path}/api/v1/configmaps{query}")).await;
        assert_eq!(status, 200, "{body}");
        let body: Value = serde_json::from_str(&body).unwrap();
        let version = body["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        (body["items"].as_array().map_or(0, Vec::len), version)
    };
    wait_until("the claimed map in the view", SOON, || async {
        match list("").await {
            (0, _) => Err("not yet"),
            _ => Ok(()),
        }
    })
    .await
    .unwrap();
    // A namespace as a field selector finds nothing where the namespace as a path would: so it is never asked.
    assert_eq!(
        list("?fieldSelector=metadata.namespace%3Ddefault").await.0,
        0,
        "kcp has learned field selectors"
    );
    let (count, version) = list("?limit=1").await;
    assert_eq!(count, 1);

    // A first list by watch ends in an error for claimed built-in kinds: so it is never asked for either.
    let query = format!(
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=5&resourceVersion={version}"
    );
    let (_, lines) = raw(&harbor, &format!("{path}/api/v1/configmaps?{query}")).await;
    assert!(lines.contains("\"ERROR\""), "kcp has learned sendInitialEvents: {lines}");

    // A watch from the future is answered and stays silent, whatever happens: so a resumed one is checked first.
    let future = version.parse::<u64>().unwrap() + 100_000;
    let read = Read::all(
        config_maps(),
        ReadMode::Watch { from: mailboat_object::key::Version(future), timeout_seconds: 4 },
    );
    let view = harbor.connection.view(&url).unwrap();
    let mut lines = view.all().fetch(read).await.unwrap_or_else(|fault| panic!("{fault}"));
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "unseen", "namespace": "default" } });
    apply(&consumer.client, &map.to_string()).await.unwrap();
    let line =
        tokio::time::timeout(Duration::from_secs(20), lines.next()).await.expect("the watch did not end");
    let told = line.map(|line| line.map(|line| String::from_utf8_lossy(&line).into_owned()));
    assert!(
        !matches!(&told, Some(Ok(line)) if line.contains("unseen")),
        "kcp has learned about the future: {told:?}"
    );
}

#[tokio::test]
async fn kcp_speaks_neither_aggregated_discovery_nor_protobuf_and_is_understood_all_the_same() {
    let harbor = Harbor::build(&[]).await;
    let consumer = harbor.consumer().await;
    let path = format!("/clusters/{}/apis", consumer.workspace.cluster);
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let request = Request::get(path).header("Accept", accept).body(Vec::new()).unwrap();
    let client = harbor.center.client(ADMIN, "").await.unwrap();
    let said = client.request_text(request).await.map_err(|error| error.to_string());
    assert!(!said.as_deref().is_ok_and(|body| body.contains("APIGroupDiscoveryList")), "{said:?}");
    let here = harbor.connection.at(&format!("/clusters/{}", consumer.workspace.cluster));
    let served = here.served(&boats()).await.unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(
        (served.api_version().as_str(), served.namespaced, served.status),
        ("sea.example.com/v1", true, true)
    );
    assert!(served.verbs.can_follow());
}

#[tokio::test]
async fn a_list_read_in_pages_through_a_view_is_whole() {
    let harbor = Harbor::build(&[]).await;
    let (one, other) = (harbor.consumer().await, harbor.consumer().await);
    for number in 0..7 {
        one.boat(&format!("boat-{number}"), "oak").await;
        other.boat(&format!("boat-{number}"), "elm").await;
    }
    let view = harbor.connection.view(&harbor.url().await).unwrap().all();
    let mut names = Vec::new();
    let mut continue_token = None;
    loop {
        let read = Read::all(boats(), ReadMode::Page { limit: 3, continue_token: continue_token.take() });
        let page = view.fetch(read).await.unwrap().whole().await.unwrap();
        let page: Value = serde_json::from_slice(&page).unwrap();
        let items = page["items"].as_array().cloned().unwrap_or_default();
        assert!(items.len() <= 3, "a page of {}", items.len());
        names.extend(items.iter().map(|item| {
            format!("{} {}", item["metadata"]["annotations"]["kcp.io/cluster"], item["metadata"]["name"])
        }));
        continue_token =
            page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()).map(ToOwned::to_owned);
        if continue_token.is_none() {
            break;
        }
    }
    names.sort();
    let all = names.len();
    names.dedup();
    assert_eq!((all, names.len()), (14, 14), "{names:?}");
}

/// What the center answers to the administrator.
async fn raw(harbor: &Harbor<'_>, path: &str) -> (u16, String) {
    let client = harbor.center.client(ADMIN, "").await.unwrap();
    let request = Request::get(path).body(kube::client::Body::empty()).unwrap();
    let response = client.send(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect_bytes().await.unwrap();
    (status, String::from_utf8_lossy(&body).into_owned())
}

fn bytes_of(value: &Value) -> std::sync::Arc<[u8]> {
    value.to_string().into_bytes().into()
}
