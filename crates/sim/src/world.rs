//! The loop: time, the network between the process and the servers, and its faults.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mailboat_engine::engine::Ticket;
use mailboat_engine::look::{Look, Serving};
use mailboat_machinery::{
    ListRequest, ListVersion, Random as _, Seeded, Watch, WatchEvent, WatchRequest, WatchStart,
};
use mailboat_object::key::{KindId, Version};
use mailboat_object::wire::{Fault, FaultKind, Reply};
use mailboat_store::{Fetch, Input, Turn};
use serde_json::json;

use crate::oracle::{Open, Oracle};
use crate::process::{Process, Request};
use crate::roles::{placements, workload};
use crate::script::{Script, Step, What, Workspace};
use crate::servers::{BEGINNING, Servers, fault_of, workspace_of};
use crate::{Failure, Options, Report};

/// Nothing that can happen in one run takes so many events: beyond, something goes round and round.
const EVENTS_AT_MOST: u64 = 60_000;
/// The same for each edge more.
const EVENTS_OF_AN_EDGE: u64 = 15_000;
/// After this long without an answer a call is given up, in milliseconds.
const CALL_TIMEOUT: u64 = 20_000;
/// A workspace that is being deleted is gone after so many milliseconds.
const WORKSPACE_ENDS_AFTER: u64 = 5_000;
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
    Slice(u64, bool),
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
    /// How far the process's clock is ahead.
    ahead: u64,
    /// Whether the export's endpoint slice has a URL.
    url: bool,
    /// The number of the state that the center was last restored to.
    restored_at: Option<usize>,
    dice: Seeded,
    values: u64,
    pub(crate) oracle: Oracle,
    pub(crate) report: Report,
    log: Vec<String>,
}

/// Plays a script to its end, and sees that all is well then.
pub(crate) fn play(seed: u64, script: &Script, options: &Options) -> Result<Report, Failure> {
    let mut played = 0;
    let mut world = World::new(seed, script.edges, options);
    let failure = |step: usize, message: String, world: &mut World<'_>| {
        let log = std::mem::take(&mut world.log);
        Failure { seed, step, message, script: script.lines.clone(), log }
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
        Ok(()) => Ok(world.report),
        Err(message) => Err(failure(played, message, &mut world)),
    }
}

impl<'o> World<'o> {
    fn new(seed: u64, edges: u8, options: &'o Options) -> Self {
        let mut world = Self {
            options,
            edges,
            seed,
            now: 0,
            number: 0,
            heap: BTreeMap::new(),
            servers: Servers::new(edges, seed),
            process: None,
            generation: 0,
            wakes_at: None,
            streams: BTreeMap::new(),
            partitioned: BTreeSet::new(),
            noise: 0,
            stale: BTreeMap::new(),
            ahead: 0,
            url: true,
            restored_at: None,
            dice: Seeded(seed ^ 0x00d1_ce00),
            values: 0,
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
        }
        self.now = end;
        Ok(())
    }

    /// FNV-1a over all that happens: two runs of one seed must agree in every word.
    fn trace(&mut self, text: &str) {
        self.log(|| text.to_owned());
        let mut digest = self.report.digest ^ 0xcbf2_9ce4_8422_2325;
        for byte in text.bytes() {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.report.digest = digest;
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
                if generation == self.generation {
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
                self.servers.end_drop_workspace(workspace);
                self.pump_all(0);
            }
            Event::Unbound(workspace) => {
                self.servers.undefine(workspace);
                self.pump_all(0);
            }
            Event::Slice(generation, url) => {
                let clock = self.now + self.ahead;
                if let Some(process) = self.process.as_mut().filter(|_| generation == self.generation) {
                    process.slice(clock, url);
                    self.drive();
                }
            }
        }
        Ok(())
    }

    fn start(&mut self) {
        self.report.starts += 1;
        let seed = self.seed ^ self.generation;
        let clock = self.now + self.ahead;
        self.process = Some(Process::start(clock, self.edges, self.url, seed, self.options.mutations));
        self.drive();
    }

    /// Ends the process and forgets all that it knew. What it has sent may still arrive.
    fn crash(&mut self, down_for: u64) {
        self.generation += 1;
        self.process = None;
        self.wakes_at = None;
        self.streams.clear();
        self.report.cut_short += self.oracle.process_ended();
        self.heap.retain(|_, event| !matches!(event, Event::Start));
        self.schedule(down_for, Event::Start);
    }

