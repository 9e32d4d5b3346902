//! A workload workspace, or the binding of its placements, whose deletion began while no center ran.

use crate::script::{Cargo, Line, Script, Site, Step};
use crate::sea::Who;
use crate::{Options, Report, world};

/// So much of it is placed that letting go of it is asked about.
fn play(boats: bool, lost: Step, then: impl IntoIterator<Item = Line>) -> Report {
    let cargo = |name: u8| if boats && name.is_multiple_of(2) { Cargo::Boat } else { Cargo::ConfigMap };
    let put = |name: u8| (u64::from(name), Step::Put(Site::Workload, cargo(name), name, 0));
    let mut lines: Vec<Line> = (0..8).map(put).collect();
    if boats {
        lines.extend((8..16).map(|name| (u64::from(name), Step::Put(Site::Workload, Cargo::Boat, name, 0))));
    }
    lines.extend([(20, Step::Place(0, 0, 0)), (60_000, Step::Crash(Who::Center, 20_000)), (61_000, lost)]);
    lines.extend(then);
    lines.sort_by_key(|(at, _)| *at);
    let script = Script { center: true, bound: false, edges: 1, lines };
    world::play(3, &script, &Options::default()).unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn what_it_placed_stays_until_somebody_confirms() {
    for lost in [Step::Drop(Site::Workload), Step::DropBinding(Site::Workload)] {
        let report = play(false, lost.clone(), []);
        assert_eq!((report.arrived, report.deletions), (8, 0), "{lost}: {report}");
    }
}

#[test]
fn what_it_placed_goes_when_somebody_confirms() {
    for boats in [false, true] {
        for lost in [Step::Drop(Site::Workload), Step::DropBinding(Site::Workload)] {
            let report = play(boats, lost.clone(), [(180_000, Step::ConfirmPlacement(0))]);
            assert_eq!(report.arrived, 0, "{lost}: {report}");
        }
    }
}

/// What is gone cannot be told apart by placements: it stays until each of them is let go of.
#[test]
fn a_word_on_one_placement_is_no_word_on_another() {
    let further = |then: Vec<Line>| {
        let second = [(21, Step::Put(Site::Workload, Cargo::Boat, 1, 1)), (22, Step::Place(1, 1, 0))];
        let lines = second.into_iter().chain([(180_000, Step::ConfirmPlacement(0))]).chain(then);
        play(false, Step::Drop(Site::Workload), lines)
    };
    assert_eq!(further(Vec::new()).arrived, 9);
    assert_eq!(further(vec![(240_000, Step::ConfirmPlacement(1))]).arrived, 0);
}
