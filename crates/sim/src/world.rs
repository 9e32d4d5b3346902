//! The loop: time, the network between the process and the servers, and its faults.

mod steps;
mod wire;

use std::collections::{BTreeMap, BTreeSet};

use mailboat_engine::engine::Ticket;
use mailboat_engine::look::Look;
use mailboat_engine::plan::ChangeId;
use mailboat_machinery::{Random as _, Seeded, Watch};
use mailboat_object::key::{ClusterId, Key, KindId};
use mailboat_object::wire::{Fault, Reply};
use mailboat_store::Turn;

use crate::oracle::{Open, Oracle};
use crate::process::{Process, Request};
use crate::script::{Script, What, Workspace};
use crate::servers::{BEGINNING, Servers};
use crate::tally::Confirmed;
use crate::{Failure, Options, Report};

/// Nothing that can happen in one run takes so many events: beyond, something goes round and round.
const EVENTS_AT_MOST: u64 = 60_000;
/// The same for each edge more.
const EVENTS_OF_AN_EDGE: u64 = 15_000;
/// After this long without an answer a call is given up, in milliseconds.
const CALL_TIMEOUT: u64 = 20_000;
/// A workspace that is being deleted is gone after so many milliseconds.
const WORKSPACE_ENDS_AFTER: u64 = 5_000;
/// What cannot go yet is looked at again after so many milliseconds: a namespace whose objects' kind is not served, and whatever
/// holds objects that wait for their copies.
const TRIED_AGAIN_AFTER: u64 = 5_000;
/// How often an idle watch is sent a bookmark, in milliseconds.
const BOOKMARK_EVERY: u64 = 60_000;
/// Longer than any watch, dead link and back-off last, one after the other: by then everything is as it will be.
const SETTLING: u64 = 20 * 60_000;
/// How often it is asked whether a restored server was noticed, in milliseconds.
const LOOK_ROUND_EVERY: u64 = 1_000;
/// Longer than any watch or back-off lasts: whatever would still be written is written by then.
const QUIET: u64 = 8 * 60_000;

enum Event {
    Step(usize),
    Arrive { generation: u64, request: Request, reply_is_lost: bool },
    Back { generation: u64, answer: Answer },
    Pump(u64),
    Bookmark(u64),
    EndStream(u64),
    Wake(u64),
    Start,
    WorkspaceGone(Workspace),
    Unbound(Workspace),
    Rebind(u8),
    EmptyNamespaces(ClusterId),
    Slice(u64, bool),
}

impl Event {
    /// Whether the process itself takes part in it.
    fn concerns_process(&self) -> bool {
        matches!(
            self,
            Self::Back { .. }
                | Self::Pump(_)
                | Self::Bookmark(_)
                | Self::EndStream(_)
                | Self::Wake(_)
                | Self::Slice(..)
        )
    }
}

enum Answer {
    Page(usize, Turn, Vec<u8>, Option<usize>),
    Opened(usize, Turn),
    Failed(usize, Turn, Fault),
    Ended(usize, Turn),
    Reply(Ticket, Result<Reply, Fault>),
    Looked(Ticket, Result<Look, Fault>),
    Configuration(u64, Result<Look, Fault>),
}

struct Stream {
    generation: u64,
    follower: usize,
    turn: Turn,
    server: usize,
    kind: KindId,
    watch: Watch,
    stalled: bool,
    pumping: bool,
}

/// The whole world.
pub(crate) struct World<'o> {
    options: &'o Options,
    shape: Script,
    edges: u8,
    seed: u64,
    now: u64,
    number: u64,
    heap: BTreeMap<(u64, u64), Event>,
    pub(crate) servers: Servers,
    pub(crate) process: Option<Process>,
    generation: u64,
    wakes_at: Option<u64>,
    streams: BTreeMap<u64, Stream>,
    partitioned: BTreeSet<usize>,
    noise: u64,
    stale: BTreeMap<usize, u8>,
    /// The process stands still until then.
    stands_until: u64,
    /// How much the process's clock has gained by jumps, in milliseconds.
    ahead: u64,
    /// Whether the export's endpoint slice has a URL.
    url: bool,
    /// The number of the state that the center was last restored to.
    restored_at: Option<usize>,
    /// When that was. All connections to it are newer.
    reconnected_at: u64,
    dice: Seeded,
    values: u64,
    /// What users confirmed. Nobody takes a word back: it must not hold of what comes later.
    words: BTreeSet<ChangeId>,
    /// What these words let go.
    confirmed: Confirmed,
    /// What was seen to be wrong in the midst of something.
    wrong: Option<String>,
    pub(crate) oracle: Oracle,
    pub(crate) report: Report,
    log: Vec<String>,
}

