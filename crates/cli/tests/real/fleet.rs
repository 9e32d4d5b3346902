//! A whole fleet: a provider workspace, an inventory with the edges florin and guilder, a center and two syncers. Center
//! and syncers are the programs themselves, each with the rights of its own and no more.
//!
//! Scenarios share one fleet, or a few where servers are hubs, and take turns in it. Each has workload workspaces of its own,
//! and leaves the edges as it found them.

mod bound;
mod center_restart;
mod customize;
mod example1;
mod kcp_inventory;
mod move_workload;
mod natured;
mod policy_report_view;
mod prepared;
mod singleton;
mod summary;
mod tenants;
mod two_owners;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, Weak};
use std::time::Duration;

use kube::Client;
use mailboat_api::condition::types;
use mailboat_api::names::{MailboxName, export};
use mailboat_center::init::init;
use mailboat_center::setup::Offer;
use mailboat_cluster::{Connection, Settings, Source};
use mailboat_registration::SyncerId;
use mailboat_testkit::{ADMIN, CENTER_USER, Center, Companion, EdgeSpec, World, is_on_hub, wait_until};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::harbor::{get, until};
use crate::manifest::Manifest;
use crate::program::{Said, kubectl, mailboat};

/// Within this, what was asked for at the center has come about at the edges, on a machine with other things to do.
pub(crate) const SOON: Duration = Duration::from_mins(2);
/// kcp takes some seconds for each kind that is new to it.
const BOUND: Duration = Duration::from_mins(6);
pub(crate) const EDGE: &str = "edge.kubestellar.io/v2alpha1";

/// The kinds that workspaces have here; not all of ours, since each takes kcp some seconds.
const COMPUTE: [&str; 3] = ["apiservices", "deployments", "replicasets"];
const DENATURED: [&str; 4] = ["apiservices", "clusterroles", "customresourcedefinitions", "resourcequotas"];

/// The edges, and the labels that they are described by.
const EDGES: [(&str, &[&str]); 2] = [
    ("florin", &["loc-name=florin", "env=prod"]),
    ("guilder", &["loc-name=guilder", "env=prod", "extended=yes"]),
];

/// The edge whose syncer the center installs by itself; the other's is registered by hand.
const INSTALLED: &str = "guilder";
/// Nobody runs it here: syncers are started by the tests, as the programs that they are.
const IMAGE: &str = "example.org/mailboat-syncer:test";

/// Version, kind, namespace and name.
pub(crate) type Named<'n> = (&'n str, &'n str, &'n str, &'n str);

/// The fleet, for as long as somebody is aboard.
pub(crate) struct Fleet {
    pub(crate) center: &'static Center,
    /// The path of the provider workspace.
    pub(crate) provider: String,
    /// The path of the inventory workspace.
    pub(crate) inventory: String,
    /// The paths of the mailboxes, by edge.
    pub(crate) mailboxes: BTreeMap<&'static str, String>,
    /// The workspace that holds all of it.
    above: String,
    pub(crate) edges: World,
    folder: TempDir,
    running: std::sync::Mutex<Running>,
}

#[derive(Default)]
struct Running {
    center: Option<Companion>,
    standby: Option<Companion>,
    syncers: BTreeMap<&'static str, Companion>,
}

/// Somebody's turn in the fleet.
pub(crate) struct Aboard {
    _turn: OwnedMutexGuard<()>,
    fleet: Arc<Fleet>,
}

impl std::ops::Deref for Aboard {
    type Target = Fleet;

    fn deref(&self) -> &Fleet {
        &self.fleet
    }
}

impl Drop for Aboard {
    /// What the programs said belongs to what a failing test prints.
    fn drop(&mut self) {
        if std::thread::panicking() {
            for name in ["center", "standby", "florin", "guilder"] {
                eprintln!("what {name} said:\n{}", self.fleet.log(name));
            }
        }
    }
}

/// A place for one fleet, and whose turn it is there.
#[derive(Default)]
struct Berth {
    fleet: Mutex<Weak<Fleet>>,
    turn: Arc<Mutex<()>>,
}

/// So many fleets sail at once where they are made of hubs; of real servers there is one, which takes minutes to make.
const FLEETS_ON_HUBS: usize = 4;

