//! The configuration as it was last known as a whole, written down beside the kinds.
//!
//! kcp deletes every object of a kind with its APIBinding. If that happens while no syncer runs, and the mailbox is bound
//! again, the next one sees a mailbox whose users took everything back. So it is written down which configuration there
//! was, and on which binding it rested. What is missing on another one may have gone with the first.

use std::collections::{BTreeMap, BTreeSet};

use mailboat_engine::role::Ground;
use mailboat_object::key::{Name, Uid};

use crate::config::{ConfigId, ConfigKind};

/// Which configuration there was, and what its kinds rested on.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Configured {
    /// The objects that there were.
    pub configs: BTreeSet<ConfigId>,
    /// The APIBinding or CRD of each kind, by its uid.
    pub rested_on: BTreeMap<ConfigKind, Uid>,
}

/// What stands between a kind and the uid of its definition. No object is called so: names have no spaces around them.
const ON: &str = "on ";

impl Configured {
    /// The first object that may have gone with its kind: it is not among these any more, and its kind rests on something
    /// else now.
    pub fn lost(
        &self,
        is_there: impl Fn(&ConfigId) -> bool,
        grounds: &BTreeMap<ConfigKind, Ground>,
    ) -> Option<&ConfigId> {
        self.configs.iter().find(|id| {
            let now = grounds.get(&id.kind).map(Ground::definition);
            !is_there(id) && now.is_some_and(|now| now != self.rested_on.get(&id.kind))
        })
    }

    /// Whether all these objects are among it.
    pub fn names_all<'c>(&self, mut ids: impl Iterator<Item = &'c ConfigId>) -> bool {
        ids.all(|id| self.configs.contains(id))
    }

    /// The same, and these objects. What they rest on was not looked at yet; if it is another definition than what is written
    /// here, they are taken for lost with the first when they are missing, which is the cautious side.
    #[must_use]
    pub fn and<'c>(&self, ids: impl Iterator<Item = &'c ConfigId>) -> Self {
        let mut more = self.clone();
        more.configs.extend(ids.cloned());
        more
    }

    /// As lines of text, one for each kind and object.
    pub fn to_text(&self) -> String {
        let rested = self.rested_on.iter().map(|(kind, uid)| format!("{kind:?} {ON}{uid}"));
        let configs = self.configs.iter().map(ToString::to_string);
        rested.chain(configs).collect::<Vec<_>>().join("\n")
    }

    /// What these lines say. Those that mean nothing here were written by another edition, and are passed over.
    pub fn of_text(text: &str) -> Self {
        let mut configured = Self::default();
        for line in text.lines() {
            let Some((word, rest)) = line.split_once(' ') else { continue };
            let Some(kind) = ConfigKind::ALL.into_iter().find(|kind| format!("{kind:?}") == word) else {
                continue;
            };
            match rest.strip_prefix(ON) {
                Some(uid) => drop(configured.rested_on.insert(kind, Uid::parse(uid))),
                None => drop(configured.configs.insert(ConfigId { kind, name: Name::new(rest) })),
            }
        }
        configured
    }
}

#[cfg(test)]
mod tests {
    use mailboat_engine::look::{Definition, Serving};
    use mailboat_object::key::Version;

    use super::*;

    fn the_one() -> ConfigId {
        ConfigId { kind: ConfigKind::SyncerConfig, name: Name::new("the-one") }
    }

    fn configured() -> Configured {
        Configured {
            configs: BTreeSet::from([the_one()]),
            rested_on: BTreeMap::from([(ConfigKind::SyncerConfig, Uid::parse("b-1"))]),
        }
    }

    fn bound(uid: &str) -> BTreeMap<ConfigKind, Ground> {
        let definition = Definition {
            uid: Uid::parse(uid),
            deleting: false,
            version: Version(1),
            made_seconds: None,
            identity: None,
        };
        let ground = Ground { workspace_lives: true, kind: Serving::By(definition) };
        BTreeMap::from([(ConfigKind::SyncerConfig, ground)])
    }

    #[test]
    fn what_is_missing_on_another_binding_may_have_gone_with_the_first() {
        let before = configured();
        assert_eq!(before.lost(|_| false, &bound("b-2")), Some(&the_one()));
        assert_eq!(before.lost(|_| true, &bound("b-2")), None, "it was made again");
        assert_eq!(before.lost(|_| false, &bound("b-1")), None, "somebody deleted it");
        assert_eq!(before.lost(|_| false, &BTreeMap::new()), None, "nobody looked yet");
        assert_eq!(Configured::default().lost(|_| false, &bound("b-2")), None, "nothing was written down");
    }

    #[test]
    fn what_was_added_before_anybody_looked_is_missed_on_whatever_it_rests() {
        let none = Configured::default();
        assert!(!none.names_all([&the_one()].into_iter()));
        let added = none.and([&the_one()].into_iter());
        assert!(added.names_all([&the_one()].into_iter()));
        assert_eq!(added.lost(|_| false, &bound("b-1")), Some(&the_one()));
        assert_eq!(added.lost(|_| true, &bound("b-1")), None);
        assert_eq!(configured().and([&the_one()].into_iter()), configured(), "nothing is forgotten by it");
    }

    #[test]
    fn what_is_written_is_read_again() {
        assert_eq!(configured().to_text(), "SyncerConfig on b-1\nSyncerConfig the-one");
        assert_eq!(Configured::of_text(&configured().to_text()), configured());
        assert_eq!(Configured::of_text("Other x\n\nword"), Configured::default());
    }
}
