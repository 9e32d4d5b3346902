use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fixtures::{OBJECTS, any_value};

fn of(json: &str) -> Digest {
    digest_of(json.as_bytes()).unwrap_or_else(|error| panic!("{json}: {error}"))
}

#[test]
fn the_definition_never_changes() {
    // These stand in marks on delivered objects. If one of them fails, the definition was changed: change it
    // back.
    for (json, digest) in [
        ("null", "60bee2bee120fc15"),
        ("true", "1b03738e66f2a1c5"),
        ("false", "a3b195354a39b70d"),
        ("\"\"", "b7e7ea3e1743d48d"),
        ("\"mail\"", "a147f4f4e2bdfc70"),
        ("\"b\\u006fat\\n\"", "240b9fcf135650ee"),
        ("0", "0d841fdf1138aef2"),
        ("1", "bf6ea2ab0af4a6b5"),
        ("-1", "fed98ed69dbbf0cc"),
        ("18446744073709551615", "6d495fded9a0cef5"),
        ("1.5", "f86c4e7b84db6cf3"),
        ("-1e300", "da6ee086690b328e"),
        ("[]", "4be98134a5b8c3d5"),
        ("[1,2]", "de62c0517f9fafda"),
        ("[2,1]", "5d2322818630da59"),
        ("{}", "6fdb63fd7433a0dd"),
        ("{\"a\":1,\"b\":[null,{\"c\":\"d\"}]}", "a0e75821c1ceb47d"),
    ] {
        assert_eq!(of(json).to_string(), digest, "{json}");
    }
}

