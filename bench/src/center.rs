//! What the benchmark `center` is made of: a fleet as users describe it, on a hub in memory that is a process of its own or on
//! a real kcp, and the center as it ships, in another.
//!
//! Reading order: [`server`] (what it all stands on), [`users`] (what there is, and what they change), [`watching`] (when it has
//! arrived), [`process`] (what it takes the center).

pub mod process;
pub mod server;
pub mod users;
pub mod watching;

use std::time::Duration;

pub use process::CenterProcess;
pub use server::Server;
pub use users::Users;
pub use watching::{Event, Watching};

/// How long a change may take to arrive.
const LIMIT: Duration = Duration::from_mins(5);
