//! A question that a center asked, and that nobody has answered when the next one starts.

use std::time::Duration;

use crate::script::{Cargo, Line, Script, Site, Step};
use crate::sea::Who;
use crate::world::World;

/// Thirty-two ConfigMaps at an edge, by two placements. Of these the smaller one is to go nowhere any more, which is asked
/// about; the center starts again, and knows no more whose they were. How many are there at last.
fn arrived(then: impl IntoIterator<Item = Line>) -> u64 {
    let put =
        |name: u8| (u64::from(name), Step::Put(Site::Workload, Cargo::ConfigMap, name, u8::from(name >= 12)));
    let mut lines: Vec<Line> = (0..32).map(put).collect();
    lines.extend([(40, Step::Place(0, 0, 0)), (41, Step::Place(1, 1, 0))]);
    lines.extend([(60_000, Step::Place(0, 0, 1)), (90_000, Step::Crash(Who::Center, 5_000))]);
    lines.extend(then);
    let script = Script { center: true, bound: false, edges: 1, lines };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(World::arrived_after(3, &script, Duration::from_mins(5))).unwrap()
}

#[test]
fn what_was_asked_about_stays_over_a_start_until_somebody_answers() {
    assert_eq!(arrived([]), 32);
    assert_eq!(arrived([(120_000, Step::Crash(Who::Center, 5_000))]), 32, "and over another");
    assert_eq!(arrived([(120_000, Step::ConfirmPlacement(0))]), 20);
}

/// A placement that is put back asks nothing any more, and then goes as any other.
#[test]
fn what_is_selected_again_is_not_asked_about() {
    assert_eq!(arrived([(120_000, Step::Place(0, 0, 0))]), 32);
    assert_eq!(arrived([(120_000, Step::Place(0, 0, 0)), (180_000, Step::Place(0, 0, 1))]), 32, "asked anew");
}
