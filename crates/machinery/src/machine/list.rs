//! Lists: selectors, pages, and the state of the past.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use mailboat_object::{ClusterId, FieldSelector, Key, KindId, LabelSelector, Name, Version};
use serde_json::{Value, json};

use super::table::{Held, Spot, Table};
use super::{Cluster, Flavor, Machine};
use crate::kind::Kind;
use crate::object::Stored;
use crate::schema::Origin;
use crate::status::Status;

/// Which objects to list, and how.
#[derive(Clone, Debug, Default)]
pub struct ListRequest {
    /// In which cluster; none: in all of them.
    pub cluster: Option<ClusterId>,
    /// In which of them; none: in each.
    pub within: Option<Arc<dyn Within>>,
    /// Of which kind.
    pub kind: KindId,
    /// In which namespace; empty: in all of them.
    pub namespace: Name,
    /// With which labels.
    pub labels: LabelSelector,
    /// With which fields.
    pub fields: FieldSelector,
    /// At most so many.
    pub limit: Option<usize>,
    /// The token of the page before.
    pub continue_token: Option<String>,
    /// As of which version.
    pub version: ListVersion,
}

/// What is seen of all clusters.
pub trait Within: std::fmt::Debug + Send + Sync {
    /// Whether a cluster was seen at a version.
    fn takes_cluster(&self, cluster: &ClusterId, at: Version) -> bool;

    /// Whether an object is seen in a cluster that is.
    fn takes(&self, object: &Stored) -> bool;

    /// Whether every object is seen in a cluster that is, so that none has to be asked about.
    fn takes_all(&self) -> bool;
}

/// As of which version a list is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ListVersion {
    /// The latest.
    #[default]
    Latest,
    /// At least this one; 0: any.
    NotOlderThan(Version),
    /// Exactly this one.
    Exact(Version),
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct List {
    /// The version of the whole list.
    pub version: Version,
    /// The objects.
    pub items: Vec<Arc<Stored>>,
    /// How to ask for the next page; none on the last.
    pub continue_token: Option<String>,
    /// How many come after this page; not counted where a selector is used.
    pub remaining: Option<u64>,
}

impl Machine {
    /// Lists objects. All pages of a list show one state, as of its first page.
    pub fn list(&self, request: &ListRequest) -> Result<List, Status> {
        let page = self.page(request)?;
        let items: Vec<Arc<Stored>> = page.items.iter().map(Held::get).collect();
        let last = items.last().filter(|_| page.more > 0);
        Ok(List {
            version: page.version,
            continue_token: last.map(|last| token(Some(page.version), &last.key)),
            remaining: Some(page.more).filter(|more| *more > 0 && request.counts()),
            items,
        })
    }

    /// One page of a list, of objects that rest if they do.
    pub(super) fn page(&self, request: &ListRequest) -> Result<Page, Status> {
        let kind = self.listed_kind(request.cluster.as_ref(), &request.kind)?;
        check_fields(&kind, &request.fields)?;
        let (version, start) = self.list_version(request)?;
        let mut page = Page { version, items: Vec::new(), more: 0 };
        let past = self.past(&request.kind, version);
        let start = start.as_ref();
        for (cluster, found) in self.listed_clusters(request.cluster.as_ref(), start.map(|(at, _)| at)) {
            // The token of a list of all clusters, in a list of one.
            if start.is_some_and(|(at, _)| cluster < at) {
                continue;
            }
            let hidden = |within: &Arc<dyn Within>| !within.takes_cluster(cluster, version);
            if !found.kinds.contains_key(&request.kind) || request.within.as_ref().is_some_and(hidden) {
                continue;
            }
            let after = start.filter(|(at, _)| at == cluster).map(|(_, spot)| spot);
            let range = request.range(after);
            let objects =
                as_it_was(found.tables.get(&request.kind).map(|table| &**table), past.get(cluster), &range);
            let here = |(spot, _): &(&Spot, &Held)| {
                request.namespace.is_empty() || spot.namespace == request.namespace
            };
            for (_, held) in objects.take_while(here).filter(|(_, held)| request.takes_held(held)) {
                if request.limit.is_none_or(|limit| limit == 0 || page.items.len() < limit) {
                    page.items.push(held.clone());
                    continue;
                }
                page.more += 1;
                if !request.counts() {
                    // That there is more is all that is told.
                    return Ok(page);
                }
            }
        }
        Ok(page)
    }

