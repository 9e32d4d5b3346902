//! New workspaces of our types: each waits until the center has its rights there.
//!
//! `center init` makes the types, and kcp shows in a view of each type which workspaces wait. Through that view the center
//! enters them in their owners' names, as long as they wait and no longer. Nothing else waits for this: a center that knows
//! nothing yet of placements and edges prepares workspaces all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mailboat_engine::role::{CallId, Order, Where};
use mailboat_object::json::Raw;
use mailboat_object::key::{ClusterId, KindId, Name};
use mailboat_object::object::{Keep, Object};
use mailboat_object::wire::{Fault, Reply};
use mailboat_registration::inventory::{center_rights, center_rights_in_inventory};
use mailboat_registration::preparation::{Next, Preparation, waiting_cluster};
use mailboat_store::interest::{Filter, Interest, PlaceId};
use mailboat_store::store::Store;
use mailboat_store::time::Moment;
use serde_json::Value;

use crate::setup::{INVENTORY_TYPE, WORKLOAD_TYPE};

/// The rights that the center needs in a workspace of each type.
type Rights = fn() -> [Value; 2];
const TYPES: [(&str, Rights); 2] =
    [(INVENTORY_TYPE, center_rights_in_inventory), (WORKLOAD_TYPE, center_rights)];

/// A view of other workspaces is published at such an address too, by kcp of other versions.
const VIEW_OF_WAITING: &str = "/initializingworkspaces/";
/// Workspaces that are prepared at once.
const MOST_UNDER_WAY: usize = 16;
/// After a first failure it is tried again after this, after each further one later,
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// up to this.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// One that was prepared is shown no more by then.
const SHOWN_FOR: Duration = Duration::from_secs(10);
/// kcp gives its owner rights in a new workspace a moment after it shows that this waits: so many refusals are no news.
const USUAL_FAILURES: u32 = 6;

/// The workspaces that wait, and what is done about them.
pub(super) struct Preparing {
    provider: ClusterId,
    manager: Name,
    views: BTreeMap<PlaceId, View>,
    workspaces: BTreeMap<ClusterId, Workspace>,
    asked: BTreeMap<CallId, ClusterId>,
    /// Others may wait than before.
    stale: bool,
    /// The views that the center may not use, each told once.
    refused: BTreeSet<PlaceId>,
}

/// The view of one type at one shard.
struct View {
    of: &'static str,
    url: Name,
}

struct Workspace {
    place: PlaceId,
    /// What it still waits for of ours: the type, and the view through which that is done.
    waits_for: Vec<(&'static str, Name)>,
    run: Option<Preparation>,
    /// Under which ids it was reached.
    reached: BTreeSet<ClusterId>,
    due: Moment,
    failures: u32,
}

/// The kind of types.
pub(super) fn workspace_types() -> KindId {
    KindId::new("tenancy.kcp.io", "workspacetypes")
}

/// The kind of what says of a workspace that it waits.
pub(super) fn logical_clusters() -> KindId {
    KindId::new("core.kcp.io", "logicalclusters")
}

impl Preparing {
    pub(super) fn new(provider: ClusterId, manager: Name) -> Self {
        Self {
            provider,
            manager,
            views: BTreeMap::new(),
            workspaces: BTreeMap::new(),
            asked: BTreeMap::new(),
            stale: false,
            refused: BTreeSet::new(),
        }
    }

    /// A type of the provider was seen, or with `None` is not there any more.
    pub(super) fn sees_type(&mut self, name: &str, object: Option<&Object>, orders: &mut Vec<Order>) {
        let Some((of, _)) = TYPES.into_iter().find(|(of, _)| *of == name) else { return };
        let urls = object.map(views_of).unwrap_or_default();
        let wanted: BTreeMap<PlaceId, Name> = urls.into_iter().map(|url| (place(of, &url), url)).collect();
        let closed = self.views.iter().filter(|(at, view)| view.of == of && !wanted.contains_key(*at));
        let closed: Vec<PlaceId> = closed.map(|(at, _)| at.clone()).collect();
        for at in closed {
            self.views.remove(&at);
            orders.push(Order::Close(at));
        }
        for (at, url) in wanted {
            if self.views.get(&at).is_none_or(|view| view.url != url) {
                orders.push(Order::Open(at.clone(), Where::Waiting(url.clone())));
                self.views.insert(at, View { of, url });
            }
        }
        self.stale = true;
    }

