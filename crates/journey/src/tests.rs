use super::*;
use crate::script::{Cargo, Line, Site, Step};

mod asked_again;
mod bound;
mod cordoned;
mod departed;
mod ended;
mod mutations;
mod passed_on;
mod restart;
mod retired;
mod shards;
mod silent;
mod singleton;
mod speed;
mod unanswered;

#[test]
fn some_seeds_keep_every_promise() {
    let mut total = Report::default();
    for seed in 0..SEEDS {
        let report = run(seed, &Options::default()).unwrap_or_else(|failure| panic!("{failure}"));
        total.add(&report);
    }
    println!("{total}");
    // A world in which nothing happens keeps every promise.
    assert!(total.writes > 300 && total.deletions > 10 && total.starts > 20, "{total:?}");
    assert!(total.arrived > 10, "{total:?}");
}

/// So many journeys are a part of the tests.
const SEEDS: u64 = 5;

#[test]
fn a_seed_replays_exactly() {
    for seed in 0..2 {
        let [one, other] = [(), ()].map(|()| run(seed, &Options::default()).map_err(|f| f.to_string()));
        assert_eq!(one, other, "seed {seed}");
    }
}

#[test]
fn a_mailbox_that_is_deleted_takes_nothing_along_at_the_edge() {
    let mut lines: Vec<Line> = (0..4)
        .map(|name| (u64::from(name), Step::Put(Site::Mailbox(0), Cargo::ConfigMap, name, 0)))
        .collect();
    lines.push((10, Step::Tell(0, 0, 0xf)));
    lines.push((60_000, Step::Drop(Site::Mailbox(0))));
    let script = Script { center: false, bound: false, edges: 1, lines };
    let report = world::play(0, &script, &Options::default()).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!((report.deletions, report.arrived), (0, 4), "{report}");
}

/// Its user deletes an object, and the center takes it out of the mailbox. Its syncer, whose edge has fallen silent, finds that
/// out five minutes later; by then its user has made another one of that name, which the center cannot place.
#[test]
fn a_copy_goes_whenever_its_syncer_hears_that_its_user_deleted_it() {
    let boat = |name| Step::Put(Site::Workload, Cargo::Boat, name, 0);
    let lines = vec![
        (9, boat(7)),
        (12, Step::Place(0, 1, 1)),
        (2_838, Step::Place(1, 0, 0)),
        // Seconds after the binding of its kind: made within the same one, it could not be told whether it went with that.
        (6_000, boat(4)),
        (11_220, Step::StallStreams(1)),
        (12_280, boat(4)),
        (67_505, Step::Delete(Site::Workload, Cargo::Boat, 4)),
        (70_579, Step::Crash(Who::Center, 10_000)),
        (70_779, Step::DropBinding(Site::Inventory)),
        (181_953, boat(4)),
        (226_813, Step::DropDefinition(Site::Workload)),
    ];
    let script = Script { lines, ..Script::draw(361, 0) };
    let report = world::play(361, &script, &Options::default()).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(report.deletions >= 4, "in two mailboxes and at their edges: {report}");
}

/// A definition that goes takes everything of its kind along at the edge.
#[test]
fn a_definition_stays_when_a_center_begins_while_its_kind_is_not_served() {
    let lines = vec![
        (1, Step::Put(Site::Workload, Cargo::Boat, 6, 0)),
        (12, Step::Place(0, 0, 1)),
        (60_000, Step::Crash(Who::Center, 4_000)),
        (61_000, Step::Unserve(Site::Workload)),
    ];
    let script = Script { center: true, bound: false, edges: 2, lines };
    let report = world::play(5, &script, &Options::default()).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(report.arrived > 0 && report.deletions == 0, "{report}");
}

/// What went with a definition is held, and so is the definition, though it was made anew without anything of its kind.
#[test]
fn a_definition_stays_while_copies_of_its_kind_are_held() {
    let lines = vec![
        (1, Step::Put(Site::Workload, Cargo::Boat, 6, 0)),
        (12, Step::Place(0, 0, 1)),
        (60_000, Step::DropDefinition(Site::Workload)),
        (63_000, Step::Redefine(Site::Workload)),
    ];
    let script = Script { center: true, bound: false, edges: 2, lines };
    let report = world::play(19, &script, &Options::default()).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(report.arrived > 0 && report.deletions == 0, "{report}");
}

