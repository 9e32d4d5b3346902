//! The workspaces of a center, as commands reach them by their paths.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use mailboat_api::kcp::{ApiBinding, LogicalCluster, Workspace, WorkspaceStatus};
use mailboat_api::names::object;
use mailboat_cluster::{Cluster, Connection, ServerAddress, Settings, Source, Transport as _};
use mailboat_object::key::{ClusterId, Key, KindId, Name, Uid};
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Propagation, Verb};
use mailboat_registration::names::FIELD_MANAGER;
use mailboat_registration::workspace::{WorkspacePath, workspace_of};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::failure::{CENTER_FLAG, bad_configuration, before_writing, refusal};
use crate::flags::ServerFlags;
use crate::place::{get, key, list};

/// How long a server may need until something that was just made can be used. A kcp that has just been started, on a machine
/// with other things to do, takes minutes for the first binding to many kinds.
pub(crate) const PATIENCE: Duration = Duration::from_mins(6);
/// How long kcp may take to see that somebody may bind an export: it authorizes from caches that are a moment behind.
const BINDING_PATIENCE: Duration = Duration::from_mins(1);
/// What takes longer than this is said.
const SILENT_FOR: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(300);

/// A center, and the workspace that one is in.
pub(crate) struct Site {
    connection: Connection,
}

/// What came of making something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    Now,
    Before,
}

impl Site {
    pub(crate) async fn reach(flags: &ServerFlags) -> Result<Self> {
        let source = Source::Kubeconfig { path: flags.kubeconfig.clone(), context: flags.context.clone() };
        let connection = Connection::open(source, Settings::default()).await;
        Ok(Self { connection: connection.map_err(|bad| bad_configuration(&bad, CENTER_FLAG))? })
    }

    /// How its server is reached, by anybody.
    pub(crate) fn address(&self) -> ServerAddress {
        self.connection.address()
    }

    pub(crate) fn at(&self, path: &WorkspacePath) -> Cluster {
        self.connection.at(&format!("/clusters/{path}"))
    }

    /// A workspace by the id of its cluster.
    pub(crate) fn of(&self, cluster: &ClusterId) -> Cluster {
        self.connection.at(&format!("/clusters/{cluster}"))
    }

    /// All workspaces that are bound to an export, at one endpoint of its view.
    pub(crate) fn view(&self, url: &str) -> Result<Cluster, Fault> {
        Ok(self.connection.view(url)?.all())
    }

    /// The workspace that the kubeconfig points to.
    pub(crate) fn current(&self) -> Option<WorkspacePath> {
        workspace_of(&self.connection.path())
    }

    /// The workspace that is named, or else the current one; it is there and may be entered.
    pub(crate) async fn named(&self, path: Option<&str>) -> Result<(WorkspacePath, Cluster)> {
        let path = match path {
            Some(path) => WorkspacePath::parse(path).map_err(|bad| refusal(bad.to_string()))?,
            None => self.current().ok_or_else(|| {
                refusal(format!(
                    "the kubeconfig points to {} and not to a workspace of it; enter one with `kubectl ws`, or name one",
                    self.connection.server()
                ))
            })?,
        };
        let cluster = self.at(&path);
        self.logical_cluster(&path).await?;
        Ok((path, cluster))
    }

