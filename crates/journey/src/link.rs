//! What lies between a process and a server: calls, pages and streams, which come late, twice or never.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use mailboat_cluster::lines::Limits;
use mailboat_cluster::{Catalog, Lines, Read, ReadMode, Served, Transport, Verbs};
use mailboat_engine::role::Kubeconfig;
use mailboat_hub::View;
use mailboat_machinery::{
    Kind, ListRequest, ListVersion, Watch, WatchEvent, WatchRequest, WatchStart, Within,
};
use mailboat_object::key::{ClusterId, KindId};
use mailboat_object::wire::{Abilities, Call, Fault, FaultKind, Reply};
use mailboat_runner::Ways;
use mailboat_sim::answer::{fault_of, page};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};

use crate::bell::Listener;
use crate::sea::{CENTER, SHARD_URL, Sea, Shared, Who, lock};

/// After this long without an answer a call is given up.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// How often an idle watch is sent a bookmark.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
/// Nothing here is larger.
const LIMITS: Limits = Limits { line_bytes: 4 << 20, whole_bytes: 64 << 20, pause: Duration::from_mins(1) };

/// A way from a process to a cluster, a workspace or a view.
#[derive(Clone)]
pub(crate) struct Link {
    sea: Shared,
    who: Who,
    server: usize,
    at: At,
    known: Arc<Known>,
}

/// What is served there, as far as it was asked for.
#[derive(Default)]
struct Known {
    catalog: Mutex<Option<Arc<Catalog>>>,
    stale: AtomicBool,
}

#[derive(Clone)]
enum At {
    Cluster(ClusterId),
    View(Arc<View>),
}

/// A page of a list: when it was served, and whether others follow.
struct Page {
    body: Vec<u8>,
    at: u64,
    more: bool,
}

/// One cluster, or what is seen of many.
type Sight = (Option<ClusterId>, Option<Arc<dyn Within>>);

/// What becomes of a request on its way.
enum Fate {
    /// It does not arrive.
    Fails(Duration, Fault),
    /// It arrives; its answer may be lost.
    Arrives { out: Duration, back: Duration, answer_is_lost: bool },
}

impl Link {
    /// The way to a cluster or workspace.
    pub(crate) fn new(sea: &Shared, who: Who, cluster: &ClusterId) -> Self {
        let server = lock(sea).server_of(cluster);
        let at = At::Cluster(cluster.clone());
        Self { sea: Arc::clone(sea), who, server, at, known: Arc::default() }
    }

    fn fate(&self, writes: bool) -> Fate {
        let mut sea = lock(&self.sea);
        sea.report.events += 1;
        if sea.waters[self.server].partitioned {
            let after = if sea.draw(2) == 0 { CALL_TIMEOUT } else { Duration::from_millis(5) };
            return Fate::Fails(after, Fault::new(FaultKind::Away, "no route to host"));
        }
        let (out, back) = (sea.latency(), sea.latency());
        if self.who == Who::Center
            && matches!(&self.at, At::Cluster(cluster) if sea.silent.as_ref() == Some(cluster))
        {
            return Fate::Fails(out, Fault::new(FaultKind::Retry(None), "internal error"));
        }
        let mut answer_is_lost = false;
        let noise = sea.noise;
        if sea.draw(100) < noise {
            let again = |text: &str| Fault::new(FaultKind::Retry(None), text);
            let fault = match sea.draw(5) {
                0 => Some(again("connection reset")),
                1 => None,
                2 if writes => Some(Fault::new(FaultKind::Conflict, "the object has been modified")),
                3 => Some(Fault::new(FaultKind::Retry(Some(Duration::from_secs(1))), "too many")),
                _ => Some(again("internal error")),
            };
            match fault {
                Some(fault) => return Fate::Fails(out, fault),
                None => answer_is_lost = true,
            }
        }
        Fate::Arrives { out, back, answer_is_lost }
    }

