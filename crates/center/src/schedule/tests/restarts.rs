//! What a schedule that begins knows by slices alone.

use super::*;

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
