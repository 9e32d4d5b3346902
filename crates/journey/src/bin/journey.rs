//! Plays journeys on all cores (`--seeds N [--from F]`), or one again, with all that happened if it fails (`--seed S`);
//! `--unshrunk` leaves failing scripts as long as they are, which is much faster.
//!
//! Failing scripts go to standard output, shrunk, each with what replays it. Ends with 1 if anything failed.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use mailboat_journey::{Failure, Options, Report, run};

/// After so many failing journeys the rest is not played.
const FAILURES_AT_MOST: usize = 5;

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)) {
        Ok(arguments) => play(arguments),
        Err(sentence) => {
            eprintln!("error: {sentence}");
            ExitCode::from(2)
        }
    }
}

/// What is asked for.
#[derive(Clone, Copy)]
struct Arguments {
    from: u64,
    count: u64,
    threads: usize,
    shrink: bool,
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut arguments = Arguments { from: 0, count: 200, threads: cores, shrink: true };
    while let Some(word) = words.next() {
        if word == "--unshrunk" {
            arguments.shrink = false;
            continue;
        }
        let value = words.next().and_then(|value| value.parse::<u64>().ok());
        let value = value.ok_or_else(|| format!("{word} needs a number"))?;
        match word.as_str() {
            "--seeds" => arguments.count = value,
            "--from" => arguments.from = value,
            "--seed" => (arguments.from, arguments.count) = (value, 1),
            "--threads" => arguments.threads = usize::try_from(value).unwrap_or(1).max(1),
            _ => {
                let known = "--seeds, --from, --seed, --threads and --unshrunk";
                return Err(format!("{word} is not known; there are {known}"));
            }
        }
    }
    Ok(arguments)
}

fn play(arguments: Arguments) -> ExitCode {
    let Arguments { from, count, threads, shrink } = arguments;
    let next = AtomicU64::new(from);
    let done: Mutex<(Report, u64, Vec<Failure>)> = Mutex::default();
    let options = Options { log: count == 1, shrink, ..Options::default() };
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let failed = done.lock().map_or(FAILURES_AT_MOST, |done| done.2.len());
                    if seed >= from.saturating_add(count) || failed >= FAILURES_AT_MOST {
                        return;
                    }
                    let played = run(seed, &options);
                    let Ok(mut done) = done.lock() else { return };
                    done.1 += 1;
                    match played {
                        Ok(report) => done.0.add(&report),
                        Err(failure) => {
                            for line in &failure.log {
                                println!("{line}");
                            }
                            println!("{failure}\n  replay it: cargo xtask sim --journey {seed}");
                            done.2.push(failure);
                        }
                    }
                }
            });
        }
    });
    let Ok(done) = done.into_inner() else { return ExitCode::FAILURE };
    let (total, played, failures) = done;
    println!("{total}");
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let rate = played as f64 / began.elapsed().as_secs_f64().max(0.001);
    println!(
        "{} journeys ended well, {} did not, {rate:.1}/s",
        played - failures.len() as u64,
        failures.len()
    );
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
