//! `evictAfter`: a moment, as in classic kcp, or a length of time, as in its successor.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// What the schema lets through: an RFC 3339 time, or a Go duration such as `1h30m`.
pub(crate) const PATTERN: &str = r"^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})|([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+)$";

/// A parsed `evictAfter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictAfter {
    /// Work leaves once this moment has passed.
    Moment(Timestamp),
    /// Work leaves once the SyncTarget has been unschedulable for this long.
    Unschedulable(Duration),
}

/// Why a text is no `evictAfter`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("evictAfter {text:?} is neither an RFC 3339 time nor a duration such as 5m")]
pub struct NotAnEviction {
    /// The text that was read.
    pub text: String,
}

impl EvictAfter {
    /// Reads the field's text.
    pub fn parse(text: &str) -> Result<Self, NotAnEviction> {
        if let Ok(moment) = text.parse::<Timestamp>() {
            return Ok(Self::Moment(moment));
        }
        // An ISO 8601 period ("PT5M") would parse as well, but no Kubernetes field is written that way.
        text.starts_with(|first: char| first.is_ascii_digit())
            .then(|| text.parse::<SignedDuration>().ok())
            .flatten()
            .and_then(|duration| Duration::try_from(duration).ok())
            .map(Self::Unschedulable)
            .ok_or_else(|| NotAnEviction { text: text.to_owned() })
    }

    /// The moment from which work leaves, given since when the SyncTarget is unschedulable.
    pub fn moment(self, unschedulable_since: Option<Timestamp>) -> Option<Timestamp> {
        match self {
            Self::Moment(moment) => Some(moment),
            Self::Unschedulable(duration) => unschedulable_since?.checked_add(duration).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lineages_are_read() {
        let moment: Timestamp = "2024-05-01T10:00:00Z".parse().expect("a timestamp");
        assert_eq!(EvictAfter::parse("2024-05-01T10:00:00Z"), Ok(EvictAfter::Moment(moment)));
        assert_eq!(EvictAfter::parse("2024-05-01T12:00:00+02:00"), Ok(EvictAfter::Moment(moment)));
        for (text, seconds) in [("5m", 300), ("90s", 90), ("1h30m", 5400), ("1.5h", 5400)] {
            assert_eq!(
                EvictAfter::parse(text),
                Ok(EvictAfter::Unschedulable(Duration::from_secs(seconds))),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_neither_is_refused_and_quoted() {
        for text in ["", "soon", "-5m", "PT5M", "2024-13-01T00:00:00Z"] {
            let refusal = EvictAfter::parse(text).expect_err(text);
            assert!(refusal.to_string().contains(&format!("{text:?}")), "{refusal}");
        }
    }

    #[test]
    fn a_duration_counts_from_the_cordon_and_never_without_one() {
        let since: Timestamp = "2024-05-01T10:00:00Z".parse().expect("a timestamp");
        let after = EvictAfter::parse("5m").expect("a duration");
        assert_eq!(after.moment(Some(since)), Some("2024-05-01T10:05:00Z".parse().expect("a timestamp")));
        assert_eq!(after.moment(None), None);
    }
}
