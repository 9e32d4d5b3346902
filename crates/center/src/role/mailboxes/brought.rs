//! What the configurations that were placed in a mailbox bring up, and its syncer may therefore write.

use std::sync::Arc;

use mailboat_api::edge::{KindAndName, UpsyncSet};
use mailboat_object::catalog::Catalog;
use mailboat_object::object::Object;

use crate::denature;

/// What a configuration brings up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum BroughtUp {
    /// In the words of a SyncerConfig.
    Set(UpsyncSet),
    /// In those of an EdgeSyncConfig: a group, and the name of a kind.
    Named(String, String),
}

impl BroughtUp {
    /// All that a SyncerConfig or EdgeSyncConfig brings up.
    pub(super) fn by(config: &Object) -> Vec<Self> {
        let upsync = config.get(&["spec", "upsync"]);
        let sets: Vec<UpsyncSet> =
            upsync.and_then(|listed| serde_json::from_str(listed.json()).ok()).unwrap_or_default();
        let named = config.get(&["spec", "upSyncedResources"]);
        let named: Vec<KindAndName> =
            named.and_then(|listed| serde_json::from_str(listed.json()).ok()).unwrap_or_default();
        let named = named.into_iter().map(|object| Self::Named(object.group, object.kind));
        sets.into_iter().map(Self::Set).chain(named).collect()
    }

    /// The kinds by their plurals, as far as somebody serves them. A syncer may only write what it is told by those.
    pub(super) fn sets(&self, catalogs: &[&Arc<Catalog>]) -> Vec<UpsyncSet> {
        match self {
            Self::Set(set) => vec![set.clone()],
            Self::Named(group, kind_name) => {
                let served = catalogs.iter().flat_map(|catalog| catalog.iter());
                let meant = served.filter(|one| {
                    denature::at_edge(&one.kind).group() == group
                        && (kind_name == "*" || one.kind_name.as_str() == kind_name)
                });
                let every = || vec!["*".to_owned()];
                let set = |resource: String| UpsyncSet {
                    api_group: group.clone(),
                    resources: vec![resource],
                    namespaces: every(),
                    names: every(),
                };
                meant.map(|one| set(one.resource().to_owned())).collect()
            }
        }
    }
}
