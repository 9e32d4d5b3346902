//! An edge: a Kubernetes cluster of real servers, whose nodes and pods KWOK plays.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Namespace, Node, ServiceAccount};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use crate::access::{Access, Credential};
use crate::authority::{CertifiedUser, Validity, service_account_keys};
use crate::error::{Asking, Error, Result};
use crate::etcd;
use crate::hub::{self, Played};
use crate::part::{Part, PartKind, PartSpec, Probe};
use crate::place::{ADMIN, Place, User};
use crate::ports::Port;
use crate::site::Site;
use crate::wait::wait_until;

const SETTLE_LIMIT: Duration = Duration::from_mins(1);
/// The annotation of the nodes that KWOK plays. Others are someone else's, such as a [`crate::kubelet::Kubelet`]'s.
const KWOK_NODE: (&str, &str) = ("kwok.x-k8s.io/node", "fake");

/// What an edge is made of.
#[derive(Debug, Clone)]
pub struct EdgeSpec {
    pub(crate) name: String,
    pub(crate) own_etcd: bool,
    pub(crate) durable: bool,
    controllers: bool,
    nodes: u16,
    users: Vec<User>,
    apiserver_flags: Vec<String>,
    controller_manager_flags: Vec<String>,
    scheduler_flags: Vec<String>,
}

impl EdgeSpec {
    /// A whole cluster: API server, controller manager, scheduler, and one node played by KWOK.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            own_etcd: false,
            durable: false,
            controllers: true,
            nodes: 1,
            users: vec![
                User::new(ADMIN, &["system:masters"]),
                User::new("alice", &[]),
                User::new("bob", &[]),
            ],
            apiserver_flags: Vec::new(),
            controller_manager_flags: Vec::new(),
            scheduler_flags: Vec::new(),
        }
    }

    /// An API server alone, ready in seconds: objects are stored, and nothing acts on them. There are no service
    /// accounts, so their admission is off and pods can be created all the same.
    pub fn bare(name: impl Into<String>) -> Self {
        Self { controllers: false, nodes: 0, ..Self::new(name) }
    }

    /// So many nodes, named `<edge>-0` and up.
    #[must_use]
    pub fn with_nodes(mut self, nodes: u16) -> Self {
        self.nodes = nodes;
        self
    }

    /// An etcd of its own, so that stopping it or setting it back in time leaves other edges alone, and resource
    /// versions grow only with this edge's own writes.
    #[must_use]
    pub fn with_own_etcd(mut self) -> Self {
        self.own_etcd = true;
        self
    }

    /// An etcd of its own that has every write on disk before it answers, as in production: for measurements.
    #[must_use]
    pub fn with_durable_etcd(mut self) -> Self {
        self.durable = true;
        self.with_own_etcd()
    }

    /// One more user, with a token.
    #[must_use]
    pub fn with_user(mut self, user: User) -> Self {
        self.users.push(user);
        self
    }

    /// How often old versions are compacted away: what is older than one to two intervals is gone. This needs an
    /// etcd of its own, since compaction knows no prefixes. A watch from a compacted version answers 410 as soon
    /// as the watch cache has forgotten it too, or at once [`Self::without_watch_cache`].
    #[must_use]
    pub fn with_compaction_every(self, interval: Duration) -> Self {
        self.with_own_etcd()
            .with_apiserver_flag(format!("--etcd-compaction-interval={}ms", interval.as_millis()))
    }

    /// Serves lists and watches from etcd itself.
    #[must_use]
    pub fn without_watch_cache(self) -> Self {
        self.with_apiserver_flag("--watch-cache=false")
    }

    /// One more flag for kube-apiserver, which may override one of ours.
    #[must_use]
    pub fn with_apiserver_flag(mut self, flag: impl Into<String>) -> Self {
        self.apiserver_flags.push(flag.into());
        self
    }

    /// One more flag for kube-controller-manager.
    #[must_use]
    pub fn with_controller_manager_flag(mut self, flag: impl Into<String>) -> Self {
        self.controller_manager_flags.push(flag.into());
        self
    }

    /// One more flag for kube-scheduler.
    #[must_use]
    pub fn with_scheduler_flag(mut self, flag: impl Into<String>) -> Self {
        self.scheduler_flags.push(flag.into());
        self
    }
}

