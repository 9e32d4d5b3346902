//! A center of two shards, of which one is away: what stands there is not known, and nothing is withdrawn for the want of it.

use std::time::Duration;

use crate::script::{Cargo, Line, Script, Site, Step};
use crate::sea::Who;
use crate::world::World;

/// How many copies are at an edge after a center started that finds its Location missing.
fn arrived(shard: Option<Line>) -> u64 {
    let put = |name: u8| (u64::from(name), Step::Put(Site::Workload, Cargo::ConfigMap, name, 0));
    let mut lines: Vec<Line> = (0..4).map(put).chain([(10, Step::Place(0, 0, 0))]).collect();
    lines.push((60_000, Step::Crash(Who::Center, 10_000)));
    lines.extend(shard);
    lines.push((62_000, Step::Unlist(0)));
    let script = Script { center: true, bound: false, edges: 1, lines };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(World::arrived_after(3, &script, Duration::from_mins(10))).unwrap()
}

#[test]
fn what_may_stand_on_a_shard_that_is_away_withdraws_nothing() {
    assert_eq!(arrived(None), 0, "where all shards are seen, it is gone");
    assert_eq!(arrived(Some((61_000, Step::AwayShard))), 4);
}
