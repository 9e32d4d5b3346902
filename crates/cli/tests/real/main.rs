//! What is promised of registration, of workspaces and of the syncer, on real kcp and real Kubernetes, by the programs
//! themselves. Every scenario is a module of its own and takes a fresh mailbox; those that a person can follow stand in
//! docs/scenarios.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod chart;
mod configuration;
mod definitions;
mod delete;
mod deliver;
mod downsync_overwrite;
mod fleet;
mod harbor;
mod idle;
mod kyverno;
mod mailbox;
mod manifest;
mod offline;
mod pages;
mod policy_report;
#[path = "../shared/up.rs"]
mod process;
mod program;
mod register;
mod renature;
mod restart;
mod status_return;
mod up;
mod upsync;
mod workspaces;
