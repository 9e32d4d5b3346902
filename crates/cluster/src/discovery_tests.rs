use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const GROUPS: &str = r#"{"kind":"APIGroupList","groups":[
    {"name":"example.com","versions":[{"version":"v1"}],"preferredVersion":{"version":"v1"}},
    {"name":"metrics.example.com","versions":[{"version":"v1"}],"preferredVersion":{"version":"v1"}}]}"#;
const CORE: &str = r#"{"kind":"APIResourceList","resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list"]}]}"#;
const BOATS: &str = r#"{"kind":"APIResourceList","resources":[{"name":"boats","kind":"Boat","namespaced":true,"verbs":["list"]}]}"#;
const AGGREGATED: &str = r#"{"kind":"APIGroupDiscoveryList","items":[{"metadata":{},"versions":[{"version":"v1","resources":[
    {"resource":"configmaps","responseKind":{"kind":"ConfigMap"},"scope":"Namespaced","verbs":["list"]}]}]}]}"#;

/// A kcp: `/api` aggregated (and without what is bound), everything else plain; one group's server is down.
async fn kcp(path: String, form: Form) -> Result<Box<[u8]>, Fault> {
    let body = match path.as_str() {
        "/api" if form == Form::Plain => r#"{"kind":"APIVersions","versions":["v1"]}"#,
        "/api" => AGGREGATED,
        "/apis" => GROUPS,
        "/api/v1" => CORE,
        "/apis/example.com/v1" => BOATS,
        _ => {
            return Err(Fault::new(
                FaultKind::Retry(None),
                "the server is currently unable to handle the request",
            ));
        }
    };
    Ok(body.as_bytes().into())
}

#[tokio::test]
async fn an_aggregated_answer_for_the_core_group_alone_is_not_believed() {
    let catalog = discover(&Alike::default(), kcp).await.unwrap_or_else(|fault| panic!("{fault}"));
    assert!(matches!(catalog.find(&KindId::new("", "pods")), Found::Served(_)), "a bound kind: {catalog:?}");
    assert!(matches!(catalog.find(&KindId::new("example.com", "boats")), Found::Served(_)));
}

#[tokio::test]
async fn one_group_whose_server_is_down_does_not_hide_the_others() {
    let known = Known::new(Arc::default());
    let kind = KindId::new("metrics.example.com", "nodes");
    let fault = known.served(&kind, kcp).await.expect_err("nothing is known of it");
    assert_eq!(fault.kind, FaultKind::Retry(None), "unknown is not unserved: {fault}");
    assert!(known.served(&KindId::new("", "pods"), kcp).await.is_ok());
    let fault =
        known.served(&KindId::new("example.com", "kites"), kcp).await.expect_err("not in a known group");
    assert_eq!(fault.kind, FaultKind::Unserved);
}

