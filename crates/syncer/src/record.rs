//! Which kinds were ever delivered, written down at the edge before the first object of each; and which configuration
//! there was.
//!
//! After a restart only the marks on copies tell what is ours, and copies are found by following their kind. A kind that
//! configuration stopped naming while nobody ran would never be followed again, and its copies would stay for ever.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mailboat_engine::mark::OwnerId;
use mailboat_engine::role::CallId;
use mailboat_object::json::Raw;
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Reply, Verb};
use mailboat_store::time::Moment;
use serde_json::{Value, json};

use crate::configured::Configured;

/// The kinds that stand at the edge, in the record.
const DOWN: &str = "downsynced";
/// The kinds that stand in the mailbox, in the record.
const UP: &str = "upsynced";
/// The configuration that there was, in the record.
const CONFIGURED: &str = "configuration";
/// How long after a failure it is tried again.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// The record, as far as it is known.
pub struct Record {
    key: Key,
    manager: Name,
    kinds: Kinds,
    configured: Configured,
    state: State,
    fault: Option<String>,
}

/// Kinds that were delivered.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Kinds {
    /// At the edge.
    pub down: Arc<BTreeSet<KindId>>,
    /// In the mailbox.
    pub up: Arc<BTreeSet<KindId>>,
}

enum State {
    Unread,
    Reading(CallId),
    Known,
    Writing(CallId),
    Resting { until: Moment, read: bool },
}

impl Record {
    /// The record of this owner, as a ConfigMap in a namespace of the edge.
    pub fn new(edge: ClusterId, namespace: &str, owner: &OwnerId, manager: Name) -> Self {
        let key = Key {
            cluster: edge,
            kind: KindId::new("", "configmaps"),
            namespace: Name::new(namespace),
            name: Name::new(&format!("mailboat-{}", owner.0)),
        };
        let (kinds, configured) = (Kinds::default(), Configured::default());
        Self { key, manager, kinds, configured, state: State::Unread, fault: None }
    }

    /// The kinds that are written down; `None` until they were read.
    pub fn kinds(&self) -> Option<&Kinds> {
        self.is_read().then_some(&self.kinds)
    }

    /// The configuration that is written down; `None` until it was read.
    pub fn configured(&self) -> Option<&Configured> {
        self.is_read().then_some(&self.configured)
    }

    fn is_read(&self) -> bool {
        match &self.state {
            State::Unread | State::Reading(_) | State::Resting { read: false, .. } => false,
            State::Known | State::Writing(_) | State::Resting { read: true, .. } => true,
        }
    }

    /// Why it cannot be read or written, if so.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// What to ask of the edge so that these kinds, and this configuration if one is given, are written down; and when to
    /// ask again.
    pub fn next(
        &mut self,
        now: Moment,
        wanted: Option<&Kinds>,
        configured: Option<&Configured>,
        id: impl FnOnce() -> CallId,
    ) -> (Option<(CallId, Call)>, Option<Moment>) {
        if let State::Resting { until, read } = self.state {
            if now < until {
                return (None, Some(until));
            }
            self.state = if read { State::Known } else { State::Unread };
        }
        match (&self.state, wanted) {
            (State::Unread, _) => {
                let id = id();
                self.state = State::Reading(id);
                (Some((id, self.call(Verb::Get))), None)
            }
            (State::Known, Some(wanted)) if !self.covers(wanted, configured) => {
                let id = id();
                let join = |one: &BTreeSet<KindId>, other: &BTreeSet<KindId>| Arc::new(one | other);
                let kinds = Kinds {
                    down: join(&self.kinds.down, &wanted.down),
                    up: join(&self.kinds.up, &wanted.up),
                };
                let body = self.body(&kinds, configured.unwrap_or(&self.configured));
                self.state = State::Writing(id);
                let manager = self.manager.clone();
                (Some((id, self.call(Verb::Apply { body, manager, force: true }))), None)
            }
            _ => (None, None),
        }
    }

    /// What came of a call. False if it was not the record's.
    pub fn answered(&mut self, now: Moment, id: CallId, reply: &Result<Reply, Fault>) -> bool {
        let read = match &self.state {
            State::Reading(asked) if *asked == id => false,
            State::Writing(asked) if *asked == id => true,
            _ => return false,
        };
        let known = match reply {
            Ok(reply) => read_body(&reply.body),
            Err(fault) if !read && fault.kind == FaultKind::NotFound => Ok(Default::default()),
            Err(fault) => Err(fault.text.clone()),
        };
        match known {
            Ok((kinds, configured)) => {
                (self.kinds, self.configured) = (kinds, configured);
                self.fault = None;
                self.state = State::Known;
            }
            Err(why) => {
                self.fault = Some(format!("the record of delivered kinds ({}): {why}", self.key));
                self.state = State::Resting { until: now + TRY_AGAIN_AFTER, read };
            }
        }
        true
    }

    fn covers(&self, wanted: &Kinds, configured: Option<&Configured>) -> bool {
        wanted.down.is_subset(&self.kinds.down)
            && wanted.up.is_subset(&self.kinds.up)
            && configured.is_none_or(|configured| *configured == self.configured)
    }

