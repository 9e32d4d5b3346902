//! `cargo xtask sim`: the simulated world, one script of edits and faults for each seed.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::{Job, tail};
use crate::report::Part;
use crate::repository::Repository;
use crate::suite::Run;
use crate::verdict::Verdict;

/// Shown at the end of the help.
const EXAMPLES: &str = "\
Examples:
  cargo xtask sim                          a quick look
  cargo xtask sim --seeds 1000000          as long as you like
  cargo xtask sim --seeds 1000 --from 5000 other seeds
  cargo xtask sim --seed 81                one again, exactly as it was
  cargo xtask sim --orders                 everything disappears, in every order
  cargo xtask sim --journeys 500           the shipped center and syncers in place of the engine alone
  cargo xtask sim --journey 7              one of these again";

/// The package whose program plays the seeds, and that program.
const PACKAGE: &str = "mailboat-sim";
const PROGRAM: &str = "simulate";
/// The package whose program plays journeys, and that program. It is made of all that ships, and quick enough as the tests
/// build it anyway.
const JOURNEY_PACKAGE: &str = "mailboat-journey";
const JOURNEY_PROGRAM: &str = "journey";
/// So many schedules are a part of `cargo xtask test`.
const SEEDS_TESTED: u64 = 2_000;
/// So many seeds are played unless another number is asked for.
const SEEDS: u64 = 200;
/// How long a release build may take on a fresh machine.
const BUILD_LIMIT: Duration = Duration::from_mins(30);
/// How long the schedules that are a part of the tests may take on a busy machine.
const TEST_LIMIT: Duration = Duration::from_mins(10);
/// How much of a failed program's log is shown.
const LINES_SHOWN: usize = 200;

/// Run the simulated world with its faults.
///
/// Runs the engine in a simulated world, one script of edits and faults for each seed, on all cores and as a release
/// build; or, with `--journeys`, all that ships. Prints every failing seed with its script, shrunk. `--seed` replays one,
/// exactly.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// How many seeds to run
    #[arg(long, value_name = "N", conflicts_with = "seed")]
    seeds: Option<u64>,
    /// The first seed
    #[arg(long, value_name = "F", conflicts_with = "seed")]
    from: Option<u64>,
    /// The one seed to replay
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Instead of seeds, every order in which all that an object rests on can disappear
    #[arg(long, conflicts_with_all = ["seed", "seeds", "from", "order"])]
    orders: bool,
    /// The one such order to replay
    #[arg(long, value_name = "O", conflicts_with_all = ["seed", "seeds", "from"])]
    order: Option<u64>,
    /// Instead of seeds, so many journeys: the shipped center and syncers among simulated servers
    #[arg(long, value_name = "J", conflicts_with_all = ["seed", "seeds", "orders", "order", "journey"])]
    journeys: Option<u64>,
    /// The one journey to replay
    #[arg(long, value_name = "S", conflicts_with_all = ["seed", "seeds", "from", "orders", "order"])]
    journey: Option<u64>,
    /// How many threads play; one for each core, if not said
    #[arg(long, value_name = "T")]
    threads: Option<u64>,
}

/// Plays the seeds.
pub(crate) fn run(arguments: &Arguments, repository: &Repository) -> Result<Verdict> {
    let run = Run::begin(repository, "sim")?;
    if arguments.journeys.is_some() || arguments.journey.is_some() {
        let flags = [
            ("--seeds", arguments.journeys),
            ("--from", arguments.from),
            ("--seed", arguments.journey),
            ("--threads", arguments.threads),
        ];
        return play(Command::new(build(&run, JOURNEYS)?), &flags);
    }
    let mut command = Command::new(build(&run, SCHEDULES)?);
    let one = arguments.seed.is_some() || arguments.order.is_some() || arguments.orders;
    let seeds = arguments.seeds.or((!one).then_some(SEEDS));
    if arguments.orders {
        command.arg("--orders");
    }
    let flags = [
        ("--seeds", seeds),
        ("--from", arguments.from),
        ("--seed", arguments.seed),
        ("--order", arguments.order),
        ("--threads", arguments.threads),
    ];
    play(command, &flags)
}

fn play(mut command: Command, flags: &[(&str, Option<u64>)]) -> Result<Verdict> {
    for (flag, value) in flags {
        command.args(value.iter().flat_map(|value| [(*flag).to_owned(), value.to_string()]));
    }
    let status = command.status().context("the simulation cannot be started")?;
    Ok(Verdict::of_failures(usize::from(!status.success())))
}

/// The part of `cargo xtask test`: many schedules, as one test.
pub(crate) fn part(run: &Run<'_>) -> Result<Part> {
    let program = build(run, SCHEDULES)?;
    let mut part = Part::default();
    let seeds = SEEDS_TESTED.to_string();
    for (name, flags) in [("orders", &["--orders"][..]), ("seeds", &["--seeds", &seeds])] {
        let log = run.logs.join(format!("simulation-{name}.log"));
        let mut command = Command::new(&program);
        command.args(flags);
        let what = "the simulation";
        let ended = Job { what, command, log: &log, output: None, limit: TEST_LIMIT }.run(&run.progress)?;
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        run.progress.say(tail(&said, 1));
        if ended.well() {
            part.pass(1);
        } else {
            eprintln!("{}", tail(&said, LINES_SHOWN));
            part.fail(format!("simulation of {name}: it {}", ended.words()), Some(&log));
        }
    }
    Ok(part)
}

/// A program that plays, and how it is built.
type Player = (&'static str, &'static str, &'static str);

/// Millions of schedules are worth a release build.
const SCHEDULES: Player = (PACKAGE, PROGRAM, "release");
const JOURNEYS: Player = (JOURNEY_PACKAGE, JOURNEY_PROGRAM, "debug");

/// Builds a program, and says where it stands.
fn build(run: &Run<'_>, (package, program, profile): Player) -> Result<PathBuf> {
    let log = run.logs.join("simulation-build.log");
    let mut command = run.repository.cargo();
    command.args(["build", "--package", package, "--bin", program]);
    if profile == "release" {
        command.arg("--release");
    }
    command.env("CARGO_TERM_COLOR", "never");
    let what = "building the simulation";
    let ended = Job { what, command, log: &log, output: None, limit: BUILD_LIMIT }.run(&run.progress)?;
    if !ended.well() {
        let said = tail(&std::fs::read_to_string(&log).unwrap_or_default(), LINES_SHOWN);
        bail!("the simulation cannot be built: cargo {}\n{said}", ended.words());
    }
    Ok(run.repository.target.join(profile).join(program))
}
