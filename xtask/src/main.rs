//! The one task runner of this repository: `cargo xtask`.
//!
//! Each command is a file of its own: [`test`], [`testbed`], [`e2e`], [`conformance`], [`bench`], [`sim`],
//! [`generate`], [`lint`].
//! Progress goes to standard error, results to standard output. Exit codes: 0 in order, 1 something failed,
//! 2 bad input or a machine that lacks something.
//!
//! It never ships, and holds nothing that the product needs.
//!
//! Reading order: this file, [`test`], [`suite`] (building and running test programs), [`libtest`] (reading what
//! they print), [`report`].

mod bench;
mod conformance;
mod e2e;
mod generate;
mod libtest;
mod lint;
mod process;
mod progress;
mod reference;
mod report;
mod repository;
mod sim;
mod suite;
mod table;
mod test;
mod testbed;
mod verdict;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::repository::Repository;
use crate::verdict::Verdict;

/// The one task runner of this repository
#[derive(Debug, Parser)]
#[command(name = "xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
pub(crate) struct Xtask {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    Test(test::Arguments),
    Testbed(testbed::Arguments),
    E2e(e2e::Arguments),
    Conformance(conformance::Arguments),
    Bench(bench::Arguments),
    Sim(sim::Arguments),
    Generate(generate::Arguments),
    Lint(lint::Arguments),
}

fn main() -> ExitCode {
    match run(&Xtask::parse().task) {
        Ok(verdict) => verdict.into(),
        Err(error) => {
            eprintln!("error: {error:#}");
            verdict::exit_code(&error)
        }
    }
}

fn run(task: &Task) -> Result<Verdict> {
    let repository = Repository::open()?;
    match task {
        Task::Test(arguments) => test::run(arguments, &repository),
        Task::Testbed(arguments) => testbed::run(arguments),
        Task::E2e(arguments) => e2e::run(arguments, &repository),
        Task::Conformance(arguments) => conformance::run(arguments),
        Task::Bench(arguments) => bench::run(arguments, &repository),
        Task::Sim(arguments) => sim::run(arguments, &repository),
        Task::Generate(arguments) => generate::run(arguments, &repository),
        Task::Lint(arguments) => lint::run(arguments, &repository),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        Xtask::command().debug_assert();
    }

    #[test]
    fn every_documented_call_is_understood() {
        for call in [
            "test",
            "test --all --soak",
            "test a_name another",
            "testbed build",
            "testbed up",
            "testbed down",
            "testbed status",
            "e2e",
            "e2e --on real --soak name",
            "e2e --on hub",
            "conformance",
            "conformance --beside kcp apply",
            "bench",
            "bench object watch --json --check",
            "sim",
            "sim --seeds 100",
            "sim --seeds 100 --from 7 --threads 1",
            "sim --seed 7",
            "generate",
            "generate --check",
            "generate --openapi",
            "lint",
        ] {
            let words = ["xtask"].into_iter().chain(call.split(' '));
            assert!(Xtask::try_parse_from(words).is_ok(), "{call}");
        }
    }
}
