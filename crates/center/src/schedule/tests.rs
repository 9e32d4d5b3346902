use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::fixtures::{key, object};

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

#[test]
fn a_selector_that_cannot_be_understood_withdraws_nothing_over_a_restart() {
    let near = |key: &str| json!({ "matchExpressions": [{ "key": key, "operator": "Near" }] });
    for order in 0..3 {
        let mut rig = Rig::started();
        rig.edge("t", 1, &json!({ "env": "prod" })).placement("ep", &is("prod"));
        assert_eq!(rig.leads("ep"), ["t:t"]);
        rig.placement("ep", &json!([near("env")])).placement("new", &json!([near("env")]));
        for _ in 0..2 {
            assert_eq!(rig.restart(order).leads("ep"), ["t:t"], "{order}");
            assert_eq!(rig.leads("new"), Vec::<String>::new());
        }
        rig.placement("ep", &is("prod")).location("t", &json!({ "env": "prod" }), &near("id"));
        for _ in 0..2 {
            assert_eq!(rig.restart(order).leads("ep"), ["t:t"], "{order}");
        }
        assert_eq!(rig.schedule.instances(&location_key("t")), Some((1, 0)));
        rig.target_in(EDGE, "t", 1, &json!({}), &json!({ "conditions": [] }));
        assert_eq!(rig.leads("ep"), ["t:t"]);
        rig.location("t", &json!({ "env": "dev" }), &near("id"));
        assert_eq!(rig.leads("ep"), Vec::<String>::new(), "its labels are understood");
    }
}

/// A shard that is away when the center starts, and then comes: what is there comes in whatever order.
#[test]
fn what_comes_into_view_after_the_start_goes_where_it_went() {
    let (cordoned, near) = (
        json!({ "unschedulable": true }),
        json!({ "matchExpressions": [{ "key": "x", "operator": "Near" }] }),
    );
    for first in ["target", "location", "placement"] {
        let mut old = Rig::started();
        old.edge("t", 1, &json!({ "env": "prod" }))
            .placement("ep", &is("prod"))
            .placement("bad", &is("prod"));
        old.edge("u", 2, &json!({ "env": "prod" })).target_in(EDGE, "t", 1, &cordoned, &json!({}));
        old.placement("bad", &json!([near])).location("u", &json!({ "env": "prod" }), &near);
        let slices = old.slices();
        assert_eq!(slices.values().map(Vec::len).sum::<usize>(), 4, "two of each");
        let mut rig = Rig::started();
        let place = |rig: &mut Rig| {
            for (key, facts) in &old.placements {
                rig.schedule.remember(key, slices[key].clone());
                rig.placements.insert(key.clone(), facts.clone());
                rig.schedule.placement(key, Some(facts.clone()));
            }
        };
        let locate = |rig: &mut Rig| {
            old.locations.iter().for_each(|(key, facts)| rig.schedule.location(key, Some(facts.clone())));
        };
        let target = |rig: &mut Rig| {
            old.targets.iter().for_each(|(key, facts)| rig.schedule.target(key, Some(facts.clone())));
        };
        let steps: [&dyn Fn(&mut Rig); 3] = match first {
            "target" => [&target, &place, &locate],
            "location" => [&locate, &place, &target],
            _ => [&place, &target, &locate],
        };
        for step in steps {
            step(&mut rig);
            let shown = rig.slices();
            assert!(shown.iter().all(|(key, said)| *said == slices[key]), "{first}: {shown:?}");
        }
        let destinations = |rig: &Rig, name: &str| rig.schedule.destinations(&placement_key(name)).count();
        assert_eq!((destinations(&rig, "ep"), destinations(&rig, "bad")), (2, 2), "{first}");
        rig.forget();
        assert_eq!(rig.leads("ep"), ["t:t", "u:u"], "{first}");
    }
}

