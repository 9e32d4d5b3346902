//! The servers, the time, and the network's faults: one center with kcp's ways, and the edges.

mod shard;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mailboat_api::names::export;
use mailboat_hub::Workspaces;
use mailboat_machinery::{DeleteOptions, Machine, Moment, Patch, Random as _, Seeded, Status, Stored};
use mailboat_object::key::{ClusterId, Key, KindId, Version};
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Reply, Verb};
use mailboat_sim::answer;
use serde_json::Value;
use tokio::time::Instant;

use crate::bell::Bell;
use crate::kinds;
use crate::oracle::Oracle;
use crate::truth::{Meant, Truth};
use crate::{Options, Report};

pub(crate) use shard::SHARD_URL;

/// When everything begins, in Unix seconds.
pub(crate) const BEGINNING: u64 = 1_700_000_000;
/// The server of all workspaces; after it come the edges.
pub(crate) const CENTER: usize = 0;

/// All that is not a process, shared by all that are.
pub(crate) type Shared = Arc<Mutex<Sea>>;

/// A process of ours.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Who {
    /// The center.
    Center,
    /// The syncer of an edge.
    Syncer(u8),
}

/// What lies between processes and a server.
#[derive(Default)]
pub(crate) struct Water {
    /// No request reaches the server, and no answer leaves it.
    pub(crate) partitioned: bool,
    /// How often all streams were cut: those that were opened before are dead, and say so.
    pub(crate) cuts: u64,
    /// When the server was restored from a backup: all connections to it are newer.
    pub(crate) connected_at: Option<Instant>,
    /// How often all streams fell silent: those that were opened before are dead, and nobody is told.
    pub(crate) stalls: u64,
    /// So many lists more show the past.
    pub(crate) stale: u8,
    /// When each version was written.
    written: Vec<(Version, u64)>,
}

/// So often others write to the center's server after a backup: more than is written by anybody else in a journey.
const OTHERS_WRITE: u32 = 2_000;
/// A list that shows the past is so many versions old.
const STALE_BY: u64 = 3;

/// All that is not a process.
pub(crate) struct Sea {
    pub(crate) options: Options,
    pub(crate) kcp: Workspaces,
    pub(crate) machines: Vec<Machine>,
    pub(crate) waters: Vec<Water>,
    pub(crate) bells: Vec<Bell>,
    /// So many requests in a hundred go wrong.
    pub(crate) noise: u64,
    /// The server of a second shard, which is away.
    pub(crate) shard: Option<usize>,
    /// A workspace that answers the center with errors alone.
    pub(crate) silent: Option<ClusterId>,
    pub(crate) truth: Truth,
    pub(crate) oracle: Oracle,
    pub(crate) report: Report,
    /// How many seconds the processes' calendar is ahead of this world's.
    pub(crate) skew: i32,
    /// What went wrong first.
    pub(crate) failure: Option<String>,
    pub(crate) log: Vec<String>,
    /// How far each process has read of each kind in each place: the time of what it was last shown.
    reads: BTreeMap<(Who, KindId), BTreeMap<String, u64>>,
    /// When the first page was served of lists that are being read.
    listings: BTreeMap<(Who, KindId), BTreeMap<String, u64>>,
    /// The center's server as it was, and what was true then.
    backup: Option<(Machine, Truth)>,
    pub(crate) begun: Instant,
    chance: Seeded,
    dice: Seeded,
}

impl Sea {
    pub(crate) fn new(seed: u64, options: Options, kcp: Workspaces, center: Machine) -> Self {
        let mut sea = Self {
            options,
            kcp,
            machines: Vec::new(),
            waters: Vec::new(),
            bells: Vec::new(),
            noise: 0,
            shard: None,
            silent: None,
            skew: 0,
            truth: Truth::default(),
            oracle: Oracle::default(),
            report: Report::default(),
            failure: None,
            log: Vec::new(),
            reads: BTreeMap::new(),
            listings: BTreeMap::new(),
            backup: None,
            begun: Instant::now(),
            chance: Seeded(seed ^ 0x5e12_7e12),
            dice: Seeded(seed ^ 0x00d1_ce00),
        };
        sea.add(center);
        sea
    }