/// Plays a script to its end, and sees that all is well then.
pub(crate) fn play(seed: u64, script: &Script, options: &Options) -> Result<Report, Failure> {
    let mut played = 0;
    let mut world = World::new(seed, script, options);
    let failure = |step: usize, message: String, world: &mut World<'_>| {
        let log = std::mem::take(&mut world.log);
        Failure::new(seed, step, message, &script.lines, log)
    };
    for (index, (at, _)) in script.lines.iter().enumerate() {
        world.schedule_at(*at, Event::Step(index));
    }
    let end = script.lines.last().map_or(0, |(at, _)| *at) + 1;
    if let Err(message) = world.run_until(end, script, &mut played) {
        return Err(failure(played, message, &mut world));
    }
    world.calm();
    let calm = |world: &mut World<'_>, played: &mut usize| -> Result<(), String> {
        let limit = world.now + SETTLING;
        while !world.restoring_was_noticed() && world.now < limit {
            world.run_until(world.now + LOOK_ROUND_EVERY, script, played)?;
        }
        world.mend();
        world.run_until(world.now + SETTLING, script, played)?;
        world.converged()?;
        let writes = world.report.writes;
        world.run_until(world.now + QUIET, script, played)?;
        world.no_more_writes(writes, "a long quiet time")?;
        let open = world.open_slots();
        world.oracle.begin_to_note();
        world.crash(0);
        world.run_until(world.now + QUIET, script, played)?;
        world.only_written(&open)?;
        world.converged()
    };
    match calm(&mut world, &mut played) {
        Ok(()) => {
            let arrived = Oracle::arrived(&world.servers, world.edges);
            Ok(Report { arrived, ..world.report })
        }
        Err(message) => Err(failure(played, message, &mut world)),
    }
}

impl<'o> World<'o> {
    fn new(seed: u64, script: &Script, options: &'o Options) -> Self {
        let edges = script.edges;
        let mut world = Self {
            options,
            // What happens is told by the script that is played; the process knows the rest of it.
            shape: Script { lines: Vec::new(), ..script.clone() },
            edges,
            seed,
            now: 0,
            number: 0,
            heap: BTreeMap::new(),
            servers: Servers::new(script, seed),
            process: None,
            generation: 0,
            wakes_at: None,
            streams: BTreeMap::new(),
            partitioned: BTreeSet::new(),
            noise: 0,
            stale: BTreeMap::new(),
            stands_until: 0,
            ahead: 0,
            url: true,
            restored_at: None,
            reconnected_at: 0,
            dice: Seeded(seed ^ 0x00d1_ce00),
            values: 0,
            words: BTreeSet::new(),
            confirmed: Confirmed::new(),
            wrong: None,
            oracle: Oracle::default(),
            report: Report::default(),
            log: Vec::new(),
        };
        world.schedule_at(5, Event::Start);
        world
    }

    fn schedule_at(&mut self, at: u64, event: Event) {
        self.number += 1;
        self.heap.insert((at.max(self.now), self.number), event);
    }

    fn schedule(&mut self, after: u64, event: Event) {
        self.schedule_at(self.now + after, event);
    }

    /// What the process's clock shows. It goes as time does, and jumps ahead; no clock that it measures by ever goes back.
    fn clock(&self) -> u64 {
        self.now + self.ahead
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.dice.next() % below.max(1)
    }

