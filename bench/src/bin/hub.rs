//! Benchmark `hub`: the embedded server, beside kube-apiserver with etcd for the work on objects, and beside kcp for
//! workspaces.
//!
//! All servers keep what they are told on disk before they answer. Mailboxes are made and furnished as the center does,
//! with managed fields. What a mailbox takes is the difference in resident memory between a hub with all of them and the
//! same hub before the first; once as they were made, with the history that watches may still ask for, and once after a
//! restart. What is started again was just written, so that its files come from the machine's memory and not from its disk.
//!
//! Cases can be named as arguments; without any, all are run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use mailboat_bench::hub::work::Worked;
use mailboat_bench::hub::{HubServer, mailboxes};
use mailboat_bench::{Measurement, memory};
use mailboat_cluster::{Connection, Settings, Source};
use mailboat_testkit::{ADMIN, EdgeSpec, World};

/// The program that is measured; `cargo xtask bench` builds it beside this one.
const PROGRAM: &str = "mailboat";
const FLEETS: [usize; 2] = [1_000, 10_000];
const IN_FLIGHT: usize = 32;
/// Workspaces take kcp seconds each.
const IN_KCP: usize = 24;
const STARTS: usize = 3;
const QUIET: Duration = Duration::from_secs(1);

const ROUNDS: usize = 3;
const CREATED: usize = 300;
const CREATED_TOGETHER: usize = 2_000;
const READ: usize = 500;
const LISTED: usize = 10_000;
const WATCHERS: usize = 1_000;
const CHANGES: usize = 20;

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;

/// What can be measured by itself.
const CASES: [&str; 5] = ["start", "objects", "kcp", "mailboxes-1000", "mailboxes-10000"];

fn main() -> Result<()> {
    let cases: Vec<String> = std::env::args().skip(1).collect();
    if let Some(unknown) = cases.iter().find(|case| !CASES.contains(&case.as_str())) {
        bail!("the benchmark has no case '{unknown}'; it has {}", CASES.join(", "));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(&cases))
}

async fn measure(cases: &[String]) -> Result<()> {
    let program = mailboat_bench::program_beside(PROGRAM)?;
    let folder = tempfile::tempdir()?;
    let asked = |case: &str| cases.is_empty() || cases.iter().any(|one| one == case);
    if asked("start") {
        start_empty(&program, folder.path()).await?;
    }
    if asked("objects") {
        objects(&program, folder.path()).await?;
    }
    // Its figure stands beside those of the fleets, and is left out where only these are asked for.
    let kcp_rate = if asked("kcp") { Some(in_kcp().await?) } else { None };
    if let Some(rate) = kcp_rate {
        let case = format!("{IN_KCP} workspaces in kcp");
        measured(&case, "workspaces made, until each is ready").value(rate, "1/s").print()?;
    }
    let fleets: Vec<usize> =
        FLEETS.into_iter().filter(|count| asked(&format!("mailboxes-{count}"))).collect();
    if !fleets.is_empty() {
        workspaces(&program, folder.path(), &fleets, kcp_rate).await?;
    }
    Ok(())
}

/// From nothing to the first answer, and what that takes.
async fn start_empty(program: &Path, folder: &Path) -> Result<()> {
    for (mode, case) in [("workspaces", "empty, workspaces"), ("cluster", "empty, one cluster")] {
        let mut ready = Vec::new();
        let mut resident = f64::INFINITY;
        for number in 0..STARTS {
            let data = folder.join(format!("{mode}-{number}"));
            let hub = HubServer::start(program, &data, &["--mode", mode]).await?;
            ready.push(hub.ready_after);
            tokio::time::sleep(QUIET).await;
            resident = resident.min(number_of(hub.resident()?.now_bytes));
            hub.kill().await?;
        }
        measured(case, "start to first answer").value(seconds(best(&ready)), "s").at_most(0.3).print()?;
        measured(case, "resident memory").value(resident / 1e6, "MB").at_most(30.0).print()?;
    }
    Ok(())
}

