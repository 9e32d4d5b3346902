//! What is true, beside the servers: how each source ended, what was selected when, and what is foreign.
//!
//! The oracle asks it whether a deletion was right. A process knows the world as of some moment in the past, and
//! may rightly act on that: so every state of the configuration and of the sources is kept, numbered, and each
//! answer of a server carries the number of the state that it shows. A withdrawal because nothing selects the
//! object is right if some state, from the oldest that the process still builds on until now, does not select
//! it. A withdrawal because the source is gone is right if the last fresh look at it met a state in which a user
//! had deleted it, and nothing else had taken it away.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_object::key::{Key, Uid, Version};
use serde_json::Value;

use crate::roles::configured_by;
use crate::script::Workspace;

/// How a source came to be no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// A user deleted it.
    ByUser,
    /// It went with its kind's definition, with its workspace, or with what came after a backup: nobody meant it.
    Lost,
}

/// A source as users left it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Source {
    /// Its label; of its last life, if it is gone.
    pub(crate) label: String,
    /// How it ended, if it did.
    pub(crate) ended: Option<Ending>,
    /// How many objects of this name there were before it.
    pub(crate) life: u32,
}

/// What is not ours, as it was last left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Foreign {
    pub(crate) uid: Uid,
    pub(crate) spec: Value,
    /// It was ours, and was let go of: that we wrote it once still shows.
    pub(crate) left: bool,
}

/// A placement as users left it: label and edges.
pub(crate) type Placement = (String, Vec<u8>);

/// How a workspace stands.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct WorkspaceState {
    pub(crate) dying: bool,
    pub(crate) gone: bool,
    pub(crate) kind_dropped: bool,
    /// Which definition of the boats it has: another number is another definition.
    pub(crate) identity: u32,
}

/// Configuration and sources at one moment.
#[derive(Clone, Default, Debug)]
struct State {
    placements: Placements,
    sources: Sources,
}

/// All that is true.
#[derive(Clone, Default)]
pub(crate) struct Truth {
    pub(crate) placements: Placements,
    pub(crate) sources: Sources,
    workspaces: BTreeMap<Workspace, WorkspaceState>,
    /// Which identity the export has.
    pub(crate) identity: u32,
    /// Every state so far.
    history: Vec<Arc<State>>,
    /// What users made at edges, or was let go of there, by key.
    pub(crate) foreign: BTreeMap<Key, Foreign>,
    /// What had been lost before the center was restored from a backup: nobody who forgot it then can tell why it is
    /// missing afterwards.
    pub(crate) lost_before: BTreeSet<(Workspace, String)>,
    /// The center's version before it was last restored from a backup.
    pub(crate) restored_from: Option<Version>,
}

impl Truth {
    /// The number of the present state.
    pub(crate) fn number(&self) -> usize {
        self.history.len()
    }

    pub(crate) fn workspace(&self, workspace: Workspace) -> WorkspaceState {
        self.workspaces.get(&workspace).copied().unwrap_or_default()
    }

    pub(crate) fn workspace_mut(&mut self, workspace: Workspace) -> &mut WorkspaceState {
        self.workspaces.entry(workspace).or_default()
    }

    pub(crate) fn source_put(&mut self, workspace: Workspace, name: &str, label: &str) {
        let before = self.sources.get(&(workspace, name.to_owned()));
        let life = before.map_or(0, |before| before.life + u32::from(before.ended.is_some()));
        let source = Source { label: label.to_owned(), ended: None, life };
        self.sources.insert((workspace, name.to_owned()), source);
        self.note();
    }

    pub(crate) fn source_gone(&mut self, workspace: Workspace, name: &str, how: Ending) {
        if let Some(source) = self.sources.get_mut(&(workspace, name.to_owned())) {
            source.ended = Some(how);
        }
        self.note();
    }

    pub(crate) fn placed(&mut self, name: &str, label: &str, edges: &[u8]) {
        self.placements.insert(name.to_owned(), (label.to_owned(), edges.to_vec()));
        self.note();
    }

    pub(crate) fn displaced(&mut self, name: &str) {
        self.placements.remove(name);
        self.note();
    }

    /// The center is as a backup says. What was made since then is lost; what was deleted is back.
    pub(crate) fn restored(&mut self, backup: Self, version: Version) {
        let lost = |source: &Source| source.ended == Some(Ending::Lost);
        let before = self.sources.iter().filter(|(_, source)| lost(source)).map(|(name, _)| name.clone());
        self.lost_before.extend(before);
        let mut sources = backup.sources;
        for (name, source) in std::mem::take(&mut self.sources) {
            // What the backup knows to be deleted by its user is so again, even if it was made anew since.
            let ended = Some(source.ended.unwrap_or(Ending::Lost));
            sources.entry(name).or_insert(Source { ended, ..source });
        }
        self.sources = sources;
        self.placements = backup.placements;
        self.workspaces = backup.workspaces;
        self.identity = backup.identity;
        self.restored_from = self.restored_from.max(Some(version));
        self.note();
    }

