use proptest::prelude::*;
use serde_json::{Value, json};

use super::place::PlainPath;
use super::*;
use crate::fixtures::{key, object};

fn parameters() -> BTreeMap<String, String> {
    [
        ("loc-name", "florin"),
        ("env", "prod"),
        ("replicas", "3"),
        ("quoted", "say \"hi\"\\\n"),
        ("field", "image"),
        ("example.com/x", "y"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

fn asking(mut value: Value) -> Value {
    value["metadata"]["annotations"][annotation::EXPAND_PARAMETERS] = json!("true");
    value
}

fn expanded(value: &Value) -> Result<Value, Uncustomized> {
    let bytes = customize(asking(value.clone()).to_string().as_bytes(), None, &parameters())?;
    let mut value: Value = serde_json::from_slice(&bytes).expect("JSON");
    value["metadata"]["annotations"].as_object_mut().map(|all| all.remove(annotation::EXPAND_PARAMETERS));
    Ok(value)
}

fn customizer(expands: bool, replacements: &[(&str, &str)]) -> Customizer {
    let replacements: Vec<_> =
        replacements.iter().map(|(path, value)| json!({ "path": path, "value": value })).collect();
    let mut customizer = json!({
        "apiVersion": "edge.kubestellar.io/v2alpha1",
        "kind": "Customizer",
        "metadata": { "namespace": "commonstuff", "name": "example-customizer" },
        "replacements": replacements,
    });
    if expands {
        customizer = asking(customizer);
    }
    Customizer::parse(customizer.to_string().as_bytes()).expect("a Customizer")
}

fn customized(object: &Value, customizer: &Customizer) -> Result<Value, Uncustomized> {
    let bytes = customize(object.to_string().as_bytes(), Some(customizer), &parameters())?;
    Ok(serde_json::from_slice(&bytes).expect("JSON"))
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "namespace": "commonstuff", "name": "commond" },
        "spec": { "replicas": 1, "template": { "spec": { "containers": [
            { "name": "httpd", "image": "library/httpd:2.4", "env": [{ "name": "EXAMPLE_VAR", "value": "example value" }] },
            { "name": "side", "image": "library/busybox" },
        ] } } },
    })
}

#[test]
fn every_string_is_expanded_and_no_key_is() {
    let body =
        |page: &str| json!({ "metadata": { "labels": { "at": page } }, "data": { "%(env)": [page, 1] } });
    let found = expanded(&body("Running in %(loc-name).")).expect("expanded");
    assert_eq!(found["data"]["%(env)"], json!(["Running in florin.", 1]));
    assert_eq!(found["metadata"]["labels"]["at"], "Running in florin.");
}

#[test]
fn two_percent_signs_are_one_and_any_other_stays() {
    for (text, expected) in [
        ("100%", "100%"),
        ("100%%", "100%"),
        ("%%(env)", "%(env)"),
        ("%%%(env)", "%prod"),
        ("%%%%", "%%"),
        ("50% of %(env)", "50% of prod"),
        ("%d %s (%(env))", "%d %s (prod)"),
        ("%(env)%(env)", "prodprod"),
        ("%(example.com/x)", "y"),
        ("", ""),
        ("%", "%"),
        ("ümlaut \u{1f6a2} %(env) \"quoted\" \\%(env)\\", "ümlaut \u{1f6a2} prod \"quoted\" \\prod\\"),
    ] {
        assert_eq!(
            expanded(&json!({ "data": { "a": text } })).expect(text)["data"]["a"],
            expected,
            "{text:?}"
        );
    }
}

#[test]
fn a_parameter_stays_the_text_it_is_whatever_its_characters() {
    let found = expanded(&json!({ "data": { "a": "<%(quoted)>" } })).expect("expanded");
    assert_eq!(found["data"]["a"], "<say \"hi\"\\\n>");
}

#[test]
fn a_percent_sign_in_disguise_is_one() {
    let json = br#"{"metadata":{"annotations":{"edge.kubestellar.io/expand-parameters":"true"}},"a":"\u0025\u0028env\u0029 \\u0025"}"#;
    let bytes = customize(json, None, &parameters()).expect("expanded");
    let found: Value = serde_json::from_slice(&bytes).expect("JSON");
    assert_eq!(found["a"], "prod \\u0025");
}

#[test]
fn nothing_is_expanded_unless_asked_for() {
    let object =
        json!({ "metadata": { "annotations": { annotation::EXPAND_PARAMETERS: "yes" } }, "a": "%(env)%%" });
    let bytes = customize(object.to_string().as_bytes(), None, &parameters()).expect("as it is");
    assert_eq!(serde_json::from_slice::<Value>(&bytes).expect("JSON"), object);
}

#[test]
fn a_missing_parameter_holds_the_object_and_is_named_with_its_path() {
    let found = expanded(&json!({ "data": { "index.html": ["x", "in %(nowhere)"] } }));
    let error = found.expect_err("a hold");
    assert_eq!(error.reason(), "MissingParameter");
    assert_eq!(
        error.to_string(),
        "$.data['index.html'][1] asks for the parameter \"nowhere\", which is neither a label nor an annotation \
         of the Location"
    );
}

