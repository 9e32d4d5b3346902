//! A set kept in parts of bounded size, so that a change rewrites one part.
//!
//! The parts are the leaves of a binary tree over a hash: where a part would outgrow its limit it is halved, and
//! where two halves fit into one again they are joined. Which parts there are depends on what is in the set and
//! on nothing else, neither on the order in which it came nor on a restart, so that what was written before is
//! found unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// No hash leads deeper; entries that still share a part stay together however many they are.
const DEEPEST: u8 = 48;

/// A set of entries in parts.
#[derive(Clone, Debug)]
pub struct Shards<K, V> {
    root: Node<K, V>,
    limit: usize,
    changed: BTreeSet<Shard>,
}

/// Names a part: the leading bits that the hashes of its entries share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Shard {
    bits: u64,
    depth: u8,
}

#[derive(Clone, Debug)]
enum Node<K, V> {
    Part(Part<K, V>),
    Halves { low: Box<Node<K, V>>, high: Box<Node<K, V>>, weight: usize, entries: usize },
}

#[derive(Clone, Debug)]
struct Part<K, V> {
    entries: BTreeMap<K, Entry<V>>,
    weight: usize,
}

#[derive(Clone, Debug)]
struct Entry<V> {
    hash: u64,
    weight: usize,
    value: V,
}

impl<K: Ord + Clone, V: PartialEq> Shards<K, V> {
    /// An empty set in parts that weigh at most so much, each entry by itself excepted.
    pub fn new(limit: usize) -> Self {
        let changed = BTreeSet::from([Shard::FIRST]);
        Self { root: Node::Part(Part::default()), limit, changed }
    }

    /// Puts an entry in, or in the place of the one with its key. The hash must be the key's alone.
    pub fn insert(&mut self, key: K, hash: u64, weight: usize, value: V) {
        if self.get(&key, hash).is_some_and(|known| known.value == value && known.weight == weight) {
            return;
        }
        let entry = Entry { hash, weight, value };
        self.root.insert(key, entry, Shard::FIRST, self.limit, &mut self.changed);
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &K, hash: u64) {
        if self.get(key, hash).is_some() {
            self.root.remove(key, hash, Shard::FIRST, self.limit, &mut self.changed);
        }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.root.entries()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The parts in order. There is always one, which may be empty.
    pub fn parts(&self) -> Vec<Shard> {
        let mut parts = Vec::new();
        self.root.collect(Shard::FIRST, &mut parts);
        parts
    }

    /// The entries of a part in the order of their keys; `None` if there is no such part.
    pub fn part(&self, shard: Shard) -> Option<impl Iterator<Item = (&K, &V)>> {
        let mut node = &self.root;
        for level in 0..shard.depth {
            let Node::Halves { low, high, .. } = node else { return None };
            node = if bit(shard.bits, level) { high } else { low };
        }
        let Node::Part(part) = node else { return None };
        Some(part.entries.iter().map(|(key, entry)| (key, &entry.value)))
    }

    /// The parts that changed, came or went since this was last asked.
    pub fn take_changed(&mut self) -> BTreeSet<Shard> {
        std::mem::take(&mut self.changed)
    }

    /// Whether any has, since that was last asked.
    pub fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    fn get(&self, key: &K, hash: u64) -> Option<&Entry<V>> {
        let (mut node, mut level) = (&self.root, 0);
        loop {
            match node {
                Node::Part(part) => return part.entries.get(key),
                Node::Halves { low, high, .. } => node = if bit(hash, level) { high } else { low },
            }
            level += 1;
        }
    }
}

impl<K: Ord + Clone, V> Node<K, V> {
    fn weight(&self) -> usize {
        match self {
            Self::Part(part) => part.weight,
            Self::Halves { weight, .. } => *weight,
        }
    }

    fn entries(&self) -> usize {
        match self {
            Self::Part(part) => part.entries.len(),
            Self::Halves { entries, .. } => *entries,
        }
    }

    fn insert(&mut self, key: K, entry: Entry<V>, at: Shard, limit: usize, changed: &mut BTreeSet<Shard>) {
        match self {
            Self::Part(part) => {
                part.insert(key, entry);
                changed.insert(at);
            }
            Self::Halves { low, high, .. } => {
                let (half, to) = if bit(entry.hash, at.depth) { (high, at.high()) } else { (low, at.low()) };
                half.insert(key, entry, to, limit, changed);
            }
        }
        self.balance(at, limit, changed);
    }

