//! Who goes next: workspaces in turn, the users of each in turn, each user's requests in order.

use std::collections::{BTreeMap, VecDeque};

use super::{Asker, Shares};

/// What is under way and what waits, of all users.
///
/// When there is room, it goes to the workspace whose turn it is and there to the user whose turn it is, not to whoever
/// asked most: somebody with a thousand requests waiting, or with a thousand accounts, delays somebody with one request by
/// one request.
#[derive(Debug)]
pub struct Turns {
    shares: Shares,
    waiting_per_user: usize,
    taken: usize,
    workspaces: BTreeMap<String, Workspace>,
    /// The workspaces of which somebody may go as soon as there is room for all, in the order of their turns.
    ready: VecDeque<String>,
    next: u64,
}

#[derive(Debug, Default)]
struct Workspace {
    taken: usize,
    users: BTreeMap<String, Share>,
    /// The users who have something waiting and room of their own, in the order of their turns.
    ready: VecDeque<String>,
    is_ready: bool,
}

#[derive(Debug, Default)]
struct Share {
    taken: usize,
    waiting: VecDeque<(Turn, usize)>,
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
    /// It waits until [`Turns::done`] or [`Turns::leave`] calls this.
    Wait(Turn),
    /// There is too much already.
    Refuse,
}

impl Turns {
    /// Nothing is under way.
    pub fn new(shares: Shares, waiting_per_user: usize) -> Self {
        Self {
            shares,
            waiting_per_user,
            taken: 0,
            workspaces: BTreeMap::new(),
            ready: VecDeque::new(),
            next: 0,
        }
    }

    /// Somebody asks to do something of this width.
    pub fn ask(&mut self, asker: &Asker, width: usize) -> Entry {
        let workspace = self.workspaces.entry(asker.workspace.clone()).or_default();
        let share = workspace.users.entry(asker.user.clone()).or_default();
        // Nobody overtakes: where others wait for the same room, whoever comes now waits behind them.
        let first = share.waiting.is_empty() && workspace.ready.is_empty() && self.ready.is_empty();
        if first
            && fits(share.taken, width, self.shares.per_user)
            && fits(workspace.taken, width, self.shares.per_workspace)
            && fits(self.taken, width, self.shares.all)
        {
            share.taken += width;
            workspace.taken += width;
            self.taken += width;
            return Entry::Go;
        }
        if share.waiting.len() >= self.waiting_per_user {
            self.forget(asker);
            return Entry::Refuse;
        }
        let turn = Turn(self.next);
        self.next += 1;
        share.waiting.push_back((turn, width));
        self.make_ready(asker);
        Entry::Wait(turn)
    }

    /// Something that went on is over. Answers with those who may go now.
    pub fn done(&mut self, asker: &Asker, width: usize) -> Vec<Turn> {
        if let Some(workspace) = self.workspaces.get_mut(&asker.workspace)
            && let Some(share) = workspace.users.get_mut(&asker.user)
        {
            share.taken = share.taken.saturating_sub(width);
            workspace.taken = workspace.taken.saturating_sub(width);
            self.taken = self.taken.saturating_sub(width);
        }
        self.make_ready(asker);
        self.forget(asker);
        self.call()
    }

    /// Somebody who waited left. Answers whether the turn still waited, if not, it had been called; and with those who may
    /// go now.
    pub fn leave(&mut self, asker: &Asker, turn: Turn) -> (bool, Vec<Turn>) {
        let share = self.workspaces.get_mut(&asker.workspace).and_then(|it| it.users.get_mut(&asker.user));
        let Some(share) = share else { return (false, Vec::new()) };
        let before = share.waiting.len();
        share.waiting.retain(|(waiting, _)| *waiting != turn);
        let left = share.waiting.len() < before;
        self.make_ready(asker);
        self.forget(asker);
        // It may have been the one for which there was no room, and others behind it.
        (left, self.call())
    }

