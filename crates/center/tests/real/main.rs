//! What is promised of the center, on real kcp as an ordinary user: every scenario is a module of its own, with a
//! provider workspace and workspaces of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod harbor;
mod mailbox_lifecycle;
mod placement;
mod provider;
mod summary;
mod types;
