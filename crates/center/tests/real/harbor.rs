//! A provider workspace, an inventory, a workload workspace and a center over them, and what tests want to know.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::time::Duration;

use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use mailboat_api::names::export;
use mailboat_center::assemble::{Installing, Settings};
use mailboat_center::init::{Done, init};
use mailboat_center::setup::Offer;
use mailboat_cluster::{Connection, Source};
use mailboat_testkit::{ADMIN, CENTER_USER, Center, Workspace, World, apply_object, wait_until};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Within this the center has done what it is asked to, on a machine with other things to do.
pub(crate) const SOON: Duration = Duration::from_mins(2);
/// kcp takes some seconds for each kind that is new to it.
pub(crate) const BOUND: Duration = Duration::from_mins(6);
/// Nobody runs it here.
pub(crate) const SYNCER_IMAGE: &str = "example.org/mailboat-syncer:test";
const EDGE: &str = "edge.kubestellar.io/v2alpha1";

/// The kinds that mailboxes have here; not all of ours, since each takes kcp some seconds.
const COMPUTE: [&str; 2] = ["deployments", "services"];
const DENATURED: [&str; 2] = ["clusterroles", "customresourcedefinitions"];

/// A whole center side.
pub(crate) struct Harbor {
    pub(crate) center: &'static Center,
    /// The path of the provider workspace.
    pub(crate) provider: String,
    running: Option<Running>,
}

struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Harbor {
    /// A fresh provider workspace, set up by the center's own user.
    pub(crate) async fn new(name: &str) -> Self {
        logs();
        let center = World::shared().await.unwrap().center();
        let above = center.workspace(name).await.unwrap();
        center.make_administrator(CENTER_USER, &above.path).await.unwrap();
        let harbor = Self { center, provider: format!("{}:espw", above.path), running: None };
        harbor.init().await;
        harbor
    }

    /// Sets the provider workspace up, and says how many objects were made, changed and kept.
    pub(crate) async fn init(&self) -> [usize; 3] {
        let mut done = [0; 3];
        init(&self.connection().await, &self.provider, &offer(), |_, what| match what {
            Done::Made => done[0] += 1,
            Done::Changed => done[1] += 1,
            Done::Kept => done[2] += 1,
        })
        .await
        .unwrap();
        done
    }

    /// The center's own connection.
    pub(crate) async fn connection(&self) -> Connection {
        Connection::open(self.source(), mailboat_cluster::Settings::default()).await.unwrap()
    }

    fn source(&self) -> Source {
        let path = self.center.kubeconfig(CENTER_USER, "root").unwrap();
        Source::Kubeconfig { path: Some(path), context: None }
    }

    /// Starts a center.
    pub(crate) fn sail(&mut self) {
        let mut settings = Settings::new(self.source(), &self.provider);
        settings.installs = Some(Installing { image: SYNCER_IMAGE.to_owned(), server: None });
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            mailboat_center::assemble::run(settings, stopped).await.unwrap();
        });
        self.running = Some(Running { stop, task });
    }

    /// Ends the center as a crash does.
    pub(crate) async fn sink(&mut self) {
        let running = self.running.take().expect("a center runs");
        running.task.abort();
        let _ = running.task.await;
    }

    /// Ends the center as it is meant to end.
    #[allow(dead_code, reason = "not every scenario ends it")]
    pub(crate) async fn moor(&mut self) {
        let running = self.running.take().expect("a center runs");
        let _ = running.stop.send(());
        running.task.await.expect("the center ended well");
    }

    /// A fresh workspace that is bound to some of the provider's exports, and that the center may use.
    pub(crate) async fn workspace(&self, name: &str, exports: &[&str]) -> Place {
        let workspace = self.center.workspace(name).await.unwrap();
        self.center.make_administrator(CENTER_USER, &workspace.path).await.unwrap();
        let client = self.center.client(ADMIN, &workspace.path).await.unwrap();
        let place = Place { client, workspace };
        for export in exports {
            place
                .put(&json!({
                    "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": { "name": export },
                    "spec": { "reference": { "export": { "path": self.provider, "name": export } } },
                }))
                .await;
        }
        for export in exports {
            let binding = ("apis.kcp.io/v1alpha2", "APIBinding", "", *export);
            place
                .until_within(BOUND, binding, "bound", |binding| binding["status"]["phase"] == "Bound")
                .await;
        }
        place
    }

    /// A workspace for SyncTargets and Locations.
    pub(crate) async fn inventory(&self) -> Place {
        self.workspace("imw", &[export::EDGE]).await
    }

    /// The provider workspace.
    pub(crate) async fn provider(&self) -> Place {
        self.at(&self.provider).await
    }

    /// A workspace by its path.
    pub(crate) async fn at(&self, path: &str) -> Place {
        // The center's user made it, and is its administrator.
        let client = self.center.client(CENTER_USER, path).await.unwrap();
        let workspace = Workspace { path: path.to_owned(), name: String::new(), cluster: String::new() };
        Place { client, workspace }
    }

    /// Waits for the mailbox of a SyncTarget to be ready and furnished.
    pub(crate) async fn mailbox(&self, target: &Value) -> Place {
        let cluster = target["metadata"]["annotations"]["kcp.io/cluster"].as_str().unwrap();
        let name = format!("{cluster}-mb-{}", target["metadata"]["uid"].as_str().unwrap());
        let workspace = ("tenancy.kcp.io/v1alpha1", "Workspace", "", name.as_str());
        let provider = self.provider().await;
        let found = provider.until(workspace, "ready", |found| found["status"]["phase"] == "Ready").await;
        let mut mailbox = self.at(&format!("{}:{name}", self.provider)).await;
        mailbox.workspace.name = name;
        mailbox.workspace.cluster = found["spec"]["cluster"].as_str().unwrap().to_owned();
        let the_one = (EDGE, "SyncerConfig", "", "the-one");
        mailbox.until_within(BOUND, the_one, "there", |_| true).await;
        mailbox
    }
}

