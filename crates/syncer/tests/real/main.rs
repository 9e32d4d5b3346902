//! What is promised of the syncer, on real kcp and real Kubernetes: every scenario is a module of its own, and takes a
//! fresh mailbox.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod configuration;
mod definitions;
mod delete;
mod deliver;
mod downsync_overwrite;
mod harbor;
mod renature;
mod restart;
mod status_return;
mod upsync;
