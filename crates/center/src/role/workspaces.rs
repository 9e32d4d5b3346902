//! Workload workspaces: each is read by itself, and of each only the kinds that a placement there can select.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mailboat_api::names::group;
use mailboat_engine::role::{Order, Where};
use mailboat_engine::route::Sources;
use mailboat_object::catalog::{Catalog, Found};
use mailboat_object::key::{ClusterId, KindId, Name};
use mailboat_object::object::Keep;
use mailboat_store::interest::{Filter, Interest, PlaceId};
use mailboat_store::seen::Doubt;
use mailboat_store::store::Store;
use mailboat_store::time::Moment;

use crate::denature;
use crate::what::What;

/// The most kinds that are followed in one workspace.
const MOST_KINDS: usize = 500;

/// A workspace that has not said for so long what it serves is not waited for any more.
const ANSWERS_WITHIN: Duration = Duration::from_mins(1);

/// What the name of a workspace as a place begins with.
const PREFIX: &str = "workspace/";

/// The workload workspaces.
#[derive(Default)]
pub(super) struct Workspaces {
    all: BTreeMap<ClusterId, Workspace>,
    /// Counts whatever could make a difference in what is read here, or in what can be said of that.
    revision: u64,
}

#[derive(Default)]
struct Workspace {
    serves: Option<Arc<Catalog>>,
    answers: Answers,
    /// Since when it was asked in vain.
    asked: Option<Moment>,
    /// What is followed. A kind that was once is so for good: if its server stops to serve it, that is to be seen as
    /// such.
    kinds: BTreeSet<KindId>,
    /// What could be selected besides, and is not followed because it would be too much.
    beyond: BTreeSet<KindId>,
    /// Those of them that have no status subresource there.
    without_status: BTreeSet<KindId>,
    placements: BTreeMap<Name, Arc<What>>,
    /// Something is or was placed from here.
    places: bool,
    /// SyncTargets stand here, and beside each the account by which its syncer may report on it.
    has_targets: bool,
}

/// Whether a workspace says what it serves.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Answers {
    /// It may still do so.
    #[default]
    Soon,
    /// It does not let the center know: nothing is to be waited for, and nothing to be concluded either.
    Refuses,
    /// It has not done so for long, and is not waited for any more.
    Silent,
}

/// A workspace as a place.
pub(super) fn place(cluster: &ClusterId) -> PlaceId {
    PlaceId(Name::new(&format!("{PREFIX}{cluster}")))
}

/// The workspace that a place is, if it is one.
fn cluster_of(place: &PlaceId) -> Option<ClusterId> {
    place.0.as_str().strip_prefix(PREFIX).map(ClusterId::new)
}

/// The placements of a workspace, read there.
pub(super) fn of_placements(cluster: &ClusterId) -> Interest {
    let kind = KindId::new(group::EDGE, "edgeplacements");
    Interest { place: place(cluster), kind, filter: Filter::All, keep: Keep::Whole }
}

impl Workspaces {
    /// A placement is there, or with `None` is not any more. True if other kinds are read because of it.
    pub(super) fn placement(
        &mut self,
        cluster: &ClusterId,
        name: &Name,
        what: Option<Arc<What>>,
        orders: &mut Vec<Order>,
    ) -> bool {
        self.revision += 1;
        let Some(what) = what else {
            // The workspace is still read: what was placed from it is withdrawn by what is known of it.
            if let Some(workspace) = self.all.get_mut(cluster) {
                workspace.placements.remove(name);
            }
            return false;
        };
        self.look_into(cluster, orders);
        let workspace = self.all.entry(cluster.clone()).or_default();
        workspace.placements.insert(name.clone(), what);
        workspace.places = true;
        workspace.refresh()
    }

    /// A SyncTarget stands in a workspace.
    pub(super) fn inventory(&mut self, cluster: &ClusterId, orders: &mut Vec<Order>) {
        if self.all.get(cluster).is_some_and(|workspace| workspace.has_targets) {
            return;
        }
        self.revision += 1;
        self.look_into(cluster, orders);
        let workspace = self.all.entry(cluster.clone()).or_default();
        workspace.has_targets = true;
        workspace.refresh();
    }

