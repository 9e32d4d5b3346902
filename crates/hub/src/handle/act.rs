//! What is done to Pods by asking for something below them: they are bound to a node, evicted from it, and would tell what
//! they did there.

use http::{HeaderMap, StatusCode};
use mailboat_machinery::{FieldError, ListRequest, Machine, Moment, Patch, Status, Stored, WriteOptions};
use mailboat_object::json::Raw;
use mailboat_object::wire::Part;
use mailboat_object::{Key, KindId, LabelSelector, Name, Version};
use serde_json::{Value, json};

use super::Call;
use super::write::read;
use crate::answer::{self, Answer};
use crate::media::Sent;
use crate::path::ObjectPath;

/// Who writes what an eviction leaves in a budget.
const MANAGER: &str = "kube-apiserver";
/// In so many seconds a budget may have been looked at.
const BUDGET_LATER_SECONDS: u64 = 10;

/// Whether a path is one of a Pod.
pub(super) fn is_pod(path: &ObjectPath) -> bool {
    (path.group.as_str(), path.resource.as_str()) == ("", "pods") && !path.namespace.is_empty()
}

/// Whether a path is one by which something is done to a Pod.
pub(super) fn is_act(path: &ObjectPath) -> bool {
    is_pod(path) && matches!(path.subresource.as_str(), "binding" | "eviction")
}

/// Whether a path is that of bindings, which name their Pod in themselves.
pub(super) fn is_bare_binding(path: &ObjectPath) -> bool {
    (path.group.as_str(), path.version.as_str(), path.resource.as_str()) == ("", "v1", "bindings")
        && !path.namespace.is_empty()
        && path.name.is_empty()
}

/// The path to the Pod that a binding names.
pub(super) fn of_binding(path: &ObjectPath, body: &[u8], headers: &HeaderMap) -> Result<ObjectPath, Status> {
    let body = read(body, Sent::object(headers)?)?;
    let name = body["metadata"]["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        return Err(Status::bad_request("Name parameter required."));
    }
    Ok(ObjectPath {
        resource: "pods".to_owned(),
        name: Name::new(name),
        subresource: "binding".to_owned(),
        ..path.clone()
    })
}

