//! What is ours, what is not, and what is done about either.

use mailboat_engine::want::{Delivery, Policy};

use crate::prelude::*;
use crate::roles::policy;

#[test]
fn a_foreign_object_is_never_touched_and_is_reported() {
    let mut world = world();
    let copy = key("florin", "configmaps", "till", "pos");
    let foreign = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "theirs": "1" } });
    world.put(&copy, foreign);
    world.put(&key("workload", "configmaps", "till", "pos"), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    assert_eq!(world.object(&copy).unwrap()["data"], json!({ "theirs": "1" }));
    assert_eq!(world.engine.verdict(&copy), Some(&Verdict::Refused(Refusal::Foreign)));
    assert_eq!(written(&mut world), Vec::<String>::new());
    world.remove(&copy);
    world.run();
    assert_eq!(world.object(&copy).unwrap()["data"], json!({ "a": "1" }), "the place is free now");
}

#[test]
fn what_a_first_delivery_meets_unseen_is_let_go_at_once() {
    let mut world = world();
    let copy = key("florin", "configmaps", "till", "pos");
    world.put(&key("workload", "configmaps", "till", "pos"), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    // It appears on the server, and its event has not arrived when the delivery is sent.
    world.put(&copy, json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "theirs": "1" } }));
    let late = std::mem::take(&mut world.servers.get_mut(&copy.cluster).unwrap().events);
    world.run_for(1);
    assert_eq!(world.object(&copy).unwrap()["data"], json!({ "theirs": "1" }), "our field was let go");
    assert!(world.object(&copy).unwrap()["metadata"]["annotations"]["mailboat.dev/mark"].is_null());
    let events = &mut world.servers.get_mut(&copy.cluster).unwrap().events;
    let ours = std::mem::replace(events, late);
    events.extend(ours);
    world.run();
    assert_eq!(world.engine.verdict(&copy), Some(&Verdict::Refused(Refusal::Foreign)));
}

#[test]
fn h08_renamed_configuration_deletes_nothing() {
    let mut world = world();
    world.put(&key("workload", "configmaps", "till", "pos"), config_map("1"));
    configure(&mut world, translator("old-name", &[FLORIN]));
    known(&mut world);
    world.run();
    written(&mut world);
    world.engine.configure(&world.store, &RouteId(Name::new("old-name")), None);
    configure(&mut world, translator("new-name", &[FLORIN]));
    world.run();
    assert_eq!(written(&mut world), Vec::<String>::new(), "H8");
}