    /// What is followed in the views.
    pub(super) fn interests(&self) -> impl Iterator<Item = Interest> {
        self.views.keys().map(|at| Interest {
            place: at.clone(),
            kind: logical_clusters(),
            filter: Filter::All,
            keep: Keep::HeadAndStatus,
        })
    }

    /// Something changed in the views.
    pub(super) fn touch(&mut self) {
        self.stale = true;
    }

    /// A view does not let the center in.
    pub(super) fn refused(&mut self, at: &PlaceId) {
        if let Some(view) = self.views.get(at)
            && self.refused.insert(at.clone())
        {
            tracing::warn!(
                workspace_type = view.of,
                "the center may not prepare workspaces of this type, and they wait; it needs the verb initialize on it in the provider workspace"
            );
        }
    }

    /// Begins what is due, and says when to ask again.
    pub(super) fn next(
        &mut self,
        now: Moment,
        store: &Store,
        mut id: impl FnMut() -> CallId,
        orders: &mut Vec<Order>,
    ) -> Option<Moment> {
        if std::mem::take(&mut self.stale) {
            self.look(store, orders);
        }
        let mut wake: Option<Moment> = None;
        let mut under_way = self.workspaces.values().filter(|workspace| workspace.run.is_some()).count();
        for (cluster, workspace) in &mut self.workspaces {
            if workspace.run.is_some() {
                continue;
            }
            if workspace.due > now {
                wake = wake.into_iter().chain([workspace.due]).min();
                continue;
            }
            // One that ends makes place for the next, and asks.
            if under_way < MOST_UNDER_WAY {
                let begun = workspace.begin(cluster, &self.provider, &self.manager, orders);
                let Some(next) = begun else { continue };
                under_way += 1;
                ask(next, cluster, &mut self.asked, &mut id, orders);
            }
        }
        wake
    }

    /// What came of a call. False if it was none of these.
    pub(super) fn answered(
        &mut self,
        now: Moment,
        id: CallId,
        reply: &Result<Reply, Fault>,
        mut fresh: impl FnMut() -> CallId,
        orders: &mut Vec<Order>,
    ) -> bool {
        let Some(cluster) = self.asked.remove(&id) else { return false };
        // One that is gone meanwhile is told nothing.
        let Some(workspace) = self.workspaces.get_mut(&cluster) else { return true };
        let Some(run) = &mut workspace.run else { return true };
        match run.answered(reply.as_ref().map(|reply| &*reply.body)) {
            Next::Call(call) => {
                ask(Next::Call(call), &cluster, &mut self.asked, &mut fresh, orders);
                return true;
            }
            Next::Done => {
                tracing::info!(workspace = %cluster, "a new workspace lets the center in and waits for it no more");
                workspace.waits_for.remove(0);
                workspace.failures = 0;
                // Another of ours is due at once.
                let shown_for = if workspace.waits_for.is_empty() { SHOWN_FOR } else { Duration::ZERO };
                workspace.due = now + shown_for;
            }
            Next::Failed(fault) => {
                workspace.fails(&cluster, &fault);
                let pause = FIRST_PAUSE.saturating_mul(1 << workspace.failures.min(12)).min(LONGEST_PAUSE);
                workspace.due = now + pause;
            }
        }
        workspace.run = None;
        true
    }

    /// Finds out which workspaces wait.
    fn look(&mut self, store: &Store, orders: &mut Vec<Order>) {
        let kind = logical_clusters();
        let mut shown: BTreeMap<ClusterId, (PlaceId, Arc<Object>)> = BTreeMap::new();
        for at in self.views.keys() {
            for object in store.across(at, &kind) {
                shown.insert(object.key.cluster.clone(), (at.clone(), Arc::clone(object)));
            }
        }
        let gone: Vec<ClusterId> =
            self.workspaces.keys().filter(|cluster| !shown.contains_key(*cluster)).cloned().collect();
        for cluster in gone {
            let Some(workspace) = self.workspaces.remove(&cluster) else { continue };
            orders.push(Order::Leave(workspace.place, cluster));
            orders.push(Order::Forget(workspace.reached));
        }
        for (cluster, (at, object)) in shown {
            let waits_for = self.ours(&at, &object);
            let workspace = self.workspaces.entry(cluster).or_insert_with(|| Workspace {
                place: at,
                waits_for: Vec::new(),
                run: None,
                reached: BTreeSet::new(),
                due: Moment::default(),
                failures: 0,
            });
            // While it is prepared, what is shown of it lags behind.
            if workspace.run.is_none() {
                workspace.waits_for = waits_for;
            }
        }
    }

