//! What stands on one shelf, sorted by namespace and name.
//!
//! Most shelves hold a few objects: a mailbox has one role, four bindings, twenty copies of a kind. A tree would take half a
//! kilobyte for the first of them, and there are ten shelves for each of ten thousand mailboxes. So few are a list, and only
//! many are a tree.

use std::collections::{BTreeMap, btree_map};

use super::entry::{Address, Entry};

/// More than this are a tree, where one can be put in without moving the others.
const FEW: usize = 32;
/// A full list grows by this share of itself.
const GROWS_BY: usize = 4;

/// The entries of one shelf.
pub(super) enum Entries {
    Few(Vec<(Address, Entry)>),
    Many(BTreeMap<Address, Entry>),
}

impl Entries {
    pub(super) fn new() -> Self {
        Self::Few(Vec::new())
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Few(few) => few.len(),
            Self::Many(many) => many.len(),
        }
    }

    pub(super) fn get(&self, address: &Address) -> Option<&Entry> {
        match self {
            Self::Few(few) => find(few, address).ok().and_then(|at| few.get(at)).map(|(_, entry)| entry),
            Self::Many(many) => many.get(address),
        }
    }

    pub(super) fn get_mut(&mut self, address: &Address) -> Option<&mut Entry> {
        match self {
            Self::Few(few) => {
                let at = find(few, address).ok()?;
                few.get_mut(at).map(|(_, entry)| entry)
            }
            Self::Many(many) => many.get_mut(address),
        }
    }

    /// Puts an entry in, in place of the one that was there.
    pub(super) fn insert(&mut self, address: Address, entry: Entry) {
        match self {
            Self::Many(many) => drop(many.insert(address, entry)),
            Self::Few(few) => match find(few, &address) {
                Ok(at) => few[at].1 = entry,
                Err(at) if few.len() < FEW => {
                    if few.len() == few.capacity() {
                        few.reserve_exact(few.len() / GROWS_BY + 1);
                    }
                    few.insert(at, (address, entry));
                }
                Err(_) => {
                    let mut many: BTreeMap<_, _> = std::mem::take(few).into_iter().collect();
                    many.insert(address, entry);
                    *self = Self::Many(many);
                }
            },
        }
    }

    pub(super) fn remove(&mut self, address: &Address) {
        match self {
            Self::Few(few) => {
                if let Ok(at) = find(few, address) {
                    few.remove(at);
                }
            }
            Self::Many(many) => drop(many.remove(address)),
        }
    }

    pub(super) fn retain(&mut self, mut stays: impl FnMut(&Address, &mut Entry) -> bool) {
        match self {
            Self::Few(few) => few.retain_mut(|(address, entry)| stays(address, entry)),
            Self::Many(many) => many.retain(stays),
        }
    }

    /// All of them in order, or those from an address on.
    pub(super) fn iter(&self, from: Option<&Address>) -> Iter<'_> {
        match (self, from) {
            (Self::Few(few), None) => Iter::Few(few.iter()),
            (Self::Few(few), Some(from)) => {
                let at = few.partition_point(|(address, _)| address < from);
                Iter::Few(few.get(at..).unwrap_or_default().iter())
            }
            (Self::Many(many), None) => Iter::Many(many.range(..)),
            (Self::Many(many), Some(from)) => Iter::Many(many.range::<Address, _>(from..)),
        }
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Entry> {
        self.iter(None).map(|(_, entry)| entry)
    }
}

/// Entries in order.
#[derive(Clone)]
pub(super) enum Iter<'a> {
    Few(std::slice::Iter<'a, (Address, Entry)>),
    Many(btree_map::Range<'a, Address, Entry>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a Address, &'a Entry);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Few(few) => few.next().map(|(address, entry)| (address, entry)),
            Self::Many(many) => many.next(),
        }
    }
}

fn find(few: &[(Address, Entry)], address: &Address) -> Result<usize, usize> {
    few.binary_search_by(|(known, _)| known.cmp(address))
}

#[cfg(test)]
mod tests {
    use mailboat_object::key::{Name, Version};

    use super::*;
    use crate::seen::Doubt;

    fn address(number: usize) -> Address {
        Address {
            namespace: Name::new(&format!("n{}", number % 3)),
            name: Name::new(&format!("{number:03}")),
        }
    }

    fn entry(list: u32) -> Entry {
        Entry::doubted(Doubt::Malformed, Version(0), list)
    }

    fn listed<'e>(entries: impl Iterator<Item = (&'e Address, &'e Entry)>) -> Vec<(Address, u32)> {
        entries.map(|(address, entry)| (address.clone(), entry.list)).collect()
    }

    /// Few or many, in whatever order they come and go, they are what a tree would hold.
    #[test]
    fn a_list_and_a_tree_hold_the_same() {
        for count in [1, 5, FEW - 1, FEW, FEW + 1, 4 * FEW] {
            let (mut entries, mut model) = (Entries::new(), BTreeMap::new());
            for step in 0..4 * count {
                let (number, list) = (step * 7 % count, u32::try_from(step).unwrap());
                if step % 5 == 4 {
                    entries.remove(&address(number));
                    model.remove(&address(number));
                } else {
                    entries.insert(address(number), entry(list));
                    model.insert(address(number), entry(list));
                }
                if let Some(found) = entries.get_mut(&address(step % count)) {
                    found.list += 1_000;
                }
                if let Some(found) = model.get_mut(&address(step % count)) {
                    found.list += 1_000;
                }
                let (found, known) = (entries.get(&address(number)), model.get(&address(number)));
                assert_eq!(found.map(|entry| entry.list), known.map(|entry| entry.list));
                assert_eq!(listed(entries.iter(None)), listed(model.iter()));
                assert_eq!(entries.len(), model.len());
            }
            let from = address(count / 2);
            assert_eq!(listed(entries.iter(Some(&from))), listed(model.range::<Address, _>(&from..)));
            entries.retain(|_, entry| entry.list % 2 == 0);
            model.retain(|_, entry| entry.list % 2 == 0);
            assert_eq!(listed(entries.iter(None)), listed(model.iter()));
        }
    }

    #[test]
    fn the_first_of_a_shelf_takes_little() {
        let mut entries = Entries::new();
        entries.insert(address(1), entry(1));
        assert!(matches!(&entries, Entries::Few(few) if few.capacity() == 1));
        assert!(size_of::<Entries>() <= 32 && size_of::<(Address, Entry)>() <= 40);
    }
}
