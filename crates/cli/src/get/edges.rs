//! Edges as placements choose them: by the labels of the Locations that lead to them.

use std::collections::BTreeMap;

use mailboat_api::names::group;
use mailboat_object::json::Raw;
use mailboat_object::key::KindId;
use mailboat_object::select::LabelSelector;
use serde_json::Value;

use crate::table::text;

/// Under which names it is kept beside an edge while it is shown which Locations lead there, and what the first is labelled.
const LOCATIONS: &str = "mailboat.dev/shown-locations";
const LABELS: &str = "mailboat.dev/shown-labels";

/// The kinds of SyncTargets, and of the Locations that lead to them: each lineage keeps to itself.
pub(super) fn kinds() -> [(KindId, KindId); 2] {
    let lineage =
        |targets, locations| (KindId::new(targets, "synctargets"), KindId::new(locations, "locations"));
    [lineage(group::EDGE, group::EDGE), lineage(group::WORKLOAD, group::SCHEDULING)]
}

/// The edges of an inventory and the Locations there, as far as they were shown.
#[derive(Default)]
pub(super) struct Inventory {
    /// By their uids.
    edges: BTreeMap<String, Value>,
    /// By their names, of which the first supplies an edge's parameters; those of the two lineages may share one.
    locations: BTreeMap<(String, String), Value>,
}

impl Inventory {
    /// Takes up a SyncTarget or Location that is there, or has gone, and tells which edges are to be shown for it: with the
    /// Locations that lead to each.
    pub(super) fn take(&mut self, object: Value, gone: bool) -> Vec<Value> {
        if object["kind"] != "Location" {
            let noted = self.noted(&object);
            let uid = text(&object, "/metadata/uid");
            if gone {
                self.edges.remove(&uid)
            } else {
                self.edges.insert(uid, object)
            };
            return vec![noted];
        }
        let before: Vec<Value> = self.edges.values().map(|edge| self.noted(edge)).collect();
        let key = (text(&object, "/metadata/name"), group_of(&object).to_owned());
        if gone {
            self.locations.remove(&key)
        } else {
            self.locations.insert(key, object)
        };
        let after = self.edges.values().map(|edge| self.noted(edge));
        after.zip(before).filter(|(after, before)| after != before).map(|(after, _)| after).collect()
    }

    /// An edge, with notes on what leads there.
    fn noted(&self, edge: &Value) -> Value {
        let leading: Vec<&Value> =
            self.locations.values().filter(|location| leads_to(location, edge)).collect();
        let names: Vec<String> = leading.iter().map(|location| text(location, "/metadata/name")).collect();
        let names = if names.is_empty() { "<none>".to_owned() } else { names.join(",") };
        let mut edge = edge.clone();
        edge["metadata"]["annotations"][LOCATIONS] = Value::from(names);
        edge["metadata"]["annotations"][LABELS] =
            Value::from(leading.first().map(|first| told(&first["metadata"]["labels"])).unwrap_or_default());
        edge
    }
}

/// The Locations that lead to an edge.
pub(super) fn locations(edge: &Value) -> String {
    text(&edge["metadata"]["annotations"][LOCATIONS], "")
}

/// What placements choose an edge by, and what the parameters of its copies are: the labels of its first Location.
pub(super) fn labels(edge: &Value) -> String {
    text(&edge["metadata"]["annotations"][LABELS], "")
}

fn told(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    labels
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect::<Vec<_>>()
        .join(",")
}

fn group_of(object: &Value) -> &str {
    object["apiVersion"].as_str().and_then(|version| version.split('/').next()).unwrap_or_default()
}

fn leads_to(location: &Value, edge: &Value) -> bool {
    let of_one_lineage = kinds().iter().any(|(targets, locations)| {
        locations.group() == group_of(location) && targets.group() == group_of(edge)
    });
    let selector = &location["spec"]["instanceSelector"];
    if !of_one_lineage || selector.is_null() {
        return false;
    }
    let (selector, labels) = (selector.to_string(), edge["metadata"]["labels"].to_string());
    let parsed = (Raw::parse(selector.as_bytes()), Raw::parse(labels.as_bytes()));
    let (Ok(selector), Ok(labels)) = parsed else { return false };
    LabelSelector::from_json(selector).is_ok_and(|selector| selector.matches(&labels))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn target(api: &str, name: &str) -> Value {
        json!({ "apiVersion": api, "kind": "SyncTarget",
            "metadata": { "name": name, "uid": format!("{api} {name}"), "labels": { "id": name, "env": "old" } } })
    }

    fn location(api: &str, name: &str, id: &str, env: &str) -> Value {
        json!({ "apiVersion": api, "kind": "Location", "metadata": { "name": name, "labels": { "env": env } },
            "spec": { "instanceSelector": { "matchLabels": { "id": id } } } })
    }

    fn shown(edges: &[Value]) -> Vec<(String, String, String)> {
        edges.iter().map(|edge| (text(edge, "/metadata/name"), locations(edge), labels(edge))).collect()
    }

    fn told(name: &str, locations: &str, labels: &str) -> (String, String, String) {
        (name.to_owned(), locations.to_owned(), labels.to_owned())
    }

    #[test]
    fn an_edge_is_shown_with_the_labels_that_placements_choose_it_by() {
        const EDGE: &str = "edge.kubestellar.io/v2alpha1";
        let mut inventory = Inventory::default();
        assert!(inventory.take(location(EDGE, "north", "florin", "prod"), false).is_empty());
        let edges = inventory.take(target(EDGE, "florin"), false);
        assert_eq!(shown(&edges), [told("florin", "north", "env=prod")]);
        let edges = inventory.take(target(EDGE, "guilder"), false);
        assert_eq!(shown(&edges), [told("guilder", "<none>", "")]);

        // A Location that changes, comes or goes concerns the edges that it leads to, and no others.
        let edges = inventory.take(location(EDGE, "north", "florin", "test"), false);
        assert_eq!(shown(&edges), [told("florin", "north", "env=test")]);
        let edges = inventory.take(location(EDGE, "east", "florin", "dev"), false);
        assert_eq!(shown(&edges), [told("florin", "east,north", "env=dev")]);
        let edges = inventory.take(location(EDGE, "east", "florin", "dev"), true);
        assert_eq!(shown(&edges), [told("florin", "north", "env=test")]);
        assert!(
            inventory.take(location(EDGE, "north", "florin", "test"), false).is_empty(),
            "nothing changed"
        );
    }

    #[test]
    fn locations_lead_to_edges_of_their_own_lineage() {
        let mut inventory = Inventory::default();
        inventory.take(location("scheduling.kcp.io/v1alpha1", "mint", "ducat", "prod"), false);
        let ours = inventory.take(target("edge.kubestellar.io/v2alpha1", "ducat"), false);
        assert_eq!(shown(&ours), [told("ducat", "<none>", "")]);
        let theirs = inventory.take(target("workload.kcp.io/v1alpha1", "ducat"), false);
        assert_eq!(shown(&theirs), [told("ducat", "mint", "env=prod")]);
    }
}
