//! How the copies of a placement's objects are, all edges together: StatusSummaries, kept by increments.
//!
//! Every placement has a summary, and one more for each Summarizer that selects it. A summary is a *board* of counts;
//! a copy that changes is taken off the boards of its placement and put on again, which costs the groups that it is in
//! and nothing else. What goes in is told: Locations, heartbeats, copies in mailboxes and what syncers say of them.
//! What comes out are the StatusSummaries that should be there ([`Summaries::wanted`]) and their statuses, each at most
//! once a second and only if it says something new ([`Summaries::next`]).
//!
//! Reading order: [`delivery`] (is a copy where it should be), [`health`] (does it do what it should), `counts` and
//! `board` (how many), `show` (as a status, within its limit); then what Summarizers add: [`expression`],
//! [`aggregate`] and `rules`.

pub mod aggregate;
mod board;
mod copy;
mod counts;
pub mod delivery;
mod edge;
pub mod expression;
pub mod health;
mod id;
mod object;
mod route;
mod rules;
mod show;
mod summarizer;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mailboat_api::edge::{ObjectReference, StatusSummaryStatus, SummarizerStatus};
use mailboat_api::names::group;
use mailboat_engine::want::Body;
use mailboat_object::json::Raw;
use mailboat_object::key::{Key, KindId, Name};
use mailboat_object::object::Object;
use mailboat_store::time::{Moment, Now};
use serde_json::{Value, json};

use board::Board;
use copy::Copy;
use edge::Edge;
use object::{
    SUMMARIZER_MEMBERS, SUMMARY_MEMBERS, all_members, summary_key, summary_name, wanted, without_time,
};
use rules::Rules;
use summarizer::Summarizer;

pub use copy::Told;
pub use delivery::{Delivery, Named, Report};
pub use edge::EdgeFacts;
pub use id::{CopyId, EdgeId, ObjectId};
pub use object::StatusWrite;
pub use route::Summarized;
pub use show::LIMIT_BYTES;

/// No summary is written more often than this.
const SPACING: Duration = Duration::from_secs(1);
/// How often copies are looked at again where a Summarizer asks for their age.
const AGE_SECONDS: u64 = 30;

/// All summaries.
#[derive(Debug, Default)]
pub struct Summaries {
    edges: BTreeMap<EdgeId, Edge>,
    placements: BTreeMap<Key, Placement>,
    summarizers: BTreeMap<Key, Summarizer>,
    /// When edges will have been silent for too long, by the thresholds in use.
    silences: BTreeSet<(u64, EdgeId)>,
    /// Summaries that may say something else now: placement and Summarizer.
    changed: BTreeSet<(Key, Name)>,
    /// Placements whose summaries were chosen anew.
    chosen: BTreeSet<Key>,
    now: u64,
    /// When copies were last looked at for their age.
    aged: u64,
    /// Some Summarizer asks for ages.
    ages: bool,
    started: bool,
}

#[derive(Debug)]
struct Placement {
    uid: String,
    labels: BTreeMap<String, String>,
    copies: BTreeMap<CopyId, Copy>,
    /// By the name of the Summarizer; the empty name for the summary that every placement has.
    summaries: BTreeMap<Name, Summary>,
}

#[derive(Debug)]
struct Summary {
    board: Board,
    not_before: Moment,
    /// It is there, so that its status can be written.
    there: bool,
    /// What stands there, without the time.
    written: Option<Value>,
    /// Since when copies were broken, as somebody before us wrote it down.
    since: BTreeMap<(ObjectReference, String), u64>,
}

impl Summaries {
    /// No summaries, from now on.
    pub fn new(now: Now) -> Self {
        Self { now: now.wall_seconds, ..Self::default() }
    }

    /// All that was known at the beginning was told: from now on summaries are written.
    pub fn start(&mut self, now: Now) {
        self.started = true;
        self.pass(now.wall_seconds);
    }

    /// Time goes on, also while nothing is written yet.
    pub fn advance(&mut self, now: Now) {
        self.pass(now.wall_seconds);
    }

    /// An edge is there, its Location changed, or it is gone.
    pub fn edge(&mut self, id: &EdgeId, facts: Option<EdgeFacts>) {
        match facts {
            None => {
                let gone = self.edges.remove(id);
                for placement in gone.into_iter().flat_map(|edge| edge.placements) {
                    self.forget_copies(&placement, id);
                }
            }
            Some(facts) => {
                let edge = self.edges.entry(id.clone()).or_default();
                if edge.facts != facts {
                    edge.set(facts);
                    self.look_at_edge(id, |_| true);
                }
            }
        }
    }

