//! One object as the store holds it, and what each thing that a server says makes of it. Pure: no clusters, no
//! endpoints, no news.

use std::sync::Arc;

use mailboat_object::key::{Key, Name, Version};
use mailboat_object::object::Object;

use crate::seen::Doubt;

/// Where an object stands within its cluster and kind.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Address {
    pub(super) namespace: Name,
    pub(super) name: Name,
}

impl Address {
    pub(super) fn of(key: &Key) -> Self {
        Self { namespace: key.namespace.clone(), name: key.name.clone() }
    }
}

/// What is held of one object: 24 bytes beside the object itself.
pub(super) struct Entry {
    pub(super) state: State,
    /// The list that showed it last. An entry that the latest list did not show is missing from it.
    pub(super) list: u32,
}

pub(super) enum State {
    Present(Arc<Object>),
    Doubted(Box<Doubted>),
}

/// A key that is in doubt by itself, whatever is known of its kind.
pub(super) struct Doubted {
    pub(super) doubt: Doubt,
    /// The object last known, for the difference when the doubt ends.
    pub(super) known: Option<Arc<Object>>,
    /// What the server shows now, if it is older than what was known.
    pub(super) shown: Option<Arc<Object>>,
    /// Nothing shown below this version is believed.
    pub(super) floor: Version,
    /// Somebody confirmed that it is gone, though the server shows a past.
    pub(super) confirmed: bool,
}

/// What became of an entry.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Nothing that anybody could notice.
    Same,
    /// It is held, and differs; what was known before is given.
    Changed(Option<Arc<Object>>),
    /// It is to be removed; what was known before is given.
    Remove(Option<Arc<Object>>),
}

impl Entry {
    pub(super) fn present(object: Arc<Object>, list: u32) -> Self {
        Self { state: State::Present(object), list }
    }

    pub(super) fn doubted(doubt: Doubt, floor: Version, list: u32) -> Self {
        let doubted = Doubted { doubt, known: None, shown: None, floor, confirmed: false };
        Self { state: State::Doubted(Box::new(doubted)), list }
    }

    /// The object last known, in doubt or not.
    pub(super) fn known(&self) -> Option<&Arc<Object>> {
        match &self.state {
            State::Present(object) => Some(object),
            State::Doubted(doubted) => doubted.known.as_ref(),
        }
    }

    /// The server shows it. `listed`: in a list, which tells what is; an event may be a late one.
    pub(super) fn show(&mut self, object: Arc<Object>, listed: bool) -> Outcome {
        match &mut self.state {
            State::Present(known) if object.version == known.version && is_same_text(&object, known) => {
                Outcome::Same
            }
            State::Present(known) if object.version >= known.version => {
                let same = looks_same(known, &object);
                let before = std::mem::replace(known, object);
                if same { Outcome::Same } else { Outcome::Changed(Some(before)) }
            }
            State::Present(_) if !listed => Outcome::Same,
            State::Present(known) => {
                let (known, floor) = (Arc::clone(known), known.version);
                self.doubt(Doubt::OlderThanKnown, Some(Arc::clone(&known)), Some(object), floor);
                Outcome::Changed(Some(known))
            }
            State::Doubted(doubted) if object.version >= doubted.floor => {
                let known = doubted.known.take();
                self.state = State::Present(object);
                Outcome::Changed(known)
            }
            State::Doubted(doubted) => {
                let newer = doubted.shown.as_ref().is_none_or(|shown| object.version >= shown.version);
                if listed || newer {
                    doubted.shown = Some(object);
                    doubted.confirmed = false;
                }
                let known = doubted.known.clone();
                if std::mem::replace(&mut doubted.doubt, Doubt::OlderThanKnown) == Doubt::OlderThanKnown {
                    Outcome::Same
                } else {
                    Outcome::Changed(known)
                }
            }
        }
    }

    /// The server says something about it that cannot be read.
    pub(super) fn garble(&mut self) -> Outcome {
        match &mut self.state {
            State::Present(known) => {
                let (known, floor) = (Arc::clone(known), known.version);
                self.doubt(Doubt::Malformed, Some(Arc::clone(&known)), None, floor);
                Outcome::Changed(Some(known))
            }
            State::Doubted(doubted) => {
                // An older past that cannot be read is still an older past.
                if matches!(doubted.doubt, Doubt::OlderThanKnown | Doubt::Malformed) {
                    return Outcome::Same;
                }
                doubted.doubt = Doubt::Malformed;
                Outcome::Changed(doubted.known.clone())
            }
        }
    }

