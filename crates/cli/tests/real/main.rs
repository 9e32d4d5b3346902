//! Registration on a real kcp and a real cluster, by the program itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod mailbox;
mod program;
mod register;
