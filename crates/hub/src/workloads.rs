//! Workloads that run nowhere: what the controllers, the scheduler and the kubelets of a cluster do to its objects, so
//! that a cluster without machines reports status as one with machines does.
//!
//! It is a state machine over a [`Machine`]: changes come in ([`Workloads::observe`]), and [`Workloads::step`] writes
//! what is due and says when to come again. Time and chance are the caller's, so that the same seed tells the same story.
//!
//! Not simulated: volumes and claims, taints and resources, CronJobs, autoscaling, and `Endpoints` (its successor,
//! `EndpointSlice`, is).
//!
//! **Never here:** I/O, a clock, garbage collection (the server does that).

mod condition;
mod daemon_set;
mod deployment;
mod hand;
mod job;
mod node;
mod pod;
mod replica_set;
mod root_ca;
mod service;
mod stateful_set;
mod template;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mailboat_machinery::{Change, Machine, ROOT_CA, Random};
use mailboat_object::{ClusterId, Key, Name};
use serde_json::Value;

use hand::Hand;

/// How fast things happen, and how often they go wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many nodes there are.
    pub nodes: usize,
    /// From the moment on that a pod is placed until its containers run.
    pub start: Duration,
    /// From then on until it is ready.
    pub ready: Duration,
    /// How long a pod takes to go.
    pub stop: Duration,
    /// How long a pod runs that comes to an end by itself.
    pub run: Duration,
    /// How many of a thousand starts fail.
    pub failures_per_mille: u16,
    /// The certificate, as PEM, by which pods know their API server; every namespace has it. Empty: none has.
    pub root_ca: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            nodes: 2,
            start: Duration::from_millis(200),
            ready: Duration::from_millis(300),
            stop: Duration::from_millis(200),
            run: Duration::from_secs(1),
            failures_per_mille: 0,
            root_ca: String::new(),
        }
    }
}

/// The workloads of one cluster.
#[derive(Clone, Debug)]
pub struct Workloads {
    settings: Settings,
    cluster: ClusterId,
    /// What is to be looked at now.
    dirty: BTreeSet<Key>,
    /// What is to be looked at later, in milliseconds of the caller's clock.
    due: BTreeMap<Key, u64>,
    /// Namespaces with a new account, for which pods may be waiting.
    accounts: BTreeSet<Name>,
    /// Where each pod stands in its life, and until when.
    stages: BTreeMap<Key, pod::Stage>,
    /// How many addresses were given to pods and to load balancers.
    addresses: u32,
}

/// In the order in which they are looked at: what others are made of comes last.
const KINDS: [(&str, &str); 9] = [
    ("", "namespaces"),
    ("", "nodes"),
    ("apps", "deployments"),
    ("apps", "daemonsets"),
    ("apps", "statefulsets"),
    ("batch", "jobs"),
    ("apps", "replicasets"),
    ("", "pods"),
    ("", "services"),
];
/// Those that make pods themselves.
const MAKERS: [(&str, &str); 4] =
    [("apps", "daemonsets"), ("apps", "statefulsets"), ("batch", "jobs"), ("apps", "replicasets")];

impl Workloads {
    /// The workloads of a cluster that serves the kinds of Kubernetes.
    pub fn new(cluster: ClusterId, settings: Settings) -> Self {
        Self {
            settings,
            cluster,
            dirty: BTreeSet::new(),
            due: BTreeMap::new(),
            accounts: BTreeSet::new(),
            stages: BTreeMap::new(),
            addresses: 0,
        }
    }

    /// Makes the nodes, and looks at everything that is there: after a start, and after a restart.
    pub fn start(&mut self, machine: &mut Machine, now_ms: u64, random: &mut dyn Random) {
        let mut hand = Hand::new(machine, self.cluster.clone(), now_ms, random);
        node::make(&mut hand, self.settings.nodes);
        for (group, resource) in KINDS {
            let found = hand.list(group, resource, "");
            self.dirty.extend(found.into_iter().map(|object| object.key.clone()));
        }
    }

