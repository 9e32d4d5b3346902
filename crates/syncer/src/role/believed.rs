//! The configuration that is believed: what is shown is taken at once, what seems to be gone only after a fresh look.
//!
//! A mailbox that is being deleted, or whose binding to the configuration's kinds is, shows complete and empty lists. Read
//! as "nothing is asked for any more", they would empty the edge.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mailboat_engine::mutation::{Mutation, broken};
use mailboat_engine::role::{CallId, Ground, Order};
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::{Keep, Object};
use mailboat_object::wire::Fault;
use mailboat_store::seen::{News, Seen};
use mailboat_store::store::Store;
use mailboat_store::time::Moment;

use crate::config::{Config, ConfigId, ConfigKind};
use crate::configured::Configured;

/// A look that failed, or found no solid ground, is tried again after this.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// What is believed of the configuration.
pub(super) struct Believed {
    mailbox: ClusterId,
    configs: BTreeMap<ConfigId, Config>,
    /// Each as it was last shown, so that one which seems to be gone can be told from one whose kind went.
    shown: BTreeMap<ConfigId, Arc<Object>>,
    /// What each kind was last found to rest on.
    grounds: BTreeMap<ConfigKind, Ground>,
    /// Counts what was learned of it.
    revision: u64,
    looking: Option<Looking>,
    look_at: Option<Moment>,
    /// The revision up to which it is known as a whole, after lists and a look.
    whole: Option<u64>,
    /// What is not there any more was let go since it became known as a whole.
    tidied: bool,
    /// What the engine was last told; at first it knows of nothing.
    told: Option<u64>,
    /// Why the last look was not believed.
    doubt: Option<String>,
    /// What was seen to go alone, since this process began.
    gone: BTreeSet<ConfigId>,
}

/// A look under way, at one kind after the other.
struct Looking {
    /// The question that is asked now, if it is asked already.
    asked: Option<CallId>,
    revision: u64,
    /// The kinds that are still to be looked at, the present one first.
    left: Vec<ConfigKind>,
}

impl Believed {
    pub(super) fn new(mailbox: ClusterId) -> Self {
        Self {
            mailbox,
            configs: BTreeMap::new(),
            shown: BTreeMap::new(),
            grounds: BTreeMap::new(),
            revision: 0,
            looking: None,
            look_at: Some(Moment(0)),
            whole: None,
            tidied: false,
            told: None,
            doubt: None,
            gone: BTreeSet::new(),
        }
    }

    pub(super) fn configs(&self) -> &BTreeMap<ConfigId, Config> {
        &self.configs
    }

    /// Why the configuration is not believed to be whole, if a look said so.
    pub(super) fn doubt(&self) -> Option<&str> {
        self.doubt.as_deref()
    }

    /// Something was learned. True if what is asked for changed by it.
    pub(super) fn observe(&mut self, now: Moment, news: &News) -> bool {
        match news {
            News::Object(change) if change.key.cluster == self.mailbox => {
                let Some(kind) = ConfigKind::of(&change.key.kind) else { return false };
                let id = ConfigId { kind, name: change.key.name.clone() };
                match &change.now {
                    Seen::Present(object) => {
                        let mut config = Config::read(kind, object);
                        let before = self.configs.get(&id);
                        let same = before.is_some_and(|before| before.spec == config.spec);
                        // What cannot be read is taken as it was before: nothing of it is let go.
                        if config.unreadable.is_some()
                            && let Some(before) = before
                        {
                            config =
                                Config { unreadable: config.unreadable, spec: config.spec, ..before.clone() };
                        }
                        self.gone.remove(&id);
                        self.shown.insert(id.clone(), Arc::new(object.kept(Keep::Head)));
                        self.configs.insert(id, config);
                        if !same {
                            self.touched(now);
                        }
                        !same
                    }
                    Seen::Absent(_) | Seen::Unknown(_) => {
                        self.touched(now);
                        false
                    }
                }
            }
            News::Scope { kind, place, .. } => {
                if ConfigKind::of(kind).is_some() && place.0 == self.mailbox.0 {
                    self.touched(now);
                }
                false
            }
            News::Object(_) | News::CaughtUp { .. } | News::Stalled { .. } => false,
        }
    }

    fn touched(&mut self, now: Moment) {
        self.revision += 1;
        self.whole = None;
        self.look_at = Some(now);
    }

    /// The next look, and when to ask again.
    pub(super) fn next(
        &mut self,
        now: Moment,
        store: &Store,
        id: impl FnOnce() -> CallId,
    ) -> (Option<(CallId, KindId)>, Option<Moment>) {
        if self.looking.is_none() {
            match self.look_at {
                Some(at) if at > now => return (None, Some(at)),
                Some(_) if self.is_listed(store) => {
                    self.look_at = None;
                    let left = ConfigKind::ALL.to_vec();
                    self.looking = Some(Looking { asked: None, revision: self.revision, left });
                }
                // Lists that are not complete make news when they are.
                Some(_) | None => return (None, None),
            }
        }
        let next = self.looking.as_mut().filter(|looking| looking.asked.is_none()).and_then(|looking| {
            let kind = looking.left.first()?.kind();
            let id = id();
            looking.asked = Some(id);
            Some((id, kind))
        });
        (next, None)
    }

