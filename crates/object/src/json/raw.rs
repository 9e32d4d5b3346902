//! Looking into a value that was checked before.

use std::borrow::Cow;

use serde_json::Value;

use super::scan::Scanner;
use super::unescape;
use crate::malformed::{Flaw, Malformed};

/// One JSON value in the bytes where it stands. It was checked when it was read; looking into it builds
/// nothing but what is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Raw<'a> {
    text: &'a str,
}

impl<'a> Raw<'a> {
    /// Checks one JSON value of any length, nested at most [`super::DEEPEST`] levels.
    pub fn parse(json: &'a [u8]) -> Result<Self, Malformed> {
        Self::check(json).map_err(|flaw| flaw.within(json))
    }

    pub(crate) fn check(json: &'a [u8]) -> Result<Self, Flaw> {
        let mut scanner = Scanner::over(json)?;
        let span = scanner.skip()?;
        scanner.end()?;
        Ok(Self::trusted(scanner.slice(span)))
    }

    /// A value that was checked before, without white space around it. Of anything else it is undefined what is found in
    /// it, and nothing worse.
    pub fn trusted(text: &'a str) -> Self {
        Self { text }
    }

    /// The value as JSON.
    pub fn json(self) -> &'a str {
        self.text
    }

    fn first(self) -> Option<u8> {
        self.text.as_bytes().first().copied()
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.first() == Some(b'n')
    }

    /// Whether it is a map.
    pub fn is_map(self) -> bool {
        self.first() == Some(b'{')
    }

    /// Whether it is an array.
    pub fn is_array(self) -> bool {
        self.first() == Some(b'[')
    }

    /// The text of a string.
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        self.text.strip_prefix('"')?.strip_suffix('"').map(unescape)
    }

    /// A number that is a whole one, not below zero and within 64 bits, written without fraction or exponent.
    pub fn as_u64(self) -> Option<u64> {
        if self.first()?.is_ascii_digit() { self.text.parse().ok() } else { None }
    }

    /// A number that is a whole one within 64 bits, written without fraction or exponent.
    pub fn as_i64(self) -> Option<i64> {
        if matches!(self.first()?, b'-' | b'0'..=b'9') { self.text.parse().ok() } else { None }
    }

    /// A truth value.
    pub fn as_bool(self) -> Option<bool> {
        match self.text {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// The members of a map in their order; none if it is no map.
    pub fn members(self) -> Members<'a> {
        Members(Walk::new(self.text, b'{'))
    }

    /// The members of a map with their keys as they are written.
    pub(crate) fn escaped_members(self) -> impl Iterator<Item = (&'a str, Raw<'a>)> {
        let mut walk = Walk::new(self.text, b'{');
        std::iter::from_fn(move || walk.next_member())
    }

    /// The elements of an array in their order; none if it is no array.
    pub fn elements(self) -> Elements<'a> {
        Elements(Walk::new(self.text, b'['))
    }

    /// The member of this key, if it is a map that has it.
    pub fn member(self, key: &str) -> Option<Self> {
        let mut walk = Walk::new(self.text, b'{');
        while let Some((inner, value)) = walk.next_member() {
            if inner == key || (inner.contains('\\') && unescape(inner) == key) {
                return Some(value);
            }
        }
        None
    }

    /// What stands under a path of member keys.
    pub fn get(self, path: &[&str]) -> Option<Self> {
        path.iter().try_fold(self, |value, key| value.member(key))
    }

    /// A tree of it, for those who must have one.
    pub fn to_value(self) -> Value {
        // It was checked by the same rules, so it parses; should the two ever disagree, nothing is there.
        serde_json::from_str(self.text).unwrap_or_default()
    }
}

impl std::fmt::Debug for Raw<'_> {
    /// Its length; never the value, which is a tenant's data.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JSON({} bytes)", self.text.len())
    }
}

/// The members of a map: unescaped key and value.
#[derive(Clone)]
pub struct Members<'a>(Walk<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, Raw<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_member().map(|(inner, value)| (unescape(inner), value))
    }
}

/// The elements of an array.
#[derive(Clone)]
pub struct Elements<'a>(Walk<'a>);

impl<'a> Iterator for Elements<'a> {
    type Item = Raw<'a>;

    fn next(&mut self) -> Option<Raw<'a>> {
        self.0.next_value()
    }
}

/// A cursor inside one checked map or array.
#[derive(Clone)]
struct Walk<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Walk<'a> {
    fn new(text: &'a str, open: u8) -> Self {
        let at = if text.as_bytes().first() == Some(&open) { 1 } else { text.len() };
        Self { text, at }
    }

    /// To the next byte that is neither white space nor one of these.
    fn pass(&mut self, separators: &[u8]) -> Option<u8> {
        let bytes = self.text.as_bytes();
        loop {
            let byte = *bytes.get(self.at)?;
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') && !separators.contains(&byte) {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    fn next_value(&mut self) -> Option<Raw<'a>> {
        if matches!(self.pass(b",:")?, b'}' | b']') {
            return None;
        }
        let start = self.at;
        self.at = super::skip_unchecked(self.text.as_bytes(), start).ok()?;
        self.text.get(start..self.at).map(Raw::trusted)
    }

    /// The next member: its key still escaped.
    fn next_member(&mut self) -> Option<(&'a str, Raw<'a>)> {
        let key = self.next_value()?.text;
        let inner = key.strip_prefix('"')?.strip_suffix('"')?;
        Some((inner, self.next_value()?))
    }
}
