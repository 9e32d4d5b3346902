//! The center's deciding parts: what of a workload workspace goes to which edges, in which form, and what is
//! said about it afterwards.
//!
//! Users put ordinary objects and EdgePlacements into workload workspaces, and describe their edges by
//! Locations and SyncTargets in inventory workspaces. From these the center makes slices (which placement goes
//! where), copies in mailboxes (customized and denatured), one SyncerConfig per mailbox, and summaries of what
//! the edges report. Each of these is worked out here as a plain function of what is known; the one engine
//! carries it out.
//!
//! **Never here:** a second sync loop; and, outside of [`init`] and [`assemble`], I/O, async, a task or a clock of its
//! own.
//!
//! Reading order: [`what`] (which objects a placement selects), [`schedule`] (where it goes), [`customize`] and
//! [`denature`] (what becomes of an object on its way), [`translate`] (all of it as a route), [`mailbox`] (where it
//! arrives), [`the_one`] (what a syncer is told) and [`summary`] (what is said of it all); then the small ones that
//! these are built from, [`shards`], [`selector`] and [`names`]. [`role`] puts all of it to work, [`parts`] says which process writes what of it, [`assemble`] makes a
//! program of it, and [`rehearse`] lets it think without acting, for those who ask why. Beside this, [`setup`] is what a provider workspace holds, and [`init`] puts it there.

pub mod assemble;
mod body;
pub mod customize;
pub mod denature;
#[cfg(test)]
mod fixtures;
pub mod init;
pub mod mailbox;
pub mod names;
pub mod parts;
pub mod rehearse;
pub mod role;
pub mod schedule;
pub mod selector;
pub mod setup;
pub mod shards;
pub mod summary;
pub mod the_one;
pub mod translate;
pub mod what;
