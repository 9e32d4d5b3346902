//! What the benchmark `hub` shares: a hub as a process, mailboxes in it, and the same work on any server.
//!
//! Reading order: [`server`], [`mailboxes`], [`work`].

pub mod mailboxes;
pub mod server;
pub mod work;

pub use server::HubServer;
