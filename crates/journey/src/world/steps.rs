//! What users and faults do.

use std::time::Duration;

use mailboat_api::condition::types;
use mailboat_api::names::{annotation, export, object};
use mailboat_center::mailbox::MAILBOX_BINDING;
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use serde_json::{Value, json};

use super::World;
use crate::base;
use crate::kinds;
use crate::oracle::is_marked;
use crate::script::{Cargo, NAMES, Site, Step};
use crate::sea::{CENTER, Sea, lock};

impl World {
    pub(super) async fn step(&mut self, step: &Step) {
        self.values += 1;
        let value = self.values;
        if let Step::Crash(who, down_for) = step {
            return self.crash(*who, Duration::from_millis(u64::from(*down_for))).await;
        }
        if let Step::Pause(who, time) = step {
            return self.stand_still(*who, Duration::from_millis(u64::from(*time)));
        }
        let mut sea = lock(&self.sea);
        sea.note(|| step.to_string());
        match step {
            Step::Put(site, cargo, name, label) => sea.put_cargo(*site, *cargo, *name, *label, value),
            Step::Delete(site, cargo, name) => {
                if let Some(cluster) = sea.living(*site) {
                    sea.remove(&cargo_key(&cluster, *cargo, *name));
                }
            }
            Step::Relabel(cargo, name, label) => {
                if let Some(cluster) = sea.living(Site::Workload) {
                    let key = cargo_key(&cluster, *cargo, *name);
                    let patch = json!({ "metadata": { "labels": { "place": format!("l{label}") } } });
                    if sea.get(&key).is_some() {
                        sea.put(&key, Value::Null, &patch);
                    }
                }
            }
            Step::Place(name, label, location) => sea.place(*name, *label, *location),
            Step::WantStatus(name) => {
                if let Some(cluster) = sea.living(Site::Workload) {
                    let key = kinds::key(&cluster, kinds::edge("edgeplacements"), &format!("p{name}"));
                    sea.put(&key, Value::Null, &json!({ "spec": { "wantSingletonReportedState": true } }));
                }
            }
            Step::Displace(name) => {
                if let Some(cluster) = sea.living(Site::Workload) {
                    sea.remove(&kinds::key(&cluster, kinds::edge("edgeplacements"), &format!("p{name}")));
                }
            }
            Step::Locate(edge, label) => {
                if let Some(cluster) = sea.living(Site::Inventory) {
                    let key = kinds::key(&cluster, kinds::edge("locations"), &format!("t{edge}"));
                    let patch = json!({ "metadata": { "labels": { "env": format!("l{label}") } } });
                    if sea.get(&key).is_some() {
                        sea.put(&key, Value::Null, &patch);
                    }
                }
            }
            Step::Cordon(edge) => sea.change_target(*edge, &json!({ "unschedulable": true })),
            Step::Evict(edge) => sea.change_target(*edge, &json!({ "evictAfter": "2000-01-01T00:00:00Z" })),
            Step::Misplace(name) => {
                if let Some(cluster) = sea.living(Site::Workload) {
                    let key = kinds::key(&cluster, kinds::edge("edgeplacements"), &format!("p{name}"));
                    let spec = json!({ "locationSelectors": [misspelt()] });
                    if sea.get(&key).is_some() {
                        sea.put(&key, Value::Null, &json!({ "spec": spec }));
                    }
                }
            }
            Step::Mislead(edge) => {
                if let Some(cluster) = sea.living(Site::Inventory) {
                    let key = kinds::key(&cluster, kinds::edge("locations"), &format!("t{edge}"));
                    if sea.get(&key).is_some() {
                        sea.put(&key, Value::Null, &json!({ "spec": { "instanceSelector": misspelt() } }));
                    }
                }
            }
            Step::Detain(edge) => {
                if let Some(cluster) = sea.living(Site::Inventory) {
                    let key = kinds::key(&cluster, kinds::edge("synctargets"), &format!("t{edge}"));
                    if sea.get(&key).is_some() {
                        let patch = json!({ "metadata": { "finalizers": ["example.dev/detained"] } });
                        sea.put(&key, Value::Null, &patch);
                    }
                }
            }
            Step::Retire(edge) => {
                if let Some(cluster) = sea.living(Site::Inventory) {
                    sea.remove(&kinds::key(&cluster, kinds::edge("synctargets"), &format!("t{edge}")));
                }
            }
            Step::RetireWhole(edge) => {
                if let Some(cluster) = sea.living(Site::Inventory) {
                    sea.truth.retires(*edge);
                    for kind in ["locations", "synctargets"] {
                        sea.remove(&kinds::key(&cluster, kinds::edge(kind), &format!("t{edge}")));
                    }
                }
            }
            Step::Unlist(edge) => {
                if let Some(cluster) = sea.living(Site::Inventory) {
                    sea.remove(&kinds::key(&cluster, kinds::edge("locations"), &format!("t{edge}")));
                }
            }
            Step::ConfirmRetired => sea.confirm_retired(),
            Step::ConfirmTarget(edge) => sea.confirm_target(*edge),
            Step::ConfirmPlacement(name) => {
                // Also in a workspace that is being deleted: that is where it is needed.
                if let Some(cluster) = sea.truth.workload.clone() {
                    sea.confirm(&kinds::key(&cluster, kinds::edge("edgeplacements"), &format!("p{name}")));
                }
            }
            Step::Tell(edge, boats, maps) => {
                let entries = [entry(Cargo::Boat, *boats), entry(Cargo::ConfigMap, *maps)];
                sea.configure(
                    *edge,
                    "SyncerConfig",
                    object::THE_ONE,
                    &json!({ "namespacedObjects": entries }),
                );
            }
            Step::TellMore(edge, boats) => {
                let entries = named(*boats).map(|name| {
                    let namespace = kinds::namespace_of(&name);
                    json!({ "kind": "Boat", "group": "example.dev", "version": "v1", "namespace": namespace, "name": name })
                });
                let entries: Vec<Value> = entries.collect();
                sea.configure(*edge, "EdgeSyncConfig", "more", &json!({ "downSyncedResources": entries }));
            }
            Step::TellLess(edge) => {
                if let Some(mailbox) = sea.living(Site::Mailbox(*edge)) {
                    sea.remove(&kinds::key(&mailbox, kinds::edge("edgesyncconfigs"), "more"));
                }
            }
            Step::TellUp(edge, bits) => {
                let names: Vec<String> =
                    named(*bits).map(|name| name.replace('n', kinds::UP_PREFIX)).collect();
                let set = |group: &str, resource: &str| json!({ "apiGroup": group, "resources": [resource], "namespaces": ["*"], "names": names });
                let sets = [set("example.dev", "boats"), set("", "configmaps")];
                sea.configure(*edge, "SyncerConfig", "up", &json!({ "upsync": sets }));
            }
            Step::TellSpaces(edge, bits) => {
                let names: Vec<&str> = (0..)
                    .zip(kinds::NAMESPACES)
                    .filter(|(bit, _)| bits & (1 << bit) != 0)
                    .map(|(_, name)| name)
                    .collect();
                let spaces =
                    json!([{ "group": "", "resource": "namespaces", "apiVersion": "v1", "objects": names }]);
                sea.configure(*edge, "SyncerConfig", "spaces", &json!({ "clusterScope": spaces }));
            }
            Step::PlaceSpaces(name) => sea.place_spaces(*name),
            Step::Confirm(edge) => {
                if let Some(mailbox) = sea.living(Site::Mailbox(*edge)) {
                    sea.confirm(&kinds::key(&mailbox, kinds::edge("syncerconfigs"), object::THE_ONE));
                }
            }
            Step::EdgePut(edge, cargo, name) => sea.edge_put(*edge, *cargo, &format!("n{name}"), value),
            Step::EdgeDefine(edge) => {
                if let Some(cluster) = sea.edge(*edge) {
                    sea.define_boats(&cluster);
                }
            }
            Step::KeepDefinition => sea.keep_definition(),
            Step::ChangeIdentity => sea.change_identity(),
            Step::DropClaim(edge) => {
                if let Some(mailbox) = sea.living(Site::Mailbox(*edge)) {
                    sea.remove(&kinds::key(&mailbox, kinds::bindings(), &format!("claim-{BOATS}")));
                }
            }
            Step::RejectClaims(edge) => sea.reject_claims(*edge),
            Step::UpPut(edge, cargo, name) => sea.edge_put(*edge, *cargo, &up_name(*name), value),
            Step::UpDelete(edge, cargo, name) => {
                if let Some(cluster) = sea.edge(*edge) {
                    sea.remove(&kinds::key(&cluster, kind_of(*cargo), &up_name(*name)));
                }
            }
            Step::EdgeDelete(edge, cargo, name) => {
                if let Some(cluster) = sea.edge(*edge) {
                    sea.remove(&cargo_key(&cluster, *cargo, *name));
                }
            }
            Step::EdgeStatus(edge, name, status) => {
                if let Some(cluster) = sea.edge(*edge) {
                    let key = cargo_key(&cluster, Cargo::Boat, *name);
                    // Nobody but its own controller reports on a foreign object, and nothing here looks at that.
                    if sea.get(&key).is_some_and(|object| is_marked(&object)) {
                        sea.put_status(&key, &json!({ "at": status }));
                    }
                }
            }
            Step::DropNamespace(site, number) => {
                if let Some(cluster) = sea.living(*site) {
                    sea.remove(&namespace(&cluster, *number));
                }
            }
            Step::EdgeDropNamespace(edge, number) => {
                if let Some(cluster) = sea.edge(*edge) {
                    sea.remove(&namespace(&cluster, *number));
                }
            }
            Step::Partition(server) => sea.waters[usize::from(*server)].partitioned = true,
            Step::AwayShard => sea.add_shard(),
            Step::Heal(server) => {
                let dead = sea.draw(2) == 0;
                let water = &mut sea.waters[usize::from(*server)];
                water.partitioned = false;
                water.stalls += u64::from(dead);
                sea.bells[usize::from(*server)].ring();
            }
            Step::Crash(..) | Step::Pause(..) => {}
            Step::StaleLists(server, lists) => sea.waters[usize::from(*server)].stale = *lists,
            Step::CloseStreams(server) => sea.cut(usize::from(*server)),
            Step::StallStreams(server) => sea.waters[usize::from(*server)].stalls += 1,
            Step::Compact(server) => {
                let machine = &mut sea.machines[usize::from(*server)];
                machine.compact(machine.version());
            }
            Step::Unserve(site) => {
                if let Some(cluster) = sea.living(*site) {
                    sea.machines[CENTER].stop_serving(&cluster, &kinds::boats());
                    sea.cut(CENTER);
                }
            }
            Step::Serve(site) => sea.serve_boats(*site),
            Step::DropDefinition(site) => {
                if let Some(cluster) = sea.living(*site) {
                    sea.serve_boats(*site);
                    let binding = sea.binding_of_boats(&cluster);
                    sea.remove(&binding.unwrap_or_else(|| kinds::key(&cluster, kinds::definitions(), BOATS)));
                }
            }
            Step::Redefine(site) => sea.redefine(*site),
            Step::DropBinding(site) => {
                if let Some(cluster) = sea.living(*site) {
                    sea.remove(&kinds::key(&cluster, kinds::bindings(), export::BINDING_IN_MAILBOX));
                }
            }
            Step::Rebind(site) => sea.rebind(*site),
            Step::Drop(site) => {
                let workspace =
                    kinds::key(&ClusterId::new("root"), kinds::workspaces(), &workspace_name(*site));
                sea.remove(&workspace);
            }
            Step::Silence(site) => sea.silent = sea.living(*site),
            Step::Speak(_) => sea.silent = None,
            Step::Backup => sea.back_up(),
            Step::Restore => sea.restore(),
            Step::Calendar(ahead) => sea.skew = *ahead,
            Step::Noise(percent) => sea.noise = u64::from(*percent),
        }
    }