impl Fleet {
    /// Waits for a turn in a fleet, which is made if nobody has it.
    pub(crate) async fn board() -> Aboard {
        static BERTHS: LazyLock<[Berth; FLEETS_ON_HUBS]> = LazyLock::new(Default::default);
        static BOARDED: AtomicUsize = AtomicUsize::new(0);
        let fleets = if is_on_hub() { FLEETS_ON_HUBS } else { 1 };
        let berth = &BERTHS[BOARDED.fetch_add(1, Ordering::Relaxed) % fleets];
        let mut shared = berth.fleet.lock().await;
        let fleet = match shared.upgrade() {
            Some(fleet) => fleet,
            None => Arc::new(Self::make().await),
        };
        *shared = Arc::downgrade(&fleet);
        drop(shared);
        let turn = Arc::clone(&berth.turn).lock_owned().await;
        Aboard { _turn: turn, fleet }
    }

    async fn make() -> Self {
        let center = World::shared().await.unwrap().center();
        let edges =
            EDGES.iter().fold(World::builder(), |world, (name, _)| world.edge_with(EdgeSpec::new(*name)));
        let edges = edges.start().await.unwrap();
        let above = center.workspace("fleet").await.unwrap().path;
        center.make_administrator(CENTER_USER, &above).await.unwrap();
        let mut fleet = Self {
            center,
            provider: format!("{above}:espw"),
            inventory: center.workspace_in(&above, "imw").await.unwrap().path,
            mailboxes: BTreeMap::new(),
            above,
            edges,
            folder: tempfile::tempdir().unwrap(),
            running: std::sync::Mutex::default(),
        };
        let connection = Connection::open(fleet.as_center(), Settings::default()).await.unwrap();
        init(&connection, &fleet.provider, &offer(), |_, _| {}).await.unwrap();
        fleet.start_center();
        for (name, labels) in EDGES {
            let mut words = vec!["ensure", "location", name];
            words.extend(labels);
            words.extend(["--imw", &fleet.inventory, "--espw", &fleet.provider]);
            let kubeconfig = fleet.edges.edge(name).kubeconfig(ADMIN).unwrap();
            if name == INSTALLED {
                words.extend(["--edge-kubeconfig", text(&kubeconfig)]);
            }
            mailboat(&fleet.admin("root"), &words).await.well();
        }
        for (name, _) in EDGES {
            let mailbox = fleet.mailbox_of(name).await;
            fleet.mailboxes.insert(name, mailbox);
            if name == INSTALLED {
                fleet.await_installation(name).await;
            } else {
                fleet.register(name).await;
            }
            fleet.start_syncer(name);
        }
        fleet
    }

    /// The center's own user, an ordinary one.
    fn as_center(&self) -> Source {
        Source::Kubeconfig { path: Some(self.center_file()), context: None }
    }

    fn center_file(&self) -> PathBuf {
        self.center.kubeconfig(CENTER_USER, "root").unwrap()
    }

    /// An administrator's kubeconfig for a workspace.
    pub(crate) fn admin(&self, workspace: &str) -> PathBuf {
        self.center.kubeconfig(ADMIN, workspace).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What the center or a syncer has said so far.
    pub(crate) fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(&format!("{name}.log"))).unwrap_or_default()
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a center.
    pub(crate) fn start_center(&self) {
        self.running().center = Some(self.launch_center("center", &[]));
    }

    /// Starts one more, which waits while another writes.
    pub(crate) fn start_standby(&self) {
        self.running().standby = Some(self.launch_center("standby", &[]));
    }

    /// Starts a center that does these parts alone.
    pub(crate) fn start_parts(&self, parts: &str) {
        self.running().center = Some(self.launch_center("center", &["--parts", parts]));
    }

    /// Starts another one that does others.
    pub(crate) fn start_other_parts(&self, parts: &str) {
        self.running().standby = Some(self.launch_center("standby", &["--parts", parts]));
    }

    /// Kills the center (SIGKILL).
    pub(crate) fn kill_center(&self) {
        self.running().center.take().expect("a center runs").kill().unwrap();
    }

