//! Planning does not depend on the order in which slots are planned, and what was planned and carried out is planned no more:
//! whatever the policies are, whatever happened while nobody looked, and whoever is heard or answered first.

use std::collections::{BTreeMap, BTreeSet};

use mailboat_engine::mark::MARK_ANNOTATION;
use mailboat_engine::want::{Adopt, Delivery, Policy, StatusReturn, Withdrawal};
use mailboat_object::wire::{Call, Part};
use proptest::prelude::*;

use crate::prelude::*;
use crate::roles::{edition, policy};
use crate::world::Order;

const NAMES: [&str; 4] = ["anchor", "buoy", "chart", "davit"];
const ROUTES: [&str; 2] = ["p1", "p2"];
/// One namespace that is everywhere, and one that edges have to be given.
const NAMESPACES: [&str; 2] = ["till", "hold"];

/// A configuration: where each route goes, if it is there, and how.
type Configuration = BTreeMap<usize, (Vec<u32>, Manner)>;

/// How a route delivers, reports and withdraws.
#[derive(Clone, Debug)]
struct Manner {
    delivery: Delivery,
    status: StatusReturn,
    withdrawal: Withdrawal,
    finalizer: bool,
    adopt: Adopt,
}

/// Something that happens to one object.
#[derive(Clone, Debug)]
enum Edit {
    /// A source gets this value, and is placed or not.
    Put { value: u8, placed: bool },
    /// A source is deleted.
    Remove,
    /// Somebody at an edge puts an object of their own there, or changes a copy.
    Foreign { cluster: usize },
    /// Somebody at an edge takes away whatever stands there.
    Taken { cluster: usize },
    /// What stands at an edge says how it is.
    Status { cluster: usize, value: u8 },
}

fn manner() -> impl Strategy<Value = Manner> {
    let delivery = prop_oneof![
        4 => Just(Delivery::Apply),
        1 => Just(Delivery::CreateOnly),
        2 => Just(Delivery::ThreeWay),
        1 => Just(Delivery::Overlay),
        1 => Just(Delivery::Keep),
    ];
    let status =
        prop::sample::select(vec![StatusReturn::Off, StatusReturn::Subresource, StatusReturn::Inline]);
    let withdrawal = prop::sample::select(vec![Withdrawal::Delete, Withdrawal::Delete, Withdrawal::Leave]);
    let adopt = prop::sample::select(vec![Adopt::Never, Adopt::Unmarked]);
    (delivery, status, withdrawal, any::<bool>(), adopt).prop_map(
        |(delivery, status, withdrawal, finalizer, adopt)| Manner {
            delivery,
            status,
            withdrawal,
            finalizer,
            adopt,
        },
    )
}

fn configuration() -> impl Strategy<Value = Configuration> {
    let to = prop::sample::subsequence(vec![FLORIN, GUILDER], 0..=2);
    prop::collection::btree_map(0..ROUTES.len(), (to, manner()), 0..=ROUTES.len())
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        4 => (0..3_u8, prop::bool::weighted(0.8)).prop_map(|(value, placed)| Edit::Put { value, placed }),
        2 => Just(Edit::Remove),
        1 => (0..2_usize).prop_map(|cluster| Edit::Foreign { cluster }),
        1 => (0..2_usize).prop_map(|cluster| Edit::Taken { cluster }),
        1 => (0..2_usize, 0..3_u8).prop_map(|(cluster, value)| Edit::Status { cluster, value }),
    ]
}

/// At most one edit of each name.
fn edits() -> impl Strategy<Value = BTreeMap<usize, Edit>> {
    prop::collection::btree_map(0..NAMES.len(), edit(), 0..=NAMES.len())
}

fn at(cluster: &str, name: usize) -> Key {
    key(cluster, "configmaps", NAMESPACES[name % NAMESPACES.len()], NAMES[name])
}

