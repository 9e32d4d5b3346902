//! Bindings: kinds of another workspace's export, served in this one.
//!
//! A kind belongs to whoever had it first: to the server, to a definition of the workspace's own, or to a binding. Another binding
//! does not get it, and says so in its conditions, as in kcp. Else whoever offers a kind called `secrets` would own the
//! secrets of all who are bound to him.

use std::sync::Arc;

use mailboat_machinery::kind::NameRule;
use mailboat_machinery::machine::kind_from_definition;
use mailboat_machinery::{Kind, ListRequest, Machine, Stored};
use mailboat_object::wire::Part;
use mailboat_object::{ClusterId, Key, KindId, Name};
use serde_json::{Value, json};

use super::{Round, Workspaces, claims, conditions, export, finalizers, has_finalizer, key, tree, types};

const FINALIZER: &str = "apis.kcp.io/apibinding-finalizer";
const UP_TO_DATE: &str = "BindingUpToDate";
const INITIAL: &str = "InitialBindingCompleted";
/// Why a kind is not bound that another has.
const CONFLICTS: &str = "NamingConflicts";

pub(crate) fn kind() -> KindId {
    KindId::new("apis.kcp.io", "apibindings")
}

fn schemas() -> KindId {
    KindId::new("apis.kcp.io", "apiresourceschemas")
}

/// The export that a binding refers to, whether or not it is there; none if its workspace is not.
pub(crate) fn export_of(machine: &Machine, binding: &Stored) -> Option<Key> {
    let reference = &binding.body()["spec"]["reference"]["export"];
    let name = reference["name"].as_str()?;
    match reference["path"].as_str() {
        None | Some("") => Some(key(&binding.key.cluster, export::kind(), "", name)),
        Some(path) => export_at(machine, path, name),
    }
}

