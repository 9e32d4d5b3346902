//! What one body may cost: all wait while one is written.

use std::time::Instant;

use super::*;

/// Each of these took minutes, or more memory than there is, where work grew with the square of what was sent.
const LONGEST: Duration = Duration::from_secs(30);

/// So many texts, in the order of their names turned round.
fn numbered(count: usize, each: impl Fn(usize) -> Value) -> Vec<Value> {
    (0..count).rev().map(each).collect()
}

/// Sends what is to be done within a time that is long, and far too short for what grows with the square.
async fn costs_little(hub: &Arc<Hub>, what: &str, request: Request<Full<Bytes>>) -> (u16, Value) {
    let before = Instant::now();
    let (code, said) = answered(hub, request).await;
    let took = before.elapsed();
    assert!(took < LONGEST, "{what}: {code} after {took:?}");
    (code, said)
}

#[tokio::test]
async fn work_grows_with_what_is_sent_and_not_with_its_square() {
    let hub = hub(Limits::default()).await;
    let (code, _) = answered(&hub, ask(Method::POST, MAPS, "application/json", map(0, 10))).await;
    assert_eq!(code, 201);
    let one = format!("{MAPS}/map-0?fieldManager=x");
    let owners = numbered(60_000, |number| json!({ "uid": number.to_string() }));
    let finalizers = numbered(80_000, |number| json!(format!("example/{number}")));
    let manager = |number| json!({ "apiVersion": "v1", "fieldsType": "FieldsV1", "operation": "Update", "manager": format!("{number}") });
    let owned: serde_json::Map<_, _> =
        (0..100_000).map(|number| (format!("v:{number}"), json!({}))).collect();
    let owner = json!([{ "apiVersion": "v1", "fieldsType": "FieldsV1", "operation": "Update", "manager": "m",
        "fieldsV1": { "f:metadata": { "f:finalizers": owned } } }]);
    let mut shifts = vec![json!({ "op": "add", "path": "/data/list", "value": vec![0; 1_000_000] })];
    shifts.extend((0..9_000).map(|_| json!({ "op": "add", "path": "/data/list/0" })));
    let mut moves = vec![shifts[0].clone()];
    moves.extend((0..9_000).map(|_| json!({ "op": "move", "from": "/data/list/0", "path": "/data/list/-" })));
    let named = |member: &str, value: Value| json!({ "metadata": { "name": "map-0", member: value } });
    let applied = |mut object: Value| {
        object["apiVersion"] = "v1".into();
        object["kind"] = "ConfigMap".into();
        object
    };
    let strategic = "application/strategic-merge-patch+json";
    let bodies = [
        ("owners", Method::PUT, "application/json", named("ownerReferences", json!(owners))),
        (
            "managers",
            Method::PUT,
            "application/json",
            named("managedFields", numbered(35_000, manager).into()),
        ),
        ("a manager of much", Method::PUT, "application/json", named("managedFields", owner)),
        ("finalizers", Method::PATCH, strategic, named("finalizers", json!(finalizers))),
        ("named things", Method::PATCH, strategic, named("ownerReferences", json!(owners))),
        (
            "what is taken out",
            Method::PATCH,
            strategic,
            named("$deleteFromPrimitiveList/finalizers", json!(finalizers)),
        ),
        ("what stays", Method::PATCH, strategic, json!({ "data": { "$retainKeys": finalizers } })),
        (
            "a set",
            Method::PATCH,
            "application/apply-patch+yaml",
            applied(named("finalizers", json!(finalizers))),
        ),
        ("shifts", Method::PATCH, "application/json-patch+json", json!(shifts)),
        ("moves", Method::PATCH, "application/json-patch+json", json!(moves)),
    ];
    for (what, method, media, body) in bodies {
        let body = body.to_string();
        assert!((900_000..3 << 20).contains(&body.len()), "{what}: {}", body.len());
        costs_little(&hub, what, ask(method, &one, media, body)).await;
    }
}

