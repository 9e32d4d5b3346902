//! Plays the kubelet: runs the containers of Pods as real processes of this machine, so that our own Deployments,
//! with their RBAC, are tested as they are written.
//!
//! KWOK says that pods are ready and runs nothing. This player registers a node of its own, has the Pods that it was
//! given programs for put there as they are created, and does for them what a kubelet does: volumes, tokens,
//! environment, command, user, probes, restarts, status, and an orderly end. All other Pods are left to KWOK. What is
//! missing is images (programs of this machine stand for them) and a network (every pod shares the machine's, so two
//! pods cannot listen on one port). What it does not know how to play, it refuses with a reason in the container's
//! status, rather than pass over it.
//!
//! Read `pod` next (the life of one Pod), then `container`, `sandbox` and `run` (how a process gets what the manifest
//! promises); `environment`, `volumes`, `probe`, `image` and `status` each turn a part of the manifest into values;
//! `node` and `admission` are how the cluster comes to give it Pods.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use kube::{Api, Client, ResourceExt as _};
use rustix::process::Signal;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::edge::Edge;
use crate::error::{Doing, Error, Result};
use crate::follow::{Followed, Key, Snapshot};
use crate::place::ADMIN;
use crate::process::ProcessIdentity;
use crate::proxy::target_of;

mod admission;
mod container;
mod environment;
mod image;
mod node;
mod pod;
mod probe;
mod run;
mod sandbox;
mod status;
mod volumes;

use admission::Admission;
use environment::Known;
pub use image::Image;
use image::Images;
use status::Board;

/// The node that a [`Kubelet`] registers, and the name of the policy that puts Pods there.
pub const NODE: &str = "mailboat-kubelet";

/// A kubelet for one edge. Dropping it kills every process that it runs.
///
/// It needs root, for mounts. Pods come to it by their first container, whose image or command it was told of; the
/// manifest need not name the node, and Pods of other images or commands stay with KWOK's nodes, if the edge has any.
/// Pods of DaemonSets, whose controller chooses their nodes, and Pods that name a node are left as they are.
pub struct Kubelet {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
    /// Only for its end, with the kubelet's own.
    _admission: Option<Admission>,
}

/// What a [`Kubelet`] is started with.
pub struct KubeletBuilder<'a> {
    edge: &'a Edge,
    images: Images,
    pauses: Pauses,
}

impl Kubelet {
    /// A kubelet for `edge`, not started yet.
    pub fn builder(edge: &Edge) -> KubeletBuilder<'_> {
        KubeletBuilder { edge, images: Images::default(), pauses: Pauses::default() }
    }

    /// Everything that a container has printed, over its restarts.
    pub fn log(&self, namespace: &str, pod: &str, container: &str) -> Result<String> {
        let folder = self.pod_folder(namespace, pod)?.join("containers").join(container);
        let mut files: Vec<PathBuf> = fs::read_dir(&folder)
            .doing("listing", &folder)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
            .collect();
        files.sort();
        let mut log = String::new();
        for file in files {
            log.push_str(&String::from_utf8_lossy(&fs::read(&file).doing("reading", &file)?));
        }
        Ok(log)
    }

    /// The folder that is a volume of a Pod, as its containers see it.
    pub fn volume(&self, namespace: &str, pod: &str, volume: &str) -> Result<PathBuf> {
        Ok(self.pod_folder(namespace, pod)?.join("volumes").join(volume))
    }

    /// The program of a container, while it runs.
    pub fn process(&self, namespace: &str, pod: &str, container: &str) -> Result<ProcessIdentity> {
        let pods = self.shared.pods();
        let played = pods.get(&(namespace.to_owned(), pod.to_owned()));
        let process = played.and_then(|played| played.board.borrow().get(container)?.process.clone());
        process.filter(ProcessIdentity::is_alive).ok_or_else(|| not_running(namespace, pod))
    }

    /// Kills a container's program (SIGKILL), as the kernel does when memory runs out.
    pub fn kill(&self, namespace: &str, pod: &str, container: &str) -> Result<()> {
        self.process(namespace, pod, container)?.signal(Signal::KILL).map(drop)
    }

    /// Stops a container's program from running (SIGSTOP), until [`Kubelet::resume`].
    pub fn pause(&self, namespace: &str, pod: &str, container: &str) -> Result<()> {
        self.process(namespace, pod, container)?.signal(Signal::STOP).map(drop)
    }

    /// Lets a paused program run on (SIGCONT).
    pub fn resume(&self, namespace: &str, pod: &str, container: &str) -> Result<()> {
        self.process(namespace, pod, container)?.signal(Signal::CONT).map(drop)
    }

    /// Replaces every mounted token by a new one soon, long before the old one ends.
    pub fn rotate_tokens(&self) {
        self.shared.rotation.send_modify(|rotation| *rotation += 1);
    }

    fn pod_folder(&self, namespace: &str, pod: &str) -> Result<PathBuf> {
        let pods = self.shared.pods();
        let played = pods.get(&(namespace.to_owned(), pod.to_owned()));
        played.map(|played| played.folder.clone()).ok_or_else(|| not_running(namespace, pod))
    }
}

