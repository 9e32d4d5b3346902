//! `cargo xtask sim`: the simulated world. The crate it would run is not here yet.

use anyhow::Result;

use crate::verdict::{Verdict, refusal};

/// Shown at the end of the help.
const EXAMPLES: &str = "\
Example:
  cargo xtask sim --seeds 1000";

/// Run the simulated world with its faults (not here yet).
///
/// Will run the engine in a simulated world, one script of edits and faults for each seed, and print the seed of
/// every failure. The simulator does not exist yet: the command says so and exits with 2.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// How many seeds to run
    #[arg(long, value_name = "N", conflicts_with = "seed")]
    seeds: Option<u64>,
    /// The one seed to replay
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
}

/// Says that there is no simulator.
pub(crate) fn run(_: &Arguments) -> Result<Verdict> {
    Err(refusal(
        "the simulator does not exist yet, so there is nothing to run; `cargo xtask test` runs what there is",
    ))
}