impl Call<'_> {
    /// Binds or evicts a Pod.
    pub(super) async fn act(&self, body: &[u8]) -> Result<Answer, Status> {
        // A claim says what may be done with the Pods that it grants, and nothing of this.
        if self.place.view.is_some() {
            return Err(Status::unserved());
        }
        self.query.check_write("CreateOptions")?;
        let body = read(body, Sent::object(self.headers)?)?;
        let (what, is_binding) = match self.path.subresource.as_str() {
            "binding" => ("Binding", true),
            _ => ("Eviction", false),
        };
        if body["metadata"]["name"].as_str().unwrap_or_default() != self.path.name.as_str() {
            return Err(Status::bad_request(format!("name in URL does not match name in {what} object")));
        }
        if is_binding {
            self.bind(&body).await?;
        } else {
            self.evict(&body).await?;
        }
        let done = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
        });
        self.value(StatusCode::CREATED, &done)
    }

    /// Tells what a Pod said: nothing, where it is nowhere yet.
    pub(super) async fn log(&self) -> Result<Answer, Status> {
        let node = |name: &str| Key {
            kind: KindId::new("", "nodes"),
            namespace: Name::EMPTY,
            name: Name::new(name),
            ..self.key()
        };
        let placed = self.hub.read(|machine| {
            let pod = machine.get(&self.key())?;
            check_container(&pod, self.query.get("container"))?;
            match pod.body()["spec"]["nodeName"].as_str() {
                None | Some("") => Ok(false),
                // Real servers take the node for a Pod when they say so.
                Some(name) => match machine.get(&node(name)) {
                    Ok(_) => Ok(true),
                    Err(_) => Err(Status::not_found(&self.kind.id, name)),
                },
            }
        });
        if placed.await? {
            let message =
                "nothing runs on the nodes of a hub that it plays itself, so that there are no logs";
            return Err(Status::other(503, "ServiceUnavailable", message));
        }
        Ok(answer::nothing(StatusCode::NO_CONTENT))
    }

    async fn bind(&self, body: &Value) -> Result<(), Status> {
        let target = &body["target"];
        let kind = target["kind"].as_str().unwrap_or_default();
        let mut errors = Vec::new();
        if !matches!(kind, "" | "Node") {
            let known = ["Node", "<empty>"].map(Value::from);
            errors.push(FieldError::unsupported("target.kind", &json!(kind), &known));
        }
        let node = target["name"].as_str().unwrap_or_default();
        if node.is_empty() {
            errors.push(FieldError::required("target.name", ""));
        }
        if !errors.is_empty() {
            return Err(Status::plain(&errors));
        }
        let bind = |machine: &mut Machine, moment: &mut Moment<'_>| {
            let pod = machine.get(&self.key())?;
            self.check_precondition(&pod, &body["metadata"])?;
            if self.query.dry_run() {
                return Ok(());
            }
            machine.assign(&self.key(), node, &body["metadata"]["annotations"], moment).map(|_| ())
        };
        self.hub.write(bind).await
    }

    /// A scheduler may say which Pod it means, and as of when.
    fn check_precondition(&self, pod: &Stored, wanted: &Value) -> Result<(), Status> {
        let other = |member: &str, present: &str| {
            wanted[member].as_str().is_some_and(|text| !text.is_empty() && text != present)
        };
        if other("uid", &pod.uid.to_string()) || other("resourceVersion", &pod.version.to_string()) {
            let why = "Precondition failed";
            return Err(Status::conflict_of(&self.kind.id, "binding", &self.path.name, why));
        }
        Ok(())
    }

    async fn evict(&self, body: &Value) -> Result<(), Status> {
        let options = match &body["deleteOptions"] {
            Value::Null => json!({}),
            options => options.clone(),
        };
        let mut options = self.delete_options(options.to_string().as_bytes())?;
        options.dry_run |= self.query.dry_run();
        let evict = |machine: &mut Machine, moment: &mut Moment<'_>| {
            let pod = machine.get(&self.key())?;
            let phase = pod.body()["status"]["phase"].as_str().unwrap_or_default();
            let is_out = pod.is_deleting() || matches!(phase, "Succeeded" | "Failed" | "Pending");
            if !is_out {
                self.spend_budget(machine, &pod, options.dry_run, moment)?;
            }
            let mut options = options.clone();
            if !options.dry_run {
                if options.version.is_some_and(|version| version != pod.version) {
                    let why = "the object might have been modified";
                    return Err(Status::conflict(&self.kind.id, &self.path.name, why));
                }
                let marked = machine.mark_evicted(&self.key(), moment)?;
                options.version = options.version.map(|_: Version| marked.version);
            }
            machine.delete(&self.key(), &options, moment).map(|_| ())
        };
        self.hub.write(evict).await
    }

    /// Takes one disruption from the budget of a Pod that has one; refuses where none is left.
    fn spend_budget(
        &self,
        machine: &mut Machine,
        pod: &Stored,
        dry_run: bool,
        moment: &mut Moment<'_>,
    ) -> Result<(), Status> {
        let request = ListRequest {
            cluster: Some(self.cluster.clone()),
            kind: KindId::new("policy", "poddisruptionbudgets"),
            namespace: self.path.namespace.clone(),
            ..ListRequest::default()
        };
        let mut budgets = machine.list(&request)?.items;
        budgets.retain(|budget| {
            let selector = budget.body()["spec"]["selector"].to_string();
            let selector = Raw::parse(selector.as_bytes()).ok().map(LabelSelector::from_json);
            selector.is_some_and(|selector| selector.is_ok_and(|selector| selector.matches(pod)))
        });
        let budget = match budgets.as_slice() {
            [] => return Ok(()),
            [budget] => budget,
            _ => {
                let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does \
                               not support.";
                return Err(Status::other(500, "", message));
            }
        };
        let status = &budget.body()["status"];
        let number = |member: &str| status[member].as_i64().unwrap_or(0);
        let (healthy, desired) = (number("currentHealthy"), number("desiredHealthy"));
        if !is_ready(pod) {
            let always = budget.body()["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
            if always || (healthy >= desired && desired > 0) {
                return Ok(());
            }
        }
        let name = &budget.key.name;
        if number("observedGeneration") < budget.metadata()["generation"].as_i64().unwrap_or(0) {
            let why = format!("The disruption budget {name} is still being processed by the server.");
            return Err(Status::disruption(why, Some(BUDGET_LATER_SECONDS)));
        }
        let allowed = number("disruptionsAllowed");
        if allowed <= 0 {
            let why = format!(
                "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
            );
            return Err(Status::disruption(why, None));
        }
        if dry_run {
            return Ok(());
        }
        let now = mailboat_machinery::time::rfc3339(moment.now_seconds);
        let mut spent = json!({ "status": {
            "disruptionsAllowed": allowed - 1, "disruptedPods": { pod.key.name.as_str(): now },
        } });
        if allowed == 1 {
            let generation = &budget.metadata()["generation"];
            spent["status"]["conditions"] = json!([{
                "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
                "observedGeneration": generation, "lastTransitionTime": now,
            }]);
        }
        let options =
            WriteOptions { manager: Name::new(MANAGER), part: Part::Status, ..WriteOptions::default() };
        machine.patch(&budget.key, Patch::Merge(&spent), &options, moment).map(|_| ())
    }
}

/// Refuses what is no container of a Pod, and to choose among several.
pub(super) fn check_container(pod: &Stored, asked: Option<&str>) -> Result<(), Status> {
    let of = |member: &str| {
        let containers = pod.body()["spec"][member].as_array().into_iter().flatten();
        containers.filter_map(|container| container["name"].as_str()).collect::<Vec<_>>()
    };
    let (name, containers) = (&pod.key.name, of("containers"));
    match asked {
        None if containers.len() > 1 => {
            let names = containers.join(" ");
            let message =
                format!("a container name must be specified for pod {name}, choose one of: [{names}]");
            Err(Status::bad_request(message))
        }
        Some(asked)
            if !["containers", "initContainers", "ephemeralContainers"]
                .iter()
                .any(|member| of(member).contains(&asked)) =>
        {
            Err(Status::bad_request(format!("container {asked} is not valid for pod {name}")))
        }
        _ => Ok(()),
    }
}

fn is_ready(pod: &Stored) -> bool {
    let conditions = pod.body()["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
