//! What was decided at the center is not asked about again at an edge that was away meanwhile.

use std::time::Duration;

use mailboat_object::key::ClusterId;

use crate::kinds;
use crate::script::{Cargo, Line, Script, Site, Step};
use crate::sea::Who;
use crate::truth::Truth;
use crate::{Options, Report, world};

/// Twelve ConfigMaps at an edge whose syncer is then away for a minute, while these things happen.
fn play(meanwhile: impl IntoIterator<Item = Line>) -> Report {
    let mut lines: Vec<Line> =
        (0..12).map(|name| (u64::from(name), Step::Put(Site::Workload, Cargo::ConfigMap, name, 0))).collect();
    lines.extend([(20, Step::Place(0, 0, 0)), (60_000, Step::Crash(Who::Syncer(0), 60_000))]);
    lines.extend(meanwhile);
    let script = Script { center: true, bound: false, edges: 1, lines };
    world::play(11, &script, &Options::default()).unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn a_placement_that_was_deleted_meanwhile_is_withdrawn() {
    assert_eq!(play([(61_000, Step::Displace(0))]).arrived, 0);
}

#[test]
fn a_placement_that_was_changed_and_confirmed_meanwhile_is_withdrawn() {
    let lines = [(61_000, Step::Place(0, 1, 0)), (90_000, Step::ConfirmPlacement(0))];
    assert_eq!(play(lines).arrived, 0);
}

/// The center itself holds it.
#[test]
fn what_nobody_confirmed_meanwhile_stays() {
    let report = play([(61_000, Step::Place(0, 1, 0))]);
    assert_eq!((report.arrived, report.deletions), (12, 0), "{report}");
}

/// While it is asked about, the placement says that it waits; it does so no longer than until that has gone.
#[test]
fn a_placement_is_ready_again_once_what_was_confirmed_has_gone() {
    let put = |name: u8| (u64::from(name), Step::Put(Site::Workload, Cargo::ConfigMap, name, 0));
    let changed = [(20, Step::Place(0, 0, 0)), (60_000, Step::Place(0, 1, 0))];
    for (confirmed, ready) in [(false, "False"), (true, "True")] {
        let lines: Vec<Line> = (0..12).map(put).chain(changed.clone()).collect();
        let confirm = confirmed.then_some((90_000, Step::ConfirmPlacement(0)));
        let lines = lines.into_iter().chain(confirm).collect();
        let script = Script { center: true, bound: false, edges: 1, lines };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let workload: fn(&Truth) -> Option<ClusterId> = |truth| truth.workload.clone();
        let of = (workload, kinds::edge("edgeplacements"));
        let placements = world::World::standing_after(11, &script, of, Duration::from_mins(2));
        let placements = runtime.unwrap().block_on(placements).unwrap();
        let said = &placements[0].body()["status"]["conditions"][0];
        assert_eq!((&said["type"], &said["status"]), (&"Ready".into(), &ready.into()), "{said}");
    }
}
