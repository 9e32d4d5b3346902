use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fixtures::any_value;

/// The test cases of RFC 7386, appendix A: target, patch, result.
#[test]
fn the_rfcs_own_table_holds() {
    for (target, patch, result) in [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
        (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
        (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
        (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
        (json!({"a": "b"}), json!(["c"]), json!(["c"])),
        (json!({"a": "foo"}), json!(null), json!(null)),
        (json!({"a": "foo"}), json!("bar"), json!("bar")),
        (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
        (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
    ] {
        let mut merged = target.clone();
        merge(&mut merged, &patch);
        assert_eq!(merged, result, "{target} with {patch}");
        let bytes = merge_json(target.to_string().as_bytes(), patch.to_string().as_bytes()).unwrap();
        assert_eq!(
            serde_json::from_slice::<Value>(&bytes).unwrap(),
            result,
            "{target} with {patch}, as bytes"
        );
    }
}

#[test]
fn a_diff_names_only_what_changed() {
    for (from, to, patch) in [
        (json!({"a": 1}), json!({"a": 1}), None),
        (json!({"a": 1}), json!({"a": 2}), Some(json!({"a": 2}))),
        (json!({"a": 1, "b": 2}), json!({"b": 2}), Some(json!({"a": null}))),
        (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 1, "c": 3}}), Some(json!({"a": {"c": 3}}))),
        (json!({"a": [1, 2]}), json!({"a": [1]}), Some(json!({"a": [1]}))),
        (json!({"a": 1}), json!({"a": {}}), Some(json!({"a": {}}))),
        (json!({"a": {"b": 1}}), json!({"a": {}}), Some(json!({"a": {"b": null}}))),
        (json!({}), json!({"a": {"b": null, "c": 1}}), Some(json!({"a": {"c": 1}}))),
        (json!({"a": 1}), json!({"a": null}), Some(json!({"a": null}))),
        (json!({}), json!({"a": null}), None),
    ] {
        assert_eq!(diff(&from, &to), patch, "{from} to {to}");
    }
}

#[test]
fn three_ways_meet_in_one_patch() {
    for (why, last, wanted, live, patch) in [
        ("nothing changed", json!({"a": 1}), json!({"a": 1}), json!({"a": 1}), None),
        ("another hand's change stays", json!({"a": 1}), json!({"a": 1}), json!({"a": 7}), None),
        ("ours wins", json!({"a": 1}), json!({"a": 2}), json!({"a": 7}), Some(json!({"a": 2}))),
        ("it is there already", json!({"a": 1}), json!({"a": 2}), json!({"a": 2}), None),
        (
            "no longer wanted",
            json!({"a": 1, "b": 1}),
            json!({"b": 1}),
            json!({"a": 1, "b": 1}),
            Some(json!({"a": null})),
        ),
        ("gone already", json!({"a": 1}), json!({}), json!({"c": 3}), None),
        ("never ours", json!({}), json!({}), json!({"c": 3}), None),
        (
            "their members keep our map",
            json!({"m": {"ours": 1}}),
            json!({}),
            json!({"m": {"ours": 1, "theirs": 2}}),
            Some(json!({"m": {"ours": null}})),
        ),
        (
            "a map goes with its last member",
            json!({"from": {"git": {"url": "x"}}}),
            json!({"from": {"chart": {"name": "y"}}}),
            json!({"from": {"git": {"url": "x"}}}),
            Some(json!({"from": {"git": null, "chart": {"name": "y"}}})),
        ),
        (
            "deep in a map of others",
            json!({"m": {"n": {"ours": 1}}}),
            json!({"m": {"n": {"ours": 2}}}),
            json!({"m": {"n": {"ours": 1, "theirs": 1}, "theirs": 1}}),
            Some(json!({"m": {"n": {"ours": 2}}})),
        ),
        (
            "arrays are values",
            json!({"a": [1]}),
            json!({"a": [1, 2]}),
            json!({"a": [9]}),
            Some(json!({"a": [1, 2]})),
        ),
        ("no last state", json!(null), json!({"a": 1}), json!({"a": 2, "b": 3}), Some(json!({"a": 1}))),
        (
            "no last state, and all is there",
            json!(null),
            json!({"a": {"b": 1}}),
            json!({"a": {"b": 1, "c": 1}}),
            None,
        ),
        (
            "a map where a text was",
            json!({"a": "x"}),
            json!({"a": {"b": 1}}),
            json!({"a": "x"}),
            Some(json!({"a": {"b": 1}})),
        ),
        (
            "a text where a map was",
            json!({"a": {"b": 1}}),
            json!({"a": "x"}),
            json!({"a": {"b": 1}}),
            Some(json!({"a": "x"})),
        ),
        ("a null is none", json!({"a": 1}), json!({"a": null}), json!({"a": 1}), Some(json!({"a": null}))),
        ("an empty map is something", json!({}), json!({"a": {}}), json!({}), Some(json!({"a": {}}))),
    ] {
        assert_eq!(three_way(&last, &wanted, &live), patch, "{why}: {last}, {wanted}, {live}");
    }
}

#[test]
fn bytes_that_are_no_json_are_refused() {
    assert!(merge_json(b"{", b"{}").is_err());
    assert!(merge_json(b"{}", b"{").is_err());
}

proptest! {
    #[test]
    fn merging_a_diff_leads_there(from in any_value(), to in any_value()) {
        // What a merge patch cannot say: a null as a member.
        let to = without_nulls(&to);
        let mut merged = from.clone();
        if let Some(patch) = diff(&from, &to) {
            merge(&mut merged, &patch);
        }
        prop_assert_eq!(merged, to);
    }

    #[test]
    fn untouched_it_becomes_what_is_wanted(last in any_map(), wanted in any_map()) {
        prop_assert_eq!(patched(&last, &wanted, &last), wanted);
    }

    #[test]
    fn what_was_brought_is_not_brought_again(last in any_map(), wanted in any_map(), live in any_map()) {
        let after = patched(&last, &wanted, &live);
        prop_assert_eq!(three_way(&last, &wanted, &after), None);
        prop_assert_eq!(three_way(&wanted, &wanted, &after), None);
    }

    #[test]
    fn what_is_others_stays(last in any_map(), wanted in any_map(), live in any_map()) {
        let after = patched(&last, &wanted, &live);
        for (path, value) in leaves(&live) {
            let ours = [&last, &wanted].into_iter().any(|mine| meets(mine, &path));
            prop_assert!(ours || at(&after, &path) == Some(&value), "{:?} of {} became {}", path, live, after);
        }
    }

    #[test]
    fn what_we_changed_is_as_wanted(last in any_map(), wanted in any_map(), live in any_map()) {
        let after = patched(&last, &wanted, &live);
        for (path, value) in leaves(&wanted).into_iter().filter(|(path, _)| !meets(&last, path)) {
            // In an empty map that we want, others may have something.
            let found = at(&after, &path);
            prop_assert!(found == Some(&value) || value == json!({}) && found.is_some_and(Value::is_object), "{:?}", path);
        }
    }

    #[test]
    fn nothing_changed_needs_no_patch(value in any_value()) {
        let value = without_nulls(&value);
        prop_assert_eq!(diff(&value, &value), None);
    }
}

/// A map without nulls, of few names, so that the three ways meet.
fn any_map() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![(0..3_u8).prop_map(Value::from), Just(json!([1])), Just(json!({}))];
    let name = || prop::sample::select(vec!["a", "b", "c"]);
    let tree = leaf.prop_recursive(3, 24, 3, move |inner| {
        prop::collection::btree_map(name(), inner, 0..3)
            .prop_map(|members| members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    });
    prop::collection::btree_map(name(), tree, 0..4)
        .prop_map(|members| members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn patched(last: &Value, wanted: &Value, live: &Value) -> Value {
    let mut after = live.clone();
    if let Some(patch) = three_way(last, wanted, live) {
        merge(&mut after, &patch);
    }
    after
}

/// Every value that is no map, and every empty map, by its path.
fn leaves(value: &Value) -> Vec<(Vec<String>, Value)> {
    match value.as_object().filter(|members| !members.is_empty()) {
        None => vec![(Vec::new(), value.clone())],
        Some(members) => members
            .iter()
            .flat_map(|(key, member)| {
                let below = leaves(member).into_iter();
                below.map(move |(path, leaf)| (std::iter::once(key.clone()).chain(path).collect(), leaf))
            })
            .collect(),
    }
}

fn at<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// Whether something that is no map stands on the way to a path, or anything at its end.
fn meets(value: &Value, path: &[String]) -> bool {
    match (value.as_object(), path.split_first()) {
        (Some(members), Some((key, rest))) => members.get(key).is_some_and(|member| meets(member, rest)),
        _ => true,
    }
}
