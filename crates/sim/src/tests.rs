use super::*;
use crate::script::{Step, Workspace};

mod mutations;

#[test]
fn two_hundred_seeds_keep_every_promise() {
    let mut total = Report::default();
    for seed in 0..200 {
        let report = run(seed, &Options::default()).unwrap_or_else(|failure| panic!("{failure}"));
        total.writes += report.writes;
        total.deletions += report.deletions;
        total.starts += report.starts;
        total.confirmed += report.confirmed;
        total.let_go += report.let_go;
    }
    // A world in which nothing happens keeps every promise.
    assert!(total.writes > 2_000 && total.deletions > 200 && total.starts > 400, "{total:?}");
    assert!(total.confirmed > 20 && total.let_go > 50, "{total:?}");
}

#[test]
fn seeds_that_found_something_stay_mended() {
    let seeds = [1_856, 1_923, 1_978, 15_704, 16_269, 16_397, 20_792, 31_041, 31_112, 33_782, 34_897];
    let late =
        [202_753, 202_759, 203_839, 204_357, 204_495, 205_692, 300_595, 300_733, 300_915, 301_722, 400_128];
    let hidden = [624, 1_614, 1_809, 7_000_267, 7_000_344, 7_000_404, 7_001_769];
    let let_go = [567, 2_937];
    let counted = [239, 819, 878, 1_019, 2_049, 2_223, 3_117, 3_546, 4_771, 7_000_791, 7_002_213, 7_002_216];
    let told_late = [6_862];
    let finalized = [3_443, 3_511];
    let earlier = seeds.into_iter().chain(late).chain(hidden);
    for seed in earlier.chain(counted).chain(let_go).chain(told_late).chain(finalized) {
        if let Err(failure) = run(seed, &Options::default()) {
            panic!("{failure}");
        }
    }
}

/// The label is heard of before the placement that was edited to select it: at that moment nothing selects the source.
#[test]
fn what_the_process_was_not_told_yet_is_not_held_against_it() {
    let steps = [
        (10, Step::Put(Workspace::Workload, 6, 1)),
        (11, Step::Place(0, 1, 1)),
        // Until after the streams' next bookmarks are due, whose time comes before that of what waits to be told.
        (50_000, Step::Pause(30_000)),
        (51_000, Step::Relabel(Workspace::Workload, 6, 0)),
        (52_000, Step::Place(0, 0, 1)),
    ];
    let mut deletions = 0;
    for seed in 0..20 {
        let script = mutations::scripted(1, steps.to_vec());
        let report = world::play(seed, &script, &Options::default());
        deletions += report.unwrap_or_else(|failure| panic!("{failure}")).deletions;
    }
    assert!(deletions > 0, "the label was never heard of before the placement");
}

#[test]
fn a_seed_replays_exactly() {
    for seed in 0..20 {
        let [one, other] = [(), ()].map(|()| run(seed, &Options::default()).map_err(|f| f.to_string()));
        assert_eq!(one, other, "seed {seed}");
    }
}
