//! JSON strings: finding their end, unescaping and writing them.

use std::borrow::Cow;

use crate::malformed::{Flaw, What};

pub(super) const LOW: u64 = 0x0101_0101_0101_0101;
pub(super) const HIGH: u64 = 0x8080_8080_8080_8080;

/// Where the first quote, backslash or control character stands at or after `at`; the length if none does.
///
/// Eight bytes at a time: a byte of `word` that equals `x` becomes zero in `word ^ x`, and the classic test
/// for a zero byte sets its high bit. Bits above the first hit may be false, the first one never is.
#[inline]
pub(super) fn find_special(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (LOW * 0x22);
        let backslash = word ^ (LOW * 0x5c);
        let hits = (quote.wrapping_sub(LOW) & !quote)
            | (backslash.wrapping_sub(LOW) & !backslash)
            | (word.wrapping_sub(LOW * 0x20) & !word);
        let hits = hits & HIGH;
        if hits != 0 {
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)) {
        at += 1;
    }
    at
}

/// The character that the escape sequence with its backslash at `at` stands for, and the place after it.
#[inline]
pub(super) fn read_escape(bytes: &[u8], at: usize) -> Result<(char, usize), Flaw> {
    let character = match bytes.get(at + 1) {
        Some(b'n') => '\n',
        Some(plain @ (b'"' | b'\\' | b'/')) => char::from(*plain),
        Some(b't') => '\t',
        Some(b'u') => return read_unicode_escape(bytes, at),
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(_) => return Err(Flaw::new(at, What::Escape)),
        None => return Err(Flaw::new(at, What::Ends)),
    };
    Ok((character, at + 2))
}

/// `\u0041`, or two of them for a character beyond the first 65,536.
fn read_unicode_escape(bytes: &[u8], at: usize) -> Result<(char, usize), Flaw> {
    let first = unit(bytes, at + 2)?;
    if let Some(character) = char::from_u32(first) {
        return Ok((character, at + 6));
    }
    let second = match (bytes.get(at + 6), bytes.get(at + 7)) {
        (Some(b'\\'), Some(b'u')) => unit(bytes, at + 8)?,
        _ => 0,
    };
    match (first, second) {
        (0xd800..0xdc00, 0xdc00..0xe000) => {
            let code = 0x1_0000 + ((first & 0x3ff) << 10) + (second & 0x3ff);
            char::from_u32(code)
                .map(|character| (character, at + 12))
                .ok_or_else(|| Flaw::new(at, What::Escape))
        }
        _ => Err(Flaw::new(at, What::Escape)),
    }
}

/// The four hexadecimal digits at `at`.
fn unit(bytes: &[u8], at: usize) -> Result<u32, Flaw> {
    let digits = bytes.get(at..at + 4).ok_or_else(|| Flaw::new(bytes.len(), What::Ends))?;
    digits.iter().try_fold(0, |sum, byte| {
        char::from(*byte)
            .to_digit(16)
            .map(|digit| sum * 16 + digit)
            .ok_or_else(|| Flaw::new(at, What::Escape))
    })
}

/// The text of a checked string without its quotes: borrowed unless it holds escape sequences.
pub(crate) fn unescape(inner: &str) -> Cow<'_, str> {
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Cow::Borrowed(inner);
    }
    let mut text = String::with_capacity(inner.len());
    unescape_into(inner, &mut text);
    Cow::Owned(text)
}

/// Appends the text of a checked string without its quotes.
pub(super) fn unescape_into(inner: &str, text: &mut String) {
    let mut from = 0;
    loop {
        // In a checked string the only special bytes are backslashes.
        let at = find_special(inner.as_bytes(), from);
        text.push_str(inner.get(from..at).unwrap_or_default());
        let Ok((character, next)) = read_escape(inner.as_bytes(), at) else { return };
        text.push(character);
        from = next;
    }
}

/// `text` as it stands between the quotes of a JSON string: borrowed unless something must be escaped.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if find_special(text.as_bytes(), 0) == text.len() {
        return Cow::Borrowed(text);
    }
    let mut json = String::with_capacity(text.len() + 8);
    write_string(text, &mut json);
    json.pop();
    json.remove(0);
    Cow::Owned(json)
}

/// Appends `text` as a JSON string with its quotes.
pub fn write_string(text: &str, json: &mut String) {
    json.push('"');
    let bytes = text.as_bytes();
    let mut from = 0;
    loop {
        let at = find_special(bytes, from);
        json.push_str(text.get(from..at).unwrap_or_default());
        let Some(byte) = bytes.get(at) else { break };
        from = at + 1;
        match byte {
            b'"' => json.push_str("\\\""),
            b'\\' => json.push_str("\\\\"),
            b'\n' => json.push_str("\\n"),
            b'\r' => json.push_str("\\r"),
            b'\t' => json.push_str("\\t"),
            _ => {
                json.push_str("\\u00");
                json.push(if *byte >= 0x10 { '1' } else { '0' });
                json.push(char::from_digit(u32::from(byte % 16), 16).unwrap_or('0'));
            }
        }
    }
    json.push('"');
}