    /// Users define, bind and serve again what they had taken away.
    pub(super) fn mend(&self) {
        let mut sea = lock(&self.sea);
        let sites: Vec<Site> = if sea.truth.workload.is_some() {
            vec![Site::Workload, Site::Inventory]
        } else {
            (0..u8::try_from(sea.truth.edges.len()).unwrap_or(0)).map(Site::Mailbox).collect()
        };
        for site in sites {
            if site != Site::Inventory {
                sea.serve_boats(site);
                sea.redefine(site);
            }
            sea.rebind(site);
        }
    }
}

const BOATS: &str = "boats.example.dev";
/// What the binding to denatured kinds is called.
const DENATURED_BINDING: &str = "denatured";
/// The workspace of whoever else offers boats, and what the binding to them is called.
pub(super) const SHIPYARD: &str = "shipyard";

impl Sea {
    fn edge(&self, number: u8) -> Option<ClusterId> {
        self.truth.edges.get(usize::from(number)).map(|edge| edge.cluster.clone())
    }

    /// The workspace of a site. Nobody edits what is being deleted.
    fn living(&self, site: Site) -> Option<ClusterId> {
        let cluster = match site {
            Site::Mailbox(number) => self.truth.edges.get(usize::from(number))?.mailbox.clone()?,
            Site::Workload => self.truth.workload.clone()?,
            Site::Inventory => self.truth.inventory.clone()?,
        };
        (!self.truth.is_dying(&cluster)).then_some(cluster)
    }