    /// What of ours a workspace waits for that a view shows. One may be of both types; then the view of the other is at the
    /// same shard.
    fn ours(&self, at: &PlaceId, object: &Object) -> Vec<(&'static str, Name)> {
        let listed = object.get(&["status", "initializers"]).into_iter().flat_map(Raw::elements);
        let listed: BTreeSet<String> = listed.filter_map(|one| Some(one.as_str()?.into_owned())).collect();
        let Some(shard) = self.views.get(at).map(|view| shard(&view.url)) else { return Vec::new() };
        let here = self.views.values().filter(|view| self::shard(&view.url) == shard);
        let waits = here.filter(|view| listed.contains(&initializer(&self.provider, view.of)));
        waits.map(|view| (view.of, view.url.clone())).collect()
    }
}

impl Workspace {
    /// Begins with the first of ours that it waits for.
    fn begin(
        &mut self,
        cluster: &ClusterId,
        provider: &ClusterId,
        manager: &Name,
        orders: &mut Vec<Order>,
    ) -> Option<Next> {
        let (of, view) = self.waits_for.first()?;
        let (_, rights) = TYPES.into_iter().find(|(known, _)| known == of)?;
        let initializer = initializer(provider, of);
        let reached = waiting_cluster(&initializer, cluster);
        if self.reached.insert(reached.clone()) {
            let (view, workspace) = (view.clone(), cluster.clone());
            orders.push(Order::ReachWaiting { cluster: reached.clone(), view, workspace });
        }
        let (run, next) = Preparation::begin(&reached, &initializer, rights(), manager);
        self.run = Some(run);
        Some(next)
    }

    fn fails(&mut self, workspace: &ClusterId, fault: &Fault) {
        self.failures = self.failures.saturating_add(1);
        // What passes by itself, as where another process does it, is no news.
        if self.failures == USUAL_FAILURES && !fault.passes() {
            tracing::warn!(%workspace, %fault, "a new workspace waits, because the center cannot be let in");
        } else {
            tracing::debug!(%workspace, %fault, "a new workspace could not be prepared");
        }
    }
}

fn ask(
    next: Next,
    cluster: &ClusterId,
    asked: &mut BTreeMap<CallId, ClusterId>,
    fresh: &mut impl FnMut() -> CallId,
    orders: &mut Vec<Order>,
) {
    if let Next::Call(call) = next {
        let id = fresh();
        asked.insert(id, cluster.clone());
        orders.push(Order::Call(id, call));
    }
}

/// What a type is called among what a workspace waits for.
fn initializer(provider: &ClusterId, of: &str) -> String {
    format!("{provider}:{of}")
}

/// The views in which those are seen who wait for a type: none if nobody does.
fn views_of(of: &Object) -> BTreeSet<Name> {
    if of.get(&["spec", "initializer"]).is_none_or(|waits| waits.json() != "true") {
        return BTreeSet::new();
    }
    let listed = of.get(&["status", "virtualWorkspaces"]).into_iter().flat_map(Raw::elements);
    let urls = listed.filter_map(|view| Some(Name::new(&view.member("url")?.as_str()?)));
    urls.filter(|url| url.contains(VIEW_OF_WAITING)).collect()
}

/// The part of a view's address that says at which shard it is.
fn shard(url: &str) -> &str {
    url.split_once(VIEW_OF_WAITING).map_or(url, |(shard, _)| shard)
}

fn place(of: &str, url: &str) -> PlaceId {
    let shard = shard(url).split_once("://").map_or("", |(_, shard)| shard);
    PlaceId(Name::new(&format!("waiting/{of}/{shard}")))
}

#[cfg(test)]
mod tests;
