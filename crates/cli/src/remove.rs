//! `mailboat remove`: the way back from what `mailboat ensure` made.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, anyhow};
use mailboat_api::names::{annotation, group};
use mailboat_cluster::Cluster;
use mailboat_object::key::{Key, KindId};
use mailboat_object::wire::{Fault, FaultKind};
use mailboat_registration::inventory::KeptKubeconfig;
use mailboat_registration::workspace::WorkspacePath;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::ensure::{below_root, inventory_workspace};
use crate::failure::{before_writing, refusal};
use crate::flags::{InventoryFlags, RemoveArguments, Removed, ServerFlags};
use crate::place::{get, key, list};
use crate::site::{Site, delete, patch, unread, workspace_key};

/// How long the center may take to withdraw what a workspace placed.
const WITHDRAWAL_LIMIT: Duration = Duration::from_mins(5);
/// How long it may take to notice that a SyncTarget is gone.
const NOTICE_LIMIT: Duration = Duration::from_mins(1);
const GLANCE: Duration = Duration::from_millis(500);

/// Takes away what is named.
pub async fn run(arguments: &RemoveArguments) -> Result<()> {
    match &arguments.what {
        Removed::Location { name, inventory } => remove_location(name, inventory).await,
        Removed::Imw { name, with_edges, server } => remove_imw(name, *with_edges, server).await,
        Removed::Wmw { name, server } => remove_wmw(name, server).await,
    }
}

async fn remove_location(name: &str, flags: &InventoryFlags) -> Result<()> {
    let (path, cluster) = inventory_workspace(flags).await?;
    refuse_two_edges(&cluster, &path, name).await?;
    let mut found_any = BTreeSet::new();
    for (kind, group, resource) in DESCRIBING_EDGES {
        let key = key("", group, resource, "", name);
        let failed =
            |fault: Fault| before_writing(&format!("{kind} {name} in {path} cannot be removed"), &fault);
        let found: Option<Value> = match get(&cluster, key.clone()).await {
            Err(fault) if fault.kind == FaultKind::Unserved => None,
            other => other.map_err(failed)?,
        };
        let found = match found {
            Some(found) if kind == "Location" => until_it_leads_nowhere(&cluster, &path, &key, found).await?,
            found => found,
        };
        if let Some(found) = found {
            delete(&cluster, key, &found).await.map_err(failed)?;
            say!("{kind} {name}: removed");
            found_any.insert(kind);
        }
    }
    for kind in ["SyncTarget", "Location"].into_iter().filter(|kind| !found_any.contains(kind)) {
        say!("{kind} {name}: not there");
    }
    for key in KeptKubeconfig::of(name).keys() {
        let failed = |fault: Fault| before_writing(&format!("{key} in {path} cannot be removed"), &fault);
        let found: Option<Value> = match get(&cluster, key.clone()).await {
            // Whoever may not read it did not make it.
            Err(fault) if fault.kind == FaultKind::Forbidden => None,
            other => other.map_err(failed)?,
        };
        if let Some(found) = found.filter(KeptKubeconfig::is_of_it) {
            delete(&cluster, key.clone(), &found).await.map_err(failed)?;
            say!("{} {}: removed", key.kind, key.name);
        }
    }
    Ok(())
}

/// A name that two edges have, one by each group's SyncTarget, says of neither that it is meant.
async fn refuse_two_edges(cluster: &Cluster, path: &WorkspacePath, name: &str) -> Result<()> {
    let mut groups = Vec::new();
    for group in [group::EDGE, group::WORKLOAD] {
        match get::<Value>(cluster, key("", group, "synctargets", "", name)).await {
            Ok(Some(_)) => groups.push(group),
            Ok(None) => {}
            Err(fault) if fault.kind == FaultKind::Unserved => {}
            Err(fault) => {
                return Err(before_writing(&format!("SyncTarget {name} in {path} cannot be read"), &fault));
            }
        }
    }
    match groups.as_slice() {
        [one, other] => Err(refusal(format!(
            "{path} has a SyncTarget {name} of {one} and one of {other}, which are two edges; delete the one that is meant by \
             `kubectl delete synctargets.GROUP {name}` there, and its Location after it"
        ))),
        _ => Ok(()),
    }
}

