//! What this thread took of a processor, whatever else the machine has to do.

use std::fs;
use std::io;
use std::time::Duration;

/// How long this thread has run on a processor so far. Waiting for one does not count.
pub fn spent() -> io::Result<Duration> {
    parse(&fs::read_to_string("/proc/thread-self/schedstat")?)
}

/// How long this thread has run on a processor since it had run for `begun`.
pub fn spent_since(begun: Duration) -> io::Result<Duration> {
    Ok(spent()?.saturating_sub(begun))
}

/// The first of three numbers: nanoseconds on a processor.
fn parse(schedstat: &str) -> io::Result<Duration> {
    let first = schedstat.split_whitespace().next().and_then(|number| number.parse().ok());
    first.map(Duration::from_nanos).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, "/proc/thread-self/schedstat does not begin with a number")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_line_is_read_as_time_on_a_processor() {
        assert_eq!(parse("1500 20 3\n").unwrap(), Duration::from_nanos(1500));
        assert!(parse("").unwrap_err().to_string().contains("schedstat"));
    }

    #[test]
    fn work_takes_time_and_waiting_takes_none_of_it() {
        let before = spent().unwrap();
        let sum: u64 = (0..20_000_000_u64).map(std::hint::black_box).fold(0, u64::wrapping_add);
        std::hint::black_box(sum);
        assert!(spent().unwrap() > before);
    }
}
