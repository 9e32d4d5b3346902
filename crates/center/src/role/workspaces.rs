//! Workload workspaces: each is read by itself, and of each only the kinds that a placement there can select.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_engine::role::{Order, Where};
use mailboat_engine::route::Sources;
use mailboat_object::catalog::Catalog;
use mailboat_object::key::{ClusterId, KindId, Name};
use mailboat_object::object::Keep;
use mailboat_store::interest::{Filter, Interest, PlaceId};

use crate::denature;
use crate::what::What;

/// The workload workspaces.
#[derive(Default)]
pub(super) struct Workspaces {
    all: BTreeMap<ClusterId, Workspace>,
}

#[derive(Default)]
struct Workspace {
    serves: Option<Arc<Catalog>>,
    /// What is followed. A kind that was once is so for good: if its server stops to serve it, that is to be seen as
    /// such.
    kinds: BTreeSet<KindId>,
    placements: BTreeMap<Name, Arc<What>>,
    /// Something is or was placed from here.
    places: bool,
    /// SyncTargets stand here, and beside each the account by which its syncer may report on it.
    has_targets: bool,
}

/// A workspace as a place.
pub(super) fn place(cluster: &ClusterId) -> PlaceId {
    PlaceId(Name::new(&format!("workspace/{cluster}")))
}

impl Workspaces {
    /// A placement is there, or with `None` is not any more.
    pub(super) fn placement(
        &mut self,
        cluster: &ClusterId,
        name: &Name,
        what: Option<Arc<What>>,
        orders: &mut Vec<Order>,
    ) {
        match what {
            Some(what) => {
                if !self.all.contains_key(cluster) {
                    orders.push(Order::Reach(cluster.clone()));
                    orders.push(Order::Open(place(cluster), Where::Workspace(cluster.clone())));
                }
                let workspace = self.all.entry(cluster.clone()).or_default();
                workspace.placements.insert(name.clone(), what);
                workspace.places = true;
                workspace.refresh();
            }
            // The workspace is still read: what was placed from it is withdrawn by what is known of it.
            None => {
                if let Some(workspace) = self.all.get_mut(cluster) {
                    workspace.placements.remove(name);
                }
            }
        }
    }

    /// A SyncTarget stands in a workspace.
    pub(super) fn inventory(&mut self, cluster: &ClusterId, orders: &mut Vec<Order>) {
        if self.all.get(cluster).is_some_and(|workspace| workspace.has_targets) {
            return;
        }
        if !self.all.contains_key(cluster) {
            orders.push(Order::Reach(cluster.clone()));
            orders.push(Order::Open(place(cluster), Where::Workspace(cluster.clone())));
        }
        let workspace = self.all.entry(cluster.clone()).or_default();
        workspace.has_targets = true;
        workspace.refresh();
    }

    /// What a workspace serves. True if other kinds are read by it.
    pub(super) fn served(&mut self, at: &PlaceId, catalog: &Arc<Catalog>) -> Option<ClusterId> {
        let (cluster, workspace) = self.all.iter_mut().find(|(cluster, _)| place(cluster) == *at)?;
        let first = workspace.serves.replace(Arc::clone(catalog)).is_none();
        let changed = workspace.refresh();
        (first || changed).then(|| cluster.clone())
    }

    /// Whether every workspace said what it serves.
    pub(super) fn are_known(&self) -> bool {
        self.all.values().all(|workspace| workspace.serves.is_some() || workspace.placements.is_empty())
    }

    /// What is followed in all of them.
    pub(super) fn interests(&self) -> impl Iterator<Item = Interest> {
        self.all.iter().flat_map(|(cluster, workspace)| {
            let at = place(cluster);
            workspace.kinds.iter().map(move |kind| Interest {
                place: at.clone(),
                kind: kind.clone(),
                filter: Filter::All,
                keep: if workspace.places { Keep::Whole } else { Keep::HeadAndStatus },
            })
        })
    }

    /// What a placement there reads.
    pub(super) fn sources(&self, cluster: &ClusterId) -> Vec<Sources> {
        let kinds = self.all.get(cluster).into_iter().flat_map(|workspace| &workspace.kinds);
        let sources = kinds.map(|kind| Sources {
            place: place(cluster),
            cluster: Some(cluster.clone()),
            kind: kind.clone(),
        });
        sources.collect()
    }

    /// Whether a kind is read there.
    pub(super) fn follows(&self, cluster: &ClusterId, kind: &KindId) -> bool {
        self.all.get(cluster).is_some_and(|workspace| workspace.kinds.contains(kind))
    }

    /// Whether a placement there may select objects of a kind.
    pub(super) fn may_select(&self, cluster: &ClusterId, kind: &KindId) -> bool {
        let placements =
            self.all.get(cluster).into_iter().flat_map(|workspace| workspace.placements.values());
        placements.into_iter().any(|what| what.may_select(kind))
    }

    /// What the placements of a workspace select.
    pub(super) fn placements(&self, cluster: &ClusterId) -> impl Iterator<Item = (&Name, &Arc<What>)> {
        self.all.get(cluster).into_iter().flat_map(|workspace| &workspace.placements)
    }
}

impl Workspace {
    /// Whether placements there may come upon objects of a kind.
    fn reads(&self, kind: &KindId) -> bool {
        self.places && (decides(kind) || self.placements.values().any(|what| what.may_select(kind)))
    }

    /// Adds the kinds that can be selected. True if there were any.
    fn refresh(&mut self) -> bool {
        let Some(catalog) = &self.serves else { return false };
        let before = self.kinds.len();
        for served in catalog.iter().filter(|served| served.verbs.can_follow()) {
            if self.reads(&served.kind) || (self.has_targets && is_of_account(&served.kind)) {
                self.kinds.insert(served.kind.clone());
            }
        }
        self.kinds.len() != before
    }
}

/// The kinds of a syncer's account.
fn is_of_account(kind: &KindId) -> bool {
    matches!(
        (kind.group(), kind.resource()),
        ("", "serviceaccounts") | ("rbac.authorization.k8s.io", "clusterroles" | "clusterrolebindings")
    )
}

/// Kinds that are read whatever is selected: labels of namespaces are tested, and what defines a kind goes along with it,
/// also where it is stored for the edges alone because the workspace has the kind by a binding.
pub(crate) fn decides(kind: &KindId) -> bool {
    let kind = denature::at_edge(kind);
    matches!(
        (kind.group(), kind.resource()),
        ("", "namespaces")
            | ("apis.kcp.io", "apibindings")
            | ("apiextensions.k8s.io", "customresourcedefinitions")
    )
}

#[cfg(test)]
mod tests {
    use super::decides;
    use crate::fixtures::kind;

    #[test]
    fn what_defines_kinds_is_read_though_nobody_selects_it() {
        let read = [
            "namespaces",
            "apibindings.apis.kcp.io",
            "customresourcedefinitions.apiextensions.k8s.io",
            "customresourcedefinitions.apiextensions.k8s.io.denatured",
        ];
        assert!(read.into_iter().all(|text| decides(&kind(text))));
        assert!(!decides(&kind("configmaps")) && !decides(&kind("apiexports.apis.kcp.io")));
    }
}
