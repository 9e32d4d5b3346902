//! How a command ends: what it tells the shell.

use std::process::ExitCode;

/// The end of a command that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Everything that was tested or checked is in order: exit code 0.
    Passed,
    /// Something that was tested or checked is not: exit code 1. It has been said what.
    Failed,
}

/// Bad input or a machine that lacks something: one sentence for the user, exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refusal(String);

/// A refusal with its sentence, which names the cause and what to do.
pub(crate) fn refusal(sentence: impl Into<String>) -> anyhow::Error {
    Refusal(sentence.into()).into()
}

impl Verdict {
    /// Passed if nothing failed.
    pub(crate) fn of_failures(failures: usize) -> Self {
        if failures == 0 { Self::Passed } else { Self::Failed }
    }
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Passed => Self::SUCCESS,
            Verdict::Failed => Self::FAILURE,
        }
    }
}

/// The exit code of an error: 2 where the caller can mend it, 1 otherwise.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    if error.is::<Refusal>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_refusal_stays_a_refusal_under_added_context() {
        let refused = Err::<(), _>(refusal("no bench is named 'x'")).context("while choosing benches");
        let error = refused.unwrap_err();
        assert_eq!(format!("{:?}", exit_code(&error)), format!("{:?}", ExitCode::from(2)));
        let other = anyhow::anyhow!("a file cannot be read");
        assert_eq!(format!("{:?}", exit_code(&other)), format!("{:?}", ExitCode::FAILURE));
    }
}
