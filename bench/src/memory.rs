//! What this process takes of the machine's memory.
//!
//! Live heap is counted by [`LiveHeap`], which a benchmark declares as its global allocator; resident memory
//! is read from the kernel by [`resident`].

use std::fs;
use std::io;

/// The system allocator with a count of the bytes that are live.
///
/// ```
/// use mailboat_bench::memory::LiveHeap;
///
/// #[global_allocator]
/// static HEAP: LiveHeap = LiveHeap::new(std::alloc::System, usize::MAX);
///
/// let before = HEAP.allocated();
/// let kept = vec![0_u8; 4096];
/// assert!(HEAP.allocated() >= before + 4096);
/// drop(kept);
/// ```
pub type LiveHeap = cap::Cap<std::alloc::System>;

/// The resident memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// Resident now (`VmRSS`).
    pub now_bytes: u64,
    /// The most that was ever resident (`VmHWM`).
    pub peak_bytes: u64,
}

/// Reads this process's resident memory from the kernel.
pub fn resident() -> io::Result<Resident> {
    parse_status(&fs::read_to_string("/proc/self/status")?)
}

/// Reads another process's resident memory from the kernel.
pub fn resident_of(pid: u32) -> io::Result<Resident> {
    parse_status(&fs::read_to_string(format!("/proc/{pid}/status"))?)
}

fn parse_status(status: &str) -> io::Result<Resident> {
    Ok(Resident { now_bytes: field(status, "VmRSS")?, peak_bytes: field(status, "VmHWM")? })
}

/// One `Name:   1234 kB` line of `/proc/<pid>/status`, in bytes.
fn field(status: &str, name: &str) -> io::Result<u64> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().strip_suffix("kB"))
        .and_then(|kibibytes| kibibytes.trim().parse::<u64>().ok())
        .map(|kibibytes| kibibytes * 1024)
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("/proc/self/status has no line '{name}: … kB'"),
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lines_are_read_as_bytes() {
        let status = "Name:\tobject\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(
            parse_status(status).unwrap(),
            Resident { now_bytes: 1024 * 1024, peak_bytes: 2 * 1024 * 1024 }
        );
    }

    #[test]
    fn a_missing_line_is_named() {
        let error = parse_status("VmRSS:\t1024 kB\n").unwrap_err().to_string();
        assert!(error.contains("VmHWM"), "{error}");
    }

    #[test]
    fn memory_that_is_written_to_becomes_resident() {
        let before = resident().unwrap();
        let kept = vec![1_u8; 32 << 20];
        let after = resident().unwrap();
        assert!(after.now_bytes >= before.now_bytes + (30 << 20), "before {before:?}, after {after:?}");
        assert!(after.peak_bytes >= after.now_bytes, "{after:?}");
        drop(kept);
    }
}
