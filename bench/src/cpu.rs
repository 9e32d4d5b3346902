//! What a thread or a process took of a processor, whatever else the machine has to do.

use std::fs;
use std::io;
use std::time::Duration;

/// How long this thread has run on a processor so far, to the nanosecond. Waiting for one does not count. What `/proc` says of
/// that is as of the kernel's last tick, too old by more than some cases take.
pub fn spent() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_nanos(time.tv_nsec.unsigned_abs())
}

/// How long this thread has run on a processor since it had run for `begun`.
pub fn spent_since(begun: Duration) -> Duration {
    spent().saturating_sub(begun)
}

/// How long all threads of a process, ended ones too, have run on a processor so far, to a hundredth of a second.
pub fn spent_by(pid: u32) -> io::Result<Duration> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat"))?)
}

/// How long the threads that a process has now have run on a processor so far, to the nanosecond.
pub fn spent_by_threads_of(pid: u32) -> io::Result<Duration> {
    let mut spent = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // One that ended meanwhile has no more to say.
        if let Ok(line) = fs::read_to_string(thread?.path().join("schedstat")) {
            spent += parse(&line)?;
        }
    }
    Ok(spent)
}

/// `utime` and `stime`, the 14th and 15th field; the 2nd is a name in parentheses, which may have spaces.
fn parse_stat(stat: &str) -> io::Result<Duration> {
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks: Option<Vec<u64>> =
        after_name.split_whitespace().skip(11).take(2).map(|number| number.parse().ok()).collect();
    match ticks.as_deref() {
        Some([user, system]) => Ok(Duration::from_millis((user + system) * MILLISECONDS_PER_TICK)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "/proc/<pid>/stat has no processor time")),
    }
}

/// What Linux tells user space is always a hundred to the second.
const MILLISECONDS_PER_TICK: u64 = 10;

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
        let before = spent();
        let sum: u64 = (0..20_000_000_u64).map(std::hint::black_box).fold(0, u64::wrapping_add);
        std::hint::black_box(sum);
        assert!(spent() > before);
    }

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let stat = "7 (odd ) name) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 1 0 9 1 1";
        assert_eq!(parse_stat(stat).unwrap(), Duration::from_secs(2));
        assert!(parse_stat("7 (short) S").unwrap_err().to_string().contains("stat"));
        assert!(spent_by(std::process::id()).is_ok());
        assert!(spent_by_threads_of(std::process::id()).is_ok());
    }
}
