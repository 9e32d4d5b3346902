//! The program around worlds: it plays many of them on all cores, says how far it has come, and prints what fails with what
//! replays it. Threads and a clock are used here, never in a world: what a seed comes to does not depend on them.

#![allow(
    clippy::disallowed_methods,
    reason = "this is the program around the worlds; they have no clock or thread"
)]

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::{Failure, Report};

/// After so many failures the rest is not played.
const FAILURES_AT_MOST: usize = 5;
/// How often it is said how far it has come.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// What can be played.
pub struct Player<'p> {
    /// What it is called, if it is many.
    pub what: &'p str,
    /// What plays one again, before its number.
    pub replay: &'p str,
    /// Plays the one of a number, and writes down all that happens if that is asked for.
    pub play: &'p (dyn Fn(u64, bool) -> Result<Report, Failure> + Sync),
}

/// Which of them are played, and on how many threads.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    from: u64,
    count: u64,
    threads: usize,
}

impl Default for Numbers {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { from: 0, count: 200, threads }
    }
}

impl Numbers {
    /// The flags that [`Numbers::take`] knows, for people.
    pub const FLAGS: &'static str = "--seeds N, --from F, --seed S and --threads T";

    /// Takes a flag and its value from a command line. False if it is none of these.
    pub fn take(&mut self, flag: &str, words: &mut dyn Iterator<Item = String>) -> Result<bool, String> {
        let field = match flag {
            "--seeds" => &mut self.count,
            "--from" => &mut self.from,
            "--seed" => {
                *self = self.one(number(flag, words)?);
                return Ok(true);
            }
            "--threads" => {
                self.threads = usize::try_from(number(flag, words)?).unwrap_or(1).max(1);
                return Ok(true);
            }
            _ => return Ok(false),
        };
        *field = number(flag, words)?;
        Ok(true)
    }

    /// The first so many.
    #[must_use]
    pub fn first(self, count: u64) -> Self {
        Self { from: 0, count, ..self }
    }

    /// This one alone.
    #[must_use]
    pub fn one(self, number: u64) -> Self {
        Self { from: number, count: 1, ..self }
    }
}

/// The number that follows a flag.
pub fn number(flag: &str, words: &mut dyn Iterator<Item = String>) -> Result<u64, String> {
    let value = words.next().and_then(|value| value.parse().ok());
    value.ok_or_else(|| format!("{flag} needs a number"))
}

/// Reads the command line, plays what it asks for, and ends with 1 if anything failed, or with 2 and a sentence if nobody
/// can understand it.
pub fn run<A>(
    parse: impl FnOnce(&mut dyn Iterator<Item = String>) -> Result<A, String>,
    play: impl FnOnce(A) -> ExitCode,
) -> ExitCode {
    match parse(&mut std::env::args().skip(1)) {
        Ok(arguments) => play(arguments),
        Err(sentence) => {
            eprintln!("error: {sentence}");
            ExitCode::from(2)
        }
    }
}

/// What all threads share.
struct Shared {
    next: AtomicU64,
    done: AtomicU64,
    stop: AtomicBool,
    total: Mutex<Report>,
    failed: AtomicU64,
}

impl Player<'_> {
    /// Plays them.
    pub fn play(&self, numbers: Numbers) -> ExitCode {
        let shared = Shared {
            next: AtomicU64::new(numbers.from),
            done: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            total: Mutex::default(),
            failed: AtomicU64::new(0),
        };
        let began = Instant::now();
        std::thread::scope(|scope| {
            // Nothing is sent: the channel closes when the last thread has ended.
            let (working, ended) = mpsc::channel::<()>();
            for _ in 0..numbers.threads {
                let (working, shared) = (working.clone(), &shared);
                scope.spawn(move || {
                    let _working = working;
                    self.work(shared, numbers);
                });
            }
            drop(working);
            while ended.recv_timeout(SAY_EVERY) == Err(RecvTimeoutError::Timeout) {
                let done = shared.done.load(Ordering::Relaxed);
                eprintln!("{done} of {} {}, {:.1}/s", numbers.count, self.what, rate(done, began));
            }
        });
        let (done, failed) = (shared.done.load(Ordering::Relaxed), shared.failed.load(Ordering::Relaxed));
        if let Ok(total) = shared.total.lock() {
            println!("{total}");
        }
        println!("{} {} passed, {failed} failed, {:.1}/s", done - failed, self.what, rate(done, began));
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// Plays one after the other until there are no more.
    fn work(&self, shared: &Shared, numbers: Numbers) {
        let end = numbers.from.saturating_add(numbers.count);
        while !shared.stop.load(Ordering::Relaxed) {
            let number = shared.next.fetch_add(1, Ordering::Relaxed);
            if number >= end {
                return;
            }
            // One alone is played to be understood.
            let played = (self.play)(number, numbers.count == 1);
            shared.done.fetch_add(1, Ordering::Relaxed);
            match played {
                Ok(report) => {
                    if let Ok(mut total) = shared.total.lock() {
                        total.add(&report);
                    }
                }
                Err(failure) => {
                    self.tell(&failure);
                    let failed = shared.failed.fetch_add(1, Ordering::Relaxed) + 1;
                    shared.stop.store(failed >= FAILURES_AT_MOST as u64, Ordering::Relaxed);
                }
            }
        }
    }

    fn tell(&self, failure: &Failure) {
        for line in &failure.log {
            println!("{line}");
        }
        println!("{failure}\n  replay it: {} {}", self.replay, failure.number);
    }
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
fn rate(done: u64, began: Instant) -> f64 {
    done as f64 / began.elapsed().as_secs_f64().max(0.001)
}
