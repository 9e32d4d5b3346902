//! Who may do what: users and how they prove who they are, and RBAC as Kubernetes evaluates it, in every workspace by
//! itself.
//!
//! **Never here:** HTTP, sockets, a decision about objects other than "may this user do this".
//!
//! Reading order: [`User`], [`Asked`], [`rbac::Rights`] (the index and the decision), [`rbac::escalation`] (nobody
//! gives away what he does not have), [`review`] (the answers to questions about all this).

mod asked;
pub mod rbac;
pub mod review;
pub mod user;

pub use asked::Asked;
pub use rbac::{Decision, Rights};
pub use user::{ImpersonationError, User};
