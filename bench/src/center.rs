//! What the benchmark `center` is made of: a fleet as users describe it, on a hub in memory that is a process of its own,
//! and the center as it ships, in another.
//!
//! Reading order: [`users`] (what there is, and what they change), [`watching`] (when it has arrived), [`process`] (what it
//! takes the center).

pub mod process;
pub mod users;
pub mod watching;

pub use process::CenterProcess;
pub use users::Users;
pub use watching::{Event, Watching};
