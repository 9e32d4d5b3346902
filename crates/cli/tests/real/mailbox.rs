//! A provider workspace with our APIs, an inventory, and mailboxes, as the center will make them.

use std::time::Duration;

use kube::Api;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use mailboat_api::generate;
use mailboat_api::names::{MailboxName, annotation, export};
use mailboat_testkit::{ADMIN, Center, Workspace, apply_object, wait_until};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_mins(3);

/// Where inventories and mailboxes belong to.
pub(crate) struct Provider<'a> {
    pub(crate) center: &'a Center,
    pub(crate) workspace: Workspace,
    pub(crate) inventory: Workspace,
}

/// The mailbox of one SyncTarget.
#[derive(Debug)]
pub(crate) struct Mailbox {
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) cluster: String,
    pub(crate) sync_target_uid: String,
}

impl<'a> Provider<'a> {
    /// Makes the provider workspace, with the exports of all kinds that describe edges, and an inventory that binds the first.
    pub(crate) async fn make(center: &'a Center) -> Self {
        let workspace = center.workspace("espw").await.unwrap();
        let client = center.client(ADMIN, &workspace.path).await.unwrap();
        let (mut schemas, exports) = (generate::export_schemas().unwrap(), generate::exports().unwrap());
        for name in [export::EDGE, export::WORKLOAD, export::SCHEDULING] {
            for schema in schemas.remove(name).unwrap() {
                apply_object(&client, &object(&schema.to_api_resource_schema())).await.unwrap();
            }
            apply_object(&client, &object(&exports[name])).await.unwrap();
        }
        let inventory = center.workspace("imw").await.unwrap();
        let provider = Self { center, workspace, inventory };
        provider.bind(&provider.inventory.path, export::BINDING_IN_INVENTORY_WORKSPACE).await;
        provider
    }

    /// Makes a SyncTarget and its mailbox.
    pub(crate) async fn mailbox(&self, sync_target: &str) -> Mailbox {
        let inventory = self.center.client(ADMIN, &self.inventory.path).await.unwrap();
        let target = json!({ "apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "SyncTarget",
            "metadata": { "name": sync_target }, "spec": {} });
        let target = apply_object(&inventory, &object(&target)).await.unwrap();
        let uid = target.metadata.uid.unwrap();
        let name =
            MailboxName { cluster: self.inventory.cluster.clone(), sync_target_uid: uid.clone() }.to_string();
        let kind = GroupVersionKind::gvk("tenancy.kcp.io", "v1alpha1", "Workspace");
        let resource = ApiResource::from_gvk_with_plural(&kind, "workspaces");
        let client = self.center.client(ADMIN, &self.workspace.path).await.unwrap();
        let workspaces: Api<DynamicObject> = Api::all_with(client, &resource);
        let wanted = json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace",
            "metadata": { "name": name, "annotations": { annotation::SYNC_TARGET_NAME: sync_target } } });
        workspaces.create(&PostParams::default(), &object(&wanted)).await.unwrap();
        let cluster = wait_until(format!("mailbox {name} ready"), LIMIT, || async {
            let seen = workspaces.get(&name).await.map_err(|error| error.to_string())?;
            match (seen.data["status"]["phase"].as_str(), seen.data["spec"]["cluster"].as_str()) {
                (Some("Ready"), Some(cluster)) => Ok(cluster.to_owned()),
                _ => Err(seen.data["status"].to_string()),
            }
        });
        let cluster = cluster.await.unwrap();
        let path = format!("{}:{name}", self.workspace.path);
        self.bind(&path, export::BINDING_IN_MAILBOX).await;
        Mailbox { path, name, cluster, sync_target_uid: uid }
    }

    async fn bind(&self, workspace: &str, name: &str) {
        let client = self.center.client(ADMIN, workspace).await.unwrap();
        let binding = json!({ "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": { "name": name },
            "spec": { "reference": { "export": { "path": self.workspace.path, "name": export::EDGE } } } });
        let binding = object(&binding);
        wait_until(format!("{name} taken in {workspace}"), LIMIT, || apply_object(&client, &binding))
            .await
            .unwrap();
        wait_until(format!("{name} bound in {workspace}"), LIMIT, || async {
            let seen = apply_object(&client, &binding).await.map_err(|error| error.to_string())?;
            let phase = seen.data["status"]["phase"].as_str();
            if phase == Some("Bound") { Ok(()) } else { Err(seen.data["status"].to_string()) }
        })
        .await
        .unwrap();
    }
}

/// A value as an object for kube's client.
pub(crate) fn object(value: &Value) -> DynamicObject {
    serde_json::from_value(value.clone()).unwrap()
}
