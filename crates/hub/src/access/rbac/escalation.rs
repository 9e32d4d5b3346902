//! Nobody gives away what he does not have: writes of roles and bindings are held to the writer's own rules.

use std::collections::{BTreeMap, BTreeSet};

use mailboat_object::{ClusterId, Name};
use serde_json::Value;

use super::{GROUP, Rights, Rule};
use crate::access::{Asked, User};

/// What a user would give away without having it, in the server's words: the sentence after `is forbidden: `.
pub type Escalation = String;

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
            "rolebindings" | "clusterrolebindings" => self.check_binding(cluster, user, namespace, body),
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
        self.check_rules(cluster, user, namespace, &rules)
    }

    fn check_binding(
        &self,
        cluster: &ClusterId,
        user: &User,
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
            Some(rules) => self.check_rules(cluster, user, namespace, rules),
            None => Err(format!("{resource}.{GROUP} {name:?} not found")),
        }
    }

    fn check_rules(
        &self,
        cluster: &ClusterId,
        user: &User,
        namespace: &str,
        given: &[Rule],
    ) -> Result<(), Escalation> {
        let own = self.rules(cluster, user, namespace);
        let parts = given.iter().flat_map(Rule::parts_of_one);
        let missing: Vec<Rule> = parts.filter(|part| !own.iter().any(|own| own.covers(part))).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let told: BTreeSet<String> = together(missing).iter().map(ToString::to_string).collect();
        let told: Vec<String> = told.into_iter().collect();
        let groups: Vec<String> = user.groups.iter().map(|group| format!("{group:?}")).collect();
        Err(format!(
            "user {:?} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
            user.name,
            groups.join(" "),
            told.join("\n")
        ))
    }
}

/// Rules that differ in their verbs alone, as one.
fn together(rules: Vec<Rule>) -> Vec<Rule> {
    let mut verbs: BTreeMap<Rule, BTreeSet<Name>> = BTreeMap::new();
    for mut rule in rules {
        let of_rule = std::mem::take(&mut rule.verbs);
        verbs.entry(rule).or_default().extend(of_rule);
    }
    verbs.into_iter().map(|(rule, verbs)| Rule { verbs: verbs.into_iter().collect(), ..rule }).collect()
}
