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
    fn nothing_changed_needs_no_patch(value in any_value()) {
        let value = without_nulls(&value);
        prop_assert_eq!(diff(&value, &value), None);
    }
}
