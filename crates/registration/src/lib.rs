//! How an edge comes to be served: which account, rights and objects its mailbox gets, which manifest its cluster
//! gets, how long its token lives, and how all of it is undone.
//!
//! Registration makes two halves meet. In the mailbox stands an account that may read that mailbox, report into it and
//! renew its own token. At the edge stands a Deployment with that account's kubeconfig and rights of its own. The names
//! of both follow from the SyncTarget's UID, so that doing it again finds what was done before.
//!
//! **Never here:** I/O, async, a clock. Everything is a value that somebody else sends, writes or prints; times come in
//! as parameters.
//!
//! Reading order: [`names`] (who is who), [`mailbox`] (where we are), [`rights`] (what a syncer may), [`account`] (the
//! mailbox's half), [`manifest`] (the edge's half), [`lifetime`], [`token`] and [`renewal`] (a token's life), [`removal`]
//! (the way back); before all that, [`inventory`] (how an edge is described), [`preparation`] (how a new workspace comes to let the center
//! in), [`workspace`] and [`kubeconfig`] (how one
//! gets from workspace to workspace).

pub mod account;
pub mod install;
pub mod inventory;
pub mod kubeconfig;
pub mod lifetime;
pub mod mailbox;
pub mod manifest;
pub mod names;
pub mod preparation;
pub mod removal;
pub mod renewal;
pub mod rights;
pub mod token;
pub mod workspace;

pub use account::Registration;
pub use mailbox::Mailbox;
pub use names::SyncerId;
pub use renewal::Renewal;
pub use token::Token;
