use proptest::prelude::*;
use serde_json::json;

use super::*;

fn set(paths: &[&str]) -> FieldSet {
    let mut set = FieldSet::default();
    for path in paths {
        set.insert(&path.split('.').map(PathElement::field).collect::<Vec<_>>());
    }
    set
}

#[test]
fn a_set_is_written_as_servers_write_it() {
    let mut fields = set(&["spec", "spec.replicas", "metadata.labels.app"]);
    let key: PathElement = PathElement::Key(
        [(Name::new("port"), Scalar::Int(80)), (Name::new("protocol"), Scalar::of(&json!("TCP")))].into(),
    );
    fields.insert(&[PathElement::field("spec"), PathElement::field("ports"), key]);
    fields.insert(&[PathElement::field("finalizers"), PathElement::Value(Scalar::of(&json!("a<b")))]);
    let written = serde_json::to_string(&fields).unwrap();
    assert_eq!(
        written,
        r#"{"f:finalizers":{"v:\"a\\u003cb\"":{}},"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{".":{},"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{}},"f:replicas":{}}}"#
    );
    assert_eq!(FieldSet::from_json(&serde_json::from_str(&written).unwrap()).unwrap(), fields);
}

#[test]
fn unknown_path_elements_are_left_out_and_broken_ones_refused() {
    assert_eq!(FieldSet::from_json(&json!({ "x:new": {}, "f:a": {} })).unwrap(), set(&["a"]));
    for broken in
        [json!(1), json!({ "": {} }), json!({ "fa": {} }), json!({ "k:{": {} }), json!({ "f:a": 1 })]
    {
        assert!(FieldSet::from_json(&broken).is_err(), "{broken}");
    }
}

#[test]
fn a_difference_keeps_children_of_what_is_taken_and_a_recursive_one_does_not() {
    let all = set(&["a", "a.b", "a.b.c", "d"]);
    assert_eq!(all.difference(&set(&["a"])), set(&["a.b", "a.b.c", "d"]));
    assert_eq!(all.recursive_difference(&set(&["a.b"])), set(&["a", "d"]));
    assert_eq!(all.recursive_difference(&set(&["a"])), set(&["d"]));
}

#[test]
fn keys_that_mean_the_same_are_one_element() {
    let read = |json: serde_json::Value| FieldSet::from_json(&json).unwrap();
    let written = json!({ "v:10": {}, "v:1e0": { "f:b": {} }, "v:1": { "f:a": {} }, "v:1.0": { ".": {}, "f:b": { "f:c": {} } } });
    let meant = json!({ "v:1": { ".": {}, "f:a": {}, "f:b": { ".": {}, "f:c": {} } }, "v:10": {} });
    assert_eq!(read(written), read(meant));
    let sets = [set(&["a.b", "c"]), set(&["a"]), set(&["a.d", "c.e"])];
    let one_by_one = sets.iter().fold(FieldSet::default(), |all, one| all.union(one));
    assert_eq!(FieldSet::union_of(&sets), one_by_one);
}

#[test]
fn members_are_visited_before_what_is_below_them() {
    let mut seen = Vec::new();
    set(&["b", "a.c", "a"]).for_each(&mut |path| seen.push(path_text(path)));
    assert_eq!(seen, [".a", ".b", ".a.c"]);
}

#[test]
fn a_path_reads_as_in_messages() {
    let key = PathElement::Key(
        [(Name::new("port"), Scalar::Int(80)), (Name::new("protocol"), Scalar::of(&json!("TCP")))].into(),
    );
    let path =
        [PathElement::field("spec"), key, PathElement::Value(Scalar::Bool(true)), PathElement::Index(2)];
    assert_eq!(path_text(&path), r#".spec[port=80,protocol="TCP"][=true][2]"#);
}

fn any_set() -> impl Strategy<Value = FieldSet> {
    let path = prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..4);
    prop::collection::vec(path, 0..8).prop_map(|paths| {
        let mut set = FieldSet::default();
        for path in paths {
            set.insert(&path.into_iter().map(PathElement::field).collect::<Vec<_>>());
        }
        set
    })
}

proptest! {
    #[test]
    fn sets_are_sets(one in any_set(), other in any_set()) {
        prop_assert_eq!(one.union(&other), other.union(&one));
        prop_assert_eq!(one.union(&one), one.clone());
        prop_assert_eq!(one.intersection(&other), other.intersection(&one));
        prop_assert_eq!(one.difference(&other).union(&one.intersection(&other)), one.clone());
        prop_assert!(one.difference(&other).intersection(&other).is_empty());
        prop_assert!(one.recursive_difference(&other).intersection(&other).is_empty());
    }

    #[test]
    fn a_set_reads_back_as_it_was_written(set in any_set()) {
        let written = serde_json::to_value(&set).unwrap();
        if !set.is_empty() {
            prop_assert_eq!(FieldSet::from_json(&written).unwrap(), set);
        }
    }
}
