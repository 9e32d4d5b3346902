//! `cargo xtask e2e`: the tests on servers, by themselves.

use anyhow::Result;
use clap::ValueEnum;

use crate::report::Report;
use crate::repository::Repository;
use crate::suite::{self, REAL, Run, Surroundings};
use crate::test::{ON_HUB, finish, on_hub, on_real_servers};
use crate::verdict::{Verdict, refusal};

/// Shown at the end of the help.
const EXAMPLES: &str = "\
Examples:
  cargo xtask e2e                      all of them
  cargo xtask e2e a_deleted_binding    tests with this in their name
  cargo xtask e2e status-return        a scenario of docs/scenarios
  cargo xtask e2e --on hub             on embedded servers
  cargo xtask e2e --soak               long trials at their full length";

/// Run the tests on servers, without anything else.
///
/// Builds the real servers if that was not done yet (some 20 minutes, once per machine), starts one kcp that the tests
/// share, and runs every test program named `real`. Takes about ten minutes when the servers are built. Ends with
/// 'N passed, N failed'.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Which servers to run them on
    #[arg(long, value_enum, default_value_t = Servers::Real)]
    on: Servers,
    /// Run long trials at their full length instead of 30 seconds
    #[arg(long)]
    soak: bool,
    /// Run only tests whose full name (crate::real::module::test) contains one of these
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Servers {
    /// kcp and Kubernetes
    Real,
    /// The embedded hub, as center and edges: minutes less, and nothing of Go
    Hub,
}

/// Runs the tests.
pub(crate) fn run(arguments: &Arguments, repository: &Repository) -> Result<Verdict> {
    let mut packages = repository.packages_with_test(REAL);
    if arguments.on == Servers::Hub {
        // The others are about the real servers themselves, or compare with them.
        packages.retain(|package| ON_HUB.contains(&package.name.as_str()));
    }
    if packages.is_empty() {
        return Err(refusal(format!(
            "no package has a test program named '{REAL}' yet, so there is nothing to run"
        )));
    }
    let run = Run::begin(repository, "e2e")?;
    run.progress.say("building the tests …");
    let mut build = vec!["--test", REAL];
    build.extend(packages.iter().flat_map(|package| ["--package", package.name.as_str()]));
    let selected = suite::select(&run.build(&build)?, &arguments.names)?;
    if let Some(unknown) = arguments.names.iter().find(|name| !selected.iter().any(|one| one.has(name))) {
        return Err(refusal(format!("no test on real servers has '{unknown}' in its name")));
    }
    let mut report = Report::default();
    let surroundings = Surroundings { soak: arguments.soak, ..Surroundings::default() };
    if arguments.on == Servers::Hub {
        report.run("tests on the hub", &run.progress, || on_hub(&run, &selected, &surroundings))?;
        return finish(&report);
    }
    report.run("tests on real servers", &run.progress, || on_real_servers(&run, &selected, &surroundings))?;
    finish(&report)
}
