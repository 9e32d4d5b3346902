use serde_json::json;

use super::*;
use crate::schema::Origin;

fn errors(schema: &Value, new: &Value, old: Option<&Value>) -> Vec<(String, String)> {
    let schema = Schema::from_openapi(schema, &Value::Null, Origin::Custom).unwrap();
    let found = schema.obey(new, old, &schema.validate(new, false));
    found.into_iter().map(|error| (error.field, error.body)).collect()
}

fn boats(rule: &Value) -> Value {
    json!({ "type": "object", "properties": { "spec": {
        "type": "object", "x-kubernetes-validations": [rule],
        "properties": {
            "length": { "type": "integer" }, "sails": { "type": "integer" },
            "names": { "type": "array", "items": { "type": "string" } },
        },
    } } })
}

#[test]
fn a_rule_is_obeyed_or_told_with_its_message() {
    let schema =
        boats(&json!({ "rule": "!has(self.sails) || self.sails <= self.length", "message": "too many" }));
    let spec = |spec: Value| json!({ "spec": spec });
    assert_eq!(errors(&schema, &spec(json!({ "length": 7, "sails": 3 })), None), []);
    assert_eq!(errors(&schema, &spec(json!({ "length": 7 })), None), []);
    let told = [("spec".to_owned(), "Invalid value: too many".to_owned())];
    assert_eq!(errors(&schema, &spec(json!({ "length": 7, "sails": 9 })), None), told);
}

#[test]
fn a_transition_rule_needs_a_former_value() {
    let schema = boats(&json!({ "rule": "self.length >= oldSelf.length" }));
    let long = json!({ "spec": { "length": 7 } });
    let short = json!({ "spec": { "length": 6 } });
    assert_eq!(errors(&schema, &short, None), []);
    assert_eq!(errors(&schema, &long, Some(&short)), []);
    let told = [("spec".to_owned(), "Invalid value: failed rule: self.length >= oldSelf.length".to_owned())];
    assert_eq!(errors(&schema, &short, Some(&long)), told);
}

#[test]
fn what_is_wrong_as_it_is_is_not_looked_at() {
    let schema = boats(&json!({ "rule": "self.length > 0" }));
    let found = errors(&schema, &json!({ "spec": { "length": "long" } }), None);
    assert_eq!(found, [("<nil>".to_owned(), UNCHECKED.to_owned())]);
}

#[test]
fn a_rule_costs_no_more_than_its_budget() {
    let rule = "self.names.all(a, self.names.exists_one(b, a == b))";
    let schema = boats(&json!({ "rule": rule }));
    let spec = |count: usize| {
        let names: Vec<String> = (0..count).map(|number| number.to_string()).collect();
        json!({ "spec": { "names": names } })
    };
    assert_eq!(errors(&schema, &spec(20), None), []);
    let refused = errors(&schema, &spec(100_000), None);
    assert!(refused[0].1.contains("running out of cost budget"), "{refused:?}");
}

#[test]
fn reading_a_long_text_in_a_loop_counts() {
    let schema = boats(&json!({ "rule": "self.names.all(a, self.names.exists(b, b.contains(a)))" }));
    let spec = |bytes: usize| json!({ "spec": { "names": vec!["x".repeat(bytes); 100] } });
    assert_eq!(errors(&schema, &spec(1_000), None), []);
    let refused = errors(&schema, &spec(50_000), None);
    assert!(refused[0].1.contains("running out of cost budget"), "{refused:?}");
}

#[test]
fn rules_are_enforced_that_people_write() {
    for (rule, spec, holds) in [
        (&*["self.length > 0"; 200].join(" && "), json!({ "length": 0 }), false),
        ("self.names.all(n, n.split('/').all(p, p != '..'))", json!({ "names": ["a/../b"] }), false),
        ("self.names.all(n, n.lowerAscii() == n && n.trim() == n)", json!({ "names": ["a"] }), true),
        ("self.names.isSorted()", json!({ "names": ["b", "a"] }), false),
        ("self.names[0].find('[0-9]+') == '12'", json!({ "names": ["a12b"] }), true),
        (r"self.names.all(n, n.matches(r'^\d+$'))", json!({ "names": ["12"] }), true),
        ("// longer than none\nself.length > 0", json!({ "length": 1 }), true),
    ] {
        let found = errors(&boats(&json!({ "rule": rule })), &json!({ "spec": spec }), None);
        assert_eq!(found.is_empty(), holds, "{rule}: {found:?}");
    }
}

#[test]
fn rules_that_cannot_be_taken_are_left_out_and_told() {
    for (rule, why) in [
        ("(((((((((self.length > 0)))))))))", "its brackets are nested too deep"),
        ("self.length.unknown()", "unknown is not known"),
        ("elsewhere > 0", "elsewhere is not known"),
        ("self.names.map(n, 'x').join('') == ''", "join is not known"),
    ] {
        let schema = boats(&json!({ "rule": rule }));
        assert!(Rule::all(&schema["properties"]["spec"]).is_empty(), "{rule}");
        assert!(no_expressions(&schema).is_empty(), "{rule}");
        let [(path, told)] = &left_out(&schema)[..] else { panic!("{rule}") };
        assert_eq!(path, ".properties[spec].x-kubernetes-validations[0].rule");
        assert!(told.starts_with(why), "{told}");
    }
    for rule in ["not CEL at all", "self.length > 0 &&", "r'\\' + ((("] {
        assert_eq!(no_expressions(&boats(&json!({ "rule": rule }))).len(), 1, "{rule}");
    }
}