    /// What a look found.
    pub(super) fn looked(&mut self, now: Moment, id: CallId, found: Result<Ground, Fault>) {
        let Some(mut looking) = self.looking.take_if(|looking| looking.asked == Some(id)) else { return };
        let doubt = match found {
            Ok(ground) if ground.is_solid() => {
                self.grounds.extend(looking.left.first().map(|kind| (*kind, ground)));
                None
            }
            Ok(ground) if !ground.workspace_lives => Some("the mailbox is being deleted".to_owned()),
            Ok(_) => Some("what serves the configuration's kinds in the mailbox is going".to_owned()),
            Err(fault) => Some(format!("the mailbox cannot be looked at: {fault}")),
        };
        if looking.revision != self.revision {
            self.look_at = Some(now);
        } else if doubt.is_some() {
            if doubt != self.doubt {
                tracing::warn!(doubt, "the configuration is held as it was; nothing is withdrawn by it");
            }
            self.doubt = doubt;
            self.look_at = Some(now + LOOK_AGAIN_AFTER);
        } else {
            looking.left.remove(0);
            if looking.left.is_empty() {
                self.doubt = None;
                self.whole = Some(self.revision);
                self.tidied = false;
            } else {
                self.looking = Some(Looking { asked: None, ..looking });
            }
        }
    }

    /// Lets go of configuration that is not there any more. Called when a look has shown solid ground, and before what
    /// is asked for is made anew.
    pub(super) fn let_go(&mut self, store: &Store) -> bool {
        if self.tidied || self.whole != Some(self.revision) || !self.is_listed(store) {
            return false;
        }
        self.tidied = true;
        let before = self.configs.len();
        let Self { mailbox, grounds, shown, gone: all_gone, .. } = self;
        let mut redefined = None;
        self.configs.retain(|id, _| {
            let key = Key {
                cluster: mailbox.clone(),
                kind: id.kind.kind(),
                namespace: Name::EMPTY,
                name: id.name.clone(),
            };
            let Seen::Absent(absence) = store.get(&key) else { return true };
            let was = shown.get(id).map(|object| &**object);
            let gone = grounds.get(&id.kind).is_some_and(|ground| ground.shows_gone(absence, was));
            if gone {
                all_gone.insert(id.clone());
            } else {
                redefined =
                    Some(format!("{key} may have gone with its kind, which was defined or bound anew"));
            }
            !gone
        });
        self.shown.retain(|id, _| self.configs.contains_key(id));
        if redefined.is_some() && redefined != self.doubt {
            tracing::warn!(redefined, "the configuration is held as it was; nothing is withdrawn by it");
        }
        self.doubt = redefined;
        self.configs.len() != before
    }

    /// The configuration as it is to be written down, once it is known as a whole and each of it is known to rest on what its
    /// kind rests on now. What is only remembered is not among it.
    pub(super) fn configured(&self, store: &Store) -> Option<Configured> {
        let whole = self.whole == Some(self.revision) && self.tidied && self.doubt.is_none();
        let rests = |id: &ConfigId| {
            let ground = self.grounds.get(&id.kind);
            self.shown.get(id).zip(ground).is_some_and(|(object, ground)| {
                ground.bears(object) && matches!(store.get(&object.key), Seen::Present(_))
            })
        };
        if !whole || !self.configs.keys().all(rests) {
            return None;
        }
        let rested_on =
            self.grounds.iter().filter_map(|(kind, ground)| Some((*kind, ground.definition()?.clone())));
        Some(Configured { configs: self.configs.keys().cloned().collect(), rested_on: rested_on.collect() })
    }

    /// What was there when the configuration was last written down and may have gone with its kind, while no process saw
    /// it go.
    pub(super) fn lost<'c>(&self, before: &'c Configured) -> Option<&'c ConfigId> {
        let known = |id: &ConfigId| self.configs.contains_key(id) || self.gone.contains(id);
        before.lost(known, &self.grounds).filter(|_| !broken(Mutation::ForgetWhatWasThere))
    }

    /// Counts what was learned.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// What the engine is to be told about the configuration as a whole, if that is news.
    pub(super) fn tell_known(&mut self, clear: bool) -> Option<Order> {
        let known = self.whole.filter(|_| clear).or(broken(Mutation::DoubtIsWhole).then_some(1));
        if self.told == known {
            return None;
        }
        self.told = known;
        Some(Order::ConfigurationKnown(known))
    }

    /// Whether every list of the configuration is complete, and nothing in it is in doubt.
    fn is_listed(&self, store: &Store) -> bool {
        ConfigKind::ALL.iter().all(|kind| {
            let range = store.range(&self.mailbox, &kind.kind(), None);
            range.is_ok_and(|range| range.missing().is_ok() && range.doubtful().next().is_none())
        })
    }
}
