//! What the schedule needs to know of each object.

use std::collections::BTreeMap;

use mailboat_api::condition::types;
use mailboat_api::edge::ValidationError;
use mailboat_api::eviction::EvictAfter;
use mailboat_api::names::group;
use mailboat_object::json::Raw;
use mailboat_object::key::{KindId, Uid};
use mailboat_object::object::Object;
use mailboat_object::select::LabelSelector;
use mailboat_object::timestamp::unix_seconds;

use super::index::Labels;

/// An EdgePlacement, as far as it says where.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PlacementFacts {
    /// Its uid, by which its slices name their owner.
    pub uid: String,
    /// Its selectors of Locations, of which any may match.
    pub selectors: Vec<LabelSelector>,
    /// Those that cannot be understood. While there are any, nothing leaves this placement.
    pub errors: Vec<ValidationError>,
}

/// A Location.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocationFacts {
    /// What placements choose it by.
    pub labels: Labels,
    /// Which SyncTargets it leads to.
    pub instances: Instances,
}

/// Which SyncTargets a Location leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Instances {
    /// None: it has no selector.
    None,
    /// Those of its workspace that this selects.
    Selected(LabelSelector),
    /// Nobody can tell: the selector cannot be understood. What it led to before stays.
    Unreadable,
}

/// A SyncTarget.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetFacts {
    /// Its identity.
    pub uid: Uid,
    /// What Locations select it by.
    pub labels: Labels,
    /// Nothing new goes there.
    pub unschedulable: bool,
    /// From when on all leaves, in Unix seconds.
    pub evict_at: Option<u64>,
    /// Its syncer is heard of.
    pub ready: bool,
    /// It is being deleted.
    pub deleting: bool,
}

impl PlacementFacts {
    /// Reads an EdgePlacement.
    pub fn of(placement: &Object) -> Self {
        let mut facts = Self { uid: placement.uid.to_string(), ..Self::default() };
        let listed = placement.get(&["spec", "locationSelectors"]).into_iter().flat_map(Raw::elements);
        for (index, selector) in listed.enumerate() {
            match LabelSelector::from_json(selector) {
                Ok(selector) => facts.selectors.push(selector),
                Err(bad) => facts.errors.push(ValidationError {
                    path: format!("spec.locationSelectors[{index}]"),
                    message: bad.to_string(),
                }),
            }
        }
        facts
    }
}

impl LocationFacts {
    /// Reads a Location of either group.
    pub fn of(location: &Object) -> Self {
        let selector = location.get(&["spec", "instanceSelector"]).filter(|selector| !selector.is_null());
        let instances = match selector.map(LabelSelector::from_json) {
            None => Instances::None,
            Some(Ok(selector)) => Instances::Selected(selector),
            Some(Err(_)) => Instances::Unreadable,
        };
        Self { labels: labels(location), instances }
    }
}

impl TargetFacts {
    /// Reads a SyncTarget of either group.
    pub fn of(target: &Object) -> Self {
        let unschedulable = target.get(&["spec", "unschedulable"]).and_then(Raw::as_bool).unwrap_or_default();
        let evict_after = target.get(&["spec", "evictAfter"]).and_then(Raw::as_str);
        let evict_at = evict_after.and_then(|text| match EvictAfter::parse(&text).ok()? {
            EvictAfter::Moment(moment) => u64::try_from(moment.as_second()).ok(),
            EvictAfter::Unschedulable(duration) if unschedulable => {
                let (_, since) =
                    condition(target, types::SCHEDULABLE).filter(|(status, _)| status == "False")?;
                Some(since? + duration.as_secs())
            }
            EvictAfter::Unschedulable(_) => None,
        });
        Self {
            uid: target.uid.clone(),
            labels: labels(target),
            unschedulable,
            evict_at,
            ready: condition(target, types::READY).is_some_and(|(status, _)| status == "True"),
            deleting: target.deleting,
        }
    }
}

/// The kind of SyncTarget that a kind of Location leads to: each group keeps to itself.
pub(super) fn target_kind(location_kind: &KindId) -> KindId {
    let group = if location_kind.group() == group::SCHEDULING { group::WORKLOAD } else { group::EDGE };
    targets_of(group)
}

/// The kind of Location that leads to a kind of SyncTarget.
pub(crate) fn location_kind(target_kind: &KindId) -> KindId {
    let group = if target_kind.group() == group::WORKLOAD { group::SCHEDULING } else { group::EDGE };
    KindId::new(group, "locations")
}

/// The groups that SyncTargets are of.
pub(crate) const TARGET_GROUPS: [&str; 2] = [group::EDGE, group::WORKLOAD];

/// The kind of SyncTarget of a group.
pub(crate) fn targets_of(group: &str) -> KindId {
    KindId::new(group, "synctargets")
}

/// A condition's status, and since when it has it.
fn condition(object: &Object, type_: &str) -> Option<(String, Option<u64>)> {
    let mut conditions = object.get(&["status", "conditions"])?.elements();
    let text = |condition: Raw<'_>, member: &str| Some(condition.member(member)?.as_str()?.into_owned());
    let found = conditions.find(|condition| text(*condition, "type").is_some_and(|found| found == type_))?;
    let since = text(found, "lastTransitionTime").and_then(|time| unix_seconds(&time));
    Some((text(found, "status")?, since))
}

fn labels(object: &Object) -> Labels {
    let owned = object.labels().map(|(key, value)| (key.into_owned(), value.into_owned()));
    owned.collect::<BTreeMap<_, _>>()
}