    /// Calls as many as there is room for.
    fn call(&mut self) -> Vec<Turn> {
        let mut called = Vec::new();
        while let Some(name) = self.ready.pop_front() {
            let Some(workspace) = self.workspaces.get_mut(&name) else { continue };
            workspace.is_ready = false;
            let Some(user) = workspace.ready.pop_front() else {
                workspace.users.retain(|_, share| !share.is_idle());
                if workspace.is_idle() {
                    self.workspaces.remove(&name);
                }
                continue;
            };
            let asker = Asker { workspace: name, user };
            let Some(share) = workspace.users.get_mut(&asker.user) else {
                self.make_ready(&asker);
                continue;
            };
            share.is_ready = false;
            if let Some((turn, width)) = share.waiting.front().copied()
                && fits(share.taken, width, self.shares.per_user)
                && fits(workspace.taken, width, self.shares.per_workspace)
            {
                if !fits(self.taken, width, self.shares.all) {
                    // It is his turn, and whoever needs less does not overtake him.
                    share.is_ready = true;
                    workspace.ready.push_front(asker.user);
                    workspace.is_ready = true;
                    self.ready.push_front(asker.workspace);
                    return called;
                }
                share.waiting.pop_front();
                share.taken += width;
                workspace.taken += width;
                self.taken += width;
                called.push(turn);
            }
            self.make_ready(&asker);
            self.forget(&asker);
        }
        called
    }

    /// Puts a user who has something waiting, and room of his own, at the end of his workspace's line; and a workspace of
    /// which somebody could go at the end of all.
    fn make_ready(&mut self, asker: &Asker) {
        let Some(workspace) = self.workspaces.get_mut(&asker.workspace) else { return };
        if let Some(share) = workspace.users.get_mut(&asker.user)
            && !share.is_ready
            && let Some((_, width)) = share.waiting.front()
            && fits(share.taken, *width, self.shares.per_user)
        {
            share.is_ready = true;
            workspace.ready.push_back(asker.user.clone());
        }
        if !workspace.is_ready && workspace.first_fits(self.shares.per_workspace) {
            workspace.is_ready = true;
            self.ready.push_back(asker.workspace.clone());
        }
    }

    /// Users who have nothing under way cost nothing.
    fn forget(&mut self, asker: &Asker) {
        let Some(workspace) = self.workspaces.get_mut(&asker.workspace) else { return };
        if workspace.users.get(&asker.user).is_some_and(Share::is_idle) {
            workspace.users.remove(&asker.user);
        }
        if workspace.is_idle() {
            self.workspaces.remove(&asker.workspace);
        }
    }
}

impl Workspace {
    /// Whether there is room in its own share for whoever is first in its line. Users who left since are passed over.
    fn first_fits(&mut self, limit: usize) -> bool {
        while let Some(user) = self.ready.front() {
            match self.users.get_mut(user) {
                Some(share) if !share.waiting.is_empty() => break,
                Some(share) => share.is_ready = false,
                None => {}
            }
            let user = self.ready.pop_front().unwrap_or_default();
            if self.users.get(&user).is_some_and(Share::is_idle) {
                self.users.remove(&user);
            }
        }
        let first = self.ready.front().and_then(|user| self.users.get(user)?.waiting.front());
        first.is_some_and(|(_, width)| fits(self.taken, *width, limit))
    }

    fn is_idle(&self) -> bool {
        self.taken == 0 && self.users.is_empty() && self.ready.is_empty() && !self.is_ready
    }
}

impl Share {
    fn is_idle(&self) -> bool {
        self.taken == 0 && self.waiting.is_empty() && !self.is_ready
    }
}

/// Whether something still fits into a share. What is larger than the whole share goes alone.
fn fits(taken: usize, width: usize, limit: usize) -> bool {
    taken == 0 || taken.saturating_add(width) <= limit
}

#[cfg(test)]
mod tests {
    use mailboat_machinery::{Random, Seeded};

    use super::*;

    fn turns(all: usize, per_user: usize) -> Turns {
        Turns::new(Shares { all, per_workspace: all, per_user }, 5)
    }

