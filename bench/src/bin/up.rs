//! Benchmark `up`: from the built program to the example in place, with everything embedded.
//!
//! The shipped program is run as somebody runs it who has nothing yet: `mailboat up`, without a folder that is kept. It says
//! itself when it has seen all of the example at both edges, and what is measured is until that is heard here, beside nothing:
//! the bar is on the time itself. Whoever measures it on a machine with other things to do measures those.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use mailboat_bench::Measurement;

/// The program that is measured; `cargo xtask bench` builds it beside this one.
const PROGRAM: &str = "mailboat";
/// It is started so often, each time with nothing.
const ROUNDS: usize = 5;
/// What it says at the end.
const IN_PLACE: &str = "example1 is in place";
/// A first run takes no longer than anybody waits for it.
const MOST_SECONDS: f64 = 10.0;

fn main() -> Result<()> {
    let program = mailboat_bench::program_beside(PROGRAM)?;
    let rounds: Vec<Round> = (0..ROUNDS).map(|_| Round::play(&program)).collect::<Result<_>>()?;
    let median = |of: fn(&Round) -> f64| {
        let mut all: Vec<f64> = rounds.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let measured = |metric: &str| Measurement::new("up", "embedded", metric);
    measured("from the start to the example in place")
        .value(median(|round| round.heard), "s")
        .at_most(MOST_SECONDS)
        .print()?;
    measured("the same by its own clock").value(median(|round| round.said), "s").print()?;
    Ok(())
}

/// How long it took once, in seconds.
struct Round {
    /// As seen from here.
    heard: f64,
    /// As it says itself.
    said: f64,
}

impl Round {
    fn play(program: &Path) -> Result<Self> {
        // What it keeps for as long as it runs goes with this folder, however it ends.
        let folder = tempfile::tempdir()?;
        let begun = Instant::now();
        let child = Command::new(program)
            .arg("up")
            .env("TMPDIR", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} cannot be started", program.display()))?;
        let mut running = Running(child);
        let lines = running.0.stderr.take().context("it says nothing")?;
        let mut said = String::new();
        for line in BufReader::new(lines).lines() {
            let line = line?;
            if line.ends_with(IN_PLACE) {
                let heard = begun.elapsed().as_secs_f64();
                let own = line.split_whitespace().next().and_then(|seconds| seconds.parse().ok());
                let said = own.with_context(|| format!("it does not say when: {line}"))?;
                return Ok(Self { heard, said });
            }
            said.push('\n');
            said.push_str(&line);
        }
        bail!("it ended before everything was in place:{said}");
    }
}

/// The program, which ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended by itself is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