#[test]
fn a_copy_of_ours_that_a_view_hides_is_never_let_go() {
    let mut world = world();
    let copy = key("florin", "configmaps", "till", "pos");
    world.put(&key("workload", "configmaps", "till", "pos"), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    // The view loses sight of the copy, though it still stands: kcp sends such events when a claim is rejected.
    let standing = world.object(&copy).unwrap().clone();
    let mut hidden = standing.clone();
    let later = standing["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() + 1;
    hidden["metadata"]["resourceVersion"] = json!(later.to_string());
    let server = world.servers.get_mut(&copy.cluster).unwrap();
    server.events.push((copy.clone(), "DELETED", hidden));
    written(&mut world);
    world.run_for(600_000);
    let calls = written(&mut world);
    assert!(calls.len() < 50, "{} calls in ten minutes", calls.len());
    assert_eq!(world.object(&copy).unwrap()["data"], standing["data"], "our own copy was emptied");
    assert!(!world.object(&copy).unwrap()["metadata"]["annotations"].is_null(), "our own copy lost its mark");
}

/// The view loses sight of our copy, and its server has forgotten how it was before.
fn hide_and_forget(world: &mut World) {
    let mut hidden = world.object(&copy()).unwrap().clone();
    let later = hidden["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() + 1;
    hidden["metadata"]["resourceVersion"] = json!(later.to_string());
    let server = world.servers.get_mut(&copy().cluster).unwrap();
    server.forgets = true;
    server.events.push((copy(), "DELETED", hidden));
    world.now += 5_000;
    world.put(&source(), config_map("2"));
    world.run_for(600_000);
}

#[test]
fn our_copy_that_a_delivery_met_is_ours_though_its_server_forgot_how_it_was() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    hide_and_forget(&mut world);
    assert_eq!(world.object(&copy()).unwrap()["data"]["a"], "2", "nobody but we ever wrote it");
    world.put(&source(), config_map("3"));
    world.run_for(600_000);
    assert_eq!(world.object(&copy()).unwrap()["data"]["a"], "3", "{}", explain(&world, &copy()));
}

/// A world whose view has lost sight of our copy, and shows nothing of what a first delivery and what came after it did there.
fn hiding_world() -> World {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    let mut hidden = world.object(&copy()).unwrap().clone();
    let later = hidden["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() + 1;
    hidden["metadata"]["resourceVersion"] = json!(later.to_string());
    world.servers.get_mut(&copy().cluster).unwrap().events.push((copy(), "DELETED", hidden));
    world.now += 5_000;
    world.run_until_call(|world| shows(world, false));
    world.run_for(1_000);
    assert!(explain(&world, &copy()).contains("does not show it"), "{}", explain(&world, &copy()));
    world
}

fn shows(world: &mut World, shows: bool) {
    world.servers.get_mut(&copy().cluster).unwrap().silent = !shows;
}

#[test]
fn a_change_reaches_our_copy_at_once_while_a_view_hides_it_and_after() {
    let mut world = hiding_world();
    world.put(&source(), config_map("2"));
    world.run_for(1_000);
    assert_eq!(world.object(&copy()).unwrap()["data"]["a"], "2", "{}", explain(&world, &copy()));
    // All is shown, the oldest first: nothing is decided by how it was before our own last write.
    written(&mut world);
    shows(&mut world, true);
    world.run_for(1_000);
    assert_eq!(written(&mut world), Vec::<String>::new(), "it is as wanted");
    assert_eq!(world.engine.verdict(&copy()), Some(&Verdict::Settled), "{}", explain(&world, &copy()));
    world.put(&source(), config_map("3"));
    world.run_for(1_000);
    assert_eq!(world.object(&copy()).unwrap()["data"]["a"], "3", "{}", explain(&world, &copy()));
}

#[test]
fn a_copy_that_was_hidden_and_is_gone_is_made_again() {
    let mut world = hiding_world();
    world.remove(&copy());
    world.put(&source(), config_map("2"));
    world.run_for(600_000);
    shows(&mut world, true);
    world.run_for(600_000);
    assert_eq!(world.object(&copy()).unwrap()["data"]["a"], "2", "{}", explain(&world, &copy()));
    assert_eq!(world.engine.verdict(&copy()), Some(&Verdict::Settled), "{}", explain(&world, &copy()));
}

/// A foreign object that appeared unseen, met by a first delivery whose answer is lost.
fn met_and_lost() -> World {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.put(&copy(), json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "theirs": "1" } }));
    let server = world.servers.get_mut(&copy().cluster).unwrap();
    let late = std::mem::take(&mut server.events);
    server.loses_replies = 1;
    world.now += 5_000;
    world.run_for(1);
    let server = world.servers.get_mut(&copy().cluster).unwrap();
    assert_eq!(server.loses_replies, 0, "nothing was delivered");
    let ours = std::mem::replace(&mut server.events, late);
    server.events.extend(ours);
    assert_eq!(world.object(&copy()).unwrap()["data"], json!({ "theirs": "1", "a": "1" }), "it was met");
    world
}

fn is_foreign_again(world: &World) {
    let Some(object) = world.object(&copy()) else { panic!("a foreign object was deleted") };
    assert_eq!(object["data"], json!({ "theirs": "1" }), "{object}");
    assert!(object["metadata"]["annotations"]["mailboat.dev/mark"].is_null(), "our mark stayed: {object}");
    assert!(object["metadata"]["labels"]["mailboat.dev/owner"].is_null(), "our label stayed: {object}");
}

