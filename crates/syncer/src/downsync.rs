//! The route from the mailbox to the edge.

use std::collections::BTreeSet;
use std::sync::Arc;

use mailboat_api::edge::DeletePropagation;
use mailboat_api::names::annotation;
use mailboat_engine::mark::{Marked, Marks, OwnerId};
use mailboat_engine::route::{Destination, DestinationId, Route, RouteHead, Selected, Sources, View};
use mailboat_engine::want::{Adopt, Body, Delivery, Hold, Policy, StatusReturn, Want, Withdrawal};
use mailboat_object::catalog::{Catalog, Found};
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::Object;
use mailboat_store::interest::PlaceId;
use mailboat_store::seen::Seen;
use mailboat_store::store::Store;
use serde_json::json;

use crate::carry::{EDGE, Policies, adoption, body, is_namespace, origin, version, withdrawal};
use crate::config::Options;
use crate::config::merge::{Rule, Rules, together};
use crate::marks::{NoMarks, SyncerMarks};
use crate::renature::{Shape, denatured, natured};
use crate::select::{belongs_to_its_place, means};

/// The id of the route, and what the breaker counts together.
pub const DOWNSYNC: &str = "downsync";

/// Everything that a route of the syncer is made from.
#[derive(Clone)]
pub struct Surroundings {
    /// Whose the copies are.
    pub owner: OwnerId,
    /// The mailbox.
    pub mailbox: ClusterId,
    /// The edge.
    pub edge: ClusterId,
    /// What the configuration asks for.
    pub rules: Arc<Rules>,
    /// What the mailbox serves.
    pub mailbox_serves: Arc<Catalog>,
    /// What the edge serves.
    pub edge_serves: Arc<Catalog>,
    /// The kinds of the mailbox that are followed.
    pub followed: Arc<BTreeSet<KindId>>,
    /// The kinds that were written down before anything of them was delivered.
    pub recorded: Arc<BTreeSet<KindId>>,
}

/// The route from the mailbox to the edge.
pub struct Downsync {
    head: RouteHead,
    to: Arc<[DestinationId]>,
    around: Surroundings,
    marks: SyncerMarks,
    policies: Policies,
    /// For namespaces that only have to be there.
    bare: Arc<Policy>,
}

/// What was chosen for one source.
struct Choice {
    by: Name,
    options: Options,
    shape: Shape,
    /// A namespace that only has to be there; nothing of it travels.
    only_exists: bool,
}

impl Downsync {
    /// The route for these surroundings.
    pub fn new(around: Surroundings) -> Self {
        let marks = SyncerMarks::downsynced(around.owner.clone());
        let shared: Arc<dyn Marks> = Arc::new(marks.clone());
        let sources = around.rules.sources().into_iter().map(|kind| Sources {
            place: PlaceId(around.mailbox.0.clone()),
            cluster: Some(around.mailbox.clone()),
            kind,
        });
        Self {
            head: RouteHead::new(Name::new(DOWNSYNC)).reading(sources).configured(around.rules.configuration),
            to: Arc::new([EDGE]),
            marks,
            policies: Policies::new(&shared),
            bare: Arc::new(Policy {
                delivery: Delivery::CreateOnly,
                withdrawal: Withdrawal::Leave,
                ..Policy::plain(Arc::new(NoMarks))
            }),
            around,
        }
    }

    /// Where a source goes by the configuration alone, and how.
    fn choose(&self, source: &Object) -> Result<Option<Choice>, Hold> {
        // A copy that we brought up ourselves does not go down again.
        if belongs_to_its_place(source) || matches!(self.marks.read(source), Marked::Ours(_)) {
            return Ok(None);
        }
        let rules = &self.around.rules;
        let shape = Shape::downward(source, &rules.conversions);
        let chosen = together(self.rules_for(source, &shape))
            .map_err(|why| Hold { reason: why.to_string(), on: Some(source.key.clone()) })?;
        let (by, options, only_exists) = match chosen {
            Some((by, options)) => (by, options, false),
            None if is_namespace(&shape.kind) && rules.namespaces.contains(&shape.name) => {
                (Name::new("a namespace that entries name"), Options::default(), true)
            }
            None => return Ok(None),
        };
        let shape = if options.renature { shape } else { Shape::of(source) };
        // What comes up does not go down.
        let up = rules.up.get(&shape.kind).into_iter().flatten();
        if up.into_iter().any(|rule| means(&rule.entry, source, &shape.namespace, &shape.name)) {
            return Ok(None);
        }
        Ok(Some(Choice { by, options, shape, only_exists }))
    }