    /// A workspace is to be read, whatever of it.
    pub(super) fn look_into(&mut self, cluster: &ClusterId, orders: &mut Vec<Order>) {
        if !self.all.contains_key(cluster) {
            self.revision += 1;
            orders.push(Order::Reach(cluster.clone()));
            orders.push(Order::Open(place(cluster), Where::Workspace(cluster.clone())));
            self.all.insert(cluster.clone(), Workspace::default());
        }
    }

    /// What a workspace serves. Its cluster, if other kinds are read by it, or status of theirs is written in another way.
    pub(super) fn served(&mut self, at: &PlaceId, catalog: &Arc<Catalog>) -> Option<ClusterId> {
        let cluster = cluster_of(at)?;
        let workspace = self.all.get_mut(&cluster)?;
        self.revision += 1;
        workspace.answers = Answers::Soon;
        let first = workspace.serves.replace(Arc::clone(catalog)).is_none();
        let changed = workspace.refresh();
        (first || changed).then_some(cluster)
    }

    /// A workspace does not let the center know what it serves.
    pub(super) fn refused(&mut self, at: &PlaceId) {
        let Some(cluster) = cluster_of(at) else { return };
        self.revision += 1;
        if let Some(workspace) = self.all.get_mut(&cluster).filter(|workspace| workspace.serves.is_none())
            && std::mem::replace(&mut workspace.answers, Answers::Refuses) != Answers::Refuses
        {
            tracing::warn!(%cluster, "the center may not read a workspace with placements; `mailboat ensure wmw` gives it the right");
        }
    }

    /// Whether a workspace keeps from the center what there is.
    pub(super) fn refuses(&self, cluster: &ClusterId) -> bool {
        self.all.get(cluster).is_some_and(|workspace| workspace.answers == Answers::Refuses)
    }

    /// Whether a workspace keeps from the center what there is, or has not answered for long: what came from there stays as
    /// it is.
    pub(super) fn is_out_of_reach(&self, cluster: &ClusterId) -> bool {
        self.all.get(cluster).is_some_and(Workspace::is_out_of_reach)
    }

    /// Notes which workspaces have not answered for long. Says when to ask again.
    pub(super) fn wait(&mut self, now: Moment) -> Option<Moment> {
        let awaited = |workspace: &&mut Workspace| {
            workspace.serves.is_none() && !workspace.is_out_of_reach() && !workspace.placements.is_empty()
        };
        let mut wake: Option<Moment> = None;
        for (cluster, workspace) in &mut self.all {
            let Some(workspace) = Some(workspace).filter(awaited) else { continue };
            let until = *workspace.asked.get_or_insert(now) + ANSWERS_WITHIN;
            if now < until {
                wake = wake.into_iter().chain([until]).min();
                continue;
            }
            workspace.answers = Answers::Silent;
            self.revision += 1;
            tracing::warn!(%cluster, "a workspace with placements does not answer; what it placed stays as it is, and others go on without it");
        }
        wake
    }

    /// Whether every workspace said what it serves, or that it does not say so. One that the center may not read, or that
    /// does not answer, must not keep all others waiting.
    pub(super) fn are_known(&self) -> bool {
        let known = |workspace: &Workspace| workspace.serves.is_some() || workspace.is_out_of_reach();
        self.all.values().all(|workspace| known(workspace) || workspace.placements.is_empty())
    }

    /// Whether all that placements read in a workspace was listed, or cannot be. Before that, less is known of it than
    /// there is.
    pub(super) fn is_read(&self, cluster: &ClusterId, store: &Store) -> bool {
        let comes = |kind: &KindId| {
            matches!(store.range(cluster, kind, None), Err(Doubt::NotListed | Doubt::NotFollowed))
        };
        self.all
            .get(cluster)
            .is_some_and(|workspace| workspace.serves.is_some() && !workspace.kinds.iter().any(comes))
    }

