//! A fresh look at a source that seems to be gone, and at what it depends on.
//!
//! kcp deletes every object of a kind with its APIBinding or CRD, and every object of a workspace with the
//! workspace, and sends ordinary delete events for them. So before anything is withdrawn because a source is
//! gone, its own workspace is asked, after the event and never through a view: is it the object alone that is
//! gone?

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use mailboat_cluster::{Found, Read, ReadMode, Transport};
use mailboat_engine::look::{Definition, Look, Serving, Sighted, identity};
use mailboat_engine::role::Ground;
use mailboat_object::json::Raw;
use mailboat_object::key::{ClusterId, Key, KindId, Name, Uid, Version};
use mailboat_object::object::Limits;
use mailboat_object::page::Page;
use mailboat_object::timestamp::unix_seconds;
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Verb};

/// Bindings that are read at once.
const BINDINGS_IN_A_PAGE: u32 = 500;

/// Looks at a source's side. A fault means that nothing can be said.
pub async fn look(transport: Arc<dyn Transport>, source: Key) -> Result<Look, Fault> {
    let ground = ground(Arc::clone(&transport), source.cluster.clone(), source.kind.clone());
    look_from(transport, source, ground).await
}

/// The same, from a ground that others may look from as well.
pub(crate) async fn look_from(
    transport: Arc<dyn Transport>,
    source: Key,
    ground: impl Future<Output = Result<Ground, Fault>>,
) -> Result<Look, Fault> {
    let transport = &*transport;
    // The object comes last. It is known to be gone already; if what it rests on lives after that, it went alone. Asked
    // the other way round, a definition that ends in between would look like a kind that needs none.
    let Ground { workspace_lives, kind } = ground.await?;
    match get(transport, &source).await {
        Ok(body) => Ok(Look { object: sighted(&body)?, workspace_lives, kind }),
        Err(fault) if fault.kind == FaultKind::NotFound => {
            Ok(Look { object: Sighted::Missing, workspace_lives, kind })
        }
        // The kind is not served at all: that says nothing about the object.
        Err(fault) if fault.kind == FaultKind::Unserved => {
            Ok(Look { object: Sighted::Missing, workspace_lives, kind: Serving::Nothing })
        }
        Err(fault) => Err(fault),
    }
}

/// Whether the object of an answer is being deleted.
fn sighted(body: &[u8]) -> Result<Sighted, Fault> {
    let root = Raw::parse(body).map_err(|malformed| unreadable(&malformed.to_string()))?;
    let text = |member| root.get(&["metadata", member]).and_then(Raw::as_str);
    Ok(match text("deletionTimestamp") {
        Some(_) => Sighted::Ending(Uid::parse(&text("uid").unwrap_or_default())),
        None => Sighted::There,
    })
}

/// Looks at what a kind rests on in a cluster: its workspace, and the CRD or binding that serves it.
pub async fn ground(
    transport: Arc<dyn Transport>,
    cluster: ClusterId,
    kind: KindId,
) -> Result<Ground, Fault> {
    let (workspace_lives, kind) = ground_of(&*transport, &cluster, &kind).await?;
    Ok(Ground { workspace_lives, kind })
}

/// Grounds that many looks share: a thousand objects that went together rest on one binding. A look may be told by any ground
/// that was asked for after the look was wanted, and by none from before: so while one is under way, those that come wait
/// together for the next.
#[derive(Default)]
pub(crate) struct Grounds {
    of: BTreeMap<(ClusterId, KindId), Turns>,
}

type Shared = futures::future::Shared<BoxFuture<'static, Result<Ground, Fault>>>;

struct Turns {
    /// The last one that was begun, and whether it was sent.
    last: Shared,
    sent: Arc<AtomicBool>,
}