/// Waits until the center knows that the SyncTarget which a Location leads to is gone, and gives the Location as it is then.
/// The Location says so itself. One that no center ever spoke of leads nowhere.
async fn until_it_leads_nowhere(
    cluster: &Cluster,
    path: &WorkspacePath,
    key: &Key,
    mut location: Value,
) -> Result<Option<Value>> {
    let end = Instant::now() + NOTICE_LIMIT;
    while leads_somewhere(&location) {
        if Instant::now() >= end {
            let name = &key.name;
            return Err(anyhow!(
                "Location {name} in {path} stays: it still leads to a SyncTarget by its status; the center has not noticed yet that \
                 this one is gone, or does not run, or others match the Location too; \
                 without the Location it would take away what runs at the edge; run this again to go on waiting"
            ));
        }
        sleep(GLANCE).await;
        let found = get(cluster, key.clone()).await;
        match found.map_err(|fault| anyhow!("Location {} in {path} cannot be read: {fault}", key.name))? {
            Some(found) => location = found,
            None => return Ok(None),
        }
    }
    Ok(Some(location))
}

fn leads_somewhere(location: &Value) -> bool {
    location["status"]["instances"].as_u64().is_some_and(|instances| instances > 0)
}

/// The kinds that describe edges, ours and kcp's own. SyncTargets come first: a Location that goes while its SyncTarget
/// stays would take the workloads away from the edge.
const DESCRIBING_EDGES: [(&str, &str, &str); 4] = [
    ("SyncTarget", group::EDGE, "synctargets"),
    ("SyncTarget", group::WORKLOAD, "synctargets"),
    ("Location", group::EDGE, "locations"),
    ("Location", group::SCHEDULING, "locations"),
];

async fn remove_imw(name: &str, with_edges: bool, server: &ServerFlags) -> Result<()> {
    let Some(leaving) = Leaving::find(name, server).await? else { return Ok(()) };
    let described = described_in(&leaving).await?;
    // A workspace that goes is no word about its edges: their mailboxes would stay, and nobody could name them any more.
    if !described.is_empty() && !with_edges {
        let path = &leaving.path;
        let count = |kind: &str| described.iter().filter(|one| one.kind == kind).count();
        return Err(refusal(format!(
            "{path} still describes edges (SyncTargets: {}, Locations: {}); remove each by `mailboat remove location NAME \
             --imw {path}`, or give --with-edges, and they go first",
            count("SyncTarget"),
            count("Location")
        )));
    }
    for Describing { kind, key, object } in described {
        let (path, name) = (&leaving.path, key.name.clone());
        let found = match kind {
            "Location" => until_it_leads_nowhere(&leaving.within, path, &key, object).await?,
            _ => Some(object),
        };
        if let Some(found) = found {
            delete(&leaving.within, key, &found)
                .await
                .map_err(|fault| anyhow!("{kind} {name} in {path} cannot be removed: {fault}"))?;
        }
        say!("{kind} {name}: removed");
    }
    leaving.leave().await
}

/// An object that describes an edge.
struct Describing {
    kind: &'static str,
    key: Key,
    object: Value,
}

/// What describes edges in a workspace, in the order in which it may go.
async fn described_in(leaving: &Leaving) -> Result<Vec<Describing>> {
    let mut described = Vec::new();
    for (kind, group, resource) in DESCRIBING_EDGES {
        let objects = match list(&leaving.within, &KindId::new(group, resource), "").await {
            Ok(objects) => objects,
            Err(fault) if fault.kind == FaultKind::Unserved => continue,
            // At the end of its deletion a workspace denies itself, and holds nothing any more.
            Err(fault) if fault.kind == FaultKind::Forbidden && leaving.is_going().await? => continue,
            Err(fault) => {
                let doing = format!("the {kind}s of {} cannot be listed", leaving.path);
                return Err(before_writing(&doing, &fault));
            }
        };
        described.extend(objects.into_iter().map(|object| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            Describing { kind, key: key("", group, resource, "", name), object }
        }));
    }
    Ok(described)
}

async fn remove_wmw(name: &str, server: &ServerFlags) -> Result<()> {
    let Some(leaving) = Leaving::find(name, server).await? else { return Ok(()) };
    withdraw(&leaving).await?;
    leaving.leave().await
}

/// A workspace that is to go.
struct Leaving {
    path: WorkspacePath,
    within: Cluster,
    above: Cluster,
    key: Key,
    found: Value,
}

impl Leaving {
    /// Finds it, or says that it is not there.
    async fn find(name: &str, server: &ServerFlags) -> Result<Option<Self>> {
        let path = below_root(name)?;
        let site = Site::reach(server).await?;
        let parent = path.parent().map_err(|bad| refusal(bad.to_string()))?;
        let (within, above, key) = (site.at(&path), site.at(&parent), workspace_key(path.name()));
        let found: Option<Value> = get(&above, key.clone()).await.map_err(|fault| unread(&parent, &fault))?;
        let Some(found) = found else {
            say!("workspace {path}: not there");
            return Ok(None);
        };
        Ok(Some(Self { path, within, above, key, found }))
    }

