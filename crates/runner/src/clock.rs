//! Time, as it passes on a machine that sleeps now and then.
//!
//! What tokio counts stands still while the machine sleeps. A laptop or a virtual machine that was suspended between a fresh look
//! and its answer would then act on what was so an hour ago, and a leader would believe that it leads still.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mailboat_store::Moment;
use tokio::time::Instant;

/// The machine has slept if it slept for so many milliseconds: the two clocks are not read in the same moment.
const SLEPT_AT_LEAST: u64 = 1_000;

/// A clock that only goes forward and does not stand still while the machine sleeps.
pub(crate) fn clock() -> Moment {
    #[cfg(target_os = "linux")]
    let id = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let id = rustix::time::ClockId::Monotonic;
    read(id)
}

/// How long the machine has slept since it was started, in milliseconds, where it can be told.
fn slept() -> u64 {
    // In this order: whatever comes in between makes it less, and never more.
    let with_sleep = clock();
    with_sleep.0.saturating_sub(read(rustix::time::ClockId::Monotonic).0)
}

fn read(id: rustix::time::ClockId) -> Moment {
    let time = rustix::time::clock_gettime(id);
    Moment(time.tv_sec.unsigned_abs() * 1_000 + time.tv_nsec.unsigned_abs() / 1_000_000)
}

/// The time since it was made: what tokio counts, which tests may hold, and what the machine slept meanwhile.
pub(crate) struct Clock {
    begun: Instant,
    asleep: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// How long the machine had slept when it was made.
    before: u64,
    /// How long it slept since, as last seen.
    since: AtomicU64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self::telling(Arc::new(slept))
    }

    /// A clock on a machine that has slept for as long as this says.
    fn telling(asleep: Arc<dyn Fn() -> u64 + Send + Sync>) -> Self {
        Self { begun: Instant::now(), before: asleep(), asleep, since: AtomicU64::new(0) }
    }

    /// When it was made.
    pub(crate) fn begun(&self) -> Instant {
        self.begun
    }

    /// The time.
    pub(crate) fn now(&self) -> Moment {
        let awake = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Moment(awake.saturating_add(self.slept()))
    }

    fn slept(&self) -> u64 {
        let (known, slept) =
            (self.since.load(Ordering::Relaxed), (self.asleep)().saturating_sub(self.before));
        if slept < known.saturating_add(SLEPT_AT_LEAST) {
            return known;
        }
        self.since.store(slept, Ordering::Relaxed);
        slept
    }

    /// When a moment comes, by tokio's clock, if the machine sleeps no more; a millisecond later, so that it has passed when
    /// we wake.
    pub(crate) fn instants(&self) -> impl Fn(Moment) -> Instant + Copy + use<> {
        let (begun, slept) = (self.begun, self.slept());
        move |moment| begun + Duration::from_millis(moment.0.saturating_sub(slept).saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_the_machine_slept_has_passed() {
        let asleep = Arc::new(AtomicU64::new(3_600_000));
        let told = Arc::clone(&asleep);
        let clock = Clock::telling(Arc::new(move || told.load(Ordering::Relaxed)));
        assert_eq!(clock.now(), Moment(0), "what it slept before counts for nothing");
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(clock.now(), Moment(500));
        asleep.fetch_add(60_000, Ordering::Relaxed);
        assert_eq!(clock.now(), Moment(60_500));
        // A moment that is yet to come is no later for it.
        let due = clock.instants()(Moment(61_500));
        assert_eq!(due - Instant::now(), Duration::from_millis(1_001));
        asleep.fetch_sub(10, Ordering::Relaxed);
        assert_eq!(clock.now(), Moment(60_500), "it never goes back");
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_is_awake_has_the_time_that_tests_give_it() {
        let clock = Clock::new();
        for passed in 1..100 {
            tokio::time::advance(Duration::from_millis(1)).await;
            assert_eq!(clock.now(), Moment(passed));
        }
    }
}
