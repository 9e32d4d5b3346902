//! `cargo xtask lint`: what can be said about the code without running it.

mod direction;
mod words;

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::process::{Job, tail};
use crate::report::{Part, Report};
use crate::repository::Repository;
use crate::suite::Run;
use crate::verdict::Verdict;

/// How long one cargo command of the checks may take on a fresh machine.
const LIMIT: Duration = Duration::from_mins(30);
/// How much of a failed check's output is shown.
const LINES_SHOWN: usize = 120;

/// Shown at the end of the help.
const EXAMPLES: &str = "\
Example:
  cargo xtask lint";

/// Check formatting, lints, the direction of dependencies and forbidden words.
///
/// Runs `cargo fmt --check`, `cargo clippy --all-targets -- -D warnings`, then checks that dependencies point
/// the right way (the cores compile without an async runtime, nothing that ships reaches test code, one TLS provider)
/// and that no file speaks of the machine it was written on or has a merge in it that was not finished.
/// Takes seconds when everything is built, some minutes on a fresh machine.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {}

/// Runs the checks as a command.
pub(crate) fn run(_: &Arguments, repository: &Repository) -> Result<Verdict> {
    let run = Run::begin(repository, "lint")?;
    let mut report = Report::default();
    report.run("lint", &run.progress, || check(&run))?;
    Ok(report.print())
}

/// Runs every check; each counts as one.
pub(crate) fn check(run: &Run<'_>) -> Result<Part> {
    let mut part = Part::default();
    let mut format = run.repository.cargo();
    format.args(["fmt", "--all", "--check", "--", "--color", "never"]);
    cargo_check(run, &mut part, "formatting", "cargo fmt --all", format)?;
    let mut clippy = run.repository.cargo();
    clippy.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    cargo_check(run, &mut part, "clippy", "cargo clippy --workspace --all-targets", clippy)?;
    finding_check(run, &mut part, "direction of dependencies", direction::findings(run.repository)?);
    finding_check(run, &mut part, "forbidden words", words::findings(&run.repository.root)?);
    Ok(part)
}

fn cargo_check(
    run: &Run<'_>,
    part: &mut Part,
    name: &str,
    by_hand: &str,
    mut command: Command,
) -> Result<()> {
    let log = run.logs.join(format!("{name}.log"));
    command.env("CARGO_TERM_COLOR", "never");
    let ended = Job { what: name, command, log: &log, output: None, limit: LIMIT }.run(&run.progress)?;
    if ended.well() {
        run.progress.say(format!("{name}: in order"));
        part.pass(1);
    } else {
        eprintln!("{}", tail(&fs::read_to_string(&log).unwrap_or_default(), LINES_SHOWN));
        part.fail(format!("{name} ({by_hand}): cargo {}", ended.words()), Some(&log));
    }
    Ok(())
}

fn finding_check(run: &Run<'_>, part: &mut Part, name: &str, findings: Vec<String>) {
    if findings.is_empty() {
        run.progress.say(format!("{name}: in order"));
        part.pass(1);
    }
    for finding in findings {
        part.fail(format!("{name}: {finding}"), None);
    }
}