    fn latency(&mut self) -> u64 {
        if self.noise > 0 && self.draw(20) == 0 { self.draw(5_000) } else { 1 + self.draw(40) }
    }

    fn run_until(&mut self, end: u64, script: &Script, played: &mut usize) -> Result<(), String> {
        while let Some(((at, number), event)) = self.heap.pop_first() {
            if at > end {
                self.heap.insert((at, number), event);
                break;
            }
            if at < self.stands_until && event.concerns_process() {
                // In the order in which it came.
                self.heap.insert((self.stands_until, number), event);
                continue;
            }
            self.now = at;
            self.servers.seconds = BEGINNING + at / 1_000;
            self.report.events += 1;
            if self.report.events > EVENTS_AT_MOST + EVENTS_OF_AN_EDGE * u64::from(self.edges) {
                return Err("the world does not come to rest".to_owned());
            }
            if let Event::Step(index) = event {
                *played = index + 1;
                if let Some((_, step)) = script.lines.get(index) {
                    self.trace(&step.to_string());
                    self.step(step);
                }
            } else {
                self.happen(event)?;
            }
            if let Some(wrong) = self.wrong.take() {
                return Err(wrong);
            }
        }
        self.now = end;
        Ok(())
    }

    /// Takes in what happens: two runs of one seed must agree in every word.
    fn trace(&mut self, text: &str) {
        self.log(|| text.to_owned());
        self.report.trace(text.bytes());
    }

    /// Writes down what happens, if that was asked for.
    fn log(&mut self, text: impl FnOnce() -> String) {
        if self.options.log {
            self.log.push(format!("{:>8} ms  {}", self.now, text()));
        }
    }

