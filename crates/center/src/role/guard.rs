//! Copies whose workspace the center cannot see.
//!
//! After a restart, a placement that is not shown is not known to have been there. If its workspace lost its binding,
//! or is being deleted, its copies would look like what no placement selects. The marks on copies say where they came
//! from: whatever came from a workspace that nobody vouches for, that does not answer or that the center may not read, or is
//! of a kind that is selected there and not served any more, stays as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mailboat_api::names::group;
use mailboat_engine::engine::Engine;
use mailboat_engine::mark::{Marked, Marks};
use mailboat_engine::mutation::{Mutation, broken};
use mailboat_engine::role::Order;
use mailboat_engine::route::{Destination, Route, RouteHead, Selected, Sources, View};
use mailboat_engine::want::{Body, Hold, Want};
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::Object;
use mailboat_store::interest::PlaceId;
use mailboat_store::store::Store;
use mailboat_store::time::Moment;

use super::newcomers::Newcomers;
use super::unanswered::Unanswered;
use super::workspaces::Workspaces;

/// Where copies came from, and which of those origins cannot be seen.
#[derive(Default)]
pub(super) struct Guard {
    origins: BTreeMap<ClusterId, BTreeSet<KindId>>,
    /// The origins and the revision of the workspaces changed since it was asked which of these kinds are unread.
    stale: bool,
    revision: u64,
    /// What may be selected and is not read in its workspace.
    unread: BTreeSet<(ClusterId, KindId)>,
    /// The workspaces of which nothing can be said.
    dark: BTreeSet<ClusterId>,
    /// Those of which somebody was asked something before we started, and has not answered.
    asked: BTreeSet<ClusterId>,
    held: BTreeSet<(ClusterId, KindId)>,
    /// Workspaces whose placements no view has shown for long: these are read there, if there are any. A workspace that
    /// was being deleted before we started is not seen otherwise, and nobody could confirm that.
    read_there: BTreeSet<ClusterId>,
    told: Told,
}

/// A workspace is said to be out of sight when it has been so for this long: bindings that are read again, and kinds that
/// are just being served, are out of sight for a moment every time.
const SAID_AFTER: Duration = Duration::from_secs(10);

/// Which workspaces are said to be out of sight.
#[derive(Default)]
pub(super) struct Told {
    since: BTreeMap<ClusterId, Moment>,
    said: BTreeSet<ClusterId>,
}

impl Told {
    /// Notes which workspaces are out of sight: the ones to speak of because they have been so for long, and those that
    /// were spoken of and are in sight again.
    pub(super) fn note(
        &mut self,
        now: Moment,
        unseen: &BTreeSet<&ClusterId>,
    ) -> (Vec<ClusterId>, Vec<ClusterId>) {
        self.since.retain(|cluster, _| unseen.contains(cluster));
        for cluster in unseen {
            self.since.entry((*cluster).clone()).or_insert(now);
        }
        let back = self.said.iter().filter(|cluster| !unseen.contains(cluster)).cloned().collect();
        self.said.retain(|cluster| unseen.contains(cluster));
        let lasting = self.since.iter().filter(|(_, since)| now >= **since + SAID_AFTER);
        let lost: Vec<_> = lasting
            .map(|(cluster, _)| cluster)
            .filter(|cluster| !self.said.contains(cluster))
            .cloned()
            .collect();
        self.said.extend(lost.iter().cloned());
        (lost, back)
    }

    /// Whether a workspace is said to be out of sight.
    pub(super) fn says(&self, cluster: &ClusterId) -> bool {
        self.said.contains(cluster)
    }

    /// When there may be something to say.
    pub(super) fn due(&self) -> Option<Moment> {
        let unsaid = self.since.iter().filter(|(cluster, _)| !self.said.contains(cluster));
        unsaid.map(|(_, since)| *since + SAID_AFTER).min()
    }
}

impl Guard {
    /// A copy in a mailbox was seen.
    pub(super) fn observe(&mut self, copy: &Object, provider: &ClusterId, marks: &dyn Marks) {
        if let Marked::Ours(mark) = marks.read(copy)
            && mark.origin.key.cluster != *provider
        {
            let Key { cluster, kind, .. } = mark.origin.key;
            self.stale |= self.origins.entry(cluster).or_default().insert(kind);
        }
    }

