//! What there is to see of a slot when it is planned.

use std::sync::Arc;

use mailboat_object::json::Raw;
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::Object;
use mailboat_store::seen::{Doubt, Seen};
use mailboat_store::store::Store;

use super::evidence::went_back;
use super::{Engine, made_by_our_write};
use crate::fans::{Fan, Leg};
use crate::likeness::covers;
use crate::look;
use crate::mark::{Mark, Marked, Marks};
use crate::mutation::{Mutation, broken};
use crate::plan::{How, Likeness, Proof, Ready};
use crate::route::View;
use crate::shared::{ALONE_UP_TO_BYTES, in_cluster};
use crate::slots::{Reading, SlotId, SlotState, Told, Written};
use crate::want::{Delivery, Hold, Origin, Want};
use crate::warrant::{Evidence, SourceDeleting};

/// All that one planning looks at, owned, so that the plan can borrow it.
pub(super) struct Sight {
    pub(super) target: Seen<Arc<Object>>,
    pub(super) source: Option<Arc<Object>>,
    pub(super) marked: Marked,
    pub(super) proof: Proof,
    pub(super) wanted: WantedHere,
    pub(super) likeness: Likeness,
}

impl Sight {
    /// The cluster of the source that is told something of the slot, or looked at because of it.
    pub(super) fn told_to(&self) -> Option<&ClusterId> {
        let source = match &self.wanted {
            WantedHere::By(_) => &self.source.as_ref()?.key,
            WantedHere::No(Evidence::SourceGone(gone)) => gone.source(),
            WantedHere::No(Evidence::SourceDeleting(deleting)) => deleting.source(),
            WantedHere::No(Evidence::Deselected(_)) | WantedHere::Undecided(_) => return None,
        };
        Some(&source.cluster)
    }
}

/// Who wants a slot, owned.
pub(super) enum WantedHere {
    By(Box<Want>),
    No(Evidence),
    Undecided(Hold),
}

impl Engine {
    /// Sees to it that what is the same at all destinations of a slot's source is projected once for all of them.
    pub(super) fn project_once(&mut self, store: &Store, id: SlotId) {
        let claim = self.slots.get(id).and_then(|state| state.claims.first());
        let Some(claim) = claim.cloned().filter(|claim| self.shared.get(claim.fan).is_none()) else { return };
        let Some(fan) = self.fans.get(claim.fan).filter(|fan| fan.legs.len() > 1 && fan.hold.is_none())
        else {
            return;
        };
        let route = self.routes.get(fan.route.0 as usize).and_then(|entry| entry.route.clone());
        if let (Some(route), Seen::Present(source)) = (route, store.get(&fan.source))
            && !route.varies(source)
            && let Some(destination) = self.destinations.get(&claim.to)
            // What was read was noted when the fan was evaluated.
            && let Ok(wants) = route.project(source, destination, &View::finding(store, &self.copies))
        {
            self.shared.remember(claim.fan, wants.into());
        }
    }

    /// Remembers what is delivered to a slot, if nothing else is made of its source: when it is shown there, it is compared
    /// with what stands there.
    pub(super) fn remember_alone(&mut self, id: SlotId, want: &Want) {
        if want.body.json.len() > ALONE_UP_TO_BYTES {
            return;
        }
        let Some(claim) = self.slots.get(id).and_then(|state| state.claims.first()) else { return };
        let alone = self.fans.get(claim.fan).is_some_and(|fan| fan.legs.iter().flat_map(Leg::slots).eq([id]));
        if alone {
            self.shared.remember(claim.fan, Arc::from([want.clone()]));
        }
    }

