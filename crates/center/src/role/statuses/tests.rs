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
    now: Moment,
    /// How often a placement's status was computed.
    computed: std::cell::Cell<usize>,
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
        Self { known, statuses, mailboxes, calls: 0, now: Moment(1_000), computed: 0.into() }
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
            placement: &|_| {
                self.computed.set(self.computed.get() + 1);
                None
            },
        };
        let now = Now { mono: self.now, wall_seconds: 100 };
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

/// Each of ten thousand copies that comes to stand otherwise touches its placement, in a turn of its own.
#[test]
fn a_placements_status_is_computed_once_a_second_however_many_copies_change_meanwhile() {
    let mut scene = Scene::new();
    scene.known.list(
        "wmw",
        "edgeplacements.edge.kubestellar.io",
        &[json!({ "metadata": { "name": "shops" } })],
    );
    scene.statuses.due.clear();
    let placement = crate::fixtures::key("wmw", "edgeplacements.edge.kubestellar.io", "", "shops");
    for _ in 0..1_000 {
        scene.statuses.touch(&placement);
        scene.turn();
    }
    assert_eq!(scene.computed.get(), 1, "at once");
    scene.now = Moment(1_999);
    scene.turn();
    assert_eq!(scene.computed.get(), 1);
    scene.now = Moment(2_000);
    scene.turn();
    assert_eq!(scene.computed.get(), 2, "what came meanwhile is not forgotten");
    scene.now = Moment(9_000);
    scene.turn();
    assert_eq!(scene.computed.get(), 2, "nothing changed any more");
    scene.statuses.touch(&placement);
    scene.turn();
    assert_eq!((scene.computed.get(), scene.statuses.computed.len()), (3, 1));
}
