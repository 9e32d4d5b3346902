//! Three small roles: routes like the translator's, the edge syncer's and the publisher's.

use std::sync::{Arc, LazyLock};

use mailboat_engine::mark::{OwnerId, StandardMarks};
use mailboat_engine::route::{Destination, DestinationId, Route, RouteHead, Selected, Sources, View};
use mailboat_engine::want::{Body, Hold, Origin, Policy, StatusReturn, Want};
use mailboat_object::digest::digest_of_value;
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::Object;
use mailboat_store::interest::PlaceId;
use serde_json::{Value, json};

use crate::manners::{Manner, Manners};
use crate::script::Workspace;

/// Whose all copies in the simulated world are.
pub(crate) const OWNER: &str = "sim";
/// Under which field manager they are written.
pub(crate) const MANAGER: &str = "mailboat-sim";
/// The finalizer on sources that wait for their copies.
pub(crate) const FINALIZER: &str = "mailboat.dev/sim";
/// The label by which placements select.
pub(crate) const PLACE_LABEL: &str = "place";
/// What copies from the mailbox are called at the edge, before the source's name.
pub(crate) const MAILBOX_PREFIX: &str = "mb-";

/// What copies from a bound workspace are called at the edge, before the source's name.
pub(crate) fn bound_prefix(number: u8) -> String {
    format!("b{number}-")
}

/// What tells a route to carry all that stands in a workspace: the name of an object among the placements. None of the
/// workload workspace, where each placement is a route.
pub(crate) fn configured_by(workspace: Workspace) -> Option<&'static str> {
    match workspace {
        Workspace::Workload => None,
        Workspace::Mailbox => Some("syncer"),
        Workspace::Bound(_) => Some("publisher"),
    }
}

/// The workload workspace.
pub(crate) fn workload() -> ClusterId {
    static ONE: LazyLock<ClusterId> = LazyLock::new(|| ClusterId::new("workload"));
    ONE.clone()
}

/// The mailbox workspace.
pub(crate) fn mailbox() -> ClusterId {
    static ONE: LazyLock<ClusterId> = LazyLock::new(|| ClusterId::new("mailbox"));
    ONE.clone()
}

/// A workspace that binds the export, by its number.
pub(crate) fn bound(number: u8) -> ClusterId {
    static ALL: LazyLock<Vec<ClusterId>> = LazyLock::new(|| numbered("bound"));
    ALL[usize::from(number)].clone()
}

/// Where the export lives. It serves what it exports, whoever binds it.
pub(crate) fn provider() -> ClusterId {
    static ONE: LazyLock<ClusterId> = LazyLock::new(|| ClusterId::new("provider"));
    ONE.clone()
}

/// The view over all workspaces that bind the export.
pub(crate) fn view() -> PlaceId {
    static ONE: LazyLock<PlaceId> = LazyLock::new(|| PlaceId::new("view"));
    ONE.clone()
}

/// An edge, by its number.
pub(crate) fn edge(number: u8) -> ClusterId {
    static ALL: LazyLock<Vec<ClusterId>> = LazyLock::new(|| numbered("edge"));
    ALL[usize::from(number)].clone()
}

/// Clusters of a sort, by their numbers. All these names are asked for at every turn, and made once.
fn numbered(sort: &str) -> Vec<ClusterId> {
    (0..=u8::MAX).map(|number| ClusterId::new(&format!("{sort}{number}"))).collect()
}

/// What is delivered.
pub(crate) fn boats() -> KindId {
    static ONE: LazyLock<KindId> = LazyLock::new(|| KindId::new("example.dev", "boats"));
    ONE.clone()
}

/// What is exported and bound, and delivered as boats.
pub(crate) fn skiffs() -> KindId {
    static ONE: LazyLock<KindId> = LazyLock::new(|| KindId::new("example.dev", "skiffs"));
    ONE.clone()
}

