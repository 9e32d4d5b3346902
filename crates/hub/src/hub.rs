//! The server's state, and the one way to it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use mailboat_machinery::{Change, Machine, Moment, Random, Status, Stored};
use mailboat_object::{ClusterId, Key, KindId, Version};
use tokio::sync::{Notify, watch};

use crate::access::User;
use crate::access::rbac;
use crate::access::user::CLUSTER_EXTRA;
use crate::bell::Bells;
use crate::discovered::Discovered;
use crate::flow::{self, Asker, Limits, Pass, Work};
use crate::gate::Gate;
use crate::lines::Lines;
use crate::random::{NoRandomness, Unguessable};
use crate::recorder::Recorder;
use crate::storage::{Ledger, Refused, Snapshot, StorageError};
use crate::workspaces::{Workspaces, tenant_of};
use crate::{api_services, keeper};

/// What a server serves.
#[derive(Debug)]
pub(crate) enum Serving {
    /// One cluster.
    Cluster(ClusterId),
    /// Workspaces, as kcp does.
    Workspaces(Workspaces),
}

/// One server: its objects, and who waits for changes of them.
#[derive(Debug)]
pub struct Hub {
    ledger: Ledger,
    gate: Gate,
    random: Mutex<Unguessable>,
    serving: Serving,
    url: String,
    pub(crate) bells: Bells,
    /// What many watch is written once.
    pub(crate) lines: Lines,
    /// What many workspaces serve is written once, too.
    pub(crate) discovered: Discovered,
    /// Whose turn it is.
    flow: flow::Gate,
    pub(crate) limits: Limits,
    /// The clusters in which something may be left to tidy up.
    untidy: Mutex<BTreeSet<ClusterId>>,
    pub(crate) tidy_up: Notify,
    /// Turns true when the server stops: streams end.
    pub(crate) stopping: watch::Sender<bool>,
    /// Where it is written down how clients ask.
    pub(crate) recorder: Option<Recorder>,
}

impl Hub {
    /// A server of these objects.
    pub(crate) fn new(
        ledger: Ledger,
        gate: Gate,
        serving: Serving,
        url: String,
    ) -> Result<Self, NoRandomness> {
        Ok(Self {
            ledger,
            gate,
            random: Mutex::new(Unguessable::new()?),
            serving,
            url,
            bells: Bells::default(),
            lines: Lines::default(),
            discovered: Discovered::default(),
            flow: flow::Gate::new(&Limits::default()),
            limits: Limits::default(),
            untidy: Mutex::default(),
            tidy_up: Notify::new(),
            stopping: watch::Sender::new(false),
            recorder: None,
        })
    }

