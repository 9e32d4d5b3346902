//! Nobody gives away what he does not have: writes of roles and bindings are held to the writer's own rules.

use std::collections::{BTreeMap, BTreeSet};

use mailboat_object::{ClusterId, Name};
use serde_json::Value;

use super::{GROUP, Rights, Rule};
use crate::access::{Asked, User};

/// How often parts of rules are compared for one write, and how many that are missing are told.
const MOST_COMPARED: usize = 2_000_000;
const MOST_MISSING: usize = 2_000;

/// Why a role or binding may not be written, in the server's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Escalation {
    /// 403: it would give away what its writer does not have. The sentence after `is forbidden: `.
    #[error("{0}")]
    Refused(String),
    /// 404: there is no role of this name, so that nobody can tell what a binding would give away. Real servers name the
    /// resource that is written, and not that of the role.
    #[error("{written}.{GROUP} {role:?} not found")]
    NoRole {
        /// Such as `rolebindings`.
        written: String,
        /// The role's name.
        role: String,
    },
}

impl Rights {
    /// Checks a write of a role or binding, as it would be stored. Other resources pass.
    pub fn check_escalation(
        &self,
        cluster: &ClusterId,
        user: &User,
        resource: &str,
        namespace: &str,
        body: &Value,
    ) -> Result<(), Escalation> {
        if user.is_master() {
            return Ok(());
        }
        match resource {
            "roles" | "clusterroles" => self.check_role(cluster, user, resource, namespace, body),
            "rolebindings" | "clusterrolebindings" => {
                self.check_binding(cluster, user, resource, namespace, body)
            }
            _ => Ok(()),
        }
    }

    fn check_role(
        &self,
        cluster: &ClusterId,
        user: &User,
        resource: &str,
        namespace: &str,
        body: &Value,
    ) -> Result<(), Escalation> {
        let name = body["metadata"]["name"].as_str().unwrap_or_default();
        let asked =
            Asked::Object { verb: "escalate", group: GROUP, resource, subresource: "", namespace, name };
        if self.decide(cluster, user, &asked).allowed {
            return Ok(());
        }
        let mut rules = Rule::all_of(body);
        if body["aggregationRule"].is_object() {
            // What it will be made of is not known: it may come to be everything.
            rules.extend(Rule::everything());
        }
        self.check_rules(cluster, user, resource, namespace, &rules)
    }

    fn check_binding(
        &self,
        cluster: &ClusterId,
        user: &User,
        written: &str,
        namespace: &str,
        body: &Value,
    ) -> Result<(), Escalation> {
        let reference = &body["roleRef"];
        let kind = reference["kind"].as_str().unwrap_or_default();
        let name = reference["name"].as_str().unwrap_or_default();
        let resource = if kind == "Role" { "roles" } else { "clusterroles" };
        let asked = Asked::Object { verb: "bind", group: GROUP, resource, subresource: "", namespace, name };
        if self.decide(cluster, user, &asked).allowed {
            return Ok(());
        }
        match self.role(cluster, namespace, kind, name) {
            Some(rules) => self.check_rules(cluster, user, written, namespace, rules),
            None => Err(Escalation::NoRole { written: written.to_owned(), role: name.to_owned() }),
        }
    }

    fn check_rules(
        &self,
        cluster: &ClusterId,
        user: &User,
        written: &str,
        namespace: &str,
        given: &[Rule],
    ) -> Result<(), Escalation> {
        let mut own = Vec::new();
        let mut unresolved = Vec::new();
        self.visit(cluster, user, namespace, &mut |granted, found| {
            let missing = || {
                let role = granted.binding.role_name.to_string();
                Escalation::NoRole { written: written.to_owned(), role }.to_string()
            };
            match found {
                Ok(rules) => own.extend(rules.iter().cloned()),
                Err(_) if unresolved.contains(&missing()) => {}
                Err(_) => unresolved.push(missing()),
            }
            true
        });
        let missing = missing(given, &own)?;
        if missing.is_empty() {
            return Ok(());
        }
        let told: BTreeSet<String> = together(missing).iter().map(ToString::to_string).collect();
        let told: Vec<String> = told.into_iter().collect();
        let groups: Vec<String> = user.groups.iter().map(|group| format!("{group:?}")).collect();
        let unresolved = match unresolved.as_slice() {
            [] => String::new(),
            some => format!("; resolution errors: [{}]", some.join(" ")),
        };
        Err(Escalation::Refused(format!(
            "user {:?} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}{unresolved}",
            user.name,
            groups.join(" "),
            told.join("\n")
        )))
    }
}

/// The parts of rules that no other rule covers: all of them, or more than anybody reads.
fn missing(given: &[Rule], own: &[Rule]) -> Result<Vec<Rule>, Escalation> {
    let mut left = MOST_COMPARED;
    let mut missing = Vec::new();
    // Mostly somebody gives away a rule that he has himself, or has more.
    let whole = |rule: &&Rule| own.iter().any(|own| own.covers(rule));
    for part in given.iter().filter(|rule| !whole(rule)).flat_map(Rule::parts_of_one) {
        if missing.len() == MOST_MISSING {
            break;
        }
        let Some(fewer) = left.checked_sub(own.len().max(1)) else {
            let why =
                "it names too many verbs, resources and groups to compare them with the permissions held";
            return Err(Escalation::Refused(why.to_owned()));
        };
        left = fewer;
        if !own.iter().any(|own| own.covers(&part)) {
            missing.push(part);
        }
    }
    Ok(missing)
}

/// Rules about objects that differ in their verbs alone, as one; the verbs as they came, as real servers say them.
fn together(rules: Vec<Rule>) -> Vec<Rule> {
    let mut verbs: BTreeMap<Rule, Vec<Name>> = BTreeMap::new();
    let (mut all, rules): (Vec<Rule>, Vec<Rule>) = rules.into_iter().partition(|rule| !rule.paths.is_empty());
    for mut rule in rules {
        let of_rule = std::mem::take(&mut rule.verbs);
        verbs.entry(rule).or_default().extend(of_rule);
    }
    all.extend(verbs.into_iter().map(|(rule, verbs)| Rule { verbs, ..rule }));
    all
}
