//! The testbed for a person: a world that outlives the command that starts it.
//!
//! [`up`], [`down`] and [`status`] are what `cargo xtask testbed` does. What runs is written down beside each part's
//! log, with the time of its start, so that [`down`] ends these processes and no others, even after an [`up`]
//! that was itself killed half-way.

use std::fmt::{self, Write as _};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::build::{Programs, cache_folder};
use crate::edge::EdgeSpec;
use crate::error::{Doing, Error, Result};
use crate::files::{remove_folder, write_private};
use crate::part::{Part, recorded_process};
use crate::place::ADMIN;
use crate::process::ProcessIdentity;
use crate::state::WorldState;
use crate::wait::wait_until;
use crate::world::World;

const MARKER_FILE: &str = "testbed";
const KUBECONFIG_FILE: &str = "kubeconfig.yaml";
/// Parts lie at most this deep: `<world>/<place>/<part>`.
const PART_DEPTH: u8 = 2;
const END_LIMIT: Duration = Duration::from_secs(20);
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// What the testbed consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BedSpec {
    /// Whether there is a center.
    pub center: bool,
    /// The edges' names.
    pub edges: Vec<String>,
    /// How many nodes each edge has.
    pub nodes: u16,
}

impl Default for BedSpec {
    fn default() -> Self {
        Self { center: true, edges: vec!["guilder".to_owned(), "florin".to_owned()], nodes: 2 }
    }
}

/// A testbed that is up. Its `Display` is what to export in a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bed {
    /// Where everything of it lies.
    pub folder: PathBuf,
    /// A kubeconfig with all contexts.
    pub kubeconfig: PathBuf,
    /// `center` (its root workspace) and the edges' names.
    pub contexts: Vec<String>,
    /// Where kubectl lies.
    pub programs: PathBuf,
}

/// What [`up`] found or made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Up {
    /// It was started.
    Started(Bed),
    /// It was up already, and nothing was done.
    Already(Bed),
}

/// One part of the testbed, as [`status`] sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartStatus {
    /// The part's name.
    pub name: String,
    /// Its process, while it runs.
    pub pid: Option<u32>,
    /// The port that it listens on.
    pub port: u16,
    /// Whether it says that it is ready.
    pub ready: bool,
    /// Its resident memory, while it runs.
    pub resident_bytes: Option<u64>,
}

/// Where the testbed lies unless someone says otherwise.
pub fn default_folder() -> Result<PathBuf> {
    Ok(cache_folder()?.join("bed"))
}

/// Starts a testbed in `folder`, unless it is up already. Ctrl-C ends what was started so far.
pub async fn up(folder: &Path, spec: &BedSpec) -> Result<Up> {
    let _lock = lock(folder)?;
    if WorldState::is_in(folder) {
        return already_up(folder).map(Up::Already);
    }
    clear(folder).await?;
    fs::create_dir_all(folder).doing("creating", folder)?;
    write_private(&folder.join(MARKER_FILE), "")?;
    let mut builder = World::builder().lasting_in(folder);
    if spec.center {
        builder = builder.center();
    }
    for name in &spec.edges {
        builder = builder.edge_with(EdgeSpec::new(name).with_nodes(spec.nodes));
    }
    let world = tokio::select! {
        started = builder.start() => started?,
        _ = tokio::signal::ctrl_c() => return Err(Error::Bed(format!(
            "interrupted: what was started has been ended again, and its logs are in {}", folder.display()
        ))),
    };
    let kubeconfig = merged_kubeconfig(&world)?;
    let text = serde_saphyr::to_string(&kubeconfig)
        .map_err(|error| Error::Malformed { what: KUBECONFIG_FILE.to_owned(), why: error.to_string() })?;
    write_private(&folder.join(KUBECONFIG_FILE), &text)?;
    let bed = bed_of(&world)?;
    world.release();
    Ok(Up::Started(bed))
}

/// Ends the testbed in `folder` and removes it with all its data; gives the names of the parts that were still
/// running. Nothing happens if there is none.
pub async fn down(folder: &Path) -> Result<Vec<String>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let _lock = lock(folder)?;
    clear(folder).await
}

/// How each part of the testbed in `folder` is; empty if there is none.
pub async fn status(folder: &Path) -> Result<Vec<PartStatus>> {
    if !WorldState::is_in(folder) {
        return Ok(Vec::new());
    }
    let world = World::join(folder)?;
    Ok(futures::future::join_all(world.parts().into_iter().map(part_status)).await)
}

/// The statuses as a table for a person.
pub fn table(statuses: &[PartStatus]) -> String {
    let mut text = format!("{:<34} {:>8} {:>6} {:>6} {:>9}\n", "part", "pid", "port", "ready", "memory");
    for status in statuses {
        let pid = status.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        let ready = if status.ready { "yes" } else { "no" };
        let memory =
            status.resident_bytes.map_or_else(|| "-".to_owned(), |bytes| format!("{} MB", bytes / 1_000_000));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:<34} {pid:>8} {:>6} {ready:>6} {memory:>9}", status.name, status.port);
    }
    text
}

