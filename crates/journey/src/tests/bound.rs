//! Cargo of a kind that a workload workspace has by a binding to somebody else's export.

use std::sync::Arc;
use std::time::Duration;

use mailboat_machinery::Stored;
use mailboat_object::key::{ClusterId, KindId};

use crate::kinds;
use crate::script::{Cargo, Line, Script, Site, Step};
use crate::sea::Who;
use crate::truth::Truth;
use crate::{Options, Report, world};

const KNOWN: [Line; 2] = [(0, Step::EdgeDefine(0)), (0, Step::EdgeDefine(1))];

/// Eight boats of two labels at one of two edges, and the same at both.
fn placed() -> Vec<Line> {
    let put = |name: u8| (u64::from(name), Step::Put(Site::Workload, Cargo::Boat, name, name % 2));
    let mut lines: Vec<Line> = (0..8).map(put).collect();
    lines.extend([(10, Step::Place(0, 0, 0)), (11, Step::Place(1, 1, 0)), (12, Step::Place(2, 0, 1))]);
    lines
}

/// The same, where both edges know boats.
fn loaded() -> Vec<Line> {
    KNOWN.into_iter().chain(placed()).collect()
}

fn script(lines: impl IntoIterator<Item = Line>) -> Script {
    Script { center: true, bound: true, edges: 2, lines: lines.into_iter().collect() }
}

fn play(lines: impl IntoIterator<Item = Line>) -> Report {
    let script = script(loaded().into_iter().chain(lines));
    world::play(7, &script, &Options::default()).unwrap_or_else(|failure| panic!("{failure}"))
}

type Where = fn(&Truth) -> Option<ClusterId>;

fn workload(truth: &Truth) -> Option<ClusterId> {
    truth.workload.clone()
}

/// The first edge's.
fn mailbox(truth: &Truth) -> Option<ClusterId> {
    truth.edges.first()?.mailbox.clone()
}

fn florin(truth: &Truth) -> Option<ClusterId> {
    Some(truth.edges.first()?.cluster.clone())
}

fn guilder(truth: &Truth) -> Option<ClusterId> {
    Some(truth.edges.get(1)?.cluster.clone())
}

/// What stands of a kind somewhere so long after the last of these lines.
fn standing(
    lines: impl IntoIterator<Item = Line>,
    place: Where,
    kind: KindId,
    span: Duration,
) -> Vec<Arc<Stored>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let script = script(lines);
    let standing = world::World::standing_after(7, &script, (place, kind), span);
    runtime.unwrap().block_on(standing).unwrap()
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
    let script = script(loaded());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let written = runtime.unwrap().block_on(world::World::written_after_a_restart(3, &script)).unwrap();
    assert!(written.is_empty(), "{}", written.join("\n"));
}

/// A definition that is kept for the edges goes along with the first boat, and leaves after the last.
#[test]
fn its_definition_goes_along_and_leaves_after_it() {
    let kept = || [(0, Step::KeepDefinition)].into_iter().chain(placed());
    let report = world::play(7, &script(kept()), &Options::default());
    let report = report.unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!((report.arrived, report.deletions), (12, 0), "{report}");
    let displaced = || kept().chain((0..3).map(|name| (60_000, Step::Displace(name))));
    for (place, kind) in [
        (mailbox as Where, kinds::boats()),
        (mailbox, kinds::definitions_kept()),
        (florin, kinds::definitions()),
    ] {
        let left = standing(displaced(), place, kind.clone(), Duration::from_mins(2));
        assert!(
            left.is_empty(),
            "{kind}: {:?}",
            left.iter().map(|one| one.key.to_string()).collect::<Vec<_>>()
        );
    }
}

/// Where an edge does not serve the kind, boats wait in its mailbox until it does, and are counted as not delivered.
#[test]
fn it_waits_in_the_mailbox_of_an_edge_that_does_not_know_it() {
    let known = [(120_000, Step::EdgeDefine(0)), (121_000, Step::EdgeDefine(1))];
    for (edges_know, delivered) in [(false, 0), (true, 4)] {
        let lines = || placed().into_iter().chain(known.clone().into_iter().filter(|_| edges_know));
        let span = Duration::from_mins(2);
        let waiting = standing(lines(), mailbox, kinds::boats(), span);
        assert_eq!(waiting.len(), 8, "they are in the mailbox");
        let summaries = standing(lines(), workload, kinds::edge("statussummaries"), span);
        let summary = summaries.iter().find(|one| *one.key.name == *"p0").expect("a summary");
        let counts = &summary.body()["status"]["kinds"][0];
        assert_eq!((&counts["wanted"], &counts["delivered"]), (&4.into(), &delivered.into()), "{counts}");
    }
    let report = world::play(7, &script(placed().into_iter().chain(known)), &Options::default());
    let report = report.unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!((report.arrived, report.deletions), (12, 0), "{report}");
}