impl KubeletBuilder<'_> {
    /// A program that stands in for any image: the path by which a container's command calls it, and the file of
    /// this machine that it is.
    #[must_use]
    pub fn program(mut self, path_in_image: impl Into<String>, file: impl Into<PathBuf>) -> Self {
        self.images.any = self.images.any.program(path_in_image, file);
        self
    }

    /// What stands for an image, named by its repository, whatever its tag or digest.
    #[must_use]
    pub fn image(mut self, repository: impl Into<String>, image: Image) -> Self {
        self.images.named.insert(repository.into(), image);
        self
    }

    /// How long a container that keeps ending is kept from its restart: `first` at its second restart (the first
    /// one is immediate), then doubling up to `longest`. A second and half a minute unless said otherwise, which is
    /// a tenth of what kubelets do.
    #[must_use]
    pub fn restart_pauses(mut self, first: Duration, longest: Duration) -> Self {
        self.pauses = Pauses { first, longest };
        self
    }

    /// Registers the node and begins to run what is put there: from when this returns, every new Pod that it was given
    /// programs for.
    pub async fn start(self) -> Result<Kubelet> {
        if !rustix::process::getuid().is_root() {
            let why = "a kubelet mounts volumes into namespaces of their own: run this test as root";
            return Err(Error::Bed(why.to_owned()));
        }
        let folder = self.edge.place().folder().join("kubelet");
        fs::create_dir_all(&folder).doing("creating", &folder)?;
        let client = self.edge.client(ADMIN).await?;
        let followed = FollowedKinds::start(&client).await?;
        let on_our_node = format!("spec.nodeName={NODE}");
        let pods = Followed::start(Api::all(client.clone()), Some(&on_our_node)).await?;
        node::register(&client, NODE, &self.images).await?;
        // A hub asks no policies: the node itself says which Pods it runs.
        let admission = match crate::hub::program() {
            Some(_) => None,
            None => Some(Admission::start(&client, NODE, &self.images).await?),
        };
        let (changes_sender, changes) = watch::channel(0);
        let shared = Arc::new(Shared {
            client: client.clone(),
            api_server: target_of(self.edge.url())?,
            secrets: followed.secrets.snapshots(),
            config_maps: followed.config_maps.snapshots(),
            services: followed.services.snapshots(),
            rotation: watch::Sender::new(0),
            changes,
            images: self.images,
            pauses: self.pauses,
            keepers: Keepers::default(),
            pods: Mutex::default(),
        });
        let rotation = shared.rotation.subscribe();
        let tasks = vec![
            tokio::spawn(announce_changes(followed, rotation, changes_sender)),
            tokio::spawn(steer(Arc::clone(&shared), pods, folder)),
            tokio::spawn(node::keep_alive(client.clone(), NODE.to_owned())),
        ];
        Ok(Kubelet { shared, tasks, _admission: admission })
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        // The tasks would do it as well, but only when the runtime gets to them, and the test is over now.
        self.shared.keepers.kill_all();
    }
}

/// Why a container does not run, in the API's words and in ours.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Blocked {
    reason: &'static str,
    message: String,
}

impl Blocked {
    /// What the manifest says cannot be done (now).
    fn config(message: impl Into<String>) -> Self {
        Self { reason: "CreateContainerConfigError", message: message.into() }
    }

    /// What it needs is not there yet.
    fn creating(message: impl Into<String>) -> Self {
        Self { reason: "ContainerCreating", message: message.into() }
    }
}

/// How long restarts are put off.
#[derive(Debug, Clone, Copy)]
struct Pauses {
    first: Duration,
    longest: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), longest: Duration::from_secs(30) }
    }
}

impl Pauses {
    /// The pause before the `count`-th delayed restart, from 1.
    fn after(self, count: u32) -> Duration {
        let doubled =
            2_u32.checked_pow(count.saturating_sub(1)).and_then(|factor| self.first.checked_mul(factor));
        doubled.unwrap_or(self.longest).min(self.longest)
    }
}

/// What all Pods of one kubelet have in common.
struct Shared {
    client: Client,
    api_server: SocketAddr,
    secrets: watch::Receiver<Snapshot<Secret>>,
    config_maps: watch::Receiver<Snapshot<ConfigMap>>,
    services: watch::Receiver<Snapshot<Service>>,
    rotation: watch::Sender<u64>,
    changes: watch::Receiver<u64>,
    images: Images,
    pauses: Pauses,
    keepers: Keepers,
    pods: Mutex<BTreeMap<Key, Played>>,
}

