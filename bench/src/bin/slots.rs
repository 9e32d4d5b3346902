//! Benchmark `slots`: one placement of twenty objects to ten thousand mailboxes, delivered whole and then idle.
//!
//! The servers are in memory and answer at once. Live heap is that of everything the center then holds: the engine with
//! its 200,000 slots, and the store with every source whole and a head of every copy, namespace and binding.

use anyhow::{Result, ensure};
use mailboat_bench::fleet::{Fleet, Plan, copied};
use mailboat_bench::memory::LiveHeap;
use mailboat_bench::{Measurement, cpu};
use mailboat_engine::standing::Part;
use serde_json::json;

#[global_allocator]
static HEAP: LiveHeap = LiveHeap::new(std::alloc::System, usize::MAX);

const EDGES: usize = 10_000;
const SOURCES: usize = 20;
const MOST_BYTES: f64 = 200e6;

fn main() -> Result<()> {
    let before = HEAP.allocated();
    let mut fleet = Fleet::new(Plan {
        edges: EDGES,
        sources: SOURCES,
        kind: ("", "configmaps", "v1", "ConfigMap"),
        source: |number| {
            json!({ "apiVersion": "v1", "kind": "ConfigMap",
                    "data": { "config.yaml": format!("number: {number}\n").repeat(30) } })
        },
        change: |source, _| copied(source),
        varies: false,
    })?;
    let listed = HEAP.allocated() - before;
    let begun = cpu::spent();
    fleet.settle()?;
    let seconds = cpu::spent_since(begun).as_secs_f64();
    let slots = EDGES * SOURCES;
    ensure!(fleet.engine().slot_count() == slots, "{} slots", fleet.engine().slot_count());
    let counts = fleet.engine().counts(&Part::Scope(mailboat_engine::breaker::ScopeId("placement".into())));
    ensure!(counts.delivered == slots, "{counts:?}");
    ensure!(
        fleet.projections() <= 2 * SOURCES as u64,
        "what does not vary was projected for each destination"
    );
    let heap = HEAP.allocated() - before;
    let case = format!("{SOURCES} objects at {EDGES} mailboxes");
    let store = fleet.store().footprint_bytes();
    eprintln!(
        "{listed} bytes before anything was delivered; {heap} bytes after, of them {store} in the store"
    );
    Measurement::new("slots", &case, "live heap").value(number(heap), "bytes").at_most(MOST_BYTES).print()?;
    Measurement::new("slots", &case, "delivered in a second of processor time")
        .value(number(slots) / seconds, "slots/s")
        .print()?;

    let begun = cpu::spent();
    fleet.change(0, 2);
    fleet.settle()?;
    let seconds = cpu::spent_since(begun).as_secs_f64();
    let (calls, projections) = (fleet.calls() - slots as u64, fleet.projections());
    ensure!(calls == EDGES as u64, "{calls} calls for one changed object");
    Measurement::new("slots", "one of them changed", "projections")
        .value(number(usize::try_from(projections)?), "")
        .at_most(2.0)
        .print()?;
    Measurement::new("slots", "one of them changed", "processor time for all mailboxes")
        .value(seconds, "s")
        .print()?;
    Ok(())
}

/// A count as a number to measure with.
#[expect(clippy::cast_precision_loss, reason = "no count here has 52 bits")]
fn number(count: usize) -> f64 {
    count as f64
}
