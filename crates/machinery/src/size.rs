//! How large an object is, and how deep.

use serde_json::Value;

/// So large may an object be. Real servers keep theirs in etcd, which takes no more.
pub(crate) const OBJECT_LIMIT_BYTES: usize = 1536 << 10;

/// So many levels of maps and lists may stand in each other in an object. What managers own stands five levels deeper, so that
/// nothing is shown that is deeper than 100, which is as deep as our own clients read; others read 127.
pub(crate) const OBJECT_DEPTH_MAX: usize = 95;

/// Whether more than so many levels of maps and lists stand in each other. It does not call itself: a value from outside may
/// be deeper than any stack.
pub(crate) fn is_deeper(value: &Value, levels: usize) -> bool {
    let mut open = vec![(value, levels)];
    while let Some((value, levels)) = open.pop() {
        let below = levels.checked_sub(1);
        match (value, below) {
            (Value::Array(_) | Value::Object(_), None) => return true,
            (Value::Array(elements), Some(below)) => open.extend(elements.iter().map(|one| (one, below))),
            (Value::Object(members), Some(below)) => open.extend(members.values().map(|one| (one, below))),
            (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => {}
        }
    }
    false
}

/// How many bytes a value takes as JSON, about; counted up to a limit.
pub(crate) fn json_bytes(value: &Value, limit: usize) -> usize {
    let mut bytes = 0;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        bytes += match value {
            Value::String(text) => text.len() + 2,
            Value::Array(elements) => {
                open.extend(elements);
                elements.len() + 2
            }
            Value::Object(members) => {
                open.extend(members.values());
                members.keys().map(|name| name.len() + 4).sum::<usize>() + 2
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        };
        if bytes > limit {
            break;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_as_deep_as_its_maps_and_lists() {
        for (value, depth) in [(json!("text"), 0), (json!([]), 1), (json!({ "a": 1, "b": [[], {}] }), 3)] {
            assert!(!is_deeper(&value, depth), "{value}");
            assert!(depth == 0 || is_deeper(&value, depth - 1), "{value}");
        }
    }

    #[test]
    fn a_value_is_measured_about_as_it_is_written_and_no_further_than_needed() {
        let value = json!({ "a": ["text", 1, null, { "b": true }], "c": "x".repeat(1000) });
        let written = value.to_string().len();
        let measured = json_bytes(&value, usize::MAX);
        assert!(measured.abs_diff(written) < 20, "{measured} {written}");
        let many = json!(vec!["x".repeat(100); 1000]);
        assert!(json_bytes(&many, 1000) < 3000);
    }
}
