//! The JSONPath of printed columns: members, indices, `[*]` and comparisons with a text.

use serde_json::Value;

/// What a path such as `.status.conditions[?(@.type=="Ready")].status` leads to. What cannot be read leads nowhere.
pub(crate) fn values<'v>(root: &'v Value, path: &str) -> Vec<&'v Value> {
    let mut found = vec![root];
    let mut rest = path.trim().trim_start_matches('{').trim_end_matches('}').trim_start_matches('$');
    while !rest.is_empty() && !found.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let Some(end) = closing(after) else { return Vec::new() };
            let inside = &after[..end];
            rest = &after[end + 1..];
            found = found.into_iter().flat_map(|value| bracket(value, inside)).collect();
        } else {
            let (name, after) = member(rest.strip_prefix('.').unwrap_or(rest));
            rest = after;
            if !name.is_empty() {
                found = found.into_iter().flat_map(|value| named(value, &name)).collect();
            }
        }
    }
    found.retain(|value| !value.is_null());
    found
}

/// A value in words, as a cell shows it.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn named<'v>(value: &'v Value, name: &str) -> Vec<&'v Value> {
    if name == "*" { all(value) } else { value.get(name).into_iter().collect() }
}

fn all(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(elements) => elements.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    }
}

fn bracket<'v>(value: &'v Value, inside: &str) -> Vec<&'v Value> {
    let inside = inside.trim();
    if inside == "*" {
        return all(value);
    }
    if let Some(test) = inside.strip_prefix("?(").and_then(|test| test.strip_suffix(')')) {
        return all(value).into_iter().filter(|element| holds(element, test)).collect();
    }
    if let Ok(index) = inside.parse::<i64>() {
        let Some(elements) = value.as_array() else { return Vec::new() };
        let index = if index < 0 {
            usize::try_from(-index).ok().and_then(|back| elements.len().checked_sub(back))
        } else {
            usize::try_from(index).ok()
        };
        return index.and_then(|index| elements.get(index)).into_iter().collect();
    }
    value.get(unquoted(inside)).into_iter().collect()
}

/// Whether `@.path == "text"` or `@.path != "text"` holds of an element.
fn holds(element: &Value, test: &str) -> bool {
    let (path, wanted, equal) = match test.split_once("==") {
        Some((path, wanted)) => (path, wanted, true),
        None => match test.split_once("!=") {
            Some((path, wanted)) => (path, wanted, false),
            None => return false,
        },
    };
    let Some(path) = path.trim().strip_prefix('@') else { return false };
    let wanted = unquoted(wanted.trim());
    values(element, path).first().is_some_and(|value| (text(value) == wanted) == equal)
}

fn unquoted(text: &str) -> &str {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

/// A member's name, in which a backslash keeps a dot from ending it, and what comes after.
fn member(path: &str) -> (String, &str) {
    let mut name = String::new();
    let mut letters = path.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '.' | '[' => return (name, &path[at..]),
            '\\' => name.extend(letters.next().map(|(_, letter)| letter)),
            letter => name.push(letter),
        }
    }
    (name, "")
}

/// Where the bracket ends that was opened, quoted ones not counted.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (None, ']') => return Some(at),
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), letter) if open == letter => quote = None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_where_columns_point() {
        let object = json!({
            "metadata": { "labels": { "a.b/c": "d" } },
            "spec": { "list": [{ "name": "x", "n": 1 }, { "name": "y", "n": 2 }] },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }, { "type": "Synced", "status": "False" }] },
        });
        for (path, expected) in [
            (".spec.list[0].name", json!(["x"])),
            (".spec.list[-1].name", json!(["y"])),
            (".spec.list[*].n", json!([1, 2])),
            (".spec.list[5].n", json!([])),
            (r#".status.conditions[?(@.type=="Ready")].status"#, json!(["True"])),
            (r".status.conditions[?(@.type=='Synced')].status", json!(["False"])),
            (r#".status.conditions[?(@.type != "Ready")].type"#, json!(["Synced"])),
            (r".metadata.labels.a\.b/c", json!(["d"])),
            (".metadata.labels['a.b/c']", json!(["d"])),
            (".nothing.here", json!([])),
            (".spec.list[", json!([])),
            ("{.spec.list[1].n}", json!([2])),
        ] {
            let found: Vec<Value> = values(&object, path).into_iter().cloned().collect();
            assert_eq!(Value::Array(found), expected, "{path}");
        }
    }
}
