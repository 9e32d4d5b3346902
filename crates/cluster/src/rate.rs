//! A token bucket, and the one source of jitter.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::settings::Rate;

/// Lets requests start at a rate. Waiting is fair: each takes the next free moment when it arrives.
pub(crate) struct Bucket {
    rate: Option<Rate>,
    /// When the bucket would be full again. Requests move it forward; time passes it by.
    full_at: Mutex<Instant>,
}

impl Bucket {
    pub(crate) fn new(rate: Option<Rate>) -> Self {
        let rate = rate.filter(|rate| rate.per_second > 0.0 && rate.per_second.is_finite());
        Self { rate, full_at: Mutex::new(Instant::now()) }
    }

    /// Waits for this request's turn.
    pub(crate) async fn turn(&self) {
        let wait = self.reserve(Instant::now());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    fn reserve(&self, now: Instant) -> Duration {
        let Some(rate) = self.rate else { return Duration::ZERO };
        let cost = Duration::from_secs_f64(1.0 / rate.per_second);
        let depth = cost * rate.burst.max(1);
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        *full_at = (*full_at).max(now) + cost;
        (*full_at).saturating_duration_since(now).saturating_sub(depth)
    }
}

/// A pause of `base`, half of it random, so that many that failed together do not come back together.
pub(crate) fn jittered(base: Duration) -> Duration {
    // RandomState is seeded by the system and differs on every call: enough for jitter, and no crate for it.
    let random = RandomState::new().hash_one(0_u8) >> 48;
    let half = base / 2;
    half + half.mul_f64(f64::from(u16::try_from(random).unwrap_or(u16::MAX)) / f64::from(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let bucket = Bucket::new(Some(Rate { per_second: 10.0, burst: 3 }));
        let now = Instant::now();
        let waits: Vec<u128> = (0..5).map(|_| bucket.reserve(now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200]);
        let later = now + Duration::from_secs(10);
        let waits: Vec<u128> = (0..4).map(|_| bucket.reserve(later).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100], "a quiet time fills the bucket, and no more than that");
    }

    #[test]
    fn without_a_rate_nobody_waits() {
        let bucket = Bucket::new(None);
        let now = Instant::now();
        assert!((0..1000).all(|_| bucket.reserve(now).is_zero()));
    }

    #[test]
    fn jitter_stays_between_half_and_all_of_the_pause() {
        let base = Duration::from_millis(100);
        let pauses: Vec<Duration> = (0..200).map(|_| jittered(base)).collect();
        assert!(pauses.iter().all(|p| *p >= base / 2 && *p <= base), "{pauses:?}");
        assert!(pauses.iter().any(|p| *p != pauses[0]), "all pauses were {:?}", pauses[0]);
    }
}
