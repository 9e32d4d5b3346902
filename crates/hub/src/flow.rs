//! Fairness: how much one user and one workspace may have under way, and who goes next when there is more than the server
//! takes.
//!
//! [`Turns`] decides and knows no time; [`Gate`] lets async callers wait for their turn. Requests are short and wait a
//! little when there are too many, large answers until there is memory for them; watches are long, so that one too many is
//! refused at once.

mod gate;
mod turns;

use std::time::Duration;

pub use gate::{Gate, Pass, TooMany};
pub use turns::{Entry, Turn, Turns};

/// How much is taken at once. Every number is at least one.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Requests under way.
    pub requests: Shares,
    /// Requests of one user that wait for their turn; one more is refused.
    pub waiting_per_user: usize,
    /// How long a request waits for its turn before it is refused.
    pub turn_within: Duration,
    /// Watches.
    pub watches: Shares,
    /// Watches of one tenant, with all workspaces below his.
    pub watches_per_tenant: usize,
    /// Bytes of large lists that are being written or read.
    pub list_bytes: Shares,
    /// Bytes of bodies that are being sent, or are sent and not yet done with.
    pub bodies: Shares,
    /// The longest body of a request that is read; real servers have the same limit.
    pub body_bytes: usize,
    /// How long a client may take to send a body. It has its turn when that is there.
    pub body_within: Duration,
    /// How long a request may take until its answer begins; real servers have the same limit.
    pub request_within: Duration,
    /// How long a client may take to read a large answer, or what a watch begins with: until then it has its turn.
    pub answer_within: Duration,
    /// How long a connection lasts whose client takes nothing of what is sent to it.
    pub take_within: Duration,
}

/// How much of something there may be at once.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    /// Of all users together.
    pub all: usize,
    /// Of the accounts of one workspace together.
    pub per_workspace: usize,
    /// Of one user.
    pub per_user: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests: Shares { all: 400, per_workspace: 200, per_user: 100 },
            waiting_per_user: 1_000,
            turn_within: Duration::from_secs(15),
            watches: Shares { all: 100_000, per_workspace: 25_000, per_user: 10_000 },
            watches_per_tenant: 75_000,
            list_bytes: Shares { all: 256 << 20, per_workspace: 128 << 20, per_user: 64 << 20 },
            bodies: Shares { all: 1 << 30, per_workspace: 64 << 20, per_user: 32 << 20 },
            body_bytes: 3 << 20,
            body_within: Duration::from_secs(50),
            request_within: Duration::from_mins(1),
            answer_within: Duration::from_mins(1),
            take_within: Duration::from_secs(30),
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
    /// A list of so many bytes.
    List(usize),
    /// A body of so many bytes at most, which somebody sends as slowly as he likes.
    Body(usize),
}

/// As so much a body counts, however small it is: there may be no more of them, either.
const BODY_LEAST_BYTES: usize = 64 << 10;

impl Work {
    /// How much of its kind it takes.
    fn width(self) -> usize {
        match self {
            Self::Request | Self::Watch => 1,
            Self::List(bytes) => bytes.max(1),
            Self::Body(bytes) => bytes.max(BODY_LEAST_BYTES),
        }
    }
}

/// Who wants to do it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Asker {
    /// The workspace whose account it is. A user who is at home in none stands for himself.
    pub workspace: String,
    /// The user's name. Accounts of different workspaces may have the same.
    pub user: String,
}

impl Asker {
    /// Somebody who is at home nowhere in particular.
    pub fn user(name: &str) -> Self {
        // No workspace has a name with a space.
        Self { workspace: format!("user {name}"), user: name.to_owned() }
    }

    /// An account of a workspace.
    pub fn account(workspace: &str, name: &str) -> Self {
        Self { workspace: workspace.to_owned(), user: name.to_owned() }
    }
}
