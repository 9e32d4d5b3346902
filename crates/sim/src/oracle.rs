//! The oracle: whether what was done was right, and whether everything is as it should be at the end.

use std::collections::{BTreeMap, BTreeSet};

use mailboat_machinery::Stored;
use mailboat_object::key::Key;
use mailboat_object::wire::{Call, Verb};
use serde_json::Value;

use crate::Report;
use crate::manners::is_to_stay;
use crate::process::Process;
use crate::roles::{MANAGER, boats, edge, key, namespaces};
use crate::script::Workspace;
use crate::servers::{
    Done, Servers, is_marked, origin_of, prefix_of, source_key, standing, version_of_origin, workspace_of,
};
use crate::tally::withdraws;
use crate::truth::{Ending, Read};
use crate::waiting::{bears_finalizer, writes_finalizers_alone};

/// No source has had so many lives: a look that whoever made it does not remember.
const NOBODYS: u32 = u32::MAX;
/// So long a call may be under way.
const UNDER_WAY_SECONDS: u64 = 40;

/// What is noted along the way.
#[derive(Default)]
pub(crate) struct Oracle {
    /// For each source, which of its lives a fresh look found ended by its user, with nothing else amiss, and when.
    looks: BTreeMap<Key, (u32, u64)>,
    /// Foreign objects that a first delivery met and that were not let go yet.
    met: BTreeSet<Key>,
    /// Those of them of which the process did not learn that it met them.
    unaware: BTreeSet<Key>,
    last_call: String,
    /// The slots that were written or reported of since somebody began to note them.
    written: BTreeSet<Key>,
    /// The sources whose finalizers were written since then.
    finalized: BTreeSet<Key>,
    /// Some list of the center showed its past.
    past_shown: bool,
    /// The servers of which some list showed the past.
    pasts: BTreeSet<usize>,
    starts_since_restore: Option<u64>,
}

impl Oracle {
    /// A fresh look was answered.
    pub(crate) fn looked(&mut self, servers: &Servers, source: &Key) {
        let workspace = workspace_of(&source.cluster);
        if servers.truth.ending(workspace, &source.name) == Some(Ending::ByUser) {
            let life = servers.truth.life(workspace, &source.name);
            self.looks.insert(source.clone(), (life, servers.seconds));
        }
    }

    /// Whether a fresh look found the source of a copy deleted by its user: the last of that name, or one before it a
    /// moment ago, so that the call may have been under way when it came back.
    fn looked_fine(&self, servers: &Servers, source: &Key) -> bool {
        let now = servers.truth.life(workspace_of(&source.cluster), &source.name);
        let look = self.looks.get(source);
        look.is_some_and(|(life, at)| *life == now || servers.seconds - at < UNDER_WAY_SECONDS)
    }

    /// A call changed a server. Was it right?
    pub(crate) fn carried_out(
        &mut self,
        servers: &Servers,
        call: &Call,
        done: &Done,
        built_on: Read,
        report: &mut Report,
    ) -> Result<(), String> {
        self.last_call = format!("{:?} of {}", call.verb, call.key);
        if call.key.kind == namespaces() {
            return match (&call.verb, &done.before) {
                (Verb::Create { .. }, None) => Ok(()),
                (other, _) => Err(format!("a namespace was written: {other:?} of {}", call.key)),
            };
        }
        if writes_finalizers_alone(call) && Servers::of(&call.key.cluster) == 0 {
            self.finalized.insert(call.key.clone());
            return Ok(());
        }
        self.written.insert(slot_of(&call.key));
        if Servers::of(&call.key.cluster) == 0 {
            return match &call.verb {
                Verb::Merge { .. } if call.part == mailboat_object::wire::Part::Status => Ok(()),
                other => Err(format!("a source was written: {other:?} of {}", call.key)),
            };
        }
        let Some(before) = &done.before else { return Ok(()) };
        let foreign = servers.truth.foreign.get(&call.key).is_some_and(|known| known.uid == before.uid);
        if foreign {
            return self.foreign_written(servers, call, before, report);
        }
        if let Verb::Delete { uid, .. } = &call.verb {
            report.deletions += 1;
            if *uid != before.uid {
                return Err(format!("{} was deleted, but is not the object that was seen", call.key));
            }
            if is_to_stay(before) {
                return Err(format!("{} was deleted wrongly: it was to stay", call.key));
            }
            return self.withdrawn(servers, call, before, built_on, report);
        }
        // What is let go of is nobody's for good: it takes the same as a deletion.
        if is_marked(before) && servers.get(&call.key).is_some_and(|now| !is_marked(&now)) {
            report.let_go += 1;
            return self.withdrawn(servers, call, before, built_on, report);
        }
        Ok(())
    }

