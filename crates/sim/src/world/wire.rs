//! What lies between the process and the servers: calls, answers and streams, which come late, twice or never.

use std::time::Duration;

use mailboat_engine::look::{Look, Serving, Sighted};
use mailboat_machinery::{ListRequest, ListVersion, Watch, WatchEvent, WatchRequest, WatchStart};
use mailboat_object::key::{KindId, Version};
use mailboat_object::wire::{Fault, FaultKind};
use mailboat_store::{Fetch, Input, Turn};

use super::{Answer, BOOKMARK_EVERY, CALL_TIMEOUT, Event, Stream, World};
use crate::answer::{fault_of, page};
use crate::process::Request;
use crate::roles::{placements, workload};
use crate::servers::{Servers, workspace_of};

impl World<'_> {
    pub(super) fn send(&mut self, request: Request) {
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

    pub(super) fn server_of(&self, request: &Request) -> usize {
        match request {
            Request::Fetch(index, ..) => {
                let one = self.process.as_ref().and_then(|process| process.followers.get(*index));
                one.map_or(0, |one| one.server)
            }
            Request::Call(_, call, _) => Servers::of(&call.key.cluster),
            Request::Look(_, source) => Servers::of(&source.cluster),
            Request::LookAtConfiguration(_) => 0,
        }
    }

    pub(super) fn refuse(&mut self, after: u64, request: &Request, fault: &Fault) {
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
    pub(super) fn arrive(
        &mut self,
        generation: u64,
        request: Request,
        reply_is_lost: bool,
    ) -> Result<(), String> {
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
                    self.servers.changes_hands(&call, &done);
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
                let fine = Look { object: Sighted::Missing, workspace_lives: true, kind: Serving::Itself };
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

    pub(super) fn fetch(&mut self, index: usize, turn: Turn, fetch: Fetch) -> Answer {
        let found = self.process.as_mut().and_then(|process| process.followers.get_mut(index));
        let Some(one) = found else { return Answer::Ended(index, turn) };
        let (cluster, kind, server) = (one.cluster.clone(), one.kind.clone(), one.server);
        let labels = self.servers.shown_of(server, &kind);
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
                let request =
                    WatchRequest { cluster, kind: kind.clone(), labels, start, ..WatchRequest::default() };
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
            self.oracle.showed_its_past(server);
        }
        // All pages of a list show what its first one does.
        let process = self.process.as_mut();
        if let Some(one) = process.and_then(|process| process.followers.get_mut(index)).filter(|_| !probes) {
            if continue_token.is_some() {
                shows = one.list_shows;
            }
            one.list_shows = shows;
        }
        let request = ListRequest {
            cluster,
            kind,
            labels,
            limit: Some(limit),
            continue_token,
            version,
            ..ListRequest::default()
        };
        match machine.list(&request) {
            Err(status) => Answer::Failed(index, turn, fault_of(&status)),
            Ok(list) => Answer::Page(index, turn, page(&list), shows),
        }
    }

    pub(super) fn open(
        &mut self,
        follower: usize,
        turn: Turn,
        server: usize,
        kind: KindId,
        watch: Watch,
        seconds: u32,
    ) {
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
    pub(super) fn pump_all(&mut self, server: usize) {
        let streams: Vec<u64> =
            self.streams.iter().filter(|(_, stream)| stream.server == server).map(|(id, _)| *id).collect();
        for id in streams {
            self.pump_later(id);
        }
    }

    pub(super) fn pump_later(&mut self, id: u64) {
        // The answer that opens a stream goes before its lines.
        let latency = 45 + self.latency();
        if let Some(stream) = self.streams.get_mut(&id)
            && !std::mem::replace(&mut stream.pumping, true)
        {
            self.schedule(latency, Event::Pump(id));
        }
    }

    pub(super) fn pump(&mut self, id: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.pumping = false;
        let Some(machine) = self.servers.machines.get(stream.server) else { return };
        if stream.stalled || stream.generation != self.generation || self.partitioned.contains(&stream.server)
        {
            return;
        }
        let events = machine.poll(&mut stream.watch, usize::MAX);
        self.lines(id, &events);
    }

    pub(super) fn bookmark(&mut self, id: u64) {
        let Some(stream) = self.streams.get(&id) else { return };
        if !stream.stalled && !self.partitioned.contains(&stream.server) {
            let machine = self.servers.machines.get(stream.server);
            // A watch that is still to be told something gets none, and has read nothing by it: else the process would be
            // taken to know what it decides without.
            if let Some(bookmark) = machine.and_then(|machine| machine.bookmark(&stream.watch)) {
                self.lines(id, &[bookmark]);
            }
        }
        self.schedule(BOOKMARK_EVERY, Event::Bookmark(id));
    }

    pub(super) fn lines(&mut self, id: u64, events: &[WatchEvent]) {
        let clock = self.clock();
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

    pub(super) fn end_stream(&mut self, id: u64) {
        if let Some(stream) = self.streams.remove(&id)
            && !stream.stalled
            && !self.partitioned.contains(&stream.server)
        {
            self.back(Answer::Ended(stream.follower, stream.turn));
            self.drive();
        }
    }

    /// Cuts a server's streams, and tells so.
    pub(super) fn cut(&mut self, server: usize) {
        let streams: Vec<u64> =
            self.streams.iter().filter(|(_, stream)| stream.server == server).map(|(id, _)| *id).collect();
        for id in streams {
            let Some(stream) = self.streams.remove(&id) else { continue };
            let fault = Fault::new(FaultKind::Retry(None), "connection reset");
            let answer = Answer::Failed(stream.follower, stream.turn, fault);
            self.schedule(0, Event::Back { generation: self.generation, answer });
        }
    }

    pub(super) fn stall(&mut self, server: usize) {
        for stream in self.streams.values_mut().filter(|stream| stream.server == server) {
            stream.stalled = true;
        }
    }

    pub(super) fn back(&mut self, answer: Answer) {
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
        let clock = self.clock();
        let Some(process) = &mut self.process else { return };
        match answer {
            Answer::Page(index, turn, body, shows) => {
                process.feed(clock, index, turn, Input::Page(&body), shows);
            }
            Answer::Opened(index, turn) => {
                // A restored server has none of the connections that it had before.
                let one = process.followers.get(index);
                let new_connection =
                    one.is_some_and(|one| one.asked_at < self.reconnected_at && one.server == 0);
                process.feed(clock, index, turn, Input::Opened { new_connection }, None);
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
}
