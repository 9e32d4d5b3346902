//! `world.json`: what another process needs to know to use a running world.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::center::Center;
use crate::edge::Edge;
use crate::error::{Doing, Error, Result};
use crate::files::write_private;
use crate::part::{Part, PartKind, Probe};
use crate::place::Place;
use crate::world::World;

const FILE: &str = "world.json";

/// A world on disk. Folders are relative to the world's own; a place's folder holds its `ca.pem`, its users'
/// `tokens/` and their `kubeconfigs/`, and a part's folder its `log` and `process.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorldState {
    center: Option<PlaceState>,
    edges: Vec<EdgeState>,
    parts: Vec<PartState>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PlaceState {
    name: String,
    url: String,
    folder: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct EdgeState {
    #[serde(flatten)]
    place: PlaceState,
    etcd: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PartState {
    name: String,
    kind: PartKind,
    port: u16,
    folder: PathBuf,
}

impl WorldState {
    pub(crate) fn of(world: &World) -> Self {
        let relative = |path: &Path| path.strip_prefix(world.folder()).unwrap_or(path).to_owned();
        let place = |place: &Place| PlaceState {
            name: place.name().to_owned(),
            url: place.url().to_owned(),
            folder: relative(place.folder()),
        };
        let edge =
            |edge: &Edge| EdgeState { place: place(edge.place()), etcd: edge.etcd().name().to_owned() };
        let part = |part: &&Part| PartState {
            name: part.name().to_owned(),
            kind: part.kind(),
            port: part.port(),
            folder: relative(part.folder()),
        };
        Self {
            center: world.has_center().map(|center| place(center.place())),
            edges: world.edges().iter().map(edge).collect(),
            parts: world.parts().iter().map(part).collect(),
        }
    }

    /// Whether a folder holds a world.
    pub(crate) fn is_in(folder: &Path) -> bool {
        folder.join(FILE).exists()
    }

    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(FILE);
        let text = serde_json::to_string_pretty(self).map_err(|error| malformed(&path, &error))?;
        write_private(&path, &text)
    }

    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let text = fs::read_to_string(&path).doing("reading", &path)?;
        serde_json::from_str(&text).map_err(|error| malformed(&path, &error))
    }

    /// The places and parts, as a process sees them that did not start them.
    pub(crate) fn open(&self, folder: &Path) -> Result<(Option<Center>, Vec<Edge>)> {
        let mut center = None;
        if let Some(state) = &self.center {
            let place = state.open(folder)?;
            let kcp = self.one_part_of(state, &[PartKind::Kcp, PartKind::Hub])?.open(folder, Some(&place))?;
            center = Some(Center::joined(place, kcp));
        }
        let mut etcds: BTreeMap<&str, Arc<Part>> = BTreeMap::new();
        for part in self.parts.iter().filter(|part| part.kind == PartKind::Etcd) {
            etcds.insert(&part.name, Arc::new(part.open(folder, None)?));
        }
        let mut edges = Vec::new();
        for state in &self.edges {
            let place = state.place.open(folder)?;
            let servers = [PartKind::KubeApiserver, PartKind::Hub];
            let apiserver = Arc::new(self.one_part_of(&state.place, &servers)?.open(folder, Some(&place))?);
            if apiserver.kind() == PartKind::Hub {
                edges.push(Edge::joined(place, Arc::clone(&apiserver), apiserver, Vec::new()));
                continue;
            }
            let etcd = etcds.get(state.etcd.as_str()).ok_or_else(|| missing(&state.etcd))?;
            let others = self
                .parts_of(&state.place)
                .filter(|part| !matches!(part.kind, PartKind::KubeApiserver | PartKind::Etcd));
            let others = others.map(|part| part.open(folder, Some(&place))).collect::<Result<_>>()?;
            edges.push(Edge::joined(place, Arc::clone(etcd), apiserver, others));
        }
        Ok((center, edges))
    }

    fn parts_of(&self, place: &PlaceState) -> impl Iterator<Item = &PartState> {
        self.parts.iter().filter(move |part| part.name.split('/').next() == Some(&place.name))
    }

    fn one_part_of(&self, place: &PlaceState, kinds: &[PartKind]) -> Result<&PartState> {
        self.parts_of(place)
            .find(|part| kinds.contains(&part.kind))
            .ok_or_else(|| missing(&format!("{kinds:?} of {}", place.name)))
    }
}

impl PlaceState {
    fn open(&self, world: &Path) -> Result<Place> {
        Place::open(&self.name, world.join(&self.folder), self.url.clone())
    }
}

impl PartState {
    fn open(&self, world: &Path, place: Option<&Place>) -> Result<Part> {
        let probe = Probe::new(self.kind, self.port, place)?;
        Ok(Part::joined(self.kind, self.name.clone(), world.join(&self.folder), self.port, probe))
    }
}

fn malformed(path: &Path, error: &serde_json::Error) -> Error {
    Error::Malformed { what: path.display().to_string(), why: error.to_string() }
}

fn missing(what: &str) -> Error {
    Error::Malformed { what: FILE.to_owned(), why: format!("it does not say where {what} is") }
}
