//! Where a server's randomness comes from.
//!
//! Everybody sees uids, names and the ids of workspaces, and some of what is drawn besides is secret: the key by which an
//! export proves that a kind is its own. So nothing that was drawn may tell what is drawn next.

use std::fmt;

use mailboat_machinery::Random;
use ring::hmac;
use ring::rand::SystemRandom;

/// The operating system gives no randomness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no randomness: no key can be made that others cannot guess")]
pub struct NoRandomness;

/// Numbers that nobody guesses, however many of them he has seen: a key from the operating system, under which a counter is
/// signed.
pub(crate) struct Unguessable {
    key: hmac::Key,
    counter: u64,
    /// The rest of the last signature.
    drawn: Vec<u64>,
}

impl Unguessable {
    pub(crate) fn new() -> Result<Self, NoRandomness> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).map_err(|_| NoRandomness)?;
        Ok(Self { key, counter: 0, drawn: Vec::new() })
    }
}

impl Random for Unguessable {
    fn next(&mut self) -> u64 {
        loop {
            if let Some(number) = self.drawn.pop() {
                return number;
            }
            self.counter += 1;
            let signature = hmac::sign(&self.key, &self.counter.to_be_bytes());
            let numbers = signature.as_ref().chunks_exact(8).filter_map(|part| part.try_into().ok());
            self.drawn.extend(numbers.map(u64::from_be_bytes));
        }
    }
}

impl fmt::Debug for Unguessable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unguessable").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_servers_draw_the_same_and_none_the_same_twice() {
        let mut servers = [Unguessable::new().unwrap(), Unguessable::new().unwrap()];
        let drawn: BTreeSet<u64> = (0..10_000).map(|number| servers[number % 2].next()).collect();
        assert_eq!(drawn.len(), 10_000);
    }
}
