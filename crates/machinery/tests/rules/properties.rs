//! What must hold whatever is done.

use std::collections::BTreeMap;

use mailboat_machinery::{DeleteOptions, ListRequest, ListVersion, WatchEvent, WatchRequest, WatchStart};
use mailboat_object::Version;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::world::{World, boat, boats, cluster, config_map, config_maps, key, of};

fn some_data() -> impl Strategy<Value = Value> {
    let pair = (prop::sample::select(vec!["a", "b", "c", "d"]), prop::sample::select(vec!["1", "2"]));
    prop::collection::vec(pair, 0..4).prop_map(|pairs| {
        Value::Object(
            pairs.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect::<Map<_, _>>(),
        )
    })
}

#[derive(Clone, Debug)]
enum Act {
    Apply(&'static str, &'static str, Value),
    Merge(&'static str, Value),
    Delete(&'static str),
}

fn act() -> impl Strategy<Value = Act> {
    let name = || prop::sample::select(vec!["x", "y", "z"]);
    let manager = prop::sample::select(vec!["alice", "bob"]);
    prop_oneof![
        4 => (name(), manager, some_data()).prop_map(|(name, manager, data)| Act::Apply(name, manager, data)),
        2 => (name(), some_data()).prop_map(|(name, data)| Act::Merge(name, data)),
        1 => name().prop_map(Act::Delete),
    ]
}

/// Does it; what is refused changes nothing.
fn perform(world: &mut World, act: &Act) {
    let before = world.machine.version();
    let refused = match act {
        Act::Apply(name, manager, data) => {
            let intent = config_map(name, data.clone());
            world.apply(&key(&config_maps(), name), manager, true, &intent).is_err()
        }
        Act::Merge(name, data) => world.merge(&key(&config_maps(), name), &json!({ "data": data })).is_err(),
        Act::Delete(name) => world.delete(&key(&config_maps(), name), &DeleteOptions::default()).is_err(),
    };
    assert!(!refused || world.machine.version() == before, "a refusal changed something: {act:?}");
}

proptest! {
    #[test]
    fn applying_the_same_twice_is_applying_it_once(first in some_data(), intent in some_data()) {
        let mut world = World::new();
        let key = key(&boats(), "a");
        world.create(&boats(), boat("a", first)).unwrap();
        let once = world.apply(&key, "bob", true, &boat("a", intent.clone())).unwrap().object;
        let twice = world.apply(&key, "bob", true, &boat("a", intent.clone())).unwrap();
        prop_assert_eq!(once.version, twice.object.version);
        for (name, value) in intent.as_object().unwrap() {
            prop_assert_eq!(&once.body()["spec"][name], value);
        }
    }

    #[test]
    fn appliers_of_different_fields_can_come_in_any_order(mut one in some_data(), other in some_data()) {
        // An empty map is owned as a whole, and then in the way of whoever puts something into it.
        one["always"] = "1".into();
        let other: Map<_, _> =
            other.as_object().unwrap().iter().map(|(name, value)| (format!("{name}{name}"), value.clone())).collect();
        let mut other = Value::Object(other);
        other["likewise"] = "1".into();
        let result = |first: (&str, &Value), second: (&str, &Value)| {
            let mut world = World::new();
            let key = key(&config_maps(), "a");
            for (manager, data) in [first, second] {
                world.apply(&key, manager, false, &config_map("a", data.clone())).unwrap();
            }
            let object = world.machine.get(&key).unwrap();
            let mut owners: Vec<_> =
                object.managed().entries().iter().map(|entry| (entry.name.to_string(), entry.fields.clone())).collect();
            owners.sort_by(|(a, _), (b, _)| a.cmp(b));
            (object.body().get("data").cloned(), owners)
        };
        let forward = result(("alice", &one), ("bob", &other));
        prop_assert_eq!(forward, result(("bob", &other), ("alice", &one)));
    }

    #[test]
    fn every_owned_field_is_there_and_no_updater_shares_one(acts in prop::collection::vec(act(), 1..20)) {
        let mut world = World::new();
        for act in &acts {
            perform(&mut world, act);
            for object in world.list(&config_maps()) {
                let data = object.body().get("data").cloned().unwrap_or_default();
                let mut owned: BTreeMap<String, usize> = BTreeMap::new();
                for entry in object.managed().entries() {
                    entry.fields.for_each(&mut |path| {
                        if let [_, mailboat_machinery::PathElement::Field(name)] = path {
                            assert!(data.get(name.as_str()).is_some(), "{name} is owned but not there: {object:?}");
                            if entry.operation == mailboat_object::Operation::Update {
                                *owned.entry(name.to_string()).or_default() += 1;
                            }
                        }
                    });
                }
                prop_assert!(owned.values().all(|count| *count == 1), "{:?}", owned);
                let read = mailboat_machinery::ManagedFields::from_json(&object.to_value()["metadata"]["managedFields"]);
                prop_assert_eq!(&read.unwrap(), &**object.managed());
            }
        }
    }

    #[test]
    fn a_watch_from_any_version_leads_from_its_list_to_the_present(acts in prop::collection::vec(act(), 1..30), from in 0..30_usize) {
        let mut world = World::new();
        let mut versions = vec![world.machine.version()];
        for act in &acts {
            perform(&mut world, act);
            versions.push(world.machine.version());
        }
        let from: Version = versions[from.min(versions.len() - 1)];
        let list = world.machine.list(&ListRequest { version: ListVersion::Exact(from), ..of(&config_maps()) }).unwrap();
        let mut seen: BTreeMap<_, _> =
            list.items.into_iter().map(|object| (object.key.clone(), (object.version, object.to_value()))).collect();
        let request = WatchRequest { cluster: Some(cluster()), kind: config_maps(), start: WatchStart::After(from), ..WatchRequest::default() };
        let mut watch = world.machine.watch(request).unwrap();
        let mut last = from;
        loop {
            let events = world.machine.poll(&mut watch, 2);
            if events.is_empty() {
                break;
            }
            for event in events {
                let (object, there) = match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, true),
                    WatchEvent::Deleted(object) => (object, false),
                    other => panic!("{other:?}"),
                };
                assert!(object.version > last, "versions must grow");
                last = object.version;
                let known = seen.remove(&object.key).is_some();
                assert!(known || there, "deleted what was not there");
                if there {
                    seen.insert(object.key.clone(), (object.version, object.to_value()));
                }
            }
        }
        let present: BTreeMap<_, _> = world
            .list(&config_maps())
            .into_iter()
            .map(|object| (object.key.clone(), (object.version, object.to_value())))
            .collect();
        prop_assert_eq!(seen, present);
    }
}