fn make(world: &mut World, name: usize, edit: &Edit) {
    match edit {
        Edit::Put { value, placed } => {
            let source = at("workload", name);
            let mut object = world.object(&source).cloned().unwrap_or_else(|| config_map("new"));
            if !object["metadata"]["deletionTimestamp"].is_null() {
                return;
            }
            object["data"]["a"] = json!(value.to_string());
            object["metadata"]["labels"] = if *placed { json!({ "place": "yes" }) } else { json!({}) };
            world.put(&source, object);
        }
        Edit::Remove => world.remove(&at("workload", name)),
        Edit::Foreign { cluster } => {
            let place = at(CLUSTERS[*cluster], name);
            let theirs = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
            let mut object = world.object(&place).cloned().unwrap_or(theirs);
            object["data"]["b"] = json!("theirs");
            world.put(&place, object);
        }
        Edit::Taken { cluster } => world.remove(&at(CLUSTERS[*cluster], name)),
        Edit::Status { cluster, value } => {
            let place = at(CLUSTERS[*cluster], name);
            if let Some(mut object) = world.object(&place).cloned() {
                object["status"] = json!({ "at": value });
                world.put(&place, object);
            }
        }
    }
}

/// Tells the engine of all routes, in this order.
fn configure_all(world: &mut World, routes: &Configuration, order: &[usize]) {
    for number in order {
        let Some((to, manner)) = routes.get(number) else { continue };
        let Manner { delivery, status, withdrawal, finalizer, adopt } = manner.clone();
        let mut route = translator(ROUTES[*number], to);
        // It says what it changes when it goes elsewhere, as a placement does.
        route.head.selection = Some(edition(0));
        route.goes_to = Some(to.clone());
        route.policy = Arc::new(Policy { delivery, status, withdrawal, finalizer, adopt, ..policy() });
        route.head.configuration = edition(to.iter().map(|to| 1_u64 << to).sum());
        configure(world, route);
    }
    known(world);
}

/// A world in which a configuration was carried out, and edits were made since that nobody has seen.
fn story(before: &Configuration, first: &BTreeMap<usize, Edit>, then: &BTreeMap<usize, Edit>) -> World {
    let mut world = world();
    world.put(&key("workload", "namespaces", "", "hold"), json!({ "apiVersion": "v1", "kind": "Namespace" }));
    for (name, edit) in first {
        make(&mut world, *name, edit);
    }
    configure_all(&mut world, before, &[0, 1]);
    world.run();
    for (name, edit) in then {
        make(&mut world, *name, edit);
    }
    world
}

/// What a call asks for, without what depends on when it was asked.
fn shape(call: &Call) -> String {
    let read = |body: &[u8]| timeless(serde_json::from_slice(body).unwrap());
    let what = match &call.verb {
        Verb::Apply { body, force, .. } => format!("apply {force} {}", read(body)),
        Verb::Create { body, .. } => format!("create {}", read(body)),
        Verb::Merge { body, .. } => format!("merge {}", read(body)),
        Verb::Delete { .. } => "delete".to_owned(),
        other => panic!("{other:?} is no write"),
    };
    format!("{} {}: {what}", call.key, if call.part == Part::Status { "(status)" } else { "" })
}

/// An object without versions, uids and times, also in the mark.
fn timeless(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for member in ["resourceVersion", "uid", "creationTimestamp", "managedFields"] {
            metadata.remove(member);
        }
    }
    if let Some(mark) = object["metadata"]["annotations"].get_mut(MARK_ANNOTATION) {
        // Its third and fourth part are the uid and the version of its source.
        let told = mark.as_str().unwrap_or_default().split(',').enumerate();
        let told: Vec<_> = told.filter(|(at, _)| ![2, 3].contains(at)).map(|(_, part)| part).collect();
        let told = json!(told.join(","));
        *mark = told;
    }
    object
}

/// All that stands anywhere.
fn end(world: &World) -> BTreeMap<String, Value> {
    let objects = world.servers.values().flat_map(|server| &server.objects);
    objects.map(|(key, object)| (key.to_string(), timeless(object.clone()))).collect()
}

