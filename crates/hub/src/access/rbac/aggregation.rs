//! Cluster roles that are made of others: what a controller writes into them.

use mailboat_machinery::{ListRequest, Machine};
use mailboat_object::{ClusterId, Key, KindId, LabelSelector, Raw};
use serde_json::Value;

use super::{GROUP, Rights};

impl Rights {
    /// Whether a workspace has cluster roles that are made of others.
    pub fn has_aggregated(&self, cluster: &ClusterId) -> bool {
        self.workspaces.get(cluster).is_some_and(|workspace| workspace.has_aggregated())
    }
}

/// The cluster roles of a workspace whose rules are not those of what they are made of, each with the rules that it
/// should have. Whoever asks writes them down.
pub fn due(machine: &Machine, cluster: &ClusterId) -> Vec<(Key, Value)> {
    let kind = KindId::new(GROUP, "clusterroles");
    let request = ListRequest { cluster: Some(cluster.clone()), kind, ..ListRequest::default() };
    let Ok(roles) = machine.list(&request) else { return Vec::new() };
    let mut due = Vec::new();
    for role in roles.items.iter().filter(|role| role.has_member("aggregationRule")) {
        let Some(selectors) = role.body()["aggregationRule"]["clusterRoleSelectors"].as_array() else {
            continue;
        };
        let selectors: Vec<LabelSelector> = selectors.iter().filter_map(selector_of).collect();
        let mut rules: Vec<&Value> = Vec::new();
        for part in roles.items.iter().filter(|part| part.key != role.key) {
            if selectors.iter().any(|selector| selector.matches(&**part)) {
                for rule in part.body()["rules"].as_array().into_iter().flatten() {
                    if !rules.contains(&rule) {
                        rules.push(rule);
                    }
                }
            }
        }
        let present: Vec<&Value> = role.body()["rules"].as_array().into_iter().flatten().collect();
        if present != rules {
            due.push((role.key.clone(), rules.into_iter().cloned().collect()));
        }
    }
    due
}

fn selector_of(selector: &Value) -> Option<LabelSelector> {
    LabelSelector::from_json(Raw::parse(selector.to_string().as_bytes()).ok()?).ok()
}
