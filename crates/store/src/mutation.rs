//! Places where what the store concludes is broken on purpose, so that the simulation can show that it notices.
//!
//! Without the feature `mutations` nothing of this is left: `broken` is a constant, and every branch on it is gone.

/// What can be broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(
    not(feature = "mutations"),
    allow(unreachable_pub, reason = "it is for whoever asks for the feature")
)]
pub enum Mutation {
    /// The first page of a list is taken for all of it.
    HalfAList,
    /// A server that went back in time is believed like any other.
    PastIsPresent,
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

    pub(crate) fn broken(mutation: Mutation) -> bool {
        BROKEN.get() == Some(mutation)
    }
}

#[cfg(feature = "mutations")]
pub use switch::break_on_purpose;
#[cfg(feature = "mutations")]
pub(crate) use switch::broken;

#[cfg(not(feature = "mutations"))]
pub(crate) const fn broken(_: Mutation) -> bool {
    false
}
