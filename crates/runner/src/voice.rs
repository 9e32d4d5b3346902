//! What is said in the log of how things stand: what somebody has to change, once, and never so much that nothing else is read.

use mailboat_engine::engine::Notice;
use mailboat_engine::plan::{Verdict, Wait};
use mailboat_store::Moment;

/// So many lines are said in a minute. A thousand objects that are refused together mostly are so for one reason.
const LINES: usize = 20;
const MINUTE_MILLIS: u64 = 60_000;

/// Says what somebody should hear of.
#[derive(Default)]
pub(crate) struct Voice {
    since: Moment,
    said: usize,
    unsaid: usize,
}

impl Voice {
    /// A slot stands otherwise.
    pub(crate) fn tell(&mut self, now: Moment, notice: &Notice) {
        let Notice { slot, verdict, fault } = notice;
        if !matters(verdict) {
            return;
        }
        if let Some(unsaid) = self.next_minute(now) {
            tracing::warn!(unsaid, "more objects were refused or contended for than are listed here");
        }
        if self.may_speak() {
            tracing::warn!(%slot, %verdict, fault = fault.as_deref(), "not as it should be, and somebody has to change something");
        }
    }

    /// Begins another minute if one is over; says how much was left unsaid in it, if anything was.
    fn next_minute(&mut self, now: Moment) -> Option<usize> {
        if now.0 < self.since.0 + MINUTE_MILLIS {
            return None;
        }
        let unsaid = std::mem::take(&mut self.unsaid);
        (self.since, self.said) = (now, 0);
        (unsaid > 0).then_some(unsaid)
    }

    fn may_speak(&mut self) -> bool {
        let may = self.said < LINES;
        if may {
            self.said += 1;
        } else {
            self.unsaid += 1;
        }
        may
    }
}

/// Whether somebody should hear of it without asking. What waits goes on by itself, and roles say what is held, all of it at once.
fn matters(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Refused(_) | Verdict::Waiting(Wait::Contention) => true,
        Verdict::Settled | Verdict::Acting | Verdict::Waiting(_) | Verdict::Held(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use mailboat_engine::plan::{ChangeId, Refusal};

    use super::*;

    #[test]
    fn what_somebody_has_to_change_is_said_and_what_passes_is_not() {
        for (verdict, said) in [
            (Verdict::Refused(Refusal::Rejected), true),
            (Verdict::Refused(Refusal::Foreign), true),
            (Verdict::Waiting(Wait::Contention), true),
            (Verdict::Waiting(Wait::Rest), false),
            (Verdict::Waiting(Wait::Cluster), false),
            (Verdict::Held(ChangeId(1)), false),
            (Verdict::Settled, false),
        ] {
            assert_eq!(matters(&verdict), said, "{verdict}");
        }
    }

    #[test]
    fn a_thousand_refusals_are_some_lines_and_a_number() {
        let mut voice = Voice::default();
        let spoken = (0..1_000).filter(|_| voice.may_speak()).count();
        assert_eq!(spoken, LINES);
        assert_eq!(voice.next_minute(Moment(1)), None);
        assert_eq!(voice.next_minute(Moment(MINUTE_MILLIS)), Some(1_000 - LINES));
        assert!(voice.may_speak());
        assert_eq!(voice.next_minute(Moment(3 * MINUTE_MILLIS)), None, "all was said");
    }
}
