//! Four small routes, one for each role, and the marks that they share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mailboat_engine::mark::{OwnerId, StandardMarks};
use mailboat_engine::route::{Destination, DestinationId, Route, RouteHead, Selected, Sources, View};
use mailboat_engine::want::{Body, Hold, Origin, Policy, StatusReturn, Want};
use mailboat_object::digest::{Digest, digest_of, digest_of_value};
use mailboat_object::key::{Key, KindId, Name};
use mailboat_object::object::Object;
use mailboat_store::interest::PlaceId;
use mailboat_store::seen::Seen;
use serde_json::{Value, json};

use crate::server::key;

pub(crate) fn marks() -> StandardMarks {
    StandardMarks::new(OwnerId(Name::new("test")))
}

pub(crate) fn policy() -> Policy {
    Policy::plain(Arc::new(marks()))
}

type Select = dyn Fn(&Object, &View<'_>) -> Result<Vec<u32>, Hold> + Send + Sync;
type Project = dyn Fn(&Object, &Destination, &View<'_>) -> Result<Vec<(Key, Value)>, Hold> + Send + Sync;

/// A configuration of this edition.
pub(crate) fn edition(number: u64) -> Digest {
    digest_of_value(&json!(number))
}

/// A route whose selection and projection are given as functions.
pub(crate) struct Skeleton {
    pub(crate) head: RouteHead,
    pub(crate) seeks: Vec<KindId>,
    /// Kinds of which it makes copies that are their own, beside its source: of the object of the source's name.
    pub(crate) relates: Vec<KindId>,
    pub(crate) select: Box<Select>,
    pub(crate) project: Box<Project>,
    pub(crate) policy: Arc<Policy>,
    /// Whether it does not say so.
    pub(crate) hides_relations: bool,
    /// Whether what a source is depends on where it goes.
    pub(crate) varies: bool,
    /// Whether it asks for nothing but its sources, whatever is served.
    pub(crate) asks_for_sources_alone: bool,
    /// All that it may ever go to, if it says so.
    pub(crate) destinations: Option<Vec<DestinationId>>,
    /// Where it goes, if it says so when that changes.
    pub(crate) goes_to: Option<Vec<u32>>,
    /// How often something was projected.
    pub(crate) projections: Arc<AtomicUsize>,
    /// How often it was asked where something goes.
    pub(crate) selections: Arc<AtomicUsize>,
}

impl Skeleton {
    fn new(
        name: &str,
        cluster: &str,
        kind: &str,
        policy: Policy,
        select: Box<Select>,
        project: Box<Project>,
    ) -> Self {
        let kind = key(cluster, kind, "", "").kind;
        Self {
            head: RouteHead::new(Name::new(name)).configured(edition(1)).reading([Sources {
                place: PlaceId::new(cluster),
                cluster: Some(mailboat_object::key::ClusterId::new(cluster)),
                kind,
            }]),
            seeks: Vec::new(),
            relates: Vec::new(),
            select,
            project,
            policy: Arc::new(policy),
            hides_relations: false,
            varies: true,
            asks_for_sources_alone: false,
            destinations: None,
            goes_to: None,
            projections: Arc::default(),
            selections: Arc::default(),
        }
    }
}

impl Route for Skeleton {
    fn head(&self) -> &RouteHead {
        &self.head
    }
    fn destinations(&self) -> Option<&[DestinationId]> {
        self.destinations.as_deref()
    }
    fn asks_for(&self, kind: &KindId) -> bool {
        !self.asks_for_sources_alone || self.head.sources.iter().any(|sources| sources.kind == *kind)
    }
    fn seeks(&self) -> &[KindId] {
        &self.seeks
    }
    fn relates(&self) -> &[KindId] {
        if self.hides_relations { &[] } else { &self.relates }
    }
    fn select(&self, source: &Object, view: &View<'_>) -> Result<Selected, Hold> {
        self.selections.fetch_add(1, Ordering::Relaxed);
        let to: Vec<DestinationId> = (self.select)(source, view)?.into_iter().map(DestinationId).collect();
        if to.is_empty() {
            return Ok(Selected::nowhere());
        }
        Ok(Selected { to: to.into(), by: Name::new("spec.downsync[0]") })
    }
    fn project(&self, source: &Object, to: &Destination, view: &View<'_>) -> Result<Vec<Want>, Hold> {
        self.projections.fetch_add(1, Ordering::Relaxed);
        let wants = (self.project)(source, to, view)?;
        let origin = Origin::of(source);
        Ok(wants
            .into_iter()
            .map(|(slot, mut body)| {
                body["metadata"]["name"] = json!(slot.name.as_str());
                if !slot.namespace.is_empty() {
                    body["metadata"]["namespace"] = json!(slot.namespace.as_str());
                }
                let related = self.relates.iter().find(|kind| **kind == slot.kind);
                let related = related.map(|kind| Key { kind: kind.clone(), ..source.key.clone() });
                let origin = match related.map(|related| view.get(&related)) {
                    Some(Seen::Present(related)) => Origin::of(related),
                    _ => origin.clone(),
                };
                let json: Arc<[u8]> = Arc::from(body.to_string().into_bytes());
                let digest = digest_of(&json).unwrap();
                Want { slot, origin, body: Body { json, digest }, policy: Arc::clone(&self.policy) }
            })
            .collect())
    }
    fn varies(&self, _: &Object) -> bool {
        self.varies
    }
    fn changes_at(&self, before: &dyn Route) -> Option<Vec<DestinationId>> {
        let before: &Self = (before as &dyn std::any::Any).downcast_ref()?;
        let manner = |route: &Self| {
            let Policy { delivery, status, withdrawal, finalizer, adopt, .. } = &*route.policy;
            format!("{delivery:?} {status:?} {withdrawal:?} {finalizer:?} {adopt:?} {}", route.varies)
        };
        let (now, then) = (self.goes_to.as_ref()?, before.goes_to.as_ref()?);
        let changed = |to: &&u32| !(now.contains(to) && then.contains(to));
        let changed = now.iter().chain(then).filter(changed).map(|to| DestinationId(*to));
        (manner(self) == manner(before)).then(|| changed.collect())
    }
    fn report(&self, _: &Object, target: &Object, _: &View<'_>) -> Result<Option<Body>, Hold> {
        Ok(target.status_json().map(|status| Body { json: Arc::from(status), digest: target.status }))
    }
}

fn at(to: &Destination, source: &Object) -> Key {
    Key { cluster: to.cluster.clone(), ..source.key.clone() }
}

fn data(source: &Object) -> Value {
    let mut body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": {} });
    if let Some(data) = source.get(&["data"]) {
        body["data"] = data.to_value();
    }
    body
}

/// The translator: a workspace's ConfigMaps to mailboxes, customized by what stands in another object.
pub(crate) fn translator(name: &str, destinations: &[u32]) -> Skeleton {
    let destinations = destinations.to_vec();
    let project = |source: &Object, to: &Destination, view: &View<'_>| {
        let mut body = data(source);
        if let Some(customizer) = source.annotation("customizer") {
            let wanted = key("workload", "customizers", "", &customizer);
            match view.get(&wanted) {
                Seen::Present(found) => {
                    body["data"]["custom"] =
                        found.get(&["value"]).map_or(Value::Null, mailboat_object::Raw::to_value);
                }
                _ => return Err(Hold { reason: "its customizer is missing".to_owned(), on: Some(wanted) }),
            }
        }
        Ok(vec![(at(to, source), body)])
    };
    let select = move |source: &Object, _: &View<'_>| {
        Ok(if source.label("place").is_some() { destinations.clone() } else { vec![] })
    };
    Skeleton::new(name, "workload", "configmaps", policy(), Box::new(select), Box::new(project))
}

