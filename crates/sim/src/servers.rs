//! The servers: one center with two workspaces, and the edges. What users do to them, and what is true of them.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use mailboat_engine::look::{Look, Serving, Sighted};
use mailboat_engine::mark::{MARK_ANNOTATION, OWNER_LABEL, StandardMarks};
use mailboat_engine::want::Origin;
use mailboat_machinery::builtin::kind_without_schema;
use mailboat_machinery::{
    DeleteOptions, Flavor, Kind, Machine, Moment, Patch, Seeded, Settings, Status, Stored,
};
use mailboat_object::key::{ClusterId, Key, KindId};
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Reply};
use serde_json::{Value, json};

use crate::answer::{answer, by, fault_of};
use crate::manners::Manners;
use crate::roles::{
    MAILBOX_PREFIX, OWNER, PLACE_LABEL, bindings, boats, bound, bound_prefix, configured_by, definitions,
    edge, key, mailbox, namespaces, placements, provider, skiffs, workload,
};
use crate::script::{BOUND, Script, What, Workspace};
use crate::truth::{Ending, Foreign, Truth};

/// When everything begins, in Unix seconds.
pub(crate) const BEGINNING: u64 = 1_700_000_000;

/// All servers. The first is the center, then come the edges.
pub(crate) struct Servers {
    pub(crate) machines: Vec<Machine>,
    pub(crate) truth: Truth,
    /// How each route delivers and withdraws.
    pub(crate) manners: Manners,
    /// The edge whose copies are seen by a claim.
    pub(crate) claimed: Option<u8>,
    backup: Option<(Machine, Truth)>,
    chance: Seeded,
    pub(crate) seconds: u64,
}

/// What a server did for a call of ours.
pub(crate) struct Done {
    pub(crate) answer: Result<Reply, Fault>,
    /// What stood there before.
    pub(crate) before: Option<Arc<Stored>>,
    /// Whether anything on the server is different now.
    pub(crate) changed: bool,
}

impl Servers {
    pub(crate) fn new(script: &Script, seed: u64) -> Self {
        let Script { edges, claims, manners, .. } = *script;
        let boat = || definition_of(&boats());
        let placement = || definition_of(&placements());
        let mut center = Machine::new(Settings { flavor: Flavor::Kcp, ..Settings::default() });
        let namespace = || definition_of(&namespaces());
        center.serve(&workload(), [boat(), placement(), namespace(), definition_of(&definitions())]);
        center.serve(&mailbox(), [boat(), namespace(), definition_of(&definitions())]);
        for cluster in (0..BOUND).map(bound).chain([provider()]) {
            center.serve(&cluster, [definition_of(&skiffs()), namespace(), definition_of(&bindings())]);
        }
        let mut machines = vec![center];
        for number in 0..edges {
            let claimed = claims && number + 1 == edges;
            let flavor = if claimed { Flavor::Kcp } else { Settings::default().flavor };
            let mut machine = Machine::new(Settings { flavor, ..Settings::default() });
            machine.serve(&edge(number), [boat(), namespace()]);
            if claimed {
                machine.serve(&edge(number), [definition_of(&bindings())]);
            }
            machines.push(machine);
        }
        let mut servers = Self {
            machines,
            truth: Truth::default(),
            manners,
            claimed: claims.then(|| edges - 1),
            backup: None,
            chance: Seeded(seed ^ 0x5e12_7e12),
            // What defines kinds is older than all that happens here.
            seconds: BEGINNING - 60,
        };
        for workspace in Workspace::all() {
            servers.define(workspace);
        }
        servers.answer_claim(true);
        for workspace in [Workspace::Mailbox, Workspace::Bound(0)] {
            servers.configure(workspace);
        }
        servers.seconds = BEGINNING;
        servers
    }

    /// Which server has a cluster.
    pub(crate) fn of(cluster: &ClusterId) -> usize {
        let edge = cluster.0.strip_prefix("edge").and_then(|number| number.parse::<usize>().ok());
        edge.map_or(0, |number| number + 1)
    }

