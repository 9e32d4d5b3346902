//! Nothing waits for the next bookmark of a quiet watch, which comes once a minute.

use std::time::Duration;

use crate::script::{Cargo, Line, Script, Site, Step};
use crate::world::World;

/// Among these seeds, definitions are listed just while the mailbox is bound to them, a syncer asks what its mailbox serves
/// just before that is bound to more, and the answer about a view's bindings is overtaken by one about what it shows.
#[test]
fn what_is_placed_while_a_mailbox_is_made_arrives_in_seconds() {
    let put = |(cargo, name, label): (Cargo, u8, u8)| Step::Put(Site::Workload, cargo, name, label);
    let cargo = [
        (Cargo::Boat, 5, 1),
        (Cargo::Boat, 4, 0),
        (Cargo::ConfigMap, 1, 0),
        (Cargo::ConfigMap, 5, 1),
        (Cargo::Boat, 3, 1),
        (Cargo::ConfigMap, 6, 0),
        (Cargo::Boat, 7, 0),
        (Cargo::ConfigMap, 3, 0),
    ];
    let mut lines: Vec<Line> = (0..).zip(cargo).map(|(at, cargo)| (at, put(cargo))).collect();
    lines.extend((0..2).map(|number| (u64::from(11 + number), Step::Place(number, number, 0))));
    for seed in 0..10 {
        let script = Script { center: true, bound: false, edges: 1, lines: lines.clone() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let arrived = World::arrived_after(seed, &script, Duration::from_secs(10));
        assert_eq!(runtime.unwrap().block_on(arrived), Ok(8), "seed {seed}");
    }
}
