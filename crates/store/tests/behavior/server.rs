//! A model of an API server with its whole history: what it would have answered at any version.

use std::collections::{BTreeMap, BTreeSet};

use mailboat_object::key::{ClusterId, Key, KindId, Name};
use serde_json::{Value, json};

pub type Address = (String, String); // cluster, name

/// One object at one version.
#[derive(Clone, PartialEq, Debug)]
pub struct Stored {
    pub uid: u64,
    pub version: u64,
    pub value: u32,
    /// Matches the label selector `tier=edge`.
    pub labelled: bool,
    /// Shown by a view that claims it.
    pub visible: bool,
}

/// What was written at one version, under which identity of the kind.
#[derive(Clone, Debug)]
struct Write {
    version: u64,
    address: Address,
    identity: u32,
    after: Option<Stored>,
}

/// What a workspace's binding says of the kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binding {
    /// It brings the kind, under this identity.
    Bound(u32),
    Claimed {
        accepted: bool,
    },
    /// It is on its way out with what it brought, which nothing can stop.
    Deleting(u32),
}

#[derive(Clone, Debug)]
struct BindingWrite {
    version: u64,
    cluster: String,
    after: Option<Binding>,
}

/// Which of the two kinds a server is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    Maps,
    Bindings,
}

#[derive(Clone, Debug)]
pub struct Server {
    history: Vec<Write>,
    bindings: Vec<BindingWrite>,
    pub version: u64,
    compacted: u64,
    next_uid: u64,
    /// How often it was restored from a backup.
    pub restored: u32,
    pub filtered: bool,
    /// It is a view of this sort.
    pub view: Option<View>,
    /// The identity of the kind that the view shows.
    pub identity: u32,
    /// The view does not serve the kind: no binding names the identity that it would show.
    pub unserved: bool,
}

/// Why a view shows what it shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum View {
    /// The kind is the export's own.
    Bound,
    /// The export claims a kind of the workspaces.
    Claimed,
}

pub enum Answer {
    Page(Vec<u8>),
    Expired,
    Unserved,
}

impl Server {
    pub fn new(view: Option<View>, filtered: bool) -> Self {
        Self {
            history: Vec::new(),
            bindings: Vec::new(),
            version: 10,
            compacted: 0,
            next_uid: 1,
            restored: 0,
            filtered,
            view,
            identity: 0,
            unserved: false,
        }
    }

    /// All objects of the present identity at a version.
    pub fn at(&self, version: u64) -> BTreeMap<Address, Stored> {
        let mut objects = BTreeMap::new();
        let writes = self.history.iter().take_while(|write| write.version <= version);
        for write in writes.filter(|write| write.identity == self.identity) {
            match &write.after {
                Some(stored) => objects.insert(write.address.clone(), stored.clone()),
                None => objects.remove(&write.address),
            };
        }
        objects
    }

    /// One object at a version, under one identity.
    fn one_at(&self, address: &Address, identity: u32, version: u64) -> Option<Stored> {
        let mut writes = self.history.iter().rev().filter(|write| write.version <= version);
        let found = writes.find(|write| write.address == *address && write.identity == identity);
        found.and_then(|write| write.after.clone())
    }

    /// Whether an object was there at a version, under any of these identities.
    pub fn had(&self, address: &Address, identities: std::ops::RangeInclusive<u32>, version: u64) -> bool {
        identities.into_iter().any(|identity| self.one_at(address, identity, version).is_some())
    }

    pub fn now(&self) -> BTreeMap<Address, Stored> {
        self.at(self.version)
    }

    /// What the binding of a workspace says at a version.
    fn binding_at(&self, cluster: &str, version: u64) -> Option<Binding> {
        let mut writes = self.bindings.iter().rev().filter(|write| write.version <= version);
        writes.find(|write| write.cluster == cluster).and_then(|write| write.after)
    }

    /// Under which identity the binding of a workspace brought the kind at a version.
    pub fn identity_at(&self, cluster: &str, version: u64) -> Option<u32> {
        match self.binding_at(cluster, version)? {
            Binding::Bound(identity) | Binding::Deleting(identity) => Some(identity),
            Binding::Claimed { .. } => None,
        }
    }

    pub fn binding(&self, cluster: &str) -> Option<Binding> {
        self.binding_at(cluster, self.version)
    }

    /// Whether the view shows what the workspace has.
    pub fn is_bound(&self, cluster: &str) -> bool {
        matches!(self.binding(cluster), Some(Binding::Bound(_) | Binding::Claimed { accepted: true }))
    }

    /// Creates or updates. Without its binding a workspace does not have the kind.
    pub fn put(&mut self, cluster: &str, name: &str, value: u32, labelled: bool) {
        let identity = match (self.view, self.binding(cluster)) {
            (Some(View::Bound), Some(Binding::Bound(identity))) => identity,
            (Some(View::Bound), _) => return,
            (Some(View::Claimed) | None, _) => 0,
        };
        let address = (cluster.to_owned(), name.to_owned());
        let before = self.one_at(&address, identity, self.version);
        let uid = before.as_ref().map_or_else(|| self.fresh_uid(), |stored| stored.uid);
        let visible = before.map_or(self.is_bound(cluster), |stored| stored.visible);
        self.version += 1;
        let after = Some(Stored { uid, version: self.version, value, labelled, visible });
        self.history.push(Write { version: self.version, address, identity, after });
    }

