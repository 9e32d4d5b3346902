//! Namespaces that copies wait for: each is made by one call, whoever needs it, and what waits for that goes on with its answer.

use mailboat_object::key::Key;

use super::Engine;
use super::carry::Ticket;
use super::sight::namespace_of;
use crate::plan::{Action, Plan, Verdict, Wait};
use crate::queue::Urgency;
use crate::slots::{SlotId, Told};

/// How far a namespace is that is not shown yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Housing {
    /// A call to make it is under way.
    UnderWay,
    /// Its server said that it is there. What was sent up to this call may have come before that.
    Made(Ticket),
}

impl Engine {
    /// What is decided about a slot, if its namespace is being made already: to wait for that.
    pub(super) fn one_makes_the_namespace(&self, id: SlotId, decided: Plan) -> Plan {
        let makes = matches!(decided.actions.first(), Some(Action::EnsureNamespace));
        let namespace = self.slots.get(id).filter(|_| makes).map(|state| namespace_of(&state.key));
        match namespace.and_then(|namespace| self.housing.get(&namespace)) {
            Some(Housing::UnderWay) => {
                Plan { verdict: Verdict::Waiting(Wait::Namespace), actions: smallvec::smallvec![] }
            }
            Some(Housing::Made(_)) | None => decided,
        }
    }

    /// Whether a server said that a namespace is there which is not shown yet.
    pub(super) fn is_made(&self, namespace: &Key) -> bool {
        matches!(self.housing.get(namespace), Some(Housing::Made(_)))
    }

    /// A call to make a namespace was answered: it is there, or it is not. Whoever waits for that is looked at again.
    pub(super) fn housed(&mut self, namespace: &Key, made: bool) {
        if made {
            self.housing.insert(namespace.clone(), Housing::Made(Ticket(self.flights.begun())));
        } else {
            self.housing.remove(namespace);
        }
        self.wake_homeless(namespace, Urgency::Live);
    }

    /// Notes that a slot's namespace is missing, as a write said; false if it has none, or if that was noted already. What was
    /// sent before it was made tells nothing of it.
    pub(super) fn lacks_namespace(&mut self, id: SlotId, told_by: Ticket) -> bool {
        let Some(state) = self.slots.get_mut(id) else { return false };
        let namespace = namespace_of(&state.key);
        match self.housing.get(&namespace) {
            Some(Housing::Made(last)) if told_by <= *last => return true,
            Some(Housing::Made(_)) => drop(self.housing.remove(&namespace)),
            Some(Housing::UnderWay) | None => {}
        }
        !state.key.namespace.is_empty()
            && std::mem::replace(&mut state.passing.namespace, Told::Missing) == Told::Nothing
    }

    /// Notes that a slot waits for its namespace, if it does.
    pub(super) fn await_namespace(&mut self, id: SlotId, verdict: &Verdict) {
        if matches!(verdict, Verdict::Waiting(Wait::Namespace | Wait::NamespaceEnding))
            && let Some(state) = self.slots.get(id)
        {
            self.homeless.entry(namespace_of(&state.key)).or_default().insert(id);
        }
    }

    /// A namespace came, changed or went: what is shown counts, and whoever waits for that is looked at again.
    pub(super) fn house(&mut self, namespace: &Key, urgency: Urgency) {
        if self.is_made(namespace) {
            self.housing.remove(namespace);
        }
        self.wake_homeless(namespace, urgency);
    }

    fn wake_homeless(&mut self, namespace: &Key, urgency: Urgency) {
        for slot in self.homeless.remove(namespace).into_iter().flatten() {
            self.plan_later(slot, urgency);
        }
    }
}
