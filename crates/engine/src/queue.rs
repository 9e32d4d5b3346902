//! What is to be looked at next: deduplicated, by urgency, fair between routes, with delays.
//!
//! Live changes go before first listings, so that a restart with a hundred thousand objects does not keep a
//! user's edit waiting. Within one urgency each route gets its turn, so that one busy route cannot starve the
//! rest. No work is ever dropped: an item is in the queue once or not at all, whoever asked for it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::hash::Hash;

/// How soon an item is wanted; the lesser goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Urgency {
    /// A live change of what others wait for: namespaces and CRDs.
    LiveFirst,
    /// A live change.
    Live,
    /// A first listing of what others wait for.
    ListedFirst,
    /// A first listing.
    Listed,
}

impl Urgency {
    /// Whether it is that of a live change.
    pub fn is_live(self) -> bool {
        self <= Self::Live
    }
}

const URGENCIES: usize = 4;
/// A table of fewer items is not worth making smaller.
const ROOMY: usize = 1024;

/// A queue of items `T`, each belonging to a lane `L` (a route).
pub struct Queue<T, L> {
    lanes: [Lanes<T, L>; URGENCIES],
    /// Where each queued item waits. An item whose entry says otherwise than where it is found was moved, and
    /// is passed over there.
    waiting: HashMap<T, Waiting, foldhash::fast::FixedState>,
    later: BinaryHeap<Reverse<(u64, u64, T, L)>>,
    sequence: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Now(Urgency),
    Later(u64),
}

struct Lanes<T, L> {
    items: BTreeMap<L, VecDeque<T>>,
    turn: Option<L>,
}

impl<T: Copy + Eq + Hash + Ord, L: Copy + Ord> Default for Queue<T, L> {
    fn default() -> Self {
        Self {
            lanes: std::array::from_fn(|_| Lanes { items: BTreeMap::new(), turn: None }),
            waiting: HashMap::default(),
            later: BinaryHeap::new(),
            sequence: 0,
        }
    }
}

impl<T: Copy + Eq + Hash + Ord, L: Copy + Ord> Queue<T, L> {
    /// Wants an item looked at. One that waits already keeps its place unless this is more urgent; one that
    /// was put off is wanted now.
    pub fn push(&mut self, item: T, lane: L, urgency: Urgency) {
        match self.waiting.get(&item) {
            Some(Waiting::Now(present)) if *present <= urgency => return,
            _ => {}
        }
        self.waiting.insert(item, Waiting::Now(urgency));
        self.lanes[urgency as usize].items.entry(lane).or_default().push_back(item);
    }

    /// Wants an item looked at no sooner than `at`, unless it is wanted earlier by somebody else.
    pub fn push_later(&mut self, item: T, lane: L, at: u64) {
        match self.waiting.get(&item) {
            Some(Waiting::Now(_)) => return,
            Some(Waiting::Later(present)) if *present <= at => return,
            _ => {}
        }
        self.waiting.insert(item, Waiting::Later(at));
        self.sequence += 1;
        self.later.push(Reverse((at, self.sequence, item, lane)));
    }

    /// The next item whose time has come, and how urgent it was.
    pub fn pop(&mut self, now: u64) -> Option<(T, Urgency)> {
        self.wake(now);
        for urgency in [Urgency::LiveFirst, Urgency::Live, Urgency::ListedFirst, Urgency::Listed] {
            while let Some(item) = self.lanes[urgency as usize].pop() {
                if self.waiting.get(&item) == Some(&Waiting::Now(urgency)) {
                    self.waiting.remove(&item);
                    return Some((item, urgency));
                }
            }
        }
        // A first listing may have filled it with hundreds of thousands; what comes later is little.
        if self.waiting.capacity() > ROOMY && self.waiting.len() < self.waiting.capacity() / 8 {
            self.waiting.shrink_to(2 * self.waiting.len());
        }
        None
    }

