//! Copies that are found by their marks, whatever they are called.

use mailboat_engine::mark::MARK_ANNOTATION;

use crate::prelude::*;

/// A publisher whose copies are named by a rule of this edition, unless there is one already.
fn seeking(edition: &'static str) -> Skeleton {
    let mut route = translator("p1", &[FLORIN]);
    route.seeks = vec![copy().kind];
    route.project = Box::new(move |source, to, view| {
        let named = Key {
            cluster: to.cluster.clone(),
            name: Name::new(&format!("{edition}-{}", source.key.name)),
            ..source.key.clone()
        };
        let data = source.get(&["data"]).map_or(Value::Null, mailboat_object::Raw::to_value);
        let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": data });
        Ok(vec![(view.standing(&source.key, named)?, body)])
    });
    route
}

fn called(edition: &str) -> Key {
    key("florin", "configmaps", "till", &format!("{edition}-pos"))
}

fn begin(world: &mut World, route: Skeleton) {
    configure(world, route);
    known(world);
    world.run();
}

#[test]
fn a_copy_stays_where_it_is_when_the_rule_for_its_name_changes() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    begin(&mut world, seeking("old"));
    assert_eq!(world.object(&called("old")).unwrap()["data"]["a"], "1");
    written(&mut world);
    configure(&mut world, seeking("new"));
    world.run();
    assert_eq!(written(&mut world), Vec::<String>::new(), "another rule is no reason to write");
    world.restart(&KINDS);
    begin(&mut world, seeking("new"));
    assert_eq!(written(&mut world), Vec::<String>::new(), "a restart wrote something");
    world.put(&source(), config_map("2"));
    world.run();
    assert_eq!(world.object(&called("old")).unwrap()["data"]["a"], "2");
    assert!(world.object(&called("new")).is_none());
    // Deleted by somebody, it is made anew, by the rule of now.
    world.remove(&called("old"));
    world.run();
    assert_eq!(world.object(&called("new")).unwrap()["data"]["a"], "2");
    world.remove(&source());
    world.run();
    assert!(world.object(&called("new")).is_none(), "it goes with its source");
}

#[test]
fn between_two_copies_nothing_is_chosen() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    begin(&mut world, seeking("old"));
    let mut second = world.object(&called("old")).unwrap().clone();
    let mark =
        second["metadata"]["annotations"][MARK_ANNOTATION].as_str().unwrap().replace("old-pos", "new-pos");
    second["metadata"] =
        json!({ "labels": { "mailboat.dev/owner": "test" }, "annotations": { (MARK_ANNOTATION): mark } });
    written(&mut world);
    world.put(&called("new"), second);
    world.put(&source(), config_map("2"));
    world.run();
    assert_eq!(written(&mut world), Vec::<String>::new(), "one of them was chosen");
    let verdict = world.engine.verdict(&called("old")).cloned();
    let Some(Verdict::Waiting(Wait::Undecided(hold))) = verdict else { panic!("{verdict:?}") };
    assert!(hold.reason.contains("old-pos") && hold.reason.contains("new-pos"), "{}", hold.reason);
    for edition in ["old", "new"] {
        assert_eq!(world.object(&called(edition)).unwrap()["data"]["a"], "1", "{edition}");
    }
    // Somebody decides: it goes on with the other.
    world.remove(&called("old"));
    world.run();
    assert_eq!(world.object(&called("new")).unwrap()["data"]["a"], "2");
    assert!(world.object(&called("old")).is_none());
}

#[test]
fn while_it_is_not_known_what_stands_there_nothing_is_made() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    begin(&mut world, seeking("old"));
    // After a restart the copies are listed last.
    world.restart_following(|cluster| if cluster == "florin" { vec!["namespaces"] } else { KINDS.to_vec() });
    configure(&mut world, seeking("new"));
    known(&mut world);
    world.run();
    assert_eq!(written(&mut world), Vec::<String>::new());
    world.follow("florin", "configmaps");
    world.run();
    assert_eq!(written(&mut world), Vec::<String>::new());
    assert_eq!(world.engine.verdict(&called("old")), Some(&Verdict::Settled));
    assert!(world.object(&called("new")).is_none());
}