    /// What there is to see of a slot; nothing while our own last write is not visible yet.
    pub(super) fn look_at(&self, store: &Store, id: SlotId) -> Option<Sight> {
        let state = self.slots.get(id)?;
        let target = target_of(store, state)?;
        let read = match &target {
            Seen::Present(target) => self.read_mark(target),
            _ => None,
        };
        let proof_of = |mark: &Mark| match &target {
            Seen::Present(target) => self.proof(target, mark),
            _ => Proof::Ours,
        };
        let first_proof = read.as_ref().map(|(mark, _)| proof_of(mark));
        let ours = read.as_ref().filter(|_| first_proof == Some(Proof::Ours)).map(|(mark, _)| mark);
        let (wanted, source) = self.wanted_of(store, state, ours);
        if source.as_ref().is_some_and(|source| state.passing.source_at > Some(source.version)) {
            return None;
        }
        let (marked, proof) = match (&target, &wanted, read) {
            // By other marks than it was read with.
            (Seen::Present(target), WantedHere::By(want), read)
                if !read.as_ref().is_some_and(|(_, by)| are_same(by, &want.policy.marks)) =>
            {
                let marked = want.policy.marks.read(target);
                let proof = if let Marked::Ours(mark) = &marked { proof_of(mark) } else { Proof::Ours };
                (marked, proof)
            }
            (_, _, Some((mark, _))) => (Marked::Ours(mark), first_proof.unwrap_or(Proof::Open)),
            (_, _, None) => (Marked::Nobodys, Proof::Ours),
        };
        let likeness = match (&target, &wanted) {
            (Seen::Present(target), WantedHere::By(want)) => {
                let apply = self.clusters.get(&state.key.cluster).is_some_and(|abilities| abilities.apply);
                let first = self.bodies.of(id, target.version);
                likeness(state, want, target, first, &marked, How::of(want.policy.delivery, apply))
            }
            _ => Likeness::Same,
        };
        Some(Sight { target, source, marked, proof, wanted, likeness })
    }

    pub(super) fn wanted_of(
        &self,
        store: &Store,
        state: &SlotState,
        mark: Option<&Mark>,
    ) -> (WantedHere, Option<Arc<Object>>) {
        let Some(claim) = state.claims.first() else {
            return match mark {
                Some(mark) => match self.evidence(store, state, mark) {
                    Ok(evidence) => (WantedHere::No(evidence), None),
                    Err(unclear) => (WantedHere::Undecided(unclear.hold), None),
                },
                // Nothing of ours stands there: there is nothing to withdraw, whatever the reason.
                None => match self.configuration {
                    Some(configuration) => {
                        (WantedHere::No(Evidence::Deselected(configuration.does_not_select())), None)
                    }
                    None => (WantedHere::Undecided(unknown_configuration()), None),
                },
            };
        };
        let undecided = |hold: Hold| (WantedHere::Undecided(hold), None);
        let Some(fan) = self.fans.get(claim.fan) else { return undecided(unknown_configuration()) };
        if let Some(hold) = fan.hold.as_deref().or_else(|| fan.leg(claim.to)?.hold()).cloned() {
            return undecided(hold);
        }
        let route = self.routes.get(fan.route.0 as usize).and_then(|entry| entry.route.clone());
        let (Some(route), Some(destination)) = (route, self.destinations.get(&claim.to)) else {
            return undecided(unknown_configuration());
        };
        let source = match store.get(&fan.source) {
            Seen::Present(source) => Arc::clone(source),
            Seen::Absent(_) => return undecided(held(&fan.source, "its source is being evaluated")),
            Seen::Unknown(doubt) => {
                return undecided(held(&fan.source, &format!("what is known of its source: {doubt}")));
            }
        };
        if mark.is_some_and(|mark| went_back(&source, mark)) {
            return undecided(held(&fan.source, "its source shows an older version than was delivered"));
        }
        let wanted = match self.shared.get(claim.fan) {
            Some(alike) => Ok(alike
                .iter()
                .find(|want| is_in_slot(want, &state.key))
                .map(|want| in_cluster(want, &state.key.cluster))),
            None => route
                .project(&source, destination, &View::finding(store, &self.copies))
                .map(|wants| wants.into_iter().find(|want| want.slot == state.key)),
        };
        match wanted {
            Err(hold) => undecided(hold),
            Ok(want) => match want {
                None => undecided(held(&fan.source, "its source is being evaluated")),
                Some(mut want) => {
                    want.origin.identity = identity_of(store, &want.origin);
                    let finalizer = self.options.finalizer.as_ref().filter(|_| want.policy.finalizer);
                    let ending = finalizer.and_then(|finalizer| SourceDeleting::of(&source, finalizer));
                    match ending {
                        Some(deleting) => {
                            let deleting = deleting.remembering(state.passing.ending.as_deref());
                            let deleting = deleting.watched(fan.watched_end);
                            (WantedHere::No(Evidence::SourceDeleting(deleting)), Some(source))
                        }
                        None => (WantedHere::By(Box::new(want)), Some(source)),
                    }
                }
            },
        }
    }

