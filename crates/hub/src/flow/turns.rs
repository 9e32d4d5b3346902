//! Who goes next: users in turn, each user's requests in order.

use std::collections::{BTreeMap, VecDeque};

use super::{Limits, Work};

/// What is under way and what waits, of all users.
///
/// When there is room, it goes to the user whose turn it is, not to whoever asked most: somebody with a thousand
/// requests waiting delays somebody with one by one request.
#[derive(Debug)]
pub struct Turns {
    limits: Limits,
    requests: usize,
    watches: usize,
    users: BTreeMap<String, Share>,
    /// The users who have something waiting and room of their own, in the order of their turns.
    ready: VecDeque<String>,
    next: u64,
}

#[derive(Debug, Default)]
struct Share {
    requests: usize,
    watches: usize,
    waiting: VecDeque<Turn>,
    is_ready: bool,
}

/// One request that waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Turn(u64);

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// It goes on at once; [`Turns::done`] must follow.
    Go,
    /// It waits until [`Turns::done`] calls this.
    Wait(Turn),
    /// There is too much already.
    Refuse,
}

impl Turns {
    /// Nothing is under way.
    pub fn new(limits: Limits) -> Self {
        Self { limits, requests: 0, watches: 0, users: BTreeMap::new(), ready: VecDeque::new(), next: 0 }
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Somebody asks to do something.
    pub fn ask(&mut self, user: &str, work: Work) -> Entry {
        if work == Work::Watch {
            return self.ask_to_watch(user);
        }
        let share = self.users.entry(user.to_owned()).or_default();
        let room = share.requests < self.limits.requests_per_user && self.requests < self.limits.requests;
        // Nobody overtakes: where others wait for the same room, whoever comes now waits behind them.
        if room && share.waiting.is_empty() && self.ready.is_empty() {
            share.requests += 1;
            self.requests += 1;
            return Entry::Go;
        }
        if share.waiting.len() >= self.limits.waiting_per_user {
            return Entry::Refuse;
        }
        let turn = Turn(self.next);
        self.next += 1;
        share.waiting.push_back(turn);
        self.make_ready(user);
        Entry::Wait(turn)
    }

    fn ask_to_watch(&mut self, user: &str) -> Entry {
        let share = self.users.entry(user.to_owned()).or_default();
        if share.watches >= self.limits.watches_per_user || self.watches >= self.limits.watches {
            self.forget(user);
            return Entry::Refuse;
        }
        share.watches += 1;
        self.watches += 1;
        Entry::Go
    }

    /// Something that went on is over. Answers with those who may go now.
    pub fn done(&mut self, user: &str, work: Work) -> Vec<(String, Turn)> {
        if let Some(share) = self.users.get_mut(user) {
            match work {
                Work::Request => {
                    share.requests = share.requests.saturating_sub(1);
                    self.requests = self.requests.saturating_sub(1);
                }
                Work::Watch => {
                    share.watches = share.watches.saturating_sub(1);
                    self.watches = self.watches.saturating_sub(1);
                }
            }
        }
        self.make_ready(user);
        self.forget(user);
        self.call()
    }

    /// Somebody who waited left. Answers whether the turn still waited; if not, it had been called.
    pub fn leave(&mut self, user: &str, turn: Turn) -> bool {
        let Some(share) = self.users.get_mut(user) else { return false };
        let before = share.waiting.len();
        share.waiting.retain(|waiting| *waiting != turn);
        let left = share.waiting.len() < before;
        self.forget(user);
        left
    }

    /// Calls as many as there is room for.
    fn call(&mut self) -> Vec<(String, Turn)> {
        let mut called = Vec::new();
        while self.requests < self.limits.requests
            && let Some(user) = self.ready.pop_front()
        {
            let Some(share) = self.users.get_mut(&user) else { continue };
            share.is_ready = false;
            if share.requests < self.limits.requests_per_user
                && let Some(turn) = share.waiting.pop_front()
            {
                share.requests += 1;
                self.requests += 1;
                called.push((user.clone(), turn));
            }
            self.make_ready(&user);
            self.forget(&user);
        }
        called
    }

    /// Puts a user who has something waiting, and room of his own, at the end of the line.
    fn make_ready(&mut self, user: &str) {
        if let Some(share) = self.users.get_mut(user)
            && !share.is_ready
            && !share.waiting.is_empty()
            && share.requests < self.limits.requests_per_user
        {
            share.is_ready = true;
            self.ready.push_back(user.to_owned());
        }
    }

    /// Users who have nothing under way cost nothing.
    fn forget(&mut self, user: &str) {
        if self.users.get(user).is_some_and(|share| {
            share.requests == 0 && share.watches == 0 && share.waiting.is_empty() && !share.is_ready
        }) {
            self.users.remove(user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(requests: usize, requests_per_user: usize) -> Turns {
        Turns::new(Limits { requests, requests_per_user, waiting_per_user: 5, ..Limits::default() })
    }

    fn waits(entry: Entry) -> Turn {
        let Entry::Wait(turn) = entry else { panic!("{entry:?}") };
        turn
    }

    #[test]
    fn a_crowd_of_one_delays_others_by_one() {
        let mut turns = turns(2, 2);
        assert_eq!(turns.ask("greedy", Work::Request), Entry::Go);
        assert_eq!(turns.ask("greedy", Work::Request), Entry::Go);
        let greedy: Vec<Turn> = (0..3).map(|_| waits(turns.ask("greedy", Work::Request))).collect();
        let modest = waits(turns.ask("modest", Work::Request));
        let first = turns.done("greedy", Work::Request);
        let second = turns.done("greedy", Work::Request);
        let called: Vec<Turn> = first.into_iter().chain(second).map(|(_, turn)| turn).collect();
        assert!(called.contains(&modest), "{called:?}");
        assert!(called.len() == 2 && called.iter().all(|turn| *turn == modest || *turn == greedy[0]));
    }

    #[test]
    fn a_user_has_a_limit_of_his_own() {
        let mut turns = turns(10, 1);
        assert_eq!(turns.ask("a", Work::Request), Entry::Go);
        let second = waits(turns.ask("a", Work::Request));
        assert_eq!(turns.ask("b", Work::Request), Entry::Go, "others go on");
        assert_eq!(turns.done("b", Work::Request), []);
        assert_eq!(turns.done("a", Work::Request), [("a".to_owned(), second)]);
    }

    #[test]
    fn too_many_are_refused() {
        let mut turns = turns(1, 1);
        assert_eq!(turns.ask("a", Work::Request), Entry::Go);
        for _ in 0..5 {
            waits(turns.ask("a", Work::Request));
        }
        assert_eq!(turns.ask("a", Work::Request), Entry::Refuse);
        waits(turns.ask("b", Work::Request));
        let mut turns = Turns::new(Limits { watches: 3, watches_per_user: 2, ..Limits::default() });
        assert_eq!(turns.ask("a", Work::Watch), Entry::Go);
        assert_eq!(turns.ask("a", Work::Watch), Entry::Go);
        assert_eq!(turns.ask("a", Work::Watch), Entry::Refuse);
        assert_eq!(turns.ask("b", Work::Watch), Entry::Go);
        assert_eq!(turns.ask("c", Work::Watch), Entry::Refuse);
        turns.done("a", Work::Watch);
        assert_eq!(turns.ask("c", Work::Watch), Entry::Go);
    }

    /// Whatever is asked and however it ends: limits hold, nobody waits while there is room, and nothing is left.
    #[test]
    fn whatever_happens_limits_hold_and_nobody_is_forgotten() {
        use mailboat_machinery::{Random, Seeded};
        for seed in 0..200 {
            let mut chance = Seeded(seed);
            let mut turns = turns(3, 2);
            let mut going: Vec<String> = Vec::new();
            let mut waiting: Vec<(String, Turn)> = Vec::new();
            for step in 0..300 {
                let user = format!("user-{}", chance.next() % 4);
                let number = usize::try_from(chance.next() % 8).unwrap();
                if step < 200 && number < 4 {
                    match turns.ask(&user, Work::Request) {
                        Entry::Go => going.push(user),
                        Entry::Wait(turn) => waiting.push((user, turn)),
                        Entry::Refuse => {}
                    }
                } else if number == 4 && !waiting.is_empty() {
                    let (user, turn) = waiting.remove(0);
                    assert!(turns.leave(&user, turn));
                } else if !going.is_empty() {
                    let user = going.swap_remove(number % going.len());
                    for called in turns.done(&user, Work::Request) {
                        assert!(waiting.contains(&called), "seed {seed}: {called:?} did not wait");
                        waiting.retain(|waiting| *waiting != called);
                        going.push(called.0);
                    }
                }
                assert!(going.len() <= 3, "seed {seed}");
                for user in ["user-0", "user-1", "user-2", "user-3"] {
                    let mine = going.iter().filter(|going| *going == user).count();
                    assert!(mine <= 2, "seed {seed}");
                    let idle = going.len() < 3 && mine < 2;
                    let waits = waiting.iter().any(|(waiting, _)| waiting == user);
                    assert!(!(idle && waits), "seed {seed}, step {step}: {user} waits while there is room");
                }
            }
            assert!(going.is_empty() && waiting.is_empty(), "seed {seed}: {going:?} {waiting:?}");
            assert!(turns.users.is_empty() && turns.ready.is_empty(), "seed {seed}: {turns:?}");
        }
    }
}
