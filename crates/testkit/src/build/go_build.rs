//! One `go build`, with patience for the network between us and the modules.

use std::fs;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::program::go_mod;
use super::toolchain::Toolchain;
use super::{BuildError, Program, Progress, file};
use crate::error::Doing as _;
use crate::files::last_lines;

/// Module servers answer 429 for some minutes when many modules are asked for; what is downloaded stays, so each
/// attempt gets further.
const ATTEMPTS: u32 = 30;
pub(super) const PAUSE: Duration = Duration::from_secs(15);
const REPORT_EVERY: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(50);
const LOG_FILE: &str = "build.log";

/// One program to be built into a folder.
pub(super) struct GoBuild<'a> {
    pub(super) program: Program,
    pub(super) module: &'a Path,
    pub(super) toolchain: &'a Toolchain,
    pub(super) folder: &'a Path,
    pub(super) pause: Duration,
}

impl GoBuild<'_> {
    /// Builds the program, and links its other names.
    pub(super) fn run(&self, progress: &mut dyn FnMut(Progress)) -> Result<(), BuildError> {
        let program = self.program;
        let log = self.folder.join(LOG_FILE);
        let begun = Instant::now();
        for attempt in 1.. {
            let status = self.attempt(&log, &mut |line| {
                progress(Progress::Building { program, elapsed: begun.elapsed(), line });
            })?;
            if status.success() {
                break;
            }
            let tail = last_lines(&log, 15);
            let Some(why) = passing_failure(&tail).filter(|_| attempt < ATTEMPTS) else {
                return Err(BuildError::Failed { program, status: status.to_string(), attempt, log, tail });
            };
            progress(Progress::Retrying { program, attempt, why: why.to_owned(), pause: self.pause });
            std::thread::sleep(self.pause);
        }
        for name in program.other_names() {
            let link = self.folder.join(name);
            std::os::unix::fs::symlink(program.name(), &link).doing("linking", &link).map_err(file)?;
        }
        Ok(())
    }

    fn attempt(&self, log: &Path, report: &mut dyn FnMut(String)) -> Result<ExitStatus, BuildError> {
        let output = fs::File::create(log).doing("creating", log).map_err(file)?;
        let output_too = output.try_clone().doing("opening", log).map_err(file)?;
        let started = self
            .toolchain
            .command(self.module)
            .args([
                "build",
                "-mod=readonly",
                "-ldflags",
                &self.program.linker_flags(&go_mod(self.module)?),
                "-o",
            ])
            .arg(self.folder.join(self.program.name()))
            .arg(self.program.package())
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(output_too)
            .spawn();
        let mut child = started.doing("running `go build` in", self.module).map_err(file)?;
        let mut next_report = Instant::now();
        loop {
            if let Some(status) =
                child.try_wait().doing("waiting for `go build` in", self.module).map_err(file)?
            {
                return Ok(status);
            }
            if Instant::now() >= next_report {
                report(last_lines(log, 1));
                next_report = Instant::now() + REPORT_EVERY;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// The line that blames the network, if one does. Errors of the compiler are never tried again.
fn passing_failure(output: &str) -> Option<&str> {
    const SIGNS: [&str; 12] = [
        "429",
        "too many requests",
        "500 internal server error",
        "502 bad gateway",
        "503 service unavailable",
        "504 gateway timeout",
        "i/o timeout",
        "tls handshake timeout",
        "connection reset",
        "connection refused",
        "unexpected eof",
        "temporary failure in name resolution",
    ];
    let blames = |line: &&str| SIGNS.iter().any(|sign| line.to_ascii_lowercase().contains(sign));
    output.lines().filter(|line| !line.contains(".go:")).find(blames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_module_server_is_asked_again_and_a_compile_error_is_not() {
        let busy = "go: downloading x v1\ngo: x@v1: reading https://proxy/x: 429 Too Many Requests";
        assert_eq!(passing_failure(busy), busy.lines().nth(1));
        assert_eq!(
            passing_failure("dial tcp 10.0.0.1:443: i/o timeout"),
            Some("dial tcp 10.0.0.1:443: i/o timeout")
        );
        assert_eq!(passing_failure("main.go:429:2: undefined: y"), None);
        assert_eq!(passing_failure("missing go.sum entry for module providing package z"), None);
    }
}