    /// An object that users made at an edge is met by a first delivery, which is let go at once, and by nothing
    /// else.
    fn foreign_written(
        &mut self,
        servers: &Servers,
        call: &Call,
        before: &Stored,
        report: &mut Report,
    ) -> Result<(), String> {
        if self.unaware.contains(&call.key) {
            return Ok(());
        }
        match &call.verb {
            Verb::Apply { force: false, .. } if self.met.remove(&call.key) => {
                foreign_untouched(servers, &call.key)
            }
            Verb::Apply { force: false, .. } => {
                self.met.insert(call.key.clone());
                Ok(())
            }
            // One that was ours and was let go of is still by our hand: the mark alone is taken back.
            Verb::Merge { .. } if withdraws(call).is_some() && servers.truth.was_let_go(&call.key) => {
                self.met.remove(&call.key);
                let now = servers.get(&call.key).filter(|now| now.uid == before.uid && !is_marked(now));
                now.map(|_| ()).ok_or_else(|| format!("{} is foreign and was not let go", call.key))
            }
            // A list of the past shows it with our mark, and nobody can tell that from a list of now: it is ours again.
            Verb::Apply { force: true, .. }
                if servers.truth.was_let_go(&call.key)
                    && self.pasts.contains(&Servers::of(&call.key.cluster)) =>
            {
                report.unknowable += 1;
                Ok(())
            }
            // It was asked for.
            Verb::Apply { force: true, .. } if servers.manners.adopts_from(workspace_at(&call.key)) => Ok(()),
            other => Err(format!("{} is foreign (uid {}) and was written: {other:?}", call.key, before.uid)),
        }
    }

    /// A copy was deleted, or let go of.
    fn withdrawn(
        &self,
        servers: &Servers,
        call: &Call,
        before: &Stored,
        built_on: Read,
        report: &mut Report,
    ) -> Result<(), String> {
        let what = if matches!(call.verb, Verb::Delete { .. }) { "deleted" } else { "let go of" };
        if !is_marked(before) {
            return Err(format!("{} was {what} without our mark", call.key));
        }
        let Some((workspace, name)) = origin_of(before) else {
            return Err(format!("{} was {what} with a mark that nobody can read", call.key));
        };
        let source = source_key(workspace, &name);
        if self.looked_fine(servers, &source) {
            return Ok(());
        }
        let edge = u8::try_from(Servers::of(&call.key.cluster) - 1).unwrap_or(u8::MAX);
        if servers.truth.deselected(built_on, workspace, &name, edge) {
            return Ok(());
        }
        if self.is_unknowable(servers, workspace, &name, before) {
            report.unknowable += 1;
            return Ok(());
        }
        let truth = servers.truth.sources.get(&(workspace, name));
        let look = self.looks.get(&source);
        Err(format!(
            "{} was {what} wrongly: it is selected, and its source {source} is {truth:?}; the last fine look: {look:?}; \
             built on {built_on:?} of {}",
            call.key,
            servers.truth.number()
        ))
    }

    /// What a restored backup lost, asked by a process that started after the restoring, at a version that lies
    /// beyond what the copy remembers: nothing that is left anywhere tells this from a deletion. Whoever restores
    /// a backup of etcd can see to it that versions jump ahead instead of going back.
    fn is_unknowable(&self, servers: &Servers, workspace: Workspace, name: &str, copy: &Stored) -> bool {
        let version = servers.machines.first().map(|center| center.version().0);
        let remembered = version_of_origin(copy);
        servers.truth.restored_from.is_some()
            && (self.starts_since_restore.is_some_and(|starts| starts > 0)
                || servers.truth.lost_before.contains(&(workspace, name.to_owned())))
            && servers.truth.ending(workspace, name) == Some(Ending::Lost)
            && version > remembered
    }

