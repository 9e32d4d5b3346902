//! How each route delivers and withdraws: drawn by itself, so that all else of a seed stays as it is. What is let go of and taken
//! over by that.

use mailboat_engine::mark::{Marked, Marks as _};
use mailboat_engine::want::{Adopt, Delivery, Policy, Withdrawal};
use mailboat_machinery::{Random as _, Seeded, Stored};
use mailboat_object::object::{Keep, Object, Place};
use mailboat_object::wire::{Call, Verb};

use crate::roles::{MANAGER, marks};
use crate::script::Workspace;
use crate::servers::{Done, Servers, is_marked};
use crate::truth::Foreign;

/// In one of so many seeds routes have manners of their own.
const MANNERED_OF: u64 = 4;
/// The placements by their numbers, then the route of the mailbox and that of the bound workspaces.
const ROUTES: usize = 5;

/// How a route delivers and withdraws. By default it writes what it wants, and deletes what it wants no more.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Manner {
    /// What is no longer wanted stays.
    pub leaves: bool,
    /// What is there is left to its place.
    pub creates_only: bool,
    /// What stands there already, and is nobody's, is taken over.
    pub adopts: bool,
}

/// How all routes do.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Manners([Manner; ROUTES]);

impl Manners {
    /// The manners of a seed.
    pub(crate) fn draw(seed: u64) -> Self {
        let mut dice = Seeded(seed ^ 0x003a_22e2);
        let mut one_of = |many: u64| dice.next().is_multiple_of(many);
        if !one_of(MANNERED_OF) {
            return Self::default();
        }
        Self([(); ROUTES].map(|()| Manner { leaves: one_of(2), creates_only: one_of(4), adopts: one_of(4) }))
    }

    /// Everywhere the same.
    #[cfg(test)]
    pub(crate) fn all(manner: Manner) -> Self {
        Self([manner; ROUTES])
    }

    /// How what an object among the placements asks for is delivered, by its name.
    pub(crate) fn of(&self, placement: &str) -> Manner {
        let number = match placement {
            "syncer" => ROUTES - 2,
            "publisher" => ROUTES - 1,
            other => other.trim_start_matches('p').parse().unwrap_or(0),
        };
        self.0.get(number).copied().unwrap_or_default()
    }

    /// Whether any route that brings what stands in a workspace takes over what it meets.
    pub(crate) fn adopts_from(&self, workspace: Workspace) -> bool {
        let [placements @ .., mailbox, bound] = &self.0;
        match workspace {
            Workspace::Workload => placements.iter().any(|manner| manner.adopts),
            Workspace::Mailbox => mailbox.adopts,
            Workspace::Bound(_) => bound.adopts,
        }
    }
}

impl Manner {
    /// The same in the engine's words.
    pub(crate) fn applied_to(self, policy: Policy) -> Policy {
        Policy {
            delivery: if self.creates_only { Delivery::CreateOnly } else { policy.delivery },
            withdrawal: if self.leaves { Withdrawal::Leave } else { policy.withdrawal },
            adopt: if self.adopts { Adopt::Unmarked } else { policy.adopt },
            ..policy
        }
    }
}

impl Servers {
    /// What a call of ours took its mark off is nobody's from then on; what it took over by force is ours.
    pub(crate) fn changes_hands(&mut self, call: &Call, done: &Done) {
        let known = self.truth.foreign.get(&call.key);
        let Some(now) = self.get(&call.key).filter(|_| Self::of(&call.key.cluster) > 0) else { return };
        let is_foreign = known.is_some_and(|known| known.uid == now.uid);
        let was_ours = done.before.as_ref().is_some_and(|before| before.uid == now.uid && is_marked(before));
        if is_foreign && is_marked(&now) && matches!(call.verb, Verb::Apply { force: true, .. }) {
            self.truth.foreign.remove(&call.key);
        } else if was_ours && !is_marked(&now) && (!is_foreign || self.truth.was_let_go(&call.key)) {
            let (uid, spec) = (now.uid.clone(), now.body()["spec"].clone());
            self.truth.foreign.insert(call.key.clone(), Foreign { uid, spec, left: true });
        }
    }
}

/// Whether the mark on a copy says that it stays when it is no longer wanted.
pub(crate) fn is_to_stay(object: &Stored) -> bool {
    let place = Place::of(&object.key, MANAGER, Keep::Head);
    let decoded = Object::decode(object.to_value().to_string().as_bytes(), &place);
    decoded.is_ok_and(|object| matches!(marks().read(&object), Marked::Ours(mark) if mark.leave))
}
