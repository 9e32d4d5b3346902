//! Lists, watches, and backups.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mailboat_machinery::{
    DeleteOptions, Flavor, ListRequest, ListVersion, Settings, Stored, WatchEvent, WatchRequest, WatchStart,
    Within, WriteOptions,
};
use mailboat_object::{ClusterId, FieldSelector, Key, Version};
use serde_json::json;

use crate::world::{World, assert_refused, by, cluster, config_map, config_maps, key, of};

fn with_label(name: &str, label: &str) -> serde_json::Value {
    let mut body = config_map(name, json!({}));
    body["metadata"]["labels"] = json!({ "crew": label });
    body
}

fn watch(start: WatchStart) -> WatchRequest {
    WatchRequest { cluster: Some(cluster()), kind: config_maps(), start, ..WatchRequest::default() }
}

pub(crate) fn told(events: &[WatchEvent]) -> Vec<String> {
    let event = |event: &WatchEvent| match event {
        WatchEvent::Added(object) => format!("added {} {:?}", object.key.name, object.version),
        WatchEvent::Modified(object) => format!("modified {} {:?}", object.key.name, object.version),
        WatchEvent::Deleted(object) => format!("deleted {} {:?}", object.key.name, object.version),
        WatchEvent::Bookmark { version, initial_events_end } => {
            format!("bookmark {version:?} {initial_events_end}")
        }
        WatchEvent::Error(status) => format!("error {} {}", status.code(), status.reason()),
    };
    events.iter().map(event).collect()
}

#[test]
fn pages_show_one_state_whatever_happens_between_them() {
    let mut world = World::new();
    for name in ["a", "b", "c", "d"] {
        world.create(&config_maps(), config_map(name, json!({ "k": "v" }))).unwrap();
    }
    let first = world.machine.list(&ListRequest { limit: Some(2), ..of(&config_maps()) }).unwrap();
    assert_eq!((first.items.len(), first.remaining), (2, Some(2)));
    world.delete(&key(&config_maps(), "c"), &DeleteOptions::default()).unwrap();
    world.merge(&key(&config_maps(), "d"), &json!({ "data": { "k": "w" } })).unwrap();
    world.create(&config_maps(), config_map("bb", json!({}))).unwrap();
    let next =
        ListRequest { limit: Some(9), continue_token: first.continue_token.clone(), ..of(&config_maps()) };
    let second = world.machine.list(&next).unwrap();
    let names: Vec<_> = second.items.iter().map(|object| object.key.name.as_str()).collect();
    assert_eq!((names, second.version), (vec!["c", "d"], first.version));
    assert_eq!(second.items[1].body()["data"]["k"], "v");
    world.machine.compact(world.machine.version());
    let expired = world.machine.list(&next).unwrap_err();
    assert_eq!((expired.code(), expired.reason()), (410, "Expired"));
    let told = expired.to_json();
    let again = ListRequest {
        continue_token: told["metadata"]["continue"].as_str().map(str::to_owned),
        ..of(&config_maps())
    };
    assert!(again.continue_token.is_some(), "whoever does not mind goes on with what is there now: {told}");
    let rest = world.machine.list(&again).unwrap();
    let names: Vec<_> = rest.items.iter().map(|object| object.key.name.as_str()).collect();
    assert_eq!((names, rest.version), (vec!["bb", "d"], world.machine.version()));
    let broken = ListRequest { continue_token: Some("?".to_owned()), ..of(&config_maps()) };
    assert_refused(world.machine.list(&broken), 400, "BadRequest");
}

/// Shows what bears a name with a dash, or everything, and counts how often it was asked.
#[derive(Debug, Default)]
struct Dashed {
    everything: bool,
    asked: AtomicUsize,
}

impl Within for Dashed {
    fn takes_cluster(&self, cluster: &ClusterId, _: Version) -> bool {
        cluster.0.as_str() != "hidden"
    }

    fn takes(&self, object: &Stored) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.everything || object.key.name.contains('-')
    }

    fn takes_all(&self) -> bool {
        self.everything
    }
}