/// What two placements want is let go by one after the other. Between that and the look at its source nobody wants it, and
/// its syncer must not be told so.
#[test]
fn what_two_placements_want_stays_at_the_edge_when_its_definition_goes() {
    let mut script = Script::draw(223, Options::default().steps);
    script.lines.retain(|(at, _)| *at < 122_400);
    assert!(script.lines.iter().any(|(_, step)| *step == Step::DropDefinition(Site::Workload)));
    let report = world::play(223, &script, &Options::default()).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(report.arrived > 0, "{report}");
}

/// What went with a definition may be another placement's. A center that ran all along and one that starts let go of the
/// deleted one alike.
#[test]
fn a_deleted_placement_does_not_wait_for_copies_that_may_be_anothers() {
    let lines = vec![
        (1, Step::Put(Site::Workload, Cargo::Boat, 6, 0)),
        (2, Step::Put(Site::Workload, Cargo::ConfigMap, 6, 0)),
        (12, Step::Place(0, 0, 0)),
        (13, Step::Place(1, 1, 0)),
        (60_000, Step::DropDefinition(Site::Workload)),
        (63_000, Step::Redefine(Site::Workload)),
        (120_000, Step::Displace(0)),
    ];
    let script = Script { center: true, bound: false, edges: 1, lines };
    let report = world::play(143, &script, &Options::default()).unwrap_or_else(|failure| panic!("{failure}"));
    // What it alone had placed is gone from the mailbox and the edge, and the boat is not.
    assert!(report.arrived == 1 && report.deletions >= 2, "{report}");
}

/// The placements of a workspace whose binding goes are shown by no view, and a word on one is no word on the others.
#[test]
fn a_word_on_one_placement_lets_go_what_no_other_selects() {
    for (other, left) in [(false, 0), (true, 4)] {
        let mut lines: Vec<Line> = (0..4)
            .map(|name| (u64::from(name), Step::Put(Site::Workload, Cargo::ConfigMap, name, 0)))
            .collect();
        lines.push((10, Step::Place(0, 0, 0)));
        lines.push((60_000, Step::DropBinding(Site::Workload)));
        lines.push((90_000, Step::ConfirmPlacement(0)));
        // It goes with the binding like all others, and is made again, until the center sees it and keeps it there.
        let again = (0..60).map(|number| (90_001 + 200 * number, Step::Place(1, 0, 0)));
        lines.extend(again.filter(|_| other));
        let script = Script { center: true, bound: false, edges: 1, lines };
        let report =
            world::play(155, &script, &Options::default()).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(report.arrived, left, "another: {other}: {report}");
    }
}

/// What happens to configuration while the process that reads it is down: its binding goes, and it is bound again.
fn rebound_while_down(who: Who, site: Site) -> [(u64, Step); 3] {
    [(60_000, Step::Crash(who, 20_000)), (61_000, Step::DropBinding(site)), (70_000, Step::Rebind(site))]
}

/// So few that the breaker would let them go.
#[test]
fn configuration_that_was_lost_while_no_syncer_ran_is_not_taken_for_taken_back() {
    let mut lines: Vec<Line> = (0..4)
        .map(|name| (u64::from(name), Step::Put(Site::Mailbox(0), Cargo::ConfigMap, name, 0)))
        .collect();
    lines.push((10, Step::Tell(0, 0, 0xf)));
    lines.extend(rebound_while_down(Who::Syncer(0), Site::Mailbox(0)));
    let script = Script { center: false, bound: false, edges: 1, lines: lines.clone() };
    let report = world::play(0, &script, &Options::default()).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!((report.deletions, report.arrived, report.unknowable), (0, 4, 0), "{report}");
    // Told again, and less, it withdraws what is not wanted.
    lines.push((200_000, Step::Tell(0, 0, 0x3)));
    let script = Script { center: false, bound: false, edges: 1, lines };
    let report = world::play(0, &script, &Options::default()).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!((report.deletions, report.arrived), (2, 2), "{report}");
}

