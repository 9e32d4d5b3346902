//! Fresh workspaces in kcp.

use std::time::Duration;

use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, PostParams};
use serde_json::json;

use crate::center::Center;
use crate::error::{Asking, Error, Result};
use crate::place::ADMIN;
use crate::random;
use crate::wait::wait_until;

/// kcp takes 1–2 s for a workspace when it is idle.
const READY_LIMIT: Duration = Duration::from_mins(1);

/// A workspace of the center.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// Where it stands, such as `root:orders-1f2e3d4c`.
    pub path: String,
    /// The last word of its path.
    pub name: String,
    /// The name of its logical cluster, which stays the same for as long as it lives and is never used again.
    pub cluster: String,
}

pub(crate) async fn create(
    center: &Center,
    user: &str,
    parent: &str,
    name_prefix: &str,
) -> Result<Workspace> {
    let name = format!("{name_prefix}-{}", random::suffix()?);
    let resource = resource("tenancy.kcp.io", "Workspace", "workspaces");
    let workspaces: Api<DynamicObject> = Api::all_with(center.client(user, parent).await?, &resource);
    let wanted = DynamicObject::new(&name, &resource);
    let created = workspaces.create(&PostParams::default(), &wanted).await;
    created.asking(|| format!("creating workspace {parent}:{name} as {user}"))?;
    let path = format!("{parent}:{name}");
    let cluster = wait_until(format!("workspace {path} ready"), READY_LIMIT, || async {
        let seen = workspaces.get(&name).await.map_err(|error| error.to_string())?;
        match (seen.data["status"]["phase"].as_str(), seen.data["spec"]["cluster"].as_str()) {
            (Some("Ready"), Some(cluster)) => Ok(cluster.to_owned()),
            _ => Err(seen.data["status"].to_string()),
        }
    })
    .await?;
    let client = center.client(user, &path).await?;
    wait_until(format!("workspace {path} usable by {user}"), READY_LIMIT, || usable(&client)).await?;
    Ok(Workspace { path, name, cluster })
}

/// Whether the workspace that a client points at answers: right after it is made, kcp still says 403 for a moment.
pub(crate) async fn usable(client: &kube::Client) -> Result<(), String> {
    let clusters: Api<DynamicObject> =
        Api::all_with(client.clone(), &resource("core.kcp.io", "LogicalCluster", "logicalclusters"));
    let seen = clusters.get("cluster").await.map_err(|error| error.to_string())?;
    let phase = seen.data["status"]["phase"].as_str();
    if phase == Some("Ready") { Ok(()) } else { Err(format!("the logical cluster's phase is {phase:?}")) }
}

pub(crate) async fn make_administrator(center: &Center, user: &str, workspace: &str) -> Result<()> {
    let bindings: Api<ClusterRoleBinding> = Api::all(center.client(ADMIN, workspace).await?);
    let name = format!("testkit-administrator-{user}");
    let binding = json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
    });
    let binding = serde_json::from_value(binding)
        .map_err(|error| Error::Malformed { what: name.clone(), why: error.to_string() })?;
    match bindings.create(&PostParams::default(), &binding).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        other => drop(other.asking(|| format!("making {user} administrator of {workspace}"))?),
    }
    let client = center.client(user, workspace).await?;
    wait_until(format!("{user} may use {workspace}"), READY_LIMIT, || usable(&client)).await?;
    Ok(())
}

fn resource(group: &str, kind: &str, plural: &str) -> ApiResource {
    let gvk = kube::core::GroupVersionKind::gvk(group, "v1alpha1", kind);
    ApiResource::from_gvk_with_plural(&gvk, plural)
}
