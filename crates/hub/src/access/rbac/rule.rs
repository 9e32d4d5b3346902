//! One rule of a role: what it allows, and what it covers.

use std::fmt;

use mailboat_object::Name;
use serde_json::{Value, json};

use super::super::Asked;

/// One rule of a role.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Rule {
    /// Such as `get`; `*` for all.
    pub verbs: Vec<Name>,
    /// API groups.
    pub groups: Vec<Name>,
    /// Such as `pods`, `pods/log` or `*/scale`.
    pub resources: Vec<Name>,
    /// Only objects of these names; none: all.
    pub names: Vec<Name>,
    /// Paths that are no object's; a star at the end stands for whatever follows.
    pub paths: Vec<Name>,
}

const ALL: &str = "*";

impl Rule {
    /// As it stands in a role.
    pub fn from_json(rule: &Value) -> Self {
        let texts = |member: &str| {
            let texts = rule[member].as_array().into_iter().flatten().filter_map(Value::as_str);
            texts.map(Name::new).collect()
        };
        Self {
            verbs: texts("verbs"),
            groups: texts("apiGroups"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            paths: texts("nonResourceURLs"),
        }
    }

    /// The rules of a role.
    pub fn all_of(role: &Value) -> Vec<Self> {
        role["rules"].as_array().into_iter().flatten().map(Self::from_json).collect()
    }

    /// As it stands in a role.
    pub fn to_json(&self) -> Value {
        let mut rule = json!({});
        for (member, names) in self.parts() {
            if !names.is_empty() || member == "verbs" {
                rule[member] = names.iter().map(Name::as_str).collect();
            }
        }
        rule
    }

    /// The rules of who may do everything.
    pub fn everything() -> [Self; 2] {
        let all = || vec![Name::new(ALL)];
        [
            Self { verbs: all(), groups: all(), resources: all(), ..Self::default() },
            Self { verbs: all(), paths: all(), ..Self::default() },
        ]
    }

    /// Whether it allows what is asked for.
    pub fn allows(&self, asked: &Asked<'_>) -> bool {
        match asked {
            Asked::Object { verb, group, resource, subresource, name, .. } => {
                has(&self.verbs, verb)
                    && has(&self.groups, group)
                    && self.resources.iter().any(|rule| covers_resource(rule, resource, subresource))
                    && (self.names.is_empty() || self.names.iter().any(|rule| rule.as_str() == *name))
            }
            Asked::Path { verb, path } => {
                has(&self.verbs, verb) && self.paths.iter().any(|rule| covers_path(rule, path))
            }
        }
    }

    /// The same in parts that speak of one verb, group, resource, name or path each, one after the other: a few kilobytes of
    /// rules may have millions of them.
    pub(super) fn parts_of_one(&self) -> impl Iterator<Item = Self> {
        let any = self.names.is_empty().then_some(None);
        let names = move || any.into_iter().chain(self.names.iter().map(Some));
        let of_objects = self.groups.iter().flat_map(move |group| {
            self.resources.iter().flat_map(move |resource| {
                self.verbs.iter().flat_map(move |verb| {
                    names().map(move |name| Self {
                        verbs: vec![verb.clone()],
                        groups: vec![group.clone()],
                        resources: vec![resource.clone()],
                        names: name.cloned().into_iter().collect(),
                        ..Self::default()
                    })
                })
            })
        });
        let of_paths = self.paths.iter().flat_map(|path| {
            self.verbs.iter().map(|verb| Self {
                verbs: vec![verb.clone()],
                paths: vec![path.clone()],
                ..Self::default()
            })
        });
        of_objects.chain(of_paths)
    }

    /// Whether whoever has this rule has all of another.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let all = |mine: &[Name], others: &[Name]| others.iter().all(|other| has(mine, other));
        let resources = other.resources.iter().all(|other| {
            let (resource, subresource) = other.split_once('/').unwrap_or((other, ""));
            self.resources.iter().any(|mine| covers_resource(mine, resource, subresource))
        });
        let names = if other.names.is_empty() {
            self.names.is_empty()
        } else {
            self.names.is_empty() || other.names.iter().all(|other| self.names.contains(other))
        };
        let paths = other.paths.iter().all(|other| self.paths.iter().any(|mine| covers_path(mine, other)));
        all(&self.verbs, &other.verbs) && all(&self.groups, &other.groups) && resources && names && paths
    }

    fn parts(&self) -> [(&'static str, &[Name]); 5] {
        [
            ("apiGroups", &self.groups),
            ("nonResourceURLs", &self.paths),
            ("resourceNames", &self.names),
            ("resources", &self.resources),
            ("verbs", &self.verbs),
        ]
    }
}

/// As servers write it where they refuse: `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.paths),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ];
        let mut separator = "{";
        for (what, names) in parts.iter().filter(|(_, names)| !names.is_empty()) {
            let names: Vec<String> = names.iter().map(|name| format!("{:?}", name.as_str())).collect();
            write!(f, "{separator}{what}:[{}]", names.join(" "))?;
            separator = ", ";
        }
        f.write_str("}")
    }
}

fn has(rule: &[Name], asked: &str) -> bool {
    rule.iter().any(|rule| rule.as_str() == ALL || rule.as_str() == asked)
}

fn covers_resource(rule: &str, resource: &str, subresource: &str) -> bool {
    if rule == ALL {
        return true;
    }
    match rule.split_once('/') {
        None => rule == resource && subresource.is_empty(),
        Some((of, part)) => !subresource.is_empty() && part == subresource && (of == ALL || of == resource),
    }
}

fn covers_path(rule: &str, path: &str) -> bool {
    rule == ALL || rule == path || (rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*')))
}