#[derive(Debug)]
struct Played {
    folder: PathBuf,
    board: Arc<watch::Sender<Board>>,
}

impl Shared {
    fn known(&self) -> Known {
        Known {
            secrets: self.secrets.borrow().clone(),
            config_maps: self.config_maps.borrow().clone(),
            services: self.services.borrow().clone(),
            api_server: self.api_server,
        }
    }

    /// Changes whenever [`Shared::known`] or [`Shared::rotation`] may have.
    fn changes(&self) -> watch::Receiver<u64> {
        let mut changes = self.changes.clone();
        changes.mark_unchanged();
        changes
    }

    fn rotation(&self) -> u64 {
        *self.rotation.borrow()
    }

    fn pods(&self) -> MutexGuard<'_, BTreeMap<Key, Played>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The processes that hold containers, for the moment when all must end at once.
#[derive(Debug, Default)]
struct Keepers(Mutex<Vec<ProcessIdentity>>);

impl Keepers {
    fn add(&self, keeper: ProcessIdentity) {
        self.list().push(keeper);
    }

    fn remove(&self, keeper: &ProcessIdentity) {
        self.list().retain(|other| other != keeper);
    }

    fn kill_all(&self) {
        for keeper in self.list().drain(..) {
            // It may have ended by itself, which is what is wanted.
            let _ = keeper.signal(Signal::KILL);
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<ProcessIdentity>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct FollowedKinds {
    secrets: Followed<Secret>,
    config_maps: Followed<ConfigMap>,
    services: Followed<Service>,
}

impl FollowedKinds {
    async fn start(client: &Client) -> Result<Self> {
        let (secrets, config_maps, services) = tokio::try_join!(
            Followed::start(Api::all(client.clone()), None),
            Followed::start(Api::all(client.clone()), None),
            Followed::start(Api::all(client.clone()), None),
        )?;
        Ok(Self { secrets, config_maps, services })
    }
}

async fn announce_changes(
    followed: FollowedKinds,
    mut rotation: watch::Receiver<u64>,
    changes: watch::Sender<u64>,
) {
    let mut secrets = followed.secrets.snapshots();
    let mut config_maps = followed.config_maps.snapshots();
    let mut services = followed.services.snapshots();
    loop {
        let changed = tokio::select! {
            changed = secrets.changed() => changed,
            changed = config_maps.changed() => changed,
            changed = services.changed() => changed,
            changed = rotation.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
        changes.send_modify(|number| *number += 1);
    }
}

/// Gives every Pod on the node a task of its own, and tells it what becomes of the Pod.
async fn steer(shared: Arc<Shared>, pods: Followed<Pod>, folder: PathBuf) {
    let mut snapshots = pods.snapshots();
    let mut tasks = JoinSet::new();
    let mut told: BTreeMap<String, watch::Sender<Option<Arc<Pod>>>> = BTreeMap::new();
    loop {
        let snapshot = snapshots.borrow_and_update().clone();
        let mut present = BTreeSet::new();
        for (key, pod) in snapshot.iter() {
            let uid = pod.uid().unwrap_or_default();
            if let Some(sender) = told.get(&uid) {
                sender.send_if_modified(|known| {
                    let is_new =
                        known.as_ref().is_none_or(|known| known.resource_version() != pod.resource_version());
                    if is_new {
                        *known = Some(Arc::clone(pod));
                    }
                    is_new
                });
            } else {
                let (sender, latest) = watch::channel(Some(Arc::clone(pod)));
                told.insert(uid.clone(), sender);
                let played = enter(&shared, key, &folder.join(&uid));
                tasks.spawn(pod::play(Arc::clone(&shared), latest, played, folder.join(&uid)));
            }
            present.insert(uid);
        }
        told.retain(|uid, sender| {
            let is_present = present.contains(uid);
            if !is_present {
                sender.send_replace(None);
            }
            is_present
        });
        tokio::select! {
            changed = snapshots.changed() => if changed.is_err() { return },
            Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
        }
    }
}

fn enter(shared: &Shared, key: &Key, folder: &Path) -> Arc<watch::Sender<Board>> {
    let board = Arc::new(watch::Sender::new(Board::new()));
    let played = Played { folder: folder.to_owned(), board: Arc::clone(&board) };
    shared.pods().insert(key.clone(), played);
    board
}

fn not_running(namespace: &str, pod: &str) -> Error {
    Error::NotRunning { part: format!("pod {namespace}/{pod}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses = Pauses { first: Duration::from_secs(1), longest: Duration::from_secs(30) };
        let seen = [1, 2, 3, 5, 6, 40].map(|count| pauses.after(count).as_secs());
        assert_eq!(seen, [1, 2, 4, 16, 30, 30]);
    }
}
