//! The programs that users run: `mailboat`, and kubectl.

use std::path::Path;

use mailboat_testkit::build::Programs;

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
