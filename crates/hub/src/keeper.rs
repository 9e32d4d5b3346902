//! What controllers of a cluster do that need no machine: namespaces get an account and are emptied, dependents follow
//! their owners, and roles are made of others. And what a server does by itself: old events are forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mailboat_machinery::{DeleteOptions, ListRequest, Machine, Moment, Patch, Stored, WriteOptions};
use mailboat_object::timestamp::unix_seconds;
use mailboat_object::{ClusterId, Key, KindId, Name};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::access::rbac::aggregation;
use crate::hub::now_seconds;
use crate::{Hub, api_services};

/// How long changes are collected before they are followed: a deletion often comes with many others.
const COLLECT: Duration = Duration::from_millis(20);
/// How many clusters are tidied in one go, which others wait for.
const AT_ONCE: usize = 8;
/// How many events are forgotten in one go.
const EVENTS_AT_ONCE: usize = 100;
/// How often a cluster is looked at again before others have their turn.
const ROUNDS: usize = 16;

/// A cluster rests so many times as long as it took to tidy it. All that has an owner there is looked at each time, and an
/// inventory in which ten thousand edges get their accounts one by one would be looked through for each of them.
const RESTS: u32 = 5;
/// No cluster rests for longer.
const LONGEST_REST: Duration = Duration::from_secs(2);
/// How long an event is kept after it was last written, as long as real servers keep them,
const EVENTS_KEPT_SECONDS: u64 = 60 * 60;
/// and how often those are looked for whose time is over.
const FORGET_EVERY: Duration = Duration::from_mins(1);

/// Tidies up whenever there is something to tidy, until the server stops.
pub(crate) async fn keep(hub: Arc<Hub>) {
    let mut stopping = hub.stopping.subscribe();
    let mut rests = Rests::default();
    let mut forget = tokio::time::interval_at(Instant::now() + FORGET_EVERY, FORGET_EVERY);
    loop {
        let time_is_over = tokio::select! {
            () = hub.tidy_up.notified() => false,
            () = sleep_until(rests.next_end().unwrap_or_else(Instant::now)), if rests.next_end().is_some() => false,
            _ = forget.tick() => true,
            _ = stopping.wait_for(|stopping| *stopping) => return,
        };
        if time_is_over {
            forget_events(&hub, now_seconds()).await;
            continue;
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

/// Deletes the events whose time is over: nobody else would, and there is no end of them.
async fn forget_events(hub: &Hub, now_seconds: u64) {
    let due = hub.peek(|machine| {
        let clusters = machine.clusters();
        clusters.flat_map(|cluster| old_events(machine, cluster, now_seconds)).collect::<Vec<_>>()
    });
    for events in due.chunks(EVENTS_AT_ONCE) {
        let forgotten = hub.write(|machine, moment| {
            for event in events {
                // Whatever was written meanwhile stays.
                let options = DeleteOptions {
                    uid: Some(event.uid.clone()),
                    version: Some(event.version),
                    ..DeleteOptions::default()
                };
                let _ = machine.delete(&event.key, &options, moment);
            }
            Ok(())
        });
        // What could not be stored is tried again the next time.
        if forgotten.await.is_err() {
            return;
        }
    }
}

/// The events of a cluster that nobody has written for as long as they are kept.
fn old_events(machine: &Machine, cluster: &ClusterId, now_seconds: u64) -> Vec<Arc<Stored>> {
    let request = ListRequest {
        cluster: Some(cluster.clone()),
        kind: KindId::new("", "events"),
        ..ListRequest::default()
    };
    let Ok(events) = machine.list(&request) else { return Vec::new() };
    let is_old = |seconds: u64| seconds + EVENTS_KEPT_SECONDS <= now_seconds;
    let made = |event: &Stored| unix_seconds(&event.text_at(&["metadata", "creationTimestamp"])?);
    let written =
        |event: &Stored| event.managed().entries().iter().filter_map(|manager| manager.time_seconds).max();
    // Most are not that old, and go on resting.
    let old = events.items.into_iter().filter(|event| made(event).is_some_and(is_old));
    old.filter(|event| written(event).is_none_or(is_old)).collect()
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
    use crate::storage::Memory;
    use crate::{Options, cluster};

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
        rests.tidied(&large, Duration::from_mins(1), begun);
        assert_eq!(rests.rested(BTreeSet::from([large.clone()]), at(1_999)), []);
        assert_eq!(rests.rested(BTreeSet::new(), at(2_000)), [large]);
    }

    #[tokio::test]
    async fn an_event_is_forgotten_an_hour_after_it_was_last_written_and_nothing_else_is() {
        let hub = cluster(Memory::default(), Options::default()).await.unwrap().hub;
        let key = |resource: &str, name: &str| Key {
            cluster: ClusterId::new(crate::cluster::CLUSTER),
            kind: KindId::new("", resource),
            namespace: Name::new("default"),
            name: Name::new(name),
        };
        for (resource, name) in [("events", "once"), ("events", "again"), ("configmaps", "map")] {
            let body = json!({ "metadata": { "name": name, "labels": { "a": "b" } } });
            hub.write(|machine, moment| machine.create(&key(resource, name), body, &ours(), moment))
                .await
                .unwrap();
        }
        let start = now_seconds();
        hub.write(|machine, moment| {
            moment.now_seconds = start + 1800;
            let patch = json!({ "count": 2 });
            machine.patch(&key("events", "again"), Patch::Merge(&patch), &ours(), moment)
        })
        .await
        .unwrap();
        let there =
            |resource: &str, name: &str| hub.peek(|machine| machine.get(&key(resource, name)).is_ok());
        forget_events(&hub, start + 3500).await;
        assert!(there("events", "once") && there("events", "again"), "nothing is an hour old");
        forget_events(&hub, start + 3700).await;
        let seen = (there("events", "once"), there("events", "again"));
        assert_eq!(seen, (false, true), "only one is");
        forget_events(&hub, start + 5500).await;
        assert!(!there("events", "again") && there("configmaps", "map"), "what is no event stays for ever");
    }
}