/// Behind another identity are other objects. What was placed stays, and the placements say what they wait for.
#[test]
fn nothing_leaves_when_it_comes_to_have_another_identity() {
    for crashed in [None, Some(Who::Center), Some(Who::Syncer(0))] {
        let crash = crashed.map(|who| (60_500, Step::Crash(who, 30_000)));
        let lines = || loaded().into_iter().chain(crash.clone()).chain([(61_000, Step::ChangeIdentity)]);
        let span = Duration::from_mins(5);
        for (edge, boats) in [(florin as Where, 8), (guilder, 4)] {
            let left = standing(lines(), edge, kinds::boats(), span).len();
            assert_eq!(left, boats, "{crashed:?}");
        }
        let placements = standing(lines(), workload, kinds::edge("edgeplacements"), span);
        for placement in placements {
            let ready = &placement.body()["status"]["conditions"][0];
            assert_eq!(
                (&ready["type"], &ready["status"]),
                (&"Ready".into(), &"False".into()),
                "{crashed:?}: {ready}"
            );
            // A center that starts does not know the old one, and says what stands in its way instead.
            let names_it = ready["message"].as_str().unwrap_or_default().contains("another identity");
            assert!(names_it || crashed == Some(Who::Center), "{crashed:?}: {ready}");
        }
    }
}

/// A center that starts sees neither the boats nor their copies. Its syncers are not told to carry less.
#[test]
fn nothing_leaves_when_a_center_starts_that_sees_neither_it_nor_its_copies() {
    let report = play([
        (60_000, Step::Crash(Who::Center, 20_000)),
        (61_000, Step::DropDefinition(Site::Workload)),
        (62_000, Step::DropClaim(0)),
    ]);
    assert_eq!((report.arrived, report.deletions), (12, 0), "{report}");
}

/// A center that starts after its boats, and the binding that shows their copies at the first edge, were lost.
fn out_of_sight() -> Vec<Line> {
    let lost = [
        (60_000, Step::Crash(Who::Center, 20_000)),
        (61_000, Step::DropDefinition(Site::Workload)),
        (62_000, Step::DropClaim(0)),
    ];
    loaded().into_iter().chain(lost).collect()
}

fn inventory(truth: &Truth) -> Option<ClusterId> {
    truth.inventory.clone()
}

/// What the SyncTarget of the first edge says to be held: whether, and in which words.
fn held(lines: impl IntoIterator<Item = Line>) -> (String, String) {
    let targets = standing(lines, inventory, kinds::edge("synctargets"), Duration::from_mins(2));
    let target = targets.iter().find(|one| *one.key.name == *"t0").expect("a SyncTarget");
    let conditions = target.body()["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let held = conditions.iter().find(|one| one["type"] == "WithdrawalHeld").cloned().unwrap_or_default();
    let text = |member: &str| held[member].as_str().unwrap_or_default().to_owned();
    (text("status"), text("message"))
}

fn boats_at(edge: Where, lines: impl IntoIterator<Item = Line>) -> usize {
    standing(lines, edge, kinds::boats(), Duration::from_mins(2)).len()
}

/// What no center can see is carried on, and the SyncTarget says what it is and how to let it go. Then that edge lets go of it,
/// and no other does.
#[test]
fn what_will_not_be_seen_again_leaves_once_somebody_confirms_it() {
    let (status, message) = held(out_of_sight());
    assert_eq!(status, "True", "{message}");
    assert!(
        message.contains("8 of boats.example.dev") && message.contains("confirm-withdrawal="),
        "{message}"
    );
    assert_eq!((boats_at(florin, out_of_sight()), boats_at(guilder, out_of_sight())), (8, 4));

    let confirmed = || out_of_sight().into_iter().chain([(180_000, Step::ConfirmTarget(0))]);
    assert_eq!((boats_at(florin, confirmed()), boats_at(guilder, confirmed())), (0, 4));
    assert_eq!(held(confirmed()), ("False".to_owned(), String::new()));
}

/// What is said of it is said once: a center that starts after that, and sees no more, has nothing to add.
#[test]
fn a_center_that_starts_again_says_the_same_of_what_is_out_of_sight() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let script = script(out_of_sight());
    let written = runtime.unwrap().block_on(world::World::written_after_a_restart(7, &script)).unwrap();
    assert!(written.is_empty(), "{}", written.join("\n"));
    let again = out_of_sight().into_iter().chain([(180_000, Step::Crash(Who::Center, 5_000))]);
    assert_eq!(held(again), held(out_of_sight()));
}