#[tokio::test]
async fn a_view_that_shows_nothing_of_the_core_group_serves_nothing_of_it() {
    let view = |path: String, form: Form| async move {
        match path.as_str() {
            "/api" => Ok(Box::from(&br#"{"kind":"APIVersions","versions":["v1"]}"#[..])),
            "/api/v1" => Err(Fault::new(FaultKind::Unserved, "the server answered 404 without saying why")),
            _ => kcp(path, form).await,
        }
    };
    let catalog = discover(&Alike::default(), view).await.unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(catalog.find(&KindId::new("", "configmaps")), Found::NotServed);
    assert!(matches!(catalog.find(&KindId::new("example.com", "boats")), Found::Served(_)));
}

#[tokio::test]
async fn a_server_that_is_away_gives_no_catalog_at_all() {
    let away = |_, _| async { Err(Fault::new(FaultKind::Away, "refused")) };
    assert_eq!(discover(&Alike::default(), away).await.map_err(|fault| fault.kind), Err(FaultKind::Away));
    let html = |_, _| async { Ok(Box::from(&b"<html>"[..])) };
    assert_eq!(discover(&Alike::default(), html).await.map_err(|fault| fault.kind), Err(FaultKind::Away));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_changes_cost_one_question_and_no_change_costs_none() {
    let asked = AtomicUsize::new(0);
    let counted = |path: String, form: Form| {
        asked.fetch_add(usize::from(path == "/apis"), Ordering::Relaxed);
        kcp(path, form)
    };
    let known = Known::new(Arc::default());
    let mut published = known.subscribe();
    let pods = KindId::new("", "pods");
    for _ in 0..10 {
        assert!(known.served(&pods, counted).await.is_ok());
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert!(published.has_changed().unwrap());
    published.mark_unchanged();

    (0..1000).for_each(|_| known.stale());
    let all = futures::future::join_all((0..10).map(|_| known.served(&pods, counted))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    assert!(!published.has_changed().unwrap(), "the same catalog again is no news");
}

#[tokio::test(start_paused = true)]
async fn a_missing_kind_is_looked_for_again_but_not_at_every_lookup() {
    let asked = AtomicUsize::new(0);
    let counted = |path: String, form: Form| {
        asked.fetch_add(usize::from(path == "/apis"), Ordering::Relaxed);
        kcp(path, form)
    };
    let known = Known::new(Arc::default());
    let missing = KindId::new("example.com", "kites");
    for _ in 0..50 {
        assert!(known.served(&missing, counted).await.is_err());
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1, "no storm of questions");
    tokio::time::advance(MISSING_AGAIN).await;
    assert!(known.served(&missing, counted).await.is_err());
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn what_was_known_serves_on_while_discovery_fails() {
    let known = Known::new(Arc::default());
    let pods = KindId::new("", "pods");
    assert!(known.served(&pods, kcp).await.is_ok());
    known.stale();
    let asked = AtomicUsize::new(0);
    let failing = |_: String, _: Form| {
        asked.fetch_add(1, Ordering::Relaxed);
        async { Err(Fault::new(FaultKind::Retry(None), "busy")) }
    };
    for _ in 0..5 {
        assert!(known.served(&pods, failing).await.is_ok());
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1, "a failing server is not asked at every lookup");
    tokio::time::advance(ASK_AGAIN).await;
    assert!(known.served(&pods, failing).await.is_ok());
    assert_eq!(asked.load(Ordering::Relaxed), 2, "but the reason to ask stays");
}

#[tokio::test]
async fn workspaces_that_serve_the_same_share_a_catalog() {
    let alike: Arc<Alike> = Arc::default();
    let [one, other, emptier] = [(), (), ()].map(|()| Known::new(Arc::clone(&alike)));
    let all = [one.catalog(kcp).await.unwrap(), other.catalog(kcp).await.unwrap()];
    assert!(Arc::ptr_eq(&all[0], &all[1]));
    let empty = |path: String, _: Form| async move {
        let none = r#"{"kind":"APIGroupDiscoveryList","items":[]}"#;
        if path.starts_with("/api") {
            Ok(none.as_bytes().into())
        } else {
            Err(Fault::new(FaultKind::Unserved, "no"))
        }
    };
    assert!(!Arc::ptr_eq(&all[0], &emptier.catalog(empty).await.unwrap()));
}

#[tokio::test]
async fn what_is_put_somewhere_goes_by_what_is_known_until_that_is_refuted() {
    let (alike, asked) = (Arc::new(Alike::default()), AtomicUsize::new(0));
    let ask = |path: String, form: Form| {
        asked.fetch_add(1, Ordering::Relaxed);
        kcp(path, form)
    };
    let pods = KindId::new("", "pods");
    let (first, second) = (Known::new(Arc::clone(&alike)), Known::new(Arc::clone(&alike)));
    assert_eq!(second.presumably_served(&pods), None, "nobody has asked anywhere");
    let served = first.served(&pods, ask).await.unwrap_or_else(|fault| panic!("{fault}"));
    let requests = asked.load(Ordering::Relaxed);
    assert_eq!(second.presumably_served(&pods), Some(served.clone()), "as in the other workspace");
    assert_eq!(second.presumably_served(&KindId::new("example.com", "kites")), None);
    first.stale();
    assert_eq!(first.presumably_served(&pods), Some(served.clone()), "more may be served, and this still is");
    assert_eq!(asked.load(Ordering::Relaxed), requests);
    for known in [&first, &second] {
        known.refuted();
        assert_eq!(known.presumably_served(&pods), None, "it is to be asked");
        known.served(&pods, ask).await.unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(known.presumably_served(&pods), Some(served.clone()));
    }
    assert!(asked.load(Ordering::Relaxed) > requests);
}

#[tokio::test]
async fn a_kind_that_others_serve_otherwise_is_not_presumed() {
    let alike = Arc::new(Alike::default());
    let cluster_wide = |path: String, form: Form| async move {
        match path.as_str() {
            "/apis/example.com/v1" => {
                Ok(BOATS.replace("\"namespaced\":true", "\"namespaced\":false").into_bytes().into())
            }
            _ => kcp(path, form).await,
        }
    };
    let (first, second, third) =
        (Known::new(Arc::clone(&alike)), Known::new(Arc::clone(&alike)), Known::new(Arc::clone(&alike)));
    let boats = KindId::new("example.com", "boats");
    assert!(first.served(&boats, kcp).await.is_ok());
    assert!(third.presumably_served(&boats).is_some_and(|served| served.namespaced));
    assert!(second.served(&boats, cluster_wide).await.is_ok());
    assert_eq!(third.presumably_served(&boats), None, "two workspaces say different things");
    assert!(third.presumably_served(&KindId::new("", "pods")).is_some());
}

#[tokio::test]
async fn what_another_workspace_says_in_the_same_words_is_not_read_again() {
    const OTHER: &str = r#"{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1","resources":[
        {"resource":"boats","responseKind":{"kind":"Boat"},"scope":"Namespaced","verbs":["list"]}]}]}]}"#;
    let serving = |apis: &'static str| {
        move |path: String, _: Form| async move {
            Ok::<_, Fault>(Box::from(if path == "/api" { AGGREGATED.as_bytes() } else { apis.as_bytes() }))
        }
    };
    let alike = Alike::default();
    let asked = async |apis| discover(&alike, serving(apis)).await.unwrap_or_else(|fault| panic!("{fault}"));
    let (first, second, third) = (asked(AGGREGATED).await, asked(AGGREGATED).await, asked(OTHER).await);
    assert!(Arc::ptr_eq(&first, &second));
    let boats = KindId::new("example.com", "boats");
    assert_eq!(second.find(&boats), Found::NotServed);
    assert!(matches!(third.find(&boats), Found::Served(_)), "other words are read: {third:?}");
    let from = digest_of([AGGREGATED.as_bytes(), OTHER.as_bytes()]);
    assert!(alike.read_before(from).is_some_and(|known| Arc::ptr_eq(&known, &third)));
    drop(third);
    assert!(alike.read_before(from).is_none(), "nobody has it any more");
}
