//! The scanner: one checked pass, with digests on the way.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::DEEPEST;
use smallvec::SmallVec;

use super::text::{find_special, read_escape, unescape, unescape_into};
use crate::digest::{self, MapDigest};
use crate::malformed::{Flaw, What};

/// From the first byte of something to the byte after its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    pub(crate) fn len(self) -> usize {
        self.end - self.start
    }
}

/// A string in the text: the span between its quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    pub(crate) inner: Span,
    pub(crate) escaped: bool,
}

/// A member's key, as [`Scanner::map`] hands it out; the scanner then stands before the member's value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) key: Text,
    /// Of the unescaped key; 0 where nothing is digested.
    pub(crate) key_hash: u64,
}

impl Member {
    /// Where the member begins: the quote before its key.
    pub(crate) fn start(&self) -> usize {
        self.key.inner.start - 1
    }
}

/// The limits of one scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limited {
    pub(crate) bytes: usize,
    pub(crate) depth: u32,
}

/// Up to this many members repeated keys are looked for as they come, afterwards by sorting at the end: a
/// map of a hundred thousand members from a tenant must not cost the square of that.
const FEW_MEMBERS: usize = 32;

/// A cursor over text that is UTF-8; whether it is JSON is found out as it moves.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    deepest: u32,
    /// Hashes of the keys of all maps that are open, innermost last.
    keys: SmallVec<[u64; 64]>,
    /// Where a string with escape sequences is unescaped to be hashed.
    unescaped: String,
}

impl<'a> Scanner<'a> {
    /// Over bytes of any length, as deep as is ever read.
    pub(crate) fn over(json: &'a [u8]) -> Result<Self, Flaw> {
        Self::limited(json, Limited { bytes: usize::MAX, depth: DEEPEST })
    }

    pub(crate) fn limited(json: &'a [u8], limits: Limited) -> Result<Self, Flaw> {
        if json.len() > limits.bytes {
            return Err(Flaw::new(limits.bytes, What::TooLarge { limit: limits.bytes }));
        }
        let text =
            std::str::from_utf8(json).map_err(|error| Flaw::new(error.valid_up_to(), What::NotUtf8))?;
        Ok(Self::over_text(text, limits.depth))
    }

