//! An export of boats in one workspace of kcp, workspaces that bind it, and the followers of its view.

use std::time::Duration;

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use mailboat_cluster::Connection;
use mailboat_object::key::{ClusterId, Key, KindId};
use mailboat_store::Nature;
use mailboat_testkit::{ADMIN, Center, Workspace, World, apply, wait_until};
use serde_json::{Value, json};

use crate::definitions::schema;
use crate::rig::{Rig, api_in, api_of, connect, key, patient};

/// The place that the view is followed as, and its one endpoint.
pub(crate) const VIEW: &str = "view";
pub(crate) const SHARD: &str = "shard";
/// The name of the export, and of every binding to it.
pub(crate) const EXPORT: &str = "boats";
/// kcp takes 5 s to establish a new kind on an idle machine.
pub(crate) const BOUND: Duration = Duration::from_mins(2);

pub(crate) fn boats() -> KindId {
    KindId::new("sea.example.com", "boats")
}

pub(crate) fn bindings() -> KindId {
    KindId::new("apis.kcp.io", "apibindings")
}

/// A workspace with the export.
pub(crate) struct Harbor<'a> {
    pub(crate) center: &'a Center,
    pub(crate) provider: Workspace,
    pub(crate) client: kube::Client,
    pub(crate) connection: Connection,
    claims: Vec<&'static str>,
}

/// A workspace that binds the export.
pub(crate) struct Consumer {
    pub(crate) workspace: Workspace,
    pub(crate) client: kube::Client,
}

impl Harbor<'static> {
    /// A fresh export in the kcp that all tests share.
    pub(crate) async fn build(claims: &[&'static str]) -> Self {
        let world = World::shared().await.unwrap_or_else(|error| panic!("{error}"));
        Self::build_at(world.center(), claims).await
    }
}

