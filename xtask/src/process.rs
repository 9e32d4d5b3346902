//! Programs that run for a while: their output goes to a log file, their progress is said, and none of
//! them runs for ever.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::progress::{Progress, clock};

/// How often a running program is looked at.
const TICK: Duration = Duration::from_millis(20);
/// How long nothing is said about a running program.
const SILENCE: Duration = Duration::from_secs(30);
/// How much of a log's end is read to find its last line.
const TAIL_BYTES: u64 = 4096;

/// A program to run, where its output goes, and how long it may take.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    /// What it does, for progress lines.
    pub(crate) what: &'a str,
    /// The program and its arguments.
    pub(crate) command: Command,
    /// Takes its standard error, and its standard output unless that goes elsewhere.
    pub(crate) log: &'a Path,
    /// Takes its standard output alone.
    pub(crate) output: Option<&'a Path>,
    /// After this it is killed.
    pub(crate) limit: Duration,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// By itself or by a signal.
    Exited(ExitStatus),
    /// Killed here, because it took longer than this.
    OverLimit(Duration),
}

impl Job<'_> {
    /// Runs the program to its end, saying from time to time that it still runs and what it last wrote.
    pub(crate) fn run(mut self, progress: &Progress) -> Result<Ended> {
        let log =
            File::create(self.log).with_context(|| format!("{} cannot be written", self.log.display()))?;
        let output = match self.output {
            Some(path) => {
                File::create(path).with_context(|| format!("{} cannot be written", path.display()))?
            }
            None => log.try_clone().context("the log's handle cannot be copied")?,
        };
        self.command.stdin(Stdio::null()).stdout(output).stderr(log);
        let program = self.command.get_program().to_string_lossy().into_owned();
        let mut child = self.command.spawn().with_context(|| format!("{program} cannot be started"))?;
        let began = Instant::now();
        let mut said = began;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Ended::Exited(status));
            }
            if began.elapsed() > self.limit {
                child.kill().with_context(|| format!("{program} cannot be killed"))?;
                child.wait()?;
                return Ok(Ended::OverLimit(self.limit));
            }
            if said.elapsed() > SILENCE {
                said = Instant::now();
                progress.say(format!(
                    "{} for {}: {}",
                    self.what,
                    clock(began.elapsed()),
                    last_line(self.log)
                ));
            }
            thread::sleep(TICK);
        }
    }
}

impl Ended {
    /// Whether it ended by itself with exit code 0.
    pub(crate) fn well(self) -> bool {
        matches!(self, Self::Exited(status) if status.success())
    }

    /// How it ended, in words.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Exited(status) => format!("ended with {status}"),
            Self::OverLimit(limit) => format!("was killed after its limit of {}", clock(limit)),
        }
    }
}

/// The last lines of a log, for people to read after a failure.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

fn last_line(log: &Path) -> String {
    let mut text = Vec::new();
    let read = File::open(log).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        file.read_to_end(&mut text)
    });
    // Progress only: a log that cannot be read is no reason to stop what writes it.
    let text = if read.is_ok() { String::from_utf8_lossy(&text) } else { "".into() };
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no output yet").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn shell(script: &str, limit: Duration) -> (Ended, String, String) {
        let folder = tempfile::tempdir().unwrap();
        let (log, output) = (folder.path().join("log"), folder.path().join("output"));
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let job = Job { what: "a shell", command, log: &log, output: Some(&output), limit };
        let ended = job.run(&Progress::begin()).unwrap();
        (ended, fs::read_to_string(&log).unwrap(), fs::read_to_string(&output).unwrap())
    }

    #[test]
    fn output_and_log_are_kept_apart() {
        let (ended, log, output) = shell("echo result; echo chatter >&2", Duration::from_mins(1));
        assert!(ended.well(), "{ended:?}");
        assert_eq!((log.as_str(), output.as_str()), ("chatter\n", "result\n"));
    }

    #[test]
    fn a_failure_says_how_it_ended() {
        let (failed, ..) = shell("exit 3", Duration::from_mins(1));
        assert!(!failed.well());
        assert!(failed.words().contains('3'), "{}", failed.words());
        let (killed, ..) = shell("kill -ABRT $$", Duration::from_mins(1));
        assert!(killed.words().contains("signal"), "{}", killed.words());
    }

    #[test]
    fn what_runs_over_its_limit_is_killed() {
        let (ended, ..) = shell("exec sleep 600", Duration::from_millis(100));
        assert_eq!(ended, Ended::OverLimit(Duration::from_millis(100)));
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let job = Job {
            what: "nothing",
            command: Command::new("no-such-program"),
            log: &folder.path().join("log"),
            output: None,
            limit: Duration::from_secs(1),
        };
        let error = job.run(&Progress::begin()).unwrap_err().to_string();
        assert!(error.contains("no-such-program"), "{error}");
    }

    #[test]
    fn the_last_line_skips_empty_ones() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        assert_eq!(last_line(&log), "no output yet");
        fs::write(&log, "one\ntwo\n\n  \n").unwrap();
        assert_eq!(last_line(&log), "two");
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
    }
}
