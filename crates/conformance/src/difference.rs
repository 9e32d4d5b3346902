//! Where two answers differ.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

/// One place at which two answers differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where: `.body.metadata.labels`.
    pub path: String,
    /// What the real server has there; none: nothing.
    pub real: Option<Value>,
    /// What the hub has there.
    pub hub: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), ToString::to_string);
        write!(
            formatter,
            "{}\n        real {}\n        hub  {}",
            self.path,
            shown(&self.real),
            shown(&self.hub)
        )
    }
}

/// All places at which two values differ, as deep as possible.
pub fn between(real: &Value, hub: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", Some(real), Some(hub), &mut found);
    found
}

fn compare(path: &str, real: Option<&Value>, hub: Option<&Value>, found: &mut Vec<Difference>) {
    match (real, hub) {
        (real, hub) if real == hub => {}
        (Some(Value::Object(real)), Some(Value::Object(hub))) => {
            let names: BTreeSet<_> = real.keys().chain(hub.keys()).collect();
            for name in names {
                let plain = name.chars().all(|letter| letter.is_alphanumeric() || "-_:".contains(letter));
                let path = if plain { format!("{path}.{name}") } else { format!("{path}['{name}']") };
                compare(&path, real.get(name), hub.get(name), found);
            }
        }
        (Some(Value::Array(real)), Some(Value::Array(hub))) if real.len() == hub.len() => {
            for (index, (real, hub)) in real.iter().zip(hub).enumerate() {
                compare(&format!("{path}[{index}]"), Some(real), Some(hub), found);
            }
        }
        (Some(Value::Array(real)), Some(Value::Array(hub))) if are_named(real) && are_named(hub) => {
            compare_named(path, real, hub, found);
        }
        (real, hub) => {
            found.push(Difference { path: path.to_owned(), real: real.cloned(), hub: hub.cloned() });
        }
    }
}

/// By what the elements of lists are known.
pub(crate) fn name(element: &Value) -> Option<&str> {
    let at = |path: &str| element.pointer(path)?.as_str();
    at("/name").or_else(|| at("/metadata/name")).or_else(|| at("/resource")).or_else(|| at("/subresource"))
}

fn are_named(elements: &[Value]) -> bool {
    let names: BTreeSet<_> = elements.iter().filter_map(name).collect();
    names.len() == elements.len()
}

/// Lists of different lengths, of which one has elements that the other lacks: the rest is compared, and has to be in the
/// same order.
fn compare_named(path: &str, real: &[Value], hub: &[Value], found: &mut Vec<Difference>) {
    let find = |elements: &'_ [Value], wanted: &str| -> Option<Value> {
        elements.iter().find(|element| name(element) == Some(wanted)).cloned()
    };
    let names: BTreeSet<&str> = real.iter().chain(hub).filter_map(name).collect();
    for wanted in &names {
        let at = format!("{path}[{wanted}]");
        compare(&at, find(real, wanted).as_ref(), find(hub, wanted).as_ref(), found);
    }
    let order = |elements: &[Value], others: &[Value]| -> Vec<Value> {
        let known = |element: &&str| others.iter().any(|other| name(other) == Some(element));
        elements.iter().filter_map(name).filter(known).map(Value::from).collect()
    };
    let (real, hub) = (order(real, hub), order(hub, real));
    if real != hub {
        let (real, hub) = (Some(Value::Array(real)), Some(Value::Array(hub)));
        found.push(Difference { path: format!("{path}[order]"), real, hub });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_named_by_path() {
        let real = json!({ "a": [1, { "b": 2 }], "same": 1, "x.y": 1 });
        let hub = json!({ "a": [1, { "b": 3 }], "same": 1, "more": null });
        let found = between(&real, &hub);
        let paths: Vec<_> = found.iter().map(|found| found.path.as_str()).collect();
        assert_eq!(paths, [".a[1].b", ".more", "['x.y']"]);
        assert_eq!((&found[0].real, &found[0].hub), (&Some(json!(2)), &Some(json!(3))));
    }

    #[test]
    fn what_one_list_lacks_does_not_hide_the_rest() {
        let real = json!([{ "name": "a", "v": 1 }, { "name": "b" }, { "name": "c" }]);
        let hub = json!([{ "name": "c" }, { "name": "a", "v": 2 }]);
        let found = between(&real, &hub);
        let paths: Vec<_> = found.iter().map(|found| found.path.as_str()).collect();
        assert_eq!(paths, ["[a].v", "[b]", "[order]"]);
    }
}
