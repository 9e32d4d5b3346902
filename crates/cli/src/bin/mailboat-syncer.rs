//! `mailboat-syncer`: the edge syncer alone, as small as it gets. Its flags are those of `mailboat syncer`.

use std::process::ExitCode;

fn main() -> ExitCode {
    mailboat_cli::run_syncer(std::env::args_os())
}