    pub(crate) fn act<T>(
        &mut self,
        server: usize,
        act: impl FnOnce(&mut Machine, &mut Moment<'_>) -> T,
    ) -> Option<T> {
        let mut moment = Moment { now_seconds: self.seconds, random: &mut self.chance };
        self.machines.get_mut(server).map(|machine| act(machine, &mut moment))
    }

    /// What stands there now, if its kind is served.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Stored>> {
        self.machines.get(Self::of(&key.cluster))?.get(key).ok()
    }

    /// A user creates a source or changes its content.
    pub(crate) fn put(&mut self, workspace: Workspace, name: u8, label: u8, value: u64) {
        let name = format!("n{name}");
        let label = format!("l{label}");
        let key = source_key(workspace, &name);
        // Nothing is made of a kind whose definition goes, even while it waits for what is left of it.
        if self.is_going(&key) || self.truth.workspace(workspace).kind_dropped {
            return;
        }
        let body = json!({
            "apiVersion": "example.dev/v1", "kind": kind_name(&kind_in(workspace)),
            "metadata": { "namespace": key.namespace.as_str(), "name": name, "labels": { PLACE_LABEL: label } },
            "spec": { "v": value },
        });
        self.make_namespace(&key);
        // An update by its user changes the content alone: the label has a step of its own.
        if self.by_user(&key, &body, &json!({ "spec": { "v": value } })) {
            let label = self.label_of(&key).unwrap_or(label);
            self.truth.source_put(workspace, &name, &label);
        }
    }

    /// A user gives a source another label.
    pub(crate) fn relabel(&mut self, workspace: Workspace, name: u8, label: u8) {
        let (name, label) = (format!("n{name}"), format!("l{label}"));
        let key = source_key(workspace, &name);
        let patch = json!({ "metadata": { "labels": { PLACE_LABEL: label } } });
        if self.get(&key).is_some() && !self.is_going(&key) && self.merge(&key, &patch, Part::Whole).is_ok() {
            self.truth.source_put(workspace, &name, &label);
        }
    }

    /// A user deletes a source.
    pub(crate) fn delete(&mut self, workspace: Workspace, name: u8) {
        let name = format!("n{name}");
        let key = source_key(workspace, &name);
        if !self.is_going(&key) && self.remove(&key) {
            self.truth.source_gone(workspace, &name, Ending::ByUser);
        }
    }

    /// A user creates or changes a placement.
    pub(crate) fn place(&mut self, name: &str, label: &str, edges: &[u8]) {
        let spec = json!({ "label": label, "edges": edges });
        let body = json!({
            "apiVersion": "sim.mailboat.dev/v1", "kind": "Placement",
            "metadata": { "name": name }, "spec": spec,
        });
        if self.by_user(&key(workload(), placements(), name), &body, &json!({ "spec": spec })) {
            self.truth.placed(name, label, edges);
        }
    }

    /// A user deletes a placement.
    pub(crate) fn displace(&mut self, name: &str) {
        if self.remove(&key(workload(), placements(), name)) {
            self.truth.displaced(name);
        }
    }

    /// A user tells the route of the mailbox, or of the bound workspaces, to carry all that stands there.
    pub(crate) fn configure(&mut self, workspace: Workspace) {
        if let Some(name) = configured_by(workspace) {
            self.place(name, "", &[]);
        }
    }

    /// A user takes that back.
    pub(crate) fn unconfigure(&mut self, workspace: Workspace) {
        if let Some(name) = configured_by(workspace) {
            self.displace(name);
        }
    }

