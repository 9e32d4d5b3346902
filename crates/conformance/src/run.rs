//! The run: both servers, all cases, and what came of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use mailboat_testkit::{EdgeSpec, World};
use serde_json::json;

use crate::difference::{self, Difference};
use crate::known::{self, Known};
use crate::play::{Heard, mentions, play};
use crate::script::{Action, BadScript, Case, File, On};
use crate::server::{Hub, Server};

/// The folder of the files of cases, and the page where the known differences stand, from this crate's folder.
const CASES: &str = "cases";
const PAGE: &str = "../../docs/hub.md";
/// How many cases run at once.
const AT_ONCE: usize = 4;

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
    let on = match peer {
        Peer::Kubernetes => On::Cluster,
        Peer::Kcp => On::Workspaces,
    };
    let mut files = Vec::new();
    for mut file in read_files()? {
        file.cases
            .retain(|case| names.is_empty() || names.iter().any(|name| case.to_string().contains(name)));
        if file.on == on && !file.cases.is_empty() {
            files.push(file);
        }
    }
    let mut report = Report::default();
    if files.is_empty() {
        return Ok(report);
    }
    let known = known::read(&read(&folder().join(PAGE))?);
    let mut used = vec![false; known.len()];
    let hub = Hub::start(on).await?;
    match peer {
        Peer::Kubernetes => {
            let world = World::builder().edge_with(EdgeSpec::bare("peer").with_own_etcd()).start().await?;
            let real = Server::edge(world.edge("peer")).await?;
            compare(&real, &hub.server, &files, &known, &mut used, &mut report).await?;
        }
        Peer::Kcp => {
            let world = World::shared().await?;
            let real = Server::center(world.center()).await?;
            compare(&real, &hub.server, &files, &known, &mut used, &mut report).await?;
        }
    }
    if names.is_empty() {
        let mine = |row: &Known| files.iter().any(|file| row.cases.starts_with(&*file.name));
        let gone = known.iter().zip(&used).filter(|(row, used)| !**used && mine(row));
        report.stale.extend(gone.map(|(row, _)| {
            format!(
                "known difference `{}` `{}`: it is gone; take it off the list in docs/hub.md",
                row.cases, row.path
            )
        }));
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
    files: &[File],
    known: &[Known],
    used: &mut [bool],
    report: &mut Report,
) -> Result<(), Error> {
    let mut number = 0;
    for file in files {
        let ground = Ground { real, hub, file };
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
    real: &'g Server,
    hub: &'g Server,
    file: &'g File,
}

impl Ground<'_> {
    async fn judged(
        &self,
        case: &Case,
        number: usize,
        known: &[Known],
        used: &mut [bool],
    ) -> Result<Outcome, Error> {
        let (real, hub) = self.both(case, number).await?;
        Ok(judge(case, &real, &hub, known, used))
    }

    async fn both(&self, case: &Case, number: usize) -> Result<(Vec<Heard>, Vec<Heard>), Error> {
        let words = BTreeMap::from([
            ("ns".to_owned(), format!("case-{number}")),
            ("id".to_owned(), format!("c{number}")),
        ]);
        if mentions(case, "ns") {
            for server in [self.real, self.hub] {
                self.namespace(server, &words["ns"]).await?;
            }
        }
        // Where real servers keep an object is the name of the world.
        let kept = [("Key: /peer/".to_owned(), "Key: /registry/".to_owned())];
        Ok((play(self.real, case, &words, &kept).await, play(self.hub, case, &words, &[]).await))
    }

    async fn namespace(&self, server: &Server, name: &str) -> Result<(), Error> {
        let body = json!({ "metadata": { "name": name } }).to_string().into_bytes();
        let request = http::Request::post("/api/v1/namespaces").header("content-type", "application/json");
        let ground =
            |why: String| Error::Ground(format!("the namespace {name} for {}: {why}", self.file.name));
        let request = request.body(body.into()).map_err(|error| ground(error.to_string()))?;
        let answer = server.send("", request).await.map_err(ground)?;
        if answer.status() == 201 { Ok(()) } else { Err(ground(format!("{} was answered", answer.status()))) }
    }
}

fn judge(case: &Case, real: &[Heard], hub: &[Heard], known: &[Known], used: &mut [bool]) -> Outcome {
    let mut differences = Vec::new();
    for (real, hub) in real.iter().zip(hub) {
        let step = &case.steps[real.step];
        let found: Vec<Difference> = difference::between(&real.answer, &hub.answer)
            .into_iter()
            .filter(|found| {
                let row = known.iter().position(|row| row.covers(case, found));
                if let Some(row) = row {
                    used[row] = true;
                }
                row.is_none()
            })
            .collect();
        if !found.is_empty() {
            differences.push(format!("    line {}: {}", step.line, step.text));
            differences.extend(found.iter().map(|found| format!("      {found}")));
        }
    }
    let requests = case.steps.iter().filter(|step| !matches!(step.action, Action::Let { .. })).count();
    Outcome { case: case.to_string(), answers: requests, took: Duration::ZERO, differences }
}
