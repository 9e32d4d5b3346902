//! `cargo xtask testbed`: the real servers for a person, built and started.

mod servers;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Subcommand;
use mailboat_testkit::Error;
use mailboat_testkit::bed::{self, BedSpec, Up};
use tokio::runtime::Runtime;

use crate::progress::Progress;
use crate::verdict::{Verdict, refusal};

pub(crate) use servers::{BackgroundBuild, SharedWorld};

const BUILD_EXAMPLE: &str = "Example:\n  cargo xtask testbed build";
const UP_EXAMPLES: &str = "\
Examples:
  eval \"$(cargo xtask testbed up)\"                  start it, and point this shell's kubectl at it
  cargo xtask testbed up --edge north --edge south  edges by these names";
const DOWN_EXAMPLE: &str = "Example:\n  cargo xtask testbed down";
const STATUS_EXAMPLE: &str = "Example:\n  cargo xtask testbed status";

/// Build, start, stop and look at a world of real servers.
///
/// A center (kcp) and edges (Kubernetes clusters whose nodes KWOK plays), on free ports of this machine's loopback.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Build the real servers that are not in the cache yet.
    ///
    /// kcp, etcd, Kubernetes, KWOK, Helm and Kyverno's reports controller, from the Go modules in testbed/. Needs Go.
    /// Takes some 20 minutes, once per machine and version; afterwards it does nothing.
    /// They are kept in $MAILBOAT_CACHE, or else under the user's cache folder.
    #[command(after_long_help = BUILD_EXAMPLE)]
    Build,
    /// Start a center and edges that live on, and print what to export.
    ///
    /// Builds the servers first if need be, then takes about a minute. What is up already stays as it is.
    #[command(after_long_help = UP_EXAMPLES)]
    Up(UpArguments),
    /// End what `up` started, and remove its data.
    #[command(after_long_help = DOWN_EXAMPLE)]
    Down(Place),
    /// Show each part's process, port, readiness and memory; exit with 1 unless all are ready.
    #[command(after_long_help = STATUS_EXAMPLE)]
    Status(Place),
}

#[derive(Debug, clap::Args)]
struct UpArguments {
    #[command(flatten)]
    place: Place,
    /// An edge's name; may be repeated [default: guilder and florin]
    #[arg(long = "edge", value_name = "NAME")]
    edges: Vec<String>,
    /// How many nodes each edge has
    #[arg(long, value_name = "N", default_value_t = BedSpec::default().nodes)]
    nodes: u16,
}

#[derive(Debug, clap::Args)]
struct Place {
    /// Where its files lie [default: `bed` in the cache folder]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Runs one of the commands.
pub(crate) fn run(arguments: &Arguments) -> Result<Verdict> {
    let progress = Progress::begin();
    let runtime = Runtime::new().context("no async runtime can be started")?;
    match &arguments.action {
        Action::Build => {
            BackgroundBuild::begin(&progress)?.finish()?;
            progress.say("all servers are built");
            Ok(Verdict::Passed)
        }
        Action::Up(arguments) => {
            BackgroundBuild::begin(&progress)?.finish()?;
            runtime.block_on(up(arguments, &progress))
        }
        Action::Down(place) => {
            let ended = runtime.block_on(bed::down(&place.folder()?)).map_err(explain)?;
            match ended.as_slice() {
                [] => progress.say("no testbed was up"),
                parts => progress.say(format!("ended {}", parts.join(", "))),
            }
            Ok(Verdict::Passed)
        }
        Action::Status(place) => runtime.block_on(status(place)),
    }
}

async fn up(arguments: &UpArguments, progress: &Progress) -> Result<Verdict> {
    let mut spec = BedSpec { nodes: arguments.nodes, ..BedSpec::default() };
    if !arguments.edges.is_empty() {
        spec.edges.clone_from(&arguments.edges);
    }
    progress.say(format!("bringing up a center and the edges {} (about a minute) …", spec.edges.join(", ")));
    let bed = match bed::up(&arguments.place.folder()?, &spec).await.map_err(explain)? {
        Up::Started(bed) => {
            progress.say("the testbed is up; `cargo xtask testbed down` ends it");
            bed
        }
        Up::Already(bed) => {
            progress.say("the testbed was up already, and stays as it is");
            bed
        }
    };
    println!("{bed}");
    Ok(Verdict::Passed)
}

async fn status(place: &Place) -> Result<Verdict> {
    let parts = bed::status(&place.folder()?).await.map_err(explain)?;
    if parts.is_empty() {
        println!("no testbed is up; `cargo xtask testbed up` starts one");
        return Ok(Verdict::Failed);
    }
    print!("{}", bed::table(&parts));
    Ok(Verdict::of_failures(parts.iter().filter(|part| !part.ready).count()))
}

impl Place {
    fn folder(&self) -> Result<PathBuf> {
        match &self.folder {
            Some(folder) => Ok(folder.clone()),
            None => bed::default_folder().map_err(explain),
        }
    }
}

/// What the user can mend is a refusal; a server that does not start is a failure.
fn explain(error: Error) -> anyhow::Error {
    match error {
        Error::Bed(sentence) => refusal(sentence),
        Error::BadName { .. } => refusal(error.to_string()),
        Error::Build(error) => servers::explain_build(error),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Refusal;

    #[test]
    fn what_the_user_can_mend_is_a_refusal() {
        let bad_name = Error::BadName { name: "A".to_owned(), why: "small letters make a name" };
        for error in [Error::Bed("another command is at work".to_owned()), bad_name] {
            let error = explain(error);
            assert!(error.is::<Refusal>(), "{error:?}");
        }
        let ended = explain(Error::NotRunning { part: "kcp".to_owned() });
        assert!(!ended.is::<Refusal>(), "{ended:?}");
    }
}
