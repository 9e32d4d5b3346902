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
//! (users and servers), `roles` and `process` (what is under test), `world` (the loop, the network and the oracle). What
//! other worlds share: [`answer`], [`Report`], [`Failure`] and [`player`].

pub mod answer;
pub mod orders;
pub mod player;
pub mod script;

mod claims;
mod definitions;
mod failure;
pub mod manners;
mod namespaces;
mod oracle;
mod process;
mod report;
mod roles;
mod servers;
mod tally;
#[cfg(test)]
mod tests;
mod truth;
mod waiting;
mod world;

pub use failure::{Failure, play_and_shrink};
pub use report::Report;

use crate::script::Script;

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

/// Plays the script of a seed.
pub fn run(seed: u64, options: &Options) -> Result<Report, Failure> {
    run_script(seed, &Script::draw(seed, options.steps), options)
}

/// Plays a script; by this number failures name it, and what the network does is drawn.
pub fn run_script(number: u64, script: &Script, options: &Options) -> Result<Report, Failure> {
    play_and_shrink(&script.lines, options.log, |lines, log| {
        let shorter = Script { lines: lines.to_vec(), ..script.clone() };
        world::play(number, &shorter, &Options { log, ..*options })
    })
}
