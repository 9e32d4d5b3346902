//! How long ago something was, in few letters.

use mailboat_object::timestamp::unix_seconds;

/// The time since a timestamp, as kubectl's users know it: `45s`, `3m12s`, `5h`, `2d4h`, `1y30d`.
pub(super) fn since(timestamp: &str, now_seconds: u64) -> String {
    match unix_seconds(timestamp) {
        Some(then) => human(now_seconds.saturating_sub(then)),
        None => "<unknown>".to_owned(),
    }
}

/// A duration in at most two units, the smaller one only where it matters.
fn human(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let two = |large: u64, unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{small_unit}"),
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_kubectl_writes_them() {
        let day = 86_400;
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (601, "10m"),
            (10_799, "179m"),
            (3 * 3_600 + 60, "3h1m"),
            (9 * 3_600, "9h"),
            (2 * day, "2d"),
            (2 * day + 3_600, "2d1h"),
            (8 * day, "8d"),
            (729 * day, "729d"),
            (731 * day, "2y1d"),
            (3_000 * day, "8y"),
        ] {
            assert_eq!(human(seconds), text, "{seconds}");
        }
        assert_eq!(since("2023-11-14T22:13:20Z", 1_700_000_005), "5s");
        assert_eq!(since("never", 0), "<unknown>");
    }
}