    /// Everything that a workspace placed is seen to have gone, and the workspace may go as well: unless one of these copies
    /// came from there, nobody has to wonder what became of it.
    pub(super) fn forget<'c>(
        &mut self,
        cluster: &ClusterId,
        mut copies: impl Iterator<Item = &'c Arc<Object>>,
        marks: &dyn Marks,
    ) {
        if !copies.any(|copy| came_from(copy, marks).is_some_and(|origin| origin == *cluster)) {
            self.stale |= self.origins.remove(cluster).is_some();
            self.read_there.remove(cluster);
        }
    }

    /// Holds what came from where nobody can see, if that changed. Says when to ask again.
    pub(super) fn hold(
        &mut self,
        now: Moment,
        store: &Store,
        workspaces: &mut Workspaces,
        (given_up, newcomers, unanswered): (&BTreeSet<ClusterId>, &Newcomers, &Unanswered),
        orders: &mut Vec<Order>,
    ) -> Option<Moment> {
        let shown = |cluster: &ClusterId| {
            // What placements selected there may be gone, so that nobody can tell any more whose a copy is. That does not
            // matter once somebody let go of each of them, by its name.
            let waits = newcomers.are_in(cluster);
            let none = workspaces.placements(cluster).next().is_none() && !waits;
            let all_given_up = given_up.contains(cluster) && none;
            // Where placements that are not taken up yet went, is not known yet either.
            let by_view = waits || (self.read_there.contains(cluster) && !all_given_up);
            shows_placements(store, cluster) && (!by_view || is_in_view(store, cluster))
        };
        // What the store shows of a workspace is asked of it each time: nothing else may tell when that changes, and a copy that is
        // not held then is deleted. Kind by kind nothing is looked at unless the workspaces or the origins changed.
        let dark = |cluster: &&ClusterId| workspaces.is_out_of_reach(cluster) || !shown(cluster);
        let dark: BTreeSet<ClusterId> = self.origins.keys().filter(dark).cloned().collect();
        let asked = self.origins.keys().filter(|cluster| unanswered.concerns(cluster));
        let asked: BTreeSet<ClusterId> = asked.cloned().collect();
        let kinds_changed = std::mem::take(&mut self.stale) || self.revision != workspaces.revision();
        if kinds_changed {
            self.revision = workspaces.revision();
            let unread = |(cluster, kind): &(&ClusterId, &KindId)| {
                workspaces.may_select(cluster, kind) && !workspaces.follows(cluster, kind)
            };
            let each = self
                .origins
                .iter()
                .flat_map(|(cluster, kinds)| kinds.iter().map(move |kind| (cluster, kind)));
            self.unread =
                each.filter(unread).map(|(cluster, kind)| (cluster.clone(), kind.clone())).collect();
        }
        if kinds_changed || dark != self.dark || asked != self.asked {
            let kinds_of = |cluster: &ClusterId| self.origins.get(cluster).into_iter().flatten().cloned();
            let whole =
                dark.union(&asked).flat_map(|cluster| kinds_of(cluster).map(|kind| (cluster.clone(), kind)));
            let held: BTreeSet<_> = whole.chain(self.unread.iter().cloned()).collect();
            (self.dark, self.asked) = (dark, asked);
            if held != self.held {
                let route = Unseen::new(&held);
                orders.push(Order::Configure(route.head.id.clone(), Some(Arc::new(route))));
                self.held = held;
            }
        }
        let unseen = self.dark.iter().chain(self.unread.iter().map(|(cluster, _)| cluster)).collect();
        let (lost, back) = self.told.note(now, &unseen);
        for cluster in lost {
            tracing::warn!(%cluster, "copies from a workspace that cannot be seen are held as they are");
            if !is_in_view(store, &cluster) {
                workspaces.look_into(&cluster, orders);
                self.read_there.insert(cluster);
            }
        }
        for cluster in back {
            tracing::info!(%cluster, "the workspace that copies came from can be seen again");
        }
        self.read_there.retain(|cluster| given_up.contains(cluster) || !is_in_view(store, cluster));
        self.told.due()
    }

    /// Whether all workspaces are shown from which something came.
    pub(super) fn sees_all(&self) -> bool {
        self.held.is_empty()
    }

    /// The workspaces whose placements are read there because no view shows them.
    pub(super) fn read_there(&self) -> &BTreeSet<ClusterId> {
        &self.read_there
    }
}

