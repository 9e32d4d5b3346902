//! The types of every API that Mailboat serves or reads, and the CRDs and kcp schemas made from them.
//!
//! **Job.** One Rust type per API kind, with the documentation, validation and printed columns that users
//! meet through `kubectl`; the wire names (labels, annotations, fixed object names) that join the parts of
//! an installation; and pure functions that turn all this into the files under `deploy/`.
//!
//! **Boundary.** Never I/O, never async, no clock: values in, values out. It knows how an object looks,
//! not what becomes of it.
//!
//! **Reading order.** [`names`] for the vocabulary, then [`edge`] (what users and the center write),
//! [`workload`] and [`scheduling`] (the second inventory), [`syncagent`] (publishing a service), [`kcp`]
//! (what is read from kcp), [`places`] (what never travels), [`generate`] (types to files) and [`examples`] (one object of each kind).

#![allow(
    clippy::duplicated_attributes,
    reason = "the printed columns of one kind may share type and priority"
)]

pub mod condition;
pub mod edge;
pub mod eviction;
pub mod examples;
pub mod generate;
pub mod kcp;
pub mod names;
pub mod places;
pub mod scheduling;
pub mod syncagent;
pub mod workload;

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, Time};