    /// Kills the other one.
    pub(crate) fn kill_standby(&self) {
        self.running().standby.take().expect("another one runs").kill().unwrap();
    }

    fn launch_center(&self, name: &str, more: &[&str]) -> Companion {
        let kubeconfig = self.center_file();
        let words = ["center", "--kubeconfig", text(&kubeconfig), "--provider-workspace", &self.provider];
        let words = words.into_iter().chain(["--listen", "127.0.0.1:0", "--syncer-image", IMAGE]);
        let words: Vec<&str> = words.chain(more.iter().copied()).collect();
        let program = Path::new(env!("CARGO_BIN_EXE_mailboat"));
        Companion::start(program, &words, &self.file(&format!("{name}.log"))).unwrap()
    }

    /// The mailbox that the center makes for an edge, once it can be used.
    async fn mailbox_of(&self, edge: &str) -> String {
        let inventory = self.client(&self.inventory).await;
        let target = get(&inventory, EDGE, "SyncTarget", "", edge).await.unwrap();
        let name = MailboxName {
            cluster: target["metadata"]["annotations"]["kcp.io/cluster"].as_str().unwrap().to_owned(),
            sync_target_uid: target["metadata"]["uid"].as_str().unwrap().to_owned(),
        };
        let provider = self.client(&self.provider).await;
        let workspace = ("tenancy.kcp.io/v1alpha1", "Workspace", "", name.to_string());
        let workspace = (workspace.0, workspace.1, workspace.2, workspace.3.as_str());
        let ready = |found: &Value| found["status"]["phase"] == "Ready";
        until(&provider, workspace, "ready", BOUND, ready).await.unwrap_or_else(|late| panic!("{late}"));
        let path = format!("{}:{name}", self.provider);
        let the_one = (EDGE, "SyncerConfig", "", "the-one");
        let mailbox = self.client(&path).await;
        until(&mailbox, the_one, "there", BOUND, |_| true).await.unwrap_or_else(|late| panic!("{late}"));
        path
    }

    /// Registers an edge's syncer, as its operator does.
    async fn register(&self, edge: &str) {
        self.register_in(&self.inventory, edge).await;
    }

    async fn register_in(&self, inventory: &str, edge: &str) {
        let file = self.file(&format!("{edge}.yaml"));
        let words = ["prep-for-syncer", edge, "--imw", inventory, "--espw", &self.provider];
        let more = ["--syncer-image", IMAGE, "-o", text(&file)];
        let words: Vec<&str> = words.into_iter().chain(more).collect();
        mailboat(&self.admin("root"), &words).await.well();
    }

    /// Waits until the center has installed an edge's syncer, and takes the Secret that it made there.
    async fn await_installation(&self, edge: &str) {
        let inventory = self.inventory().await;
        let installed = |found: &Value| {
            let conditions = found["status"]["conditions"].as_array();
            conditions.into_iter().flatten().any(|condition| {
                condition["type"] == types::SYNCER_INSTALLED && condition["status"] == "True"
            })
        };
        let target = inventory.until((EDGE, "SyncTarget", "", edge), "installed", installed).await;
        let syncer = SyncerId::new(edge, target["metadata"]["uid"].as_str().unwrap());
        let (cluster, id) = (self.edge(edge).await, syncer.as_str());
        assert!(cluster.get(("apps/v1", "Deployment", id, id)).await.is_some(), "it would run");
        let secret = cluster.get(("v1", "Secret", id, id)).await.unwrap();
        std::fs::write(self.file(&format!("{edge}.yaml")), secret.to_string()).unwrap();
    }

    /// The kubeconfig of an edge's syncer: with the token that its registration gave it.
    pub(crate) fn syncer_file(&self, edge: &str) -> PathBuf {
        Manifest::read(&self.file(&format!("{edge}.yaml"))).kubeconfig(&self.file(edge))
    }

    /// Starts an edge's syncer.
    pub(crate) fn start_syncer(&self, edge: &'static str) {
        let name: MailboxName = self.mailboxes[edge].rsplit(':').next().unwrap().parse().unwrap();
        let syncer = self.launch_syncer(edge, edge, &name.sync_target_uid);
        self.running().syncers.insert(edge, syncer);
    }

