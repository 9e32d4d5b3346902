//! What is promised of following, on real servers: whatever happens to a server, a link or a credential, nothing
//! is lost, nothing that exists is ever taken for absent, and it all comes right again without a restart.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod credentials;
mod definitions;
mod emptied;
mod equality;
mod ferry;
mod forms;
mod harbor;
mod killed;
mod leading;
mod links;
mod opening;
mod past;
mod rig;
mod schemas;
mod servers;
mod stubborn;
mod telling;
mod views;
mod waters;
