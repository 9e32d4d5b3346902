//! `%(name)` becomes the parameter's value, `%%` becomes `%`, and any other `%` stays.

use std::borrow::Cow;

use mailboat_object::json::Raw;
use memchr::{memchr, memchr2, memmem};

use super::{Parameters, Uncustomized};

/// What of a name is repeated in an error.
const LONGEST_NAME: usize = 64;

/// What a `%` begins.
enum Piece<'t> {
    /// `%%`.
    Percent,
    /// `%(name)`.
    Parameter(&'t str),
    /// A `%` for itself.
    Plain,
    /// `%(` without an end.
    Unclosed,
}

/// The piece whose `%` stands first in `text`, and its length.
fn piece(text: &str) -> (Piece<'_>, usize) {
    match text.as_bytes().get(1) {
        Some(b'%') => (Piece::Percent, 2),
        Some(b'(') => match memchr(b')', text.as_bytes()) {
            Some(end) => (Piece::Parameter(text.get(2..end).unwrap_or_default()), end + 1),
            None => (Piece::Unclosed, text.len()),
        },
        _ => (Piece::Plain, 1),
    }
}

/// Expands every string of checked JSON; keys of maps stay as they are.
pub(super) fn in_json<'j>(json: &'j str, parameters: &dyn Parameters) -> Result<Cow<'j, str>, Uncustomized> {
    if hides_a_percent(json) {
        // Written anew, nothing that matters here is escaped.
        let plain = Raw::parse(json.as_bytes()).map(Raw::to_value).unwrap_or_default().to_string();
        return in_plain_json(&plain, parameters).map(|expanded| Cow::Owned(expanded.into_owned()));
    }
    in_plain_json(json, parameters)
}

/// Whether `%`, `(` or `)` may be written as an escape sequence. API servers never do; a file may.
fn hides_a_percent(json: &str) -> bool {
    memmem::find_iter(json.as_bytes(), r"\u002")
        .any(|at| matches!(json.as_bytes().get(at + 5), Some(b'5' | b'8' | b'9')))
}

/// In valid JSON a `%` stands in a string, so that the text between is copied without a look at its structure.
fn in_plain_json<'j>(json: &'j str, parameters: &dyn Parameters) -> Result<Cow<'j, str>, Uncustomized> {
    let bytes = json.as_bytes();
    let mut expanded = String::new();
    // Copied up to here; looked at up to there.
    let (mut copied, mut seen) = (0, 0);
    while let Some(percent) = memchr(b'%', bytes.get(seen..).unwrap_or_default()).map(|at| seen + at) {
        let end = string_end(bytes, percent);
        if is_key(bytes, end) {
            seen = end;
            continue;
        }
        seen = percent;
        while let Some(at) = memchr(b'%', bytes.get(seen..end).unwrap_or_default()).map(|at| seen + at) {
            let (piece, length) = piece(json.get(at..end).unwrap_or_default());
            seen = at + length;
            if matches!(piece, Piece::Plain) {
                continue;
            }
            if expanded.is_empty() {
                expanded.reserve(json.len() + json.len() / 8);
            }
            expanded.push_str(json.get(copied..at).unwrap_or_default());
            copied = seen;
            match piece {
                Piece::Percent => expanded.push('%'),
                Piece::Parameter(name) => {
                    let name = unescaped(name);
                    let value = parameters.parameter(&name).ok_or_else(|| {
                        Uncustomized::MissingParameter { path: path_to(json, at), name: shortened(&name) }
                    })?;
                    push_escaped(&value, &mut expanded);
                }
                Piece::Unclosed => return Err(Uncustomized::UnclosedParameter { path: path_to(json, at) }),
                Piece::Plain => {}
            }
        }
        seen = end;
    }
    if copied == 0 {
        return Ok(Cow::Borrowed(json));
    }
    expanded.push_str(json.get(copied..).unwrap_or_default());
    Ok(Cow::Owned(expanded))
}

/// Expands a text that is no JSON; `path` says where it stands.
pub(super) fn in_text(
    text: &str,
    parameters: &dyn Parameters,
    path: impl Fn() -> String,
) -> Result<String, Uncustomized> {
    expand_text(text, parameters, path, |_, value, expanded| expanded.push_str(value))
}

