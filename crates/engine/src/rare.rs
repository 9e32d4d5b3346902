//! What few slots have: a pointer where there is nothing to say.

use std::ops::{Deref, DerefMut};

/// Something that is almost always as it is by default, and then takes no room of its own. To read it costs nothing; to
/// change it makes room, which [`Rare::tidy`] gives back when all is as by default again.
#[derive(Clone, Debug)]
pub struct Rare<T>(Option<Box<T>>);

/// What may be rare.
pub trait Seldom: Default + 'static {
    /// As it is by default, for all who have nothing to say.
    fn nothing() -> &'static Self;
    /// Whether it is as by default.
    fn is_nothing(&self) -> bool;
}

impl<T: Seldom> Rare<T> {
    /// What was said, to be taken back; nothing where there is nothing to take back.
    pub fn said(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    /// Gives the room back if there is nothing to say any more.
    pub fn tidy(&mut self) {
        if self.0.as_ref().is_some_and(|what| what.is_nothing()) {
            self.0 = None;
        }
    }
}

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Seldom> From<T> for Rare<T> {
    fn from(what: T) -> Self {
        Self((!what.is_nothing()).then(|| Box::new(what)))
    }
}

impl<T: Seldom> Deref for Rare<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or_else(|| T::nothing())
    }
}

impl<T: Seldom> DerefMut for Rare<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, Debug)]
    struct Number {
        value: u64,
    }

    impl Seldom for Number {
        fn nothing() -> &'static Self {
            static NOTHING: Number = Number { value: 0 };
            &NOTHING
        }
        fn is_nothing(&self) -> bool {
            self.value == 0
        }
    }

    #[test]
    fn room_is_taken_when_something_is_said_and_given_back_when_it_is_not() {
        let mut number = Rare::<Number>::default();
        assert_eq!(number.value, 0);
        assert!(number.said().is_none(), "reading takes no room");
        number.value = 3;
        number.tidy();
        assert_eq!(number.value, 3);
        number.value = 0;
        assert!(number.said().is_some());
        number.tidy();
        assert!(number.said().is_none());
        let (nothing, one) = (Rare::from(Number { value: 0 }), Rare::from(Number { value: 1 }));
        assert!(nothing.0.is_none() && one.0.is_some());
    }
}
