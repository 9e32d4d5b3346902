//! One client cannot take all that there is.

use std::path::Path;
use std::time::Duration;

use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use mailboat_hub::flow::{Limits, Shares};
use tokio::sync::mpsc;

use crate::kubectl::Kubectl;
use crate::served::Served;

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_too_many_is_refused_and_ends_with_its_client() {
    let limits = Limits::default();
    let one = |shares: Shares| Shares { per_user: 1, ..shares };
    let limits = Limits { watches: one(limits.watches), requests: one(limits.requests), ..limits };
    let served = Served::with_limits(limits).await;
    let kubectl = Kubectl::new(&served.kubeconfig);
    let watch = ["get", "--raw", "/api/v1/namespaces?watch=true&timeoutSeconds=600"];
    let refused = {
        // The first watch lasts as long as its kubectl, which ends with this block.
        let mut first = std::pin::pin!(kubectl.run(&watch));
        let mut second = std::pin::pin!(async {
            loop {
                let said =
                    kubectl.run(&["get", "--raw", "/api/v1/namespaces?watch=true&timeoutSeconds=1"]).await;
                if !said.well {
                    return said;
                }
            }
        });
        tokio::select! {
            said = &mut first => said,
            said = &mut second => said,
        }
    };
    assert!(refused.err.contains("too many requests"), "{refused:?}");
    // Requests that are answered soon take turns, and all come to theirs.
    let words = ["get", "namespaces"];
    let (one, two, three) = tokio::join!(kubectl.run(&words), kubectl.run(&words), kubectl.run(&words));
    assert!(one.well && two.well && three.well, "{one:?} {two:?} {three:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_watch_is_told_how_far_it_has_come_before_it_ends() {
    let served = Served::in_memory().await;
    let kubectl = Kubectl::new(&served.kubeconfig);
    let watch = "/api/v1/secrets?watch=true&allowWatchBookmarks=true&timeoutSeconds=4";
    let version = |text: &str| {
        let object: serde_json::Value = serde_json::from_str(text).unwrap();
        let at = object
            .pointer("/object/metadata/resourceVersion")
            .or(object.pointer("/metadata/resourceVersion"));
        at.and_then(serde_json::Value::as_str).unwrap().parse::<u64>().unwrap()
    };
    let words = ["get", "--raw", watch];
    let create = ["create", "configmap", "elsewhere", "-o", "json"];
    let (watched, created) = tokio::join!(kubectl.run(&words), kubectl.run(&create));
    let last = watched.out.lines().last().unwrap_or_default();
    assert!(last.contains("BOOKMARK") && version(last) >= version(&created.out), "{watched:?}");
}

async fn client(kubeconfig: &Path) -> kube::Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    kube::Client::try_from(config.unwrap()).unwrap()
}

fn ask(method: &str, path: &str, body: String) -> http::Request<Body> {
    http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Body::from(body.into_bytes()))
        .unwrap()
}

/// One user asks for whatever he can get, over many connections, and reads nothing of it. While all that is under way, another
/// is answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_one_user_keeps_nobody_else_from_anything() {
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let share = Shares { all: 8, per_workspace: 8, per_user: 4 };
    // Nothing that the one holds is given up while the other asks.
    let ever = Duration::from_hours(1);
    let limits = Limits {
        requests: share,
        watches: share,
        turn_within: ever,
        request_within: ever,
        answer_within: ever,
        take_within: ever,
        ..Limits::default()
    };
    let served = Served::with_limits(limits).await;
    let other = client(&served.other_kubeconfig).await;
    for number in 0..10 {
        let map = serde_json::json!({
            "metadata": { "name": format!("map-{number}") }, "data": { "text": "x".repeat(1_000_000) },
        });
        let made = other.send(ask("POST", MAPS, map.to_string())).await.unwrap();
        assert_eq!(made.status(), 201);
    }
    let (told, mut heard) = mpsc::unbounded_channel();
    let mut flood = tokio::task::JoinSet::new();
    for number in 0..60 {
        let (told, greedy) = (told.clone(), client(&served.kubeconfig).await);
        let query = if number % 2 == 0 { "" } else { "?watch=true&resourceVersion=0" };
        flood.spawn(async move {
            let answer = greedy.send(ask("GET", &format!("{MAPS}{query}"), String::new())).await;
            let held = answer.ok().filter(|answer| answer.status() == 200);
            if held.is_some() {
                let _ = told.send(());
            }
            std::future::pending::<()>().await;
            drop(held);
        });
    }
    // What he may have, he has, and asks for more: his clients try again whatever they are told.
    for _ in 0..share.per_user {
        let held = tokio::time::timeout(Duration::from_mins(3), heard.recv()).await;
        held.expect("he is not answered either").unwrap();
    }
    let answered = async {
        for number in 0..10 {
            let one = other.send(ask("GET", &format!("{MAPS}/map-{number}"), String::new())).await.unwrap();
            assert_eq!(one.status(), 200);
        }
        let query = format!("{MAPS}?watch=true&resourceVersion=0&timeoutSeconds=60");
        assert_eq!(other.send(ask("GET", &query, String::new())).await.unwrap().status(), 200);
    };
    // Were it to wait for the other, it would wait for ever.
    tokio::time::timeout(Duration::from_mins(3), answered).await.expect("somebody had to wait");
    assert!(heard.try_recv().is_err(), "he got more than he may have");
}
