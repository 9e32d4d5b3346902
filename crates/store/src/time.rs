//! Time and randomness as they come in from outside.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A point on a clock that only goes forward, in milliseconds since some start of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(pub u64);

impl Add<Duration> for Moment {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }
}

impl Sub for Moment {
    type Output = Duration;
    /// The time between two moments; nothing if `earlier` is in truth the later one.
    fn sub(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}s", self.0 / 1000, self.0 % 1000)
    }
}

/// What time it is, on both clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Now {
    /// For waiting and for measuring: never jumps.
    pub mono: Moment,
    /// Unix seconds, for what people and other machines read: may jump.
    pub wall_seconds: u64,
}

/// A small generator of numbers that spread waiting clients apart (SplitMix64). Equal seeds give equal
/// numbers on every platform; it is no source of secrets.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `low` to `high`, both included; `low` if the range is empty.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        match high.checked_sub(low) {
            None | Some(0) => low,
            // The bias of a remainder is far below what jitter could show.
            Some(width) => low + self.draw() % width.saturating_add(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_numbers() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            [random.draw(), random.draw(), random.draw()]
        };
        // The first outputs of SplitMix64 for seed 0, as its authors publish them.
        assert_eq!(draw(0), [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
        assert_ne!(draw(0), draw(1));
    }

    #[test]
    fn a_range_is_kept_and_both_ends_are_reached() {
        let mut random = Random::new(7);
        let drawn: std::collections::BTreeSet<u64> = (0..200).map(|_| random.between(240, 244)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [240, 241, 242, 243, 244]);
        assert_eq!(random.between(5, 5), 5);
        assert_eq!(random.between(9, 5), 9);
    }

    #[test]
    fn moments_never_run_backwards() {
        let early = Moment(1_000);
        let late = early + Duration::from_millis(2_500);
        assert_eq!(late, Moment(3_500));
        assert_eq!(late - early, Duration::from_millis(2_500));
        assert_eq!(early - late, Duration::ZERO);
        assert_eq!(format!("{late:?}"), "3.500s");
    }
}
