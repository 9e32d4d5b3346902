//! Role-based access control: an index over the roles and bindings of all workspaces, and the decision.

pub mod aggregation;
mod alike;
pub mod bootstrap;
pub mod escalation;
mod rule;
#[cfg(test)]
mod tests;
mod workspace;

use std::collections::BTreeMap;
use std::sync::Arc;

use mailboat_machinery::Change;
use mailboat_object::{ClusterId, KindId};
use serde_json::Value;

use super::{Asked, User};

use alike::Alike;
pub use alike::Reading;
pub use rule::Rule;
use workspace::{Granted, Workspace};

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";
/// The kinds of roles and bindings.
pub const RESOURCES: [&str; 4] = ["roles", "rolebindings", "clusterroles", "clusterrolebindings"];

/// Whether something is allowed, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    /// It is.
    pub allowed: bool,
    /// In the words of Kubernetes; empty where there is nothing to say.
    pub reason: String,
}

impl Decision {
    /// Yes.
    pub fn allow(reason: impl Into<String>) -> Self {
        Self { allowed: true, reason: reason.into() }
    }

    /// No.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self { allowed: false, reason: reason.into() }
    }
}

/// Takes a binding and what its role gives; answers whether to go on.
type EachGrant<'e> = dyn FnMut(&Granted<'_>, Result<&[Rule], String>) -> bool + 'e;

/// Who may do what in which workspace. It follows the roles and bindings as they change; a decision looks only at the
/// bindings that name the user or one of the groups.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    workspaces: BTreeMap<ClusterId, Arc<Workspace>>,
    alike: Alike,
    /// What holds in every workspace besides its own: the roles that bindings may name everywhere, kept once.
    common: Workspace,
}

impl Rights {
    /// Nobody may do anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets roles and bindings hold in every workspace: what a server brings along ([`bootstrap::objects`]).
    pub fn add_common(&mut self, objects: impl IntoIterator<Item = Value>) {
        for object in objects {
            let resource = match object["kind"].as_str() {
                Some("ClusterRole") => "clusterroles",
                Some("ClusterRoleBinding") => "clusterrolebindings",
                _ => continue,
            };
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            self.common.set(resource, "", name, Some(&object));
        }
    }

    /// Takes a change into account; one of another kind does nothing.
    pub fn observe(&mut self, change: &Change) {
        let key = &change.key;
        if key.kind.group() != GROUP {
            return;
        }
        let object = change.after();
        let body = object.as_ref().map(|object| object.body());
        self.set(&key.cluster, key.kind.resource(), &key.namespace, &key.name, body);
    }

    /// Takes a role or binding as it is now; none: it is gone.
    pub fn set(
        &mut self,
        cluster: &ClusterId,
        resource: &str,
        namespace: &str,
        name: &str,
        body: Option<&Value>,
    ) {
        let former = self.workspaces.remove(cluster);
        let mut workspace = former.map(|former| self.alike.unshare(former)).unwrap_or_default();
        workspace.set(resource, namespace, name, body);
        if !workspace.is_empty() {
            self.workspaces.insert(cluster.clone(), self.alike.share(workspace));
        }
    }

    /// Whether a kind's changes matter here.
    pub fn concerns(kind: &KindId) -> bool {
        kind.group() == GROUP
    }

    /// Whether a user may do something in a workspace.
    pub fn decide(&self, cluster: &ClusterId, user: &User, asked: &Asked<'_>) -> Decision {
        if user.seen_in(cluster).is_master() {
            return Decision::allow("");
        }
        let mut missing = Vec::new();
        let mut decision = None;
        self.visit(cluster, user, asked.namespace(), &mut |binding, found| {
            match found {
                Ok(rules) if rules.iter().any(|rule| rule.allows(asked)) => {
                    decision = Some(Decision::allow(format!("RBAC: allowed by {binding}")));
                }
                Ok(_) => {}
                Err(role) if missing.contains(&role) => {}
                Err(role) => missing.push(role),
            }
            decision.is_none()
        });
        decision.unwrap_or_else(|| {
            let reason = match missing.as_slice() {
                [] => String::new(),
                [one] => format!("RBAC: {one}"),
                several => format!("RBAC: [{}]", several.join(", ")),
            };
            Decision::deny(reason)
        })
    }

    /// Whether a user may enter a workspace at all, as kcp asks before anything else: a service account its own, others
    /// where they have the verb `access` on `/`.
    pub fn may_enter(&self, cluster: &ClusterId, user: &User) -> bool {
        if user.is_master() {
            return true;
        }
        if user.as_service_account().is_some() {
            return !user.is_foreign_account(cluster);
        }
        self.decide(cluster, user, &Asked::Path { verb: "access", path: "/" }).allowed
    }

    /// The rules that hold for a user in a namespace, or with an empty one in all of them.
    pub fn rules(&self, cluster: &ClusterId, user: &User, namespace: &str) -> Vec<Rule> {
        let mut rules = Vec::new();
        if user.seen_in(cluster).is_master() {
            rules.extend(Rule::everything());
        }
        self.visit(cluster, user, namespace, &mut |_, found| {
            rules.extend(found.unwrap_or_default().iter().cloned());
            true
        });
        rules
    }

    /// The rules of a role as a binding names it.
    fn role(&self, cluster: &ClusterId, namespace: &str, kind: &str, name: &str) -> Option<&[Rule]> {
        let own = self.workspaces.get(cluster).and_then(|workspace| workspace.role(namespace, kind, name));
        own.or_else(|| self.common.role("", kind, name).filter(|_| kind == "ClusterRole"))
    }

    /// Goes through the bindings that name whoever the user is in this workspace, those of the cluster first, until told to
    /// stop. A binding comes with the rules of its role, or with the sentence that says that there is no such role.
    fn visit(&self, cluster: &ClusterId, user: &User, namespace: &str, each: &mut EachGrant<'_>) {
        let user = &*user.seen_in(cluster);
        let own = self.workspaces.get(cluster).map(|own| &**own);
        let namespaces = if namespace.is_empty() { &[""][..] } else { &["", namespace][..] };
        for at in namespaces {
            for workspace in [Some(&self.common), own].into_iter().flatten() {
                for granted in workspace.granted(user, at) {
                    let (kind, name) =
                        (granted.binding.role_kind.as_str(), granted.binding.role_name.as_str());
                    let found = self
                        .role(cluster, at, kind, name)
                        .ok_or_else(|| format!("{}.{GROUP} {name:?} not found", kind.to_ascii_lowercase()));
                    if !each(&granted, found) {
                        return;
                    }
                }
            }
        }
    }
}
