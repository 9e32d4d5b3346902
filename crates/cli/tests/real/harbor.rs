//! A mailbox, an edge and a syncer between them, and what tests want to know of both sides.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;

use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use mailboat_api::generate;
use mailboat_testkit::{ADMIN, Center, EdgeSpec, Workspace, World, apply_object, served, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Mutex, OnceCell};

use crate::program::{Syncer, ask};

/// Within this a syncer has done what it is asked to, on a machine with other things to do.
pub(crate) const SOON: Duration = Duration::from_secs(40);
/// kcp takes some seconds for each kind that is new to it.
const BOUND_LIMIT: Duration = Duration::from_mins(4);
/// The name of every shared edge.
pub(crate) const EDGE: &str = "island";

/// An export, and which of its kinds are offered.
type Offer = (&'static str, &'static [&'static str]);

/// The exports that mailboxes here are bound to: the configuration's kinds, some compute kinds, and some denatured ones.
/// Not all of ours: each new kind takes kcp five seconds.
const EXPORTS: [Offer; 3] = [
    ("edge.kubestellar.io", &["syncerconfigs", "edgesyncconfigs"]),
    ("kubernetes", &["deployments", "services", "jobs"]),
    (
        "denatured.mailboat.dev",
        &[
            "clusterroles",
            "clusterrolebindings",
            "roles",
            "rolebindings",
            "serviceaccounts",
            "customresourcedefinitions",
            "resourcequotas",
        ],
    ),
];

/// A mailbox, an edge, and perhaps a syncer that runs.
pub(crate) struct Harbor {
    pub(crate) mailbox: Workspace,
    pub(crate) up: Client,
    pub(crate) down: Client,
    /// The kubeconfigs that the syncer uses.
    pub(crate) from: PathBuf,
    pub(crate) to: PathBuf,
    pub(crate) uid: String,
    pub(crate) world: Arc<World>,
    syncer: Option<Syncer>,
    folder: TempDir,
}

impl Harbor {
    /// A fresh mailbox beside the shared edge.
    pub(crate) async fn new(name: &str) -> Self {
        Self::beside(name, shared_edge().await).await
    }

    /// A fresh mailbox beside an edge of the caller's.
    pub(crate) async fn beside(name: &str, world: Arc<World>) -> Self {
        let center = World::shared().await.unwrap().center();
        let mailbox = center.workspace(name).await.unwrap();
        bind(&center.client(ADMIN, &mailbox.path).await.unwrap(), &provider().await.path, &EXPORTS).await;
        Self::between(center, mailbox, world).await
    }

    /// A mailbox in a center of its own, beside an edge of its own: both may be broken. It knows the kinds of the
    /// configuration and those that kcp has itself.
    pub(crate) async fn alone(name: &str) -> Self {
        let edge = EdgeSpec::bare(EDGE).with_own_etcd();
        let world = Arc::new(World::builder().center().edge_with(edge).start().await.unwrap());
        let center = world.center();
        let provider = provider_of(center, &EXPORTS[..1]).await;
        let mailbox = center.workspace(name).await.unwrap();
        bind(&center.client(ADMIN, &mailbox.path).await.unwrap(), &provider.path, &EXPORTS[..1]).await;
        Self::between(center, mailbox, Arc::clone(&world)).await
    }

    /// A mailbox of the given center, beside the given edge.
    pub(crate) async fn between(center: &Center, mailbox: Workspace, world: Arc<World>) -> Self {
        let edge = world.edge(EDGE);
        Self {
            up: center.client(ADMIN, &mailbox.path).await.unwrap(),
            down: edge.client(ADMIN).await.unwrap(),
            from: center.kubeconfig(ADMIN, &mailbox.path).unwrap(),
            to: edge.kubeconfig(ADMIN).unwrap(),
            uid: mailbox.cluster.clone(),
            mailbox,
            world,
            syncer: None,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Starts a syncer.
    pub(crate) fn sail(&mut self) {
        let syncer = Syncer::start(&self.from, &self.to, &self.uid, &self.folder.path().join("syncer.log"));
        self.syncer = Some(syncer);
    }

    /// What syncers have said here so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("syncer.log")).unwrap_or_default()
    }

    /// The sum of all series of this name that the syncer counts.
    pub(crate) async fn counted(&self, name: &str) -> f64 {
        let log = self.log();
        let address = log.rsplit("address=").next().and_then(|rest| rest.split_whitespace().next());
        let metrics = ask(address.expect("it said where it listens"), "/metrics").await;
        let series = metrics
            .lines()
            .filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])));
        series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// Ends the syncer as a crash does (SIGKILL): whatever it was about is left as it is.
    pub(crate) async fn sink(&mut self) {
        self.syncer.take().expect("a syncer runs").kill().await;
    }

    /// Ends the syncer as it is meant to end (SIGTERM).
    pub(crate) async fn moor(&mut self) {
        let code = self.syncer.take().expect("a syncer runs").end().await;
        assert_eq!(code, Some(0), "the syncer did not end well:\n{}", self.log());
    }

    /// Writes the SyncerConfig `the-one`.
    pub(crate) async fn configure(&self, spec: Value) {
        self.configure_as("SyncerConfig", "the-one", spec).await;
    }

    /// Writes a configuration object.
    pub(crate) async fn configure_as(&self, kind: &str, name: &str, spec: Value) {
        let config = json!({ "apiVersion": "edge.kubestellar.io/v2alpha1", "kind": kind,
                             "metadata": { "name": name }, "spec": spec });
        put(&self.up, &config).await;
    }

    /// What the syncer says in `the-one`.
    pub(crate) async fn status(&self) -> Value {
        let config = get(&self.up, "edge.kubestellar.io/v2alpha1", "SyncerConfig", "", "the-one").await;
        config.map(|config| config["status"].clone()).unwrap_or_default()
    }

    /// The generation of `the-one`.
    pub(crate) async fn generation(&self) -> Value {
        let config = get(&self.up, "edge.kubestellar.io/v2alpha1", "SyncerConfig", "", "the-one").await;
        config.map(|config| config["metadata"]["generation"].clone()).unwrap_or_default()
    }

    /// What stands at the edge under an object's kind and name.
    pub(crate) async fn copy_of(&self, object: &Value) -> Option<Value> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (version, kind) = (text("/apiVersion"), text("/kind"));
        get(&self.down, version, kind, text("/metadata/namespace"), text("/metadata/name")).await
    }

    /// Waits until the syncer's status fits.
    pub(crate) async fn until_status(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let waited = wait_until(what, SOON, || async {
            let status = self.status().await;
            if fits(&status) { Ok(status) } else { Err(status) }
        });
        waited.await.unwrap_or_else(|late| panic!("{late}"))
    }

    /// Waits until an object at the edge fits.
    pub(crate) async fn until_down(
        &self,
        (version, kind, namespace, name): (&str, &str, &str, &str),
        what: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> Value {
        let waited = until(&self.down, (version, kind, namespace, name), what, SOON, fits).await;
        match waited {
            Ok(object) => object,
            Err(late) => panic!("{late}\n{:#}", self.status().await),
        }
    }

    /// Waits until an object of the mailbox fits.
    pub(crate) async fn until_up(
        &self,
        (version, kind, namespace, name): (&str, &str, &str, &str),
        what: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> Value {
        let waited = until(&self.up, (version, kind, namespace, name), what, SOON, fits).await;
        match waited {
            Ok(object) => object,
            Err(late) => panic!("{late}\n{:#}", self.status().await),
        }
    }

    /// Waits until an object is gone.
    pub(crate) async fn until_gone(&self, client: &Client, object: (&str, &str, &str, &str)) {
        let (version, kind, namespace, name) = object;
        let waited = wait_until(format!("{kind} {namespace}/{name} gone"), SOON, || async {
            match get(client, version, kind, namespace, name).await {
                None => Ok(()),
                Some(object) => Err(object.to_string()),
            }
        });
        if let Err(late) = waited.await {
            panic!("{late}\n{:#}", self.status().await);
        }
    }
}

impl Drop for Harbor {
    /// What the syncer said belongs to what a failing test prints.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("what the syncer said:\n{}", self.log());
        }
    }
}

