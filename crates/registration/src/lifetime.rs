//! How long a token lives, as people write it: `30d`, `720h`, `1h30m`.

use std::fmt;
use std::str::FromStr;

/// API servers give no token for less.
const SHORTEST_SECONDS: u64 = 600;
/// What the numbers of a token can hold on every server.
const LONGEST_SECONDS: u64 = (1 << 32) - 1;
const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

/// How long a token is asked to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lifetime {
    seconds: u64,
}

impl Lifetime {
    /// Thirty days.
    pub const DEFAULT: Self = Self { seconds: 30 * 86_400 };

    /// This many seconds, brought into the bounds that servers accept.
    pub fn of_seconds(seconds: u64) -> Self {
        Self { seconds: seconds.clamp(SHORTEST_SECONDS, LONGEST_SECONDS) }
    }

    /// In seconds.
    pub fn seconds(self) -> u64 {
        self.seconds
    }
}

/// Why a text is no lifetime.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLifetime {
    /// It is not of the right form.
    #[error("{0:?} is no lifetime: write it as 30d, 720h or 1h30m")]
    Form(String),
    /// Servers do not give such tokens.
    #[error("a token lives ten minutes at least and 136 years at most, not {0:?}")]
    Bounds(String),
}

impl FromStr for Lifetime {
    type Err = BadLifetime;

    fn from_str(text: &str) -> Result<Self, BadLifetime> {
        let form = || BadLifetime::Form(text.to_owned());
        let mut seconds: u64 = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(form)?;
            let number: u64 = rest[..end].parse().map_err(|_| form())?;
            let unit = rest[end..].chars().next().ok_or_else(form)?;
            let (_, factor) = UNITS.iter().find(|(letter, _)| *letter == unit).ok_or_else(form)?;
            seconds =
                number.checked_mul(*factor).and_then(|part| seconds.checked_add(part)).ok_or_else(form)?;
            rest = &rest[end + unit.len_utf8()..];
        }
        match seconds {
            0 => Err(form()),
            SHORTEST_SECONDS..=LONGEST_SECONDS => Ok(Self { seconds }),
            _ => Err(BadLifetime::Bounds(text.to_owned())),
        }
    }
}

impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.seconds;
        for (letter, factor) in UNITS {
            if rest >= factor {
                write!(f, "{}{letter}", rest / factor)?;
                rest %= factor;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_read_as_people_write_them() {
        for (text, seconds, again) in [
            ("30d", 2_592_000, "30d"),
            ("720h", 2_592_000, "30d"),
            ("87600h", 315_360_000, "3650d"),
            ("1h30m", 5_400, "1h30m"),
            ("10m", 600, "10m"),
            ("600s", 600, "10m"),
        ] {
            let lifetime: Lifetime = text.parse().unwrap_or_else(|bad| panic!("{bad}"));
            assert_eq!((lifetime.seconds(), lifetime.to_string().as_str()), (seconds, again), "{text}");
        }
        assert_eq!("30d".parse(), Ok(Lifetime::DEFAULT));
    }

    #[test]
    fn what_is_no_lifetime_is_refused_and_quoted() {
        for text in
            ["", "30", "d", "30 d", "-1h", "1w", "1.5h", "99999999999999999999d", "0s", "9m", "200000d"]
        {
            let told = text.parse::<Lifetime>().expect_err(text).to_string();
            assert!(told.contains(&format!("{text:?}")), "{told}");
        }
    }
}