    /// Whether no other copy of a source that waits for its copies stands, or may stand. Of other sources it is not asked.
    pub(super) fn is_last(&self, store: &Store, id: SlotId, wanted: &WantedHere) -> bool {
        let WantedHere::No(Evidence::SourceDeleting(deleting)) = wanted else { return true };
        if broken(Mutation::FirstLetsGo) {
            return true;
        }
        let routes = self.routes_of(deleting.source()).into_iter();
        let fans = routes.filter_map(|route| self.fans.get(self.fans.find(route, deleting.source())?));
        let others = fans.flat_map(|fan| fan.legs.iter().flat_map(Leg::slots)).filter(|other| *other != id);
        others.filter_map(|other| self.slots.get(other)).all(|other| self.is_clear(store, other))
    }

    /// Whether what stands in a slot bears our finalizer, and nothing that is wanted of it asks for that, nor may. One that is being
    /// deleted is gone the moment that it is taken off, and its copies then go or stay by what their marks say: so what is made
    /// of it is told first what is wanted by now.
    pub(super) fn is_stray(&self, state: &SlotState, sight: &Sight) -> bool {
        let Seen::Present(target) = &sight.target else { return false };
        let route = |route| self.fans.find(route, &target.key).and_then(|fan| self.fans.get(fan));
        let owed = |slot| self.slots.get(slot).is_some_and(|state| state.owed.is_some());
        let told = |fan: &Fan| !fan.legs.iter().flat_map(Leg::slots).any(owed);
        let lets_go = |fan: &Fan| {
            !fan.stale && !fan.finalizes && fan.undecided().is_none() && (!target.deleting || told(fan))
        };
        state.claims.is_empty()
            && self.bears_finalizer(target)
            && self.routes_of(&target.key).into_iter().all(|one| route(one).is_some_and(lets_go))
    }

    /// Whether an object bears our finalizer.
    pub(super) fn bears_finalizer(&self, object: &Object) -> bool {
        let ours = self.options.finalizer.as_ref();
        ours.is_some_and(|ours| object.finalizers().any(|finalizer| finalizer == ours.as_str()))
    }

    /// Whether a source is being deleted and waits for its copies.
    pub(super) fn waits_for_us(&self, source: &Object) -> bool {
        source.deleting && self.bears_finalizer(source)
    }

    /// Whether nothing of ours stands in a slot, and nothing is on its way there.
    fn is_clear(&self, store: &Store, state: &SlotState) -> bool {
        !state.under_way
            && match target_of(store, state) {
                Some(Seen::Unknown(_)) if state.passing.clear => true,
                Some(Seen::Absent(_)) => true,
                Some(Seen::Present(target)) => self.mark_on(&target).is_none(),
                // A filter shows what bears our label.
                Some(Seen::Unknown(doubt)) => doubt == Doubt::Filtered && state.record.uid.is_none(),
                None => false,
            }
    }

    /// Whether a slot's place can be written now.
    pub(super) fn ready(
        &self,
        now: u64,
        store: &Store,
        id: SlotId,
        state: &SlotState,
        wanted: &WantedHere,
    ) -> Ready {
        // One slot tries; the others wait for its answer.
        if self.is_away(&state.key.cluster, id) || !self.clusters.contains_key(&state.key.cluster) {
            return Ready::ClusterAway;
        }
        // Another intent than the one that failed is tried at once.
        let intent = match wanted {
            WantedHere::By(want) => Some(want.body.digest),
            WantedHere::No(_) | WantedHere::Undecided(_) => None,
        };
        if state.passing.rest_until > now && (state.passing.rests.is_none() || state.passing.rests == intent)
        {
            return match (state.passing.rejected, state.record.odd.fights >= self.options.fights) {
                (true, _) => Ready::Rejected,
                (false, true) => Ready::Contended,
                (false, false) => Ready::Resting,
            };
        }
        if matches!(store.range(&state.key.cluster, &state.key.kind, None), Err(Doubt::Unserved)) {
            return Ready::KindUnserved;
        }
        if !state.key.namespace.is_empty() {
            match store.get(&namespace_of(&state.key)) {
                // What its server said of it a moment ago need not be shown yet.
                Seen::Absent(_) | Seen::Unknown(_) if self.is_made(&namespace_of(&state.key)) => {}
                Seen::Absent(_) => return Ready::NamespaceMissing,
                Seen::Present(namespace) if namespace.deleting => return Ready::NamespaceEnding,
                Seen::Unknown(_) if state.passing.namespace == Told::Missing => {
                    return Ready::NamespaceMissing;
                }
                Seen::Present(_) | Seen::Unknown(_) => {}
            }
        }
        Ready::Yes
    }
}

