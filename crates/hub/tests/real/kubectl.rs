//! kubectl, as users run it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use mailboat_testkit::build::Programs;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::served::Served;

pub(crate) struct Kubectl {
    program: PathBuf,
    first: Vec<String>,
    home: tempfile::TempDir,
}

#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) well: bool,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Kubectl {
    pub(crate) fn new(kubeconfig: &Path) -> Self {
        Self::calling(vec![format!("--kubeconfig={}", kubeconfig.display())])
    }

    /// As the administrator, at a path of the server.
    pub(crate) fn at(served: &Served, path: &str) -> Self {
        Self::calling(vec![
            format!("--kubeconfig={}", served.kubeconfig.display()),
            format!("--server={}{path}", served.url),
        ])
    }

    pub(crate) fn with_token(served: &Served, token: &str) -> Self {
        Self::calling(vec![
            "--kubeconfig=/dev/null".to_owned(),
            format!("--server={}", served.url),
            format!("--certificate-authority={}", served.authority_file.display()),
            format!("--token={token}"),
        ])
    }

    fn calling(first: Vec<String>) -> Self {
        let program = Programs::locate().unwrap().kubectl().unwrap();
        Self { program, first, home: tempfile::tempdir().unwrap() }
    }

    /// Runs it and gives what it says; it must end well.
    pub(crate) async fn well(&self, words: &[&str]) -> String {
        let said = self.run(words).await;
        assert!(said.well, "kubectl {words:?}: {said:#?}");
        said.out
    }

    /// The same with variables of the environment.
    pub(crate) async fn well_with(&self, words: &[&str], variables: &[(&str, &str)]) -> String {
        let mut command = self.command(words);
        command.envs(variables.iter().copied());
        let said = Self::talk(command, "").await;
        assert!(said.well, "kubectl {words:?}: {said:#?}");
        said.out
    }

    pub(crate) async fn apply(&self, manifest: &str) {
        let said = self.run_with(&["apply", "-f", "-"], manifest).await;
        assert!(said.well, "{said:#?}");
    }

    pub(crate) async fn run(&self, words: &[&str]) -> Said {
        self.run_with(words, "").await
    }

    pub(crate) async fn run_with(&self, words: &[&str], input: &str) -> Said {
        Self::talk(self.command(words), input).await
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.first).args(words).env("HOME", self.home.path());
        command
    }

    async fn talk(mut command: Command, input: &str) -> Said {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).await.unwrap();
        drop(stdin);
        let output = child.wait_with_output().await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Said { well: output.status.success(), out: text(output.stdout), err: text(output.stderr) }
    }
}
