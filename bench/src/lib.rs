//! The harness that every benchmark shares.
//!
//! A benchmark is a program under `src/bin/`. It measures one thing of ours next to a floor or a peer in the
//! same run, because numbers from two runs or two machines cannot be compared, and prints one
//! [`Measurement`] a line as JSON on standard output; everything meant for people goes to standard error.
//! `cargo xtask bench` builds the programs, runs them and reads those lines.
//!
//! This crate never ships, and never decides what a bar is: each benchmark states its own.
//!
//! Reading order: [`Measurement`], then [`memory`] and [`cpu`]; [`fleet`] for those that need a whole center, [`hop`]
//! for those that carry from one real server to another, [`hub`] for the embedded server, [`center`] for the center as it
//! ships.

pub mod center;
pub mod cpu;
pub mod fleet;
pub mod hop;
pub mod hub;
pub mod measurement;
pub mod memory;

pub use measurement::{Bar, Beside, Measurement};

use std::path::PathBuf;

use anyhow::{Result, ensure};

/// A program that `cargo xtask bench` builds beside the benchmark that measures it.
pub fn program_beside(name: &str) -> Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name(name);
    ensure!(program.exists(), "{} is not there: build it with --release first", program.display());
    Ok(program)
}
