//! A program that is asked to end finishes first; asked twice, it ends at once.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use mailboat_runner::StopSignal;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// How long the program takes to finish, in milliseconds; not set in an ordinary run.
const FINISHING_VARIABLE: &str = "MAILBOAT_TRIAL_FINISHING";
const LIMIT: Duration = Duration::from_secs(30);

/// Not a test of its own: the others start this program anew with the variable set.
#[tokio::test]
async fn ends_when_asked_to() {
    let Ok(finishing) = std::env::var(FINISHING_VARIABLE) else { return };
    let stop = StopSignal::new().unwrap();
    println!("\nlistening");
    stop.received().await;
    println!("\nfinishing");
    tokio::time::sleep(Duration::from_millis(finishing.parse().unwrap())).await;
    println!("\nfinished");
}

#[tokio::test]
async fn the_first_signal_lets_it_finish() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut program = Program::start(200);
        program.says("listening").await;
        program.signal(signal);
        program.says("finished").await;
        assert!(program.ends().await.success(), "{signal:?}");
    }
}

#[tokio::test]
async fn the_second_signal_ends_it_at_once() {
    let mut program = Program::start(600_000);
    program.says("listening").await;
    program.signal(Signal::TERM);
    program.says("finishing").await;
    let asked_again = Instant::now();
    program.signal(Signal::TERM);
    assert_eq!(program.ends().await.code(), Some(1));
    assert!(asked_again.elapsed() < LIMIT, "it went on for {:?}", asked_again.elapsed());
}

struct Program {
    child: Child,
    output: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(finishing_milliseconds: u32) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "ends_when_asked_to", "--nocapture"]);
        command.env(FINISHING_VARIABLE, finishing_milliseconds.to_string());
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, output }
    }

    async fn says(&mut self, word: &str) {
        let said = async {
            while let Some(line) = self.output.next_line().await.unwrap() {
                if line == word {
                    return;
                }
            }
            panic!("it ended without saying {word:?}");
        };
        tokio::time::timeout(LIMIT, said).await.unwrap();
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    async fn ends(&mut self) -> ExitStatus {
        tokio::time::timeout(LIMIT, self.child.wait()).await.unwrap().unwrap()
    }
}