/// Defines a kind whose objects have a `spec` of this schema.
async fn define(hub: &Arc<Hub>, plural: &str, spec: Value) -> (u16, Value) {
    let schema = json!({ "type": "object", "properties": { "spec": spec } });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.example.org") },
        "spec": {
            "group": "example.org", "scope": "Cluster", "names": { "plural": plural, "kind": plural.to_uppercase() },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let what = format!("the definition of {plural}");
    costs_little(hub, &what, ask(Method::POST, path, "application/json", definition.to_string())).await
}

/// Makes an object of such a kind.
async fn make(hub: &Arc<Hub>, plural: &str, query: &str, spec: Value) -> (u16, Value) {
    let object = json!({ "apiVersion": "example.org/v1", "kind": plural.to_uppercase(),
        "metadata": { "name": "a" }, "spec": spec });
    let path = format!("/apis/example.org/v1/{plural}?{query}");
    costs_little(hub, plural, ask(Method::POST, &path, "application/json", object.to_string())).await
}

#[tokio::test]
async fn a_long_name_is_not_copied_for_each_thing_below_it() {
    let hub = hub(Limits::default()).await;
    let long = "x".repeat(1_200_000);
    let many = |count: usize, each: Value| -> Value {
        (0..count)
            .map(|number| (format!("m{number}"), each.clone()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let below = |named: Value| json!({ "type": "object", "properties": { long.as_str(): named } });
    let (code, said) = define(&hub, "sails", below(json!({ "type": "object" }))).await;
    assert_eq!(code, 201, "{said}");
    for query in ["dryRun=All", "fieldValidation=Strict", "fieldValidation=Ignore"] {
        let (code, _) = make(&hub, "sails", query, json!({ long.as_str(): many(100_000, json!(1)) })).await;
        let expected = if query.ends_with("Strict") { 400 } else { 201 };
        assert_eq!(code, expected, "{query}");
    }
    let numbers = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    let (code, said) = define(&hub, "masts", below(numbers)).await;
    assert_eq!(code, 201, "{said}");
    let (code, _) = make(&hub, "masts", "", json!({ long.as_str(): many(10_000, json!("x")) })).await;
    assert_eq!(code, 422);
    let (code, _) =
        define(&hub, "hulls", below(json!({ "type": "object", "properties": many(10_000, json!({})) })))
            .await;
    assert_eq!(code, 422);
    let defaults = json!({ "type": "array", "items": {
        "type": "object", "properties": { "a": { "type": "string", "default": "x".repeat(100_000) } } } });
    let (code, said) = define(&hub, "decks", defaults).await;
    assert_eq!(code, 201, "{said}");
    assert_eq!(make(&hub, "decks", "", json!(vec![json!({}); 400_000])).await.0, 413);
}

#[tokio::test]
async fn a_definition_has_no_more_versions_than_anybody_needs() {
    let hub = hub(Limits::default()).await;
    let version = |number: usize| json!({ "name": format!("v{number}"), "served": false, "storage": true });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "boats.example.org" },
        "spec": { "group": "example.org", "scope": "Cluster", "names": { "plural": "boats", "kind": "Boat" },
            "versions": numbered(20_000, version) },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let request = ask(Method::POST, path, "application/json", definition.to_string());
    let (code, said) = costs_little(&hub, "versions", request).await;
    assert_eq!((code, said["details"]["causes"][0]["reason"].as_str()), (422, Some("FieldValueTooMany")));
}

#[tokio::test]
async fn a_long_text_is_not_held_to_a_large_pattern() {
    let hub = hub(Limits::default()).await;
    let of = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    let rule = |pattern: &str| json!({ "type": "string", "maxLength": 2_000_000, "x-kubernetes-validations": [{ "rule": format!("self.matches('{pattern}')") }] });
    let (large, small) = ("[ab]*a[ab]{5000}c", "^[ab]+$");
    let text = "ab".repeat(600_000);
    for (plural, schema, expected) in [
        ("ropes", of(large), 422),
        ("knots", of(small), 201),
        ("lines", rule("[ab]*a[ab]{500}c"), 422),
        ("flags", rule(small), 201),
    ] {
        let (code, said) = define(&hub, plural, schema).await;
        assert_eq!(code, 201, "{said}");
        let (code, said) = make(&hub, plural, "", json!(text)).await;
        assert_eq!(code, expected, "{plural}: {}", said["message"].to_string().len());
    }
}

#[tokio::test]
async fn hostile_bodies_are_refused_and_cost_little() {
    let hub = hub(Limits::default()).await;
    let (code, _) = answered(&hub, ask(Method::POST, MAPS, "application/json", map(0, 1000))).await;
    assert_eq!(code, 201);
    let one = format!("{MAPS}/map-0");
    // Each copy doubles what is there.
    let mut copies = vec![json!({ "op": "add", "path": "/data/list", "value": ["x".repeat(1000)] })];
    copies.extend((0..200).map(|_| json!({ "op": "copy", "from": "/data/list", "path": "/data/list/-" })));
    let (code, said) = answered(
        &hub,
        ask(Method::PATCH, &one, "application/json-patch+json", Value::Array(copies).to_string()),
    )
    .await;
    assert_eq!(code, 422, "{said}");
    // A YAML document of a few lines that stands for very many.
    let mut bomb = "metadata: {name: bomb}\ndata:\n  a: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let former = format!("*a{}", level - 1);
        let line = format!("  k{level}: &a{level} [{}]\n", vec![former; 10].join(", "));
        bomb.push_str(&line);
    }
    let (code, said) = answered(&hub, ask(Method::POST, MAPS, "application/yaml", bomb)).await;
    assert_eq!(code, 400, "{said}");
    for (media, body) in [
        ("application/json-patch+json", r#"{"op":"remove"}"#),
        ("application/json-patch+json", r#"[{"op":"remove"}]"#),
        ("application/json-patch+json", r#"[{"op":"add","path":"/data/99999999999999999999","value":1}]"#),
        ("application/json-patch+json", r#"["x"]"#),
        ("application/json-patch+json", r#"[{"op":"move","from":"","path":"/data/a"}]"#),
        ("application/json-patch+json", r#"[{"op":"replace","path":"","value":null}]"#),
        ("application/merge-patch+json", "[]"),
        ("application/merge-patch+json", "null"),
        ("application/merge-patch+json", r#"{"metadata":7}"#),
        ("application/strategic-merge-patch+json", r#"{"$patch":"explode"}"#),
        ("application/apply-patch+yaml", "- a"),
        ("application/apply-patch+yaml", "&a [*a]"),
        ("application/json", "{}"),
    ] {
        let path = format!("{one}?fieldManager=x");
        let (code, said) = answered(&hub, ask(Method::PATCH, &path, media, body.to_owned())).await;
        assert!((400..500).contains(&code), "{media} {body}: {code} {said}");
    }
    let (code, said) = answered(&hub, ask(Method::GET, &one, "", String::new())).await;
    assert_eq!((code, said["data"]["text"].as_str().map(str::len)), (200, Some(1000)), "it is as it was");
}