#[test]
fn the_definition_in_words_gives_the_same() {
    let h = |bytes: &[u8]| xxh3_64(bytes);
    let pair = |a: u64, b: u64| {
        let product = u128::from(a ^ LEFT) * u128::from(b ^ RIGHT);
        u64::try_from(product >> 64).unwrap() ^ u64::try_from(product & u128::from(u64::MAX)).unwrap()
    };
    let member = |key: &str, value: u64| pair(h(key.as_bytes()), value);
    let array = pair(ARRAY, pair(1, INTEGER));
    let sum = member("a", array).wrapping_add(member("b", h(b"x") ^ STRING));
    assert_eq!(of(r#"{"a":[1],"b":"x"}"#).bits(), pair(sum, 2 ^ MAP));
    assert_eq!(of("-2.5").bits(), pair((-2.5_f64).to_bits(), FLOAT));
    assert_eq!(of("-7").bits(), pair(7, NEGATIVE));
}

#[test]
fn the_way_it_is_written_does_not_count() {
    for same in [
        &["1", "1.0", "1e0", "10e-1", "0.1e1", "100E-2", " 1 "][..],
        &["0", "-0", "0.0", "-0.0", "0e9", "1e-400"],
        &["-5", "-5.0", "-50e-1"],
        &["9007199254740992", "9007199254740992.0"],
        &["1e19", "10000000000000000000", "1.0E19"],
        &["1e300", "10e299"],
        &["-9223372036854775808", "-9223372036854775809", "-9.223372036854775808e18"],
        &["-18446744073709551615", "-18446744073709551616", "-1.8446744073709552e19"],
        &["18446744073709551616", "18446744073709551617", "1.8446744073709552e19"],
        &["\"a/b\"", "\"a\\/b\"", "\"\\u0061/b\""],
        &["\"\\ud83d\\udea2\"", "\"🚢\""],
        &[r#"{"a":1,"b":2}"#, r#"{ "b" : 2.0 , "a" : 1 }"#, r#"{"\u0062":2,"a":1}"#],
    ] {
        for text in same {
            assert_eq!(of(text), of(same[0]), "{text} and {}", same[0]);
        }
    }
}

#[test]
fn different_content_differs() {
    let texts = [
        "null",
        "true",
        "false",
        "0",
        "1",
        "-1",
        "1.5",
        "\"\"",
        "\"1\"",
        "\"null\"",
        "[]",
        "[[]]",
        "[null]",
        "[0]",
        "[1]",
        "[1,2]",
        "[2,1]",
        "[[1],2]",
        "[1,[2]]",
        "{}",
        "[{}]",
        "{\"a\":null}",
        "{\"a\":{}}",
        "{\"a\":[]}",
        "{\"a\":1}",
        "{\"b\":1}",
        "{\"a\":\"1\"}",
        "{\"a\":1,\"b\":1}",
        "{\"a\":1,\"b\":2}",
        "{\"a\":2,\"b\":1}",
        "{\"a\":{\"b\":1}}",
        "{\"a\":{\"b\":1},\"c\":2}",
        "{\"a\":{\"c\":2},\"b\":1}",
        "9007199254740992",
        "9007199254740993",
        "18446744073709551615",
        "-9223372036854775808",
        "9223372036854775808",
        "0.1",
        "0.2",
    ];
    for (index, one) in texts.iter().enumerate() {
        for other in &texts[index + 1..] {
            assert_ne!(of(one), of(other), "{one} and {other}");
        }
    }
}

#[test]
fn a_digest_is_written_as_16_hexadecimal_digits_and_reads_back() {
    for bits in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
        let digest = Digest::from_bits(bits);
        assert_eq!(digest.to_string().len(), 16);
        assert_eq!(digest.to_string().parse(), Ok(digest));
    }
    for text in ["", "1", "0123456789ABCDEF", "0123456789abcdeg", "+123456789abcdef", "0123456789abcdef0"] {
        assert_eq!(text.parse::<Digest>(), Err(NotADigest), "{text}");
    }
}

#[test]
fn real_objects_have_the_digest_of_their_trees() {
    for json in OBJECTS {
        let tree = serde_json::from_slice(json).unwrap();
        assert_eq!(digest_of(json).unwrap(), digest_of_value(&tree));
    }
    assert_ne!(digest_of_value(&json!({})), Digest::NONE);
}

proptest! {
    #[test]
    fn bytes_and_tree_agree(value in any_value()) {
        let digest = digest_of_value(&value);
        prop_assert_eq!(digest_of(&serde_json::to_vec(&value).unwrap()).unwrap(), digest);
        prop_assert_eq!(digest_of(&serde_json::to_vec_pretty(&value).unwrap()).unwrap(), digest);
    }

    #[test]
    fn any_decimal_text_and_its_tree_agree(
        text in "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?"
    ) {
        let tree: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(of(&text), digest_of_value(&tree), "{}", text);
    }

    #[test]
    fn the_order_of_members_does_not_count(
        (members, shuffled) in prop::collection::btree_map("[a-z]{1,4}", any::<i32>(), 0..50)
            .prop_map(|members| members.into_iter().collect::<Vec<_>>())
            .prop_flat_map(|members| (Just(members.clone()), Just(members).prop_shuffle()))
    ) {
        let written = |members: &[(String, i32)]| {
            let members: Vec<_> = members.iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
            format!("{{{}}}", members.join(","))
        };
        prop_assert_eq!(of(&written(&members)), of(&written(&shuffled)));
    }

    #[test]
    fn different_trees_differ(one in any_value(), other in any_value()) {
        // Equal up to the way numbers are written: compare what a server would make of them.
        let normal = |value: &Value| serde_json::to_string(&normalized(value)).unwrap();
        prop_assert_eq!(digest_of_value(&one) == digest_of_value(&other), normal(&one) == normal(&other));
    }
}

/// Every number as an integer if it is one.
fn normalized(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap();
            let integer = format!("{float:.0}").parse::<i128>().ok().filter(|_| float.fract() == 0.0);
            match integer {
                Some(integer) if i64::try_from(integer).is_ok() => {
                    Value::from(i64::try_from(integer).unwrap())
                }
                Some(integer) if u64::try_from(integer).is_ok() => {
                    Value::from(u64::try_from(integer).unwrap())
                }
                _ => value.clone(),
            }
        }
        Value::Array(elements) => elements.iter().map(normalized).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), normalized(value))).collect()
        }
        _ => value.clone(),
    }
}