    fn call(&self, verb: Verb) -> Call {
        Call { key: self.key.clone(), verb, part: Part::Whole, dry_run: false }
    }

    fn body(&self, kinds: &Kinds, configured: &Configured) -> Arc<[u8]> {
        let lines = |kinds: &BTreeSet<KindId>| {
            Value::from(kinds.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
        };
        let body = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self.key.name.as_str(),
                "namespace": self.key.namespace.as_str(),
                "labels": { "app.kubernetes.io/managed-by": "mailboat-syncer", (mailboat_api::names::label::SYSTEM): "true" },
            },
            "data": { DOWN: lines(&kinds.down), UP: lines(&kinds.up), CONFIGURED: configured.to_text() },
        });
        Arc::from(body.to_string().into_bytes())
    }
}

fn read_body(body: &[u8]) -> Result<(Kinds, Configured), String> {
    let raw = Raw::parse(body).map_err(|malformed| malformed.to_string())?;
    let text = |member: &str| raw.get(&["data", member]).and_then(Raw::as_str).unwrap_or_default();
    let kinds = |member: &str| {
        let text = text(member);
        let kind = |line: &str| {
            let (resource, group) = line.split_once('.').unwrap_or((line, ""));
            KindId::new(group, resource)
        };
        Arc::new(text.lines().filter(|line| !line.is_empty()).map(kind).collect::<BTreeSet<_>>())
    };
    Ok((Kinds { down: kinds(DOWN), up: kinds(UP) }, Configured::of_text(&text(CONFIGURED))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks::owner;

    fn record() -> Record {
        Record::new(ClusterId::new("edge"), "default", &owner("u-1"), Name::new("m"))
    }

    fn kinds(down: &[&str]) -> Kinds {
        Kinds { down: Arc::new(down.iter().map(|kind| KindId::new("", kind)).collect()), up: Arc::default() }
    }

    fn answer(body: &[u8]) -> Reply {
        Reply { body: body.into(), created: false, warnings: vec![] }
    }

    #[test]
    fn it_is_read_first_and_written_before_a_new_kind_counts() {
        let mut record = record();
        let (call, _) = record.next(Moment(0), Some(&kinds(&["secrets"])), None, || CallId(1));
        assert!(matches!(call, Some((CallId(1), Call { verb: Verb::Get, .. }))), "{call:?}");
        assert!(record.kinds().is_none(), "nothing is known before it is read");
        let missing = Err(Fault::new(FaultKind::NotFound, "not found"));
        assert!(record.answered(Moment(1), CallId(1), &missing));
        let (call, _) = record.next(Moment(2), Some(&kinds(&["secrets", "pods"])), None, || CallId(2));
        let Some((_, Call { verb: Verb::Apply { body, .. }, .. })) = call else { panic!("{call:?}") };
        assert!(record.kinds().is_some_and(|known| known.down.is_empty()), "not before it is written");
        assert!(record.answered(Moment(3), CallId(2), &Ok(answer(&body))));
        assert_eq!(record.kinds(), Some(&kinds(&["secrets", "pods"])));
        assert!(
            record.next(Moment(4), Some(&kinds(&["pods"])), None, || CallId(3)).0.is_none(),
            "a kind is never forgotten"
        );
    }

    #[test]
    fn configuration_is_written_beside_the_kinds_and_stays_when_none_is_given() {
        let mut record = record();
        drop(record.next(Moment(0), None, None, || CallId(1)));
        assert_eq!(record.configured(), None);
        assert!(record.answered(Moment(1), CallId(1), &Err(Fault::new(FaultKind::NotFound, "not found"))));
        let before = Configured::of_text("SyncerConfig on b-1\nSyncerConfig the-one");
        for (number, configured) in [(2, Some(&before)), (3, None)] {
            let wanted = kinds(if number == 2 { &[] } else { &["pods"] });
            let (call, _) = record.next(Moment(number), Some(&wanted), configured, || CallId(number));
            let Some((_, Call { verb: Verb::Apply { body, .. }, .. })) = call else { panic!("{call:?}") };
            assert!(record.answered(Moment(number), CallId(number), &Ok(answer(&body))));
            assert_eq!(record.configured(), Some(&before));
        }
        assert!(record.next(Moment(4), Some(&kinds(&["pods"])), Some(&before), || CallId(4)).0.is_none());
    }

    #[test]
    fn a_failure_is_told_and_tried_again() {
        let mut record = record();
        drop(record.next(Moment(0), None, None, || CallId(1)));
        let forbidden = Err(Fault::new(FaultKind::Forbidden, "no right to read it"));
        assert!(record.answered(Moment(0), CallId(1), &forbidden));
        assert!(record.kinds().is_none() && record.fault().is_some_and(|fault| fault.contains("no right")));
        let (call, wake) = record.next(Moment(1), None, None, || CallId(2));
        assert!(call.is_none() && wake == Some(Moment(5_000)), "{wake:?}");
        assert!(record.next(Moment(5_000), None, None, || CallId(3)).0.is_some());
        assert!(!record.answered(Moment(5_001), CallId(9), &forbidden), "another's answer");
    }
}
