//! Fairness: how much one user may have under way, and who goes next when there is more than the server takes.
//!
//! [`Turns`] decides and knows no time; [`Gate`] lets async callers wait for their turn. Requests are short and wait a
//! little when there are too many; watches are long, so that one too many is refused at once.

mod gate;
mod turns;

use std::time::Duration;

pub use gate::{Gate, Pass, TooMany};
pub use turns::{Entry, Turn, Turns};

/// How much is taken at once. Every number is at least one.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Requests under way, of all users together.
    pub requests: usize,
    /// Requests under way of one user.
    pub requests_per_user: usize,
    /// Requests of one user that wait for their turn; one more is refused.
    pub waiting_per_user: usize,
    /// Watches of all users together.
    pub watches: usize,
    /// Watches of one user.
    pub watches_per_user: usize,
    /// The longest body of a request that is read; real servers have the same limit.
    pub body_bytes: usize,
    /// How long a client may take to send a body: until then it has its turn.
    pub body_within: Duration,
    /// How long a client may take to read a large answer: until then it has its turn.
    pub answer_within: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests: 400,
            requests_per_user: 100,
            waiting_per_user: 1_000,
            watches: 100_000,
            watches_per_user: 10_000,
            body_bytes: 3 << 20,
            body_within: Duration::from_mins(1),
            answer_within: Duration::from_mins(1),
        }
    }
}

/// What somebody wants to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// A request that is answered soon.
    Request,
    /// A watch, which lasts.
    Watch,
}
