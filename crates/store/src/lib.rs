//! What is known of every object, and why.
//!
//! API servers are read by [`Follower`]s: state machines that say what to fetch next (list, probe, watch, or
//! wait) and are fed what came back. They fill one [`Store`], which answers every question about an object
//! with [`Seen`]: `Present`, `Absent` with a proof, or `Unknown` with a reason. Deletions at edges rest on that
//! answer, so nothing here ever concludes absence from an error, a closed connection, a filter, a view that
//! does not show a cluster, or a server that went back in time.
//!
//! **Never here:** I/O, async, a clock, a random source, a task. Time and seeds come in as parameters, and no
//! answer depends on the order of a hashed collection, so that a simulated run replays exactly.
//!
//! Reading order: [`seen`] (what can be known), [`interest`] (who wants to know what), [`store`] (what is
//! known), [`follower`] (how it comes to be known), and [`time`] underneath.

pub mod follower;
pub mod interest;
#[cfg(feature = "mutations")]
pub mod mutation;
#[cfg(not(feature = "mutations"))]
mod mutation;
pub mod seen;
pub mod store;
pub mod time;

pub use follower::{Definition, Fetch, Follower, Input, ProbeWhen, Selection, Settings, Turn};
pub use interest::{EndpointId, FeedId, Filter, Interest, Keep, PlaceId, merge};
pub use seen::{Absence, Change, Doubt, Gone, News, Seen};
pub use store::{Nature, Range, Store, Unopened};
pub use time::{Moment, Now, Random};
