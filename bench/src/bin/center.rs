//! Benchmark `center`: 100 placements of 20 objects, each to one percent of 100, 1,000 and 10,000 edges; and one placement, to all
//! of 100 and 1,000 edges.
//!
//! The center is the shipped program, and a hub in memory, another process, is its server; nobody plays the edges' syncers.
//! What one change costs is measured from outside: until its last write is seen through the views, in processor time of the
//! center, and in writes by the server's own count. A change touches the same at every size, or, where it touches more, is
//! counted by copy: so the cost of it at a larger fleet stands beside that at the smallest one of the run, and what grew is
//! the fleet alone. At the end the center is killed and started again.
//!
//! The same is done once on a real kcp with 50 edges, for what it costs there; kcp takes seconds for each mailbox, and its
//! own controllers write as well, so that this is beside nothing.
//!
//! Cases can be named as arguments (`edges-100`); without any, all are run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use mailboat_bench::Measurement;
use mailboat_bench::center::users::{OBJECTS, SPARE, group_of};
use mailboat_bench::center::{CenterProcess, Event, Server, Users, Watching};
use tokio::time::sleep;

/// The program that is measured; `cargo xtask bench` builds it beside this one.
const PROGRAM: &str = "mailboat";
const CASES: [Case; 6] = [
    Case { name: "edges-100", edges: 100, placements: 100, on_kcp: false },
    Case { name: "edges-1000", edges: 1_000, placements: 100, on_kcp: false },
    Case { name: "edges-10000", edges: 10_000, placements: 100, on_kcp: false },
    Case { name: "one-placement-100", edges: 100, placements: 1, on_kcp: false },
    Case { name: "one-placement-1000", edges: 1_000, placements: 1, on_kcp: false },
    Case { name: "kcp-50", edges: 50, placements: 50, on_kcp: true },
];
/// Each change is made so often; the first is not counted.
const ROUNDS: usize = 8;
/// Statuses and summaries follow a change within this.
const FOLLOWS: Duration = Duration::from_secs(3);
/// A machine with other things to do makes 10,000 mailboxes within this.
const FILLED: Duration = Duration::from_mins(25);
const RESTARTED: Duration = Duration::from_mins(5);

/// What a fleet of a hundred times the size may make of a change that touches the same.
const MOST_GROWTH: f64 = 3.0;
const MOST_RESTART_SECONDS: f64 = 60.0;
const MOST_BYTES: f64 = 1e9;

fn main() -> Result<()> {
    let cases: Vec<String> = std::env::args().skip(1).collect();
    if let Some(unknown) = cases.iter().find(|case| !CASES.iter().any(|known| known.name == **case)) {
        let known: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        bail!("the benchmark has no case '{unknown}'; it has {}", known.join(", "));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut smallest: BTreeMap<bool, (&str, Costs)> = BTreeMap::new();
        for case in CASES.iter().filter(|case| cases.is_empty() || cases.iter().any(|one| one == case.name)) {
            let beside = smallest.get(&(case.placements == 1)).filter(|_| !case.on_kcp);
            let costs = measure(case, beside).await.context(case.name)?;
            smallest.entry(case.placements == 1).or_insert((case.name, costs));
        }
        Ok(())
    })
}

/// A fleet, and where it stands.
struct Case {
    name: &'static str,
    edges: usize,
    /// Each goes to as many edges as the others.
    placements: usize,
    on_kcp: bool,
}

/// What one change costs, the median of some.
#[derive(Clone, Copy, Default, Debug)]
struct Cost {
    until_written: Duration,
    processor: Duration,
    writes: u64,
}

/// What the changes cost at one size; an edit for each copy of the object.
struct Costs {
    joins: Cost,
    leaves: Cost,
    edit: Cost,
    copies: usize,
}

