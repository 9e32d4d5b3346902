//! Plays schedules on all cores: drawn from seeds (`--seeds N [--from F]`), or all in which everything disappears in some
//! order (`--orders`); or one again, with all that happened if it fails (`--seed S`, `--order O`).
//!
//! Failing scripts go to standard output, shrunk, each with what replays it; progress goes to standard error. Ends with 1
//! if anything failed. Threads and a clock are used around the worlds, never in one: what a seed comes to does not depend
//! on them.

#![allow(
    clippy::disallowed_methods,
    reason = "this is the program around the worlds; they have no clock or thread"
)]

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mailboat_sim::{Failure, Options, Report};

/// After so many failing schedules the rest is not played.
const FAILURES_AT_MOST: usize = 5;
/// How often it is said how far it has come.
const SAY_EVERY: Duration = Duration::from_secs(5);
/// How often it is looked whether all is done.
const TICK: Duration = Duration::from_millis(20);

/// What is asked for.
#[derive(Clone, Copy)]
struct Arguments {
    what: What,
    from: u64,
    count: u64,
    threads: usize,
}

/// Where schedules come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Seeds,
    Orders,
}

/// What all threads share.
struct Shared {
    next: AtomicU64,
    done: AtomicU64,
    stop: AtomicBool,
    total: Mutex<Report>,
    failures: Mutex<Vec<Failure>>,
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)) {
        Ok(arguments) => play(arguments),
        Err(sentence) => {
            eprintln!("error: {sentence}");
            ExitCode::from(2)
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut arguments = Arguments { what: What::Seeds, from: 0, count: 200, threads: cores };
    while let Some(word) = words.next() {
        if word == "--orders" {
            let orders = mailboat_sim::orders::all().len() as u64;
            arguments = Arguments { what: What::Orders, from: 0, count: orders, ..arguments };
            continue;
        }
        let value = words.next().and_then(|value| value.parse::<u64>().ok());
        let value = value.ok_or_else(|| format!("{word} needs a number"))?;
        match word.as_str() {
            "--seeds" => arguments.count = value,
            "--from" => arguments.from = value,
            "--seed" => (arguments.from, arguments.count) = (value, 1),
            "--order" => arguments = Arguments { what: What::Orders, from: value, count: 1, ..arguments },
            "--threads" => arguments.threads = usize::try_from(value).unwrap_or(1).max(1),
            _ => {
                let known = "--seeds, --from, --seed, --orders, --order and --threads";
                return Err(format!("{word} is not known; there are {known}"));
            }
        }
    }
    Ok(arguments)
}

fn play(arguments: Arguments) -> ExitCode {
    let shared = Shared {
        next: AtomicU64::new(arguments.from),
        done: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        total: Mutex::default(),
        failures: Mutex::default(),
    };
    let began = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..arguments.threads).map(|_| scope.spawn(|| work(&shared, arguments))).collect();
        let mut said = began;
        while !threads.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            std::thread::sleep(TICK);
            if said.elapsed() > SAY_EVERY {
                said = Instant::now();
                let done = shared.done.load(Ordering::Relaxed);
                eprintln!("{done} of {} schedules, {:.0}/s", arguments.count, rate(done, began));
            }
        }
    });
    let failed = shared.failures.lock().map_or(1, |failures| failures.len());
    let done = shared.done.load(Ordering::Relaxed);
    if let Ok(total) = shared.total.lock() {
        println!("{total}");
    }
    println!("{} schedules passed, {failed} failed, {:.0}/s", done - failed as u64, rate(done, began));
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Plays one schedule after the other until there are no more.
fn work(shared: &Shared, arguments: Arguments) {
    let end = arguments.from.saturating_add(arguments.count);
    // One alone is played to be understood.
    let options = Options { log: arguments.count == 1, ..Options::default() };
    while !shared.stop.load(Ordering::Relaxed) {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        if number >= end {
            return;
        }
        let played = match arguments.what {
            What::Seeds => mailboat_sim::run(number, &options),
            What::Orders => {
                let order = usize::try_from(number).unwrap_or(usize::MAX);
                let Some(played) = mailboat_sim::run_order(order, &options) else { return };
                played
            }
        };
        shared.done.fetch_add(1, Ordering::Relaxed);
        match played {
            Ok(report) => {
                if let Ok(mut total) = shared.total.lock() {
                    total.add(&report);
                }
            }
            Err(failure) => {
                tell(&failure, arguments.what);
                if let Ok(mut failures) = shared.failures.lock() {
                    failures.push(failure);
                    shared.stop.store(failures.len() >= FAILURES_AT_MOST, Ordering::Relaxed);
                }
            }
        }
    }
}

fn tell(failure: &Failure, what: What) {
    for line in &failure.log {
        println!("{line}");
    }
    let flag = match what {
        What::Seeds => "--seed",
        What::Orders => "--order",
    };
    println!("{failure}\n  replay it: cargo xtask sim {flag} {}", failure.seed);
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
fn rate(done: u64, began: Instant) -> f64 {
    done as f64 / began.elapsed().as_secs_f64().max(0.001)
}
