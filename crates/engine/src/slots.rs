//! All slots: who claims them, what is remembered of them, and what is under way.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use mailboat_object::digest::Digest;
use mailboat_object::key::{ClusterId, Key, KindId, Name, Uid, Version};
use mailboat_object::object::Object;
use slab::Slab;
use smallvec::SmallVec;

use crate::breaker::ScopeId;
use crate::fans::FanId;
use crate::plan::Verdict;
use crate::rare::{Rare, Seldom};
use crate::record::{Record, of_source};
use crate::route::{DestinationId, Rank};
use crate::standing::Stance;
use crate::want::{Policy, Want};
use crate::warrant::{SourceDeleting, SourceGone};
use crate::whereabouts::Whereabouts;

/// A slot, by its place in the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SlotId(pub u32);

impl SlotId {
    /// No slot: so many do not fit any memory that we run in.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// Somebody who wants a slot.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Claim {
    /// The order of claims: the oldest configuration first.
    pub rank: Arc<Rank>,
    /// Whose source it is.
    pub fan: FanId,
    /// At which destination.
    pub to: DestinationId,
}

/// What the engine holds about one slot, in a few hundred bytes with what its tables add.
#[allow(clippy::struct_excessive_bools, reason = "one byte each, of which there are as many as copies")]
#[derive(Debug)]
pub struct SlotState {
    /// Where it is.
    pub key: Key,
    /// Who wants it, best first.
    pub claims: SmallVec<[Claim; 1]>,
    /// What the breaker counts it with.
    pub scope: Option<ScopeId>,
    /// The scope that counts its object as delivered.
    pub counted: Option<ScopeId>,
    /// Whether it was counted as one of which it was answered that it is gone or going.
    pub(crate) counted_ended: bool,
    /// What is remembered.
    pub record: Record,
    /// What is to be known only until it is as wanted.
    pub passing: Rare<Passing>,
    /// A call about it is under way; what happens meanwhile is looked at when it is done.
    pub under_way: bool,
    /// Something happened while a call was under way.
    pub again: bool,
    /// When it was last found to be as wanted, the identity of its source's kind was known.
    pub(crate) identified: bool,
    /// How it last stood, for those who ask and for notices when it changes.
    pub verdict: Option<Verdict>,
    /// How it is counted, and with which scope.
    pub(crate) stands: Option<(ScopeId, Stance)>,
    /// The first version of its source, and the cluster of that, about which something is still to be done here.
    pub(crate) owed: Option<Box<(ClusterId, Version)>>,
    /// How it was last found to be as wanted, until something about it changes.
    pub(crate) settled: Option<Settled>,
}

/// What is known of a slot on its way to being as wanted, and of one that cannot be so.
#[derive(Clone, Default, Debug)]
pub struct Passing {
    /// Its source, seen to be gone: kept so that a look at it can be confirmed.
    pub gone: Option<Box<SourceGone>>,
    /// Its source, which is being deleted and waits for it: kept like that.
    pub ending: Option<Box<SourceDeleting>>,
    /// What stands there goes, and counts no more: somebody was seen to delete its source.
    pub goes_alone: bool,
    /// The version that our last write to its source made, which our own view may not show yet.
    pub source_at: Option<Version>,
    /// Our last write, which our own view may not show yet.
    pub written: Option<Written>,
    /// What stands there, read afresh: newer than what the store shows, or whole where the store has the head.
    pub fresh: Option<Arc<Object>>,
    /// Whether what stands there was read for the next decision, because the store cannot tell. It is good for one.
    pub reading: Reading,
    /// Its source waits for it, and nothing stands there: so it was read, and nothing is made of a source that goes.
    pub clear: bool,
    /// A first delivery met something that was not seen, and made this of it: whose it was before is to be found
    /// out, and until then it is neither ours nor let go.
    pub met: Option<Arc<Object>>,
    /// Failed attempts in a row.
    pub attempts: u8,
    /// It rests until then.
    pub rest_until: u64,
    /// The intent that it rests for: another one is tried at once.
    pub rests: Option<Digest>,
    /// The server looked at it and refused it: somebody has to change something.
    pub rejected: bool,
    /// How often in a row its source did not take what it was told, a status or a finalizer. That holds up nothing else.
    pub unheard: u8,
    /// Its source is told nothing until then.
    pub silent_until: u64,
    /// What a write told about its namespace, where the view that we follow cannot tell.
    pub namespace: Told,
    /// The last fault, in the server's words; the only thing that is stored for explanations.
    pub fault: Option<Box<str>>,
}

