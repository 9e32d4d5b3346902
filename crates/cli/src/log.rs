//! Log lines of the programs that stay: on standard error, for people or for machines.

use std::fs::OpenOptions;
use std::io::IsTerminal as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Mutex;

use anyhow::Result;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::failure::refusal;
use crate::flags::LogFormat;

/// Lets everything from here on be logged as the flags ask.
pub(crate) fn begin(format: LogFormat, filter: &str) -> Result<()> {
    let registry = tracing_subscriber::registry().with(targets(filter)?);
    let begun = match format {
        LogFormat::Text => {
            let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
            registry.with(lines.with_ansi(std::io::stderr().is_terminal())).try_init()
        }
        LogFormat::Json => {
            let lines = tracing_subscriber::fmt::layer().json().flatten_event(true);
            registry.with(lines.with_writer(std::io::stderr)).try_init()
        }
    };
    begun.map_err(|_| anyhow::anyhow!("log lines are written already"))
}

/// Lets everything from here on be logged at the end of a file.
pub(crate) fn begin_in(file: &Path, filter: &str) -> Result<()> {
    let targets = targets(filter)?;
    let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(file);
    let opened =
        opened.map_err(|error| refusal(format!("the log {} cannot be written: {error}", file.display())))?;
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(Mutex::new(opened));
    let begun = tracing_subscriber::registry().with(targets).with(lines).try_init();
    begun.map_err(|_| anyhow::anyhow!("log lines are written already"))
}

fn targets(filter: &str) -> Result<Targets> {
    filter.parse().map_err(|_| {
        refusal(format!(
            "{filter:?} is no log level: write error, warn, info, debug or trace, or by part, such as \
             info,mailboat_cluster=debug"
        ))
    })
}
