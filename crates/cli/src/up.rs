//! `mailboat up`: a center, edges and an example that travels to them, in one process, until Ctrl-C.
//!
//! Nothing here is a shortcut: the embedded servers are hubs that listen, and the center and the syncers speak to them
//! through kubeconfigs, as users with the rights that they have anywhere.

mod embedded;
mod example;
mod folder;
mod kubeconfig;
mod servers;
mod story;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use mailboat_api::names::object::{CENTER_GROUP, PROVIDER_WORKSPACE};
use mailboat_api::names::{MailboxName, annotation, export, group};
use mailboat_center::setup::Offer;
use mailboat_cluster::{Cluster, Connection, Source, Transport as _};
use mailboat_object::wire::{Fault, FaultKind};
use mailboat_registration::SyncerId;
use mailboat_registration::account::ACCOUNT_NAMESPACE;
use mailboat_registration::inventory;
use mailboat_registration::lifetime::Lifetime;
use mailboat_registration::token;
use mailboat_registration::workspace::WorkspacePath;
use mailboat_runner::StopSignal;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep};

use self::embedded::Embedded;
use self::example::WORKLOADS;
use self::folder::Folder;
use self::kubeconfig::Entry;
use self::servers::Servers;
use self::story::{Progress, Shown};
use crate::failure::{bad_configuration, refusal};
use crate::flags::{HubMode, ServerFlags, UpArguments};
use crate::log;
use crate::place::{get, key};
use crate::site::{Site, bind, create, passing, patiently};

/// The names of the first edges; others are numbered.
const EDGES: [&str; 2] = ["guilder", "florin"];
/// The workspace that describes the edges.
const INVENTORY: &str = "imw1";
/// How long the example may take to arrive. A kcp takes seconds for each kind that is new to it.
const ARRIVAL_LIMIT: Duration = Duration::from_mins(10);
const GLANCE: Duration = Duration::from_millis(50);
/// Says that an example was applied to what is kept in a folder.
const APPLIED: &str = "example1.applied";
/// Says which edges were described to what is kept in a folder.
const DESCRIBED: &str = "edges.described";

/// Starts everything, shows it, and stops everything when it is told to.
pub async fn run(arguments: &UpArguments) -> Result<()> {
    let stop = StopSignal::new().context("signals cannot be heard")?;
    let folder = Folder::open(arguments.data.as_deref())?;
    log::begin_in(&folder.file("log"), &arguments.log_level)?;
    let servers = Servers::settle(arguments, &folder)?;
    let mut running = Running::new();
    let stopped = async {
        stop.received().await;
        Ok(())
    };
    let ended = tokio::select! {
        ended = stopped => ended,
        ended = stay_up(&servers, &folder, &mut running) => ended,
    };
    say!("stopping …");
    running.end().await;
    ended
}

/// Everything, until something of it ends by itself.
async fn stay_up(servers: &Servers, folder: &Folder, running: &mut Running) -> Result<()> {
    let progress = Progress::begin();
    let mut up = Up::start(servers, folder, running, &progress).await?;
    let contexts = folder.file("kubeconfig");
    up.write_contexts(&contexts)?;
    let root = ServerFlags {
        kubeconfig: Some(contexts.clone()),
        context: Some("root".to_owned()),
        ..ServerFlags::default()
    };
    let site = Site::reach(&root).await?;
    set_up(&root, &progress).await?;
    running.center(up.center_source.clone(), up.center_is_given);
    describe_edges(&site, folder, &mut up.edges).await?;
    progress.say("the edges are described in root:imw1; the center makes a mailbox for each");
    let note = folder.file(APPLIED);
    let applied_before = note.exists();
    if !applied_before {
        for workload in &WORKLOADS {
            workload.apply(&workload_workspace(&site, workload.workspace).await?).await?;
        }
    }
    if folder.is_kept() {
        std::fs::write(&note, "").with_context(|| format!("{} cannot be written", note.display()))?;
    }
    if !applied_before {
        progress.say("example1 is applied in root:wmw-c and root:wmw-s");
    }
    for edge in &up.edges {
        let Some(mailbox) = &edge.mailbox else {
            progress.say(format!("{} is described no more, and gets no syncer", edge.name));
            continue;
        };
        register(&site, edge, mailbox).await?;
        running.syncer(edge, mailbox).await?;
        progress.say(format!("the syncer of {} sails", edge.name));
    }
    // What was done to the example since it was first applied is not known here: there is nothing to wait for.
    let state = if applied_before {
        "everything runs again"
    } else {
        tokio::select! {
            ended = running.failed() => return ended,
            arrived = all_arrived(&up.edges, &progress) => arrived?,
        }
        "example1 is in place"
    };
    progress.say(state);
    let mut shown = Vec::new();
    for edge in &up.edges {
        shown.push(edge.shown().await?);
    }
    let kept = folder.is_kept().then(|| folder.path());
    crate::documents::write_out(&story::all(state, &shown, up.center.server(), &contexts, kept))?;
    running.failed().await
}

