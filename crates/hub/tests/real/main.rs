//! The hub beside real servers, and with kubectl itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod flow;
mod helm;
mod informers;
mod kubectl;
mod rights;
mod served;
mod verbs;
mod ways;
mod workloads;
mod workspaces;
