//! Bindings: kinds of another workspace's export, served in this one.

use std::sync::Arc;

use mailboat_machinery::kind::NameRule;
use mailboat_machinery::machine::kind_from_definition;
use mailboat_machinery::{DeleteOptions, Kind, ListRequest, Machine, Stored};
use mailboat_object::wire::Part;
use mailboat_object::{Key, KindId};
use serde_json::{Value, json};

use super::{Round, claims, conditions, export, finalizers, has_finalizer, key, tree};

const FINALIZER: &str = "apis.kcp.io/apibinding-finalizer";

pub(crate) fn kind() -> KindId {
    KindId::new("apis.kcp.io", "apibindings")
}

fn schemas() -> KindId {
    KindId::new("apis.kcp.io", "apiresourceschemas")
}

/// The export that a binding refers to, whether or not it is there; none if its workspace is not.
pub(crate) fn export_of(machine: &Machine, binding: &Stored) -> Option<Key> {
    let reference = &binding.body()["spec"]["reference"]["export"];
    let cluster = match reference["path"].as_str() {
        None | Some("") => binding.key.cluster.clone(),
        Some(path) => tree::resolve(machine, path)?,
    };
    Some(key(&cluster, export::kind(), "", reference["name"].as_str()?))
}

/// A kind as a schema describes it.
fn kind_of(schema: &Value) -> Option<Kind> {
    let mut definition = json!({ "spec": schema["spec"] });
    for version in definition["spec"]["versions"].as_array_mut().into_iter().flatten() {
        // Schemas stand one level higher here than in a custom resource definition.
        let schema = version["schema"].take();
        version["schema"] = json!({ "openAPIV3Schema": schema });
    }
    let mut kind = kind_from_definition(&definition).ok()?;
    if schema["spec"]["nameValidation"] == "PathSegmentName" {
        kind.rules.names = NameRule::PathSegment;
    }
    Some(kind)
}

/// The kinds of an export, each with its schema object.
pub(super) fn kinds_of(
    round: &super::Workspaces,
    machine: &Machine,
    export: &Stored,
) -> Vec<(Arc<Kind>, Arc<Stored>)> {
    let mut kinds = Vec::new();
    for name in export::schema_names(export.body()) {
        let Ok(schema) = machine.get(&key(&export.key.cluster, schemas(), "", &name)) else { continue };
        if let Some(kind) = round.cached(&schema.uid.to_string(), || kind_of(schema.body())) {
            kinds.push((kind, schema));
        }
    }
    kinds
}

impl Round<'_, '_> {
    pub(super) fn follow_binding(&mut self, binding: &Stored) {
        if binding.is_deleting() {
            return self.unbind(binding);
        }
        let export = export_of(self.machine, binding).and_then(|key| self.machine.get(&key).ok());
        let Some(export) = export else {
            let wanted = [
                ("APIExportValid", false, "APIExportNotFound", "there is no such APIExport"),
                ("Ready", false, "APIExportNotFound", "there is no such APIExport"),
            ];
            let mut status = json!({ "conditions": conditions(binding.body(), &wanted, &self.now()) });
            if binding.body()["status"]["phase"] != "Bound" {
                status["phase"] = "Binding".into();
            }
            return self.patch(&binding.key, Part::Status, &json!({ "status": status }));
        };
        if !has_finalizer(binding, FINALIZER) {
            let patch = json!({ "metadata": { "finalizers": finalizers(binding, Some(FINALIZER), None) } });
            self.patch(&binding.key, Part::Whole, &patch);
        }
        self.workspaces.index_mut().bind(&binding.key.cluster, &export.key);
        let identity = export.body()["status"]["identityHash"].clone();
        let (mut bound, mut fresh) = (Vec::new(), Vec::new());
        for (kind, schema) in kinds_of(self.workspaces, self.machine, &export) {
            bound.push(json!({
                "group": kind.id.group(), "resource": kind.id.resource(),
                "schema": {
                    "name": *schema.key.name, "UID": schema.uid.to_string(), "identityHash": identity,
                },
                "storageVersions": [kind.versions.first().map(|version| version.name.as_str())],
            }));
            let same = self
                .machine
                .kind(&binding.key.cluster, &kind.id)
                .is_some_and(|served| Arc::ptr_eq(served, &kind));
            if !same {
                fresh.push(kind);
            }
        }
        self.machine.serve(&binding.key.cluster, fresh);
        let wanted = [
            ("APIExportValid", true, "", ""),
            ("BindingUpToDate", true, "", ""),
            ("InitialBindingCompleted", true, "", ""),
            ("PermissionClaimsApplied", true, "", ""),
            ("PermissionClaimsValid", true, "", ""),
            ("Ready", true, "", ""),
        ];
        let applied: Vec<Value> =
            claims::accepted(binding.body(), export.body()).map(without_state).collect();
        let status = json!({ "status": {
            "phase": "Bound", "apiExportClusterName": *export.key.cluster.0, "boundResources": bound,
            "appliedPermissionClaims": applied,
            "exportPermissionClaims": export.body()["spec"]["permissionClaims"],
            "conditions": conditions(binding.body(), &wanted, &self.now()),
        } });
        self.patch(&binding.key, Part::Status, &status);
    }

    /// Every object of a bound kind goes with its binding.
    fn unbind(&mut self, binding: &Stored) {
        if !has_finalizer(binding, FINALIZER) {
            return;
        }
        let mut left = false;
        let bound = binding.body()["status"]["boundResources"].as_array().cloned().unwrap_or_default();
        let kinds: Vec<KindId> = bound
            .iter()
            .filter_map(|bound| Some(KindId::new(bound["group"].as_str()?, bound["resource"].as_str()?)))
            .collect();
        for kind in &kinds {
            let cluster = Some(binding.key.cluster.clone());
            let request = ListRequest { cluster, kind: kind.clone(), ..ListRequest::default() };
            let deleted = self.machine.delete_collection(&request, &DeleteOptions::default(), self.moment);
            // Whoever watches sees them go before the kind goes.
            left |= deleted.is_ok_and(|deleted| !deleted.objects.is_empty());
        }
        if left {
            return;
        }
        for kind in &kinds {
            self.machine.stop_serving(&binding.key.cluster, kind);
        }
        if let Some(export) = export_of(self.machine, binding) {
            let at = self.machine.version();
            self.workspaces.index_mut().unbind(&binding.key.cluster, &export, at);
        }
        let patch = json!({ "metadata": { "finalizers": finalizers(binding, None, Some(FINALIZER)) } });
        self.patch(&binding.key, Part::Whole, &patch);
    }

    pub(super) fn follow_bindings_of(&mut self, export: &Stored) {
        for key in self.workspaces.bindings_of(self.machine, &export.key) {
            if let Ok(binding) = self.machine.get(&key) {
                self.follow_binding(&binding);
                self.follow_claims(&key.cluster);
            }
        }
    }

    pub(super) fn follow_exports_of(&mut self, binding: &Stored) {
        let export = export_of(self.machine, binding).and_then(|key| self.machine.get(&key).ok());
        if let Some(export) = export {
            self.follow_slices_of(&export);
        }
    }
}

fn without_state(claim: &Value) -> Value {
    let mut claim = claim.clone();
    if let Value::Object(members) = &mut claim {
        members.remove("state");
    }
    claim
}
