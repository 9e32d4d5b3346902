use serde_json::{Value, json};

use super::*;
use crate::fixtures::{key, object};

mod histories;
mod restarts;

const EDGE: &str = "edge.kubestellar.io";

/// A schedule fed with objects as servers send them.
#[derive(Default)]
struct Rig {
    schedule: Schedule,
    placements: BTreeMap<Key, PlacementFacts>,
    locations: BTreeMap<Key, LocationFacts>,
    targets: BTreeMap<Key, TargetFacts>,
}

fn placement_key(name: &str) -> Key {
    key("wmw", &format!("edgeplacements.{EDGE}"), "", name)
}

fn uid(number: u32) -> String {
    format!("00000000-0000-0000-0000-{number:012}")
}

impl Rig {
    fn started() -> Self {
        let mut rig = Self::default();
        rig.schedule.start(1_000);
        rig
    }

    fn placement(&mut self, name: &str, selectors: &Value) -> &mut Self {
        let json = json!({ "metadata": { "name": name, "uid": "ep-uid" }, "spec": { "locationSelectors": selectors } });
        let facts = PlacementFacts::of(&object("wmw", &format!("edgeplacements.{EDGE}"), &json));
        self.placements.insert(placement_key(name), facts.clone());
        self.schedule.placement(&placement_key(name), Some(facts));
        self
    }

    fn location_in(&mut self, group: &str, name: &str, labels: &Value, selector: &Value) -> &mut Self {
        let kind = format!("locations.{group}");
        let json = json!({ "metadata": { "name": name, "labels": labels }, "spec": { "instanceSelector": selector } });
        let facts = LocationFacts::of(&object("imw", &kind, &json));
        self.locations.insert(key("imw", &kind, "", name), facts.clone());
        self.schedule.location(&key("imw", &kind, "", name), Some(facts));
        self
    }

    fn location(&mut self, name: &str, labels: &Value, selector: &Value) -> &mut Self {
        self.location_in(EDGE, name, labels, selector)
    }

    fn target_in(&mut self, group: &str, name: &str, number: u32, spec: &Value, status: &Value) -> &mut Self {
        let kind = format!("synctargets.{group}");
        let json = json!({
            "metadata": { "name": name, "uid": uid(number), "labels": { "id": name } }, "spec": spec, "status": status,
        });
        let facts = TargetFacts::of(&object("imw", &kind, &json));
        self.targets.insert(key("imw", &kind, "", name), facts.clone());
        self.schedule.target(&key("imw", &kind, "", name), Some(facts));
        self
    }

    fn target(&mut self, name: &str, number: u32) -> &mut Self {
        self.target_in(EDGE, name, number, &json!({}), &json!({}))
    }

    /// A SyncTarget and the Location for it, as `ensure location` makes them.
    fn edge(&mut self, name: &str, number: u32, labels: &Value) -> &mut Self {
        self.target(name, number).location(name, labels, &json!({ "matchLabels": { "id": name } }))
    }

    fn drop_target(&mut self, name: &str) -> &mut Self {
        self.targets.remove(&target_key(name));
        self.schedule.target(&target_key(name), None);
        self
    }

    /// What the slices of each placement say.
    fn slices(&mut self) -> BTreeMap<Key, Vec<SinglePlacement>> {
        self.schedule.take_changed();
        let said = |slice: &Slice| {
            let mut slice: Value = serde_json::from_slice(&slice.body.json).expect("JSON");
            let listed: Vec<SinglePlacement> =
                serde_json::from_value(slice["destinations"].take()).expect("destinations");
            listed
        };
        let all = self.placements.keys();
        all.map(|key| (key.clone(), self.schedule.slices(key).flat_map(said).collect())).collect()
    }

    /// A schedule that knows nothing but what slices say begins, and is shown all there is in some order.
    fn restart(&mut self, order: usize) -> &mut Self {
        let slices = self.slices();
        self.schedule = Schedule::new();
        for round in 0..3 {
            match (round + order) % 3 {
                0 => self.locations.iter().for_each(|(key, facts)| {
                    self.schedule.location(key, Some(facts.clone()));
                }),
                1 => self.targets.iter().for_each(|(key, facts)| {
                    self.schedule.target(key, Some(facts.clone()));
                }),
                _ => self.placements.iter().for_each(|(key, facts)| {
                    self.schedule.remember(key, slices[key].clone());
                    self.schedule.placement(key, Some(facts.clone()));
                }),
            }
        }
        self.schedule.start(1_000);
        self.forget()
    }

