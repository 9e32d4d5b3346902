//! Events: what came in the way of a placement or an edge, said once beside the object that tells it in its status.
//!
//! An Event is made when a status that says something new of that kind was written. So what stands in a status already is not
//! told again, neither after a restart nor in an idle minute. Nothing waits for an Event, and none is tried twice: the status
//! is what counts.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use mailboat_api::Time;
use mailboat_api::condition::types;
use mailboat_engine::role::{CallId, Order};
use mailboat_object::digest::digest_of_value;
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::Object;
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Verb};
use mailboat_store::time::{Moment, Now};
use serde_json::{Value, json};

/// The most Events in a minute, over all workspaces.
const MOST_A_MINUTE: usize = 60;
/// The most that wait for their turn; what comes after that is not told by an Event.
const MOST_WAITING: usize = 240;
/// In a workspace that does not let the center make Events it is tried again after this.
const FORBIDDEN_AGAIN_AFTER: Duration = Duration::from_mins(5);
/// The longest message that a server takes.
const MOST_CHARACTERS: usize = 1024;
/// Where Events on objects without a namespace stand.
const NAMESPACE: &str = "default";
/// Who makes them.
const COMPONENT: &str = "mailboat.dev/center";

/// Events that are to be made.
#[derive(Default)]
pub(super) struct Events {
    waiting: VecDeque<Event>,
    under_way: BTreeMap<CallId, ClusterId>,
    /// Workspaces that do not let the center make any, and until when that is believed.
    forbidden: BTreeMap<ClusterId, Moment>,
    /// Since when it is counted, and how many there were.
    minute: (Moment, usize),
}

/// What is to be said of an object.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Event {
    key: Key,
    involved: Value,
    reason: &'static str,
    message: String,
}

/// What a status that is about to be written says that the one before did not.
pub(super) fn news(object: &Object, status: &Value) -> Vec<Event> {
    let before = object.get(&["status"]).map_or(Value::Null, mailboat_object::json::Raw::to_value);
    let listed = |status: &Value, member: &str| status[member].as_array().cloned().unwrap_or_default();
    let mut told = Vec::new();
    for (member, reason) in [("conflicts", "Conflict"), ("held", "Held")] {
        let known = listed(&before, member);
        let new: Vec<Value> = listed(status, member).into_iter().filter(|one| !known.contains(one)).collect();
        if let Some(first) = new.first() {
            told.push((reason, counted(&about(first), new.len())));
        }
    }
    for type_ in [types::WITHDRAWAL_HELD, types::TAKES_EFFECT_HERE] {
        let holds = |status: &Value| {
            let conditions = listed(status, "conditions").into_iter();
            let mut holding = conditions.filter(|one| one["type"] == type_ && one["status"] == "True");
            holding.next().and_then(|one| one["message"].as_str().map(str::to_owned))
        };
        if let Some(message) = holds(status).filter(|message| holds(&before).as_ref() != Some(message)) {
            told.push((type_, message));
        }
    }
    let event = |(reason, message): (&'static str, String)| Event {
        key: key(object, reason, &message),
        involved: json!({
            "apiVersion": object.api_version(), "kind": object.kind_name(), "name": object.key.name.as_str(),
            "uid": object.uid.to_string(),
        }),
        reason,
        message: message.chars().take(MOST_CHARACTERS).collect(),
    };
    told.into_iter().map(event).collect()
}

impl Events {
    /// These were written into a status.
    pub(super) fn tell(&mut self, events: Vec<Event>) {
        let room = MOST_WAITING.saturating_sub(self.waiting.len());
        self.waiting.extend(events.into_iter().take(room));
    }

    /// Makes what is due, and says when to ask again.
    pub(super) fn next(
        &mut self,
        now: Now,
        manager: &Name,
        mut id: impl FnMut() -> CallId,
        orders: &mut Vec<Order>,
    ) -> Option<Moment> {
        if now.mono >= self.minute.0 + Duration::from_mins(1) {
            self.minute = (now.mono, 0);
        }
        self.forbidden.retain(|_, until| *until > now.mono);
        while let Some(event) = self.waiting.front() {
            if self.minute.1 >= MOST_A_MINUTE {
                return Some(self.minute.0 + Duration::from_mins(1));
            }
            let call = (!self.forbidden.contains_key(&event.key.cluster)).then(|| event.call(now, manager));
            if let Some(call) = call {
                self.minute.1 += 1;
                let (id, cluster) = (id(), call.key.cluster.clone());
                orders.push(Order::Reach(cluster.clone()));
                orders.push(Order::Call(id, call));
                self.under_way.insert(id, cluster);
            }
            self.waiting.pop_front();
        }
        None
    }

    /// What came of one. False if it was none of these.
    pub(super) fn answered<T>(&mut self, now: Moment, id: CallId, reply: &Result<T, Fault>) -> bool {
        let Some(cluster) = self.under_way.remove(&id) else { return false };
        match reply {
            Ok(_) => {}
            // It was told before, by a center that ended or by this one.
            Err(fault) if fault.kind == FaultKind::Exists => {}
            Err(fault) => {
                tracing::debug!(%cluster, %fault, "an Event could not be made");
                if fault.kind == FaultKind::Forbidden {
                    self.forbidden.insert(cluster, now + FORBIDDEN_AGAIN_AFTER);
                }
            }
        }
        true
    }
}

