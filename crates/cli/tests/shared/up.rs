//! A `mailboat up` that runs for the length of a test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Ten seconds are meant; machines that have other things to do take longer.
const LIMIT: Duration = Duration::from_mins(3);

/// A `mailboat up` that runs. It ends with this value.
pub(crate) struct Up {
    child: Child,
    said: PathBuf,
}

impl Up {
    pub(crate) fn start(folder: &Path, words: &[&str]) -> Self {
        Self::run(folder, words, &mut Command::new(env!("CARGO_BIN_EXE_mailboat")))
    }

    /// As on a machine that has nothing else: with what a shell gives, and a home without anything in it.
    pub(crate) fn start_bare(folder: &Path, home: &Path, words: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mailboat"));
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", home);
        Self::run(folder, words, &mut command)
    }

    fn run(folder: &Path, words: &[&str], command: &mut Command) -> Self {
        let said = folder.join("said");
        let out = std::fs::File::create(&said).unwrap();
        let child = command
            .arg("up")
            .args(words)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stderr(out.try_clone().unwrap())
            .stdout(out)
            .spawn()
            .unwrap();
        Self { child, said }
    }

    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap()
    }

    /// Waits until it says that everything is in place.
    pub(crate) fn until_in_place(&mut self) {
        let said = self.said.clone();
        let in_place = || std::fs::read_to_string(&said).unwrap().contains("Ctrl-C stops everything");
        self.until(in_place, "everything is in place");
    }

    /// Waits until something holds.
    pub(crate) fn until(&mut self, holds: impl Fn() -> bool, what: &str) {
        let end = Instant::now() + LIMIT;
        while !holds() {
            assert!(self.child.try_wait().unwrap().is_none(), "{what}: it ended:\n{}", self.said());
            assert!(Instant::now() < end, "{what}: it takes too long:\n{}", self.said());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Sends what Ctrl-C sends, and waits for the end.
    pub(crate) fn interrupt(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let end = Instant::now() + LIMIT;
        let ended = loop {
            if let Some(ended) = self.child.try_wait().unwrap() {
                break ended;
            }
            assert!(Instant::now() < end, "it does not end:\n{}", self.said());
            std::thread::sleep(Duration::from_millis(50));
        };
        assert!(ended.success(), "{ended}:\n{}", self.said());
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
