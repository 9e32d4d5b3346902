//! A cluster without machines: the workloads of a hub, followed as they change.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mailboat_machinery::Seeded;
use mailboat_object::{ClusterId, Version};

use crate::Hub;
use crate::cluster::CLUSTER;
use crate::workloads::{Settings, Workloads};

/// More changes than this between two looks, and everything is looked at anew instead of each of them: the log of a
/// kind holds no more.
const CHANGES_MAX: u64 = 5_000;

/// Plays the controllers, the scheduler and the kubelets of a hub that is one cluster, until the server stops. The seed decides
/// what fails.
pub(crate) async fn simulate(hub: Arc<Hub>, settings: Settings, seed: u64) {
    let mut workloads = Workloads::new(ClusterId::new(CLUSTER), settings);
    let mut random = Seeded(seed);
    let mut shown = hub.shown();
    let mut stopping = hub.stopping.subscribe();
    // Nothing was seen yet, so everything is looked at.
    let mut seen: Option<Version> = None;
    loop {
        let now = *shown.borrow_and_update();
        let stepped = hub
            .write(|machine, _| {
                let now_ms = now_ms();
                match seen {
                    Some(seen) if now.0 - seen.0 <= CHANGES_MAX => {
                        machine
                            .changed_since(seen)
                            .filter(|change| change.version <= now)
                            .for_each(|change| workloads.observe(change));
                    }
                    _ => workloads.start(machine, now_ms, &mut random),
                }
                Ok(workloads.step(machine, now_ms, &mut random))
            })
            .await;
        // What could not be stored was taken back, so that what was seen no longer holds.
        seen = stepped.is_ok().then_some(now);
        let again = stepped.unwrap_or_else(|_| Some(now_ms() + 1_000));
        let wait = again.map_or(Duration::MAX, |at| Duration::from_millis(at.saturating_sub(now_ms())));
        tokio::select! {
            changed = shown.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(wait) => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use mailboat_machinery::WriteOptions;
    use mailboat_object::{Key, KindId, Name};
    use serde_json::{Value, json};

    use super::*;
    use crate::storage::Memory;
    use crate::{Opened, Options, cluster};

    #[tokio::test]
    async fn a_deployment_rolls_out_on_a_hub() {
        let Opened { hub, .. } = cluster(Memory::default(), Options::default()).await.unwrap();
        let hub = Arc::new(hub);
        let fast = Duration::from_millis(5);
        let settings = Settings { start: fast, ready: fast, ..Settings::default() };
        let playing = tokio::spawn(simulate(Arc::clone(&hub), settings, 1));
        let key = Key {
            cluster: ClusterId::new(CLUSTER),
            kind: KindId::new("apps", "deployments"),
            namespace: Name::new("default"),
            name: Name::new("web"),
        };
        let body = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
            "spec": {
                "replicas": 3, "selector": { "matchLabels": { "app": "web" } },
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
                },
            },
        });
        let options = WriteOptions::default();
        hub.write(|machine, moment| machine.create(&key, body, &options, moment)).await.unwrap();
        let mut shown = hub.shown();
        let rolled_out = async {
            loop {
                let status: Value = hub
                    .peek(|machine| machine.get(&key).map(|object| object.body()["status"].clone()))
                    .unwrap();
                if status["availableReplicas"] == 3 {
                    return status;
                }
                shown.changed().await.unwrap();
            }
        };
        let status = tokio::time::timeout(Duration::from_secs(30), rolled_out).await.unwrap();
        assert_eq!((&status["updatedReplicas"], &status["observedGeneration"]), (&json!(3), &json!(1)));
        hub.stopping.send_replace(true);
        playing.await.unwrap();
    }
}