impl Grounds {
    /// The ground of a kind, looked at from now on.
    pub(crate) fn ask(
        &mut self,
        transport: &Arc<dyn Transport>,
        cluster: &ClusterId,
        kind: &KindId,
    ) -> Shared {
        // What is answered is told to those who hold it still.
        self.of.retain(|_, turns| turns.last.peek().is_none());
        let (cluster, kind) = (cluster.clone(), kind.clone());
        let of = (cluster.clone(), kind.clone());
        let before = match self.of.get(&of) {
            Some(Turns { last, sent }) if !sent.load(Ordering::Acquire) => return last.clone(),
            under_way => under_way.map(|turns| turns.last.clone()),
        };
        let sent = Arc::new(AtomicBool::new(false));
        let (transport, to_be_sent) = (Arc::clone(transport), Arc::clone(&sent));
        let asking = async move {
            if let Some(before) = before {
                drop(before.await);
            }
            to_be_sent.store(true, Ordering::Release);
            ground(transport, cluster, kind).await
        };
        let last = asking.boxed().shared();
        self.of.insert(of, Turns { last: last.clone(), sent });
        last
    }
}

/// Whether the workspace lives, and what serves the kind.
async fn ground_of(
    transport: &dyn Transport,
    cluster: &ClusterId,
    kind: &KindId,
) -> Result<(bool, Serving), Fault> {
    transport.stale();
    let catalog = transport.catalog().await?;
    // A workspace that is torn down stops answering for one group after the other. A group that does not answer is no
    // group that is not there: without logicalclusters this would be an ordinary cluster, which nobody deletes.
    let serves = |kind: &KindId| match catalog.find(kind) {
        Found::Served(_) => Ok(true),
        Found::NotServed => Ok(false),
        Found::Unknown(why) => {
            let text = format!("whether {kind} is served is not known: {why}");
            Err(Fault::new(FaultKind::Retry(None), text))
        }
    };
    let workspace = KindId::new("core.kcp.io", "logicalclusters");
    let workspace_lives = !serves(&workspace)?
        || defined_by(transport, &cluster_scoped(cluster, workspace, "cluster"))
            .await?
            .is_some_and(|logical_cluster| !logical_cluster.deleting);
    let crds = KindId::new("apiextensions.k8s.io", "customresourcedefinitions");
    let bindings = KindId::new("apis.kcp.io", "apibindings");
    let mut definition = None;
    if serves(&crds)? {
        definition = defined_by(transport, &cluster_scoped(cluster, crds, &kind.to_string())).await?;
    }
    let binds = serves(&bindings)?;
    if definition.is_none() && binds {
        definition = bound_by(transport, bindings, kind).await?;
    }
    let serving = match (definition, catalog.find(kind)) {
        (_, Found::NotServed | Found::Unknown(_)) if !serves(kind)? => Serving::Nothing,
        (Some(definition), _) => Serving::By(definition),
        (None, _) if is_built_in(kind, binds) => Serving::Itself,
        (None, Found::Served(served)) if serves(&api_services())? => {
            let name = format!("{}.{}", served.version, kind.group());
            behind_it(transport, &cluster_scoped(cluster, api_services(), &name)).await?
        }
        // What the server said of itself a moment ago is over: what defined the kind is gone.
        (None, _) => Serving::Nothing,
    };
    Ok((workspace_lives, serving))
}

/// Whether a kind is a server's own, so that nothing could be deleted with all of its objects. A workspace of kcp has few of
/// these: what others have built in, Deployments for one, it has by a binding, if at all.
fn is_built_in(kind: &KindId, workspace: bool) -> bool {
    let (group, resource) = (kind.group(), kind.resource());
    match group {
        "" if workspace => BUILT_IN_CORE.contains(&resource),
        "" => true,
        _ if workspace => {
            BUILT_IN_ANYWHERE.contains(&group) || ["core.kcp.io", "apis.kcp.io"].contains(&group)
        }
        _ => BUILT_IN_ANYWHERE.contains(&group) || BUILT_IN_CLUSTERS.contains(&group),
    }
}

/// The kinds of the core group that every workspace serves.
const BUILT_IN_CORE: [&str; 7] =
    ["configmaps", "events", "limitranges", "namespaces", "resourcequotas", "secrets", "serviceaccounts"];
