//! Any history, beside a start from scratch and beside restarts in its midst.

use proptest::prelude::*;

use super::*;

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
