use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::fixtures::{BOAT, DEPLOYMENT, decode};
use crate::object::Keep;

fn query(text: &str) -> LabelSelector {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn from_json(value: &Value) -> Result<LabelSelector, BadSelector> {
    let json = value.to_string();
    LabelSelector::from_json(Raw::parse(json.as_bytes()).unwrap())
}

const LABELS: [(&str, &str); 4] =
    [("app", "till"), ("tier", ""), ("speed", "7"), ("example.com/zone", "north")];

#[test]
fn queries_select_as_kubernetes_does() {
    for (text, selects) in [
        ("", true),
        ("  ", true),
        ("app", true),
        ("!app", false),
        ("!missing", true),
        ("app=till", true),
        ("app==till", true),
        ("app = till", true),
        ("app=other", false),
        ("app!=till", false),
        ("app!=other", true),
        ("missing!=x", true),
        ("tier=", true),
        ("tier!=", false),
        ("app in (till,other)", true),
        ("app in ( other )", false),
        ("app notin (other,more)", true),
        ("app notin(till)", false),
        ("missing notin (x)", true),
        ("missing in (x)", false),
        ("tier in (,x)", true),
        ("speed>6", true),
        ("speed>7", false),
        ("speed<8", true),
        ("app>1", false),
        ("example.com/zone=north,app=till", true),
        ("example.com/zone=north,app=other", false),
        ("in,notin", false),
        ("in=x", false),
    ] {
        assert_eq!(query(text).matches(&LABELS[..]), selects, "{text}");
    }
}

#[test]
fn a_query_that_cannot_be_read_says_where() {
    for text in [
        ",",
        "app,",
        ",app",
        "app=a=b",
        "app in",
        "app in (",
        "app in (a",
        "app in a",
        "app x",
        "!app=b",
        "=b",
        "app in ()x",
        "a b",
        "app>x",
        "-app",
        "app=-x",
        "UPPER.example/x",
        "a/b/c",
        "x/",
        "/x",
        "app!",
        "app>",
        "app in (a b)",
    ] {
        let error = text.parse::<LabelSelector>().unwrap_err();
        assert!(error.path.starts_with("character "), "{text}: {error}");
    }
    assert!(format!("{}=x", "k".repeat(64)).parse::<LabelSelector>().is_err());
    assert!(format!("k={}", "v".repeat(64)).parse::<LabelSelector>().is_err());
}

#[test]
fn objects_state_selectors_as_maps_and_expressions() {
    let selector = from_json(&json!({
        "matchLabels": {"app": "till"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["", "front"]},
            {"key": "speed", "operator": "Exists"},
            {"key": "gone", "operator": "DoesNotExist", "values": []},
            {"key": "app", "operator": "NotIn", "values": ["x"]}
        ]
    }))
    .unwrap();
    assert!(selector.matches(&LABELS[..]));
    assert_eq!(selector.to_query(), "app=till,app!=x,!gone,speed,tier in (,front)");
    assert!(from_json(&json!({})).unwrap().is_everything());
    assert!(from_json(&json!({"matchLabels": null, "matchExpressions": null})).unwrap().is_everything());
}

#[test]
fn a_selector_that_makes_no_sense_says_which_member() {
    for (value, sentence) in [
        (json!([]), "selector: it must be an object"),
        (json!({"matchLabels": []}), "matchLabels: it must be a map of strings"),
        (json!({"matchLabels": {"a": 1}}), "matchLabels.a: it must be a string"),
        (json!({"matchExpressions": {}}), "matchExpressions: it must be a list"),
        (
            json!({"matchExpressions": [{"key": "a"}]}),
            "matchExpressions[0].operator: it is missing or not a string",
        ),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "a", "operator": "in", "values": ["b"]}]}),
            "matchExpressions[1].operator: it must be In, NotIn, Exists or DoesNotExist",
        ),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
            "matchExpressions[0].values: In and NotIn need at least one value",
        ),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
            "matchExpressions[0].values: Exists and DoesNotExist take no values",
        ),
        (
            json!({"matchExpressions": [{"operator": "Exists"}]}),
            "matchExpressions[0].key: it is missing or not a string",
        ),
    ] {
        assert_eq!(from_json(&value).unwrap_err().to_string(), sentence);
    }
    let error = from_json(&json!({"matchLabels": {"bad key": "x"}})).unwrap_err();
    assert_eq!(error.path, "matchLabels.bad key");
}