    /// An edge's syncer was heard of, at this time of the center's own clock in Unix seconds.
    pub fn heard(&mut self, id: &EdgeId, at: u64) {
        let edge = self.edges.entry(id.clone()).or_default();
        let before = edge.heard.replace(at);
        for placement in edge.placements.clone() {
            self.await_silence(id, &placement);
        }
        let now = self.now;
        let was_silent = |after: u64| before.is_none_or(|heard| now >= heard.saturating_add(after));
        self.look_at_edge(id, |rules| rules.look_at_age() || was_silent(rules.stale_after_seconds));
    }

    /// A placement is there, changed, or is gone.
    pub fn placement(&mut self, key: &Key, placement: Option<&Object>) {
        let Some(object) = placement else {
            if let Some(gone) = self.placements.remove(key) {
                for edge in gone.copies.keys().map(|id| &id.edge).collect::<BTreeSet<_>>() {
                    if let Some(edge) = self.edges.get_mut(edge) {
                        edge.placements.remove(key);
                    }
                }
                self.chosen.insert(key.clone());
                self.touch_summarizers(key);
            }
            return;
        };
        let labels = object.labels().map(|(key, value)| (key.into_owned(), value.into_owned())).collect();
        let state = self.placements.entry(key.clone()).or_insert_with(|| {
            self.changed.insert((key.clone(), Name::EMPTY));
            Placement {
                uid: String::new(),
                labels: BTreeMap::new(),
                copies: BTreeMap::new(),
                summaries: BTreeMap::from([(Name::EMPTY, Summary::new(Arc::new(Rules::plain())))]),
            }
        });
        state.uid = object.uid.to_string();
        state.labels = labels;
        self.choose_summaries(key);
    }

    /// A copy is wanted, changed, or is wanted no more.
    pub fn copy(&mut self, placement: &Key, id: &CopyId, wanted: Option<Told>) {
        let Some(state) = self.placements.get_mut(placement) else { return };
        match wanted {
            Some(told) => {
                state.copies.insert(id.clone(), Copy::new(&id.object.kind, told));
                let edge = self.edges.entry(id.edge.clone()).or_default();
                if !edge.placements.contains(placement) {
                    edge.placements.insert(placement.clone());
                    self.await_silence(&id.edge, placement);
                }
            }
            None if state.copies.remove(id).is_none() => return,
            None => {}
        }
        self.look_at_copy(placement, id);
    }

    /// What an edge's syncer says of its deliveries: every copy there is judged by it. `named`: whether a slot is among
    /// what the syncer is told to carry.
    pub fn reported(&mut self, id: &EdgeId, report: &Report, named: &dyn Fn(&Key) -> Named) {
        let edge = self.edges.entry(id.clone()).or_default();
        if edge.report.as_ref() == Some(report) && !edge.unsaid {
            return;
        }
        edge.report = Some(report.clone());
        edge.unsaid = false;
        for key in edge.placements.clone() {
            let Some(placement) = self.placements.get_mut(&key) else { continue };
            let copies: Vec<CopyId> = copies_at(&placement.copies, id).cloned().collect();
            for id in copies {
                let Some(copy) = placement.copies.get_mut(&id) else { continue };
                let Some(object) = copy.object.as_deref().filter(|_| !copy.delivery.held) else { continue };
                let named = named(&object.key);
                if let Some(edge) = self.edges.get_mut(&id.edge) {
                    edge.unsaid |= named == Named::NotYet;
                }
                let judged = copy.delivery.judged(&id.object, object, Some(report), named);
                if judged != copy.delivery {
                    copy.delivery = judged;
                    let (edge, now) = (self.edges.get(&id.edge), self.now);
                    for (name, summary) in &mut placement.summaries {
                        if summary.look(&id, placement.copies.get(&id), edge, now) {
                            self.changed.insert((key.clone(), name.clone()));
                        }
                    }
                }
            }
        }
    }

    /// What an edge's syncer says may be said of more than before, when it says the same once more.
    pub fn leaves_unsaid(&mut self, id: &EdgeId) {
        if let Some(edge) = self.edges.get_mut(id) {
            edge.unsaid = true;
        }
    }

    /// What an edge's syncer last said.
    pub fn report(&self, id: &EdgeId) -> Option<&Report> {
        self.edges.get(id)?.report.as_ref()
    }

    /// The placements that have had copies at an edge.
    pub fn placements_at(&self, id: &EdgeId) -> impl Iterator<Item = &Key> {
        self.edges.get(id).into_iter().flat_map(|edge| &edge.placements)
    }

