//! The thin async part: it turns what state machines ask for into requests, and answers into what they are
//! told.
//!
//! [`Followers`] drives the followers of `store` over the transports of `cluster`. It owns the store in one
//! task, holds any number of reads open at once, and gives out the news as they come. [`Carrier`] tells them to the
//! engine and sends what it wants sent. [`Process`] runs both with one role: the body of every program.
//!
//! **Never here:** a decision. When to list, to watch, to wait or to give up, and what an answer means for an
//! object, is said by the state machines; how a request is sent and what a failure is, by `cluster`.
//!
//! Reading order: [`follow`] (the loop), [`clock`] (what time it is), [`fetch`] (one read as a future), [`definition`] (which change of which
//! object redefines a kind), [`carry`] (the engine's wishes as requests), [`look`] (a fresh look at a source), [`process`]
//! (all of it, with a role), [`ways`] (how what a role names is reached); [`election`] and [`lease`] (who may write);
//! [`health`], [`metrics`] and [`listen`] (what a
//! process says of itself), [`signal`] (when it is asked to end).

pub mod carry;
mod clock;
pub mod definition;
pub mod election;
mod fetch;
pub mod follow;
pub mod health;
mod lag;
pub mod lease;
pub mod listen;
pub mod look;
pub mod metrics;
pub mod process;
pub mod signal;
mod standing;
mod voice;
pub mod ways;

pub use carry::Carrier;
pub use follow::{Calendar, Followers, Follows};
pub use health::Health;
pub use lease::{Gate, Lease};
pub use listen::{Instruments, Listener};
pub use look::{ground, look};
pub use metrics::{Metrics, Serves};
pub use process::Process;
pub use signal::StopSignal;
pub use ways::Ways;
