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
        })
    }

    /// Up to which version everything of a copy's kind is delivered.
    fn delivered_of(&self, copy: &Object, named: bool) -> Version {
        let kind = self.kinds.get(&copy.key.kind).filter(|_| named);
        kind.map_or(self.delivered, |kind| self.delivered.max(*kind))
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

    /// How far a copy in a mailbox is; `self` is what was known of it before. `named`: it is among what `the-one`, as it
    /// stands, tells the syncer to carry.
    #[must_use]
    pub fn judged(&self, id: &ObjectId, copy: &Object, report: Option<&Report>, named: bool) -> Self {
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
        let told = copy.version <= report.delivered_of(copy, named) && !report.omits;
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
            false,
        );
        assert!(!early.delivered && !early.current);
        let there = early.judged(
            &id(),
            &copy(7, "one", &nothing),
            Some(&report(&json!({ "deliveredResourceVersion": "7" }))),
            false,
        );
        assert!(there.delivered && there.current);
        // Its own status comes back and gives it a newer version.
        let back = there.judged(
            &id(),
            &copy(9, "one", &json!({ "ready": 1 })),
            Some(&report(&json!({ "deliveredResourceVersion": "7" }))),
            false,
        );
        assert!(back.delivered && back.current);
        // New content is on its way.
        let changed = back.judged(
            &id(),
            &copy(10, "two", &nothing),
            Some(&report(&json!({ "deliveredResourceVersion": "9" }))),
            false,
        );
        assert!(changed.delivered && !changed.current);
        // Without a word of the syncer what was known stays.
        let silent = changed.judged(&id(), &copy(10, "two", &nothing), None, false);
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
        let refused =
            Delivery::default().judged(&id(), &copy, Some(&entry(json!({ "state": "Refused" }))), false);
        assert!(!refused.delivered && !refused.current);
        assert_eq!(refused.refused.as_ref().map(|cause| cause.reason.as_str()), Some("Conflict"));
        let waits = Delivery::default().judged(
            &id(),
            &copy,
            Some(&entry(json!({ "state": "Waiting", "deliveredGeneration": 1 }))),
            false,
        );
        assert!(waits.delivered && !waits.current && waits.refused.is_none());
        // What was taken for delivered and is listed now has to be told again.
        let there = Delivery::default().judged(
            &id(),
            &copy,
            Some(&report(&json!({ "deliveredResourceVersion": "7" }))),
            false,
        );
        let lost = there.judged(&id(), &copy, Some(&entry(json!({ "state": "Waiting" }))), false);
        assert!(!lost.current);
        assert!(
            !lost
                .judged(&id(), &copy, Some(&report(&json!({ "deliveredResourceVersion": "6" }))), false)
                .current
        );
    }

    #[test]
    fn a_list_that_leaves_some_out_vouches_for_nobody() {
        let omitting = report(&json!({ "deliveredResourceVersion": "99", "notCurrentOmitted": 3 }));
        let judged = Delivery::default().judged(&id(), &copy(7, "one", &json!({})), Some(&omitting), false);
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
        let current = |version: u32, report: &Report, named: bool| {
            let copy = copy(version, "one", &json!({}));
            Delivery::default().judged(&id(), &copy, Some(report), named).current
        };
        assert!(current(7, &said(4), true), "its kind is delivered as far as that");
        assert!(!current(8, &said(4), true), "its kind is not delivered as far as that");
        assert!(!current(7, &said(4), false), "the syncer was not told of it");
        assert!(!current(7, &said(3), true), "the syncer speaks of an older configuration");
        assert!(current(3, &said(3), false), "the whole mailbox is delivered as far as that");
    }
}
