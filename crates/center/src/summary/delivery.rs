//! Whether a copy in a mailbox is at its edge, by what the syncer says in the status of `the-one`.
//!
//! A syncer does not report once per object. It says up to which version of the mailbox everything is delivered, and
//! lists what is not. A status that comes back gives its copy a newer version without changing what is to be
//! delivered, so that what was delivered once is remembered by its content.

use std::collections::BTreeMap;

use mailboat_api::edge::{NotCurrentObject, NotCurrentState, SyncerConfigStatus};
use mailboat_object::digest::Digest;
use mailboat_object::key::{KindId, Version};
use mailboat_object::object::Object;

use super::ObjectId;
use super::health::Cause;

/// What a syncer says of its deliveries.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    delivered: Version,
    /// The same for each kind of the mailbox, and for what is named in the configuration as it stands.
    kinds: BTreeMap<KindId, Version>,
    not_current: BTreeMap<ObjectId, NotCurrentObject>,
    /// More is not current than is listed: then what is not listed is not known to be.
    omits: bool,
    /// The generation of `the-one` that stands, and the one of which this was said, if the syncer says so.
    generation: u64,
    observed: Option<u64>,
}

/// Whether a copy is among what its syncer is told to carry, by `the-one` as it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Named {
    /// It is.
    Yes,
    /// `the-one` is about to be another: up to which version the syncer delivered what it was told to carry says nothing of this
    /// copy.
    NotYet,
    /// Nobody knows: `the-one` is one of several, each with a generation of its own, or the syncer said it before we started.
    Unsure,
}

impl Named {
    /// What can be said of a copy that was there when we started: a syncer that is away said what it says before that.
    #[must_use]
    pub fn at_a_start(self, report: Option<&Report>) -> Self {
        let said_now = report.is_some_and(|report| !report.is_of_former());
        if self == Self::Yes && said_now { self } else { Self::Unsure }
    }
}

/// How far a copy is on its way.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Delivery {
    /// It is at its edge, in whatever form.
    pub delivered: bool,
    /// It is there as it should be.
    pub current: bool,
    /// Why it will not get there by itself: its edge refuses it, or the center holds it.
    pub refused: Option<Cause>,
    /// It is the center that holds it: its syncer was told nothing of it, or something older.
    pub(super) held: bool,
    /// The content that was last known to be delivered.
    content: Option<Digest>,
}

impl Report {
    /// Reads the status of `the-one`; `None` if it says nothing that can be understood.
    pub fn of(the_one: &Object) -> Option<Self> {
        let status: SyncerConfigStatus = serde_json::from_slice(the_one.status_json()?).ok()?;
        // What was said of an older configuration says nothing of what that did not name.
        let observed = status.observed_generation.and_then(|seen| u64::try_from(seen).ok());
        let kinds = status.delivered_kinds.iter().filter(|_| observed == Some(the_one.generation));
        let kinds = kinds.filter_map(|(kind, version)| {
            let (resource, group) = kind.split_once('.').unwrap_or((kind, ""));
            Some((KindId::new(group, resource), Version::parse(version)?))
        });
        let kinds = kinds.collect();
        let not_current = status.not_current.into_iter();
        let not_current = not_current.map(|entry| (ObjectId::of(&entry.object), entry)).collect();
        Some(Self {
            delivered: Version(status.delivered_resource_version.parse().unwrap_or_default()),
            kinds,
            not_current,
            omits: status.not_current_omitted.is_some_and(|omitted| omitted > 0),
            generation: the_one.generation,
            observed,
        })
    }

    /// Whether it was said of an older configuration than the one that stands.
    fn is_of_former(&self) -> bool {
        self.observed.is_some_and(|observed| observed != self.generation)
    }

    /// Whether a copy that is not listed is delivered as it stands.
    fn tells_of(&self, copy: &Object, named: Named) -> bool {
        let by_kind = || self.kinds.get(&copy.key.kind).is_some_and(|kind| copy.version <= *kind);
        let told = match named {
            Named::Yes => !self.is_of_former() && (copy.version <= self.delivered || by_kind()),
            Named::NotYet => false,
            Named::Unsure => copy.version <= self.delivered,
        };
        told && !self.omits
    }
}

impl Delivery {
    /// A copy that the center does not send, and why.
    pub fn held(cause: Cause) -> Self {
        Self::default().but_held(cause)
    }

