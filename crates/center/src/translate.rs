//! A placement as a route: what it selects goes to the mailboxes of where it goes, in the form meant for each.
//!
//! There is one route per EdgePlacement, whatever the number of its edges. Where two placements want the same
//! object in the same mailbox, the older one wins; the engine tells the other.

mod copy;
mod definition;
mod offer;
mod singleton;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_api::names::{annotation, export};
use mailboat_engine::mark::Marks;
use mailboat_engine::route::{Destination, DestinationId, Route, RouteHead, Selected, Sources, View};
use mailboat_engine::want::{Adopt, Body, Delivery, Hold, Origin, Policy, StatusReturn, Want, Withdrawal};
use mailboat_object::digest::{Digest, digest_of};
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::Object;
use mailboat_store::seen::Seen;

use crate::denature;
use crate::what::What;

pub(crate) use copy::OWN_ANNOTATIONS;
pub use copy::form_at;
pub use definition::export_for;
pub(crate) use definition::is_claim;
pub(crate) use offer::{api_exports, api_resource_schemas};
pub use singleton::{SingletonRoute, Singletons};

/// One EdgePlacement, on its way.
pub struct Translator {
    head: RouteHead,
    what: Arc<What>,
    to: Arc<[DestinationId]>,
    /// Those of them whose SyncTargets are there.
    going: Arc<[DestinationId]>,
    edges: BTreeMap<DestinationId, Edge>,
    singletons: Arc<Singletons>,
    provider: Arc<str>,
    provider_cluster: ClusterId,
    policies: Policies,
}

/// One edge that a placement goes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The Location whose labels and annotations are the parameters.
    pub location: Key,
    /// Its SyncTarget is gone: nothing is sent and nothing withdrawn, since the mailbox goes as a whole.
    pub departed: bool,
}

/// What a translator is made from.
pub struct Placed<'p> {
    /// The EdgePlacement.
    pub placement: &'p Object,
    /// What it selects.
    pub what: Arc<What>,
    /// Which kinds it reads, and where.
    pub sources: Vec<Sources>,
    /// Where it goes.
    pub edges: BTreeMap<DestinationId, Edge>,
    /// What the placements of its workspace ask to have returned.
    pub singletons: Arc<Singletons>,
    /// The placement is on its way out: what it placed is still its own, and is neither changed nor made anew.
    pub keeps: bool,
    /// The path of the provider workspace, whose exports every mailbox is bound to.
    pub provider: Arc<str>,
    /// The same workspace by the id of its cluster: what users define is offered there.
    pub provider_cluster: ClusterId,
    /// The marks on copies.
    pub marks: Arc<dyn Marks>,
}

/// The ways in which a copy is looked after, made once.
struct Policies {
    /// The second of each: asked to, it takes over what bears nobody's mark.
    ordinary: [Arc<Policy>; 2],
    returning: [Arc<Policy>; 2],
    returning_inline: [Arc<Policy>; 2],
    /// Namespaces, APIBindings and APIExports: taken away they would take along what others have put there.
    staying: Arc<Policy>,
    /// What the provider workspace offers: the same, and never somebody else's there, which all mailboxes may be bound to.
    offered: Arc<Policy>,
}

impl Translator {
    /// The route of a placement.
    pub fn new(placed: Placed<'_>) -> Self {
        let head = RouteHead::new(route_name(&placed.placement.key))
            .since(placed.placement.created_seconds().unwrap_or_default())
            .configured(specification(placed.placement))
            .selecting_by(specification(placed.placement))
            .reading(placed.sources);
        Self {
            head,
            what: placed.what,
            to: placed.edges.keys().copied().collect(),
            going: placed.edges.iter().filter(|(_, edge)| !edge.departed).map(|(to, _)| *to).collect(),
            edges: placed.edges,
            singletons: placed.singletons,
            provider: placed.provider,
            provider_cluster: placed.provider_cluster,
            policies: Policies::new(&placed.marks, placed.keeps),
        }
    }

