//! Status of what runs at one edge only, returned into the object that it was made from.
//!
//! A placement may declare that each of its objects is meant for exactly one edge. Then the object says in an
//! annotation to how many it really goes, over all placements of its workspace, and while that is one its
//! status comes back.

use std::collections::BTreeSet;
use std::sync::Arc;

use mailboat_api::names::annotation;
use mailboat_engine::mark::Marks;
use mailboat_engine::route::{
    Destination, DestinationId, Route, RouteHead, RouteId, Selected, Sources, View,
};
use mailboat_engine::want::{Body, Delivery, Hold, Origin, Policy, StatusReturn, Want, Withdrawal};
use mailboat_object::digest::Digest;
use mailboat_object::key::{ClusterId, KindId, Name};
use mailboat_object::object::Object;
use serde_json::{Value, json};

use crate::body::body;
use crate::what::What;

/// What the placements of one workspace ask to have returned.
#[derive(Clone, Debug, Default)]
pub struct Singletons {
    placements: Vec<Asking>,
    /// Kinds whose status is a part of the object like any other: their server has no status subresource for them.
    inline: BTreeSet<KindId>,
}

#[derive(Clone, Debug)]
struct Asking {
    what: Arc<What>,
    to: Arc<[DestinationId]>,
    wanted: bool,
}

impl Singletons {
    /// Nothing yet, in a workspace where these kinds have no status subresource.
    pub fn without_subresource(inline: BTreeSet<KindId>) -> Self {
        Self { placements: Vec::new(), inline }
    }

    /// How a status is written into an object of a kind.
    pub(super) fn way_back(&self, kind: &KindId) -> StatusReturn {
        if self.inline.contains(kind) { StatusReturn::Inline } else { StatusReturn::Subresource }
    }

    /// Adds a placement: what it selects, where it goes, and whether it wants status back.
    pub fn add(&mut self, what: Arc<What>, to: Arc<[DestinationId]>, wanted: bool) {
        self.placements.push(Asking { what, to, wanted });
    }

    /// To how many edges an object goes; `None` if no placement that selects it asks.
    pub fn executing_count(&self, source: &Object, view: &View<'_>) -> Result<Option<usize>, Hold> {
        if !self.any_wanted() || !has_status_of_interest(&source.key.kind) {
            return Ok(None);
        }
        let mut wanted = false;
        let mut selecting = Vec::new();
        for placement in &self.placements {
            if placement.what.select(source, view)?.is_some() {
                wanted |= placement.wanted;
                selecting.push(&placement.to);
            }
        }
        Ok(wanted.then(|| match selecting.as_slice() {
            [alone] => alone.len(),
            many => many.iter().flat_map(|to| to.iter()).collect::<BTreeSet<_>>().len(),
        }))
    }

    /// Whether and how the status of the copy at one of these destinations returns: it is asked for, and this is the only
    /// destination whatever placement selects the object.
    pub(super) fn returns_status(
        &self,
        source: &Object,
        to: &[DestinationId],
        view: &View<'_>,
    ) -> Result<StatusReturn, Hold> {
        // Asked for every copy: what goes to many edges is told apart before anything else is looked at.
        if to.len() != 1 || self.executing_count(source, view)? != Some(1) {
            return Ok(StatusReturn::Off);
        }
        Ok(self.way_back(&source.key.kind))
    }

    /// Whether these count every object as others do.
    pub fn counts_like(&self, other: &Self) -> bool {
        let same = |(one, other): (&Asking, &Asking)| {
            Arc::ptr_eq(&one.what, &other.what) && one.to == other.to && one.wanted == other.wanted
        };
        (!self.any_wanted() && !other.any_wanted())
            || (self.placements.len() == other.placements.len()
                && self.inline == other.inline
                && self.placements.iter().zip(&other.placements).all(same))
    }

    pub(super) fn any_wanted(&self) -> bool {
        self.placements.iter().any(|placement| placement.wanted)
    }
}

/// What a CRD or a Namespace reports is about its own server.
fn has_status_of_interest(kind: &KindId) -> bool {
    !matches!(
        (kind.group(), kind.resource()),
        ("", "namespaces")
            | ("apiextensions.k8s.io", "customresourcedefinitions")
            | ("apis.kcp.io", "apibindings")
    )
}