/// Whether all placements of a workspace are shown, by the view or by the workspace itself.
pub(super) fn shows_placements(store: &Store, cluster: &ClusterId) -> bool {
    let placements = KindId::new(group::EDGE, "edgeplacements");
    store.range(cluster, &placements, None).is_ok_and(|range| range.missing().is_ok())
}

/// Whether the view shows a workspace. Slices are read nowhere else, and are bound together with placements.
pub(super) fn is_in_view(store: &Store, cluster: &ClusterId) -> bool {
    let slices = KindId::new(group::EDGE, "singleplacementslices");
    store.range(cluster, &slices, None).is_ok_and(|range| range.missing().is_ok())
}

/// Where copies stand that came from a workspace and that no placement claims. If the workspace was being deleted before we
/// started, what they were made from is gone, and which placement selected it cannot be known any more: they are all of
/// its placements'.
pub(super) fn strays<'e>(
    cluster: &ClusterId,
    store: &Store,
    engine: &'e Engine,
    marks: &dyn Marks,
) -> BTreeSet<&'e Key> {
    let from_there = |slot: &&Key| {
        store
            .get(slot)
            .present()
            .and_then(|copy| came_from(copy, marks))
            .is_some_and(|origin| origin == *cluster)
    };
    engine.unclaimed().filter(from_there).collect()
}

/// Where a copy came from, if it is one of ours.
pub(super) fn came_from(copy: &Object, marks: &dyn Marks) -> Option<ClusterId> {
    match marks.read(copy) {
        Marked::Ours(mark) => Some(mark.origin.key.cluster),
        Marked::Others(_) | Marked::Nobodys => None,
    }
}

/// Reads what cannot be read, and so keeps it from looking like something that nobody selects. What is read from there
/// nevertheless may be selected by a placement that is not shown.
struct Unseen {
    head: RouteHead,
}

impl Unseen {
    fn new(held: &BTreeSet<(ClusterId, KindId)>) -> Self {
        let name = Name::new("unseen");
        let sources = held.iter().map(|(cluster, kind)| Sources {
            place: PlaceId(name.clone()),
            cluster: Some(cluster.clone()),
            kind: kind.clone(),
        });
        Self { head: RouteHead::new(name.clone()).since(u64::MAX).reading(sources) }
    }
}

impl Route for Unseen {
    fn head(&self) -> &RouteHead {
        &self.head
    }

    fn select(&self, source: &Object, _: &View<'_>) -> Result<Selected, Hold> {
        if broken(Mutation::UnseenIsUnselected) {
            return Ok(Selected::nowhere());
        }
        let reason = "which placements of its workspace select it cannot be seen now".to_owned();
        Err(Hold { reason, on: Some(source.key.clone()) })
    }

    fn project(&self, _: &Object, _: &Destination, _: &View<'_>) -> Result<Vec<Want>, Hold> {
        Ok(Vec::new())
    }

