//! What the mailbox's configuration asks for, in one form for both kinds of configuration objects.
//!
//! [`syncer_config`] and [`edge_sync_config`] read one object each into [`Config`]; [`validate`] says what is wrong with
//! an entry by itself; [`merge`] joins all of them into the rules that routes select by.

pub mod edge_sync_config;
pub mod merge;
pub mod syncer_config;
pub mod validate;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use mailboat_api::edge::{DeletePropagation, OwnerSelector};
use mailboat_object::digest::{Digest, digest_of};
use mailboat_object::json::Raw;
use mailboat_object::key::{KindId, Name};
use mailboat_object::object::Object;
use mailboat_object::select::LabelSelector;

/// The kinds of configuration objects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ConfigKind {
    /// SyncerConfig, which the center writes.
    SyncerConfig,
    /// EdgeSyncConfig, the older form.
    EdgeSyncConfig,
}

impl ConfigKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::SyncerConfig, Self::EdgeSyncConfig];

    /// The kind as servers know it.
    pub fn kind(self) -> KindId {
        let resource = match self {
            Self::SyncerConfig => "syncerconfigs",
            Self::EdgeSyncConfig => "edgesyncconfigs",
        };
        KindId::new(mailboat_api::names::group::EDGE, resource)
    }

    /// The configuration kind that this is, if it is one.
    pub fn of(kind: &KindId) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.kind() == *kind)
    }
}

/// Names one configuration object of the mailbox.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConfigId {
    /// Which kind.
    pub kind: ConfigKind,
    /// Its name.
    pub name: Name,
}

impl fmt::Display for ConfigId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.kind, self.name)
    }
}

/// One configuration object, read.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which object.
    pub id: ConfigId,
    /// Its generation.
    pub generation: u64,
    /// A digest of its `spec`.
    pub spec: Digest,
    /// What goes to the edge.
    pub down: Vec<Arc<Entry>>,
    /// What comes from the edge.
    pub up: Vec<Arc<Entry>>,
    /// What has another form at the edge.
    pub conversions: Vec<Conversion>,
    /// Namespaces that come to exist at the edge, whether or not they are selected themselves.
    pub namespaces: BTreeSet<Name>,
    /// Why the object cannot be read at all, if so.
    pub unreadable: Option<String>,
}

impl Config {
    /// Reads a configuration object.
    pub fn read(kind: ConfigKind, object: &Object) -> Self {
        let id = ConfigId { kind, name: object.key.name.clone() };
        let spec = object.get(&["spec"]).map_or("{}", Raw::json);
        let mut config = Self {
            id,
            generation: object.generation,
            spec: digest_of(spec.as_bytes()).unwrap_or(Digest::NONE),
            down: Vec::new(),
            up: Vec::new(),
            conversions: Vec::new(),
            namespaces: BTreeSet::new(),
            unreadable: None,
        };
        let read = match kind {
            ConfigKind::SyncerConfig => syncer_config::read(spec, &mut config),
            ConfigKind::EdgeSyncConfig => edge_sync_config::read(spec, &mut config),
        };
        config.unreadable = read.err().map(|error| format!("it cannot be read: {error}"));
        config
    }
}

/// One entry: which objects, and how they are carried.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The object that it stands in.
    pub config: ConfigId,
    /// Where in it, as people write it.
    pub path: String,
    /// Of which kind.
    pub kind: KindRef,
    /// Whether the entry is only for kinds that live in namespaces, or only for those that do not.
    pub scope: Option<Scope>,
    /// In which namespaces; of no matter for kinds that live in none.
    pub namespaces: Which,
    /// By which names.
    pub names: Which,
    /// Only with these labels.
    pub labels: LabelSelector,
    /// Only with these annotations.
    pub annotations: LabelSelector,
    /// Only with such an owner.
    pub owner: Option<OwnerSelector>,
    /// How they are carried.
    pub options: Options,
    /// What is wrong with it. Whatever it may select is held: neither sent nor withdrawn.
    pub wrong: Option<String>,
}

impl Entry {
    /// Whether the entry names this object, whatever its labels.
    pub fn names(&self, namespace: &Name, name: &Name) -> bool {
        self.names.has(name) && (namespace.is_empty() || self.namespaces.has(namespace))
    }

    /// Where it stands, for people.
    pub fn place(&self) -> String {
        format!("{}: {}", self.config, self.path)
    }
}

/// How an entry says which kind it means.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum KindRef {
    /// By group and plural.
    Resource(KindId),
    /// By group and the name of the kind, which only discovery can translate.
    Named {
        /// The group.
        group: Name,
        /// The kind's name, such as `ConfigMap`.
        kind: Name,
    },
    /// Every kind of a group.
    Group(Name),
}

impl fmt::Display for KindRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource(kind) => write!(f, "{kind}"),
            Self::Named { group, kind } if group.is_empty() => write!(f, "{kind}"),
            Self::Named { group, kind } => write!(f, "{kind}.{group}"),
            Self::Group(group) => write!(f, "*.{group}"),
        }
    }
}

/// Whether objects of a kind live in namespaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// They do.
    Namespaced,
    /// They do not.
    Cluster,
}

/// Which names are meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Which {
    /// All of them: `*`.
    All,
    /// These.
    These(BTreeSet<Name>),
}

impl Which {
    /// The names that a list means: all if `*` is among them.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a String>) -> Self {
        let mut these = BTreeSet::new();
        for name in names {
            if name == "*" {
                return Self::All;
            }
            these.insert(Name::new(name));
        }
        Self::These(these)
    }

    /// Whether a name is meant.
    pub fn has(&self, name: &Name) -> bool {
        match self {
            Self::All => true,
            Self::These(these) => these.contains(name),
        }
    }

    /// Whether some name is meant by both.
    pub fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, Self::All) => true,
            (Self::All, Self::These(these)) | (Self::These(these), Self::All) => !these.is_empty(),
            (Self::These(one), Self::These(other)) => one.intersection(other).next().is_some(),
        }
    }
}

/// How the objects of an entry are carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// They get their real form at the edge.
    pub renature: bool,
    /// What the edge reports comes back.
    pub return_status: bool,
    /// What becomes of the copy when it is no longer wanted.
    pub propagation: DeletePropagation,
}

impl Default for Options {
    fn default() -> Self {
        Self { renature: true, return_status: true, propagation: DeletePropagation::Delete }
    }
}

impl Options {
    /// The cautious choice of two.
    #[must_use]
    pub fn cautious(self, other: Self) -> Self {
        let orphan = [self.propagation, other.propagation].contains(&DeletePropagation::Orphan);
        Self {
            renature: self.renature && other.renature,
            return_status: self.return_status && other.return_status,
            propagation: if orphan { DeletePropagation::Orphan } else { DeletePropagation::Delete },
        }
    }
}

/// An object, or a kind of objects, that has another form at the edge than in the mailbox.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conversion {
    /// The object that it stands in.
    pub config: ConfigId,
    /// Where in it.
    pub path: String,
    /// The form in the mailbox.
    pub upstream: Form,
    /// The form at the edge.
    pub downstream: Form,
}

/// One side of a conversion. What is empty is whatever the object has; so is a name or namespace `*`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Form {
    /// The group.
    pub group: Name,
    /// The version; empty: the one that is served.
    pub version: Name,
    /// The kind's name.
    pub kind: Name,
    /// The namespace.
    pub namespace: Option<Name>,
    /// The name.
    pub name: Option<Name>,
}