    fn waits(entry: Entry) -> Turn {
        let Entry::Wait(turn) = entry else { panic!("{entry:?}") };
        turn
    }

    fn user(name: &str) -> Asker {
        Asker::user(name)
    }

    #[test]
    fn a_crowd_of_one_delays_others_by_one() {
        let mut turns = turns(2, 2);
        assert_eq!(turns.ask(&user("greedy"), 1), Entry::Go);
        assert_eq!(turns.ask(&user("greedy"), 1), Entry::Go);
        let greedy: Vec<Turn> = (0..3).map(|_| waits(turns.ask(&user("greedy"), 1))).collect();
        let modest = waits(turns.ask(&user("modest"), 1));
        let first = turns.done(&user("greedy"), 1);
        let second = turns.done(&user("greedy"), 1);
        let called: Vec<Turn> = first.into_iter().chain(second).collect();
        assert!(called.contains(&modest), "{called:?}");
        assert!(called.len() == 2 && called.iter().all(|turn| *turn == modest || *turn == greedy[0]));
    }

    #[test]
    fn a_crowd_of_accounts_of_one_workspace_delays_others_by_one() {
        let mut turns = Turns::new(Shares { all: 1, per_workspace: 9, per_user: 1 }, 5);
        let account = |number: usize| Asker::account("crowded", &format!("account-{number}"));
        assert_eq!(turns.ask(&account(0), 1), Entry::Go);
        for number in 1..50 {
            waits(turns.ask(&account(number), 1));
        }
        let modest = waits(turns.ask(&Asker::account("quiet", "account-0"), 1));
        let mut called = turns.done(&account(0), 1);
        called.extend(turns.done(&account(1), 1));
        assert!(called.contains(&modest), "{called:?}");
    }

    #[test]
    fn a_user_and_a_workspace_have_limits_of_their_own() {
        let mut turns = Turns::new(Shares { all: 10, per_workspace: 2, per_user: 1 }, 5);
        let account = |name: &str| Asker::account("a", name);
        assert_eq!(turns.ask(&account("x"), 1), Entry::Go);
        let second = waits(turns.ask(&account("x"), 1));
        assert_eq!(turns.ask(&account("y"), 1), Entry::Go, "others go on");
        let third = waits(turns.ask(&account("z"), 1));
        assert_eq!(turns.ask(&Asker::account("b", "x"), 1), Entry::Go, "and so do other workspaces");
        assert_eq!(turns.done(&Asker::account("b", "x"), 1), []);
        assert_eq!(turns.done(&account("x"), 1), [third], "he came before");
        assert_eq!(turns.done(&account("y"), 1), [second]);
    }

    #[test]
    fn accounts_of_one_name_in_two_workspaces_are_two() {
        let mut turns = turns(10, 1);
        let account = |workspace: &str| Asker::account(workspace, "system:serviceaccount:default:syncer");
        assert_eq!(turns.ask(&account("a"), 1), Entry::Go);
        assert_eq!(turns.ask(&account("b"), 1), Entry::Go);
        waits(turns.ask(&account("a"), 1));
    }

    #[test]
    fn too_many_are_refused() {
        let mut turns = turns(1, 1);
        assert_eq!(turns.ask(&user("a"), 1), Entry::Go);
        for _ in 0..5 {
            waits(turns.ask(&user("a"), 1));
        }
        assert_eq!(turns.ask(&user("a"), 1), Entry::Refuse);
        waits(turns.ask(&user("b"), 1));
        let mut watches = Turns::new(Shares { all: 3, per_workspace: 3, per_user: 2 }, 0);
        assert_eq!(watches.ask(&user("a"), 1), Entry::Go);
        assert_eq!(watches.ask(&user("a"), 1), Entry::Go);
        assert_eq!(watches.ask(&user("a"), 1), Entry::Refuse);
        assert_eq!(watches.ask(&user("b"), 1), Entry::Go);
        assert_eq!(watches.ask(&user("c"), 1), Entry::Refuse);
        watches.done(&user("a"), 1);
        assert_eq!(watches.ask(&user("c"), 1), Entry::Go);
    }