    fn report(&self, _: &Object, _: &Object, _: &View<'_>) -> Result<Option<Body>, Hold> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use mailboat_engine::mark::{MARK_ANNOTATION, OWNER_LABEL, OwnerId, StandardMarks};
    use serde_json::json;

    use super::*;
    use crate::fixtures::{Knowledge, object};

    #[test]
    fn a_workspace_out_of_sight_is_spoken_of_once_it_lasts_and_once_it_is_back() {
        let mut told = Told::default();
        let shop = ClusterId::new("shop");
        let (unseen, seen) = (BTreeSet::from([&shop]), BTreeSet::new());
        let (at, nothing) = (|seconds: u64| Moment(seconds * 1_000), (Vec::new(), Vec::new()));
        // Flickering is not worth a word.
        for second in 0..8 {
            assert_eq!(told.note(at(second), if second % 2 == 0 { &unseen } else { &seen }), nothing);
        }
        assert_eq!(told.note(at(8), &unseen), nothing);
        assert_eq!(told.due(), Some(at(18)));
        assert_eq!(told.note(at(18), &unseen), (vec![shop.clone()], Vec::new()));
        assert_eq!((told.due(), told.note(at(60), &unseen)), (None, nothing.clone()));
        assert_eq!(told.note(at(61), &seen), (Vec::new(), vec![shop.clone()]));
        assert_eq!(told.note(at(62), &unseen), nothing);
        assert_eq!(told.note(at(63), &seen), nothing, "nobody was told that it was lost");
    }

    /// A guard that saw one copy, of a ConfigMap of the workspace `shop`.
    fn having_seen_a_copy() -> (Guard, Arc<Object>, StandardMarks) {
        let marks = StandardMarks::new(OwnerId(Name::new("center")));
        let mark = json!({
            "on": "configmaps/till/pos", "cluster": "shop", "uid": "u", "version": 1,
            "intent": mailboat_object::digest::Digest::NONE.to_string(),
        });
        let copy = object(
            "mailbox",
            "configmaps",
            &json!({ "metadata": {
                "namespace": "till", "name": "pos", "labels": { OWNER_LABEL: "center" },
                "annotations": { MARK_ANNOTATION: mark.to_string() },
            } }),
        );
        let mut guard = Guard::default();
        guard.observe(&copy, &ClusterId::new("provider"), &marks);
        (guard, copy, marks)
    }

    /// By each of what it goes by alone: what the store shows, what placements select, what is read, and new origins.
    #[test]
    fn what_cannot_be_seen_is_held_the_moment_that_it_is_so() {
        let (mut guard, _, _) = having_seen_a_copy();
        let (shop, name) = (ClusterId::new("shop"), Name::new("shops"));
        let (mut knowledge, mut workspaces) = (Knowledge::new(), Workspaces::default());
        let held = |guard: &mut Guard, knowledge: &Knowledge, workspaces: &mut Workspaces| {
            let (given_up, newcomers, unanswered) = Default::default();
            let known = (&given_up, &newcomers, &unanswered);
            let mut ordered = || {
                let mut orders = Vec::new();
                guard.hold(Moment(1), &knowledge.store, workspaces, known, &mut orders);
                (orders.len(), guard.held.len())
            };
            let ((_, told), again) = (ordered(), ordered());
            assert_eq!(again, (0, told), "told once");
            told
        };
        assert_eq!(held(&mut guard, &knowledge, &mut workspaces), 1, "no view shows its placements");
        knowledge.list("shop", "edgeplacements.edge.kubestellar.io", &[]);
        assert_eq!(held(&mut guard, &knowledge, &mut workspaces), 0);
        let spec = serde_json::from_value(json!({ "downsync": [{ "resources": ["configmaps"] }] })).unwrap();
        let what = Arc::new(crate::what::What::of(&spec));
        workspaces.placement(&shop, &name, Some(what), &mut Vec::new());
        assert_eq!(held(&mut guard, &knowledge, &mut workspaces), 1, "it is selected, and not read");
        let other = {
            let (mut guard, _, _) = having_seen_a_copy();
            held(&mut guard, &knowledge, &mut workspaces)
        };
        assert_eq!(other, 1, "of a copy that is seen later, it is so too");
        workspaces.placement(&shop, &name, None, &mut Vec::new());
        assert_eq!(held(&mut guard, &knowledge, &mut workspaces), 0);
        workspaces.refused(&crate::role::workspaces::place(&shop));
        assert_eq!(held(&mut guard, &knowledge, &mut workspaces), 1, "the center may not read it any more");
    }

    #[test]
    fn a_workspace_of_which_nothing_is_left_is_not_looked_for_any_more() {
        let shop = ClusterId::new("shop");
        let (mut guard, copy, marks) = having_seen_a_copy();
        let seen: Vec<_> = guard.origins.keys().cloned().collect();
        assert_eq!(seen, std::slice::from_ref(&shop));
        guard.forget(&shop, [&copy].into_iter(), &marks);
        assert_eq!(guard.origins.len(), 1, "something of it stands");
        guard.forget(&shop, std::iter::empty(), &marks);
        assert!(guard.origins.is_empty());
    }
}