#[test]
fn what_a_delivery_met_whose_answer_was_lost_is_let_go_when_it_is_seen() {
    let mut world = met_and_lost();
    world.run();
    is_foreign_again(&world);
    assert_eq!(world.engine.verdict(&copy()), Some(&Verdict::Refused(Refusal::Foreign)));
    written(&mut world);
    world.run();
    assert_eq!(written(&mut world), Vec::<String>::new(), "and that is all");
}

#[test]
fn what_was_met_and_cannot_be_asked_about_any_more_is_left_as_it_is() {
    let mut world = met_and_lost();
    world.servers.get_mut(&copy().cluster).unwrap().forgets = true;
    written(&mut world);
    world.run_for(600_000);
    assert_eq!(written(&mut world).len(), 0, "neither owned nor let go");
    assert_eq!(world.engine.verdict(&copy()), Some(&Verdict::Refused(Refusal::Unclear)));
    let calls = world.engine.calls();
    world.run_for(600_000);
    assert_eq!(world.engine.calls(), calls, "it is asked about again and again");
}

#[test]
fn a_process_that_dies_before_it_learns_what_it_met_leaves_nothing_that_the_next_takes_for_its_own() {
    let mut world = met_and_lost();
    world.restart(&KINDS);
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    is_foreign_again(&world);
    assert_eq!(world.engine.verdict(&copy()), Some(&Verdict::Refused(Refusal::Foreign)));
}

#[test]
fn what_was_met_and_is_no_longer_selected_is_let_go_and_never_deleted() {
    let mut world = met_and_lost();
    world.restart(&KINDS);
    configure(&mut world, translator("p1", &[GUILDER]));
    known(&mut world);
    world.run();
    is_foreign_again(&world);
    let deleted = written(&mut world).iter().any(|write| write.starts_with("delete"));
    assert!(!deleted, "a delete was sent");
}

/// The fields of what was delivered whole are ours, and an overlay takes them. The mark on this says that it was.
#[test]
fn fields_are_not_forced_on_what_a_delivery_met_whose_answer_was_lost() {
    for (forgets, restarted) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut world = met_and_lost();
        let mut theirs = world.object(&copy()).unwrap().clone();
        theirs["data"]["a"] = json!("theirs");
        world.put(&copy(), theirs);
        world.servers.get_mut(&copy().cluster).unwrap().forgets = forgets;
        if restarted {
            world.restart(&KINDS);
        }
        written(&mut world);
        let mut overlaying = translator("p1", &[FLORIN]);
        overlaying.policy = Arc::new(Policy { delivery: Delivery::Overlay, ..policy() });
        overlaying.head.configuration = crate::roles::edition(2);
        configure(&mut world, overlaying);
        known(&mut world);
        world.run_for(600_000);
        let data = &world.object(&copy()).expect("a foreign object was deleted")["data"];
        assert_eq!(*data, json!({ "theirs": "1", "a": "theirs" }), "{forgets} {restarted}");
        let calls = written(&mut world);
        assert!(!calls.iter().any(|call| call.contains("force: true")), "{calls:?}");
    }
}

#[test]
fn our_own_copy_is_ours_though_the_answer_to_its_first_delivery_was_lost() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    world.servers.get_mut(&copy().cluster).unwrap().loses_replies = 1;
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    assert_eq!(world.engine.verdict(&copy()), Some(&Verdict::Settled), "{}", explain(&world, &copy()));
    assert_eq!(written(&mut world), Vec::<String>::new(), "it was written once more to be sure");
    world.now += 3_600_000;
    world.restart(&KINDS);
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    assert_eq!(world.engine.verdict(&copy()), Some(&Verdict::Settled), "{}", explain(&world, &copy()));
    assert_eq!(written(&mut world), Vec::<String>::new(), "a restart wrote something");
    world.remove(&source());
    world.run();
    assert!(world.object(&copy()).is_none(), "it is ours, and goes with its source");
}

