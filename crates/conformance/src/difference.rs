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
        (real, hub) => {
            found.push(Difference { path: path.to_owned(), real: real.cloned(), hub: hub.cloned() });
        }
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
}