    pub(crate) fn present_sources(&self, workspace: Workspace) -> Vec<String> {
        let here = self.sources.iter().filter(|((of, _), source)| *of == workspace && source.ended.is_none());
        here.map(|((_, name), _)| name.clone()).collect()
    }

    /// How a source ended, if it did or never was.
    pub(crate) fn ending(&self, workspace: Workspace, name: &str) -> Option<Ending> {
        self.sources.get(&(workspace, name.to_owned())).map_or(Some(Ending::ByUser), |source| source.ended)
    }

    /// How many objects of this name there were before the last.
    pub(crate) fn life(&self, workspace: Workspace, name: &str) -> u32 {
        self.sources.get(&(workspace, name.to_owned())).map_or(0, |source| source.life)
    }

    /// Whether a source is selected to an edge now.
    pub(crate) fn selects(&self, workspace: Workspace, name: &str, edge: u8) -> bool {
        selects(&self.placements, &self.sources, workspace, name, edge)
    }

    /// What asks for a source at an edge first: a placement, or what tells a route to carry all.
    pub(crate) fn asker(&self, workspace: Workspace, name: &str, edge: u8) -> Option<String> {
        if !self.selects(workspace, name, edge) {
            return None;
        }
        let label = self.sources.get(&(workspace, name.to_owned())).map(|source| &source.label);
        let places =
            |(_, (selected, edges)): &(&String, &Placement)| Some(selected) == label && edges.contains(&edge);
        let placement = || self.placements.iter().find(places).map(|(name, _)| name.clone());
        configured_by(workspace).map(str::to_owned).or_else(placement)
    }

    /// Whether the configuration selected a source at one of the states from one to another.
    pub(crate) fn selected_once(
        &self,
        states: [usize; 2],
        workspace: Workspace,
        name: &str,
        edge: u8,
    ) -> bool {
        let [from, to] = states;
        let read = self.history.iter().take(to).skip(from.saturating_sub(1));
        from > 0 && read.into_iter().any(|state| state.selects(workspace, name, edge))
    }

    /// Whether whoever has read so much may rightly think that nothing selects a source to an edge.
    pub(crate) fn deselected(&self, read: Read, workspace: Workspace, name: &str, edge: u8) -> bool {
        if read.configuration == 0 {
            return false;
        }
        let since = |number: usize| {
            let from = number.saturating_sub(1).min(self.history.len().saturating_sub(1));
            self.history.iter().skip(from)
        };
        // At one moment nothing selected it: this is right, whatever was read of its source.
        let source = (workspace, name.to_owned());
        if configured_by(workspace).is_some() {
            return since(read.configuration).any(|state| !state.selects(workspace, name, edge));
        }
        let mut configurations = since(read.configuration);
        if configurations.clone().any(|state| !state.selects(workspace, name, edge) || !state.goes_to(edge)) {
            return true;
        }
        // Configuration and sources come by links of their own, and one may be a little behind the other.
        let Some(sources) = read.sources else { return false };
        configurations.any(|configuration| {
            since(sources).any(|state| match state.sources.get(&source) {
                Some(source) => !configuration.places(&source.label, edge),
                None => true,
            })
        })
    }

    /// Whether what stands in a slot is no longer ours, and was.
    pub(crate) fn was_let_go(&self, slot: &Key) -> bool {
        self.foreign.get(slot).is_some_and(|foreign| foreign.left)
    }

    fn note(&mut self) {
        let state = State { placements: self.placements.clone(), sources: self.sources.clone() };
        self.history.push(Arc::new(state));
    }
}

/// How far somebody has read the workload workspace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    /// The oldest state that its knowledge of the configuration may be of; 0 if it has none.
    pub(crate) configuration: usize,
    /// The same of the sources; none if it knows that it knows too little of them.
    pub(crate) sources: Option<usize>,
}

impl State {
    fn goes_to(&self, edge: u8) -> bool {
        self.placements.values().any(|(_, edges)| edges.contains(&edge))
    }

    fn places(&self, label: &str, edge: u8) -> bool {
        places(&self.placements, label, edge)
    }

    fn selects(&self, workspace: Workspace, name: &str, edge: u8) -> bool {
        selects(&self.placements, &self.sources, workspace, name, edge)
    }
}

type Placements = BTreeMap<String, Placement>;
type Sources = BTreeMap<(Workspace, String), Source>;

fn places(placements: &Placements, label: &str, edge: u8) -> bool {
    placements.values().any(|(selected, edges)| *selected == label && edges.contains(&edge))
}

/// Whether a source is selected, by its label: that of its last life, if it is gone, since its going alone
/// changes no configuration.
fn selects(placements: &Placements, sources: &Sources, workspace: Workspace, name: &str, edge: u8) -> bool {
    match workspace {
        Workspace::Mailbox | Workspace::Bound(_) => {
            edge == 0 && configured_by(workspace).is_some_and(|name| placements.contains_key(name))
        }
        Workspace::Workload => {
            let source = sources.get(&(workspace, name.to_owned()));
            source.is_some_and(|source| places(placements, &source.label, edge))
        }
    }
}
