//! Benchmark `idle`: what a syncer takes of a machine while there is nothing to do.
//!
//! Two bare API servers stand for a mailbox and an edge. A syncer, in a process of its own and with its health and metrics
//! listener, carries all ConfigMaps across; once everything stands and a moment has passed, its memory, its processor
//! time and its writes are measured for a while. A heartbeat falls into that time now and then and is part of it.

use std::fmt::Write as _;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::PostParams;
use kube::{Api, Client};
use mailboat_bench::{Measurement, memory};
use mailboat_cluster::{Connection, Source};
use mailboat_engine::mark::OwnerId;
use mailboat_object::{ClusterId, KindId, Name};
use mailboat_runner::{Instruments, Listener, Serves};
use mailboat_syncer::Identity;
use mailboat_testkit::{ADMIN, Edge, EdgeSpec, World, apply, wait_until};
use serde::{Deserialize, Serialize};
use serde_json::json;

const CRDS: [&str; 2] = [
    include_str!("../../../deploy/crds/syncerconfigs.edge.kubestellar.io.yaml"),
    include_str!("../../../deploy/crds/edgesyncconfigs.edge.kubestellar.io.yaml"),
];
const NAMESPACE: &str = "idle";
const VALUE_BYTES: usize = 512;
const WRITES_IN_FLIGHT: usize = 16;
/// After everything stands: until the last answers and events have come.
const CALM: Duration = Duration::from_secs(5);
const MEASURED_FOR: Duration = Duration::from_mins(1);
const SETTLE_LIMIT: Duration = Duration::from_mins(5);

/// How many objects, and the most that the process may have resident with them.
const CASES: [(usize, f64); 3] = [(0, 12.0), (1_000, 16.0), (10_000, 48.0)];
const MOST_CPU_PERCENT: f64 = 0.2;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Outcome {
    resident_bytes: u64,
    peak_bytes: u64,
    cpu_percent: f64,
    writes: u64,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match &*arguments {
        [] => runtime.block_on(measure_all()),
        [from, to, objects] => {
            let outcome = runtime.block_on(sync(from, to, objects.parse()?))?;
            println!("{}", serde_json::to_string(&outcome)?);
            Ok(())
        }
        _ => bail!("run it without arguments; with two kubeconfigs and a number it is its own child"),
    }
}

async fn measure_all() -> Result<()> {
    let world = World::builder().edge_with(EdgeSpec::bare("mailbox")).edge_with(EdgeSpec::bare("edge"));
    let world = world.start().await.context("starting the testbed")?;
    let (mailbox, edge) = (world.edge("mailbox"), world.edge("edge"));
    prepare(mailbox).await?;
    let mut there = 0;
    for (objects, most_mebibytes) in CASES {
        fill(&mailbox.client(ADMIN).await?, there..objects).await?;
        there = objects;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(mailbox.kubeconfig(ADMIN)?).arg(edge.kubeconfig(ADMIN)?).arg(objects.to_string());
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        ensure!(output.status.success(), "it failed: {}", String::from_utf8_lossy(&output.stderr));
        let outcome: Outcome = serde_json::from_slice(&output.stdout)?;
        eprintln!("{objects} objects: {outcome:?}");
        print(objects, most_mebibytes, outcome)?;
    }
    Ok(())
}

fn print(objects: usize, most_mebibytes: f64, outcome: Outcome) -> Result<()> {
    let case = format!("{objects} ConfigMaps of 512 bytes");
    let measured = |metric: &str| Measurement::new("idle", &case, metric);
    measured("resident memory")
        .value(mebibytes(outcome.resident_bytes), "MiB")
        .at_most(most_mebibytes)
        .print()?;
    measured("most resident memory ever").value(mebibytes(outcome.peak_bytes), "MiB").print()?;
    measured("processor time").value(outcome.cpu_percent, "% of a core").at_most(MOST_CPU_PERCENT).print()?;
    #[expect(clippy::cast_precision_loss, reason = "there are few")]
    measured("writes of objects").value(outcome.writes as f64, "in a minute").at_most(0.0).print()?;
    Ok(())
}