/// What was started, or given, and how it is reached.
struct Up {
    center: Entry,
    center_source: Source,
    center_is_given: bool,
    edges: Vec<Edge>,
}

struct Edge {
    name: String,
    entry: Entry,
    /// Its own kubeconfig, and that of its syncer in its mailbox.
    kubeconfig: PathBuf,
    syncer_kubeconfig: PathBuf,
    /// None if somebody took away what describes it.
    mailbox: Option<MailboxName>,
    is_given: bool,
}

impl Up {
    async fn start(
        servers: &Servers,
        folder: &Folder,
        running: &mut Running,
        progress: &Progress,
    ) -> Result<Self> {
        let names = edge_names(servers);
        let (center, center_file) = if let Some(file) = &servers.center {
            (Entry::read(file)?, file.clone())
        } else {
            let stop = running.stop_servers.subscribe();
            let hub = Embedded::start(folder, "center", HubMode::Workspaces, stop).await?;
            let file = folder.file("center.kubeconfig");
            kubeconfig::write(&file, &[("center", hub.entry("center", CENTER_GROUP)?.at("root"))])?;
            let entry = hub.entry("admin", "system:masters")?;
            running.serving.push(hub.serving);
            (entry, file)
        };
        progress.say(format!("the center serves at {}", center.server()));
        let mut edges = Vec::new();
        for name in names {
            let given = servers.given.get(&name);
            let (entry, file) = if let Some(file) = given {
                (Entry::read(file)?, file.clone())
            } else {
                let stop = running.stop_servers.subscribe();
                let hub = Embedded::start(folder, &format!("edge-{name}"), HubMode::Cluster, stop).await?;
                let entry = hub.entry("admin", "system:masters")?;
                let file = folder.file(&format!("{name}.kubeconfig"));
                kubeconfig::write(&file, &[(&name, entry.clone())])?;
                running.serving.push(hub.serving);
                (entry, file)
            };
            progress.say(format!("the edge {name} serves at {}", entry.server()));
            edges.push(Edge {
                syncer_kubeconfig: folder.file(&format!("{name}-syncer.kubeconfig")),
                name,
                entry,
                kubeconfig: file,
                mailbox: None,
                is_given: given.is_some(),
            });
        }
        Ok(Self {
            center_source: Source::Kubeconfig { path: Some(center_file), context: None },
            center_is_given: servers.center.is_some(),
            center,
            edges,
        })
    }

    /// One kubeconfig with a context for every place.
    fn write_contexts(&self, file: &Path) -> Result<()> {
        let mut contexts = vec![(WORKLOADS[0].workspace, self.center.at("root:wmw-c"))];
        contexts.push(("root", self.center.at("root")));
        for name in [INVENTORY, WORKLOADS[1].workspace] {
            contexts.push((name, self.center.at(&format!("root:{name}"))));
        }
        contexts.extend(self.edges.iter().map(|edge| (edge.name.as_str(), edge.entry.clone())));
        kubeconfig::write(file, &contexts)
    }
}