    /// Takes a change into account.
    pub fn observe(&mut self, change: &Change) {
        let key = &change.key;
        if key.cluster != self.cluster {
            return;
        }
        let (group, resource) = (key.kind.group(), key.kind.resource());
        if KINDS.contains(&(group, resource)) {
            self.dirty.insert(key.clone());
        }
        for object in [change.before(), change.after()].into_iter().flatten() {
            self.dirty.extend(hand::controller_of(&object));
        }
        if (group, resource) == ("", "serviceaccounts") && change.made() {
            self.accounts.insert(key.namespace.clone());
        }
        if (group, resource) == ("", "configmaps") && key.name.as_str() == ROOT_CA {
            self.dirty.insert(root_ca::namespace_of(key));
        }
        if (group, resource) == ("", "pods") && change.unmade() {
            self.stages.remove(key);
            self.due.remove(key);
        }
    }

    /// Does everything that is due, and says when there will be more: in milliseconds of the same clock. Changes that it
    /// makes itself are taken into account as the caller observes them.
    pub fn step(&mut self, machine: &mut Machine, now_ms: u64, random: &mut dyn Random) -> Option<u64> {
        let due: Vec<Key> =
            self.due.iter().filter(|(_, at)| **at <= now_ms).map(|(key, _)| key.clone()).collect();
        for key in due {
            self.due.remove(&key);
            self.dirty.insert(key);
        }
        for namespace in std::mem::take(&mut self.accounts) {
            let hand = Hand::new(machine, self.cluster.clone(), now_ms, random);
            let waiting = MAKERS.iter().flat_map(|(group, resource)| hand.list(group, resource, &namespace));
            self.dirty.extend(waiting.map(|maker| maker.key.clone()));
        }
        let dirty = std::mem::take(&mut self.dirty);
        let mut services: BTreeSet<Name> = BTreeSet::new();
        let order = |key: &Key| {
            KINDS
                .iter()
                .position(|kind| *kind == (key.kind.group(), key.kind.resource()))
                .unwrap_or(KINDS.len())
        };
        let mut dirty: Vec<Key> = dirty.into_iter().collect();
        dirty.sort_by_key(|key| (order(key), key.clone()));
        for key in dirty {
            let mut hand = Hand::new(machine, self.cluster.clone(), now_ms, random);
            let again = match (key.kind.group(), key.kind.resource()) {
                ("", "namespaces") => {
                    root_ca::look(&mut hand, &key, &self.settings.root_ca);
                    None
                }
                ("apps", "deployments") => deployment::look(&mut hand, &key),
                ("apps", "replicasets") => {
                    // A deployment that recreates waits for the last pod of a set that wants none.
                    let set = hand.get(&key).filter(|set| set.body()["spec"]["replicas"] == 0);
                    self.dirty.extend(set.and_then(|set| hand::controller_of(&set)));
                    replica_set::look(&mut hand, &key)
                }
                ("apps", "statefulsets") => stateful_set::look(&mut hand, &key),
                ("apps", "daemonsets") => daemon_set::look(&mut hand, &key),
                ("batch", "jobs") => job::look(&mut hand, &key),
                ("", "services") => {
                    services.insert(key.namespace.clone());
                    service::look(&mut hand, &key, &mut self.addresses);
                    None
                }
                ("", "pods") => {
                    services.insert(key.namespace.clone());
                    let mut life = pod::Life {
                        settings: &self.settings,
                        stages: &mut self.stages,
                        addresses: &mut self.addresses,
                    };
                    life.look(&mut hand, &key)
                }
                _ => None,
            };
            if let Some(at) = again {
                self.due.entry(key).and_modify(|due| *due = at.min(*due)).or_insert(at);
            }
        }
        for namespace in services {
            let mut hand = Hand::new(machine, self.cluster.clone(), now_ms, random);
            service::slices(&mut hand, &namespace);
        }
        if self.dirty.is_empty() { self.due.values().min().copied() } else { Some(now_ms) }
    }
}

/// A number of a spec or status, or what stands for its absence.
fn number(value: &Value, absent: i64) -> i64 {
    value.as_i64().unwrap_or(absent)
}
