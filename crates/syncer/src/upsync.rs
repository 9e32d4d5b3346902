//! The route from the edge to the mailbox: the same, turned round.

use std::sync::Arc;

use mailboat_engine::mark::{Marked, Marks};
use mailboat_engine::route::{Destination, DestinationId, Route, RouteHead, Selected, Sources, View};
use mailboat_engine::want::{Body, Delivery, Hold, StatusReturn, Want};
use mailboat_object::catalog::Found;
use mailboat_object::key::{Key, KindId, Name};
use mailboat_object::object::Object;
use mailboat_store::interest::PlaceId;

use crate::carry::{MAILBOX, Policies, adoption, body, origin, version, withdrawal};
use crate::config::Options;
use crate::config::merge::together;
use crate::downsync::Surroundings;
use crate::marks::SyncerMarks;
use crate::renature::Shape;
use crate::select::{belongs_to_its_place, means};

/// The id of the route, and what the breaker counts together.
pub const UPSYNC: &str = "upsync";

/// The route from the edge to the mailbox.
pub struct Upsync {
    head: RouteHead,
    to: Arc<[DestinationId]>,
    around: Surroundings,
    marks: SyncerMarks,
    policies: Policies,
}

impl Upsync {
    /// The route for these surroundings.
    pub fn new(around: Surroundings) -> Self {
        let marks = SyncerMarks::upsynced(around.owner.clone());
        let shared: Arc<dyn Marks> = Arc::new(marks.clone());
        let sources = around.rules.up.keys().map(|kind| Sources {
            place: PlaceId(around.edge.0.clone()),
            cluster: Some(around.edge.clone()),
            kind: kind.clone(),
        });
        Self {
            head: RouteHead::new(Name::new(UPSYNC)).reading(sources).configured(around.rules.configuration),
            to: Arc::new([MAILBOX]),
            marks,
            policies: Policies::new(&shared),
            around,
        }
    }

    fn choose(&self, source: &Object) -> Result<Option<(Name, Options)>, Hold> {
        // A copy that we delivered ourselves does not come up again.
        if belongs_to_its_place(source) || matches!(self.marks.read(source), Marked::Ours(_)) {
            return Ok(None);
        }
        let key = &source.key;
        let rules = self.around.rules.up.get(&key.kind).into_iter().flatten();
        together(rules.filter(|rule| means(&rule.entry, source, &key.namespace, &key.name)))
            .map_err(|why| Hold { reason: why.to_string(), on: Some(key.clone()) })
    }

    fn shape(&self, source: &Object, options: Options) -> Shape {
        if options.renature {
            let serves = |kind: &KindId| matches!(self.around.mailbox_serves.find(kind), Found::Served(_));
            Shape::upward(source, &self.around.rules.conversions, serves)
        } else {
            Shape::of(source)
        }
    }
}

impl Route for Upsync {
    fn head(&self) -> &RouteHead {
        &self.head
    }

    fn asks_for(&self, kind: &KindId) -> bool {
        // They are what entries name, served or not.
        self.head.sources.iter().any(|sources| sources.kind == *kind)
    }

    fn select(&self, source: &Object, _: &View<'_>) -> Result<Selected, Hold> {
        Ok(match self.choose(source)? {
            Some((by, _)) => Selected { to: Arc::clone(&self.to), by },
            None => Selected::nowhere(),
        })
    }

    fn project(&self, source: &Object, to: &Destination, _: &View<'_>) -> Result<Vec<Want>, Hold> {
        let Some((_, options)) = self.choose(source)? else { return Ok(Vec::new()) };
        let shape = self.shape(source, options);
        if !self.around.recorded.contains(&shape.kind) {
            let reason = format!("that {} are brought up is being written down first", shape.kind);
            return Err(Hold { reason, on: None });
        }
        let mailbox = &self.around.mailbox_serves;
        // Where status is a subresource, a write of the object leaves it out.
        let with_status = matches!(mailbox.find(&shape.kind), Found::Served(served) if !served.status);
        let made = body(source, &shape, version(mailbox, &shape.kind), with_status)?;
        let withdrawal = withdrawal(&shape.kind, options.propagation);
        let slot = Key {
            cluster: to.cluster.clone(),
            kind: shape.kind,
            namespace: shape.namespace,
            name: shape.name,
        };
        let policy = self.policies.get(Delivery::Apply, StatusReturn::Off, withdrawal, adoption(source));
        let wants = policy.map(|policy| Want { slot, origin: origin(source), body: made, policy });
        Ok(wants.into_iter().collect())
    }

    /// Nothing goes back to where it was made.
    fn report(&self, _: &Object, _: &Object, _: &View<'_>) -> Result<Option<Body>, Hold> {
        Ok(None)
    }
}