    /// When the next put-off item is due, if nothing is to be done before.
    pub fn due(&mut self) -> Option<u64> {
        while let Some(Reverse((at, _, item, _))) = self.later.peek() {
            if self.waiting.get(item) == Some(&Waiting::Later(*at)) {
                return Some(*at);
            }
            self.later.pop();
        }
        None
    }

    /// How many items wait, those that were put off included.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Items that were put off and whose time has come queue up as live.
    fn wake(&mut self, now: u64) {
        while let Some(Reverse((at, ..))) = self.later.peek() {
            if *at > now {
                return;
            }
            let Some(Reverse((at, _, item, lane))) = self.later.pop() else { return };
            if self.waiting.get(&item) == Some(&Waiting::Later(at)) {
                self.waiting.remove(&item);
                self.push(item, lane, Urgency::Live);
            }
        }
    }
}

impl<T, L: Copy + Ord> Lanes<T, L> {
    /// Takes from the lane after the one that was served last.
    fn pop(&mut self) -> Option<T> {
        let next = match self.turn {
            Some(turn) => {
                self.items.range((std::ops::Bound::Excluded(turn), std::ops::Bound::Unbounded)).next()
            }
            None => None,
        };
        let lane = *next.or_else(|| self.items.iter().next())?.0;
        let queue = self.items.get_mut(&lane)?;
        let item = queue.pop_front();
        if queue.is_empty() {
            self.items.remove(&lane);
        }
        self.turn = Some(lane);
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(queue: &mut Queue<u32, u8>, now: u64) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop(now)).map(|(item, _)| item).collect()
    }

    #[test]
    fn live_changes_go_before_first_listings() {
        let mut queue = Queue::default();
        queue.push(1, 0, Urgency::Listed);
        queue.push(2, 0, Urgency::ListedFirst);
        queue.push(3, 0, Urgency::Live);
        queue.push(4, 0, Urgency::LiveFirst);
        assert_eq!(drain(&mut queue, 0), [4, 3, 2, 1]);
    }

    #[test]
    fn an_item_waits_once_and_moves_up_when_it_becomes_urgent() {
        let mut queue = Queue::default();
        queue.push(1, 0, Urgency::Listed);
        queue.push(2, 0, Urgency::Live);
        queue.push(1, 0, Urgency::Listed);
        queue.push(1, 0, Urgency::Live);
        assert_eq!(queue.len(), 2);
        assert_eq!(drain(&mut queue, 0), [2, 1]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_busy_lane_does_not_starve_the_others() {
        let mut queue = Queue::default();
        for item in 0..4 {
            queue.push(item, 0, Urgency::Live);
        }
        queue.push(100, 1, Urgency::Live);
        queue.push(200, 2, Urgency::Live);
        assert_eq!(drain(&mut queue, 0), [0, 100, 200, 1, 2, 3]);
    }

    #[test]
    fn what_was_put_off_comes_when_it_is_due_or_when_somebody_wants_it_now() {
        let mut queue = Queue::default();
        queue.push_later(1, 0, 50);
        queue.push_later(2, 0, 90);
        queue.push_later(1, 0, 70);
        assert_eq!(queue.due(), Some(50));
        assert_eq!(drain(&mut queue, 49), Vec::<u32>::new());
        queue.push(2, 0, Urgency::Listed);
        assert_eq!(drain(&mut queue, 49), [2]);
        assert_eq!(drain(&mut queue, 50), [1]);
        assert_eq!(queue.due(), None);
        assert!(queue.is_empty());
    }

    #[test]
    fn an_earlier_delay_replaces_a_later_one() {
        let mut queue = Queue::default();
        queue.push_later(1, 0, 90);
        queue.push_later(1, 0, 40);
        assert_eq!(queue.due(), Some(40));
        assert_eq!(drain(&mut queue, 40), [1]);
        assert_eq!(drain(&mut queue, 90), Vec::<u32>::new());
    }
}
