//! The run: both servers, all cases, and what came of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use mailboat_testkit::{EdgeSpec, World, wait_until};
use serde_json::{Value, json};

use crate::coverage;
use crate::difference::{self, Difference};
use crate::known::{self, Known};
use crate::play::{Heard, mentions, play};
use crate::script::{Action, BadScript, Case, File, On};
use crate::server::{Hub, Server};

/// The folder of the files of cases, and the page where the known differences stand, from this crate's folder.
const CASES: &str = "cases";
const PAGE: &str = "../../docs/hub.md";
/// How long a workspace may take to be ready.
const READY_LIMIT: Duration = Duration::from_mins(1);
/// How often a forgetful server forgets.
pub(crate) const FORGETS_EVERY: Duration = Duration::from_secs(1);
/// How many cases run at once.
const AT_ONCE: usize = 4;

/// Where a known difference was met: in which case, and at which path.
type Used = BTreeSet<(String, String)>;

/// Why nothing could be compared.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of cases cannot be read.
    #[error(transparent)]
    Script(#[from] BadScript),
    /// A real server cannot be started or reached.
    #[error(transparent)]
    World(#[from] mailboat_testkit::Error),
    /// The hub cannot be started.
    #[error("the hub cannot be started: {0}")]
    Hub(String),
    /// There is no port for it.
    #[error("no address can be listened at: {0}")]
    Listen(std::io::Error),
    /// A file of ours cannot be read.
    #[error("{path} cannot be read: {error}")]
    File {
        /// Which.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// What a file or a case stands on cannot be made.
    #[error("{0}")]
    Ground(String),
}

/// The real servers beside which the hub is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// kube-apiserver.
    Kubernetes,
    /// kcp.
    Kcp,
}

/// What came of one case.
#[derive(Debug)]
pub struct Outcome {
    /// `file: name`.
    pub case: String,
    /// How many answers were compared.
    pub answers: usize,
    /// How long it took, on both servers together.
    pub took: Duration,
    /// What differs, in words; empty: it passed.
    pub differences: Vec<String>,
}

/// What came of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// Of each case.
    pub outcomes: Vec<Outcome>,
    /// The known differences that were met: in which case, and where.
    pub known: BTreeSet<(String, String)>,
    /// Rows of known differences that match nothing anymore, or are too many.
    pub stale: Vec<String>,
}

impl Report {
    /// How many answers were compared.
    pub fn answers(&self) -> usize {
        self.outcomes.iter().map(|outcome| outcome.answers).sum()
    }

    /// Everything that failed, in words.
    pub fn failures(&self) -> Vec<String> {
        let failed = self.outcomes.iter().filter(|outcome| !outcome.differences.is_empty());
        failed
            .map(|outcome| format!("{}\n{}", outcome.case, outcome.differences.join("\n")))
            .chain(self.stale.iter().cloned())
            .collect()
    }

    /// The cases that took longest, longest first.
    pub fn slowest(&self, count: usize) -> Vec<(&str, Duration)> {
        let mut all: Vec<_> = self.outcomes.iter().map(|outcome| (&*outcome.case, outcome.took)).collect();
        all.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
        all.truncate(count);
        all
    }

    /// How many cases passed.
    pub fn passed(&self) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.differences.is_empty()).count()
    }
}

/// Sends the cases whose name contains one of the names, or all, to a peer and to a hub.
pub async fn run(peer: Peer, names: &[String]) -> Result<Report, Error> {
    let asked: &[On] = match peer {
        Peer::Kubernetes => &[On::Cluster, On::Forgetful],
        Peer::Kcp => &[On::Workspaces],
    };
    let mut files = Vec::new();
    for mut file in read_files()? {
        file.cases
            .retain(|case| names.is_empty() || names.iter().any(|name| case.to_string().contains(name)));
        if asked.contains(&file.on) && !file.cases.is_empty() {
            files.push(file);
        }
    }
    let mut report = Report::default();
    if files.is_empty() {
        return Ok(report);
    }
    let known = read_known()?;
    let mut used = vec![BTreeSet::new(); known.len()];
    for on in asked {
        let files: Vec<&File> = files.iter().filter(|file| file.on == *on).collect();
        if files.is_empty() {
            continue;
        }
        let hub = Hub::start(*on).await?;
        // Servers live as long as they are asked.
        let mut world = None;
        let real = match on {
            On::Workspaces => Server::center(World::shared().await?.center()).await?,
            On::Cluster | On::Forgetful => {
                let peer = EdgeSpec::bare("peer");
                let peer = match on {
                    On::Forgetful => peer.with_compaction_every(FORGETS_EVERY),
                    _ => peer.with_own_etcd(),
                };
                let world = world.insert(World::builder().edge_with(peer).start().await?);
                Server::edge(world.edge("peer")).await?
            }
        };
        if *on == On::Forgetful {
            for server in [&real, &hub.server] {
                forgotten(server).await?;
            }
        }
        compare(&real, &hub.server, &files, &known, &mut used, &mut report).await?;
    }
    report.known = used.iter().flatten().cloned().collect();
    if names.is_empty() {
        let mine = |row: &Known| {
            files.iter().any(|file| row.cases == "*" || row.cases.starts_with(&format!("{}:", file.name)))
        };
        for (row, met) in known.iter().zip(&used).filter(|(row, _)| mine(row)) {
            let gone = row.idle(met).map(|gone| {
                format!(
                    "known difference `{}`: `{gone}` is gone; take it off the list in docs/hub.md",
                    row.cases
                )
            });
            report.stale.extend(gone);
        }
        if known.len() > known::LIMIT {
            report.stale.push(format!("{} differences are known, {} may be", known.len(), known::LIMIT));
        }
    }
    Ok(report)
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn unreadable(path: &Path, error: std::io::Error) -> Error {
    Error::File { path: path.display().to_string(), error }
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|error| unreadable(path, error))
}