    /// Where each placement goes.
    fn went(&mut self) -> BTreeMap<Key, BTreeSet<Uid>> {
        let went = |key: &Key| self.schedule.destinations(key).map(|(uid, _)| uid.clone()).collect();
        self.placements.keys().map(|key| (key.clone(), went(key))).collect()
    }

    /// All is known that there is.
    fn forget(&mut self) -> &mut Self {
        let all = self.schedule.remembered();
        let all: Vec<(Key, Uid)> = all.map(|(key, uid, _)| (key.clone(), uid.clone())).collect();
        self.schedule.forget_remembered(&all);
        self
    }

    /// `location:target` for each destination, in the order of the slices.
    fn leads(&mut self, placement: &str) -> Vec<String> {
        self.schedule.take_changed();
        let slices: Vec<Value> = self
            .schedule
            .slices(&placement_key(placement))
            .map(|slice| serde_json::from_slice(&slice.body.json).expect("JSON"))
            .collect();
        let mut found = Vec::new();
        for slice in &slices {
            for entry in slice["destinations"].as_array().expect("destinations") {
                found.push(format!(
                    "{}:{}",
                    entry["locationName"].as_str().unwrap(),
                    entry["syncTargetName"].as_str().unwrap()
                ));
            }
        }
        let by_target = self.schedule.destinations(&placement_key(placement)).count();
        assert_eq!(found.len(), by_target, "slices and destinations agree");
        found
    }
}

fn location_key(name: &str) -> Key {
    key("imw", &format!("locations.{EDGE}"), "", name)
}

fn target_key(name: &str) -> Key {
    key("imw", &format!("synctargets.{EDGE}"), "", name)
}

/// Whoever retires an edge takes away both. Which of them is believed to be gone first is chance.
#[test]
fn nothing_leaves_a_sync_target_that_seems_to_be_gone() {
    let mut rig = Rig::started();
    rig.edge("t", 1, &json!({ "env": "prod" }))
        .edge("u", 2, &json!({ "env": "prod" }))
        .placement("ep", &is("prod"));
    rig.schedule.misses(&target_key("t"));
    rig.schedule.location(&key("imw", &format!("locations.{EDGE}"), "", "t"), None);
    rig.placement("ep", &json!([{ "matchLabels": { "env": "prod", "loc": "none" } }]));
    assert_eq!(rig.leads("ep"), ["t:t"], "what is there is cleared, what may be gone is not");
    rig.drop_target("t");
    let departed: Vec<Uid> =
        rig.schedule.departed(&placement_key("ep")).map(|(uid, _)| uid.clone()).collect();
    assert_eq!((rig.leads("ep"), departed), (Vec::new(), vec![Uid::parse(&uid(1))]));
    // One that is there after all is left by now.
    let mut rig = Rig::started();
    rig.edge("t", 1, &json!({ "env": "prod" })).placement("ep", &is("prod"));
    rig.schedule.misses(&target_key("t"));
    rig.schedule.location(&key("imw", &format!("locations.{EDGE}"), "", "t"), None);
    assert_eq!(rig.leads("ep"), ["t:t"]);
    rig.target("t", 1);
    assert_eq!(rig.leads("ep"), [""; 0]);
}

fn is(env: &str) -> Value {
    json!([{ "matchLabels": { "env": env } }])
}

#[test]
fn example_one_goes_where_its_documents_say() {
    let mut rig = Rig::started();
    rig.edge("florin", 1, &json!({ "env": "prod", "loc-name": "florin" }))
        .edge("guilder", 2, &json!({ "env": "prod", "loc-name": "guilder", "extended": "yes" }))
        .placement("edge-placement-c", &is("prod"))
        .placement("edge-placement-s", &json!([{ "matchLabels": { "env": "prod", "extended": "yes" } }]));
    assert_eq!(rig.leads("edge-placement-c"), ["florin:florin", "guilder:guilder"]);
    assert_eq!(rig.leads("edge-placement-s"), ["guilder:guilder"]);
    assert_eq!(rig.schedule.matching_locations(&placement_key("edge-placement-c")), 2);
}

