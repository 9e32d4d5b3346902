//! Who wants to know what: places, their endpoints, and the interests that are followed as one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use mailboat_object::key::{KindId, Name};
pub use mailboat_object::object::Keep;
use mailboat_object::select::LabelSelector;

/// Somewhere that objects are read from: a plain cluster, one workspace, or one view (an APIExport's) over
/// all the endpoints of its slice.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PlaceId(pub Name);

impl PlaceId {
    /// The place of this name.
    pub fn new(name: &str) -> Self {
        Self(Name::new(name))
    }
}

impl fmt::Display for PlaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One URL of a place, by a name that is the place's own: one for a cluster or workspace, one per shard for a
/// view. It must be the same again when the same URL comes back, since it remembers how far that server was.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EndpointId(pub Name);

impl EndpointId {
    /// The endpoint of this name.
    pub fn new(name: &str) -> Self {
        Self(Name::new(name))
    }
}

impl fmt::Display for EndpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What one follower reads: one kind at one endpoint of one place.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FeedId {
    /// The place.
    pub place: PlaceId,
    /// Its endpoint.
    pub endpoint: EndpointId,
    /// The kind.
    pub kind: KindId,
}

/// Which objects of a kind are followed.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Filter {
    /// All of them.
    #[default]
    All,
    /// Those of one namespace, asked for by path. Never by `fieldSelector=metadata.namespace`, which a wildcard
    /// of kcp answers with an empty list.
    Namespace(Name),
    /// Those with matching labels. An object that leaves the selector looks deleted, so nothing that is
    /// followed by labels is ever known to be absent.
    Labels(LabelSelector),
}

impl Filter {
    /// A selector that everything matches is no filter, and takes no proof away.
    fn simplified(self) -> Self {
        match self {
            Self::Labels(selector) if selector.is_everything() => Self::All,
            filter => filter,
        }
    }

    /// The narrowest of the three filters that lets through whatever either of two does.
    fn union(self, other: &Self) -> Self {
        if self == *other { self } else { Self::All }
    }

    /// Whether an object in this namespace would be shown, whatever its labels: only then can it be missed.
    pub(crate) fn shows_all_of(&self, namespace: &Name) -> bool {
        match self {
            Self::All => true,
            Self::Namespace(only) => only == namespace,
            Self::Labels(_) => false,
        }
    }
}

/// One wish to know about objects of a kind somewhere.
#[derive(Clone, PartialEq, Debug)]
pub struct Interest {
    /// Where.
    pub place: PlaceId,
    /// What.
    pub kind: KindId,
    /// Which of them.
    pub filter: Filter,
    /// How much of each.
    pub keep: Keep,
}

/// The interests to follow so that every given one is served and each (place, kind) is followed once, in order
/// of place and kind.
pub fn merge<'a>(interests: impl IntoIterator<Item = &'a Interest>) -> Vec<Interest> {
    let mut merged: BTreeMap<(PlaceId, KindId), Interest> = BTreeMap::new();
    for interest in interests {
        let interest = &Interest { filter: interest.filter.clone().simplified(), ..interest.clone() };
        match merged.entry((interest.place.clone(), interest.kind.clone())) {
            Entry::Vacant(entry) => {
                entry.insert(interest.clone());
            }
            Entry::Occupied(mut entry) => {
                let wish = entry.get_mut();
                wish.filter = std::mem::take(&mut wish.filter).union(&interest.filter);
                wish.keep = more(wish.keep, interest.keep);
            }
        }
    }
    merged.into_values().collect()
}

fn more(one: Keep, other: Keep) -> Keep {
    match (one, other) {
        (Keep::Whole, _) | (_, Keep::Whole) => Keep::Whole,
        (Keep::HeadAndStatus, _) | (_, Keep::HeadAndStatus) => Keep::HeadAndStatus,
        (Keep::Head, Keep::Head) => Keep::Head,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(query: &str) -> Filter {
        Filter::Labels(query.parse().unwrap())
    }

    fn interest(place: &str, resource: &str, filter: Filter, keep: Keep) -> Interest {
        Interest { place: PlaceId::new(place), kind: KindId::new("", resource), filter, keep }
    }

    #[test]
    fn each_place_and_kind_is_followed_once_in_order() {
        let wishes = [
            interest("edge", "secrets", Filter::All, Keep::Head),
            interest("center", "pods", Filter::All, Keep::Whole),
            interest("edge", "configmaps", Filter::All, Keep::Head),
            interest("edge", "secrets", Filter::All, Keep::Head),
        ];
        let merged: Vec<String> =
            merge(&wishes).iter().map(|one| format!("{} {}", one.place, one.kind)).collect();
        assert_eq!(merged, ["center pods", "edge configmaps", "edge secrets"]);
    }

    #[test]
    fn the_union_lets_through_what_any_of_them_asked_for() {
        let till = || Filter::Namespace(Name::new("till"));
        let cases = [
            (Filter::All, Filter::All, Filter::All),
            (Filter::All, labels("a=b"), Filter::All),
            (labels("a=b"), labels("a=b"), labels("a=b")),
            (labels("a=b"), labels("a=c"), Filter::All),
            (till(), till(), till()),
            (till(), Filter::Namespace(Name::new("cellar")), Filter::All),
            (till(), labels("a=b"), Filter::All),
            (till(), Filter::Labels(LabelSelector::everything()), Filter::All),
        ];
        for (one, other, union) in cases {
            for (one, other) in [(&one, &other), (&other, &one)] {
                let wishes = [one, other].map(|filter| interest("edge", "pods", filter.clone(), Keep::Head));
                let merged = merge(&wishes);
                assert_eq!(merged.len(), 1);
                assert_eq!(merged[0].filter, union, "{one:?} and {other:?}");
            }
        }
    }

    #[test]
    fn the_union_keeps_as_much_as_any_of_them_asked_for() {
        use Keep::{Head, HeadAndStatus, Whole};
        for (one, other, more) in [
            (Head, Head, Head),
            (Head, HeadAndStatus, HeadAndStatus),
            (HeadAndStatus, Whole, Whole),
            (Whole, Head, Whole),
        ] {
            let wishes = [one, other].map(|keep| interest("edge", "pods", Filter::All, keep));
            assert_eq!(merge(&wishes)[0].keep, more, "{one:?} and {other:?}");
        }
    }

    #[test]
    fn a_selector_that_everything_matches_is_no_filter() {
        let wish = interest("edge", "pods", Filter::Labels(LabelSelector::everything()), Keep::Head);
        assert_eq!(merge([&wish])[0].filter, Filter::All);
    }
}
