//! A workload workspace that answers nothing when a center starts.

use std::time::Duration;

use crate::script::{Cargo, Line, Script, Site, Step};
use crate::sea::Who;
use crate::truth::Truth;
use crate::{Options, kinds, world};

/// Four ConfigMaps at each of two edges. The workspace that they come from is silent from the start of a center on.
fn lines() -> Vec<Line> {
    let put = |name: u8| (u64::from(name), Step::Put(Site::Workload, Cargo::ConfigMap, name, 0));
    let mut lines: Vec<Line> = (0..4).map(put).collect();
    lines.extend([
        (8, Step::Locate(1, 0)),
        (10, Step::Place(0, 0, 0)),
        (60_000, Step::Crash(Who::Center, 1_000)),
        (60_001, Step::Silence(Site::Workload)),
    ]);
    lines
}

#[test]
fn what_it_placed_stays() {
    let mut lines = lines();
    // Something is deleted, and something moved, where the center cannot see it.
    lines.push((70_000, Step::Delete(Site::Workload, Cargo::ConfigMap, 0)));
    lines.push((300_000, Step::Noise(0)));
    let script = Script { center: true, bound: false, edges: 2, lines };
    let report = world::play(2, &script, &Options::default()).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(report.arrived, 6, "it goes when it is seen to be gone: {report}");
}

/// What a syncer is told is put right meanwhile.
#[test]
fn others_do_not_wait_for_it() {
    let mut lines = lines();
    lines.extend([(200_000, Step::Tell(0, 0, 0xff)), (300_000, Step::Noise(0))]);
    let script = Script { center: true, bound: false, edges: 2, lines };
    let place: fn(&Truth) -> _ = |truth| truth.edges.first()?.mailbox.clone();
    let kind = kinds::edge("syncerconfigs");
    let standing = world::World::standing_after(2, &script, (place, kind), Duration::from_millis(10));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let standing = runtime.unwrap().block_on(standing).unwrap();
    let [the_one] = standing.as_slice() else { panic!("{} of them", standing.len()) };
    let told = the_one.body()["spec"].to_string();
    assert!(told.contains("n3") && !told.contains("n7"), "{told}");
}