#[test]
fn what_a_placement_went_to_before_and_does_not_any_more_is_forgotten() {
    let mut rig = Rig::started();
    rig.edge("t", 1, &json!({ "env": "prod" })).placement("ep", &is("prod"));
    // While no center ran, its Location was given another label.
    rig.locations.get_mut(&location_key("t")).unwrap().labels.insert("env".to_owned(), "dev".to_owned());
    assert_eq!(rig.restart(0).leads("ep"), Vec::<String>::new());
    assert_eq!(rig.schedule.remembered().count(), 0);
    // What it is selected by again and cordoned is new to it.
    rig.target_in(EDGE, "t", 1, &json!({ "unschedulable": true }), &json!({}));
    rig.placement("ep", &is("dev"));
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

/// What should come out, worked out from scratch.
fn expected(
    placements: &[Value],
    locations: &[(String, Value, Value)],
    targets: &BTreeSet<u32>,
) -> Vec<Vec<String>> {
    let selector = |value: &Value| {
        mailboat_object::select::LabelSelector::from_json(
            mailboat_object::Raw::parse(value.to_string().as_bytes()).unwrap(),
        )
        .unwrap()
    };
    let map = |value: &Value| -> BTreeMap<String, String> { serde_json::from_value(value.clone()).unwrap() };
    let mut all = Vec::new();
    for placement in placements {
        let mut leads = BTreeMap::new();
        for (name, labels, instances) in locations.iter().rev() {
            if placement.as_array().unwrap().iter().any(|one| selector(one).matches(&map(labels))) {
                for target in targets {
                    let target_labels = BTreeMap::from([("id".to_owned(), format!("t{target}"))]);
                    if selector(instances).matches(&target_labels) {
                        leads.insert(*target, format!("{name}:t{target}"));
                    }
                }
            }
        }
        let mut leads: Vec<_> = leads.into_values().collect();
        leads.sort();
        all.push(leads);
    }
    all
}

fn any_selector(key: &'static str, values: &'static [&'static str]) -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        prop::sample::select(values).prop_map(move |value| json!({ "matchLabels": { key: value } })),
        Just(json!({ "matchExpressions": [{ "key": key, "operator": "Exists" }] })),
        prop::sample::select(values)
            .prop_map(move |value| json!({ "matchExpressions": [{ "key": key, "operator": "NotIn", "values": [value] }] })),
    ]
}

/// One that cannot be understood among them.
fn any_selector_or_none(key: &'static str, values: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let near = json!({ "matchExpressions": [{ "key": key, "operator": "Near" }] });
    prop_oneof![3 => any_selector(key, values), 1 => Just(near)]
}

#[derive(Clone, Debug)]
enum Step {
    Placement(usize, Vec<Value>),
    Location(usize, Value, Value),
    Target(u32, bool),
    Cordon(u32),
    Restart(usize),
}

proptest! {
    #[test]
    fn increments_lead_where_a_fresh_start_would(steps in prop::collection::vec(prop_oneof![
        (0..3_usize, prop::collection::vec(any_selector("env", &["a", "b"]), 0..3)).prop_map(|(at, all)| Step::Placement(at, all)),
        (0..3_usize, prop::sample::select(&["a", "b", "c"][..]), any_selector("id", &["t0", "t1"]))
            .prop_map(|(at, env, selector)| Step::Location(at, json!({ "env": env }), selector)),
        (0..3_u32, any::<bool>()).prop_map(|(at, present)| Step::Target(at, present)),
        (0..3_usize).prop_map(Step::Restart),
    ], 1..40)) {
        let mut rig = Rig::started();
        let mut placements: Vec<Value> = vec![json!([]); 3];
        let mut locations: BTreeMap<usize, (String, Value, Value)> = BTreeMap::new();
        let mut targets = BTreeSet::new();
        for step in steps {
            match step {
                Step::Placement(at, all) => {
                    placements[at] = Value::from(all);
                    rig.placement(&format!("p{at}"), &placements[at]);
                }
                Step::Location(at, labels, selector) => {
                    rig.location(&format!("l{at}"), &labels, &selector);
                    locations.insert(at, (format!("l{at}"), labels, selector));
                }
                Step::Target(at, true) => {
                    targets.insert(at);
                    rig.target(&format!("t{at}"), at);
                }
                Step::Target(at, false) => {
                    targets.remove(&at);
                    rig.drop_target(&format!("t{at}"));
                }
                Step::Restart(order) => drop(rig.restart(order)),
                Step::Cordon(_) => {}
            }
        }
        let listed: Vec<_> = locations.values().cloned().collect();
        let mut found = Vec::new();
        for at in 0..3 {
            let mut leads = rig.leads(&format!("p{at}"));
            leads.sort();
            found.push(leads);
        }
        prop_assert_eq!(found, expected(&placements, &listed, &targets));
    }

    /// Where something is not understood, a start may take it for a little more than it was, and for nothing less.
    #[test]
    fn nothing_leaves_by_a_restart(steps in prop::collection::vec(prop_oneof![
        4 => (0..3_usize, prop::collection::vec(any_selector_or_none("env", &["a", "b"]), 0..3)).prop_map(|(at, all)| Step::Placement(at, all)),
        4 => (0..3_usize, prop::sample::select(&["a", "b", "c"][..]), any_selector_or_none("id", &["t0", "t1"]))
            .prop_map(|(at, env, selector)| Step::Location(at, json!({ "env": env }), selector)),
        3 => (0..3_u32, prop::bool::weighted(0.8)).prop_map(|(at, present)| Step::Target(at, present)),
        1 => (0..3_u32).prop_map(Step::Cordon),
        3 => (0..3_usize).prop_map(Step::Restart),
    ], 1..40)) {
        let mut rig = Rig::started();
        for step in steps {
            match step {
                Step::Placement(at, all) => drop(rig.placement(&format!("p{at}"), &Value::from(all))),
                Step::Location(at, labels, selector) => drop(rig.location(&format!("l{at}"), &labels, &selector)),
                Step::Target(at, true) => drop(rig.target(&format!("t{at}"), at)),
                Step::Target(at, false) => drop(rig.drop_target(&format!("t{at}"))),
                Step::Cordon(at) => drop(rig.target_in(EDGE, &format!("t{at}"), at, &json!({ "unschedulable": true }), &json!({}))),
                Step::Restart(order) => {
                    let before = rig.went();
                    let after = rig.restart(order).went();
                    let understood = rig.locations.values().all(|location| location.instances != Instances::Unreadable);
                    for (key, went) in &before {
                        prop_assert!(went.is_subset(&after[key]), "{key}: {went:?} became {:?}", after[key]);
                    }
                    prop_assert!(!understood || before == after, "{before:?} became {after:?}");
                }
            }
        }
    }
}
