//! Whether a copy does what it should, by what it reports: the rules that kstatus made common.
//!
//! A copy in a mailbox has the center's spec and the edge's status. Generations are counted by each server for
//! itself, so that `observedGeneration` says nothing against the copy's own; whether an edge has the present content
//! is known from its syncer instead. Inside a status, where both numbers are the edge's, they are compared.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use mailboat_object::json::Raw;
use mailboat_object::key::KindId;
use mailboat_object::object::Object;

/// How a copy is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Health {
    /// It does what it should.
    Well,
    /// It is on its way there.
    Underway(Cause),
    /// It does not, and will not by itself.
    Broken(Cause),
}

/// Why a copy is not well: one pointer, since most copies are well.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cause(Arc<Words>);

/// What a cause says.
#[derive(PartialEq, Eq, Debug)]
pub struct Words {
    /// One word, in CamelCase, that a program can tell the cause by.
    pub reason: String,
    /// The cause in a sentence for people.
    pub message: String,
}

impl Cause {
    /// A cause in these words.
    pub fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self(Arc::new(Words { reason: reason.into(), message: message.into() }))
    }
}

impl Deref for Cause {
    type Target = Words;

    fn deref(&self) -> &Words {
        &self.0
    }
}

/// What a copy of a kind reports of itself. `form` is what it should be, which is the copy itself where that is whole.
pub fn of(kind: &KindId, copy: &Object, form: &Object) -> Health {
    if copy.deleting {
        return underway("Terminating", "it is being deleted");
    }
    let status = Status(copy.get(&["status"]).filter(|status| status.is_map()));
    if let Some(stalled) = status.condition("Stalled").filter(Condition::is_true) {
        return Health::Broken(stalled.cause("Stalled"));
    }
    if let Some(reconciling) = status.condition("Reconciling").filter(Condition::is_true) {
        return Health::Underway(reconciling.cause("Reconciling"));
    }
    match (kind.group(), kind.resource()) {
        ("apps", "deployments") => deployment(form, status),
        ("apps", "statefulsets") => stateful_set(form, status),
        ("apps", "daemonsets") => daemon_set(status),
        ("apps", "replicasets") | ("", "replicationcontrollers") => replica_set(form, status),
        ("batch", "jobs") => job(status),
        ("", "pods") => pod(status),
        ("", "services") => service(form, status),
        ("", "persistentvolumeclaims") => volume_claim(status),
        ("policy", "poddisruptionbudgets") => disruption_budget(status),
        ("apiextensions.k8s.io", "customresourcedefinitions") => definition(status),
        _ => ordinary(status),
    }
}

fn deployment(form: &Object, status: Status<'_>) -> Health {
    if let Some(progressing) = status.condition("Progressing")
        && progressing.reason() == "ProgressDeadlineExceeded"
    {
        return Health::Broken(progressing.cause("ProgressDeadlineExceeded"));
    }
    let wanted = replicas(form);
    let (all, updated) = (status.count("replicas"), status.count("updatedReplicas"));
    let (ready, available) = (status.count("readyReplicas"), status.count("availableReplicas"));
    if let Some(behind) =
        first_behind(&[(wanted, all, "LessReplicas", "made"), (wanted, updated, "LessUpdated", "updated")])
    {
        return behind;
    }
    if all > wanted {
        return underway("ExtraPods", &format!("{} old replicas are still there", all - wanted));
    }
    if let Some(behind) = first_behind(&[
        (updated, available, "LessAvailable", "available"),
        (wanted, ready, "LessReady", "ready"),
    ]) {
        return behind;
    }
    match status.condition("Available") {
        Some(available) if available.is_true() => Health::Well,
        Some(unavailable) => Health::Underway(unavailable.cause("NotAvailable")),
        None => underway("NotAvailable", "it does not say yet that it is available"),
    }
}