    /// What was last said of a copy's delivery, to judge the next word of its syncer by.
    pub fn delivery(&self, placement: &Key, id: &CopyId) -> Option<&Delivery> {
        self.placements.get(placement)?.copies.get(id).map(|copy| &copy.delivery)
    }

    /// A Summarizer is there, changed, or is gone.
    pub fn summarizer(&mut self, key: &Key, summarizer: Option<&Object>) {
        match summarizer {
            None => drop(self.summarizers.remove(key)),
            Some(object) => {
                let written =
                    object.get(&["status"]).and_then(|status| serde_json::from_str(status.json()).ok());
                let generation = i64::try_from(object.generation).unwrap_or_default();
                let known = self.summarizers.get(key).filter(|known| known.generation == generation);
                let rules =
                    known.map_or_else(|| Arc::new(Rules::of(object)), |known| Arc::clone(&known.rules));
                let written = written.unwrap_or_default();
                let not_before = self.summarizers.get(key).map_or(Moment(0), |known| known.not_before);
                let summarizer = Summarizer { rules, generation, written, changed: true, not_before };
                self.summarizers.insert(key.clone(), summarizer);
            }
        }
        self.ages = self.summarizers.values().any(|summarizer| summarizer.rules.look_at_age());
        let same_workspace = |placement: &&Key| placement.cluster == key.cluster;
        let placements: Vec<Key> = self.placements.keys().filter(same_workspace).cloned().collect();
        for placement in placements {
            self.choose_summaries(&placement);
        }
    }

    /// A StatusSummary as it stands. What it says already is not written again, and what somebody else wrote into it
    /// is put right.
    pub fn found(&mut self, object: &Object) {
        let text = |member: &str| {
            object
                .get(&["spec", member])
                .and_then(Raw::as_str)
                .map(|text| Name::new(&text))
                .unwrap_or_default()
        };
        let placement = Key {
            cluster: object.key.cluster.clone(),
            kind: KindId::new(group::EDGE, "edgeplacements"),
            namespace: Name::EMPTY,
            name: text("placementName"),
        };
        let Some(state) = self.placements.get_mut(&placement) else { return };
        let summarizer = text("summarizerName");
        if object.key.name.as_str() != summary_name(&placement, &summarizer) {
            return;
        }
        let Some(summary) = state.summaries.get_mut(&summarizer) else { return };
        let status = object.get(&["status"]).map(|status| serde_json::from_str(status.json()));
        let status: StatusSummaryStatus = status.and_then(Result::ok).unwrap_or_default();
        let seconds = |time: &mailboat_api::Time| u64::try_from(time.0.as_second()).ok();
        let since = status.broken.iter().filter_map(|broken| {
            Some(((broken.object.clone(), broken.edge.clone()), broken.since.as_ref().and_then(seconds)?))
        });
        if !self.started {
            summary.since = since.collect();
        }
        summary.there = true;
        let stands = without_time(status);
        if summary.written.as_ref() != Some(&stands) {
            summary.written = Some(stands);
            self.changed.insert((placement, summarizer));
        }
    }

    /// A status could not be written: what was to stand there does not, and it is tried again then.
    pub fn unwritten(&mut self, key: &Key, again: Moment) {
        if let Some(summarizer) = self.summarizers.get_mut(key) {
            summarizer.written = SummarizerStatus::default();
            summarizer.changed = true;
            summarizer.not_before = summarizer.not_before.max(again);
            return;
        }
        for (placement, state) in &mut self.placements {
            for (name, summary) in &mut state.summaries {
                if placement.cluster == key.cluster && summary_key(placement, name) == *key {
                    summary.written = None;
                    summary.not_before = summary.not_before.max(again);
                    self.changed.insert((placement.clone(), name.clone()));
                    return;
                }
            }
        }
    }

    /// The StatusSummaries that a placement should have.
    pub fn wanted(&self, placement: &Key) -> Vec<(Key, Body)> {
        let Some((placement, state)) = self.placements.get_key_value(placement) else { return Vec::new() };
        state.summaries.keys().map(|summarizer| wanted(placement, &state.uid, summarizer)).collect()
    }

