//! The oracle: whether what a process did was right, and whether everything is as it should be at the end.

use std::collections::{BTreeMap, BTreeSet};

use mailboat_engine::mark::{MARK_ANNOTATION, OWNER_LABEL, StandardMarks};
use mailboat_engine::want::Origin;
use mailboat_machinery::{ListRequest, Machine, Stored};
use mailboat_object::key::{ClusterId, Key, KindId};
use mailboat_object::wire::{Call, Part, Verb};

use crate::kinds;
use crate::sea::{CENTER, Sea, Who};
use crate::truth::{Edge, Truth, Want};

/// At most so many Events follow from one status.
const EVENTS_OF_A_STATUS: u8 = 3;

/// What is noted along the way.
#[derive(Default)]
pub(crate) struct Oracle {
    /// Whose copies a process makes, and under which manager.
    owners: BTreeMap<Who, (String, String)>,
    /// Foreign objects that a first delivery met and that were not let go yet, and by whom.
    met: BTreeMap<Key, Who>,
    /// Those of them of which the process did not learn that it met them.
    unaware: BTreeSet<Key>,
    /// The center's writes into each mailbox: when, and of what time what they were built on is.
    told: BTreeMap<ClusterId, Vec<(u64, u64)>>,
    /// What the center rightly took out of mailboxes, by its uid.
    taken_out: BTreeSet<String>,
    /// How many writes there were that did not only say how things stand, the last of them, and which slots since somebody began to note.
    written: u64,
    last: String,
    noted: BTreeSet<Key>,
    /// Objects whose status was written, and how many Events may still follow from that.
    told_of: BTreeMap<(ClusterId, String), u8>,
    /// All that each process wrote, for people.
    wrote: BTreeMap<Who, Vec<String>>,
    /// Since the center's server was restored from a backup, these processes began.
    began: Option<BTreeSet<Who>>,
    /// How often something went that a restored backup lost, by a process that cannot know of it.
    unknowable: u64,
}

impl Oracle {
    /// A process started, whose copies bear this owner and are written under this manager.
    pub(crate) fn started(&mut self, who: Who, owner: String, manager: String) {
        self.owners.insert(who, (owner, manager));
        if let Some(began) = &mut self.began {
            began.insert(who);
        }
    }

    /// The center's server was restored from a backup. What was known beyond it is in doubt from then on, for good.
    pub(crate) fn restored(&mut self) {
        self.began.get_or_insert_default();
    }

    /// Whether the center's server was ever restored.
    pub(crate) fn saw_a_restoring(&self) -> bool {
        self.began.is_some()
    }

    /// How often something went that nobody can know to be lost.
    pub(crate) fn unknowable(&self) -> u64 {
        self.unknowable
    }

    /// Whether configuration of a process is lost.
    fn lacks_configuration(truth: &Truth, who: Who) -> bool {
        truth.configuration_lost(configured_in(truth, who).as_ref()).is_some()
    }

    /// A process ended. How many foreign objects it had met and did not let go any more.
    pub(crate) fn ended(&mut self, who: Who) -> u64 {
        let met: Vec<Key> =
            self.met.iter().filter(|(_, by)| **by == who).map(|(key, _)| key.clone()).collect();
        met.iter().map(|key| self.reply_lost(key)).sum()
    }

    /// The reply to a call will not reach its process. How many foreign objects it met by that and does not know of.
    pub(crate) fn reply_lost(&mut self, slot: &Key) -> u64 {
        let met = self.met.remove(slot).is_some();
        if met {
            self.unaware.insert(slot.clone());
        }
        u64::from(met)
    }

    /// How many writes there were, beside those that say how things stand.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// The last of them, for people.
    pub(crate) fn last(&self) -> &str {
        &self.last
    }

    /// From now on it is noted what is written.
    pub(crate) fn begin_to_note(&mut self) {
        self.noted.clear();
        self.told_of.clear();
    }

    /// What was written since then.
    pub(crate) fn noted(&self) -> impl Iterator<Item = &Key> {
        self.noted.iter()
    }

    /// All that a process wrote since this was last asked.
    #[cfg(test)]
    pub(crate) fn take_wrote(&mut self, who: Who) -> Vec<String> {
        self.wrote.remove(&who).unwrap_or_default()
    }

    fn note(&mut self, who: Who, call: &Call) {
        if cfg!(test) {
            let line = format!("{:?} of {} ({:?})", call.verb, call.key, call.part);
            self.wrote.entry(who).or_default().push(line);
        }
        // What is said of configuration and summed up changes with every beat that tells something else.
        let said = kinds::configures(&call.key.kind) || call.key.kind == kinds::edge("statussummaries");
        let said = call.part == Part::Status && said;
        if said {
            let of = (call.key.cluster.clone(), call.key.name.to_string());
            self.told_of.insert(of, EVENTS_OF_A_STATUS);
        }
        if !said && !self.follows_a_status(&call.key) {
            self.written += 1;
            self.last = format!("{:?} of {} by {who:?}", call.verb, call.key);
            self.noted.insert(call.key.clone());
        }
    }

