//! How large an object is.

use serde_json::Value;

/// So large may an object be. Real servers keep theirs in etcd, which takes no more.
pub(crate) const OBJECT_LIMIT_BYTES: usize = 1536 << 10;

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
    fn a_value_is_measured_about_as_it_is_written_and_no_further_than_needed() {
        let value = json!({ "a": ["text", 1, null, { "b": true }], "c": "x".repeat(1000) });
        let written = value.to_string().len();
        let measured = json_bytes(&value, usize::MAX);
        assert!(measured.abs_diff(written) < 20, "{measured} {written}");
        let many = json!(vec!["x".repeat(100); 1000]);
        assert!(json_bytes(&many, 1000) < 3000);
    }
}