    /// All claims in a mailbox are rejected. Whoever made the binding that accepts them may put that right.
    fn reject_claims(&mut self, edge: u8) {
        let Some(mailbox) = self.living(Site::Mailbox(edge)) else { return };
        let key = kinds::key(&mailbox, kinds::bindings(), MAILBOX_BINDING);
        let Some(binding) = self.get(&key) else { return };
        let mut claims = binding.body()["spec"]["permissionClaims"].clone();
        for claim in claims.as_array_mut().into_iter().flatten() {
            claim["state"] = json!("Rejected");
        }
        self.put(&key, Value::Null, &json!({ "spec": { "permissionClaims": claims } }));
    }

    fn put_cargo(&mut self, site: Site, cargo: Cargo, name: u8, label: u8, value: u64) {
        let Some(cluster) = self.living(site) else { return };
        let key = cargo_key(&cluster, cargo, name);
        self.make_namespace(&key);
        self.put(&key, kinds::cargo(&key, &format!("l{label}"), value), &kinds::content(&key, value));
    }

    fn place(&mut self, name: u8, label: u8, location: u8) {
        let Some(cluster) = self.living(Site::Workload) else { return };
        let name = format!("p{name}");
        let test = |group: &str, resource: &str| {
            json!({
                "apiGroup": group, "resources": [resource], "namespaces": kinds::NAMESPACES,
                "labelSelectors": [{ "matchLabels": { "place": format!("l{label}") } }],
            })
        };
        let spec = json!({
            "locationSelectors": [{ "matchLabels": { "env": format!("l{location}") } }],
            "downsync": [test("example.dev", "boats"), test("", "configmaps")],
        });
        let key = kinds::key(&cluster, kinds::edge("edgeplacements"), &name);
        // One that is on its way out is nobody's to change.
        if self.get(&key).is_none_or(|placement| !placement.is_deleting()) {
            self.put(&key, base::edge_object("EdgePlacement", &name, &spec), &json!({ "spec": spec }));
        }
    }

