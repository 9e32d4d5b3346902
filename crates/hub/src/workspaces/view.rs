//! The view of an export: its kinds, and what its claims were granted, in all workspaces that are bound to it.

use std::sync::Arc;

use mailboat_machinery::{Kind, ListRequest, Machine, Stored, Within};
use mailboat_object::{ClusterId, Key, KindId};
use serde_json::Value;

use super::{Workspaces, binding};

/// The view of one export.
#[derive(Debug)]
pub(crate) struct View {
    /// The export.
    pub export: Key,
}

/// One kind in a view: which workspaces it is seen in.
#[derive(Debug)]
pub(crate) struct Seen {
    export: Key,
    /// The kind, if it is seen by a claim.
    claimed: Option<KindId>,
}

impl View {
    /// The view of an export in a workspace.
    pub(crate) fn of(workspace: &ClusterId, export: &str) -> Self {
        Self { export: super::key(workspace, super::export::kind(), "", export) }
    }

    /// The kinds of a view: the export's own, and those that it claims.
    pub(crate) fn kinds(&self, workspaces: &Workspaces, machine: &Machine) -> Vec<Arc<Kind>> {
        let Ok(export) = machine.get(&self.export) else { return Vec::new() };
        let mut kinds: Vec<Arc<Kind>> =
            binding::kinds_of(workspaces, machine, &export).into_iter().map(|(kind, _)| kind).collect();
        for claim in export.body()["spec"]["permissionClaims"].as_array().into_iter().flatten() {
            let id = claimed(claim);
            let own = || workspaces.universal.iter().find(|kind| kind.id == id).cloned();
            // A kind of another export: whoever accepted the claim serves it.
            let others = || machine.clusters().find_map(|cluster| machine.kind(cluster, &id).cloned());
            if !kinds.iter().any(|kind| kind.id == id) {
                kinds.extend(own().or_else(others));
            }
        }
        kinds
    }

    /// In which workspaces a kind is seen.
    pub(crate) fn seen(&self, workspaces: &Workspaces, machine: &Machine, kind: &KindId) -> Seen {
        let export = machine.get(&self.export).ok();
        let own = export.is_some_and(|export| {
            binding::kinds_of(workspaces, machine, &export).iter().any(|(own, _)| own.id == *kind)
        });
        Seen { export: self.export.clone(), claimed: (!own).then(|| kind.clone()) }
    }
}

impl Within for Seen {
    fn takes(&self, machine: &Machine, cluster: &ClusterId) -> bool {
        let request =
            ListRequest { cluster: Some(cluster.clone()), kind: binding::kind(), ..ListRequest::default() };
        let Ok(bindings) = machine.list(&request) else { return false };
        bindings.items.iter().any(|binding| {
            binding.body()["status"]["phase"] == "Bound"
                && binding::export_of(machine, binding).as_ref() == Some(&self.export)
                && self.claimed.as_ref().is_none_or(|kind| accepts(binding, kind))
        })
    }
}

fn accepts(binding: &Stored, kind: &KindId) -> bool {
    let applied = binding.body()["status"]["appliedPermissionClaims"].as_array();
    applied.into_iter().flatten().any(|claim| claimed(claim) == *kind)
}

fn claimed(claim: &Value) -> KindId {
    let text = |member: &str| claim[member].as_str().unwrap_or_default();
    KindId::new(text("group"), text("resource"))
}
