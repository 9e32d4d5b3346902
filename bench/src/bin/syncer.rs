//! Benchmark `syncer`: the program that ships, between a mailbox in a real kcp and a real cluster, beside a bare loop that
//! does nothing but watch and apply.
//!
//! The same as `hop`, with a SyncerConfig in between that selects what is carried, and with the health and metrics
//! listener open. The mailbox is watched idle for five minutes, heartbeats included.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use kube::Client;
use mailboat_bench::hop::{Bars, Carrier, NAMESPACE, Side, Trial};
use mailboat_testkit::{ADMIN, EdgeSpec, World, apply, wait_until};
use serde_json::json;

const CRDS: [&str; 2] = [
    include_str!("../../../deploy/crds/syncerconfigs.edge.kubestellar.io.yaml"),
    include_str!("../../../deploy/crds/edgesyncconfigs.edge.kubestellar.io.yaml"),
];
/// The program that is measured; `cargo xtask bench` builds it beside this one.
const PROGRAM: &str = "mailboat-syncer";
const SERVED_LIMIT: Duration = Duration::from_mins(2);

const BARS: Bars = Bars {
    idle_megabytes: 12.0,
    few_megabytes: 25.0,
    many_megabytes: 48.0,
    idle_for: Duration::from_mins(5),
    idle_percent: Some(0.2),
};

fn main() -> Result<()> {
    let cases: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(&cases))
}

async fn measure(cases: &[String]) -> Result<()> {
    let program = mailboat_bench::program_beside(PROGRAM)?;
    let edge = EdgeSpec::bare("edge").with_apiserver_flag("--delete-collection-workers=16");
    let world = World::builder().center().edge_with(edge).start().await.context("starting the testbed")?;
    let (center, edge) = (world.center(), world.edge("edge"));
    let mailbox = center.workspace("mailbox").await?;
    let client = center.client(ADMIN, &mailbox.path).await?;
    configure(&client).await?;
    let source = Side::open(center.kubeconfig(ADMIN, &mailbox.path)?, client).await?;
    let target = Side::open(edge.kubeconfig(ADMIN)?, edge.client(ADMIN).await?).await?;
    let path = |path: &Path| path.display().to_string();
    let (from, to) = (path(&source.kubeconfig), path(&target.kubeconfig));
    let arguments = ["--from-kubeconfig", &from, "--to-kubeconfig", &to]
        .into_iter()
        .chain(["--sync-target-name", "bench", "--sync-target-uid", "c0ffee00-0000-4000-8000-000000000000"])
        .chain(["--namespace", "default", "--listen", "127.0.0.1:0"]);
    let ours = Carrier {
        name: "syncer",
        program,
        arguments: arguments.map(str::to_owned).collect(),
        log: Some(world.folder().join("syncer.log")),
    };
    let floor = Carrier::of("bare loop", "floor", &source.kubeconfig, &target.kubeconfig)?;
    Trial { bench: "syncer", source, target, ours, floor, bars: BARS }.run(cases).await
}

/// Makes a workspace a mailbox: the kinds of the configuration, and one that asks for everything of the namespace.
async fn configure(mailbox: &Client) -> Result<()> {
    for crd in CRDS {
        wait_until("a CRD taken", SERVED_LIMIT, || apply(mailbox, crd)).await?;
    }
    let config = json!({
        "apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "SyncerConfig", "metadata": { "name": "the-one" },
        "spec": { "namespaceScope": {
            "namespaces": [NAMESPACE],
            "resources": [{ "group": "", "resource": "configmaps", "apiVersion": "v1" }],
        }},
    });
    let config = config.to_string();
    wait_until("the configuration taken", SERVED_LIMIT, || apply(mailbox, &config)).await?;
    Ok(())
}
