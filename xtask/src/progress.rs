//! Progress for people: plain lines on standard error, each with the time since the command began.
//!
//! No bars: the same lines serve a terminal and a log file. Results go to standard output.

use std::sync::Arc;
use std::time::{Duration, Instant};

/// Says what is being done; clones share the same beginning.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    began: Arc<Instant>,
}

impl Progress {
    /// Begins now.
    pub(crate) fn begin() -> Self {
        Self { began: Arc::new(Instant::now()) }
    }

    /// Prints one line with the time since the beginning.
    pub(crate) fn say(&self, line: impl AsRef<str>) {
        eprintln!("[{:>7}] {}", clock(self.began.elapsed()), line.as_ref());
    }
}

/// A duration as people say it: `4.2s`, `2m 05s`, `1h 02m`.
pub(crate) fn clock(elapsed: Duration) -> String {
    // Rounded to tenths first, so that 59.96 s is `1m 00s` and not `60.0s`.
    let tenths = (elapsed.as_millis() + 50) / 100;
    let seconds = tenths / 10;
    match seconds {
        0..60 => format!("{}.{}s", seconds, tenths % 10),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_say_them() {
        for (milliseconds, expected) in [
            (0, "0.0s"),
            (4_240, "4.2s"),
            (59_949, "59.9s"),
            (59_960, "1m 00s"),
            (125_000, "2m 05s"),
            (3_600_000, "1h 00m"),
            (3_725_000, "1h 02m"),
        ] {
            assert_eq!(clock(Duration::from_millis(milliseconds)), expected, "{milliseconds} ms");
        }
    }
}
