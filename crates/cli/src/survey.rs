//! What is read of a center so that its own code can be asked what it makes of it.
//!
//! Nobody may read everything. What is needed is tried, and what may not be read is told, once.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use mailboat_api::names::{MailboxName, annotation, group};
use mailboat_center::rehearse::{Listed, Rehearsal, Setting, kind_in_mailbox, kinds_to_read};
use mailboat_cluster::{Cluster, Transport as _};
use mailboat_object::catalog::Catalog;
use mailboat_object::key::{ClusterId, KindId, Uid};
use mailboat_object::wire::{Fault, FaultKind};
use mailboat_registration::workspace::WorkspacePath;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::failure::{before_writing, refusal};
use crate::flags::SurveyFlags;
use crate::place::{get, key, list};
use crate::site::Site;

/// Mailboxes that are read at once.
const AT_ONCE: usize = 8;
/// The kinds of ours in a workload workspace that are read whatever is selected.
const IN_WORKLOAD: [&str; 3] = ["edgeplacements", "singleplacementslices", "customizers"];
/// The kinds of inventories.
const IN_INVENTORY: [(&str, &str); 4] = [
    (group::EDGE, "synctargets"),
    (group::EDGE, "locations"),
    (group::WORKLOAD, "synctargets"),
    (group::SCHEDULING, "locations"),
];

/// What was read.
pub(crate) struct Survey {
    pub(crate) site: Site,
    /// The workspace that the command is about.
    pub(crate) path: WorkspacePath,
    pub(crate) cluster: ClusterId,
    pub(crate) catalog: std::sync::Arc<Catalog>,
    pub(crate) setting: Setting,
    pub(crate) listed: Vec<Listed>,
    /// The kinds that placements may select.
    kinds: BTreeSet<KindId>,
}

impl Survey {
    /// Reaches the workspace that the flags name.
    pub(crate) async fn begin(flags: &SurveyFlags) -> Result<Self> {
        let site = Site::reach(&flags.server).await?;
        let (path, here) = site.named(flags.workspace.as_deref()).await?;
        let cluster = id_of(&site, &path).await?;
        let catalog = here.catalog().await;
        let catalog = catalog.map_err(|fault| {
            before_writing(&format!("the workspace {path} cannot be asked what it serves"), &fault)
        })?;
        let provider =
            WorkspacePath::parse(&flags.provider_workspace).map_err(|bad| refusal(bad.to_string()))?;
        let now = u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or_default();
        let setting = Setting {
            provider: id_of(&site, &provider).await.ok(),
            provider_path: provider.to_string(),
            now,
            ..Setting::default()
        };
        Ok(Self { site, path, cluster, catalog, setting, listed: Vec::new(), kinds: BTreeSet::new() })
    }

    /// Reads a workload workspace: its placements, and all that they may select. `more`: placements that are not there yet.
    pub(crate) async fn read_workload(&mut self, cluster: &ClusterId, more: &[Value]) -> Result<()> {
        let place = self.site.of(cluster);
        let unread =
            |fault: &Fault| before_writing(&format!("the workspace {cluster} cannot be read"), fault);
        let catalog = place.catalog().await.map_err(|fault| unread(&fault))?;
        if catalog.versions(&KindId::new(group::EDGE, "edgeplacements")).is_empty() {
            return Err(refusal(format!(
                "the workspace {} has no EdgePlacements: it has no APIBinding to {}; `ensure wmw` makes one, and \
                 --workspace names another workspace",
                self.path,
                group::EDGE
            )));
        }
        let mut placements = more.to_vec();
        let mut kinds: BTreeSet<KindId> = BTreeSet::new();
        for kind in IN_WORKLOAD.map(|resource| KindId::new(group::EDGE, resource)) {
            let found = read(&place, cluster, &catalog, &kind).await.map_err(|fault| unread(&fault))?;
            if kind.resource() == "edgeplacements" {
                placements.extend(found.iter().flat_map(|listed| listed.items.clone()));
            }
            self.listed.extend(found);
        }
        kinds.extend(kinds_to_read(&catalog, &placements));
        for kind in &kinds {
            match read(&place, cluster, &catalog, kind).await {
                Ok(found) => self.listed.extend(found),
                Err(fault) if fault.kind == FaultKind::Forbidden => {
                    say!("note: you may not read {kind} in {cluster}; what depends on it cannot be said");
                }
                Err(fault) => return Err(unread(&fault)),
            }
        }
        self.kinds.extend(kinds);
        self.setting.workspaces.insert(cluster.clone());
        Ok(())
    }

