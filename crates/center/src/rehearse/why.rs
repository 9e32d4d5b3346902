//! Why an object is where it is, and why it is not where it is not.

use std::collections::BTreeSet;

use mailboat_api::edge::{ObjectReference, SyncerConfigSpec};
use mailboat_api::names::{annotation, group, object as fixed};
use mailboat_engine::mark::Marked;
use mailboat_engine::plan::Action;
use mailboat_engine::route::{Destination, Route as _, RouteId, Selected, View};
use mailboat_object::json::Raw;
use mailboat_object::key::{Key, KindId, Name, Uid};
use mailboat_object::object::Object;
use serde::Serialize;
use serde_json::Value;

use super::{Placement, Rehearsal};
use crate::denature;
use crate::schedule::Leads;
use crate::summary::{Delivery, Named, ObjectId, Report};
use crate::translate::route_name;
use crate::what::{excluded_kind, excluded_object};

/// All that can be said of one object.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// The object.
    pub object: ObjectReference,
    /// When it was last changed, in Unix seconds, if its server says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<u64>,
    /// Why no placement may ever select it, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded: Option<String>,
    /// What each placement of its workspace makes of it.
    pub placements: Vec<ByPlacement>,
}

/// What one placement makes of the object.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ByPlacement {
    /// The EdgePlacement.
    pub placement: String,
    /// The entry of it that selects the object; `None` if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected_by: Option<String>,
    /// Why that cannot be said, if so. What was sent before stays as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undecided: Option<String>,
    /// How it is at each edge that the placement goes to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<AtEdge>,
}

/// How the object is at one edge.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AtEdge {
    /// The Location.
    pub location: String,
    /// The SyncTarget.
    pub sync_target: String,
    /// What makes it differ there from what stands in the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customized: Option<Customized>,
    /// How it came as far as it did.
    pub hops: Vec<Hop>,
    /// What keeps it from going on, if anything does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
}

/// How an object is customized.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Customized {
    /// Whether parameters are expanded in it.
    pub expands_parameters: bool,
    /// The Customizer, as namespace/name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customizer: Option<String>,
    /// Where it differs.
    pub paths: Vec<String>,
}

/// One stretch of the way.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hop {
    /// Where it leads: `mailbox` or `edge`.
    pub to: &'static str,
    /// Whether it is there as it should be.
    pub done: bool,
    /// How it stands there, in a sentence.
    pub state: String,
    /// When it got there, in Unix seconds, as far as is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// How many seconds after the stretch before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_seconds: Option<u64>,
}

impl Rehearsal {
    /// All that can be said of an object of a workload workspace; `None` if it was not read. `edge`: at one edge only, by
    /// the name of its Location or of its SyncTarget.
    pub fn why(&self, key: &Key, edge: Option<&str>) -> Option<Why> {
        let source = self.object(key)?;
        let excluded = excluded_kind(&key.kind).or_else(|| excluded_object(source));
        let placements = self.placements.iter().filter(|(placement, _)| placement.cluster == key.cluster);
        Some(Why {
            object: reference(key),
            changed: changed(source),
            excluded: excluded.map(str::to_owned),
            placements: placements.map(|(name, one)| self.by_placement(name, one, source, edge)).collect(),
        })
    }

    fn by_placement(
        &self,
        name: &Key,
        placement: &Placement,
        source: &Object,
        edge: Option<&str>,
    ) -> ByPlacement {
        let selected = placement.translator.select(source, &View::new(&self.store));
        let (selected_by, undecided) = match selected {
            Ok(Selected { by, .. }) => (Some(by.to_string()).filter(|by| !by.is_empty()), None),
            Err(hold) => (None, Some(hold.reason)),
        };
        let meant = |leads: &Leads| {
            edge.is_none_or(|edge| {
                [&leads.location.name, &leads.target.name].iter().any(|name| name.as_str() == edge)
            })
        };
        let edges = placement.to.iter().filter(|(_, leads)| meant(leads));
        let edges = edges.filter_map(|(uid, leads)| match (&selected_by, &undecided) {
            (Some(_), _) => Some(self.at_edge(name, placement, source, uid, leads)),
            (None, None) => self.left_at(name, source, uid, leads),
            (None, Some(_)) => None,
        });
        let mut edges: Vec<AtEdge> = edges.collect();
        edges.sort_by(|one, other| one.location.cmp(&other.location));
        ByPlacement { placement: name.name.to_string(), edges, selected_by, undecided }
    }