    /// The rules that mean a source: by what it is called in the mailbox, by its real kind, or by what it is called at
    /// the edge.
    fn rules_for<'a>(&'a self, source: &'a Object, shape: &'a Shape) -> impl Iterator<Item = &'a Rule> {
        let down = &self.around.rules.down;
        let key = &source.key;
        let named = |kind: &KindId| down.get(kind).into_iter().flatten();
        let as_it_is = named(&key.kind).filter(|rule| means(&rule.entry, source, &key.namespace, &key.name));
        let real = natured(&key.kind);
        let really = real
            .as_ref()
            .map(named)
            .into_iter()
            .flatten()
            .filter(|rule| rule.entry.options.renature)
            .filter(|rule| means(&rule.entry, source, &key.namespace, &key.name));
        let converted = shape.kind != key.kind || shape.name != key.name || shape.namespace != key.namespace;
        let there = converted
            .then(|| named(&shape.kind))
            .into_iter()
            .flatten()
            .filter(|rule| rule.entry.options.renature)
            .filter(|rule| means(&rule.entry, source, &shape.namespace, &shape.name));
        as_it_is.chain(really.collect::<Vec<_>>()).chain(there)
    }

    /// What is asked for, and stands back for a denatured object that goes to the same place.
    pub fn doubled<'s>(&'s self, store: &'s Store) -> impl Iterator<Item = &'s Arc<Object>> {
        let followed = &self.around.followed;
        let twice = followed.iter().filter(move |kind| followed.contains(&denatured(kind)));
        let natured =
            twice.filter_map(move |kind| store.range(&self.around.mailbox, kind, None).ok()).flatten();
        natured.filter(move |source| {
            let choice = self.choose(source).ok().flatten();
            let stands_back = |choice: Choice| self.stands_back(source, &choice.shape, &View::new(store));
            choice.is_some_and(|choice| stands_back(choice).unwrap_or_default())
        })
    }

    /// Whether a natured object stands back for a denatured one that goes to the same place.
    fn stands_back(&self, source: &Object, shape: &Shape, view: &View<'_>) -> Result<bool, Hold> {
        let twin = Key { kind: denatured(&source.key.kind), ..source.key.clone() };
        if natured(&source.key.kind).is_some() || !self.around.followed.contains(&twin.kind) {
            return Ok(false);
        }
        match view.get(&twin) {
            Seen::Present(twin) => Ok(self.choose(twin)?.is_some_and(|other| {
                let there = |shape: &Shape| (shape.kind.clone(), shape.namespace.clone(), shape.name.clone());
                there(&other.shape) == there(shape)
            })),
            Seen::Absent(_) => Ok(false),
            Seen::Unknown(doubt) => Err(Hold {
                reason: format!("whether it is also stored denatured is not known: {doubt}"),
                on: Some(twin),
            }),
        }
    }

    /// Whether it is a CRD whose instances travel as well. A server deletes every instance with its CRD, also those that
    /// others made, so such a CRD stays at the edge: whoever wants it gone takes its instances out first.
    fn defines_what_travels(&self, shape: &Shape) -> bool {
        is_crd(&shape.kind)
            && shape.name.split_once('.').is_some_and(|(resource, group)| {
                self.around.rules.down.contains_key(&KindId::new(group, resource))
            })
    }

    fn namespace_at_edge(&self, name: &Name) -> Key {
        namespace(&self.around.edge, name)
    }

    /// An object whose namespace travels itself waits for it: made to exist for the object's sake, it would be a
    /// stranger in its own way.
    fn wait_for_namespace(&self, source: &Object, shape: &Shape, view: &View<'_>) -> Result<(), Hold> {
        if shape.namespace.is_empty()
            || matches!(view.get(&self.namespace_at_edge(&shape.namespace)), Seen::Present(_))
        {
            return Ok(());
        }
        let own = namespace(&self.around.mailbox, &source.key.namespace);
        let travels = match view.get(&own) {
            Seen::Absent(_) => false,
            Seen::Present(namespace) => {
                !namespace.deleting && self.choose(namespace)?.is_some_and(|choice| !choice.only_exists)
            }
            Seen::Unknown(_) => self.around.rules.down.contains_key(&own.kind),
        };
        if travels {
            return Err(Hold { reason: "its namespace goes first".to_owned(), on: Some(own) });
        }
        Ok(())
    }

    fn policy(
        &self,
        source: &Object,
        kind: &KindId,
        options: Options,
        delivery: Delivery,
        adopt: Adopt,
    ) -> Option<Arc<Policy>> {
        let withdrawal = withdrawal(kind, options.propagation);
        self.policies.get(delivery, self.status_return(source, options), withdrawal, adopt)
    }

    fn status_return(&self, source: &Object, options: Options) -> StatusReturn {
        let kind = &source.key.kind;
        // kcp's own controllers keep the status of these in the mailbox.
        let kept_there = is_namespace(kind) || is_crd(kind);
        match self.around.mailbox_serves.find(kind) {
            _ if !options.return_status || kept_there => StatusReturn::Off,
            Found::Served(served) if served.status => StatusReturn::Subresource,
            Found::Served(_) => StatusReturn::Inline,
            Found::NotServed | Found::Unknown(_) => StatusReturn::Off,
        }
    }

    fn project_namespace_that_exists(
        &self,
        source: &Object,
        slot: Key,
        view: &View<'_>,
    ) -> Result<Vec<Want>, Hold> {
        match view.get(&slot) {
            Seen::Present(_) => Ok(Vec::new()),
            Seen::Unknown(doubt) => Err(Hold { reason: doubt.to_string(), on: Some(slot) }),
            Seen::Absent(_) => {
                let json = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": slot.name.as_str() } });
                let digest = mailboat_object::digest::digest_of_value(&json);
                let body = Body { json: Arc::from(json.to_string().into_bytes()), digest };
                Ok(vec![Want { slot, origin: origin(source), body, policy: Arc::clone(&self.bare) }])
            }
        }
    }
}

