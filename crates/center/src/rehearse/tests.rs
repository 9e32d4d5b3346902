use mailboat_engine::route::Route as _;
use mailboat_object::key::{ClusterId, KindId, Uid};
use serde_json::{Value, json};

use super::*;
use crate::fixtures::{key, kind};

const NOW: u64 = 1_000_000;

fn listed(cluster: &str, kind_text: &str, items: Vec<Value>) -> Listed {
    let (id, kind): (ClusterId, KindId) = (ClusterId::new(cluster), kind(kind_text));
    let numbered = items.into_iter().zip(10..).map(|(mut item, version)| {
        item["metadata"]["resourceVersion"] = json!(version.to_string());
        if item["metadata"]["uid"].is_null() {
            item["metadata"]["uid"] = json!(format!("uid-{kind_text}-{}", item["metadata"]["name"]));
        }
        item
    });
    Listed {
        cluster: id,
        kind,
        api_version: "v1".to_owned(),
        kind_name: "Thing".to_owned(),
        items: numbered.collect(),
    }
}

fn edge(name: &str, env: &str) -> (Value, Value) {
    let target =
        json!({ "metadata": { "name": name, "uid": format!("uid-{name}"), "labels": { "id": name } } });
    let location = json!({ "metadata": { "name": format!("at-{name}"), "labels": { "env": env, "city": name } },
        "spec": { "instanceSelector": { "matchLabels": { "id": name } } } });
    (target, location)
}

/// The environment of a placement whose selector cannot be understood.
const MISSPELT: &str = "misspelt";

fn placement(env: &str) -> Value {
    let misspelt = json!({ "matchExpressions": [{ "key": "env", "operator": "in", "values": ["prod"] }] });
    let selector = if env == MISSPELT { misspelt } else { json!({ "matchLabels": { "env": env } }) };
    json!({ "metadata": { "name": "shops" }, "spec": {
        "locationSelectors": [selector],
        "downsync": [{ "apiGroup": "", "resources": ["configmaps"], "labelSelectors": [{ "matchLabels": { "app": "shop" } }] }] } })
}

/// Where the placement goes, as the center wrote it.
fn slice() -> Value {
    json!({ "metadata": { "name": "shops", "ownerReferences": [
            { "apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgePlacement", "name": "shops", "uid": "u" }] },
        "destinations": [{ "cluster": "imw", "locationName": "at-florin", "syncTargetName": "florin",
            "syncTargetUID": "uid-florin" }] })
}

/// Two edges, one placement, and two ConfigMaps of which one is meant; and what stands in the mailbox of florin.
fn world(env: &str, copies: Vec<Value>) -> Rehearsal {
    world_of(env, &["page"], copies, Threshold::default())
}

/// The same, with these ConfigMaps that are meant, and a center that asks from so many on.
fn world_of(env: &str, pages: &[&str], copies: Vec<Value>, caution: Threshold) -> Rehearsal {
    let ((florin, at_florin), (guilder, at_guilder)) = (edge("florin", "prod"), edge("guilder", "test"));
    let page = |name: &&str| {
        json!({ "metadata": { "name": name, "namespace": "shop", "labels": { "app": "shop" },
        "annotations": { "edge.kubestellar.io/expand-parameters": "true" } }, "data": { "at": "%(city)" } })
    };
    let other = json!({ "metadata": { "name": "other", "namespace": "shop" } });
    let namespace = || json!({ "metadata": { "name": "shop" } });
    let listed = [
        listed("imw", "synctargets.edge.kubestellar.io", vec![florin, guilder]),
        listed("imw", "locations.edge.kubestellar.io", vec![at_florin, at_guilder]),
        listed("wmw", "edgeplacements.edge.kubestellar.io", vec![placement(env)]),
        listed("wmw", "singleplacementslices.edge.kubestellar.io", vec![slice()]),
        listed("wmw", "namespaces", vec![namespace()]),
        listed("wmw", "configmaps", pages.iter().map(page).chain([other]).collect()),
        listed("mb-florin", "namespaces", vec![namespace()]),
        listed("mb-florin", "configmaps", copies),
        listed("mb-guilder", "namespaces", vec![]),
        listed("mb-guilder", "configmaps", vec![]),
    ];
    let mailboxes = ["florin", "guilder"]
        .map(|name| (Uid::parse(&format!("uid-{name}")), ClusterId::new(&format!("mb-{name}"))));
    let setting = Setting {
        provider: Some(ClusterId::new("espw")),
        provider_path: "root:espw".to_owned(),
        workspaces: [ClusterId::new("wmw")].into(),
        mailboxes: mailboxes.into(),
        now: NOW,
        caution,
    };
    Rehearsal::new(setting, &listed)
}

/// The copy at florin, as the center would have made it.
fn copy_at_florin() -> Value {
    copy_of("page")
}

fn copy_of(page: &str) -> Value {
    let empty = world_of("prod", &[page], vec![], Threshold::default());
    let placement = empty.placements.values().next().unwrap();
    let source = empty.object(&key("wmw", "configmaps", "shop", page)).unwrap();
    let to = Destination {
        id: empty.destinations[&Uid::parse("uid-florin")],
        cluster: ClusterId::new("mb-florin"),
    };
    let view = mailboat_engine::route::View::new(&empty.store);
    let want = placement.translator.project(source, &to, &view).unwrap().remove(0);
    let json = empty.marks.write(&want, None).unwrap();
    let mut copy: Value = serde_json::from_slice(&json).unwrap();
    copy["metadata"]["uid"] = json!(format!("uid-of-the-copy-of-{page}"));
    copy
}

