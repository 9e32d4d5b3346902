//! The rules of API servers, one by one, and what must hold whatever is done.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod apply;
mod delete;
mod durable;
mod lifecycle;
mod list_watch;
mod properties;
mod provide;
mod world;
mod write;
