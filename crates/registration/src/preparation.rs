//! A new workspace of one of our types, which waits until the center has its rights there: they are made, and it is let go.
//!
//! A state machine: whoever runs it sends what [`Next`] says and tells what came of it. Each run looks at what is there, so that
//! one that was broken off is taken up by the next. The rights are those that `ensure` gives, by the same
//! function ([`put_right`]).

use std::collections::VecDeque;
use std::sync::Arc;

use mailboat_api::names::object::LOGICAL_CLUSTER;
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Verb};
use serde_json::{Value, json};

use crate::inventory::{PutRight, put_right};

const RBAC: &str = "rbac.authorization.k8s.io";
/// How often one run begins a step anew because somebody else was faster.
const MOST_REPEATS: u32 = 5;
/// No cluster of kcp has a slash in its id.
const WAITING_PREFIX: &str = "waiting/";

/// The id under which a workspace is reached that waits for an initializer.
pub fn waiting_cluster(initializer: &str, workspace: &ClusterId) -> ClusterId {
    ClusterId::new(&format!("{WAITING_PREFIX}{initializer}/{workspace}"))
}

/// Whether a cluster is a workspace that waits, reached to prepare it.
pub fn is_waiting_cluster(cluster: &ClusterId) -> bool {
    cluster.0.starts_with(WAITING_PREFIX)
}

/// One run.
#[derive(Debug)]
pub struct Preparation {
    cluster: ClusterId,
    initializer: Name,
    manager: Name,
    missing: VecDeque<(Key, Value)>,
    stage: Stage,
    repeats: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The first of what may be missing is read,
    Looking,
    /// or written.
    Writing,
    /// It is read for whom the workspace waits,
    Reading,
    /// and written without us.
    LettingGo,
}

/// What is to be done next.
#[derive(Debug)]
pub enum Next {
    /// Send this.
    Call(Call),
    /// Nothing: the workspace waits for us no more.
    Done,
    /// Nothing more in this run, since this failed.
    Failed(Fault),
}

impl Preparation {
    /// A run that makes these rights in the workspace that is reached by this id, and takes the initializer off it; and what
    /// it begins with.
    pub fn begin(cluster: &ClusterId, initializer: &str, rights: [Value; 2], manager: &Name) -> (Self, Next) {
        let missing = ["clusterroles", "clusterrolebindings"].into_iter().zip(rights);
        let missing = missing.map(|(resource, right)| {
            let name = right["metadata"]["name"].as_str().unwrap_or_default();
            (key(cluster, RBAC, resource, name), right)
        });
        let mut run = Self {
            cluster: cluster.clone(),
            initializer: Name::new(initializer),
            manager: manager.clone(),
            missing: missing.collect(),
            stage: Stage::Looking,
            repeats: 0,
        };
        let first = run.look();
        (run, first)
    }

    /// Goes on with the answer to what was sent.
    pub fn answered(&mut self, answer: Result<&[u8], &Fault>) -> Next {
        match (self.stage, answer) {
            // Whoever is shown it no more has nothing to let go.
            (Stage::Reading | Stage::LettingGo, Err(fault)) if fault.kind == FaultKind::NotFound => {
                Next::Done
            }
            (Stage::Writing, Err(fault)) if fault.kind == FaultKind::Exists => self.again(fault),
            (Stage::LettingGo, Err(fault)) if fault.kind == FaultKind::Conflict => self.again(fault),
            (Stage::Looking, Err(fault)) if fault.kind == FaultKind::NotFound => self.found(None),
            (_, Err(fault)) => Next::Failed(fault.clone()),
            (Stage::Looking, Ok(found)) => match serde_json::from_slice(found) {
                Ok(found) => self.found(Some(&found)),
                Err(_) => Next::Failed(not_understood()),
            },
            (Stage::Writing, Ok(_)) => {
                self.missing.pop_front();
                self.look()
            }
            (Stage::Reading, Ok(found)) => match serde_json::from_slice(found) {
                Ok(found) => self.let_go(&found),
                Err(_) => Next::Failed(not_understood()),
            },
            (Stage::LettingGo, Ok(_)) => Next::Done,
        }
    }