#[test]
fn an_admission_that_takes_its_time_does_not_disown_our_copy() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    // The object is created seconds after the request was recorded as ours.
    let server = world.servers.get_mut(&copy().cluster).unwrap();
    server.objects.get_mut(&copy()).unwrap()["metadata"]["creationTimestamp"] = json!("2026-11-01T00:00:09Z");
    world.restart(&KINDS);
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    assert_eq!(world.engine.verdict(&copy()), Some(&Verdict::Settled), "{}", explain(&world, &copy()));
    assert_eq!(written(&mut world), Vec::<String>::new());
}

#[test]
fn our_copy_from_a_restored_backup_is_still_ours() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    // Somebody restores the edge: the copy comes back under another manager and another uid, with our mark.
    let mut restored = world.object(&copy()).unwrap().clone();
    world.remove(&copy());
    restored["metadata"]
        .as_object_mut()
        .unwrap()
        .retain(|member, _| ["name", "namespace", "labels", "annotations"].contains(&member.as_str()));
    world.put(&copy(), restored);
    world.run();
    assert_eq!(world.engine.verdict(&copy()), Some(&Verdict::Settled), "{}", explain(&world, &copy()));
    world.remove(&source());
    world.run();
    assert!(world.object(&copy()).is_none());
}

#[test]
fn our_own_copy_that_a_first_delivery_met_is_known_again_by_the_next_process() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    // Somebody else has written it, so that it does not show by itself whose it is.
    let mut theirs = world.object(&copy()).unwrap().clone();
    theirs["data"]["local"] = json!("edge");
    world.put(&copy(), theirs);
    world.put(&source(), config_map("2"));
    world.run();
    let standing = world.object(&copy()).unwrap().clone();
    let later = standing["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() + 1;
    let mut hidden = standing;
    hidden["metadata"]["resourceVersion"] = json!(later.to_string());
    let server = world.servers.get_mut(&copy().cluster).unwrap();
    server.events.push((copy(), "DELETED", hidden));
    server.loses_replies = 1;
    world.now += 5_000;
    world.run_for(1);
    let mark = world.object(&copy()).unwrap()["metadata"]["annotations"]["mailboat.dev/mark"].clone();
    assert!(mark.as_str().unwrap().contains("unconfirmed"), "the first delivery went over it: {mark}");
    world.restart(&KINDS);
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    let object = world.object(&copy()).unwrap();
    assert_eq!(object["data"], json!({ "a": "2", "local": "edge" }), "our own copy was let go: {object}");
    assert_eq!(world.engine.verdict(&copy()), Some(&Verdict::Settled), "{}", explain(&world, &copy()));
    let mark = world.object(&copy()).unwrap()["metadata"]["annotations"]["mailboat.dev/mark"].clone();
    assert!(!mark.as_str().unwrap().contains("unconfirmed"), "nobody has to ask again: {mark}");
}

/// A world that follows only what bears our label at the first edge, as through a claimed view.
fn labelled_world() -> World {
    let mut world = world();
    world.restart_following(|cluster| {
        KINDS.into_iter().filter(|kind| (cluster, *kind) != ("florin", "configmaps")).collect()
    });
    world.follow_labelled("florin", "configmaps");
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world
}

#[test]
fn where_absence_is_never_proven_a_copy_is_read_and_made_and_kept() {
    let mut world = labelled_world();
    world.put(&source(), config_map("1"));
    world.run();
    assert_eq!(world.object(&copy()).unwrap()["data"]["a"], "1", "{}", explain(&world, &copy()));
    let calls = written(&mut world);
    assert!(calls.iter().any(|call| call.starts_with("create")), "{calls:?}");
    world.put(&source(), config_map("2"));
    world.run();
    assert_eq!(world.object(&copy()).unwrap()["data"]["a"], "2");
    written(&mut world);
    world.run();
    assert_eq!(written(&mut world), Vec::<String>::new());
}

