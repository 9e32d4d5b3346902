//! How what is followed stands: which lists are complete, which servers answer, and what somebody should look at.

use std::collections::{BTreeMap, BTreeSet};

use mailboat_object::key::KindId;
use mailboat_store::{Doubt, News, PlaceId};

use crate::health::Finding;

/// How each followed kind stands at its place.
#[derive(Default)]
pub(crate) struct Standings {
    kinds: BTreeMap<(PlaceId, KindId), Result<(), Doubt>>,
    changed: bool,
}

/// What a doubt about a whole kind means for the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meaning {
    /// The place does not answer, or not us.
    Unreached,
    /// Its list is not complete yet.
    Unlisted,
    /// All is well, and somebody should look at it.
    Odd,
    /// That is how it is there: nothing to read.
    Usual,
}

impl Standings {
    /// Exactly these are followed from now on.
    pub(crate) fn follow(&mut self, wanted: impl Iterator<Item = (PlaceId, KindId)>) {
        let wanted: BTreeSet<_> = wanted.collect();
        self.kinds.retain(|one, _| wanted.contains(one));
        for one in wanted {
            self.kinds.entry(one).or_insert(Err(Doubt::NotListed));
        }
        self.changed = true;
    }

    /// Something was learned.
    pub(crate) fn heed(&mut self, news: &News) {
        if let News::Scope { place, cluster: None, kind, known } = news
            && let Some(standing) = self.kinds.get_mut(&(place.clone(), kind.clone()))
        {
            *standing = *known;
            self.changed = true;
        }
    }

    /// Whether anything changed since this was last asked.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// How many lists are complete and current, and how many are not.
    pub(crate) fn count(&self) -> (usize, usize) {
        let complete = self.kinds.values().filter(|known| known.is_ok()).count();
        (complete, self.kinds.len() - complete)
    }

    /// Whether everything that is followed at a place is out of reach.
    pub(crate) fn reaches(&self, place: &PlaceId) -> bool {
        !self.at(place).any(|(_, doubt)| meaning(doubt) == Meaning::Unreached)
    }

    /// What keeps the process from being ready.
    pub(crate) fn unready(&self) -> Vec<Finding> {
        self.findings(|meaning| matches!(meaning, Meaning::Unreached | Meaning::Unlisted))
    }

    /// What somebody should look at.
    pub(crate) fn odd(&self) -> Vec<Finding> {
        self.findings(|meaning| meaning == Meaning::Odd)
    }

    fn findings(&self, wanted: impl Fn(Meaning) -> bool) -> Vec<Finding> {
        let doubts = self.kinds.iter().filter_map(|(at, known)| Some((at, known.err()?)));
        let doubts = doubts.filter(|(_, doubt)| wanted(meaning(*doubt)));
        doubts.map(|((place, kind), doubt)| Finding::new(format!("{kind} at {place}"), doubt)).collect()
    }

    fn at(&self, place: &PlaceId) -> impl Iterator<Item = (&KindId, Doubt)> {
        let here = self.kinds.iter().filter(move |((at, _), _)| at == place);
        here.filter_map(|((_, kind), known)| Some((kind, known.err()?)))
    }
}

fn meaning(doubt: Doubt) -> Meaning {
    match doubt {
        Doubt::Lost | Doubt::Unauthorized | Doubt::Unreadable => Meaning::Unreached,
        Doubt::NotListed => Meaning::Unlisted,
        Doubt::Refused | Doubt::Forbidden | Doubt::WentBack | Doubt::IdentityChanged => Meaning::Odd,
        // A view that nobody bound yet, a kind that is not served yet, a list that is read once more, bindings that
        // are a moment behind: ordinary days.
        _ => Meaning::Usual,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standings(known: Result<(), Doubt>) -> Standings {
        let mut standings = Standings::default();
        let (place, kind) = (PlaceId::new("edge"), KindId::new("", "configmaps"));
        standings.follow([(place.clone(), kind.clone())].into_iter());
        standings.heed(&News::Scope { place, cluster: None, kind, known });
        standings
    }

    #[test]
    fn nothing_is_ready_before_it_was_listed() {
        let mut standings = Standings::default();
        standings.follow([(PlaceId::new("edge"), KindId::new("", "configmaps"))].into_iter());
        assert_eq!(standings.count(), (0, 1));
        let unready: Vec<String> = standings.unready().iter().map(ToString::to_string).collect();
        assert_eq!(unready, ["configmaps at edge: its first list is not complete yet"]);
        assert!(standings.reaches(&PlaceId::new("edge")), "a list under way is no lost link");
    }

    #[test]
    fn each_doubt_means_one_thing_for_the_process() {
        for (known, unready, odd, reached) in [
            (Ok(()), false, false, true),
            (Err(Doubt::Lost), true, false, false),
            (Err(Doubt::Unauthorized), true, false, false),
            (Err(Doubt::Unserved), false, false, true),
            (Err(Doubt::NoEndpoint), false, false, true),
            (Err(Doubt::Relisting), false, false, true),
            (Err(Doubt::Forbidden), false, true, true),
            (Err(Doubt::WentBack), false, true, true),
        ] {
            let standings = standings(known);
            let seen = (
                !standings.unready().is_empty(),
                !standings.odd().is_empty(),
                standings.reaches(&PlaceId::new("edge")),
            );
            assert_eq!(seen, (unready, odd, reached), "{known:?}");
        }
    }

    #[test]
    fn what_is_no_longer_followed_holds_nothing_up() {
        let mut standings = standings(Err(Doubt::Lost));
        standings.follow(std::iter::empty());
        assert!(standings.unready().is_empty() && standings.count() == (0, 0));
    }
}
