//! The series that every process has.

use std::fs;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mailboat_engine::glance::Depth;
use mailboat_engine::standing::Counts;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::count;

/// From a local server's answer to a link that is being slow.
const WRITE_SECONDS: [f64; 10] = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];
/// From "at once" to "the edge was away for a quarter of an hour".
const LAG_SECONDS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 120.0, 900.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Written {
    verb: &'static str,
    part: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Queue {
    queue: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct State {
    state: &'static str,
}

type Seconds = Gauge<f64, AtomicU64>;

pub(super) struct Own {
    writes: Family<Written, Counter>,
    write_seconds: Histogram,
    pub(super) lag: Histogram,
    pub(super) contended: Counter,
    queue: Family<Queue, Gauge>,
    slots: Family<State, Gauge>,
    lists: Family<State, Gauge>,
    pub(super) objects: Gauge,
    pub(super) object_bytes: Gauge,
    pub(super) leader: Gauge,
    pub(super) ready: Gauge,
    pub(super) degraded: Gauge,
    resident: Gauge,
    cpu: Counter<f64, AtomicU64>,
}

impl Own {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let own = Self {
            writes: Family::default(),
            write_seconds: Histogram::new(WRITE_SECONDS),
            lag: Histogram::new(LAG_SECONDS),
            contended: Counter::default(),
            queue: Family::default(),
            slots: Family::default(),
            lists: Family::default(),
            objects: Gauge::default(),
            object_bytes: Gauge::default(),
            leader: Gauge::default(),
            ready: Gauge::default(),
            degraded: Gauge::default(),
            resident: Gauge::default(),
            cpu: Counter::default(),
        };
        registry.register(
            "mailboat_writes",
            "Writes that were answered, by what they did, to which part of an object, and what came of it",
            own.writes.clone(),
        );
        registry.register(
            "mailboat_write_duration_seconds",
            "How long a write took from its sending to its answer",
            own.write_seconds.clone(),
        );
        registry.register(
            "mailboat_delivery_lag_seconds",
            "From the moment that a change was read to the answer to the write that carried it on",
            own.lag.clone(),
        );
        registry.register(
            "mailboat_contentions",
            "Times that an object was put off because somebody else keeps rewriting or deleting what we deliver",
            own.contended.clone(),
        );
        registry.register(
            "mailboat_queue_depth",
            "What waits: sources to be evaluated, slots to be planned, and calls under way",
            own.queue.clone(),
        );
        registry.register(
            "mailboat_slots",
            "Places where an object may stand, by how they stand",
            own.slots.clone(),
        );
        registry.register(
            "mailboat_lists",
            "Kinds that are followed, by whether their list is complete and current",
            own.lists.clone(),
        );
        registry.register("mailboat_objects", "Objects that are held in memory", own.objects.clone());
        registry.register(
            "mailboat_objects_bytes",
            "Roughly how many bytes they and what is known of them take",
            own.object_bytes.clone(),
        );
        registry.register(
            "mailboat_leader",
            "Whether this process may write: 1 if it holds the lease, or runs without one",
            own.leader.clone(),
        );
        registry.register("mailboat_ready", "Whether /readyz says ok", own.ready.clone());
        registry.register(
            "mailboat_degraded",
            "Whether something needs somebody's attention; /readyz?verbose says what",
            own.degraded.clone(),
        );
        let started: Seconds = Gauge::default();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        started.set(now.as_secs_f64());
        registry.register(
            "process_start_time_seconds",
            "When this process began, in seconds since 1970",
            started,
        );
        registry.register(
            "process_resident_memory_bytes",
            "Memory that this process has in use",
            own.resident.clone(),
        );
        registry.register(
            "process_cpu_seconds",
            "Processor time that this process has used",
            own.cpu.clone(),
        );
        own
    }

    pub(super) fn written(
        &self,
        verb: &'static str,
        part: &'static str,
        result: &'static str,
        took: Duration,
    ) {
        self.writes.get_or_create(&Written { verb, part, result }).inc();
        self.write_seconds.observe(took.as_secs_f64());
    }

    pub(super) fn depth(&self, depth: Depth) {
        let Depth { evaluate, plan, in_flight } = depth;
        for (queue, number) in [("evaluate", evaluate), ("plan", plan), ("in_flight", in_flight)] {
            self.queue.get_or_create(&Queue { queue }).set(count(number));
        }
    }

    pub(super) fn counts(&self, counts: Counts) {
        let Counts { delivered, waiting, refused, held } = counts;
        let states = [("delivered", delivered), ("waiting", waiting), ("refused", refused), ("held", held)];
        for (state, number) in states {
            self.slots.get_or_create(&State { state }).set(count(number));
        }
    }

    pub(super) fn lists(&self, complete: usize, incomplete: usize) {
        for (state, number) in [("complete", complete), ("incomplete", incomplete)] {
            self.lists.get_or_create(&State { state }).set(count(number));
        }
    }

    /// Asks the kernel what this process takes. Where there is no `/proc`, nothing is said.
    pub(super) fn measure_process(&self) {
        let page = rustix::param::page_size();
        let pages = fs::read_to_string("/proc/self/statm").ok();
        let pages = pages.and_then(|text| text.split_ascii_whitespace().nth(1)?.parse::<usize>().ok());
        if let Some(pages) = pages {
            self.resident.set(count(pages * page));
        }
        let cpu = fs::read_to_string("/proc/self/stat").ok();
        // The name of the program, in parentheses, may hold anything; the numbers come after it.
        let ticks = cpu.as_deref().and_then(|text| {
            let (_, numbers) = text.rsplit_once(')')?;
            let mut numbers = numbers.split_ascii_whitespace().skip(11);
            let mut next = || numbers.next()?.parse::<u32>().ok();
            Some(f64::from(next()?) + f64::from(next()?))
        });
        if let Some(ticks) = ticks {
            let seconds = ticks / clock_ticks_per_second();
            self.cpu.inc_by((seconds - self.cpu.get()).max(0.0));
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is 100")]
fn clock_ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}