/// kcp's bindings.
pub(crate) fn bindings() -> KindId {
    static ONE: LazyLock<KindId> = LazyLock::new(|| KindId::new("apis.kcp.io", "apibindings"));
    ONE.clone()
}

/// The definitions of kinds that are not bound.
pub(crate) fn definitions() -> KindId {
    static ONE: LazyLock<KindId> =
        LazyLock::new(|| KindId::new("apiextensions.k8s.io", "customresourcedefinitions"));
    ONE.clone()
}

/// What is configured.
pub(crate) fn placements() -> KindId {
    static ONE: LazyLock<KindId> = LazyLock::new(|| KindId::new("sim.mailboat.dev", "placements"));
    ONE.clone()
}

/// Namespaces, at the center and at edges.
pub(crate) fn namespaces() -> KindId {
    static ONE: LazyLock<KindId> = LazyLock::new(|| KindId::new("", "namespaces"));
    ONE.clone()
}

/// What namespaces are called, by their number.
pub(crate) const NAMESPACES: [&str; 2] = ["even", "odd"];

/// The namespace of a source and of its copies, which goes by the number that their names end with.
pub(crate) fn namespace_of(name: &str) -> Name {
    static ALL: LazyLock<[Name; 2]> = LazyLock::new(|| NAMESPACES.map(Name::new));
    let odd = name.ends_with(['1', '3', '5', '7', '9']);
    ALL[usize::from(odd)].clone()
}

/// The key of an object of the simulated world. What is delivered stands in a namespace, and nothing else does.
pub(crate) fn key(cluster: ClusterId, kind: KindId, name: &str) -> Key {
    let namespaced = kind == boats() || kind == skiffs();
    let namespace = if namespaced { namespace_of(name) } else { Name::EMPTY };
    Key { cluster, kind, namespace, name: Name::new(name) }
}

/// The marks on all copies.
pub(crate) fn marks() -> StandardMarks {
    StandardMarks::new(OwnerId(Name::new(OWNER)))
}

/// A route from one workspace: of sources with a label, to some edges.
pub(crate) struct SimRoute {
    head: RouteHead,
    label: Option<String>,
    to: Arc<[DestinationId]>,
    prefix: fn(&ClusterId) -> String,
    policy: Arc<Policy>,
}

fn policy(status: StatusReturn, finalizer: bool, manner: Manner) -> Arc<Policy> {
    Arc::new(manner.applied_to(Policy { status, finalizer, ..Policy::plain(Arc::new(marks())) }))
}

fn sources(cluster: &ClusterId) -> [Sources; 1] {
    [Sources { place: PlaceId(cluster.0.clone()), cluster: Some(cluster.clone()), kind: boats() }]
}

impl SimRoute {
    /// Whether a source of the workload workspace goes to an edge, by its number.
    pub(crate) fn places(&self, source: &Object, edge: u8) -> bool {
        let selected = self
            .label
            .as_ref()
            .is_some_and(|label| source.label(PLACE_LABEL).is_some_and(|own| own == *label));
        selected && self.to.iter().any(|to| to.0 == u32::from(edge))
    }
}

/// The route that an object among the placements asks for.
pub(crate) fn route_of(placement: &Object, waits: bool, manners: Manners) -> SimRoute {
    let manner = manners.of(&placement.key.name);
    match placement.key.name.as_str() {
        "syncer" => edge_syncer(waits, manner),
        "publisher" => publisher(manner),
        _ => translator(placement, waits, manner),
    }
}

