//! The seam: whoever reads or writes a cluster does it through this, and a test or simulation may stand in.

use std::sync::Arc;

use futures::future::BoxFuture;
use mailboat_object::wire::{Abilities, Call, Fault, Reply};

use crate::catalog::Catalog;
use crate::lines::Lines;
use crate::request::Read;

/// One cluster, one workspace, or one view of many, to read and write. Used as `Arc<dyn Transport>`.
pub trait Transport: Send + Sync {
    /// Carries out a request about one object.
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, Fault>>;

    /// Begins a list page (to be taken [whole](Lines::whole)) or a watch (to be taken line by line).
    /// Dropping what it gives ends it.
    fn fetch(&self, read: Read) -> BoxFuture<'static, Result<Lines, Fault>>;

    /// What is served here, asked for if it is not known or [stale](Transport::stale).
    fn catalog(&self) -> BoxFuture<'static, Result<Arc<Catalog>, Fault>>;

    /// What is served here may have changed: a CRD, an APIBinding or an APIService did. Costs nothing; the
    /// next lookup asks the server, once, however often this was called.
    fn stale(&self);

    /// How this place may be written, and whether it is one whole cluster.
    fn abilities(&self) -> Abilities;
}