/// The identity under which the kind of an origin is bound, as marks remember it: empty as long as its binding is not
/// known, which is none that any binding names.
pub(super) fn identity_of(store: &Store, origin: &Origin) -> Option<Name> {
    let Key { cluster, kind, .. } = &origin.key;
    let unbound = || store.is_unbound(cluster, kind).then_some(Name::EMPTY);
    store.identity(cluster, kind).map(|hash| look::identity(hash)).or_else(unbound)
}

/// What stands in a slot; nothing while our own last write is not shown there yet.
fn target_of(store: &Store, state: &SlotState) -> Option<Seen<Arc<Object>>> {
    let seen = store.get(&state.key);
    let stale = match (&state.passing.written, &seen) {
        (Some(Written::At(version)), Seen::Present(target)) => target.version < *version,
        // Of what a view hides, that it was written may never be shown.
        (Some(Written::At(version)), Seen::Absent(absence)) => {
            absence.version() < *version && state.record.odd.hidden.is_none()
        }
        (Some(Written::Ended(uid)), Seen::Present(target)) => target.uid == *uid && !target.deleting,
        _ => false,
    };
    if stale {
        return None;
    }
    Some(match seen {
        Seen::Unknown(_) if state.passing.reading == Reading::Found && state.passing.fresh.is_some() => {
            return state.passing.fresh.clone().map(Seen::Present);
        }
        Seen::Unknown(doubt) => Seen::Unknown(doubt),
        Seen::Absent(absence) => Seen::Absent(absence),
        Seen::Present(target) => match &state.passing.fresh {
            Some(fresh) if fresh.uid == target.uid && fresh.version == target.version => {
                Seen::Present(Arc::clone(fresh))
            }
            _ => Seen::Present(Arc::clone(target)),
        },
    })
}

/// Whether what stands there is what is wanted, as far as can be said without asking its server. `first`: what it was when it
/// was first seen, whole.
fn likeness(
    state: &SlotState,
    want: &Want,
    target: &Object,
    first: Option<Raw<'_>>,
    marked: &Marked,
    how: How,
) -> Likeness {
    let record = &state.record;
    match marked {
        // A mark that is not confirmed and not that of the write which made the object is written once more: whoever
        // reads it next would have to find out again whose it is.
        Marked::Ours(mark)
            if intends(mark, want)
                && (mark.confirmed || made_by_our_write(target))
                // Once it is known, it is remembered: behind another identity are other objects.
                && (mark.origin.is_identified() || !want.origin.is_identified()) => {}
        _ => return Likeness::Outdated,
    }
    // What others make of a value that we have not changed since is theirs to decide.
    if how == How::Patch {
        return Likeness::Same;
    }
    if record.result == target.content || (!target.hands.ours.is_none() && record.ours == target.hands.ours) {
        return Likeness::Same;
    }
    if record.odd.differs_at == Some(target.version) {
        return Likeness::Rewritten;
    }
    let body = if target.is_whole() { Some(target.root()) } else { first };
    if let Some(body) = body
        && let Ok(intent) = Raw::parse(&want.body.json)
        && covers(body, intent)
    {
        return Likeness::Same;
    }
    Likeness::Unread
}

/// Whether two handles lead to the same marks, so that what was read with one need not be read with the other.
fn are_same(one: &Arc<dyn Marks>, other: &Arc<dyn Marks>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other))
}

/// Whether a want that is the same in every cluster is meant for a slot.
fn is_in_slot(want: &Want, slot: &Key) -> bool {
    want.slot.kind == slot.kind && want.slot.namespace == slot.namespace && want.slot.name == slot.name
}

/// Whether a mark says what a want wants.
fn intends(mark: &Mark, want: &Want) -> bool {
    let overlays = want.policy.delivery == Delivery::Overlay;
    mark.intent == want.body.digest
        && mark.leave == want.leaves()
        && mark.overlay == overlays
        && mark.origin.key == want.origin.key
}

fn held(on: &Key, reason: &str) -> Hold {
    Hold { reason: reason.to_owned(), on: Some(on.clone()) }
}

fn unknown_configuration() -> Hold {
    Hold { reason: "the configuration is not known as a whole yet".to_owned(), on: None }
}

/// The namespace of a key, as an object.
pub(super) fn namespace_of(key: &Key) -> Key {
    Key {
        cluster: key.cluster.clone(),
        kind: KindId::new("", "namespaces"),
        namespace: Name::EMPTY,
        name: key.namespace.clone(),
    }
}
