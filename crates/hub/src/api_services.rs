//! APIServices say whether what they announce is available. A hub asks no other servers, so that only what it serves
//! itself is.

use mailboat_machinery::time::rfc3339;
use mailboat_machinery::{ListRequest, Machine, Moment, Patch, Stored, WriteOptions};
use mailboat_object::wire::Part;
use mailboat_object::{ClusterId, Key, KindId, Name};
use serde_json::{Value, json};

/// The kind.
fn kind() -> KindId {
    KindId::new("apiregistration.k8s.io", "apiservices")
}

/// Whether a change of this kind may change what is said of an APIService.
pub(crate) fn concerns(changed: &KindId) -> bool {
    *changed == kind() || (changed.group().is_empty() && changed.resource() == "services")
}

/// Writes down of every APIService of a cluster whether it is available, and tells how many had to be written.
pub(crate) fn follow(machine: &mut Machine, cluster: &ClusterId, moment: &mut Moment<'_>) -> usize {
    let request = ListRequest { cluster: Some(cluster.clone()), kind: kind(), ..ListRequest::default() };
    let Ok(all) = machine.list(&request) else { return 0 };
    let mut done = 0;
    for service in &all.items {
        let said = says(machine, service);
        let known = service.body()["status"]["conditions"].as_array().into_iter().flatten();
        let known: Option<&Value> = known.into_iter().find(|condition| condition["type"] == "Available");
        let same = |member: &str| known.is_some_and(|known| known[member] == said[member]);
        if ["status", "reason", "message"].into_iter().all(same) {
            continue;
        }
        let mut condition = said.clone();
        condition["lastTransitionTime"] = match known.filter(|_| same("status")) {
            Some(known) => known["lastTransitionTime"].clone(),
            None => rfc3339(moment.now_seconds).into(),
        };
        let patch = json!({ "status": { "conditions": [condition] } });
        let options = WriteOptions {
            manager: Name::new("kube-apiserver"),
            part: Part::Status,
            ..WriteOptions::default()
        };
        done += usize::from(machine.patch(&service.key, Patch::Merge(&patch), &options, moment).is_ok());
    }
    done
}

/// The condition, in the words of kube-apiserver where it would say the same.
fn says(machine: &Machine, service: &Stored) -> Value {
    let behind = &service.body()["spec"]["service"];
    let condition = |status: &str, reason: &str, message: String| json!({ "type": "Available", "status": status, "reason": reason, "message": message });
    let (Some(namespace), Some(name)) = (behind["namespace"].as_str(), behind["name"].as_str()) else {
        let message = "Local APIServices are always available".to_owned();
        return condition("True", "Local", message);
    };
    let key = Key {
        cluster: service.key.cluster.clone(),
        kind: KindId::new("", "services"),
        namespace: Name::new(namespace),
        name: Name::new(name),
    };
    if machine.get(&key).is_err() {
        let message = format!("service/{name} in {namespace:?} is not present");
        return condition("False", "ServiceNotFound", message);
    }
    condition("False", "NotAsked", "a hub asks no other servers".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;
    use crate::{Hub, Options};

    async fn make(hub: &Hub, kind: KindId, namespace: &str, object: Value) {
        let key = Key {
            cluster: ClusterId::new(crate::cluster::CLUSTER),
            kind,
            namespace: Name::new(namespace),
            name: Name::new(object["metadata"]["name"].as_str().unwrap()),
        };
        let options = WriteOptions::default();
        hub.write(|machine, moment| machine.create(&key, object, &options, moment)).await.unwrap();
    }

    #[tokio::test]
    async fn an_api_service_says_what_it_lacks_and_says_it_once() {
        let hub = crate::cluster(Memory::default(), Options::default()).await.unwrap().hub;
        let cluster = ClusterId::new(crate::cluster::CLUSTER);
        let announced = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": { "name": "v1.example.my" },
            "spec": { "group": "example.my", "version": "v1", "groupPriorityMinimum": 360, "versionPriority": 42,
                "service": { "name": "mine", "namespace": "default" } },
        });
        make(&hub, kind(), "", announced).await;
        let follow = || hub.write(|machine, moment| Ok(follow(machine, &cluster, moment)));
        let reason = || {
            let request =
                ListRequest { cluster: Some(cluster.clone()), kind: kind(), ..ListRequest::default() };
            let list = hub.peek(|machine| machine.list(&request)).unwrap();
            list.items[0].body()["status"]["conditions"][0]["reason"].clone()
        };
        assert_eq!(follow().await.unwrap(), 1);
        assert_eq!(reason(), "ServiceNotFound");
        assert_eq!(follow().await.unwrap(), 0, "what is said already is not said again");
        let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "mine", "namespace": "default" },
            "spec": { "ports": [{ "port": 443 }] } });
        make(&hub, KindId::new("", "services"), "default", service).await;
        assert_eq!(follow().await.unwrap(), 1);
        assert_eq!(reason(), "NotAsked");
    }
}
