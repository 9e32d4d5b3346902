use mailboat_engine::mark::{Marks, OwnerId, StandardMarks};
use mailboat_object::key::ClusterId;

use super::*;
use crate::fixtures::Knowledge;

const TARGETS: usize = 40;

/// Statuses of SyncTargets that were never said anything of.
struct Scene {
    known: Knowledge,
    statuses: Statuses,
    mailboxes: Mailboxes,
    calls: u64,
}

impl Scene {
    fn new() -> Self {
        let targets: Vec<Value> = (0..TARGETS)
            .map(|number| json!({ "metadata": { "name": format!("t{number:02}"), "uid": format!("u{number}") } }))
            .collect();
        let mut known = Knowledge::new();
        known.list("imw", "synctargets.edge.kubestellar.io", &targets);
        let marks: Arc<dyn Marks> = Arc::new(StandardMarks::new(OwnerId(Name::new("center"))));
        let mailboxes = Mailboxes::new(ClusterId::new("espw"), "root:espw", marks);
        let mut statuses = Statuses::new(Name::new("center"), Limits::default());
        let standing: Vec<Arc<Object>> = known.store.standing_in(&ClusterId::new("imw")).cloned().collect();
        assert_eq!(standing.len(), TARGETS);
        for target in &standing {
            statuses.sees_target(target);
        }
        Self { known, statuses, mailboxes, calls: 0 }
    }

    /// The calls of one turn.
    fn turn(&mut self) -> Vec<(CallId, Key)> {
        let (mut orders, schedule) = (Vec::new(), Schedule::new());
        let sight = Sight {
            store: &self.known.store,
            schedule: &schedule,
            mailboxes: &self.mailboxes,
            held: &|_| None,
            installed: &|_| Installed::NotAsked,
            last_seen: &|_| None,
            placement: &|_| None,
        };
        let now = Now { mono: Moment(1_000), wall_seconds: 100 };
        let calls = &mut self.calls;
        self.statuses.next(
            now,
            &sight,
            || {
                *calls += 1;
                CallId(*calls)
            },
            &mut orders,
        );
        let call = |order: Order| match order {
            Order::Call(id, call) => Some((id, call.key)),
            _ => None,
        };
        orders.into_iter().filter_map(call).collect()
    }

    fn answer(&mut self, id: CallId) {
        assert!(self.statuses.answered(Moment(1_000), id, &Ok(())));
    }
}

#[test]
fn what_waits_is_written_as_soon_as_others_are_answered() {
    let mut scene = Scene::new();
    let mut written = BTreeSet::new();
    let mut turns = 0;
    loop {
        let calls = scene.turn();
        if calls.is_empty() {
            break;
        }
        turns += 1;
        assert!(calls.len() <= MOST_UNDER_WAY);
        for (id, key) in calls {
            assert!(written.insert(key), "once each");
            scene.answer(id);
        }
    }
    assert_eq!((written.len(), turns), (TARGETS, TARGETS.div_ceil(MOST_UNDER_WAY)), "no time passed");
}

#[test]
fn one_that_is_being_written_is_looked_at_again_afterwards() {
    let mut scene = Scene::new();
    let (first, key) = scene.turn().swap_remove(0);
    scene.statuses.touch(&key);
    assert!(scene.turn().iter().all(|(_, other)| *other != key), "it is under way");
    scene.answer(first);
    assert!(scene.statuses.later.iter().any(|(_, other)| *other == key));
}