    pub fn delete(&mut self, cluster: &str, name: &str) {
        let address = (cluster.to_owned(), name.to_owned());
        let identity = match self.binding(cluster) {
            Some(Binding::Bound(identity)) => identity,
            _ => 0,
        };
        if self.one_at(&address, identity, self.version).is_some() {
            self.version += 1;
            self.history.push(Write { version: self.version, address, identity, after: None });
        }
    }

    /// Something else was written, of another kind.
    pub fn other_writes(&mut self, count: u64) {
        self.version += count;
    }

    /// Binds or unbinds, accepts or rejects. A kind that goes with its binding goes with all of its objects; a claim
    /// that is rejected only hides them, one by one.
    pub fn bind(&mut self, cluster: &str, bound: bool) -> u64 {
        if self.view == Some(View::Claimed) {
            let written = if bound { None } else { Some(self.write_claim(cluster, false)) };
            for (address, stored) in self.now().into_iter().filter(|((of, _), _)| of == cluster) {
                self.version += 1;
                let after = Some(Stored { version: self.version, visible: bound, ..stored });
                self.history.push(Write { version: self.version, address, identity: 0, after });
            }
            return written.unwrap_or_else(|| self.write_claim(cluster, true));
        }
        let identity = match self.binding(cluster) {
            // Restored from the midst of its deletion, which has to end before another can be made.
            Some(Binding::Deleting(identity)) => identity,
            _ if bound => return self.write_binding(cluster, Some(Binding::Bound(self.identity))),
            Some(Binding::Bound(identity)) => {
                self.write_binding(cluster, Some(Binding::Deleting(identity)));
                identity
            }
            Some(Binding::Claimed { .. }) | None => 0,
        };
        let addresses: BTreeSet<Address> = self.history.iter().map(|write| write.address.clone()).collect();
        for address in addresses.into_iter().filter(|(of, _)| of == cluster) {
            if self.one_at(&address, identity, self.version).is_some() {
                self.version += 1;
                self.history.push(Write { version: self.version, address, identity, after: None });
            }
        }
        self.write_binding(cluster, None)
    }

    fn write_claim(&mut self, cluster: &str, accepted: bool) -> u64 {
        self.write_binding(cluster, Some(Binding::Claimed { accepted }))
    }

    pub fn write_binding(&mut self, cluster: &str, after: Option<Binding>) -> u64 {
        self.version += 1;
        self.bindings.push(BindingWrite { version: self.version, cluster: cluster.to_owned(), after });
        self.version
    }

    /// The version of the latest binding that was written.
    pub fn bound_at(&self) -> u64 {
        self.bindings.last().map_or(0, |write| write.version)
    }

    /// The export is made anew: the view shows objects of another identity, as soon as a binding names it.
    pub fn replace_identity(&mut self) {
        self.identity += 1;
        self.unserved = true;
    }

    /// A binding is brought up to the export's identity.
    pub fn follow_identity(&mut self, cluster: &str) {
        if let Some(Binding::Bound(identity)) = self.binding(cluster)
            && identity != self.identity
        {
            self.write_binding(cluster, Some(Binding::Bound(self.identity)));
            self.unserved = false;
        }
    }

    pub fn compact(&mut self) {
        self.compacted = self.version;
    }

    /// Goes back to an older backup.
    pub fn restore(&mut self, version: u64) {
        self.history.retain(|write| write.version <= version);
        self.bindings.retain(|write| write.version <= version);
        self.version = version;
        self.compacted = self.compacted.min(version);
        self.restored += 1;
    }

    /// Gives uids that no earlier life of this server has given.
    fn fresh_uid(&mut self) -> u64 {
        self.next_uid += 1;
        self.next_uid
    }

    fn shows(&self, stored: &Stored) -> bool {
        (!self.filtered || stored.labelled) && (self.view != Some(View::Claimed) || stored.visible)
    }