    /// A workspace as it knows itself; refused if it is not there.
    pub(crate) async fn logical_cluster(&self, path: &WorkspacePath) -> Result<LogicalCluster> {
        let key = key("", "core.kcp.io", "logicalclusters", "", object::LOGICAL_CLUSTER);
        match get(&self.at(path), key).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => Err(refusal(format!("{path} is no workspace of kcp: it has no LogicalCluster"))),
            Err(fault) if fault.kind == FaultKind::Unserved => {
                Err(refusal(format!("{path} is no workspace of kcp: it serves no LogicalCluster")))
            }
            Err(fault) => Err(unread(path, &fault)),
        }
    }

    /// Makes a workspace in its parent, and waits until it can be used.
    pub(crate) async fn make_workspace(&self, path: &WorkspacePath, type_: Option<Value>) -> Result<Made> {
        let parent = path.parent().map_err(|bad| refusal(bad.to_string()))?;
        let (above, key) = (self.at(&parent), workspace_key(path.name()));
        let found: Option<Workspace> =
            get(&above, key.clone()).await.map_err(|fault| unread(&parent, &fault))?;
        let made = if found.is_some() { Made::Before } else { Made::Now };
        if made == Made::Now {
            let mut workspace = json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace",
                "metadata": { "name": path.name() }, "spec": {} });
            if let Some(type_) = type_ {
                workspace["spec"]["type"] = type_;
            }
            create(&above, key.clone(), &workspace)
                .await
                .map_err(|fault| before_writing(&format!("the workspace {path} cannot be made"), &fault))?;
        }
        self.until_ready(path, &above, &key).await?;
        Ok(made)
    }

    async fn until_ready(&self, path: &WorkspacePath, above: &Cluster, key: &Key) -> Result<()> {
        patiently(&format!("the workspace {path} does not become ready"), async || {
            let found: Option<Workspace> = get(above, key.clone()).await?;
            match found.map(|workspace| workspace.status) {
                Some(status) if status.phase == "Ready" => self.logical_cluster_fault(path).await,
                Some(status) => Err(passing(&waits(&status))),
                None => Err(Fault::new(FaultKind::NotFound, "it is gone")),
            }
        })
        .await
    }

    async fn logical_cluster_fault(&self, path: &WorkspacePath) -> Result<(), Fault> {
        let key = key("", "core.kcp.io", "logicalclusters", "", object::LOGICAL_CLUSTER);
        match get::<Value>(&self.at(path), key).await {
            Err(fault) if fault.kind == FaultKind::Forbidden => Err(passing(&fault.text)),
            other => other.map(drop),
        }
    }
}

/// How far a workspace is that is not ready, and for whom it waits: for our own types, for a center.
fn waits(status: &WorkspaceStatus) -> String {
    let phase = format!("its phase is {:?}", status.phase);
    if status.initializers.is_empty() {
        return phase;
    }
    let of_ours = |one: &String| one.ends_with(":mailboat-workload") || one.ends_with(":mailboat-inventory");
    let hint = if status.initializers.iter().any(of_ours) { " (does a center run?)" } else { "" };
    format!("{phase}, and it waits for {}{hint}", status.initializers.join(", "))
}

/// Why nothing can be read in a workspace. kcp answers alike for one that is not there and one that one may not enter.
pub(crate) fn unread(path: &WorkspacePath, fault: &Fault) -> anyhow::Error {
    if fault.kind == FaultKind::Forbidden {
        return refusal(format!(
            "the workspace {path} is not there, or you may not enter it; `kubectl ws tree` shows what is there"
        ));
    }
    before_writing(&format!("the workspace {path} cannot be read"), fault)
}

/// Makes a workspace's binding to an export if it is missing, and waits until its kinds are served.
pub(crate) async fn bind(cluster: &Cluster, path: &WorkspacePath, binding: &Value) -> Result<Made> {
    let name = binding["metadata"]["name"].as_str().unwrap_or_default();
    let key = key("", "apis.kcp.io", "apibindings", "", name);
    let unread = |fault: Fault| before_writing(&format!("the APIBindings of {path} cannot be read"), &fault);
    let found: Option<Value> = get(cluster, key.clone()).await.map_err(unread)?;
    let reference = &binding["spec"]["reference"]["export"];
    if let Some(found) = &found
        && found["spec"]["reference"]["export"] != *reference
    {
        return Err(refusal(format!(
            "the APIBinding {name} of {path} refers to another export than {} of {}; it cannot be changed without \
             deleting every object of its kinds",
            reference["name"].as_str().unwrap_or_default(),
            reference["path"].as_str().unwrap_or_default(),
        )));
    }
    // The workspace's type may have brought one along, under a name of its own; a second would conflict with it.
    let same = |other: &&Value| other["spec"]["reference"]["export"] == *reference;
    let others = if found.is_some() {
        Vec::new()
    } else {
        list(cluster, &KindId::new("apis.kcp.io", "apibindings"), "").await.map_err(unread)?
    };
    let key = match others.iter().find(same).and_then(|other| other["metadata"]["name"].as_str()) {
        Some(other) => Key { name: Name::new(other), ..key },
        None => key,
    };
    let made = if found.is_some() || key.name.as_str() != name { Made::Before } else { Made::Now };
    if made == Made::Now {
        let failing = format!(
            "the APIBinding {name} cannot be made in {path} (is there an export {} in {}, and may you bind it?)",
            reference["name"].as_str().unwrap_or_default(),
            reference["path"].as_str().unwrap_or_default(),
        );
        let made = async || create(cluster, key.clone(), binding).await;
        patiently_within(BINDING_PATIENCE, &failing, made).await?;
    }
    patiently(&format!("the APIBinding {name} of {path} is not bound"), async || {
        let found: Option<ApiBinding> = get(cluster, key.clone()).await?;
        match found.map(|binding| binding.status.phase) {
            Some(phase) if phase == "Bound" => Ok(()),
            phase => Err(passing(&format!("its phase is {:?}", phase.unwrap_or_default()))),
        }
    })
    .await?;
    cluster.stale();
    Ok(made)
}

