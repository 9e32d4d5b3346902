//! `mailboat`: everything lives in the library, so that documentation and tests see the same commands.

use std::process::ExitCode;

fn main() -> ExitCode {
    mailboat_cli::run(std::env::args_os())
}