/// A whole edge, shared by the tests which break nothing.
async fn shared_edge() -> Arc<World> {
    static SHARED: LazyLock<Mutex<Weak<World>>> = LazyLock::new(Mutex::default);
    let mut shared = SHARED.lock().await;
    if let Some(world) = shared.upgrade() {
        return world;
    }
    let world = Arc::new(World::builder().edge_with(EdgeSpec::new(EDGE)).start().await.unwrap());
    *shared = Arc::downgrade(&world);
    world
}

/// A workspace of the shared center with the exports that mailboxes are bound to.
async fn provider() -> &'static Workspace {
    static PROVIDER: OnceCell<Workspace> = OnceCell::const_new();
    PROVIDER.get_or_init(async || provider_of(World::shared().await.unwrap().center(), &EXPORTS).await).await
}

/// A workspace with the exports that mailboxes are bound to.
async fn provider_of(center: &Center, offers: &[Offer]) -> Workspace {
    let provider = center.workspace("espw").await.unwrap();
    let client = center.client(ADMIN, &provider.path).await.unwrap();
    let schemas = generate::export_schemas().unwrap();
    let exports = generate::exports().unwrap();
    for (name, wanted) in offers {
        let offered =
            |resource: &Value| wanted.iter().any(|wanted| resource["name"].as_str() == Some(*wanted));
        let mut export = exports[*name].clone();
        let resources = export["spec"]["resources"].as_array_mut().unwrap();
        resources.retain(|resource| offered(resource));
        let names: Vec<String> =
            resources.iter().map(|one| one["schema"].as_str().unwrap().to_owned()).collect();
        for schema in &schemas[*name] {
            if names.contains(&schema.name()) {
                put(&client, &schema.to_api_resource_schema()).await;
            }
        }
        put(&client, &export).await;
    }
    provider
}