    /// Whether it is an Event on an object whose status said something before.
    fn follows_a_status(&mut self, key: &Key) -> bool {
        let object = key.name.rsplit_once('.').filter(|_| key.kind == KindId::new("", "events"));
        let left = object.and_then(|(object, _)| {
            self.told_of.get_mut(&(key.cluster.clone(), object.to_owned())).filter(|left| **left > 0)
        });
        left.map(|left| *left -= 1).is_some()
    }

    /// A call changed a server. Was it right? If so, whether it was a deletion.
    pub(crate) fn judge(
        &mut self,
        truth: &Truth,
        machines: &[Machine],
        who: Who,
        call: &Call,
        before: Option<&Stored>,
        (now, built_on): (u64, u64),
    ) -> Result<bool, String> {
        self.note(who, call);
        let key = &call.key;
        if who == Who::Center && truth.edges.iter().any(|edge| edge.mailbox.as_ref() == Some(&key.cluster)) {
            self.told.entry(key.cluster.clone()).or_default().push((now, built_on));
        }
        // It may hold what others put into it, and nobody can be sure that it does not.
        if matches!(call.verb, Verb::Delete { .. }) && key.kind == kinds::namespaces() {
            return Err(format!("a namespace was deleted: {key} by {who:?}"));
        }
        let at_edge = truth.edges.iter().position(|edge| edge.cluster == key.cluster);
        if matches!(who, Who::Syncer(_)) && at_edge.is_none() && !kinds::comes_up(key) {
            return match &call.verb {
                Verb::Merge { .. } if call.part == Part::Status => Ok(false),
                // For what is brought up.
                Verb::Create { .. } if key.kind == kinds::namespaces() => Ok(false),
                other => Err(format!("a mailbox was written: {other:?} of {key} by {who:?}")),
            };
        }
        let Some(before) = before else { return Ok(false) };
        if truth.foreign.get(key).is_some_and(|(uid, _)| *uid == before.uid.to_string()) {
            let machine = at_edge.and_then(|edge| machines.get(edge + 1));
            let now = machine.and_then(|machine| machine.get(key).ok());
            return self.foreign_written(truth, who, call, now.as_deref()).map(|()| false);
        }
        let Verb::Delete { uid, .. } = &call.verb else { return Ok(false) };
        if *uid != before.uid {
            return Err(format!("{key} was deleted, but is not the object that was seen"));
        }
        self.deleted(truth, who, before, built_on)
    }

    /// An object that users made at an edge is met by a first delivery, which is let go at once, and by nothing else.
    fn foreign_written(
        &mut self,
        truth: &Truth,
        who: Who,
        call: &Call,
        now: Option<&Stored>,
    ) -> Result<(), String> {
        if self.unaware.contains(&call.key) {
            return Ok(());
        }
        match &call.verb {
            Verb::Apply { force: false, .. } if self.met.remove(&call.key).is_some() => {
                self.foreign_untouched(truth, &call.key, now)
            }
            Verb::Apply { force: false, .. } => {
                self.met.insert(call.key.clone(), who);
                Ok(())
            }
            other => Err(format!("{} is foreign and was written: {other:?}", call.key)),
        }
    }

    fn deleted(&mut self, truth: &Truth, who: Who, before: &Stored, built_on: u64) -> Result<bool, String> {
        let key = &before.key;
        if !matters(&key.kind) {
            return Ok(true);
        }
        let Some(source) = origin_of(before).filter(|_| self.is_ours(who, before)) else {
            return Err(format!("{key} was deleted by {who:?} without a mark of its own"));
        };
        let want = (source.clone(), key.cluster.clone());
        let right = truth.was_unwanted_since(built_on, &want)
            && (self.was_unwanted_at_its_source(truth, &source, built_on) || self.was_taken_out(before));
        if right {
            if who == Who::Center && kinds::is_cargo(&key.kind) {
                self.taken_out.insert(before.uid.to_string());
            }
            return Ok(true);
        }
        // Whoever began after the restoring remembers nothing beyond it; nor does whoever is told by such a one.
        let began = |who: Who| self.began.as_ref().is_some_and(|began| began.contains(&who));
        if (began(who) || began(Who::Center)) && truth.is_unrestored(&source) {
            self.unknowable += 1;
            return Ok(true);
        }
        let lost = if truth.is_lost(&source) { "lost" } else { "there" };
        Err(format!(
            "{key} was deleted wrongly by {who:?}: it is wanted, and its source {source} is {lost}; built on {built_on} ms"
        ))
    }