/// Makes a cluster a mailbox: the kinds of the configuration, and one that asks for everything of a namespace.
async fn prepare(mailbox: &Edge) -> Result<()> {
    let client = mailbox.client(ADMIN).await?;
    for crd in CRDS {
        apply(&client, crd).await?;
    }
    let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": NAMESPACE } }))?;
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await?;
    let config = json!({
        "apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "SyncerConfig", "metadata": { "name": "the-one" },
        "spec": { "namespaceScope": {
            "namespaces": [NAMESPACE],
            "resources": [{ "group": "", "resource": "configmaps", "apiVersion": "v1" }],
        }},
    });
    let config = config.to_string();
    wait_until("the configuration accepted", SETTLE_LIMIT, || apply(&client, &config)).await?;
    Ok(())
}

async fn fill(client: &Client, numbers: std::ops::Range<usize>) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let write = |number: usize| {
        let maps = maps.clone();
        async move {
            let mut value = String::new();
            while value.len() < VALUE_BYTES {
                write!(value, "{number} ")?;
            }
            let map =
                json!({ "metadata": { "name": format!("map-{number:05}") }, "data": { "value": value } });
            maps.create(&PostParams::default(), &serde_json::from_value(map)?).await?;
            anyhow::Ok(())
        }
    };
    stream::iter(numbers.map(write)).buffer_unordered(WRITES_IN_FLIGHT).try_collect::<Vec<()>>().await?;
    Ok(())
}

/// Runs a syncer until everything stands, and for as long again as is measured.
async fn sync(from: &str, to: &str, objects: usize) -> Result<Outcome> {
    let open = |path: &str| {
        let source = Source::Kubeconfig { path: Some(path.into()), context: None };
        Connection::open(source, mailboat_cluster::Settings::default())
    };
    let (from, to) = (open(from).await?, open(to).await?);
    let identity = Identity {
        owner: OwnerId(Name::new("syncer/idle")),
        manager: Name::new("mailboat-syncer"),
        mailbox: ClusterId::new("mailbox"),
        edge: ClusterId::new("edge-idle"),
        namespace: Name::new("default"),
        heartbeat_period: Duration::from_secs(30),
    };
    let instruments = Arc::new(Instruments::default());
    instruments.metrics.serves(Serves {
        sync_target: "idle".to_owned(),
        workspace: "mailbox".to_owned(),
        center: identity.mailbox.clone(),
        heartbeat: KindId::new("edge.kubestellar.io", "syncerconfigs"),
    });
    let _listener = Listener::open("127.0.0.1:0", Arc::clone(&instruments)).await?;
    let mut process =
        mailboat_syncer::assemble::process(identity, Arc::new(from.cluster()), Arc::new(to.cluster()));
    process.instruments(Arc::clone(&instruments));
    let settled = wait_until("everything delivered", SETTLE_LIMIT, || async {
        let delivered = number(&instruments.metrics.text(), "mailboat_slots{state=\"delivered\"}");
        if delivered >= objects { Ok(()) } else { Err(delivered) }
    });
    process.run(settled).await?;
    process.run(tokio::time::sleep(CALM)).await;
    let writes = || -> usize {
        let text = instruments.metrics.text();
        text.lines().filter(|line| line.starts_with("mailboat_writes_total")).map(last_number).sum()
    };
    let (writes_before, cpu_before) = (writes(), processor_nanoseconds()?);
    process.run(tokio::time::sleep(MEASURED_FOR)).await;
    let (writes_after, cpu_after) = (writes(), processor_nanoseconds()?);
    let memory::Resident { now_bytes, peak_bytes } = memory::resident()?;
    Ok(Outcome {
        resident_bytes: now_bytes,
        peak_bytes,
        cpu_percent: Duration::from_nanos(cpu_after - cpu_before).as_secs_f64() * 100.0
            / MEASURED_FOR.as_secs_f64(),
        writes: u64::try_from(writes_after - writes_before)?,
    })
}

/// The value of one series in a text.
fn number(text: &str, series: &str) -> usize {
    text.lines().find(|line| line.starts_with(series)).map_or(0, last_number)
}

fn last_number(line: &str) -> usize {
    line.rsplit_once(' ').and_then(|(_, number)| number.parse().ok()).unwrap_or_default()
}

/// Processor time of all threads of this process so far, from the scheduler, which counts finer than `times` does.
fn processor_nanoseconds() -> Result<u64> {
    let mut sum = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        let first = text.split_ascii_whitespace().next().context("an empty schedstat")?;
        sum += first.parse::<u64>()?;
    }
    Ok(sum)
}

#[expect(clippy::cast_precision_loss, reason = "for people to read")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
