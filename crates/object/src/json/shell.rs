//! The outer structure of a list page or a watch line, whose parts are read by others.

use super::scan::Span;
use super::text::{HIGH, LOW};
use crate::malformed::{Flaw, What};

/// Walks the outermost map or array of some bytes. Brackets, commas, colons and keys are checked here; what a
/// value holds is not, so that one bad item of a list harms only itself.
pub(crate) struct Shell<'a> {
    bytes: &'a [u8],
    at: usize,
    close: u8,
    first: bool,
}

impl<'a> Shell<'a> {
    /// The map that the bytes hold.
    pub(crate) fn map(bytes: &'a [u8]) -> Result<Self, Flaw> {
        Self::open(bytes, 0, b'{', b'}', "an object")
    }

    /// The array that begins at or after `at`.
    pub(crate) fn array(bytes: &'a [u8], at: usize) -> Result<Self, Flaw> {
        Self::open(bytes, at, b'[', b']', "an array")
    }

    fn open(bytes: &'a [u8], at: usize, open: u8, close: u8, what: &'static str) -> Result<Self, Flaw> {
        let mut shell = Self { bytes, at, close, first: true };
        match shell.peek() {
            Some(byte) if byte == open => shell.at += 1,
            Some(_) => return Err(Flaw::new(shell.at, What::Expected(what))),
            None => return Err(Flaw::new(shell.at, What::Ends)),
        }
        Ok(shell)
    }

    /// The next member: its key as written, without quotes, and where its value stands.
    pub(crate) fn member(&mut self) -> Result<Option<(&'a [u8], Span)>, Flaw> {
        if !self.another()? {
            return Ok(None);
        }
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.unexpected());
        }
        self.at = string_end(self.bytes, start + 1)?;
        let key = self.bytes.get(start + 1..self.at - 1).unwrap_or_default();
        if self.peek() != Some(b':') {
            return Err(self.unexpected());
        }
        self.at += 1;
        self.value().map(|value| Some((key, value)))
    }

    /// The next element.
    pub(crate) fn element(&mut self) -> Result<Option<Span>, Flaw> {
        if self.another()? { self.value().map(Some) } else { Ok(None) }
    }

    /// Nothing may follow.
    pub(crate) fn end(&mut self) -> Result<(), Flaw> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(Flaw::new(self.at, What::Trailing)),
        }
    }

    fn value(&mut self) -> Result<Span, Flaw> {
        self.peek();
        let start = self.at;
        self.at = skip_unchecked(self.bytes, start)?;
        if self.at == start { Err(self.unexpected()) } else { Ok(Span::new(start, self.at)) }
    }

    /// Whether a value follows, past the comma before it; else the shell is closed.
    fn another(&mut self) -> Result<bool, Flaw> {
        let first = std::mem::take(&mut self.first);
        match self.peek() {
            Some(byte) if byte == self.close => {
                self.at += 1;
                Ok(false)
            }
            Some(b',') if !first => {
                self.at += 1;
                match self.peek() {
                    Some(byte) if byte != self.close => Ok(true),
                    _ => Err(self.unexpected()),
                }
            }
            Some(_) if first => Ok(true),
            _ => Err(self.unexpected()),
        }
    }

    fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    #[cold]
    fn unexpected(&self) -> Flaw {
        Flaw::new(self.at, if self.at < self.bytes.len() { What::Unexpected } else { What::Ends })
    }
}

/// The end of the value that begins at `at`, found by its brackets and quotes alone. What is inside is not
/// checked: whoever reads it does that, so that one bad item of a list harms only itself.
pub(crate) fn skip_unchecked(bytes: &[u8], at: usize) -> Result<usize, Flaw> {
    let mut open = 0_usize;
    let mut at = at;
    loop {
        match bytes.get(at) {
            None => return Err(Flaw::new(at, What::Ends)),
            Some(b'"') => {
                at = string_end(bytes, at + 1)?;
                if open == 0 {
                    return Ok(at);
                }
            }
            Some(b'{' | b'[') => {
                open += 1;
                at += 1;
            }
            Some(b'}' | b']') => {
                if open == 0 {
                    return Ok(at);
                }
                open -= 1;
                at += 1;
                if open == 0 {
                    return Ok(at);
                }
            }
            Some(b',' | b' ' | b'\n' | b'\r' | b'\t') if open == 0 => return Ok(at),
            Some(_) => at += 1,
        }
    }
}

pub(super) fn string_end(bytes: &[u8], mut at: usize) -> Result<usize, Flaw> {
    // Most strings are keys and names, shorter than what it takes to set out for the end of a long one.
    if let Some(end) = near_end(bytes, at) {
        return Ok(end);
    }
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        match memchr::memchr2(b'"', b'\\', rest) {
            Some(found) if rest.get(found) == Some(&b'"') => return Ok(at + found + 1),
            Some(found) => at += found + 2,
            None => return Err(Flaw::new(bytes.len(), What::Ends)),
        }
    }
}

/// The end of a string that has its quote among the next bytes, and no backslash before it.
#[inline]
fn near_end(bytes: &[u8], at: usize) -> Option<usize> {
    for word in 0..3 {
        let at = at + 8 * word;
        let word = u64::from_le_bytes(*bytes.get(at..)?.first_chunk::<8>()?);
        let (quote, backslash) = (zero_bytes(word ^ (LOW * 0x22)), zero_bytes(word ^ (LOW * 0x5c)));
        // Below the first byte that is found nothing is found by mistake.
        if quote | backslash != 0 {
            let first = (quote | backslash).trailing_zeros();
            return (quote.trailing_zeros() == first).then_some(at + (first / 8) as usize + 1);
        }
    }
    None
}

/// The high bit of each byte that is zero; above the first such byte perhaps others.
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(LOW) & !word & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_ends_at_its_own_quote_however_long_it_is() {
        for length in 0..40 {
            for after in ["", ",", "\",\"next\":\"x\\y\""] {
                let plain = "x".repeat(length);
                let json = format!("{plain}\"{after}");
                assert_eq!(string_end(json.as_bytes(), 0).unwrap(), length + 1, "{json}");
                for (escaped, bytes) in [("\\\"", 2), ("\\\\", 2), ("\\n", 2)] {
                    let json = format!("{plain}{escaped}{plain}\"{after}");
                    assert_eq!(string_end(json.as_bytes(), 0).unwrap(), 2 * length + bytes + 1, "{json}");
                }
            }
            assert!(string_end("x".repeat(length).as_bytes(), 0).is_err());
        }
        // Bytes that differ from a quote by one bit, and characters of several bytes.
        assert_eq!(string_end("#!#\u{22}".as_bytes(), 0).unwrap(), 4);
        assert_eq!(string_end("é€😀é\",".as_bytes(), 0).unwrap(), 12);
    }
}
