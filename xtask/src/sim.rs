//! `cargo xtask sim`: the simulated world, one script of edits and faults for each seed.

use std::time::Instant;

use mailboat_sim::Options;

use crate::verdict::Verdict;

/// Shown at the end of the help.
const EXAMPLES: &str = "\
Examples:
  cargo xtask sim --seeds 1000
  cargo xtask sim --seed 81";

/// So many seeds are played unless another number is asked for.
const SEEDS: u64 = 200;
/// After so many failing seeds the rest is not played.
const FAILURES_AT_MOST: usize = 5;

/// Run the simulated world with its faults.
///
/// Runs the engine in a simulated world, one script of edits and faults for each seed, and prints every failing
/// seed with its script, shrunk. `--seed` replays one.
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

/// Plays the seeds.
pub(crate) fn run(arguments: &Arguments) -> Verdict {
    let seeds = match arguments.seed {
        Some(seed) => seed..seed.saturating_add(1),
        None => 0..arguments.seeds.unwrap_or(SEEDS),
    };
    let began = Instant::now();
    let (mut passed, mut failed) = (0_u32, 0_usize);
    for seed in seeds {
        match mailboat_sim::run(seed, &Options::default()) {
            Ok(_) => passed += 1,
            Err(failure) => {
                failed += 1;
                println!("{failure}");
            }
        }
        if failed >= FAILURES_AT_MOST {
            break;
        }
    }
    let rate = f64::from(passed) / began.elapsed().as_secs_f64();
    println!("{passed} seeds passed, {failed} failed, {rate:.0} seeds/s");
    Verdict::of_failures(failed)
}