#[test]
fn a_slice_is_what_users_of_kubestellar_know() {
    let mut rig = Rig::started();
    rig.edge("florin", 1, &json!({ "env": "prod" })).placement("ep", &is("prod"));
    rig.schedule.take_changed();
    let slices: Vec<_> = rig.schedule.slices(&placement_key("ep")).collect();
    assert_eq!(slices.len(), 1);
    let found: Value = serde_json::from_slice(&slices[0].body.json).expect("JSON");
    assert_eq!(
        found,
        json!({
            "apiVersion": "edge.kubestellar.io/v2alpha1",
            "kind": "SinglePlacementSlice",
            "metadata": {
                "name": "ep",
                "labels": { "edge.kubestellar.io/source-placement": "ep" },
                "ownerReferences": [{ "apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgePlacement", "name": "ep", "uid": "ep-uid" }],
            },
            "destinations": [{ "cluster": "imw", "locationName": "florin", "syncTargetName": "florin", "syncTargetUID": uid(1) }],
        })
    );
}

#[test]
fn empty_selectors_and_missing_ones_mean_what_the_api_says() {
    let mut rig = Rig::started();
    rig.target("a", 1)
        .target("b", 2)
        .location("all", &json!({ "x": "1" }), &json!({}))
        .location("none", &json!({ "x": "2" }), &Value::Null)
        .placement("everywhere", &json!([{}]))
        .placement("nowhere", &json!([]))
        .placement("none", &json!([{ "matchLabels": { "x": "2" } }]));
    assert_eq!(rig.leads("everywhere"), ["all:a", "all:b"]);
    assert_eq!(rig.leads("nowhere"), Vec::<String>::new());
    assert_eq!(rig.leads("none"), Vec::<String>::new());
    let slices = rig.schedule.slices(&placement_key("nowhere")).count();
    assert_eq!(slices, 1, "a placement that goes nowhere says so");
}

#[test]
fn two_locations_of_one_target_are_one_destination_by_the_first_name() {
    let mut rig = Rig::started();
    rig.target("t", 1)
        .location("b", &json!({ "env": "prod" }), &json!({}))
        .location("a", &json!({ "env": "prod" }), &json!({}))
        .location("c", &json!({ "env": "dev" }), &json!({}))
        .placement("ep", &is("prod"));
    assert_eq!(rig.leads("ep"), ["a:t"]);
    rig.location("a", &json!({ "env": "dev" }), &json!({}));
    assert_eq!(rig.leads("ep"), ["b:t"]);
}

#[test]
fn the_kcp_groups_are_an_inventory_of_their_own() {
    let mut rig = Rig::started();
    rig.target("t", 1)
        .target_in("workload.kcp.io", "k", 2, &json!({}), &json!({}))
        .location("edge", &json!({ "env": "prod" }), &json!({}))
        .location_in("scheduling.kcp.io", "kcp", &json!({ "env": "prod" }), &json!({}))
        .placement("ep", &is("prod"));
    assert_eq!(rig.leads("ep"), ["edge:t", "kcp:k"]);
}

#[test]
fn changes_are_followed_in_any_order() {
    let mut rig = Rig::started();
    rig.placement("ep", &is("prod")).location(
        "l",
        &json!({ "env": "dev" }),
        &json!({ "matchLabels": { "id": "t" } }),
    );
    assert_eq!(rig.leads("ep"), Vec::<String>::new());
    rig.target("t", 1);
    assert_eq!(rig.leads("ep"), Vec::<String>::new());
    rig.location("l", &json!({ "env": "prod" }), &json!({ "matchLabels": { "id": "t" } }));
    assert_eq!(rig.leads("ep"), ["l:t"]);
    rig.placement("ep", &is("dev"));
    assert_eq!(rig.leads("ep"), Vec::<String>::new());
    rig.placement("ep", &is("prod"));
    assert_eq!(rig.leads("ep"), ["l:t"]);
    rig.schedule.location(&key("imw", &format!("locations.{EDGE}"), "", "l"), None);
    assert_eq!(rig.leads("ep"), Vec::<String>::new());
    rig.schedule.placement(&placement_key("ep"), None);
    assert!(rig.schedule.take_changed().contains(&placement_key("ep")));
    assert_eq!(rig.schedule.slices(&placement_key("ep")).count(), 0);
}

#[test]
fn nothing_new_goes_to_what_is_unschedulable_and_what_is_there_stays() {
    let mut rig = Rig::started();
    rig.edge("t", 1, &json!({ "env": "prod" })).placement("old", &is("prod"));
    assert_eq!(rig.leads("old"), ["t:t"]);
    rig.target_in(EDGE, "t", 1, &json!({ "unschedulable": true }), &json!({})).placement("new", &is("prod"));
    assert_eq!((rig.leads("old"), rig.leads("new")), (vec!["t:t".to_owned()], vec![]));
    rig.target("t", 1);
    assert_eq!(rig.leads("new"), ["t:t"], "schedulable again");
}

