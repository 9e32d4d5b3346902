//! One copy, as far as summaries look at it.

use std::sync::Arc;

use mailboat_object::key::KindId;
use mailboat_object::object::Object;

use super::delivery::Delivery;
use super::health::{self, Cause, Health};

#[derive(Clone, Debug)]
pub(super) struct Copy {
    /// As it stands in its mailbox; shared with whoever told it.
    pub(super) object: Option<Arc<Object>>,
    pub(super) delivery: Delivery,
    pub(super) health: Health,
}

impl Copy {
    pub(super) fn new(kind: &KindId, object: Option<Arc<Object>>, delivery: Delivery) -> Self {
        let unseen = || Health::Underway(Cause { reason: String::new(), message: String::new() });
        let health = object.as_deref().map_or_else(unseen, |copy| health::of(kind, copy));
        Self { object, delivery, health }
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