fn said(changes: &[Change]) -> Vec<String> {
    changes.iter().map(|one| format!("{} {:?} {}", one.edge, one.step, one.object.name)).collect()
}

#[test]
fn an_object_is_told_by_which_entry_it_goes_where_and_what_it_becomes() {
    let world = world("prod", vec![]);
    let why = world.why(&key("wmw", "configmaps", "shop", "page"), None).expect("it was read");
    let [by] = why.placements.as_slice() else { panic!("{why:?}") };
    assert_eq!(by.selected_by.as_deref(), Some("spec.downsync[0]"));
    let [edge] = by.edges.as_slice() else { panic!("{by:?}") };
    assert_eq!((edge.location.as_str(), edge.sync_target.as_str()), ("at-florin", "florin"));
    assert_eq!(edge.customized.as_ref().map(|how| how.paths.clone()), Some(vec![".data.at".to_owned()]));
    assert!(!edge.hops[0].done && edge.hops[0].state.contains("nothing stands there"), "{edge:?}");

    let other = world.why(&key("wmw", "configmaps", "shop", "other"), None).expect("it was read");
    assert_eq!(other.placements[0].selected_by, None);
    assert!(world.why(&key("wmw", "configmaps", "shop", "missing"), None).is_none());
}

#[test]
fn a_placement_that_moves_creates_here_and_deletes_there() {
    let copies = || vec![copy_at_florin()];
    let before = world("prod", copies());
    assert!(said(&changes(&before, &world("prod", copies()))).is_empty(), "nothing changed");
    let moved = changes(&before, &world("test", copies()));
    assert_eq!(said(&moved), ["at-florin Delete page", "at-guilder Create page"]);
    let at_florin = before.why(&key("wmw", "configmaps", "shop", "page"), Some("florin")).unwrap();
    let hop = &at_florin.placements[0].edges[0].hops[0];
    assert!(hop.state.contains("as wanted"), "{hop:?}");
}

#[test]
fn a_placement_whose_selector_cannot_be_understood_stays_where_it_is() {
    let copies = || vec![copy_at_florin()];
    let slipped = changes(&world("prod", copies()), &world(MISSPELT, copies()));
    assert!(said(&slipped).is_empty(), "{slipped:?}");
}

#[test]
fn what_the_center_would_ask_about_first_is_told_and_only_that() {
    // What the center keeps in a mailbox besides, its own and nobody's copy, is none of a placement's losses.
    let own = |n: usize| {
        let mut own = copy_at_florin();
        let mark = own["metadata"]["annotations"]["mailboat.dev/mark"].as_str().unwrap_or_default();
        own["metadata"]["annotations"]["mailboat.dev/mark"] = json!(mark.replace("wmw", "imw"));
        own["metadata"]["name"] = json!(format!("own{n}"));
        own
    };
    let with_own = || (0..20).map(own).chain([copy_at_florin()]).collect::<Vec<_>>();
    let moved = changes(&world("prod", with_own()), &world("test", with_own()));
    assert_eq!(said(&moved), ["at-florin Delete page", "at-guilder Create page"]);

    let pages = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    let much_for = |env: &str, caution: Threshold| {
        world_of(env, &pages, pages.iter().map(|page| copy_of(page)).collect(), caution)
    };
    let bold = Threshold { at_least: 13, ..Threshold::default() };
    let unasked = changes(&much_for("prod", bold), &much_for("test", bold));
    assert_eq!(unasked.iter().filter(|one| one.step == Step::Delete).count(), 12, "{unasked:?}");
    let much = |env: &str| much_for(env, Threshold::default());
    let moved = changes(&much("prod"), &much("test"));
    let asked: Vec<&Change> = moved.iter().filter(|one| one.step == Step::AwaitConfirmation).collect();
    assert_eq!(asked.len(), 12, "{moved:?}");
    assert!(
        asked[0].why.starts_with("12 of the 12 copies of EdgePlacement shops would go"),
        "{:?}",
        asked[0]
    );
}

#[test]
fn a_copy_that_is_selected_no_more_and_still_stands_is_told_of() {
    let mut copy = copy_at_florin();
    let mark = copy["metadata"]["annotations"]["mailboat.dev/mark"].as_str().unwrap_or_default();
    let mark = mark.replace("shop/page", "shop/other");
    copy["metadata"]["annotations"]["mailboat.dev/mark"] = json!(mark);
    copy["metadata"]["name"] = json!("other");
    let why = world("prod", vec![copy]).why(&key("wmw", "configmaps", "shop", "other"), None).unwrap();
    let [by] = why.placements.as_slice() else { panic!("{why:?}") };
    let [edge] = by.edges.as_slice() else { panic!("{by:?}") };
    assert_eq!((by.selected_by.as_deref(), edge.location.as_str()), (None, "at-florin"));
    assert_eq!(edge.held.as_deref(), Some("it is not wanted there any more"));
}

#[test]
fn what_came_from_a_workspace_that_was_not_read_is_left_out() {
    let mut copy = copy_at_florin();
    let mark = copy["metadata"]["annotations"]["mailboat.dev/mark"]
        .as_str()
        .unwrap_or_default()
        .replace("wmw", "another");
    assert!(mark.contains("another"), "{copy}");
    copy["metadata"]["annotations"]["mailboat.dev/mark"] = json!(mark);
    copy["metadata"]["name"] = json!("page");
    let moved = changes(&world("prod", vec![copy.clone()]), &world("test", vec![copy]));
    assert!(!said(&moved).iter().any(|line| line.contains("Delete")), "{moved:?}");
}