#[test]
fn where_absence_is_never_proven_a_foreign_object_is_found_by_reading_and_left_alone() {
    let mut world = labelled_world();
    world.put(&copy(), json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "theirs": "1" } }));
    world.put(&source(), config_map("1"));
    world.run();
    assert_eq!(world.object(&copy()).unwrap()["data"], json!({ "theirs": "1" }));
    assert_eq!(world.engine.verdict(&copy()), Some(&Verdict::Refused(Refusal::Foreign)));
    assert_eq!(written(&mut world), Vec::<String>::new());
    let reads = world.servers[&copy().cluster].gets;
    world.run();
    assert_eq!(world.servers[&copy().cluster].gets, reads, "one reading for one decision");
    // Its name becomes free, which nobody is told; the next change of the source finds out.
    world.remove(&copy());
    world.put(&source(), config_map("2"));
    world.run();
    assert_eq!(world.object(&copy()).unwrap()["data"]["a"], "2", "{}", explain(&world, &copy()));
}

/// A view may lose sight of what stands there still, as those of kcp do when a claim is rejected. What is then read one by
/// one is no less for that.
#[test]
fn many_copies_that_a_view_hides_are_held_like_any_others() {
    let mut world = labelled_world();
    let at = |cluster: &str, n: usize| key(cluster, "configmaps", "till", &format!("c{n:02}"));
    for n in 0..20 {
        world.put(&at("workload", n), config_map("1"));
    }
    world.run();
    for n in 0..20 {
        let copy = at("florin", n);
        let mut hidden = world.object(&copy).unwrap().clone();
        let later = hidden["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() + 100;
        hidden["metadata"]["resourceVersion"] = json!(later.to_string());
        world.servers.get_mut(&copy.cluster).unwrap().events.push((copy, "DELETED", hidden));
    }
    world.run_for(1_000);
    written(&mut world);
    configure(&mut world, translator("p1", &[]));
    world.run_for(600_000);
    let left = |world: &World| (0..20).filter(|n| world.object(&at("florin", *n)).is_some()).count();
    assert_eq!(left(&world), 20, "{}", explain(&world, &at("florin", 19)));
    let held: Vec<_> =
        world.engine.held_by_scope().map(|(scope, change, n)| (scope.clone(), change, n)).collect();
    let [(scope, change, 20)] = held.as_slice() else { panic!("{held:?}") };
    assert!(world.engine.confirm(scope, *change));
    world.run_for(600_000);
    assert_eq!(left(&world), 0, "{}", explain(&world, &at("florin", 0)));
}

/// Whoever moves an application by hand takes all that stands on its objects along: our label and our mark, too.
#[test]
fn what_people_copy_to_another_cluster_is_theirs_there() {
    for restarted in [false, true] {
        let mut world = world();
        world.put(&source(), config_map("1"));
        configure(&mut world, translator("p1", &[FLORIN]));
        known(&mut world);
        world.run();
        let mut moved = world.object(&copy()).unwrap().clone();
        for server_set in ["uid", "resourceVersion", "managedFields", "creationTimestamp"] {
            moved["metadata"].as_object_mut().unwrap().remove(server_set);
        }
        // A cluster that is delivered to, and a workspace with sources of other routes.
        let theirs = ["guilder", "tenant"].map(|cluster| key(cluster, "configmaps", "till", "pos"));
        for key in &theirs {
            world.put(key, moved.clone());
        }
        if restarted {
            world.restart(&KINDS);
            configure(&mut world, translator("p1", &[FLORIN]));
            known(&mut world);
        }
        written(&mut world);
        world.run_for(600_000);
        // What it was copied from is withdrawn, and takes nothing along.
        world.remove(&source());
        world.run_for(600_000);
        assert!(world.object(&copy()).is_none(), "{}", explain(&world, &copy()));
        for key in &theirs {
            assert!(
                world.object(key).is_some(),
                "{key} was deleted, and is nobody's but theirs ({restarted})"
            );
        }
        // Wanted there, it is met like anything of others.
        world.put(&source(), config_map("2"));
        let mut wider = translator("p1", &[FLORIN, GUILDER]);
        wider.head.configuration = crate::roles::edition(2);
        configure(&mut world, wider);
        known(&mut world);
        world.run_for(600_000);
        assert_eq!(world.object(&theirs[0]).unwrap()["data"], json!({ "a": "1" }));
        assert_eq!(world.engine.verdict(&theirs[0]), Some(&Verdict::Refused(Refusal::Foreign)));
    }
}
