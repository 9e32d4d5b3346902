//! What the simulation can afford: printed, and bounded generously, since machines differ and debug builds are
//! slow.

#![allow(clippy::disallowed_methods, reason = "here time is what is looked at")]

use std::time::{Duration, Instant};

use serde_json::json;

use crate::world::{World, config_map, config_maps, key};

#[test]
fn small_objects_are_cheap() {
    let mut world = World::new();
    let count = 2_000_u32;
    let timed = |what: &str, run: &mut dyn FnMut(u32)| {
        let begun = Instant::now();
        (0..count).for_each(run);
        let each = begun.elapsed() / count;
        println!("{what}: {each:?} each");
        assert!(each < Duration::from_millis(2), "{what} takes {each:?}");
    };
    let name = |number: u32| format!("boat-{number}");
    timed("create", &mut |number| {
        world.create(&config_maps(), config_map(&name(number), json!({ "k": "v" }))).unwrap();
    });
    timed("apply", &mut |number| {
        let intent = config_map(&name(number), json!({ "l": "w" }));
        world.apply(&key(&config_maps(), &name(number)), "bob", true, &intent).unwrap();
    });
    timed("merge patch", &mut |number| {
        world.merge(&key(&config_maps(), &name(number)), &json!({ "data": { "k": "w" } })).unwrap();
    });
    timed("read as JSON", &mut |number| {
        let object = world.machine.get(&key(&config_maps(), &name(number))).unwrap();
        assert!(object.to_json().len() > 100);
    });
    timed("backup", &mut |_| drop(world.machine.clone()));
}
