//! The embedded server: what kcp and Kubernetes serve, as far as Mailboat and its users rely on it, in one process.
//!
//! It is the ground for a first run with nothing else installed, for tests in milliseconds and for small sites. In
//! production kcp and Kubernetes take its place: same protocol, same suite.
//!
//! All that is done to objects is done by [`mailboat_machinery`]; this crate puts it behind HTTP. There is one
//! handler for all kinds.
//!
//! **Never here:** a decision of a role, a second implementation of what `machinery` does.

pub mod storage;