/// A running edge.
pub struct Edge {
    place: Place,
    etcd: Arc<Part>,
    apiserver: Arc<Part>,
    others: Vec<Part>,
}

impl Edge {
    /// Starts an edge that is a hub.
    pub(crate) async fn start_hub(site: &Site, program: &Path, spec: EdgeSpec) -> Result<Self> {
        let (port, place) = Self::place_for(site, &spec)?;
        let played = if spec.controllers { Played::Cluster } else { Played::Bare };
        let hub = Arc::new(hub::launch(site, program, &place, port, played)?);
        hub.ready().await?;
        let edge = Self { place, etcd: Arc::clone(&hub), apiserver: hub, others: Vec::new() };
        edge.settled(spec.controllers).await?;
        Ok(edge)
    }

    fn place_for(site: &Site, spec: &EdgeSpec) -> Result<(Port, Place)> {
        let port = Port::reserve()?;
        let url = format!("https://127.0.0.1:{}", port.number());
        let place = Place::create(&spec.name, site.folder.join(&spec.name), url, &spec.users)?;
        Ok((port, place))
    }

    pub(crate) async fn start(site: &Site, spec: EdgeSpec, etcd: Arc<Part>) -> Result<Self> {
        let (port, place) = Self::place_for(site, &spec)?;
        let starting = Starting { site, spec: &spec, place: &place };
        let keys = service_account_keys(place.folder())?;
        let serving = place.authority().serving_files()?;
        etcd.ready().await?;
        let apiserver = Arc::new(starting.launch_apiserver(port, &etcd, &keys, &serving)?);
        apiserver.ready().await?;
        let mut others = Vec::new();
        if spec.controllers {
            others.push(starting.launch_controller_manager(&keys.0, &serving)?);
            others.push(starting.launch_scheduler(&serving)?);
        }
        if spec.nodes > 0 {
            others.push(starting.launch_kwok()?);
        }
        let edge = Self { place, etcd, apiserver, others };
        futures::try_join!(
            async { try_join_all(edge.others.iter().map(Part::ready)).await.map(drop) },
            edge.create_nodes(spec.nodes),
            edge.settled(spec.controllers),
        )?;
        Ok(edge)
    }

    pub(crate) fn joined(place: Place, etcd: Arc<Part>, apiserver: Arc<Part>, others: Vec<Part>) -> Self {
        Self { place, etcd, apiserver, others }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.place.name()
    }

    /// Its API server's URL.
    pub fn url(&self) -> &str {
        self.place.url()
    }

    /// The certificate of its authority.
    pub fn ca_pem(&self) -> &str {
        self.place.ca_pem()
    }

    /// A user's token: `admin`, `alice` (who has no rights), `bob` (likewise), or one that was added.
    pub fn token(&self, user: &str) -> Result<&str> {
        self.place.token(user)
    }

    /// How to reach it as a user.
    pub fn access(&self, user: &str) -> Result<Access> {
        self.place.access(user, "")
    }

    /// How to reach it with a credential of the caller's.
    pub fn access_with(&self, credential: Credential) -> Access {
        self.place.access_with(credential, "")
    }

    /// A client certificate for any user in at most one group; the user need not have a token.
    pub fn certificate(&self, user: &str, group: Option<&str>, validity: Validity) -> Result<CertifiedUser> {
        self.place.certificate(user, group, validity)
    }

    /// The file of a user's kubeconfig, with one context that bears the edge's name.
    pub fn kubeconfig(&self, user: &str) -> Result<PathBuf> {
        self.place.kubeconfig(user, "", "")
    }

    /// A client for a user, made in the current runtime.
    pub async fn client(&self, user: &str) -> Result<kube::Client> {
        self.access(user)?.client().await
    }