/// The embedded ones in their order, and those that are given beside them.
fn edge_names(servers: &Servers) -> Vec<String> {
    let mut names: Vec<String> = embedded_names(servers.edges).collect();
    let beside: Vec<String> = servers.given.keys().filter(|name| !names.contains(name)).cloned().collect();
    names.extend(beside);
    names
}

/// The names of so many edges.
fn embedded_names(count: u16) -> impl Iterator<Item = String> {
    let numbered = (EDGES.len() + 1..).map(|number| format!("edge-{number}"));
    EDGES.iter().map(|name| (*name).to_owned()).chain(numbered).take(usize::from(count))
}

/// Sets the provider workspace up, as an administrator does once.
async fn set_up(root: &ServerFlags, progress: &Progress) -> Result<()> {
    let source = Source::Kubeconfig { path: root.kubeconfig.clone(), context: root.context.clone() };
    let connection = Connection::open(source, mailboat_cluster::Settings::default())
        .await
        .map_err(|bad| bad_configuration(&bad, "--center-kubeconfig"))?;
    let offer = Offer::all().context("the APIs to offer cannot be made")?;
    let mut pieces = 0;
    mailboat_center::init::init(&connection, PROVIDER_WORKSPACE, &offer, |_, _| pieces += 1).await?;
    progress.say(format!("{PROVIDER_WORKSPACE} is set up: {pieces} objects"));
    Ok(())
}