/// The groups that clusters and workspaces serve by themselves.
const BUILT_IN_ANYWHERE: [&str; 9] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "rbac.authorization.k8s.io",
];
/// The groups that clusters alone serve by themselves.
const BUILT_IN_CLUSTERS: [&str; 13] = [
    "apiregistration.k8s.io",
    "apps",
    "autoscaling",
    "batch",
    "discovery.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

fn api_services() -> KindId {
    KindId::new("apiregistration.k8s.io", "apiservices")
}

/// Whether another server behind this one serves a kind, by the APIService of its group. Those of CRDs name no server.
async fn behind_it(transport: &dyn Transport, api_service: &Key) -> Result<Serving, Fault> {
    match get(transport, api_service).await {
        Ok(body) => {
            let root = Raw::parse(&body).map_err(|malformed| unreadable(&malformed.to_string()))?;
            let server = root.get(&["spec", "service", "name"]).is_some();
            let ends = root.get(&["metadata", "deletionTimestamp"]).is_some();
            Ok(if server && !ends { Serving::Itself } else { Serving::Nothing })
        }
        Err(fault) if fault.kind == FaultKind::NotFound => Ok(Serving::Nothing),
        Err(fault) => Err(fault),
    }
}

/// An object that others rest on, as it stands; `None` if it is not there.
async fn defined_by(transport: &dyn Transport, key: &Key) -> Result<Option<Definition>, Fault> {
    match get(transport, key).await {
        Ok(body) => {
            let root = Raw::parse(&body).map_err(|malformed| unreadable(&malformed.to_string()))?;
            definition(root, None).map(Some)
        }
        Err(fault) if fault.kind == FaultKind::NotFound => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// The binding that brings a kind; `None` if none does.
async fn bound_by(
    transport: &dyn Transport,
    bindings: KindId,
    kind: &KindId,
) -> Result<Option<Definition>, Fault> {
    let mut continue_token = None;
    loop {
        let page = ReadMode::Page { limit: BINDINGS_IN_A_PAGE, continue_token };
        let body = transport.fetch(Read::all(bindings.clone(), page)).await?.whole().await?;
        if let Some(definition) = bound_on(&body, kind)? {
            return Ok(Some(definition));
        }
        // A list that is not read to its end says of no binding that it is not there.
        continue_token = Page::peek_continue(&body).filter(|token| !token.is_empty()).map(Cow::into_owned);
        if continue_token.is_none() {
            return Ok(None);
        }
    }
}

/// The binding on a page that brings a kind.
fn bound_on(body: &[u8], kind: &KindId) -> Result<Option<Definition>, Fault> {
    let limits = Limits { bytes: body.len(), ..Limits::default() };
    let page = Page::parse(body, limits).map_err(|malformed| unreadable(&malformed.to_string()))?;
    for binding in page.items() {
        let root = Raw::parse(binding).map_err(|malformed| unreadable(&malformed.to_string()))?;
        let resources = root.get(&["status", "boundResources"]);
        let brought = resources.into_iter().flat_map(Raw::elements).find(|resource| {
            let text = |member| resource.member(member).and_then(Raw::as_str).unwrap_or_default();
            text("group") == kind.group() && text("resource") == kind.resource()
        });
        if let Some(brought) = brought {
            let hash = brought.get(&["schema", "identityHash"]).and_then(Raw::as_str);
            return definition(root, hash.filter(|hash| !hash.is_empty()).map(|hash| identity(&hash)))
                .map(Some);
        }
    }
    Ok(None)
}

fn definition(root: Raw<'_>, identity: Option<Name>) -> Result<Definition, Fault> {
    let text = |member| root.get(&["metadata", member]).and_then(Raw::as_str);
    let version = text("resourceVersion").and_then(|version| version.parse().ok().map(Version));
    Ok(Definition {
        uid: Uid::parse(&text("uid").unwrap_or_default()),
        deleting: text("deletionTimestamp").is_some(),
        version: version.ok_or_else(|| unreadable("it has no version"))?,
        made_seconds: text("creationTimestamp").and_then(|time| unix_seconds(&time)),
        identity,
    })
}

async fn get(transport: &dyn Transport, key: &Key) -> Result<Box<[u8]>, Fault> {
    let call = Call { key: key.clone(), verb: Verb::Get, part: Part::Whole, dry_run: false };
    transport.call(call).await.map(|reply| reply.body)
}

fn cluster_scoped(cluster: &ClusterId, kind: KindId, name: &str) -> Key {
    Key { cluster: cluster.clone(), kind, namespace: Name::EMPTY, name: Name::new(name) }
}

fn unreadable(why: &str) -> Fault {
    Fault::new(FaultKind::Retry(None), format!("what the server says of it cannot be read: {why}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use bytes::Bytes;
    use futures::StreamExt as _;
    use futures::future::ready;
    use mailboat_cluster::{Catalog, Lines};
    use mailboat_object::catalog::{Served, Verbs};
    use mailboat_object::wire::{Abilities, Reply};

    use super::*;

    /// A server that says of itself what its catalog says, and has these objects and no others.
    struct Emptied {
        catalog: Arc<Catalog>,
        objects: Vec<(&'static str, &'static str)>,
        /// Its bindings, page by page.
        pages: Vec<&'static str>,
    }

    impl Transport for Emptied {
        fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, Fault>> {
            let found = self.objects.iter().find(|(name, _)| *name == call.key.name.as_str());
            let answer = match found {
                Some((_, body)) => {
                    Ok(Reply { body: body.as_bytes().into(), created: false, warnings: Vec::new() })
                }
                None => Err(Fault::new(FaultKind::NotFound, "it is not there")),
            };
            ready(answer).boxed()
        }

        fn fetch(&self, read: Read) -> BoxFuture<'static, Result<Lines, Fault>> {
            let ReadMode::Page { continue_token, .. } = read.mode else { panic!("not a list") };
            let page = self.pages.get(usize::from(continue_token.is_some()));
            let page = Bytes::from_static(page.unwrap_or(&"{}").as_bytes());
            let (line_bytes, pause) = (1 << 20, Duration::from_secs(1));
            let limits = mailboat_cluster::lines::Limits { line_bytes, whole_bytes: line_bytes, pause };
            let pieces = futures::stream::once(ready(Ok(page))).boxed();
            ready(Ok(Lines::new(pieces, limits))).boxed()
        }

        fn catalog(&self) -> BoxFuture<'static, Result<Arc<Catalog>, Fault>> {
            ready(Ok(Arc::clone(&self.catalog))).boxed()
        }

        fn stale(&self) {}

        fn abilities(&self) -> Abilities {
            Abilities { apply: true, whole: true }
        }
    }

    fn serving(kinds: &[(&str, &str)], silent: &[&str]) -> Emptied {
        let mut catalog = Catalog::default();
        for (group, resource) in kinds {
            catalog.add(Served {
                kind: KindId::new(group, resource),
                version: Name::new("v1"),
                kind_name: Name::new("Any"),
                singular: Name::EMPTY,
                namespaced: true,
                status: false,
                scale: false,
                verbs: Verbs::of(["get", "list", "watch"]),
                short_names: Box::new([]),
            });
        }
        for group in silent {
            catalog.doubt(group, "it does not answer");
        }
        Emptied { catalog: Arc::new(catalog), objects: Vec::new(), pages: Vec::new() }
    }

    fn looked(server: Emptied) -> Result<Look, Fault> {
        looked_for(server, KindId::new("", "configmaps"))
    }

    fn looked_for(server: Emptied, kind: KindId) -> Result<Look, Fault> {
        let cluster = ClusterId::new("mailbox");
        let source = Key { cluster, kind, namespace: Name::new("till"), name: Name::new("pos") };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(look(Arc::new(server), source))
    }

    #[test]
    fn a_definition_is_told_with_its_version_and_when_it_was_made() {
        let crds = ("apiextensions.k8s.io", "customresourcedefinitions");
        let kind = KindId::new("sea.example.com", "boats");
        let with = |crd: &'static str| Emptied {
            objects: vec![("boats.sea.example.com", crd)],
            ..serving(&[crds, ("sea.example.com", "boats")], &[])
        };
        let crd =
            r#"{"metadata":{"resourceVersion":"71","creationTimestamp":"2026-11-16T00:00:01Z","uid":"u"}}"#;
        let Serving::By(definition) = looked_for(with(crd), kind.clone()).unwrap().kind else {
            panic!("no CRD")
        };
        assert_eq!((definition.version, definition.deleting), (Version(71), false));
        assert_eq!((definition.uid, definition.made_seconds), (Uid::parse("u"), Some(1_794_787_201)));
        let deleting = r#"{"metadata":{"resourceVersion":"72","deletionTimestamp":"2026-11-16T00:00:02Z"}}"#;
        let Serving::By(definition) = looked_for(with(deleting), kind.clone()).unwrap().kind else {
            panic!("no CRD")
        };
        assert!(definition.deleting);
        // One that cannot be read says nothing.
        assert!(looked_for(with("{}"), kind.clone()).is_err());
        // No CRD, and the kind is not served: not a kind that needs none.
        let look = looked_for(serving(&[crds], &[]), kind).unwrap();
        assert_eq!(look.kind, Serving::Nothing);
    }

    /// Discovery is asked first, lags behind, and serves what it knew when it fails.
    #[test]
    fn a_kind_without_its_definition_is_no_kind_that_needs_none() {
        let crds = ("apiextensions.k8s.io", "customresourcedefinitions");
        let services = ("apiregistration.k8s.io", "apiservices");
        let boats = ("sea.example.com", "boats");
        let kind = |of: (&str, &str)| KindId::new(of.0, of.1);
        let look = looked_for(serving(&[crds, boats], &[]), kind(boats)).unwrap();
        assert_eq!(look.kind, Serving::Nothing, "it is in the catalog, and its CRD is gone");
        let look = looked_for(serving(&[crds, boats, services], &[]), kind(boats)).unwrap();
        assert_eq!(look.kind, Serving::Nothing, "nor is there another server");
        let by = |service: &'static str| Emptied {
            objects: vec![("v1.sea.example.com", service)],
            ..serving(&[crds, boats, services], &[])
        };
        let local = r#"{"metadata":{},"spec":{"group":"sea.example.com"}}"#;
        assert_eq!(looked_for(by(local), kind(boats)).unwrap().kind, Serving::Nothing, "that of the CRD");
        let another = r#"{"metadata":{},"spec":{"service":{"name":"harbor"}}}"#;
        assert_eq!(looked_for(by(another), kind(boats)).unwrap().kind, Serving::Itself);
        // In a cluster Deployments are built in; in a workspace they come by a binding.
        let deployments = ("apps", "deployments");
        assert_eq!(
            looked_for(serving(&[deployments], &[]), kind(deployments)).unwrap().kind,
            Serving::Itself
        );
        let bindings = ("apis.kcp.io", "apibindings");
        let unbound = |of| Emptied { pages: vec![r#"{"items":[]}"#], ..serving(&[bindings, of], &[]) };
        for (of, built_in) in [(deployments, false), (("", "services"), false), (("", "configmaps"), true)] {
            let found = looked_for(unbound(of), kind(of)).unwrap().kind;
            assert_eq!(found, if built_in { Serving::Itself } else { Serving::Nothing }, "{of:?}");
        }
    }

    #[test]
    fn bindings_are_read_to_the_last_page() {
        let (bindings, boats) = (("apis.kcp.io", "apibindings"), ("sea.example.com", "boats"));
        let first = r#"{"metadata":{"continue":"more"},"items":[{"metadata":{"resourceVersion":"1"}}]}"#;
        let last = r#"{"metadata":{},"items":[{"metadata":{"resourceVersion":"7","uid":"b"},"status":{"boundResources":
            [{"group":"sea.example.com","resource":"boats","schema":{"identityHash":"0123456789abcdef"}}]}}]}"#;
        let server = Emptied { pages: vec![first, last], ..serving(&[bindings, boats], &[]) };
        let Serving::By(found) = looked_for(server, KindId::new(boats.0, boats.1)).unwrap().kind else {
            panic!("no binding")
        };
        assert_eq!((found.version, found.identity), (Version(7), Some(Name::new("0123456789ab"))));
    }

    /// A server that counts how often it is asked what it serves, and says nothing before it is let.
    struct Counting {
        server: Emptied,
        asked: Arc<AtomicUsize>,
        gate: futures::future::Shared<futures::channel::oneshot::Receiver<()>>,
    }

    impl Transport for Counting {
        fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, Fault>> {
            self.server.call(call)
        }

        fn fetch(&self, read: Read) -> BoxFuture<'static, Result<Lines, Fault>> {
            self.server.fetch(read)
        }

        fn catalog(&self) -> BoxFuture<'static, Result<Arc<Catalog>, Fault>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let (gate, answer) = (self.gate.clone(), self.server.catalog());
            async move {
                let _ = gate.await;
                answer.await
            }
            .boxed()
        }

        fn stale(&self) {}

        fn abilities(&self) -> Abilities {
            self.server.abilities()
        }
    }

    #[test]
    fn looks_that_are_wanted_together_share_their_ground_and_none_shares_an_older_one() {
        let (open, gate) = futures::channel::oneshot::channel();
        let asked = Arc::new(AtomicUsize::new(0));
        let server = serving(&[("", "configmaps")], &[]);
        let transport: Arc<dyn Transport> =
            Arc::new(Counting { server, asked: Arc::clone(&asked), gate: gate.shared() });
        let (cluster, kind) = (ClusterId::new("mailbox"), KindId::new("", "configmaps"));
        let mut grounds = Grounds::default();
        let mut looks: Vec<_> = (0..500).map(|_| grounds.ask(&transport, &cluster, &kind)).collect();
        assert!(looks.iter_mut().all(|look| look.now_or_never().is_none()));
        assert_eq!(asked.load(Ordering::Relaxed), 1, "none was sent when the last of them was wanted");
        // These come when it is under way: it may have been answered before their events.
        let mut later: Vec<_> = (0..500).map(|_| grounds.ask(&transport, &cluster, &kind)).collect();
        assert!(later.iter_mut().all(|look| look.now_or_never().is_none()));
        assert_eq!(asked.load(Ordering::Relaxed), 1, "one at a time");
        open.send(()).unwrap();
        assert!(looks.into_iter().all(|look| look.now_or_never().is_some_and(|found| found.is_ok())));
        assert!(later.into_iter().all(|look| look.now_or_never().is_some_and(|found| found.is_ok())));
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        // What is wanted after an answer is not told by it.
        let last = grounds.ask(&transport, &cluster, &kind);
        assert!(last.now_or_never().is_some_and(|found| found.is_ok()));
        assert_eq!(asked.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn an_object_that_is_being_deleted_is_told_from_one_that_stays() {
        let with = |body| {
            let objects = vec![("pos", body)];
            looked(Emptied { objects, ..serving(&[("", "configmaps")], &[]) }).unwrap().object
        };
        assert_eq!(with(r#"{"metadata":{"uid":"u"}}"#), Sighted::There);
        let going = r#"{"metadata":{"uid":"u","deletionTimestamp":"2026-11-16T00:00:02Z"}}"#;
        assert_eq!(with(going), Sighted::Ending(Uid::parse("u")));
    }

    #[test]
    fn in_an_ordinary_cluster_the_object_alone_is_gone() {
        let look = looked(serving(&[("", "configmaps")], &[])).unwrap();
        assert!(look.object == Sighted::Missing && look.workspace_lives && look.kind == Serving::Itself);
    }

    #[test]
    fn a_group_that_does_not_answer_is_no_group_that_is_not_there() {
        for silent in ["core.kcp.io", "apis.kcp.io", "apiextensions.k8s.io"] {
            let fault = looked(serving(&[("", "configmaps")], &[silent])).unwrap_err();
            assert!(matches!(fault.kind, FaultKind::Retry(None)), "{silent}: {fault}");
        }
    }

    #[test]
    fn a_workspace_without_its_logical_cluster_is_gone() {
        let kinds = [("", "configmaps"), ("core.kcp.io", "logicalclusters")];
        assert!(!looked(serving(&kinds, &[])).unwrap().workspace_lives);
    }
}