    /// Whether cargo that a syncer withdraws was unwanted where users keep it, at some moment that the center had not read
    /// past when it wrote what the syncer had read of it. True where there is no center: users keep it in the mailbox.
    fn was_unwanted_at_its_source(&self, truth: &Truth, source: &Key, built_on: u64) -> bool {
        let (Some(workload), Some(told)) = (&truth.workload, self.told.get(&source.cluster)) else {
            return true;
        };
        if !kinds::is_cargo(&source.kind) {
            return true;
        }
        let first = told.partition_point(|(at, _)| *at <= built_on).saturating_sub(1);
        let since = told.iter().skip(first).map(|(_, built_on)| *built_on).min().unwrap_or(built_on);
        let at_home = Key { cluster: workload.clone(), ..source.clone() };
        truth.was_unwanted_since(since.min(built_on), &(at_home, source.cluster.clone()))
    }

    /// Whether a copy at an edge was made from just the object that the center rightly took out of the mailbox. It goes
    /// whenever its syncer hears of it; what its user made since under the same name is another object, and none of it is
    /// in the mailbox.
    fn was_taken_out(&self, copy: &Stored) -> bool {
        let of = mark_of(copy).map(|origin| origin.uid.to_string());
        of.is_some_and(|uid| self.taken_out.contains(&uid))
    }

    fn is_ours(&self, who: Who, object: &Stored) -> bool {
        let owner = &object.metadata()["labels"][OWNER_LABEL];
        self.owners.get(&who).is_some_and(|(own, _)| *owner == **own)
    }

    /// A foreign object is as its user left it, and nothing in it is ours.
    fn foreign_untouched(&self, truth: &Truth, key: &Key, now: Option<&Stored>) -> Result<(), String> {
        let Some((uid, value)) = truth.foreign.get(key) else { return Ok(()) };
        let Some(object) = now else { return Err(format!("{key} is foreign and is gone")) };
        let whole = object.to_value();
        let entries = whole["metadata"]["managedFields"].as_array().into_iter().flatten();
        let mut ours = entries.filter(|entry| self.owners.values().any(|(_, own)| entry["manager"] == **own));
        let wanted = kinds::content(key, *value);
        let same = kinds::content_of(object.body()) == kinds::content_of(&wanted);
        if object.uid.to_string() == *uid && same && ours.next().is_none() && !is_marked(object) {
            return Ok(());
        }
        Err(format!("{key} is foreign and was changed: {}", object.body()))
    }

