//! How the workspaces and views of a center are reached: a role names them as they come and go, and this finds the way.

use std::sync::Arc;

use mailboat_cluster::{Connection, Transport};
use mailboat_object::key::ClusterId;
use mailboat_object::wire::Fault;

/// The ways to whatever a center holds.
pub trait Ways: Send + Sync {
    /// To one workspace, whole: to read, to write and to look afresh.
    fn workspace(&self, id: &ClusterId) -> Arc<dyn Transport>;

    /// To all workspaces that a view shows at one of its endpoints, to read.
    fn view(&self, url: &str) -> Result<Arc<dyn Transport>, Fault>;
}

impl Ways for Connection {
    fn workspace(&self, id: &ClusterId) -> Arc<dyn Transport> {
        Arc::new(self.at(&format!("/clusters/{id}")))
    }

    fn view(&self, url: &str) -> Result<Arc<dyn Transport>, Fault> {
        Ok(Arc::new(Self::view(self, url)?.all()))
    }
}