#[test]
fn a_page_over_many_clusters_looks_at_no_more_than_it_shows() {
    let mut world = World::kcp();
    let kinds: Vec<_> = world.machine.kinds(&cluster()).cloned().collect();
    for number in 0..30 {
        let cluster = match number {
            7 => ClusterId::new("hidden"),
            _ => ClusterId::new(&format!("c{number:02}")),
        };
        world.machine.serve(&cluster, kinds.clone());
        for name in ["a-1", "a-2", "b-1"] {
            let key = Key { cluster: cluster.clone(), ..key(&config_maps(), "") };
            world.act(|machine, moment| {
                machine.create(&key, config_map(name, json!({})), &by("alice"), moment).unwrap()
            });
        }
    }
    for everything in [true, false] {
        let seen = Arc::new(Dashed { everything, ..Dashed::default() });
        let mut request = ListRequest {
            within: Some(Arc::clone(&seen) as Arc<dyn Within>),
            kind: config_maps(),
            limit: Some(10),
            ..ListRequest::default()
        };
        let (mut names, mut pages) = (Vec::new(), 0);
        loop {
            let asked = seen.asked.load(Ordering::Relaxed);
            let page = world.machine.list(&request).unwrap();
            pages += 1;
            names.extend(page.items.iter().map(|item| (item.key.cluster.clone(), item.key.name.clone())));
            let left = 87 - names.len() as u64;
            let counted = Some(left).filter(|left| everything && *left > 0);
            assert_eq!(page.remaining, counted, "what is selected is not counted");
            assert!(seen.asked.load(Ordering::Relaxed) - asked <= 11, "page {pages}");
            match page.continue_token {
                Some(token) => request.continue_token = Some(token),
                None => break,
            }
        }
        assert_eq!((names.len(), pages), (87, 9));
        assert!(names.is_sorted() && names.iter().all(|(cluster, _)| cluster.0.as_str() != "hidden"));
        // A token of one cluster says nothing about one before it.
        let token = request.continue_token.take();
        let one = |name: &str| ListRequest {
            cluster: Some(ClusterId::new(name)),
            continue_token: token.clone(),
            ..request.clone()
        };
        assert!(world.machine.list(&one("c00")).unwrap().items.is_empty());
        assert_eq!(world.machine.list(&one("hidden")).unwrap().items.len(), 0);
    }
}

#[test]
fn lists_know_versions_of_the_past_and_refuse_those_of_the_future() {
    let mut world = World::new();
    let first = world.create(&config_maps(), config_map("a", json!({}))).unwrap().object.version;
    world.create(&config_maps(), config_map("b", json!({}))).unwrap();
    let at = |version| ListRequest { version, ..of(&config_maps()) };
    assert_eq!(world.machine.list(&at(ListVersion::Exact(first))).unwrap().items.len(), 1);
    assert_eq!(world.machine.list(&at(ListVersion::NotOlderThan(first))).unwrap().items.len(), 2);
    assert_refused(world.machine.list(&at(ListVersion::NotOlderThan(Version(999)))), 504, "Timeout");
}

#[test]
fn selectors_pick_and_unknown_fields_are_refused() {
    let mut world = World::new();
    world.create(&config_maps(), with_label("a", "x")).unwrap();
    world.create(&config_maps(), with_label("b", "y")).unwrap();
    let labelled = ListRequest { labels: "crew in (x,z)".parse().unwrap(), ..of(&config_maps()) };
    assert_eq!(world.machine.list(&labelled).unwrap().items.len(), 1);
    let named = ListRequest { fields: FieldSelector::name("b"), ..of(&config_maps()) };
    assert_eq!(&*world.machine.list(&named).unwrap().items[0].key.name, "b");
    let unknown = ListRequest { fields: "spec.x=y".parse().unwrap(), ..of(&config_maps()) };
    assert_refused(world.machine.list(&unknown), 400, "BadRequest");
}

#[test]
fn a_watch_tells_what_happens_and_what_leaves_its_selector() {
    let mut world = World::new();
    world.create(&config_maps(), with_label("a", "x")).unwrap();
    let mut all = world.machine.watch(watch(WatchStart::InitialEvents)).unwrap();
    let request = WatchRequest { labels: "crew=x".parse().unwrap(), ..watch(WatchStart::Now) };
    let mut selected = world.machine.watch(request).unwrap();
    world.merge(&key(&config_maps(), "a"), &json!({ "data": { "k": "v" } })).unwrap();
    world.merge(&key(&config_maps(), "a"), &json!({ "metadata": { "labels": { "crew": "y" } } })).unwrap();
    world.delete(&key(&config_maps(), "a"), &DeleteOptions::default()).unwrap();
    assert_eq!(
        told(&world.machine.poll(&mut all, 99)),
        ["added a v2", "bookmark v2 true", "modified a v3", "modified a v4", "deleted a v5"]
    );
    let events = world.machine.poll(&mut selected, 99);
    assert_eq!(told(&events), ["added a v2", "modified a v3", "deleted a v4"]);
    let WatchEvent::Deleted(last) = &events[2] else { panic!("{events:?}") };
    assert_eq!(last.metadata()["labels"]["crew"], "x", "what was last seen, not what it became");
    assert_eq!(told(&world.machine.poll(&mut all, 99)), Vec::<String>::new());
    assert!(world.machine.bookmark(&all).is_some());
}