    /// A copy that no placement selects any more and that still stands in a mailbox.
    fn left_at(&self, name: &Key, source: &Object, uid: &Uid, leads: &Leads) -> Option<AtEdge> {
        let slot = Key {
            cluster: self.setting.mailboxes.get(uid)?.clone(),
            kind: denature::in_mailbox(&source.key.kind).into_owned(),
            ..source.key.clone()
        };
        let copy = self.object(&slot)?;
        let ours = matches!(self.marks.read(copy), Marked::Ours(mark) if mark.origin.key == source.key);
        let explained =
            self.engine.explain(0, &self.store, &slot).filter(|one| ours && one.claims.is_empty())?;
        let awaited = self.object(name).and_then(|placement| {
            placement.get(&["status", "awaitingConfirmation", "message"])?.as_str().map(String::from)
        });
        let at = Some(copy.hands.ours_at_seconds).filter(|at| *at > 0);
        Some(AtEdge {
            location: leads.location.name.to_string(),
            sync_target: leads.target.name.to_string(),
            customized: None,
            hops: vec![Hop { to: "mailbox", done: false, state: explained.target, at, took_seconds: None }],
            held: Some(awaited.unwrap_or_else(|| "it is not wanted there any more".to_owned())),
        })
    }

    fn at_edge(
        &self,
        name: &Key,
        placement: &Placement,
        source: &Object,
        uid: &Uid,
        leads: &Leads,
    ) -> AtEdge {
        let mut told = AtEdge {
            location: leads.location.name.to_string(),
            sync_target: leads.target.name.to_string(),
            customized: None,
            hops: Vec::new(),
            held: None,
        };
        let reached = self.destinations.get(uid).zip(self.setting.mailboxes.get(uid));
        let Some((id, cluster)) = reached else {
            // Nothing holds it, as far as is known: this is said of the way, and not of the object.
            told.hops.push(Hop {
                to: "mailbox",
                done: false,
                state: "it is not there yet, or may not be read by you; the placement's summary counts what has arrived"
                    .to_owned(),
                at: None,
                took_seconds: None,
            });
            return told;
        };
        let to = Destination { id: *id, cluster: cluster.clone() };
        let wants = match placement.translator.project(source, &to, &View::new(&self.store)) {
            Ok(wants) => wants,
            Err(hold) => {
                told.held = Some(hold.reason);
                return told;
            }
        };
        let stored = denature::in_mailbox(&source.key.kind);
        let Some(want) = wants.into_iter().find(|want| want.slot.kind == *stored) else {
            told.held = Some("it is bound in the mailbox, and goes no further".to_owned());
            return told;
        };
        told.customized = customized(source, &want.body.json);
        let Some(explained) = self.engine.explain(0, &self.store, &want.slot) else { return told };
        let copy = self.object(&want.slot);
        let settled = copy.is_some() && !explained.next.iter().any(writes_the_copy);
        let ours = explained.claims.first().is_none_or(|claim| claim.route == RouteId(route_name(name)));
        let at = copy.map(|copy| copy.hands.ours_at_seconds).filter(|at| *at > 0);
        told.hops.push(Hop {
            to: "mailbox",
            done: settled,
            state: explained.target.clone(),
            at,
            took_seconds: at.zip(changed(source)).map(|(at, changed)| at.saturating_sub(changed)),
        });
        if !ours && let Some(first) = explained.claims.first() {
            told.held = Some(format!(
                "{} wants it there too, and the older of two goes first",
                self.named(&first.route)
            ));
        } else if !settled {
            told.held = Some(explained.verdict.to_string());
        }
        if let Some(copy) = copy {
            let hop = self.at_the_edge(source, copy, at);
            told.held = told.held.or_else(|| (!hop.done).then(|| hop.state.clone()));
            told.hops.push(hop);
        }
        told
    }