    /// The center was restored from a backup; what the first of several lost may be asked for after the second.
    pub(crate) fn restored(&mut self) {
        self.starts_since_restore.get_or_insert(0);
    }

    /// A list of a server showed its past.
    pub(crate) fn showed_its_past(&mut self, server: usize) {
        self.pasts.insert(server);
        if server == 0 {
            self.center_showed_its_past();
        }
    }

    /// A list of the center showed its past, as after a restored backup. Who saw this cannot tell from then on whether
    /// what is missing was deleted, and says so.
    fn center_showed_its_past(&mut self) {
        self.past_shown = true;
    }

    /// The reply to a call will not reach its process. How many foreign objects it now does not know of.
    pub(crate) fn reply_lost(&mut self, slot: &Key) -> u64 {
        let met = self.met.remove(slot);
        u64::from(met && self.unaware.insert(slot.clone()))
    }

    /// The process ended. How many foreign objects were not let go.
    pub(crate) fn process_ended(&mut self) -> u64 {
        let met = std::mem::take(&mut self.met);
        let count = met.len() as u64;
        self.unaware.extend(met);
        // What it has sent may still arrive.
        for (life, _) in self.looks.values_mut() {
            *life = NOBODYS;
        }
        count
    }

    /// A process began, which knows nothing of what was before.
    pub(crate) fn process_began(&mut self) {
        self.starts_since_restore = self.starts_since_restore.map(|starts| starts + 1);
    }

    /// The last call that changed anything, for people.
    pub(crate) fn last_call(&self) -> &str {
        &self.last_call
    }

    /// From now on it is noted which slots are written.
    pub(crate) fn begin_to_note(&mut self) {
        self.written.clear();
        self.finalized.clear();
    }

    /// The sources whose finalizers were written since then, each with its slots.
    pub(crate) fn finalized(&self, edges: u8) -> impl Iterator<Item = (&Key, Vec<Key>)> {
        self.finalized.iter().map(move |source| {
            let name = format!("{}{}", prefix_of(workspace_of(&source.cluster)), source.name);
            (source, (0..edges).map(|number| key(edge(number), boats(), &name)).collect())
        })
    }

    /// The slots that were written since then.
    pub(crate) fn written(&self) -> impl Iterator<Item = &Key> {
        self.written.iter()
    }

    /// The slots about which a new process may come to another decision than this one: those that wait for something
    /// that it does not remember, a server's future or an identity that was replaced, and those that the breaker holds
    /// (a new process does not know that what nobody claims was one placement's, and held as such: placements here bear
    /// no finalizer that would keep them until somebody confirms their end). All, if part of the configuration is in
    /// doubt.
    pub(crate) fn open_slots(&self, servers: &Servers, process: &Process, edges: u8) -> Open {
        if !process.configuration_is_complete() {
            return Open::All;
        }
        let forgets = in_the_past(servers) || servers.truth.identity > 0;
        // Versions are all that tells a restored server. Our own writes may bring it as far again as it was before anybody
        // who follows it has looked; then what the backup lost is as it was known, be it a source or a placement that was
        // changed since, and only a new process finds it otherwise.
        let unnoticed = in_the_past(servers) && !process.noticed_the_past;
        let sources = servers.truth.sources.iter();
        let slots = sources.flat_map(|((workspace, name), source)| {
            let lost = source.ended == Some(Ending::Lost);
            (0..edges).map(move |number| {
                let selected = servers.truth.selects(*workspace, name, number);
                let known = process.selects(&source_key(*workspace, name), number);
                let slot = key(edge(number), boats(), &format!("{}{name}", prefix_of(*workspace)));
                (slot, unnoticed && (lost || selected != known))
            })
        });
        let open = |(slot, lost): &(Key, bool)| match servers.get(slot) {
            Some(_) => *lost || process.says_why(slot) || self.unaware.contains(slot),
            None => forgets,
        };
        let slots = slots.filter(open).map(|(slot, _)| slot);
        // A source that is shown older than it was known: a new process takes it as it is, with the finalizer that it bears.
        let sources = servers.truth.sources.keys().map(|(workspace, name)| source_key(*workspace, name));
        Open::These(slots.chain(sources.filter(|source| process.saw_the_past_of(source))).collect())
    }

