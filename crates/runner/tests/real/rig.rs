//! Followers in a task of their own, and a record of all that they ever said.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use mailboat_cluster::{Cluster, Connection, Source, Transport};
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::{Limits, Object};
use mailboat_runner::{Followers, Follows};
use mailboat_store::{Doubt, EndpointId, FeedId, Filter, Keep, Nature, News, PlaceId, Seen, Settings, Store};
use mailboat_testkit::{Access, wait_until};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Within this a follower has read what a server that is well has to say, on a machine with other things to do.
pub(crate) const SOON: Duration = Duration::from_secs(40);
/// Our field manager in these tests.
pub(crate) const MANAGER: &str = "mailboat-syncer";

type Order = Box<dyn FnOnce(&mut Followers, &mut Vec<News>) + Send>;

/// Followers that run, and what they said.
pub(crate) struct Rig {
    orders: mpsc::UnboundedSender<Order>,
    record: Arc<Mutex<Record>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Record {
    /// What is known to exist: none of these may ever be said to be absent.
    existing: BTreeSet<Key>,
    last: BTreeMap<Key, String>,
    answers: Vec<(Instant, Key, String)>,
    wrong: Vec<String>,
    standings: Vec<Standing>,
}

/// What was said of a whole kind, or of one cluster's part of it.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) at: Instant,
    pub(crate) cluster: Option<ClusterId>,
    pub(crate) kind: KindId,
    pub(crate) known: Result<(), Doubt>,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Rig {
    /// Followers with the times of production, but for waits after failures, which are short.
    pub(crate) fn new() -> Self {
        Self::with(patient())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let (orders, inbox) = mpsc::unbounded_channel();
        let record = Arc::new(Mutex::new(Record::default()));
        let task = tokio::spawn(run(settings, inbox, Arc::clone(&record)));
        Self { orders, record, task }
    }

    /// Does something in the followers' task.
    pub(crate) async fn tell<T: Send + 'static>(
        &self,
        order: impl FnOnce(&mut Followers, &mut Vec<News>) -> T + Send + 'static,
    ) -> T {
        let (answer, answered) = oneshot::channel();
        let order = move |followers: &mut Followers, news: &mut Vec<News>| {
            let _ = answer.send(order(followers, news));
        };
        assert!(self.orders.send(Box::new(order)).is_ok(), "the followers' task has ended");
        answered.await.expect("the followers' task ended")
    }

    /// Follows kinds of one whole cluster or workspace.
    pub(crate) async fn follow_whole(&self, place: &str, transport: Cluster, kinds: &[KindId]) {
        let nature = Nature::Whole(ClusterId::new(place));
        self.follow(place, nature, "only", transport, kinds).await;
    }

    /// Follows kinds at one endpoint of a place.
    pub(crate) async fn follow(
        &self,
        place: &str,
        nature: Nature,
        endpoint: &str,
        transport: Cluster,
        kinds: &[KindId],
    ) {
        let place = PlaceId::new(place);
        let endpoint = EndpointId::new(endpoint);
        let kinds = kinds.to_vec();
        self.tell(move |followers, news| {
            followers.store_mut().open(&place, nature, [endpoint.clone()], news);
            let transport: Arc<dyn Transport> = Arc::new(transport);
            for kind in kinds {
                let follows = Follows {
                    id: FeedId { place: place.clone(), endpoint: endpoint.clone(), kind },
                    filter: Filter::All,
                    keep: Keep::Whole,
                    manager: Name::new(MANAGER),
                    limits: Limits::default(),
                };
                followers.follow(follows, Arc::clone(&transport), news).expect("the place is open");
            }
        })
        .await;
    }

    /// What is known of an object now.
    pub(crate) async fn seen(&self, key: &Key) -> Seen<Arc<Object>> {
        let key = key.clone();
        self.tell(move |followers, _| followers.store().get(&key).cloned()).await
    }

    /// Waits until the store says something.
    pub(crate) async fn until<T: Send + 'static, Why: Display + Send + 'static>(
        &self,
        what: &str,
        limit: Duration,
        look: impl Fn(&Store) -> Result<T, Why> + Clone + Send + 'static,
    ) -> T {
        let waited = wait_until(what, limit, || {
            let look = look.clone();
            self.tell(move |followers, _| look(followers.store()))
        })
        .await;
        waited.unwrap_or_else(|late| panic!("{late}\n{}", self.told()))
    }

    /// Waits until an object is there, in a certain state.
    pub(crate) async fn until_present(
        &self,
        key: &Key,
        what: &str,
        fits: impl Fn(&Object) -> bool + Clone + Send + 'static,
    ) -> Arc<Object> {
        let wanted = key.clone();
        self.until(&format!("{key} {what}"), SOON, move |store| match store.get(&wanted) {
            Seen::Present(object) if fits(object) => Ok(Arc::clone(object)),
            other => Err(describe(&other)),
        })
        .await
    }