#[test]
fn what_is_unschedulable_is_remembered_over_a_restart_by_its_slices() {
    let mut rig = Rig::default();
    let standing = [SinglePlacement { sync_target_uid: uid(1), ..SinglePlacement::default() }];
    rig.schedule.remember(&placement_key("old"), standing.to_vec());
    rig.placement("old", &is("prod")).placement("new", &is("prod"));
    rig.target_in(EDGE, "t", 1, &json!({ "unschedulable": true }), &json!({}));
    rig.location("t", &json!({ "env": "prod" }), &json!({}));
    assert!(rig.schedule.take_changed().is_empty(), "nothing is decided before all is told");
    rig.schedule.start(1_000);
    assert_eq!((rig.leads("old"), rig.leads("new")), (vec!["t:t".to_owned()], vec![]));
}

#[test]
fn work_leaves_when_its_time_has_come_and_not_before() {
    let mut rig = Rig::started();
    rig.edge("t", 1, &json!({ "env": "prod" })).placement("ep", &is("prod"));
    rig.target_in(EDGE, "t", 1, &json!({ "evictAfter": "1970-01-01T01:00:00Z" }), &json!({}));
    assert_eq!((rig.leads("ep"), rig.schedule.next_eviction()), (vec!["t:t".to_owned()], Some(3_600)));
    rig.schedule.advance(3_599);
    assert_eq!(rig.leads("ep"), ["t:t"]);
    rig.schedule.advance(3_600);
    assert_eq!((rig.leads("ep"), rig.schedule.next_eviction()), (vec![], None));
    rig.target("t", 1);
    assert_eq!(rig.leads("ep"), ["t:t"], "the time was taken back");
}

#[test]
fn a_length_of_time_counts_from_when_it_became_unschedulable() {
    let mut rig = Rig::started();
    rig.edge("t", 1, &json!({ "env": "prod" })).placement("ep", &is("prod"));
    let spec = json!({ "unschedulable": true, "evictAfter": "5m" });
    rig.target_in(EDGE, "t", 1, &spec, &json!({}));
    assert_eq!(rig.schedule.next_eviction(), None, "since when is not known");
    let since = json!({ "conditions": [{ "type": "Schedulable", "status": "False", "lastTransitionTime": "1970-01-01T00:20:00Z" }] });
    rig.target_in(EDGE, "t", 1, &spec, &since);
    assert_eq!(rig.schedule.next_eviction(), Some(1_500));
    rig.schedule.advance(1_500);
    assert_eq!(rig.leads("ep"), Vec::<String>::new());
}

#[test]
fn a_silent_edge_is_not_evicted_for_its_silence() {
    let mut rig = Rig::started();
    rig.edge("t", 1, &json!({ "env": "prod" })).placement("ep", &is("prod"));
    let silent = json!({ "conditions": [{ "type": "Ready", "status": "False" }] });
    rig.target_in(EDGE, "t", 1, &json!({}), &silent);
    rig.schedule.advance(1_000_000);
    assert_eq!(rig.leads("ep"), ["t:t"]);
    assert_eq!(rig.schedule.instances(&key("imw", &format!("locations.{EDGE}"), "", "t")), Some((1, 0)));
    rig.target_in(
        EDGE,
        "t",
        1,
        &json!({}),
        &json!({ "conditions": [{ "type": "Ready", "status": "True" }] }),
    );
    assert_eq!(rig.schedule.instances(&key("imw", &format!("locations.{EDGE}"), "", "t")), Some((1, 1)));
}

#[test]
fn a_deleted_target_departs_and_is_not_an_order_to_clear_its_edge() {
    let mut rig = Rig::started();
    rig.edge("t", 1, &json!({ "env": "prod" })).placement("ep", &is("prod"));
    assert_eq!(rig.leads("ep"), ["t:t"]);
    rig.drop_target("t");
    assert_eq!(rig.leads("ep"), Vec::<String>::new());
    let departed = |rig: &Rig| -> Vec<String> {
        rig.schedule.departed(&placement_key("ep")).map(|(uid, _)| uid.to_string()).collect()
    };
    assert_eq!(departed(&rig), [uid(1)]);
    // Made again under the same name it is another one.
    rig.target("t", 2);
    assert_eq!((rig.leads("ep"), departed(&rig)), (vec!["t:t".to_owned()], vec![uid(1)]));
    rig.schedule.forget(&Uid::parse(&uid(1)));
    assert!(departed(&rig).is_empty());
    // One that is replaced between two looks departs as well.
    rig.target("t", 3);
    assert_eq!(departed(&rig), [uid(2)]);
}