#[test]
fn a_watch_from_what_is_forgotten_ends_in_an_error_of_its_own() {
    let mut world = World::with(Settings { log_limit: 2, ..Settings::default() });
    let mut slow = world.machine.watch(watch(WatchStart::Now)).unwrap();
    for name in ["a", "b", "c"] {
        world.create(&config_maps(), config_map(name, json!({}))).unwrap();
    }
    assert_eq!(told(&world.machine.poll(&mut slow, 99)), ["error 410 Expired"]);
    assert!(slow.is_over() && world.machine.poll(&mut slow, 99).is_empty());
    let mut compacted = world.machine.watch(watch(WatchStart::After(Version(3)))).unwrap();
    world.machine.compact(Version(4));
    assert_eq!(told(&world.machine.poll(&mut compacted, 99)), ["error 410 Expired"]);
}

#[test]
fn a_quiet_watch_does_not_end_because_others_are_busy() {
    let mut world = World::with(Settings { log_limit: 4, flavor: Flavor::Kcp, ..Settings::default() });
    let busy = ClusterId::new("busy");
    let kinds: Vec<_> = world.machine.kinds(&cluster()).cloned().collect();
    world.machine.serve(&busy, kinds);
    world.create(&config_maps(), config_map("before", json!({}))).unwrap();
    let mut quiet = world.machine.watch(watch(WatchStart::After(world.machine.version()))).unwrap();
    let mut late = world.machine.watch(watch(WatchStart::After(Version(1)))).unwrap();
    let everywhere = WatchRequest { cluster: None, ..watch(WatchStart::After(world.machine.version())) };
    let mut everywhere = world.machine.watch(everywhere).unwrap();
    for number in 0..10 {
        let key = Key { cluster: busy.clone(), ..key(&config_maps(), "") };
        let body = config_map(&format!("map-{number}"), json!({}));
        world.act(|machine, moment| machine.create(&key, body, &by("bob"), moment)).unwrap();
    }
    assert_eq!(
        told(&world.machine.poll(&mut late, 99)),
        ["error 410 Expired"],
        "what it missed is forgotten"
    );
    assert_eq!(told(&world.machine.poll(&mut everywhere, 99)), ["error 410 Expired"]);
    world.create(&config_maps(), config_map("after", json!({}))).unwrap();
    assert_eq!(told(&world.machine.poll(&mut quiet, 99)), ["added after v13"]);
    // Nor does anybody go on where something is missing.
    for number in 0..5 {
        world.create(&config_maps(), config_map(&format!("more-{number}"), json!({}))).unwrap();
    }
    assert_eq!(told(&world.machine.poll(&mut quiet, 99)), ["error 410 Expired"]);
}

#[test]
fn where_clusters_are_forgotten_is_remembered_of_the_last_of_them() {
    let mut world = World::with(Settings { log_limit: 1, flavor: Flavor::Kcp, ..Settings::default() });
    let kinds: Vec<_> = world.machine.kinds(&cluster()).cloned().collect();
    let mut watches = Vec::new();
    for number in 0..17_000 {
        let cluster = ClusterId::new(&format!("c{number}"));
        world.machine.serve(&cluster, kinds.iter().cloned());
        let key = Key { cluster: cluster.clone(), ..key(&config_maps(), "") };
        let body = config_map("map", json!({}));
        world.act(|machine, moment| machine.create(&key, body, &by("bob"), moment)).unwrap();
        let request =
            WatchRequest { cluster: Some(cluster), ..watch(WatchStart::After(world.machine.version())) };
        watches.push(world.machine.watch(request).unwrap());
    }
    let polled = |watch: &mut _| told(&world.machine.poll(watch, 9));
    assert_eq!(polled(&mut watches[0]), ["error 410 Expired"]);
    assert_eq!(polled(&mut watches[16_000]), Vec::<String>::new());
}