    /// Beside what it selects, a placement selects all namespaces by name.
    fn place_spaces(&mut self, name: u8) {
        let Some(cluster) = self.living(Site::Workload) else { return };
        let key = kinds::key(&cluster, kinds::edge("edgeplacements"), &format!("p{name}"));
        let Some(placement) = self.get(&key).filter(|placement| !placement.is_deleting()) else { return };
        let mut tests = placement.body()["spec"]["downsync"].clone();
        if let Some(tests) = tests.as_array_mut() {
            tests.truncate(2);
            tests.push(
                json!({ "apiGroup": "", "resources": ["namespaces"], "objectNames": kinds::NAMESPACES }),
            );
        }
        self.put(&key, Value::Null, &json!({ "spec": { "downsync": tests } }));
    }

    fn change_target(&mut self, edge: u8, spec: &Value) {
        let Some(cluster) = self.living(Site::Inventory) else { return };
        let key = kinds::key(&cluster, kinds::edge("synctargets"), &format!("t{edge}"));
        if self.get(&key).is_some() {
            self.put(&key, Value::Null, &json!({ "spec": spec }));
        }
    }

    /// Whoever makes an object sees to it that its namespace is there. One that is going stays so.
    fn make_namespace(&mut self, key: &Key) {
        let namespace = kinds::key(&key.cluster, kinds::namespaces(), &key.namespace);
        if self.get(&namespace).is_none() {
            let body =
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": *key.namespace } });
            self.put(&namespace, body, &json!({}));
        }
    }

    fn configure(&mut self, edge: u8, kind: &str, name: &str, spec: &Value) {
        let Some(mailbox) = self.living(Site::Mailbox(edge)) else { return };
        let resource = format!("{}s", kind.to_lowercase());
        let key = kinds::key(&mailbox, kinds::edge(&resource), name);
        self.put(&key, base::edge_object(kind, name, spec), &json!({ "spec": spec }));
    }