    fn remove(&mut self, key: &K, hash: u64, at: Shard, limit: usize, changed: &mut BTreeSet<Shard>) {
        match self {
            Self::Part(part) => {
                part.remove(key);
                changed.insert(at);
            }
            Self::Halves { low, high, .. } => {
                let (half, to) = if bit(hash, at.depth) { (high, at.high()) } else { (low, at.low()) };
                half.remove(key, hash, to, limit, changed);
            }
        }
        self.balance(at, limit, changed);
    }

    /// Halves a part that outgrew the limit, joins halves that fit into one, and counts anew.
    fn balance(&mut self, at: Shard, limit: usize, changed: &mut BTreeSet<Shard>) {
        match self {
            Self::Part(_) if self.weight() > limit && self.entries() > 1 && at.depth < DEEPEST => {
                let Self::Part(part) = std::mem::replace(self, Self::Part(Part::default())) else { return };
                let (mut low, mut high) = (Part::default(), Part::default());
                for (key, entry) in part.entries {
                    if bit(entry.hash, at.depth) { &mut high } else { &mut low }.insert(key, entry);
                }
                let (mut low, mut high) = (Box::new(Self::Part(low)), Box::new(Self::Part(high)));
                changed.extend([at, at.low(), at.high()]);
                low.balance(at.low(), limit, changed);
                high.balance(at.high(), limit, changed);
                let (weight, entries) = (low.weight() + high.weight(), low.entries() + high.entries());
                *self = Self::Halves { low, high, weight, entries };
            }
            Self::Part(_) => {}
            Self::Halves { low, high, weight, entries } => {
                (*weight, *entries) = (low.weight() + high.weight(), low.entries() + high.entries());
                if *weight > limit && *entries > 1 {
                    return;
                }
                let mut joined = Part::default();
                low.drain(at.low(), &mut joined, changed);
                high.drain(at.high(), &mut joined, changed);
                changed.insert(at);
                *self = Self::Part(joined);
            }
        }
    }

    fn drain(&mut self, at: Shard, into: &mut Part<K, V>, changed: &mut BTreeSet<Shard>) {
        changed.insert(at);
        match self {
            Self::Part(part) => into.append(part),
            Self::Halves { low, high, .. } => {
                low.drain(at.low(), into, changed);
                high.drain(at.high(), into, changed);
            }
        }
    }

    fn collect(&self, at: Shard, parts: &mut Vec<Shard>) {
        match self {
            Self::Part(_) => parts.push(at),
            Self::Halves { low, high, .. } => {
                low.collect(at.low(), parts);
                high.collect(at.high(), parts);
            }
        }
    }
}

impl<K: Ord, V> Part<K, V> {
    fn insert(&mut self, key: K, entry: Entry<V>) {
        self.weight += entry.weight;
        self.weight -= self.entries.insert(key, entry).map_or(0, |before| before.weight);
    }

    fn remove(&mut self, key: &K) {
        self.weight -= self.entries.remove(key).map_or(0, |before| before.weight);
    }

    fn append(&mut self, other: &mut Self) {
        self.entries.append(&mut other.entries);
        self.weight += std::mem::take(&mut other.weight);
    }
}

impl<K, V> Default for Part<K, V> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), weight: 0 }
    }
}

impl Shard {
    /// The part that is always there, in one form or another: see [`Shard::is_first`].
    pub const FIRST: Self = Self { bits: 0, depth: 0 };

    /// Whether it is the first of its set, which bears the set's own name whatever its size.
    pub fn is_first(self) -> bool {
        self.bits == 0
    }

    fn low(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    fn high(self) -> Self {
        Self { bits: self.bits | 1 << (63 - self.depth), depth: self.depth + 1 }
    }
}

impl fmt::Display for Shard {
    /// Its bits: `0110`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..self.depth).try_for_each(|level| f.write_str(if bit(self.bits, level) { "1" } else { "0" }))
    }
}

/// The bit at a level, the highest first.
fn bit(hash: u64, level: u8) -> bool {
    hash >> (63 - level.min(63)) & 1 == 1
}

#[cfg(test)]
mod tests;
