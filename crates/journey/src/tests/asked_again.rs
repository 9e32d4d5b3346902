//! A word on one withdrawal is none on the next, though it was never taken off.

use crate::script::{Cargo, Line, Script, Site, Step};
use crate::{Options, Report, world};

/// Twelve ConfigMaps are placed and withdrawn, which somebody confirms, and placed again; then this happens.
fn play(then: impl IntoIterator<Item = Line>) -> Report {
    let mut lines: Vec<Line> =
        (0..12).map(|name| (u64::from(name), Step::Put(Site::Workload, Cargo::ConfigMap, name, 0))).collect();
    lines.extend([
        (20, Step::Place(0, 0, 0)),
        (60_000, Step::Place(0, 1, 0)),
        (90_000, Step::ConfirmPlacement(0)),
        (120_000, Step::Place(0, 0, 0)),
    ]);
    lines.extend(then);
    let script = Script { center: true, bound: false, edges: 1, lines };
    world::play(11, &script, &Options::default()).unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn the_same_withdrawal_is_asked_about_again() {
    let placed = play([]);
    assert!(placed.deletions >= 12 && placed.arrived == 12, "{placed}");
    let asked = play([(180_000, Step::Place(0, 1, 0))]);
    assert_eq!((asked.arrived, asked.deletions), (12, placed.deletions), "{asked}");
    let confirmed = play([(180_000, Step::Place(0, 1, 0)), (210_000, Step::ConfirmPlacement(0))]);
    assert_eq!(confirmed.arrived, 0, "{confirmed}");
}
