//! A center that starts where nothing changed writes nothing, of whatever kind.

use crate::script::{Cargo, Line, Script, Site, Step};
use crate::world::World;

/// Cargo of both kinds, two placements, and edges that report.
fn script() -> Script {
    let put = |cargo: Cargo| {
        (0..8_u8).map(move |name| (u64::from(name), Step::Put(Site::Workload, cargo, name, name % 2)))
    };
    let mut lines: Vec<Line> = put(Cargo::Boat).chain(put(Cargo::ConfigMap)).collect();
    lines.extend((0..2).map(|number| (10, Step::Place(number, number, number))));
    let reports = (0..3).flat_map(|edge| (0..8).map(move |name| (120_000, Step::EdgeStatus(edge, name, 7))));
    lines.extend(reports);
    Script { center: true, bound: false, edges: 3, lines }
}

#[test]
fn a_center_that_starts_where_nothing_changed_writes_nothing() {
    for seed in 0..3 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let written = runtime.unwrap().block_on(World::written_after_a_restart(seed, &script())).unwrap();
        assert!(written.is_empty(), "seed {seed}:\n{}", written.join("\n"));
    }
}