/// Create, get, list and watch, by turns on both servers.
async fn objects(program: &Path, folder: &Path) -> Result<()> {
    let spec = EdgeSpec::bare("peer").with_durable_etcd();
    let world = World::builder().edge_with(spec).start().await.context("starting the testbed")?;
    let hub = HubServer::start(program, &folder.join("objects"), &["--mode", "cluster"]).await?;
    let peer = reach(world.edge("peer").kubeconfig(ADMIN)?).await?;
    let mut both = Vec::new();
    for cluster in [hub.connection.cluster(), peer.cluster()] {
        both.push((Worked::begin(cluster, LISTED).await?, Outcome::default()));
    }
    for round in 0..ROUNDS {
        for (worked, outcome) in &mut both {
            let took = worked.create_each(CREATED).await?;
            outcome.create.push(median(took));
            outcome.together.push(worked.create_together(CREATED_TOGETHER).await?);
            outcome.get.push(median(worked.get_each(READ).await?));
            outcome.list.push(worked.list().await?.0);
            outcome.watch.push(median(worked.fan_out(WATCHERS, CHANGES).await?));
        }
        eprintln!("round {round}: {:?}", both.iter().map(|(_, outcome)| outcome).collect::<Vec<_>>());
    }
    let (ours, theirs) = (&both[0].1, &both[1].1);
    let compare = |case: &str, metric: &str, of: fn(&Outcome) -> &Vec<Duration>| {
        let (ours, theirs) = (best(of(ours)), best(of(theirs)));
        let value = measured(case, metric).value(seconds(ours) * 1e3, "ms");
        value.beside("kube-apiserver and etcd", seconds(theirs) * 1e3).at_most(1.0).print()
    };
    compare("one ConfigMap", "create, median", |outcome| &outcome.create)?;
    compare(&format!("{CREATED_TOGETHER} ConfigMaps, 32 at once"), "create", |outcome| &outcome.together)?;
    compare("one ConfigMap", "get, median", |outcome| &outcome.get)?;
    compare(&format!("{LISTED} ConfigMaps"), "list", |outcome| &outcome.list)?;
    compare(&format!("{WATCHERS} watchers"), "until the last has heard of a change, median", |outcome| {
        &outcome.watch
    })?;
    let peer = |part: &mailboat_testkit::Part| -> Result<f64> {
        let process = part.process().context("a server has ended")?;
        Ok(number_of(memory::resident_of(process.pid)?.now_bytes))
    };
    let theirs = peer(world.edge("peer").apiserver())? + peer(world.edge("peer").etcd())?;
    measured(&format!("after {LISTED} ConfigMaps and {ROUNDS} rounds"), "resident memory")
        .value(number_of(hub.resident()?.now_bytes) / MIB, "MiB")
        .beside("kube-apiserver and etcd", theirs / MIB)
        .print()?;
    hub.kill().await
}

/// Workspaces and mailboxes, so many of them in each fleet.
async fn workspaces(program: &Path, folder: &Path, fleets: &[usize], kcp_rate: Option<f64>) -> Result<()> {
    for &count in fleets {
        let data = folder.join(format!("fleet-{count}"));
        let case = format!("{count} mailboxes");
        let hub = HubServer::start(program, &data, &[]).await?;
        mailboxes::set_up(&hub.connection, &mailboat_center::setup::Offer::all()?).await?;
        tokio::time::sleep(QUIET).await;
        let before = number_of(hub.resident()?.now_bytes);
        let made =
            mailboxes::make_workspaces(&hub.connection, mailboxes::PROVIDER, 0..count, IN_FLIGHT).await?;
        measured(&case, "workspaces made, until each is ready")
            .value(float(count) / seconds(made), "1/s")
            .at_least(500.0)
            .print()?;
        if let Some(kcp_rate) = kcp_rate {
            measured(&case, "workspaces made, until each is ready")
                .value(float(count) / seconds(made), "1/s")
                .beside("kcp", kcp_rate)
                .print()?;
        }
        let begun = std::time::Instant::now();
        mailboxes::furnish(&hub.connection, 0..count, IN_FLIGHT).await?;
        measured(&case, "mailboxes furnished")
            .value(float(count) / seconds(begun.elapsed()), "1/s")
            .print()?;
        tokio::time::sleep(QUIET).await;
        let each = |resident: f64| (resident - before) / float(count) / KIB;
        let live = each(number_of(hub.resident()?.now_bytes));
        measured(&case, "resident memory for each, as made").value(live, "KiB").at_most(64.0).print()?;
        hub.kill().await?;
        let mut ready = Vec::new();
        let mut resident = f64::INFINITY;
        for _ in 0..STARTS {
            let hub = HubServer::start(program, &data, &[]).await?;
            ready.push(hub.ready_after);
            tokio::time::sleep(QUIET).await;
            resident = resident.min(each(number_of(hub.resident()?.now_bytes)));
            hub.kill().await?;
        }
        measured(&case, "resident memory for each, after a restart")
            .value(resident, "KiB")
            .at_most(64.0)
            .print()?;
        measured(&case, "start to first answer").value(seconds(best(&ready)), "s").at_most(3.0).print()?;
    }
    Ok(())
}

/// How many workspaces a second kcp makes.
async fn in_kcp() -> Result<f64> {
    let world = World::builder().center().start().await.context("starting the testbed")?;
    let connection = reach(world.center().kubeconfig(ADMIN, "root")?).await?;
    let took = mailboxes::make_workspaces(&connection, "root", 0..IN_KCP, IN_FLIGHT).await?;
    Ok(float(IN_KCP) / seconds(took))
}

/// What one server took, once for each round.
#[derive(Debug, Default)]
struct Outcome {
    create: Vec<Duration>,
    together: Vec<Duration>,
    get: Vec<Duration>,
    list: Vec<Duration>,
    watch: Vec<Duration>,
}

async fn reach(kubeconfig: PathBuf) -> Result<Connection> {
    let source = Source::Kubeconfig { path: Some(kubeconfig), context: None };
    Ok(Connection::open(source, Settings::default()).await?)
}

fn measured(case: &str, metric: &str) -> Measurement {
    Measurement::new("hub", case, metric)
}

fn median(mut took: Vec<Duration>) -> Duration {
    took.sort_unstable();
    took.get(took.len() / 2).copied().unwrap_or_default()
}

/// Whatever disturbs a round only makes it worse.
fn best(took: &[Duration]) -> Duration {
    took.iter().min().copied().unwrap_or_default()
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
fn number_of(bytes: u64) -> f64 {
    bytes as f64
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
fn float(count: usize) -> f64 {
    count as f64
}
