//! The edge syncer: it carries a mailbox to its cluster, and brings back what the cluster reports and creates.
//!
//! The syncer is a role of the one engine. Its configuration (all SyncerConfigs and EdgeSyncConfigs in the mailbox) becomes
//! rules, the rules become two routes, down and up, and what came of them becomes the status of the configuration.
//!
//! **Never here:** a sync loop, a comparison of copies, a retry of a delivery, HTTP. Everything but [`assemble`] compiles
//! and runs without an async runtime, so that a simulation can run the same role.
//!
//! Reading order: [`config`] (what is asked for), [`select`] and [`renature`] (which objects, and what they are called
//! there), [`downsync`] and [`upsync`] (the routes), [`marks`] (what stands on copies), [`record`] and [`configured`] (what
//! survives a restart beside them), [`report`] (what is said of it), [`role`] (how it all hangs together), [`assemble`].

pub mod assemble;
pub mod carry;
pub mod config;
pub mod configured;
pub mod downsync;
pub mod marks;
pub mod record;
pub mod renature;
pub mod report;
pub mod role;
pub mod select;
#[cfg(test)]
mod testing;
pub mod upsync;

pub use assemble::{Error, Settings, Syncer, run};
pub use role::{Identity, SyncerRole};
