//! What a role gives the engine: routes, and the view that they decide from.

use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

use mailboat_object::digest::Digest;
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::Object;
use mailboat_store::interest::PlaceId;
use mailboat_store::seen::{Doubt, Seen};
use mailboat_store::store::{Range, Store};
use smallvec::SmallVec;

use crate::breaker::ScopeId;
use crate::copies::Copies;
use crate::want::{Body, Hold, Want};

/// Names a route: role and configuration object, the same over restarts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RouteId(pub Name);

/// Names a destination, one for all routes: a SyncTarget by its uid, an edge, a consumer workspace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DestinationId(pub u32);

/// A place to deliver to.
#[derive(Clone, Debug)]
pub struct Destination {
    /// Its id.
    pub id: DestinationId,
    /// The cluster or workspace.
    pub cluster: ClusterId,
}

/// Where one source goes, and by which rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selected {
    /// The destinations, sorted; shared with the route, so that ten thousand edges cost forty kilobytes once.
    pub to: Arc<[DestinationId]>,
    /// The entry of the configuration that selected it, as a path for people (`spec.downsync[2]`).
    pub by: Name,
}

impl Selected {
    /// Selected by nothing, to nowhere.
    pub fn nowhere() -> Self {
        Self { to: Arc::new([]), by: Name::EMPTY }
    }
}

/// Which objects are a route's sources.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sources {
    /// Seen here.
    pub place: PlaceId,
    /// In this cluster, or in any that the place shows.
    pub cluster: Option<ClusterId>,
    /// Of this kind.
    pub kind: KindId,
}

/// What a route is, before any object is looked at.
#[derive(Clone, Debug)]
pub struct RouteHead {
    /// Its id.
    pub id: RouteId,
    /// What the breaker counts together with it.
    pub scope: ScopeId,
    /// How old its configuration is: where two routes want one slot, the lesser wins.
    pub rank: Arc<Rank>,
    /// The configuration that it was made from, so that a confirmed withdrawal is that of this configuration.
    pub configuration: Digest,
    /// Which objects it may select.
    pub sources: Vec<Sources>,
    /// The one object that is its source, where it is one alone and always the same; then there are no other sources.
    /// There may be many thousand routes of that form over one kind, and a change of one object concerns one of them.
    pub source: Option<Key>,
    /// What it selects by, where nothing else of the route decides which sources are selected. A route that is configured
    /// anew and selects by the same from the same sources goes elsewhere with what it selects, and is asked about nothing
    /// else: a workspace may hold a hundred times as many objects.
    pub selection: Option<Digest>,
}

impl RouteHead {
    /// A route of this name, which the breaker counts by itself, as old as can be and without sources.
    pub fn new(name: Name) -> Self {
        Self {
            id: RouteId(name.clone()),
            scope: ScopeId(name.clone()),
            rank: Arc::new(Rank { since: 0, name }),
            configuration: Digest::NONE,
            sources: Vec::new(),
            source: None,
            selection: None,
        }
    }

    /// Made from this configuration.
    #[must_use]
    pub fn configured(self, configuration: Digest) -> Self {
        Self { configuration, ..self }
    }

    /// Whose configuration was made then, in seconds.
    #[must_use]
    pub fn since(self, since: u64) -> Self {
        let rank = Rank { since, name: self.id.0.clone() };
        Self { rank: Arc::new(rank), ..self }
    }

    /// Selecting from these.
    #[must_use]
    pub fn reading(self, sources: impl IntoIterator<Item = Sources>) -> Self {
        Self { sources: sources.into_iter().collect(), ..self }
    }

    /// Selecting by this, and by nothing else.
    #[must_use]
    pub fn selecting_by(self, selection: Digest) -> Self {
        Self { selection: Some(selection), ..self }
    }

    /// Whether it selects the same as its predecessor.
    pub(crate) fn selects_like(&self, before: &Self) -> bool {
        self.selection.is_some()
            && self.selection == before.selection
            && self.sources == before.sources
            && self.source == before.source
    }

    /// With this one object for its source.
    #[must_use]
    pub fn of(self, source: Key) -> Self {
        Self { source: Some(source), ..self }
    }
}