/// The translator's route of one placement, from the placement as it was seen. Its sources wait for their copies, or do not.
fn translator(placement: &Object, waits: bool, manner: Manner) -> SimRoute {
    let spec = placement.get(&["spec"]).map_or(Value::Null, mailboat_object::Raw::to_value);
    let edges = spec["edges"].as_array().into_iter().flatten().filter_map(Value::as_u64);
    let name = Name::new(&format!("placement/{}", placement.key.name));
    SimRoute {
        // It goes elsewhere with what it selects, as a placement does when its edges change.
        head: RouteHead::new(name)
            .reading(sources(&workload()))
            .configured(digest_of_value(&spec))
            .selecting_by(digest_of_value(&spec["label"])),
        label: Some(spec["label"].as_str().unwrap_or_default().to_owned()),
        to: edges.filter_map(|edge| u32::try_from(edge).ok()).map(DestinationId).collect(),
        prefix: |_| String::new(),
        policy: policy(StatusReturn::Off, waits, manner),
    }
}

/// The edge syncer's route: all that stands in the mailbox, to the first edge, and its status back.
fn edge_syncer(waits: bool, manner: Manner) -> SimRoute {
    let name = Name::new("syncer");
    SimRoute {
        head: RouteHead::new(name).reading(sources(&mailbox())).configured(digest_of_value(&json!("syncer"))),
        label: None,
        to: Arc::new([DestinationId(0)]),
        prefix: |_| MAILBOX_PREFIX.to_owned(),
        policy: policy(StatusReturn::Subresource, waits, manner),
    }
}

/// The publisher's route: all that the view shows, as another kind, to the first edge, and its status back.
fn publisher(manner: Manner) -> SimRoute {
    let name = Name::new("publisher");
    SimRoute {
        head: RouteHead::new(name)
            .reading([Sources { place: view(), cluster: None, kind: skiffs() }])
            .configured(digest_of_value(&json!("publisher"))),
        label: None,
        to: Arc::new([DestinationId(0)]),
        prefix: |cluster| cluster.0.replace("bound", "b") + "-",
        policy: policy(StatusReturn::Subresource, false, manner),
    }
}

impl Route for SimRoute {
    fn head(&self) -> &RouteHead {
        &self.head
    }

    fn select(&self, source: &Object, _: &View<'_>) -> Result<Selected, Hold> {
        let selected = match &self.label {
            Some(label) => source.label(PLACE_LABEL).is_some_and(|own| own == *label),
            None => true,
        };
        if !selected {
            return Ok(Selected::nowhere());
        }
        Ok(Selected { to: Arc::clone(&self.to), by: Name::new("spec.label") })
    }

    fn project(&self, source: &Object, to: &Destination, _: &View<'_>) -> Result<Vec<Want>, Hold> {
        let name = format!("{}{}", (self.prefix)(&source.key.cluster), source.key.name);
        let spec = source.get(&["spec"]).map_or(Value::Null, mailboat_object::Raw::to_value);
        let slot = key(to.cluster.clone(), boats(), &name);
        let body = json!({
            "apiVersion": "example.dev/v1", "kind": "Boat",
            "metadata": { "namespace": slot.namespace.as_str(), "name": name }, "spec": spec,
        });
        Ok(vec![Want {
            slot,
            origin: Origin::of(source),
            body: Body { digest: digest_of_value(&body), json: Arc::from(body.to_string().into_bytes()) },
            policy: Arc::clone(&self.policy),
        }])
    }

    fn changes_at(&self, before: &dyn Route) -> Option<Vec<DestinationId>> {
        let before: &Self = (before as &dyn std::any::Any).downcast_ref()?;
        let manner = |route: &Self| {
            let Policy { delivery, status, withdrawal, finalizer, adopt, .. } = &*route.policy;
            format!("{delivery:?} {status:?} {withdrawal:?} {finalizer:?} {adopt:?}")
        };
        let changed = |to: &&DestinationId| !(self.to.contains(to) && before.to.contains(to));
        let changed = self.to.iter().chain(before.to.iter()).filter(changed).copied();
        (manner(self) == manner(before)).then(|| changed.collect())
    }

    fn report(&self, _: &Object, target: &Object, _: &View<'_>) -> Result<Option<Body>, Hold> {
        Ok(target.status_json().map(|status| Body { json: Arc::from(status), digest: target.status }))
    }
}
