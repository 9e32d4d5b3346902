//! How everything stands, in numbers and in a bounded list.

use std::collections::BTreeMap;

use mailboat_api::edge::{DeliveryCounts, NotCurrentObject, NotCurrentState, ObjectReference};
use mailboat_engine::engine::Notice;
use mailboat_engine::plan::{ChangeId, Refusal, Verdict, Wait};
use mailboat_object::catalog::Found;
use mailboat_object::key::{ClusterId, Key};
use mailboat_store::seen::{Doubt, Seen};

use super::Sight;

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
    pub(super) fn of(verdicts: &BTreeMap<Key, Notice>, edge: &ClusterId, sight: &Sight<'_>) -> Self {
        let mut standing = Self::default();
        let (mut delivered, mut waiting, mut refused) = (0, 0, 0);
        // What goes to the edge first: it is what the numbers are about.
        let (down, up): (Vec<_>, Vec<_>) = verdicts.values().partition(|notice| notice.slot.cluster == *edge);
        for notice in down.iter().chain(&up) {
            if notice.slot.cluster == *edge {
                match &notice.verdict {
                    Verdict::Settled => delivered += 1,
                    Verdict::Refused(_) => refused += 1,
                    Verdict::Acting | Verdict::Waiting(_) | Verdict::Held(_) => waiting += 1,
                }
            }
            if let Verdict::Held(change) = notice.verdict {
                *standing.held.entry(change).or_default() += 1;
            }
            if notice.verdict != Verdict::Settled {
                if standing.not_current.len() < LISTED {
                    standing.not_current.push(not_current(notice, sight));
                } else {
                    standing.omitted += 1;
                }
            }
        }
        standing.counts =
            DeliveryCounts { delivered: Some(delivered), waiting: Some(waiting), refused: Some(refused) };
        standing
    }
}

fn not_current(notice: &Notice, sight: &Sight<'_>) -> NotCurrentObject {
    let slot = &notice.slot;
    let told = sight.engine.explain(0, sight.store, slot);
    let source = told.and_then(|told| told.claims.into_iter().next()).map(|claim| claim.source);
    let object = source.as_ref().unwrap_or(slot);
    let generation = match sight.store.get(object) {
        Seen::Present(source) => i64::try_from(source.generation).ok().filter(|generation| *generation > 0),
        Seen::Absent(_) | Seen::Unknown(_) => None,
    };
    let (state, reason) = cause(&notice.verdict);
    let unserved = matches!(notice.verdict, Verdict::Waiting(Wait::Target(Doubt::NotFollowed)))
        && sight.edge_serves.is_some_and(|edge| edge.find(&slot.kind) == Found::NotServed);
    let (reason, mut message) = if unserved {
        ("KindNotServed", format!("the edge does not serve {}", slot.kind))
    } else {
        (reason, notice.verdict.to_string())
    };
    if let Some(fault) = &notice.fault {
        message = format!("{message}: {fault}");
    }
    if let Some((end, _)) = message.char_indices().nth(MESSAGE_CHARACTERS) {
        message.truncate(end);
    }
    NotCurrentObject {
        object: ObjectReference {
            group: object.kind.group().to_owned(),
            resource: object.kind.resource().to_owned(),
            namespace: object.namespace.to_string(),
            name: object.name.to_string(),
        },
        generation,
        delivered_generation: None,
        state: Some(state),
        reason: reason.to_owned(),
        message,
    }
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
                Wait::Rest => "TriedAgainLater",
                Wait::Contention => "ContendedByAnother",
                Wait::Scope => "BeingEvaluated",
            };
            (Waiting, reason)
        }
    }
}
