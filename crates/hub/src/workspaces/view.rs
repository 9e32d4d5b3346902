//! The view of an export: its kinds, and what its claims were granted, in all workspaces that are bound to it.

use std::sync::{Arc, PoisonError, RwLock};

use mailboat_machinery::{Kind, ListRequest, Machine, Stored, Within};
use mailboat_object::select::Labels as _;
use mailboat_object::{ClusterId, Key, KindId, Name, Version};

use super::index::Index;
use super::waiting::{self, Waiting};
use super::{Workspaces, binding, claims, tree};

/// Reading, which an export's owner may do with the bindings to it.
const READING: [&str; 3] = ["get", "list", "watch"];

/// The view of one export.
#[derive(Debug)]
pub struct View {
    /// The export.
    pub export: Key,
}

/// One kind in a view: what is seen of it.
#[derive(Debug)]
pub struct Seen {
    export: Key,
    kind: KindId,
    how: How,
    index: Arc<RwLock<Index>>,
}

/// Why something is seen.
#[derive(Debug)]
enum How {
    /// It is of a kind of the export.
    Own,
    /// It bears the label of a claim.
    Claimed(Name, Name),
    /// It is a binding to the export, or bears the label.
    Binding(Name),
    /// It waits for this initializer.
    Waiting(Name),
}

impl View {
    /// The view of an export in a workspace.
    pub fn of(workspace: &ClusterId, export: &str) -> Self {
        Self { export: super::key(workspace, super::export::kind(), "", export) }
    }

    /// The kinds of a view: the export's own, those that it claims, and bindings, of which its own are always seen.
    pub fn kinds(&self, workspaces: &Workspaces, machine: &Machine) -> Vec<Arc<Kind>> {
        let Ok(export) = machine.get(&self.export) else { return Vec::new() };
        let mut kinds = own_kinds(workspaces, machine, &export);
        let claimed =
            claims::of(export.body()).map(|claim| (claims::kind_of(claim), claims::identity_of(claim)));
        for (id, identity) in claimed.chain([(binding::kind(), "")]) {
            let own = || workspaces.universal.get(&id).cloned();
            // A kind of another export, which is found by its identity.
            let others = || {
                let request = ListRequest { kind: super::export::kind(), ..ListRequest::default() };
                let exports = machine.list(&request).map(|list| list.items).unwrap_or_default();
                let meant = |export: &&Arc<Stored>| export.body()["status"]["identityHash"] == identity;
                let offered = exports.iter().filter(meant);
                let mut kinds = offered.flat_map(|export| binding::kinds_of(workspaces, machine, export));
                kinds.find(|(kind, _)| kind.id == id).map(|(kind, _)| kind)
            };
            if !kinds.iter().any(|kind| kind.id == id) {
                kinds.extend(own().or_else(others));
            }
        }
        kinds
    }

    /// What is seen of a kind.
    pub fn seen(&self, workspaces: &Workspaces, machine: &Machine, kind: &KindId) -> Seen {
        let export = machine.get(&self.export).ok();
        let own = export
            .is_some_and(|export| own_kinds(workspaces, machine, &export).iter().any(|own| own.id == *kind));
        let label = || claims::label_of(&self.export);
        let kind = &claims::kept(kind.clone());
        let how = match own {
            true => How::Own,
            false if *kind == binding::kind() => How::Binding(label()),
            false => How::Claimed(label(), claims::value_of(kind)),
        };
        Seen { export: self.export.clone(), kind: kind.clone(), how, index: Arc::clone(&workspaces.index) }
    }

    /// Whether its claims name a verb on a kind, which is not one of its own.
    pub(crate) fn claims(&self, machine: &Machine, kind: &KindId, verb: &str) -> bool {
        let Ok(export) = machine.get(&self.export) else { return false };
        claims::of(export.body()).any(|claim| claims::kind_of(claim) == *kind && claims::allows(claim, verb))
            || (*kind == binding::kind() && READING.contains(&verb))
    }

