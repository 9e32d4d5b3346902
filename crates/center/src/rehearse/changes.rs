//! What another configuration would change in mailboxes, and so at edges.

use std::collections::{BTreeMap, BTreeSet};

use mailboat_api::edge::ObjectReference;
use mailboat_engine::mark::Marked;
use mailboat_engine::plan::{Action, Expect, Verdict, Wait};
use mailboat_engine::route::RouteId;
use mailboat_object::digest::Digest;
use mailboat_object::key::{Key, Name, Uid};
use serde::Serialize;

use super::Rehearsal;
use super::why::reference;
use crate::role::{may_be_carried, reason_of};
use crate::translate::route_name;

/// One object at one edge that would not stay as it is.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The edge, by its Location; by its SyncTarget where none leads there any more.
    pub edge: String,
    /// The object, by the kind that it has there.
    #[serde(flatten)]
    pub object: ObjectReference,
    /// What would be done.
    pub step: Step,
    /// Why, where that is more than the step says.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// What would be done with an object at an edge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub enum Step {
    /// It is not there, and would be.
    Create,
    /// It is there, and would become another.
    Change,
    /// It is there, and would go.
    Delete,
    /// It would stay there, and be looked after no more.
    Leave,
    /// So much would go at once that somebody has to confirm it first.
    AwaitConfirmation,
    /// It could not be said what it is to be: it would stay as it is, or not come.
    Hold,
    /// Something that is not ours stands there.
    Conflict,
}

type Steps = BTreeMap<Key, (Step, Option<Digest>, String)>;

/// What would be done after the change and is not being done before it, by edge and object.
pub fn changes(before: &Rehearsal, after: &Rehearsal) -> Vec<Change> {
    let (known, mut steps) = (before.steps(), after.steps());
    before.ask_first(&mut steps);
    let mut edges = before.edges();
    edges.extend(after.edges());
    let new = steps.into_iter().filter(|(slot, (step, intent, _))| {
        known.get(slot).is_none_or(|(was, meant, _)| (was, meant) != (step, intent))
    });
    let mut changes: Vec<Change> = new
        .map(|(slot, (step, _, why))| Change {
            edge: edges.get(&slot.cluster.0).cloned().unwrap_or_else(|| slot.cluster.to_string()),
            object: reference(&slot),
            step,
            why,
        })
        .collect();
    changes.sort_by(|a, b| (&a.edge, a.step, &a.object).cmp(&(&b.edge, b.step, &b.object)));
    changes
}

impl Rehearsal {
    /// The edges by the clusters of their mailboxes.
    fn edges(&self) -> BTreeMap<Name, String> {
        let targets = self.targets();
        let named = self.setting.mailboxes.iter().filter_map(|(uid, cluster)| {
            let leads = targets.get(uid)?;
            Some((cluster.0.clone(), leads.location.name.to_string()))
        });
        named.collect()
    }

    /// What would be done with each copy that does not stay as it is.
    fn steps(&self) -> Steps {
        let mut steps = Steps::new();
        let mailboxes: BTreeSet<_> = self.setting.mailboxes.values().collect();
        for slot in
            self.engine.slots().filter(|slot| mailboxes.contains(&slot.cluster) && may_be_carried(&slot.kind))
        {
            if let Some(step) = self.step(slot) {
                steps.insert(slot.clone(), step);
            }
        }
        for key in self.placements.keys() {
            self.hold_bare(key, &mut steps);
        }
        steps
    }

    /// Makes questions of deletions where a placement, as it is now, would lose so much at once that the center asks first.
    fn ask_first(&self, steps: &mut Steps) {
        let (mut delivered, mut losses): (BTreeMap<&RouteId, usize>, BTreeMap<&RouteId, Vec<&Key>>) =
            (BTreeMap::new(), BTreeMap::new());
        for slot in self.engine.slots() {
            let ours = self.object(slot).is_some_and(|copy| matches!(self.marks.read(copy), Marked::Ours(_)));
            let Some((route, _)) = self.engine.claims(slot).next().filter(|_| ours) else { continue };
            *delivered.entry(route).or_default() += 1;
            if steps.get(slot).is_some_and(|(step, ..)| *step == Step::Delete) {
                losses.entry(route).or_default().push(slot);
            }
        }
        for (route, losses) in losses {
            let all = delivered.get(route).copied().unwrap_or_default();
            if self.setting.caution.is_much(losses.len(), all) {
                let why =
                    format!("{} of the {all} copies of {} would go at once", losses.len(), self.named(route));
                for slot in losses {
                    steps.insert(slot.clone(), (Step::AwaitConfirmation, None, why.clone()));
                }
            }
        }
    }

    fn step(&self, slot: &Key) -> Option<(Step, Option<Digest>, String)> {
        let explained = self.engine.explain(0, &self.store, slot)?;
        let mark = match self.object(slot).map(|copy| self.marks.read(copy)) {
            Some(Marked::Ours(mark)) => Some(mark),
            _ => None,
        };
        // What came from a workspace that was not read is none of our business.
        let foreign = |source: &Key| !self.setting.workspaces.contains(&source.cluster);
        if explained.claims.is_empty() && mark.as_ref().is_none_or(|mark| foreign(&mark.origin.key)) {
            return None;
        }
        match &explained.verdict {
            Verdict::Waiting(Wait::Undecided(hold)) => return Some((Step::Hold, None, hold.reason.clone())),
            Verdict::Refused(refusal) => {
                return Some((Step::Conflict, None, format!("{}: {refusal}", reason_of(refusal))));
            }
            Verdict::Settled | Verdict::Acting | Verdict::Waiting(_) | Verdict::Held(_) => {}
        }
        let intent = self.engine.intent(&self.store, slot);
        let differs = intent.is_some() && intent != mark.as_ref().map(|mark| mark.intent);
        let step = explained.next.iter().find_map(|action| match action {
            Action::EnsureNamespace | Action::Deliver { expect: Expect::New, .. } => Some(Step::Create),
            Action::Deliver { .. } => Some(Step::Change),
            // Whether it is as it should be is for its server to say; what it was made from says enough here.
            Action::Read | Action::Compare if differs => Some(Step::Change),
            Action::Delete(_) | Action::ConfirmGone(_) => Some(Step::Delete),
            Action::Release { .. } | Action::LetGo { .. } => Some(Step::Leave),
            _ => None,
        });
        let step = step.or_else(|| (differs && self.object(slot).is_none()).then_some(Step::Create))?;
        Some((step, intent, String::new()))
    }

    /// What cannot be sent, where nothing stands yet by which that could be told.
    fn hold_bare(&self, key: &Key, steps: &mut Steps) {
        let route = RouteId(route_name(key));
        for (cluster, kind) in self.read.iter().filter(|(cluster, _)| *cluster == key.cluster) {
            for source in self.store.range(cluster, kind, None).into_iter().flatten() {
                for (to, hold) in self.engine.held_bare(&route, &source.key) {
                    let edge = self.destinations.iter().find(|(_, id)| **id == to).map(|(uid, _)| uid);
                    let Some(cluster) = edge.and_then(|uid: &Uid| self.setting.mailboxes.get(uid)) else {
                        continue;
                    };
                    let slot = Key { cluster: cluster.clone(), ..source.key.clone() };
                    steps.insert(slot, (Step::Hold, None, hold.reason.clone()));
                }
            }
        }
    }
}