    /// Its etcd, which it may share with other edges of its world; a hub, which keeps its data itself, is its own.
    pub fn etcd(&self) -> &Part {
        &self.etcd
    }

    /// Its kube-apiserver.
    pub fn apiserver(&self) -> &Part {
        &self.apiserver
    }

    /// Its kube-controller-manager, unless it is bare.
    pub fn controller_manager(&self) -> Result<&Part> {
        self.other(PartKind::KubeControllerManager)
    }

    /// Its kube-scheduler, unless it is bare.
    pub fn scheduler(&self) -> Result<&Part> {
        self.other(PartKind::KubeScheduler)
    }

    /// Its KWOK, if it has nodes.
    pub fn kwok(&self) -> Result<&Part> {
        self.other(PartKind::Kwok)
    }

    /// All its parts, etcd not among them.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        std::iter::once(&*self.apiserver).chain(&self.others)
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    fn other(&self, kind: PartKind) -> Result<&Part> {
        let found = self.others.iter().find(|part| part.kind() == kind);
        found.ok_or_else(|| Error::NoSuchPlace { what: format!("{kind:?} at edge {}", self.name()) })
    }

    async fn create_nodes(&self, count: u16) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let nodes: Api<Node> = Api::all(self.client(ADMIN).await?);
        for number in 0..count {
            let node = node(&format!("{}-{number}", self.name()))?;
            let created = nodes.create(&PostParams::default(), &node).await;
            created.asking(|| format!("creating a node at edge {}", self.name()))?;
        }
        wait_until(format!("{count} nodes ready at edge {}", self.name()), SETTLE_LIMIT, || async {
            let seen =
                nodes.list(&kube::api::ListParams::default()).await.map_err(|error| error.to_string())?;
            let ready = seen.items.iter().filter(|node| is_ready(node)).count();
            if ready == usize::from(count) { Ok(()) } else { Err(format!("{ready} are ready")) }
        })
        .await?;
        Ok(())
    }

    // What the servers make for themselves after they say that they are ready, and what nearly every test uses.
    async fn settled(&self, controllers: bool) -> Result<()> {
        let client = self.client(ADMIN).await?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let accounts: Api<ServiceAccount> = Api::namespaced(client, "default");
        wait_until(format!("edge {} settled", self.name()), SETTLE_LIMIT, || async {
            namespaces.get("default").await.map_err(|error| error.to_string())?;
            if controllers {
                accounts.get("default").await.map_err(|error| error.to_string())?;
            }
            Ok::<_, String>(())
        })
        .await?;
        Ok(())
    }
}

struct Starting<'a> {
    site: &'a Site,
    spec: &'a EdgeSpec,
    place: &'a Place,
}

type KeyFiles = (PathBuf, PathBuf);