/// Makes an object. One that somebody made meanwhile is as good.
pub(crate) async fn create(cluster: &Cluster, key: Key, object: &Value) -> Result<(), Fault> {
    let verb = Verb::Create { body: bytes(object), manager: Name::new(FIELD_MANAGER) };
    match cluster.call(Call { key, verb, part: Part::Whole, dry_run: false }).await {
        Err(fault) if fault.kind != FaultKind::Exists => Err(fault),
        _ => Ok(()),
    }
}

/// Patches an object.
pub(crate) async fn patch(cluster: &Cluster, key: Key, patch: &Value) -> Result<(), Fault> {
    let verb = Verb::Merge { body: bytes(patch), manager: Name::new(FIELD_MANAGER) };
    cluster.call(Call { key, verb, part: Part::Whole, dry_run: false }).await.map(drop)
}

/// Deletes an object as it was read; one that is gone is gone.
pub(crate) async fn delete(cluster: &Cluster, key: Key, found: &Value) -> Result<(), Fault> {
    let uid = Uid::parse(found["metadata"]["uid"].as_str().unwrap_or_default());
    let verb = Verb::Delete { uid, version: None, propagation: Propagation::Background };
    match cluster.call(Call { key, verb, part: Part::Whole, dry_run: false }).await {
        Err(fault) if fault.kind != FaultKind::NotFound => Err(fault),
        _ => Ok(()),
    }
}

pub(crate) fn workspace_key(name: &str) -> Key {
    key("", "tenancy.kcp.io", "workspaces", "", name)
}

/// Tries until it succeeds, as long as what fails may pass by itself, within a limit.
pub(crate) async fn patiently(failing: &str, attempt: impl AsyncFnMut() -> Result<(), Fault>) -> Result<()> {
    patiently_within(PATIENCE, failing, attempt).await
}

async fn patiently_within(
    limit: Duration,
    failing: &str,
    mut attempt: impl AsyncFnMut() -> Result<(), Fault>,
) -> Result<()> {
    let begun = Instant::now();
    let mut told = false;
    loop {
        match attempt().await {
            Ok(()) => return Ok(()),
            Err(fault) if fault.passes() && begun.elapsed() < limit => {
                if begun.elapsed() > SILENT_FOR && !std::mem::replace(&mut told, true) {
                    say!("waiting up to {limit:?}, because {failing}: {fault}");
                }
                sleep(PAUSE).await;
            }
            Err(fault) if fault.passes() => return Err(anyhow!("{failing}: {fault}")),
            Err(fault) => return Err(before_writing(failing, &fault)),
        }
    }
}

/// Something that is not yet so.
pub(crate) fn passing(text: &str) -> Fault {
    Fault::new(FaultKind::Retry(None), text)
}

fn bytes(object: &Value) -> Arc<[u8]> {
    Arc::from(object.to_string().into_bytes())
}
