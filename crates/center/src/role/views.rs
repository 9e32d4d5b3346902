//! The views through which the center reads: which there are, where their endpoints are, and what is followed there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_api::names::{export, group, label};
use mailboat_engine::role::{Order, Where};
use mailboat_object::catalog::Catalog;
use mailboat_object::json::Raw;
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::{Keep, Object};
use mailboat_store::interest::{Filter, Interest, PlaceId};
use mailboat_store::seen::{Doubt, News, Seen};
use mailboat_store::store::Store;

use super::mailboxes::may_be_carried;
use crate::translate::is_claim;

/// The exports whose views are read, besides those that are made from what users define.
const VIEWS: [&str; 6] =
    [export::EDGE, export::WORKLOAD, export::SCHEDULING, export::COMPUTE, export::DENATURED, export::MAILBOX];

/// The edge kinds that are read whole: they say what goes where.
const EDGE_KINDS: [&str; 7] = [
    "customizers",
    "edgeplacements",
    "edgesyncconfigs",
    "locations",
    "singleplacementslices",
    "syncerconfigs",
    "synctargets",
];

/// Edge kinds that are read where they are offered: a provider workspace that an older release set up lacks them.
const SUMMARY_KINDS: [&str; 2] = ["statussummaries", "summarizers"];

/// The views, and how far they were read.
#[derive(Default)]
pub(super) struct Views {
    /// The exports that were made from users' CRDs.
    offered: BTreeSet<Name>,
    opened: BTreeMap<Name, Vec<Name>>,
    serves: BTreeMap<PlaceId, Arc<Catalog>>,
    known: BTreeMap<(PlaceId, KindId), Result<(), Doubt>>,
}

/// A view as a place.
pub(super) fn place(export_name: &str) -> PlaceId {
    PlaceId(Name::new(&format!("view/{export_name}")))
}

/// The kind of endpoint slices, which say where a view is.
pub(super) fn endpoint_slices() -> KindId {
    KindId::new("apis.kcp.io", "apiexportendpointslices")
}

impl Views {
    /// An APIExport of the provider was seen: if it was made from a CRD, its view shows copies.
    pub(super) fn sees_export(&mut self, export: &Object) {
        if export.label(label::PROJECTED).is_some_and(|projected| projected == label::PROJECTED_YES) {
            self.offered.insert(export.key.name.clone());
        }
    }

    /// Opens the views whose endpoints came or changed.
    pub(super) fn open(&mut self, provider: &ClusterId, store: &Store, orders: &mut Vec<Order>) {
        for name in self.names() {
            let key = Key {
                cluster: provider.clone(),
                kind: endpoint_slices(),
                namespace: Name::EMPTY,
                name: name.clone(),
            };
            let Seen::Present(slice) = store.get(&key) else { continue };
            let urls = endpoints(slice);
            if self.opened.get(&name) != Some(&urls) {
                orders.push(Order::Open(place(&name), Where::View(urls.clone())));
                self.opened.insert(name, urls);
            }
        }
    }

    fn names(&self) -> Vec<Name> {
        VIEWS.iter().map(|name| Name::new(name)).chain(self.offered.iter().cloned()).collect()
    }

    /// What a view serves.
    pub(super) fn served(&mut self, at: &PlaceId, catalog: &Arc<Catalog>) {
        if self.opened.keys().any(|name| place(name) == *at) {
            self.serves.insert(at.clone(), Arc::clone(catalog));
        }
    }

    /// The kinds that users define and that mailboxes serve without a status subresource.
    pub(super) fn without_status(&self) -> BTreeSet<KindId> {
        let served = self.offered.iter().filter_map(|name| self.serves.get(&place(name)));
        let served = served.flat_map(|catalog| catalog.iter());
        served
            .filter(|served| !served.status)
            .map(|served| served.kind.clone())
            .filter(may_be_carried)
            .collect()
    }

    pub(super) fn observe(&mut self, news: &News) {
        if let News::Scope { place, cluster: None, kind, known } = news {
            self.known.insert((place.clone(), kind.clone()), *known);
        }
    }