/// The differences that are known.
pub fn read_known() -> Result<Vec<Known>, Error> {
    Ok(known::read(&read(&folder().join(PAGE))?))
}

/// All files of cases, by name.
pub fn read_files() -> Result<Vec<File>, Error> {
    let folder = folder().join(CASES);
    let entries = fs::read_dir(&folder).map_err(|error| unreadable(&folder, error))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let file = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(File::parse(&name, &read(path)?)?)
    };
    paths.iter().map(file).collect()
}

async fn compare(
    real: &Server,
    hub: &Server,
    files: &[&File],
    known: &[Known],
    used: &mut [Used],
    report: &mut Report,
) -> Result<(), Error> {
    let mut number = 0;
    for file in files {
        let ground = Ground::prepare(real, hub, file).await?;
        if !file.once.steps.is_empty() {
            let outcome = ground.judged(&file.once, 0, known, used).await?;
            report.outcomes.push(outcome);
        }
        let playing = file.cases.iter().map(|case| {
            number += 1;
            let number = number;
            let ground = &ground;
            async move {
                let began = Instant::now();
                (case, ground.both(case, number).await, began.elapsed())
            }
        });
        let mut played = futures::stream::iter(playing).buffered(AT_ONCE);
        while let Some((case, both, took)) = played.next().await {
            let (real, hub) = both?;
            report.outcomes.push(Outcome { took, ..judge(case, &real, &hub, known, used) });
        }
    }
    Ok(())
}

/// What the cases of a file stand on.
struct Ground<'g> {
    real: Side<'g>,
    hub: Side<'g>,
    file: &'g File,
}

/// One of the two servers, with the workspace that a file has there.
struct Side<'g> {
    server: &'g Server,
    /// The workspace by its path and by its logical cluster, if the file has one.
    workspace: Option<(String, String)>,
}

impl<'g> Ground<'g> {
    async fn prepare(real: &'g Server, hub: &'g Server, file: &'g File) -> Result<Self, Error> {
        let mut ground = Self {
            real: Side { server: real, workspace: None },
            hub: Side { server: hub, workspace: None },
            file,
        };
        if file.on == On::Workspaces {
            // The same name on both sides, and a new one in each run: real servers are shared.
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let name = format!("conformance-{:x}", now.as_nanos());
            for side in [&mut ground.real, &mut ground.hub] {
                let cluster = workspace(side.server, &name).await?;
                side.workspace = Some((format!("root:{name}"), cluster));
            }
        }
        Ok(ground)
    }

    async fn judged(
        &self,
        case: &Case,
        number: usize,
        known: &[Known],
        used: &mut [Used],
    ) -> Result<Outcome, Error> {
        let (real, hub) = self.both(case, number).await?;
        Ok(judge(case, &real, &hub, known, used))
    }

    async fn both(&self, case: &Case, number: usize) -> Result<(Vec<Heard>, Vec<Heard>), Error> {
        let mut heard = Vec::new();
        for side in [&self.real, &self.hub] {
            let mut words = BTreeMap::from([
                ("ns".to_owned(), format!("case-{number}")),
                ("id".to_owned(), format!("c{number}")),
            ]);
            // Where real servers keep an object is the name of the world.
            let mut shown = vec![("Key: /peer/".to_owned(), "Key: /registry/".to_owned())];
            if let Some((path, cluster)) = &side.workspace {
                words.insert("ws".to_owned(), path.clone());
                words.insert("cluster".to_owned(), cluster.clone());
                shown.push((cluster.clone(), "<cluster>".to_owned()));
                // What the server itself writes bears its name.
                shown.push(("mailboat-hub".to_owned(), "kcp".to_owned()));
            }
            if mentions(case, "ns") {
                self.namespace(side, &words["ns"]).await?;
            }
            heard.push(play(side.server, case, &words, &shown).await);
        }
        let hub = heard.pop().unwrap_or_default();
        Ok((heard.pop().unwrap_or_default(), hub))
    }