    /// Confirms what a configuration object says that is held back for it.
    fn confirm(&mut self, key: &Key) {
        let Some(config) = self.get(key) else { return };
        let awaited = &config.body()["status"]["awaitingConfirmation"];
        if let Some(change) = awaited["changeId"].as_str() {
            let patch = json!({ "metadata": { "annotations": { annotation::CONFIRM_WITHDRAWAL: change } } });
            // Whoever confirms that it went with something larger wants it gone.
            let ending =
                awaited["message"].as_str().is_some_and(|message| message.contains("is deleted with"));
            if self.put(key, Value::Null, &patch) && ending {
                let now = self.now();
                self.truth.give_up(now, key);
            }
        }
    }

    /// Confirms what the provider's export says in one of its annotations, by the number that stands in it.
    fn confirm_retired(&mut self) {
        let Some(provider) = self.truth.provider.clone() else { return };
        let key = kinds::key(&provider, KindId::new("apis.kcp.io", "apiexports"), export::EDGE);
        let Some(found) = self.get(&key) else { return };
        self.confirm_as_said(&key, &found.metadata()["annotations"][annotation::WITHDRAWAL_HELD]);
    }

    /// Confirms what a SyncTarget says in its condition. Whoever does wants nothing of it that is lost.
    fn confirm_target(&mut self, edge: u8) {
        let Some(cluster) = self.living(Site::Inventory) else { return };
        let key = kinds::key(&cluster, kinds::edge("synctargets"), &format!("t{edge}"));
        let Some(found) = self.get(&key) else { return };
        let conditions = found.body()["status"]["conditions"].as_array().into_iter().flatten();
        let held = conditions.into_iter().find(|one| one["type"] == types::WITHDRAWAL_HELD);
        if held.is_some_and(|held| self.confirm_as_said(&key, &held["message"])) {
            let (now, workload) = (self.now(), self.truth.workload.clone());
            let lost = workload.map(|workload| self.truth.lost_cargo(&workload));
            for lost in lost.unwrap_or_default() {
                self.truth.give_up(now, &lost);
            }
        }
    }

    /// Confirms a change by the number that a sentence names. True if it names one.
    fn confirm_as_said(&mut self, key: &Key, said: &Value) -> bool {
        let named =
            said.as_str().and_then(|said| said.split_once(&format!("{}=", annotation::CONFIRM_WITHDRAWAL)));
        let Some(change) = named.and_then(|(_, rest)| rest.split_whitespace().next()) else { return false };
        let patch = json!({ "metadata": { "annotations": { annotation::CONFIRM_WITHDRAWAL: change } } });
        self.put(key, Value::Null, &patch)
    }

    fn edge_put(&mut self, edge: u8, cargo: Cargo, name: &str, value: u64) {
        let Some(cluster) = self.edge(edge) else { return };
        let key = kinds::key(&cluster, kind_of(cargo), name);
        self.make_namespace(&key);
        let ours = self.get(&key).is_some_and(|object| is_marked(&object));
        let mut body = kinds::cargo(&key, "theirs", value);
        if let Some(metadata) = body["metadata"].as_object_mut() {
            metadata.remove("labels");
        }
        let put = self.put(&key, body, &kinds::content(&key, value));
        if put
            && !ours
            && let Some(object) = self.get(&key)
        {
            self.truth.foreign.insert(key, (object.uid.to_string(), value));
        }
    }

    fn cut(&mut self, server: usize) {
        self.waters[server].cuts += 1;
        self.bells[server].ring();
    }

    fn serve_boats(&mut self, site: Site) {
        let Some(mailbox) = self.living(site) else { return };
        self.follow_definitions(&mailbox);
        if let Some(binding) = self.binding_of_boats(&mailbox)
            && self.get(&binding).is_some()
            && self.machines[CENTER].kind(&mailbox, &kinds::boats()).is_none()
        {
            // Kinds that are bound are served by whoever looks at their binding.
            let seen = json!({ "metadata": { "annotations": { "seen": self.now().to_string() } } });
            self.put(&binding, Value::Null, &seen);
        }
    }

    /// The binding by which a workspace has the boats, if that is how it has them.
    fn binding_of_boats(&self, cluster: &ClusterId) -> Option<Key> {
        let shipyard = kinds::key(&ClusterId::new("root"), kinds::workspaces(), SHIPYARD);
        self.get(&shipyard).map(|_| kinds::key(cluster, kinds::bindings(), SHIPYARD))
    }

    pub(super) fn bind_boats(&mut self, cluster: &ClusterId) {
        let binding = kinds::key(cluster, kinds::bindings(), SHIPYARD);
        if self.get(&binding).is_none() {
            let body = base::binding_to(&format!("root:{SHIPYARD}"), SHIPYARD, "boats");
            self.put(&binding, body, &json!({}));
        }
    }