    /// Ends an edge's syncer; the edge is silent from then on.
    pub(crate) fn stop_syncer(&self, edge: &'static str) {
        self.running().syncers.remove(edge).expect("a syncer runs").kill().unwrap();
    }

    /// Starts the syncer that was registered for a SyncTarget, at one of the clusters.
    fn launch_syncer(&self, target: &str, cluster: &str, uid: &str) -> Companion {
        let (from, to) = (self.syncer_file(target), self.edges.edge(cluster).kubeconfig(ADMIN).unwrap());
        let words = [
            ["--from-kubeconfig", text(&from)],
            ["--to-kubeconfig", text(&to)],
            ["--sync-target-name", target],
            ["--sync-target-uid", uid],
            ["--namespace", "default"],
            ["--heartbeat-period", "5s"],
            ["--listen", "127.0.0.1:0"],
        ];
        let program = Path::new(env!("CARGO_BIN_EXE_mailboat-syncer"));
        Companion::start(program, words.as_flattened(), &self.file(&format!("{target}.log"))).unwrap()
    }

    /// A client for a workspace, as an administrator, made in the current runtime.
    pub(crate) async fn client(&self, workspace: &str) -> Client {
        self.center.client(ADMIN, workspace).await.unwrap()
    }

    /// The inventory.
    pub(crate) async fn inventory(&self) -> Place {
        self.at(&self.inventory).await
    }

    /// An edge's mailbox.
    pub(crate) async fn mailbox(&self, edge: &str) -> Place {
        self.at(&self.mailboxes[edge]).await
    }

    /// An edge.
    pub(crate) async fn edge(&self, name: &str) -> Place {
        let edge = self.edges.edge(name);
        let (client, file) = (edge.client(ADMIN).await.unwrap(), edge.kubeconfig(ADMIN).unwrap());
        Place { path: name.to_owned(), client, file }
    }

    /// A workload workspace, made by the command.
    pub(crate) async fn workload(&self, name: &str) -> Place {
        let path = format!("{}:{name}", self.above);
        mailboat(&self.admin("root"), &["ensure", "wmw", &path, "--espw", &self.provider]).await.well();
        self.at(&path).await
    }

    /// A workspace by its path.
    async fn at(&self, path: &str) -> Place {
        Place { path: path.to_owned(), client: self.client(path).await, file: self.admin(path) }
    }
}

/// One workspace or cluster, as an administrator.
pub(crate) struct Place {
    /// Its path, or the edge's name.
    pub(crate) path: String,
    pub(crate) client: Client,
    file: PathBuf,
}

impl Place {
    /// Runs kubectl there.
    pub(crate) async fn kubectl(&self, words: &[&str]) -> Said {
        kubectl(&self.file, words).await
    }

    /// Applies a file of docs/scenarios, as the page says.
    pub(crate) async fn apply(&self, file: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios").join(file);
        self.kubectl(&["apply", "-f", text(&path)]).await.well();
    }

    /// Waits until an object fits.
    pub(crate) async fn until(&self, object: Named<'_>, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let waited = until(&self.client, object, what, SOON, fits).await;
        waited.unwrap_or_else(|late| panic!("{late}, in {}", self.path))
    }

    /// Waits until an object is gone.
    pub(crate) async fn until_gone(&self, object: Named<'_>) {
        let waited = wait_until(format!("{} {}/{} gone", object.1, object.2, object.3), SOON, || async {
            match self.get(object).await {
                None => Ok(()),
                Some(found) => Err(found.to_string()),
            }
        });
        waited.await.unwrap_or_else(|late| panic!("{late}, in {}", self.path));
    }

    /// An object as it is now, if it is there.
    pub(crate) async fn get(&self, (version, kind, namespace, name): Named<'_>) -> Option<Value> {
        get(&self.client, version, kind, namespace, name).await
    }
}

/// What the provider offers here.
fn offer() -> Offer {
    Offer::all()
        .unwrap()
        .narrowed(&[export::COMPUTE], &BTreeSet::from(COMPUTE))
        .narrowed(&[export::DENATURED], &BTreeSet::from(DENATURED))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in plain letters")
}
