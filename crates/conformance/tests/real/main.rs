//! The hub must answer as the real servers do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use mailboat_conformance::{Peer, run};

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_answers_as_kube_apiserver_does() {
    compare(Peer::Kubernetes).await;
}

async fn compare(peer: Peer) {
    let report = run(peer, &[]).await.unwrap();
    println!(
        "{} cases, {} answers; slowest: {:?}",
        report.outcomes.len(),
        report.answers(),
        report.slowest(5)
    );
    assert!(report.answers() > 0, "nothing was compared");
    assert!(report.failures().is_empty(), "{}", report.failures().join("\n"));
}
