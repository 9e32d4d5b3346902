//! Bytes to and from API servers: connections, credentials, discovery, calls.
//!
//! A [`Connection`] is one server and one credential; a [`Cluster`] is a path below it (a plain cluster, a
//! workspace of kcp, a view of many workspaces) and implements [`Transport`], the seam through which all else
//! reads and writes. How a place may be written follows from its path: what would go wrong there is refused
//! before it is sent. Every failure becomes a `Fault`, classified here and nowhere else.
//!
//! Of kube, only the reading of kubeconfig files, in-cluster configuration and the TLS configuration are used.
//!
//! **Never here:** what a route is, when to list or to watch, what an answer means for an object. Nothing is
//! repeated except reads and what provably never reached the server.
//!
//! Reading order: [`transport`] (the seam), [`cluster`] and [`view`] (the handles), [`request`] (what is asked,
//! as plain values), [`catalog`] (what is served) with `discovery`, [`lines`] (what comes back), `fault` (what
//! went wrong), then [`connection`] with `session`, `pool` and `dial` below it, [`source`] and `credential`
//! (where the configuration comes from), and [`settings`] (every limit and time).

pub mod catalog;
mod certificate;
pub mod cluster;
pub mod connection;
mod credential;
mod dial;
mod discovery;
mod fault;
pub mod lines;
mod nullable;
mod pool;
mod rate;
pub mod request;
mod session;
pub mod settings;
pub mod source;
pub mod transport;
pub mod view;

pub use catalog::{Catalog, Found, Served, Verbs};
pub use cluster::Cluster;
pub use connection::{Connection, ServerAddress};
pub use lines::Lines;
pub use request::{Read, ReadMode};
pub use settings::{Rate, Retry, Settings};
pub use source::{ConfigError, Source};
pub use transport::Transport;
pub use view::{View, endpoints};