#[test]
fn a_parameter_without_an_end_holds_the_object() {
    let error = expanded(&json!({ "data": { "a": "%(env", "b": ")" } })).expect_err("a hold");
    assert_eq!(error, Uncustomized::UnclosedParameter { path: "$.data.a".to_owned() });
}

#[test]
fn a_locations_label_wins_over_its_annotation() {
    let location = object(
        "inventory",
        "locations.edge.kubestellar.io",
        &json!({ "metadata": { "name": "l", "labels": { "a": "label" }, "annotations": { "a": "no", "b": "annotation" } } }),
    );
    assert_eq!(location.parameter("a").as_deref(), Some("label"));
    assert_eq!(location.parameter("b").as_deref(), Some("annotation"));
    assert_eq!(location.parameter("c"), None);
}

#[test]
fn a_customizer_replaces_with_expanded_values() {
    let customizer = customizer(
        true,
        &[
            ("$.spec.template.spec.containers.0.env.0.value", "\"env is %(env)\""),
            ("$.spec.replicas", "%(replicas)"),
            ("$.spec.template.spec.containers[*].%(field)", "\"100%% %(quoted)\""),
        ],
    );
    let found = customized(&deployment(), &customizer).expect("customized");
    let containers = &found["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers[0]["env"][0]["value"], "env is prod");
    assert_eq!(found["spec"]["replicas"], 3);
    assert_eq!(containers[0]["image"], "100% say \"hi\"\\\n");
    assert_eq!(containers[1]["image"], "100% say \"hi\"\\\n");
}

#[test]
fn without_the_annotation_a_customizers_texts_are_taken_as_they_are() {
    let found = customized(&deployment(), &customizer(false, &[("$.spec.x", "\"%(env)%%\"")]));
    assert_eq!(found.expect("customized")["spec"]["x"], "%(env)%%");
}

#[test]
fn the_known_examples_of_replacement() {
    for (object, path, expected) in [
        (
            json!({ "abc": { "abc": { "def": 3, "ghi": 4 } }, "def": ["a"] }),
            "$..def",
            json!({ "abc": { "abc": { "def": 47, "ghi": 4 } }, "def": 47 }),
        ),
        (
            json!({ "abc": { "abc": { "def": 3, "ghi": 4 } }, "def": ["a"] }),
            "$..abc",
            json!({ "abc": 47, "def": ["a"] }),
        ),
        (json!({ "def": [0, 1, 2, 3, 4] }), "$.def[2::2]", json!({ "def": [0, 1, 47, 3, 47] })),
        (json!({ "x": { "y": {} } }), "$.x.y.z", json!({ "x": { "y": { "z": 47 } } })),
        (json!({ "x": { "y": {} } }), "$.x['y z']", json!({ "x": { "y": {}, "y z": 47 } })),
    ] {
        assert_eq!(customized(&object, &customizer(false, &[(path, "47")])).expect(path), expected, "{path}");
    }
}

#[test]
fn a_path_that_leads_nowhere_changes_nothing_and_says_where_it_ends() {
    for (path, missing) in [
        ("$.spec.strategy.type", "$.spec.strategy"),
        ("$.spec.template.spec.containers.7.image", "$.spec.template.spec.containers[7]"),
        ("$.spec.template['metadata'].labels", "$.spec.template.metadata"),
    ] {
        // The first replacement alone would work: it must not be half done.
        let error = customized(&deployment(), &customizer(false, &[("$.spec.replicas", "5"), (path, "1")]));
        match error.expect_err(path) {
            Uncustomized::LeadsNowhere { at, missing: found, .. } => {
                assert_eq!(
                    (at.as_str(), found.as_str()),
                    ("replacements[1].path of Customizer commonstuff/example-customizer", missing)
                );
            }
            other => panic!("{path}: {other}"),
        }
    }
}

#[test]
fn a_wildcard_that_matches_nothing_is_no_fault() {
    let object = deployment();
    assert_eq!(customized(&object, &customizer(false, &[("$..initContainers[*].image", "1")])), Ok(object));
}

#[test]
fn bad_paths_and_values_are_told_on_the_customizer_and_on_each_object() {
    let customizer =
        customizer(false, &[("$.a", "1"), ("$.a[", "1"), ("$.a", "oops"), ("$.b", r#"{"x":1,"x":2}"#)]);
    let paths: Vec<_> = customizer.validate().into_iter().map(|error| error.path).collect();
    assert_eq!(paths, ["replacements[1].path", "replacements[2].value", "replacements[3].value"]);
    let error = customized(&json!({ "a": 0 }), &customizer).expect_err("a hold");
    assert_eq!(error.reason(), "BadPath");
    assert!(
        error.to_string().contains("replacements[1].path of Customizer commonstuff/example-customizer"),
        "{error}"
    );
}

#[test]
fn a_missing_parameter_of_a_customizer_names_the_replacement() {
    let customizer = customizer(true, &[("$.spec.replicas", "%(count)")]);
    assert!(customizer.validate().is_empty(), "it may work for some destination");
    let error = customized(&deployment(), &customizer).expect_err("a hold");
    assert_eq!(
        error,
        Uncustomized::MissingParameter {
            path: "replacements[0].value of Customizer commonstuff/example-customizer".to_owned(),
            name: "count".to_owned()
        }
    );
}

#[test]
fn a_customizer_cannot_make_another_object() {
    for (path, member) in [
        ("$.metadata.name", "name"),
        ("$.metadata['namespace']", "namespace"),
        ("$.kind", "kind"),
        ("$.*", "apiVersion"),
        ("$", "apiVersion"),
    ] {
        let error = customized(&deployment(), &customizer(false, &[(path, "\"x\"")])).expect_err(path);
        assert!(
            matches!(&error, Uncustomized::AnotherObject { member: found, .. } if *found == member),
            "{path}: {error}"
        );
    }
    let labeled = customized(&deployment(), &customizer(false, &[("$.metadata.labels", r#"{"a":"b"}"#)]));
    assert_eq!(labeled.expect("labels may be changed")["metadata"]["labels"], json!({ "a": "b" }));
}

#[test]
fn an_object_names_its_customizer_with_or_without_a_namespace() {
    let asks = |namespace: &str, reference: &str| {
        let mut json =
            json!({ "metadata": { "name": "x", "annotations": { annotation::CUSTOMIZER: reference } } });
        if !namespace.is_empty() {
            json["metadata"]["namespace"] = json!(namespace);
        }
        wanted_customizer(&object("workload", "things.example.com", &json)).expect("it asks for one")
    };
    let at = |namespace: &str| Ok(key("workload", "customizers.edge.kubestellar.io", namespace, "c"));
    assert_eq!(asks("till", "c"), at("till"));
    assert_eq!(asks("till", "shared/c"), at("shared"));
    assert_eq!(asks("", "shared/c"), at("shared"));
    for (namespace, reference) in [("", "c"), ("till", ""), ("till", "a/b/c"), ("till", "/c"), ("till", "a/")]
    {
        let refused = asks(namespace, reference).expect_err(reference);
        assert_eq!(refused.reason(), "BadCustomizerReference", "{namespace:?} {reference:?}");
    }
}

/// Any JSON made of few names, so that paths often lead somewhere.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        (0..9_i32).prop_map(Value::from),
        "[a%(){}\"\\\\]{0,6}".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[abc%]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// What expansion means, said on a tree.
fn expand_tree(value: &Value) -> Result<Value, ()> {
    Ok(match value {
        Value::String(text) => {
            let mut rest = text.as_str();
            let mut expanded = String::new();
            while let Some(at) = rest.find('%') {
                expanded.push_str(&rest[..at]);
                rest = &rest[at + 1..];
                if let Some(after) = rest.strip_prefix('%') {
                    expanded.push('%');
                    rest = after;
                } else if let Some(after) = rest.strip_prefix('(') {
                    let (name, after) = after.split_once(')').ok_or(())?;
                    expanded.push_str(if name == "a" { "A\"" } else { return Err(()) });
                    rest = after;
                } else {
                    expanded.push('%');
                }
            }
            Value::from(expanded + rest)
        }
        Value::Array(elements) => elements.iter().map(expand_tree).collect::<Result<Vec<_>, _>>()?.into(),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(key, value)| Ok((key.clone(), expand_tree(value)?)))
                .collect::<Result<_, ()>>()?,
        ),
        other => other.clone(),
    })
}

proptest! {
    #[test]
    fn expanding_bytes_is_expanding_the_tree(value in any_json()) {
        let parameters: BTreeMap<_, _> = [("a".to_owned(), "A\"".to_owned())].into();
        let json = value.to_string();
        let found = expand::in_json(&json, &parameters)
            .map(|text| serde_json::from_str::<Value>(&text).expect("JSON"))
            .map_err(drop);
        prop_assert_eq!(found, expand_tree(&value));
    }

    #[test]
    fn replacing_spans_is_replacing_in_the_tree(
        value in any_json(),
        first in "[abc01]",
        steps in prop::collection::vec(r"\.[abc01]|\[[01]\]", 0..3),
    ) {
        let path = format!("$.{first}{}", steps.concat());
        let json = value.to_string();
        let found = PlainPath::of(&path)
            .expect("plain")
            .replace(Raw::parse(json.as_bytes()).expect("JSON"), "{\"new\":[1]}");
        let mut tree = value;
        let outcome = path.parse::<mailboat_object::jsonpath::JsonPath>().expect("a path").replace(&mut tree, &json!({ "new": [1] }));
        match found {
            Ok(text) => prop_assert_eq!((serde_json::from_str::<Value>(&text).expect("JSON"), None), (tree, outcome.missing)),
            Err(missing) => prop_assert_eq!(Some(missing), outcome.missing),
        }
    }
}
