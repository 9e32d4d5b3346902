//! What names an object: interned names, clusters, kinds and keys.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::{LazyLock, Mutex, PoisonError};

use arcstr::ArcStr;

/// A text of which the process holds one copy, eight bytes wide.
///
/// Names repeat massively (every object of a namespace, every copy of a workload at ten thousand edges), so
/// equal names share one allocation and equality is a comparison of pointers. Order and hash are those of the
/// text, so that nothing depends on the order in which names were first seen.
#[derive(Clone)]
pub struct Name(ArcStr);

/// All live names. Dead ones are swept out whenever the table has doubled, so it never holds more than twice
/// what is in use, whatever tenants come and go (H28).
struct Interner {
    names: std::collections::HashSet<ArcStr, foldhash::fast::RandomState>,
    sweep_at: usize,
}

const SWEEP_AT_LEAST: usize = 1024;

static INTERNER: LazyLock<Mutex<Interner>> = LazyLock::new(|| {
    Mutex::new(Interner { names: std::collections::HashSet::default(), sweep_at: SWEEP_AT_LEAST })
});

impl Name {
    /// The one copy of `text`.
    pub fn new(text: &str) -> Self {
        if text.is_empty() {
            return Self::EMPTY;
        }
        // A panic while the lock was held cannot leave the set torn: it only ever gains or loses whole names.
        let mut interner = INTERNER.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = interner.names.get(text) {
            return Self(name.clone());
        }
        if interner.names.len() >= interner.sweep_at {
            interner.names.retain(|name| ArcStr::strong_count(name).is_none_or(|count| count > 1));
            interner.sweep_at = SWEEP_AT_LEAST.max(2 * interner.names.len());
        }
        let name = ArcStr::from(text);
        interner.names.insert(name.clone());
        Self(name)
    }

