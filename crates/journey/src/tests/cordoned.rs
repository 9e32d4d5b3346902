//! An edge that is taken out of service, and then left.

use std::sync::Arc;
use std::time::Duration;

use mailboat_machinery::Stored;
use mailboat_object::key::{ClusterId, KindId};
use serde_json::Value;

use crate::kinds;
use crate::oracle::is_marked;
use crate::script::{Cargo, Line, Script, Site, Step};
use crate::truth::Truth;
use crate::world::World;

/// Twelve ConfigMaps at an edge, and four more that nobody sends yet.
fn before() -> Vec<Line> {
    let put = |name: u8| {
        let label = u8::from(name >= 12);
        (u64::from(name), Step::Put(Site::Workload, Cargo::ConfigMap, name, label))
    };
    (0..16).map(put).chain([(20, Step::Place(0, 0, 0))]).collect()
}

/// What stands of a kind somewhere two minutes after all this.
fn standing(
    then: impl IntoIterator<Item = Line>,
    place: fn(&Truth) -> Option<ClusterId>,
    kind: KindId,
) -> Vec<Arc<Stored>> {
    let lines = before().into_iter().chain(then).collect();
    let script = Script { center: true, bound: false, edges: 1, lines };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let standing = World::standing_after(7, &script, (place, kind), Duration::from_mins(2));
    runtime.unwrap().block_on(standing).unwrap()
}

/// The copies at the edge.
fn at_edge(then: impl IntoIterator<Item = Line>) -> Vec<Arc<Stored>> {
    let mut there =
        standing(then, |truth| truth.edges.first().map(|edge| edge.cluster.clone()), kinds::configmaps());
    there.retain(|one| is_marked(one));
    there
}

/// What a ConfigMap holds, among others.
fn held(all: &[Arc<Stored>], name: &str) -> Option<Value> {
    let one = all.iter().find(|one| *one.key.name == *name)?;
    Some(one.body()["data"].clone())
}

#[test]
fn nothing_new_goes_to_a_cordoned_edge_and_what_is_there_follows() {
    let changes = [
        (60_000, Step::Cordon(0)),
        (61_000, Step::Put(Site::Workload, Cargo::ConfigMap, 0, 0)),
        (62_000, Step::Place(1, 1, 0)),
    ];
    let sources = standing(changes.clone(), |truth| truth.workload.clone(), kinds::configmaps());
    let copies = at_edge(changes.clone());
    assert_eq!(copies.len(), 12);
    assert!(held(&copies, "n0").is_some() && held(&copies, "n0") == held(&sources, "n0"));
    assert_ne!(held(&copies, "n0"), held(&at_edge([]), "n0"), "it was changed");
    // Where it is not cordoned, the others go there as well.
    assert_eq!(at_edge(changes[1..].to_vec()).len(), 16);
}

#[test]
fn what_is_to_leave_is_held_as_one_until_somebody_confirms_and_goes_then() {
    let evicted = [(60_000, Step::Cordon(0)), (70_000, Step::Evict(0))];
    assert_eq!(at_edge(evicted.clone()).len(), 12, "that much is asked about first");
    let workload: fn(&Truth) -> _ = |truth| truth.workload.clone();
    let placements = standing(evicted.clone(), workload, kinds::edge("edgeplacements"));
    let awaited = &placements[0].body()["status"]["awaitingConfirmation"];
    assert!(awaited["changeId"].is_string(), "{:#}", placements[0].body()["status"]);
    let confirmed = evicted.into_iter().chain([(200_000, Step::ConfirmPlacement(0))]);
    assert_eq!(at_edge(confirmed).len(), 0);
}
