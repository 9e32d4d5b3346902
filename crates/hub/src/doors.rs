//! Who is connected, and who has to go when there are too many: strangers first, then those who want nothing just now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// How many connections there may be of clients that have not proved yet who they are.
const STRANGERS: usize = 1_000;
/// How many there may be at all: somewhat more than watches, if the system allows so many.
const CONNECTIONS: usize = 110_000;
/// Files that are open for something else.
const OTHER_FILES: usize = 64;
/// How long a stranger may be connected and want nothing,
const STRANGER_IDLE: Duration = Duration::from_secs(30);
/// and how long others. Real servers wait for about as long.
const IDLE: Duration = Duration::from_mins(3);
/// How often idle ones are looked for.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(5);

/// All connections.
#[derive(Clone, Debug)]
pub(crate) struct Doors(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    visits: Visits,
    closing: BTreeMap<u64, oneshot::Sender<()>>,
}

/// One connection. It is over when this is dropped.
#[derive(Debug)]
pub(crate) struct Visit {
    doors: Doors,
    id: u64,
}

/// One request of a connection. It is answered when this is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay(Arc<Visit>);

impl Doors {
    /// Doors for as many as this process may have files open.
    pub(crate) fn new() -> Self {
        let connections = open_files().saturating_sub(OTHER_FILES).clamp(1, CONNECTIONS);
        let visits = Visits::new(connections, STRANGERS.min(connections));
        Self(Arc::new(Mutex::new(State { visits, closing: BTreeMap::new() })))
    }

    /// Somebody comes. None: there is no room. The receiver tells when he has to go.
    pub(crate) fn come(&self) -> Option<(Arc<Visit>, oneshot::Receiver<()>)> {
        let mut state = self.state();
        let (id, leaving) = state.visits.come(Instant::now());
        state.close(leaving);
        let id = id?;
        let (close, closed) = oneshot::channel();
        state.closing.insert(id, close);
        Some((Arc::new(Visit { doors: self.clone(), id }), closed))
    }

    /// Closes those who have wanted nothing for too long.
    pub(crate) fn close_idle(&self) {
        let mut state = self.state();
        let leaving = state.visits.idle_for_long(Instant::now());
        state.close(leaving);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn close(&mut self, leaving: Vec<u64>) {
        for id in leaving {
            // Whoever waits for it is told by its end.
            self.closing.remove(&id);
        }
    }
}

impl Visit {
    /// He proved who he is.
    pub(crate) fn knows(&self) {
        self.doors.state().visits.knows(self.id);
    }

    /// A request begins.
    pub(crate) fn begins(self: &Arc<Self>) -> UnderWay {
        self.doors.state().visits.begins(self.id);
        UnderWay(Arc::clone(self))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.doors.state().visits.ends(self.0.id, Instant::now());
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut state = self.doors.state();
        state.visits.leaves(self.id);
        state.closing.remove(&self.id);
    }
}

/// Lets this process have as many files open as the system allows it, and tells how many.
fn open_files() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "the limit of open files cannot be raised");
        }
    }
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// The connections, and who has to go.
#[derive(Debug)]
struct Visits {
    connections: usize,
    strangers_limit: usize,
    all: BTreeMap<u64, Guest>,
    strangers: BTreeSet<u64>,
    /// Those with nothing under way, the longest idle first.
    idle: BTreeSet<(Instant, u64)>,
    next: u64,
}

#[derive(Debug)]
struct Guest {
    under_way: usize,
    idle_since: Instant,
}

impl Visits {
    fn new(connections: usize, strangers_limit: usize) -> Self {
        Self {
            connections,
            strangers_limit,
            all: BTreeMap::new(),
            strangers: BTreeSet::new(),
            idle: BTreeSet::new(),
            next: 0,
        }
    }

    /// Somebody comes, if there is room; and others have to go.
    fn come(&mut self, now: Instant) -> (Option<u64>, Vec<u64>) {
        let mut leaving = Vec::new();
        if self.strangers.len() >= self.strangers_limit {
            leaving.extend(self.strangers.first().copied());
        } else if self.all.len() >= self.connections {
            let idle = || self.idle.first().map(|(_, id)| *id);
            leaving.extend(self.strangers.first().copied().or_else(idle));
        }
        for id in &leaving {
            self.leaves(*id);
        }
        if self.all.len() >= self.connections {
            return (None, leaving);
        }
        let id = self.next;
        self.next += 1;
        self.all.insert(id, Guest { under_way: 0, idle_since: now });
        self.strangers.insert(id);
        self.idle.insert((now, id));
        (Some(id), leaving)
    }