/// Describes the edges in an inventory workspace, each once: what somebody took away there since stays away. Notes their
/// mailboxes.
async fn describe_edges(site: &Site, folder: &Folder, edges: &mut [Edge]) -> Result<()> {
    let path = below_root(INVENTORY)?;
    let cluster = site.at(&path);
    let mut described = Described::read(folder);
    if edges.iter().any(|edge| !described.names.contains(&edge.name)) {
        site.make_workspace(&path, None).await?;
        let name = export::BINDING_IN_INVENTORY_WORKSPACE;
        bind(&cluster, &path, &inventory::binding(name, PROVIDER_WORKSPACE, export::EDGE)).await?;
        give_rights(&cluster, &path, inventory::center_rights_in_inventory()).await?;
    }
    for edge in edges {
        let before = described.names.contains(&edge.name);
        if !before {
            describe(&cluster, &edge.name).await?;
            described.add(folder, &edge.name)?;
        }
        let target: Option<Value> = match get(&cluster, key("", group::EDGE, "synctargets", "", &edge.name))
            .await
        {
            Ok(target) => target,
            // As kcp answers for a workspace that is not there, and for a kind that is bound there no more.
            Err(fault) if before && matches!(fault.kind, FaultKind::Forbidden | FaultKind::Unserved) => None,
            Err(fault) => return Err(fault.into()),
        };
        if target.is_none() && !before {
            return Err(anyhow!("the SyncTarget {} is gone again", edge.name));
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        edge.mailbox = target.map(|target| MailboxName {
            cluster: text(&target["metadata"]["annotations"][annotation::KCP_CLUSTER]),
            sync_target_uid: text(&target["metadata"]["uid"]),
        });
    }
    Ok(())
}

/// Makes an edge's SyncTarget and Location.
async fn describe(cluster: &Cluster, name: &str) -> Result<()> {
    let described =
        inventory::Described::new(name, example::labels(name)).map_err(|bad| refusal(bad.to_string()))?;
    for (resource, object) in [("synctargets", described.sync_target()), ("locations", described.location())]
    {
        let key = key("", group::EDGE, resource, "", name);
        patiently(&format!("the edge {name} cannot be described"), async || {
            create(cluster, key.clone(), &object).await
        })
        .await?;
    }
    Ok(())
}

/// The edges that were described before, by what is kept of it.
struct Described {
    names: BTreeSet<String>,
}

impl Described {
    fn read(folder: &Folder) -> Self {
        let kept = std::fs::read_to_string(folder.file(DESCRIBED)).unwrap_or_default();
        Self { names: kept.lines().map(str::to_owned).collect() }
    }

    fn add(&mut self, folder: &Folder, name: &str) -> Result<()> {
        self.names.insert(name.to_owned());
        if !folder.is_kept() {
            return Ok(());
        }
        let lines: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let note = folder.file(DESCRIBED);
        std::fs::write(&note, lines.join("\n"))
            .with_context(|| format!("{} cannot be written", note.display()))
    }
}

/// Makes a workload workspace: bindings, and what lets the center read it.
async fn workload_workspace(site: &Site, name: &str) -> Result<Cluster> {
    let path = below_root(name)?;
    site.make_workspace(&path, None).await?;
    let cluster = site.at(&path);
    for (name, export_name) in inventory::workload_bindings(true) {
        bind(&cluster, &path, &inventory::binding(name, PROVIDER_WORKSPACE, export_name)).await?;
    }
    give_rights(&cluster, &path, inventory::center_rights()).await?;
    Ok(cluster)
}

/// Lets the center use a workspace.
async fn give_rights(cluster: &Cluster, path: &WorkspacePath, rights: [Value; 2]) -> Result<()> {
    for (resource, wanted) in ["clusterroles", "clusterrolebindings"].into_iter().zip(rights) {
        let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
        let key = key("", "rbac.authorization.k8s.io", resource, "", name);
        patiently(&format!("the center cannot be let into {path}"), async || {
            create(cluster, key.clone(), &wanted).await
        })
        .await?;
    }
    Ok(())
}

/// Waits for an edge's mailbox, and takes a token of the account that the center made there for the syncer.
async fn register(site: &Site, edge: &Edge, mailbox: &MailboxName) -> Result<()> {
    let path = WorkspacePath::parse(PROVIDER_WORKSPACE)
        .and_then(|provider| provider.child(&mailbox.to_string()))
        .map_err(|bad| refusal(bad.to_string()))?;
    let cluster = site.at(&path);
    let syncer = SyncerId::new(&edge.name, &mailbox.sync_target_uid);
    let account = key("", "", "serviceaccounts", ACCOUNT_NAMESPACE, syncer.as_str());
    patiently(&format!("the mailbox of {} is not ready", edge.name), async || {
        match get::<Value>(&cluster, account.clone()).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(passing("its syncer has no account yet")),
            // As kcp answers for a workspace that is not there.
            Err(fault) if fault.kind == FaultKind::Forbidden => Err(passing(&fault.text)),
            Err(fault) => Err(fault),
        }
    })
    .await?;
    let granted = cluster.call(token::request(account, Lifetime::DEFAULT)).await;
    let granted = granted.map_err(|fault| anyhow!("the syncer of {} gets no token: {fault}", edge.name))?;
    let token = token::granted(&granted.body)?;
    let entry = Entry::with_token(&site.address(), token.text()).at(&path.to_string());
    kubeconfig::write(&edge.syncer_kubeconfig, &[("mailbox", entry)])
}

/// Waits until all that the example brings has arrived everywhere, and says so for each edge.
async fn all_arrived(edges: &[Edge], progress: &Progress) -> Result<()> {
    let end = Instant::now() + ARRIVAL_LIMIT;
    for edge in edges {
        let cluster = edge.cluster().await?;
        for arrival in example::arrivals(&edge.name, !edge.is_given) {
            loop {
                let came = arrival.is_at(&cluster, &edge.name).await;
                match came {
                    Ok(true) => break,
                    Err(fault) if !may_pass(&fault) => {
                        return Err(anyhow!("{} cannot be asked: {fault}", edge.name));
                    }
                    Ok(false) | Err(_) if Instant::now() > end => {
                        return Err(anyhow!(
                            "{} has not arrived at {} within {} minutes",
                            arrival.what,
                            edge.name,
                            ARRIVAL_LIMIT.as_secs() / 60
                        ));
                    }
                    Ok(false) | Err(_) => sleep(GLANCE).await,
                }
            }
        }
        progress.say(format!("all of it has arrived at {}", edge.name));
    }
    Ok(())
}