async fn measure(case: &Case, smallest: Option<&(&str, Costs)>) -> Result<Costs> {
    let Case { name: case, edges, placements, on_kcp } = *case;
    let program = mailboat_bench::program_beside(PROGRAM)?;
    let folder = tempfile::tempdir()?;
    let server =
        if on_kcp { Server::kcp().await? } else { Server::hub(&program, &folder.path().join("hub")).await? };
    let begun = Instant::now();
    let users = Users::board(&server, edges, placements).await?;
    eprintln!("{case}: described after {:.1} s", begun.elapsed().as_secs_f64());
    let delivered = edges * OBJECTS;
    let start =
        |number: usize| CenterProcess::start(&program, &server.kubeconfig, &log_of(folder.path(), number));
    let mut center = start(0)?;
    let filled = center.until_steady(delivered, FILLED).await;
    let filled = filled.with_context(|| tail(&log_of(folder.path(), 0)))?;
    measured(case, "from nothing to every copy in its mailbox").value(filled.as_secs_f64(), "s").print()?;
    measured(case, "processor time of it").value(center.spent()?.as_secs_f64(), "s").print()?;
    if let Some(resident) = server.resident_bytes() {
        eprintln!("{case}: the hub has {} MB resident", resident / 1_000_000);
    }

    let costs = changes(&server, &users, &center, (edges, placements)).await?;
    report(case, &costs, smallest)?;
    let resident = number(center.resident()?.now_bytes);
    measured(case, "resident memory after all that").value(resident / 1e6, "MB").print()?;
    center.kill().await?;

    let before = server.writes().await?;
    let mut center = start(1)?;
    let steady = center.until_steady(delivered, RESTARTED).await;
    let steady = steady.with_context(|| tail(&log_of(folder.path(), 1)))?;
    sleep(FOLLOWS).await;
    let written = server.writes().await? - before;
    let resident = center.resident()?;
    let placed = format!("{case}, {delivered} placed objects, killed and started again");
    measured(&placed, "start to steady")
        .value(steady.as_secs_f64(), "s")
        .at_most(MOST_RESTART_SECONDS)
        .print()?;
    measured(&placed, "processor time of it").value(center.spent()?.as_secs_f64(), "s").print()?;
    measured(&placed, "writes").value(number(written), "").at_most(0.0).print()?;
    measured(&placed, "resident memory")
        .value(number(resident.now_bytes) / 1e6, "MB")
        .at_most(MOST_BYTES / 1e6)
        .print()?;
    measured(&placed, "most resident memory ever").value(number(resident.peak_bytes) / 1e6, "MB").print()?;
    center.kill().await?;
    Ok(costs)
}

/// Flips a label there and back, and edits an object, some times each.
async fn changes(
    server: &Server,
    users: &Users,
    center: &CenterProcess,
    (edges, placements): (usize, usize),
) -> Result<Costs> {
    let mut watching = Watching::begin(users).await?;
    let (joined, edited) = (8 % placements, 3 % placements);
    let copies = edges / placements;
    let scene = (server, center);
    let (mut joins, mut leaves, mut edits) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let mut arrival = Arrival::new(&group_of(joined), true);
        let change = users.flip(Some(joined));
        joins.push(cost(scene, &mut watching, change, |event| arrival.completes(event)).await?);
        let mut departure = Arrival::new(&group_of(joined), false);
        let change = users.flip(None);
        leaves.push(cost(scene, &mut watching, change, |event| departure.completes(event)).await?);
        let edition = format!("edition {round}");
        let mut at = BTreeSet::new();
        let change = users.edit(edited, &edition);
        let everywhere = |event: &Event| {
            if event.resource == "configmaps" && event.object["data"]["edition"] == *edition {
                at.insert(event.cluster().to_owned());
            }
            at.len() == copies
        };
        edits.push(cost(scene, &mut watching, change, everywhere).await?);
    }
    Ok(Costs { joins: median(&joins), leaves: median(&leaves), edit: median(&edits), copies })
}