    /// A delete event at this version.
    pub(super) fn delete(&mut self, version: Version) -> Outcome {
        match &mut self.state {
            // A late event: the object came back since.
            State::Present(known) if version < known.version => Outcome::Same,
            State::Present(known) => Outcome::Remove(Some(Arc::clone(known))),
            // In a past that is older than what we know, even a deletion does not prove anything.
            State::Doubted(doubted) if version < doubted.floor => {
                doubted.shown = None;
                Outcome::Same
            }
            State::Doubted(doubted) => Outcome::Remove(doubted.known.take()),
        }
    }

    /// A complete list of this version does not show it. `past`: the list is older than what was seen before.
    pub(super) fn miss(&mut self, version: Version, past: bool) -> Outcome {
        match &mut self.state {
            State::Present(known) if past => {
                let (known, floor) = (Arc::clone(known), known.version);
                self.doubt(Doubt::OlderThanKnown, Some(Arc::clone(&known)), None, floor);
                Outcome::Changed(Some(known))
            }
            State::Present(known) => Outcome::Remove(Some(Arc::clone(known))),
            State::Doubted(doubted) if doubted.confirmed && !past => Outcome::Remove(None),
            // Known in a future that the server lost: however far it has come since, a list cannot tell whether
            // the object was deleted or never made again. Only its return or a confirmation ends this.
            State::Doubted(doubted) if doubted.doubt == Doubt::OlderThanKnown => {
                doubted.shown = None;
                Outcome::Same
            }
            // At its floor it was there: a state of that very version without it is another past.
            State::Doubted(doubted) if past || version <= doubted.floor => {
                doubted.doubt = Doubt::OlderThanKnown;
                doubted.shown = None;
                Outcome::Changed(doubted.known.clone())
            }
            State::Doubted(doubted) => Outcome::Remove(doubted.known.take()),
        }
    }

    /// Somebody confirmed that the past which the server shows is to be believed.
    pub(super) fn confirm(&mut self) -> Outcome {
        let State::Doubted(doubted) = &mut self.state else { return Outcome::Same };
        if doubted.doubt != Doubt::OlderThanKnown || doubted.confirmed {
            return Outcome::Same;
        }
        let known = doubted.known.take();
        if let Some(shown) = doubted.shown.take() {
            self.state = State::Present(shown);
        } else {
            (doubted.confirmed, doubted.floor) = (true, Version(0));
        }
        Outcome::Changed(known)
    }

    /// It was known at this version by another memory than the store's own.
    pub(super) fn remember(&mut self, version: Version) -> Outcome {
        match &mut self.state {
            State::Present(known) if known.version < version => {
                let known = Arc::clone(known);
                self.doubt(
                    Doubt::OlderThanKnown,
                    Some(Arc::clone(&known)),
                    Some(Arc::clone(&known)),
                    version,
                );
                Outcome::Changed(Some(known))
            }
            State::Present(_) => Outcome::Same,
            State::Doubted(doubted) => {
                doubted.floor = doubted.floor.max(version);
                Outcome::Same
            }
        }
    }

    fn doubt(
        &mut self,
        doubt: Doubt,
        known: Option<Arc<Object>>,
        shown: Option<Arc<Object>>,
        floor: Version,
    ) {
        let doubted = Doubted { doubt, known, shown, floor, confirmed: false };
        self.state = State::Doubted(Box::new(doubted));
    }
}

fn is_same_text(one: &Object, other: &Object) -> bool {
    let head = |object: &Object| (object.content, object.status, object.is_whole());
    head(one) == head(other) && one.uid == other.uid && one.json() == other.json()
}

/// Whether two bodies say the same of one object at one version. They need not: a changed schema shows other
/// fields of the same stored object, and a changed interest keeps more of it.
fn looks_same(one: &Object, other: &Object) -> bool {
    let head = |object: &Object| (object.version, object.content, object.status, object.is_whole());
    head(one) == head(other) && one.uid == other.uid && one.api_version() == other.api_version()
}
