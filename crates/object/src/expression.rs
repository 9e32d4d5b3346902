//! Which expressions (CEL) are small enough to be parsed, told from their text alone.
//!
//! The parsers in use call themselves for every level, so that a text made for it could exhaust the stack of the
//! process that reads it.

use std::fmt;

/// The longest expression, in bytes; schemas say the same.
pub const LONGEST_BYTES: usize = 4096;
/// Brackets within brackets.
pub const DEEPEST: usize = 6;
/// Operators, selections and calls in one expression.
pub const MOST_OPERATORS: usize = 40;

/// Why an expression is not parsed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TooLarge {
    /// The text is too long.
    Long,
    /// Brackets within brackets.
    Deep,
    /// Too many operators.
    Busy,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Long => write!(f, "it is longer than {LONGEST_BYTES} bytes"),
            Self::Deep => write!(f, "its brackets are nested more than {DEEPEST} deep"),
            Self::Busy => write!(f, "it has more than {MOST_OPERATORS} operators"),
        }
    }
}

/// Refuses what a parser that calls itself for every level could be made to fall over.
pub fn check_size(text: &str) -> Result<(), TooLarge> {
    if text.len() > LONGEST_BYTES {
        return Err(TooLarge::Long);
    }
    let (mut depth, mut deepest, mut operators) = (0_usize, 0, 0);
    let (mut quote, mut before) = (None, b' ');
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (Some(_), b'\\') => drop(bytes.next()),
            (Some(open), _) => quote = quote.filter(|_| byte != open),
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'(' | b'[' | b'{') => {
                depth += 1;
                operators += 1;
                deepest = deepest.max(depth);
            }
            (None, b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            // The second sign of `==` and its like is no operator of its own; of `!!` it is one.
            (None, b'=' | b'&' | b'|') if before == byte || matches!(before, b'!' | b'<' | b'>') => {}
            (None, _) => operators += usize::from(b"+-*/%!<>=&|?:.,".contains(&byte)),
        }
        before = byte;
    }
    match () {
        () if deepest > DEEPEST => Err(TooLarge::Deep),
        () if operators > MOST_OPERATORS => Err(TooLarge::Busy),
        () => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_writes_is_small() {
        for text in [
            "",
            "self.replicas <= self.maximum && self.replicas >= self.minimum",
            "object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
            "'((((((((((' != '[[[[[[[['",
            r#""a \" (((((((((((" == 'b'"#,
        ] {
            assert_eq!(check_size(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_would_take_a_parser_deep_is_refused_by_its_reason() {
        assert_eq!(check_size(&" ".repeat(4097)), Err(TooLarge::Long));
        assert_eq!(check_size(&"(".repeat(7)), Err(TooLarge::Deep));
        assert_eq!(check_size(&"[{(".repeat(3)), Err(TooLarge::Deep));
        assert_eq!(check_size(&"!".repeat(41)), Err(TooLarge::Busy));
        assert_eq!(check_size(&"a==b||".repeat(21)), Err(TooLarge::Busy));
        assert_eq!(check_size(&"a==b||".repeat(20)), Ok(()));
    }
}