    /// Whether the export's owner may do this with a kind in a cluster, by the word of the binding there.
    pub(crate) fn is_granted(
        &self,
        workspaces: &Workspaces,
        machine: &Machine,
        cluster: &ClusterId,
        kind: &KindId,
        verb: &str,
    ) -> bool {
        let request =
            ListRequest { cluster: Some(cluster.clone()), kind: binding::kind(), ..ListRequest::default() };
        let bindings = machine.list(&request).map(|list| list.items).unwrap_or_default();
        let bound = |binding: &&Arc<Stored>| is_bound(&workspaces.index, binding, &self.export);
        let export = machine.get(&self.export).ok();
        // Of several bindings to one export, only one has its kinds.
        bindings.iter().filter(bound).any(|binding| {
            let said = binding.body();
            let mut bound = said["status"]["boundResources"].as_array().into_iter().flatten();
            bound.any(|bound| claims::kind_of(bound) == *kind)
                || export.as_ref().is_some_and(|export| claims::allow(said, export.body(), kind, verb))
                || (*kind == binding::kind() && READING.contains(&verb))
        })
    }
}

impl Seen {
    /// What is seen of workspaces by those for whom they wait.
    pub(crate) fn waiting(workspaces: &Workspaces, waiting: &Waiting) -> Self {
        let how = How::Waiting(waiting.initializer.clone());
        let index = Arc::clone(&workspaces.index);
        Self { export: waiting.of.clone(), kind: tree::logical_cluster(), how, index }
    }

    /// Whether it is a kind of the export's own.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.how, How::Own)
    }

    /// Whether a cluster shows anything of the kind now, even if nothing is there.
    pub(crate) fn is_granted(&self, machine: &Machine, cluster: &ClusterId) -> bool {
        match &self.how {
            How::Own => self.takes_cluster(cluster, machine.version()),
            How::Claimed(label, _) => machine
                .marks(cluster)
                .and_then(|marks| marks.get(&self.kind))
                .is_some_and(|marks| marks.iter().any(|mark| mark.label == *label)),
            How::Waiting(_) => true,
            How::Binding(_) => {
                let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
                index.is_bound(cluster, &self.export)
            }
        }
    }
}

/// The kinds that an export offers, without those that are the server's own everywhere.
fn own_kinds(workspaces: &Workspaces, machine: &Machine, export: &Stored) -> Vec<Arc<Kind>> {
    let offered = binding::kinds_of(workspaces, machine, export).into_iter().map(|(kind, _)| kind);
    offered.filter(|kind| !workspaces.universal.contains_key(&kind.id)).collect()
}

impl Within for Seen {
    fn takes_cluster(&self, cluster: &ClusterId, at: Version) -> bool {
        match self.how {
            How::Own => {
                let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
                index.was_served(cluster, &self.export, &self.kind, at)
            }
            How::Claimed(..) | How::Binding(_) | How::Waiting(_) => true,
        }
    }

    fn takes(&self, object: &Stored) -> bool {
        match &self.how {
            How::Own => true,
            How::Claimed(label, value) => {
                object.label_value(label).is_some_and(|found| found == value.as_str())
            }
            How::Binding(label) => {
                is_bound(&self.index, object, &self.export) || object.label_value(label).is_some()
            }
            How::Waiting(initializer) => waiting::is_awaited(object, initializer),
        }
    }

    fn takes_all(&self) -> bool {
        self.is_own()
    }
}

/// Whether a binding is bound to an export, or was, in a workspace that serves the export's kinds, or did. It goes on resting:
/// there are some for each workspace, and no view is to parse those of all.
fn is_bound(index: &RwLock<Index>, binding: &Stored, export: &Key) -> bool {
    let says = |path: &[&str], name: &Name| binding.text_at(path).is_some_and(|text| text == name.as_str());
    says(&["status", "apiExportClusterName"], &export.cluster.0)
        && says(&["spec", "reference", "export", "name"], &export.name)
        && index.read().unwrap_or_else(PoisonError::into_inner).was_ever_bound(&binding.key.cluster, export)
}
