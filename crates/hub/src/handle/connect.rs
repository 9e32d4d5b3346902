//! What needs a machine: streams to a container, and requests that are handed on. No machine is behind a hub, so that each is
//! refused, as far as real servers come without one in their words.

use mailboat_machinery::{Machine, Status};
use mailboat_object::{Key, KindId, Name};

use super::act::check_container;
use super::{Call, not_allowed};
use crate::answer::Answer;
use crate::path::ObjectPath;

/// Which subresources of which kinds of the core group lead to a machine.
const CONNECTIONS: [(&str, &[&str]); 3] =
    [("pods", &["attach", "exec", "portforward", "proxy"]), ("services", &["proxy"]), ("nodes", &["proxy"])];
/// What is told where a real server would ask a machine.
const NO_MACHINE: &str =
    "nothing runs on the nodes of a hub that it plays itself, so that nothing can be reached there";

/// Whether a path leads to a machine.
pub(super) fn is_connection(path: &ObjectPath) -> bool {
    let leads = |(resource, parts): &(&str, &[&str])| {
        path.resource == *resource && parts.contains(&path.subresource.as_str())
    };
    path.group.is_empty() && !path.name.is_empty() && CONNECTIONS.iter().any(leads)
}

impl Call<'_> {
    /// Refuses to connect.
    pub(super) async fn connect(&self) -> Result<Answer, Status> {
        // A claim says what may be done with the objects that it grants, and nothing of this.
        if self.place.view.is_some() {
            return Err(Status::unserved());
        }
        let is_proxy = self.path.subresource == "proxy";
        if !is_proxy && !matches!(self.verb, "get" | "create") {
            return Err(not_allowed());
        }
        let check = |machine: &Machine| match self.path.resource.as_str() {
            "pods" if is_proxy => self.check_address(machine),
            "pods" => self.check_host(machine),
            _ => machine.get(&self.target()).map(|_| ()),
        };
        self.hub.read(check).await?;
        Err(Status::other(503, "ServiceUnavailable", NO_MACHINE))
    }

    /// The object that is meant: a proxy may be asked for as `scheme:name:port`.
    fn target(&self) -> Key {
        let parts: Vec<&str> = self.path.name.split(':').collect();
        let name = match parts.as_slice() {
            [name] | [name, _] | [_, name, _] => Name::new(name),
            _ => self.path.name.clone(),
        };
        Key { name, ..self.key() }
    }

    fn check_address(&self, machine: &Machine) -> Result<(), Status> {
        let pod = machine.get(&self.target())?;
        match pod.body()["status"]["podIP"].as_str() {
            None | Some("") => Err(Status::bad_request("address not allowed")),
            Some(_) => Ok(()),
        }
    }

    fn check_host(&self, machine: &Machine) -> Result<(), Status> {
        let pod = machine.get(&self.key())?;
        if self.path.subresource != "portforward" {
            check_container(&pod, self.query.get("container"))?;
        }
        let Some(node) = pod.body()["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) else {
            let message = format!("pod {} does not have a host assigned", pod.key.name);
            return Err(Status::bad_request(message));
        };
        let nodes = KindId::new("", "nodes");
        let key = Key { kind: nodes.clone(), namespace: Name::EMPTY, name: Name::new(node), ..self.key() };
        machine.get(&key).map(|_| ()).map_err(|_| Status::not_found(&nodes, node))
    }
}
