//! Benchmark `watch`: how long it takes until ten thousand ConfigMaps of a real API server are known, and what
//! knowing them takes of memory, beside kube-runtime's reflector.
//!
//! One bare API server is filled once. Then our followers and the reflector read it in turns, each time in a
//! process of its own, so that resident memory is the reader's alone. Both keep whole objects, read pages of 500
//! and go on watching; the clock runs from before the connection is opened until the last object is held. Resident
//! memory is read after a moment of quiet watching.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, Client, Config};
use mailboat_bench::{Measurement, memory};
use mailboat_cluster::{Connection, Source};
use mailboat_object::{ClusterId, KindId, Limits, Name};
use mailboat_runner::{Followers, Follows};
use mailboat_store::{EndpointId, FeedId, Filter, Keep, Nature, PlaceId, Settings, Store};
use mailboat_testkit::{ADMIN, EdgeSpec, World};
use serde::{Deserialize, Serialize};
use serde_json::json;

const OBJECTS: usize = 10_000;
const VALUE_BYTES: usize = 1024;
const NAMESPACES: usize = 20;
const WRITES_IN_FLIGHT: usize = 32;
/// Each reader runs this often, in turns, and its median run counts: a best one may be luck, and what disturbs the
/// machine for a while disturbs both.
const ROUNDS: usize = 21;
const QUIET: Duration = Duration::from_secs(1);
const COMPLETE_LIMIT: Duration = Duration::from_mins(2);

const MOST_TIME: f64 = 1.0;
const MOST_MEMORY: f64 = 0.5;

/// What one run of one reader came to.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Outcome {
    seconds: f64,
    resident_bytes: u64,
    peak_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Mailboat,
    Reflector,
}

impl Reader {
    const BOTH: [Self; 2] = [Self::Mailboat, Self::Reflector];

    fn name(self) -> &'static str {
        match self {
            Self::Mailboat => "mailboat",
            Self::Reflector => "kube-runtime reflector",
        }
    }
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match (arguments.next(), arguments.next()) {
        (None, None) => runtime.block_on(compare()),
        (Some(reader), Some(kubeconfig)) => {
            let reader =
                Reader::BOTH.into_iter().find(|one| one.name() == reader).context("no such reader")?;
            let read = async {
                match reader {
                    Reader::Mailboat => by_mailboat(&kubeconfig).await,
                    Reader::Reflector => by_reflector(&kubeconfig).await,
                }
            };
            let outcome = runtime.block_on(async { tokio::time::timeout(COMPLETE_LIMIT, read).await })??;
            println!("{}", serde_json::to_string(&outcome)?);
            Ok(())
        }
        _ => bail!("run it without arguments; with a reader and a kubeconfig it is its own child"),
    }
}

/// Fills a server, lets both read it in turns, and prints how they compare.
async fn compare() -> Result<()> {
    let world =
        World::builder().edge_with(EdgeSpec::bare("watch")).start().await.context("starting the testbed")?;
    let edge = world.edge("watch");
    let begun = Instant::now();
    fill(&edge.client(ADMIN).await?).await?;
    eprintln!("{OBJECTS} ConfigMaps written in {:.1} s", begun.elapsed().as_secs_f64());
    let kubeconfig = edge.kubeconfig(ADMIN)?;
    let mut outcomes: [Vec<Outcome>; 2] = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        for (reader, outcomes) in Reader::BOTH.into_iter().zip(&mut outcomes) {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg(reader.name()).arg(&kubeconfig);
            let output = tokio::task::spawn_blocking(move || command.output()).await??;
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "{} failed: {said}", reader.name());
            let outcome: Outcome = serde_json::from_slice(&output.stdout)?;
            eprintln!("round {round}, {}: {outcome:?}", reader.name());
            outcomes.push(outcome);
        }
    }
    print(&outcomes)
}