/// Keeps the annotation with the count on the objects of one workspace.
pub struct SingletonRoute {
    head: RouteHead,
    singletons: Arc<Singletons>,
    to: Arc<[DestinationId]>,
    counting: Arc<Policy>,
    /// The same, and the status that came from the one edge is taken away.
    clearing: Arc<Policy>,
    /// The same, where the status is a part of the object like any other.
    clearing_inline: Arc<Policy>,
}

impl SingletonRoute {
    /// The route of a workspace; `here` is that workspace as a destination.
    pub fn new(
        workspace: &ClusterId,
        here: DestinationId,
        singletons: Arc<Singletons>,
        sources: Vec<Sources>,
        configuration: Digest,
        marks: Arc<dyn Marks>,
    ) -> Self {
        Self {
            head: RouteHead::new(Self::id_of(workspace).0).reading(sources).configured(configuration),
            singletons,
            to: Arc::from([here]),
            counting: policy(StatusReturn::Off, Arc::clone(&marks)),
            clearing: policy(StatusReturn::Subresource, Arc::clone(&marks)),
            clearing_inline: policy(StatusReturn::Inline, marks),
        }
    }

    /// The name of a workspace's route, the same over restarts.
    pub fn id_of(workspace: &ClusterId) -> RouteId {
        RouteId(Name::new(&format!("executing-count/{workspace}")))
    }

    /// What an object is to say, and whether it says the status of one edge while it does not go to one. One that is not
    /// asked about any more says so until that status is gone.
    fn count(&self, source: &Object, view: &View<'_>) -> Result<Option<(usize, bool)>, Hold> {
        let has_status = source.status_json().is_some_and(|status| !matches!(status, b"{}" | b"null"));
        let has_status_of_one = has_status && says_one(source);
        Ok(match self.singletons.executing_count(source, view)? {
            Some(count) => Some((count, count != 1 && has_status_of_one)),
            None => has_status_of_one.then_some((0, true)),
        })
    }
}

/// Whether an object says that it goes to one edge, which is when its status is that of its copy. It says so until that
/// status is taken away: then what is to be done is known also after a restart.
fn says_one(source: &Object) -> bool {
    source.annotation(annotation::EXECUTING_COUNT).is_some_and(|count| count == "1")
}

fn policy(status: StatusReturn, marks: Arc<dyn Marks>) -> Arc<Policy> {
    let (delivery, withdrawal) = (Delivery::Overlay, Withdrawal::Leave);
    Arc::new(Policy { delivery, withdrawal, status, ..Policy::plain(marks) })
}

impl Route for SingletonRoute {
    fn head(&self) -> &RouteHead {
        &self.head
    }

    fn destinations(&self) -> Option<&[DestinationId]> {
        Some(&self.to)
    }

    fn select(&self, source: &Object, view: &View<'_>) -> Result<Selected, Hold> {
        Ok(match self.count(source, view)? {
            Some(_) => {
                Selected { to: Arc::clone(&self.to), by: Name::new("spec.wantSingletonReportedState") }
            }
            None => Selected::nowhere(),
        })
    }

    fn project(&self, source: &Object, _: &Destination, view: &View<'_>) -> Result<Vec<Want>, Hold> {
        let Some((count, clears)) = self.count(source, view)? else { return Ok(Vec::new()) };
        let mut object = json!({
            "apiVersion": source.api_version(),
            "kind": source.kind_name(),
            "metadata": {
                "name": source.key.name.as_str(),
                "annotations": { annotation::EXECUTING_COUNT: count.to_string() },
            },
        });
        if !source.key.namespace.is_empty() {
            object["metadata"]["namespace"] = json!(source.key.namespace.as_str());
        }
        let policy = match (clears, self.singletons.way_back(&source.key.kind)) {
            (false, _) => &self.counting,
            (true, StatusReturn::Inline) => &self.clearing_inline,
            (true, _) => &self.clearing,
        };
        Ok(vec![Want {
            slot: source.key.clone(),
            origin: Origin::of(source),
            body: body(&object),
            policy: Arc::clone(policy),
        }])
    }

    fn report(&self, source: &Object, _: &Object, view: &View<'_>) -> Result<Option<Body>, Hold> {
        let clears = self.count(source, view)?.is_some_and(|(_, clears)| clears);
        Ok(clears.then(|| body(&Value::Null)))
    }
}