    #[test]
    fn whoever_needs_much_is_not_overtaken_and_goes_alone_if_it_is_more_than_there_is() {
        let mut turns = turns(10, 10);
        assert_eq!(turns.ask(&user("a"), 6), Entry::Go);
        let large = waits(turns.ask(&user("b"), 50));
        let small = waits(turns.ask(&user("c"), 1));
        assert_eq!(turns.done(&user("a"), 6), [large]);
        assert_eq!(turns.done(&user("b"), 50), [small]);
        // Whoever leaves makes way for those behind him.
        let large = waits(turns.ask(&user("b"), 50));
        let next = waits(turns.ask(&user("a"), 2));
        assert_eq!(turns.leave(&user("b"), large), (true, vec![next]));
    }

    /// Whatever is asked and however it ends: limits hold, nobody waits while there is room, and nothing is left.
    #[test]
    fn whatever_happens_limits_hold_and_nobody_is_forgotten() {
        const SHARES: Shares = Shares { all: 6, per_workspace: 4, per_user: 3 };
        for seed in 0..400 {
            let mut chance = Seeded(seed);
            // In every other world somebody needs more than the others.
            let widest = 1 + (seed % 2) * 2;
            let mut turns = Turns::new(SHARES, 5);
            let mut going: Vec<(Asker, usize)> = Vec::new();
            let mut waiting: Vec<(Asker, usize, Turn)> = Vec::new();
            for step in 0..400 {
                let asker =
                    Asker::account(&format!("w{}", chance.next() % 2), &format!("u{}", chance.next() % 3));
                let width = usize::try_from(1 + chance.next() % widest).unwrap();
                let number = usize::try_from(chance.next() % 8).unwrap();
                let mut called = Vec::new();
                if step < 250 && number < 4 {
                    match turns.ask(&asker, width) {
                        Entry::Go => going.push((asker, width)),
                        Entry::Wait(turn) => waiting.push((asker, width, turn)),
                        Entry::Refuse => {}
                    }
                } else if number == 4 && !waiting.is_empty() {
                    let (asker, _, turn) = waiting.remove(0);
                    let (left, next) = turns.leave(&asker, turn);
                    assert!(left, "seed {seed}");
                    called = next;
                } else if !going.is_empty() {
                    let (asker, width) = going.swap_remove(number % going.len());
                    called = turns.done(&asker, width);
                }
                for turn in called {
                    let at = waiting.iter().position(|(_, _, waiting)| *waiting == turn);
                    let (asker, width, _) = waiting.remove(at.expect("somebody who did not wait is called"));
                    going.push((asker, width));
                }
                let taken = |of: &dyn Fn(&Asker) -> bool| -> usize {
                    going.iter().filter(|(asker, _)| of(asker)).map(|(_, width)| width).sum()
                };
                assert!(taken(&|_| true) <= SHARES.all, "seed {seed}");
                for (asker, _) in &going {
                    assert!(
                        taken(&|one| one.workspace == asker.workspace) <= SHARES.per_workspace,
                        "seed {seed}"
                    );
                    assert!(taken(&|one| one == asker) <= SHARES.per_user, "seed {seed}");
                }
                // Who needs more than others may keep them waiting, so that it comes to his turn.
                for (asker, width, _) in waiting.iter().filter(|_| widest == 1) {
                    let idle = taken(&|_| true) + width <= SHARES.all
                        && taken(&|one| one.workspace == asker.workspace) + width <= SHARES.per_workspace
                        && taken(&|one| one == asker) + width <= SHARES.per_user;
                    assert!(!idle, "seed {seed}, step {step}: {asker:?} waits while there is room");
                }
            }
            assert!(going.is_empty() && waiting.is_empty(), "seed {seed}: {going:?} {waiting:?}");
            assert!(turns.workspaces.is_empty() && turns.ready.is_empty(), "seed {seed}: {turns:?}");
        }
    }
}
