//! How keys are written, and how it is checked that nothing got lost.

use std::collections::BTreeMap;
use std::path::Path;

use mailboat_object::{ClusterId, Key, KindId, Name, Version};
use xxhash_rust::xxh3::Xxh3;

use super::StorageError;

/// The format that this version writes. It reads those before as well, and the next write makes them this one: in the first,
/// objects were JSON (a file with both kinds of them is of the second), and in both there was no digest of what is kept
/// beside the objects.
pub(super) const FORMAT: u64 = 3;
const OLDEST_FORMAT: u64 = 1;
const NO_KEPT_DIGEST: u64 = 2;

/// `cluster 0 kind 0 namespace 0 name`: all of a workspace stand together. The name comes last because it alone may
/// hold any character.
pub(super) fn encode_key(key: &Key) -> Vec<u8> {
    let parts = [key.cluster.0.as_str(), &key.kind.to_string(), key.namespace.as_str(), key.name.as_str()];
    parts.join("\0").into_bytes()
}

pub(super) fn decode_key(bytes: &[u8], path: &Path) -> Result<Key, StorageError> {
    let bad = || StorageError::damaged(path, "a key makes no sense");
    let text = std::str::from_utf8(bytes).map_err(|_| bad())?;
    let mut parts = text.splitn(4, '\0');
    let mut part = || parts.next().ok_or_else(bad);
    let (cluster, kind, namespace, name) = (part()?, part()?, part()?, part()?);
    let (resource, group) = kind.split_once('.').unwrap_or((kind, ""));
    Ok(Key {
        cluster: ClusterId::new(cluster),
        kind: KindId::new(group, resource),
        namespace: Name::new(namespace),
        name: Name::new(name),
    })
}

/// What stands beside the objects and changes with every commit: up to where they go, how many they are, and a
/// digest over all of them. A page that is lost or stale thereby shows, although each object by itself looks well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct State {
    pub format: u64,
    pub version: Version,
    pub count: u64,
    /// The sum of the digests of all objects, so that it can follow a change without reading the others.
    pub digest: u64,
    /// The same of what is kept beside the objects. None: it was written before there was one.
    pub kept: Option<u64>,
}

impl State {
    /// Of a storage that holds nothing.
    pub(super) fn empty() -> Self {
        Self { format: FORMAT, version: Version(0), count: 0, digest: 0, kept: Some(0) }
    }

    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.count = self.count.wrapping_add(1);
        self.digest = self.digest.wrapping_add(digest(key, value));
    }

    pub(super) fn remove(&mut self, key: &[u8], value: &[u8]) {
        self.count = self.count.wrapping_sub(1);
        self.digest = self.digest.wrapping_sub(digest(key, value));
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let numbers = [self.format, self.version.0, self.count, self.digest].into_iter().chain(self.kept);
        let mut bytes: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
        let check = digest(b"state", &bytes);
        bytes.extend_from_slice(&check.to_le_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self, StorageError> {
        let bad = || StorageError::damaged(path, "its state makes no sense");
        let (numbers, check) = bytes.split_last_chunk::<8>().ok_or_else(bad)?;
        if u64::from_le_bytes(*check) != digest(b"state", numbers) {
            return Err(bad());
        }
        let mut numbers = numbers
            .chunks_exact(8)
            .map(|chunk| chunk.iter().rev().fold(0_u64, |number, byte| (number << 8) | u64::from(*byte)));
        let mut next = || numbers.next().ok_or_else(bad);
        let (format, version) = (next()?, Version(next()?));
        let (count, digest) = (next()?, next()?);
        let kept = if format <= NO_KEPT_DIGEST { None } else { Some(next()?) };
        let state = Self { format, version, count, digest, kept };
        if !(OLDEST_FORMAT..=FORMAT).contains(&state.format) {
            return Err(StorageError::Format { path: path.to_owned(), found: state.format, known: FORMAT });
        }
        Ok(state)
    }
}

/// The digest of everything that is kept beside the objects.
pub(super) fn digest_kept(kept: &BTreeMap<String, Vec<u8>>) -> u64 {
    let digests = kept.iter().map(|(name, value)| digest(name.as_bytes(), value));
    digests.fold(0, u64::wrapping_add)
}

fn digest(key: &[u8], value: &[u8]) -> u64 {
    let mut digest = Xxh3::new();
    digest.update(&u64::try_from(key.len()).unwrap_or(u64::MAX).to_le_bytes());
    digest.update(key);
    digest.update(value);
    digest.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_read_back_whatever_the_name_holds() {
        for (kind, namespace, name) in [
            (KindId::new("", "configmaps"), "default", "a"),
            (KindId::new("rbac.authorization.k8s.io", "clusterroles"), "", "system:node\0odd"),
        ] {
            let key = Key {
                cluster: ClusterId::new("1a2b"),
                kind,
                namespace: Name::new(namespace),
                name: Name::new(name),
            };
            assert_eq!(decode_key(&encode_key(&key), Path::new("x")).unwrap(), key);
        }
        assert!(decode_key(b"a\0b", Path::new("x")).is_err());
    }

    #[test]
    fn a_state_reads_back_and_no_flipped_bit_passes() {
        let mut state = State::empty();
        state.version = Version(77);
        state.add(b"k", b"v");
        state.add(b"l", b"w");
        state.remove(b"k", b"v");
        let bytes = state.to_bytes();
        assert_eq!(State::from_bytes(&bytes, Path::new("x")).unwrap(), state);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(State::from_bytes(&flipped, Path::new("x")).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn another_format_is_named() {
        for format in [1, 2] {
            let before = State { format, kept: None, ..State::empty() };
            assert_eq!(State::from_bytes(&before.to_bytes(), Path::new("x")).unwrap(), before);
        }
        let state = State { format: 9, ..State::empty() };
        let refused = State::from_bytes(&state.to_bytes(), Path::new("x")).unwrap_err().to_string();
        assert_eq!(refused, "x has format 9 and this version reads format 3: use the version that wrote it");
    }
}