    /// Waits until nothing is known of an object, for this reason.
    pub(crate) async fn until_unknown(&self, key: &Key, doubt: Doubt) {
        let wanted = key.clone();
        self.until(&format!("{key} unknown ({doubt})"), SOON, move |store| match store.get(&wanted) {
            Seen::Unknown(why) if why == doubt => Ok(()),
            other => Err(describe(&other)),
        })
        .await;
    }

    /// Waits until an object is known to be absent.
    pub(crate) async fn until_absent(&self, key: &Key) {
        let wanted = key.clone();
        self.until(&format!("{key} absent"), SOON, move |store| match store.get(&wanted) {
            Seen::Absent(_) => Ok(()),
            other => Err(describe(&other)),
        })
        .await;
    }

    /// From here on until [`Rig::goes`], these exist: should the store ever say otherwise, it is wrong.
    pub(crate) fn exists<'a>(&self, keys: impl IntoIterator<Item = &'a Key>) {
        self.record().existing.extend(keys.into_iter().cloned());
    }

    /// These are about to be deleted.
    pub(crate) fn goes<'a>(&self, keys: impl IntoIterator<Item = &'a Key>) {
        let mut record = self.record();
        for key in keys {
            record.existing.remove(key);
        }
    }

    /// What was said of whole kinds since a moment, in order.
    pub(crate) fn standings_since(&self, moment: Instant) -> Vec<Standing> {
        self.record().standings.iter().filter(|standing| standing.at >= moment).cloned().collect()
    }

    /// Waits until a whole kind was said, after `moment`, to stand so.
    pub(crate) async fn until_standing(
        &self,
        kind: &KindId,
        moment: Instant,
        limit: Duration,
        known: Result<(), Doubt>,
    ) -> Standing {
        let waited = wait_until(format!("{kind} said to be {known:?}"), limit, async || {
            let standings = self.standings_since(moment);
            let found = standings.iter().find(|standing| standing.kind == *kind && standing.known == known);
            found.cloned().ok_or_else(|| format!("{standings:?}"))
        });
        waited.await.unwrap_or_else(|late| panic!("{late}\n{}", self.told()))
    }

    /// Waits until the store holds of a kind exactly what a fresh list shows, at the same versions; and sees to it
    /// that nothing that existed was ever said to be absent. `clusters`: where to list, and as which cluster.
    pub(crate) async fn assert_faithful(&self, kind: &KindId, clusters: &[(ClusterId, Api<DynamicObject>)]) {
        for (cluster, api) in clusters {
            let (cluster, kind) = (cluster.clone(), kind.clone());
            let waited = wait_until(format!("the store holds what {cluster} has of {kind}"), SOON, || {
                let (cluster, kind) = (cluster.clone(), kind.clone());
                async move {
                    let listed = api.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
                    let listed: BTreeSet<String> = listed.items.iter().map(line_of_listed).collect();
                    let held =
                        self.tell(move |followers, _| lines_of_held(followers.store(), &cluster, &kind));
                    let held = held.await?;
                    if held == listed { Ok(()) } else { Err(difference(&held, &listed)) }
                }
            });
            waited.await.unwrap_or_else(|late| panic!("{late}\n{}", self.told()));
        }
        self.assert_never_wrong();
    }

    /// Nothing that existed was ever said to be absent.
    pub(crate) fn assert_never_wrong(&self) {
        let record = self.record();
        assert!(
            record.wrong.is_empty(),
            "said to be absent, yet they exist: {:#?}\n{}",
            record.wrong,
            record.told()
        );
    }

    /// All that was said, for whoever reads a failure.
    pub(crate) fn told(&self) -> String {
        self.record().told()
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The times of production, but for waits after failures, which are short.
pub(crate) fn patient() -> Settings {
    Settings {
        backoff_first: Duration::from_millis(200),
        backoff_limit: Duration::from_secs(3),
        ..Settings::default()
    }
}

/// A connection as testkit gives access.
pub(crate) async fn connect(access: &Access) -> Connection {
    connect_with(access, mailboat_cluster::Settings::default()).await
}

pub(crate) async fn connect_with(access: &Access, settings: mailboat_cluster::Settings) -> Connection {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig.yaml");
    access.write_kubeconfig("here", &path).unwrap();
    let source = Source::Kubeconfig { path: Some(path), context: None };
    Connection::open(source, settings).await.unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn key(cluster: &str, kind: &KindId, namespace: &str, name: &str) -> Key {
    Key {
        cluster: ClusterId::new(cluster),
        kind: kind.clone(),
        namespace: Name::new(namespace),
        name: Name::new(name),
    }
}

/// An untyped handle to a kind.
pub(crate) fn api_of(
    client: &kube::Client,
    kind: &KindId,
    version: &str,
    kind_name: &str,
) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &resource(kind, version, kind_name))
}