/// It is written down that there is configuration before anything is delivered by it: however soon a syncer ends after that,
/// the next one knows that there was something to lose.
#[test]
fn configuration_that_was_lost_as_soon_as_it_was_taken_up_is_not_taken_for_taken_back() {
    let mut arrived = std::collections::BTreeSet::new();
    for ends_after in ENDS_AFTER {
        let mut lines: Vec<Line> = (0..4)
            .map(|name| (u64::from(name), Step::Put(Site::Mailbox(0), Cargo::ConfigMap, name, 0)))
            .collect();
        lines.push((20_000, Step::Tell(0, 0, 0xf)));
        lines.push((20_000 + ends_after, Step::Crash(Who::Syncer(0), 20_000)));
        lines.push((21_000, Step::DropBinding(Site::Mailbox(0))));
        lines.push((30_000, Step::Rebind(Site::Mailbox(0))));
        let script = Script { center: false, bound: false, edges: 1, lines };
        let report = world::play(0, &script, &Options::default())
            .unwrap_or_else(|failure| panic!("{ends_after}: {failure}"));
        arrived.insert(report.arrived);
    }
    assert!(arrived.len() > 1, "at different moments: {arrived:?}");
}

/// So many milliseconds after it was told what to carry a syncer ends.
const ENDS_AFTER: [u64; 4] = [100, 200, 300, 450];

/// Something is delivered, and then more, which a restored backup knows nothing of.
pub(super) fn restored(center: bool) -> Script {
    let site = if center { Site::Workload } else { Site::Mailbox(0) };
    let put = |name: u8| Step::Put(site, Cargo::ConfigMap, name, 0);
    let mut lines: Vec<Line> = (0..4).map(|name| (u64::from(name), put(name))).collect();
    lines.push((10, if center { Step::Place(0, 0, 0) } else { Step::Tell(0, 0, 0x3f) }));
    lines.push((60_000, Step::Backup));
    lines.extend((4..6).map(|name| (61_000, put(name))));
    lines.push((150_000, Step::Restore));
    Script { center, bound: false, edges: 1, lines }
}

#[test]
fn what_a_restored_backup_lost_stays_at_the_edge() {
    for center in [false, true] {
        let played = world::play(1, &restored(center), &Options::default());
        let report = played.unwrap_or_else(|failure| panic!("{failure}"));
        // All processes begin anew in the end, and then too.
        assert_eq!((report.deletions, report.arrived, report.unknowable), (0, 6, 0), "{report}");
    }
}

#[test]
fn an_inventory_that_was_lost_while_no_center_ran_takes_nothing_along() {
    let mut lines: Vec<Line> =
        (0..4).map(|name| (u64::from(name), Step::Put(Site::Workload, Cargo::ConfigMap, name, 0))).collect();
    lines.push((10, Step::Place(0, 0, 0)));
    lines.extend(rebound_while_down(Who::Center, Site::Inventory));
    let script = Script { center: true, bound: false, edges: 1, lines };
    let report = world::play(0, &script, &Options::default()).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!((report.arrived, report.unknowable), (4, 0), "{report}");
}

/// The bindings that vouch for what a view shows of a new mailbox may be read a minute after it. Nobody waits for that.
#[test]
fn what_goes_to_a_new_mailbox_waits_for_no_bookmark() {
    let lines = vec![
        (1, Step::Put(Site::Workload, Cargo::Boat, 4, 1)),
        (2, Step::Put(Site::Workload, Cargo::ConfigMap, 4, 1)),
        (11, Step::Place(2, 1, 0)),
    ];
    let script = Script { center: true, bound: false, edges: 1, lines };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let soon = std::time::Duration::from_secs(9);
    let waits = runtime.unwrap().block_on(world::World::unsettled_after(53, &script, soon)).unwrap();
    assert!(waits.is_empty(), "{}", waits.join("\n"));
}