    /// A user deletes a placement and creates it under another name at once.
    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        let Some((label, edges)) = self.truth.placements.get(from).cloned() else { return };
        if from != to && self.get(&key(workload(), placements(), from)).is_some() {
            self.displace(from);
            self.place(to, &label, &edges);
        }
    }

    /// Somebody at an edge creates an object of their own, or changes whatever has that name.
    pub(crate) fn edge_put(&mut self, number: u8, name: &str, value: u64) {
        let key = key(edge(number), boats(), name);
        let body = json!({
            "apiVersion": "example.dev/v1", "kind": "Boat",
            "metadata": { "namespace": key.namespace.as_str(), "name": name }, "spec": foreign_spec(value),
        });
        self.make_namespace(&key);
        let ours = self.get(&key).is_some_and(|object| is_marked(&object));
        let mut change = if ours { json!({ "v": value }) } else { foreign_spec(value) };
        if !ours && let Some(other) = ["v", "own"].into_iter().find(|field| change.get(field).is_none()) {
            change[other] = Value::Null;
        }
        if self.by_user(&key, &body, &json!({ "spec": change }))
            && !ours
            && let Some(object) = self.get(&key)
        {
            let left =
                self.truth.foreign.get(&key).is_some_and(|known| known.left && known.uid == object.uid);
            let (uid, spec) = (object.uid.clone(), object.body()["spec"].clone());
            self.truth.foreign.insert(key, Foreign { uid, spec, left });
        }
    }

    /// Somebody at an edge deletes whatever has that name.
    pub(crate) fn edge_delete(&mut self, number: u8, name: &str) {
        let key = key(edge(number), boats(), name);
        if self.remove(&key) {
            self.truth.foreign.remove(&key);
        }
    }

    /// What runs at an edge says how it is.
    pub(crate) fn edge_status(&mut self, number: u8, name: &str, value: u8) {
        let key = key(edge(number), boats(), name);
        // Nobody but its own controller reports on a foreign object, and nothing here looks at that.
        if self.get(&key).is_some_and(|object| is_marked(&object)) {
            let _ = self.merge(&key, &json!({ "status": { "at": value } }), Part::Status);
        }
    }

    /// A kind is served, or not; its objects stay.
    pub(crate) fn serve(&mut self, workspace: Workspace, what: What, served: bool) {
        let cluster = cluster_of(workspace);
        let kind = match (what, workspace) {
            (What::Placements, Workspace::Workload) => placements(),
            _ => kind_in(workspace),
        };
        let state = self.truth.workspace(workspace);
        if state.gone || (kind != placements() && state.kind_dropped) {
            return;
        }
        let Some(center) = self.machines.first_mut() else { return };
        if served {
            center.serve(&cluster, [definition_of(&kind)]);
        } else {
            center.stop_serving(&cluster, &kind);
        }
    }

    /// The definition of the boats goes, and every boat with it, by ordinary delete events.
    pub(crate) fn drop_kind(&mut self, workspace: Workspace) {
        let state = self.truth.workspace(workspace);
        if state.gone || state.kind_dropped {
            return;
        }
        self.serve(workspace, What::Boats, true);
        self.truth.workspace_mut(workspace).kind_dropped = true;
        self.begin_to_undefine(workspace);
        self.empty(workspace, &kind_in(workspace));
        self.stop_serving_what_is_gone(workspace);
    }

    /// The boats are defined anew: another definition, of another identity.
    pub(crate) fn redefine_kind(&mut self, workspace: Workspace) {
        if self.holds_any(workspace) {
            return;
        }
        let state = self.truth.workspace_mut(workspace);
        if state.kind_dropped && !state.gone {
            state.kind_dropped = false;
            state.identity += 1;
            self.serve(workspace, What::Boats, true);
            self.undefine(workspace);
            self.define(workspace);
        }
    }

    /// A workspace is marked for deletion, and its objects go, by ordinary delete events.
    pub(crate) fn begin_drop_workspace(&mut self, workspace: Workspace) {
        self.truth.workspace_mut(workspace).dying = true;
        self.empty(workspace, &kind_in(workspace));
        if workspace == Workspace::Workload {
            self.empty(workspace, &placements());
        }
    }

    /// The workspace itself is gone. False as long as it holds something.
    pub(crate) fn end_drop_workspace(&mut self, workspace: Workspace) -> bool {
        let state = self.truth.workspace(workspace);
        if !state.dying || state.gone {
            return true;
        }
        if self.holds_any(workspace) {
            return false;
        }
        self.truth.workspace_mut(workspace).gone = true;
        self.begin_to_undefine(workspace);
        self.undefine(workspace);
        if let Some(center) = self.machines.first_mut() {
            for kind in [kind_in(workspace), placements(), namespaces(), bindings(), definitions()] {
                center.stop_serving(&cluster_of(workspace), &kind);
            }
        }
        true
    }

    pub(crate) fn empty(&mut self, workspace: Workspace, kind: &KindId) {
        let cluster = cluster_of(workspace);
        let names = if *kind == placements() {
            self.truth.placements.keys().cloned().collect()
        } else {
            self.truth.present_sources(workspace)
        };
        if let Some(center) = self.machines.first_mut() {
            // Deletion of a definition or a workspace does not ask whether its kinds are served just now.
            center.serve(&cluster, [definition_of(kind)]);
        }
        for name in names {
            self.remove(&key(cluster.clone(), kind.clone(), &name));
            // Placements that go with their workspace stay true: no user took them back.
            if *kind != placements() {
                self.truth.source_gone(workspace, &name, Ending::Lost);
            }
        }
    }

    pub(crate) fn back_up(&mut self) {
        self.backup = self.machines.first().map(|center| (center.clone(), self.truth.clone()));
    }

    /// The center is as it was. True if there was a backup.
    pub(crate) fn restore(&mut self) -> bool {
        let Some((center, truth)) = self.backup.clone() else { return false };
        let Some(slot) = self.machines.first_mut() else { return false };
        self.truth.restored(truth, slot.version());
        *slot = center;
        true
    }

    /// What a fresh look at a source's side finds: what real servers answer, and nothing that only this world knows.
    pub(crate) fn look(&self, source: &Key) -> Result<Look, Fault> {
        let workspace = workspace_of(&source.cluster);
        let state = self.truth.workspace(workspace);
        if state.gone {
            return Err(Fault::new(FaultKind::Forbidden, "access denied"));
        }
        let served = self.machines.first().and_then(|center| center.kind(&source.cluster, &source.kind));
        let kind = match served {
            None => Serving::Nothing,
            Some(_) if source.kind == placements() => Serving::Itself,
            Some(_) => self.definition(workspace),
        };
        let object = match self.get(source) {
            None => Sighted::Missing,
            Some(object) if object.is_deleting() => Sighted::Ending(object.uid.clone()),
            Some(_) => Sighted::There,
        };
        Ok(Look { object, workspace_lives: !state.dying, kind })
    }

    /// Carries out a call of ours.
    pub(crate) fn call(&mut self, call: &Call, preconditions: bool) -> Done {
        let server = Self::of(&call.key.cluster);
        let before = self.get(&call.key);
        let version = self.machines.get(server).map(Machine::version);
        let gone = server == 0 && self.truth.workspace(workspace_of(&call.key.cluster)).gone;
        let answer = if gone {
            Err(Fault::new(FaultKind::Forbidden, "access denied"))
        } else {
            let done = self.act(server, |machine, moment| answer(machine, call, preconditions, moment));
            done.unwrap_or_else(|| Err(fault_of(&Status::unserved())))
        };
        let changed = self.machines.get(server).map(Machine::version) != version;
        Done { answer, before, changed }
    }

    fn label_of(&self, key: &Key) -> Option<String> {
        Some(self.get(key)?.metadata()["labels"][PLACE_LABEL].as_str()?.to_owned())
    }

    /// Creates an object, or changes it if it is there. False if the server refuses.
    pub(crate) fn by_user(&mut self, key: &Key, body: &Value, patch: &Value) -> bool {
        if self.get(key).is_some() {
            return self.merge(key, patch, Part::Whole).is_ok();
        }
        let body = body.clone();
        let created = self.act(Self::of(&key.cluster), |machine, moment| {
            machine.create(key, body, &by("alice", Part::Whole, false), moment)
        });
        created.is_some_and(|created| created.is_ok())
    }

    pub(crate) fn merge(&mut self, key: &Key, patch: &Value, part: Part) -> Result<(), Status> {
        let patched = self.act(Self::of(&key.cluster), |machine, moment| {
            machine.patch(key, Patch::Merge(patch), &by("alice", part, false), moment).map(|_| ())
        });
        patched.unwrap_or_else(|| Err(Status::unserved()))
    }

    pub(crate) fn remove(&mut self, key: &Key) -> bool {
        let removed = self.act(Self::of(&key.cluster), |machine, moment| {
            machine.delete(key, &DeleteOptions::default(), moment).is_ok()
        });
        removed == Some(true)
    }
}