fn may_pass(fault: &Fault) -> bool {
    fault.passes() || matches!(fault.kind, FaultKind::NotFound | FaultKind::Unserved)
}

fn below_root(name: &str) -> Result<WorkspacePath> {
    WorkspacePath::parse(&format!("root:{name}")).map_err(|bad| refusal(bad.to_string()))
}

impl Edge {
    async fn cluster(&self) -> Result<Cluster> {
        let source = Source::Kubeconfig { path: Some(self.kubeconfig.clone()), context: None };
        let connection = Connection::open(source, mailboat_cluster::Settings::default()).await;
        Ok(connection.map_err(|bad| bad_configuration(&bad, "--edge"))?.cluster())
    }

    /// What of the example is there now.
    async fn shown(&self) -> Result<Shown> {
        let cluster = self.cluster().await?;
        let mut holds = Vec::new();
        for arrival in example::arrivals(&self.name, true) {
            // Whoever cannot be asked shows nothing.
            if arrival.stands_at(&cluster).await.unwrap_or_default() {
                holds.push(arrival.what);
            }
        }
        let holds = if holds.is_empty() { "nothing of the example".to_owned() } else { holds.join(", ") };
        Ok(Shown { name: self.name.clone(), server: self.entry.server().to_owned(), holds })
    }
}

/// What runs in this process, and how it is stopped: those who sail first, then the servers that they sail between.
struct Running {
    roles: JoinSet<Result<()>>,
    stop_roles: watch::Sender<bool>,
    serving: Vec<JoinHandle<()>>,
    stop_servers: watch::Sender<bool>,
}

impl Running {
    fn new() -> Self {
        Self {
            roles: JoinSet::new(),
            stop_roles: watch::Sender::new(false),
            serving: Vec::new(),
            stop_servers: watch::Sender::new(false),
        }
    }

    fn center(&mut self, source: Source, is_given: bool) {
        let mut settings = mailboat_center::assemble::Settings::new(source, PROVIDER_WORKSPACE);
        // At a kcp of somebody's own another center may run.
        settings.election = is_given.then(|| mailboat_center::assemble::election(&settings.parts));
        let stop = told(self.stop_roles.subscribe());
        self.roles.spawn(async move {
            mailboat_center::assemble::run(settings, stop).await.map_err(|error| refusal(error.to_string()))
        });
    }

    async fn syncer(&mut self, edge: &Edge, mailbox: &MailboxName) -> Result<()> {
        let file = |path: &PathBuf| Source::Kubeconfig { path: Some(path.clone()), context: None };
        let settings = mailboat_syncer::Settings::new(
            file(&edge.syncer_kubeconfig),
            file(&edge.kubeconfig),
            &edge.name,
            &mailbox.sync_target_uid,
        );
        let syncer = mailboat_syncer::Syncer::open(settings).await.map_err(|bad| refusal(bad.to_string()))?;
        let stop = told(self.stop_roles.subscribe());
        self.roles.spawn(async move {
            syncer.run(stop).await;
            Ok(())
        });
        Ok(())
    }

    /// Done when something ended that should not have.
    async fn failed(&mut self) -> Result<()> {
        match self.roles.join_next().await {
            None => std::future::pending().await,
            Some(Ok(Ok(()))) => Err(anyhow!("the center or a syncer has ended by itself; see the log")),
            Some(Ok(Err(error))) => Err(error),
            Some(Err(error)) => Err(anyhow!("the center or a syncer has failed: {error}")),
        }
    }

    async fn end(mut self) {
        self.stop_roles.send_replace(true);
        while self.roles.join_next().await.is_some() {}
        self.stop_servers.send_replace(true);
        for server in self.serving {
            let _ = server.await;
        }
    }
}

/// Done when it is told so.
async fn told(mut stop: watch::Receiver<bool>) {
    // Nobody is left to say so: that is the end as well.
    let _ = stop.wait_for(|stop| *stop).await;
}