    /// Whether an object stands back for one of the same name that is stored denatured beside it, and that goes to the same
    /// place. The one that somebody keeps for the edges alone is the one that is meant for them.
    fn stands_back(&self, source: &Object, view: &View<'_>) -> Result<bool, Hold> {
        let Some(kind) = denature::denatured(&source.key.kind) else { return Ok(false) };
        if !self.head.sources.iter().any(|sources| sources.kind == kind) {
            return Ok(false);
        }
        let twin = Key { kind, ..source.key.clone() };
        match view.get(&twin) {
            Seen::Present(twin) => Ok(self.what.select(twin, view)?.is_some()),
            Seen::Absent(_) => Ok(false),
            Seen::Unknown(doubt) => Err(Hold {
                reason: format!("whether it is also stored denatured is not known: {doubt}"),
                on: Some(twin),
            }),
        }
    }

    /// How a copy is looked after.
    fn policy(&self, source: &Object, view: &View<'_>) -> Result<Arc<Policy>, Hold> {
        if stays_when_unwanted(&source.key.kind) {
            return Ok(Arc::clone(&self.policies.staying));
        }
        let returns = self.singletons.returns_status(source, &self.going, view)?;
        let asked = source.annotation(annotation::ON_CONFLICT);
        let adopts = asked.is_some_and(|asked| asked == annotation::ON_CONFLICT_ADOPT);
        let [plain, adopting] = match returns {
            StatusReturn::Off => &self.policies.ordinary,
            StatusReturn::Subresource => &self.policies.returning,
            StatusReturn::Inline => &self.policies.returning_inline,
        };
        Ok(Arc::clone(if adopts { adopting } else { plain }))
    }
}

impl Route for Translator {
    fn head(&self) -> &RouteHead {
        &self.head
    }

    fn select(&self, source: &Object, view: &View<'_>) -> Result<Selected, Hold> {
        // A mailbox is bound to the provider's exports already.
        if is_binding_to(source, &self.provider) {
            return Ok(Selected::nowhere());
        }
        Ok(match self.what.select(source, view)? {
            Some(because) if !self.stands_back(source, view)? => {
                Selected { to: Arc::clone(&self.to), by: because.by() }
            }
            _ => Selected::nowhere(),
        })
    }

    fn project(&self, source: &Object, to: &Destination, view: &View<'_>) -> Result<Vec<Want>, Hold> {
        let Some(edge) = self.edges.get(&to.id) else { return Ok(Vec::new()) };
        if edge.departed {
            let reason =
                "its SyncTarget is gone; what stands in the mailbox goes with the mailbox".to_owned();
            return Err(Hold { reason, on: None });
        }
        let origin = Origin::of(source);
        let want = |kind: &KindId, name: &Name, body: Body, policy: &Arc<Policy>| Want {
            slot: Key {
                cluster: to.cluster.clone(),
                kind: kind.clone(),
                namespace: source.key.namespace.clone(),
                name: name.clone(),
            },
            origin: origin.clone(),
            body,
            policy: Arc::clone(policy),
        };
        let staying = &self.policies.staying;
        let at_provider = |kind: &KindId, name: &Name, body: Body| {
            let mut offer = want(kind, name, body, &self.policies.offered);
            offer.slot.cluster = self.provider_cluster.clone();
            offer
        };
        if let Some((name, body)) = definition::binding_of(source, &self.provider)? {
            definition::is_brought_otherwise(source, &name, &to.cluster, view)?;
            let bindings = definition::api_bindings();
            let mut wants = vec![want(&bindings, &name, body, staying)];
            let sent = self.what.kinds_sent(source, view)?;
            for claim in definition::claims_on(source, &sent, &self.provider)? {
                wants.push(at_provider(&api_exports(), &claim.export.0, claim.export.1));
                wants.push(want(&bindings, &claim.binding.0, claim.binding.1, staying));
            }
            return Ok(wants);
        }
        let body = copy::of(source, edge, view)?;
        let policy = self.policy(source, view)?;
        let mut wants = vec![want(&denature::in_mailbox(&source.key.kind), &source.key.name, body, &policy)];
        if let Some((name, body)) = definition::binding_for_definition(source, &self.provider)
            && !definition::is_bound_otherwise(source, view)?
        {
            wants.push(want(&definition::api_bindings(), &name, body, staying));
            let offered = offer::offered(source)?;
            wants.push(at_provider(&api_resource_schemas(), &offered.schema.0, offered.schema.1));
            wants.push(at_provider(&api_exports(), &offered.export.0, offered.export.1));
        }
        Ok(wants)
    }

