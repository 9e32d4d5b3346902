//! `cargo xtask conformance`: the same requests to the hub and to the real servers, and their answers compared.

use anyhow::{Context, Result};
use clap::ValueEnum;
use mailboat_conformance::{Error, Peer};

use crate::progress::Progress;
use crate::report::{Part, Report};
use crate::testbed::BackgroundBuild;
use crate::verdict::{Verdict, refusal};

/// Shown at the end of the help.
const EXAMPLES: &str = "\
Examples:
  cargo xtask conformance                          all cases
  cargo xtask conformance --beside kubernetes      those of a plain cluster
  cargo xtask conformance 'apply: a conflict'      cases with this in their name (file: name)";

/// Send the same requests to the hub and to the real servers, and compare the answers.
///
/// Plays the cases of crates/conformance/cases on a hub and beside it on kube-apiserver and kcp, each in a fresh
/// namespace or workspace. Every difference is named by its path, unless docs/hub.md lists it as known; a known difference that
/// is gone counts as failed, too. Takes about two minutes when the servers are built. Ends with 'N passed, N failed'.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Beside which servers; all, if not said
    #[arg(long, value_enum)]
    beside: Option<Beside>,
    /// Play only cases whose name (file: name) contains one of these
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Beside {
    /// kube-apiserver with etcd
    Kubernetes,
    /// kcp
    Kcp,
}

/// Plays the cases.
pub(crate) fn run(arguments: &Arguments) -> Result<Verdict> {
    let progress = Progress::begin();
    BackgroundBuild::begin(&progress)?.finish()?;
    let mut report = Report::default();
    let sides = [
        (Beside::Kubernetes, Peer::Kubernetes, "beside kube-apiserver"),
        (Beside::Kcp, Peer::Kcp, "beside kcp"),
    ];
    for (beside, peer, name) in sides {
        if arguments.beside.is_some_and(|wanted| wanted != beside) {
            continue;
        }
        report.run(name, &progress, || play(peer, &arguments.names, &progress))?;
    }
    if report.totals() == (0, 0) {
        return Err(refusal(format!("no case has one of {:?} in its name", arguments.names)));
    }
    Ok(report.print())
}

/// The part of `cargo xtask test --all`: beside kcp, whose workspaces take their time.
pub(crate) fn beside_kcp(progress: &Progress) -> Result<Part> {
    play(Peer::Kcp, &[], progress)
}

fn play(peer: Peer, names: &[String], progress: &Progress) -> Result<Part> {
    let runtime = tokio::runtime::Runtime::new().context("the async runtime cannot be started")?;
    let played = match runtime.block_on(mailboat_conformance::run(peer, names)) {
        Err(error @ Error::Script(_)) => return Err(refusal(error.to_string())),
        played => played?,
    };
    progress.say(format!("{} answers compared", played.answers()));
    progress.say(format!("{} places differ as docs/hub.md says", played.known.len()));
    for (case, place) in &played.known {
        progress.say(format!("  {case}: {place}"));
    }
    let mut part = Part::default();
    part.pass(played.passed());
    for failure in played.failures() {
        part.fail(failure, None);
    }
    Ok(part)
}
