//! A replica that hears the news and nothing else. Whatever it believes must be what the store says.

use std::collections::BTreeMap;
use std::sync::Arc;

use mailboat_object::key::{ClusterId, Key};
use mailboat_object::object::Object;
use mailboat_store::{Change, Doubt, News, Seen};

use crate::rig::Mode;

/// The object last known, and what was last said of it.
type Heard = (Option<Arc<Object>>, Seen<Arc<Object>>);

pub struct Fold {
    mode: Mode,
    place: Result<(), Doubt>,
    clusters: BTreeMap<ClusterId, Result<(), Doubt>>,
    objects: BTreeMap<Key, Heard>,
}

impl Fold {
    pub fn new(mode: Mode) -> Self {
        Self { mode, place: Err(Doubt::NotFollowed), clusters: BTreeMap::new(), objects: BTreeMap::new() }
    }

    pub fn take(&mut self, news: &News) {
        match news {
            // Tests with a second place look at that one themselves.
            News::Scope { place, .. } if *place != crate::rig::place() => {}
            News::Scope { kind, .. } if *kind != crate::server::configmaps() => {}
            News::Object(change) if change.key.kind != crate::server::configmaps() => {}
            News::Scope { cluster: None, known, .. } => {
                assert_ne!(self.place, *known, "told twice: {news:?}");
                self.place = *known;
            }
            News::Scope { cluster: Some(cluster), known, .. } => {
                let before = self.clusters.insert(cluster.clone(), *known);
                assert_ne!(before, Some(*known), "told twice: {news:?}");
            }
            // It changes nothing of what is known.
            News::CaughtUp { .. } | News::Stalled { .. } => {}
            News::Object(change) => self.change(change),
        }
    }

    fn change(&mut self, change: &Change) {
        let Change { key, before, now, .. } = change;
        assert!(!self.in_total_doubt(&key.cluster), "told in total doubt: {change:?}");
        let (last, said) = self.objects.remove(key).unwrap_or((None, Seen::Unknown(Doubt::NotListed)));
        let identity = |object: &Option<Arc<Object>>| object.as_ref().map(|o| (o.uid.clone(), o.version));
        // In doubt the store may let go of what it knew; otherwise it must know what it said.
        let let_go = before.is_none() && said.doubt().is_some();
        assert!(identity(before) == identity(&last) || let_go, "{key}: {before:?} is not {last:?}");
        let last = match now {
            Seen::Present(object) => Some(Arc::clone(object)),
            Seen::Absent(_) => None,
            Seen::Unknown(_) => last,
        };
        self.objects.insert(key.clone(), (last, now.clone()));
    }

    fn in_total_doubt(&self, cluster: &ClusterId) -> bool {
        let cluster = self.clusters.get(cluster).copied().unwrap_or(Ok(()));
        [self.place, cluster].iter().any(|known| known.is_err_and(Doubt::is_total))
    }

    /// What the replica holds to be present.
    pub fn present(&self) -> BTreeMap<Key, u64> {
        let objects = self.objects.iter().filter(|(key, _)| !self.in_total_doubt(&key.cluster));
        let present = |(key, (_, now)): (&Key, &(_, Seen<Arc<Object>>))| match now {
            Seen::Present(object) => Some((key.clone(), object.version.0)),
            Seen::Absent(_) | Seen::Unknown(_) => None,
        };
        objects.filter_map(present).collect()
    }

    /// Whether the replica would say that an object is absent.
    pub fn absent(&self, key: &Key) -> bool {
        let unbound = if self.mode.is_view() { Err(Doubt::NotEngaged) } else { Ok(()) };
        let scope = self.place.and(self.clusters.get(&key.cluster).copied().unwrap_or(unbound));
        match self.objects.get(key) {
            // Or in doubt by itself, not only by its scope.
            Some((_, Seen::Present(_) | Seen::Unknown(Doubt::OlderThanKnown | Doubt::Malformed))) => false,
            Some((_, Seen::Unknown(_) | Seen::Absent(_))) | None => {
                scope.is_ok() && self.mode != Mode::Labels
            }
        }
    }
}