/// What somebody at an edge writes: a field that we would write as well, which an unforced apply runs into, or one of
/// their own, beside which it would find room.
pub(crate) fn foreign_spec(value: u64) -> Value {
    if value.is_multiple_of(2) { json!({ "own": value }) } else { json!({ "v": value }) }
}

/// Whether an object bears a mark of ours.
pub(crate) fn is_marked(object: &Stored) -> bool {
    object.metadata()["labels"][OWNER_LABEL] == OWNER
}

/// The source that a mark names: its workspace and its name.
pub(crate) fn origin_of(object: &Stored) -> Option<(Workspace, String)> {
    let key = mark_of(object)?.key;
    Some((workspace_of(&key.cluster), key.name.to_string()))
}

/// The version of its source that a mark remembers.
pub(crate) fn version_of_origin(object: &Stored) -> Option<u64> {
    mark_of(object).map(|origin| origin.version.0)
}

fn mark_of(object: &Stored) -> Option<Origin> {
    StandardMarks::origin(object.metadata()["annotations"][MARK_ANNOTATION].as_str()?, &object.key)
}

pub(crate) fn cluster_of(workspace: Workspace) -> ClusterId {
    match workspace {
        Workspace::Workload => workload(),
        Workspace::Mailbox => mailbox(),
        Workspace::Bound(number) => bound(number),
    }
}