#[test]
fn the_same_question_asked_differently_is_the_same_selector() {
    assert_eq!(query("a=1,b in (y,x,x)"), query("b in (x,y), a == 1, a=1"));
    assert_eq!(query("a in (1)"), query("a=1"));
    assert_ne!(query("a=1"), query("a!=1"));
}

#[test]
fn an_objects_own_labels_are_selected_by() {
    let boat = decode(BOAT, Keep::Head).unwrap();
    assert!(query("port=north,speed=fast,!app").matches(&boat));
    assert!(!query("port=south").matches(&boat));
    let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    assert!(query("a=b").matches(&labels));
}

#[test]
fn field_selectors_compare_names_and_simple_fields() {
    let deployment = decode(DEPLOYMENT, Keep::Whole).unwrap();
    for (text, selects) in [
        ("", true),
        ("metadata.name=till", true),
        ("metadata.name==till,metadata.namespace!=other", true),
        ("metadata.name!=till", false),
        ("spec.replicas=3", true),
        ("spec.strategy.type=RollingUpdate", true),
        ("spec.paused=", true),
        ("spec.paused!=true", true),
        ("spec.template=", true),
    ] {
        let selector: FieldSelector = text.parse().unwrap();
        assert_eq!(selector.matches(&deployment), Ok(selects), "{text}");
    }
    let head = decode(DEPLOYMENT, Keep::Head).unwrap();
    assert_eq!(FieldSelector::name("till").matches(&head), Ok(true));
    assert!("spec.replicas=3".parse::<FieldSelector>().unwrap().matches(&head).is_err());
    for text in ["a", "=b", "a=b=c", "a=\\x", "a=b\\"] {
        assert!(text.parse::<FieldSelector>().is_err(), "{text}");
    }
    assert_eq!(FieldSelector::name("a,b=c\\").to_query(), "metadata.name=a\\,b\\=c\\\\");
}

proptest! {
    #[test]
    fn a_label_selector_reads_back_from_its_query(
        requirements in prop::collection::vec(
            ("([a-z]{1,8}\\.com/)?[a-z][a-z0-9_.-]{0,6}[a-z0-9]", 0..6_u8, prop::collection::vec("([a-zA-Z0-9]{1,5})?", 1..4), any::<i64>()),
            0..5,
        )
    ) {
        let selector = LabelSelector::new(requirements.into_iter().map(|(key, operator, values, number)| {
            let (operator, values) = match operator {
                0 => (Operator::In, values),
                1 => (Operator::NotIn, values),
                2 => (Operator::Exists, vec![]),
                3 => (Operator::DoesNotExist, vec![]),
                4 => (Operator::GreaterThan, vec![number.unsigned_abs().min(1 << 60).to_string()]),
                _ => (Operator::LessThan, vec![number.unsigned_abs().min(1 << 60).to_string()]),
            };
            Requirement::new(&key, operator, values).unwrap()
        }));
        prop_assert_eq!(query(&selector.to_query()), selector);
    }

    #[test]
    fn a_field_selector_reads_back_from_its_query(values in prop::collection::vec(("[a-z.]{1,8}", any::<bool>(), any::<String>()), 0..4)) {
        let selector = FieldSelector::new(values.into_iter().map(|(path, equal, value)| FieldTerm { path, equal, value }));
        prop_assert_eq!(selector.to_query().parse::<FieldSelector>(), Ok(selector));
    }

    #[test]
    fn no_text_makes_parsing_panic(text in "[a-z!=,() inot<>/\\\\.]{0,24}") {
        let _ = text.parse::<LabelSelector>();
        let _ = text.parse::<FieldSelector>();
    }
}
