//! Why nobody wants a slot, or why that cannot be said.

use mailboat_object::key::{ClusterId, Key, Name};
use mailboat_object::object::Object;
use mailboat_store::seen::{Doubt, Seen};
use mailboat_store::store::{Store, Unlisted};

use super::Engine;
use super::settle::source_of;
use crate::breaker::Expected;
use crate::fans::Fan;
use crate::mark::Mark;
use crate::mutation::{Mutation, broken};
use crate::slots::SlotState;
use crate::want::Hold;
use crate::warrant::{Evidence, SourceGone, WholeConfiguration};

impl Engine {
    /// Why nobody wants this slot, or why that cannot be said.
    pub(crate) fn evidence(
        &self,
        store: &Store,
        state: &SlotState,
        mark: &Mark,
    ) -> Result<Evidence, Unclear> {
        let unclear = |reason: &str, expected| Unclear::at(&mark.origin.key, reason, expected);
        let source = source_of(state, mark);
        let of_source = |doubt: Doubt| {
            let reason = format!("what is known of its source: {doubt}");
            unclear(&reason, Some(expected(store, source, doubt)))
        };
        if !self.evaluations.is_empty() && !broken(Mutation::PartByPart) {
            return Err(unclear("its configuration is being evaluated", Some(Expected::Soon)));
        }
        // A list of targets that is not complete is half a picture: what else would go with it is not known.
        if let Err(doubt) = store.range(&state.key.cluster, &state.key.kind, None) {
            let reason = format!("what is known of its place: {doubt}");
            return Err(Unclear::at(&state.key, &reason, Some(expected(store, &state.key, doubt))));
        }
        let routes = self.routes_between(source, &state.key.cluster);
        if !routes.is_empty() {
            match store.get(source) {
                Seen::Absent(absence) => {
                    let gone = match &state.passing.gone {
                        Some(gone) => (**gone).clone(),
                        None => SourceGone::new(source.clone(), absence),
                    };
                    return once_listed(store, state, Evidence::SourceGone(gone));
                }
                Seen::Unknown(_) if broken(Mutation::UnknownIsUnwanted) => {}
                Seen::Unknown(doubt) => return Err(of_source(doubt)),
                Seen::Present(source) if went_back(source, mark) => {
                    let reason = "its source shows an older version than was delivered";
                    return Err(unclear(reason, Some(Expected::Whenever)));
                }
                Seen::Present(_) => {
                    // As it was last shown it is not selected. It may have been changed since so that it is, by whoever
                    // then changed the configuration, which is read by another link.
                    if let Some(doubt) = store.behind(&source.cluster, &source.kind)
                        && !broken(Mutation::BehindIsCurrent)
                    {
                        return Err(of_source(doubt));
                    }
                    for route in routes {
                        let fan = self.fans.find(route, source).and_then(|fan| self.fans.get(fan));
                        let fan = fan.ok_or_else(|| {
                            unclear("its source was not evaluated yet", Some(Expected::Soon))
                        })?;
                        // A route that cannot say what becomes of the source may mean this very slot: after a restart
                        // nobody has claimed it yet.
                        if let Some(hold) = fan.undecided() {
                            return Err(Unclear { hold: hold.clone(), expected: Some(Expected::Whenever) });
                        }
                    }
                }
            }
        } else if let Some(gone) = state.passing.gone.as_ref().filter(|gone| gone.stands()) {
            // It was seen to be deleted before the configuration let go of it, as a `the-one` does when a copy has gone:
            // nobody has to confirm what they deleted one by one. If a look says otherwise, it is the configuration that
            // withdraws it, and that counts.
            return Ok(Evidence::SourceGone((**gone).clone()));
        }
        self.no_relation(store, &mark.origin.key, &state.key.cluster)?;
        let deselected = |configuration: WholeConfiguration| {
            once_listed(store, state, Evidence::Deselected(configuration.does_not_select()))
        };
        match self.configuration {
            Some(configuration) => deselected(configuration),
            None if broken(Mutation::HalfAConfiguration) => deselected(WholeConfiguration::known(0)),
            None => {
                // Before it was known for the first time, nearly all copies are like that for a moment: nobody is asked.
                let expected = if self.was_known { Expected::Whenever } else { Expected::Soon };
                Err(unclear("the configuration is not known as a whole yet", Some(expected)))
            }
        }
    }