impl Starting<'_> {
    fn launch_apiserver(&self, port: Port, etcd: &Part, keys: &KeyFiles, serving: &KeyFiles) -> Result<Part> {
        let mut arguments = vec![
            format!("--etcd-servers={}", etcd::url(etcd.port())),
            format!("--etcd-prefix=/{}", self.place.name()),
            format!("--secure-port={}", port.number()),
            format!("--client-ca-file={}", self.place.authority().certificate_file().display()),
            format!("--token-auth-file={}", self.place.token_auth_file().display()),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-signing-key-file={}", keys.0.display()),
            format!("--service-account-key-file={}", keys.1.display()),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            // The address would be a loopback one, which an Endpoints object must not hold.
            "--endpoint-reconciler-type=none".to_owned(),
        ];
        if !self.spec.controllers {
            arguments.push("--disable-admission-plugins=ServiceAccount".to_owned());
        }
        arguments.extend(serving_flags(serving));
        arguments.extend(self.spec.apiserver_flags.clone());
        let program = self.site.programs.kube_apiserver()?;
        self.launch(PartKind::KubeApiserver, "kube-apiserver", program, port, arguments)
    }

    fn launch_controller_manager(&self, signing_key: &Path, serving: &KeyFiles) -> Result<Part> {
        let port = Port::reserve()?;
        let mut arguments = vec![
            format!("--kubeconfig={}", self.admin_kubeconfig()?),
            format!("--secure-port={}", port.number()),
            format!("--service-account-private-key-file={}", signing_key.display()),
            format!("--root-ca-file={}", self.place.authority().certificate_file().display()),
            "--leader-elect=false".to_owned(),
            // Tests wait for controllers; the default of 20 a second is meant to spare real API servers.
            "--kube-api-qps=200".to_owned(),
            "--kube-api-burst=400".to_owned(),
            // A busy machine makes heartbeats late. After the default of 50 s the Pods of a silent node are marked as not
            // ready, and KWOK, which makes a Pod ready once, never does so again; a kubelet would.
            "--node-monitor-grace-period=1h".to_owned(),
        ];
        arguments.extend(serving_flags(serving));
        arguments.extend(self.spec.controller_manager_flags.clone());
        let program = self.site.programs.kube_controller_manager()?;
        self.launch(PartKind::KubeControllerManager, "kube-controller-manager", program, port, arguments)
    }

    fn launch_scheduler(&self, serving: &KeyFiles) -> Result<Part> {
        let port = Port::reserve()?;
        let mut arguments = vec![
            format!("--kubeconfig={}", self.admin_kubeconfig()?),
            format!("--secure-port={}", port.number()),
            "--leader-elect=false".to_owned(),
        ];
        arguments.extend(serving_flags(serving));
        arguments.extend(self.spec.scheduler_flags.clone());
        let program = self.site.programs.kube_scheduler()?;
        self.launch(PartKind::KubeScheduler, "kube-scheduler", program, port, arguments)
    }

    fn launch_kwok(&self) -> Result<Part> {
        let port = Port::reserve()?;
        let arguments = vec![
            format!("--kubeconfig={}", self.admin_kubeconfig()?),
            "--manage-all-nodes=false".to_owned(),
            format!("--manage-nodes-with-annotation-selector={}={}", KWOK_NODE.0, KWOK_NODE.1),
            format!("--config={}", self.site.programs.kwok_stages()?.display()),
            format!("--server-address=127.0.0.1:{}", port.number()),
        ];
        let program = self.site.programs.kwok()?;
        self.launch(PartKind::Kwok, "kwok", program, port, arguments)
    }

    fn launch(
        &self,
        kind: PartKind,
        name: &str,
        program: PathBuf,
        port: Port,
        arguments: Vec<String>,
    ) -> Result<Part> {
        Part::launch(PartSpec {
            kind,
            name: format!("{}/{name}", self.place.name()),
            folder: self.place.folder().join(name),
            program,
            arguments,
            environment: Vec::new(),
            data: None,
            lifetime: self.site.lifetime,
            probe: Probe::new(kind, port.number(), Some(self.place))?,
            port,
            more_ports: Vec::new(),
        })
    }

    fn admin_kubeconfig(&self) -> Result<String> {
        Ok(self.place.kubeconfig(ADMIN, "", "")?.display().to_string())
    }
}

fn serving_flags((certificate, key): &KeyFiles) -> [String; 4] {
    [
        "--bind-address=127.0.0.1".to_owned(),
        format!("--tls-cert-file={}", certificate.display()),
        format!("--tls-private-key-file={}", key.display()),
        "--profiling=false".to_owned(),
    ]
}

fn node(name: &str) -> Result<Node> {
    let resources = json!({ "cpu": "32", "memory": "256Gi", "pods": "110" });
    let node = json!({
        "metadata": {
            "name": name,
            "annotations": { KWOK_NODE.0: KWOK_NODE.1 },
            "labels": { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64" },
        },
        "status": { "allocatable": resources, "capacity": resources },
    });
    serde_json::from_value(node)
        .map_err(|error| Error::Malformed { what: format!("node {name}"), why: error.to_string() })
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
