//! Objects that come from the edges.

use mailboat_api::edge::UpsyncSet;
use mailboat_object::key::{Key, KindId};

use super::ANY;
use crate::denature;

/// Whether an upsync set names an object. Empty lists name nothing; for cluster-scoped objects namespaces do not
/// matter.
pub fn covers(set: &UpsyncSet, key: &Key) -> bool {
    names_kind(set, &key.kind)
        && (key.namespace.is_empty() || lists(&set.namespaces, &key.namespace))
        && lists(&set.names, &key.name)
}

/// Whether an upsync set names objects of a kind.
pub(super) fn names_kind(set: &UpsyncSet, kind: &KindId) -> bool {
    let kind = denature::at_edge(kind);
    set.api_group == kind.group() && lists(&set.resources, kind.resource())
}

fn lists(names: &[String], name: &str) -> bool {
    names.iter().any(|listed| listed == ANY || listed == name)
}