    fn keep_definition(&mut self) {
        let Some(cluster) = self.living(Site::Workload) else { return };
        let binding = kinds::key(&cluster, kinds::bindings(), DENATURED_BINDING);
        self.put(&binding, base::binding(DENATURED_BINDING, export::DENATURED), &json!({}));
        let mut definition = kinds::definition();
        let kept = kinds::definitions_kept();
        definition["apiVersion"] = format!("{}/v1", kept.group()).into();
        self.put(&kinds::key(&cluster, kept, BOATS), definition, &json!({}));
    }

    fn change_identity(&mut self) {
        let shipyard = kinds::key(&ClusterId::new("root"), kinds::workspaces(), SHIPYARD);
        let Some(shipyard) = self.get(&shipyard) else { return };
        let shipyard = ClusterId::new(shipyard.body()["spec"]["cluster"].as_str().unwrap_or_default());
        let [_, (kind, export)] = kinds::offer();
        let export_key = kinds::key(&shipyard, kind, "boats");
        self.remove(&export_key);
        let secret = kinds::key(&shipyard, KindId::new("", "secrets"), "boats");
        self.remove(&Key { namespace: Name::new("kcp-system"), ..secret });
        self.put(&export_key, export, &json!({}));
    }

    fn redefine(&mut self, site: Site) {
        let Some(mailbox) = self.living(site) else { return };
        if self.binding_of_boats(&mailbox).is_some() {
            return self.bind_boats(&mailbox);
        }
        let definition = kinds::key(&mailbox, kinds::definitions(), BOATS);
        if self.get(&definition).is_none() {
            self.put(&definition, kinds::definition(), &json!({}));
        }
    }

    fn rebind(&mut self, site: Site) {
        let Some(mailbox) = self.living(site) else { return };
        let binding = kinds::key(&mailbox, kinds::bindings(), export::BINDING_IN_MAILBOX);
        if self.get(&binding).is_none() {
            self.put(&binding, base::binding(export::BINDING_IN_MAILBOX, export::EDGE), &json!({}));
        }
    }
}

/// A selector with an operator that there is not.
fn misspelt() -> Value {
    json!({ "matchExpressions": [{ "key": "env", "operator": "in", "values": ["l0"] }] })
}

fn kind_of(cargo: Cargo) -> KindId {
    match cargo {
        Cargo::Boat => kinds::boats(),
        Cargo::ConfigMap => kinds::configmaps(),
    }
}

fn cargo_key(cluster: &ClusterId, cargo: Cargo, name: u8) -> Key {
    kinds::key(cluster, kind_of(cargo), &format!("n{name}"))
}

fn up_name(number: u8) -> String {
    format!("{}{number}", kinds::UP_PREFIX)
}

/// What the workspace of a site is called.
pub(super) fn workspace_name(site: Site) -> String {
    match site {
        Site::Mailbox(number) => format!("mailbox{number}"),
        Site::Workload => "workload".to_owned(),
        Site::Inventory => "inventory".to_owned(),
    }
}

fn namespace(cluster: &ClusterId, number: u8) -> Key {
    let name = kinds::NAMESPACES[usize::from(number) % kinds::NAMESPACES.len()];
    kinds::key(cluster, kinds::namespaces(), name)
}

/// The names that bits stand for.
fn named(bits: u16) -> impl Iterator<Item = String> {
    (0..NAMES).filter(move |bit| bits & (1 << bit) != 0).map(|bit| format!("n{bit}"))
}

/// What a syncer is told about one kind; the ninth bit means all of one namespace.
fn entry(cargo: Cargo, bits: u16) -> Value {
    let (group, resource) = match cargo {
        Cargo::Boat => ("example.dev", "boats"),
        Cargo::ConfigMap => ("", "configmaps"),
    };
    let inside = |namespace: &str| -> Value {
        let all = bits & (1 << NAMES) != 0 && namespace == kinds::NAMESPACES[0];
        let names: Vec<String> = if all {
            vec!["*".to_owned()]
        } else {
            named(bits).filter(|name| kinds::namespace_of(name) == namespace).collect()
        };
        json!({ "namespace": namespace, "names": names })
    };
    json!({
        "group": group, "resource": resource, "apiVersion": "v1",
        "objectsByNamespace": kinds::NAMESPACES.map(inside),
    })
}