#[test]
fn a_message_can_be_made_of_the_value() {
    let explained = |expression: &str| {
        boats(
            &json!({ "rule": "self.sails <= self.length", "message": "too many", "messageExpression": expression }),
        )
    };
    let told = |schema: &Value| errors(schema, &json!({ "spec": { "length": 7, "sails": 9 } }), None);
    let said = |message: &str| [("spec".to_owned(), format!("Invalid value: {message}"))];
    assert_eq!(told(&explained("'at most ' + string(self.length)")), said("at most 7"));
    // One that says nothing, breaks or is not known here leaves the message.
    for useless in ["''", "self.none", "1", "unheard(self)"] {
        assert_eq!(told(&explained(useless)), said("too many"), "{useless}");
    }
}

#[test]
fn a_message_made_of_a_value_is_short_or_not_made() {
    let explained = |expression: &str| {
        boats(&json!({ "rule": "false", "message": "plainly wrong", "messageExpression": expression }))
    };
    let told = |expression: &str, name: &str| {
        let errors = errors(&explained(expression), &json!({ "spec": { "names": [name] } }), None);
        errors.into_iter().map(|(_, body)| body).collect::<Vec<_>>()
    };
    assert_eq!(told("'no ' + self.names[0]", "boat"), ["Invalid value: no boat"]);
    assert_eq!(told("self.names[0] + self.names[0]", &"n".repeat(4000)), ["Invalid value: plainly wrong"]);
    assert_eq!(told("self.names[0]", &"n".repeat(1 << 20)), ["Invalid value: plainly wrong"]);
}

#[test]
fn patterns_in_rules_are_those_of_servers_in_go() {
    let table = [
        (r"self.names[0].matches('^\\d+$')", "12", true),
        (r"self.names[0].matches('^\\d+$')", "٤٢", false),
        (r"self.names[0].find('[a-z]+') == 'ab'", "12ab34cd", true),
        (r"self.names[0].findAll('[a-z]+') == ['ab', 'cd']", "12ab34cd", true),
        (r"self.names[0].findAll('[a-z]+', 1) == ['ab']", "12ab34cd", true),
        (r"self.names[0].matches('\\pL{900}')", "x", false),
    ];
    for (rule, name, holds) in table {
        let found = errors(&boats(&json!({ "rule": rule })), &json!({ "spec": { "names": [name] } }), None);
        assert_eq!(found.is_empty(), holds, "{rule}: {found:?}");
    }
}

#[test]
fn all_rules_of_an_object_together_have_an_end() {
    let rule = json!({ "rule": "self.all(a, self.all(b, a == b || a != b))" });
    let list = json!({ "type": "array", "items": { "type": "integer" }, "x-kubernetes-validations": [rule] });
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "array", "items": list } } });
    let few = json!({ "spec": vec![vec![7; 100]; 3] });
    assert_eq!(errors(&schema, &few, None), []);
    let many = errors(&schema, &json!({ "spec": vec![vec![7; 200]; 500] }), None);
    assert_eq!(many.len(), 1, "{}", many.len());
    assert!(many[0].1.contains("running out of cost budget"), "{many:?}");
}

#[test]
fn a_former_value_that_may_be_missing_says_whether_it_is_there() {
    let rule = |text: &str| json!({ "rule": text, "optionalOldSelf": true, "message": "no" });
    let length = |length: u64| json!({ "spec": { "length": length } });
    let told = || [("spec".to_owned(), "Invalid value: no".to_owned())];
    let schema = boats(&rule("oldSelf.hasValue() || self.length == 1"));
    assert!(left_out(&schema).is_empty(), "{:?}", left_out(&schema));
    assert_eq!(errors(&schema, &length(2), None), told(), "a new one begins at 1");
    assert_eq!(errors(&schema, &length(1), None), []);
    assert_eq!(errors(&schema, &length(2), Some(&length(1))), []);
    let schema = boats(&rule("!oldSelf.hasValue() || oldSelf.value().length <= self.length"));
    assert_eq!(errors(&schema, &length(2), None), []);
    assert_eq!(errors(&schema, &length(2), Some(&length(3))), told());
    let schema = boats(&rule("oldSelf.orValue(self).length == self.length"));
    assert_eq!(errors(&schema, &length(2), None), []);
    assert_eq!(errors(&schema, &length(2), Some(&length(3))), told());
}

#[test]
fn addresses_and_formats_are_known_to_rules() {
    for (rule, name, holds) in [
        ("isIP(self.names[0])", "10.0.0.1", true),
        ("isIP(self.names[0])", "10.0.0.256", false),
        ("!isIP(self.names[0]) || ip(self.names[0]).family() == 6", "10.0.0.1", false),
        ("ip.isCanonical(self.names[0])", "2001:DB8::1", false),
        ("cidr('10.0.0.0/8').containsIP(self.names[0])", "10.1.2.3", true),
        ("cidr('10.0.0.0/8').containsIP(self.names[0])", "11.1.2.3", false),
        ("isCIDR(self.names[0]) && cidr(self.names[0]).prefixLength() <= 24", "10.0.0.0/28", false),
        ("!format.dns1123Label().validate(self.names[0]).hasValue()", "boat", true),
        ("!format.dns1123Label().validate(self.names[0]).hasValue()", "Boat_", false),
    ] {
        let schema = boats(&json!({ "rule": rule }));
        assert!(left_out(&schema).is_empty(), "{rule}: {:?}", left_out(&schema));
        let found = errors(&schema, &json!({ "spec": { "names": [name] } }), None);
        assert_eq!(found.is_empty(), holds, "{rule} of {name}: {found:?}");
        assert!(!found.iter().any(|(_, told)| told.contains("evaluation error")), "{rule}: {found:?}");
    }
    for unknown in
        ["url(self.names[0]).getHost() == 'a'", "format.nothing().validate('a').hasValue()", "ip.none()"]
    {
        assert_eq!(left_out(&boats(&json!({ "rule": unknown }))).len(), 1, "{unknown}");
    }
}
