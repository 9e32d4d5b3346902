use serde_json::json;

use super::*;

#[test]
fn operations_do_what_they_say() {
    let before = json!({ "a": { "b": [1, 2] }, "x/y": 1 });
    for (patch, after) in [
        (
            json!([{ "op": "add", "path": "/a/b/1", "value": 9 }]),
            json!({ "a": { "b": [1, 9, 2] }, "x/y": 1 }),
        ),
        (
            json!([{ "op": "add", "path": "/a/b/-", "value": 9 }]),
            json!({ "a": { "b": [1, 2, 9] }, "x/y": 1 }),
        ),
        (json!([{ "op": "remove", "path": "/a/b/-1" }]), json!({ "a": { "b": [1] }, "x/y": 1 })),
        (
            json!([{ "op": "replace", "path": "/x~1y", "value": 2 }]),
            json!({ "a": { "b": [1, 2] }, "x/y": 2 }),
        ),
        (
            json!([{ "op": "replace", "path": "/new", "value": 2 }]),
            json!({ "a": { "b": [1, 2] }, "x/y": 1, "new": 2 }),
        ),
        (
            json!([{ "op": "move", "from": "/a/b/0", "path": "/c" }]),
            json!({ "a": { "b": [2] }, "x/y": 1, "c": 1 }),
        ),
        (
            json!([{ "op": "copy", "from": "/a/b/0", "path": "/c" }]),
            json!({ "a": { "b": [1, 2] }, "x/y": 1, "c": 1 }),
        ),
        (json!([{ "op": "test", "path": "/a/b/0", "value": 1.0 }]), before.clone()),
        (json!([{ "op": "test", "path": "/none", "value": null }]), before.clone()),
        (json!([]), before.clone()),
    ] {
        let mut document = before.clone();
        apply(&mut document, &patch).unwrap();
        assert_eq!(document, after, "{patch}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    for patch in [
        json!([{ "op": "add", "path": "/none/x", "value": 1 }]),
        json!([{ "op": "add", "path": "/a/5", "value": 1 }]),
        json!([{ "op": "remove", "path": "/none" }]),
        json!([{ "op": "replace", "path": "/a/7", "value": 1 }]),
        json!([{ "op": "test", "path": "/a/0", "value": 2 }]),
        json!([{ "op": "fly", "path": "/a" }]),
        json!([{ "path": "/a" }]),
    ] {
        let refused = apply(&mut json!({ "a": [1] }), &patch);
        assert!(matches!(refused, Err(BadPatch::Unfitting(_))), "{patch}: {refused:?}");
    }
    for patch in [json!({}), json!(["add"])] {
        let refused = apply(&mut json!({}), &patch);
        assert!(matches!(refused, Err(BadPatch::Malformed(_))), "{patch}: {refused:?}");
    }
}

#[test]
fn a_patch_knows_what_it_touches() {
    let patch = json!([{ "op": "add", "path": "/metadata/labels/x", "value": "y" }]);
    assert!(touches(&patch, "/metadata/labels"));
    assert!(touches(&patch, "/metadata"));
    assert!(!touches(&patch, "/metadata/managedFields"));
    assert!(touches(&json!([{ "op": "remove", "path": "/metadata" }]), "/metadata/managedFields"));
    assert!(!touches(&json!([{ "op": "remove", "path": "/metadata/man" }]), "/metadata/managedFields"));
}

#[test]
fn a_patch_of_copies_of_copies_is_stopped_before_it_takes_all_memory() {
    let mut document = json!({ "data": { "a": "x".repeat(1000) } });
    let mut operations = vec![json!({ "op": "add", "path": "/list", "value": [] })];
    operations.extend((0..64).map(|_| json!({ "op": "copy", "from": "/list", "path": "/list/-" })));
    operations.insert(1, json!({ "op": "copy", "from": "/data", "path": "/list/-" }));
    let error = apply(&mut document, &Value::Array(operations)).unwrap_err();
    assert!(matches!(error, BadPatch::TooMuchCopied(_)), "{error}");
    assert!(document.to_string().len() < 8 << 20, "it was stopped in time");
}

#[test]
fn a_document_is_not_nested_deeper_than_anything_is_read() {
    let deep = |levels: usize| (0..levels).fold(json!({}), |value, _| json!({ "a": value }));
    let path = |levels: usize| "/a".repeat(levels);
    // Each copy of it into its own deepest place doubles its depth.
    let mut operations = vec![json!({ "op": "add", "path": "/a", "value": deep(99) })];
    for levels in (0..8).map(|times| 100_usize << times) {
        operations.push(json!({ "op": "copy", "from": "/a", "path": path(levels + 1) }));
    }
    assert_eq!(apply(&mut json!({}), &Value::Array(operations)), Err(BadPatch::TooDeep));
    let there = || json!({ "a": deep(100), "b": deep(100) });
    for (operation, expected) in [
        (json!({ "op": "add", "path": path(100), "value": deep(26) }), Ok(())),
        (json!({ "op": "add", "path": path(100), "value": deep(27) }), Err(BadPatch::TooDeep)),
        (json!({ "op": "replace", "path": path(100), "value": deep(27) }), Err(BadPatch::TooDeep)),
        (json!({ "op": "replace", "path": "", "value": deep(127) }), Err(BadPatch::TooDeep)),
        (json!({ "op": "move", "from": "/b", "path": path(20) }), Ok(())),
        (json!({ "op": "move", "from": "/b", "path": path(30) }), Err(BadPatch::TooDeep)),
        (json!({ "op": "copy", "from": "/b", "path": path(30) }), Err(BadPatch::TooDeep)),
    ] {
        assert_eq!(
            apply(&mut there(), &json!([operation])),
            expected,
            "{} {}",
            operation["op"],
            operation["path"]
        );
    }
}

#[test]
fn elements_of_a_list_that_move_up_or_down_are_counted() {
    let list = json!({ "list": vec![0; 100_000] });
    for operation in [
        json!({ "op": "add", "path": "/list/0", "value": 1 }),
        json!({ "op": "remove", "path": "/list/0" }),
        json!({ "op": "move", "from": "/list/0", "path": "/list/-" }),
    ] {
        let many = |count: usize| Value::Array(vec![operation.clone(); count]);
        assert_eq!(apply(&mut list.clone(), &many(1000)), Ok(()), "{operation}");
        assert_eq!(apply(&mut list.clone(), &many(2000)), Err(BadPatch::TooMuchShifted), "{operation}");
    }
    let appended = Value::Array(vec![json!({ "op": "add", "path": "/list/-", "value": 1 }); OPERATIONS_MAX]);
    assert_eq!(apply(&mut list.clone(), &appended), Ok(()), "nothing moves for what is put at the end");
}

#[test]
fn moves_of_something_large_are_counted() {
    let mut document = json!({ "a": { "b": {} }, "large": "x".repeat(1 << 20) });
    let there_and_back = [
        json!({ "op": "move", "from": "/large", "path": "/a/b/large" }),
        json!({ "op": "move", "from": "/a/b/large", "path": "/large" }),
    ];
    assert_eq!(apply(&mut document, &json!(there_and_back)), Ok(()));
    let many = Value::Array(there_and_back.iter().cycle().take(100).cloned().collect());
    assert!(matches!(apply(&mut document, &many), Err(BadPatch::TooMuchCopied(_))));
}
