use serde_json::json;

use super::*;
use crate::schema::Schema;

fn any(_: &str) -> bool {
    true
}

fn change<'a>(manager: &'a Name, version: &'a Name, now_seconds: u64) -> Change<'a> {
    Change {
        manager,
        api_version: version,
        subresource: Name::EMPTY,
        now_seconds,
        reset: None,
        served: &any,
        turned: &|_, _, _| None,
    }
}

fn told(managed: &ManagedFields) -> Vec<String> {
    let entry = |entry: &Manager| {
        let fields = serde_json::to_string(&*entry.fields).unwrap();
        format!("{} {:?} {:?} {fields}", entry.name, entry.operation, entry.time_seconds)
    };
    managed.entries().iter().map(entry).collect()
}

#[test]
fn who_changes_a_field_owns_it_and_who_owned_it_does_not() {
    let schema = Schema::permissive();
    let (alice, bob, version) = (Name::new("alice"), Name::new("bob"), Name::new("v1"));
    let (empty, first, second) = (json!({}), json!({ "a": 1, "b": 1 }), json!({ "a": 2, "b": 1 }));
    let managed =
        update(&schema, &empty, &first, ManagedFields::default(), &change(&alice, &version, 1), false);
    assert_eq!(told(&managed), [r#"alice Update Some(1) {"f:a":{},"f:b":{}}"#]);
    let managed = update(&schema, &first, &second, managed, &change(&bob, &version, 2), true);
    assert_eq!(told(&managed), [r#"alice Update Some(1) {"f:b":{}}"#, r#"bob Update Some(2) {"f:a":{}}"#]);
}

#[test]
fn an_object_without_managers_is_not_tracked_until_it_is_applied() {
    let schema = Schema::permissive();
    let (alice, version) = (Name::new("alice"), Name::new("v1"));
    let (live, next) = (json!({ "a": 1 }), json!({ "a": 2 }));
    let managed = update(&schema, &live, &next, ManagedFields::default(), &change(&alice, &version, 1), true);
    assert_eq!(managed, ManagedFields::default());
    let intent = json!({ "b": 1 });
    let applied = apply(&schema, &next, &intent, managed, &change(&alice, &version, 2), &json!({}), false);
    let applied = applied.unwrap_or_else(|_| panic!("nobody else is there"));
    assert_eq!(
        told(&applied.managed),
        [r#"alice Apply Some(2) {"f:b":{}}"#, r#"before-first-apply Update Some(2) {"f:a":{}}"#]
    );
}

#[test]
fn the_oldest_updaters_are_put_together() {
    let schema = Schema::permissive();
    let version = Name::new("v1");
    let mut managed = ManagedFields::default();
    let mut before = json!({});
    for number in 0..13_u64 {
        let mut after = before.clone();
        after[format!("f{number:02}")] = 1.into();
        let manager = Name::new(&format!("m{number:02}"));
        managed = update(&schema, &before, &after, managed, &change(&manager, &version, number), number > 0);
        before = after;
    }
    let told = told(&managed);
    assert_eq!(told.len(), 10, "{told:#?}");
    assert_eq!(told[0], r#"ancient-changes Update Some(3) {"f:f00":{},"f:f01":{},"f:f02":{},"f:f03":{}}"#);
    assert_eq!(told[1], r#"m04 Update Some(4) {"f:f04":{}}"#);
}

#[test]
fn managers_that_wrote_through_a_version_no_longer_served_are_forgotten() {
    let schema = Schema::permissive();
    let (alice, bob, old, new) = (Name::new("alice"), Name::new("bob"), Name::new("g/v1"), Name::new("g/v2"));
    let managed = update(
        &schema,
        &json!({}),
        &json!({ "a": 1 }),
        ManagedFields::default(),
        &change(&alice, &old, 1),
        false,
    );
    let only_new = |version: &str| version == "g/v2";
    let by_bob = Change { served: &only_new, ..change(&bob, &new, 2) };
    let managed = update(&schema, &json!({ "a": 1 }), &json!({ "a": 1, "b": 1 }), managed, &by_bob, true);
    assert_eq!(told(&managed), [r#"bob Update Some(2) {"f:b":{}}"#]);
}

#[test]
fn conflicts_name_every_field_and_its_manager() {
    let schema = Schema::permissive();
    let (alice, bob, version) = (Name::new("alice"), Name::new("bob"), Name::new("v1"));
    let live = json!({ "a": 1, "b": 1 });
    let managed =
        update(&schema, &json!({}), &live, ManagedFields::default(), &change(&alice, &version, 1), false);
    let intent = json!({ "a": 2, "b": 2 });
    let refused = apply(&schema, &live, &intent, managed, &change(&bob, &version, 2), &json!({}), false);
    let Err(error) = refused else { panic!("alice owns both") };
    let status = error.status("x");
    assert_eq!((status.code(), status.reason()), (409, "Conflict"));
    assert_eq!(
        status.body().message,
        "Apply failed with 2 conflicts: conflicts with \"alice\" using v1:\n- .a\n- .b"
    );
    let fields: Vec<_> = status.body().details.causes.iter().map(|cause| cause.field.as_str()).collect();
    assert_eq!(fields, [".a", ".b"]);
}

#[test]
fn managed_fields_read_back_as_they_were_written() {
    let json = json!([
        { "manager": "alice", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": { "f:a": {} }, "time": "2023-11-14T22:13:20Z" },
        { "manager": "bob", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": { "f:b": {} }, "subresource": "status" }
    ]);
    let managed = ManagedFields::from_json(&json).unwrap();
    let mut written = serde_json::to_value(&managed).unwrap();
    // The one without a time comes first among updates, and applies come before updates.
    assert_eq!(written.as_array_mut().map(|entries| entries.len()), Some(2));
    assert_eq!(written, json);
    for broken in [
        json!([{ "operation": "Delete" }]),
        json!([{ "operation": "Apply" }]),
        json!([{ "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV2" }]),
    ] {
        assert!(ManagedFields::from_json(&broken).is_err(), "{broken}");
    }
    assert!(is_reset(&json!([])) && is_reset(&json!([{}])));
    assert!(!is_reset(&json!([{ "manager": "x" }])) && !is_reset(&json!(null)));
}
