//! Paths into JSON, as cases write them: `.items[0].metadata.name`, `.metadata.annotations['a.b/c']`, `.items[*].kind`, and
//! of an element that has a name `.groups[apps]`.

use serde_json::Value;

use crate::difference::name;

/// All values at a path, in order.
pub fn all<'v>(value: &'v Value, path: &str) -> Vec<&'v Value> {
    let mut found = vec![value];
    let mut rest = path;
    while !rest.is_empty() {
        let step;
        (step, rest) = first(rest);
        found = found.into_iter().flat_map(|value| below(value, &step)).collect();
    }
    found
}

/// The first value at a path.
pub fn one<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    all(value, path).into_iter().next()
}

enum Segment {
    Member(String),
    Item(usize),
    Each,
    Named(String),
}

fn first(path: &str) -> (Segment, &str) {
    if let Some(rest) = path.strip_prefix("['") {
        let (name, rest) = rest.split_once("']").unwrap_or((rest, ""));
        return (Segment::Member(name.to_owned()), rest);
    }
    if let Some(rest) = path.strip_prefix('[') {
        let (index, rest) = rest.split_once(']').unwrap_or((rest, ""));
        let segment = match (index, index.parse()) {
            ("*", _) => Segment::Each,
            (_, Ok(index)) => Segment::Item(index),
            (name, Err(_)) => Segment::Named(name.to_owned()),
        };
        return (segment, rest);
    }
    let rest = path.strip_prefix('.').unwrap_or(path);
    let end = rest.find(['.', '[']).unwrap_or(rest.len());
    (Segment::Member(rest[..end].to_owned()), &rest[end..])
}

fn below<'v>(value: &'v Value, segment: &Segment) -> Vec<&'v Value> {
    match (segment, value) {
        (Segment::Member(name), value) => value.get(name).into_iter().collect(),
        (Segment::Item(index), value) => value.get(index).into_iter().collect(),
        (Segment::Each, Value::Array(items)) => items.iter().collect(),
        (Segment::Each, Value::Object(members)) => members.values().collect(),
        (Segment::Named(wanted), Value::Array(items)) => {
            items.iter().filter(|item| name(item) == Some(wanted)).collect()
        }
        (Segment::Each | Segment::Named(_), _) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_to_values() {
        let value =
            json!({ "a": { "b.c/d": [1, { "e": 2 }] }, "f": [{ "g": 3, "name": "x.y" }, { "g": 4 }] });
        assert_eq!(one(&value, ".a['b.c/d'][1].e"), Some(&json!(2)));
        assert_eq!(all(&value, ".f[*].g"), [&json!(3), &json!(4)]);
        assert_eq!(one(&value, ".f[2].g"), None);
        assert_eq!(all(&value, ".f[x.y].g"), [&json!(3)]);
        assert_eq!(one(&value, ".f[x].g"), None);
    }
}
