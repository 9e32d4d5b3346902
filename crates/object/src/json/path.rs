//! Where in a body's structure a byte stands, worked out only when something is wrong there.

use std::fmt::Write;

use super::shell::string_end;

/// What a path may take, so that an error stays one line whatever the body holds.
const LONGEST_SEGMENT: usize = 64;
const MOST_SEGMENTS: usize = 10;

enum Open {
    Map { key: String },
    Array { index: usize },
}

/// The path of members down to the byte at `at`, such as `spec.containers[2].image`. Keys only, never values.
pub(crate) fn path_at(json: &[u8], at: usize) -> String {
    let mut open: Vec<Open> = Vec::new();
    let mut cursor = 0;
    // In a map, a string is a key if nothing but the opening bracket or a comma came before it.
    let mut key_next = false;
    while cursor < at.min(json.len()) {
        let byte = json.get(cursor).copied().unwrap_or_default();
        cursor += 1;
        match byte {
            b'{' => {
                open.push(Open::Map { key: String::new() });
                key_next = true;
            }
            b'[' => {
                open.push(Open::Array { index: 0 });
                key_next = false;
            }
            b'}' | b']' => {
                open.pop();
                key_next = false;
            }
            b',' => match open.last_mut() {
                Some(Open::Map { key }) => {
                    key.clear();
                    key_next = true;
                }
                Some(Open::Array { index }) => *index += 1,
                None => {}
            },
            b'"' => {
                let end = string_end(json, cursor).unwrap_or(json.len());
                if key_next && let Some(Open::Map { key }) = open.last_mut() {
                    *key = segment(json.get(cursor..end.saturating_sub(1)).unwrap_or_default());
                }
                key_next = false;
                cursor = end;
            }
            _ => {}
        }
    }
    // A repeated key is reported at its opening quote, so that the key itself is not in the path yet.
    if key_next
        && json.get(at) == Some(&b'"')
        && let Some(Open::Map { key }) = open.last_mut()
    {
        let end = string_end(json, at + 1).unwrap_or(json.len());
        *key = segment(json.get(at + 1..end.saturating_sub(1)).unwrap_or_default());
    }
    written(&open)
}

fn segment(key: &[u8]) -> String {
    let text = String::from_utf8_lossy(key.get(..LONGEST_SEGMENT).unwrap_or(key));
    text.chars().filter(|character| !character.is_control()).collect()
}

fn written(open: &[Open]) -> String {
    let mut path = String::new();
    for level in open.iter().take(MOST_SEGMENTS) {
        match level {
            Open::Map { key } if key.is_empty() => {}
            Open::Map { key } => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
            }
            Open::Array { index } => {
                // Writing to a String cannot fail.
                let _ = write!(path, "[{index}]");
            }
        }
    }
    if open.len() > MOST_SEGMENTS {
        path.push('…');
    }
    path
}
