//! One client cannot take all that there is.

use mailboat_hub::flow::Limits;

use crate::kubectl::Kubectl;
use crate::served::Served;

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_too_many_is_refused_and_ends_with_its_client() {
    let limits = Limits { watches_per_user: 1, requests_per_user: 1, ..Limits::default() };
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
