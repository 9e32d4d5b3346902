//! What the store promises, against a model of a server with its whole history.
#![allow(missing_docs, unreachable_pub, reason = "test support is read where it is used")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so")]

mod churn;
mod covering;
mod fold;
mod hazards;
mod histories;
mod lost_future;
mod memory;
mod past;
mod protocol;
mod rig;
mod server;
mod taking_over;
mod traps;
