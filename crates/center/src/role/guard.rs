//! Copies whose workspace the center cannot see.
//!
//! After a restart, a placement that is not shown is not known to have been there. If its workspace lost its binding,
//! or is being deleted, its copies would look like what no placement selects. The marks on copies say where they came
//! from: whatever came from a workspace that nobody vouches for, or is of a kind that is selected there and not served
//! any more, stays as it is.

use std::collections::BTreeSet;
use std::sync::Arc;

use mailboat_api::names::group;
use mailboat_engine::mark::{Marked, Marks};
use mailboat_engine::role::Order;
use mailboat_engine::route::{Destination, Route, RouteHead, Selected, Sources, View};
use mailboat_engine::want::{Body, Hold, Want};
use mailboat_object::key::{ClusterId, KindId, Name};
use mailboat_object::object::Object;
use mailboat_store::interest::PlaceId;
use mailboat_store::store::Store;

use super::workspaces::Workspaces;

/// Where copies came from, and which of those origins cannot be seen.
#[derive(Default)]
pub(super) struct Guard {
    origins: BTreeSet<(ClusterId, KindId)>,
    held: BTreeSet<(ClusterId, KindId)>,
}

impl Guard {
    /// A copy in a mailbox was seen.
    pub(super) fn observe(&mut self, copy: &Object, provider: &ClusterId, marks: &dyn Marks) {
        if let Marked::Ours(mark) = marks.read(copy)
            && mark.origin.key.cluster != *provider
        {
            self.origins.insert((mark.origin.key.cluster, mark.origin.key.kind));
        }
    }

    /// Holds what came from where nobody can see, if that changed.
    pub(super) fn hold(&mut self, store: &Store, workspaces: &Workspaces, orders: &mut Vec<Order>) {
        let placements = KindId::new(group::EDGE, "edgeplacements");
        let vouched = |cluster: &ClusterId| {
            store.range(cluster, &placements, None).is_ok_and(|range| range.missing().is_ok())
        };
        let unseen = |(cluster, kind): &&(ClusterId, KindId)| {
            let selected_unread = workspaces.may_select(cluster, kind) && !workspaces.follows(cluster, kind);
            !vouched(cluster) || selected_unread
        };
        let held: BTreeSet<_> = self.origins.iter().filter(unseen).cloned().collect();
        if held != self.held {
            for (cluster, kind) in held.difference(&self.held) {
                tracing::warn!(%cluster, %kind, "copies from a workspace that cannot be seen are held as they are");
            }
            let route = Unseen::new(&held);
            orders.push(Order::Configure(route.head.id.clone(), Some(Arc::new(route))));
            self.held = held;
        }
    }
}

/// Reads what cannot be read, and so keeps it from looking like something that nobody selects.
struct Unseen {
    head: RouteHead,
}

impl Unseen {
    fn new(held: &BTreeSet<(ClusterId, KindId)>) -> Self {
        let name = Name::new("unseen");
        let sources = held.iter().map(|(cluster, kind)| Sources {
            place: PlaceId(name.clone()),
            cluster: Some(cluster.clone()),
            kind: kind.clone(),
        });
        Self { head: RouteHead::new(name.clone()).since(u64::MAX).reading(sources) }
    }
}

impl Route for Unseen {
    fn head(&self) -> &RouteHead {
        &self.head
    }

    fn select(&self, _: &Object, _: &View<'_>) -> Result<Selected, Hold> {
        Ok(Selected::nowhere())
    }

    fn project(&self, _: &Object, _: &Destination, _: &View<'_>) -> Result<Vec<Want>, Hold> {
        Ok(Vec::new())
    }

    fn report(&self, _: &Object, _: &Object, _: &View<'_>) -> Result<Option<Body>, Hold> {
        Ok(None)
    }
}
