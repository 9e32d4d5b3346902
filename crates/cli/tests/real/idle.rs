//! A syncer with nothing to do does nothing: no write but its heartbeats, and next to no processor time.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;

use crate::harbor::{Harbor, SOON, all_config_maps_of, config_map, namespace, put};

const OBJECTS: usize = 1_000;
const WRITERS: usize = 8;

/// Five minutes at full length.
fn watched_for() -> Duration {
    let soak = std::env::var_os("MAILBOAT_SOAK").is_some_and(|value| value == "1");
    if soak { Duration::from_mins(5) } else { Duration::from_secs(30) }
}

#[tokio::test]
async fn with_a_thousand_objects_and_nothing_to_do_nothing_is_written() {
    let mut harbor = Harbor::new("idle").await;
    put(&harbor.up, &namespace("idle")).await;
    let maps: Api<ConfigMap> = Api::namespaced(harbor.up.clone(), "idle");
    let text = "x".repeat(512);
    let made = stream::iter(0..OBJECTS).map(|number| {
        let map = serde_json::from_value(config_map("idle", &format!("map-{number}"), &text)).unwrap();
        let maps = &maps;
        async move { maps.create(&PostParams::default(), &map).await.map(drop) }
    });
    made.buffer_unordered(WRITERS).try_collect::<()>().await.unwrap();
    harbor.configure(all_config_maps_of("idle")).await;
    harbor.sail();
    harbor
        .until_status("all delivered", |status| {
            status["counts"]["delivered"] == OBJECTS && status["counts"]["waiting"] == 0
        })
        .await;
    // The last copies' own events are still on their way.
    let settled = Instant::now();
    let mut before = harbor.counted("mailboat_writes_total").await;
    loop {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let now = harbor.counted("mailboat_writes_total").await;
        if now <= before {
            break;
        }
        assert!(settled.elapsed() < SOON, "it goes on to write: {now}");
        before = now;
    }
    let (begun, processor, beats) = (
        Instant::now(),
        harbor.counted("process_cpu_seconds_total").await,
        harbor.counted("syncer_heartbeat_total").await,
    );
    tokio::time::sleep(watched_for()).await;
    let share =
        (harbor.counted("process_cpu_seconds_total").await - processor) / begun.elapsed().as_secs_f64();
    let megabytes = harbor.counted("process_resident_memory_bytes").await / 1e6;
    eprintln!("idle with {OBJECTS} objects: {megabytes:.1} MB resident, {:.2} % of a core", share * 100.0);
    let after = harbor.counted("mailboat_writes_total").await;
    assert!(after <= before, "an idle syncer wrote {} times", after - before);
    assert!(harbor.counted("syncer_heartbeat_total").await > beats, "it must go on to say that it is alive");
    harbor.moor().await;
}
