//! One engine for four roles: a translator, an edge syncer, a workload syncer and a publisher with related
//! objects, as skeleton routes over a small server, without a special case for any of them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod any_order;
mod asked;
mod churn;
mod conflicts;
mod definitions;
mod delivery;
mod documents;
mod emptied;
mod faults;
mod fights;
mod finalizers;
mod hazards;
mod looks;
mod order;
mod overlay;
mod ownership;
mod patches;
mod piecemeal;
mod prelude;
mod properties;
mod roles;
mod scale;
mod server;
mod sought;
mod standing;
mod staying;
mod telling;
mod unclaimed;
mod warrants;
mod withdrawal;
mod world;
