//! What is done to those who carry, by turns, and how ours is judged beside the floor.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures::future::try_join_all;

use super::carrier::{Carrier, Running};
use super::side::{Arrivals, Side};
use crate::Measurement;

/// How often each case is tried with each of those who carry.
const TURNS: usize = 4;
const STEADY_OBJECTS: usize = 150;
const STEADY_PAUSE: Duration = Duration::from_millis(100);
const BURST_OBJECTS: usize = 2_000;
const WRITERS: usize = 8;
const FEW_OBJECTS: usize = 1_000;
const BACKLOG_OBJECTS: usize = 10_000;
/// After everything stands: until the last answers and events have come.
const CALM: Duration = Duration::from_secs(5);
const LIMIT: Duration = Duration::from_mins(5);

/// What can be measured by itself.
const CASES: [&str; 4] = ["steady", "burst", "rest", "backlog"];

/// The bars that hop and syncer have in common, as ratios to the floor.
const MOST_MEDIAN: f64 = 1.3;
const MOST_P99: f64 = 2.0;
const LEAST_THROUGHPUT: f64 = 0.8;

/// What may be resident, in megabytes, and what is asked of an idle process.
#[derive(Clone, Copy, Debug)]
pub struct Bars {
    /// With nothing to carry.
    pub idle_megabytes: f64,
    /// With a thousand objects.
    pub few_megabytes: f64,
    /// With ten thousand.
    pub many_megabytes: f64,
    /// How long it is watched while nothing changes.
    pub idle_for: Duration,
    /// The most of a core that it may take then, in percent.
    pub idle_percent: Option<f64>,
}

/// Two servers, and those who carry between them.
pub struct Trial {
    /// The name of the benchmark.
    pub bench: &'static str,
    /// Where objects are created.
    pub source: Side,
    /// Where they are awaited.
    pub target: Side,
    /// What is measured.
    pub ours: Carrier,
    /// What runs beside it.
    pub floor: Carrier,
    /// Its bars.
    pub bars: Bars,
}

/// What all turns of one of those who carry came to.
#[derive(Default)]
struct Outcome {
    /// Those of each turn, sorted.
    latencies: Vec<Vec<f64>>,
    burst: Vec<f64>,
    backlog: Vec<f64>,
    /// Of a backlog, in microseconds for each object.
    processor: Vec<f64>,
}

impl Trial {
    /// Tries the cases that were asked for, or all of them, and prints what came of it.
    pub async fn run(&self, cases: &[String]) -> Result<()> {
        if let Some(unknown) = cases.iter().find(|case| !CASES.contains(&case.as_str())) {
            bail!("the benchmark has no case '{unknown}'; it has {}", CASES.join(", "));
        }
        let asked = |case: &str| cases.is_empty() || cases.iter().any(|one| one == case);
        let (mut ours, mut floor) = (Outcome::default(), Outcome::default());
        if asked("steady") {
            self.try_steady(&mut ours, &mut floor).await?;
        }
        if asked("burst") {
            self.try_burst(&mut ours, &mut floor).await?;
        }
        if asked("rest") {
            self.rest().await?;
        }
        if asked("backlog") {
            self.fill().await?;
            self.try_backlog(&mut ours, &mut floor).await?;
        }
        Ok(())
    }

    async fn try_steady(&self, ours: &mut Outcome, floor: &mut Outcome) -> Result<()> {
        for turn in 0..TURNS {
            for (carrier, outcome) in self.both(ours, floor) {
                let mut latencies = self.steady(carrier).await?;
                latencies.sort_by(f64::total_cmp);
                eprintln!("turn {turn}, {}: {}", carrier.name, told(&latencies));
                outcome.latencies.push(latencies);
            }
        }
        self.print_latencies(&ours.latencies, &floor.latencies)
    }

    async fn try_burst(&self, ours: &mut Outcome, floor: &mut Outcome) -> Result<()> {
        for turn in 0..TURNS {
            for (carrier, outcome) in self.both(ours, floor) {
                let speed = self.burst(carrier).await?;
                eprintln!("turn {turn}, {}: burst at {speed:.0} objects/s", carrier.name);
                outcome.burst.push(speed);
            }
        }
        self.print_throughput(
            &format!("burst of {BURST_OBJECTS} by {WRITERS} writers"),
            &ours.burst,
            &floor.burst,
        )
    }

