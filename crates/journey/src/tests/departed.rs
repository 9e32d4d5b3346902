//! An edge that is taken out of the inventory: what was delivered stays there.

use std::time::Duration;

use mailboat_object::key::KindId;
use serde_json::Value;

use crate::script::{Cargo, Line, Script, Site, Step};
use crate::sea::Who;
use crate::truth::Truth;
use crate::world::World;
use crate::{Options, Report, kinds, world};

/// Four ConfigMaps at each of two edges, one of which then loses what stands for it in the inventory.
fn play(seed: u64, lost: impl IntoIterator<Item = Line>) -> Report {
    let script = script(lost);
    world::play(seed, &script, &Options::default()).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"))
}

fn script(lost: impl IntoIterator<Item = Line>) -> Script {
    let put = |name: u8| (u64::from(name), Step::Put(Site::Workload, Cargo::ConfigMap, name, 0));
    let mut lines: Vec<Line> = (0..4).map(put).collect();
    lines.extend([(8, Step::Locate(1, 0)), (10, Step::Place(0, 0, 0))]);
    lines.extend(lost);
    Script { center: true, bound: false, edges: 2, lines }
}

/// How soon servers answer decides in which order the center comes to believe that both are gone.
const WORLDS: u64 = 6;

#[test]
fn an_edge_keeps_what_it_has_when_its_location_goes_with_its_sync_target() {
    for seed in 0..WORLDS {
        let report = play(seed, [(60_000, Step::RetireWhole(0))]);
        assert_eq!(report.arrived, 8, "seed {seed}: {report}");
    }
}

/// Whoever sees it for the first time while it goes does not know that copies went there.
#[test]
fn an_edge_keeps_what_it_has_when_a_center_starts_while_its_sync_target_goes() {
    let lines =
        vec![(60_000, Step::Detain(0)), (61_000, Step::Retire(0)), (90_000, Step::Crash(Who::Center, 5_000))];
    assert_eq!(arrived(lines), 8);
}

/// How many copies are at both edges ten minutes after this happened.
fn arrived(lost: Vec<Line>) -> u64 {
    let script = script(lost);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(World::arrived_after(3, &script, Duration::from_mins(10))).unwrap()
}

/// A user's slip is no order to clear edges, whether the center saw it made or starts afterwards, and starts again.
#[test]
fn edges_keep_what_they_have_when_a_selector_cannot_be_understood_and_a_center_starts() {
    for slip in [Step::Misplace(0), Step::Mislead(0)] {
        let starts = [90_000, 120_000].map(|at| (at, Step::Crash(Who::Center, 5_000)));
        let lines = [(60_000, slip.clone())].into_iter().chain(starts).collect();
        assert_eq!(arrived(lines), 8, "{slip}");
    }
}

/// That is a user's word on the placement: it goes there no more.
#[test]
fn an_edge_whose_location_alone_goes_is_cleared() {
    let report = play(0, [(60_000, Step::Unlist(0))]);
    assert_eq!(report.arrived, 4, "{report}");
}

/// What stands of a kind in the workload workspace two minutes after one of two edges was retired, to both of which a boat
/// went whose status is asked for.
fn said_after(lost: Line, kind: KindId) -> Value {
    let lines = vec![
        (1, Step::Put(Site::Workload, Cargo::Boat, 0, 0)),
        (8, Step::Locate(1, 0)),
        (10, Step::Place(0, 0, 0)),
        (11, Step::WantStatus(0)),
        (30_000, Step::EdgeStatus(0, 0, 7)),
        (30_001, Step::EdgeStatus(1, 0, 8)),
        lost,
    ];
    let script = Script { center: true, bound: false, edges: 2, lines };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let place: fn(&Truth) -> _ = |truth| truth.workload.clone();
    let standing = World::standing_after(5, &script, (place, kind), Duration::from_mins(2));
    let standing = runtime.unwrap().block_on(standing).unwrap();
    let [one] = standing.as_slice() else { panic!("{} of them", standing.len()) };
    one.to_value()
}

#[test]
fn a_placement_is_done_with_an_edge_that_was_retired() {
    for lost in [Step::Retire(0), Step::RetireWhole(0)] {
        let placement = said_after((60_000, lost), kinds::edge("edgeplacements"));
        let status = &placement["status"];
        assert!(status["held"].is_null() && status["destinationCount"] == 1, "{status:#}");
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.iter().find(|one| one["type"] == "Ready");
        assert!(ready.is_some_and(|ready| ready["status"] == "True"), "{status:#}");
    }
}

#[test]
fn the_status_of_the_edge_that_is_left_returns() {
    let boat = said_after((60_000, Step::Retire(0)), kinds::boats());
    assert_eq!(boat["metadata"]["annotations"]["kubestellar.io/executing-count"], "1");
    assert_eq!(boat["status"]["at"], 8, "{boat:#}");
}

/// A center that remembered what was there would look after it for ever.
#[test]
fn nothing_is_left_to_be_done_about_a_retired_edge() {
    let lines = vec![
        (1, Step::Put(Site::Workload, Cargo::ConfigMap, 0, 0)),
        (8, Step::Locate(1, 0)),
        (10, Step::Place(0, 0, 0)),
        (60_000, Step::Retire(0)),
    ];
    let script = Script { center: true, bound: false, edges: 2, lines };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let waits = World::unsettled_after(5, &script, Duration::from_mins(2));
    let mut waits = runtime.unwrap().block_on(waits).unwrap();
    waits.retain(|line| line.starts_with("Center"));
    assert!(waits.is_empty(), "{}", waits.join("\n"));
}
