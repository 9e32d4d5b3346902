//! A fresh look at a source that seems to be gone, and at what it depends on.
//!
//! kcp deletes every object of a kind with its APIBinding or CRD, and every object of a workspace with the
//! workspace, and sends ordinary delete events for them. So before anything is withdrawn because a source is
//! gone, its own workspace is asked, after the event and never through a view: is it the object alone that is
//! gone?

use std::sync::Arc;

use mailboat_cluster::{Found, Read, ReadMode, Transport};
use mailboat_engine::role::Ground;
use mailboat_engine::warrant::Look;
use mailboat_object::json::Raw;
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::Limits;
use mailboat_object::page::Page;
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Verb};

/// More bindings than a workspace can hold.
const BINDINGS_AT_MOST: u32 = 5_000;

/// Looks at a source's side. A fault means that nothing can be said.
pub async fn look(transport: Arc<dyn Transport>, source: Key) -> Result<Look, Fault> {
    let transport = &*transport;
    let object_missing = match get(transport, &source).await {
        Ok(_) => false,
        Err(fault) if fault.kind == FaultKind::NotFound => true,
        // The kind is not served at all: that says nothing about the object.
        Err(fault) if fault.kind == FaultKind::Unserved => false,
        Err(fault) => return Err(fault),
    };
    if !object_missing {
        return Ok(Look { object_missing, workspace_lives: true, kind_served_as_before: true });
    }
    let Ground { workspace_lives, kind_served } = ground_of(transport, &source.cluster, &source.kind).await?;
    Ok(Look { object_missing, workspace_lives, kind_served_as_before: kind_served })
}

/// Looks at what a kind rests on in a cluster: its workspace, and the CRD or binding that serves it.
pub async fn ground(
    transport: Arc<dyn Transport>,
    cluster: ClusterId,
    kind: KindId,
) -> Result<Ground, Fault> {
    ground_of(&*transport, &cluster, &kind).await
}

async fn ground_of(transport: &dyn Transport, cluster: &ClusterId, kind: &KindId) -> Result<Ground, Fault> {
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
        || lives(transport, &cluster_scoped(cluster, workspace, "cluster")).await?.is_some_and(|l| l);
    let crds = KindId::new("apiextensions.k8s.io", "customresourcedefinitions");
    let bindings = KindId::new("apis.kcp.io", "apibindings");
    let by_crd = if serves(&crds)? {
        lives(transport, &cluster_scoped(cluster, crds, &kind.to_string())).await?
    } else {
        None
    };
    let by_binding =
        if by_crd.is_none() && serves(&bindings)? { bound(transport, bindings, kind).await? } else { None };
    // Neither a CRD nor a binding: a kind that is built in, or another server's behind this one.
    let kind_served = by_crd.or(by_binding).unwrap_or(true) && serves(kind)?;
    Ok(Ground { workspace_lives, kind_served })
}

/// Whether an object is there and not being deleted; `None` if it is not there.
async fn lives(transport: &dyn Transport, key: &Key) -> Result<Option<bool>, Fault> {
    match get(transport, key).await {
        Ok(body) => Ok(Some(!deleting(&body)?)),
        Err(fault) if fault.kind == FaultKind::NotFound => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Whether the binding that brings a kind is not being deleted; `None` if no binding brings it.
async fn bound(transport: &dyn Transport, bindings: KindId, kind: &KindId) -> Result<Option<bool>, Fault> {
    let page = ReadMode::Page { limit: BINDINGS_AT_MOST, continue_token: None };
    let body = transport.fetch(Read::all(bindings, page)).await?.whole().await?;
    let limits = Limits { bytes: body.len(), ..Limits::default() };
    let page = Page::parse(&body, limits).map_err(|malformed| unreadable(&malformed.to_string()))?;
    for binding in page.items() {
        let root = Raw::parse(binding).map_err(|malformed| unreadable(&malformed.to_string()))?;
        let brings = root.get(&["status", "boundResources"]).is_some_and(|resources| {
            resources.elements().any(|resource| {
                let text = |member| resource.member(member).and_then(Raw::as_str).unwrap_or_default();
                text("group") == kind.group() && text("resource") == kind.resource()
            })
        });
        if brings {
            return Ok(Some(root.get(&["metadata", "deletionTimestamp"]).is_none()));
        }
    }
    Ok(None)
}

async fn get(transport: &dyn Transport, key: &Key) -> Result<Box<[u8]>, Fault> {
    let call = Call { key: key.clone(), verb: Verb::Get, part: Part::Whole, dry_run: false };
    transport.call(call).await.map(|reply| reply.body)
}

fn deleting(body: &[u8]) -> Result<bool, Fault> {
    let root = Raw::parse(body).map_err(|malformed| unreadable(&malformed.to_string()))?;
    Ok(root.get(&["metadata", "deletionTimestamp"]).is_some())
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

    /// A server where no object is left, and that says of itself what its catalog says.
    struct Emptied(Arc<Catalog>);

    impl Transport for Emptied {
        fn call(&self, _: Call) -> BoxFuture<'static, Result<Reply, Fault>> {
            ready(Err(Fault::new(FaultKind::NotFound, "it is not there"))).boxed()
        }

        fn fetch(&self, _: Read) -> BoxFuture<'static, Result<Lines, Fault>> {
            panic!("nothing is listed here")
        }

        fn catalog(&self) -> BoxFuture<'static, Result<Arc<Catalog>, Fault>> {
            ready(Ok(Arc::clone(&self.0))).boxed()
        }

        fn stale(&self) {}

        fn abilities(&self) -> Abilities {
            Abilities { apply: true, whole: true }
        }
    }

    fn serving(kinds: &[(&str, &str)], silent: &[&str]) -> Arc<dyn Transport> {
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
        Arc::new(Emptied(Arc::new(catalog)))
    }

    fn looked(transport: Arc<dyn Transport>) -> Result<Look, Fault> {
        let (cluster, kind) = (ClusterId::new("mailbox"), KindId::new("", "configmaps"));
        let source = Key { cluster, kind, namespace: Name::new("till"), name: Name::new("pos") };
        look(transport, source).now_or_never().unwrap()
    }

    #[test]
    fn in_an_ordinary_cluster_the_object_alone_is_gone() {
        let look = looked(serving(&[("", "configmaps")], &[])).unwrap();
        assert!(look.object_missing && look.workspace_lives && look.kind_served_as_before);
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