    /// The placements whose StatusSummaries may be others than when this was last asked.
    pub fn take_chosen(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.chosen)
    }

    /// What should be written now, and when to ask again if nothing happens before.
    pub fn next(&mut self, now: Now) -> (Vec<StatusWrite>, Option<Moment>) {
        if !self.started {
            return (Vec::new(), None);
        }
        self.pass(now.wall_seconds);
        let mut writes = Vec::new();
        let mut wake = self.next_silence().map(|seconds| now.mono + Duration::from_secs(seconds));
        let mut soonest = |moment: Moment| wake = Some(wake.map_or(moment, |wake| wake.min(moment)));
        for (placement, summarizer) in std::mem::take(&mut self.changed) {
            let state = self.placements.get_mut(&placement);
            let Some(summary) = state.and_then(|state| state.summaries.get_mut(&summarizer)) else {
                continue;
            };
            if now.mono < summary.not_before {
                soonest(summary.not_before);
                self.changed.insert((placement, summarizer));
                continue;
            }
            let of_placement = Key { name: summarizer.clone(), kind: summarizers(), ..placement.clone() };
            if let Some(reported) = self.summarizers.get_mut(&of_placement) {
                reported.changed = true;
            }
            // What is not there yet is written when it is found.
            if !summary.there {
                continue;
            }
            let stands = without_time(show::status(&summary.board, &self.edges));
            if summary.written.as_ref() == Some(&stands) {
                continue;
            }
            let mut patch = all_members(&stands, &SUMMARY_MEMBERS);
            patch["lastUpdateTime"] = json!(show::time(now.wall_seconds));
            let key = summary_key(&placement, &summarizer);
            writes.push(StatusWrite { key, patch: json!({ "status": patch }) });
            summary.written = Some(stands);
            summary.not_before = now.mono + SPACING;
        }
        let reports = self.report_on_summarizers(now, &mut writes);
        (writes, [wake, reports].into_iter().flatten().min())
    }

    /// Time goes on: edges fall silent, and ages grow.
    fn pass(&mut self, now: u64) {
        self.now = self.now.max(now);
        while let Some((at, _)) = self.silences.first() {
            if *at > self.now {
                break;
            }
            if let Some((at, id)) = self.silences.pop_first() {
                // Of an edge that was heard of since, a later silence is noted.
                let heard = self.edges.get(&id).and_then(|edge| edge.heard).unwrap_or_default();
                self.look_at_edge(&id, |rules| heard.saturating_add(rules.stale_after_seconds) == at);
            }
        }
        if self.ages && self.now >= self.aged + AGE_SECONDS {
            self.aged = self.now;
            let edges: Vec<EdgeId> = self.edges.keys().cloned().collect();
            for edge in edges {
                self.look_at_edge(&edge, Rules::look_at_age);
            }
        }
    }

    /// How many seconds from now the next edge falls silent, or ages are looked at again.
    fn next_silence(&self) -> Option<u64> {
        let silence = self.silences.first().map(|(at, _)| at.saturating_sub(self.now));
        let ages = self.ages.then(|| (self.aged + AGE_SECONDS).saturating_sub(self.now));
        [silence, ages].into_iter().flatten().min()
    }

    /// Gives a placement the summaries that it should have.
    fn choose_summaries(&mut self, key: &Key) {
        let Some(state) = self.placements.get_mut(key) else { return };
        self.chosen.insert(key.clone());
        let mut chosen: BTreeMap<Name, Arc<Rules>> = BTreeMap::new();
        for (summarizer, known) in
            self.summarizers.iter_mut().filter(|(other, _)| other.cluster == key.cluster)
        {
            let selects = known.rules.selects(&state.labels);
            if selects {
                chosen.insert(summarizer.name.clone(), Arc::clone(&known.rules));
            }
            known.changed |= selects != state.summaries.contains_key(&summarizer.name);
        }
        state.summaries.retain(|name, summary| {
            name.is_empty() || chosen.get(name).is_some_and(|rules| Arc::ptr_eq(rules, &summary.board.rules))
        });
        let mut made = Vec::new();
        for (name, rules) in chosen {
            state.summaries.entry(name.clone()).or_insert_with(|| {
                made.push(name);
                Summary::new(rules)
            });
        }
        if made.is_empty() {
            return;
        }
        self.changed.extend(made.into_iter().map(|name| (key.clone(), name)));
        let copies: Vec<CopyId> = state.copies.keys().cloned().collect();
        let edges: BTreeSet<EdgeId> = copies.iter().map(|id| id.edge.clone()).collect();
        for id in copies {
            self.look_at_copy(key, &id);
        }
        for edge in edges {
            self.await_silence(&edge, key);
        }
    }

    fn forget_copies(&mut self, placement: &Key, edge: &EdgeId) {
        let Some(state) = self.placements.get_mut(placement) else { return };
        let gone: Vec<CopyId> = copies_at(&state.copies, edge).cloned().collect();
        for id in &gone {
            state.copies.remove(id);
        }
        for id in gone {
            self.look_at_copy(placement, &id);
        }
    }

    /// Looks again at all copies at an edge, on the boards that this concerns.
    fn look_at_edge(&mut self, id: &EdgeId, concerns: impl Fn(&Rules) -> bool) {
        let Some(edge) = self.edges.get(id) else { return };
        for key in &edge.placements {
            let Some(placement) = self.placements.get_mut(key) else { continue };
            for (name, summary) in &mut placement.summaries {
                if !concerns(&summary.board.rules) {
                    continue;
                }
                let mut changed = false;
                for id in copies_at(&placement.copies, id) {
                    changed |= summary.look(id, placement.copies.get(id), Some(edge), self.now);
                }
                if changed {
                    self.changed.insert((key.clone(), name.clone()));
                }
            }
        }
    }

    fn look_at_copy(&mut self, key: &Key, id: &CopyId) {
        let Some(placement) = self.placements.get_mut(key) else { return };
        let copy = placement.copies.get(id);
        for (name, summary) in &mut placement.summaries {
            if summary.look(id, copy, self.edges.get(&id.edge), self.now) {
                self.changed.insert((key.clone(), name.clone()));
            }
        }
    }

    /// Notes when an edge will have been silent for too long, for one placement that goes there.
    fn await_silence(&mut self, id: &EdgeId, placement: &Key) {
        let heard = self.edges.get(id).and_then(|edge| edge.heard);
        let Some((heard, placement)) = heard.zip(self.placements.get(placement)) else { return };
        for summary in placement.summaries.values() {
            let at = heard.saturating_add(summary.board.rules.stale_after_seconds);
            self.silences.insert((at, id.clone()));
        }
    }

    fn touch_summarizers(&mut self, placement: &Key) {
        for (key, summarizer) in &mut self.summarizers {
            summarizer.changed |= key.cluster == placement.cluster;
        }
    }

    /// Says on each Summarizer how its expressions do.
    fn report_on_summarizers(&mut self, now: Now, writes: &mut Vec<StatusWrite>) -> Option<Moment> {
        let mut wake: Option<Moment> = None;
        for (key, summarizer) in self.summarizers.iter_mut().filter(|(_, summarizer)| summarizer.changed) {
            if now.mono < summarizer.not_before {
                wake = Some(wake.map_or(summarizer.not_before, |wake| wake.min(summarizer.not_before)));
                continue;
            }
            summarizer.changed = false;
            let boards = self.placements.iter().filter(|(placement, _)| placement.cluster == key.cluster);
            let boards: Vec<&Board> = boards
                .filter_map(|(_, placement)| Some(&placement.summaries.get(&key.name)?.board))
                .collect();
            let status = summarizer.status(&boards, now);
            if status != summarizer.written {
                let patch = all_members(&json!(status), &SUMMARIZER_MEMBERS);
                writes.push(StatusWrite { key: key.clone(), patch: json!({ "status": patch }) });
                summarizer.written = status;
                summarizer.not_before = now.mono + SPACING;
            }
        }
        wake
    }
}