fn stateful_set(form: &Object, status: Status<'_>) -> Health {
    let strategy = |member: &str| form.get(&["spec", "updateStrategy", member]);
    if strategy("type").and_then(Raw::as_str).is_some_and(|found| found == "OnDelete") {
        return Health::Well;
    }
    let wanted = replicas(form);
    let (all, ready) = (status.count("replicas"), status.count("readyReplicas"));
    if let Some(behind) =
        first_behind(&[(wanted, all, "LessReplicas", "made"), (wanted, ready, "LessReady", "ready")])
    {
        return behind;
    }
    if all > wanted {
        return underway("ExtraPods", &format!("{} replicas are too many", all - wanted));
    }
    let partition = form.get(&["spec", "updateStrategy", "rollingUpdate", "partition"]).and_then(Raw::as_i64);
    if let Some(partition) = partition.filter(|partition| *partition > 0) {
        let due = (wanted - partition).max(0);
        return first_behind(&[(due, status.count("updatedReplicas"), "PartitionRollout", "updated")])
            .unwrap_or(Health::Well);
    }
    if status.text("currentRevision") != status.text("updateRevision") {
        let message = format!("{} of {wanted} replicas are updated", status.count("updatedReplicas"));
        return underway("RollingUpdate", &message);
    }
    first_behind(&[(wanted, status.count("currentReplicas"), "LessCurrent", "of the current revision")])
        .unwrap_or(Health::Well)
}

fn daemon_set(status: Status<'_>) -> Health {
    let Some(wanted) = status.number("desiredNumberScheduled") else {
        return underway("NoDesiredNumber", "it does not say yet on how many nodes it should run");
    };
    first_behind(&[
        (wanted, status.count("currentNumberScheduled"), "LessScheduled", "scheduled"),
        (wanted, status.count("updatedNumberScheduled"), "LessUpdated", "updated"),
        (wanted, status.count("numberAvailable"), "LessAvailable", "available"),
        (wanted, status.count("numberReady"), "LessReady", "ready"),
    ])
    .unwrap_or(Health::Well)
}

fn replica_set(form: &Object, status: Status<'_>) -> Health {
    if let Some(failing) = status.condition("ReplicaFailure").filter(Condition::is_true) {
        return Health::Underway(failing.cause("ReplicaFailure"));
    }
    let wanted = replicas(form);
    let behind = first_behind(&[
        (wanted, status.count("fullyLabeledReplicas"), "LessLabelled", "labelled"),
        (wanted, status.count("availableReplicas"), "LessAvailable", "available"),
        (wanted, status.count("readyReplicas"), "LessReady", "ready"),
    ]);
    let all = status.count("replicas");
    match behind {
        Some(behind) => behind,
        None if all > wanted => underway("ExtraPods", &format!("{} replicas are too many", all - wanted)),
        None => Health::Well,
    }
}

fn job(status: Status<'_>) -> Health {
    if let Some(failed) = status.condition("Failed").filter(Condition::is_true) {
        return Health::Broken(failed.cause("JobFailed"));
    }
    let complete = status.condition("Complete").is_some_and(|complete| complete.is_true());
    // A job that runs does what it should: some never end.
    if complete || status.text("startTime").is_some() {
        return Health::Well;
    }
    underway("JobNotStarted", "it has not begun")
}

fn pod(status: Status<'_>) -> Health {
    let waiting_in_crash = || {
        let containers = status.0.into_iter().flat_map(|status| {
            ["initContainerStatuses", "containerStatuses"]
                .into_iter()
                .filter_map(move |member| status.member(member))
                .flat_map(Raw::elements)
        });
        let mut crashing = containers.filter(|container| {
            let reason = container.get(&["state", "waiting", "reason"]).and_then(Raw::as_str);
            reason.is_some_and(|reason| reason == "CrashLoopBackOff")
        });
        crashing.next().and_then(|container| container.member("name")?.as_str())
    };
    match status.text("phase").as_deref() {
        Some("Succeeded") => Health::Well,
        Some("Failed") => {
            let message = status.text("message").unwrap_or(Cow::Borrowed("it ended with a failure"));
            broken(status.text("reason").as_deref().unwrap_or("PodFailed"), &message)
        }
        Some("Running") if status.condition("Ready").is_some_and(|ready| ready.is_true()) => Health::Well,
        Some("Running" | "Pending") => {
            if let Some(name) = waiting_in_crash() {
                return broken(
                    "ContainerCrashLooping",
                    &format!("the container {name} crashes again and again"),
                );
            }
            match status.condition("PodScheduled") {
                Some(unscheduled) if unscheduled.reason() == "Unschedulable" => {
                    Health::Broken(unscheduled.cause("Unschedulable"))
                }
                _ => underway("PodNotReady", "it is not ready yet"),
            }
        }
        _ => underway("PodNotObserved", "it does not say yet how it is"),
    }
}

