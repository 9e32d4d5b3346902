//! The journey, simulated: the shipped processes, as they run, among simulated servers, users and faults.
//!
//! Where `mailboat-sim` asks of the engine whether it can be brought to delete what nobody asked to have deleted, this asks
//! it of what ships: the syncer's role and its process, with discovery, followers, fresh looks, records and reports. Only
//! the transports are simulated, and time: a paused clock that goes on when nobody has anything to do. So hours pass in a
//! second, in one thread, and a seed replays exactly.
//!
//! **Never:** ship; a socket, a real clock, an unseeded random number; a decision that belongs to a role.
//!
//! Reading order: [`script`] (what happens), `truth` (what is wanted, at every moment), `sea` (servers, users and
//! faults), `link` (the network), `crew` (what is under test), `oracle` (what is asked), `world` (the loop).

pub mod script;

mod base;
mod bell;
mod crew;
mod kinds;
mod link;
mod oracle;
mod sea;
#[cfg(test)]
mod tests;
mod truth;
mod world;

use std::fmt;

pub use sea::Who;

use crate::script::{Line, Script};

/// How a run is made.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many steps a script has, besides those that belong to them.
    pub steps: usize,
    /// Deletes are sent without preconditions: broken on purpose.
    pub deletes_without_preconditions: bool,
    /// Whether all that happens is written down.
    pub log: bool,
    /// Whether a failing script is shrunk.
    pub shrink: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { steps: 40, deletes_without_preconditions: false, log: false, shrink: true }
    }
}

/// What a run came to.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// A digest of all that happened: the same for the same seed.
    pub digest: u64,
    /// How many requests were made.
    pub requests: u64,
    /// How many calls changed a server.
    pub writes: u64,
    /// How many of them were deletions.
    pub deletions: u64,
    /// How many times a process was started.
    pub starts: u64,
    /// How many copies stood at edges in the end.
    pub arrived: u64,
    /// How many copies were deleted because configuration was lost while nobody ran, which nothing could tell.
    pub unknowable: u64,
}

impl Report {
    /// Adds what another run came to.
    pub fn add(&mut self, other: &Self) {
        self.digest ^= other.digest;
        self.requests += other.requests;
        self.writes += other.writes;
        self.deletions += other.deletions;
        self.starts += other.starts;
        self.arrived += other.arrived;
        self.unknowable += other.unknowable;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { digest, requests, writes, deletions, starts, arrived, unknowable } = self;
        write!(f, "{requests} requests, {writes} writes, {deletions} of them deletions, {starts} starts; ")?;
        write!(f, "{arrived} copies at edges in the end, {unknowable} unknowable; digest {digest:016x}")
    }
}

/// What went wrong, and how to see it again.
#[derive(Clone, Debug, thiserror::Error)]
#[error("journey {seed}, at line {step}: {message}\n{}", show(.script))]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// How many lines had been played.
    pub step: usize,
    /// What was seen.
    pub message: String,
    /// The script, shrunk as far as a bounded number of tries allowed.
    pub script: Vec<Line>,
    /// All that happened in it, if that was asked for.
    pub log: Vec<String>,
}

impl Failure {
    /// What sort of failure it is: its sentence without what differs from one object to the next.
    fn sort(&self) -> &'static str {
        let sorts = [
            "deleted wrongly",
            "is foreign",
            "is missing",
            "still there",
            "other content",
            "come back",
            "writes in",
        ];
        sorts.into_iter().find(|sort| self.message.contains(sort)).unwrap_or("another")
    }
}

/// Plays the script of a seed.
pub fn run(seed: u64, options: &Options) -> Result<Report, Failure> {
    let script = Script::draw(seed, options.steps);
    if !options.shrink {
        return world::play(seed, &script, options);
    }
    let quiet = Options { log: false, ..*options };
    let failure = match world::play(seed, &script, &quiet) {
        Ok(report) => return Ok(report),
        Err(failure) => failure,
    };
    let sort = failure.sort();
    let (lines, failure) = mailboat_sim::shrink(script.lines.clone(), failure, |lines| {
        let shorter = Script { lines: lines.to_vec(), ..script.clone() };
        // Another failure may be shorter, and is not the one that was found.
        world::play(seed, &shorter, &quiet).err().filter(|failure| failure.sort() == sort)
    });
    let script = Script { lines, ..script };
    Err(world::play(seed, &script, options).err().unwrap_or(failure))
}

fn show(script: &[Line]) -> String {
    let lines: Vec<String> = script.iter().map(|(at, step)| format!("  {at:>8} ms  {step}")).collect();
    lines.join("\n")
}
