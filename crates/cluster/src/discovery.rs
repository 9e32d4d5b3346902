//! Asking a server what it serves, and keeping the answer until something says that it changed.
//!
//! There is no timer. What changes a catalog (a CRD, an APIBinding, an APIService) is an object that is
//! followed anyway; whoever sees it change calls `stale`, as often as it likes. The next lookup asks again,
//! once for all who wait.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::StreamExt as _;
use mailboat_object::key::KindId;
use mailboat_object::wire::{Fault, FaultKind};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use xxhash_rust::xxh3::Xxh3;

use crate::catalog::{
    Catalog, Found, Served, add_aggregated, add_group_version, is_aggregated, plain_group_versions,
};
use crate::request::JSON;

/// In which form discovery is to answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Aggregated if the server has it, else plain.
    Any,
    /// Plain, also where the server has both.
    Plain,
}

impl Form {
    pub(crate) fn accept(self) -> &'static str {
        match self {
            Self::Any => {
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
            }
            Self::Plain => JSON,
        }
    }
}

/// Group-versions asked for at once where each must be asked by itself.
const ASKED_AT_ONCE: usize = 8;
/// After discovery failed, or a kind was not found, it is asked again this much later at the soonest.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// A kind that is missing from a fresh catalog makes us ask again this much later at the soonest: nobody may
/// have told us of a change, and asking at every lookup would be a storm of requests.
const MISSING_AGAIN: Duration = Duration::from_secs(30);

/// The catalogs of one server's workspaces, of which thousands are alike: each is kept once.
#[derive(Default)]
pub(crate) struct Alike(Mutex<Vec<Remembered>>);

struct Remembered {
    catalog: Weak<Catalog>,
    /// The digest of the documents that it was read from, where a server writes all in two: those that say the same are not
    /// read again.
    read_from: Option<u64>,
}

/// Different catalogs that are remembered; where there are more, some are kept twice.
const MOST_ALIKE: usize = 32;

impl Alike {
    /// The catalog that is the same as this one, if there is one already.
    fn one(&self, catalog: Catalog, read_from: Option<u64>) -> Arc<Catalog> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.catalog.strong_count() > 0);
        for known in all.iter_mut() {
            if let Some(same) = known.catalog.upgrade().filter(|same| **same == catalog) {
                known.read_from = read_from.or(known.read_from);
                return same;
            }
        }
        let catalog = Arc::new(catalog);
        if all.len() == MOST_ALIKE {
            all.remove(0);
        }
        all.push(Remembered { catalog: Arc::downgrade(&catalog), read_from });
        catalog
    }

    /// The catalog that was read from documents with this digest.
    fn read_before(&self, from: u64) -> Option<Arc<Catalog>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|known| known.read_from == Some(from))?.catalog.upgrade()
    }

    /// How a kind is served by all who serve it, if they agree on where it is found.
    fn agreed(&self, kind: &KindId) -> Option<Served> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let catalogs: Vec<Arc<Catalog>> = all.iter().filter_map(|known| known.catalog.upgrade()).collect();
        let mut served = catalogs.iter().filter_map(|catalog| found(catalog, kind));
        let first = served.next()?;
        let place = |one: &Served| {
            (one.version.clone(), one.kind_name.clone(), one.namespaced, one.status, one.scale)
        };
        served.all(|other| place(other) == place(first)).then(|| first.clone())
    }
}

fn found<'c>(catalog: &'c Catalog, kind: &KindId) -> Option<&'c Served> {
    match catalog.find(kind) {
        Found::Served(served) => Some(served),
        Found::NotServed | Found::Unknown(_) => None,
    }
}

/// A catalog and how fresh it is.
pub(crate) struct Known {
    alike: Arc<Alike>,
    state: Mutex<State>,
    /// One asks at a time; the others take what that one learned.
    asking: Semaphore,
    published: watch::Sender<Option<Arc<Catalog>>>,
}