    /// What is followed in the views.
    pub(super) fn interests(&self) -> Vec<Interest> {
        let mut interests = Vec::new();
        let mut follow = |at: &PlaceId, kind: KindId, keep: Keep| {
            interests.push(Interest { place: at.clone(), kind, filter: Filter::All, keep });
        };
        for name in self.opened.keys() {
            let at = place(name);
            match name.as_str() {
                export::EDGE => {
                    for resource in EDGE_KINDS {
                        follow(&at, KindId::new(group::EDGE, resource), Keep::Whole);
                    }
                    for resource in SUMMARY_KINDS.into_iter().filter(|_| self.offers_summaries()) {
                        follow(&at, KindId::new(group::EDGE, resource), Keep::Whole);
                    }
                }
                export::WORKLOAD => follow(&at, KindId::new(group::WORKLOAD, "synctargets"), Keep::Whole),
                export::SCHEDULING => follow(&at, KindId::new(group::SCHEDULING, "locations"), Keep::Whole),
                // Whatever may hold a copy: after a restart nobody remembers which kinds were placed before.
                _ => {
                    for kind in self.kinds_of_copies(&at) {
                        // What a mailbox is bound to is some kilobytes for each binding, and nobody's status to return. But
                        // a claim says when the view serves what it is about.
                        let short = is_bindings(&kind) && !is_claim(name);
                        let keep = if short { Keep::Head } else { Keep::HeadAndStatus };
                        follow(&at, kind, keep);
                    }
                }
            }
        }
        interests
    }

    /// Whether summaries can be written at all.
    pub(super) fn offers_summaries(&self) -> bool {
        let offered = |resource: &str| {
            let catalog = self.serves.get(&place(export::EDGE));
            catalog.is_some_and(|catalog| !catalog.versions(&KindId::new(group::EDGE, resource)).is_empty())
        };
        SUMMARY_KINDS.into_iter().all(offered)
    }

    fn kinds_of_copies(&self, at: &PlaceId) -> BTreeSet<KindId> {
        let served = self.serves.get(at).into_iter().flat_map(|catalog| catalog.iter());
        let own =
            |kind: &KindId| matches!(kind.group(), "core.kcp.io" | "apis.kcp.io" | "coordination.k8s.io");
        served
            .filter(|served| served.verbs.can_follow())
            .map(|served| served.kind.clone())
            .filter(|kind| !own(kind) || is_bindings(kind))
            .collect()
    }

    /// What all views serve.
    pub(super) fn catalogs(&self) -> impl Iterator<Item = &Arc<Catalog>> {
        self.serves.values()
    }

    /// Whether a kind was listed somewhere, in a view or not.
    pub(super) fn is_listed(&self, at: &PlaceId, kind: &KindId) -> bool {
        self.known.get(&(at.clone(), kind.clone())) == Some(&Ok(()))
    }

    /// Whether everything that is followed in all views was listed.
    pub(super) fn are_listed(&self) -> bool {
        self.waits_for().is_none()
    }

    /// What is still waited for, for people. A view without an endpoint shows nothing to be there or not, and is nothing
    /// to wait for.
    pub(super) fn waits_for(&self) -> Option<String> {
        if let Some(missing) = self.names().iter().find(|name| !self.opened.contains_key(*name)) {
            return Some(format!("the endpoint slice of {missing} is not there"));
        }
        if self.opened.get(&Name::new(export::EDGE)).is_some_and(Vec::is_empty) {
            return Some(format!("no workspace is bound to {}", export::EDGE));
        }
        let shown: Vec<PlaceId> =
            self.opened.iter().filter(|(_, urls)| !urls.is_empty()).map(|(name, _)| place(name)).collect();
        if let Some(silent) = shown.iter().find(|at| !self.serves.contains_key(at)) {
            return Some(format!("{silent} did not say yet what it serves"));
        }
        let interests = self.interests().into_iter().filter(|interest| shown.contains(&interest.place));
        interests.into_iter().find_map(|Interest { place, kind, .. }| {
            match self.known.get(&(place.clone(), kind.clone())) {
                Some(Ok(())) => None,
                Some(Err(doubt)) => Some(format!("{kind} in {place}: {doubt}")),
                None => Some(format!("{kind} in {place} was not read yet")),
            }
        })
    }
}

fn is_bindings(kind: &KindId) -> bool {
    kind.group() == "apis.kcp.io" && kind.resource() == "apibindings"
}

fn endpoints(slice: &Object) -> Vec<Name> {
    let listed = slice.get(&["status", "endpoints"]).into_iter().flat_map(Raw::elements);
    let urls = listed.filter_map(|endpoint| Some(Name::new(&endpoint.member("url")?.as_str()?)));
    urls.collect::<BTreeSet<_>>().into_iter().collect()
}