impl Drop for Harbor {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.task.abort();
        }
    }
}

/// What the provider offers here.
pub(crate) fn offer() -> Offer {
    let edge = [
        "customizers",
        "edgeplacements",
        "edgesyncconfigs",
        "locations",
        "singleplacementslices",
        "statussummaries",
        "summarizers",
        "syncerconfigs",
        "synctargets",
    ];
    Offer::all()
        .unwrap()
        .narrowed(&[export::COMPUTE], &BTreeSet::from(COMPUTE))
        .narrowed(&[export::DENATURED], &BTreeSet::from(DENATURED))
        .narrowed(&[export::EDGE], &BTreeSet::from(edge))
}

/// One workspace, as some user.
pub(crate) struct Place {
    pub(crate) client: Client,
    pub(crate) workspace: Workspace,
}

impl Place {
    /// Applies an object; what passes in a moment is waited for.
    pub(crate) async fn put(&self, object: &Value) -> Value {
        let wanted: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
        let what = format!("{} {} applied", object["kind"], object["metadata"]["name"]);
        let applied = wait_until(what, BOUND, || apply_object(&self.client, &wanted)).await;
        serde_json::to_value(applied.unwrap_or_else(|late| panic!("{late}"))).unwrap()
    }

    /// A SyncTarget and a Location of the same name that leads to it.
    pub(crate) async fn edge(&self, name: &str, labels: Value) -> Value {
        let target = json!({ "apiVersion": EDGE, "kind": "SyncTarget",
            "metadata": { "name": name, "labels": { "id": name } }, "spec": {} });
        let target = self.put(&target).await;
        self.put(&json!({ "apiVersion": EDGE, "kind": "Location", "metadata": { "name": name, "labels": labels },
            "spec": { "resource": { "group": "edge.kubestellar.io", "version": "v2alpha1", "resource": "synctargets" },
                      "instanceSelector": { "matchLabels": { "id": name } } } }))
            .await;
        target
    }