#[derive(Default)]
struct State {
    catalog: Option<Arc<Catalog>>,
    /// Counts the reasons to ask again, and those that the catalog has answered.
    reasons: u64,
    answered: u64,
    asked_at: Option<Instant>,
    failed: Option<Fault>,
    /// The server did not serve what the catalog says: nothing of it is taken until it was asked again.
    refuted: bool,
}

impl Known {
    pub(crate) fn new(alike: Arc<Alike>) -> Self {
        let (published, _) = watch::channel(None);
        Self { alike, state: Mutex::default(), asking: Semaphore::new(1), published }
    }

    /// What is known may have changed.
    pub(crate) fn stale(&self) {
        self.lock().reasons += 1;
    }

    /// What is known was seen to be wrong.
    pub(crate) fn refuted(&self) {
        let mut state = self.lock();
        state.reasons += 1;
        state.refuted = true;
    }

    /// Every new catalog, as it comes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<Arc<Catalog>>> {
        self.published.subscribe()
    }

    /// The catalog, asked for if there is none or it is stale.
    pub(crate) async fn catalog<A, F>(&self, ask: A) -> Result<Arc<Catalog>, Fault>
    where
        A: Fn(String, Form) -> F,
        F: Future<Output = Result<Box<[u8]>, Fault>>,
    {
        if let Some(answer) = self.lock().at_hand() {
            return answer;
        }
        let _turn = self.asking.acquire().await.ok();
        let reasons = {
            let mut state = self.lock();
            if let Some(answer) = state.at_hand() {
                return answer;
            }
            state.asked_at = Some(Instant::now());
            state.reasons
        };
        let asked = discover(&self.alike, ask).await;
        let mut state = self.lock();
        match asked {
            Ok(catalog) => {
                let catalog = match state.catalog.take() {
                    Some(before) if *before == *catalog => before,
                    _ => catalog,
                };
                state.catalog = Some(catalog.clone());
                state.answered = reasons;
                state.failed = None;
                state.refuted = false;
                self.published.send_if_modified(|published| {
                    let new = published.as_ref().is_none_or(|published| !Arc::ptr_eq(published, &catalog));
                    *published = Some(catalog.clone());
                    new
                });
                Ok(catalog)
            }
            // What was known serves on; the reason to ask again stays.
            Err(fault) => {
                state.failed = Some(fault.clone());
                state.catalog.clone().ok_or(fault)
            }
        }
    }

    /// How a kind is served.
    pub(crate) async fn served<A, F>(&self, kind: &KindId, ask: A) -> Result<Served, Fault>
    where
        A: Fn(String, Form) -> F,
        F: Future<Output = Result<Box<[u8]>, Fault>>,
    {
        let mut catalog = self.catalog(&ask).await?;
        if catalog.versions(kind).is_empty() && self.lock().may_have_missed() {
            catalog = self.catalog(&ask).await?;
        }
        match catalog.find(kind) {
            Found::Served(served) => Ok(served.clone()),
            Found::NotServed => Err(Fault::new(FaultKind::Unserved, format!("{kind} is not served here"))),
            Found::Unknown(why) => {
                let text = format!("whether {kind} is served is not known: {why}");
                Err(Fault::new(FaultKind::Retry(None), text))
            }
        }
    }

    /// How a kind is served as far as is known without asking: here, when that was last asked, or where nobody asked yet, in
    /// all other workspaces that serve it. Ten thousand mailboxes serve the same, and each says with each of its bindings that
    /// it serves more; to read all of it anew before every write would take longer than the writes. For what is put there
    /// that is enough: whoever finds that it is not served here has to ask ([`Self::refuted`]).
    pub(crate) fn presumably_served(&self, kind: &KindId) -> Option<Served> {
        let state = self.lock();
        match (&state.catalog, state.refuted) {
            (_, true) => None,
            (Some(catalog), false) => found(catalog, kind).cloned(),
            (None, false) => self.alike.agreed(kind),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The answer that can be given without asking; `None`: ask.
    fn at_hand(&self) -> Option<Result<Arc<Catalog>, Fault>> {
        if self.failed.is_some() && self.asked_within(ASK_AGAIN) {
            let fault = self.failed.clone()?;
            return Some(self.catalog.clone().ok_or(fault));
        }
        let catalog = self.catalog.as_ref().filter(|_| self.answered == self.reasons)?;
        Some(Ok(catalog.clone()))
    }

    /// Marks the catalog stale if it is old enough that a missing kind may be news.
    fn may_have_missed(&mut self) -> bool {
        let old = !self.asked_within(MISSING_AGAIN);
        self.reasons += u64::from(old);
        old
    }

    fn asked_within(&self, span: Duration) -> bool {
        self.asked_at.is_some_and(|at| at.elapsed() < span)
    }
}

/// Asks for everything that is served. `ask` fetches one path; what others serve as well is kept once.
pub(crate) async fn discover<A, F>(alike: &Alike, ask: A) -> Result<Arc<Catalog>, Fault>
where
    A: Fn(String, Form) -> F,
    F: Future<Output = Result<Box<[u8]>, Fault>>,
{
    let api = ask("/api".into(), Form::Any).await.map_err(no_root)?;
    let apis = ask("/apis".into(), Form::Any).await?;
    let mut catalog = Catalog::default();
    // Only together: kcp aggregates `/api` alone, and leaves out of it what a workspace has bound.
    if is_aggregated(&api) && is_aggregated(&apis) {
        let from = digest_of([&api, &apis]);
        if let Some(known) = alike.read_before(from) {
            return Ok(known);
        }
        let both = add_aggregated(&mut catalog, &api).and_then(|()| add_aggregated(&mut catalog, &apis));
        return both.map(|()| alike.one(catalog, Some(from))).ok_or_else(not_understood);
    }
    let api = if is_aggregated(&api) { ask("/api".into(), Form::Plain).await? } else { api };
    let all = plain_group_versions(&api, &apis).ok_or_else(not_understood)?;
    let ask = &ask;
    let answers = futures::stream::iter(all).map(|(group, version)| async move {
        let path = match group.as_str() {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        (ask(path, Form::Plain).await, group, version)
    });
    // In the order asked: a group's preferred version comes first.
    let mut answers = answers.buffered(ASKED_AT_ONCE);
    while let Some((answer, group, version)) = answers.next().await {
        match answer {
            Ok(body) => match add_group_version(&mut catalog, &group, &version, &body) {
                Some(()) => {}
                None => catalog.doubt(&group, "its list of resources cannot be understood"),
            },
            // Without the server, or the right to ask it, nothing else will be answered either.
            Err(fault) if matches!(fault.kind, FaultKind::Away | FaultKind::Unauthorized) => {
                return Err(fault);
            }
            // A view of kcp names the core group's version even where it shows nothing of that group.
            Err(fault) if group.is_empty() && fault.kind == FaultKind::Unserved => {}
            Err(fault) => catalog.doubt(&group, fault.text),
        }
    }
    Ok(alike.one(catalog, None))
}

fn digest_of(documents: [&[u8]; 2]) -> u64 {
    let mut digest = Xxh3::new();
    for document in documents {
        digest.update(&(document.len() as u64).to_le_bytes());
        digest.update(document);
    }
    digest.digest()
}

/// Whatever an API server serves, it has a root to say so.
fn no_root(fault: Fault) -> Fault {
    if fault.kind != FaultKind::Unserved {
        return fault;
    }
    Fault::new(
        FaultKind::Away,
        "the URL is no Kubernetes API server: it has no /api (404); check `server` in the kubeconfig",
    )
}

fn not_understood() -> Fault {
    let text = "the server's discovery cannot be understood: it may be no Kubernetes API server; check `server` in the kubeconfig";
    Fault::new(FaultKind::Away, text)
}

#[cfg(test)]
#[path = "discovery_tests.rs"]
mod tests;