    /// Sends a request, which arrives whether or not whoever sent it still waits.
    async fn send<T: Send + 'static>(
        self,
        writes: bool,
        serve: impl FnOnce(&mut Sea) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let (out, back, answer_is_lost) = match self.fate(writes) {
            Fate::Fails(after, fault) => {
                sleep(after).await;
                return Err(fault);
            }
            Fate::Arrives { out, back, answer_is_lost } => (out, back, answer_is_lost),
        };
        let (answered, answer) = oneshot::channel();
        let sea = Arc::clone(&self.sea);
        tokio::spawn(async move {
            sleep(out).await;
            let answer = serve(&mut lock(&sea));
            // Nobody may wait for it any more.
            let _ = answered.send(answer);
        });
        let timed_out = || Fault::new(FaultKind::Retry(None), "timed out");
        if answer_is_lost {
            sleep(CALL_TIMEOUT).await;
            return Err(timed_out());
        }
        let answer = answer.await.map_err(|_| timed_out())?;
        sleep(back).await;
        answer
    }

    async fn page(self, read: Read, limit: u32, token: Option<String>) -> Result<Lines, Fault> {
        let (link, kind) = (self.clone(), read.kind.clone());
        let (first, probes) = (token.is_none(), limit == 1);
        let served = self.clone().send(false, move |sea| link.list(sea, &read, limit, token)).await?;
        if !probes {
            let mut sea = lock(&self.sea);
            sea.reads_page(self.who, &kind, &self.place(), first.then_some(served.at), served.more);
        }
        Ok(Lines::new(futures::stream::iter([Ok(Bytes::from(served.body))]).boxed(), LIMITS))
    }

    fn list(&self, sea: &mut Sea, read: &Read, limit: u32, token: Option<String>) -> Result<Page, Fault> {
        let (cluster, within) = self.seen(sea, &read.kind)?;
        let whole = token.is_none() && limit > 1;
        let past = whole.then(|| sea.past(self.who, &read.kind, &self.place(), self.server)).flatten();
        let request = ListRequest {
            cluster,
            within,
            kind: read.kind.clone(),
            labels: read.labels.parse().unwrap_or_default(),
            limit: Some(limit as usize),
            continue_token: token,
            version: past.map_or(ListVersion::Latest, |(version, _)| ListVersion::Exact(version)),
            ..ListRequest::default()
        };
        let at = past.map_or(sea.now(), |(_, at)| at);
        let list = sea.machines[self.server].list(&request).map_err(|status| fault_of(&status))?;
        Ok(Page { body: page(&list), at, more: list.continue_token.is_some() })
    }

    async fn open(self, read: Read, from: mailboat_object::Version, seconds: u32) -> Result<Lines, Fault> {
        let link = self.clone();
        let stream = self
            .send(false, move |sea| {
                let (cluster, within) = link.seen(sea, &read.kind)?;
                let request = WatchRequest {
                    cluster,
                    within,
                    kind: read.kind.clone(),
                    labels: read.labels.parse().unwrap_or_default(),
                    start: WatchStart::After(from),
                    ..WatchRequest::default()
                };
                let machine = &sea.machines[link.server];
                let watch = machine.watch(request).map_err(|status| fault_of(&status))?;
                let kind = link.kinds(sea).into_iter().find(|kind| kind.id == read.kind);
                let kind = kind.ok_or_else(|| Fault::new(FaultKind::Unserved, "not served"))?;
                let bell = sea.bells[link.server].listen();
                let water = &sea.waters[link.server];
                let (cuts, stalls) = (water.cuts, water.stalls);
                let ends_at = Instant::now() + Duration::from_secs(seconds.into());
                let bookmark_at = Instant::now() + BOOKMARK_EVERY;
                Ok(Streaming { link, kind, watch, bell, cuts, stalls, ends_at, bookmark_at })
            })
            .await?;
        let connected_at = {
            let sea = lock(&stream.link.sea);
            sea.waters[stream.link.server].connected_at.unwrap_or(sea.begun)
        };
        let pieces = futures::stream::unfold(Some(stream), Streaming::next).boxed();
        Ok(Lines::new(pieces, LIMITS).over(connected_at))
    }

    /// Which clusters are seen from here, and what of them.
    fn seen(&self, sea: &Sea, kind: &KindId) -> Result<Sight, Fault> {
        match &self.at {
            At::Cluster(cluster) if self.server == CENTER && !sea.knows(cluster) => {
                Err(Fault::new(FaultKind::Forbidden, "access denied"))
            }
            At::Cluster(cluster) => Ok((Some(cluster.clone()), None)),
            At::View(view) => {
                let served = self.kinds(sea).iter().any(|one| one.id == *kind);
                let seen = view.seen(&sea.kcp, &sea.machines[self.server], kind);
                if served {
                    Ok((None, Some(Arc::new(seen))))
                } else {
                    Err(Fault::new(FaultKind::Unserved, "not served"))
                }
            }
        }
    }

    fn kinds(&self, sea: &Sea) -> Vec<Arc<Kind>> {
        let machine = &sea.machines[self.server];
        match &self.at {
            At::Cluster(cluster) => machine.kinds(cluster).cloned().collect(),
            At::View(view) => view.kinds(&sea.kcp, machine),
        }
    }

    fn place(&self) -> String {
        match &self.at {
            At::Cluster(cluster) => cluster.to_string(),
            At::View(view) => format!("view of {}", view.export.name),
        }
    }

    async fn ask(self) -> Result<Arc<Catalog>, Fault> {
        let known = Arc::clone(&self.known);
        if !known.stale.swap(false, Ordering::Relaxed)
            && let Some(catalog) = known.catalog.lock().unwrap_or_else(PoisonError::into_inner).clone()
        {
            return Ok(catalog);
        }
        let link = self.clone();
        let asked = self.send(false, move |sea| match &link.at {
            At::Cluster(cluster) if link.server == CENTER && !sea.knows(cluster) => {
                Err(Fault::new(FaultKind::Forbidden, "access denied"))
            }
            _ => Ok(catalog(&link.kinds(sea))),
        });
        let asked = asked.await;
        match asked {
            Ok(catalog) => {
                let catalog = Arc::new(catalog);
                *known.catalog.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&catalog));
                Ok(catalog)
            }
            Err(fault) => {
                known.stale.store(true, Ordering::Relaxed);
                Err(fault)
            }
        }
    }
}