impl Event {
    fn call(&self, now: Now, manager: &Name) -> Call {
        let at = i64::try_from(now.wall_seconds).ok().and_then(|at| jiff::Timestamp::from_second(at).ok());
        let at = at.map(Time);
        let body = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": { "namespace": NAMESPACE, "name": self.key.name.as_str() },
            "involvedObject": self.involved,
            "type": "Warning", "reason": self.reason, "message": self.message,
            "source": { "component": COMPONENT }, "reportingComponent": COMPONENT,
            "firstTimestamp": at, "lastTimestamp": at, "count": 1,
        });
        let body = Arc::from(body.to_string().into_bytes());
        let verb = Verb::Create { body, manager: manager.clone() };
        Call { key: self.key.clone(), verb, part: Part::Whole, dry_run: false }
    }
}

/// Where an Event stands. The same is said of the same object under one name, and so not twice.
fn key(object: &Object, reason: &str, message: &str) -> Key {
    let said = digest_of_value(&json!([object.uid.to_string(), reason, message]));
    Key {
        cluster: object.key.cluster.clone(),
        kind: KindId::new("", "events"),
        namespace: Name::new(NAMESPACE),
        name: Name::new(&format!("{}.{:016x}", object.key.name, said.bits())),
    }
}

/// What a conflict or a held copy is about, in a sentence.
fn about(one: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &one["object"];
    let parts = [&object["namespace"], &object["name"]].map(text);
    let name = parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join("/");
    let edge = text(&one["edge"]);
    let at = if edge.is_empty() { String::new() } else { format!(" at edge {edge}") };
    format!("{} {name}{at}: {}", text(&object["resource"]), text(&one["message"]))
}

/// The first of several, and how many there are.
fn counted(first: &str, count: usize) -> String {
    if count > 1 { format!("{first}; and {} more", count - 1) } else { first.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::object;

    fn placement(status: &Value) -> Arc<Object> {
        let body = json!({ "apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgePlacement",
            "metadata": { "name": "shops", "uid": "u1" }, "status": status });
        object("shop", "edgeplacements.edge.kubestellar.io", &body)
    }

    fn held(change: &str) -> Value {
        let message = format!("so much would go; {change}");
        json!({ "conditions": [{ "type": "WithdrawalHeld", "status": "True", "message": message }] })
    }

    fn copy(name: &str) -> Value {
        json!({ "object": { "resource": "configmaps", "namespace": "till", "name": name }, "edge": "florin",
                "reason": "Undecided", "message": "no parameter `site`" })
    }

    #[test]
    fn what_a_status_says_already_is_not_told_again() {
        let nothing = placement(&json!({}));
        let told: Vec<String> = news(&nothing, &held("c1")).into_iter().map(|event| event.message).collect();
        assert_eq!(told, ["so much would go; c1"]);
        assert_eq!(news(&placement(&held("c1")), &held("c1")), []);
        assert_eq!(news(&placement(&held("c1")), &held("c2")).len(), 1, "another change");
        assert_eq!(news(&placement(&held("c1")), &json!({ "conditions": [] })), [], "good news is no Event");
        let first = json!({ "held": [copy("a")] });
        let more = json!({ "held": [copy("a"), copy("b"), copy("c")] });
        let told = news(&placement(&first), &more);
        assert_eq!(told.len(), 1);
        assert_eq!(
            told.first().map(|event| event.message.as_str()),
            Some("configmaps till/b at edge florin: no parameter `site`; and 1 more")
        );
    }

    /// The calls of one turn.
    fn turn(events: &mut Events, at_seconds: u64) -> Vec<(CallId, Call)> {
        let (mut orders, mut next) = (Vec::new(), at_seconds * 1_000);
        let now = Now { mono: Moment(at_seconds * 1_000), wall_seconds: at_seconds };
        let id = || {
            next += 1;
            CallId(next)
        };
        events.next(now, &Name::new("center"), id, &mut orders);
        let call = |order: Order| match order {
            Order::Call(id, call) => Some((id, call)),
            _ => None,
        };
        orders.into_iter().filter_map(call).collect()
    }

    #[test]
    fn an_event_names_its_object_and_stands_where_describe_finds_it() {
        let mut events = Events::default();
        events.tell(news(&placement(&json!({})), &held("c1")));
        let calls = turn(&mut events, 100);
        let [(_, call)] = calls.as_slice() else { panic!("{} calls", calls.len()) };
        let Verb::Create { body, .. } = &call.verb else { panic!("{:?}", call.verb) };
        let body: Value = serde_json::from_slice(body).unwrap();
        assert_eq!((&*call.key.cluster.0, &*call.key.namespace), ("shop", "default"));
        assert_eq!(body["involvedObject"]["kind"], "EdgePlacement");
        assert_eq!(body["involvedObject"]["uid"], "u1");
        assert_eq!((&body["type"], &body["reason"]), (&json!("Warning"), &json!("WithdrawalHeld")));
        assert_eq!(turn(&mut events, 101).len(), 0);
    }

    #[test]
    fn there_are_only_so_many_in_a_minute_and_none_where_they_are_refused() {
        let mut events = Events::default();
        for change in 0..MOST_A_MINUTE + 5 {
            events.tell(news(&placement(&json!({})), &held(&change.to_string())));
        }
        let first = turn(&mut events, 100);
        assert_eq!(first.len(), MOST_A_MINUTE);
        assert_eq!(turn(&mut events, 130).len(), 0);
        let refused: Result<(), Fault> = Err(Fault::new(FaultKind::Forbidden, "no"));
        assert!(events.answered(Moment(140_000), first[0].0, &refused));
        assert_eq!(turn(&mut events, 170).len(), 0, "what waited for that workspace is let go");
        events.tell(news(&placement(&json!({})), &held("later")));
        assert_eq!(turn(&mut events, 600).len(), 1, "it may be let in by then");
    }
}
