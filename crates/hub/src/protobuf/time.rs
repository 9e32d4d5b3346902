//! Times, in seconds since 1970 and as text. Those before that year are written from the same day of a later calendar: it
//! repeats itself every 400 years.

use mailboat_machinery::time::rfc3339;
use mailboat_object::timestamp::unix_seconds;

/// So many years later a day has the same name in the week, and the year as many days.
const YEARS: u64 = 2_000;
const SECONDS: u64 = 5 * 146_097 * 86_400;

/// Seconds and nanoseconds of a time.
pub(super) fn parse(text: &str) -> Option<(i64, u32)> {
    let later = || {
        let year: u64 = text.get(..4)?.parse().ok()?;
        let seconds = unix_seconds(&format!("{:04}{}", year + YEARS, text.get(4..)?))?;
        Some(seconds.cast_signed() - SECONDS.cast_signed())
    };
    let seconds = unix_seconds(text).map(u64::cast_signed).or_else(later)?;
    let digits = text.split_once('.').map_or("", |(_, rest)| rest);
    let digits: String = digits.chars().take_while(char::is_ascii_digit).chain("000000000".chars()).collect();
    Some((seconds, digits.get(..9)?.parse().ok()?))
}

/// A time as text, to the second.
pub(super) fn text(seconds: i64) -> String {
    if let Ok(seconds) = u64::try_from(seconds) {
        return rfc3339(seconds);
    }
    let later = rfc3339(seconds.saturating_add(SECONDS.cast_signed()).max(0).cast_unsigned());
    let year = later.get(..4).and_then(|year| year.parse::<u64>().ok()).unwrap_or_default();
    format!("{:04}{}", year.saturating_sub(YEARS), later.get(4..).unwrap_or_default())
}