impl Seldom for Passing {
    fn nothing() -> &'static Self {
        static NOTHING: Passing = Passing {
            gone: None,
            ending: None,
            goes_alone: false,
            source_at: None,
            written: None,
            fresh: None,
            reading: Reading::None,
            clear: false,
            met: None,
            attempts: 0,
            rest_until: 0,
            rests: None,
            rejected: false,
            unheard: 0,
            silent_until: 0,
            namespace: Told::Nothing,
            fault: None,
        };
        &NOTHING
    }

    fn is_nothing(&self) -> bool {
        self.gone.is_none()
            && self.ending.is_none()
            && !self.goes_alone
            && self.source_at.is_none()
            && self.written.is_none()
            && self.fresh.is_none()
            && self.reading == Reading::None
            && !self.clear
            && self.met.is_none()
            && self.attempts == 0
            && self.rest_until == 0
            && self.rests.is_none()
            && !self.rejected
            && self.unheard == 0
            && self.silent_until == 0
            && self.namespace == Told::Nothing
            && self.fault.is_none()
    }
}

impl Passing {
    /// When something is tried again that failed, if that is yet to come.
    pub(crate) fn next_try(&self, now: u64) -> Option<u64> {
        [self.rest_until, self.silent_until].into_iter().filter(|at| *at > now).min()
    }
}

/// What was read of a slot that the store cannot tell about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reading {
    /// Nothing.
    #[default]
    None,
    /// That nothing stands there.
    Missing,
    /// What stands there: [`SlotState::fresh`].
    Found,
}

/// What the failure of a write told about the slot's namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Told {
    /// Nothing.
    #[default]
    Nothing,
    /// That it is not there.
    Missing,
}

/// What our last call did, until our own view shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Written {
    /// The object stands at least at this version.
    At(Version),
    /// This object is gone or going.
    Ended(Uid),
}

/// A slot as it was found to be as wanted: as long as all of this holds, there is nothing to decide.
#[derive(Debug)]
pub(crate) struct Settled {
    /// The version of what stands there.
    pub(crate) version: Version,
    /// What was wanted, and of which source: one that was made anew is to hear how its copy fares.
    intent: Digest,
    /// How it was wanted.
    policy: Arc<Policy>,
}

impl Settled {
    /// A slot where what is wanted stands, at this version.
    pub(crate) fn as_wanted(want: &Want, version: Version) -> Self {
        let intent = of_source(&want.origin.uid, want.body.digest);
        Self { version, intent, policy: Arc::clone(&want.policy) }
    }

    /// Whether this is what was wanted.
    pub(crate) fn is_by(&self, want: &Want) -> bool {
        self.intent == of_source(&want.origin.uid, want.body.digest) && self.policy.is_like(&want.policy)
    }
}

/// A full table grows by this share of itself.
pub(crate) const GROWS_BY: usize = 16;

/// All slots.
#[derive(Default)]
pub struct Slots {
    all: Slab<SlotState>,
    /// By cluster and kind, because whole kinds become known and doubtful.
    ids: HashMap<(ClusterId, KindId), Addresses, foldhash::fast::FixedState>,
    /// Where there are slots.
    at: Whereabouts,
    /// Every slot that nobody claims: few among many, and asked for with each change of the configuration.
    unclaimed: BTreeSet<SlotId>,
}

/// The slots of one kind in one cluster, by namespace and name.
type Addresses = BTreeMap<(Name, Name), SlotId>;

impl Slots {
    /// The slot at a key, made if there is none.
    pub fn at(&mut self, key: &Key) -> SlotId {
        if let Some(id) = self.find(key) {
            return id;
        }
        if self.all.len() == self.all.capacity() {
            // Doubled, a large table would be half empty.
            self.all.reserve_exact((self.all.len() / GROWS_BY).max(GROWS_BY));
        }
        let id = SlotId(u32::try_from(self.all.insert(SlotState::new(key.clone()))).unwrap_or(u32::MAX));
        let (of, at) = address(key);
        let addresses = self.ids.entry(of).or_default();
        if addresses.is_empty() {
            self.at.add(&key.cluster, &key.kind);
        }
        addresses.insert(at, id);
        self.unclaimed.insert(id);
        id
    }

    /// Adds a claim on a slot, in place of an older one of the same leg. True if that leg had none.
    pub fn claim(&mut self, id: SlotId, claim: Claim) -> bool {
        let Some(state) = self.get_mut(id) else { return false };
        let joins = !state.claims.iter().any(|known| known.fan == claim.fan && known.to == claim.to);
        // The claim's rank may have changed with the configuration's age.
        state.disclaim(claim.fan, claim.to);
        state.claim(claim);
        if state.claims.len() == 1 {
            self.unclaimed.remove(&id);
        }
        joins
    }

    /// Takes the claims of one leg on a slot away.
    pub fn disclaim(&mut self, id: SlotId, fan: FanId, to: DestinationId) {
        let Some(state) = self.get_mut(id) else { return };
        state.disclaim(fan, to);
        if state.claims.is_empty() {
            self.unclaimed.insert(id);
        }
    }