    /// How far a copy is from its mailbox on, by what its syncer says.
    fn at_the_edge(&self, source: &Object, copy: &Object, left: Option<u64>) -> Hop {
        let the_one = Key {
            kind: KindId::new(group::EDGE, "syncerconfigs"),
            namespace: Name::EMPTY,
            name: Name::new(fixed::THE_ONE),
            ..copy.key.clone()
        };
        let (mut state, mut done, mut at) = (String::new(), false, None);
        match self.object(&the_one) {
            None => state.push_str("what its syncer says of it is not known"),
            Some(the_one) => {
                let id = ObjectId {
                    kind: denature::at_edge(&source.key.kind).into_owned(),
                    namespace: copy.key.namespace.clone(),
                    name: copy.key.name.clone(),
                };
                let heard = the_one.get(&["status", "lastSyncerHeartbeatTime"]).and_then(Raw::as_str);
                let report = Report::of(the_one);
                let named = if names(the_one, &id) { Named::Yes } else { Named::Unsure };
                let named = named.at_a_start(report.as_ref());
                let judged = Delivery::default().judged(&id, copy, report.as_ref(), named);
                done = judged.current;
                state = match (heard, judged) {
                    (None, _) => "its syncer was never heard of".to_owned(),
                    (Some(_), Delivery { refused: Some(cause), .. }) => {
                        format!("it is refused there ({}): {}", cause.reason, cause.message)
                    }
                    (Some(heard), Delivery { current: true, .. }) => {
                        at = self.reported.get(&copy.key).copied();
                        format!("its syncer, last heard of at {heard}, says that it is there as it should be")
                    }
                    (Some(heard), Delivery { delivered: true, .. }) => {
                        format!("an older form of it is there; its syncer was last heard of at {heard}")
                    }
                    (Some(heard), _) => {
                        format!("its syncer, last heard of at {heard}, did not say yet that it is there")
                    }
                };
            }
        }
        let took_seconds = at.zip(left).map(|(at, left)| at.saturating_sub(left));
        Hop { to: "edge", done, state, at, took_seconds }
    }
}

/// Whether an action is about what stands in the mailbox. A comparison only asks its server whether something that is as
/// wanted by its mark is so in every field, and a report goes the other way.
fn writes_the_copy(action: &Action) -> bool {
    !matches!(action, Action::Compare | Action::Report(_) | Action::Finalizer { .. })
}

/// Whether a SyncerConfig names an object.
fn names(config: &Object, id: &ObjectId) -> bool {
    let spec = config.get(&["spec"]).map(|spec| serde_json::from_str::<SyncerConfigSpec>(spec.json()));
    let Some(Ok(spec)) = spec else { return false };
    let is_of = |group: &str, resource: &str| *group == *id.kind.group() && *resource == *id.kind.resource();
    let is_it = |names: &[String]| names.iter().any(|name| name == "*" || *name == *id.name.as_str());
    let namespaced = spec.namespaced_objects.iter().filter(|entry| is_of(&entry.group, &entry.resource));
    let mut namespaced = namespaced.flat_map(|entry| &entry.objects_by_namespace);
    namespaced.any(|entry| *entry.namespace == *id.namespace.as_str() && is_it(&entry.names))
        || spec.cluster_scope.iter().any(|entry| {
            id.namespace.is_empty() && is_of(&entry.group, &entry.resource) && is_it(&entry.objects)
        })
}

/// When an object was last changed by anybody but us.
fn changed(source: &Object) -> Option<u64> {
    let written = source.hands.other.as_ref().map(|other| other.at_seconds).filter(|at| *at > 0);
    written.or_else(|| source.created_seconds())
}

fn customized(source: &Object, body: &[u8]) -> Option<Customized> {
    let expands_parameters =
        source.annotation(annotation::EXPAND_PARAMETERS).is_some_and(|asked| asked == "true");
    let customizer = source.annotation(annotation::CUSTOMIZER).map(|named| {
        let named = named.into_owned();
        if named.contains('/') { named } else { format!("{}/{named}", source.key.namespace) }
    });
    if !expands_parameters && customizer.is_none() {
        return None;
    }
    let (was, is) = (source.root().to_value(), serde_json::from_slice(body).unwrap_or(Value::Null));
    let mut paths = BTreeSet::new();
    for member in was.as_object().into_iter().chain(is.as_object()).flat_map(|map| map.keys()) {
        if !matches!(member.as_str(), "metadata" | "status" | "apiVersion" | "kind") {
            differ(&was[member], &is[member], &format!(".{member}"), &mut paths);
        }
    }
    Some(Customized { expands_parameters, customizer, paths: paths.into_iter().collect() })
}

/// The paths at which two values differ.
fn differ(was: &Value, is: &Value, at: &str, paths: &mut BTreeSet<String>) {
    match (was, is) {
        (Value::Object(one), Value::Object(other)) => {
            for member in one.keys().chain(other.keys()).collect::<BTreeSet<_>>() {
                differ(&was[member], &is[member], &format!("{at}.{member}"), paths);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                differ(one, other, &format!("{at}[{index}]"), paths);
            }
        }
        _ if was == is => {}
        _ => drop(paths.insert(at.to_owned())),
    }
}

pub(super) fn reference(key: &Key) -> ObjectReference {
    let kind = denature::at_edge(&key.kind);
    ObjectReference {
        group: kind.group().to_owned(),
        resource: kind.resource().to_owned(),
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
    }
}