impl Transport for Link {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, Fault>> {
        let (link, who) = (self.clone(), self.who);
        let built_on = lock(&self.sea).built_on(who, &call.key.kind);
        let slot = call.key.clone();
        let sea = Arc::clone(&self.sea);
        async move {
            let answer = link.send(true, move |sea| sea.carry_out(who, &call, built_on)).await;
            if answer.as_ref().is_err_and(|fault| &*fault.text == "timed out") {
                let mut sea = lock(&sea);
                let cut_short = sea.oracle.reply_lost(&slot);
                sea.report.cut_short += cut_short;
            }
            answer
        }
        .boxed()
    }

    fn fetch(&self, read: Read) -> BoxFuture<'static, Result<Lines, Fault>> {
        let link = self.clone();
        match read.mode.clone() {
            ReadMode::Page { limit, continue_token } => link.page(read, limit, continue_token).boxed(),
            ReadMode::Watch { from, timeout_seconds } => link.open(read, from, timeout_seconds).boxed(),
        }
    }

    fn catalog(&self) -> BoxFuture<'static, Result<Arc<Catalog>, Fault>> {
        self.clone().ask().boxed()
    }

    fn stale(&self) {
        self.known.stale.store(true, Ordering::Relaxed);
    }

    fn abilities(&self) -> Abilities {
        let whole = matches!(self.at, At::Cluster(_));
        Abilities { apply: whole, whole }
    }
}

/// The ways of the center's process.
pub(crate) struct Chart {
    pub(crate) sea: Shared,
    pub(crate) who: Who,
}

impl Ways for Chart {
    fn workspace(&self, id: &ClusterId) -> Arc<dyn Transport> {
        Arc::new(Link::new(&self.sea, self.who, id))
    }