    /// Reads one more kind of the workspace, whatever placements select.
    pub(crate) async fn read_kind(&mut self, kind: &KindId) -> Result<()> {
        if self.listed.iter().any(|listed| listed.cluster == self.cluster && listed.kind == *kind) {
            return Ok(());
        }
        let place = self.site.of(&self.cluster);
        let found = read(&place, &self.cluster, &self.catalog, kind).await;
        let found = found
            .map_err(|fault| before_writing(&format!("{kind} in {} cannot be read", self.path), &fault))?;
        self.listed.extend(found);
        Ok(())
    }

    /// Reads the inventories: all of them where one may look through the view of our export, else those that slices or
    /// the flags name.
    pub(crate) async fn read_inventories(&mut self, flags: &SurveyFlags) -> Result<()> {
        // One that was named has to be there, also where all are shown.
        let mut clusters: BTreeSet<ClusterId> = BTreeSet::new();
        for path in &flags.imw {
            let path = WorkspacePath::parse(path).map_err(|bad| refusal(bad.to_string()))?;
            clusters.insert(id_of(&self.site, &path).await?);
        }
        if let Ok(seen) = self.inventories_in_view().await
            && !seen.is_empty()
        {
            self.listed.extend(seen);
            return Ok(());
        }
        let slices = self.listed.iter().filter(|listed| listed.kind.resource() == "singleplacementslices");
        for destination in slices
            .flat_map(|listed| &listed.items)
            .filter_map(|slice| slice["destinations"].as_array())
            .flatten()
        {
            clusters.extend(destination["cluster"].as_str().map(ClusterId::new));
        }
        for cluster in clusters {
            let place = self.site.of(&cluster);
            let Ok(catalog) = place.catalog().await else {
                say!(
                    "note: you may not read the inventory {cluster}; where placements go is taken from their slices"
                );
                continue;
            };
            for (group, resource) in IN_INVENTORY {
                let found = read(&place, &cluster, &catalog, &KindId::new(group, resource)).await;
                self.listed.extend(found.unwrap_or_default());
            }
        }
        Ok(())
    }

    /// Whether an inventory that was read has an edge of this name; `None`: none was read.
    pub(crate) fn knows_edge(&self, name: &str) -> Option<bool> {
        let inventories: Vec<&Listed> = self
            .listed
            .iter()
            .filter(|listed| {
                IN_INVENTORY.contains(&(listed.kind.group(), listed.kind.resource()))
                    && !listed.items.is_empty()
            })
            .collect();
        let mut names = inventories.iter().flat_map(|listed| &listed.items);
        (!inventories.is_empty()).then(|| names.any(|item| item["metadata"]["name"] == *name))
    }

    /// All inventories, each group through the view of its own export: part of them would be a wrong answer.
    async fn inventories_in_view(&self) -> Result<Vec<Listed>, Fault> {
        let mut seen = Vec::new();
        for (group, resource) in IN_INVENTORY {
            seen.extend(self.through_view(group, resource).await?);
        }
        Ok(seen)
    }

    /// The workload workspaces that there are, by the placements in them.
    pub(crate) async fn workloads(&self) -> Result<BTreeSet<ClusterId>, Fault> {
        let seen = self.through_view(group::EDGE, "edgeplacements").await?;
        Ok(seen.into_iter().map(|listed| listed.cluster).collect())
    }

    /// A kind in all workspaces that are bound to our export of its group, which bears the group's name.
    async fn through_view(&self, group: &str, resource: &str) -> Result<Vec<Listed>, Fault> {
        let provider = self.setting.provider.as_ref();
        let provider = provider
            .ok_or_else(|| Fault::new(FaultKind::Forbidden, "the provider workspace may not be entered"))?;
        let slice = key("", "apis.kcp.io", "apiexportendpointslices", "", group);
        let slice: Option<Value> = get(&self.site.of(provider), slice).await?;
        let endpoints = slice.iter().filter_map(|slice| slice["status"]["endpoints"].as_array()).flatten();
        let kind = KindId::new(group, resource);
        let mut by_cluster: BTreeMap<ClusterId, Listed> = BTreeMap::new();
        for url in endpoints.filter_map(|endpoint| endpoint["url"].as_str()) {
            let view = self.site.view(url)?;
            let catalog = view.catalog().await?;
            let Some(served) = catalog.versions(&kind).first() else { continue };
            for item in list(&view, &kind, "").await? {
                let Some(id) = item["metadata"]["annotations"][annotation::KCP_CLUSTER].as_str() else {
                    continue;
                };
                let id = ClusterId::new(id);
                let listed = by_cluster.entry(id.clone()).or_insert_with(|| Listed {
                    cluster: id,
                    kind: kind.clone(),
                    api_version: served.api_version(),
                    kind_name: served.kind_name.to_string(),
                    items: Vec::new(),
                });
                listed.items.push(item);
            }
        }
        Ok(by_cluster.into_values().collect())
    }

