use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fixtures::any_value;

fn path(text: &str) -> JsonPath {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn replaced(text: &str, mut root: Value, value: &Value) -> (Value, Replaced) {
    let outcome = path(text).replace(&mut root, value);
    (root, outcome)
}

#[test]
fn the_customizers_test_vectors_hold() {
    let nested = json!({"abc": {"abc": {"def": 3, "ghi": 4}}, "def": ["a"]});
    for (text, root, result) in [
        ("$..def", nested.clone(), json!({"abc": {"abc": {"def": 47, "ghi": 4}}, "def": 47})),
        ("$..abc", nested, json!({"abc": 47, "def": ["a"]})),
        ("$.def[2::2]", json!({"def": [0, 1, 2, 3, 4]}), json!({"def": [0, 1, 47, 3, 47]})),
        ("$[2].xy", json!([{}, {}, {}, {}]), json!([{}, {}, {"xy": 47}, {}])),
    ] {
        assert_eq!(replaced(text, root, &json!(47)).0, result, "{text}");
    }
}

#[test]
fn every_selector_finds_its_places() {
    let root = json!({"a": {"b": [10, 11, 12, 13], "c d": 1}, "e": {"b": [20]}});
    for (text, found) in [
        ("$", vec![root.clone()]),
        ("$.a.b[1]", vec![json!(11)]),
        ("$.a.b.1", vec![json!(11)]),
        ("$['a'][\"b\"][0,3]", vec![json!(10), json!(13)]),
        ("$[ 'a' , 'e' ].b[0]", vec![json!(10), json!(20)]),
        ("$.a['c d']", vec![json!(1)]),
        ("$.a.b[1:3]", vec![json!(11), json!(12)]),
        ("$.a.b[:2]", vec![json!(10), json!(11)]),
        ("$.a.b[ 1 : : 2 ]", vec![json!(11), json!(13)]),
        ("$.a.b[:]", vec![json!(10), json!(11), json!(12), json!(13)]),
        ("$.*.b[0]", vec![json!(10), json!(20)]),
        ("$[*].b.*", vec![json!(10), json!(11), json!(12), json!(13), json!(20)]),
        ("$..b[0]", vec![json!(10), json!(20)]),
        ("$..[0]", vec![json!(10), json!(20)]),
        ("$.e..*", vec![json!([20]), json!(20)]),
        ("$.e..", vec![json!({"b": [20]}), json!([20]), json!(20)]),
        ("$.a.b[9]", vec![]),
        ("$.a.b.c", vec![]),
        ("$.x.y", vec![]),
    ] {
        assert_eq!(path(text).find(&root), found.iter().collect::<Vec<_>>(), "{text}");
    }
}

#[test]
fn a_definite_path_adds_its_last_member_and_nothing_before_it() {
    let root = json!({"a": {}, "list": [1]});
    let (result, outcome) = replaced("$.a.new", root.clone(), &json!(47));
    assert_eq!((result, outcome.added, outcome.missing), (json!({"a": {"new": 47}, "list": [1]}), 1, None));
    let (result, _) = replaced("$.a['x','y']", root.clone(), &json!(47));
    assert_eq!(result, json!({"a": {"x": 47, "y": 47}, "list": [1]}));
    for (text, missing) in [
        ("$.b.new", "$.b"),
        ("$.b.c.new", "$.b"),
        ("$.list.new", "$.list.new"),
        ("$.list[3]", "$.list[3]"),
        ("$.list[0].x", "$.list[0].x"),
        ("$.a[0]", "$.a[0]"),
        ("$.a['c d'].e", "$.a[\"c d\"]"),
    ] {
        let (result, outcome) = replaced(text, root.clone(), &json!(47));
        assert_eq!(result, root, "{text}: a missing member was made up");
        assert_eq!(outcome, Replaced { missing: Some(missing.to_owned()), ..Replaced::default() }, "{text}");
    }
    for text in ["$..new", "$.*.new", "$.list[0:5].new"] {
        let (result, outcome) = replaced(text, root.clone(), &json!(47));
        assert_eq!((result, outcome), (root.clone(), Replaced::default()), "{text}");
    }
}

#[test]
fn what_is_put_in_is_not_looked_into_again() {
    let (result, outcome) = replaced("$..a", json!({"a": {"a": 1}, "b": {"a": 2}}), &json!({"a": 3}));
    assert_eq!(result, json!({"a": {"a": 3}, "b": {"a": {"a": 3}}}));
    assert_eq!(outcome.replaced, 2);
    let (result, _) = replaced("$", json!({"a": 1}), &json!(2));
    assert_eq!(result, json!(2));
}

#[test]
fn javascript_strings_are_understood() {
    for (text, name) in [
        (r"$['a\x41\u0042\u{43}']", "aABC"),
        (r"$['\101\0\377\48']", "A\u{0}\u{ff}\u{4}8"),
        (r#"$["\'\"\\\/\b\f\n\r\t\v"]"#, "'\"\\/\u{8}\u{c}\n\r\t\u{b}"),
        (r"$['\ud83d\udea2 \u{1F6A2}']", "🚢 🚢"),
        ("$['a\\\nb\\\r\nc']", "abc"),
        (r"$['\q']", "q"),
        ("$.größe", "größe"),
        ("$.$ref_1", "$ref_1"),
        ("$['mailboat.dev/owner']", "mailboat.dev/owner"),
    ] {
        let root = json!({name: 1});
        assert_eq!(path(text).find(&root), [&json!(1)], "{text}");
    }
}

#[test]
fn a_path_that_cannot_be_read_says_at_which_character() {
    for (text, at, what) in [
        ("", 0, "a path begins with $"),
        ("a.b", 0, "a path begins with $"),
        ("$a", 1, "'.' or '[' should stand here"),
        ("$.", 2, "a name, an index or * should follow the dot"),
        ("$.a-b", 3, "'.' or '[' should stand here"),
        ("$...a", 3, "a name, an index or * should follow the dot"),
        ("$[", 2, "a string, an index or * should follow the bracket"),
        ("$[-1]", 2, "negative indices are not supported"),
        ("$[?(@.a)]", 2, "filters and scripts are not supported"),
        ("$[(1)]", 2, "filters and scripts are not supported"),
        ("$['a'", 5, "']' should stand here"),
        ("$['a", 4, "the string does not end"),
        ("$['a',1]", 6, "a string should stand here"),
        ("$[1,'a']", 4, "an index should stand here"),
        ("$[1:2:0]", 7, "the step may not be 0"),
        ("$[99999999999999999999999]", 2, "the index is too large"),
        (r"$['\xZZ']", 3, "the escape sequence names no character"),
        (r"$['\ud83d']", 3, "the escape sequence names no character"),
        (r"$['\u{110000}']", 3, "the escape sequence names no character"),
        ("$.größe-1", 7, "'.' or '[' should stand here"),
    ] {
        assert_eq!(text.parse::<JsonPath>(), Err(BadJsonPath { at, what }), "{text}");
    }
    let long = format!("${}", ".a".repeat(65));
    assert!(long.parse::<JsonPath>().is_err());
}

#[test]
fn many_wildcards_cost_no_more_than_the_places_they_lead_to() {
    let deep = (0..40).fold(json!({"leaf": 1}), |value, _| json!({"a": value, "b": 1}));
    let text = format!("${}", "..*".repeat(30));
    let found = path(&text).find(&deep);
    assert!(!found.is_empty() && found.len() < 200, "{} places", found.len());
}

proptest! {
    #[test]
    fn no_text_makes_parsing_panic(text in "\\$?[$.\\[\\]'\"\\\\*:,a-cux0-9{} -]{0,24}") {
        if let Ok(path) = text.parse::<JsonPath>() {
            prop_assert_eq!(path.to_string().parse::<JsonPath>(), Ok(path), "{}", text);
        }
    }

    #[test]
    fn what_was_replaced_is_found_there(
        mut root in any_value(),
        text in prop::sample::select(vec!["$", "$..*", "$.*", "$.a", "$[0]", "$..a", "$[0:9:2]", "$['a','b']"]),
    ) {
        let marker = json!("marker that no random value is");
        let path = path(text);
        let before = path.find(&root).len();
        let outcome = path.replace(&mut root, &marker);
        prop_assert!(outcome.replaced <= before);
        let marked = path.find(&root).into_iter().filter(|value| **value == marker).count();
        prop_assert_eq!(marked, outcome.replaced + outcome.added, "{} in {}", text, root);
    }
}