/// Makes a change, and waits for all that follows from it.
async fn cost(
    (server, center): (&Server, &CenterProcess),
    watching: &mut Watching,
    change: impl Future<Output = Result<()>>,
    completes: impl FnMut(&Event) -> bool,
) -> Result<Cost> {
    watching.forget();
    let (writes, spent, begun) = (server.writes().await?, center.spent()?, Instant::now());
    change.await?;
    watching.until("a change", completes).await?;
    let until_written = begun.elapsed();
    sleep(FOLLOWS).await;
    // One of them was the change itself.
    let writes = server.writes().await? - writes - 1;
    Ok(Cost { until_written, processor: center.spent()?.saturating_sub(spent), writes })
}

/// The spare edge gets, or loses, what a placement places: in the slice, in its mailbox, and in what its syncer is told.
struct Arrival {
    group: String,
    joins: bool,
    slice: bool,
    told: bool,
    copies: BTreeSet<String>,
}

impl Arrival {
    fn new(group: &str, joins: bool) -> Self {
        Self { group: group.to_owned(), joins, slice: false, told: false, copies: BTreeSet::new() }
    }

    fn completes(&mut self, event: &Event) -> bool {
        match event.resource {
            "singleplacementslices" if event.metadata("name") == self.group => {
                self.slice = event.object["destinations"].to_string().contains(SPARE) == self.joins;
            }
            "configmaps"
                if event.metadata("namespace") == self.group && (event.how == "DELETED") != self.joins =>
            {
                self.copies.insert(event.metadata("name").to_owned());
            }
            "syncerconfigs" => {
                let named = event.object["spec"].to_string().matches("config-").count();
                self.told = named == if self.joins { OBJECTS } else { 0 };
            }
            _ => {}
        }
        self.slice && self.told && self.copies.len() == OBJECTS
    }
}

/// What one change cost, and for how many copies.
type Part = fn(&Costs) -> (Cost, usize);

fn report(case: &str, costs: &Costs, smallest: Option<&(&str, Costs)>) -> Result<()> {
    let parts: [(&str, Part); 3] = [
        ("a label flipped: an edge joins a placement", |costs| (costs.joins, 1)),
        ("a label flipped: an edge leaves a placement", |costs| (costs.leaves, 1)),
        ("an object edited, for each copy of it", |costs| (costs.edit, costs.copies)),
    ];
    for (change, part) in parts {
        let (cost, copies) = part(costs);
        let named = format!("{case}: {change}");
        let each = |duration: Duration| duration.as_secs_f64() * 1e3 / number(copies as u64);
        let (time, processor) = (each(cost.until_written), each(cost.processor));
        measured(&named, "until slices and mailboxes are written").value(time, "ms").print()?;
        measured(&named, "writes").value(number(cost.writes) / number(copies as u64), "").print()?;
        let mut taken = measured(&named, "processor time of the center").value(processor, "ms");
        if let Some((smaller, costs)) = smallest {
            let (cost, copies) = part(costs);
            let its = cost.processor.as_secs_f64() * 1e3 / number(copies as u64);
            taken = taken.beside(smaller, its).at_most(MOST_GROWTH);
        }
        taken.print()?;
    }
    Ok(())
}

/// The median of each number, without the first round, in which much is done for the first time.
fn median(costs: &[Cost]) -> Cost {
    let costs = costs.get(1..).unwrap_or_default();
    Cost {
        until_written: middle(costs.iter().map(|cost| cost.until_written)),
        processor: middle(costs.iter().map(|cost| cost.processor)),
        writes: middle(costs.iter().map(|cost| cost.writes)),
    }
}

fn middle<T: Ord + Copy + Default>(numbers: impl Iterator<Item = T>) -> T {
    let mut all: Vec<T> = numbers.collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

fn log_of(folder: &Path, number: usize) -> std::path::PathBuf {
    folder.join(format!("center-{number}.log"))
}

fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(20)..).unwrap_or_default().join("\n")
}

fn measured(case: &str, metric: &str) -> Measurement {
    Measurement::new("center", case, metric)
}

#[expect(clippy::cast_precision_loss, reason = "no count here has 52 bits")]
fn number(count: u64) -> f64 {
    count as f64
}