pub(crate) fn workspace_of(cluster: &ClusterId) -> Workspace {
    match cluster.0.strip_prefix("bound").and_then(|number| number.parse().ok()) {
        Some(number) => Workspace::Bound(number),
        None if *cluster == mailbox() => Workspace::Mailbox,
        None => Workspace::Workload,
    }
}

/// The kind of the sources of a workspace.
pub(crate) fn kind_in(workspace: Workspace) -> KindId {
    match workspace {
        Workspace::Workload | Workspace::Mailbox => boats(),
        Workspace::Bound(_) => skiffs(),
    }
}

/// The key of a source.
pub(crate) fn source_key(workspace: Workspace, name: &str) -> Key {
    key(cluster_of(workspace), kind_in(workspace), name)
}

/// What the copies of a workspace's sources are called, before the source's name.
pub(crate) fn prefix_of(workspace: Workspace) -> String {
    match workspace {
        Workspace::Workload => String::new(),
        Workspace::Mailbox => MAILBOX_PREFIX.to_owned(),
        Workspace::Bound(number) => bound_prefix(number),
    }
}

/// A kind as servers know it, made once for all worlds.
pub(crate) fn definition_of(kind: &KindId) -> Arc<Kind> {
    static ALL: LazyLock<BTreeMap<KindId, Arc<Kind>>> = LazyLock::new(|| {
        let kinds = [boats(), skiffs(), bindings(), definitions(), placements(), namespaces()];
        kinds.into_iter().map(|kind| (kind.clone(), make_definition(&kind))).collect()
    });
    ALL.get(kind).map_or_else(|| make_definition(kind), Arc::clone)
}

fn make_definition(kind: &KindId) -> Arc<Kind> {
    if *kind == namespaces() {
        return Arc::new(kind_without_schema(kind.clone(), "v1", kind_name(kind), false));
    }
    let namespaced = *kind == boats() || *kind == skiffs();
    let plain = Kind::permissive(kind.clone(), "v1", kind_name(kind), namespaced);
    Arc::new(if *kind == placements() { plain } else { plain.with_status() })
}

/// What objects of a kind bear as their `kind`.
pub(crate) fn kind_name(kind: &KindId) -> &'static str {
    match kind.resource() {
        "boats" => "Boat",
        "skiffs" => "Skiff",
        "namespaces" => "Namespace",
        "apibindings" => "APIBinding",
        "customresourcedefinitions" => "CustomResourceDefinition",
        _ => "Placement",
    }
}

/// What stands at an edge, sorted by name.
pub(crate) fn standing(machine: &Machine, cluster: &ClusterId) -> BTreeMap<String, Arc<Stored>> {
    let request = mailboat_machinery::ListRequest {
        cluster: Some(cluster.clone()),
        kind: boats(),
        ..mailboat_machinery::ListRequest::default()
    };
    let items = machine.list(&request).map(|list| list.items).unwrap_or_default();
    items.into_iter().map(|object| (object.key.name.to_string(), object)).collect()
}
