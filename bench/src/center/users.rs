//! What users of a center have: an inventory of edges, a workspace of objects, and placements that bring them together.

use std::sync::Arc;

use anyhow::{Context, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use mailboat_api::names::{export, group, object as fixed};
use mailboat_cluster::{Cluster, Connection, Transport as _};
use mailboat_object::wire::{Call, Part, Verb};
use mailboat_object::{ClusterId, Key, KindId, Name};
use serde_json::{Value, json};

use super::Server;
use crate::hub::mailboxes;

/// How many objects each of them places.
pub const OBJECTS: usize = 20;
/// The edge that no placement selects before its label is flipped.
pub const SPARE: &str = "spare";
const IN_FLIGHT: usize = 32;
const OBJECT_BYTES: usize = 512;
const MANAGER: &str = "users";

/// The users of one center.
pub struct Users {
    connection: Connection,
    inventory: Cluster,
    workload: Cluster,
}

impl Users {
    /// Sets a center up, and describes so many edges and everything that goes there: each edge gets what one placement places.
    pub async fn board(server: &Server, edges: usize, placements: usize) -> Result<Self> {
        let connection = server.connection.clone();
        mailboxes::set_up(&connection, &server.offer).await.context("the provider workspace")?;
        let root = connection.at("/clusters/root");
        let mut bound = Vec::new();
        for name in ["inventory", "workload"] {
            mailboxes::make_workspace(&root, name.to_owned()).await?;
            let path = format!("/clusters/root:{name}");
            put(&connection.at(&path), "apis.kcp.io", "apibindings", binding()).await?;
            for resource in ["synctargets", "locations", "edgeplacements"] {
                server.until_served(&path, &KindId::new(group::EDGE, resource)).await?;
            }
            // What is served because of that only a new look shows.
            bound.push(connection.at(&path));
        }
        let [inventory, workload] = <[Cluster; 2]>::try_from(bound).ok().context("two workspaces")?;
        let users = Self { connection, inventory, workload };
        let numbers = (0..edges).map(|number| (format!("edge-{number:05}"), group_of(number % placements)));
        let described = numbers.chain([(SPARE.to_owned(), "none".to_owned())]);
        all(described.map(|(name, group)| users.describe(name, group))).await?;
        all((0..placements).map(|number| users.fill(number))).await?;
        Ok(users)
    }

    /// All workspaces that are bound to an export.
    pub async fn view(&self, export: &str) -> Result<Cluster> {
        let provider = self.connection.at(&format!("/clusters/{}", mailboxes::PROVIDER));
        let slice = key("apis.kcp.io", "apiexportendpointslices", "", export);
        let call = Call { key: slice, verb: Verb::Get, part: Part::Whole, dry_run: false };
        let slice = provider.call(call).await?;
        let urls = mailboat_cluster::endpoints(&slice.body)?;
        Ok(self.connection.view(urls.first().context("the view has no endpoint")?)?.all())
    }

    /// The label of the spare edge's Location becomes that of a placement, or of none.
    pub async fn flip(&self, to: Option<usize>) -> Result<()> {
        let label = to.map_or_else(|| "none".to_owned(), group_of);
        let patch = json!({ "metadata": { "labels": { "group": label } } });
        patch_at(&self.inventory, key(group::EDGE, "locations", "", SPARE), &patch).await
    }

    /// One of the objects of a placement says something else.
    pub async fn edit(&self, placement: usize, text: &str) -> Result<()> {
        let key = key("", "configmaps", &group_of(placement), &name_of(0));
        patch_at(&self.workload, key, &json!({ "data": { "edition": text } })).await
    }

    async fn describe(&self, name: String, group: String) -> Result<()> {
        let target = json!({ "apiVersion": EDGE, "kind": "SyncTarget",
            "metadata": { "name": name, "labels": { "id": name } }, "spec": {} });
        let location = json!({ "apiVersion": EDGE, "kind": "Location",
            "metadata": { "name": name, "labels": { "group": group, "name": name } },
            "spec": {
                "resource": { "group": group::EDGE, "version": group::EDGE_VERSION, "resource": "synctargets" },
                "instanceSelector": { "matchLabels": { "id": name } },
            } });
        put(&self.inventory, group::EDGE, "synctargets", target).await?;
        put(&self.inventory, group::EDGE, "locations", location).await
    }

    async fn fill(&self, placement: usize) -> Result<()> {
        let group = group_of(placement);
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": group } });
        put(&self.workload, "", "namespaces", namespace).await?;
        for number in 0..OBJECTS {
            let map = json!({ "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": name_of(number), "namespace": group },
                "data": { "edition": "first", "text": "x".repeat(OBJECT_BYTES) } });
            put(&self.workload, "", "configmaps", map).await?;
        }
        let placement = json!({ "apiVersion": EDGE, "kind": "EdgePlacement", "metadata": { "name": group },
            "spec": {
                "locationSelectors": [{ "matchLabels": { "group": group } }],
                "downsync": [{ "apiGroup": "", "resources": ["configmaps"], "namespaces": [group] }],
            } });
        put(&self.workload, group::EDGE, "edgeplacements", placement).await
    }
}

/// The label, namespace and name of a placement.
pub fn group_of(placement: usize) -> String {
    format!("group-{placement:03}")
}

const EDGE: &str = "edge.kubestellar.io/v2alpha1";

fn name_of(object: usize) -> String {
    format!("config-{object:02}")
}

fn binding() -> Value {
    json!({ "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": { "name": export::EDGE },
        "spec": { "reference": { "export": { "path": fixed::PROVIDER_WORKSPACE, "name": export::EDGE } } } })
}

async fn all(work: impl Iterator<Item = impl Future<Output = Result<()>>>) -> Result<()> {
    stream::iter(work).buffer_unordered(IN_FLIGHT).try_collect::<Vec<()>>().await?;
    Ok(())
}

async fn put(at: &Cluster, group: &str, resource: &str, object: Value) -> Result<()> {
    let text = |member: &str| object["metadata"][member].as_str().unwrap_or_default().to_owned();
    let key = key(group, resource, &text("namespace"), &text("name"));
    let body: Arc<[u8]> = Arc::from(object.to_string().into_bytes());
    let verb = Verb::Create { body, manager: Name::new(MANAGER) };
    let call = Call { key: key.clone(), verb, part: Part::Whole, dry_run: false };
    at.call(call).await.with_context(|| format!("{} {}", key.kind, key.name))?;
    Ok(())
}

async fn patch_at(at: &Cluster, key: Key, patch: &Value) -> Result<()> {
    let body: Arc<[u8]> = Arc::from(patch.to_string().into_bytes());
    let verb = Verb::Merge { body, manager: Name::new(MANAGER) };
    at.call(Call { key, verb, part: Part::Whole, dry_run: false }).await?;
    Ok(())
}

fn key(group: &str, resource: &str, namespace: &str, name: &str) -> Key {
    Key {
        cluster: ClusterId::new("workspace"),
        kind: KindId::new(group, resource),
        namespace: Name::new(namespace),
        name: Name::new(name),
    }
}
