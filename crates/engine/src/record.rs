//! What is remembered of a slot between two looks at it.

use std::hash::BuildHasher as _;

use mailboat_object::digest::Digest;
use mailboat_object::key::{Uid, Version};
use mailboat_object::object::Object;

use crate::rare::{Rare, Seldom};

/// What is remembered of one slot. Everything here can be lost: it is rebuilt from marks and lists. There are hundreds of
/// thousands of these, so what is seldom said is [apart](Oddity), and a digest of nothing means that none is known.
#[derive(Clone, Default, Debug)]
pub struct Record {
    /// The uid of the copy that we made or recognized.
    pub uid: Option<Uid>,
    /// The copy's content right after our last write, or when it was first seen to agree. Another content later
    /// is another's hand.
    pub result: Digest,
    /// The fields that were ours right after our last write. As long as these are ours, nobody changed them:
    /// who changes a field takes it.
    pub ours: Digest,
    /// The status that was last brought back, and to which source; see [`Record::report`].
    pub reported: Digest,
    /// What is seldom to be remembered.
    pub odd: Rare<Oddity>,
}

/// What is remembered of the few slots where something is out of the ordinary.
#[derive(Clone, Default, Debug)]
pub struct Oddity {
    /// Our own copy that a first delivery met though nothing was shown there: it is written by its uid as long as the
    /// view that we follow does not show it.
    pub hidden: Option<Uid>,
    /// An object that bears our mark and was found to be another's.
    pub foreign: Option<Uid>,
    /// The version at which it could not be told whose the object is.
    pub unclear_at: Option<Version>,
    /// The version at which a comparison by the server showed a difference.
    pub differs_at: Option<Version>,
    /// A copy of ours that stood there is gone, and we did not delete it: that is yet to be counted.
    pub taken: bool,
    /// How often in a row somebody else rewrote what we own, or deleted it.
    pub fights: u8,
    /// When that last happened, in milliseconds.
    pub fought_at: u64,
    /// It was not put right since: what is found as it was left is no other round.
    pub undone: bool,
}

impl Record {
    /// What there is to report of a copy to this very source; nothing while the copy has no status. A source that was
    /// deleted and made anew has the same name and was told nothing yet.
    pub fn report(source: &Object, target: &Object) -> Digest {
        if target.status.is_none() { Digest::NONE } else { of_source(&source.uid, target.status) }
    }
}

/// A digest that is another for another source, however alike the two are.
pub(crate) fn of_source(source: &Uid, digest: Digest) -> Digest {
    Digest::from_bits(foldhash::quality::FixedState::with_seed(digest.bits()).hash_one(source))
}

impl Seldom for Oddity {
    fn nothing() -> &'static Self {
        static NOTHING: Oddity = Oddity {
            hidden: None,
            foreign: None,
            unclear_at: None,
            differs_at: None,
            taken: false,
            fights: 0,
            fought_at: 0,
            undone: false,
        };
        &NOTHING
    }

    fn is_nothing(&self) -> bool {
        self.hidden.is_none()
            && self.foreign.is_none()
            && self.unclear_at.is_none()
            && self.differs_at.is_none()
            && !self.taken
            && self.fights == 0
    }
}
