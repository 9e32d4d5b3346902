//! The programs `mailboat` and `mailboat-syncer`: every command, its flags, and the little that is needed to carry it out.
//!
//! One program answers to several names: `kubectl mailboat X` is `mailboat X`, and the names of earlier plugins lead to
//! the commands that do their work. Progress goes to standard error, results to standard output. Exit codes: 0 done,
//! 1 failed, 2 not as it should be called, in which case nothing was changed.
//!
//! **Never here:** a decision worth testing. What registration makes is decided in `mailboat-registration`, how servers
//! are spoken to in `mailboat-cluster`; commands ask, send and tell.
//!
//! Reading order: [`flags`] (the one table of commands and flags), [`called`] (which name leads where), then one file
//! per command: [`syncer`], [`syncer_gen`], [`syncer_remove`], [`ws`], [`ensure`], [`prep`], [`get`], [`why`],
//! [`plan`], [`api`], [`customize`], [`hub`], [`up`], [`link`], [`kubestellar`], `complete`; `place`, `site` and `survey` are how they
//! reach servers, [`failure`] how they fail, `documents` and `table` how they
//! print, `log` what they say while they run, and [`keeper`] keeps a running syncer's token alive.

/// Says how it goes, on standard error. Somebody who stopped listening is no reason to stop half-way.
macro_rules! say {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}

pub mod api;
pub mod called;
pub mod center;
mod complete;
pub mod customize;
mod documents;
pub mod ensure;
pub mod failure;
pub mod flags;
pub mod get;
pub mod hub;
pub mod keeper;
pub mod kubestellar;
pub mod link;
mod log;
mod output;
mod place;
pub mod plan;
pub mod prep;
pub mod remove;
mod site;
mod survey;
pub mod syncer;
pub mod syncer_gen;
pub mod syncer_remove;
mod table;
pub mod up;
pub mod why;
pub mod ws;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{CommandFactory as _, FromArgMatches as _, Parser as _};

use crate::called::Called;
use crate::flags::{Command, Mailboat, MailboatSyncer};

/// Does what the words of a command line ask for, the program's own name first.
pub fn run(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let called = match called::read(words) {
        Ok(called) => called,
        Err(unbuilt) => return failure::tell(&failure::refusal(unbuilt.to_string())),
    };
    let command = match parse(&called) {
        Ok(mailboat) => mailboat.command,
        Err(usage) => return tell_usage(&usage),
    };
    ended(carry_out(command))
}

/// The program `mailboat-syncer`: nothing but the edge syncer, with the flags of `mailboat syncer`.
pub fn run_syncer(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    match MailboatSyncer::try_parse_from(words) {
        Ok(program) => ended(asynchronously(syncer::run(&program.arguments))),
        Err(usage) => tell_usage(&usage),
    }
}

/// Help goes to standard output and ends well; anything else is bad use, with clap's own words and code 2.
fn tell_usage(usage: &clap::Error) -> ExitCode {
    let _ = usage.print();
    ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2))
}

fn ended(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::tell(&error),
    }
}

/// The whole table of commands, for documentation and completion.
pub fn command() -> clap::Command {
    Mailboat::command()
}

fn parse(called: &Called) -> Result<Mailboat, clap::Error> {
    let mut command = command().bin_name(called.shown);
    let matches = command.try_get_matches_from_mut(&called.words)?;
    Mailboat::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn carry_out(command: Command) -> Result<()> {
    match command {
        Command::Center(arguments) => asynchronously(center::run(&arguments)),
        Command::Syncer(arguments) => asynchronously(syncer::run(&arguments)),
        Command::SyncerGen(arguments) => asynchronously(syncer_gen::run(&arguments)),
        Command::Workload(flags::Workload::EdgeSync(arguments)) => {
            asynchronously(syncer_gen::run(&arguments))
        }
        Command::Kubestellar(command) => kubestellar::run(&command),
        Command::SyncerRemove(arguments) => asynchronously(syncer_remove::run(&arguments)),
        Command::Ws(arguments) => asynchronously(ws::run(&arguments)),
        Command::Ensure(arguments) => asynchronously(ensure::run(&arguments)),
        Command::Remove(arguments) => asynchronously(remove::run(&arguments)),
        Command::PrepForSyncer(arguments) => asynchronously(prep::for_syncer(&arguments)),
        Command::PrepForCluster(arguments) => asynchronously(prep::for_cluster(&arguments)),
        Command::Get(arguments) => asynchronously(get::run(&arguments)),
        Command::Why(arguments) => asynchronously(why::run(&arguments)),
        Command::Plan(arguments) => asynchronously(plan::run(&arguments)),
        Command::Api(arguments) => asynchronously(api::run(&arguments)),
        Command::Customize(arguments) => customize::run(&arguments),
        Command::Hub(arguments) => serving(hub::run(&arguments)),
        Command::Up(arguments) => serving(up::run(&arguments)),
        Command::Link(arguments) => link::run(&arguments),
        Command::Completion(arguments) => {
            // Into memory first: the generator takes whoever stops reading for a bug.
            let mut script = Vec::new();
            clap_complete::generate(arguments.shell, &mut command_as_typed(), "mailboat", &mut script);
            documents::write_out(&String::from_utf8_lossy(&script))
        }
        Command::Complete { words } => {
            documents::write_out(&complete::suggest(&crate::command(), &words).to_string())
        }
        Command::Version => writeln!(std::io::stdout(), "mailboat {}", env!("CARGO_PKG_VERSION"))
            .context("the version cannot be printed"),
    }
}

/// The table as completion scripts should know it.
fn command_as_typed() -> clap::Command {
    command().bin_name("mailboat")
}

/// Commands make a few requests and end, and a syncer waits for servers most of its time: one thread is enough.
pub(crate) fn asynchronously(work: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no async runtime can be started")?;
    runtime.block_on(work)
}

/// A server has many clients at once: it uses every processor.
fn serving(work: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("no async runtime can be started")?;
    runtime.block_on(work)
}

#[cfg(test)]
mod tests;