    async fn namespace(&self, side: &Side<'_>, name: &str) -> Result<(), Error> {
        let place = side.workspace.as_ref().map(|(path, _)| format!("/clusters/{path}")).unwrap_or_default();
        let path = format!("{place}/api/v1/namespaces");
        let (code, _) = ask(side.server, &path, Some(json!({ "metadata": { "name": name } }))).await?;
        if code == 201 {
            return Ok(());
        }
        Err(Error::Ground(format!("the namespace {name} for {}: {code} was answered", self.file.name)))
    }
}

/// Makes a workspace below the root and waits until it can be used; answers with its logical cluster.
async fn workspace(server: &Server, name: &str) -> Result<String, Error> {
    let parent = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces";
    let body =
        json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": { "name": name } });
    let (code, answer) = ask(server, parent, Some(body)).await?;
    if code != 201 {
        return Err(Error::Ground(format!(
            "the workspace {name}: {code} was answered: {}",
            answer["message"]
        )));
    }
    let usable = wait_until(format!("workspace {name} usable"), READY_LIMIT, || async {
        let (_, seen) =
            ask(server, &format!("{parent}/{name}"), None).await.map_err(|error| error.to_string())?;
        let cluster = seen["spec"]["cluster"].as_str().filter(|_| seen["status"]["phase"] == "Ready");
        let Some(cluster) = cluster else { return Err(seen["status"].to_string()) };
        let inside = format!("/clusters/root:{name}/api/v1/namespaces/default");
        let (code, _) = ask(server, &inside, None).await.map_err(|error| error.to_string())?;
        if code == 200 { Ok(cluster.to_owned()) } else { Err(format!("{code} was answered inside")) }
    });
    usable.await.map_err(|error| Error::Ground(error.to_string()))
}

/// Waits until a server has forgotten how it began: it does so a while after it is ready, and little by little.
async fn forgotten(server: &Server) -> Result<(), Error> {
    let (_, now) = ask(server, "/api/v1/configmaps?limit=1", None).await?;
    let version = now["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse::<u64>().ok());
    let before = version.unwrap_or_default().saturating_sub(1);
    let before = format!("/api/v1/configmaps?resourceVersion={before}&resourceVersionMatch=Exact");
    let forgotten = wait_until("the server forgets", READY_LIMIT, || async {
        let (code, _) = ask(server, &before, None).await.map_err(|error| error.to_string())?;
        if code == 410 { Ok(()) } else { Err(format!("{code} was answered")) }
    });
    forgotten.await.map_err(|error| Error::Ground(error.to_string()))
}

/// Asks a server for something, or to make something, as its administrator.
async fn ask(server: &Server, path: &str, body: Option<Value>) -> Result<(u16, Value), Error> {
    let ground = |why: String| Error::Ground(format!("{path}: {why}"));
    let method = if body.is_some() { "POST" } else { "GET" };
    let content = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request =
        http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.body(content.into()).map_err(|error| ground(error.to_string()))?;
    let answer = server.send("", request).await.map_err(ground)?;
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.map_err(|error| ground(error.to_string()))?.to_bytes();
    Ok((code, serde_json::from_slice(&bytes).unwrap_or_default()))
}

fn judge(case: &Case, real: &[Heard], hub: &[Heard], known: &[Known], used: &mut [Used]) -> Outcome {
    let mut differences = Vec::new();
    for (real, hub) in real.iter().zip(hub) {
        let step = &case.steps[real.step];
        let found: Vec<Difference> = difference::between(&real.answer, &hub.answer)
            .into_iter()
            .filter(|found| {
                let row = known.iter().position(|row| row.covers(case, found));
                if let Some(row) = row {
                    used[row].insert((case.to_string(), found.path.clone()));
                }
                row.is_none()
            })
            .collect();
        if !found.is_empty() {
            differences.push(format!("    line {}: {}", step.line, step.text));
            differences.extend(found.iter().map(|found| format!("      {found}")));
        }
    }
    if coverage::is_refused(&case.to_string()) && !real.iter().any(|heard| heard.refused) {
        differences.push("    it is to show a refusal (src/coverage.rs), and nothing is refused".to_owned());
    }
    let requests = case.steps.iter().filter(|step| !matches!(step.action, Action::Let { .. })).count();
    Outcome { case: case.to_string(), answers: requests, took: Duration::ZERO, differences }
}
