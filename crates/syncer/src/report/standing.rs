//! How everything stands, in numbers and in a bounded list.

use std::collections::BTreeMap;
use std::sync::Arc;

use mailboat_api::edge::{DeliveryCounts, NotCurrentObject, NotCurrentState, ObjectReference};
use mailboat_engine::engine::NotCurrent;
use mailboat_engine::plan::{ChangeId, Refusal, Verdict, Wait};
use mailboat_engine::route::RouteId;
use mailboat_engine::standing::Part;
use mailboat_object::catalog::Found;
use mailboat_object::key::{ClusterId, Key, Name};
use mailboat_object::object::Object;
use mailboat_store::seen::Doubt;

use super::Sight;
use crate::downsync::DOWNSYNC;
use crate::renature::denatured;
use crate::upsync::UPSYNC;

/// Objects that are listed at most.
const LISTED: usize = 200;
/// The longest message of one object.
const MESSAGE_CHARACTERS: usize = 512;

/// How everything stands.
#[derive(Default)]
pub(super) struct Standing {
    pub(super) counts: DeliveryCounts,
    pub(super) not_current: Vec<NotCurrentObject>,
    pub(super) omitted: i64,
    /// How much each held change would withdraw.
    pub(super) held: BTreeMap<ChangeId, usize>,
}

impl Standing {
    pub(super) fn of(mailbox: &ClusterId, edge: &ClusterId, sight: &Sight<'_>) -> Self {
        let (engine, store) = (sight.engine, sight.store);
        let (down, up) = (RouteId(Name::new(DOWNSYNC)), RouteId(Name::new(UPSYNC)));
        let (at_edge, in_mailbox) = (Part::Cluster(edge.clone()), Part::Cluster(mailbox.clone()));
        let counts = engine.counts(&at_edge);
        let undecided = engine.undecided_count(&down);
        // What goes to the edge first: it is what the numbers are about.
        let mut listed = engine.not_current(store, &at_edge, LISTED);
        let room = |listed: &Vec<NotCurrent>| LISTED.saturating_sub(listed.len());
        listed.extend(engine.undecided(store, &down, room(&listed)));
        listed.extend(engine.not_current(store, &in_mailbox, room(&listed)));
        listed.extend(engine.undecided(store, &up, room(&listed)));
        let doubled = doubled(sight);
        let all = doubled.len()
            + counts.not_current()
            + undecided
            + engine.counts(&in_mailbox).not_current()
            + engine.undecided_count(&up);
        let doubled = doubled.into_iter().take(room(&listed));
        let told: Vec<NotCurrentObject> =
            listed.iter().filter_map(|told| not_current(told, sight)).chain(doubled).collect();
        Self {
            counts: DeliveryCounts {
                delivered: i64::try_from(counts.delivered).ok(),
                waiting: i64::try_from(counts.waiting + counts.held + undecided).ok(),
                refused: i64::try_from(counts.refused).ok(),
            },
            omitted: i64::try_from(all.saturating_sub(told.len())).unwrap_or(i64::MAX),
            not_current: told,
            held: engine.held().collect(),
        }
    }
}

/// What is asked for and stands back for what is stored denatured under the same name.
fn doubled(sight: &Sight<'_>) -> Vec<NotCurrentObject> {
    let told = |object: &Arc<Object>| NotCurrentObject {
        object: reference(&object.key),
        generation: None,
        delivered_generation: None,
        state: Some(NotCurrentState::Refused),
        reason: "StoredTwice".to_owned(),
        message: format!("it is stored as {} as well, and that one is carried", denatured(&object.key.kind)),
    };
    sight.down.into_iter().flat_map(|down| down.doubled(sight.store)).map(told).collect()
}

fn reference(object: &Key) -> ObjectReference {
    ObjectReference {
        group: object.kind.group().to_owned(),
        resource: object.kind.resource().to_owned(),
        namespace: object.namespace.to_string(),
        name: object.name.to_string(),
    }
}

fn not_current(told: &NotCurrent, sight: &Sight<'_>) -> Option<NotCurrentObject> {
    let object = told.source.as_ref().or(told.slot.as_ref())?;
    let number = |generation: Option<u64>| generation.and_then(|generation| i64::try_from(generation).ok());
    let (state, reason) = cause(&told.verdict);
    let kind = &told.slot.as_ref().unwrap_or(object).kind;
    let unserved = matches!(told.verdict, Verdict::Waiting(Wait::Target(Doubt::NotFollowed)))
        && sight.edge_serves.is_some_and(|edge| edge.find(kind) == Found::NotServed);
    let (reason, mut message) = if unserved {
        ("KindNotServed", format!("the edge does not serve {kind}"))
    } else {
        (reason, told.verdict.to_string())
    };
    if let Some(fault) = &told.fault {
        message = format!("{message}: {fault}");
    }
    if let Some((end, _)) = message.char_indices().nth(MESSAGE_CHARACTERS) {
        message.truncate(end);
    }
    Some(NotCurrentObject {
        object: reference(object),
        generation: number(told.generation),
        delivered_generation: number(told.delivered_generation),
        state: Some(state),
        reason: reason.to_owned(),
        message,
    })
}

fn cause(verdict: &Verdict) -> (NotCurrentState, &'static str) {
    use NotCurrentState::{Held, Refused, Waiting};
    match verdict {
        Verdict::Settled => (Waiting, "Settled"),
        Verdict::Acting => (Waiting, "BeingDelivered"),
        Verdict::Held(_) => (Held, "ConfirmationAwaited"),
        Verdict::Refused(refusal) => {
            let reason = match refusal {
                Refusal::Foreign => "ForeignObject",
                Refusal::OthersOwn(_) => "OwnedByAnother",
                Refusal::MarkRemoved => "MarkRemoved",
                Refusal::Unclear => "Unclear",
                Refusal::Rejected => "Rejected",
            };
            (Refused, reason)
        }
        Verdict::Waiting(wait) => {
            let reason = match wait {
                Wait::Undecided(_) => "Undecided",
                Wait::Target(_) => "PlaceNotKnown",
                Wait::Cluster => "EdgeAway",
                Wait::Kind => "KindNotServed",
                Wait::Namespace | Wait::NamespaceEnding => "NamespaceNotReady",
                Wait::TargetEnding => "CopyBeingDeleted",
                Wait::SourceEnding => "SourceBeingDeleted",
                Wait::Overlaid => "ObjectMissing",
                Wait::SourceCluster => "MailboxAway",
                Wait::Rest | Wait::Unheard => "TriedAgainLater",
                Wait::Contention => "ContendedByAnother",
                Wait::Scope => "BeingEvaluated",
            };
            (Waiting, reason)
        }
    }
}
