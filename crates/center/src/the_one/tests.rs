use proptest::prelude::*;

use super::*;
use crate::fixtures::kind;

fn carried(kind_text: &str, namespace: &str, name: &str) -> Carried {
    Carried {
        kind: kind(kind_text),
        version: Name::new("v1"),
        namespace: Name::new(namespace),
        name: Name::new(name),
    }
}

fn upsync(group: &str, resources: &[&str], namespaces: &[&str], names: &[&str]) -> UpsyncSet {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    UpsyncSet {
        api_group: group.to_owned(),
        resources: owned(resources),
        namespaces: owned(namespaces),
        names: owned(names),
    }
}

fn specs(the_one: &mut TheOne) -> BTreeMap<String, Value> {
    let read = |config: &Config| {
        let object: Value = serde_json::from_slice(&config.body.json).expect("JSON");
        assert_eq!(object["metadata"]["name"], config.name.as_str());
        (config.name.to_string(), object["spec"].clone())
    };
    the_one.configs().map(read).collect()
}

fn group_one() -> UpsyncSet {
    upsync("group1.test", &["sprockets", "flanges"], &["orbital"], &["george", "cosmo"])
}

#[test]
fn example_one_at_guilder_is_what_its_documents_say() {
    let mut the_one = TheOne::default();
    for object in [
        carried("replicasets.apps", "commonstuff", "commond"),
        carried("configmaps", "specialstuff", "httpd-htdocs"),
        carried("configmaps", "commonstuff", "httpd-htdocs"),
        carried("crontabs.stable.example.com", "specialstuff", "my-new-cron-object"),
        carried("deployments.apps", "specialstuff", "speciald"),
        carried("namespaces", "", "specialstuff"),
        carried("customresourcedefinitions.apiextensions.k8s.io", "", "crontabs.stable.example.com"),
        carried("apiservices.apiregistration.k8s.io", "", "v1090.example.my"),
    ] {
        the_one.carry(object);
    }
    let common = [group_one(), upsync("group2.test", &["cogs"], &[], &["william"])];
    let special = [group_one(), upsync("group3.test", &["widgets"], &[], &["*"])];
    the_one.set_upsync(common.iter().chain(&special));
    let entry = |group: &str, resource: &str, objects: Value| json!({ "group": group, "resource": resource, "apiVersion": "v1", "objectsByNamespace": objects });
    assert_eq!(
        specs(&mut the_one),
        BTreeMap::from([(
            "the-one".to_owned(),
            json!({
                "namespaceScope": {},
                "namespacedObjects": [
                    entry("", "configmaps", json!([
                        { "namespace": "commonstuff", "names": ["httpd-htdocs"] },
                        { "namespace": "specialstuff", "names": ["httpd-htdocs"] },
                    ])),
                    entry("stable.example.com", "crontabs", json!([{ "namespace": "specialstuff", "names": ["my-new-cron-object"] }])),
                    entry("apps", "deployments", json!([{ "namespace": "specialstuff", "names": ["speciald"] }])),
                    entry("apps", "replicasets", json!([{ "namespace": "commonstuff", "names": ["commond"] }])),
                ],
                "clusterScope": [
                    { "group": "apiregistration.k8s.io", "resource": "apiservices", "apiVersion": "v1", "objects": ["v1090.example.my"] },
                    { "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "apiVersion": "v1", "objects": ["crontabs.stable.example.com"] },
                    { "group": "", "resource": "namespaces", "apiVersion": "v1", "objects": ["specialstuff"] },
                ],
                "upsync": [
                    { "apiGroup": "group1.test", "resources": ["flanges", "sprockets"], "namespaces": ["orbital"], "names": ["cosmo", "george"] },
                    { "apiGroup": "group2.test", "resources": ["cogs"], "names": ["william"] },
                    { "apiGroup": "group3.test", "resources": ["widgets"], "names": ["*"] },
                ],
            })
        )])
    );
}

#[test]
fn without_a_placement_it_is_empty_and_there() {
    let mut the_one = TheOne::default();
    the_one.carry(carried("configmaps", "a", "b"));
    the_one.set_upsync(&[group_one()]);
    the_one.drop(&carried("configmaps", "a", "b"));
    the_one.set_upsync(&[]);
    assert_eq!(
        specs(&mut the_one),
        BTreeMap::from([("the-one".to_owned(), json!({ "namespaceScope": {} }))])
    );
}

#[test]
fn upsync_sets_that_others_say_already_are_left_out() {
    let narrow = upsync("g", &["a"], &["n"], &["x", "x"]);
    let wide = upsync("g", &["b", "a", "*"], &["n", "m"], &["*"]);
    let other_group = upsync("h", &["a"], &["n"], &["x"]);
    let nothing = upsync("g", &["a"], &["n"], &[]);
    let merged = merge_upsync([&narrow, &wide, &other_group, &nothing, &wide]);
    let expected = [upsync("g", &["*"], &["m", "n"], &["*"]), upsync("h", &["a"], &["n"], &["x"])];
    assert_eq!(merged, BTreeSet::from(expected));
}

#[test]
fn h30_it_spills_into_further_configs_before_it_outgrows_an_object() {
    let mut the_one = TheOne::default();
    for number in 0..20_000 {
        the_one.carry(carried(
            "configmaps",
            &format!("namespace-{}", number % 50),
            &format!("config-map-{number}"),
        ));
    }
    let before: BTreeMap<Name, (usize, mailboat_object::Digest)> = the_one
        .configs()
        .map(|config| (config.name.clone(), (config.body.json.len(), config.body.digest)))
        .collect();
    assert!(before.len() > 1 && before.contains_key("the-one"), "{:?}", before.keys());
    for (name, (bytes, _)) in &before {
        assert!(*bytes < LIMIT_BYTES, "{name}: {bytes} bytes");
    }
    let named: usize = specs(&mut the_one)
        .values()
        .flat_map(|spec| {
            spec["namespacedObjects"][0]["objectsByNamespace"].as_array().expect("namespaces").clone()
        })
        .map(|entry| entry["names"].as_array().expect("names").len())
        .sum();
    assert_eq!(named, 20_000);
    // One object more changes one of them.
    the_one.carry(carried("secrets", "namespace-1", "one-more"));
    let changed: Vec<_> = the_one
        .configs()
        .filter(|config| before.get(&config.name).map(|(_, digest)| *digest) != Some(config.body.digest))
        .map(|config| config.name.clone())
        .collect();
    assert_eq!(changed.len(), 1, "{changed:?}");
}

proptest! {
    #[test]
    fn the_same_content_is_the_same_object_whatever_came_before(
        objects in prop::collection::vec(("[ab]", "[abc]", "[a-d]"), 0..30),
        passing in prop::collection::vec(("[ab]", "[abc]", "[e-g]"), 0..30),
    ) {
        let make = |(resource, namespace, name): &(String, String, String)| carried(&format!("{resource}.example.com"), namespace, name);
        let mut straight = TheOne::new(1_000);
        for object in &objects {
            straight.carry(make(object));
        }
        let mut roundabout = TheOne::new(1_000);
        for object in &passing {
            roundabout.carry(make(object));
        }
        for object in objects.iter().rev() {
            roundabout.carry(make(object));
        }
        prop_assert!(!specs(&mut roundabout).is_empty());
        for object in &passing {
            roundabout.drop(&make(object));
        }
        prop_assert_eq!(specs(&mut straight), specs(&mut roundabout));
    }
}
