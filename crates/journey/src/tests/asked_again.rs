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

/// The same at a syncer that is told by users: eight boats and eight ConfigMaps are asked for, then none, and then all again.
fn tell(then: impl IntoIterator<Item = Line>) -> Report {
    let mailbox = Site::Mailbox(0);
    let both = |name: u8| [Cargo::Boat, Cargo::ConfigMap].map(|cargo| Step::Put(mailbox, cargo, name, 0));
    let mut lines: Vec<Line> = (0..8).flat_map(both).map(|step| (1, step)).collect();
    lines.extend([
        (20, Step::Tell(0, 0xff, 0xff)),
        (60_000, Step::Tell(0, 0, 0)),
        (120_000, Step::Confirm(0)),
        (180_000, Step::Tell(0, 0xff, 0xff)),
    ]);
    lines.extend(then);
    let script = Script { center: false, bound: false, edges: 1, lines };
    world::play(10, &script, &Options::default()).unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn a_syncer_asks_about_the_same_withdrawal_again() {
    let placed = tell([]);
    assert!(placed.arrived >= 16 && placed.deletions >= 16, "{placed}");
    let asked = tell([(240_000, Step::Tell(0, 0, 0))]);
    let as_placed = (placed.arrived, placed.deletions);
    assert_eq!((asked.arrived, asked.deletions), as_placed, "the word that stayed let them go: {asked}");
    let confirmed = tell([(240_000, Step::Tell(0, 0, 0)), (300_000, Step::Confirm(0))]);
    assert!(confirmed.arrived < 16 && confirmed.deletions > placed.deletions, "{confirmed}");
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
