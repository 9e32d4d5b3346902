//! The programs that users run: `mailboat`, kubectl, and a syncer.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use mailboat_testkit::ProcessIdentity;
use mailboat_testkit::build::Programs;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// A syncer that is told to end has this long for it.
const END_LIMIT: Duration = Duration::from_secs(20);

/// What a program said, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// Passes on what ended well.
    #[track_caller]
    pub(crate) fn well(self) -> Self {
        assert_eq!(self.code, Some(0), "it should have ended well: {self:#?}");
        self
    }

    /// Checks that it ended with 2 and one sentence, which has these words.
    #[track_caller]
    pub(crate) fn refused_with(self, words: &[&str]) {
        assert_eq!(self.code, Some(2), "it should have been refused: {self:#?}");
        assert!(self.out.is_empty() && self.err.lines().count() == 1, "one sentence: {self:#?}");
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not said: {}", self.err);
        }
    }
}

/// Runs `mailboat` with a kubeconfig, as a user would.
pub(crate) async fn mailboat(kubeconfig: &Path, words: &[&str]) -> Said {
    run(Path::new(env!("CARGO_BIN_EXE_mailboat")), kubeconfig, words).await
}

/// Runs kubectl with a kubeconfig.
pub(crate) async fn kubectl(kubeconfig: &Path, words: &[&str]) -> Said {
    run(&Programs::locate().unwrap().kubectl().unwrap(), kubeconfig, words).await
}

async fn run(program: &Path, kubeconfig: &Path, words: &[&str]) -> Said {
    let mut command = tokio::process::Command::new(program);
    command.args(words).env("KUBECONFIG", kubeconfig).env_remove("NAMESPACE").kill_on_drop(true);
    let output = command.output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// What a syncer's listener answers.
pub(crate) async fn ask(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: syncer\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// A `mailboat-syncer` that runs. It ends with this process, however that ends.
pub(crate) struct Syncer(Child);

impl Syncer {
    /// Starts one between two kubeconfigs; what it says is appended to the log.
    pub(crate) fn start(from: &Path, to: &Path, uid: &str, log: &Path) -> Self {
        let log = OpenOptions::new().create(true).append(true).open(log).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", env!("CARGO_BIN_EXE_mailboat-syncer")]);
        command.arg("--from-kubeconfig").arg(from).arg("--to-kubeconfig").arg(to);
        command.args(["--sync-target-name", "island", "--sync-target-uid", uid, "--namespace", "default"]);
        command.args(["--heartbeat-period", "5s", "--listen", "127.0.0.1:0"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true);
        Self(command.spawn().unwrap())
    }

    /// The process, to ask the system about it.
    pub(crate) fn process(&self) -> ProcessIdentity {
        ProcessIdentity::of(self.0.id().expect("it runs")).unwrap()
    }

    /// Kills it (SIGKILL).
    pub(crate) async fn kill(mut self) {
        self.0.kill().await.unwrap();
    }

    /// Tells it to end (SIGTERM), and gives back how it did.
    pub(crate) async fn end(mut self) -> Option<i32> {
        self.process().signal(rustix::process::Signal::TERM).unwrap();
        tokio::time::timeout(END_LIMIT, self.0.wait()).await.expect("it ends in time").unwrap().code()
    }
}
