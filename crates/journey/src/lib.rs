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
mod pause;
mod sea;
#[cfg(test)]
mod tests;
mod truth;
mod world;

pub use mailboat_sim::{Failure, Report};
pub use sea::Who;

use mailboat_sim::play_and_shrink;

use crate::script::Script;

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

/// Plays the script of a seed.
pub fn run(seed: u64, options: &Options) -> Result<Report, Failure> {
    let script = Script::draw(seed, options.steps);
    if !options.shrink {
        return world::play(seed, &script, options);
    }
    play_and_shrink(&script.lines, options.log, |lines, log| {
        let shorter = Script { lines: lines.to_vec(), ..script.clone() };
        world::play(seed, &shorter, &Options { log, ..*options })
    })
}