impl<'a> Harbor<'a> {
    /// A fresh export of boats with the field `hull`, which claims these kinds of the core group.
    pub(crate) async fn build_at(center: &'a Center, claims: &[&'static str]) -> Self {
        let provider = center.workspace("provider").await.unwrap();
        let client = center.client(ADMIN, &provider.path).await.unwrap();
        let connection = connect(&center.access(ADMIN, "").unwrap()).await;
        let harbor = Self { center, provider, client, connection, claims: claims.to_vec() };
        harbor.add_schema("first", &["hull"]).await;
        harbor.export().await;
        harbor
    }

    async fn export(&self) {
        let export = json!({
            "apiVersion": "apis.kcp.io/v1alpha2",
            "kind": "APIExport",
            "metadata": { "name": EXPORT },
            "spec": {
                "resources": [{
                    "group": "sea.example.com", "name": "boats",
                    "schema": "first.boats.sea.example.com", "storage": { "crd": {} },
                }],
                "permissionClaims": self.claims(None),
            },
        });
        apply(&self.client, &export.to_string()).await.unwrap();
    }

    /// Makes the export anew, with a Secret of another identity.
    pub(crate) async fn lose_identity(&self) {
        let exports =
            api_of(&self.client, &KindId::new("apis.kcp.io", "apiexports"), "v1alpha2", "APIExport");
        exports.delete(EXPORT, &DeleteParams::default()).await.unwrap();
        let secrets = api_in(&self.client, "kcp-system", &KindId::new("", "secrets"), "v1", "Secret");
        secrets.delete(EXPORT, &DeleteParams::default()).await.unwrap();
        wait_until("the export gone", BOUND, || async {
            match exports.get_opt(EXPORT).await {
                Ok(None) => Ok(()),
                other => Err(format!("{:?}", other.map(|found| found.is_some()))),
            }
        })
        .await
        .unwrap();
        self.export().await;
        wait_until("a new identity", BOUND, || async {
            let export = exports.get(EXPORT).await.map_err(|error| error.to_string())?;
            let hash = export.data["status"]["identityHash"].as_str().unwrap_or_default();
            if hash.is_empty() { Err(export.data["status"].to_string()) } else { Ok(()) }
        })
        .await
        .unwrap();
    }

    /// One more schema of boats, with these fields.
    pub(crate) async fn add_schema(&self, prefix: &str, fields: &[&str]) {
        let properties: Value =
            fields.iter().map(|field| ((*field).to_owned(), json!({ "type": "string" }))).collect();
        let schema = json!({
            "apiVersion": "apis.kcp.io/v1alpha1",
            "kind": "APIResourceSchema",
            "metadata": { "name": format!("{prefix}.boats.sea.example.com") },
            "spec": {
                "group": "sea.example.com",
                "names": { "plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList" },
                "scope": "Namespaced",
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": schema(&properties), "subresources": { "status": {} },
                }],
            },
        });
        apply(&self.client, &schema.to_string()).await.unwrap();
    }

    /// A fresh workspace, bound to the export, with its claims accepted.
    pub(crate) async fn consumer(&self) -> Consumer {
        let workspace = self.center.workspace("consumer").await.unwrap();
        let client = self.center.client(ADMIN, &workspace.path).await.unwrap();
        let consumer = Consumer { workspace, client };
        self.bind(&consumer).await;
        consumer
    }

    /// Binds the export, and waits until boats are served.
    pub(crate) async fn bind(&self, consumer: &Consumer) {
        let binding = json!({
            "apiVersion": "apis.kcp.io/v1alpha2",
            "kind": "APIBinding",
            "metadata": { "name": EXPORT },
            "spec": {
                "reference": { "export": { "path": self.provider.path, "name": EXPORT } },
                "permissionClaims": self.claims(Some("Accepted")),
            },
        });
        // Right after an export is made kcp refuses to bind it, for a moment.
        wait_until("the binding accepted", BOUND, || async {
            apply(&consumer.client, &binding.to_string()).await.map(drop).map_err(|error| error.to_string())
        })
        .await
        .unwrap();
        let claims = self.claims.len();
        wait_until("bound, and the claims applied", BOUND, || async {
            let binding = consumer.bindings().get(EXPORT).await.map_err(|error| error.to_string())?;
            let status = &binding.data["status"];
            let applied = status["appliedPermissionClaims"].as_array().map_or(0, Vec::len);
            if status["phase"] == "Bound" && applied == claims { Ok(()) } else { Err(status.to_string()) }
        })
        .await
        .unwrap();
        wait_until("boats served", BOUND, || async {
            consumer.all_boats().list(&kube::api::ListParams::default()).await.map(drop)
        })
        .await
        .unwrap();
    }

    /// Puts another schema in the place of the export's first.
    pub(crate) async fn swap_schema(&self, prefix: &str) {
        let exports =
            api_of(&self.client, &KindId::new("apis.kcp.io", "apiexports"), "v1alpha2", "APIExport");
        let mut resources = exports.get(EXPORT).await.unwrap().data["spec"]["resources"].take();
        resources[0]["schema"] = format!("{prefix}.boats.sea.example.com").into();
        let patch = Patch::Merge(json!({ "spec": { "resources": resources } }));
        exports.patch(EXPORT, &PatchParams::default(), &patch).await.unwrap();
    }

    fn claims(&self, state: Option<&str>) -> Value {
        let claim = |resource: &&'static str| {
            let mut claim = json!({ "group": "", "resource": resource, "verbs": ["*"] });
            if let Some(state) = state {
                claim["state"] = state.into();
                claim["selector"] = json!({ "matchAll": true });
            }
            claim
        };
        self.claims.iter().map(claim).collect()
    }

    pub(crate) fn slices(&self) -> Api<DynamicObject> {
        let kind = KindId::new("apis.kcp.io", "apiexportendpointslices");
        api_of(&self.client, &kind, "v1alpha1", "APIExportEndpointSlice")
    }

    /// The URL of the view, once there is one.
    pub(crate) async fn url(&self) -> String {
        wait_until("the endpoint slice has a URL", BOUND, || async {
            let slice = self.slices().get(EXPORT).await.map_err(|error| error.to_string())?;
            let url = slice.data["status"]["endpoints"][0]["url"].as_str();
            url.map(ToOwned::to_owned).ok_or_else(|| slice.data["status"].to_string())
        })
        .await
        .unwrap()
    }

    /// Followers of the view: bindings, and these kinds, for which the bindings vouch.
    pub(crate) async fn rig(&self, kinds: &[KindId]) -> Rig {
        let rig = Rig::with(patient());
        self.follow(&rig, kinds).await;
        rig
    }

    /// Follows the view, bindings first.
    pub(crate) async fn follow(&self, rig: &Rig, kinds: &[KindId]) {
        let view = self.connection.view(&self.url().await).unwrap_or_else(|fault| panic!("{fault}"));
        let kinds: Vec<KindId> = std::iter::once(bindings()).chain(kinds.iter().cloned()).collect();
        rig.follow(VIEW, Nature::View, SHARD, view.all(), &kinds).await;
    }
}

impl Consumer {
    pub(crate) fn cluster(&self) -> ClusterId {
        ClusterId::new(&self.workspace.cluster)
    }

    pub(crate) fn key(&self, kind: &KindId, name: &str) -> Key {
        key(&self.workspace.cluster, kind, "default", name)
    }

    pub(crate) fn bindings(&self) -> Api<DynamicObject> {
        api_of(&self.client, &bindings(), "v1alpha2", "APIBinding")
    }

    pub(crate) fn all_boats(&self) -> Api<DynamicObject> {
        api_of(&self.client, &boats(), "v1", "Boat")
    }

    pub(crate) fn boats(&self) -> Api<DynamicObject> {
        api_in(&self.client, "default", &boats(), "v1", "Boat")
    }

    /// Makes a boat, or changes it.
    pub(crate) async fn boat(&self, name: &str, hull: &str) -> Key {
        let boat = json!({
            "apiVersion": "sea.example.com/v1", "kind": "Boat",
            "metadata": { "name": name, "namespace": "default" }, "spec": { "hull": hull },
        });
        apply(&self.client, &boat.to_string()).await.unwrap();
        self.key(&boats(), name)
    }

    /// Accepts or rejects the first claim of the binding.
    pub(crate) async fn claim(&self, state: &str) {
        let mut claims = self.bindings().get(EXPORT).await.unwrap().data["spec"]["permissionClaims"].take();
        claims[0]["state"] = state.into();
        let patch = Patch::Merge(json!({ "spec": { "permissionClaims": claims } }));
        self.bindings().patch(EXPORT, &PatchParams::default(), &patch).await.unwrap();
    }
}