    /// The clusters of a list, in order: one, or all from one on.
    fn listed_clusters<'m>(
        &'m self,
        one: Option<&'m ClusterId>,
        from: Option<&ClusterId>,
    ) -> impl Iterator<Item = (&'m ClusterId, &'m Cluster)> {
        let first = one.or(from).map_or(Bound::Unbounded, Bound::Included);
        let last = one.map_or(Bound::Unbounded, Bound::Included);
        self.clusters.range::<ClusterId, _>((first, last))
    }

    fn list_version(&self, request: &ListRequest) -> Result<(Version, Option<(ClusterId, Spot)>), Status> {
        let floor = self.floor(&request.kind);
        if let Some(text) = &request.continue_token {
            if request.version != ListVersion::Latest {
                let what = "specifying resource version is not allowed when using continue";
                return Err(Status::bad_request(what));
            }
            let (version, start) = read_token(text).map_err(|why| {
                Status::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
            })?;
            // Whoever was told that his list is too old may go on with what is there now.
            let version = version.unwrap_or(self.version);
            if version > self.version {
                return Err(Status::too_large_version(version.0, self.version.0));
            }
            if version < floor {
                return Err(Status::expired(TOO_OLD_TO_CONTINUE).continued_by(token(None, &start)));
            }
            return Ok((version, Some((start.cluster.clone(), Spot::of(&start)))));
        }
        match request.version {
            ListVersion::Latest => Ok((self.version, None)),
            ListVersion::NotOlderThan(version) if version <= self.version => Ok((self.version, None)),
            ListVersion::Exact(version) if version <= self.version => {
                if version < floor {
                    return Err(Status::expired("The resourceVersion for the provided list is too old."));
                }
                Ok((version, None))
            }
            ListVersion::NotOlderThan(version) | ListVersion::Exact(version) => {
                Err(Status::too_large_version(version.0, self.version.0))
            }
        }
    }

    pub(super) fn listed_kind(
        &self,
        cluster: Option<&ClusterId>,
        kind: &KindId,
    ) -> Result<Arc<Kind>, Status> {
        let found = match cluster {
            Some(cluster) => self.kind(cluster, kind),
            None if self.settings.flavor == Flavor::Kcp => {
                self.clusters.values().find_map(|cluster| cluster.kinds.get(kind))
            }
            None => None,
        };
        found.cloned().ok_or_else(Status::unserved)
    }

    /// What has to be undone to get back to a version: for each object that changed since, what it was.
    fn past(&self, kind: &KindId, version: Version) -> BTreeMap<ClusterId, Undo> {
        let mut past: BTreeMap<ClusterId, Undo> = BTreeMap::new();
        if let Some(log) = self.logs.get(kind).filter(|_| version < self.version) {
            for change in log.after(version).rev() {
                let undo = past.entry(change.key.cluster.clone()).or_default();
                undo.insert(Spot::of(&change.key), change.before.clone());
            }
        }
        past
    }
}

/// One page of a list.
pub(super) struct Page {
    version: Version,
    pub(super) items: Vec<Held>,
    /// How many come after it; one, where they are not counted.
    more: u64,
}

type Undo = BTreeMap<Spot, Option<Held>>;

/// What a part of a table held before changes, in its order. Nothing is copied: a page of the past costs what it shows.
fn as_it_was<'t>(
    present: Option<&'t Table>,
    undo: Option<&'t Undo>,
    range: &(Bound<Spot>, Bound<Spot>),
) -> impl Iterator<Item = (&'t Spot, &'t Held)> {
    let within = (range.0.as_ref(), range.1.as_ref());
    let mut present = present.into_iter().flat_map(move |table| table.range(within)).peekable();
    let mut undone = undo.into_iter().flat_map(move |undo| undo.range(within)).peekable();
    std::iter::from_fn(move || {
        loop {
            let changed = match (present.peek(), undone.peek()) {
                (Some((now, _)), Some((then, _))) => then <= now,
                (None, Some(_)) => true,
                (_, None) => false,
            };
            if !changed {
                return present.next();
            }
            let (spot, before) = undone.next()?;
            present.next_if(|(now, _)| *now == spot);
            if let Some(before) = before {
                return Some((spot, before));
            }
        }
    })
}