    /// The slots that nobody claims, in the order of their keys.
    pub fn unclaimed(&self) -> Vec<SlotId> {
        let mut found: Vec<(SlotId, &Key)> = self.nobodys().map(|(id, slot)| (id, &slot.key)).collect();
        found.sort_by_key(|(_, key)| *key);
        found.into_iter().map(|(id, _)| id).collect()
    }

    /// The slots that nobody claims.
    pub fn nobodys(&self) -> impl Iterator<Item = (SlotId, &SlotState)> {
        let standing = self.unclaimed.iter().filter_map(|id| Some((*id, self.get(*id)?)));
        standing.filter(|(_, slot)| slot.claims.is_empty())
    }

    /// The slot at a key, if there is one.
    pub fn find(&self, key: &Key) -> Option<SlotId> {
        let (of, at) = address(key);
        self.ids.get(&of)?.get(&at).copied()
    }

    /// A slot.
    pub fn get(&self, id: SlotId) -> Option<&SlotState> {
        self.all.get(id.0 as usize)
    }

    /// A slot, to be changed.
    pub fn get_mut(&mut self, id: SlotId) -> Option<&mut SlotState> {
        self.all.get_mut(id.0 as usize)
    }

    /// Forgets a slot that nobody wants and where nothing of ours stands.
    pub fn remove(&mut self, id: SlotId) {
        if let Some(slot) = self.all.try_remove(id.0 as usize) {
            self.unclaimed.remove(&id);
            let (of, at) = address(&slot.key);
            if let Some(slots) = self.ids.get_mut(&of) {
                slots.remove(&at);
                if slots.is_empty() {
                    self.ids.remove(&of);
                    self.at.remove(&slot.key.cluster, &slot.key.kind);
                }
            }
        }
    }

    /// The slots of a kind, in one cluster or in any, in the order of their keys.
    pub fn of_kind(&self, cluster: Option<&ClusterId>, kind: &KindId) -> Vec<SlotId> {
        let places = self.at.of(kind, cluster).into_iter();
        let found = places.filter_map(|cluster| self.ids.get(&(cluster, kind.clone())));
        found.flat_map(BTreeMap::values).copied().collect()
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &SlotState> {
        self.all.iter().map(|(_, slot)| slot)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The slots that fit, in the order of their keys.
    pub fn matching(&self, fits: impl Fn(&SlotState) -> bool) -> Vec<SlotId> {
        let mut found: Vec<_> = self.all.iter().filter(|(_, slot)| fits(slot)).collect();
        found.sort_by(|(_, a), (_, b)| a.key.cmp(&b.key));
        found.into_iter().map(|(id, _)| SlotId(u32::try_from(id).unwrap_or(u32::MAX))).collect()
    }
}

fn address(key: &Key) -> ((ClusterId, KindId), (Name, Name)) {
    ((key.cluster.clone(), key.kind.clone()), (key.namespace.clone(), key.name.clone()))
}

impl SlotState {
    fn new(key: Key) -> Self {
        Self {
            key,
            claims: SmallVec::new(),
            scope: None,
            counted: None,
            counted_ended: false,
            record: Record::default(),
            passing: Rare::default(),
            under_way: false,
            again: false,
            identified: false,
            verdict: None,
            stands: None,
            owed: None,
            settled: None,
        }
    }

    /// Whether it was answered that what stood there is gone or going, whatever is shown.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(&self.passing.written, Some(Written::Ended(uid)) if self.record.uid.as_ref() == Some(uid))
    }

    /// Nothing stands there any more. Whether another hand took what we made is asked when it is planned.
    pub(crate) fn notes_gone(&mut self) {
        let Some(gone) = self.record.uid.take() else { return };
        let by_us = self.passing.written.as_ref() == Some(&Written::Ended(gone));
        if !by_us && !self.claims.is_empty() {
            self.record.odd.taken = true;
        }
    }

    /// Gives back the room of what is over.
    pub fn tidy(&mut self) {
        self.passing.tidy();
        self.record.odd.tidy();
    }

    /// Adds a claim in its order.
    fn claim(&mut self, claim: Claim) {
        self.settled = None;
        if let Err(at) = self.claims.binary_search(&claim) {
            self.claims.insert(at, claim);
        }
    }

    /// Takes the claims of one leg away.
    fn disclaim(&mut self, fan: FanId, to: DestinationId) {
        self.settled = None;
        self.claims.retain(|claim| !(claim.fan == fan && claim.to == to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_small() {
        assert!(size_of::<SlotState>() <= 224, "{} bytes", size_of::<SlotState>());
        assert!(size_of::<crate::fans::Leg>() <= 16, "{} bytes", size_of::<crate::fans::Leg>());
        assert!(size_of::<crate::fans::Fan>() <= 104, "{} bytes", size_of::<crate::fans::Fan>());
    }
}
