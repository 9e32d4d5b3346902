//! Why a slot stands as it stands: select, project and plan run once more, aloud.

use std::fmt;

use mailboat_object::digest::Digest;
use mailboat_object::json::Raw;
use mailboat_object::key::{Key, Name};
use mailboat_store::seen::Seen;
use mailboat_store::store::Store;

use super::Engine;
use super::sight::WantedHere;
use crate::difference::difference;
use crate::mark::Marked;
use crate::plan::{Action, Proof, Refusal, Verdict, Wait};
use crate::route::{DestinationId, RouteId};
use crate::warrant::Evidence;

/// Everything that can be said about one slot, as data; its text is for people.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The slot.
    pub slot: Key,
    /// Who wants it, best first.
    pub claims: Vec<Claimed>,
    /// What stands there.
    pub target: String,
    /// How it stands.
    pub verdict: Verdict,
    /// When our copy that stands there was last written by us, in Unix seconds, if it can be told.
    pub delivered_at: Option<u64>,
    /// Where what is wanted differs from its source: paths of members, never values.
    pub changed: Vec<String>,
    /// What will be done next.
    pub next: Vec<Action>,
    /// The last fault, in the server's words.
    pub fault: Option<String>,
    /// Failed attempts in a row.
    pub attempts: u8,
    /// How long it rests, in milliseconds.
    pub rests: u64,
}

/// One who wants a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claimed {
    /// The route.
    pub route: RouteId,
    /// The source.
    pub source: Key,
    /// The entry of the route's configuration that selected it.
    pub by: Name,
    /// The destination.
    pub to: DestinationId,
}

impl Engine {
    /// All slots that anybody wanted or where something of ours stands, in the order of their keys.
    pub fn slots(&self) -> impl Iterator<Item = &Key> {
        self.slots.matching(|_| true).into_iter().filter_map(|id| self.slots.get(id)).map(|state| &state.key)
    }

    /// The content that is wanted in a slot; `None` if nothing is, or if that cannot be said.
    pub fn intent(&self, store: &Store, key: &Key) -> Option<Digest> {
        match self.look_at(store, self.slots.find(key)?)?.wanted {
            WantedHere::By(want) => Some(want.body.digest),
            WantedHere::No(_) | WantedHere::Undecided(_) => None,
        }
    }