    /// The empty name: the namespace of what has none.
    pub const EMPTY: Self = Self(arcstr::literal!(""));

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        ArcStr::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        if self == other { std::cmp::Ordering::Equal } else { self.as_str().cmp(other.as_str()) }
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl Default for Name {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One plain cluster (by the name our configuration gives it) or one logical cluster of kcp (by its id, the
/// value of the annotation `kcp.io/cluster`; never by its path, which can be given to another).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ClusterId(pub Name);

impl ClusterId {
    /// The cluster of this name or id.
    pub fn new(id: &str) -> Self {
        Self(Name::new(id))
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A kind's identity: group and resource, written as Kubernetes writes it (`deployments.apps`, and
/// `configmaps` for the core group). The version belongs to the endpoint that serves it, not to identity.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct KindId(Name);

impl KindId {
    /// The kind of this group (empty: core) and plural resource name.
    pub fn new(group: &str, resource: &str) -> Self {
        if group.is_empty() {
            Self(Name::new(resource))
        } else {
            Self(Name::new(&format!("{resource}.{group}")))
        }
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.0.as_str().split_once('.').map_or("", |(_, group)| group)
    }

    /// The plural resource name.
    pub fn resource(&self) -> &str {
        self.0.as_str().split_once('.').map_or(self.0.as_str(), |(resource, _)| resource)
    }
}

impl fmt::Display for KindId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where one object stands, in 32 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    /// The cluster or workspace.
    pub cluster: ClusterId,
    /// Group and resource.
    pub kind: KindId,
    /// The namespace; empty for what is cluster-scoped.
    pub namespace: Name,
    /// The object's name.
    pub name: Name,
}

impl fmt::Display for Key {
    /// `cluster|kind namespace/name`, with kcp's own bar between cluster and name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}|{} ", self.cluster, self.kind)?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// An object's uid. API servers give UUIDs, kept in sixteen bytes; anything else is kept as it came, because
/// it goes back to the server as a precondition.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Uid {
    /// A UUID in its usual lower-case form, as bytes: a number of 128 bits would align every head to sixteen.
    Uuid([u8; 16]),
    /// Any other text.
    Other(Name),
}

impl Uid {
    /// Takes a uid as a server wrote it.
    pub fn parse(text: &str) -> Self {
        uuid(text.as_bytes()).map_or_else(|| Self::Other(Name::new(text)), Self::Uuid)
    }
}

/// A UUID in exactly the form in which it is written again.
fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    /// Where the two digits of each byte begin.
    const DIGITS: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
    let text: &[u8; 36] = text.try_into().ok()?;
    if [8, 13, 18, 23].iter().any(|at| text[*at] != b'-') {
        return None;
    }
    let mut bytes = [0; 16];
    for (byte, at) in bytes.iter_mut().zip(DIGITS) {
        *byte = digit(text[at])? << 4 | digit(text[at + 1])?;
    }
    Some(bytes)
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uuid(bytes) => {
                let n = u128::from_be_bytes(*bytes);
                write!(
                    f,
                    "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                    n >> 96,
                    (n >> 80) & 0xffff,
                    (n >> 64) & 0xffff,
                    (n >> 48) & 0xffff,
                    n & 0xffff_ffff_ffff
                )
            }
            Self::Other(text) => text.fmt(f),
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A resource version. Servers give decimal numbers that grow within one server (one etcd); versions of
/// different servers or shards are never compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version(pub u64);

impl Version {
    /// A version as servers write it: decimal digits alone, without a sign. None for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok().map(Self) } else { None }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_name_and_a_key_is_small() {
        assert_eq!(Name::new("guilder"), Name::new("guilder"));
        assert_ne!(Name::new("guilder"), Name::new("florin"));
        assert!(Name::new("florin") < Name::new("guilder"));
        assert_eq!(Name::new(""), Name::EMPTY);
        assert_eq!((size_of::<Key>(), size_of::<Option<Uid>>()), (32, 24));
    }

    #[test]
    fn names_no_longer_used_are_swept() {
        for n in 0..10 * SWEEP_AT_LEAST {
            drop(Name::new(&format!("passing-tenant-{n}")));
        }
        let live = INTERNER.lock().unwrap().names.len();
        assert!(live <= 3 * SWEEP_AT_LEAST, "{live} names kept");
    }

    #[test]
    fn a_kind_gives_back_its_group_and_resource() {
        let deployments = KindId::new("apps", "deployments");
        assert_eq!((deployments.group(), deployments.resource()), ("apps", "deployments"));
        assert_eq!(deployments.to_string(), "deployments.apps");
        let roles = KindId::new("rbac.authorization.k8s.io", "roles");
        assert_eq!((roles.group(), roles.resource()), ("rbac.authorization.k8s.io", "roles"));
        let configmaps = KindId::new("", "configmaps");
        assert_eq!((configmaps.group(), configmaps.resource()), ("", "configmaps"));
    }

    #[test]
    fn any_uid_comes_back_as_it_was_written() {
        for text in [
            "f99e773f-3db2-439e-8054-827c4ac55368",
            "00000000-0000-0000-0000-000000000007",
            "",
            "F99E",
            "F99E773F-3DB2-439E-8054-827C4AC55368",
            "f99e773f-3db2-439e-80548-27c4ac55368",
            "f99e773fa3db2-439e-8054-827c4ac55368",
            "not-a-uuid",
        ] {
            assert_eq!(Uid::parse(text).to_string(), text);
        }
        assert!(matches!(Uid::parse("f99e773f-3db2-439e-8054-827c4ac55368"), Uid::Uuid(_)));
    }

    #[test]
    fn a_key_reads_as_kcp_writes_it() {
        let key = Key {
            cluster: ClusterId::new("2sxa8riw5xha32po"),
            kind: KindId::new("apps", "deployments"),
            namespace: Name::new("till"),
            name: Name::new("pos"),
        };
        assert_eq!(key.to_string(), "2sxa8riw5xha32po|deployments.apps till/pos");
    }
}
