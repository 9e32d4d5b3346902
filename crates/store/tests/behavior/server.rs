//! A model of an API server with its whole history: what it would have answered at any version.

use std::collections::BTreeMap;

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
    /// Shown by the view.
    pub visible: bool,
}

/// What was written at one version.
#[derive(Clone, Debug)]
struct Write {
    version: u64,
    address: Address,
    after: Option<Stored>,
}

#[derive(Clone, Debug)]
pub struct Server {
    history: Vec<Write>,
    pub version: u64,
    compacted: u64,
    next_uid: u64,
    /// Which clusters the view is bound to.
    pub bound: BTreeMap<String, bool>,
    /// How often it was restored from a backup.
    pub restored: u32,
    pub filtered: bool,
    pub view: bool,
}

pub enum Answer {
    Page(Vec<u8>),
    Expired,
}

impl Server {
    pub fn new(view: bool, filtered: bool) -> Self {
        Self {
            history: Vec::new(),
            version: 10,
            compacted: 0,
            next_uid: 1,
            bound: BTreeMap::new(),
            restored: 0,
            filtered,
            view,
        }
    }

    pub fn at(&self, version: u64) -> BTreeMap<Address, Stored> {
        let mut objects = BTreeMap::new();
        for write in self.history.iter().take_while(|write| write.version <= version) {
            match &write.after {
                Some(stored) => objects.insert(write.address.clone(), stored.clone()),
                None => objects.remove(&write.address),
            };
        }
        objects
    }

    /// One object at a version.
    pub fn one_at(&self, address: &Address, version: u64) -> Option<Stored> {
        let mut writes = self.history.iter().rev().filter(|write| write.version <= version);
        writes.find(|write| write.address == *address).and_then(|write| write.after.clone())
    }

    pub fn now(&self) -> BTreeMap<Address, Stored> {
        self.at(self.version)
    }

    /// Creates or updates.
    pub fn put(&mut self, cluster: &str, name: &str, value: u32, labelled: bool) {
        let address = (cluster.to_owned(), name.to_owned());
        let before = self.one_at(&address, self.version);
        let uid = before.as_ref().map_or_else(|| self.fresh_uid(), |stored| stored.uid);
        let visible = before.map_or(*self.bound.get(cluster).unwrap_or(&false), |stored| stored.visible);
        self.version += 1;
        let after = Some(Stored { uid, version: self.version, value, labelled, visible });
        self.history.push(Write { version: self.version, address, after });
    }

    pub fn delete(&mut self, cluster: &str, name: &str) {
        let address = (cluster.to_owned(), name.to_owned());
        if self.one_at(&address, self.version).is_some() {
            self.version += 1;
            self.history.push(Write { version: self.version, address, after: None });
        }
    }

    /// Something else was written, of another kind.
    pub fn other_writes(&mut self, count: u64) {
        self.version += count;
    }

    /// Rejects or accepts a claim, as kcp does: label by label, and the binding's status before or after. Gives
    /// the binding's version.
    pub fn bind(&mut self, cluster: &str, bound: bool) -> u64 {
        self.bound.insert(cluster.to_owned(), bound);
        self.version += 1;
        for (address, stored) in self.now().into_iter().filter(|((of, _), _)| of == cluster) {
            self.version += 1;
            let after = Some(Stored { version: self.version, visible: bound, ..stored });
            self.history.push(Write { version: self.version, address, after });
        }
        self.version += 1;
        self.version
    }

    pub fn compact(&mut self) {
        self.compacted = self.version;
    }

    /// Goes back to an older backup.
    pub fn restore(&mut self, version: u64) {
        self.history.retain(|write| write.version <= version);
        self.version = version;
        self.compacted = self.compacted.min(version);
        self.restored += 1;
        // The backup's bindings are told from what it shows; with nothing to tell by they are as they were.
        let now = self.now();
        for (cluster, bound) in &mut self.bound {
            let mut objects =
                now.iter().filter(|((of, _), _)| of == cluster).map(|(_, stored)| stored).peekable();
            if objects.peek().is_some() {
                *bound = objects.all(|stored| stored.visible);
            }
        }
    }

    /// Gives uids that no earlier life of this server has given.
    fn fresh_uid(&mut self) -> u64 {
        self.next_uid += 1;
        self.next_uid
    }

    fn shows(&self, stored: &Stored) -> bool {
        (!self.filtered || stored.labelled) && (!self.view || stored.visible)
    }

    pub fn list(&self, limit: usize, token: Option<&str>) -> Answer {
        let (version, skip) = match token.and_then(|token| token.split_once(':')) {
            None => (self.version, 0),
            Some((version, skip)) => (version.parse().unwrap(), skip.parse().unwrap()),
        };
        if version < self.compacted || version > self.version {
            return Answer::Expired;
        }
        let shown: Vec<(Address, Stored)> =
            self.at(version).into_iter().filter(|(_, stored)| self.shows(stored)).collect();
        let items: Vec<Value> =
            shown.iter().skip(skip).take(limit).map(|(address, stored)| body(address, stored)).collect();
        let more = shown.len() > skip + limit;
        let token = if more { format!("{version}:{}", skip + limit) } else { String::new() };
        let metadata = json!({ "resourceVersion": version.to_string(), "continue": token });
        let page =
            json!({ "kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items });
        Answer::Page(page.to_string().into_bytes())
    }

    /// The next line of a watch that has been sent everything up to a version, and up to which it is sent then.
    pub fn line_after(&self, sent: u64) -> Option<(Vec<u8>, u64)> {
        if sent < self.compacted {
            return Some((expired_line(), sent));
        }
        for write in self.history.iter().filter(|write| write.version > sent) {
            let before = self.one_at(&write.address, write.version - 1).filter(|stored| self.shows(stored));
            let after = write.after.clone().filter(|stored| self.shows(stored));
            let (event, mut stored) = match (before, after) {
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