    fn varies(&self, source: &Object) -> bool {
        // What defines a kind is wanted in the provider workspace as well.
        let defines = offer::is_definition(source) || source.key.kind == definition::api_bindings();
        let departed = self.going.len() < self.to.len();
        departed || copy::is_customized(source) || defines
    }

    fn changes_at(&self, before: &dyn Route) -> Option<Vec<DestinationId>> {
        let before: &Self = (before as &dyn Any).downcast_ref()?;
        // Whether status returns from one edge depends on whether there are others.
        let counts = self.singletons.any_wanted() || before.singletons.any_wanted();
        let alike = Arc::ptr_eq(&self.what, &before.what)
            && self.policies.ordinary[0].delivery == before.policies.ordinary[0].delivery
            && (&self.provider, &self.provider_cluster) == (&before.provider, &before.provider_cluster);
        if counts || !alike {
            return None;
        }
        let all: BTreeSet<&DestinationId> = self.edges.keys().chain(before.edges.keys()).collect();
        let changed = all.into_iter().filter(|to| self.edges.get(to) != before.edges.get(to));
        Some(changed.copied().collect())
    }

    fn report(&self, _: &Object, target: &Object, _: &View<'_>) -> Result<Option<Body>, Hold> {
        Ok(target.status_json().map(|status| Body { json: Arc::from(status), digest: target.status }))
    }
}

impl Policies {
    fn new(marks: &Arc<dyn Marks>, keeps: bool) -> Self {
        let delivery = if keeps { Delivery::Keep } else { Delivery::Apply };
        let policy = |status: StatusReturn, adopt: Adopt, withdrawal: Withdrawal| {
            Arc::new(Policy { delivery, status, withdrawal, adopt, ..Policy::plain(Arc::clone(marks)) })
        };
        let both = |status: StatusReturn| {
            [Adopt::Never, Adopt::Unmarked].map(|adopt| policy(status, adopt, Withdrawal::Delete))
        };
        let off = StatusReturn::Off;
        Self {
            ordinary: both(off),
            returning: both(StatusReturn::Subresource),
            returning_inline: both(StatusReturn::Inline),
            // The namespace may have been ensured for another object before, which is no conflict.
            staying: policy(off, Adopt::Unmarked, Withdrawal::Leave),
            offered: policy(off, Adopt::Never, Withdrawal::Leave),
        }
    }
}

/// What a placement asks for. Not its annotations: a withdrawal is confirmed by one, and must be the same change after that.
pub(crate) fn specification(placement: &Object) -> Digest {
    let spec = placement.get(&["spec"]).and_then(|spec| digest_of(spec.json().as_bytes()).ok());
    spec.unwrap_or(Digest::NONE)
}

/// The name of a placement's route, the same over restarts.
pub fn route_name(placement: &Key) -> Name {
    Name::new(&format!("placement/{}/{}", placement.cluster, placement.name))
}

fn stays_when_unwanted(kind: &KindId) -> bool {
    kind.group().is_empty() && kind.resource() == "namespaces"
}

/// The provider's own exports, which [`crate::init`] makes.
const PROVIDERS_OWN: [&str; 6] =
    [export::EDGE, export::WORKLOAD, export::SCHEDULING, export::COMPUTE, export::MAILBOX, export::DENATURED];

fn is_binding_to(source: &Object, provider: &str) -> bool {
    definition::reference(source)
        .is_some_and(|(path, name)| path == provider && PROVIDERS_OWN.contains(&&*name))
}

#[cfg(test)]
mod tests;