    /// The same copy, which the center does not send in its present form, and why.
    #[must_use]
    pub fn but_held(&self, cause: Cause) -> Self {
        Self { current: false, refused: Some(cause), held: true, ..self.clone() }
    }

    /// How far a copy in a mailbox is; `self` is what was known of it before.
    #[must_use]
    pub fn judged(&self, id: &ObjectId, copy: &Object, report: Option<&Report>, named: Named) -> Self {
        let Some(report) = report else {
            let current = self.content == Some(copy.content);
            return Self { current, refused: None, held: false, ..self.clone() };
        };
        if let Some(entry) = report.not_current.get(id) {
            let refused = entry.state == Some(NotCurrentState::Refused);
            let cause = || Cause::new(&*entry.reason, &*entry.message);
            return Self {
                delivered: self.delivered || entry.delivered_generation.is_some(),
                current: false,
                refused: refused.then(cause),
                held: false,
                content: self.content.filter(|content| *content != copy.content),
            };
        }
        let told = report.tells_of(copy, named);
        let content = if told { Some(copy.content) } else { self.content };
        Self {
            delivered: self.delivered || told,
            current: content == Some(copy.content),
            refused: None,
            held: false,
            content,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mailboat_api::edge::ObjectReference;
    use serde_json::{Value, json};

    use super::*;
    use crate::fixtures::object;

    fn copy(version: u32, data: &str, status: &Value) -> Arc<Object> {
        let copy = json!({ "metadata": { "name": "x", "namespace": "a", "resourceVersion": version.to_string() },
            "data": data, "status": status });
        object("mailbox", "things", &copy)
    }

    fn report(status: &Value) -> Report {
        let the_one = json!({ "metadata": { "name": "the-one" }, "status": status });
        Report::of(&object("mailbox", "syncerconfigs.edge.kubestellar.io", &the_one)).unwrap()
    }

    fn id() -> ObjectId {
        ObjectId::of(&ObjectReference {
            group: String::new(),
            resource: "things".to_owned(),
            namespace: "a".to_owned(),
            name: "x".to_owned(),
        })
    }

    #[test]
    fn a_copy_is_current_once_all_up_to_its_version_is_delivered() {
        let (nothing, before) = (json!({}), Delivery::default());
        let early = before.judged(
            &id(),
            &copy(7, "one", &nothing),
            Some(&report(&json!({ "deliveredResourceVersion": "6" }))),
            Named::Unsure,
        );
        assert!(!early.delivered && !early.current);
        let there = early.judged(
            &id(),
            &copy(7, "one", &nothing),
            Some(&report(&json!({ "deliveredResourceVersion": "7" }))),
            Named::Unsure,
        );
        assert!(there.delivered && there.current);
        // Its own status comes back and gives it a newer version.
        let back = there.judged(
            &id(),
            &copy(9, "one", &json!({ "ready": 1 })),
            Some(&report(&json!({ "deliveredResourceVersion": "7" }))),
            Named::Unsure,
        );
        assert!(back.delivered && back.current);
        // New content is on its way.
        let changed = back.judged(
            &id(),
            &copy(10, "two", &nothing),
            Some(&report(&json!({ "deliveredResourceVersion": "9" }))),
            Named::Unsure,
        );
        assert!(changed.delivered && !changed.current);
        // Without a word of the syncer what was known stays.
        let silent = changed.judged(&id(), &copy(10, "two", &nothing), None, Named::Unsure);
        assert!(silent.delivered && !silent.current);
    }

    #[test]
    fn what_is_listed_is_not_current_whatever_the_version() {
        let entry = |more: Value| {
            let mut entry = json!({ "resource": "things", "namespace": "a", "name": "x", "reason": "Conflict", "message": "it is another's" });
            for (key, value) in more.as_object().unwrap() {
                entry[key] = value.clone();
            }
            report(&json!({ "deliveredResourceVersion": "99", "notCurrent": [entry] }))
        };
        let copy = copy(7, "one", &json!({}));
        let refused = Delivery::default().judged(
            &id(),
            &copy,
            Some(&entry(json!({ "state": "Refused" }))),
            Named::Unsure,
        );
        assert!(!refused.delivered && !refused.current);
        assert_eq!(refused.refused.as_ref().map(|cause| cause.reason.as_str()), Some("Conflict"));
        let waits = Delivery::default().judged(
            &id(),
            &copy,
            Some(&entry(json!({ "state": "Waiting", "deliveredGeneration": 1 }))),
            Named::Unsure,
        );
        assert!(waits.delivered && !waits.current && waits.refused.is_none());
        // What was taken for delivered and is listed now has to be told again.
        let there = Delivery::default().judged(
            &id(),
            &copy,
            Some(&report(&json!({ "deliveredResourceVersion": "7" }))),
            Named::Unsure,
        );
        let lost = there.judged(&id(), &copy, Some(&entry(json!({ "state": "Waiting" }))), Named::Unsure);
        assert!(!lost.current);
        assert!(
            !lost
                .judged(
                    &id(),
                    &copy,
                    Some(&report(&json!({ "deliveredResourceVersion": "6" }))),
                    Named::Unsure
                )
                .current
        );
    }

    #[test]
    fn a_list_that_leaves_some_out_vouches_for_nobody() {
        let omitting = report(&json!({ "deliveredResourceVersion": "99", "notCurrentOmitted": 3 }));
        let judged =
            Delivery::default().judged(&id(), &copy(7, "one", &json!({})), Some(&omitting), Named::Unsure);
        assert!(!judged.delivered && !judged.current);
    }

    #[test]
    fn a_kind_says_sooner_how_far_it_is_for_what_the_present_configuration_names() {
        let said = |observed: i64| {
            let status = json!({ "deliveredResourceVersion": "3", "observedGeneration": observed,
                "deliveredKinds": { "things": "7", "others.example.org": "9" } });
            let the_one = json!({ "metadata": { "name": "the-one", "generation": 4 }, "status": status });
            Report::of(&object("mailbox", "syncerconfigs.edge.kubestellar.io", &the_one)).unwrap()
        };
        let current = |version: u32, report: &Report, named: Named| {
            let copy = copy(version, "one", &json!({}));
            Delivery::default().judged(&id(), &copy, Some(report), named).current
        };
        assert!(current(7, &said(4), Named::Yes), "its kind is delivered as far as that");
        assert!(!current(8, &said(4), Named::Yes), "its kind is not delivered as far as that");
        assert!(!current(7, &said(4), Named::Unsure), "the syncer was not told of it");
        assert!(!current(7, &said(3), Named::Yes), "the syncer speaks of an older configuration");
        assert!(current(3, &said(3), Named::Unsure), "the whole mailbox is delivered as far as that");
    }

    #[test]
    fn what_its_syncer_was_not_told_of_keeps_what_was_known_of_it() {
        let said = |observed: i64| {
            let status = json!({ "deliveredResourceVersion": "9", "observedGeneration": observed });
            let the_one = json!({ "metadata": { "name": "the-one", "generation": 4 }, "status": status });
            Report::of(&object("mailbox", "syncerconfigs.edge.kubestellar.io", &the_one)).unwrap()
        };
        let nothing = Delivery::default();
        let judged = |before: &Delivery, version: u32, data: &str, observed: i64, named: Named| {
            before.judged(&id(), &copy(version, data, &json!({})), Some(&said(observed)), named)
        };
        // It just came, and all else that stands there is delivered.
        assert_eq!(judged(&nothing, 7, "one", 4, Named::NotYet), nothing);
        // It is named by now, and the syncer did not say that it has heard of that.
        assert_eq!(judged(&nothing, 7, "one", 3, Named::Yes), nothing);
        let there = judged(&nothing, 7, "one", 4, Named::Yes);
        assert!(there.delivered && there.current);
        // What is there stays there while another one comes, and is not current while it is changed itself.
        assert_eq!(judged(&there, 7, "one", 4, Named::NotYet), there);
        assert_eq!(judged(&there, 7, "one", 3, Named::Yes), there);
        let edited = judged(&there, 8, "two", 3, Named::Yes);
        assert!(edited.delivered && !edited.current);
        // After a start nothing else is known than what a syncer that may be away said before.
        assert_eq!(Named::Yes.at_a_start(Some(&said(4))), Named::Yes);
        assert_eq!(Named::Yes.at_a_start(Some(&said(3))), Named::Unsure);
        assert_eq!(Named::NotYet.at_a_start(Some(&said(4))), Named::Unsure);
        assert!(judged(&nothing, 7, "one", 3, Named::Unsure).current);
    }
}
