//! The simulated world: real engine, followers and store, among simulated servers, users and faults.
//!
//! A seed gives a [`Script`](script::Script) of edits and faults. [`run`] plays it in one loop over a heap of
//! (time, number), in one thread: requests, answers, pages and watch lines travel with drawn latencies, and may
//! be lost, delayed, refused or cut; the process may end in the midst of calls and start again with nothing but
//! what stands on the servers. After every call that changes a server an oracle asks whether it was right, and
//! once all faults are over everything must converge and come to rest. A failing script is shrunk by leaving
//! lines out, and printed; its seed replays it exactly.
//!
//! **Never:** ship; a thread, a clock, an unseeded random number; a decision that belongs to the engine.
//!
//! Reading order: [`script`] (what happens), `truth` (what is true, and when a deletion is right), `servers`
//! (users and servers), `roles` and `process` (what is under test), `world` (the loop, the network and the oracle).

pub mod answer;
pub mod orders;
pub mod script;

mod definitions;
mod namespaces;
mod oracle;
mod process;
mod roles;
mod servers;
#[cfg(test)]
mod tests;
mod truth;
mod world;

use std::fmt;

use crate::script::{Line, Script};

/// How a run is made.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many steps a script has, besides those that belong to them (a partition heals, a backup is restored).
    pub steps: usize,
    /// What is broken on purpose.
    pub mutations: Mutations,
    /// Whether all that happens is written down.
    pub log: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { steps: 40, mutations: Mutations::default(), log: false }
    }
}

/// What can be broken on purpose, to see that the simulation notices. Nothing of this exists outside of it.
#[derive(Clone, Copy, Default, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own, and all are off but one")]
pub struct Mutations {
    /// A fresh look finds everything in order, whatever there is.
    pub look_always_fine: bool,
    /// A configuration that cannot be read is taken for an empty one.
    pub doubt_taken_for_empty: bool,
    /// The configuration counts as known before its first list is complete.
    pub configuration_known_early: bool,
    /// Deletes are sent without preconditions.
    pub deletes_without_preconditions: bool,
    /// What marks say about their sources is not remembered.
    pub marks_not_remembered: bool,
}

/// What a run came to.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// A digest of all that happened: the same for the same seed.
    pub digest: u64,
    /// How many events the loop took.
    pub events: u64,
    /// How many calls changed a server.
    pub writes: u64,
    /// How many of them were deletions.
    pub deletions: u64,
    /// How many times the process was started.
    pub starts: u64,
    /// How often a process ended between a first delivery that met a foreign object and its letting go. Until
    /// somebody looks, such an object bears our mark; what is done to it then is not counted as a failure.
    pub cut_short: u64,
    /// How many copies were deleted whose source a restored backup had lost, where nothing could tell this.
    pub unknowable: u64,
}

impl Report {
    /// Adds what another run came to.
    pub fn add(&mut self, other: &Self) {
        self.digest ^= other.digest;
        self.events += other.events;
        self.writes += other.writes;
        self.deletions += other.deletions;
        self.starts += other.starts;
        self.cut_short += other.cut_short;
        self.unknowable += other.unknowable;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { digest, events, writes, deletions, starts, cut_short, unknowable } = self;
        write!(f, "{events} events, {writes} writes, {deletions} of them deletions, {starts} starts; ")?;
        write!(f, "{cut_short} cut short, {unknowable} unknowable; digest {digest:016x}")
    }
}

/// What went wrong, and how to see it again.
#[derive(Clone, Debug, thiserror::Error)]
#[error("number {seed}, at line {step}: {message}\n{}", show(.script))]
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
        let sorts =
            ["deleted wrongly", "is foreign", "is missing", "still there", "instead of", "writes in", "rest"];
        sorts.into_iter().find(|sort| self.message.contains(sort)).unwrap_or("another")
    }
}

/// Shrinking plays at most so many scripts.
const SHRINK_TRIES: usize = 150;

/// Plays the script of a seed.
pub fn run(seed: u64, options: &Options) -> Result<Report, Failure> {
    play(seed, &Script::draw(seed, options.steps), options)
}

fn play(seed: u64, script: &Script, options: &Options) -> Result<Report, Failure> {
    let quiet = Options { log: false, ..*options };
    match world::play(seed, script, &quiet) {
        Ok(report) => Ok(report),
        Err(failure) => {
            let sort = failure.sort();
            let (lines, failure) = shrink(script.lines.clone(), failure, |lines| {
                let shorter = Script { lines: lines.to_vec(), ..script.clone() };
                // Another failure may be shorter, and is not the one that was found.
                world::play(seed, &shorter, &quiet).err().filter(|failure| failure.sort() == sort)
            });
            let script = Script { lines, ..script.clone() };
            Err(world::play(seed, &script, options).err().unwrap_or(failure))
        }
    }
}

/// Plays the schedule of this number among those in which everything disappears in some order.
pub fn run_order(number: usize, options: &Options) -> Option<Result<Report, Failure>> {
    let script = orders::all().into_iter().nth(number)?;
    Some(play(number as u64, &script, options))
}

/// Leaves out lines, many at a time and then fewer, as long as the same thing still goes wrong: `fails` plays what is left,
/// and gives the failure if it is of the same sort.
pub fn shrink<L: Clone, F>(
    mut lines: Vec<L>,
    mut failure: F,
    mut fails: impl FnMut(&[L]) -> Option<F>,
) -> (Vec<L>, F) {
    let mut size = lines.len() / 2;
    let mut tries = 0;
    while size > 0 {
        let mut from = 0;
        while from < lines.len() && tries < SHRINK_TRIES {
            let mut shorter = lines.clone();
            let end = (from + size).min(shorter.len());
            shorter.drain(from..end);
            tries += 1;
            match fails(&shorter) {
                Some(smaller) => (lines, failure) = (shorter, smaller),
                None => from += size,
            }
        }
        size /= 2;
    }
    (lines, failure)
}

fn show(script: &[Line]) -> String {
    let lines: Vec<String> = script.iter().map(|(at, step)| format!("  {at:>8} ms  {step}")).collect();
    lines.join("\n")
}
