//! API servers that die, forget, and have too much to do.

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use http::StatusCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use mailboat_store::{Doubt, Settings};
use mailboat_testkit::proxy::{Delay, FaultyServer, Proxy, Rule, Scope};
use mailboat_testkit::{ADMIN, EdgeSpec, wait_until};

use crate::rig::{Rig, SOON, connect, patient};
use crate::waters::{EDGE, Fleet, config_maps, own_edge, shared_edge};

#[tokio::test]
async fn an_api_server_killed_and_restarted_loses_nothing() {
    let world = own_edge(EdgeSpec::bare(EDGE)).await;
    let edge = world.edge(EDGE);
    let fleet = Fleet::launch(edge, "killed", 20).await;
    let rig = Rig::new();
    let connection = connect(&edge.access(ADMIN).unwrap()).await;
    rig.follow_whole(EDGE, connection.cluster(), &[config_maps()]).await;
    fleet.is_faithful(&rig).await;
    rig.exists(&fleet.keys(0..20));

    let killed = Instant::now();
    edge.apiserver().kill().await.unwrap();
    rig.until_standing(&config_maps(), killed, SOON, Err(Doubt::Lost)).await;
    let key = fleet.key("boat-5");
    assert!(rig.seen(&key).await.present().is_some(), "what was seen is no longer known\n{}", rig.told());

    let restarted = Instant::now();
    edge.apiserver().start().await.unwrap();
    fleet.goes_on(&rig).await;
    rig.until_standing(&config_maps(), restarted, SOON, Ok(())).await;
    fleet.is_seen(&rig).await;
}

#[tokio::test]
async fn a_watch_that_was_compacted_away_is_listed_anew() {
    let spec = EdgeSpec::bare(EDGE).with_compaction_every(Duration::from_secs(1)).without_watch_cache();
    let world = own_edge(spec).await;
    let edge = world.edge(EDGE);
    let fleet = Fleet::launch(edge, "compacted", 60).await;
    let client = edge.client(ADMIN).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "compacted");
    let old = maps.list(&kube::api::ListParams::default()).await.unwrap().metadata.resource_version.unwrap();

    let proxy = Proxy::in_front_of(&edge.access(ADMIN).unwrap()).await.unwrap();
    let rig = Rig::new();
    let connection = connect(&proxy.access(&edge.access(ADMIN).unwrap()).unwrap()).await;
    rig.follow_whole(EDGE, connection.cluster(), &[config_maps()]).await;
    fleet.is_faithful(&rig).await;
    rig.exists(&fleet.keys(0..60));

    // Refused rather than cut: the loss is then known at once, and the test need not wait for it.
    let cut = Instant::now();
    proxy.refuse().await.unwrap();
    proxy.reset();
    rig.until_standing(&config_maps(), cut, SOON, Err(Doubt::Lost)).await;
    fleet.goes_on(&rig).await;
    let told = wait_until("the old version compacted away, told within the stream", SOON, || async {
        // Something must be written, or there is nothing to compact.
        fleet.load("boat-9", "tar").await;
        let mut events =
            maps.watch(&WatchParams::default().timeout(2), &old).await.map_err(|e| e.to_string())?.boxed();
        match events.next().await {
            Some(Ok(WatchEvent::Error(status))) => Ok(status.code),
            other => Err(format!("{other:?}")),
        }
    });
    assert_eq!(told.await.unwrap(), 410);
    proxy.heal(Scope::All).await.unwrap();
    fleet.is_seen(&rig).await;
    let relisted = rig.standings_since(cut).iter().any(|standing| standing.known == Err(Doubt::Relisting));
    assert!(relisted, "it was not listed anew\n{}", rig.told());
}

