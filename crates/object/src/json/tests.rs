use std::fmt::Write;

use proptest::prelude::*;
use serde_json::Value;

use super::text::find_special;
use super::*;
use crate::fixtures::{OBJECTS, any_value, mutated_object};
use crate::malformed::What;

/// Whether we and `serde_json` say the same about some bytes, and read the same out of them.
fn agrees(json: &[u8]) {
    let theirs = serde_json::from_slice::<Value>(json);
    let ours = Raw::parse(json);
    let shown = String::from_utf8_lossy(json);
    match (&ours, theirs) {
        (Ok(raw), Ok(value)) => assert_eq!(raw.to_value(), value, "{shown}"),
        (Err(_), Err(_)) => {}
        (ours, theirs) => panic!("{shown}\nours: {ours:?}\ntheirs: {theirs:?}"),
    }
}

#[test]
fn what_is_json_is_decided_as_serde_json_does() {
    for json in [
        "null",
        "true",
        "nul",
        "nulll",
        "",
        " ",
        "[",
        "]",
        "[]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "{\"a\":1 \"b\":2}",
        "0",
        "-0",
        "00",
        "01",
        "-",
        "-a",
        "1.",
        ".1",
        "1.5",
        "1e5",
        "1E+5",
        "1e-5",
        "1e",
        "1e+",
        "1e400",
        "-1e400",
        "1e-400",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "-9223372036854775809",
        "123456789012345678901234567890",
        "\"",
        "\"a",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u00e9\"",
        "\"\\ud83d\\udea2\"",
        "\"\\ud83d\"",
        "\"\\ud83d\\u0041\"",
        "\"\\udea2\"",
        "\"\\ud83dx\"",
        "\"\t\"",
        "\"\u{7f}\"",
        "\"\\/\"",
        "1 1",
        "{}x",
        "\u{feff}1",
        "[1]\n",
        "tru e",
        "{\"a\":1}}",
        "[[[[]]]]",
        "{\"a\\u0062\":[{\"\":null}]}",
        "0.1000000000000000055511151231257827",
        "2.2250738585072014e-308",
        "NaN",
        "Infinity",
        "'a'",
        "/**/1",
        "\"\\u\"",
        "\"\\uD800\\\"",
        "0x10",
        "+1",
    ] {
        agrees(json.as_bytes());
    }
    agrees(b"\"\xff\"");
    agrees(b"\"\xc3\"");
}

#[test]
fn nesting_is_read_as_deep_as_serde_json_reads_it_and_no_deeper() {
    for depth in [1, 2, 100, 126, 127, 128, 129, 100_000] {
        agrees(format!("{}{}", "[".repeat(depth), "]".repeat(depth)).as_bytes());
        agrees(format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth)).as_bytes());
    }
    let deep = "[".repeat(200);
    let malformed = Raw::parse(deep.as_bytes()).unwrap_err();
    assert_eq!((malformed.at, malformed.what), (127, What::TooDeep { limit: 127 }));
}

