//! The embedded server: what kcp and Kubernetes serve, as far as Mailboat and its users rely on it, in one process.
//!
//! It is the ground for a first run with nothing else installed, for tests in milliseconds and for small sites. In
//! production kcp and Kubernetes take its place: same protocol, same suite.
//!
//! All that is done to objects is done by [`mailboat_machinery`]; this crate puts it behind HTTP. There is one
//! handler for all kinds.
//!
//! **Never here:** a decision of a role, a second implementation of what `machinery` does.
//!
//! Reading order: `hub` (the state, and the one way to it), `handle` (from a request to an answer) with `path`, `query`
//! and `media` (what is asked for, and how), `discovery`, `openapi` and `table` (what clients are told), `catalog` (the
//! kinds of Kubernetes), `place` and `workspaces` (what there is of kcp), `keeper` (what controllers do), [`access`] and
//! `gate` (who asks, and whether they may), [`storage`] (what is kept), `serve` (connections) with `compress` and `lines`, `private` and `random` (what others must not see, or guess), [`control`] (backups), [`flow`] (whose turn it is), [`workloads`] and `simulate` (a cluster without machines), [`shape`] and `recorder` (how clients ask).

pub mod access;
mod answer;
mod api_services;
mod bell;
pub mod catalog;
mod cluster;
mod compress;
pub mod control;
mod discovered;
mod discovery;
mod doors;
pub mod flow;
mod gate;
mod handle;
mod health;
mod hub;
mod keeper;
mod lines;
mod media;
mod members;
mod openapi;
mod path;
mod place;
mod private;
pub mod protobuf;
mod query;
mod random;
mod recorder;
mod serve;
pub mod shape;
mod simulate;
mod stall;
pub mod storage;
mod table;
pub mod workloads;
mod workspaces;

pub use cluster::{OpenError, Opened, Options, cluster, workspaces};
pub use hub::Hub;
pub use recorder::Recorder;
pub use serve::Server;
pub use workspaces::{Seen, View, Workspaces};