    fn knows(&mut self, id: u64) {
        self.strangers.remove(&id);
    }

    fn begins(&mut self, id: u64) {
        if let Some(guest) = self.all.get_mut(&id) {
            guest.under_way += 1;
            self.idle.remove(&(guest.idle_since, id));
        }
    }

    fn ends(&mut self, id: u64, now: Instant) {
        if let Some(guest) = self.all.get_mut(&id) {
            guest.under_way = guest.under_way.saturating_sub(1);
            if guest.under_way == 0 {
                guest.idle_since = now;
                self.idle.insert((now, id));
            }
        }
    }

    fn leaves(&mut self, id: u64) {
        self.strangers.remove(&id);
        if let Some(guest) = self.all.remove(&id) {
            self.idle.remove(&(guest.idle_since, id));
        }
    }

    /// Those who have wanted nothing for too long; they leave.
    fn idle_for_long(&mut self, now: Instant) -> Vec<u64> {
        let idle = self.idle.iter().take_while(|(since, _)| now.duration_since(*since) >= STRANGER_IDLE);
        let tired =
            idle.filter(|(since, id)| self.strangers.contains(id) || now.duration_since(*since) >= IDLE);
        let tired: Vec<u64> = tired.map(|(_, id)| *id).collect();
        for id in &tired {
            self.leaves(*id);
        }
        tired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_of_strangers_keeps_nobody_out() {
        let now = Instant::now();
        let mut visits = Visits::new(100, 3);
        let (known, _) = visits.come(now);
        visits.knows(known.unwrap());
        let came: Vec<u64> = (0..3).map(|_| visits.come(now).0.unwrap()).collect();
        for gone in came {
            let (new, leaving) = visits.come(now);
            assert!(new.is_some());
            assert_eq!(leaving, [gone], "the first of them goes");
        }
        assert!(visits.all.contains_key(&known.unwrap()), "who is known stays");
    }

    #[test]
    fn when_all_is_taken_those_go_who_want_nothing_and_nobody_who_does() {
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let mut visits = Visits::new(3, 3);
        let [busy, idle, idle_since] = [0, 1, 2].map(|_| {
            let id = visits.come(now).0.unwrap();
            visits.knows(id);
            visits.begins(id);
            id
        });
        visits.ends(idle_since, later);
        visits.ends(idle, now);
        let (first, leaving) = visits.come(later);
        assert_eq!(leaving, [idle], "the longest idle");
        visits.knows(first.unwrap());
        visits.begins(first.unwrap());
        let (second, leaving) = visits.come(later);
        assert_eq!(leaving, [idle_since]);
        visits.begins(second.unwrap());
        let (third, leaving) = visits.come(later);
        assert_eq!(
            (third.is_some(), &leaving[..]),
            (true, &[second.unwrap()][..]),
            "a stranger, though he asks"
        );
        visits.begins(third.unwrap());
        visits.knows(third.unwrap());
        assert_eq!(visits.come(later), (None, vec![]), "nobody can go");
        assert!(visits.all.contains_key(&busy));
    }

    #[test]
    fn whoever_wants_nothing_goes_after_a_while_and_strangers_earlier() {
        let now = Instant::now();
        let mut visits = Visits::new(10, 10);
        let [stranger, known, busy] = [0, 1, 2].map(|_| visits.come(now).0.unwrap());
        visits.knows(known);
        visits.begins(busy);
        assert_eq!(visits.idle_for_long(now + STRANGER_IDLE), [stranger]);
        assert_eq!(visits.idle_for_long(now + IDLE), [known]);
        assert_eq!(visits.idle_for_long(now + IDLE * 9), Vec::<u64>::new());
        visits.ends(busy, now + IDLE);
        visits.leaves(busy);
        assert!(visits.all.is_empty() && visits.idle.is_empty() && visits.strangers.is_empty(), "{visits:?}");
    }
}
