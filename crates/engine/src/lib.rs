//! The one sync engine under all roles.
//!
//! Everything Mailboat does is a route: select objects in one place, change them on the way, deliver them to
//! others, bring back what is reported, withdraw them when they are no longer wanted. A role turns its own API
//! objects into [`Route`](route::Route)s; the engine does the rest, one **slot** (a place where an object may
//! stand) at a time.
//!
//! The heart is [`plan`](plan::plan): a pure function from what is wanted and seen of one slot to a verdict and
//! at most two actions. It has no clock, no network and no memory; whatever it knows stands in its argument.
//! Nothing is deleted without a [`Warrant`](warrant::Warrant), and only evidence makes one.
//!
//! **Never here:** I/O, async, a task, a clock of its own, a role's API types.
//!
//! Reading order: [`want`] (what a role asks for), [`mark`] (what stands on a copy), [`record`] (what is
//! remembered of a slot), [`warrant`] (what a deletion needs), [`plan`], [`role`] (how a role is run),
//! [`glance`] (how it all stands).

mod bodies;
pub mod breaker;
pub mod compose;
mod contests;
mod copies;
pub mod difference;
mod emptied;
pub mod engine;
pub mod fans;
pub mod glance;
pub mod likeness;
pub mod look;
pub mod mark;
pub mod mutation;
pub mod plan;
pub mod queue;
pub mod rare;
pub mod record;
pub mod role;
pub mod route;
mod shared;
pub mod slots;
pub mod standing;
pub mod want;
pub mod warrant;
mod whereabouts;