#[test]
fn a_selector_that_cannot_be_understood_withdraws_nothing() {
    let mut rig = Rig::started();
    rig.edge("t", 1, &json!({ "env": "prod" })).placement("ep", &is("prod"));
    assert_eq!(rig.leads("ep"), ["t:t"]);
    rig.placement("ep", &json!([{ "matchExpressions": [{ "key": "env", "operator": "Near" }] }]));
    assert_eq!(rig.leads("ep"), ["t:t"]);
    rig.placement("ep", &is("prod"));
    let bad = json!({ "matchExpressions": [{ "key": "id", "operator": "Near" }] });
    rig.location("t", &json!({ "env": "prod" }), &bad);
    assert_eq!(rig.leads("ep"), ["t:t"]);
    rig.target_in(EDGE, "t", 1, &json!({}), &json!({ "conditions": [] }));
    assert_eq!(rig.leads("ep"), ["t:t"]);
    rig.location("t", &json!({ "env": "prod" }), &json!({ "matchLabels": { "id": "other" } }));
    assert_eq!(rig.leads("ep"), Vec::<String>::new());
}

/// 10,000 edges; `placements` each select one percent of them.
fn fleet(edges: u32, placements: u32) -> Rig {
    let mut rig = Rig::started();
    for number in 0..placements {
        rig.placement(
            &format!("ep-{number}"),
            &json!([{ "matchLabels": { "group": format!("g{number}") } }]),
        );
    }
    for number in 0..edges {
        let group = format!("g{}", number % 100);
        rig.edge(&format!("edge-{number}"), number, &json!({ "group": group, "own": format!("o{number}") }));
    }
    rig.schedule.take_changed();
    rig
}

#[test]
fn a_label_flip_costs_what_it_touches_and_not_the_fleet() {
    let mut costs = Vec::new();
    for edges in [100, 1_000, 10_000] {
        let mut rig = fleet(edges, 100);
        let before = rig.schedule.work();
        let selector = json!({ "matchLabels": { "id": "edge-7" } });
        rig.location("edge-7", &json!({ "group": "g8", "own": "o7" }), &selector);
        let changed = rig.schedule.take_changed();
        assert_eq!(changed, BTreeSet::from([placement_key("ep-7"), placement_key("ep-8")]));
        let after = rig.schedule.work();
        costs.push((
            after.tested - before.tested,
            after.decided - before.decided,
            after.slices - before.slices,
        ));
    }
    assert_eq!(costs, [(2, 2, 2); 3], "tested, decided and slices for 100, 1,000 and 10,000 edges");
}

#[test]
fn a_flip_in_a_large_placement_rewrites_one_slice() {
    let mut rig = fleet(3_000, 0);
    rig.placement("all", &json!([{}]));
    rig.schedule.take_changed();
    let slices: Vec<_> =
        rig.schedule.slices(&placement_key("all")).map(|slice| slice.name.to_string()).collect();
    assert!(slices.len() >= 6 && slices.contains(&"all".to_owned()), "{slices:?}");
    assert_eq!(slices.iter().collect::<BTreeSet<_>>().len(), slices.len(), "each name once: {slices:?}");
    let before = rig.schedule.work();
    rig.drop_target("edge-7");
    assert_eq!(rig.schedule.take_changed().len(), 1);
    assert_eq!(rig.schedule.work().slices - before.slices, 1);
    for slice in rig.schedule.slices(&placement_key("all")) {
        let found: Value = serde_json::from_slice(&slice.body.json).expect("JSON");
        let destinations = found["destinations"].as_array().expect("destinations");
        assert!(destinations.len() <= MOST_DESTINATIONS, "{}", destinations.len());
        let names: Vec<_> = destinations.iter().map(|one| one["locationName"].as_str().unwrap()).collect();
        assert!(names.is_sorted(), "{names:?}");
    }
}

#[test]
fn what_did_not_change_is_not_told() {
    let mut rig = fleet(100, 10);
    let selector = json!({ "matchLabels": { "id": "edge-7" } });
    rig.location("edge-7", &json!({ "group": "g7", "own": "o7", "note": "new" }), &selector);
    rig.target("edge-7", 7);
    assert!(rig.schedule.take_changed().is_empty());
}
