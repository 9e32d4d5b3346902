//! The seam to whoever keeps what is changed: changes go out in order, watches wait until they are kept, and what
//! could not be kept is taken back.
//!
//! A machine changes at once and cannot wait. Its keeper takes the changes out ([`Machine::take_changes`]), stores
//! them, and says up to where ([`Machine::show`]); until then no watch shows them, so that nobody acts on something
//! that a crash would undo. What turned out not to be storable is undone ([`Machine::retract`]).

use std::collections::VecDeque;
use std::sync::Arc;

use mailboat_object::{ClusterId, Key, Version};

use super::table::{Change, Held, Spot};
use super::{Flavor, Kinds, Machine, Marks, Settings};
use crate::object::Stored;
use crate::packed::{Packed, RECORD, Texts};

/// Changes on their way to a keeper, and how far it has come. A machine without a keeper shows everything at once.
#[derive(Clone, Debug, Default)]
pub(super) struct Keeping {
    outbox: Option<Vec<Arc<Change>>>,
    /// Watches show nothing after this version; none: they show everything.
    shown: Option<Version>,
    /// What happened after the first and up to the second of these was taken back.
    retracted: Option<(Version, Version)>,
    /// How clusters were before what changes now.
    changing: Vec<Former>,
    /// How they were before changes that are not yet shown, each with the first version of the write that it belongs to.
    former: VecDeque<(Version, Former)>,
}

/// What a cluster was that is no object, and is not written down: it follows from objects.
#[derive(Clone, Debug)]
struct Former {
    cluster: ClusterId,
    /// None: it was not there.
    was: Option<(Arc<Kinds>, Arc<Marks>)>,
}

/// Why a kept object cannot be read. It names no content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the object {key} cannot be read: {what}")]
pub struct BadObject {
    key: String,
    what: &'static str,
}

impl Keeping {
    pub(super) fn note(&mut self, change: &Arc<Change>) {
        if let Some(outbox) = &mut self.outbox {
            outbox.push(Arc::clone(change));
        }
    }
}

impl Machine {
    /// A server with the objects that another left behind, which was at this version. What happened before is not
    /// remembered: lists and watches from older versions answer 410.
    pub fn restored(settings: Settings, version: Version, objects: impl IntoIterator<Item = Stored>) -> Self {
        let mut machine = Self::new(settings);
        for object in objects {
            machine.restore(object);
        }
        machine.restored_at(version);
        machine
    }

    /// Takes in an object that another left behind, before anything is asked of this one.
    pub fn restore(&mut self, object: Stored) {
        let cluster = self.clusters.entry(object.key.cluster.clone()).or_default();
        let table = Arc::make_mut(cluster.tables.entry(object.key.kind.clone()).or_default());
        table.insert(Spot::of(&object.key), Held::new(Arc::new(object)));
    }

    /// Goes on from the version at which the other was.
    pub fn restored_at(&mut self, version: Version) {
        self.version = self.version.max(version);
        self.compacted = self.version;
    }

    /// From now on keeps every change until it is taken, and shows watches nothing that was not allowed.
    pub fn keep_changes(&mut self) {
        self.keeping.outbox.get_or_insert_default();
        self.keeping.shown.get_or_insert(self.version);
    }

    /// The changes since the last time, in the order of their versions.
    #[must_use = "what is taken and not stored is lost"]
    pub fn take_changes(&mut self) -> Vec<Arc<Change>> {
        let changes = self.keeping.outbox.as_mut().map(std::mem::take).unwrap_or_default();
        let changing = std::mem::take(&mut self.keeping.changing);
        if let Some(first) = changes.first() {
            self.keeping.former.extend(changing.into_iter().map(|former| (first.version, former)));
        }
        changes
    }

    /// Notes what a cluster serves, and which marks its objects bear, before that changes.
    pub(super) fn note_cluster(&mut self, cluster: &ClusterId) {
        if self.keeping.outbox.is_none() {
            return;
        }
        let was = self.clusters.get(cluster);
        let was = was.map(|was| (Arc::clone(&was.kinds), Arc::clone(&was.marks)));
        self.keeping.changing.push(Former { cluster: cluster.clone(), was });
    }

    /// Lets watches show everything up to this version.
    pub fn show(&mut self, version: Version) {
        if let Some(shown) = &mut self.keeping.shown {
            *shown = version.max(*shown);
        }
        let shown = self.shown();
        while self.keeping.former.front().is_some_and(|(first, _)| *first <= shown) {
            self.keeping.former.pop_front();
        }
    }

    /// Up to where watches show what happened.
    pub fn shown(&self) -> Version {
        self.keeping.shown.unwrap_or(self.version).min(self.version)
    }

    /// Undoes changes that could not be stored: all those not yet shown, in the order in which they were made, and what
    /// clusters came to serve by them. Their versions are not used again.
    pub fn retract(&mut self, changes: &[Arc<Change>]) {
        for change in changes.iter().rev() {
            let cluster = self.clusters.entry(change.key.cluster.clone()).or_default();
            let table = Arc::make_mut(cluster.tables.entry(change.key.kind.clone()).or_default());
            match &change.before {
                Some(before) => table.insert(Spot::of(&change.key), before.clone()),
                None => table.remove(&Spot::of(&change.key)),
            };
            if let Some(log) = self.logs.get_mut(&change.key.kind) {
                log.forget_last(change.version);
            }
        }
        let Some(first) = changes.first() else { return };
        while let Some((_, former)) =
            self.keeping.former.pop_back_if(|(version, _)| *version >= first.version)
        {
            self.put_back(former);
        }
        let before = Version(first.version.0.saturating_sub(1));
        let from = self.keeping.retracted.map_or(before, |(from, _)| from.min(before));
        self.keeping.retracted = Some((from, self.version));
        self.show(self.version);
    }

    fn put_back(&mut self, former: Former) {
        let cluster = self.clusters.entry(former.cluster.clone()).or_default();
        match former.was {
            Some((kinds, marks)) => (cluster.kinds, cluster.marks) = (kinds, marks),
            None if cluster.tables.values().all(|table| table.is_empty()) => {
                self.clusters.remove(&former.cluster);
            }
            None => (cluster.kinds, cluster.marks) = Default::default(),
        }
    }

    /// Whether a list that was taken at this version may hold something that was taken back since.
    pub(super) fn was_retracted(&self, version: Version) -> bool {
        self.keeping.retracted.is_some_and(|(from, to)| from < version && version <= to)
    }
}

impl Stored {
    /// Reads an object back from what [`Stored::to_record`] wrote, or [`Stored::to_json`], which whoever kept it has to
    /// check. It rests until somebody looks into it.
    pub fn from_record(
        key: Key,
        written: &[u8],
        flavor: Flavor,
        texts: &mut Texts,
    ) -> Result<Self, BadObject> {
        let shows_cluster = flavor == Flavor::Kcp;
        let read = if written.first() == Some(&RECORD) {
            Packed::from_record(written, texts).ok_or("its record makes no sense")
        } else {
            Packed::read(written, shows_cluster, texts)
        };
        match read {
            Ok((packed, uid, version)) => {
                Ok(Self::resting(key, uid, version, shows_cluster, Arc::new(packed)))
            }
            Err(what) => Err(BadObject { key: key.to_string(), what }),
        }
    }
}
