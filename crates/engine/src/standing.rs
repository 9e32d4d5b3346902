//! How everything stands, in numbers that are kept as verdicts change and never counted anew.
//!
//! A role reports of ten thousand edges and two hundred thousand slots many times a minute. What it asks for here costs
//! the same whether there is one slot or a million.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use mailboat_object::key::{ClusterId, Version};

use crate::breaker::ScopeId;
use crate::plan::{ChangeId, Verdict};
use crate::slots::SlotId;

/// What slots are counted by.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Part {
    /// All that is to stand in one cluster.
    Cluster(ClusterId),
    /// All that belongs to one scope, wherever it is to stand.
    Scope(ScopeId),
}

/// How many slots stand how.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// As wanted.
    pub delivered: usize,
    /// On their way, or waiting for something.
    pub waiting: usize,
    /// Refused: somebody has to change something.
    pub refused: usize,
    /// Their withdrawal is held until somebody confirms it.
    pub held: usize,
}

impl Counts {
    /// All slots that are not as wanted.
    pub fn not_current(&self) -> usize {
        self.waiting + self.refused + self.held
    }
}

/// How one slot is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stance {
    Delivered,
    Waiting,
    Refused,
    Held(ChangeId),
}

impl Stance {
    /// How a slot is counted; not at all if nobody wants it and nothing is to be done about it.
    pub(crate) fn of(verdict: Option<&Verdict>, claimed: bool) -> Option<Self> {
        match verdict {
            Some(Verdict::Settled) => claimed.then_some(Self::Delivered),
            None | Some(Verdict::Acting) => claimed.then_some(Self::Waiting),
            Some(Verdict::Waiting(_)) => Some(Self::Waiting),
            Some(Verdict::Refused(_)) => Some(Self::Refused),
            Some(Verdict::Held(change)) => Some(Self::Held(*change)),
        }
    }
}

/// All that is counted.
#[derive(Default)]
pub(crate) struct Standings {
    /// Asked and changed with each verdict, and never gone through where an order would show.
    parts: HashMap<Part, Standing, foldhash::fast::FixedState>,
    held: BTreeMap<ChangeId, usize>,
    owed: BTreeMap<ClusterId, BTreeMap<Version, usize>>,
}

#[derive(Default)]
struct Standing {
    counts: Counts,
    not_current: BTreeSet<SlotId>,
}

impl Standings {
    /// A slot stands so from now on.
    pub(crate) fn enter(&mut self, slot: SlotId, cluster: &ClusterId, scope: &ScopeId, stance: Stance) {
        for part in [Part::Cluster(cluster.clone()), Part::Scope(scope.clone())] {
            let standing = self.parts.entry(part).or_default();
            *standing.counts.of(stance) += 1;
            if stance != Stance::Delivered {
                standing.not_current.insert(slot);
            }
        }
        if let Stance::Held(change) = stance {
            *self.held.entry(change).or_default() += 1;
        }
    }

    /// It does not any more.
    pub(crate) fn leave(&mut self, slot: SlotId, cluster: &ClusterId, scope: &ScopeId, stance: Stance) {
        for part in [Part::Cluster(cluster.clone()), Part::Scope(scope.clone())] {
            let Some(standing) = self.parts.get_mut(&part) else { continue };
            let count = standing.counts.of(stance);
            *count = count.saturating_sub(1);
            standing.not_current.remove(&slot);
            if standing.counts == Counts::default() {
                self.parts.remove(&part);
            }
        }
        if let Stance::Held(change) = stance {
            take_one(&mut self.held, &change);
        }
    }

    /// How many parts something is counted in, and clusters to which something is owed.
    pub(crate) fn len(&self) -> usize {
        self.parts.len() + self.held.len() + self.owed.len()
    }

    pub(crate) fn counts(&self, part: &Part) -> Counts {
        self.parts.get(part).map_or_else(Counts::default, |standing| standing.counts)
    }

    /// How all slots stand: each is in one cluster.
    pub(crate) fn total(&self) -> Counts {
        let clusters = self.parts.iter().filter(|(part, _)| matches!(part, Part::Cluster(_)));
        clusters.fold(Counts::default(), |sum, (_, Standing { counts, .. })| Counts {
            delivered: sum.delivered + counts.delivered,
            waiting: sum.waiting + counts.waiting,
            refused: sum.refused + counts.refused,
            held: sum.held + counts.held,
        })
    }

    pub(crate) fn not_current(&self, part: &Part) -> impl Iterator<Item = SlotId> {
        self.parts.get(part).into_iter().flat_map(|standing| standing.not_current.iter().copied())
    }

    /// All that is not as wanted, in no order: each slot is in one cluster.
    pub(crate) fn all_not_current(&self) -> impl Iterator<Item = SlotId> {
        let clusters = self.parts.iter().filter(|(part, _)| matches!(part, Part::Cluster(_)));
        clusters.flat_map(|(_, standing)| standing.not_current.iter().copied())
    }

    pub(crate) fn held(&self) -> impl Iterator<Item = (ChangeId, usize)> {
        self.held.iter().map(|(change, count)| (*change, *count))
    }

    /// Something is to be done about this version of a source.
    pub(crate) fn owe(&mut self, source: &ClusterId, version: Version) {
        *self.owed.entry(source.clone()).or_default().entry(version).or_default() += 1;
    }

    /// It was done, or is told to be waiting or refused.
    pub(crate) fn pay(&mut self, source: &ClusterId, version: Version) {
        let Some(versions) = self.owed.get_mut(source) else { return };
        take_one(versions, &version);
        if versions.is_empty() {
            self.owed.remove(source);
        }
    }

    /// The lowest version of a source's cluster about which something is to be done.
    pub(crate) fn first_owed(&self, source: &ClusterId) -> Option<Version> {
        self.owed.get(source).and_then(|versions| versions.keys().next()).copied()
    }
}

impl Counts {
    fn of(&mut self, stance: Stance) -> &mut usize {
        match stance {
            Stance::Delivered => &mut self.delivered,
            Stance::Waiting => &mut self.waiting,
            Stance::Refused => &mut self.refused,
            Stance::Held(_) => &mut self.held,
        }
    }
}

fn take_one<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    let Some(count) = counts.get_mut(key) else { return };
    *count -= 1;
    if *count == 0 {
        counts.remove(key);
    }
}
