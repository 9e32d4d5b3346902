//! What controllers of a cluster do that need no machine: namespaces are emptied, and dependents follow their owners.

use std::sync::Arc;
use std::time::Duration;

use crate::Hub;

/// How long changes are collected before they are followed: a deletion often comes with many others.
const COLLECT: Duration = Duration::from_millis(20);
/// How often a cluster is looked at again before others have their turn.
const ROUNDS: usize = 16;

/// Tidies up whenever there is something to tidy, until the server stops.
pub(crate) async fn keep(hub: Arc<Hub>) {
    let mut stopping = hub.stopping.subscribe();
    loop {
        tokio::select! {
            () = hub.tidy_up.notified() => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
        tokio::time::sleep(COLLECT).await;
        for cluster in hub.take_untidy() {
            for _ in 0..ROUNDS {
                let done = hub
                    .write(|machine, moment| {
                        Ok(machine.follow_definitions(&cluster, moment)
                            + machine.empty_namespaces(&cluster, moment)
                            + machine.collect_garbage(&cluster, moment))
                    })
                    .await;
                // What could not be stored is tried again with the next change.
                if matches!(done, Ok(0) | Err(_)) {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
    }
}