/// Starts again, hears and is answered in an order of its own, and comes to rest: what was written, and how it all ends.
fn play(mut world: World, after: &Configuration, order: u64) -> (World, BTreeSet<String>) {
    let mut order = Order(order);
    world.restart_in(&mut order, &KINDS);
    let mut routes = [0, 1];
    order.shuffle(&mut routes);
    configure_all(&mut world, after, &routes);
    world.run_in(&mut order);
    let written = std::mem::take(&mut world.writes).iter().map(shape).collect();
    (world, written)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_same_is_written_in_whatever_order_slots_are_planned(
        before in configuration(),
        after in configuration(),
        first in edits(),
        then in edits(),
        orders in prop::array::uniform3(any::<u64>()),
    ) {
        let story = || story(&before, &first, &then);
        let [one, other, third] = orders.map(|order| play(story(), &after, order));
        for (world, written) in [&other, &third] {
            prop_assert_eq!(&one.1, written, "the calls");
            prop_assert_eq!(end(&one.0), end(world), "the end");
        }
    }

    #[test]
    fn what_was_planned_and_carried_out_is_planned_no_more(
        before in configuration(),
        after in configuration(),
        first in edits(),
        then in edits(),
        order in any::<u64>(),
    ) {
        let (mut world, _) = play(story(&before, &first, &then), &after, order);
        // Routes that disagree on it wait for each other: docs/decisions.md, "Finalizers on sources".
        let held: BTreeSet<bool> = after.values().map(|(_, manner)| manner.finalizer).collect();
        for name in (0..NAMES.len()).filter(|_| held.len() < 2) {
            let source = world.object(&at("workload", name));
            let waits = source.is_some_and(|source| !source["metadata"]["deletionTimestamp"].is_null());
            prop_assert!(!waits, "{} waits for nobody", NAMES[name]);
        }
        let (calls, before) = (world.engine.calls(), end(&world));
        // Every slot is planned again: all routes are configured anew, and all clusters named anew.
        configure_all(&mut world, &after, &[1, 0]);
        world.run_in(&mut Order(order));
        prop_assert_eq!(world.engine.calls(), calls, "nothing is even asked");
        // Nor is anything written by who knows nothing of that. A copy may be written once more, and stay as it is, where the
        // process before gave its source a finalizer.
        let (world, written) = play(world, &after, order ^ 1);
        if after.values().all(|(_, manner)| !manner.finalizer) {
            prop_assert_eq!(written, BTreeSet::new());
        }
        prop_assert_eq!(end(&world), before);
    }
}

/// Servers give uids each for itself: a copy may have its source's, and what is written to the source is not shown there.
#[test]
fn a_copy_that_has_the_uid_of_its_source_does_not_wait_for_what_was_written_to_that() {
    let manner = |withdrawal, finalizer| Manner {
        delivery: Delivery::Apply,
        status: StatusReturn::Off,
        withdrawal,
        finalizer,
        adopt: Adopt::Never,
    };
    let configuration = |manner| BTreeMap::from([(0, (vec![FLORIN], manner))]);
    let put = Edit::Put { value: 0, placed: true };
    let edits = BTreeMap::from([(0, Edit::Foreign { cluster: 0 }), (2, put)]);
    let world = story(&configuration(manner(Withdrawal::Leave, false)), &edits, &BTreeMap::new());
    let (copy, source) =
        (key("florin", "configmaps", "till", NAMES[2]), key("workload", "configmaps", "till", NAMES[2]));
    let uid = |world: &World, key: &Key| world.object(key).unwrap()["metadata"]["uid"].clone();
    assert_eq!(uid(&world, &copy), uid(&world, &source), "this tries nothing");
    let (world, _) = play(world, &configuration(manner(Withdrawal::Delete, true)), 0);
    let mark = world.object(&copy).unwrap()["metadata"]["annotations"][MARK_ANNOTATION].clone();
    assert!(!mark.as_str().unwrap().contains("leave"), "{mark}: {}", explain(&world, &copy));
}