    /// Finds the mailboxes, and reads what stands in those of these SyncTargets: copies of some kinds, or of all that
    /// placements may select.
    pub(crate) async fn read_mailboxes(&mut self, of: &BTreeSet<Uid>, kinds: Option<&KindId>) -> Result<()> {
        let Some(provider) = &self.setting.provider else {
            say!(
                "note: {} is not there, or you may not enter it; what stands in mailboxes cannot be said",
                self.setting.provider_path
            );
            return Ok(());
        };
        let kind = KindId::new("tenancy.kcp.io", "workspaces");
        let found = match list(&self.site.of(provider), &kind, "").await {
            Ok(found) => found,
            Err(fault) if fault.kind == FaultKind::Forbidden => {
                say!("note: you may not see the mailboxes in {}", self.setting.provider_path);
                return Ok(());
            }
            Err(fault) => return Err(before_writing("the mailboxes cannot be listed", &fault)),
        };
        let mailboxes: BTreeMap<Uid, ClusterId> = found.iter().filter_map(mailbox).collect();
        let mut copies: BTreeSet<KindId> = match kinds {
            Some(kind) => BTreeSet::from([kind_in_mailbox(kind)]),
            None => self.kinds.iter().map(kind_in_mailbox).collect(),
        };
        copies.extend([KindId::new("", "namespaces"), KindId::new(group::EDGE, "syncerconfigs")]);
        let mut reading = JoinSet::new();
        let mut left = mailboxes.iter().filter(|(uid, _)| of.contains(*uid));
        loop {
            while reading.len() < AT_ONCE
                && let Some((_, cluster)) = left.next()
            {
                reading.spawn(read_all(self.site.of(cluster), cluster.clone(), copies.clone()));
            }
            match reading.join_next().await {
                None => break,
                Some(Ok(Ok(listed))) => self.listed.extend(listed),
                Some(Ok(Err(fault))) if fault.kind == FaultKind::Forbidden => {
                    say!("note: a mailbox may not be read by you: {fault}");
                }
                Some(Ok(Err(fault))) => return Err(before_writing("a mailbox cannot be read", &fault)),
                Some(Err(ended)) => return Err(ended.into()),
            }
        }
        self.setting.mailboxes = mailboxes;
        Ok(())
    }

    /// The center's own code, over all that was read.
    pub(crate) fn rehearse(&self) -> Rehearsal {
        Rehearsal::new(self.setting.clone(), &self.listed)
    }
}

/// A mailbox that can be used: whose it is, and which cluster.
fn mailbox(workspace: &Value) -> Option<(Uid, ClusterId)> {
    let name: MailboxName = workspace["metadata"]["name"].as_str()?.parse().ok()?;
    let cluster = workspace["spec"]["cluster"].as_str().filter(|cluster| !cluster.is_empty())?;
    Some((Uid::parse(&name.sync_target_uid), ClusterId::new(cluster)))
}

async fn read_all(place: Cluster, cluster: ClusterId, kinds: BTreeSet<KindId>) -> Result<Vec<Listed>, Fault> {
    let catalog = place.catalog().await?;
    let mut all = Vec::new();
    for kind in kinds {
        all.extend(read(&place, &cluster, &catalog, &kind).await?);
    }
    Ok(all)
}

/// All objects of a kind; none if it is not served, which says nothing of them.
async fn read(
    place: &Cluster,
    cluster: &ClusterId,
    catalog: &Catalog,
    kind: &KindId,
) -> Result<Vec<Listed>, Fault> {
    let Some(served) = catalog.versions(kind).first() else { return Ok(Vec::new()) };
    let items = list(place, kind, "").await?;
    Ok(vec![Listed {
        cluster: cluster.clone(),
        kind: kind.clone(),
        api_version: served.api_version(),
        kind_name: served.kind_name.to_string(),
        items,
    }])
}

/// The id of a workspace's cluster.
async fn id_of(site: &Site, path: &WorkspacePath) -> Result<ClusterId> {
    let known = site.logical_cluster(path).await?;
    let id = known.metadata.annotations.and_then(|mut all| all.remove(annotation::KCP_CLUSTER));
    id.map(|id| ClusterId::new(&id))
        .ok_or_else(|| refusal(format!("{path} does not say which cluster it is")))
}
