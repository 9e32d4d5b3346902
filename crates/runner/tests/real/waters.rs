//! Where the tests sail: bare edges, shared where nothing is broken, and ConfigMaps to sail with.

use std::sync::{Arc, LazyLock, Weak};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use mailboat_object::key::{ClusterId, Key, KindId};
use mailboat_testkit::{ADMIN, Edge, EdgeSpec, World};
use serde_json::json;
use tokio::sync::Mutex;

use crate::rig::{Rig, api_of, key};

/// The name of every bare edge here, and the cluster that it is followed as.
pub(crate) const EDGE: &str = "island";

pub(crate) fn config_maps() -> KindId {
    KindId::new("", "configmaps")
}

/// A bare edge of the caller's own, to be broken.
pub(crate) async fn own_edge(spec: EdgeSpec) -> World {
    World::builder().edge_with(spec).start().await.unwrap_or_else(|error| panic!("{error}"))
}

/// A bare edge that is shared by the tests which break nothing, for as long as one of them runs.
pub(crate) async fn shared_edge() -> Arc<World> {
    static SHARED: LazyLock<Mutex<Weak<World>>> = LazyLock::new(Mutex::default);
    let mut shared = SHARED.lock().await;
    if let Some(world) = shared.upgrade() {
        return world;
    }
    let world = Arc::new(own_edge(EdgeSpec::bare(EDGE)).await);
    *shared = Arc::downgrade(&world);
    world
}

/// ConfigMaps of one namespace at an edge, written past whatever the followers read through.
pub(crate) struct Fleet {
    namespace: String,
    api: Api<ConfigMap>,
    all: Api<kube::api::DynamicObject>,
}

impl Fleet {
    /// A fresh namespace with `count` ConfigMaps named `boat-0` and up.
    pub(crate) async fn launch(edge: &Edge, namespace: &str, count: usize) -> Self {
        let client = edge.client(ADMIN).await.unwrap();
        let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
        let wanted = serde_json::from_value(json!({ "metadata": { "name": namespace } })).unwrap();
        namespaces.create(&PostParams::default(), &wanted).await.unwrap();
        let all = api_of(&client, &config_maps(), "v1", "ConfigMap");
        let fleet = Self { namespace: namespace.to_owned(), api: Api::namespaced(client, namespace), all };
        for number in 0..count {
            fleet.create(&format!("boat-{number}")).await;
        }
        fleet
    }

    pub(crate) fn key(&self, name: &str) -> Key {
        key(EDGE, &config_maps(), &self.namespace, name)
    }

    pub(crate) fn keys(&self, numbers: std::ops::Range<usize>) -> Vec<Key> {
        numbers.map(|number| self.key(&format!("boat-{number}"))).collect()
    }

    pub(crate) async fn create(&self, name: &str) -> Key {
        let wanted = json!({ "metadata": { "name": name }, "data": { "cargo": "none" } });
        let wanted = serde_json::from_value(wanted).unwrap();
        self.api.create(&PostParams::default(), &wanted).await.unwrap();
        self.key(name)
    }

    pub(crate) async fn load(&self, name: &str, cargo: &str) {
        let patch = Patch::Merge(json!({ "data": { "cargo": cargo } }));
        self.api.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// What can happen to objects while nobody looks: one is changed, one deleted, one deleted and created again,
    /// and one is new. `boat-0`, `boat-1` and `boat-2` must be there.
    pub(crate) async fn goes_on(&self, rig: &Rig) {
        rig.goes(&[self.key("boat-1"), self.key("boat-2")]);
        self.load("boat-0", "rope").await;
        self.delete("boat-1").await;
        self.delete("boat-2").await;
        self.create("boat-2").await;
        self.create("boat-new").await;
    }

    /// Waits until all that [`Fleet::goes_on`] did is seen, and until the store is what a fresh list is.
    pub(crate) async fn is_seen(&self, rig: &Rig) {
        rig.until_absent(&self.key("boat-1")).await;
        rig.until_present(&self.key("boat-new"), "there", |_| true).await;
        self.is_faithful(rig).await;
    }

    pub(crate) async fn is_faithful(&self, rig: &Rig) {
        rig.assert_faithful(&config_maps(), &[(ClusterId::new(EDGE), self.all.clone())]).await;
    }
}
