//! Cargo of a kind that a workload workspace has by a binding to somebody else's export.

use crate::script::{Cargo, Line, Script, Site, Step};
use crate::sea::Who;
use crate::{Options, Report, world};

/// Eight boats of two labels at one of two edges, and the same at both.
fn loaded() -> Vec<Line> {
    let put = |name: u8| (u64::from(name), Step::Put(Site::Workload, Cargo::Boat, name, name % 2));
    let mut lines: Vec<Line> = (0..8).map(put).collect();
    lines.extend([(10, Step::Place(0, 0, 0)), (11, Step::Place(1, 1, 0)), (12, Step::Place(2, 0, 1))]);
    lines
}

fn play(lines: impl IntoIterator<Item = Line>) -> Report {
    let lines = loaded().into_iter().chain(lines).collect();
    let script = Script { center: true, bound: true, edges: 2, lines };
    world::play(7, &script, &Options::default()).unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn it_travels_like_any_other() {
    let report = play([]);
    assert_eq!((report.arrived, report.deletions), (12, 0), "{report}");
}

#[test]
fn it_leaves_when_it_is_deleted_or_no_longer_placed() {
    let report = play([
        (60_000, Step::Delete(Site::Workload, Cargo::Boat, 0)),
        (61_000, Step::Relabel(Cargo::Boat, 2, 1)),
        (62_000, Step::Displace(1)),
    ]);
    // Of eight boats are left 4 and 6 at both edges; 0 is deleted, 2 is another placement's, which is deleted as well.
    assert_eq!(report.arrived, 4, "{report}");
}

#[test]
fn nothing_leaves_when_the_binding_to_it_goes() {
    for crashed in [None, Some(Who::Center), Some(Who::Syncer(0))] {
        let crash = crashed.map(|who| (60_500, Step::Crash(who, 30_000)));
        let lost = (61_000, Step::DropDefinition(Site::Workload));
        let report = play(crash.into_iter().chain([lost]));
        assert_eq!((report.arrived, report.deletions), (12, 0), "{crashed:?}: {report}");
    }
}

#[test]
fn nothing_leaves_when_it_is_not_served_for_a_while() {
    let report = play([
        (60_000, Step::Unserve(Site::Workload)),
        (61_000, Step::Crash(Who::Center, 2_000)),
        (90_000, Step::Serve(Site::Workload)),
    ]);
    assert_eq!((report.arrived, report.deletions), (12, 0), "{report}");
}

#[test]
fn a_center_that_starts_where_nothing_changed_writes_nothing() {
    let script = Script { center: true, bound: true, edges: 2, lines: loaded() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let written = runtime.unwrap().block_on(world::World::written_after_a_restart(3, &script)).unwrap();
    assert!(written.is_empty(), "{}", written.join("\n"));
}