    /// All faults are over and there was time enough: is everything where it belongs? `why` says why a slot is as it is,
    /// and whether that is a reason for something to be left.
    pub(crate) fn converged(
        &self,
        sea: &Sea,
        why: impl Fn(Who, &Key) -> (String, bool),
    ) -> Result<(), String> {
        let wanted = sea.truth.wanted();
        // What is in doubt since a restoring goes on as it was known; that nothing of it is lost was seen along the way.
        let wanted = if self.saw_a_restoring() { std::sync::Arc::default() } else { wanted };
        for (source, cluster) in wanted.iter().filter(|(source, _)| kinds::is_cargo(&source.kind)) {
            let Some(there) = sea.get(source).filter(|there| !there.is_deleting()) else { continue };
            let slot = Key { cluster: cluster.clone(), ..source.clone() };
            let who = carrier(sea, &slot);
            let (said, held) = why(who, &slot);
            if sea.truth.is_dying(cluster) || sea.truth.is_dying(&source.cluster) {
                continue;
            }
            match sea.get(&slot) {
                _ if sea.truth.foreign.contains_key(&slot) || self.unaware.contains(&slot) => {}
                // What defines its kind goes with the workspace that it came from, and never arrived.
                None if !sea.serves(&slot)
                    && sea.truth.workload.iter().any(|home| sea.truth.is_dying(home)) => {}
                // Nobody brings what defines its kind, nor has it there by other means: it waits.
                None if !sea.serves(&slot) && !brings_definition(&wanted, &slot) => {}
                // What was lost may never have been read.
                None if Self::lacks_configuration(&sea.truth, who) => {}
                None => return Err(format!("{slot} is missing: {said}")),
                Some(copy) if kinds::content_of(copy.body()) != kinds::content_of(there.body()) => {
                    if !held && !Self::lacks_configuration(&sea.truth, who) {
                        return Err(format!("{slot} has other content than {source}: {said}"));
                    }
                }
                Some(copy) => {
                    let status = &copy.body()["status"];
                    let at_edge = sea.server_of(cluster) != CENTER;
                    let told = !Self::lacks_configuration(&sea.truth, who);
                    if at_edge && told && !status.is_null() && *status != there.body()["status"] {
                        return Err(format!("the status of {slot} did not come back: {said}"));
                    }
                }
            }
        }
        for (number, edge) in sea.truth.edges.iter().enumerate() {
            let clusters = [Some(&edge.cluster), edge.mailbox.as_ref()];
            for cluster in clusters.into_iter().flatten() {
                for kind in [kinds::boats(), kinds::configmaps()] {
                    for object in standing(sea, cluster, &kind) {
                        self.is_right(sea, number, &object, &why)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn is_right(
        &self,
        sea: &Sea,
        edge: usize,
        object: &Stored,
        why: &impl Fn(Who, &Key) -> (String, bool),
    ) -> Result<(), String> {
        let key = &object.key;
        if self.unaware.contains(key) {
            return Ok(());
        }
        if sea.truth.foreign.contains_key(key) {
            return self.foreign_untouched(&sea.truth, key, Some(object));
        }
        let who = carrier(sea, key);
        let Some(source) = origin_of(object).filter(|_| self.is_ours(who, object)) else { return Ok(()) };
        let wanted = sea.truth.wanted().contains(&(source.clone(), key.cluster.clone()));
        if wanted || object.is_deleting() || self.saw_a_restoring() {
            return Ok(());
        }
        let (said, held) = why(who, key);
        let doubtful = sea.truth.is_dying(&source.cluster) || sea.truth.is_dying(&key.cluster);
        // A placement that its user deleted just before the binding of its kind went asks whether that is meant.
        let asks = |placement: &Stored| {
            placement.is_deleting() && !placement.body()["status"]["awaitingConfirmation"].is_null()
        };
        let asked =
            standing(sea, &source.cluster, &kinds::edge("edgeplacements")).iter().any(|one| asks(one));
        if held || doubtful || asked || Self::lacks_configuration(&sea.truth, who) {
            return Ok(());
        }
        Err(format!("{key} is still there at edge {edge}, though nobody wants it (from {source}): {said}"))
    }
}

/// Whether what defines the kind of a slot is to stand in the same cluster.
fn brings_definition(wanted: &BTreeSet<Want>, slot: &Key) -> bool {
    let defined = slot.kind.to_string();
    wanted.iter().any(|(source, cluster)| {
        *cluster == slot.cluster
            && kinds::natured(&source.kind) == kinds::definitions()
            && *source.name == *defined
    })
}

/// Where the configuration of a process stands; none: in several workspaces.
fn configured_in(truth: &Truth, who: Who) -> Option<ClusterId> {
    match who {
        Who::Center => None,
        Who::Syncer(number) => truth.edges.get(usize::from(number))?.mailbox.clone(),
    }
}

/// How many copies stand at edges.
pub(crate) fn arrived(sea: &Sea) -> u64 {
    let cargo = |edge: &Edge| {
        let both = [kinds::boats(), kinds::configmaps()];
        both.iter().flat_map(|kind| standing(sea, &edge.cluster, kind)).filter(|one| is_marked(one)).count()
    };
    sea.truth.edges.iter().map(|edge| cargo(edge) as u64).sum()
}

/// Whose copy stands in a slot: at edges, and of what is brought up from there, the syncer's.
fn carrier(sea: &Sea, slot: &Key) -> Who {
    let here = |cluster: &ClusterId| *cluster == slot.cluster;
    let up = kinds::comes_up(slot);
    let its = |edge: &Edge| here(&edge.cluster) || (up && edge.mailbox.as_ref().is_some_and(here));
    let edge = sea.truth.edges.iter().position(its);
    edge.and_then(|edge| u8::try_from(edge).ok()).map_or(Who::Center, Who::Syncer)
}

/// Whether it matters to users if an object of a kind goes. Slices, summaries and what else is worked out from them is
/// worked out again.
fn matters(kind: &KindId) -> bool {
    let kind = kinds::natured(kind);
    kinds::is_cargo(&kind)
        || [kinds::namespaces(), kinds::definitions(), kinds::bindings(), kinds::workspaces()].contains(&kind)
}

pub(crate) fn is_marked(object: &Stored) -> bool {
    !object.metadata()["labels"][OWNER_LABEL].is_null()
}

/// What a mark says of its source.
fn mark_of(object: &Stored) -> Option<Origin> {
    StandardMarks::origin(object.metadata()["annotations"][MARK_ANNOTATION].as_str()?, &object.key)
}

/// The source that a mark names.
fn origin_of(object: &Stored) -> Option<Key> {
    mark_of(object).map(|origin| origin.key)
}

/// What stands in a cluster, if its kind is served.
fn standing(sea: &Sea, cluster: &ClusterId, kind: &KindId) -> Vec<std::sync::Arc<Stored>> {
    let request =
        ListRequest { cluster: Some(cluster.clone()), kind: kind.clone(), ..ListRequest::default() };
    let machine = sea.machines.get(sea.server_of(cluster));
    machine.and_then(|machine| machine.list(&request).ok()).map(|list| list.items).unwrap_or_default()
}
