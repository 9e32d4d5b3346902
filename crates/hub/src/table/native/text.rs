//! What cells have in common: values in words, and what stands for nothing.

use serde_json::{Map, Value, json};

use super::age;

pub(super) fn since(time: &Value, now_seconds: u64) -> Value {
    time.as_str().map_or_else(|| json!("<unknown>"), |time| age::since(time, now_seconds).into())
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn size(value: &Value) -> usize {
    value.as_object().map_or(0, Map::len)
}

pub(super) fn text(value: &Value) -> Value {
    value.as_str().unwrap_or_default().into()
}

pub(super) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

pub(super) fn is(value: &Value) -> bool {
    value.as_bool().unwrap_or_default()
}

/// A text, or another where there is none.
pub(super) fn or(value: &Value, other: &str) -> Value {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or(other).into()
}

pub(super) fn or_none(value: &Value) -> Value {
    or(value, "<none>")
}

pub(super) fn or_unset(value: &Value) -> Value {
    or(value, "<unset>")
}

/// A number or a text as text, such as a share of something.
pub(super) fn either(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The texts of a list, one after the other.
pub(super) fn joined(values: &Value, member: &str) -> String {
    let texts: Vec<&str> =
        list(values).iter().map(|value| value[member].as_str().unwrap_or_default()).collect();
    texts.join(",")
}

/// The texts in a list, one after the other.
pub(super) fn texts(values: &Value) -> String {
    let texts: Vec<&str> = list(values).iter().filter_map(Value::as_str).collect();
    texts.join(",")
}

/// The first three of many, and how many more there are.
pub(super) fn first_three(all: &[String]) -> String {
    const SHOWN: usize = 3;
    let first = all.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(",");
    match all.len() {
        0..=SHOWN => first,
        count => format!("{first} + {} more...", count - SHOWN),
    }
}

/// Whether an object has a condition that holds.
pub(super) fn holds(object: &Value, condition: &str) -> bool {
    let found = list(&object["status"]["conditions"]).iter().find(|found| found["type"] == condition);
    found.is_some_and(|found| found["status"] == "True")
}

/// Labels as text.
pub(super) fn pairs(labels: &Value) -> String {
    let pairs: Vec<String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

/// A label selector with `matchLabels` and `matchExpressions` as text.
pub(super) fn selector(selector: &Value) -> String {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let mut asked: Vec<(&str, String)> = labels
        .map(|(key, value)| (key.as_str(), format!("{key}={}", value.as_str().unwrap_or_default())))
        .collect();
    asked.extend(list(&selector["matchExpressions"]).iter().map(|expression| {
        let key = expression["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> = list(&expression["values"]).iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let told = match expression["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        (key, told)
    }));
    asked.sort_by_key(|(key, _)| *key);
    let asked: Vec<String> = asked.into_iter().map(|(_, told)| told).collect();
    if asked.is_empty() { "<none>".to_owned() } else { asked.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_told_as_kubectl_shows_them() {
        let asked = json!({
            "matchLabels": { "b": "1" },
            "matchExpressions": [
                { "key": "c", "operator": "In", "values": ["y", "x"] },
                { "key": "a", "operator": "Exists" },
                { "key": "d", "operator": "DoesNotExist" },
                { "key": "e", "operator": "NotIn", "values": ["z"] },
            ],
        });
        assert_eq!(selector(&asked), "a,b=1,c in (x,y),!d,e notin (z)");
        assert_eq!(selector(&json!({})), "<none>");
    }

    #[test]
    fn of_many_three_are_shown() {
        let all: Vec<String> = ["a", "b", "c", "d", "e"].map(str::to_owned).into();
        assert_eq!(first_three(&all), "a,b,c + 2 more...");
        assert_eq!(first_three(&all[..3]), "a,b,c");
    }
}