    pub fn list(&self, asked: Asked, limit: usize, token: Option<&str>) -> Answer {
        if asked == Asked::Maps && self.unserved {
            return Answer::Unserved;
        }
        let (version, skip) = match token.and_then(|token| token.split_once(':')) {
            None => (self.version, 0),
            Some((version, skip)) => (version.parse().unwrap(), skip.parse().unwrap()),
        };
        if version < self.compacted || version > self.version {
            return Answer::Expired;
        }
        let shown: Vec<Value> = match asked {
            Asked::Maps => {
                let objects = self.at(version).into_iter().filter(|(_, stored)| self.shows(stored));
                objects.map(|(address, stored)| body(&address, &stored)).collect()
            }
            Asked::Bindings => {
                let mut latest: BTreeMap<&str, &BindingWrite> = BTreeMap::new();
                let writes = self.bindings.iter().take_while(|write| write.version <= version);
                latest.extend(writes.map(|write| (write.cluster.as_str(), write)));
                latest.into_values().filter_map(|write| Some(binding_body(write, write.after?))).collect()
            }
        };
        let items: Vec<&Value> = shown.iter().skip(skip).take(limit).collect();
        let more = shown.len() > skip + limit;
        let token = if more { format!("{version}:{}", skip + limit) } else { String::new() };
        let metadata = json!({ "resourceVersion": version.to_string(), "continue": token });
        let page = json!({ "kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items });
        Answer::Page(page.to_string().into_bytes())
    }

    /// The next line of a watch that has been sent everything up to a version, and up to which it is sent then.
    pub fn line_after(&self, asked: Asked, sent: u64) -> Option<(Vec<u8>, u64)> {
        if sent < self.compacted {
            return Some((expired_line(), sent));
        }
        match asked {
            Asked::Maps => self.map_after(sent),
            Asked::Bindings => self.binding_after(sent),
        }
    }

    fn map_after(&self, sent: u64) -> Option<(Vec<u8>, u64)> {
        let writes = self.history.iter().filter(|write| write.version > sent);
        for write in writes.filter(|write| write.identity == self.identity) {
            let before = self.one_at(&write.address, write.identity, write.version - 1);
            let after = write.after.clone().filter(|stored| self.shows(stored));
            let (event, mut stored) = match (before.filter(|stored| self.shows(stored)), after) {
                (None, Some(after)) => ("ADDED", after),
                (Some(_), Some(after)) => ("MODIFIED", after),
                (Some(before), None) => ("DELETED", before),
                (None, None) => continue,
            };
            stored.version = write.version;
            return Some((line(event, &body(&write.address, &stored)), write.version));
        }
        None
    }

    fn binding_after(&self, sent: u64) -> Option<(Vec<u8>, u64)> {
        for write in self.bindings.iter().filter(|write| write.version > sent) {
            let before = self.binding_at(&write.cluster, write.version - 1);
            let (event, binding) = match (before, write.after) {
                (None, Some(after)) => ("ADDED", after),
                (Some(_), Some(after)) => ("MODIFIED", after),
                (Some(before), None) => ("DELETED", before),
                (None, None) => continue,
            };
            return Some((line(event, &binding_body(write, binding)), write.version));
        }
        None
    }
}

pub fn body((cluster, name): &Address, stored: &Stored) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": "till",
            "uid": format!("{:032x}", stored.uid),
            "resourceVersion": stored.version.to_string(),
            "annotations": { "kcp.io/cluster": cluster },
            "labels": if stored.labelled { json!({ "tier": "edge" }) } else { json!({}) },
        },
        "data": { "value": stored.value.to_string() },
    })
}

fn binding_body(write: &BindingWrite, binding: Binding) -> Value {
    let mut body = json!({
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIBinding",
        "metadata": {
            "name": "harbor",
            "uid": format!("binding-{}", write.cluster),
            "resourceVersion": write.version.to_string(),
            "annotations": { "kcp.io/cluster": write.cluster },
        },
    });
    let configmaps = json!({ "group": "", "resource": "configmaps" });
    match binding {
        Binding::Bound(identity) | Binding::Deleting(identity) => {
            let mut bound = configmaps;
            bound["schema"] = json!({ "identityHash": format!("identity-{identity}") });
            body["status"] = json!({ "boundResources": [bound] });
            if let Binding::Deleting(_) = binding {
                body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            }
        }
        Binding::Claimed { accepted } => {
            let mut claim = configmaps.clone();
            claim["state"] = if accepted { "Accepted" } else { "Rejected" }.into();
            body["spec"] = json!({ "permissionClaims": [claim] });
            // Taken back a while after the rejection.
            body["status"] = json!({ "appliedPermissionClaims": [configmaps] });
        }
    }
    body
}

pub fn line(event: &str, object: &Value) -> Vec<u8> {
    json!({ "type": event, "object": object }).to_string().into_bytes()
}

pub fn bookmark(version: u64) -> Vec<u8> {
    line(
        "BOOKMARK",
        &json!({
            "kind": "ConfigMap", "apiVersion": "v1", "metadata": { "resourceVersion": version.to_string() }
        }),
    )
}

pub fn error_line(code: u16, reason: &str, message: &str) -> Vec<u8> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    line("ERROR", &status)
}

pub fn expired_line() -> Vec<u8> {
    error_line(410, "Expired", "too old resource version: 5 (20)")
}

pub fn bindings() -> KindId {
    KindId::new("apis.kcp.io", "apibindings")
}

pub fn configmaps() -> KindId {
    KindId::new("", "configmaps")
}

pub fn key(cluster: &str, name: &str) -> Key {
    Key {
        cluster: ClusterId::new(cluster),
        kind: configmaps(),
        namespace: Name::new("till"),
        name: Name::new(name),
    }
}