/// The fields of a copy that was patched until now are under another entry of our own manager.
#[test]
fn a_copy_that_becomes_an_overlay_comes_to_rest() {
    let manner = |delivery, adopt| Manner {
        delivery,
        status: StatusReturn::Inline,
        withdrawal: Withdrawal::Delete,
        finalizer: true,
        adopt,
    };
    let before = BTreeMap::from([(0, (vec![GUILDER], manner(Delivery::ThreeWay, Adopt::Never)))]);
    let after = BTreeMap::from([(0, (vec![GUILDER], manner(Delivery::Overlay, Adopt::Unmarked)))]);
    let edits = BTreeMap::from([(2, Edit::Put { value: 1, placed: true })]);
    let (world, _) = play(story(&before, &edits, &BTreeMap::new()), &after, 0);
    let copy = key("guilder", "configmaps", "till", NAMES[2]);
    assert_eq!(world.engine.verdict(&copy), Some(&Verdict::Settled), "{}", explain(&world, &copy));
}

/// A source that waits for its copies is gone the moment that our finalizer is taken off it, and then they go or stay by their
/// marks: whoever is answered first, what is wanted by now stands on them before.
#[test]
fn a_deleted_source_that_nobody_holds_any_more_goes_after_its_copies_were_told_what_is_wanted() {
    let manner = |delivery, withdrawal, finalizer| Manner {
        delivery,
        status: StatusReturn::Off,
        withdrawal,
        finalizer,
        adopt: Adopt::Never,
    };
    let (delete, leave) = (Withdrawal::Delete, Withdrawal::Leave);
    for (before, after, stays) in [
        ((Delivery::Apply, delete), (Delivery::Apply, leave), true),
        ((Delivery::Apply, leave), (Delivery::Apply, delete), false),
        ((Delivery::Apply, delete), (Delivery::CreateOnly, delete), true),
        ((Delivery::CreateOnly, delete), (Delivery::Apply, delete), false),
        ((Delivery::Apply, delete), (Delivery::Overlay, delete), true),
    ] {
        let routes = |(delivery, withdrawal), finalizer| {
            BTreeMap::from([(0, (vec![FLORIN], manner(delivery, withdrawal, finalizer)))])
        };
        let first = BTreeMap::from([(0, Edit::Put { value: 0, placed: true })]);
        let then = BTreeMap::from([(0, Edit::Remove)]);
        for order in 0..32 {
            let story = story(&routes(before, true), &first, &then);
            assert!(story.object(&at("workload", 0)).is_some(), "nobody waits for anything");
            let (world, _) = play(story, &routes(after, false), order);
            let what = format!("{before:?}, then {after:?}, in order {order}");
            assert!(world.object(&at("workload", 0)).is_none(), "{what}: the source waits");
            assert_eq!(world.object(&at("florin", 0)).is_some(), stays, "{what}");
        }
    }
}

/// Orders do differ: else the properties above would say nothing.
#[test]
fn calls_are_made_in_different_orders() {
    let plain = Manner {
        delivery: Delivery::Apply,
        status: StatusReturn::Off,
        withdrawal: Withdrawal::Delete,
        finalizer: false,
        adopt: Adopt::Never,
    };
    let routes = BTreeMap::from([(0, (vec![FLORIN, GUILDER], plain))]);
    let put = Edit::Put { value: 1, placed: true };
    let first: BTreeMap<usize, Edit> = (0..NAMES.len()).map(|name| (name, put.clone())).collect();
    let sequences: BTreeSet<Vec<String>> = (0..8)
        .map(|order| {
            let mut world = story(&BTreeMap::new(), &first, &BTreeMap::new());
            let mut order = Order(order);
            world.restart_in(&mut order, &KINDS);
            configure_all(&mut world, &routes, &[0]);
            world.run_in(&mut order);
            world.writes.iter().map(shape).collect()
        })
        .collect();
    assert!(sequences.len() > 4, "{sequences:#?}");
    let sets: BTreeSet<BTreeSet<String>> =
        sequences.into_iter().map(|sequence| sequence.into_iter().collect()).collect();
    assert_eq!(sets.len(), 1);
}