impl ListRequest {
    fn takes(&self, object: &Stored) -> bool {
        self.labels.matches(object)
            && object.has_fields(&self.fields)
            && self.within.as_ref().is_none_or(|within| within.takes(object))
    }

    /// As `takes`. Where everything is taken, nothing is looked into.
    fn takes_held(&self, held: &Held) -> bool {
        self.counts() || self.takes(&held.get())
    }

    /// Whether every object is listed that stands where is looked; then it is told how many come after a page. As on real
    /// servers nothing is counted where a selector is used, and what a view shows of claimed kinds is selected by a label.
    fn counts(&self) -> bool {
        self.labels.is_everything()
            && self.fields.terms().is_empty()
            && self.within.as_ref().is_none_or(|within| within.takes_all())
    }

    /// Where in a table to look: a namespace's objects stand together.
    fn range(&self, after: Option<&Spot>) -> (Bound<Spot>, Bound<Spot>) {
        let first = Spot { namespace: self.namespace.clone(), name: Name::EMPTY };
        let from = match after {
            Some(after) if *after >= first => Bound::Excluded(after.clone()),
            _ if self.namespace.is_empty() => Bound::Unbounded,
            _ => Bound::Included(first),
        };
        (from, Bound::Unbounded)
    }
}

/// Refuses what a kind cannot be selected by.
pub(super) fn check_fields(kind: &Kind, fields: &FieldSelector) -> Result<(), Status> {
    for term in fields.terms() {
        let known = matches!(term.path.as_str(), "metadata.name" | "metadata.namespace");
        if known || kind.rules.selectable.contains(&term.path) {
            continue;
        }
        if kind.origin == Origin::Native && kind.rules.selectable.is_empty() {
            return Err(Status::bad_request(format!(
                "{:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                term.path
            )));
        }
        return Err(Status::bad_request(format!("field label not supported: {}", term.path)));
    }
    Ok(())
}

/// What real servers say of a page that is no longer known as it was.
const TOO_OLD_TO_CONTINUE: &str = "The provided continue parameter is too old to display a consistent list result. You \
     can start a new list without the continue parameter, or use the continue token in this response to retrieve the \
     remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were \
     created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// How to go on after an object, as of a version; none: as of whatever is the latest then.
fn token(version: Option<Version>, after: &Key) -> String {
    let start = json!([*after.cluster.0, *after.namespace, *after.name]);
    // So real servers say it.
    let version = version.map_or_else(|| json!(-1), |version| json!(version.0));
    BASE64_URL_SAFE_NO_PAD.encode(json!({ "v": "meta.k8s.io/v1", "rv": version, "start": start }).to_string())
}

/// The version of a token and the object after which to go on, of whatever kind. What nobody gave out is refused, in the
/// words of real servers.
fn read_token(text: &str) -> Result<(Option<Version>, Key), &'static str> {
    let decoded = BASE64_URL_SAFE_NO_PAD.decode(text).ok();
    let token: Value =
        decoded.and_then(|bytes| serde_json::from_slice(&bytes).ok()).ok_or("it cannot be read")?;
    let version = match (token["rv"].as_i64(), token["rv"].as_u64()) {
        (Some(-1), _) => None,
        (_, Some(version)) if version > 0 => Some(Version(version)),
        _ => return Err("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"),
    };
    let part = |index: usize| token["start"].get(index).and_then(Value::as_str).unwrap_or_default();
    // Every object has a name.
    if part(2).is_empty() {
        return Err("encoded start key empty (version meta.k8s.io/v1)");
    }
    let start = Key {
        cluster: ClusterId::new(part(0)),
        kind: KindId::default(),
        namespace: Name::new(part(1)),
        name: Name::new(part(2)),
    };
    Ok((version, start))
}