impl fmt::Display for Bed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "export KUBECONFIG={}", quoted(&self.kubeconfig))?;
        writeln!(formatter, "export PATH={}:\"$PATH\"", quoted(&self.programs))?;
        write!(
            formatter,
            "# then, for one of {}:  kubectl --context NAME get namespaces",
            self.contexts.join(", ")
        )
    }
}

fn already_up(folder: &Path) -> Result<Bed> {
    let world = World::join(folder)?;
    let gone: Vec<&str> =
        world.parts().into_iter().filter(|part| part.process().is_none()).map(Part::name).collect();
    if gone.is_empty() {
        return bed_of(&world);
    }
    Err(Error::Bed(format!(
        "the testbed in {} is only partly up ({} ended; logs are beside it): run `cargo xtask testbed down`, then up \
         again",
        folder.display(),
        gone.join(", ")
    )))
}

fn bed_of(world: &World) -> Result<Bed> {
    let center = world.has_center().map(|_| "center".to_owned());
    Ok(Bed {
        folder: world.folder().to_owned(),
        kubeconfig: world.folder().join(KUBECONFIG_FILE),
        contexts: center.into_iter().chain(world.edges().iter().map(|edge| edge.name().to_owned())).collect(),
        programs: Programs::locate()?.kubernetes_folder()?,
    })
}

fn merged_kubeconfig(world: &World) -> Result<Value> {
    let mut accesses = Vec::new();
    if let Some(center) = world.has_center() {
        accesses.push(("center", center.access(ADMIN, "root")?));
    }
    for edge in world.edges() {
        accesses.push((edge.name(), edge.access(ADMIN)?));
    }
    let mut merged = json!({ "apiVersion": "v1", "kind": "Config" });
    merged["current-context"] = accesses.first().map_or("", |(name, _)| name).into();
    for list in ["clusters", "users", "contexts"] {
        let entries = accesses.iter().map(|(name, access)| access.kubeconfig(name)[list][0].take());
        merged[list] = entries.collect();
    }
    Ok(merged)
}

async fn part_status(part: &Part) -> PartStatus {
    let process = part.process();
    PartStatus {
        name: part.name().to_owned(),
        pid: process.as_ref().map(|process| process.pid),
        port: part.port(),
        ready: part.is_ready(ANSWER_LIMIT).await,
        resident_bytes: process.as_ref().and_then(ProcessIdentity::resident_bytes),
    }
}

/// Ends what the records in `folder` speak of, and removes the folder. The data goes with it, so there is nothing
/// that a graceful stop would save.
async fn clear(folder: &Path) -> Result<Vec<String>> {
    let mut entries = fs::read_dir(folder).into_iter().flatten();
    if entries.next().is_some() && !folder.join(MARKER_FILE).exists() {
        return Err(Error::Bed(format!(
            "{} is not empty and holds no testbed: it is left alone",
            folder.display()
        )));
    }
    let mut running = Vec::new();
    for part in part_folders(folder, PART_DEPTH) {
        if let Some(process) = recorded_process(&part).filter(ProcessIdentity::is_alive) {
            process.signal(Signal::KILL)?;
            let name = part.strip_prefix(folder).unwrap_or(&part).display().to_string();
            running.push((name, process));
        }
    }
    wait_until("the testbed's processes ended", END_LIMIT, async || {
        let left = running.iter().filter(|(_, process)| process.is_alive()).map(|(name, _)| name.as_str());
        let left: Vec<&str> = left.collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{} still run", left.join(", "))) }
    })
    .await?;
    remove_folder(folder)?;
    Ok(running.into_iter().map(|(name, _)| name).collect())
}

fn part_folders(folder: &Path, depth: u8) -> Vec<PathBuf> {
    let Some(depth) = depth.checked_sub(1) else { return Vec::new() };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.into_iter().flat_map(|path| [vec![path.clone()], part_folders(&path, depth)].concat()).collect()
}

/// Held while a command is at work.
struct Lock(fs::File);

impl Drop for Lock {
    /// Said, and not left to the file's end: a process that another thread is just starting has the file open for a moment, too.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

// Beside the folder, because the folder itself comes and goes.
fn lock(folder: &Path) -> Result<Lock> {
    let mut name = folder.as_os_str().to_owned();
    name.push(".lock");
    let path = PathBuf::from(name);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).doing("creating", parent)?;
    }
    let lock = OpenOptions::new().create(true).append(true).open(&path).doing("opening", &path)?;
    if lock.try_lock().is_err() {
        return Err(Error::Bed(format!("another command is at work on the testbed in {}", folder.display())));
    }
    Ok(Lock(lock))
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