/// The same in one namespace.
pub(crate) fn api_in(
    client: &kube::Client,
    namespace: &str,
    kind: &KindId,
    version: &str,
    kind_name: &str,
) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &resource(kind, version, kind_name))
}

fn resource(kind: &KindId, version: &str, kind_name: &str) -> ApiResource {
    let gvk = kube::core::GroupVersionKind::gvk(kind.group(), version, kind_name);
    ApiResource::from_gvk_with_plural(&gvk, kind.resource())
}

pub(crate) fn describe<T: AsRef<Object>>(seen: &Seen<T>) -> String {
    match seen {
        Seen::Unknown(doubt) => format!("unknown ({doubt:?})"),
        Seen::Absent(absence) => format!("absent ({:?} at {:?})", absence.how(), absence.version()),
        Seen::Present(object) => format!("present at {:?}", object.as_ref().version),
    }
}

async fn run(settings: Settings, mut inbox: mpsc::UnboundedReceiver<Order>, record: Arc<Mutex<Record>>) {
    let mut followers = Followers::new(Store::new(), settings, 7);
    let mut news = Vec::new();
    loop {
        tokio::select! {
            biased;
            order = inbox.recv() => match order {
                None => return,
                Some(order) => order(&mut followers, &mut news),
            },
            () = followers.step(&mut news) => {}
        }
        record.lock().unwrap_or_else(PoisonError::into_inner).note(followers.store(), &news);
        news.clear();
    }
}

impl Record {
    fn note(&mut self, store: &Store, news: &[News]) {
        let at = Instant::now();
        for piece in news {
            match piece {
                News::Object(change)
                    if self.existing.contains(&change.key) && change.now.absent().is_some() =>
                {
                    self.wrong.push(format!("{} by news: {}", change.key, describe(&change.now)));
                }
                News::Object(_) | News::CaughtUp { .. } | News::Stalled { .. } => {}
                News::Scope { cluster, kind, known, .. } => self.standings.push(Standing {
                    at,
                    cluster: cluster.clone(),
                    kind: kind.clone(),
                    known: *known,
                }),
            }
        }
        for key in &self.existing {
            let seen = store.get(key);
            let answer = describe(&seen);
            if self.last.get(key) != Some(&answer) {
                if seen.absent().is_some() {
                    self.wrong.push(format!("{key}: {answer}"));
                }
                self.last.insert(key.clone(), answer.clone());
                self.answers.push((at, key.clone(), answer));
            }
        }
    }

    fn told(&self) -> String {
        let now = Instant::now();
        let ago = |at: &Instant| format!("{:8.3} s ago", now.duration_since(*at).as_secs_f64());
        let standings = self.standings.iter().map(|one| {
            let cluster = one.cluster.as_ref().map(|cluster| format!(" in {cluster}")).unwrap_or_default();
            (one.at, format!("{} {}{cluster}: {:?}", ago(&one.at), one.kind, one.known))
        });
        let answers =
            self.answers.iter().map(|(at, key, answer)| (*at, format!("{} {key}: {answer}", ago(at))));
        let mut lines: Vec<_> = standings.chain(answers).collect();
        lines.sort();
        let lines: Vec<String> = lines.into_iter().rev().take(80).rev().map(|(_, line)| line).collect();
        format!("what was said last:\n{}", lines.join("\n"))
    }
}

fn line_of_listed(object: &DynamicObject) -> String {
    let metadata = &object.metadata;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    format!(
        "{}/{} {} at {}",
        text(&metadata.namespace),
        text(&metadata.name),
        text(&metadata.uid),
        text(&metadata.resource_version)
    )
}

fn lines_of_held(store: &Store, cluster: &ClusterId, kind: &KindId) -> Result<BTreeSet<String>, String> {
    let range = store.range(cluster, kind, None).map_err(|doubt| format!("nothing is known: {doubt:?}"))?;
    range.missing().map_err(|doubt| format!("what is missing is not known: {doubt:?}"))?;
    let line = |object: &Arc<Object>| {
        format!("{}/{} {} at {}", object.key.namespace, object.key.name, object.uid, object.version)
    };
    Ok(range.map(line).collect())
}

fn difference(held: &BTreeSet<String>, listed: &BTreeSet<String>) -> String {
    let few = |one: &BTreeSet<String>, other: &BTreeSet<String>| -> Vec<String> {
        one.difference(other).take(5).cloned().collect()
    };
    format!("held and not listed: {:?}; listed and not held: {:?}", few(held, listed), few(listed, held))
}
