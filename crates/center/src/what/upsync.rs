//! Objects that come from the edges.

use mailboat_api::edge::{UpsyncSet, ValidationError};
use mailboat_object::key::{Key, KindId};

use super::ANY;
use crate::{denature, mailbox};

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

/// What of an upsync set is not brought up, each with its path.
pub(super) fn errors(set: &UpsyncSet, path: &str) -> Vec<ValidationError> {
    let error = |path: String, why: &str| ValidationError { path, message: why.to_owned() };
    if let Some(why) = mailbox::group_refusal(&set.api_group) {
        return vec![error(format!("{path}.apiGroup"), why)];
    }
    let refused = set.resources.iter().enumerate().filter_map(|(index, resource)| {
        let why = mailbox::refusal(&set.api_group, resource)?;
        Some(error(format!("{path}.resources[{index}]"), why))
    });
    refused.collect()
}

fn lists(names: &[String], name: &str) -> bool {
    names.iter().any(|listed| listed == ANY || listed == name)
}