    /// Lets the process ask all that it wants to, and sees that it is woken in time.
    fn drive(&mut self) {
        let clock = self.now + self.ahead;
        let Some(process) = &mut self.process else { return };
        let (requests, wake) = process.next(clock);
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

    fn send(&mut self, request: Request) {
        let generation = self.generation;
        let server = self.server_of(&request);
        if self.partitioned.contains(&server) {
            let silent = self.draw(2) == 0;
            let after = if silent { CALL_TIMEOUT } else { 5 };
            return self.refuse(after, &request, &Fault::new(FaultKind::Away, "no route to host"));
        }
        let mut reply_is_lost = false;
        if self.draw(100) < self.noise {
            let latency = self.latency();
            match self.draw(5) {
                0 => {
                    let fault = Fault::new(FaultKind::Retry(None), "connection reset");
                    return self.refuse(latency, &request, &fault);
                }
                1 => reply_is_lost = true,
                2 if matches!(request, Request::Call(..)) => {
                    let fault = Fault::new(FaultKind::Conflict, "the object has been modified");
                    return self.refuse(latency, &request, &fault);
                }
                3 => {
                    let after = Some(Duration::from_secs(1));
                    return self.refuse(latency, &request, &Fault::new(FaultKind::Retry(after), "too many"));
                }
                _ => {
                    let fault = Fault::new(FaultKind::Retry(None), "internal error");
                    return self.refuse(latency, &request, &fault);
                }
            }
        }
        let latency = self.latency();
        self.schedule(latency, Event::Arrive { generation, request, reply_is_lost });
    }

    fn server_of(&self, request: &Request) -> usize {
        match request {
            Request::Fetch(index, ..) => {
                let one = self.process.as_ref().and_then(|process| process.followers.get(*index));
                one.and_then(|one| one.cluster.as_ref()).map_or(0, Servers::of)
            }
            Request::Call(_, call, _) => Servers::of(&call.key.cluster),
            Request::Look(_, source) => Servers::of(&source.cluster),
            Request::LookAtConfiguration(_) => 0,
        }
    }

    fn refuse(&mut self, after: u64, request: &Request, fault: &Fault) {
        let fault = fault.clone();
        let answer = match request {
            Request::Fetch(index, turn, _) => Answer::Failed(*index, *turn, fault),
            Request::Call(ticket, ..) => Answer::Reply(*ticket, Err(fault)),
            Request::Look(ticket, _) => Answer::Looked(*ticket, Err(fault)),
            Request::LookAtConfiguration(revision) => Answer::Configuration(*revision, Err(fault)),
        };
        let generation = self.generation;
        self.schedule(after, Event::Back { generation, answer });
    }

    /// A request reaches its server, whether or not whoever sent it still lives.
    fn arrive(&mut self, generation: u64, request: Request, reply_is_lost: bool) -> Result<(), String> {
        let lives = generation == self.generation;
        let timed_out = reply_is_lost.then(|| request.clone());
        let answer = match request {
            Request::Fetch(..) if !lives => return Ok(()),
            Request::Fetch(index, turn, fetch) => self.fetch(index, turn, fetch),
            Request::Call(ticket, call, built_on) => {
                let preconditions = !self.options.mutations.deletes_without_preconditions;
                let done = self.servers.call(&call, preconditions);
                if done.changed {
                    self.report.writes += 1;
                    self.trace(&format!("{:?} of {}", call.verb, call.key));
                    self.oracle.carried_out(&self.servers, &call, &done, built_on, &mut self.report)?;
                    if reply_is_lost || !lives {
                        self.report.cut_short += self.oracle.reply_lost(&call.key);
                    }
                    self.pump_all(Servers::of(&call.key.cluster));
                }
                Answer::Reply(ticket, done.answer)
            }
            Request::Look(ticket, source) => {
                let found = self.servers.look(&source);
                self.oracle.looked(&self.servers, &source);
                let fine = Look { object_missing: true, workspace_lives: true, kind: Serving::Itself };
                Answer::Looked(ticket, if self.options.mutations.look_always_fine { Ok(fine) } else { found })
            }
            Request::LookAtConfiguration(revision) => {
                let any = crate::roles::key(workload(), placements(), "any");
                Answer::Configuration(revision, self.servers.look(&any))
            }
        };
        if let Some(request) = timed_out {
            self.refuse(CALL_TIMEOUT, &request, &Fault::new(FaultKind::Retry(None), "timed out"));
        } else if lives {
            let latency = self.latency();
            self.schedule(latency, Event::Back { generation, answer });
        }
        Ok(())
    }

    fn fetch(&mut self, index: usize, turn: Turn, fetch: Fetch) -> Answer {
        let found = self.process.as_mut().and_then(|process| process.followers.get_mut(index));
        let Some(one) = found else { return Answer::Ended(index, turn) };
        let (cluster, kind) = (one.cluster.clone(), one.kind.clone());
        let server = cluster.as_ref().map_or(0, Servers::of);
        let first = one.lists == 0;
        let gone = |cluster| server == 0 && self.servers.truth.workspace(workspace_of(cluster)).gone;
        if cluster.as_ref().is_some_and(gone) {
            return Answer::Failed(index, turn, Fault::new(FaultKind::Forbidden, "access denied"));
        }
        let Some(machine) = self.servers.machines.get(server) else { return Answer::Ended(index, turn) };
        let probes = matches!(fetch, Fetch::Probe { .. });
        let (limit, continue_token) = match fetch {
            Fetch::List { limit, continue_token, .. } => (limit as usize, continue_token),
            Fetch::Probe { .. } => (1, None),
            Fetch::Watch { from, timeout_seconds, .. } => {
                let start = WatchStart::After(from);
                let request = WatchRequest { cluster, kind: kind.clone(), start, ..WatchRequest::default() };
                return match machine.watch(request) {
                    Ok(watch) => {
                        self.open(index, turn, server, kind, watch, timeout_seconds);
                        Answer::Opened(index, turn)
                    }
                    Err(status) => Answer::Failed(index, turn, fault_of(&status)),
                };
            }
            Fetch::WaitUntil(_) | Fetch::Stopped => return Answer::Ended(index, turn),
        };
        one.lists += 1;
        let mut version = ListVersion::Latest;
        // A probe shows how far the server is, and nothing of its objects.
        let mut shows = (!probes).then(|| self.servers.truth.number());
        // Nobody can tell a stale first list of the configuration from a true one, and real servers give none
        // to whoever does not ask for it.
        let may_be_stale = continue_token.is_none() && !(first && kind == placements());
        if may_be_stale && let Some(left) = self.stale.get_mut(&server).filter(|left| **left > 0) {
            *left -= 1;
            version = ListVersion::Exact(Version(machine.version().0.saturating_sub(3).max(1)));
            shows = shows.map(|_| 1);
            if server == 0 {
                self.oracle.center_showed_its_past();
            }
        }
        let request = ListRequest {
            cluster,
            kind,
            limit: Some(limit),
            continue_token,
            version,
            ..ListRequest::default()
        };
        match machine.list(&request) {
            Err(status) => Answer::Failed(index, turn, fault_of(&status)),
            Ok(list) => {
                let items: Vec<_> = list.items.iter().map(|object| object.to_value()).collect();
                let mut metadata = json!({ "resourceVersion": list.version.to_string() });
                if let Some(token) = list.continue_token {
                    metadata["continue"] = token.into();
                }
                let page = json!({ "kind": "List", "metadata": metadata, "items": items });
                Answer::Page(index, turn, page.to_string().into_bytes(), shows)
            }
        }
    }

    fn open(&mut self, follower: usize, turn: Turn, server: usize, kind: KindId, watch: Watch, seconds: u32) {
        self.number += 1;
        let id = self.number;
        let generation = self.generation;
        let stream =
            Stream { generation, follower, turn, server, kind, watch, stalled: false, pumping: false };
        self.streams.insert(id, stream);
        self.schedule(u64::from(seconds) * 1_000, Event::EndStream(id));
        self.schedule(BOOKMARK_EVERY, Event::Bookmark(id));
        self.pump_later(id);
    }

    /// Something happened on a server: its streams will tell.
    fn pump_all(&mut self, server: usize) {
        let streams: Vec<u64> =
            self.streams.iter().filter(|(_, stream)| stream.server == server).map(|(id, _)| *id).collect();
        for id in streams {
            self.pump_later(id);
        }
    }

    fn pump_later(&mut self, id: u64) {
        // The answer that opens a stream goes before its lines.
        let latency = 45 + self.latency();
        if let Some(stream) = self.streams.get_mut(&id)
            && !std::mem::replace(&mut stream.pumping, true)
        {
            self.schedule(latency, Event::Pump(id));
        }
    }

    fn pump(&mut self, id: u64) {
        let clock = self.now + self.ahead;
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.pumping = false;
        let Some(machine) = self.servers.machines.get(stream.server) else { return };
        if stream.stalled || stream.generation != self.generation || self.partitioned.contains(&stream.server)
        {
            return;
        }
        let events = machine.poll(&mut stream.watch, usize::MAX);
        self.lines(id, clock, &events);
    }

    fn bookmark(&mut self, id: u64) {
        let clock = self.now + self.ahead;
        let Some(stream) = self.streams.get(&id) else { return };
        if !stream.stalled && !self.partitioned.contains(&stream.server) {
            let machine = self.servers.machines.get(stream.server);
            let bookmark = machine.and_then(|machine| machine.bookmark(&stream.watch));
            self.lines(id, clock, bookmark.as_slice());
        }
        self.schedule(BOOKMARK_EVERY, Event::Bookmark(id));
    }

    fn lines(&mut self, id: u64, clock: u64, events: &[WatchEvent]) {
        let Some(stream) = self.streams.get(&id) else { return };
        let (follower, turn) = (stream.follower, stream.turn);
        let kind = crate::servers::definition_of(&stream.kind);
        let shows = self.servers.truth.number();
        let Some(process) = &mut self.process else { return };
        let mut lines = Vec::new();
        for event in events {
            let line = event.to_json(&kind);
            if self.options.log {
                lines.push(line.clone());
            }
            process.feed(clock, follower, turn, Input::Line(line.as_bytes()), None);
        }
        if let Some(one) = process.followers.get_mut(follower)
            && one.follower.turn() == turn
        {
            one.read = shows;
        } else {
            self.streams.remove(&id);
        }
        for line in lines {
            self.log(|| format!("follower {follower} reads {line}"));
        }
        self.drive();
    }

    fn end_stream(&mut self, id: u64) {
        if let Some(stream) = self.streams.remove(&id)
            && !stream.stalled
            && !self.partitioned.contains(&stream.server)
        {
            self.back(Answer::Ended(stream.follower, stream.turn));
            self.drive();
        }
    }

    /// Cuts a server's streams, and tells so.
    fn cut(&mut self, server: usize) {
        let streams: Vec<u64> =
            self.streams.iter().filter(|(_, stream)| stream.server == server).map(|(id, _)| *id).collect();
        for id in streams {
            let Some(stream) = self.streams.remove(&id) else { continue };
            let fault = Fault::new(FaultKind::Retry(None), "connection reset");
            self.back(Answer::Failed(stream.follower, stream.turn, fault));
        }
        self.drive();
    }

    fn stall(&mut self, server: usize) {
        for stream in self.streams.values_mut().filter(|stream| stream.server == server) {
            stream.stalled = true;
        }
    }

    fn back(&mut self, answer: Answer) {
        self.log(|| match &answer {
            Answer::Page(follower, _, body, shows) => {
                format!("follower {follower} gets a page of {} bytes that shows state {shows:?}", body.len())
            }
            Answer::Opened(follower, _) => format!("follower {follower} watches"),
            Answer::Failed(follower, _, fault) => format!("follower {follower}: {}", fault.text),
            Answer::Ended(follower, _) => format!("follower {follower}: its watch ended"),
            Answer::Reply(ticket, Ok(_)) => format!("call {} is answered", ticket.0),
            Answer::Reply(ticket, Err(fault)) => format!("call {} fails: {}", ticket.0, fault.text),
            Answer::Looked(ticket, found) => format!("look {} finds {found:?}", ticket.0),
            Answer::Configuration(revision, found) => format!("configuration {revision}: {found:?}"),
        });
        let clock = self.now + self.ahead;
        let Some(process) = &mut self.process else { return };
        match answer {
            Answer::Page(index, turn, body, shows) => {
                process.feed(clock, index, turn, Input::Page(&body), shows);
            }
            Answer::Opened(index, turn) => {
                process.feed(clock, index, turn, Input::Opened { new_connection: false }, None);
            }
            Answer::Failed(index, turn, fault) => {
                process.feed(clock, index, turn, Input::Fault(&fault), None);
            }
            Answer::Ended(index, turn) => process.feed(clock, index, turn, Input::Ended, None),
            Answer::Reply(ticket, reply) => {
                if let Some(request) = process.done(clock, ticket, reply) {
                    self.send(request);
                }
            }
            Answer::Looked(ticket, found) => process.looked(clock, ticket, found),
            Answer::Configuration(revision, found) => {
                process.looked_at_configuration(clock, revision, found);
            }
        }
    }

    fn step(&mut self, step: &Step) {
        self.values += 1;
        let value = self.values;
        let dying = |workspace| self.servers.truth.workspace(workspace).dying;
        match step {
            // Nobody edits what is being deleted.
            Step::Put(workspace, ..)
            | Step::Delete(workspace, ..)
            | Step::Relabel(workspace, ..)
            | Step::Serve(workspace, _)
            | Step::Unserve(workspace, _)
            | Step::DropKind(workspace)
            | Step::ChangeKind(workspace)
            | Step::DropWorkspace(workspace)
                if dying(*workspace) => {}
            // A view does not say of one workspace that a kind is not served there.
            Step::Serve(Workspace::Bound(_), _) | Step::Unserve(Workspace::Bound(_), _) => {}
            Step::Place(..) | Step::Displace(_) | Step::Rename(..) if dying(Workspace::Workload) => {}
            _ if step.edits_center() && !self.restoring_was_noticed() => {}
            Step::Put(workspace, name, label) => self.servers.put(*workspace, *name, *label, value),
            Step::Delete(workspace, name) => self.servers.delete(*workspace, *name),
            Step::Relabel(workspace, name, label) => self.servers.relabel(*workspace, *name, *label),
            Step::EdgePut(edge, name) => self.servers.edge_put(*edge, name, value),
            Step::EdgeDelete(edge, name) => self.servers.edge_delete(*edge, name),
            Step::EdgeStatus(edge, name, status) => self.servers.edge_status(*edge, name, *status),
            Step::Place(name, label, bits) => {
                let edges: Vec<u8> = (0..self.edges).filter(|edge| bits & (1 << edge) != 0).collect();
                self.servers.place(&format!("p{name}"), &format!("l{label}"), &edges);
            }
            Step::Displace(name) => self.servers.displace(&format!("p{name}")),
            Step::Rename(from, to) => self.servers.rename(&format!("p{from}"), &format!("p{to}")),
            Step::Partition(server) => {
                self.partitioned.insert(usize::from(*server));
            }
            Step::Heal(server) => {
                self.partitioned.remove(&usize::from(*server));
                if self.draw(2) == 0 {
                    self.stall(usize::from(*server));
                }
            }
            Step::Crash(down_for) => self.crash(u64::from(*down_for)),
            Step::CloseStreams(server) => self.cut(usize::from(*server)),
            Step::StallStreams(server) => self.stall(usize::from(*server)),
            Step::Compact(server) => {
                if let Some(machine) = self.servers.machines.get_mut(usize::from(*server)) {
                    machine.compact(machine.version());
                }
            }
            Step::Stale(server, lists) => {
                self.stale.insert(usize::from(*server), *lists);
            }
            Step::Serve(workspace, what) => self.servers.serve(*workspace, *what, true),
            Step::Unserve(workspace, what) => {
                self.servers.serve(*workspace, *what, false);
                self.cut(0);
            }
            Step::DropKind(workspace) => {
                self.servers.drop_kind(*workspace);
                let after = self.draw(2_000);
                self.schedule(after, Event::Unbound(*workspace));
            }
            Step::ReplaceIdentity => {
                self.servers.replace_identity();
                self.cut(0);
            }
            Step::Rebind(number) => self.servers.rebind(*number),
            Step::LoseUrl => self.slice(false),
            Step::FindUrl => self.slice(true),
            Step::ChangeKind(workspace) => self.servers.change_definition(*workspace, value),
            Step::RedefineKind(workspace) => self.servers.redefine_kind(*workspace),
            Step::DropWorkspace(workspace) => {
                self.servers.begin_drop_workspace(*workspace);
                self.schedule(WORKSPACE_ENDS_AFTER, Event::WorkspaceGone(*workspace));
            }
            Step::Backup => self.servers.back_up(),
            Step::Restore => {
                if self.servers.restore() {
                    self.oracle.restored();
                    self.restored_at = Some(self.servers.truth.number());
                    for workspace in Workspace::all() {
                        self.schedule(WORKSPACE_ENDS_AFTER, Event::WorkspaceGone(workspace));
                    }
                    self.cut(0);
                }
            }
            Step::Jump(milliseconds) => {
                self.ahead += u64::from(*milliseconds);
                self.drive();
            }
            Step::Noise(percent) => self.noise = u64::from(*percent),
        }
        for server in 0..self.servers.machines.len() {
            self.pump_all(server);
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
        process.followers.iter().filter(|one| one.follower.is_running()).all(|one| {
            one.cluster.as_ref().is_some_and(|cluster| Servers::of(cluster) != 0) || one.read >= restored
        })
    }

    /// All faults end. What is lost stays lost, and dead streams are found out by their time.
    fn calm(&mut self) {
        self.noise = 0;
        self.stale.clear();
        self.partitioned.clear();
        self.slice(true);
    }

    /// Users define, bind and serve again what they had taken away.
    fn mend(&mut self) {
        for workspace in Workspace::all() {
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
        let Some(written) = self.oracle.written().find(|slot| !open.contains(slot)) else { return Ok(()) };
        let last = self.oracle.last_call();
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