/// The edge's addresses stand in its spec, which does not come back; a load balancer's stand in the status.
fn service(form: &Object, status: Status<'_>) -> Health {
    let kind = form.get(&["spec", "type"]).and_then(Raw::as_str);
    let addresses = status.0.and_then(|status| status.get(&["loadBalancer", "ingress"]));
    let has_address = addresses.is_some_and(|addresses| addresses.elements().next().is_some());
    if kind.is_some_and(|kind| kind == "LoadBalancer") && !has_address {
        return underway("NoAddress", "its load balancer has no address yet");
    }
    Health::Well
}

fn volume_claim(status: Status<'_>) -> Health {
    match status.text("phase").as_deref() {
        Some("Bound") => Health::Well,
        Some("Lost") => broken("VolumeLost", "the volume that it was bound to is gone"),
        _ => underway("NotBound", "it has no volume yet"),
    }
}

fn disruption_budget(status: Status<'_>) -> Health {
    let (healthy, wanted) = (status.count("currentHealthy"), status.count("desiredHealthy"));
    first_behind(&[(wanted, healthy, "BudgetNotMet", "healthy")]).unwrap_or(Health::Well)
}

fn definition(status: Status<'_>) -> Health {
    if let Some(refused) = status.condition("NamesAccepted").filter(Condition::is_false) {
        return Health::Broken(refused.cause("NamesNotAccepted"));
    }
    match status.condition("Established") {
        Some(established) if established.is_true() => Health::Well,
        Some(not) if not.is_false() && not.reason() != "Installing" => {
            Health::Broken(not.cause("NotEstablished"))
        }
        _ => underway("Installing", "it is being installed"),
    }
}

/// Any other kind: what says that it is not ready is on its way; what says nothing is well.
fn ordinary(status: Status<'_>) -> Health {
    match status.condition("Ready") {
        Some(ready) if !ready.is_true() => Health::Underway(ready.cause("NotReady")),
        _ => Health::Well,
    }
}

/// The first of some numbers that has not got to where it should be: wanted, reached, the reason, and the word.
fn first_behind(numbers: &[(i64, i64, &str, &str)]) -> Option<Health> {
    let (wanted, reached, reason, word) = numbers.iter().find(|(wanted, reached, ..)| reached < wanted)?;
    Some(underway(reason, &format!("{reached} of {wanted} are {word}")))
}

fn replicas(form: &Object) -> i64 {
    form.get(&["spec", "replicas"]).and_then(Raw::as_i64).unwrap_or(1)
}

fn underway(reason: &str, message: &str) -> Health {
    Health::Underway(Cause::new(reason, message))
}

fn broken(reason: &str, message: &str) -> Health {
    Health::Broken(Cause::new(reason, message))
}

/// A status, if there is one.
#[derive(Clone, Copy)]
struct Status<'a>(Option<Raw<'a>>);

impl<'a> Status<'a> {
    fn number(self, member: &str) -> Option<i64> {
        self.0?.member(member)?.as_i64()
    }

    /// A number that is left out while it is 0.
    fn count(self, member: &str) -> i64 {
        self.number(member).unwrap_or_default()
    }

    fn text(self, member: &str) -> Option<Cow<'a, str>> {
        self.0?.member(member)?.as_str()
    }

    /// The condition of a type. One that was observed at an older generation than the status says nothing any more.
    fn condition(self, type_: &str) -> Option<Condition<'a>> {
        let mut conditions = self.0?.member("conditions")?.elements().map(Condition);
        let found =
            conditions.find(|condition| condition.text("type").is_some_and(|found| found == type_))?;
        let seen = self.number("observedGeneration");
        let outdated = found.number("observedGeneration").zip(seen).is_some_and(|(old, seen)| old < seen);
        (!outdated).then_some(found)
    }
}

#[derive(Clone, Copy)]
struct Condition<'a>(Raw<'a>);

impl<'a> Condition<'a> {
    fn text(&self, member: &str) -> Option<Cow<'a, str>> {
        self.0.member(member)?.as_str()
    }

    fn number(&self, member: &str) -> Option<i64> {
        self.0.member(member)?.as_i64()
    }

    fn is_true(&self) -> bool {
        self.text("status").is_some_and(|status| status == "True")
    }

    fn is_false(&self) -> bool {
        self.text("status").is_some_and(|status| status == "False")
    }

    fn reason(&self) -> Cow<'a, str> {
        self.text("reason").unwrap_or_default()
    }

    /// What it gives as the cause, or this reason if it gives none.
    fn cause(&self, otherwise: &str) -> Cause {
        let reason = Some(self.reason()).filter(|reason| !reason.is_empty());
        let reason = reason.map_or_else(|| otherwise.to_owned(), Cow::into_owned);
        Cause::new(reason, self.text("message").unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