    /// Whether all is decided that may bring a copy of an object to a cluster along with another source.
    fn no_relation(&self, store: &Store, origin: &Key, cluster: &ClusterId) -> Result<(), Unclear> {
        for route in self.routes_relating(origin, cluster) {
            let head =
                self.routes.get(route.0 as usize).and_then(|entry| entry.route.as_ref()).map(|r| r.head());
            for sources in head.into_iter().flat_map(|head| &head.sources) {
                let at = sources.cluster.as_ref().unwrap_or(&origin.cluster);
                let any = Key {
                    cluster: at.clone(),
                    kind: sources.kind.clone(),
                    namespace: Name::EMPTY,
                    name: Name::EMPTY,
                };
                let listed = store.range(at, &sources.kind, None).map(|_| ());
                let doubt = listed.err().or_else(|| store.behind(at, &sources.kind));
                if let Some(doubt) = doubt {
                    let reason =
                        format!("what is known of {} that may bring it along: {doubt}", sources.kind);
                    return Err(Unclear::at(&any, &reason, Some(expected(store, &any, doubt))));
                }
            }
            let mut fans = self.fans.of_route(route).into_iter().filter_map(|fan| self.fans.get(fan));
            if let Some(hold) = fans.find_map(|fan| fan.undecided().map(|hold| (fan, hold))) {
                let (fan, hold) = hold;
                let hold = Hold { on: Some((*fan.source).clone()), ..hold.clone() };
                return Err(Unclear { hold, expected: Some(Expected::Whenever) });
            }
        }
        Ok(())
    }
}

/// Why it cannot be said whether a slot is wanted.
pub(crate) struct Unclear {
    pub(crate) hold: Hold,
    /// When it will be, if it is to be counted with what goes.
    pub(super) expected: Option<Expected>,
}

impl Unclear {
    pub(super) fn at(on: &Key, reason: &str, expected: Option<Expected>) -> Self {
        Self { hold: Hold { reason: reason.to_owned(), on: Some(on.clone()) }, expected }
    }

    /// Of something that is claimed still, as nobody can say whether rightly.
    pub(super) fn in_question(store: &Store, fan: &Fan) -> Option<Self> {
        let hold = fan.hold.as_deref()?.clone();
        let doubt = store.get(&fan.source).doubt();
        let expected = doubt.map_or(Expected::Whenever, |doubt| expected(store, &fan.source, doubt));
        Some(Self { hold, expected: Some(expected) })
    }
}

/// What nobody has claimed since the start is decided together with all that stands in its cluster: as long as a kind is
/// being listed there for the first time, nobody knows how much else would go.
fn once_listed(store: &Store, state: &SlotState, evidence: Evidence) -> Result<Evidence, Unclear> {
    if state.scope.is_none() && store.unlisted(&state.key.cluster) == Some(Unlisted::Yet) {
        let reason = "what else stands in its cluster is still being listed";
        return Err(Unclear::at(&state.key, reason, Some(Expected::Soon)));
    }
    Ok(evidence)
}

/// When more is known of an object than this: what is being read is read in a moment, or turns out not to be readable.
pub(super) fn expected(store: &Store, of: &Key, doubt: Doubt) -> Expected {
    match doubt {
        Doubt::NotListed if store.unlisted_kind(&of.cluster, &of.kind) == Some(Unlisted::Stalled) => {
            Expected::Whenever
        }
        Doubt::NotListed | Doubt::Relisting | Doubt::CatchingUp => Expected::Soon,
        _ => Expected::Whenever,
    }
}

/// Whether a source shows an older version than a copy remembers of it: its server was restored from a backup.
pub(crate) fn went_back(source: &Object, mark: &Mark) -> bool {
    source.key == mark.origin.key && source.uid == mark.origin.uid && source.version < mark.origin.version
}