#[test]
fn what_is_remembered_of_all_kinds_together_is_bounded_by_bytes() {
    let settings = Settings { awake: Some(2), log_bytes: 64 * 1024, ..Settings::default() };
    let mut world = World::with(settings);
    let begin = world.machine.version();
    world.create(&config_maps(), config_map("small", json!({}))).unwrap();
    world.create(&config_maps(), config_map("large", json!({}))).unwrap();
    assert!(world.machine.remembers(begin));
    let middle = world.machine.version();
    for number in 0..40 {
        // Each is unlike the others, so that none is kept only once.
        let text = format!("{number}").repeat(4 * 1024);
        world.merge(&key(&config_maps(), "large"), &json!({ "data": { "k": text } })).unwrap();
    }
    assert!(!world.machine.remembers(middle), "forty texts of 8 KiB do not fit into 64");
    let mut slow = world.machine.watch(watch(WatchStart::After(middle))).unwrap();
    assert_eq!(told(&world.machine.poll(&mut slow, 99)), ["error 410 Expired"]);
    let late = Version(world.machine.version().0 - 4);
    let mut quick = world.machine.watch(watch(WatchStart::After(late))).unwrap();
    assert_eq!(world.machine.poll(&mut quick, 99).len(), 4, "the last ones are there");
    assert_eq!(world.list(&config_maps()).len(), 2);
}

#[test]
fn the_last_changes_are_bounded_by_bytes_as_well() {
    let settings =
        Settings { awake: Some(256), awake_bytes: 64 << 10, log_bytes: 64 << 10, ..Settings::default() };
    let mut world = World::with(settings);
    world.create(&config_maps(), config_map("large", json!({}))).unwrap();
    let begin = world.machine.version();
    for number in 0..40 {
        let text = format!("{number}").repeat(32 * 1024);
        world.merge(&key(&config_maps(), "large"), &json!({ "data": { "k": text } })).unwrap();
    }
    assert!(!world.machine.remembers(begin), "forty texts of 64 KiB do not fit into 128");
    let before_last = Version(world.machine.version().0 - 1);
    let mut quick = world.machine.watch(watch(WatchStart::After(before_last))).unwrap();
    assert_eq!(world.machine.poll(&mut quick, 99).len(), 1, "the last one is there, however large");
}

#[test]
fn a_poll_takes_no_more_bytes_than_were_asked_for_but_one_event_however_large() {
    let mut world = World::new();
    let sized = |name: &str, bytes: usize| config_map(name, json!({ "k": "x".repeat(bytes) }));
    for (name, bytes) in [("a", 10), ("b", 10), ("c", 50_000), ("d", 10)] {
        world.create(&config_maps(), sized(name, bytes)).unwrap();
    }
    let all = |start| {
        let mut watch = world.machine.watch(watch(start)).unwrap();
        let mut polled = Vec::new();
        loop {
            let events = world.machine.poll_bytes(&mut watch, 64, 10_000);
            if events.is_empty() {
                return polled;
            }
            polled.push(told(&events).join(", "));
        }
    };
    let expected = ["added a v2, added b v3", "added c v4", "added d v5"];
    assert_eq!(all(WatchStart::Now), expected, "what is there");
    assert_eq!(all(WatchStart::After(Version(1))), expected, "what happens");
}