    /// One server more; its number.
    pub(crate) fn add(&mut self, machine: Machine) -> usize {
        self.machines.push(machine);
        self.waters.push(Water::default());
        self.bells.push(Bell::default());
        self.machines.len() - 1
    }

    /// Milliseconds since everything began.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The calendar of this world.
    pub(crate) fn seconds(&self) -> u64 {
        BEGINNING + self.now() / 1_000
    }

    /// What the processes take for the time of day.
    pub(crate) fn calendar(&self) -> u64 {
        self.seconds().saturating_add_signed(i64::from(self.skew))
    }

    pub(crate) fn draw(&mut self, below: u64) -> u64 {
        self.dice.next() % below.max(1)
    }

    /// How long something is under way.
    pub(crate) fn latency(&mut self) -> Duration {
        let slow = self.noise > 0 && self.draw(20) == 0;
        Duration::from_millis(if slow { self.draw(5_000) } else { 1 + self.draw(40) })
    }

    /// Which server has a cluster.
    pub(crate) fn server_of(&self, cluster: &ClusterId) -> usize {
        self.truth.edges.iter().position(|edge| edge.cluster == *cluster).map_or(CENTER, |edge| edge + 1)
    }

    /// What stands there now, if its kind is served.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Stored>> {
        self.machines.get(self.server_of(&key.cluster))?.get(key).ok()
    }

    /// Does something to a server, with all that its controllers do at once, and notes what became true by it.
    pub(crate) fn act<T>(
        &mut self,
        server: usize,
        meant: &Meant<'_>,
        act: impl FnOnce(&mut Machine, &mut Moment<'_>) -> Result<T, Status>,
    ) -> Result<T, Status> {
        self.act_as(server, meant, act).unwrap_or_else(|| Err(Status::unserved()))
    }

    fn act_as<T>(
        &mut self,
        server: usize,
        meant: &Meant<'_>,
        act: impl FnOnce(&mut Machine, &mut Moment<'_>) -> T,
    ) -> Option<T> {
        let now_seconds = self.seconds();
        let machine = self.machines.get_mut(server)?;
        let before = machine.version();
        let mut moment = Moment { now_seconds, random: &mut self.chance };
        let done = act(machine, &mut moment);
        let defined = machine.changed_since(before).filter(|change| change.key.kind == kinds::definitions());
        let clusters: Vec<ClusterId> = defined.map(|change| change.key.cluster.clone()).collect();
        for cluster in clusters {
            machine.follow_definitions(&cluster, &mut moment);
        }
        if server == CENTER {
            self.kcp.follow(machine, before, &mut moment);
        }
        if machine.version() != before {
            let now = self.now();
            if let Some(machine) = self.machines.get(server) {
                self.truth.learn(now, machine, before, meant);
            }
            if let (Some(machine), Some(water)) = (self.machines.get(server), self.waters.get_mut(server)) {
                water.written.push((machine.version(), now));
            }
            if let Some(bell) = self.bells.get(server) {
                bell.ring();
            }
        }
        Some(done)
    }

    /// What controllers do a moment later: namespaces, definitions, bindings and workspaces that are going are emptied.
    pub(crate) fn tidy(&mut self, server: usize) {
        let Some(machine) = self.machines.get(server) else { return };
        let clusters: Vec<ClusterId> = machine.clusters().cloned().collect();
        for cluster in clusters {
            if !self.truth.is_dying(&cluster) {
                // Whoever deletes a namespace means all that is in it.
                self.act_as(server, &Meant::All, |machine, moment| {
                    machine.empty_namespaces(&cluster, moment)
                });
            }
            self.act_as(server, &Meant::Nothing, |machine, moment| {
                machine.follow_definitions(&cluster, moment)
            });
        }
        if server == CENTER {
            self.tidy_workspaces();
        }
    }

    fn tidy_workspaces(&mut self) {
        let now_seconds = self.seconds();
        let Some(machine) = self.machines.get_mut(CENTER) else { return };
        let clusters: Vec<ClusterId> = machine.clusters().cloned().collect();
        let before = machine.version();
        let mut moment = Moment { now_seconds, random: &mut self.chance };
        for cluster in &clusters {
            self.kcp.tidy(machine, cluster, &mut moment);
        }
        self.kcp.follow(machine, before, &mut moment);
        if machine.version() != before {
            let now = self.now();
            if let Some(machine) = self.machines.get(CENTER) {
                self.truth.learn(now, machine, before, &Meant::Nothing);
            }
            if let Some(bell) = self.bells.first() {
                bell.ring();
            }
        }
    }

    /// Kinds are served by what is stored of their definitions.
    pub(crate) fn follow_definitions(&mut self, cluster: &ClusterId) {
        self.act_as(CENTER, &Meant::Nothing, |machine, moment| machine.follow_definitions(cluster, moment));
    }

    /// Takes a backup of the center's server, once every edge has its mailbox: a syncer keeps the credential that it was given.
    /// Then others write there. Versions are all that tells a restored server: if it came as far again before anybody looked,
    /// nobody could notice.
    pub(crate) fn back_up(&mut self) {
        if self.truth.edges.iter().any(|edge| edge.mailbox.is_none()) {
            return;
        }
        self.backup = self.machines.first().map(|center| (center.clone(), self.truth.clone()));
        let busy = kinds::key(&ClusterId::new("root"), kinds::namespaces(), "busy");
        let body =
            serde_json::json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "busy" } });
        self.put(&busy, body, &serde_json::json!({}));
        let by = answer::by("others", Part::Whole, false);
        self.act_as(CENTER, &Meant::Nothing, |machine, moment| {
            for number in 0..OTHERS_WRITE {
                let patch = serde_json::json!({ "metadata": { "labels": { "at": number.to_string() } } });
                machine.patch(&busy, Patch::Merge(&patch), &by, moment).ok();
            }
        });
    }

    /// The center's server is as it was when the last backup was taken, if one was.
    pub(crate) fn restore(&mut self) {
        let Some((mut center, truth)) = self.backup.clone() else { return };
        let (now, kcp) = (self.now(), self.kcp.alike());
        let mut moment = Moment { now_seconds: self.seconds(), random: &mut self.chance };
        if let Err(status) = kcp.begin(&mut center, &mut moment) {
            return self.fail(&format!("the center cannot be restored: {status}"));
        }
        let version = center.version();
        self.truth.restored(now, &truth);
        self.oracle.restored();
        self.kcp = kcp;
        if let (Some(slot), Some(water)) = (self.machines.first_mut(), self.waters.first_mut()) {
            *slot = center;
            water.written.retain(|(written, _)| *written <= version);
            water.cuts += 1;
            water.connected_at = Some(Instant::now());
        }
        if let Some(bell) = self.bells.first() {
            bell.ring();
        }
    }

    /// A user creates an object, or changes it if it is there. False if the server refuses.
    pub(crate) fn put(&mut self, key: &Key, body: Value, patch: &Value) -> bool {
        let server = self.server_of(&key.cluster);
        let there = self.get(key).is_some();
        let by = answer::by("alice", Part::Whole, false);
        let done = self.act(server, &Meant::This(key), |machine, moment| {
            if there {
                machine.patch(key, Patch::Merge(patch), &by, moment).map(drop)
            } else {
                machine.create(key, body, &by, moment).map(drop)
            }
        });
        self.note(|| format!("alice writes {key}: {}", outcome(&done)));
        done.is_ok()
    }

    /// Somebody changes the status of an object.
    pub(crate) fn put_status(&mut self, key: &Key, status: &Value) -> bool {
        let server = self.server_of(&key.cluster);
        let by = answer::by("controller", Part::Status, false);
        let patch = serde_json::json!({ "status": status });
        let done = self.act(server, &Meant::This(key), |machine, moment| {
            machine.patch(key, Patch::Merge(&patch), &by, moment).map(drop)
        });
        done.is_ok()
    }

    /// A user deletes an object. What goes with it is not what he meant.
    pub(crate) fn remove(&mut self, key: &Key) -> bool {
        let server = self.server_of(&key.cluster);
        let done = self.act(server, &Meant::This(key), |machine, moment| {
            machine.delete(key, &DeleteOptions::default(), moment).map(drop)
        });
        self.note(|| format!("alice deletes {key}: {}", outcome(&done)));
        done.is_ok()
    }

    /// Carries out a call of a process, and asks whether it was right.
    pub(crate) fn carry_out(&mut self, who: Who, call: &Call, built_on: u64) -> Result<Reply, Fault> {
        let server = self.server_of(&call.key.cluster);
        if server == CENTER && !self.knows(&call.key.cluster) {
            return Err(Fault::new(FaultKind::Forbidden, "access denied"));
        }
        let before = self.get(&call.key);
        let version = self.machines.get(server).map(Machine::version);
        let preconditions = !self.options.deletes_without_preconditions;
        let meant = Meant::This(&call.key);
        let answered = self
            .act_as(server, &meant, |machine, moment| answer::answer(machine, call, preconditions, moment));
        let answered = answered.unwrap_or_else(|| Err(answer::fault_of(&Status::unserved())));
        self.note(|| {
            let how = answered.as_ref().map_or_else(|fault| fault.text.clone(), |_| "done".to_owned());
            format!("{who:?} sends {} of {}: {how}{}", verb(call), call.key, said(call))
        });
        if answered.is_ok() && matches!(call.verb, Verb::Get) && kinds::configures(&call.key.kind) {
            self.truth.shows_one(&call.key);
        }
        if self.machines.get(server).map(Machine::version) != version {
            self.report.writes += 1;
            self.trace(&format!("{who:?} {} {}", verb(call), call.key));
            let judged = self.oracle.judge(
                &self.truth,
                &self.machines,
                who,
                call,
                before.as_deref(),
                (self.now(), built_on),
            );
            match judged {
                Ok(deletion) => self.report.deletions += u64::from(deletion),
                Err(wrong) => self.fail(&wrong),
            }
        }
        answered
    }

    /// Whether the kind of an object is served where it would stand.
    pub(crate) fn serves(&self, key: &Key) -> bool {
        let machine = self.machines.get(self.server_of(&key.cluster));
        machine.is_some_and(|machine| machine.kind(&key.cluster, &key.kind).is_some())
    }

    /// Whether a workspace is there at all.
    pub(crate) fn knows(&self, cluster: &ClusterId) -> bool {
        self.machines.first().is_some_and(|center| center.clusters().any(|one| one == cluster))
    }

    pub(crate) fn fail(&mut self, what: &str) {
        let at = self.now();
        self.failure.get_or_insert_with(|| format!("at {at} ms: {what}"));
    }

    /// What a process was shown of a kind somewhere, as of this time.
    pub(crate) fn reads(&mut self, who: Who, kind: &KindId, place: &str, at: u64) {
        if kinds::configures(kind) {
            // A view shows nothing of a workspace whose binding goes.
            let clusters = self.truth.configured().into_iter().filter(|cluster| {
                let binding = kinds::key(cluster, kinds::bindings(), export::BINDING_IN_MAILBOX);
                let bound = || self.get(&binding).is_some_and(|binding| !binding.is_deleting());
                *cluster.0 == *place || (place.starts_with("view") && bound())
            });
            let clusters: BTreeSet<ClusterId> = clusters.collect();
            self.truth.shows(kind, &clusters);
        }
        self.reads.entry((who, kind.clone())).or_default().insert(place.to_owned(), at);
    }

    /// The past that the next list shows to whoever has read that kind before, if it is to show one, and of when it is.
    /// Nobody can tell a first list that is old from a true one, and real servers give none to those who do not ask for it.
    pub(crate) fn past(
        &mut self,
        who: Who,
        kind: &KindId,
        place: &str,
        server: usize,
    ) -> Option<(Version, u64)> {
        let read = self.reads.get(&(who, kind.clone())).is_some_and(|places| places.contains_key(place));
        let water = self.waters.get_mut(server).filter(|water| read && water.stale > 0)?;
        water.stale -= 1;
        let version = Version(self.machines.get(server)?.version().0.saturating_sub(STALE_BY).max(1));
        let at = water.written.partition_point(|(written, _)| *written <= version);
        Some((version, at.checked_sub(1).and_then(|at| water.written.get(at)).map_or(0, |(_, at)| *at)))
    }

    /// A process was given a page of a list. It knows no more than before until it has the last one, and then what was so
    /// when the first one was served.
    pub(crate) fn reads_page(
        &mut self,
        who: Who,
        kind: &KindId,
        place: &str,
        first: Option<u64>,
        more: bool,
    ) {
        let listing = self.listings.entry((who, kind.clone())).or_default();
        if let Some(at) = first {
            listing.insert(place.to_owned(), at);
        }
        if !more && let Some(at) = listing.remove(place) {
            self.reads(who, kind, place, at);
        }
    }

    /// A process starts, whose copies bear this owner and are written under this manager.
    pub(crate) fn starts(&mut self, who: Who, owner: String, manager: &str) {
        self.report.starts += 1;
        self.oracle.started(who, owner, manager.to_owned());
    }

    /// A process ended, and knows nothing any more.
    pub(crate) fn forgets(&mut self, who: Who) {
        self.reads.retain(|(reader, _), _| *reader != who);
        self.listings.retain(|(reader, _), _| *reader != who);
        self.report.cut_short += self.oracle.ended(who);
    }

    /// The oldest time of which a decision of a process about a kind may be: of what it was last shown of this kind, and
    /// of all that configures it.
    pub(crate) fn built_on(&self, who: Who, kind: &KindId) -> u64 {
        let natured = kinds::natured(kind);
        let matters = |one: &KindId| {
            kinds::configures(one) || kinds::natured(one) == natured || *one == kinds::bindings()
        };
        let read = self.reads.iter().filter(|((reader, one), _)| *reader == who && matters(one));
        read.flat_map(|(_, places)| places.values()).copied().min().unwrap_or_else(|| self.now())
    }

    /// Takes in what happens: two runs of one seed must agree in every word.
    pub(crate) fn trace(&mut self, text: &str) {
        let at = self.now();
        self.report.trace(text.bytes().chain(at.to_be_bytes()));
    }

    /// Writes down what happens, if that was asked for.
    pub(crate) fn note(&mut self, text: impl FnOnce() -> String) {
        if self.options.log {
            let at = self.now();
            self.log.push(format!("{at:>8} ms  {}", text()));
        }
    }
}

fn outcome(done: &Result<(), Status>) -> String {
    done.as_ref().map_or_else(ToString::to_string, |()| "done".to_owned())
}

/// What a call does, in a word.
pub(crate) fn verb(call: &Call) -> String {
    let debug = format!("{:?}", call.verb);
    let word = debug.split([' ', '(', '{']).next().unwrap_or_default().to_owned();
    if call.dry_run { format!("{word} (dry run)") } else { word }
}

/// Locks the sea. Nobody panics while holding it.
pub(crate) fn lock(sea: &Shared) -> std::sync::MutexGuard<'_, Sea> {
    sea.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What a summary is changed to, for people who wonder why.
fn said(call: &Call) -> String {
    match &call.verb {
        Verb::Merge { body, .. } if call.key.kind == kinds::edge("statussummaries") => {
            format!(" {}", String::from_utf8_lossy(body))
        }
        _ => String::new(),
    }
}
