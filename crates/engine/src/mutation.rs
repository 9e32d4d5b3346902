//! Places where the deletion invariant is broken on purpose, so that the simulation can show that it notices.
//!
//! Without the feature `mutations` nothing of this is left: `broken` is a constant, and every branch on it is gone.

/// What can be broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    /// A source that is gone withdraws its copies without a fresh look.
    ActOnTheEvent,
    /// A source that is gone takes our mark off what stays, without a fresh look.
    ReleaseOnTheEvent,
    /// A namespace is deleted when nobody wants it any more, with all that stands in it.
    NamespacesGo,
    /// What nobody claims is withdrawn before the configuration is known as a whole.
    HalfAConfiguration,
    /// A source of which nothing is known is taken for one that nobody selects.
    UnknownIsUnwanted,
    /// A source counts as shown up to now although the link to it is lost.
    BehindIsCurrent,
    /// The first delivery is forced.
    ForceTheFirst,
    /// A definition that was made anew is taken for the one before it.
    AnyDefinition,
    /// A source that is being deleted is let go when the first of its copies is gone.
    FirstLetsGo,
    /// What a first delivery met is kept as ours.
    KeepWhatWasMet,
    /// A role takes configuration that seems to be gone for gone, without looking at what it rests on.
    BelieveEmptyLists,
    /// A center decides before it has read what there is.
    StartTooEarly,
    /// A syncer takes a configuration for whole while a part of it is in doubt.
    DoubtIsWhole,
    /// A center takes what comes from where it cannot see all placements for what none of them selects.
    UnseenIsUnselected,
    /// A role that starts does not compare what there is with what there was.
    ForgetWhatWasThere,
    /// The breaker goes on counting what was withdrawn as if it stood there.
    CountTheGone,
    /// The breaker holds nothing.
    LetAllGo,
    /// What a part of a scope would withdraw goes before the rest was evaluated.
    PartByPart,
    /// A change is named by the places of what goes, whatever stands there.
    AnyCopy,
    /// The breaker counts what is decided, and not what may go besides.
    DecidedAlone,
    /// What nobody claims is counted cluster by cluster, and not in all of them together.
    ClusterByCluster,
}

#[cfg(feature = "mutations")]
mod switch {
    use std::cell::Cell;

    use super::Mutation;

    thread_local! {
        static BROKEN: Cell<Option<Mutation>> = const { Cell::new(None) };
    }

    /// Breaks this, and nothing else, in this thread from now on.
    pub fn break_on_purpose(mutation: Option<Mutation>) {
        BROKEN.set(mutation);
    }

    /// Whether this is broken now. Roles ask as well.
    pub fn broken(mutation: Mutation) -> bool {
        BROKEN.get() == Some(mutation)
    }
}

#[cfg(feature = "mutations")]
pub use switch::{break_on_purpose, broken};

/// Whether this is broken: nothing is, outside of simulations.
#[cfg(not(feature = "mutations"))]
pub const fn broken(_: Mutation) -> bool {
    false
}