    async fn try_backlog(&self, ours: &mut Outcome, floor: &mut Outcome) -> Result<()> {
        for turn in 0..TURNS {
            for (carrier, outcome) in self.both(ours, floor) {
                let (speed, processor, megabytes) = self.backlog(carrier).await?;
                eprintln!(
                    "turn {turn}, {}: backlog at {speed:.0} objects/s, {processor:.0} µs of the processor for each, then \
                     {megabytes:.1} MB",
                    carrier.name
                );
                outcome.backlog.push(speed);
                outcome.processor.push(processor);
            }
        }
        let case = format!("backlog of {BACKLOG_OBJECTS}");
        self.print_throughput(&case, &ours.backlog, &floor.backlog)?;
        let least = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
        Measurement::new(self.bench, &case, "processor time for each object")
            .value(least(&ours.processor), "µs")
            .beside(self.floor.name, least(&floor.processor))
            .print()?;
        Ok(())
    }

    fn both<'a>(
        &'a self,
        ours: &'a mut Outcome,
        floor: &'a mut Outcome,
    ) -> [(&'a Carrier, &'a mut Outcome); 2] {
        [(&self.ours, ours), (&self.floor, floor)]
    }

    /// Ten a second: how long each takes from the sending of its creation until it is seen at the other side.
    async fn steady(&self, carrier: &Carrier) -> Result<Vec<f64>> {
        let (running, mut arrivals) = self.ready(carrier).await?;
        let begun = Instant::now();
        let created = try_join_all((0..STEADY_OBJECTS).map(|number| async move {
            let at = begun + STEADY_PAUSE * u32::try_from(number)?;
            tokio::time::sleep_until(at.into()).await;
            let (name, sent) = (name(number), Instant::now());
            self.source.create(&name).await?;
            anyhow::Ok((name, sent))
        }));
        // One more than these: what showed that it carries.
        let (created, arrived) = tokio::join!(created, arrivals.until(STEADY_OBJECTS + 1, LIMIT));
        arrived?;
        let latencies = created?.into_iter().map(|(name, sent)| {
            let seen = arrivals.at(&name).with_context(|| format!("{name} never came"))?;
            Ok(seen.saturating_duration_since(sent).as_secs_f64() * 1e3)
        });
        let latencies = latencies.collect::<Result<_>>()?;
        self.over(running).await?;
        Ok(latencies)
    }

    /// Many at once by several writers: objects a second, from the first creation until the last is seen.
    async fn burst(&self, carrier: &Carrier) -> Result<f64> {
        let (running, mut arrivals) = self.ready(carrier).await?;
        let begun = Instant::now();
        let writers = try_join_all((0..WRITERS).map(|writer| async move {
            for number in (writer..BURST_OBJECTS).step_by(WRITERS) {
                self.source.create(&name(number)).await?;
            }
            anyhow::Ok(())
        }));
        let (written, arrived) = tokio::join!(writers, arrivals.until(BURST_OBJECTS + 1, LIMIT));
        written?;
        arrived?;
        let speed = speed(BURST_OBJECTS, begun, &arrivals)?;
        self.over(running).await?;
        Ok(speed)
    }

    /// Sees to it that the source has a backlog, whatever was tried before.
    async fn fill(&self) -> Result<()> {
        if self.source.versions().await?.len() >= BACKLOG_OBJECTS {
            return Ok(());
        }
        self.source.empty().await?;
        self.source.fill((0..BACKLOG_OBJECTS).map(name)).await
    }

    /// All are there before it starts: objects a second from its start until the last is seen, what it took of the processor
    /// for each until then, in microseconds, and what is resident after it.
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    async fn backlog(&self, carrier: &Carrier) -> Result<(f64, f64, f64)> {
        self.target.empty().await?;
        let mut arrivals = self.target.arrivals().await?;
        let running = carrier.start()?;
        arrivals.until(BACKLOG_OBJECTS, LIMIT).await?;
        let processor = running.processor_time()?.as_secs_f64() * 1e6 / BACKLOG_OBJECTS as f64;
        let speed = speed(BACKLOG_OBJECTS, running.begun, &arrivals)?;
        tokio::time::sleep(CALM).await;
        let resident = megabytes(running.resident()?.now_bytes);
        running.end().await?;
        Ok((speed, processor, resident))
    }

    /// What ours takes while nothing happens: without objects, with a thousand, with ten thousand. Leaves these at the
    /// source.
    async fn rest(&self) -> Result<()> {
        let (running, mut arrivals) = self.ready(&self.ours).await?;
        tokio::time::sleep(CALM).await;
        self.print_resident("nothing to carry", &running, self.bars.idle_megabytes)?;
        let mut there = 0;
        for (objects, most) in
            [(FEW_OBJECTS, self.bars.few_megabytes), (BACKLOG_OBJECTS, self.bars.many_megabytes)]
        {
            // What showed that it carries is there already, and counts.
            let filled = self.source.fill((there..objects - 1).map(name));
            // Read all along: a server drops who reads too slowly.
            let (filled, arrived) = tokio::join!(filled, arrivals.until(objects, LIMIT));
            filled?;
            arrived?;
            there = objects - 1;
            tokio::time::sleep(CALM).await;
            self.print_resident(&format!("{objects} objects"), &running, most)?;
            if objects == FEW_OBJECTS {
                self.idle(&running, objects).await?;
            }
        }
        running.end().await
    }

    async fn idle(&self, running: &Running, objects: usize) -> Result<()> {
        let versions = (self.source.versions().await?, self.target.versions().await?);
        let (writes, spent, begun) = (self.target.writes().await?, running.processor_time()?, Instant::now());
        tokio::time::sleep(self.bars.idle_for).await;
        let taken =
            running.processor_time()?.saturating_sub(spent).as_secs_f64() / begun.elapsed().as_secs_f64();
        let written = self.target.writes().await? - writes;
        let same = versions == (self.source.versions().await?, self.target.versions().await?);
        ensure!(same, "objects have changed while nothing was to be done");
        let case = format!("{objects} objects, {} s idle", self.bars.idle_for.as_secs());
        Measurement::new(self.bench, &case, "writes").value(written, "requests").at_most(0.0).print()?;
        let processor =
            Measurement::new(self.bench, &case, "processor time").value(taken * 100.0, "% of a core");
        match self.bars.idle_percent {
            Some(most) => processor.at_most(most).print()?,
            None => processor.print()?,
        }
        Ok(())
    }

    /// Starts one of those who carry between empty namespaces, and waits until it carries.
    async fn ready(&self, carrier: &Carrier) -> Result<(Running, Arrivals)> {
        self.source.empty().await?;
        self.target.empty().await?;
        let mut arrivals = self.target.arrivals().await?;
        let running = carrier.start()?;
        self.source.create("first").await?;
        let came = arrivals.until(1, LIMIT).await;
        came.with_context(|| format!("{} carries nothing", carrier.name))?;
        Ok((running, arrivals))
    }

    async fn over(&self, running: Running) -> Result<()> {
        running.end().await
    }

    /// The best turn of each counts, here and below: whatever disturbs one only makes it worse.
    fn print_latencies(&self, ours: &[Vec<f64>], floor: &[Vec<f64>]) -> Result<()> {
        for (metric, share, bar) in [("median latency", 0.5, MOST_MEDIAN), ("99 % latency", 0.99, MOST_P99)] {
            let best = |turns: &[Vec<f64>]| {
                turns.iter().map(|turn| quantile(turn, share)).fold(f64::INFINITY, f64::min)
            };
            Measurement::new(self.bench, "10 a second", metric)
                .value(best(ours), "ms")
                .beside(self.floor.name, best(floor))
                .at_most(bar)
                .print()?;
        }
        Ok(())
    }

    fn print_throughput(&self, case: &str, ours: &[f64], floor: &[f64]) -> Result<()> {
        let best = |speeds: &[f64]| speeds.iter().copied().fold(0.0, f64::max);
        Measurement::new(self.bench, case, "throughput")
            .value(best(ours), "objects/s")
            .beside(self.floor.name, best(floor))
            .at_least(LEAST_THROUGHPUT)
            .print()?;
        Ok(())
    }

    fn print_resident(&self, case: &str, running: &Running, most: f64) -> Result<()> {
        let resident = running.resident()?;
        Measurement::new(self.bench, case, "resident memory")
            .value(megabytes(resident.now_bytes), "MB")
            .at_most(most)
            .print()?;
        Ok(())
    }
}

fn name(number: usize) -> String {
    format!("map-{number:05}")
}

fn told(sorted: &[f64]) -> String {
    format!("median {:.1} ms, 99 % {:.1} ms", quantile(sorted, 0.5), quantile(sorted, 0.99))
}

/// The least value that this share of all do not exceed.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank between nought and some hundreds"
)]
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}

#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn speed(objects: usize, begun: Instant, arrivals: &Arrivals) -> Result<f64> {
    let last = arrivals.last().context("nothing came")?;
    Ok(objects as f64 / last.saturating_duration_since(begun).as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "for people to read")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_a_value_that_was_measured() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        for (share, expected) in [(0.5, 50.0), (0.99, 99.0), (1.0, 100.0), (0.0, 1.0)] {
            assert!((quantile(&hundred, share) - expected).abs() < f64::EPSILON, "{share}");
        }
        assert!(quantile(&[], 0.5).is_nan());
    }
}
