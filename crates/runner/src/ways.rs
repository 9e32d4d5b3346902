//! How the workspaces and views of a center are reached: a role names them as they come and go, and this finds the way.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use mailboat_cluster::{Connection, Settings, Source, Transport};
use mailboat_engine::role::Kubeconfig;
use mailboat_object::key::ClusterId;
use mailboat_object::wire::{Fault, FaultKind};

/// The ways to whatever a center holds.
pub trait Ways: Send + Sync {
    /// To one workspace, whole: to read, to write and to look afresh.
    fn workspace(&self, id: &ClusterId) -> Arc<dyn Transport>;

    /// To all workspaces that a view shows at one of its endpoints, to read.
    fn view(&self, url: &str) -> Result<Arc<dyn Transport>, Fault>;

    /// To one workspace that waits to be prepared, through the view that shows it.
    fn waiting(&self, url: &str, id: &ClusterId) -> Result<Arc<dyn Transport>, Fault>;

    /// To a cluster outside, by a kubeconfig that somebody else wrote.
    fn outside(&self, kubeconfig: &Kubeconfig) -> BoxFuture<'static, Result<Arc<dyn Transport>, Fault>>;
}

impl Ways for Connection {
    fn workspace(&self, id: &ClusterId) -> Arc<dyn Transport> {
        Arc::new(self.at(&format!("/clusters/{id}")))
    }

    fn view(&self, url: &str) -> Result<Arc<dyn Transport>, Fault> {
        Ok(Arc::new(Self::view(self, url)?.all()))
    }

    fn waiting(&self, url: &str, id: &ClusterId) -> Result<Arc<dyn Transport>, Fault> {
        Ok(Arc::new(Self::view(self, url)?.cluster(id)))
    }

    fn outside(&self, kubeconfig: &Kubeconfig) -> BoxFuture<'static, Result<Arc<dyn Transport>, Fault>> {
        let source = Source::Foreign(Arc::from(kubeconfig.text()));
        let opening = async move {
            let connection = Self::open(source, Settings::default()).await;
            let connection = connection.map_err(|bad| Fault::new(FaultKind::Invalid, bad.to_string()))?;
            let cluster: Arc<dyn Transport> = Arc::new(connection.cluster());
            Ok(cluster)
        };
        opening.boxed()
    }
}
