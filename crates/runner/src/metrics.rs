//! What a process counts and measures, as Prometheus reads it.
//!
//! The number of series is bounded by the kinds that are carried, never by objects: no name of an object is a label.
//! `docs/metrics.md` lists them all, and a test holds it to that.

mod labels;
mod own;
mod resources;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use mailboat_cluster::{Catalog, Found};
use mailboat_engine::glance::Depth;
use mailboat_engine::standing::Counts;
use mailboat_object::key::{ClusterId, KindId};
use mailboat_object::wire::{Call, Fault, Part, Verb};
use mailboat_store::PlaceId;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use labels::{error_type, gvk_of, part_word, verb_word};
use own::Own;
use resources::Resources;

pub use resources::Serves;

/// All series of one process.
pub struct Metrics {
    registry: Mutex<Registry>,
    own: Own,
    /// Those with the names of older syncers, in a process that serves one SyncTarget.
    resources: OnceLock<Resources>,
    /// What is served, to name kinds as people know them.
    served: Mutex<BTreeMap<PlaceId, Arc<Catalog>>>,
    named: Mutex<HashMap<KindId, Arc<String>>>,
    /// Of what something was last said to be in the backlog.
    in_backlog: Mutex<BTreeMap<Arc<String>, usize>>,
}

/// So many kinds have series of their own. Tenants may make and remove as many kinds as they like, and a series is never taken
/// back: beyond this, all others share one.
const KINDS: usize = 500;
/// What they are called.
const OTHERS: &str = "others";

/// A write that was sent, as far as it is measured.
pub(crate) struct Write {
    cluster: ClusterId,
    kind: KindId,
    verb: &'static str,
    part: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let own = Own::register(&mut registry);
        Self {
            registry: Mutex::new(registry),
            own,
            resources: OnceLock::new(),
            served: Mutex::default(),
            named: Mutex::default(),
            in_backlog: Mutex::default(),
        }
    }
}

impl Metrics {
    /// This process serves exactly one SyncTarget: what it carries is counted under the names that syncers always had.
    /// Said once; what is said later changes nothing.
    pub fn serves(&self, serves: Serves) {
        self.resources.get_or_init(|| Resources::register(&mut locked(&self.registry), serves));
    }

    /// All series as text, in the format that Prometheus and OpenMetrics share.
    pub fn text(&self) -> String {
        self.own.measure_process();
        self.resources.get().into_iter().for_each(Resources::measure_uptime);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &locked(&self.registry));
        text
    }

    /// What a place serves now.
    pub(crate) fn place_serves(&self, place: &PlaceId, catalog: &Arc<Catalog>) {
        locked(&self.served).insert(place.clone(), Arc::clone(catalog));
    }

    /// A place is closed: kinds are not named after what it served.
    pub(crate) fn place_closed(&self, place: &PlaceId) {
        locked(&self.served).remove(place);
    }

    /// How much is not as wanted, by kind, and how many kinds are carried. Told only where somebody counts by kind.
    pub(crate) fn backlog(&self, sizes: impl FnOnce() -> BTreeMap<KindId, usize>, kinds: usize) {
        let Some(resources) = self.resources.get() else { return };
        resources.carries(kinds);
        let mut told = locked(&self.in_backlog);
        // What was said of a kind holds until something else is: nothing of it may be left.
        told.values_mut().for_each(|size| *size = 0);
        for (kind, size) in sizes() {
            *told.entry(self.gvk(&kind)).or_default() += size;
        }
        resources.backlog(&told);
        told.retain(|_, size| *size > 0);
    }

    /// A call, if it writes.
    pub(crate) fn write(call: &Call) -> Option<Write> {
        let writes = !matches!(call.verb, Verb::Get | Verb::GetAt(_)) && !call.dry_run;
        writes.then(|| Write {
            cluster: call.key.cluster.clone(),
            kind: call.key.kind.clone(),
            verb: verb_word(&call.verb),
            part: part_word(call.part),
        })
    }

    /// A write for a route was answered.
    pub(crate) fn written(&self, write: &Write, took: Duration, fault: Option<&Fault>) {
        let result = fault.map_or("ok", error_type);
        self.own.written(write.verb, write.part, result, took);
        if let Some(resources) = self.resources.get() {
            resources.written(&write.cluster, &self.gvk(&write.kind), took, fault.map(error_type));
        }
    }

    /// A call of the role's own was answered.
    pub(crate) fn called(&self, kind: &KindId, part: Part, fault: Option<&Fault>) {
        if let Some(resources) = self.resources.get() {
            resources.called(kind, part, fault.is_none());
        }
    }

    /// A change was answered by a write so long after it was read.
    pub(crate) fn delivered_after(&self, lag: Duration) {
        self.own.lag.observe(lag.as_secs_f64());
    }

    /// An object is put off because another hand keeps rewriting or deleting it (H24).
    pub(crate) fn contended(&self) {
        self.own.contended.inc();
    }

    /// Whether this process may write, by its lease.
    pub(crate) fn leads(&self, leads: bool) {
        self.own.leader.set(leads.into());
    }

    pub(crate) fn depth(&self, depth: Depth) {
        self.own.depth(depth);
    }

    pub(crate) fn counts(&self, counts: Counts) {
        self.own.counts(counts);
    }

    pub(crate) fn known(&self, objects: usize, bytes: usize) {
        self.own.objects.set(count(objects));
        self.own.object_bytes.set(count(bytes));
    }

    pub(crate) fn lists(&self, complete: usize, incomplete: usize) {
        self.own.lists(complete, incomplete);
    }

    pub(crate) fn ready(&self, ready: bool, degraded: bool) {
        self.own.ready.set(ready.into());
        self.own.degraded.set(degraded.into());
    }

    /// Whether a cluster is reached.
    pub(crate) fn reached(&self, cluster: &ClusterId, reached: bool) {
        if let Some(resources) = self.resources.get() {
            resources.reached(cluster, reached);
        }
    }

    /// A kind as Go programs write it, as soon as somebody is known to serve it.
    fn gvk(&self, kind: &KindId) -> Arc<String> {
        let mut named = locked(&self.named);
        if let Some(name) = named.get(kind) {
            return Arc::clone(name);
        }
        if named.len() >= KINDS {
            return Arc::new(OTHERS.to_owned());
        }
        let served = locked(&self.served);
        let name = served.values().find_map(|catalog| match catalog.find(kind) {
            Found::Served(served) => Some(Arc::new(gvk_of(&served.api_version(), &served.kind_name))),
            Found::NotServed | Found::Unknown(_) => None,
        });
        // Nobody serves it: what is written of it is written in vain.
        let Some(name) = name else { return Arc::new(OTHERS.to_owned()) };
        named.insert(kind.clone(), Arc::clone(&name));
        name
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
