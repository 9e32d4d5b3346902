//! The same requests, sent to the hub and to the real servers, and their answers compared.
//!
//! What is sent stands in `cases/*.txt`, as a reader of API conventions would write it down; [`script`] says how these
//! files read. Each case runs on both servers, in a namespace of its own. What two servers never share (uids, times,
//! versions, generated names) is made comparable by [`plain`], and everything else has to be equal: code, content type,
//! warnings, and the body down to its last field. What may differ is listed in `docs/hub.md` with its reason; a row there
//! that no longer matches anything is a failure too, so that the list tells the truth.
//!
//! **Never here:** knowledge of how a server works. It asks, and compares.
//!
//! Reading order: [`script`], `play` (a case on one server), [`plain`], [`difference`], [`known`], [`run`],
//! [`coverage`] and [`recorded`] (what all this shows).

pub mod coverage;
pub mod difference;
pub mod known;
pub mod pick;
pub mod plain;
mod play;
pub mod recorded;
pub mod run;
pub mod script;
mod server;

pub use run::{Error, Outcome, Peer, Report, run};