/// Expands a text that is to become JSON. Within the quotes of a string a parameter stays that text whatever
/// characters it has; outside of them it is taken as JSON itself, so that `%(replicas)` may be a number.
pub(super) fn in_json_text(
    text: &str,
    parameters: &dyn Parameters,
    path: impl Fn() -> String,
) -> Result<String, Uncustomized> {
    expand_text(text, parameters, path, |at, value, expanded| {
        if in_quotes(text.as_bytes().get(..at).unwrap_or_default()) {
            push_escaped(value, expanded);
        } else {
            expanded.push_str(value);
        }
    })
}

fn expand_text(
    text: &str,
    parameters: &dyn Parameters,
    path: impl Fn() -> String,
    push: impl Fn(usize, &str, &mut String),
) -> Result<String, Uncustomized> {
    let mut expanded = String::with_capacity(text.len());
    let mut from = 0;
    while let Some(at) = memchr(b'%', text.as_bytes().get(from..).unwrap_or_default()).map(|at| from + at) {
        expanded.push_str(text.get(from..at).unwrap_or_default());
        let (piece, length) = piece(text.get(at..).unwrap_or_default());
        from = at + length;
        match piece {
            Piece::Percent | Piece::Plain => expanded.push('%'),
            Piece::Parameter(name) => match parameters.parameter(name) {
                Some(value) => push(at, &value, &mut expanded),
                None => {
                    return Err(Uncustomized::MissingParameter { path: path(), name: shortened(name) });
                }
            },
            Piece::Unclosed => return Err(Uncustomized::UnclosedParameter { path: path() }),
        }
    }
    expanded.push_str(text.get(from..).unwrap_or_default());
    Ok(expanded)
}

/// Whether what follows this beginning of JSON stands within a string.
fn in_quotes(beginning: &[u8]) -> bool {
    let (mut quoted, mut at) = (false, 0);
    while let Some(next) = memchr2(b'"', b'\\', beginning.get(at..).unwrap_or_default()).map(|next| at + next)
    {
        let escape = beginning.get(next) == Some(&b'\\');
        quoted ^= !escape;
        at = next + 1 + usize::from(escape);
    }
    quoted
}

/// The quote that ends the string in which `at` stands.
fn string_end(json: &[u8], mut at: usize) -> usize {
    loop {
        match memchr2(b'"', b'\\', json.get(at..).unwrap_or_default()).map(|next| at + next) {
            Some(next) if json.get(next) == Some(&b'\\') => at = next + 2,
            Some(next) => return next,
            None => return json.len(),
        }
    }
}

/// Whether the string that ends with the quote at `end` is a key: only those are followed by a colon.
fn is_key(json: &[u8], end: usize) -> bool {
    let after = json.get(end + 1..).unwrap_or_default();
    after.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
}

/// The text of a piece of a checked string.
fn unescaped(inner: &str) -> Cow<'_, str> {
    if memchr(b'\\', inner.as_bytes()).is_none() {
        return Cow::Borrowed(inner);
    }
    serde_json::from_str::<String>(&format!("\"{inner}\"")).map_or(Cow::Borrowed(inner), Cow::Owned)
}

/// Appends a text as it stands between the quotes of a JSON string.
fn push_escaped(text: &str, json: &mut String) {
    if text.bytes().all(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)) {
        json.push_str(text);
        return;
    }
    let quoted = serde_json::Value::from(text).to_string();
    json.push_str(quoted.get(1..quoted.len() - 1).unwrap_or_default());
}

fn shortened(name: &str) -> String {
    name.chars().take(LONGEST_NAME).collect()
}

/// The path to the string in which `at` stands, such as `data['index.html']`: worked out only for an error.
fn path_to(json: &str, at: usize) -> String {
    let mut path = vec!["$".to_owned()];
    let Ok(mut value) = Raw::parse(json.as_bytes()) else { return path.concat() };
    loop {
        let holds = |inner: Raw<'_>| super::place::span_of(inner, json).contains(&at);
        if let Some((key, inner)) = value.members().find(|(_, inner)| holds(*inner)) {
            let plain = key.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
            let key = shortened(&key);
            path.push(if plain { format!(".{key}") } else { format!("['{key}']") });
            value = inner;
        } else if let Some((index, inner)) = value.elements().enumerate().find(|(_, inner)| holds(*inner)) {
            path.push(format!("[{index}]"));
            value = inner;
        } else {
            return path.concat();
        }
    }
}
