//! Times as servers write them, from the caller's clock.

/// A time in Unix seconds as RFC 3339, such as `2023-11-14T22:13:20Z`.
pub fn rfc3339(unix_seconds: u64) -> String {
    let (days, second) = (unix_seconds / 86_400, unix_seconds % 86_400);
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3_600, second / 60 % 60, second % 60)
}

/// The day of the Gregorian calendar, so many days after 1 January 1970. Years are counted from March, so that
/// the leap day is the last of its year.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailboat_object::timestamp::unix_seconds;

    #[test]
    fn what_is_written_reads_back_the_same() {
        assert_eq!(rfc3339(1_700_000_000), "2023-11-14T22:13:20Z");
        assert_eq!(rfc3339(951_825_600), "2000-02-29T12:00:00Z");
        for seconds in (0..5_000_000_000).step_by(86_399 * 97) {
            assert_eq!(unix_seconds(&rfc3339(seconds)), Some(seconds), "{}", rfc3339(seconds));
        }
    }
}
