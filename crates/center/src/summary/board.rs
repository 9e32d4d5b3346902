//! One summary in numbers, kept by increments: a copy that changes costs the groups that it is in.

use std::collections::BTreeMap;
use std::sync::Arc;

use mailboat_object::key::{KindId, Name};

use super::aggregate::{Number, Numbers};
use super::counts::{Counts, Standing};
use super::edge::LabelPair;
use super::health::Cause;
use super::rules::Rules;
use super::{CopyId, ObjectId};

#[derive(Debug)]
pub(super) struct Board {
    pub(super) rules: Arc<Rules>,
    pub(super) totals: Counts,
    pub(super) kinds: BTreeMap<KindId, Counts>,
    pub(super) objects: BTreeMap<ObjectId, Counts>,
    pub(super) labels: BTreeMap<Name, BTreeMap<Name, Counts>>,
    /// The groups of each grouper.
    pub(super) groupings: Vec<BTreeMap<Vec<String>, Group>>,
    pub(super) broken: BTreeMap<CopyId, Broken>,
    /// For how many copies each expression fails, by what went wrong.
    failures: BTreeMap<(usize, String), u64>,
    contributions: BTreeMap<CopyId, Contribution>,
}

/// What one copy adds to a board, so that exactly this can be taken away again.
#[derive(Clone, Debug)]
pub(super) struct Contribution {
    standing: Standing,
    labels: Arc<[LabelPair]>,
    more: Option<Box<More>>,
}

/// What most copies do not add.
#[derive(Clone, PartialEq, Debug)]
struct More {
    cause: Option<Cause>,
    groups: Vec<Grouped>,
    failures: Vec<(usize, String)>,
}

/// A copy in one grouping: the group, and its number for each aggregate.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Grouped {
    pub(super) by: Vec<String>,
    pub(super) numbers: Vec<Option<Number>>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Group {
    pub(super) copies: u64,
    pub(super) numbers: Vec<Numbers>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Broken {
    pub(super) cause: Cause,
    /// Since when, in Unix seconds.
    pub(super) since: u64,
}

impl Contribution {
    pub(super) fn new(
        standing: Standing,
        labels: Arc<[LabelPair]>,
        cause: Option<Cause>,
        groups: Vec<Grouped>,
        failures: Vec<(usize, String)>,
    ) -> Self {
        let more = More { cause, groups, failures };
        let ordinary = more.cause.is_none() && more.groups.is_empty() && more.failures.is_empty();
        Self { standing, labels, more: (!ordinary).then(|| Box::new(more)) }
    }
}

impl PartialEq for Contribution {
    fn eq(&self, other: &Self) -> bool {
        let same_labels = Arc::ptr_eq(&self.labels, &other.labels) || self.labels == other.labels;
        self.standing == other.standing && same_labels && self.more == other.more
    }
}

impl Board {
    pub(super) fn new(rules: Arc<Rules>) -> Self {
        let groupings = rules.groupers.iter().map(|_| BTreeMap::new()).collect();
        Self {
            rules,
            totals: Counts::default(),
            kinds: BTreeMap::new(),
            objects: BTreeMap::new(),
            labels: BTreeMap::new(),
            groupings,
            broken: BTreeMap::new(),
            failures: BTreeMap::new(),
            contributions: BTreeMap::new(),
        }
    }

    /// Says what a copy adds from now on, and whether that is something else than before. `since` is when it is to
    /// have been broken from, if it is now and was not before.
    pub(super) fn set(&mut self, id: &CopyId, now: Option<Contribution>, since: u64) -> bool {
        let before = self.contributions.get(id);
        if before == now.as_ref() {
            return false;
        }
        let since = self.broken.get(id).map_or(since, |broken| broken.since);
        if let Some(before) = self.contributions.remove(id) {
            self.take_away(id, &before);
        }
        if let Some(now) = now {
            self.put(id, &now, since);
            self.contributions.insert(id.clone(), now);
        }
        true
    }

    /// For how many copies expressions fail, and how.
    pub(super) fn failures(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        self.failures.iter().filter_map(|((at, told), count)| {
            Some((self.rules.paths.get(*at)?.as_str(), told.as_str(), *count))
        })
    }

    fn put(&mut self, id: &CopyId, contribution: &Contribution, since: u64) {
        let standing = contribution.standing;
        self.totals.add(standing);
        self.kinds.entry(id.object.kind.clone()).or_default().add(standing);
        self.objects.entry(id.object.clone()).or_default().add(standing);
        for (key, value) in &*contribution.labels {
            self.labels.entry(key.clone()).or_default().entry(value.clone()).or_default().add(standing);
        }
        let Some(more) = &contribution.more else { return };
        if let Some(cause) = &more.cause {
            self.broken.insert(id.clone(), Broken { cause: cause.clone(), since });
        }
        for failure in &more.failures {
            *self.failures.entry(failure.clone()).or_default() += 1;
        }
        for (groups, grouped) in self.groupings.iter_mut().zip(&more.groups) {
            let group = groups.entry(grouped.by.clone()).or_default();
            group.copies += 1;
            group.numbers.resize_with(grouped.numbers.len(), Numbers::default);
            for (numbers, number) in group.numbers.iter_mut().zip(&grouped.numbers) {
                if let Some(number) = number {
                    numbers.add(*number);
                }
            }
        }
    }

    fn take_away(&mut self, id: &CopyId, contribution: &Contribution) {
        let standing = contribution.standing;
        self.totals.remove(standing);
        less(&mut self.kinds, &id.object.kind, standing);
        less(&mut self.objects, &id.object, standing);
        for (key, value) in &*contribution.labels {
            if let Some(values) = self.labels.get_mut(key) {
                less(values, value, standing);
                if values.is_empty() {
                    self.labels.remove(key);
                }
            }
        }
        let Some(more) = &contribution.more else { return };
        if more.cause.is_some() {
            self.broken.remove(id);
        }
        for failure in &more.failures {
            if let Some(count) = self.failures.get_mut(failure) {
                *count -= 1;
                if *count == 0 {
                    self.failures.remove(failure);
                }
            }
        }
        for (groups, grouped) in self.groupings.iter_mut().zip(&more.groups) {
            let Some(group) = groups.get_mut(&grouped.by) else { continue };
            group.copies -= 1;
            for (numbers, number) in group.numbers.iter_mut().zip(&grouped.numbers) {
                if let Some(number) = number {
                    numbers.remove(*number);
                }
            }
            if group.copies == 0 {
                groups.remove(&grouped.by);
            }
        }
    }
}

/// One copy less in a group, and no group where no copy is left.
fn less<K: Ord>(groups: &mut BTreeMap<K, Counts>, key: &K, standing: Standing) {
    if let Some(counts) = groups.get_mut(key) {
        counts.remove(standing);
        if counts.wanted == 0 {
            groups.remove(key);
        }
    }
}
