use mailboat_object::expression::DEEPEST;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fixtures::object;

/// What an expression gives for a Deployment at florin, as text; `missing`, or the sentence.
fn given(expression: &str) -> String {
    let copy = object(
        "mailbox",
        "deployments.apps",
        &json!({
            "metadata": { "name": "web", "labels": { "app": "web" } },
            "spec": { "replicas": 3, "template": { "spec": { "containers": [
                { "name": "a", "resources": { "requests": { "cpu": "500m" } } },
                { "name": "b", "resources": { "requests": { "cpu": "1" } } } ] } } },
            "status": { "readyReplicas": 2, "load": 0.5, "big": "7", "conditions": [
                { "type": "Available", "status": "True" }, { "type": "Progressing", "status": "False" } ] },
        }),
    );
    let labels = BTreeMap::from([("env".to_owned(), "prod".to_owned())]);
    let sight = Sight {
        copy: Some(&copy),
        form: None,
        edge_name: "florin",
        labels: &labels,
        annotations: &BTreeMap::new(),
        exists: true,
        current: false,
        stale: false,
        age: Some(12),
    };
    let compiled = match Expression::compile(expression) {
        Ok(compiled) => compiled,
        Err(bad) => return format!("bad: {bad}"),
    };
    let functions = Functions::default();
    match compiled.evaluate(&functions.scene(&sight, compiled.variables())) {
        Ok(given) => given.text().unwrap_or_else(|| "no single value".to_owned()),
        Err(Failure::Missing) => "missing".to_owned(),
        Err(Failure::Mistake(told)) => format!("mistake: {told}"),
    }
}

#[test]
fn expressions_see_the_copy_its_status_and_its_edge() {
    for (expression, expected) in [
        ("edge.labels['env']", "prod"),
        ("edge.name", "florin"),
        ("edge.labels.env + '/' + object.metadata.name", "prod/web"),
        ("status.readyReplicas", "2"),
        ("object.spec.replicas - status.readyReplicas", "1"),
        ("status.readyReplicas < object.spec.replicas", "true"),
        ("status.load * 2.0", "1"),
        ("int(status.big) + 1", "8"),
        ("syncerStatus.exists && !syncerStatus.current", "true"),
        ("age > 10 ? 'late' : 'fresh'", "late"),
        ("has(status.missing)", "false"),
        ("status.conditions.exists(c, c.type == 'Available' && c.status == 'True')", "true"),
        ("status.conditions.filter(c, c.status == 'False').map(c, c.type)[0]", "Progressing"),
        ("size(object.spec.template.spec.containers)", "2"),
        (
            "quantity(object.spec.template.spec.containers[0].resources.requests.cpu).isLessThan(quantity('1'))",
            "bad: there is no function `isLessThan` here",
        ),
        (
            "quantity(object.spec.template.spec.containers[0].resources.requests.cpu).asApproximateFloat()",
            "0.5",
        ),
        ("math.greatest(status.readyReplicas, 9)", "9"),
        ("status.conditions", "no single value"),
        ("null", "null"),
    ] {
        assert_eq!(given(expression), expected, "{expression}");
    }
}

#[test]
fn what_is_not_reported_yet_is_no_mistake() {
    for expression in
        ["status.availableReplicas", "edge.labels['rack']", "edge.annotations.a", "status.conditions[9].type"]
    {
        assert_eq!(given(expression), "missing", "{expression}");
    }
}

#[test]
fn a_mistake_is_told_without_any_value() {
    for (expression, expected) in [
        ("status.readyReplicas +", "bad: it is no CEL: "),
        ("self.status", "bad: nothing is called `self`; there are object, status, edge, syncerStatus, age"),
        ("status.conditions.map(c, d)", "bad: nothing is called `d`"),
        ("object.metadata.name.matches('(a{1000}){1000}')", "bad: there is no function `matches` here"),
        ("object.metadata.name + 1", "mistake: the types of its parts do not go together"),
        ("1 / 0", "mistake: it divides by zero"),
        ("9223372036854775807 + 1", "mistake: a number in it grows too large"),
        ("size(1, 2, 3)", "mistake: "),
        ("quantity('many').asInteger()", "mistake: "),
    ] {
        let told = given(expression);
        assert!(told.starts_with(expected), "{expression}: {told}");
        assert!(!told.contains("web"), "{told}");
    }
}

