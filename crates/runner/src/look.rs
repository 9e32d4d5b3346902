//! A fresh look at a source that seems to be gone, and at what it depends on.
//!
//! kcp deletes every object of a kind with its APIBinding or CRD, and every object of a workspace with the
//! workspace, and sends ordinary delete events for them. So before anything is withdrawn because a source is
//! gone, its own workspace is asked, after the event and never through a view: is it the object alone that is
//! gone?

use std::sync::Arc;

use mailboat_cluster::{Found, Read, ReadMode, Transport};
use mailboat_engine::look::{Definition, Look, Serving, Sighted, identity};
use mailboat_engine::role::Ground;
use mailboat_object::json::Raw;
use mailboat_object::key::{ClusterId, Key, KindId, Name, Uid, Version};
use mailboat_object::object::Limits;
use mailboat_object::page::Page;
use mailboat_object::timestamp::unix_seconds;
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Verb};

/// More bindings than a workspace can hold.
const BINDINGS_AT_MOST: u32 = 5_000;

/// Looks at a source's side. A fault means that nothing can be said.
pub async fn look(transport: Arc<dyn Transport>, source: Key) -> Result<Look, Fault> {
    let transport = &*transport;
    // The object comes last. It is known to be gone already; if what it rests on lives after that, it went alone. Asked
    // the other way round, a definition that ends in between would look like a kind that needs none.
    let (workspace_lives, kind) = ground_of(transport, &source.cluster, &source.kind).await?;
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
    if definition.is_none() && serves(&bindings)? {
        definition = bound_by(transport, bindings, kind).await?;
    }
    let serving = match definition {
        _ if !serves(kind)? => Serving::Nothing,
        Some(definition) => Serving::By(definition),
        // A kind that is built in, or another server's behind this one.
        None => Serving::Itself,
    };
    Ok((workspace_lives, serving))
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
    let page = ReadMode::Page { limit: BINDINGS_AT_MOST, continue_token: None };
    let body = transport.fetch(Read::all(bindings, page)).await?.whole().await?;
    let limits = Limits { bytes: body.len(), ..Limits::default() };
    let page = Page::parse(&body, limits).map_err(|malformed| unreadable(&malformed.to_string()))?;
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
    use futures::FutureExt as _;
    use futures::future::{BoxFuture, ready};
    use mailboat_cluster::{Catalog, Lines};
    use mailboat_object::catalog::{Served, Verbs};
    use mailboat_object::wire::{Abilities, Reply};

    use super::*;

    /// A server that says of itself what its catalog says, and has these objects and no others.
    struct Emptied {
        catalog: Arc<Catalog>,
        objects: Vec<(&'static str, &'static str)>,
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

        fn fetch(&self, _: Read) -> BoxFuture<'static, Result<Lines, Fault>> {
            panic!("nothing is listed here")
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
        Emptied { catalog: Arc::new(catalog), objects: Vec::new() }
    }

    fn looked(server: Emptied) -> Result<Look, Fault> {
        looked_for(server, KindId::new("", "configmaps"))
    }

    fn looked_for(server: Emptied, kind: KindId) -> Result<Look, Fault> {
        let cluster = ClusterId::new("mailbox");
        let source = Key { cluster, kind, namespace: Name::new("till"), name: Name::new("pos") };
        look(Arc::new(server), source).now_or_never().unwrap()
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
