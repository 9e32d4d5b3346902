//! What can be said of an entry by itself.

use mailboat_api::LabelSelector as ApiSelector;
use mailboat_api::edge::{DeliveryOptions, OwnerSelector};
use mailboat_object::json::Raw;
use mailboat_object::select::LabelSelector;

use super::{KindRef, Options};
use crate::select::never_travels;

/// What is wrong with an entry that means this kind.
pub(super) fn wrong_entry(kind: &KindRef) -> Option<String> {
    match kind {
        KindRef::Resource(kind) if kind.resource().is_empty() => Some("it names no resource".to_owned()),
        KindRef::Resource(kind) if never_travels(kind.group(), kind.resource()) => {
            Some(format!("{kind} belongs to the place where it is and does not travel"))
        }
        KindRef::Group(group) | KindRef::Named { group, .. } if never_travels(group, "") => {
            Some(format!("the group {group} belongs to the place where it is and does not travel"))
        }
        KindRef::Resource(_) | KindRef::Group(_) | KindRef::Named { .. } => None,
    }
}

/// A selector as the API has it. One that cannot be understood selects everything and makes the entry wrong, so that
/// all that it may mean is held.
pub(super) fn selector(
    given: Option<&ApiSelector>,
    member: &str,
    wrong: &mut Option<String>,
) -> LabelSelector {
    let Some(given) = given else { return LabelSelector::everything() };
    let json = serde_json::to_string(given).unwrap_or_default();
    let read = match Raw::parse(json.as_bytes()) {
        Ok(raw) => LabelSelector::from_json(raw).map_err(|bad| format!("{member}.{bad}")),
        Err(malformed) => Err(format!("{member}: {malformed}")),
    };
    read.unwrap_or_else(|why| {
        wrong.get_or_insert(why);
        LabelSelector::everything()
    })
}

/// An owner selector; one that is empty selects every object, as one that is absent does.
pub(super) fn owner_selector(given: Option<&OwnerSelector>) -> Option<OwnerSelector> {
    given.filter(|owner| **owner != OwnerSelector::default()).cloned()
}

/// How an entry wants its objects carried.
pub(super) fn options_of(options: &DeliveryOptions) -> Options {
    Options {
        renature: options.renatures(),
        return_status: options.returns_status(),
        propagation: options.propagation(),
    }
}
