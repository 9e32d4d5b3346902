//! Many SyncTargets that went while no center ran.

use std::time::Duration;

use crate::kinds;
use crate::script::{Line, Script, Step};
use crate::sea::Who;
use crate::world::World;

const EDGES: u8 = 12;

/// How many mailboxes stand after all SyncTargets but one went while no center ran, and then this happened.
fn mailboxes(then: impl IntoIterator<Item = Line>) -> usize {
    let mut lines = vec![(30_000, Step::Crash(Who::Center, 10_000))];
    lines.extend((1..EDGES).map(|edge| (31_000, Step::Retire(edge))));
    lines.extend(then);
    let script = Script { center: true, bound: false, edges: EDGES, lines };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let standing = World::standing_after(
        1,
        &script,
        (|truth| truth.provider.clone(), kinds::workspaces()),
        Duration::from_mins(5),
    );
    let standing = runtime.unwrap().block_on(standing).unwrap();
    standing.iter().filter(|workspace| workspace.key.name.contains("-mb-")).count()
}

#[test]
fn their_mailboxes_stay_until_somebody_confirms() {
    assert_eq!(mailboxes([]), usize::from(EDGES));
    assert_eq!(mailboxes([(120_000, Step::ConfirmRetired)]), 1);
}