    /// Changes an object as a user does, by a merge patch.
    pub(crate) async fn patch(&self, object: Named<'_>, change: Value) {
        let api = self.api(object);
        api.patch(object.3, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    }

    /// Writes an object's status, as whoever looks after it does.
    pub(crate) async fn report(&self, object: Named<'_>, status: Value) {
        let change = Patch::Merge(json!({ "status": status }));
        self.api(object).patch_status(object.3, &PatchParams::default(), &change).await.unwrap();
    }

    /// Deletes an object.
    pub(crate) async fn delete(&self, object: Named<'_>) {
        self.api(object).delete(object.3, &DeleteParams::default()).await.unwrap();
    }

    /// An object as it is now; `None` if it is not there.
    pub(crate) async fn get(&self, object: Named<'_>) -> Option<Value> {
        let found = self.api(object).get_opt(object.3).await.unwrap();
        found.map(|found| serde_json::to_value(found).unwrap())
    }

    /// All objects of a kind.
    pub(crate) async fn list(&self, version: &str, kind: &str, namespace: &str) -> Vec<Value> {
        let listed = self.api((version, kind, namespace, "")).list(&ListParams::default()).await.unwrap();
        listed.items.into_iter().map(|item| serde_json::to_value(item).unwrap()).collect()
    }

    /// Waits until an object fits.
    pub(crate) async fn until(&self, object: Named<'_>, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        self.until_within(SOON, object, what, fits).await
    }

    /// Waits until an object fits, for so long.
    pub(crate) async fn until_within(
        &self,
        limit: Duration,
        object: Named<'_>,
        what: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> Value {
        let described = format!("{} {}/{} {what} in {}", object.1, object.2, object.3, self.workspace.path);
        let waited = wait_until(described, limit, || async {
            match self.api(object).get_opt(object.3).await.map_err(|error| error.to_string())? {
                None => Err("not there".to_owned()),
                Some(found) => {
                    let found = serde_json::to_value(found).unwrap();
                    if fits(&found) { Ok(found) } else { Err(found.to_string()) }
                }
            }
        });
        waited.await.unwrap_or_else(|late| late_by(&late))
    }

    /// Waits until one of all objects of a kind fits, whatever its name is.
    pub(crate) async fn until_one(&self, of: Named<'_>, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let described = format!("one {} {what} in {}", of.1, self.workspace.path);
        let waited = wait_until(described, SOON, || async {
            let mut all = self.list(of.0, of.1, of.2).await;
            let found = all.iter().position(&fits);
            found.map(|at| all.swap_remove(at)).ok_or_else(|| serde_json::to_string(&all).unwrap())
        });
        waited.await.unwrap_or_else(|late| late_by(&late))
    }

    /// Waits until an object is gone.
    pub(crate) async fn until_gone(&self, object: Named<'_>) {
        let described = format!("{} {}/{} gone from {}", object.1, object.2, object.3, self.workspace.path);
        let waited = wait_until(described, SOON, || async {
            match self.api(object).get_opt(object.3).await {
                Ok(None) => Ok(()),
                Ok(Some(found)) => Err(serde_json::to_string(&found).unwrap()),
                // Its kind or workspace is gone with it.
                Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => Ok(()),
                Err(error) => Err(error.to_string()),
            }
        });
        waited.await.unwrap_or_else(|late| late_by(&late));
    }

    fn api(&self, (version, kind, namespace, _): Named<'_>) -> Api<DynamicObject> {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let plural = match kind {
            "StatusSummary" => "statussummaries".to_owned(),
            kind => format!("{}s", kind.to_lowercase()),
        };
        let resource = ApiResource::from_gvk_with_plural(&gvk, &plural);
        match namespace {
            "" => Api::all_with(self.client.clone(), &resource),
            namespace => Api::namespaced_with(self.client.clone(), namespace, &resource),
        }
    }
}

/// Version, kind, namespace and name.
pub(crate) type Named<'n> = (&'n str, &'n str, &'n str, &'n str);

fn late_by<T>(late: &dyn Display) -> T {
    panic!("{late}")
}

/// What the center says goes to the test's output, where `RUST_LOG` asks for it.
fn logs() {
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init();
}
