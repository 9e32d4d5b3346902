//! What schedulers and those who drain nodes do to Pods: each with one write that no manager of fields owns.

use std::sync::Arc;

use mailboat_object::Key;
use serde_json::{Value, json};

use super::Machine;
use crate::object::Stored;
use crate::random::Moment;
use crate::status::Status;
use crate::time::rfc3339;

impl Machine {
    /// Gives a Pod that has no node one, with what the scheduler has to say about it.
    pub fn assign(
        &mut self,
        key: &Key,
        node: &str,
        annotations: &Value,
        moment: &Moment<'_>,
    ) -> Result<Arc<Stored>, Status> {
        let live = self.get(key)?;
        let refused = |why: String| Err(Status::conflict_of(&key.kind, "binding", &key.name, &why));
        let name = &key.name;
        if live.is_deleting() {
            return refused(format!("pod {name} is being deleted, cannot be assigned to a host"));
        }
        if let Some(node) = live.body()["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
            return refused(format!("pod {name} is already assigned to node {node:?}"));
        }
        if live.body()["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
            return refused(format!("pod {name} has non-empty .spec.schedulingGates"));
        }
        let mut body = live.body().clone();
        body["spec"]["nodeName"] = node.into();
        for (name, value) in annotations.as_object().into_iter().flatten() {
            body["metadata"]["annotations"][name] = value.clone();
        }
        set_condition(&mut body, json!({ "type": "PodScheduled", "status": "True" }), moment);
        Ok(self.put(live.with_body(body)))
    }

    /// Says of a Pod that it goes because somebody empties its node.
    pub fn mark_evicted(&mut self, key: &Key, moment: &Moment<'_>) -> Result<Arc<Stored>, Status> {
        let live = self.get(key)?;
        let mut body = live.body().clone();
        let condition = json!({
            "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        });
        set_condition(&mut body, condition, moment);
        Ok(self.put(live.with_body(body)))
    }
}

/// Sets a condition, since now unless it had this status already.
fn set_condition(body: &mut Value, mut condition: Value, moment: &Moment<'_>) {
    if !body["status"]["conditions"].is_array() {
        body["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = body["status"]["conditions"].as_array_mut() else { return };
    condition["lastProbeTime"] = Value::Null;
    condition["lastTransitionTime"] = rfc3339(moment.now_seconds).into();
    match conditions.iter_mut().find(|known| known["type"] == condition["type"]) {
        Some(known) => {
            if known["status"] == condition["status"] {
                condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
}