fn print([ours, theirs]: &[Vec<Outcome>; 2]) -> Result<()> {
    let case = format!("{OBJECTS} ConfigMaps of 1 KiB");
    let median = |outcomes: &[Outcome], of: fn(&Outcome) -> f64| {
        let mut values: Vec<f64> = outcomes.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let measured = |metric: &str, unit: &str, of: fn(&Outcome) -> f64| {
        let value = median(ours, of);
        let beside = median(theirs, of);
        Measurement::new("watch", &case, metric).value(value, unit).beside(Reader::Reflector.name(), beside)
    };
    measured("time to a complete store", "s", |outcome| outcome.seconds).at_most(MOST_TIME).print()?;
    measured("resident memory", "MiB", |outcome| mebibytes(outcome.resident_bytes))
        .at_most(MOST_MEMORY)
        .print()?;
    measured("most resident memory ever", "MiB", |outcome| mebibytes(outcome.peak_bytes)).print()?;
    Ok(())
}

async fn fill(client: &Client) -> Result<()> {
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    for number in 0..NAMESPACES {
        let namespace = serde_json::from_value(json!({ "metadata": { "name": namespace(number) } }))?;
        namespaces.create(&PostParams::default(), &namespace).await?;
    }
    let write = |number: usize| {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace(number % NAMESPACES));
        async move {
            // Every object has text of its own: equal ones would flatter whoever shares them.
            let value: String = (0..VALUE_BYTES)
                .map(|at| {
                    char::from(b'a' + u8::try_from((number * 7 + at * at + at) % 26).unwrap_or_default())
                })
                .collect();
            let map = json!({
                "metadata": { "name": format!("map-{number:05}"), "labels": { "app": format!("app-{}", number % 100) } },
                "data": { "value": value },
            });
            maps.create(&PostParams::default(), &serde_json::from_value(map)?).await?;
            anyhow::Ok(())
        }
    };
    stream::iter((0..OBJECTS).map(write)).buffer_unordered(WRITES_IN_FLIGHT).try_collect::<Vec<()>>().await?;
    Ok(())
}

async fn by_mailboat(kubeconfig: &str) -> Result<Outcome> {
    let begun = Instant::now();
    let source = Source::Kubeconfig { path: Some(kubeconfig.into()), context: None };
    let connection = Connection::open(source, mailboat_cluster::Settings::default()).await?;
    let mut followers = Followers::new(Store::new(), Settings::default(), 1);
    let mut news = Vec::new();
    let (place, endpoint) = (PlaceId::new("edge"), EndpointId::new("only"));
    let cluster = ClusterId::new("edge");
    let kind = KindId::new("", "configmaps");
    followers.store_mut().open(&place, Nature::Whole(cluster.clone()), [endpoint.clone()], &mut news);
    let follows = Follows {
        id: FeedId { place, endpoint, kind: kind.clone() },
        filter: Filter::All,
        keep: Keep::Whole,
        manager: Name::new("mailboat-syncer"),
        limits: Limits::default(),
    };
    followers.follow(follows, Arc::new(connection.cluster()), &mut news)?;
    let held = |store: &Store| store.range(&cluster, &kind, None).map_or(0, Iterator::count);
    while held(followers.store()) < OBJECTS {
        followers.step(&mut news).await;
        news.clear();
    }
    let seconds = begun.elapsed().as_secs_f64();
    let quiet = tokio::time::sleep(QUIET);
    tokio::pin!(quiet);
    loop {
        tokio::select! {
            () = &mut quiet => break,
            () = followers.step(&mut news) => news.clear(),
        }
    }
    ensure!(held(followers.store()) >= OBJECTS, "objects were lost");
    finish(seconds)
}

async fn by_reflector(kubeconfig: &str) -> Result<Outcome> {
    let begun = Instant::now();
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let maps: Api<ConfigMap> = Api::all(Client::try_from(config)?);
    let (reader, writer) = reflector::store();
    let events = reflector(writer, watcher(maps, watcher::Config::default())).default_backoff();
    let mut events = std::pin::pin!(events);
    while reader.len() < OBJECTS {
        events.try_next().await?.context("the reflector ended")?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let quiet = tokio::time::sleep(QUIET);
    tokio::pin!(quiet);
    loop {
        tokio::select! {
            () = &mut quiet => break,
            event = events.try_next() => drop(event?.context("the reflector ended")?),
        }
    }
    ensure!(reader.len() >= OBJECTS, "objects were lost");
    finish(seconds)
}

fn finish(seconds: f64) -> Result<Outcome> {
    let memory::Resident { now_bytes, peak_bytes } = memory::resident()?;
    Ok(Outcome { seconds, resident_bytes: now_bytes, peak_bytes })
}

fn namespace(number: usize) -> String {
    format!("watch-{number}")
}

#[expect(clippy::cast_precision_loss, reason = "for people to read")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
