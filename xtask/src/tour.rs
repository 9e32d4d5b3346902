//! `cargo xtask tour`: the whole thing at work, for somebody who has ten minutes.
//!
//! A center and two edges are started, ConfigMaps of a workspace are delivered to both edges through the same
//! connections, followers, store and engine that everything else uses, and then things break.

mod boat;
mod route;

use std::time::Duration;

use anyhow::{Context, Result};
use mailboat_testkit::{ADMIN, World};
use tokio::runtime::Runtime;

use crate::progress::Progress;
use crate::testbed::BackgroundBuild;
use crate::tour::boat::Boat;
use crate::verdict::Verdict;

const EXAMPLE: &str = "Example:\n  cargo xtask tour";

/// Show the whole thing at work: objects travel from a center to two edges while things break.
///
/// Starts a real kcp and two real Kubernetes clusters, delivers ConfigMaps from a workspace to both clusters, kills an
/// API server, plants an object that is not ours, takes objects away, and says what happened and how long it took. Ends
/// everything that it started. Takes two minutes; the first time on a machine 20 more, to build the servers.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLE)]
pub(crate) struct Arguments {}

/// Runs the command.
pub(crate) fn run(_: &Arguments) -> Result<Verdict> {
    let progress = Progress::begin();
    BackgroundBuild::begin(&progress)?.finish()?;
    let runtime = Runtime::new().context("no async runtime can be started")?;
    runtime.block_on(tour(&progress))?;
    Ok(Verdict::Passed)
}

async fn tour(progress: &Progress) -> Result<()> {
    progress.say("starting a center (kcp) and two edges (Kubernetes), guilder and florin …");
    let world = World::builder().center().edge("guilder").edge("florin").start().await?;
    let workspace = world.center().workspace("tour").await?;
    progress.say(format!("they are ready; your objects live in the workspace {}", workspace.path));

    let center = world.center().kubeconfig(ADMIN, &workspace.path)?;
    let edges = [
        ("guilder", world.edge("guilder").kubeconfig(ADMIN)?),
        ("florin", world.edge("florin").kubeconfig(ADMIN)?),
    ];
    let mut boat = Boat::launch((workspace.cluster.as_str(), &center), &edges).await?;
    let guilder = world.edge("guilder");

    boat.write(&workspace.cluster, "greeting", Some("hello")).await?;
    let took = boat.until_both_have("greeting", Some("hello")).await?;
    progress
        .say(format!("a ConfigMap written at the center stood at both edges {} ms later", took.as_millis()));

    boat.write(&workspace.cluster, "greeting", Some("hello again")).await?;
    let took = boat.until_both_have("greeting", Some("hello again")).await?;
    progress.say(format!("changed there, changed at both edges {} ms later", took.as_millis()));

    let took = boat.until_put_right("florin", "greeting", "hello again").await?;
    progress.say(format!("meddled with at florin, put right {} ms later", took.as_millis()));

    boat.plant("guilder", "foreign", "not ours").await?;
    boat.write(&workspace.cluster, "foreign", Some("ours")).await?;
    let why = boat.until_refused("guilder", "foreign").await?;
    progress.say("an object of the same name that was at guilder before us is never touched:");
    show(&why);

    progress.say("killing guilder's API server (kill -9) …");
    guilder.apiserver().kill().await?;
    boat.write(&workspace.cluster, "greeting", Some("while guilder was away")).await?;
    let took = boat.until_has("florin", "greeting", Some("while guilder was away")).await?;
    progress.say(format!("florin goes on: a change arrived {} ms later; and guilder:", took.as_millis()));
    show(&boat.until_waiting("guilder", "greeting").await?);
    let restarted = guilder.apiserver().start();
    let (started, ()) = tokio::join!(restarted, boat.run_for(Duration::from_secs(1)));
    started?;
    boat.until_has("guilder", "greeting", Some("while guilder was away")).await?;
    progress.say("guilder is back and has caught up; nothing was lost and nothing was deleted meanwhile");

    boat.write(&workspace.cluster, "greeting", None).await?;
    let took = boat.until_both_have("greeting", None).await?;
    progress.say(format!(
        "deleted at the center: after a fresh look at its source, gone {} ms later",
        took.as_millis()
    ));

    let writes = boat.writes_in(Duration::from_secs(5)).await;
    progress.say(format!("and in five idle seconds, {writes} writes"));
    progress.say("that was the tour; `cargo xtask testbed up` gives you such a world to play with");
    Ok(())
}

fn show(text: &str) {
    for line in text.lines() {
        println!("            {line}");
    }
}