    pub(crate) fn over_text(text: &'a str, deepest: u32) -> Self {
        let deepest = deepest.min(DEEPEST);
        Self { text, at: 0, depth: 0, deepest, keys: SmallVec::new(), unescaped: String::new() }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn rewind(&mut self, at: usize) {
        self.at = at;
    }

    #[inline]
    pub(crate) fn slice(&self, span: Span) -> &'a str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    pub(crate) fn unescaped(&self, text: Text) -> Cow<'a, str> {
        let inner = self.slice(text.inner);
        if text.escaped { unescape(inner) } else { Cow::Borrowed(inner) }
    }

    /// The byte under the cursor, after white space.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        match self.text.as_bytes().get(self.at) {
            Some(byte) if *byte > b' ' => Some(*byte),
            Some(_) => self.peek_past_white_space(),
            None => None,
        }
    }

    /// Servers write none, so this is apart from the way that is usually taken.
    #[cold]
    fn peek_past_white_space(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Nothing but white space may follow.
    pub(crate) fn end(&mut self) -> Result<(), Flaw> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(Flaw::new(self.at, What::Trailing)),
        }
    }

    /// Passes one value, only checking it.
    pub(crate) fn skip(&mut self) -> Result<Span, Flaw> {
        self.peek();
        let start = self.at;
        self.value::<false>()?;
        Ok(Span::new(start, self.at))
    }

    /// Passes one value and gives its digest.
    pub(crate) fn digest(&mut self) -> Result<u64, Flaw> {
        self.value::<true>()
    }

    fn value<const DIGEST: bool>(&mut self) -> Result<u64, Flaw> {
        match self.peek() {
            Some(b'"') if DIGEST => self.digested_string(),
            Some(b'"') => self.string().map(|_| 0),
            Some(b'{') => {
                let mut map = MapDigest::default();
                self.map::<DIGEST>(|scanner, member| {
                    let value = scanner.value::<DIGEST>()?;
                    if DIGEST {
                        map.add(member.key_hash, value);
                    }
                    Ok(())
                })?;
                Ok(if DIGEST { map.finish() } else { 0 })
            }
            Some(b'[') => {
                let mut array = digest::ARRAY;
                self.array(|scanner| {
                    let element = scanner.value::<DIGEST>()?;
                    if DIGEST {
                        array = digest::pair(array, element);
                    }
                    Ok(())
                })?;
                Ok(array)
            }
            Some(b'-' | b'0'..=b'9') => self.number::<DIGEST>(),
            Some(b'n') => self.literal("null", digest::NULL),
            Some(b't') => self.literal("true", digest::TRUE),
            Some(b'f') => self.literal("false", digest::FALSE),
            _ => Err(self.unexpected()),
        }
    }

    /// Passes one map, handing out each member with the cursor before its value. Where digests are wanted, a
    /// key that repeats is a flaw.
    pub(crate) fn map<const DIGEST: bool>(
        &mut self,
        mut each: impl FnMut(&mut Self, Member) -> Result<(), Flaw>,
    ) -> Result<Span, Flaw> {
        self.enter(b'{')?;
        let start = self.at - 1;
        let outer_keys = self.keys.len();
        if self.peek() == Some(b'}') {
            self.at += 1;
        } else {
            loop {
                if self.peek() != Some(b'"') {
                    return Err(self.unexpected());
                }
                let key = self.string()?;
                let mut member = Member { key, key_hash: 0 };
                if DIGEST {
                    member.key_hash = self.key_hash(key);
                    self.note_key(member, outer_keys, start)?;
                }
                self.expect(b':')?;
                each(self, member)?;
                if !self.more(b'}')? {
                    break;
                }
            }
        }
        if DIGEST {
            self.forget_keys(outer_keys, start)?;
        }
        self.depth -= 1;
        Ok(Span::new(start, self.at))
    }

    /// Passes one array, with the cursor before each element.
    pub(crate) fn array(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<(), Flaw>,
    ) -> Result<Span, Flaw> {
        self.enter(b'[')?;
        let start = self.at - 1;
        if self.peek() == Some(b']') {
            self.at += 1;
        } else {
            loop {
                each(self)?;
                if !self.more(b']')? {
                    break;
                }
            }
        }
        self.depth -= 1;
        Ok(Span::new(start, self.at))
    }

    /// Passes one string.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Text, Flaw> {
        let start = self.at + 1;
        let end = find_special(self.text.as_bytes(), start);
        self.string_from::<false>(start, end)
    }

    /// Passes one string and gives its digest.
    #[inline]
    fn digested_string(&mut self) -> Result<u64, Flaw> {
        let start = self.at + 1;
        let end = find_special(self.text.as_bytes(), start);
        let text = self.string_from::<true>(start, end)?;
        Ok(digest::string(if text.escaped { &self.unescaped } else { self.slice(text.inner) }))
    }

    /// The string whose first special byte stands at `end`.
    #[inline]
    fn string_from<const UNESCAPE: bool>(&mut self, start: usize, end: usize) -> Result<Text, Flaw> {
        if self.text.as_bytes().get(end) == Some(&b'"') {
            self.at = end + 1;
            return Ok(Text { inner: Span::new(start, end), escaped: false });
        }
        self.string_with_escapes::<UNESCAPE>(start, end)
    }

    /// Passes a string whose first special byte, at `at`, is not the quote that ends it; unescapes it on the way
    /// if it is to be hashed.
    #[inline(never)]
    fn string_with_escapes<const UNESCAPE: bool>(&mut self, start: usize, at: usize) -> Result<Text, Flaw> {
        let bytes = self.text.as_bytes();
        let (mut from, mut at) = (start, at);
        self.unescaped.clear();
        loop {
            if UNESCAPE {
                self.unescaped.push_str(self.text.get(from..at).unwrap_or_default());
            }
            match bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok(Text { inner: Span::new(start, at), escaped: true });
                }
                Some(b'\\') => {
                    let (character, next) = read_escape(bytes, at)?;
                    if UNESCAPE {
                        self.unescaped.push(character);
                    }
                    from = next;
                    at = find_special(bytes, next);
                }
                Some(_) => return Err(Flaw::new(at, What::ControlCharacter)),
                None => return Err(Flaw::new(at, What::Ends)),
            }
        }
    }

    #[inline]
    pub(crate) fn string_digest(&mut self, text: Text) -> u64 {
        let inner = self.slice(text.inner);
        if !text.escaped {
            return digest::string(inner);
        }
        self.unescaped.clear();
        unescape_into(inner, &mut self.unescaped);
        digest::string(&self.unescaped)
    }

    #[inline]
    fn key_hash(&self, key: Text) -> u64 {
        let inner = self.slice(key.inner);
        if !key.escaped {
            return digest::key_hash(inner);
        }
        digest::key_hash(&unescape(inner))
    }

    fn number<const DIGEST: bool>(&mut self) -> Result<u64, Flaw> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let negative = bytes.get(self.at) == Some(&b'-');
        self.at += usize::from(negative);
        let mut magnitude = Some(0_u64);
        if bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            let digits_start = self.at;
            while let Some(digit @ b'0'..=b'9') = bytes.get(self.at) {
                magnitude = magnitude
                    .and_then(|number| number.checked_mul(10))
                    .and_then(|number| number.checked_add(u64::from(digit - b'0')));
                self.at += 1;
            }
            if self.at == digits_start {
                return Err(self.unexpected());
            }
        }
        let integer_end = self.at;
        if bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(bytes.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        // As API servers and serde_json see it: what fits 64 bits is exact, everything else is an f64.
        let limit = if negative { 1 << 63 } else { u64::MAX };
        match magnitude.filter(|magnitude| self.at == integer_end && *magnitude <= limit) {
            Some(magnitude) => Ok(if DIGEST { digest::integer(magnitude, negative) } else { 0 }),
            None => match self.slice(Span::new(start, self.at)).parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(if DIGEST { digest::float(number) } else { 0 }),
                _ => Err(Flaw::new(start, What::OutOfRange)),
            },
        }
    }

    fn digits(&mut self) -> Result<(), Flaw> {
        let start = self.at;
        while self.text.as_bytes().get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start { Err(self.unexpected()) } else { Ok(()) }
    }

    fn literal(&mut self, word: &str, digest: u64) -> Result<u64, Flaw> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(digest);
        }
        self.at += rest.iter().zip(word.bytes()).take_while(|(is, should)| **is == *should).count();
        Err(self.unexpected())
    }

    fn enter(&mut self, open: u8) -> Result<(), Flaw> {
        if self.peek() != Some(open) {
            return Err(self.unexpected());
        }
        if self.depth >= self.deepest {
            return Err(Flaw::new(self.at, What::TooDeep { limit: self.deepest }));
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    fn expect(&mut self, byte: u8) -> Result<(), Flaw> {
        if self.peek() != Some(byte) {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(())
    }

    /// Whether a comma follows (true) or the closing bracket.
    fn more(&mut self, close: u8) -> Result<bool, Flaw> {
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.unexpected()),
        }
    }

    #[cold]
    fn unexpected(&self) -> Flaw {
        Flaw::new(self.at, if self.at < self.text.len() { What::Unexpected } else { What::Ends })
    }

    #[inline]
    fn note_key(&mut self, member: Member, outer_keys: usize, map_start: usize) -> Result<(), Flaw> {
        let siblings = self.keys.get(outer_keys..).unwrap_or_default();
        if siblings.len() < FEW_MEMBERS && siblings.contains(&member.key_hash) {
            self.confirm_repeated_key(map_start)?;
        }
        self.keys.push(member.key_hash);
        Ok(())
    }

    #[inline]
    fn forget_keys(&mut self, outer_keys: usize, map_start: usize) -> Result<(), Flaw> {
        let siblings = self.keys.get_mut(outer_keys..).unwrap_or_default();
        if siblings.len() > FEW_MEMBERS {
            siblings.sort_unstable();
            if siblings.array_windows().any(|[one, next]| one == next) {
                self.confirm_repeated_key(map_start)?;
            }
        }
        self.keys.truncate(outer_keys);
        Ok(())
    }

    /// Two keys of one map have the same hash: finds the one that stands there twice, if it is not chance.
    #[cold]
    fn confirm_repeated_key(&self, map_start: usize) -> Result<(), Flaw> {
        let mut again = Self::over_text(self.text, DEEPEST);
        again.at = map_start;
        let mut seen = BTreeSet::new();
        let mut repeated = None;
        // The map may still be incomplete or broken further on; only what was found counts here.
        let _ = again.map::<false>(|scanner, member| {
            if !seen.insert(scanner.unescaped(member.key)) {
                repeated = Some(Flaw::new(member.start(), What::Duplicate));
                return Err(Flaw::new(member.start(), What::Duplicate));
            }
            scanner.skip().map(|_| ())
        });
        repeated.map_or(Ok(()), Err)
    }
}