    /// The workspaces with placements.
    pub(super) fn with_placements(&self) -> impl Iterator<Item = &ClusterId> {
        self.all.iter().filter(|(_, workspace)| !workspace.placements.is_empty()).map(|(cluster, _)| cluster)
    }

    /// Another one whenever something else may be read here, or may be said of what is read.
    pub(super) fn revision(&self) -> u64 {
        self.revision
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

    /// What all of them serve.
    pub(super) fn catalogs(&self) -> impl Iterator<Item = &Arc<Catalog>> {
        self.all.values().filter_map(|workspace| workspace.serves.as_ref())
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

    /// The kinds that are read there and have no status subresource.
    pub(super) fn without_status(&self, cluster: &ClusterId) -> BTreeSet<KindId> {
        self.all.get(cluster).map(|workspace| workspace.without_status.clone()).unwrap_or_default()
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

    /// How many kinds that a placement may select are not read, because its workspace has too many.
    pub(super) fn unread_kinds(&self, cluster: &ClusterId, what: &What) -> usize {
        let beyond = self.all.get(cluster).into_iter().flat_map(|workspace| &workspace.beyond);
        beyond.filter(|kind| what.may_select(kind)).count()
    }

    /// What the placements of a workspace select.
    pub(super) fn placements(&self, cluster: &ClusterId) -> impl Iterator<Item = (&Name, &Arc<What>)> {
        self.all.get(cluster).into_iter().flat_map(|workspace| &workspace.placements)
    }
}

impl Workspace {
    fn is_out_of_reach(&self) -> bool {
        self.answers != Answers::Soon
    }

    /// Whether placements there may come upon objects of a kind.
    fn reads(&self, kind: &KindId) -> bool {
        self.places && (decides(kind) || self.placements.values().any(|what| what.may_select(kind)))
    }

    /// Adds the kinds that can be selected. True if there were any, or if another of them has a status subresource.
    fn refresh(&mut self) -> bool {
        let Some(catalog) = &self.serves else { return false };
        let before = self.kinds.len();
        let mut wanted: Vec<KindId> = catalog
            .iter()
            .filter(|served| served.verbs.can_follow())
            .filter(|served| self.reads(&served.kind) || (self.has_targets && is_of_account(&served.kind)))
            .map(|served| served.kind.clone())
            .filter(|kind| !self.kinds.contains(kind))
            .collect();
        // What decides about others goes first: without it nothing can be said of them.
        wanted.sort_by_key(|kind| !decides(kind) && !is_of_account(kind));
        let room = MOST_KINDS.saturating_sub(before).min(wanted.len());
        self.beyond = wanted.split_off(room).into_iter().collect();
        self.kinds.extend(wanted);
        let mut without_status = self.without_status.clone();
        for kind in &self.kinds {
            // As it was, where that is not known now.
            match catalog.find(kind) {
                Found::Served(served) if served.status => without_status.remove(kind),
                Found::Served(_) => without_status.insert(kind.clone()),
                Found::NotServed | Found::Unknown(_) => continue,
            };
        }
        let status_before = std::mem::replace(&mut self.without_status, without_status);
        self.kinds.len() != before || self.without_status != status_before
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
    use mailboat_api::edge::EdgePlacementSpec;

    use mailboat_object::catalog::{Served, Verbs};

    use super::*;
    use crate::fixtures::kind;

    #[test]
    fn a_workspace_that_the_center_may_not_read_keeps_no_other_waiting() {
        let mut workspaces = Workspaces::default();
        let (open, shut) = (ClusterId::new("open"), ClusterId::new("shut"));
        for cluster in [&open, &shut] {
            let what = Arc::new(What::of(&EdgePlacementSpec::default()));
            workspaces.placement(cluster, &Name::new("shops"), Some(what), &mut Vec::new());
        }
        workspaces.served(&place(&open), &Arc::default());
        assert!(!workspaces.are_known(), "one said nothing yet");
        workspaces.refused(&place(&shut));
        assert!(workspaces.are_known() && workspaces.refuses(&shut) && !workspaces.refuses(&open));
        // What was once known is not forgotten because of a refusal.
        workspaces.refused(&place(&open));
        assert!(!workspaces.refuses(&open));
        workspaces.served(&place(&shut), &Arc::default());
        assert!(workspaces.are_known() && !workspaces.refuses(&shut));
    }

    #[test]
    fn a_workspace_that_does_not_answer_keeps_no_other_waiting_for_ever() {
        let mut workspaces = Workspaces::default();
        let (open, mute) = (ClusterId::new("open"), ClusterId::new("mute"));
        for cluster in [&open, &mute] {
            let what = Arc::new(What::of(&EdgePlacementSpec::default()));
            workspaces.placement(cluster, &Name::new("shops"), Some(what), &mut Vec::new());
        }
        workspaces.served(&place(&open), &Arc::default());
        let at = |seconds: u64| Moment(seconds * 1_000);
        assert_eq!(workspaces.wait(at(5)), Some(at(65)));
        assert!(workspaces.wait(at(64)).is_some() && !workspaces.are_known());
        assert_eq!(workspaces.wait(at(65)), None);
        assert!(workspaces.are_known() && workspaces.is_out_of_reach(&mute), "it is held as it was");
        assert!(!workspaces.refuses(&mute), "a placement deleted there still waits until it was read");
        workspaces.served(&place(&mute), &Arc::default());
        assert!(workspaces.are_known() && !workspaces.is_out_of_reach(&mute));
    }

    fn served(of: &str) -> Served {
        let (kind, name) = (kind(of), Name::new("Thing"));
        Served {
            version: Name::new("v1"),
            kind_name: name.clone(),
            singular: name,
            namespaced: true,
            status: false,
            scale: false,
            verbs: Verbs::of(["get", "list", "watch"]),
            short_names: Box::default(),
            kind,
        }
    }

    #[test]
    fn a_kind_that_comes_by_a_status_subresource_is_noticed() {
        let mut workspaces = Workspaces::default();
        let shop = ClusterId::new("shop");
        let all: EdgePlacementSpec =
            serde_json::from_value(serde_json::json!({ "downsync": [{ "apiGroup": "example.dev" }] }))
                .unwrap();
        workspaces.placement(&shop, &Name::new("shops"), Some(Arc::new(What::of(&all))), &mut Vec::new());
        let mut serves = |status: bool| {
            let mut catalog = Catalog::default();
            catalog.add(Served { status, ..served("tills.example.dev") });
            let changed = workspaces.served(&place(&shop), &Arc::new(catalog)).is_some();
            (changed, workspaces.without_status(&shop).contains(&kind("tills.example.dev")))
        };
        assert_eq!(serves(false), (true, true));
        assert_eq!(serves(false), (false, true));
        assert_eq!(serves(true), (true, false));
        assert_eq!(serves(false), (true, true));
    }

    #[test]
    fn only_so_many_kinds_are_read_and_what_decides_about_others_is_among_them() {
        let mut workspaces = Workspaces::default();
        let shop = ClusterId::new("shop");
        let all: EdgePlacementSpec = serde_json::from_value(serde_json::json!({
            "downsync": [{ "apiGroup": "example.dev", "resources": ["*"], "namespaces": ["shop"] }]
        }))
        .unwrap();
        let what = Arc::new(What::of(&all));
        workspaces.placement(&shop, &Name::new("shops"), Some(Arc::clone(&what)), &mut Vec::new());
        let mut catalog = Catalog::default();
        for number in 0..MOST_KINDS + 7 {
            catalog.add(served(&format!("a{number:03}s.example.dev")));
        }
        catalog.add(served("namespaces"));
        workspaces.served(&place(&shop), &Arc::new(catalog));
        assert_eq!(workspaces.interests().count(), MOST_KINDS);
        assert!(workspaces.follows(&shop, &kind("namespaces")));
        assert_eq!(workspaces.unread_kinds(&shop, &what), 8);
        // What was placed of such a kind is held, since nobody reads it.
        let beyond = kind(&format!("a{:03}s.example.dev", MOST_KINDS + 6));
        assert!(workspaces.may_select(&shop, &beyond) && !workspaces.follows(&shop, &beyond));
    }

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