/// An export by the path or id of its workspace, whether or not it is there; none if its workspace is not.
pub(crate) fn export_at(machine: &Machine, path: &str, name: &str) -> Option<Key> {
    Some(key(&tree::resolve(machine, path)?, export::kind(), "", name))
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
    workspaces: &Workspaces,
    machine: &Machine,
    export: &Stored,
) -> Vec<(Arc<Kind>, Arc<Stored>)> {
    let mut kinds = Vec::new();
    for name in export::schema_names(export.body()) {
        let Ok(schema) = machine.get(&key(&export.key.cluster, schemas(), "", &name)) else { continue };
        if let Some(kind) = workspaces.cached(&schema.uid.to_string(), || kind_of(schema.body())) {
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
        let identity = export.body()["status"]["identityHash"].clone();
        let (mut bound, mut fresh) = (Vec::new(), Vec::new());
        let (mut served, mut withheld, mut conflict) = (Vec::new(), Vec::new(), None);
        let kinds = kinds_of(self.workspaces, self.machine, &export);
        let taken = self.taken_by_others(binding, &kinds);
        for (kind, schema) in kinds {
            if let Some(why) = taken.iter().find_map(|taken| taken.conflict(&kind)) {
                withheld.push(kind.id.clone());
                conflict.get_or_insert(format!("Unable to bind APIs: {why}"));
                continue;
            }
            served.push(kind.id.clone());
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
        let at = self.machine.version();
        self.workspaces.index_mut().bind(&binding.key, &export.key, &served, &withheld, at);
        let (free, why) = (conflict.is_none(), conflict.unwrap_or_default());
        // What was bound once was bound, whatever an export offers later.
        let begun = free || has_condition(binding, INITIAL);
        let wanted = [
            ("APIExportValid", true, "", ""),
            (UP_TO_DATE, free, CONFLICTS, why.as_str()),
            (INITIAL, begun, CONFLICTS, why.as_str()),
            ("PermissionClaimsApplied", true, "", ""),
            ("PermissionClaimsValid", true, "", ""),
            ("Ready", begun, CONFLICTS, why.as_str()),
        ];
        let applied: Vec<Value> =
            claims::accepted(binding.body(), export.body()).map(without_state).collect();
        let status = json!({ "status": {
            "phase": if free { "Bound" } else { "Binding" }, "apiExportClusterName": *export.key.cluster.0,
            "boundResources": if bound.is_empty() { Value::Null } else { bound.into() },
            "appliedPermissionClaims": if applied.is_empty() { Value::Null } else { applied.into() },
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
        let bound = binding.body()["status"]["boundResources"].as_array().cloned().unwrap_or_default();
        let kinds: Vec<KindId> = bound
            .iter()
            .map(claims::kind_of)
            // Whatever is written there, what the server has by itself stays.
            .filter(|kind| !self.workspaces.universal.contains_key(kind))
            .collect();
        // Whoever watches sees them go before the kind goes.
        if self.delete_all(&binding.key.cluster, kinds.iter().cloned()).found {
            return;
        }
        for kind in &kinds {
            self.machine.stop_serving(&binding.key.cluster, kind);
        }
        let at = self.machine.version();
        self.workspaces.index_mut().unbind(&binding.key, at);
        let patch = json!({ "metadata": { "finalizers": finalizers(binding, None, Some(FINALIZER)) } });
        self.patch(&binding.key, Part::Whole, &patch);
    }

    /// The kinds of a workspace that are not free for a binding, as far as they are of the same groups as those that it brings.
    fn taken_by_others(&self, binding: &Stored, brought: &[(Arc<Kind>, Arc<Stored>)]) -> Vec<Taken> {
        let concerns = |id: &KindId| brought.iter().any(|(kind, _)| kind.id.group() == id.group());
        let mut taken = Vec::new();
        let mut take = |kind: &Arc<Kind>, by: String| taken.push(Taken { kind: Arc::clone(kind), by });
        for kind in self.workspaces.universal.values().filter(|kind| concerns(&kind.id)) {
            take(kind, format!("the server's own {}", named(&kind.id)));
        }
        let cluster = &binding.key.cluster;
        for kind in self.machine.kinds(cluster).filter(|kind| kind.definition.is_some() && concerns(&kind.id))
        {
            take(kind, format!("CustomResourceDefinition {:?}", named(&kind.id)));
        }
        for other in self.all(cluster, &kind()).iter().filter(|other| other.key != binding.key) {
            let bound = other.body()["status"]["boundResources"].as_array().into_iter().flatten();
            let bound: Vec<KindId> = bound.map(claims::kind_of).filter(concerns).collect();
            if bound.is_empty() {
                continue;
            }
            let reference = &other.body()["spec"]["reference"]["export"];
            let local = reference["path"].as_str().is_none_or(str::is_empty);
            let to = types::told(reference);
            let to = if local { format!("local APIExport {to:?}") } else { format!("APIExport {to}") };
            let by = format!("APIBinding {:?} bound to {to}", other.key.name.as_str());
            let export = export_of(self.machine, other).and_then(|key| self.machine.get(&key).ok());
            let offered = export.map(|export| kinds_of(self.workspaces, self.machine, &export));
            for (kind, _) in offered.iter().flatten().filter(|(kind, _)| bound.contains(&kind.id)) {
                take(kind, by.clone());
            }
            // Of an export that is gone, or offers other kinds by now, the kinds are served until it is unbound.
            let served = bound.iter().filter_map(|id| self.machine.kind(cluster, id));
            for kind in served.filter(|kind| kind.definition.is_none()) {
                take(kind, by.clone());
            }
        }
        taken
    }

    /// Tries again to bind what others had until now.
    pub(super) fn follow_conflicts(&mut self, cluster: &ClusterId) {
        for binding in self.all(cluster, &kind()) {
            let mut said = binding.body()["status"]["conditions"].as_array().into_iter().flatten();
            if said.any(|condition| condition["reason"] == CONFLICTS) {
                self.follow_binding(&binding);
            }
        }
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

/// A kind that somebody has already.
struct Taken {
    kind: Arc<Kind>,
    by: String,
}

impl Taken {
    /// Why another kind cannot be served beside it; none: it can. kcp asks for the same names, in the same words.
    fn conflict(&self, other: &Kind) -> Option<String> {
        if self.kind.id.group() != other.id.group() {
            return None;
        }
        let naming = &self.kind.naming;
        let has = |name: &str| {
            name == self.kind.id.resource()
                || name == naming.singular.as_str()
                || naming.short.iter().any(|short| short.as_str() == name)
        };
        let has_kind = |name: &str| name == self.kind.name.as_str() || name == naming.list.as_str();
        let (plural, singular) = (other.id.resource(), other.naming.singular.as_str());
        let (kind, list) = (other.name.as_str(), other.naming.list.as_str());
        let clash = if has(plural) {
            format!("spec.names.plural={plural}")
        } else if has(singular) {
            format!("spec.names.singular={singular}")
        } else if other.naming.short.iter().any(|short| has(short)) {
            let short: Vec<&str> = other.naming.short.iter().map(Name::as_str).collect();
            format!("spec.names.shortNames=[{}]", short.join(" "))
        } else if has_kind(kind) {
            format!("spec.names.kind={kind}")
        } else if has_kind(list) {
            format!("spec.names.listKind={list}")
        } else {
            return None;
        };
        Some(format!("naming conflict with {}: {clash} is forbidden", self.by))
    }
}

/// A kind in one word.
fn named(kind: &KindId) -> String {
    if kind.group().is_empty() {
        kind.resource().to_owned()
    } else {
        format!("{}.{}", kind.resource(), kind.group())
    }
}

/// Whether a condition holds by now.
fn has_condition(binding: &Stored, what: &str) -> bool {
    let mut conditions = binding.body()["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == what && condition["status"] == "True")
}

/// The binding of a workspace that serves a kind.
pub(crate) fn server_of(machine: &Machine, cluster: &ClusterId, id: &KindId) -> Option<Name> {
    let request = ListRequest { cluster: Some(cluster.clone()), kind: kind(), ..ListRequest::default() };
    let bindings = machine.list(&request).map(|list| list.items).unwrap_or_default();
    let serves = |binding: &&Arc<Stored>| {
        let mut bound = binding.body()["status"]["boundResources"].as_array().into_iter().flatten();
        bound.any(|bound| claims::kind_of(bound) == *id)
    };
    bindings.iter().find(serves).map(|binding| binding.key.name.clone())
}

fn without_state(claim: &Value) -> Value {
    let mut claim = claim.clone();
    if let Value::Object(members) = &mut claim {
        members.remove("state");
    }
    claim
}