/// The edge syncer: everything in a mailbox to its cluster; status comes back.
pub(crate) fn edge_syncer(name: &str, from: &str, to: u32) -> Skeleton {
    returning(name, from, to, StatusReturn::Subresource)
}

/// The same, and status comes back in this way.
pub(crate) fn returning(name: &str, from: &str, to: u32, status: StatusReturn) -> Skeleton {
    let policy = Policy { status, ..policy() };
    let project = |source: &Object, to: &Destination, _: &View<'_>| Ok(vec![(at(to, source), data(source))]);
    Skeleton::new(name, from, "configmaps", policy, Box::new(move |_, _| Ok(vec![to])), Box::new(project))
}

/// The workload syncer: a finalizer on the source, and another namespace at the cluster.
pub(crate) fn workload_syncer(name: &str, from: &str, to: u32) -> Skeleton {
    let policy = Policy { finalizer: true, ..policy() };
    let project = |source: &Object, to: &Destination, _: &View<'_>| {
        let slot =
            Key { namespace: Name::new(&format!("mapped-{}", source.key.namespace)), ..at(to, source) };
        Ok(vec![(slot, data(source))])
    };
    Skeleton::new(name, from, "configmaps", policy, Box::new(move |_, _| Ok(vec![to])), Box::new(project))
}

/// The publisher: a tenant's object under a derived name, and a related object with it.
pub(crate) fn publisher(name: &str, tenant: &'static str, to: u32) -> Skeleton {
    let project = move |source: &Object, to: &Destination, view: &View<'_>| {
        let slot = Key { name: Name::new(&format!("{tenant}-{}", source.key.name)), ..at(to, source) };
        let mut wants = vec![(slot, data(source))];
        let related = key(tenant, "secrets", &source.key.namespace, &source.key.name);
        if let Seen::Present(secret) = view.get(&related) {
            let slot =
                key(to.cluster.0.as_str(), "secrets", &source.key.namespace, &format!("{tenant}-related"));
            wants.push((slot, data(secret)));
        }
        Ok(wants)
    };
    Skeleton::new(name, tenant, "configmaps", policy(), Box::new(move |_, _| Ok(vec![to])), Box::new(project))
}
