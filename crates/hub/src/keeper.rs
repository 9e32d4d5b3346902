//! What controllers of a cluster do that need no machine: namespaces get an account and are emptied, dependents follow
//! their owners, and roles are made of others.

use std::sync::Arc;
use std::time::Duration;

use mailboat_machinery::{ListRequest, Machine, Moment, Patch, WriteOptions};
use mailboat_object::{ClusterId, Key, KindId, Name};
use serde_json::{Value, json};

use crate::access::rbac::aggregation;
use crate::{Hub, api_services};

/// How long changes are collected before they are followed: a deletion often comes with many others.
const COLLECT: Duration = Duration::from_millis(20);
/// How many clusters are tidied in one go, which others wait for.
const AT_ONCE: usize = 8;
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
        let untidy: Vec<ClusterId> = hub.take_untidy().into_iter().collect();
        for clusters in untidy.chunks(AT_ONCE) {
            for _ in 0..ROUNDS {
                let done = hub
                    .write(|machine, moment| {
                        Ok(clusters.iter().map(|cluster| tidy(&hub, machine, cluster, moment)).sum::<usize>())
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

fn tidy(hub: &Hub, machine: &mut Machine, cluster: &ClusterId, moment: &mut Moment<'_>) -> usize {
    follow_roles(machine, cluster, moment)
        + make_accounts(machine, cluster, moment)
        + machine.follow_definitions(cluster, moment)
        + api_services::follow(machine, cluster, moment)
        + hub.tidy_workspaces(machine, cluster, moment)
        + machine.empty_namespaces(cluster, moment)
        + machine.collect_garbage(cluster, moment)
}

/// Writes down what roles hold that are made of others.
fn follow_roles(machine: &mut Machine, cluster: &ClusterId, moment: &mut Moment<'_>) -> usize {
    let mut done = 0;
    for (key, rules) in aggregation::due(machine, cluster) {
        let patch = json!({ "rules": rules });
        done += usize::from(machine.patch(&key, Patch::Merge(&patch), &ours(), moment).is_ok());
    }
    done
}

/// The account of a namespace for whoever brings none.
pub(crate) fn default_account(cluster: &ClusterId, namespace: &str) -> (Key, Value) {
    let key = Key {
        cluster: cluster.clone(),
        kind: KindId::new("", "serviceaccounts"),
        namespace: Name::new(namespace),
        name: Name::new("default"),
    };
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "default", "namespace": namespace },
    });
    (key, account)
}

/// Every namespace has an account for whoever brings none.
fn make_accounts(machine: &mut Machine, cluster: &ClusterId, moment: &mut Moment<'_>) -> usize {
    let kind = KindId::new("", "namespaces");
    let request = ListRequest { cluster: Some(cluster.clone()), kind, ..ListRequest::default() };
    let Ok(namespaces) = machine.list(&request) else { return 0 };
    let mut done = 0;
    for namespace in namespaces.items.iter().filter(|namespace| !namespace.is_deleting()) {
        let (key, account) = default_account(cluster, &namespace.key.name);
        if machine.get(&key).is_err() {
            done += usize::from(machine.create(&key, account, &ours(), moment).is_ok());
        }
    }
    done
}

fn ours() -> WriteOptions {
    WriteOptions { manager: Name::new("mailboat-hub"), ..WriteOptions::default() }
}