/// One route. Immutable: changed configuration is a new route of the same id.
pub trait Route: Any + Send + Sync {
    /// What it is, whatever it does to objects.
    fn head(&self) -> &RouteHead;
    /// Whether its configuration may ask for anything of this kind, whatever is served and known of it. What it does not
    /// ask for is let go even if nothing is known of the source any more, because its kind is no longer followed. True
    /// where a route cannot tell, as one whose kinds come from discovery.
    fn asks_for(&self, kind: &KindId) -> bool {
        let _ = kind;
        true
    }
    /// All destinations that it may ever go to, in order, whatever is selected; `None` where a route cannot tell. A copy in the cluster of
    /// another destination is not its own, even if nothing is known of the source.
    fn destinations(&self) -> Option<&[DestinationId]> {
        None
    }
    /// The kinds of its copies that it finds by their marks, wherever they stand ([`View::standing`]).
    fn seeks(&self) -> &[KindId] {
        &[]
    }
    /// The kinds of other objects than its sources of which it makes copies by their own name: wants whose origin is not
    /// the source. What nobody claims after a restart and comes from such an object is not known to be unwanted before all
    /// sources of the route are.
    fn relates(&self) -> &[KindId] {
        &[]
    }
    /// To which destinations a source goes, and by which entry.
    fn select(&self, source: &Object, view: &View<'_>) -> Result<Selected, Hold>;
    /// What a source is at one destination: usually one want, more with related objects.
    fn project(&self, source: &Object, to: &Destination, view: &View<'_>) -> Result<Vec<Want>, Hold>;
    /// Whether what a source is depends on where it goes. If not, it is projected once for all its destinations, and
    /// each gets that in its own cluster; with ten thousand destinations this is what counts.
    fn varies(&self, source: &Object) -> bool {
        let _ = source;
        true
    }
    /// At which destinations it may make something else of its sources than its predecessor did, those included to which only one of
    /// them goes; `None` where it may do so anywhere, or cannot tell. Asked where it selects the same: with ten thousand destinations, one
    /// that comes or goes costs work for that one.
    fn changes_at(&self, before: &dyn Route) -> Option<Vec<DestinationId>> {
        let _ = before;
        None
    }
    /// The status on its way back to the source; `None` if nothing is to be said.
    fn report(&self, source: &Object, target: &Object, view: &View<'_>) -> Result<Option<Body>, Hold>;
}

/// The order of claims on one slot: the oldest configuration first, then by name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rank {
    /// When the configuration object was made, in seconds.
    pub since: u64,
    /// Its name, where two are of one age.
    pub name: Name,
}

/// All that is known, at one moment. Whoever decides from it is woken when what was read changes.
pub struct View<'a> {
    store: &'a Store,
    copies: Option<&'a Copies>,
    reads: RefCell<Vec<Read>>,
}

/// Something that was read, and a change of which wakes the reader.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Read {
    /// One object.
    Object(Key),
    /// All objects of a kind in a cluster, or in one of its namespaces.
    Range(ClusterId, KindId, Option<Name>),
    /// The copies of an object, of a kind in a cluster.
    Copies(ClusterId, KindId, Key),
}

impl Read {
    /// The cluster and the kind that were read.
    pub(crate) fn scope(&self) -> (&ClusterId, &KindId) {
        match self {
            Self::Object(key) => (&key.cluster, &key.kind),
            Self::Range(cluster, kind, _) | Self::Copies(cluster, kind, _) => (cluster, kind),
        }
    }
}

impl<'a> View<'a> {
    /// A view of a store.
    pub fn new(store: &'a Store) -> Self {
        Self { store, copies: None, reads: RefCell::default() }
    }

    /// The same, by which copies are found.
    pub(crate) fn finding(store: &'a Store, copies: &'a Copies) -> Self {
        Self { copies: Some(copies), ..Self::new(store) }
    }

    /// Where the copy of an object stands: where one is found by its mark, whatever it is called there, or else at the
    /// place given. The copy's kind must be among those that the route [seeks](Route::seeks). Two copies are never chosen
    /// from.
    pub fn standing(&self, origin: &Key, otherwise: Key) -> Result<Key, Hold> {
        let (cluster, kind) = (&otherwise.cluster, &otherwise.kind);
        self.reads.borrow_mut().push(Read::Copies(cluster.clone(), kind.clone(), origin.clone()));
        if let Err(doubt) = self.store.range(cluster, kind, None) {
            let reason =
                format!("what is known of the {kind} in {cluster}, where its copy may stand: {doubt}");
            return Err(Hold { reason, on: None });
        }
        let found = self.copies.map_or(&[][..], |copies| copies.of(cluster, kind, origin));
        let there: SmallVec<[&Key; 2]> =
            found.iter().filter(|copy| self.store.get(copy).absent().is_none()).collect();
        match there[..] {
            [] => Ok(otherwise),
            [found] => Ok(found.clone()),
            [one, other, ..] => Err(Hold {
                reason: format!(
                    "{one} and {other} both bear the mark of a copy of {origin}; delete one of them, or take its mark off"
                ),
                on: Some(other.clone()),
            }),
        }
    }

    /// What is known of one object.
    pub fn get(&self, key: &Key) -> Seen<&'a Arc<Object>> {
        self.reads.borrow_mut().push(Read::Object(key.clone()));
        self.store.get(key)
    }

    /// All objects of a kind in a cluster, or in one of its namespaces.
    pub fn range(
        &self,
        cluster: &ClusterId,
        kind: &KindId,
        namespace: Option<&Name>,
    ) -> Result<Range<'a>, Doubt> {
        self.reads.borrow_mut().push(Read::Range(cluster.clone(), kind.clone(), namespace.cloned()));
        self.store.range(cluster, kind, namespace)
    }

    /// What was read since the last time this was asked.
    pub fn take_reads(&self) -> Vec<Read> {
        self.reads.take()
    }
}

impl Read {
    /// The least of each sort that is about a kind in a cluster, in the order of reads.
    pub fn first_of(cluster: &ClusterId, kind: &KindId) -> [Self; 3] {
        let (namespace, name) = (Name::EMPTY, Name::EMPTY);
        let key = Key { cluster: cluster.clone(), kind: kind.clone(), namespace, name };
        let least = Key { cluster: ClusterId::default(), kind: KindId::default(), ..key.clone() };
        let (range, copies) = (Self::Range(cluster.clone(), kind.clone(), None), least);
        [Self::Object(key), range, Self::Copies(cluster.clone(), kind.clone(), copies)]
    }

    /// Every read that a change of this object touches.
    pub fn touched_by(key: &Key) -> [Self; 3] {
        [
            Self::Object(key.clone()),
            Self::Range(key.cluster.clone(), key.kind.clone(), None),
            Self::Range(key.cluster.clone(), key.kind.clone(), Some(key.namespace.clone())),
        ]
    }
}