#[test]
fn what_could_cost_too_much_is_refused_or_left_out() {
    let nested = format!("{}1{}", "(".repeat(40), ")".repeat(40));
    for expression in [nested, "1+".repeat(2_000) + "1", "!".repeat(4_000) + "true", "a".repeat(5_000)] {
        assert!(Expression::compile(&expression).is_err(), "{}", &expression[..20]);
    }
    // A loop in a loop in a loop, and text that doubles itself.
    let loops = "object.list.map(a, object.list.map(b, object.list.map(c, a)))";
    let many: Vec<u32> = (0..200).collect();
    let copy = object(
        "m",
        "things",
        &json!({ "metadata": { "name": "x" }, "list": many, "text": "x".repeat(1 << 20) }),
    );
    let nothing = BTreeMap::new();
    let sight = Sight {
        copy: Some(&copy),
        form: None,
        edge_name: "",
        labels: &nothing,
        annotations: &nothing,
        exists: true,
        current: true,
        stale: false,
        age: None,
    };
    for expression in [loops, "[object.text].map(x, x + x + x + x + x)[0].size()"] {
        let compiled = Expression::compile(expression).expect(expression);
        let functions = Functions::default();
        let told = compiled.evaluate(&functions.scene(&sight, compiled.variables())).map(|_| ()).unwrap_err();
        assert!(told.to_string().contains("too many steps"), "{expression}: {told}");
    }
}

/// The worst that the limits let through, on a test's small stack.
#[test]
fn the_limits_hold_on_a_small_stack() {
    let nested =
        |open: &str, count: usize, close: &str| format!("{}1{}", open.repeat(count), close.repeat(count));
    for expression in [
        nested("(", DEEPEST / 5, ")"),
        nested("[", DEEPEST / 5, "]"),
        nested("{1:", DEEPEST / 6, "}"),
        nested("int(", DEEPEST / 6, ")"),
        nested("1+(", DEEPEST / 6, ")"),
        nested("true?1:(", DEEPEST / 7, ")"),
        nested("[1].map(x,", DEEPEST / 7, ")"),
        nested("[1].exists_one(x,", DEEPEST / 7, ")"),
        format!("(((({}))))", ["1"; DEEPEST / 2].join("+")),
        "1+".repeat(DEEPEST) + "1",
        "!".repeat(DEEPEST) + "true",
        "-".repeat(DEEPEST) + "1",
        "true?1:".repeat(DEEPEST / 2) + "1",
        "true||".repeat(600) + "true",
        format!("object{}", ".a".repeat(DEEPEST)),
        format!("object{}", "[0]".repeat(DEEPEST - 5)),
    ] {
        println!("{expression}");
        assert!(check_size(&expression).is_ok());
        let _ = given(&expression);
    }
}

#[test]
fn what_is_given_compares_with_json_of_any_type() {
    let functions = Functions::default();
    let nothing = BTreeMap::new();
    let sight = Sight {
        copy: None,
        form: None,
        edge_name: "",
        labels: &nothing,
        annotations: &nothing,
        exists: false,
        current: false,
        stale: false,
        age: None,
    };
    for (expression, value) in [
        ("1 + 1", json!(2)),
        ("'a'", json!("a")),
        ("[1, 'b']", json!([1, "b"])),
        ("{'a': true}", json!({ "a": true })),
        ("null", json!(null)),
        ("1.5", json!(1.5)),
    ] {
        let given = Expression::compile(expression).expect(expression);
        let given = given.evaluate(&functions.scene(&sight, Variables::default())).expect(expression);
        assert!(given.is(&value) && !given.is(&json!("other")), "{expression}");
    }
}

proptest! {
    /// Whatever somebody writes, it is understood or refused: the center goes on.
    #[test]
    fn no_text_brings_the_parser_down(text in "\\PC{0,40}") {
        let _ = Expression::compile(&text);
    }

    #[test]
    fn no_soup_of_words_brings_it_down(words in prop::collection::vec(prop::sample::select(vec![
        "object", "status", ".", "[", "]", "(", ")", "'a'", "\"", "1", "0x", "1u", "1e9", "-", "!", "?", ":", "&&", "||",
        "map", "has", "exists", ",", "{", "}", "in", "null", "b'\\xff'", "r'\\'", "'\\u00'", "99999999999999999999", "1.",
    ]), 0..14)) {
        let _ = given(&words.concat());
    }
}