    fn view(&self, url: &str) -> Result<Arc<dyn Transport>, Fault> {
        let (_, path) = url
            .split_once("/services/apiexport/")
            .ok_or_else(|| Fault::new(FaultKind::Invalid, "it is no view"))?;
        let (workspace, export) = path.split_once('/').unwrap_or((path, ""));
        let view = Arc::new(View::of(&ClusterId::new(workspace), export));
        let away = if url.starts_with(SHARD_URL) { lock(&self.sea).shard } else { None };
        let (sea, server) = (Arc::clone(&self.sea), away.unwrap_or(CENTER));
        Ok(Arc::new(Link { sea, who: self.who, server, at: At::View(view), known: Arc::default() }))
    }

    fn waiting(&self, _: &str, _: &ClusterId) -> Result<Arc<dyn Transport>, Fault> {
        Err(Fault::new(FaultKind::Invalid, "no workspace waits to be prepared"))
    }

    fn outside(&self, _: &Kubeconfig) -> BoxFuture<'static, Result<Arc<dyn Transport>, Fault>> {
        let fault = Fault::new(FaultKind::Invalid, "syncers are on board already, and none is installed");
        std::future::ready(Err(fault)).boxed()
    }
}

/// One watch on its way.
struct Streaming {
    link: Link,
    kind: Arc<Kind>,
    watch: Watch,
    bell: Listener,
    cuts: u64,
    stalls: u64,
    ends_at: Instant,
    bookmark_at: Instant,
}

impl Streaming {
    /// The next lines; none at the end. Whoever reads notices by time that a dead one says nothing.
    async fn next(stream: Option<Self>) -> Option<(Result<Bytes, Fault>, Option<Self>)> {
        let mut stream = stream?;
        loop {
            let bookmark = tokio::select! {
                biased;
                () = stream.bell.hear() => {
                    let latency = lock(&stream.link.sea).latency();
                    // What opens a stream goes before its lines.
                    sleep(Duration::from_millis(45) + latency).await;
                    false
                }
                () = sleep_until(stream.bookmark_at) => {
                    stream.bookmark_at += BOOKMARK_EVERY;
                    true
                }
                () = sleep_until(stream.ends_at) => {
                    if stream.is_heard() {
                        return None;
                    }
                    std::future::pending().await
                }
            };
            if stream.is_cut() {
                return Some((Err(Fault::new(FaultKind::Retry(None), "connection reset")), None));
            }
            if stream.is_heard() {
                let lines = stream.poll(bookmark);
                if !lines.is_empty() {
                    return Some((Ok(lines), Some(stream)));
                }
            }
        }
    }

    fn is_cut(&self) -> bool {
        lock(&self.link.sea).waters[self.link.server].cuts != self.cuts
    }

    fn is_heard(&self) -> bool {
        let sea = lock(&self.link.sea);
        let water = &sea.waters[self.link.server];
        !water.partitioned && water.stalls == self.stalls
    }

    fn poll(&mut self, bookmark: bool) -> Bytes {
        let sea = Arc::clone(&self.link.sea);
        let mut sea = lock(&sea);
        let machine = &sea.machines[self.link.server];
        let mut events: Vec<WatchEvent> = machine.poll(&mut self.watch, usize::MAX);
        if bookmark {
            events.extend(machine.bookmark(&self.watch));
        }
        let now = sea.now();
        sea.reads(self.link.who, &self.kind.id, &self.link.place(), now);
        let mut lines = String::new();
        for event in &events {
            lines.push_str(&event.to_json(&self.kind));
            lines.push('\n');
        }
        Bytes::from(lines)
    }
}

fn catalog(kinds: &[Arc<Kind>]) -> Catalog {
    let mut catalog = Catalog::default();
    for kind in kinds {
        for version in &kind.versions {
            catalog.add(Served {
                kind: kind.id.clone(),
                version: version.name.clone(),
                kind_name: kind.name.clone(),
                singular: kind.naming.singular.clone(),
                namespaced: kind.namespaced,
                status: kind.rules.status.is_some(),
                scale: kind.rules.scale.is_some(),
                verbs: Verbs::of(["get", "list", "watch", "create", "update", "patch", "delete"]),
                short_names: Box::new([]),
            });
        }
    }
    catalog
}