#[tokio::test]
async fn a_list_that_is_compacted_away_between_pages_begins_anew() {
    let spec = EdgeSpec::bare(EDGE).with_compaction_every(Duration::from_secs(1)).without_watch_cache();
    let world = own_edge(spec).await;
    let edge = world.edge(EDGE);
    let fleet = Fleet::launch(edge, "pages", 30).await;
    // What the followers are answered is seen in the faulty server, which does nothing else here.
    let faulty = FaultyServer::in_front_of(&edge.access(ADMIN).unwrap()).await.unwrap();
    let through = faulty.access(&edge.access(ADMIN).unwrap()).unwrap();
    let proxy = Proxy::in_front_of(&through).await.unwrap();
    proxy.delay(Scope::All, Delay { latency: Duration::from_millis(400), jitter: Duration::ZERO });
    let rig = Rig::with(Settings { page_limit: (3, 3), ..patient() });
    let connection = connect(&proxy.access(&through).unwrap()).await;
    rig.follow_whole(EDGE, connection.cluster(), &[config_maps()]).await;
    rig.exists(&fleet.keys(0..30));

    wait_until("a page refused with the status 410", SOON, || async {
        fleet.load("boat-9", "tar").await;
        let seen = faulty.seen();
        if seen.iter().any(|request| request.status == StatusCode::GONE) {
            Ok(())
        } else {
            Err(format!("{seen:?}"))
        }
    })
    .await
    .unwrap();
    proxy.heal(Scope::All).await.unwrap();
    fleet.is_faithful(&rig).await;
}

#[tokio::test]
async fn a_watch_refused_with_410_as_its_status_is_listed_anew() {
    let world = shared_edge().await;
    let edge = world.edge(EDGE);
    let fleet = Fleet::launch(edge, "refused-410", 5).await;
    let faulty = FaultyServer::in_front_of(&edge.access(ADMIN).unwrap()).await.unwrap();
    let gone = Rule::answer(StatusCode::GONE).query("watch", "true").times(1);
    let gone = faulty.add(gone);
    let rig = Rig::new();
    let connection = connect(&faulty.access(&edge.access(ADMIN).unwrap()).unwrap()).await;
    let begun = Instant::now();
    rig.follow_whole(EDGE, connection.cluster(), &[config_maps()]).await;
    rig.until_standing(&config_maps(), begun, SOON, Err(Doubt::Relisting)).await;
    rig.exists(&fleet.keys(0..5));
    assert_eq!(faulty.applied(gone), 1);
    fleet.goes_on(&rig).await;
    fleet.is_seen(&rig).await;
}

#[tokio::test]
async fn a_server_that_answers_429_and_503_for_a_while_is_waited_for_and_not_stormed() {
    let world = shared_edge().await;
    let edge = world.edge(EDGE);
    let fleet = Fleet::launch(edge, "overloaded", 20).await;
    let faulty = FaultyServer::in_front_of(&edge.access(ADMIN).unwrap()).await.unwrap();
    // Short watches, so that each ends in the time of trouble and has to be opened again.
    let rig = Rig::with(Settings { watch_seconds: (2, 3), ..patient() });
    let connection = connect(&faulty.access(&edge.access(ADMIN).unwrap()).unwrap()).await;
    rig.follow_whole(EDGE, connection.cluster(), &[config_maps()]).await;
    fleet.is_faithful(&rig).await;
    rig.exists(&fleet.keys(0..20));

    for (status, retry_after) in [
        (StatusCode::TOO_MANY_REQUESTS, Some(Duration::from_secs(1))),
        (StatusCode::SERVICE_UNAVAILABLE, None),
    ] {
        let troubled = Instant::now();
        let mut rule = Rule::answer(status);
        if let Some(pause) = retry_after {
            rule = rule.retry_after(pause);
        }
        let rule = faulty.add(rule);
        rig.until_standing(&config_maps(), troubled, SOON, Err(Doubt::Lost)).await;
        if status == StatusCode::TOO_MANY_REQUESTS {
            fleet.goes_on(&rig).await;
        }
        wait_until("a second request refused", SOON, async || match faulty.applied(rule) {
            0 | 1 => Err("not yet"),
            _ => Ok(()),
        })
        .await
        .unwrap();
        let asked = faulty.applied(rule);
        let seconds = troubled.elapsed().as_secs();
        assert!(asked <= 4 * (seconds + 2), "{asked} requests in {seconds} s are a storm");
        faulty.remove(rule);
        rig.until_standing(&config_maps(), troubled, SOON, Ok(())).await;
    }
    fleet.is_seen(&rig).await;
    // What servers answer wrongly, or from a cache that is behind, is never asked for.
    for request in faulty.seen() {
        let words = ["sendInitialEvents", "resourceVersion=0&", "fieldSelector"];
        let asked = words.iter().find(|word| format!("{}&", request.path).contains(**word));
        assert_eq!(asked, None, "{}", request.path);
    }
}
