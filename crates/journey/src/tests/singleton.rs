//! The status of what runs at one edge is in its source as long as somebody asks for it, and no longer.

use std::time::Duration;

use serde_json::Value;

use crate::kinds;
use crate::script::{Cargo, Line, Script, Site, Step};
use crate::sea::Who;
use crate::world::World;

/// A boat at one edge, which says how it is; its placement is deleted after a minute.
fn lines() -> Vec<Line> {
    vec![
        (1, Step::Put(Site::Workload, Cargo::Boat, 0, 0)),
        (10, Step::Place(0, 0, 0)),
        (11, Step::WantStatus(0)),
        (30_000, Step::EdgeStatus(0, 0, 7)),
        (60_000, Step::Displace(0)),
    ]
}

/// The status of the boat, and the number of edges that it says, so long after the last of these lines.
fn said(lines: Vec<Line>, span: Duration) -> (Value, Value) {
    let script = Script { center: true, bound: false, edges: 1, lines };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let kept = World::standing_after(5, &script, (|truth| truth.workload.clone(), kinds::boats()), span);
    let kept = runtime.unwrap().block_on(kept).unwrap();
    let [boat] = kept.as_slice() else { panic!("{} boats", kept.len()) };
    let count = &boat.metadata()["annotations"]["kubestellar.io/executing-count"];
    (boat.body()["status"].clone(), count.clone())
}

#[test]
fn a_status_from_one_edge_goes_with_the_last_placement() {
    let mut before = lines();
    before.truncate(4);
    let told = said(before, Duration::from_secs(20));
    assert_eq!(told, (serde_json::json!({ "at": 7 }), "1".into()));
    let after = said(lines(), Duration::from_mins(2));
    assert!(after.0.as_object().is_none_or(serde_json::Map::is_empty) && after.1.is_null(), "{after:?}");
}

/// A center that ends in the midst of it leaves the placement to the next one, until all of it is put right.
#[test]
fn a_status_from_one_edge_goes_whenever_a_center_ends() {
    for after in [0, 30, 60, 90, 150, 400, 1_000, 1_500] {
        let mut lines = lines();
        lines.push((60_000 + after, Step::Crash(Who::Center, 5_000)));
        let after_all = said(lines, Duration::from_mins(2));
        assert!(
            after_all.0.as_object().is_none_or(serde_json::Map::is_empty) && after_all.1.is_null(),
            "ended {after} ms after the placement was deleted: {after_all:?}"
        );
    }
}
