//! How a command fails: one sentence, and an exit code that says whose turn it is.

use std::process::ExitCode;

use mailboat_cluster::ConfigError;
use mailboat_object::wire::{Fault, FaultKind};

/// Not as it should be called: a bad name, the wrong place, missing rights. Nothing was changed. Exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(String);

/// It was done, and the answer is that something would change. Exit code 3, without a word.
#[derive(Debug, thiserror::Error)]
#[error("something would change")]
pub struct WouldChange;

/// A refusal with its sentence, which says what is wrong, where, and what to do.
pub fn refusal(sentence: impl Into<String>) -> anyhow::Error {
    Refusal(sentence.into()).into()
}

/// What a server's answer means before anything was written: what the caller can mend is a refusal, all else a
/// failure.
pub fn before_writing(doing: &str, fault: &Fault) -> anyhow::Error {
    let sentence = format!("{doing}: {fault}");
    match fault.kind {
        FaultKind::Unauthorized
        | FaultKind::Forbidden
        | FaultKind::Invalid
        | FaultKind::NotFound
        | FaultKind::Unserved => refusal(sentence),
        _ => anyhow::anyhow!(sentence),
    }
}

/// How most commands are told where the center is.
pub const CENTER_FLAG: &str = "--kubeconfig or KUBECONFIG";

/// A configuration that cannot be used is the caller's to mend, by the flag that it was, or could have been, named with.
pub fn bad_configuration(error: &ConfigError, flag: &str) -> anyhow::Error {
    match error {
        ConfigError::Unreadable { .. } => refusal(format!("{error}; give its path with {flag}")),
        ConfigError::NotInCluster { .. } => {
            refusal(format!("{error}; outside a cluster, give a kubeconfig with {flag}"))
        }
        _ => refusal(error.to_string()),
    }
}

/// Says what went wrong on standard error, in one line, and gives the exit code for it.
pub fn tell(error: &anyhow::Error) -> ExitCode {
    if error.is::<WouldChange>() {
        return ExitCode::from(3);
    }
    say!("error: {error:#}");
    if error.is::<Refusal>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}
