//! The series that syncers always had, for dashboards and alerts that exist already.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use mailboat_object::key::{ClusterId, KindId};
use mailboat_object::wire::Part;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::count;

/// The buckets that the series always had.
const SYNC_SECONDS: [f64; 9] = [0.001, 0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// The one SyncTarget that a process serves. Both names are labels, which is why there may be only one.
#[derive(Clone, Debug)]
pub struct Serves {
    /// The name of the SyncTarget.
    pub sync_target: String,
    /// The workspace that is served.
    pub workspace: String,
    /// The cluster on the center's side: what is written there comes from the edge.
    pub center: ClusterId,
    /// The kind whose status the role writes to say that it is alive.
    pub heartbeat: KindId,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Synced {
    gvk: Word,
    direction: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Took {
    gvk: Word,
    operation: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Failed {
    gvk: Word,
    error_type: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Kind {
    gvk: Word,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Side {
    target: &'static str,
}

type Word = Arc<String>;

pub(super) struct Resources {
    serves: Serves,
    synced: Family<Synced, Counter>,
    took: Family<Took, Histogram, fn() -> Histogram>,
    failed: Family<Failed, Counter>,
    beats: Counter,
    failed_beats: Counter,
    reached: Family<Side, Gauge>,
    backlog: Family<Kind, Gauge>,
    kinds: Gauge,
    uptime: Gauge<f64, AtomicU64>,
    started: Instant,
}

impl Resources {
    pub(super) fn register(registry: &mut Registry, serves: Serves) -> Self {
        let resources = Self {
            synced: Family::default(),
            took: Family::new_with_constructor(|| Histogram::new(SYNC_SECONDS)),
            failed: Family::default(),
            beats: Counter::default(),
            failed_beats: Counter::default(),
            reached: Family::default(),
            backlog: Family::default(),
            kinds: Gauge::default(),
            uptime: Gauge::default(),
            started: Instant::now(),
            serves,
        };
        registry.register(
            "syncer_heartbeat",
            "Times that the syncer told the center that it is alive",
            resources.beats.clone(),
        );
        registry.register(
            "syncer_heartbeat_errors",
            "Times that it could not tell",
            resources.failed_beats.clone(),
        );
        registry.register(
            "syncer_resource_controllers",
            "Kinds that are carried, each of which had a controller of its own in older syncers",
            resources.kinds.clone(),
        );
        registry.register(
            "syncer_uptime_seconds",
            "How long the syncer has been running",
            resources.uptime.clone(),
        );
        let labels = [
            ("sync_target".into(), resources.serves.sync_target.clone().into()),
            ("workspace".into(), resources.serves.workspace.clone().into()),
        ];
        let registry = registry.sub_registry_with_labels(labels.into_iter());
        registry.register(
            "syncer_resources_synced",
            "Writes of objects and of their status that succeeded",
            resources.synced.clone(),
        );
        registry.register(
            "syncer_sync_duration_seconds",
            "How long such a write took, by whether it succeeded (sync) or not (sync_error)",
            resources.took.clone(),
        );
        registry.register(
            "syncer_sync_errors",
            "Such writes that did not succeed, by why",
            resources.failed.clone(),
        );
        registry.register(
            "syncer_connection_status",
            "Whether the side answers: 1 or 0",
            resources.reached.clone(),
        );
        registry.register(
            "syncer_sync_backlog_size",
            "Objects that are not as they should be on the other side: on their way, waiting, refused or held",
            resources.backlog.clone(),
        );
        resources
    }

    pub(super) fn written(
        &self,
        cluster: &ClusterId,
        gvk: &Word,
        took: Duration,
        error_type: Option<&'static str>,
    ) {
        let gvk = gvk.clone();
        let operation = if error_type.is_some() { "sync_error" } else { "sync" };
        self.took.get_or_create(&Took { gvk: gvk.clone(), operation }).observe(took.as_secs_f64());
        if let Some(error_type) = error_type {
            self.failed.get_or_create(&Failed { gvk, error_type }).inc();
        } else {
            let direction = if *cluster == self.serves.center { "cluster-to-kcp" } else { "kcp-to-cluster" };
            self.synced.get_or_create(&Synced { gvk, direction }).inc();
        }
    }

    pub(super) fn called(&self, kind: &KindId, part: Part, succeeded: bool) {
        if *kind == self.serves.heartbeat && part == Part::Status {
            if succeeded { &self.beats } else { &self.failed_beats }.inc();
        }
    }

    /// How much is not as wanted of each kind that this was ever said of.
    pub(super) fn backlog(&self, sizes: &BTreeMap<Word, usize>) {
        for (gvk, size) in sizes {
            self.backlog.get_or_create(&Kind { gvk: Arc::clone(gvk) }).set(count(*size));
        }
    }

    pub(super) fn carries(&self, kinds: usize) {
        self.kinds.set(count(kinds));
    }

    pub(super) fn measure_uptime(&self) {
        self.uptime.set(self.started.elapsed().as_secs_f64());
    }

    pub(super) fn reached(&self, cluster: &ClusterId, reached: bool) {
        let target = if *cluster == self.serves.center { "kcp" } else { "cluster" };
        self.reached.get_or_create(&Side { target }).set(reached.into());
    }
}