    /// How many copies stand at edges.
    pub(crate) fn arrived(servers: &Servers, edges: u8) -> u64 {
        let machines = (0..edges).zip(servers.machines.iter().skip(1));
        let copies = machines.flat_map(|(number, machine)| standing(machine, &edge(number)).into_values());
        copies.filter(|copy| is_marked(copy)).count() as u64
    }

    /// All faults are over and there was time enough: is everything where it belongs?
    pub(crate) fn converged(&self, servers: &Servers, process: &Process, edges: u8) -> Result<(), String> {
        for number in 0..edges {
            let Some(machine) = servers.machines.get(usize::from(number) + 1) else { continue };
            let standing = standing(machine, &edge(number));
            for (name, object) in &standing {
                let slot = key(edge(number), boats(), name);
                if self.unaware.contains(&slot) {
                    continue;
                }
                if servers.truth.foreign.contains_key(&slot) {
                    foreign_untouched(servers, &slot)?;
                } else {
                    self.copy_is_right(servers, process, number, &slot, object)?;
                }
            }
            for ((workspace, source), state) in &servers.truth.sources {
                let name = format!("{}{source}", prefix_of(*workspace));
                let of = servers.truth.workspace(*workspace);
                // Behind another identity than before are other objects, until somebody says that they are believed.
                let strange = matches!(workspace, Workspace::Bound(_)) && servers.truth.identity > 0;
                let wanted = state.ended.is_none()
                    && servers.truth.selects(*workspace, source, number)
                    && !of.dying
                    && !lost_its_configuration(servers)
                    && !strange;
                let slot = key(edge(number), boats(), &name);
                if wanted && !standing.contains_key(&name) && !in_the_past(servers) {
                    return Err(format!("{slot} is missing: {}", process.explain(&slot)));
                }
            }
        }
        self.nobody_waits_in_vain(servers, process, edges)
    }

    /// No source waits for copies that are gone, or bears our finalizer though nothing is made of it.
    fn nobody_waits_in_vain(&self, servers: &Servers, process: &Process, edges: u8) -> Result<(), String> {
        // What is in doubt goes on as it was known.
        if in_the_past(servers) || self.past_shown || !process.configuration_is_complete() {
            return Ok(());
        }
        for workspace in [Workspace::Workload, Workspace::Mailbox] {
            for source in servers.sources_in(workspace).iter().filter(|source| bears_finalizer(source)) {
                let name = &source.key.name;
                let copy = |number| key(edge(number), boats(), &format!("{}{name}", prefix_of(workspace)));
                let mut wanted = (0..edges).filter(|edge| servers.truth.selects(workspace, name, *edge));
                let waits = if source.is_deleting() {
                    (0..edges).any(|number| servers.get(&copy(number)).is_some())
                } else {
                    wanted.next().is_some()
                };
                if !waits {
                    return Err(format!("{} waits for nobody, and bears our finalizer", source.key));
                }
            }
        }
        Ok(())
    }