    /// Somebody was faster: it is looked at again, unless that was so too often.
    fn again(&mut self, fault: &Fault) -> Next {
        self.repeats += 1;
        if self.repeats > MOST_REPEATS {
            return Next::Failed(Fault::new(FaultKind::Retry(None), fault.text.clone()));
        }
        self.look()
    }

    fn look(&mut self) -> Next {
        let (stage, key) = match self.missing.front() {
            Some((key, _)) => (Stage::Looking, key.clone()),
            None => (Stage::Reading, self.itself()),
        };
        self.stage = stage;
        Next::Call(Call { key, verb: Verb::Get, part: Part::Whole, dry_run: false })
    }

    fn found(&mut self, found: Option<&Value>) -> Next {
        let Some((key, wanted)) = self.missing.front() else { return self.look() };
        let verb = match put_right(found, wanted) {
            Err(other) => {
                let text = format!("{} {}: {other}", key.kind, key.name);
                return Next::Failed(Fault::new(FaultKind::Invalid, text));
            }
            Ok(None) => {
                self.missing.pop_front();
                return self.look();
            }
            Ok(Some(PutRight::Make)) => Verb::Create { body: bytes(wanted), manager: self.manager.clone() },
            Ok(Some(PutRight::Patch(difference))) => {
                Verb::Merge { body: bytes(&difference), manager: self.manager.clone() }
            }
        };
        self.stage = Stage::Writing;
        Next::Call(Call { key: key.clone(), verb, part: Part::Whole, dry_run: false })
    }