    /// Explains a slot. `None` if nobody ever wanted it and nothing of ours stands there.
    pub fn explain(&self, now: u64, store: &Store, key: &Key) -> Option<Explanation> {
        let id = self.slots.find(key)?;
        let state = self.slots.get(id)?;
        let claims = state.claims.iter().filter_map(|claim| {
            let fan = self.fans.get(claim.fan)?;
            let route = self.routes.get(fan.route.0 as usize)?.id.clone();
            Some(Claimed { route, source: (*fan.source).clone(), by: fan.by.clone(), to: claim.to })
        });
        let (mut delivered_at, mut changed) = (None, Vec::new());
        let (target, verdict, next) = match self.look_at(store, id) {
            None => (
                "our last write is not shown there yet".to_owned(),
                state.verdict.clone().unwrap_or(Verdict::Acting),
                vec![],
            ),
            Some(sight) => {
                let plan = self.decide(now, store, id, &sight);
                if let (Seen::Present(target), Marked::Ours(_)) = (&sight.target, &sight.marked) {
                    delivered_at = Some(target.hands.ours_at_seconds).filter(|at| *at > 0);
                }
                if let (WantedHere::By(want), Some(source)) = (&sight.wanted, &sight.source)
                    && source.is_whole()
                    && let Ok(intent) = Raw::parse(&want.body.json)
                {
                    changed = difference(source.root(), intent);
                }
                let target = match (&sight.target, &sight.marked, &sight.wanted) {
                    (Seen::Unknown(doubt), ..) => format!("not known: {doubt}"),
                    (Seen::Absent(absence), ..) => {
                        format!("nothing stands there as of version {}", absence.version())
                    }
                    (Seen::Present(_), Marked::Ours(_), _) if sight.proof != Proof::Ours => {
                        "an object stands there that a delivery met and marked, and whose answer was lost"
                            .to_owned()
                    }
                    (Seen::Present(_), Marked::Ours(mark), _) if mark.overlay => {
                        "fields of ours stand on an object that is not ours".to_owned()
                    }
                    (Seen::Present(target), Marked::Ours(mark), wanted) => {
                        let wanted = match wanted {
                            WantedHere::By(want) if want.body.digest == mark.intent => {
                                "as wanted by its mark"
                            }
                            WantedHere::By(_) => "made for another intent",
                            WantedHere::No(Evidence::Deselected(_)) => {
                                "no longer selected by any configuration"
                            }
                            WantedHere::No(Evidence::SourceGone(_)) => "its source is gone",
                            WantedHere::No(Evidence::SourceDeleting(_)) => "its source is being deleted",
                            WantedHere::Undecided(_) => "it is not decided whether it is wanted",
                        };
                        format!("our copy stands there at version {}: {wanted}", target.version)
                    }
                    (Seen::Present(_), Marked::Others(owner), _) => {
                        format!("an object of {} stands there", owner.0)
                    }
                    (Seen::Present(_), Marked::Nobodys, _) => {
                        "an object that is not ours stands there".to_owned()
                    }
                };
                (target, plan.verdict, plan.actions.to_vec())
            }
        };
        Some(Explanation {
            slot: key.clone(),
            claims: claims.collect(),
            target,
            verdict,
            delivered_at,
            changed,
            next,
            fault: state.passing.fault.as_deref().map(str::to_owned),
            attempts: state.passing.attempts.max(state.passing.unheard),
            rests: state.passing.next_try(now).map_or(0, |at| at - now),
        })
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.slot)?;
        if self.claims.is_empty() {
            writeln!(f, "  wanted by nobody")?;
        }
        for (place, claim) in self.claims.iter().enumerate() {
            let role = if place == 0 { "wanted by" } else { "also wanted by" };
            writeln!(f, "  {role} {} for {}, selected by {}", claim.route.0, claim.source, claim.by)?;
        }
        writeln!(f, "  {}", self.target)?;
        writeln!(f, "  {}", self.verdict)?;
        if !self.changed.is_empty() {
            writeln!(f, "  changed on the way at {}", self.changed.join(", "))?;
        }
        if let Some(at) = self.delivered_at {
            writeln!(f, "  last written by us at {at} (Unix seconds)")?;
        }
        if let Some(fault) = &self.fault {
            writeln!(f, "  last fault, {} in a row: {fault}", self.attempts)?;
        }
        if self.rests > 0 {
            writeln!(f, "  tried again in {} ms", self.rests)?;
        }
        Ok(())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settled => f.write_str("settled"),
            Self::Acting => f.write_str("being acted on"),
            Self::Waiting(wait) => write!(f, "waiting: {wait}"),
            Self::Refused(refusal) => write!(f, "refused: {refusal}"),
            Self::Held(change) => {
                write!(f, "held: too much would be withdrawn at once; confirm change {change} to let it go")
            }
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Undecided(hold) => return f.write_str(&hold.reason),
            Self::Target(doubt) => return write!(f, "what stands there is not known: {doubt}"),
            Self::Cluster => "its cluster cannot be reached",
            Self::Kind => "its kind is not served there yet",
            Self::Namespace => "its namespace is not shown yet",
            Self::NamespaceEnding => "its namespace is being deleted",
            Self::TargetEnding => "what stands there is being deleted",
            Self::SourceEnding => "its source is being deleted",
            Self::Overlaid => "the object that it adds fields to is not there",
            Self::Rest => "its last write failed and is tried again later",
            Self::Unheard => "its source could not be written to, which is tried again later",
            Self::SourceCluster => "the cluster of its source cannot be reached",
            Self::Contention => "another hand keeps rewriting or deleting it, so it is put right more slowly",
            Self::Scope => "all that belongs together is being evaluated first",
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str(
                "an object of that name stands there and is not ours; ask for its adoption on the source, or rename one",
            ),
            Self::OthersOwn(owner) => write!(f, "the object there was put by {}", owner.0),
            Self::MarkRemoved => f.write_str("somebody took our mark off the object there: it is theirs now"),
            Self::Unclear => f.write_str(
                "our mark stands on the object there, but it cannot be told any more whether we made it; take the mark off if it is yours",
            ),
            Self::Rejected => f.write_str("its server looked at it and refuses it"),
        }
    }
}
