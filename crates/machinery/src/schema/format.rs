//! What texts of a format look like, as the servers' validation of custom resources takes them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr as _;
use std::sync::LazyLock;

use regex::Regex;

use crate::kind::NameRule;
use crate::metadata::name_errors;

/// A format that is looked at. All others are words for people.
#[derive(Clone, Debug)]
pub(crate) struct Format {
    /// As its schema calls it.
    pub name: String,
    holds: fn(&str) -> bool,
}

#[expect(clippy::expect_used, reason = "the patterns are constants, and a test uses them")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern")
}

static TIME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$"));
static DURATION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"));
static WORDED_DURATION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)[0-9]+\s*(nano|ns|micro|us|µs|μs|milli|ms|sec|s\b|min|m\b|hour|hr|h\b|day|d\b|week|wk|w\b)")
});
static HOST: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[a-zA-Z0-9\pL](-?[a-zA-Z0-9\pL]{0,62})*$"));
static UUID: LazyLock<Regex> =
    LazyLock::new(|| pattern("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"));
static MAC: LazyLock<Regex> = LazyLock::new(|| {
    pattern("^([0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}|([0-9a-fA-F]{4}\\.){2}[0-9a-fA-F]{4})$")
});
static SCHEME: LazyLock<Regex> = LazyLock::new(|| pattern("^[a-zA-Z][a-zA-Z0-9+.-]*:[^ ]"));
static MAIL: LazyLock<Regex> = LazyLock::new(|| pattern(r"^([^<>]*<)?[^\s@<>]+@[^\s@<>]+>?$"));

impl Format {
    /// The format of this name, if it is looked at.
    pub(super) fn of(name: &str) -> Option<Self> {
        let holds: fn(&str) -> bool = match name.replace('-', "").as_str() {
            "datetime" => is_time,
            "date" => is_date,
            "duration" => |text| is_duration(text) || WORDED_DURATION.is_match(text),
            "byte" => |text| super::validate::not_base64(text).is_none(),
            "ipv4" => |text| Ipv4Addr::from_str(text).is_ok(),
            "ipv6" => |text| Ipv6Addr::from_str(text).is_ok(),
            "cidr" => is_range,
            "mac" => |text| MAC.is_match(text),
            "uuid" => |text| UUID.is_match(text),
            "hostname" => |text| text.len() <= 255 && text.split('.').all(|label| HOST.is_match(label)),
            "uri" => |text| text.starts_with('/') || SCHEME.is_match(text),
            "email" => |text| MAIL.is_match(text),
            "k8sshortname" => |text| name_errors(text, NameRule::Label).is_empty(),
            "k8slongname" => |text| name_errors(text, NameRule::Subdomain).is_empty(),
            _ => return None,
        };
        Some(Self { name: name.to_owned(), holds })
    }

    /// Whether a text is of this format.
    pub(super) fn holds(&self, text: &str) -> bool {
        (self.holds)(text)
    }
}

fn is_date(text: &str) -> bool {
    let digits =
        |part: &str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = text.split('-');
    let [year, month, day] = [4, 2, 2].map(|count| parts.next().filter(|part| digits(part, count)));
    let number = |part: Option<&str>| part.and_then(|part| part.parse::<u32>().ok());
    let (Some(year), Some(month), Some(day), None) = (number(year), number(month), number(day), parts.next())
    else {
        return false;
    };
    let leaps = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leaps => 29,
        2 => 28,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn is_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let Some((date, time)) = text.split_once('t') else { return false };
    let Some(found) = TIME.captures(time) else { return false };
    is_date(date) && found[1] <= *"23" && found[2] <= *"59" && found[3] <= *"59"
}

/// A duration in Go's words, such as `1h30m`.
fn is_duration(text: &str) -> bool {
    let mut rest = text;
    if matches!(rest, "0" | "+0" | "-0") {
        return true;
    }
    while let Some(found) = DURATION.find(rest) {
        // A sign stands at the beginning alone.
        if rest.len() < text.len() && rest.starts_with(['+', '-']) {
            return false;
        }
        rest = &rest[found.end()..];
    }
    rest.is_empty() && !text.is_empty()
}

fn is_range(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match IpAddr::from_str(address) {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_of_a_format_or_not() {
        for (format, good, bad) in [
            ("date-time", "2026-11-18T20:00:00Z", "2026-11-18 20:00"),
            ("date-time", "2026-11-18t20:00:00.5+01:00", "2026-11-18T24:00:00Z"),
            ("date", "2024-02-29", "2026-02-29"),
            ("duration", "1h30m", "soon"),
            ("duration", "3 days", "-"),
            ("byte", "aGFsbG8=", "hallo!"),
            ("ipv4", "10.0.0.1", "10.0.0.256"),
            ("ipv6", "fe80::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("mac", "00:11:22:aa:bb:cc", "00:11:22:aa:bb"),
            ("uuid", "6AB3E4A2-44d2-4fb6-8d2e-000000000001", "6ab3e4a2"),
            ("hostname", "till.example.org", "-till.example.org"),
            ("uri", "https://example.org/x", "example.org x"),
            ("email", "sea@example.org", "sea"),
            ("k8s-short-name", "till-1", "Till"),
            ("k8s-long-name", "till.example", ".till"),
        ] {
            let format = Format::of(format).unwrap();
            assert!(format.holds(good), "{} {good}", format.name);
            assert!(!format.holds(bad), "{} {bad}", format.name);
        }
        assert!(Format::of("port").is_none() && Format::of("password").is_none());
    }
}