    /// Takes us off what it waits for, as it was just read: others take themselves off meanwhile.
    fn let_go(&mut self, found: &Value) -> Next {
        let waits_for: Vec<&str> = found["status"]["initializers"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if !waits_for.contains(&self.initializer.as_str()) {
            return Next::Done;
        }
        let others: Vec<&str> =
            waits_for.into_iter().filter(|one| *one != self.initializer.as_str()).collect();
        let patch = json!({
            "metadata": { "resourceVersion": found["metadata"]["resourceVersion"] },
            "status": { "initializers": others },
        });
        self.stage = Stage::LettingGo;
        let verb = Verb::Merge { body: bytes(&patch), manager: self.manager.clone() };
        Next::Call(Call { key: self.itself(), verb, part: Part::Status, dry_run: false })
    }

    fn itself(&self) -> Key {
        key(&self.cluster, "core.kcp.io", "logicalclusters", LOGICAL_CLUSTER)
    }
}

fn key(cluster: &ClusterId, group: &str, resource: &str, name: &str) -> Key {
    let (namespace, name) = (Name::EMPTY, Name::new(name));
    Key { cluster: cluster.clone(), kind: KindId::new(group, resource), namespace, name }
}

fn bytes(object: &Value) -> Arc<[u8]> {
    Arc::from(object.to_string().into_bytes())
}

fn not_understood() -> Fault {
    Fault::new(FaultKind::Invalid, "the server's answer is not understood")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::inventory::center_rights;

    const OURS: &str = "provider:mailboat-workload";

    /// A workspace that waits for these.
    struct Workspace {
        objects: BTreeMap<Key, Value>,
        version: u64,
        writes: Vec<String>,
        /// Somebody else takes himself off before our first attempt to.
        meanwhile: bool,
    }

    impl Workspace {
        fn waiting_for(initializers: &[&str]) -> Self {
            let itself = json!({
                "metadata": { "resourceVersion": "1" },
                "status": { "phase": "Initializing", "initializers": initializers },
            });
            let at = key(&cluster(), "core.kcp.io", "logicalclusters", "cluster");
            Self { objects: BTreeMap::from([(at, itself)]), version: 1, writes: Vec::new(), meanwhile: false }
        }

        fn waits_for(&self) -> Value {
            self.objects[&key(&cluster(), "core.kcp.io", "logicalclusters", "cluster")]["status"]["initializers"]
                .clone()
        }

        fn answer(&mut self, call: &Call) -> Result<Vec<u8>, Fault> {
            let fault = |kind: FaultKind| Err(Fault::new(kind, "refused"));
            let (body, made) = match &call.verb {
                Verb::Get => {
                    let found = self.objects.get(&call.key);
                    return found
                        .map_or_else(|| fault(FaultKind::NotFound), |found| Ok(found.to_string().into()));
                }
                Verb::Create { body, .. } => (body, true),
                Verb::Merge { body, .. } => (body, false),
                other => panic!("{other:?} is not for a view"),
            };
            if std::mem::take(&mut self.meanwhile) {
                let at = key(&cluster(), "core.kcp.io", "logicalclusters", "cluster");
                let itself = self.objects.get_mut(&at).unwrap();
                itself["status"]["initializers"].as_array_mut().unwrap().retain(|one| one == OURS);
                itself["metadata"]["resourceVersion"] = "99".into();
                if call.part == Part::Status {
                    return fault(FaultKind::Conflict);
                }
            }
            let body: Value = serde_json::from_slice(body).unwrap();
            if made && self.objects.contains_key(&call.key) {
                return fault(FaultKind::Exists);
            }
            self.version += 1;
            self.writes.push(format!(
                "{} {}",
                call.key.kind.resource(),
                if made { "made" } else { "patched" }
            ));
            let at = self.objects.entry(call.key.clone()).or_insert_with(|| json!({}));
            for (member, value) in body.as_object().unwrap() {
                at[member] = value.clone();
            }
            Ok(at.to_string().into())
        }

        fn prepare(&mut self) -> Next {
            let (mut run, mut next) =
                Preparation::begin(&cluster(), OURS, center_rights(), &Name::new("center"));
            while let Next::Call(call) = &next {
                let answer = self.answer(call);
                next = run.answered(answer.as_deref());
            }
            next
        }
    }

    fn cluster() -> ClusterId {
        waiting_cluster(OURS, &ClusterId::new("abc"))
    }

    #[test]
    fn a_workspace_gets_the_centers_rights_before_it_is_let_go() {
        let mut workspace = Workspace::waiting_for(&["system:apibindings", OURS]);
        assert!(matches!(workspace.prepare(), Next::Done));
        let all = ["clusterroles made", "clusterrolebindings made", "logicalclusters patched"];
        assert_eq!(workspace.writes, all);
        assert_eq!(workspace.waits_for(), json!(["system:apibindings"]), "others are left alone");
        assert!(is_waiting_cluster(&cluster()) && !is_waiting_cluster(&ClusterId::new("abc")));
    }

    #[test]
    fn a_run_that_was_broken_off_is_taken_up_and_one_after_the_last_writes_nothing() {
        let mut workspace = Workspace::waiting_for(&[OURS]);
        let [role, _] = center_rights();
        let mut older = role.clone();
        older["rules"] = json!([]);
        workspace.objects.insert(key(&cluster(), RBAC, "clusterroles", "mailboat:center"), older);
        assert!(matches!(workspace.prepare(), Next::Done));
        let all = ["clusterroles patched", "clusterrolebindings made", "logicalclusters patched"];
        assert_eq!(workspace.writes, all);
        workspace.writes.clear();
        assert!(matches!(workspace.prepare(), Next::Done));
        assert!(workspace.writes.is_empty(), "{:?}", workspace.writes);
    }

    #[test]
    fn somebody_else_who_lets_it_go_at_the_same_time_is_not_put_back() {
        let mut workspace = Workspace::waiting_for(&["others", OURS]);
        let rights = center_rights();
        for (resource, right) in ["clusterroles", "clusterrolebindings"].into_iter().zip(rights) {
            workspace.objects.insert(key(&cluster(), RBAC, resource, "mailboat:center"), right);
        }
        workspace.meanwhile = true;
        assert!(matches!(workspace.prepare(), Next::Done));
        assert_eq!(workspace.waits_for(), json!([]));
    }

    #[test]
    fn a_workspace_in_which_the_rights_cannot_be_made_is_not_let_go() {
        let mut workspace = Workspace::waiting_for(&[OURS]);
        let [_, mut other] = center_rights();
        other["roleRef"]["name"] = "another".into();
        workspace.objects.insert(key(&cluster(), RBAC, "clusterrolebindings", "mailboat:center"), other);
        assert!(matches!(workspace.prepare(), Next::Failed(fault) if fault.text.contains("delete it")));
        assert_eq!(workspace.waits_for(), json!([OURS]));
    }
}