/// Binds a mailbox to the exports.
async fn bind(client: &Client, provider: &str, offers: &[Offer]) {
    for (name, _) in offers {
        let binding = json!({
            "apiVersion": "apis.kcp.io/v1alpha2",
            "kind": "APIBinding",
            "metadata": { "name": name },
            "spec": { "reference": { "export": { "path": provider, "name": name } } },
        });
        put(client, &binding).await;
    }
    for (name, _) in offers {
        let binding = ("apis.kcp.io/v1alpha2", "APIBinding", "", *name);
        let bound =
            until(client, binding, "bound", BOUND_LIMIT, |binding| binding["status"]["phase"] == "Bound");
        bound.await.unwrap_or_else(|late| panic!("{late}"));
    }
}

/// Applies an object; what passes in a moment is waited for.
pub(crate) async fn put(client: &Client, object: &Value) -> Value {
    let wanted: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
    let what = format!("{} {} applied", object["kind"], object["metadata"]["name"]);
    let applied = wait_until(what, SOON, || apply_object(client, &wanted)).await;
    serde_json::to_value(applied.unwrap_or_else(|late| panic!("{late}"))).unwrap()
}

/// Changes an object as a user does, by a merge patch.
pub(crate) async fn patch(client: &Client, object: (&str, &str, &str, &str), change: Value) {
    let (version, kind, namespace, name) = object;
    let api = api(client, version, kind, namespace).await;
    api.patch(name, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
}

/// Creates an object, which must not be there.
pub(crate) async fn create(client: &Client, object: &Value) {
    let wanted: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let version = object["apiVersion"].as_str().unwrap();
    let api = api(client, version, object["kind"].as_str().unwrap(), namespace).await;
    api.create(&PostParams::default(), &wanted).await.unwrap();
}

/// Deletes an object.
pub(crate) async fn delete(client: &Client, object: (&str, &str, &str, &str)) {
    let (version, kind, namespace, name) = object;
    api(client, version, kind, namespace).await.delete(name, &DeleteParams::default()).await.unwrap();
}

/// An object as it is now, if it is there.
pub(crate) async fn get(
    client: &Client,
    version: &str,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Option<Value> {
    let found = api(client, version, kind, namespace).await.get_opt(name).await.unwrap();
    found.map(|found| serde_json::to_value(found).unwrap())
}

/// Waits until an object fits.
pub(crate) async fn until(
    client: &Client,
    (version, kind, namespace, name): (&str, &str, &str, &str),
    what: &str,
    limit: Duration,
    fits: impl Fn(&Value) -> bool,
) -> Result<Value, impl Display> {
    let described = format!("{kind} {namespace}/{name} {what}");
    let (group, short) = version.split_once('/').unwrap_or(("", version));
    let gvk = GroupVersionKind::gvk(group, short, kind);
    wait_until(described, limit, || async {
        let (resource, _) =
            kube::discovery::pinned_kind(client, &gvk).await.map_err(|error| error.to_string())?;
        let api: Api<DynamicObject> = match namespace {
            "" => Api::all_with(client.clone(), &resource),
            namespace => Api::namespaced_with(client.clone(), namespace, &resource),
        };
        match api.get_opt(name).await.map_err(|error| error.to_string())? {
            None => Err("not there".to_owned()),
            Some(object) => {
                let object = serde_json::to_value(object).unwrap();
                if fits(&object) { Ok(object) } else { Err(object.to_string()) }
            }
        }
    })
    .await
}

async fn api(client: &Client, version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let (resource, _) = served(client, &GroupVersionKind::gvk(group, version, kind)).await.unwrap();
    match namespace {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    }
}

/// A ConfigMap.
pub(crate) fn config_map(namespace: &str, name: &str, text: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": namespace },
            "data": { "text": text } })
}

/// A namespace.
pub(crate) fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

/// A SyncerConfig's spec that selects all ConfigMaps of a namespace.
pub(crate) fn all_config_maps_of(namespace: &str) -> Value {
    json!({ "namespaceScope": { "namespaces": [namespace],
            "resources": [{ "group": "", "resource": "configmaps", "apiVersion": "v1" }] } })
}