impl Route for Downsync {
    fn head(&self) -> &RouteHead {
        &self.head
    }

    fn asks_for(&self, kind: &KindId) -> bool {
        // They are what entries name, served or not.
        self.head.sources.iter().any(|sources| sources.kind == *kind)
    }

    fn select(&self, source: &Object, view: &View<'_>) -> Result<Selected, Hold> {
        match self.choose(source)? {
            Some(choice) if !self.stands_back(source, &choice.shape, view)? => {
                Ok(Selected { to: Arc::clone(&self.to), by: choice.by })
            }
            _ => Ok(Selected::nowhere()),
        }
    }

    fn project(&self, source: &Object, to: &Destination, view: &View<'_>) -> Result<Vec<Want>, Hold> {
        let Some(Choice { options, shape, only_exists, .. }) = self.choose(source)? else {
            return Ok(Vec::new());
        };
        if !self.around.recorded.contains(&shape.kind) {
            let reason = format!("that {} are delivered is being written down first", shape.kind);
            return Err(Hold { reason, on: None });
        }
        let slot = Key {
            cluster: to.cluster.clone(),
            kind: shape.kind.clone(),
            namespace: shape.namespace.clone(),
            name: shape.name.clone(),
        };
        if only_exists {
            return self.project_namespace_that_exists(source, slot, view);
        }
        self.wait_for_namespace(source, &shape, view)?;
        let made = body(source, &shape, version(&self.around.edge_serves, &shape.kind), false)?;
        let create_only = is_create_only(source);
        let delivery = if create_only { Delivery::CreateOnly } else { Delivery::Apply };
        let mut options = options;
        if create_only || self.defines_what_travels(&shape) {
            options.propagation = DeletePropagation::Orphan;
        }
        let adopt = match adoption(source) {
            Adopt::Never if is_namespace(&slot.kind) && made_by_us(view.get(&slot)) => Adopt::Unmarked,
            asked => asked,
        };
        let policy = self.policy(source, &slot.kind, options, delivery, adopt);
        let wants = policy.map(|policy| Want { slot, origin: origin(source), body: made, policy });
        Ok(wants.into_iter().collect())
    }

    fn report(&self, _: &Object, target: &Object, _: &View<'_>) -> Result<Option<Body>, Hold> {
        Ok(target.status_json().map(|status| Body { json: Arc::from(status), digest: target.status }))
    }
}

/// Whether an object is created once and then left to the edge. Whatever is neither `true` nor empty means so, as it did
/// in KubeStellar: of two readings, the one that overwrites nothing.
fn is_create_only(source: &Object) -> bool {
    source.annotation(annotation::DOWNSYNC_OVERWRITE).is_some_and(|value| !matches!(&*value, "" | "true"))
}

/// A namespace that was made to exist for what is in it, and that nobody else has written since.
fn made_by_us(namespace: Seen<&Arc<Object>>) -> bool {
    namespace.present().is_some_and(|namespace| namespace.hands.other.is_none() && !namespace.deleting)
}

fn namespace(cluster: &ClusterId, name: &Name) -> Key {
    Key {
        cluster: cluster.clone(),
        kind: KindId::new("", "namespaces"),
        namespace: Name::EMPTY,
        name: name.clone(),
    }
}

fn is_crd(kind: &KindId) -> bool {
    kind.group() == "apiextensions.k8s.io" && kind.resource() == "customresourcedefinitions"
}
