//! Real worlds for tests: a center (kcp) and edges (Kubernetes clusters) of the real servers, on this machine.
//!
//! A test describes a world, starts it in seconds, uses it through plain values (URL, authority, token),
//! kubeconfig files or ready clients, and breaks it part by part:
//!
//! ```no_run
//! # async fn example() -> mailboat_testkit::Result<()> {
//! use mailboat_testkit::{ADMIN, EdgeSpec, World};
//!
//! let world = World::builder().center().edge_with(EdgeSpec::bare("guilder")).start().await?;
//! let workspace = world.center().workspace("orders").await?;
//! let kubeconfig = world.center().kubeconfig(ADMIN, &workspace.path)?;
//! let client = world.edge("guilder").client(ADMIN).await?;
//! world.edge("guilder").apiserver().kill().await?;
//! # Ok(()) }
//! ```
//!
//! It runs on Linux, with `setpriv` of util-linux. Every process ends with the world that it belongs to, even when the test panics or is killed. Tests that break
//! nothing share one kcp ([`World::shared`]) and take fresh workspaces in it. With [`HUB_VARIABLE`] set, every place is an
//! embedded hub instead.
//!
//! Boundary: this crate is never a dependency of anything that ships, never talks to anything but 127.0.0.1 (Go
//! fetches its modules when the servers are built), and never ends a process that it did not start.
//!
//! Reading order: `world`, then `center` and `edge` with `place` (what they share) and `part` (one server
//! process) below them; `process` and `ports` are the ground; `build` makes the servers; `bed` is the same world
//! for a person, by `cargo xtask testbed`. The players stand beside it all: `proxy` (links and servers that fail),
//! `kubelet` (runs our own Deployments) and `cloud`, over `follow`, which shows them a cluster.

mod access;
mod apply;
mod authority;
pub mod bed;
pub mod build;
mod center;
pub mod cloud;
mod companion;
mod edge;
mod error;
mod etcd;
mod files;
mod follow;
mod hub;
pub mod kubelet;
mod part;
mod place;
mod ports;
mod process;
pub mod proxy;
mod random;
mod site;
mod state;
mod wait;
mod workspace;
mod world;

pub use access::{Access, Credential};
pub use apply::{apply, apply_file, apply_object, served};
pub use authority::{CertifiedUser, Validity};
pub use center::{CENTER_GROUP, CENTER_USER, Center, CenterSpec, SHARD_ADMIN};
pub use companion::Companion;
pub use edge::{Edge, EdgeSpec};
pub use error::{Error, Result};
pub use hub::{HUB_VARIABLE, is_on_hub};
pub use part::{Part, PartKind};
pub use place::{ADMIN, User};
pub use ports::Port;
pub use process::ProcessIdentity;
pub use wait::{NotInTime, wait_until};
pub use workspace::Workspace;
pub use world::{TESTBED_VARIABLE, World, WorldBuilder};
