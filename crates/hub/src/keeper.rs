//! What controllers of a cluster do that need no machine: namespaces get an account and are emptied, dependents follow
//! their owners, and roles are made of others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mailboat_machinery::{ListRequest, Machine, Moment, Patch, WriteOptions};
use mailboat_object::{ClusterId, Key, KindId, Name};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::access::rbac::aggregation;
use crate::{Hub, api_services};

/// How long changes are collected before they are followed: a deletion often comes with many others.
const COLLECT: Duration = Duration::from_millis(20);
/// How many clusters are tidied in one go, which others wait for.
const AT_ONCE: usize = 8;
/// How often a cluster is looked at again before others have their turn.
const ROUNDS: usize = 16;

/// A cluster rests so many times as long as it took to tidy it. All that has an owner there is looked at each time, and an
/// inventory in which ten thousand edges get their accounts one by one would be looked through for each of them.
const RESTS: u32 = 5;
/// No cluster rests for longer.
const LONGEST_REST: Duration = Duration::from_secs(2);

/// Tidies up whenever there is something to tidy, until the server stops.
pub(crate) async fn keep(hub: Arc<Hub>) {
    let mut stopping = hub.stopping.subscribe();
    let mut rests = Rests::default();
    loop {
        tokio::select! {
            () = hub.tidy_up.notified() => {}
            () = sleep_until(rests.next_end().unwrap_or_else(Instant::now)), if rests.next_end().is_some() => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
        tokio::time::sleep(COLLECT).await;
        let untidy = rests.rested(hub.take_untidy(), Instant::now());
        for clusters in untidy.chunks(AT_ONCE) {
            for _ in 0..ROUNDS {
                let done = hub
                    .write(|machine, moment| {
                        let mut done = 0;
                        for cluster in clusters {
                            let begun = Instant::now();
                            done += tidy(&hub, machine, cluster, moment);
                            rests.tidied(cluster, begun.elapsed(), Instant::now());
                        }
                        Ok(done)
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

/// Clusters that took long to tidy, and until when they are left alone.
#[derive(Default)]
struct Rests {
    until: BTreeMap<ClusterId, Instant>,
    /// Those of them in which there is something to tidy by now.
    untidy: BTreeSet<ClusterId>,
}

impl Rests {
    /// A cluster was tidied, which took so long.
    fn tidied(&mut self, cluster: &ClusterId, took: Duration, now: Instant) {
        // What is as fast as others are collected disturbs nobody.
        if took > COLLECT {
            self.until.insert(cluster.clone(), now + (took * RESTS).min(LONGEST_REST));
        }
    }

    /// Those of the untidy clusters that may be tidied now. The others are when they have rested.
    fn rested(&mut self, untidy: BTreeSet<ClusterId>, now: Instant) -> Vec<ClusterId> {
        self.until.retain(|_, until| *until > now);
        self.untidy.extend(untidy);
        let rest = |cluster: &ClusterId| self.until.contains_key(cluster);
        let (later, due) = std::mem::take(&mut self.untidy).into_iter().partition(rest);
        self.untidy = later;
        let due: BTreeSet<ClusterId> = due;
        due.into_iter().collect()
    }

    /// When the next cluster that is to be tidied has rested.
    fn next_end(&self) -> Option<Instant> {
        self.untidy.iter().filter_map(|cluster| self.until.get(cluster)).min().copied()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_takes_long_rests_and_no_other_waits_for_it() {
        let (large, small) = (ClusterId::new("inventory"), ClusterId::new("mailbox"));
        let (mut rests, begun) = (Rests::default(), Instant::now());
        let at = |milliseconds| begun + Duration::from_millis(milliseconds);
        rests.tidied(&small, Duration::from_millis(10), begun);
        rests.tidied(&large, Duration::from_millis(100), begun);
        let both = BTreeSet::from([large.clone(), small.clone()]);
        assert_eq!(rests.rested(both, at(30)), std::slice::from_ref(&small));
        assert_eq!(rests.next_end(), Some(at(500)));
        assert!(rests.rested(BTreeSet::new(), at(499)).is_empty());
        assert_eq!(rests.rested(BTreeSet::new(), at(500)), std::slice::from_ref(&large));
        assert_eq!(rests.next_end(), None, "nothing is forgotten, and nothing is left");
        rests.tidied(&large, Duration::from_secs(60), begun);
        assert_eq!(rests.rested(BTreeSet::from([large.clone()]), at(1_999)), []);
        assert_eq!(rests.rested(BTreeSet::new(), at(2_000)), [large]);
    }
}
