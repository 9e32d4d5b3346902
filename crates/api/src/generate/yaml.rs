//! YAML that is the same on every machine: keys sorted, no wrapping, every doubtful text quoted.
//!
//! Written here rather than by a library, since these files are compared byte by byte and their content
//! decides the names of schemas: a new version of a serializer must not be a change of an API.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// `value` as a YAML document, the same on every machine.
pub fn text(value: &Value) -> String {
    let mut out = String::new();
    block(&mut out, value, 0, true);
    out
}

/// `value` as JSON with sorted keys and no spaces, whatever order its maps are kept in.
pub(super) fn canonical_json(value: &Value) -> String {
    let mut out = String::new();
    write_json(&mut out, value);
    out
}

fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Object(map) => {
            out.push('{');
            for (index, (key, value)) in sorted(map).into_iter().enumerate() {
                _ = write!(out, "{}{}:", if index == 0 { "" } else { "," }, quoted(key));
                write_json(out, value);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                write_json(out, item);
            }
            out.push(']');
        }
        scalar => _ = write!(out, "{scalar}"),
    }
}

/// The members in the order of their keys, except that what an object is comes before what it holds.
fn in_reading_order(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut members = sorted(map);
    if map.contains_key("apiVersion") && map.contains_key("kind") {
        members.sort_by_key(|(key, _)| match key.as_str() {
            "apiVersion" => 0,
            "kind" => 1,
            "metadata" => 2,
            _ => 3,
        });
    }
    members
}

fn sorted(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut members: Vec<_> = map.iter().collect();
    members.sort_by_key(|(key, _)| key.as_str());
    members
}

/// A value over lines of its own. The first line is indented here unless the caller has begun it already.
fn block(out: &mut String, value: &Value, indent: usize, mut begins_line: bool) {
    let mut begin = |out: &mut String| {
        if begins_line {
            _ = write!(out, "{:indent$}", "");
        }
        begins_line = true;
    };
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in in_reading_order(map) {
                begin(out);
                _ = write!(out, "{}:", text_scalar(key));
                member(out, value, indent);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                begin(out);
                out.push_str("- ");
                block(out, item, indent + 2, false);
            }
        }
        other => {
            begin(out);
            _ = writeln!(out, "{}", scalar(other));
        }
    }
}

/// What follows a key.
fn member(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            block(out, value, indent + 2, true);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            block(out, value, indent, true);
        }
        other => _ = writeln!(out, " {}", scalar(other)),
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text_scalar(text),
        Value::Object(_) => "{}".to_owned(),
        Value::Array(_) => "[]".to_owned(),
        other => other.to_string(),
    }
}

fn text_scalar(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

/// A JSON string is a double-quoted YAML scalar.
fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

/// Whether every YAML reader, old ones included, takes the text for a string without quotes.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 13] =
        ["true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan", "inf", "infinity", "nil"];
    let begins_well =
        text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '$' || first == '.');
    let ends_well = !text.ends_with([' ', ':']);
    let all_well = text.chars().all(|char| {
        char.is_alphanumeric() || matches!(char, ' ' | '.' | ',' | '/' | '-' | '_' | '$' | '(' | ')' | ';')
    });
    // A leading dot begins JSON paths (`.spec`), but also numbers (`.5`) and `.inf`.
    let no_number =
        !text.starts_with('.') || text[1..].starts_with(|second: char| second.is_ascii_alphabetic());
    let no_word = !WORDS.contains(&text.trim_start_matches('.').to_ascii_lowercase().as_str());
    begins_well && ends_well && all_well && no_number && no_word && !text.contains("  ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_is_read_back_as_it_was() {
        let value = json!({
            "kind": "K", "apiVersion": "v1", "a key: odd": 1, "empty": {}, "none": [], "null": null,
            "texts": ["yes", "No", ".5", ".inf", "1e3", "~", "", " x", "x ", "a: b", "#c", "- d", "line\nline",
                      "quote\"back\\slash", "tab\t", "é", "\u{2028}", "0x1", "2024-01-01", ".spec.x", "$.a[0]", "*"],
            "nested": [[1, [2]], [{"a": [{"b": "c"}], "d": true}], {"x": {"y": [1.5]}}],
        });
        let text = text(&value);
        let read: Value = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(read, value, "{text}");
    }

    #[test]
    fn words_that_old_readers_take_for_booleans_are_quoted() {
        for word in ["yes", "NO", "on", "Off", "y", "N", "true", "null", ".NaN"] {
            assert_eq!(scalar(&json!(word)), format!("{word:?}"));
        }
    }

    #[test]
    fn canonical_json_sorts_keys() {
        assert_eq!(
            canonical_json(&json!({"b": [{"d": 1, "c": "\n"}], "a": null})),
            r#"{"a":null,"b":[{"c":"\n","d":1}]}"#
        );
    }
}