/// Whatever happened since: pages of all lengths, of all namespaces and of one, tell what was there.
#[test]
fn pages_of_any_length_and_namespace_tell_what_was_there() {
    use mailboat_machinery::{Random, Seeded};
    use mailboat_object::{Key, Name};
    // In lists a dash comes before the slash: the middle one stands before the first.
    let namespaces = ["a", "a-b", "b", "c"];
    let at = |namespace: &str, name: &str| Key {
        namespace: Name::new(namespace),
        name: Name::new(name),
        ..key(&config_maps(), "")
    };
    for seed in 0..40 {
        let mut chance = Seeded(seed);
        let mut below = |limit: u64| usize::try_from(chance.next() % limit).unwrap();
        let mut world = World::new();
        let mut states = Vec::new();
        for number in 0..40 {
            let (namespace, name) = (namespaces[below(4)], format!("n{}", below(5)));
            if world.machine.get(&at(namespace, &name)).is_err() {
                let body = config_map(&name, json!({ "k": number.to_string() }));
                let made = world.act(|machine, moment| {
                    machine.create(&at(namespace, ""), body, &WriteOptions::default(), moment)
                });
                made.unwrap();
            } else if below(2) == 0 {
                world.delete(&at(namespace, &name), &DeleteOptions::default()).unwrap();
            } else {
                let patch = json!({ "data": { "k": number.to_string() } });
                world.merge(&at(namespace, &name), &patch).unwrap();
            }
            states.push((world.machine.version(), world.list(&config_maps())));
        }
        for namespace in ["", "a", "a-b", "b", "c", "nobody"] {
            let (version, state) = &states[below(40)];
            let expected: Vec<_> = state
                .iter()
                .filter(|object| namespace.is_empty() || *object.key.namespace == *namespace)
                .map(|object| (object.key.clone(), object.version))
                .collect();
            let limit = 1 + below(7);
            let mut request = ListRequest {
                namespace: Name::new(namespace),
                limit: Some(limit),
                version: ListVersion::Exact(*version),
                ..of(&config_maps())
            };
            let mut found = Vec::new();
            loop {
                let list = world.machine.list(&request).unwrap();
                found.extend(list.items.iter().map(|object| (object.key.clone(), object.version)));
                let left = (expected.len() - found.len()) as u64;
                assert_eq!(list.remaining, Some(left).filter(|left| *left > 0), "seed {seed}");
                let selecting = ListRequest { labels: "!crew".parse().unwrap(), ..request.clone() };
                let selected = world.machine.list(&selecting).unwrap();
                assert_eq!((selected.items.len(), selected.remaining), (list.items.len(), None));
                assert_eq!(selected.continue_token, list.continue_token, "seed {seed}");
                request.version = ListVersion::Latest;
                request.continue_token = list.continue_token;
                if request.continue_token.is_none() {
                    break;
                }
            }
            assert_eq!(found, expected, "seed {seed}, namespace {namespace:?}, pages of {limit}");
        }
    }
}

#[test]
fn a_version_of_the_future_is_refused_by_kubernetes_and_met_with_silence_by_kcp() {
    let world = World::new();
    assert_refused(world.machine.watch(watch(WatchStart::After(Version(99)))), 504, "Timeout");
    let mut world = World::kcp();
    let mut silent = world.machine.watch(watch(WatchStart::After(Version(3)))).unwrap();
    world.create(&config_maps(), config_map("a", json!({}))).unwrap();
    assert_eq!(told(&world.machine.poll(&mut silent, 99)), Vec::<String>::new());
    world.create(&config_maps(), config_map("b", json!({}))).unwrap();
    world.create(&config_maps(), config_map("c", json!({}))).unwrap();
    assert_eq!(told(&world.machine.poll(&mut silent, 99)), ["added c v4"]);
}

#[test]
fn objects_of_kcp_name_their_cluster_and_nobody_owns_that() {
    let mut world = World::kcp();
    let object = world.create(&config_maps(), config_map("a", json!({}))).unwrap().object.to_value();
    assert_eq!(object["metadata"]["annotations"], json!({ "kcp.io/cluster": "guilder" }));
    let again = world.update(&key(&config_maps(), "a"), object).unwrap();
    assert!(!again.changed, "{again:?}");
    let everywhere = ListRequest { kind: config_maps(), ..ListRequest::default() };
    assert_eq!(world.machine.list(&everywhere).unwrap().items.len(), 1);
}

#[test]
fn a_backup_goes_back_in_time_and_leaves_the_present_alone() {
    let mut world = World::new();
    world.create(&config_maps(), config_map("a", json!({ "k": "v" }))).unwrap();
    let backup = world.machine.clone();
    world.merge(&key(&config_maps(), "a"), &json!({ "data": { "k": "w" } })).unwrap();
    let present = std::mem::replace(&mut world.machine, backup);
    assert_eq!(world.machine.get(&key(&config_maps(), "a")).unwrap().body()["data"]["k"], "v");
    assert_eq!(present.get(&key(&config_maps(), "a")).unwrap().body()["data"]["k"], "w");
    assert!(world.machine.version() < present.version());
}

#[test]
fn lists_come_in_the_order_of_bytes() {
    let mut world = World::new();
    for namespace in ["a", "a-b"] {
        let mut at = key(&config_maps(), "");
        at.namespace = mailboat_object::Name::new(namespace);
        let body = config_map("x", json!({}));
        world.act(|machine, moment| machine.create(&at, body, &crate::world::by("a"), moment)).unwrap();
    }
    let namespaces: Vec<_> =
        world.list(&config_maps()).iter().map(|object| object.key.namespace.to_string()).collect();
    assert_eq!(namespaces, ["a-b", "a"], "a dash comes before the slash");
}
