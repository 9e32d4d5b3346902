//! Who may do what: users and how they prove who they are, and RBAC as Kubernetes evaluates it, in every workspace by
//! itself.
//!
//! **Never here:** HTTP, sockets, a decision about objects other than "may this user do this".
//!
//! Reading order: [`User`], how one is known ([`Authority`] for certificates, [`Accounts`] for service accounts,
//! [`TokenFile`] for everybody else), [`Asked`], [`rbac::Rights`] (the index and the decision), [`rbac::escalation`] (nobody
//! gives away what he does not have), [`review`] (the answers to questions about all this).

mod asked;
mod authority;
mod jwt;
mod kubeconfig;
pub mod rbac;
pub mod review;
mod service_account;
mod token_file;
pub mod user;

pub use asked::Asked;
pub use authority::{Authority, AuthorityError, Certified, user_of};
pub use jwt::{BadToken, SigningKey};
pub use kubeconfig::{kubeconfig, write_private};
pub use rbac::{Decision, Rights};
pub(crate) use service_account::DEFAULT_SECONDS;
pub use service_account::{AccountError, Accounts, Bound, TokenRequest};
pub use token_file::{BadTokenFile, TokenFile};
pub use user::{ImpersonationError, User};
