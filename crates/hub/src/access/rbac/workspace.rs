//! The roles and bindings of one workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use mailboat_object::Name;
use serde_json::Value;

use super::Rule;
use crate::access::User;

/// The roles and bindings of one workspace. An idle mailbox holds a handful.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Workspace {
    /// By namespace, empty for cluster roles, and name.
    roles: BTreeMap<(Name, Name), Arc<[Rule]>>,
    /// Cluster roles that are made of others, and the selectors of those.
    aggregated: BTreeSet<Name>,
    bindings: BTreeMap<(Name, Name), Arc<Binding>>,
    /// Which bindings name a subject. First the namespace of the binding, so that one lookup finds all that matter.
    by_subject: BTreeMap<(Name, Subject), BTreeSet<Name>>,
}

/// A role binding or cluster role binding.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Binding {
    pub namespace: Name,
    pub name: Name,
    pub role_kind: Name,
    pub role_name: Name,
    subjects: Vec<Subject>,
}

/// Whom a binding names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Subject {
    User(Name),
    Group(Name),
    ServiceAccount { namespace: Name, name: Name },
}

/// A binding that names a user, and as whom.
pub(super) struct Granted<'w> {
    pub binding: &'w Binding,
    subject: &'w Subject,
}

impl Workspace {
    pub(super) fn is_empty(&self) -> bool {
        self.roles.is_empty() && self.bindings.is_empty()
    }

    /// How many roles and bindings there are.
    pub(super) fn len(&self) -> usize {
        self.roles.len() + self.bindings.len()
    }

    pub(super) fn set(&mut self, resource: &str, namespace: &str, name: &str, body: Option<&Value>) {
        let at = (Name::new(namespace), Name::new(name));
        match resource {
            "roles" | "clusterroles" => {
                let aggregated = body.is_some_and(|body| body["aggregationRule"].is_object());
                if aggregated {
                    self.aggregated.insert(at.1.clone());
                } else if namespace.is_empty() {
                    self.aggregated.remove(&at.1);
                }
                match body {
                    Some(body) => self.roles.insert(at, Rule::all_of(body).into()),
                    None => self.roles.remove(&at),
                };
            }
            "rolebindings" | "clusterrolebindings" => {
                self.unbind(&at);
                if let Some(body) = body {
                    self.bind(at, body);
                }
            }
            _ => {}
        }
    }

    /// Whether it has cluster roles that are made of others.
    pub(super) fn has_aggregated(&self) -> bool {
        !self.aggregated.is_empty()
    }

    fn bind(&mut self, at: (Name, Name), body: &Value) {
        let text = |value: &Value| Name::new(value.as_str().unwrap_or_default());
        let subjects = body["subjects"].as_array().into_iter().flatten();
        let subjects: Vec<Subject> = subjects
            .filter_map(|subject| {
                let name = text(&subject["name"]);
                match subject["kind"].as_str()? {
                    "User" => Some(Subject::User(name)),
                    "Group" => Some(Subject::Group(name)),
                    "ServiceAccount" => {
                        // Without a namespace of its own, the account is one of the binding's.
                        let own = text(&subject["namespace"]);
                        let namespace = if own.is_empty() { at.0.clone() } else { own };
                        (!namespace.is_empty()).then_some(Subject::ServiceAccount { namespace, name })
                    }
                    _ => None,
                }
            })
            .collect();
        for subject in &subjects {
            let named = self.by_subject.entry((at.0.clone(), subject.clone())).or_default();
            named.insert(at.1.clone());
        }
        let binding = Binding {
            namespace: at.0.clone(),
            name: at.1.clone(),
            role_kind: text(&body["roleRef"]["kind"]),
            role_name: text(&body["roleRef"]["name"]),
            subjects,
        };
        self.bindings.insert(at, Arc::new(binding));
    }

    fn unbind(&mut self, at: &(Name, Name)) {
        let Some(former) = self.bindings.remove(at) else { return };
        for subject in &former.subjects {
            let key = (at.0.clone(), subject.clone());
            if let Some(named) = self.by_subject.get_mut(&key) {
                named.remove(&at.1);
                if named.is_empty() {
                    self.by_subject.remove(&key);
                }
            }
        }
    }

    /// The rules of a role; a binding in a namespace finds roles there.
    pub(super) fn role(&self, namespace: &str, kind: &str, name: &str) -> Option<&[Rule]> {
        let namespace = if kind == "Role" { Name::new(namespace) } else { Name::EMPTY };
        self.roles.get(&(namespace, Name::new(name))).map(|rules| &**rules)
    }

    /// The bindings of a namespace, or of the cluster, that name the user, in the order of their names; each with the
    /// first of its subjects that is the user.
    pub(super) fn granted(&self, user: &User, namespace: &str) -> Vec<Granted<'_>> {
        let namespace = Name::new(namespace);
        let subjects = Subject::of(user);
        let mut names: BTreeSet<&Name> = BTreeSet::new();
        for subject in &subjects {
            let key = (namespace.clone(), subject.clone());
            names.extend(self.by_subject.get(&key).into_iter().flatten());
        }
        let bindings = names.into_iter().filter_map(|name| {
            let binding = self.bindings.get(&(namespace.clone(), name.clone()))?;
            let subject = binding.subjects.iter().find(|subject| subjects.contains(subject))?;
            Some(Granted { binding, subject })
        });
        bindings.collect()
    }
}

impl Subject {
    /// All that a binding may name to name this user.
    fn of(user: &User) -> Vec<Self> {
        let account = user.as_service_account().map(|(namespace, name)| Self::ServiceAccount {
            namespace: Name::new(namespace),
            name: Name::new(name),
        });
        let groups = user.groups.iter().map(|group| Self::Group(Name::new(group)));
        let names = [Some(user.name.clone()), user.global_account()].into_iter().flatten();
        names.map(|name| Self::User(Name::new(&name))).chain(account).chain(groups).collect()
    }
}

/// As Kubernetes gives the reason.
impl fmt::Display for Granted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Binding { namespace, name, role_kind, role_name, .. } = self.binding;
        let (kind, slash) =
            if namespace.is_empty() { ("ClusterRoleBinding", "") } else { ("RoleBinding", "/") };
        write!(f, "{kind} \"{name}{slash}{namespace}\" of {role_kind} {:?} to ", role_name.as_str())?;
        match self.subject {
            Subject::User(name) => write!(f, "User {:?}", name.as_str()),
            Subject::Group(name) => write!(f, "Group {:?}", name.as_str()),
            Subject::ServiceAccount { namespace, name } => write!(f, "ServiceAccount \"{name}/{namespace}\""),
        }
    }
}