impl Summary {
    fn new(rules: Arc<Rules>) -> Self {
        Self {
            board: Board::new(rules),
            not_before: Moment(0),
            there: false,
            written: None,
            since: BTreeMap::new(),
        }
    }

    /// Looks at a copy again, and says whether it counts otherwise than before.
    fn look(&mut self, id: &CopyId, copy: Option<&Copy>, edge: Option<&Edge>, now: u64) -> bool {
        let rules = Arc::clone(&self.board.rules);
        let judged = copy.zip(edge).and_then(|(copy, edge)| rules.judge(id, copy, edge, now));
        let before = edge
            .filter(|_| !self.since.is_empty())
            .and_then(|edge| self.since.remove(&(id.object.reference(), edge.facts.location.clone())));
        self.board.set(id, judged, before.unwrap_or(now))
    }
}

fn summarizers() -> KindId {
    KindId::new(group::EDGE, "summarizers")
}

/// The copies at one edge.
fn copies_at<'c>(copies: &'c BTreeMap<CopyId, Copy>, edge: &EdgeId) -> impl Iterator<Item = &'c CopyId> {
    let first = ObjectId { kind: KindId::default(), namespace: Name::EMPTY, name: Name::EMPTY };
    let from = CopyId { edge: edge.clone(), object: first };
    copies.range(from..).map(|(id, _)| id).take_while({
        let edge = edge.clone();
        move |id| id.edge == edge
    })
}

#[cfg(test)]
mod tests;
