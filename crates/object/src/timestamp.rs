//! Times as API servers write them, without a clock.

/// The Unix time in seconds of an RFC 3339 time; fractions of a second are dropped. `None` for anything else,
/// and for times before 1970.
pub fn unix_seconds(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let separators = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    if separators.iter().any(|(at, byte)| bytes.get(*at) != Some(byte))
        || !matches!(bytes.get(10), Some(b'T' | b't'))
    {
        return None;
    }
    let (year, month, day) = (number(bytes, 0, 4)?, number(bytes, 5, 2)?, number(bytes, 8, 2)?);
    let (hour, minute, second) = (number(bytes, 11, 2)?, number(bytes, 14, 2)?, number(bytes, 17, 2)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut rest = bytes.get(19..)?;
    if let Some((b'.', fraction)) = rest.split_first() {
        let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        rest = fraction.get(digits..).filter(|_| digits > 0)?;
    }
    let local = days_from_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    u64::try_from(local - offset_seconds(rest)?).ok()
}

/// A duration in at most two units, the smaller one only where it matters, as kubectl's users know it: `45s`, `3m12s`,
/// `5h`, `2d4h`, `1y30d`.
pub fn human_duration(seconds: u64) -> String {
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

/// How far a zone is ahead of universal time.
fn offset_seconds(zone: &[u8]) -> Option<i64> {
    match zone {
        b"Z" | b"z" => Some(0),
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let seconds = number(zone, 1, 2)? * 3_600 + number(zone, 4, 2)? * 60;
            Some(if *sign == b'-' { -seconds } else { seconds })
        }
        _ => None,
    }
}

fn number(bytes: &[u8], at: usize, digits: usize) -> Option<i64> {
    bytes.get(at..at + digits)?.iter().try_fold(0, |sum, byte| {
        if byte.is_ascii_digit() { Some(sum * 10 + i64::from(byte - b'0')) } else { None }
    })
}

/// Days of the proleptic Gregorian calendar, counted in years that begin in March so that the leap day is the
/// last of its year.
fn days_from_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // 719,468 days lie between 1 March of the year 0 and 1 January 1970.
    year * 365 + leap_days + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_kubectl_writes_them() {
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
            assert_eq!(human_duration(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn times_become_unix_seconds() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:00Z", Some(951_825_600)),
            ("2023-11-14T22:13:20Z", Some(1_700_000_000)),
            ("2023-11-14T22:13:20.999999Z", Some(1_700_000_000)),
            ("2023-11-15T00:13:20+02:00", Some(1_700_000_000)),
            ("2100-03-01T00:00:00Z", Some(4_107_542_400)),
            ("1969-12-31T23:59:59Z", None),
            ("2023-13-14T22:13:20Z", None),
            ("2023-11-14 22:13:20Z", None),
            ("2023-11-14T22:13:20", None),
            ("2023-11-14T22:13:20.Z", None),
            ("", None),
        ] {
            assert_eq!(unix_seconds(text), seconds, "{text}");
        }
    }
}