#[test]
fn the_path_names_the_member_in_question_and_never_its_value() {
    for (json, path, what) in [
        (r#"{"metadata":{"labels":{"app":tru}}}"#, "metadata.labels.app", What::Unexpected),
        (
            r#"{"spec":{"containers":[{"name":"a"},{"image":01}]}}"#,
            "spec.containers[1].image",
            What::Unexpected,
        ),
        ("[[1],[2,3", "[1][1]", What::Ends),
        (r#"{"a":1,"b" 2}"#, "b", What::Unexpected),
        (r#"{"a":1}}"#, "", What::Trailing),
        (r#"{"secret":"\q"}"#, "secret", What::Escape),
        ("{\"secret\":\"a\u{1}b\"}", "secret", What::ControlCharacter),
        (r#"{"n":1e999}"#, "n", What::OutOfRange),
    ] {
        let malformed = Raw::parse(json.as_bytes()).unwrap_err();
        assert_eq!((malformed.path.as_str(), malformed.what), (path, what), "{json}: {malformed}");
    }
    let long = format!(
        "{}1",
        "{\"averyveryveryveryveryverylongkeythatgoesonandonandonandonandonandonandon\":".repeat(50)
    );
    let malformed = Raw::parse(long.as_bytes()).unwrap_err();
    assert!(malformed.path.len() < 1000, "{} bytes of path", malformed.path.len());
}

#[test]
fn a_member_that_repeats_is_found_in_small_and_large_maps() {
    for members in [2, 3, 31, 32, 33, 34, 500] {
        for repeated in [0, (members - 1) / 2, members - 2] {
            let mut json = String::from("{\"outer\":{");
            for index in 0..members {
                let key = if index + 1 == members { repeated } else { index };
                write!(json, "{}\"k{key}\":{index}", if index == 0 { "" } else { "," }).unwrap();
            }
            json.push_str("}}");
            let malformed = crate::digest_of(json.as_bytes()).unwrap_err();
            assert_eq!(malformed.what, What::Duplicate, "{members} members, {repeated} repeated");
            assert_eq!(malformed.path, format!("outer.k{repeated}"));
            assert_eq!(malformed.at, json.rfind(&format!("\"k{repeated}\"")).unwrap(), "{json}");
        }
    }
    assert_eq!(crate::digest_of(br#"{"a":1,"\u0061":2}"#).unwrap_err().what, What::Duplicate);
    assert!(crate::digest_of(br#"[{"a":1},{"a":2,"b":{"a":3}}]"#).is_ok());
}

#[test]
fn looking_into_a_value_finds_what_a_tree_would_hold() {
    for json in OBJECTS {
        let tree: Value = serde_json::from_slice(json).unwrap();
        let raw = Raw::parse(json).unwrap();
        for (key, value) in tree.as_object().unwrap() {
            assert_eq!(raw.member(key).unwrap().to_value(), *value, "{key}");
        }
        let members: serde_json::Map<_, _> =
            raw.members().map(|(key, member)| (key.into_owned(), member.to_value())).collect();
        assert_eq!(Value::Object(members), tree);
    }
    let raw = Raw::parse(br#" {"a" : [ 1 , "x\ny" , {"b":true} , null ] , "c\"d":-5} "#).unwrap();
    let elements: Vec<_> = raw.member("a").unwrap().elements().collect();
    assert_eq!(elements[0].as_u64(), Some(1));
    assert_eq!(elements[1].as_str().as_deref(), Some("x\ny"));
    assert_eq!(elements[2].get(&["b"]).and_then(Raw::as_bool), Some(true));
    assert!(elements[3].is_null());
    assert_eq!(elements.len(), 4);
    assert_eq!(raw.member("c\"d").and_then(Raw::as_i64), Some(-5));
    assert_eq!(raw.get(&["a", "b"]), None);
    assert_eq!(elements[0].as_str(), None);
    assert_eq!(elements[1].as_u64(), None);
}

#[test]
fn debug_output_shows_no_value() {
    let raw = Raw::parse(br#"{"password":"swordfish"}"#).unwrap();
    assert!(!format!("{raw:?}").contains("swordfish"), "{raw:?}");
}

proptest! {
    #[test]
    fn any_bytes_are_judged_as_serde_json_does(json in prop::collection::vec(any::<u8>(), 0..200)) {
        agrees(&json);
    }

    #[test]
    fn bytes_that_look_like_json_are_judged_as_serde_json_does(
        json in prop::collection::vec(prop::sample::select(br#"{}[]",:\0129eE.-+ntfalsrue u"#.to_vec()), 0..40)
    ) {
        agrees(&json);
    }

    #[test]
    fn mutated_objects_are_judged_as_serde_json_does(json in mutated_object()) {
        agrees(&json);
    }

    #[test]
    fn any_text_is_escaped_and_unescaped_as_serde_json_does(text in any::<String>()) {
        let theirs = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(&unescape(&theirs[1..theirs.len() - 1]), &text);
        let mut ours = String::new();
        write_string(&text, &mut ours);
        prop_assert_eq!(&serde_json::from_str::<String>(&ours).unwrap(), &text);
        let escaped = escape(&text);
        prop_assert_eq!(&unescape(&escaped), &text);
    }

    #[test]
    fn the_first_special_byte_is_found_wherever_it_stands(
        bytes in prop::collection::vec(prop_oneof![8 => any::<u8>(), 1 => Just(b'"'), 1 => Just(b'\\'), 1 => Just(0x1f)], 0..80),
        from in 0..20_usize,
    ) {
        let from = from.min(bytes.len());
        let naive = bytes.iter().enumerate().skip(from).find(|(_, byte)| matches!(byte, b'"' | b'\\' | 0..0x20));
        prop_assert_eq!(find_special(&bytes, from), naive.map_or(bytes.len(), |(at, _)| at));
    }

    #[test]
    fn any_value_reads_back_from_its_raw_form(value in any_value()) {
        let json = serde_json::to_vec_pretty(&value).unwrap();
        prop_assert_eq!(Raw::parse(&json).unwrap().to_value(), value);
    }

    #[test]
    fn a_path_can_be_worked_out_for_any_byte_of_any_bytes(json in mutated_object(), at in 0..8000_usize) {
        let path = path_at(&json, at);
        prop_assert!(path.len() < 1000, "{}", path);
    }
}
