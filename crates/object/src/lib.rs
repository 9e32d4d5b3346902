//! A Kubernetes object as Mailboat holds it: its JSON bytes plus a small parsed head.
//!
//! An API server's answer is decoded once, in one pass, without building a tree: what decisions need (names,
//! uid, versions, digests of content and status, who wrote last) becomes the head; everything else stays
//! bytes and is edited by copying spans. That is what makes ten thousand objects cost little more than their
//! JSON.
//!
//! **Never here:** I/O, async, a clock, a task.
//!
//! Reading order: [`key`] (what names an object), [`object`] (the object and its head), [`json`] (the scanner
//! under it), [`malformed`] (why a body cannot be read), [`digest`], [`travel`] (what of an object is content),
//! [`edit`], then [`page`] (list pages and watch lines), [`select`], [`jsonpath`], [`merge`], [`timestamp`],
//! [`wire`] (requests and replies as plain values), [`catalog`] (what a server serves) and [`expression`] (which are small
//! enough to be parsed).

pub mod catalog;
pub mod digest;
pub mod edit;
pub mod expression;
#[cfg(test)]
mod fixtures;
pub mod json;
pub mod jsonpath;
pub mod key;
pub mod malformed;
pub mod merge;
pub mod object;
pub mod page;
pub mod select;
pub mod timestamp;
pub mod travel;
pub mod wire;

pub use digest::{Digest, digest_of, digest_of_value};
pub use edit::{Edit, Edited};
pub use json::Raw;
pub use key::{ClusterId, Key, KindId, Name, Uid, Version};
pub use malformed::{Malformed, What};
pub use object::{
    ClusterOf, Hands, HeadOnly, Keep, Limits, Object, Operation, Outline, OwnerReference, Place, Writer,
};
pub use page::{Event, Page, StatusBody};
pub use select::{FieldSelector, LabelSelector};
