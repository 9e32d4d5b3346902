//! One copy, as far as summaries look at it.

use std::sync::Arc;

use mailboat_object::key::KindId;
use mailboat_object::object::Object;

use super::delivery::Delivery;
use super::health::{self, Cause, Health};

/// What is told of a copy.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// The copy as it stands in its mailbox, if it does. Whoever reads mailboxes may keep no more of it than its head and
    /// its status.
    pub copy: Option<Arc<Object>>,
    /// What it should be there, for what the copy does not say: usually the object that it was made from.
    pub form: Option<Arc<Object>>,
    /// How far it is on its way.
    pub delivery: Delivery,
}

#[derive(Clone, Debug)]
pub(super) struct Copy {
    /// As it stands in its mailbox; shared with whoever told it.
    pub(super) object: Option<Arc<Object>>,
    /// What it should be, where the copy is not kept whole.
    pub(super) form: Option<Arc<Object>>,
    pub(super) delivery: Delivery,
    pub(super) health: Health,
}

impl Copy {
    pub(super) fn new(kind: &KindId, told: Told) -> Self {
        let Told { copy, form, delivery } = told;
        let form = form.filter(|_| copy.as_deref().is_some_and(|copy| !copy.is_whole()));
        let unseen = || Health::Underway(Cause::new("", ""));
        let health = copy
            .as_deref()
            .map_or_else(unseen, |copy| health::of(kind, copy, form.as_deref().unwrap_or(copy)));
        Self { object: copy, form, delivery, health }
    }

    /// Why it counts as broken, by the rules that everybody has: it cannot get to its edge, or it says so itself.
    pub(super) fn broken(&self) -> Option<Cause> {
        if let Some(refused) = &self.delivery.refused {
            return Some(refused.clone());
        }
        match &self.health {
            Health::Broken(cause) if self.delivery.delivered => Some(cause.clone()),
            _ => None,
        }
    }
}
