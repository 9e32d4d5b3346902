//! Finding selectors by labels and labels by selectors, without looking at all of them.

use std::collections::{BTreeMap, BTreeSet};

use mailboat_object::select::{LabelSelector, Operator, Requirement};

/// Labels of an object.
pub(super) type Labels = BTreeMap<String, String>;

/// Who selects by labels. An owner with several selectors matches if any of them does.
#[derive(Debug)]
pub(super) struct SelectorIndex<O> {
    selectors: BTreeMap<O, Vec<LabelSelector>>,
    /// Owners that need this label to have this value.
    by_value: BTreeMap<(String, String), BTreeSet<O>>,
    /// Owners that need this label to be there.
    by_key: BTreeMap<String, BTreeSet<O>>,
    /// Owners that may match whatever the labels are.
    by_nothing: BTreeSet<O>,
}

/// Who has which labels.
#[derive(Debug)]
pub(super) struct LabelIndex<O> {
    labels: BTreeMap<O, Labels>,
    by_value: BTreeMap<(String, String), BTreeSet<O>>,
    by_key: BTreeMap<String, BTreeSet<O>>,
}

/// Where an owner's selector is found again.
enum Handle<'s> {
    Values(&'s Requirement),
    Key(&'s str),
    Nothing,
}

impl<O: Ord + Clone> SelectorIndex<O> {
    /// Sets what an owner selects by; an empty list selects nothing.
    pub(super) fn set(&mut self, owner: &O, selectors: Vec<LabelSelector>) {
        self.remove(owner);
        for selector in &selectors {
            match handle(selector) {
                Handle::Values(requirement) => {
                    for value in requirement.values() {
                        let slot = (requirement.key().to_owned(), value.clone());
                        self.by_value.entry(slot).or_default().insert(owner.clone());
                    }
                }
                Handle::Key(key) => {
                    self.by_key.entry(key.to_owned()).or_default().insert(owner.clone());
                }
                Handle::Nothing => {
                    self.by_nothing.insert(owner.clone());
                }
            }
        }
        self.selectors.insert(owner.clone(), selectors);
    }

    pub(super) fn remove(&mut self, owner: &O) {
        for selector in self.selectors.remove(owner).unwrap_or_default() {
            match handle(&selector) {
                Handle::Values(requirement) => {
                    for value in requirement.values() {
                        take(&mut self.by_value, &(requirement.key().to_owned(), value.clone()), owner);
                    }
                }
                Handle::Key(key) => take(&mut self.by_key, &key.to_owned(), owner),
                Handle::Nothing => drop(self.by_nothing.remove(owner)),
            }
        }
    }

    /// The owners whose selectors match these labels. `tested` counts those that had to be looked at.
    pub(super) fn matching(&self, labels: &Labels, tested: &mut u64) -> BTreeSet<O> {
        let mut candidates: BTreeSet<&O> = self.by_nothing.iter().collect();
        for (key, value) in labels {
            candidates.extend(self.by_key.get(key).into_iter().flatten());
            candidates.extend(self.by_value.get(&(key.clone(), value.clone())).into_iter().flatten());
        }
        *tested += candidates.len() as u64;
        let matches = |owner: &&O| {
            self.selectors.get(*owner).is_some_and(|all| all.iter().any(|one| one.matches(labels)))
        };
        candidates.into_iter().filter(matches).cloned().collect()
    }
}

impl<O: Ord + Clone> LabelIndex<O> {
    pub(super) fn set(&mut self, owner: &O, labels: &Labels) {
        self.remove(owner);
        for (key, value) in labels {
            self.by_value.entry((key.clone(), value.clone())).or_default().insert(owner.clone());
            self.by_key.entry(key.clone()).or_default().insert(owner.clone());
        }
        self.labels.insert(owner.clone(), labels.clone());
    }

    pub(super) fn remove(&mut self, owner: &O) {
        for (key, value) in self.labels.remove(owner).unwrap_or_default() {
            take(&mut self.by_key, &key, owner);
            take(&mut self.by_value, &(key, value), owner);
        }
    }

    /// The owners whose labels a selector matches. `tested` counts those that had to be looked at.
    pub(super) fn matching(&self, selector: &LabelSelector, tested: &mut u64) -> BTreeSet<O> {
        let candidates: Vec<&O> = match handle(selector) {
            Handle::Values(requirement) => {
                let slot = |value: &String| (requirement.key().to_owned(), value.clone());
                requirement
                    .values()
                    .iter()
                    .filter_map(|value| self.by_value.get(&slot(value)))
                    .flatten()
                    .collect()
            }
            Handle::Key(key) => self.by_key.get(key).into_iter().flatten().collect(),
            Handle::Nothing => self.labels.keys().collect(),
        };
        *tested += candidates.len() as u64;
        let matches = |owner: &&O| self.labels.get(*owner).is_some_and(|labels| selector.matches(labels));
        candidates.into_iter().filter(matches).cloned().collect()
    }
}

/// The requirement of a selector that fewest labels meet, as far as can be told from it alone.
fn handle(selector: &LabelSelector) -> Handle<'_> {
    let of =
        |operator: Operator| selector.requirements().iter().filter(move |one| one.operator() == operator);
    let narrowest = of(Operator::In).min_by_key(|requirement| requirement.values().len());
    match (narrowest, of(Operator::Exists).next()) {
        (Some(requirement), _) => Handle::Values(requirement),
        (None, Some(requirement)) => Handle::Key(requirement.key()),
        (None, None) => Handle::Nothing,
    }
}

fn take<K: Ord, O: Ord>(index: &mut BTreeMap<K, BTreeSet<O>>, key: &K, owner: &O) {
    if let Some(owners) = index.get_mut(key) {
        owners.remove(owner);
        if owners.is_empty() {
            index.remove(key);
        }
    }
}

impl<O> Default for SelectorIndex<O> {
    fn default() -> Self {
        Self {
            selectors: BTreeMap::new(),
            by_value: BTreeMap::new(),
            by_key: BTreeMap::new(),
            by_nothing: BTreeSet::new(),
        }
    }
}

impl<O> Default for LabelIndex<O> {
    fn default() -> Self {
        Self { labels: BTreeMap::new(), by_value: BTreeMap::new(), by_key: BTreeMap::new() }
    }
}