    fn happen(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Step(_) => {}
            Event::Start => self.start(),
            Event::Wake(generation) => {
                // One that was overtaken by an earlier one wakes nobody: each would ask for the next, and they would be more
                // and more.
                if generation == self.generation && self.wakes_at.is_some_and(|at| at <= self.now) {
                    self.wakes_at = None;
                    self.drive();
                }
            }
            Event::Arrive { generation, request, reply_is_lost } => {
                self.arrive(generation, request, reply_is_lost)?;
            }
            Event::Back { generation, answer } => {
                if generation == self.generation {
                    self.back(answer);
                    self.drive();
                }
            }
            Event::Pump(stream) => self.pump(stream),
            Event::Bookmark(stream) => self.bookmark(stream),
            Event::EndStream(stream) => self.end_stream(stream),
            Event::WorkspaceGone(workspace) => {
                if !self.servers.end_drop_workspace(workspace) {
                    self.schedule(TRIED_AGAIN_AFTER, Event::WorkspaceGone(workspace));
                }
                self.pump_all(0);
            }
            Event::Unbound(workspace) => {
                if !self.servers.undefine(workspace) {
                    self.schedule(TRIED_AGAIN_AFTER, Event::Unbound(workspace));
                }
                self.pump_all(0);
            }
            Event::Rebind(number) => {
                self.servers.rebind(number);
                self.pump_all(0);
            }
            Event::EmptyNamespaces(cluster) => {
                if self.servers.empty_namespaces(&cluster) {
                    self.pump_all(Servers::of(&cluster));
                } else {
                    self.schedule(TRIED_AGAIN_AFTER, Event::EmptyNamespaces(cluster));
                }
            }
            Event::Slice(generation, url) => {
                let now = self.clock();
                if let Some(process) = self.process.as_mut().filter(|_| generation == self.generation) {
                    process.slice(now, url);
                    self.drive();
                }
            }
        }
        Ok(())
    }

    fn start(&mut self) {
        self.report.starts += 1;
        self.oracle.process_began();
        let seed = self.seed ^ self.generation;
        self.process =
            Some(Process::start(self.clock(), &self.shape, self.url, seed, self.options.mutations));
        self.drive();
    }

    /// Ends the process and forgets all that it knew. What it has sent may still arrive.
    fn crash(&mut self, down_for: u64) {
        self.generation += 1;
        self.stands_until = 0;
        self.process = None;
        self.wakes_at = None;
        self.streams.clear();
        self.report.cut_short += self.oracle.process_ended();
        self.heap.retain(|_, event| !matches!(event, Event::Start));
        self.schedule(down_for, Event::Start);
    }

    /// Lets the process ask all that it wants to, and sees that it is woken in time.
    fn drive(&mut self) {
        let clock = self.clock();
        let Some(process) = &mut self.process else { return };
        let (requests, wake) = process.next(clock, &self.words);
        self.wrong = process.asked_first(&requests, &self.confirmed).err().or(self.wrong.take());
        for request in requests {
            self.send(request);
        }
        if let Some(wake) = wake {
            let at = wake.saturating_sub(self.ahead).max(self.now + 1);
            if self.wakes_at.is_none_or(|before| at < before) {
                self.wakes_at = Some(at);
                self.schedule_at(at, Event::Wake(self.generation));
            }
        }
    }

    /// The endpoint slice says where the view is, and the process hears of it a moment later.
    fn slice(&mut self, url: bool) {
        if std::mem::replace(&mut self.url, url) != url {
            let latency = self.latency();
            self.schedule(latency, Event::Slice(self.generation, url));
        }
    }

    /// Versions are all that tells a restored server: if it comes as far again before anybody looks, nobody can
    /// notice. So nobody edits the center until whoever follows it has seen it as it was restored.
    fn restoring_was_noticed(&self) -> bool {
        let Some(restored) = self.restored_at else { return true };
        let Some(process) = &self.process else { return false };
        let mut running = process.followers.iter().filter(|one| one.follower.is_running());
        // While the view has no URL, nobody follows what it shows.
        running.clone().any(|one| one.cluster.is_none() && one.server == 0)
            && running.all(|one| one.server != 0 || one.read >= restored)
    }

    /// All faults end. What is lost stays lost, and dead streams are found out by their time.
    fn calm(&mut self) {
        self.noise = 0;
        self.stale.clear();
        self.partitioned.clear();
        self.slice(true);
        self.servers.answer_claim(true);
    }

    /// Users define, bind and serve again what they had taken away. Where that cannot go because what is in it waits for its
    /// copies, they take our finalizer off.
    fn mend(&mut self) {
        for workspace in Workspace::all() {
            self.servers.wait_no_more(workspace);
            if let Workspace::Bound(number) = workspace {
                self.servers.rebind(number);
            }
            self.servers.redefine_kind(workspace);
            self.servers.serve(workspace, What::Boats, true);
            if workspace == Workspace::Workload {
                self.servers.serve(workspace, What::Placements, true);
            }
        }
        for server in 0..self.servers.machines.len() {
            self.pump_all(server);
        }
    }

    /// What a restart may decide about; see [`Oracle::open_slots`].
    fn open_slots(&self) -> Open {
        let process = self.process.as_ref();
        process.map_or(Open::All, |process| self.oracle.open_slots(&self.servers, process, self.edges))
    }

    fn only_written(&self, open: &Open) -> Result<(), String> {
        let last = self.oracle.last_call();
        let mut finalized = self.oracle.finalized(self.edges);
        let unopened = |(source, slots): &(&Key, Vec<Key>)| {
            !open.contains(source) && !slots.iter().any(|slot| open.contains(slot))
        };
        if let Some((source, _)) = finalized.find(unopened) {
            return Err(format!("a restart writes the finalizers of {source}; the last: {last}"));
        }
        let Some(written) = self.oracle.written().find(|slot| !open.contains(slot)) else { return Ok(()) };
        Err(format!("writes in a restart of {written}, which was as it should be; the last: {last}"))
    }

    fn converged(&self) -> Result<(), String> {
        let Some(process) = &self.process else { return Err("the process did not start again".to_owned()) };
        self.oracle.converged(&self.servers, process, self.edges)
    }

    fn no_more_writes(&self, before: u64, when: &str) -> Result<(), String> {
        let more = self.report.writes - before;
        if more == 0 {
            return Ok(());
        }
        let last = self.oracle.last_call();
        Err(format!("{more} writes in {when}, with nothing left to do; the last: {last}"))
    }
}