    /// A copy has its source's content, or a reason why it is still there.
    fn copy_is_right(
        &self,
        servers: &Servers,
        process: &Process,
        edge: u8,
        slot: &Key,
        copy: &Stored,
    ) -> Result<(), String> {
        let Some((workspace, name)) = origin_of(copy).filter(|_| is_marked(copy)) else {
            return Err(format!("{slot} is ours and bears no mark any more: {}", process.explain(slot)));
        };
        let explained = || {
            let source = source_key(workspace, &name);
            format!("{}; its source is believed to be {}", process.explain(slot), process.believes(&source))
        };
        let source = servers.get(&source_key(workspace, &name));
        let state = servers.truth.workspace(workspace);
        // What goes from a workspace that goes itself is in doubt, and goes on as it was: nobody can tell whether a part of the
        // configuration was deleted before that, by its user, and not looked at in time. So the copy follows its source, if
        // the configuration asked for it when it was last found to be whole, or since.
        let goes_on = lost_its_configuration(servers)
            && process.selects(&source_key(workspace, &name), edge)
            && servers.truth.selected_once(process.configured_since(), workspace, &name, edge);
        let selected = goes_on || servers.truth.selects(workspace, &name, edge);
        if let Some(source) = source.filter(|source| selected && !source.is_deleting()) {
            let strange = matches!(workspace, Workspace::Bound(_)) && servers.truth.identity > 0;
            let doubtful = in_the_past(servers) || strange || lost_its_configuration(servers);
            if doubtful && process.says_why(slot) {
                return Ok(());
            }
            let (is, wanted) = (&copy.body()["spec"], &source.body()["spec"]);
            let manner = servers.truth.asker(workspace, &name, edge).map(|asker| servers.manners.of(&asker));
            // Created once, it is its place's own.
            let own = manner.is_some_and(|manner| manner.creates_only);
            // What was taken over keeps what else was in it.
            let adopts = servers.manners.adopts_from(workspace);
            if !own && is != wanted && !(adopts && has_all(is, wanted)) {
                return Err(format!("{slot} is {is} instead of {wanted}: {}", explained()));
            }
            let reports = workspace != Workspace::Workload && !copy.body()["status"].is_null();
            if reports && source.body()["status"] != copy.body()["status"] {
                return Err(format!("the status of {slot} did not come back: {}", explained()));
            }
            return Ok(());
        }
        let lost = servers.truth.ending(workspace, &name) == Some(Ending::Lost);
        let saw_the_past = self.past_shown && process.saw_the_past_of(&source_key(workspace, &name));
        let doubtful =
            lost || state.dying || state.identity > 0 || saw_the_past || lost_its_configuration(servers);
        let held = process.holds_back(slot);
        let unsure = self.past_shown && process.saw_a_past_configuration();
        // Configuration or sources that a restored backup lost go on as they were known.
        if held || unsure || in_the_past(servers) || (doubtful && process.says_why(slot)) {
            return Ok(());
        }
        Err(format!("{slot} is still there, though nobody wants it: {}", explained()))
    }
}

/// The slots about which a new process may decide otherwise, and the sources.
pub(crate) enum Open {
    All,
    These(BTreeSet<Key>),
}

impl Open {
    pub(crate) fn contains(&self, slot: &Key) -> bool {
        match self {
            Self::All => true,
            Self::These(slots) => slots.contains(slot),
        }
    }
}

/// The workspace whose sources have their copies at a slot, by the name of that.
fn workspace_at(slot: &Key) -> Workspace {
    let all = Workspace::all().filter(|workspace| *workspace != Workspace::Workload);
    let mut prefixed = all.filter(|workspace| slot.name.starts_with(&prefix_of(*workspace)));
    prefixed.next().unwrap_or(Workspace::Workload)
}

/// Whether all that is wanted is there.
fn has_all(is: &Value, wanted: &Value) -> bool {
    let wanted = wanted.as_object().into_iter().flatten();
    wanted.into_iter().all(|(field, value)| is.get(field) == Some(value))
}

/// The slot that a call is about: a report is about that of its source.
fn slot_of(written: &Key) -> Key {
    if Servers::of(&written.cluster) > 0 {
        return written.clone();
    }
    key(edge(0), boats(), &format!("{}{}", prefix_of(workspace_of(&written.cluster)), written.name))
}

/// Whether the center was restored from a backup: what was known beyond it stays in doubt until somebody confirms
/// it, and nobody does here.
fn in_the_past(servers: &Servers) -> bool {
    servers.truth.restored_from.is_some()
}

/// Whether the workspace went in which all configuration is: a new process does not know any more what it asked for.
fn lost_its_configuration(servers: &Servers) -> bool {
    servers.truth.workspace(Workspace::Workload).dying
}

/// A foreign object is as its user left it, and nothing in it is ours.
fn foreign_untouched(servers: &Servers, slot: &Key) -> Result<(), String> {
    let Some(foreign) = servers.truth.foreign.get(slot) else { return Ok(()) };
    let Some(object) = servers.get(slot) else { return Err(format!("{slot} is foreign and is gone")) };
    let whole = object.to_value();
    let ours = whole["metadata"]["managedFields"]
        .as_array()
        .is_some_and(|entries| entries.iter().any(|entry| entry["manager"] == MANAGER));
    let as_left = object.uid == foreign.uid && object.body()["spec"] == foreign.spec;
    if as_left && !is_marked(&object) && (foreign.left || !ours) {
        return Ok(());
    }
    Err(format!("{slot} is foreign and was changed: {}", object.body()))
}
