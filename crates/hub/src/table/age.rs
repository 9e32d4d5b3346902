//! How long ago something was, in few letters.

use mailboat_object::timestamp::{human_duration, unix_seconds};

/// The time since a timestamp, as kubectl's users know it.
pub(super) fn since(timestamp: &str, now_seconds: u64) -> String {
    match unix_seconds(timestamp) {
        Some(then) => human_duration(now_seconds.saturating_sub(then)),
        None => "<unknown>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_of_times_alone() {
        assert_eq!(since("2023-11-14T22:13:20Z", 1_700_000_005), "5s");
        assert_eq!(since("never", 0), "<unknown>");
    }
}
