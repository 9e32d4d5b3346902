//! Benchmark `hop`: the engine between two real API servers, beside a bare loop that does nothing but watch and apply.
//!
//! ConfigMaps of 512 bytes are created at one server and awaited at the other: ten a second, as a burst, and as a backlog
//! that is there before the process starts. Each runs in a process of its own, by turns. Memory is what the kernel says
//! of the engine's process, and writes are counted by the server.

use std::time::Duration;

use anyhow::{Context, Result};
use mailboat_bench::hop::{Bars, Carrier, Side, Trial};
use mailboat_testkit::{ADMIN, EdgeSpec, World};

const BARS: Bars = Bars {
    idle_megabytes: 12.0,
    few_megabytes: 16.0,
    many_megabytes: 48.0,
    idle_for: Duration::from_mins(1),
    idle_percent: None,
};

fn main() -> Result<()> {
    let cases: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(&cases))
}

async fn measure(cases: &[String]) -> Result<()> {
    let many_deletes = "--delete-collection-workers=16";
    let edge = |name: &str| EdgeSpec::bare(name).with_apiserver_flag(many_deletes);
    let world = World::builder().edge_with(edge("source")).edge_with(edge("target"));
    let world = world.start().await.context("starting the testbed")?;
    let open = async |name: &str| {
        let edge = world.edge(name);
        Side::open(edge.kubeconfig(ADMIN)?, edge.client(ADMIN).await?).await
    };
    let (source, target) = (open("source").await?, open("target").await?);
    let carrier = |name, role: &str| Carrier::of(name, role, &source.kubeconfig, &target.kubeconfig);
    let (ours, floor) = (carrier("engine", "engine")?, carrier("bare loop", "floor")?);
    Trial { bench: "hop", source, target, ours, floor, bars: BARS }.run(cases).await
}