    /// Whether it is not there any more, or its deletion has begun.
    async fn is_going(&self) -> Result<bool> {
        let found: Option<Value> =
            get(&self.above, self.key.clone()).await.map_err(|fault| self.failed(&fault))?;
        Ok(found.is_none_or(|found| !found["metadata"]["deletionTimestamp"].is_null()))
    }

    /// Deletes it, and waits until it is gone.
    async fn leave(self) -> Result<()> {
        let deleted = delete(&self.above, self.key.clone(), &self.found).await;
        deleted.map_err(|fault| self.failed(&fault))?;
        until_gone(&self.above, self.key, &self.path).await?;
        say!("workspace {}: removed", self.path);
        Ok(())
    }

    fn failed(&self, fault: &Fault) -> anyhow::Error {
        before_writing(&format!("the workspace {} cannot be removed", self.path), fault)
    }
}

/// Waits until a workspace that was deleted is gone with all that is in it.
async fn until_gone(above: &Cluster, key: Key, path: &WorkspacePath) -> Result<()> {
    let end = Instant::now() + WITHDRAWAL_LIMIT;
    loop {
        let found: Option<Value> = get(above, key.clone())
            .await
            .map_err(|fault| anyhow!("whether the workspace {path} is gone cannot be seen: {fault}"))?;
        if found.is_none() {
            return Ok(());
        }
        if Instant::now() >= end {
            return Err(anyhow!(
                "the workspace {path} is deleted and not gone yet; something in it still has a finalizer; `kubectl get \
                 workspace {} -o yaml`, where it was made, says more",
                path.name()
            ));
        }
        sleep(GLANCE).await;
    }
}

/// Deletes all placements of a workspace, and waits until the center has withdrawn what they placed. Withdrawals
/// that it holds because they are many are confirmed: this command is the confirmation. A workspace that is going and
/// denies itself is at the end of its deletion, and has no placements.
async fn withdraw(leaving: &Leaving) -> Result<()> {
    let (cluster, path) = (&leaving.within, &leaving.path);
    let kind = KindId::new(group::EDGE, "edgeplacements");
    let end = Instant::now() + WITHDRAWAL_LIMIT;
    let mut told = false;
    loop {
        let placements = match list(cluster, &kind, "").await {
            Ok(placements) => placements,
            Err(fault) if fault.kind == FaultKind::Unserved => return Ok(()),
            Err(fault) if fault.kind == FaultKind::Forbidden && leaving.is_going().await? => return Ok(()),
            Err(fault) => {
                return Err(before_writing(
                    &format!("the EdgePlacements of {path} cannot be listed"),
                    &fault,
                ));
            }
        };
        if placements.is_empty() {
            return Ok(());
        }
        if !told {
            say!("withdrawing what {} EdgePlacements of {path} placed", placements.len());
            told = true;
        }
        for placement in &placements {
            let name = placement["metadata"]["name"].as_str().unwrap_or_default();
            let key = key("", group::EDGE, "edgeplacements", "", name);
            withdraw_one(cluster, key, placement)
                .await
                .map_err(|fault| anyhow!("EdgePlacement {name} in {path} cannot be withdrawn: {fault}"))?;
        }
        if Instant::now() >= end {
            return Err(anyhow!(
                "{} EdgePlacements of {path} are still there, so the workspace stays; the center has not withdrawn what \
                 they placed, or does not run; run this again to go on waiting",
                placements.len()
            ));
        }
        sleep(GLANCE).await;
    }
}

async fn withdraw_one(cluster: &Cluster, key: Key, placement: &Value) -> Result<(), Fault> {
    if placement["metadata"]["deletionTimestamp"].is_null() {
        return delete(cluster, key, placement).await;
    }
    let held = placement["status"]["awaitingConfirmation"]["changeId"].as_str();
    let confirmed = placement["metadata"]["annotations"][annotation::CONFIRM_WITHDRAWAL].as_str();
    match held {
        Some(change) if confirmed != Some(change) => {
            let confirm =
                json!({ "metadata": { "annotations": { annotation::CONFIRM_WITHDRAWAL: change } } });
            match patch(cluster, key, &confirm).await {
                Err(fault) if fault.kind == FaultKind::NotFound => Ok(()),
                patched => patched,
            }
        }
        _ => Ok(()),
    }
}
