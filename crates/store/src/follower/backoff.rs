//! How long to wait after a failure.

use std::time::Duration;

use super::Settings;
use crate::time::{Moment, Random};

#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    healthy_since: Option<Moment>,
}

impl Backoff {
    /// Something succeeded. The failures before are forgotten once that has lasted a while.
    pub(super) fn success(&mut self, now: Moment) {
        self.healthy_since.get_or_insert(now);
    }

    /// Something failed: when to try again. `asked` is the server's own wish.
    pub(super) fn failure(
        &mut self,
        now: Moment,
        asked: Option<Duration>,
        settings: &Settings,
        random: &mut Random,
    ) -> Moment {
        let healthy =
            self.healthy_since.take().is_some_and(|since| now - since >= settings.backoff_forgotten_after);
        if healthy {
            self.failures = 0;
        }
        // 2^20 times the first wait is above any limit; the shift must not overflow.
        let wait =
            settings.backoff_first.saturating_mul(1 << self.failures.min(20)).min(settings.backoff_limit);
        self.failures = self.failures.saturating_add(1);
        let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let wait = Duration::from_millis(random.between(millis / 2, millis));
        // Never earlier than the server asked for, but no server makes us wait for hours.
        let asked = asked.unwrap_or_default().min(settings.backoff_limit);
        now + wait.max(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(backoff: &mut Backoff, now: Moment, count: usize) -> Vec<Duration> {
        let (settings, mut random) = (Settings::default(), Random::new(1));
        (0..count).map(|_| backoff.failure(now, None, &settings, &mut random) - now).collect()
    }

    #[test]
    fn waits_double_up_to_the_limit_with_jitter() {
        let waits = waits(&mut Backoff::default(), Moment(0), 10);
        for (n, wait) in waits.iter().enumerate() {
            let full = Duration::from_millis(800 << n).min(Duration::from_secs(30));
            assert!(*wait >= full / 2 && *wait <= full, "{n}: {wait:?} of {full:?}");
        }
    }

    #[test]
    fn a_while_of_health_forgets_earlier_failures_and_a_moment_of_it_does_not() {
        let first = Settings::default().backoff_first;
        let mut backoff = Backoff::default();
        waits(&mut backoff, Moment(0), 6);
        backoff.success(Moment(1_000));
        assert!(waits(&mut backoff, Moment(2_000), 1)[0] > first);
        backoff.success(Moment(3_000));
        backoff.success(Moment(100_000));
        assert!(waits(&mut backoff, Moment(123_000), 1)[0] <= first);
    }

    #[test]
    fn a_server_that_asks_for_time_gets_it_up_to_the_limit() {
        let (settings, mut random) = (Settings::default(), Random::new(1));
        let mut wait =
            |asked| Backoff::default().failure(Moment(0), Some(asked), &settings, &mut random) - Moment(0);
        assert_eq!(wait(Duration::from_secs(7)), Duration::from_secs(7));
        assert_eq!(wait(Duration::from_hours(1)), settings.backoff_limit);
    }
}