    /// The same server with other limits on what is under way at once.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.flow = flow::Gate::new(&limits);
        self.limits = limits;
        self
    }

    /// The same server, which writes down how clients ask.
    #[must_use]
    pub fn with_recorder(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// From now on gives new Pods the tokens of their accounts.
    pub(crate) fn give_tokens(&self) {
        // Nothing is changed by it that would have to be stored.
        let ((), _) = self.ledger.write(Machine::give_tokens);
    }

    /// Forgets what happened: whoever asks for it from now on is told to list anew. Real servers do so every five minutes.
    pub fn forget(&self) {
        let shown = *self.ledger.shown().borrow();
        let ((), _) = self.ledger.write(|machine| machine.compact(shown));
    }

    /// Waits until it is a user's turn. What was let in is over when the pass is dropped.
    pub(crate) async fn turn(&self, asker: &Asker, work: Work) -> Result<Pass, Status> {
        self.flow.enter(asker, work).await.map_err(|error| Status::too_many(error.to_string()))
    }

    /// A watch, if there is room for one more.
    pub(crate) async fn watch_turn(&self, asker: &Asker) -> Result<Pass, Status> {
        let home = ClusterId::new(&asker.workspace);
        let tenant = self.peek(|machine| tenant_of(machine, &home));
        let pass = self.flow.watch(asker, tenant.as_deref()).await;
        pass.map_err(|error| Status::too_many(error.to_string()))
    }

    /// Whose turn it is when this user asks. Accounts of all workspaces have the same names: each is one of its own.
    pub(crate) fn asker(&self, user: &User) -> Asker {
        let home = user.extra.get(CLUSTER_EXTRA).and_then(|home| home.first());
        match (&self.serving, home) {
            (Serving::Workspaces(_), Some(home)) => Asker::account(home, &user.name),
            _ => Asker::user(&user.name),
        }
    }

    /// Something that chance decides.
    pub(crate) fn chance(&self) -> u64 {
        self.random.lock().unwrap_or_else(PoisonError::into_inner).next()
    }

    /// What it serves.
    pub(crate) fn serving(&self) -> &Serving {
        &self.serving
    }

    /// Who may come in.
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Where it is reached, as `ADDRESS:PORT`.
    pub(crate) fn address(&self) -> &str {
        self.url.trim_start_matches("https://")
    }

    /// Looks at what is settled by itself: kinds, and watches, which show nothing that could be lost.
    pub(crate) fn peek<T>(&self, look: impl FnOnce(&Machine) -> T) -> T {
        self.ledger.peek(look)
    }

    /// Looks at objects. What is seen is told when it can no longer be lost.
    pub(crate) async fn read<T>(
        &self,
        look: impl FnOnce(&Machine) -> Result<T, Status>,
    ) -> Result<T, Status> {
        let (outcome, settled) = self.ledger.read(look);
        settled.wait().await.map_err(|refused| not_stored(&refused))?;
        outcome
    }

    /// Looks at one object. It is told when it can no longer be lost, which most are at once.
    pub(crate) async fn read_object(
        &self,
        look: impl FnOnce(&Machine) -> Result<Arc<Stored>, Status>,
    ) -> Result<Arc<Stored>, Status> {
        let (outcome, settled) = self.ledger.read_object(look);
        settled.wait().await.map_err(|refused| not_stored(&refused))?;
        outcome
    }

    /// Changes objects. What came of it is told when it can no longer be lost.
    ///
    /// A kind is served from the moment on in which its definition is written: whoever reads his own write back can
    /// use it.
    pub(crate) async fn write<T>(
        &self,
        change: impl FnOnce(&mut Machine, &mut Moment<'_>) -> Result<T, Status>,
    ) -> Result<T, Status> {
        let (outcome, settled) = self.ledger.write(|machine| {
            let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
            let mut moment = Moment { now_seconds: now_seconds(), random: &mut *random as &mut dyn Random };
            let before = machine.version();
            let outcome = change(machine, &mut moment);
            for cluster in definitions_changed(machine, before) {
                machine.follow_definitions(&cluster, &mut moment);
            }
            if let Serving::Workspaces(workspaces) = &self.serving {
                workspaces.follow(machine, before, &mut moment);
            }
            outcome
        });
        settled.wait().await.map_err(|refused| not_stored(&refused))?;
        outcome
    }

    /// Why nothing is stored any more until the hub begins anew.
    pub(crate) fn stopped(&self) -> Option<&Refused> {
        self.ledger.stopped()
    }

    /// Everything that is stored now, to be written to a file.
    pub(crate) async fn snapshot(&self) -> Result<Snapshot, StorageError> {
        self.ledger.snapshot().await
    }

    /// Wakes whenever something became durable; holds the version up to which everything is.
    pub(crate) fn shown(&self) -> watch::Receiver<Version> {
        self.ledger.shown()
    }

    /// Wakes those who watch what changed, and the keeper where something may be left to tidy up, until the server
    /// stops. Nobody is woken for what could still be lost.
    pub(crate) async fn ring(&self) {
        let mut shown = self.ledger.shown();
        let mut stopping = self.stopping.subscribe();
        let mut rung = *shown.borrow_and_update();
        // What was left to do when the last process ended, or was made while this one began, is done first.
        self.tidy_everything();
        loop {
            tokio::select! {
                changed = shown.changed() => if changed.is_err() { return },
                _ = stopping.wait_for(|stopping| *stopping) => return,
            }
            let now = *shown.borrow_and_update();
            let (changed, complete) =
                self.peek(|machine| (self.changed(machine, rung, now), machine.remembers(rung)));
            rung = now;
            if !complete {
                self.bells.ring_all();
                self.tidy_everything();
            }
            for (cluster, kind) in &changed.kinds {
                self.bells.ring(cluster, kind);
            }
            if !changed.untidy.is_empty() {
                self.untidy.lock().unwrap_or_else(PoisonError::into_inner).extend(changed.untidy);
                self.tidy_up.notify_one();
            }
        }
    }

    /// What changed after a version, and up to another.
    fn changed(&self, machine: &Machine, after: Version, up_to: Version) -> Changed {
        let mut changed = Changed::default();
        for change in machine.changed_since(after).filter(|change| change.version <= up_to) {
            let key = &change.key;
            changed.kinds.insert((key.cluster.clone(), key.kind.clone()));
            if change.unmade() || self.begets(machine, change) || leaves_untidy(machine, change) {
                changed.untidy.insert(key.cluster.clone());
            }
        }
        changed
    }

    /// Whether something else may have to be made or written because something is there.
    fn begets(&self, machine: &Machine, change: &Change) -> bool {
        let key = &change.key;
        let is =
            |group: &str, resource: &str| *key.kind.group() == *group && *key.kind.resource() == *resource;
        (change.made() && is("", "namespaces") && lacks_account(machine, key))
            || (is(rbac::GROUP, "clusterroles")
                && self.gate.rights(|rights| rights.has_aggregated(&key.cluster)))
            || api_services::concerns(&key.kind)
    }

    /// Wakes the keeper for all clusters.
    fn tidy_everything(&self) {
        let all: Vec<ClusterId> = self.peek(|machine| machine.clusters().cloned().collect());
        self.untidy.lock().unwrap_or_else(PoisonError::into_inner).extend(all);
        self.tidy_up.notify_one();
    }

    /// Goes on with what is going away of kcp's own objects.
    pub(crate) fn tidy_workspaces(
        &self,
        machine: &mut Machine,
        cluster: &ClusterId,
        moment: &mut Moment<'_>,
    ) -> usize {
        match &self.serving {
            Serving::Cluster(_) => 0,
            Serving::Workspaces(workspaces) => workspaces.tidy(machine, cluster, moment),
        }
    }

    /// The clusters in which something may be left to tidy up; from now on none.
    pub(crate) fn take_untidy(&self) -> BTreeSet<ClusterId> {
        std::mem::take(&mut *self.untidy.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// 500: what was asked for could not be stored, and was not done.
fn not_stored(refused: &Refused) -> Status {
    tracing::error!(error = %refused, "a write could not be stored, and was refused");
    Status::other(500, "InternalError", format!("Internal error occurred: {refused}"))
}

fn definitions_changed(machine: &Machine, since: Version) -> BTreeSet<ClusterId> {
    let definitions = KindId::new("apiextensions.k8s.io", "customresourcedefinitions");
    let changed = machine.changed_since(since).filter(|change| change.key.kind == definitions);
    changed.map(|change| change.key.cluster.clone()).collect()
}

/// What changed.
#[derive(Default)]
struct Changed {
    kinds: BTreeSet<(ClusterId, KindId)>,
    /// Clusters in which something else may have to follow: dependents, what stands in a namespace, or roles that are
    /// made of others.
    untidy: BTreeSet<ClusterId>,
}

/// Whether something is left to do because of an object that is going, or whose owners may not be there. One whose owners
/// stand is nobody's concern: an inventory has three such objects for each of its edges, and is not looked through for each.
fn leaves_untidy(machine: &Machine, change: &Change) -> bool {
    let after = change.after().filter(|_| change.is_going_or_owned());
    after.is_some_and(|after| after.is_deleting() || !machine.is_kept_by_owners(&after))
}

/// Whether a namespace has no account yet; in a workspace that was just made it has.
fn lacks_account(machine: &Machine, namespace: &Key) -> bool {
    let (account, _) = keeper::default_account(&namespace.cluster, &namespace.name);
    machine.get(&account).is_err()
}

pub(crate) fn now_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use mailboat_machinery::WriteOptions;
    use mailboat_object::Name;
    use serde_json::{Value, json};

    use super::*;
    use crate::storage::Memory;
    use crate::workspaces::ROOT;
    use crate::{Options, workspaces};

    /// Makes an object, and tells whether its cluster is to be tidied because of it.
    async fn untidies(hub: &Hub, kind: KindId, namespace: &str, object: Value) -> bool {
        let key = Key {
            cluster: ClusterId::new(ROOT),
            kind,
            namespace: Name::new(namespace),
            name: Name::new(object["metadata"]["name"].as_str().unwrap_or_default()),
        };
        let before = hub.peek(Machine::version);
        let options = WriteOptions { manager: Name::new("test"), ..WriteOptions::default() };
        hub.write(|machine, moment| machine.create(&key, object, &options, moment)).await.unwrap();
        hub.peek(|machine| !hub.changed(machine, before, machine.version()).untidy.is_empty())
    }

    #[tokio::test]
    async fn a_cluster_is_tidied_only_where_something_may_be_left_to_do() {
        let hub = workspaces(Memory::default(), Options::default()).await.unwrap().hub;
        let (maps, roles) = (KindId::new("", "configmaps"), KindId::new(rbac::GROUP, "clusterroles"));
        let map = |name: &str, uid: Option<&str>| {
            let owner = uid
                .map(|uid| json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid }));
            json!({ "metadata": { "name": name, "ownerReferences": owner.into_iter().collect::<Vec<_>>() } })
        };
        assert!(!untidies(&hub, maps.clone(), "default", map("owner", None)).await);
        let owner = Key {
            cluster: ClusterId::new(ROOT),
            kind: maps.clone(),
            namespace: Name::new("default"),
            name: Name::new("owner"),
        };
        let uid = hub.peek(|machine| machine.get(&owner)).unwrap().uid.to_string();
        assert!(
            !untidies(&hub, maps.clone(), "default", map("owned", Some(&uid))).await,
            "its owner is there"
        );
        assert!(untidies(&hub, maps, "default", map("orphan", Some("another"))).await, "garbage");
        let role = |name: &str| json!({ "metadata": { "name": name }, "rules": [] });
        assert!(!untidies(&hub, roles.clone(), "", role("plain")).await);
        let mut whole = role("whole");
        whole["aggregationRule"] = json!({ "clusterRoleSelectors": [{ "matchLabels": { "a": "b" } }] });
        assert!(untidies(&hub, roles.clone(), "", whole).await, "its rules are to be put together");
        assert!(untidies(&hub, roles, "", role("part")).await, "it may be a part of the other");
    }
}
