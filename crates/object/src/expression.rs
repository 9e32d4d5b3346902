//! Which expressions (CEL) are small enough to be parsed, told from their text alone.
//!
//! The parsers in use call themselves for every level, so that a text made for it could exhaust the stack of the
//! process that reads it.

use std::fmt;

/// The longest expression, in bytes; schemas say the same.
pub const LONGEST_BYTES: usize = 4096;
/// How deep an expression may lead, in steps of one operator each.
///
/// Measured with the parser in use, not optimized: an operator or a selection that stands in a row with others takes 35 KiB
/// of the stack, a bracket 170 KiB, and the least stack that a thread has here is 2 MiB. What `&&`, `||` and commas join
/// stands side by side and costs nothing.
pub const DEEPEST: usize = 40;
const BRACKET: usize = 5;

/// Why an expression is not parsed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TooLarge {
    /// The text is too long.
    Long,
    /// Brackets within brackets, or too many operators in a row.
    Deep,
    /// It is no expression: brackets or quotes do not fit.
    Unclear,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Long => write!(f, "it is longer than {LONGEST_BYTES} bytes"),
            Self::Deep => write!(
                f,
                "its brackets are nested too deep, or more than {DEEPEST} operators stand in a row without && or ||"
            ),
            Self::Unclear => f.write_str("its brackets or quotes do not fit"),
        }
    }
}

/// One level of brackets.
#[derive(Default)]
struct Level {
    /// Operators since the last `&&`, `||` or comma,
    row: usize,
    /// and the deepest bracket among them.
    inside: usize,
    /// The deepest of the rows that are over.
    deepest: usize,
}

impl Level {
    fn end_row(&mut self) {
        self.deepest = self.deepest.max(self.row + self.inside);
        (self.row, self.inside) = (0, 0);
    }

    fn ended(mut self) -> usize {
        self.end_row();
        self.deepest
    }
}

/// Refuses what a parser that calls itself for every level could be made to fall over.
pub fn check_size(text: &str) -> Result<(), TooLarge> {
    if text.len() > LONGEST_BYTES {
        return Err(TooLarge::Long);
    }
    let mut open = Vec::new();
    let mut level = Level::default();
    let (mut rest, mut before) = (text.as_bytes(), b' ');
    while let [byte, after @ ..] = rest {
        rest = after;
        match byte {
            b'"' | b'\'' => rest = literal::after(text, rest, *byte).ok_or(TooLarge::Unclear)?,
            b'/' if after.first() == Some(&b'/') => rest = literal::after_comment(rest),
            // Names in them may look like anything.
            b'`' => return Err(TooLarge::Unclear),
            b'(' | b'[' | b'{' => {
                // A call or an index stands in a row with what is called.
                level.row += usize::from(before.is_ascii_alphanumeric() || b"_)]}\"'".contains(&before));
                open.push(std::mem::take(&mut level));
                if open.len() * BRACKET > DEEPEST {
                    return Err(TooLarge::Deep);
                }
            }
            b')' | b']' | b'}' => {
                let around = open.pop().ok_or(TooLarge::Unclear)?;
                let inside = BRACKET + std::mem::replace(&mut level, around).ended();
                level.inside = level.inside.max(inside);
            }
            b',' => level.end_row(),
            b'&' | b'|' if before == *byte => level.end_row(),
            // The second sign of `==` and its like is no operator of its own; of `!!` it is one.
            b'=' if matches!(before, b'=' | b'!' | b'<' | b'>') => {}
            _ => level.row += usize::from(b"+-*/%!<>=?:.".contains(byte)),
        }
        if !byte.is_ascii_whitespace() {
            before = *byte;
        }
    }
    if !open.is_empty() {
        return Err(TooLarge::Unclear);
    }
    if level.ended() > DEEPEST { Err(TooLarge::Deep) } else { Ok(()) }
}

/// Where literals end, exactly as the parser's grammar has it: what looked like a text and is none would hide what is in it.
mod literal {
    const ESCAPED: &[u8] = br#"abfnrtv"'\?`"#;

    /// What follows a literal whose first quote was just read. None: it is none, and the parser would look into it.
    pub(super) fn after<'t>(text: &str, rest: &'t [u8], quote: u8) -> Option<&'t [u8]> {
        let before = &text.as_bytes()[..text.len() - rest.len() - 1];
        let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let prefix = &before[before.len() - before.iter().rev().take_while(is_word).count()..];
        let raw = match prefix {
            b"" | b"b" | b"B" => false,
            b"r" | b"R" | b"br" | b"bR" | b"Br" | b"BR" => true,
            _ => return None,
        };
        match rest.strip_prefix(&[quote; 2]) {
            Some(inside) => end(inside, &[quote; 3], raw, true),
            None => end(rest, &[quote], raw, false),
        }
    }

    fn end<'t>(mut rest: &'t [u8], mark: &[u8], raw: bool, lines: bool) -> Option<&'t [u8]> {
        loop {
            if let Some(after) = rest.strip_prefix(mark) {
                return Some(after);
            }
            rest = match rest {
                [b'\\', escape @ ..] if !raw => escaped(escape)?,
                [b'\n' | b'\r', ..] if !lines => return None,
                [_, after @ ..] => after,
                [] => return None,
            };
        }
    }

    /// What follows an escape whose backslash was just read.
    fn escaped(rest: &[u8]) -> Option<&[u8]> {
        let (first, after) = rest.split_first()?;
        let (count, is_digit): (usize, fn(&u8) -> bool) = match first {
            _ if ESCAPED.contains(first) => return Some(after),
            b'x' | b'X' => (2, u8::is_ascii_hexdigit),
            b'u' => (4, u8::is_ascii_hexdigit),
            b'U' => (8, u8::is_ascii_hexdigit),
            b'0'..=b'3' => (2, |byte| (b'0'..=b'7').contains(byte)),
            _ => return None,
        };
        let (digits, after) = after.split_at_checked(count)?;
        digits.iter().all(is_digit).then_some(after)
    }

    /// What follows a comment.
    pub(super) fn after_comment(rest: &[u8]) -> &[u8] {
        rest.iter().position(|byte| *byte == b'\n').map_or(&[], |end| &rest[end..])
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
            "(self.path.type in ['PathPrefix']) ? self.path.value.split('/').all(p, p != '..' && p != '.') : true",
            "self.rules.all(r, !has(r.matches) || r.matches.all(m, !has(m.path) || m.path.value.startsWith('/')))",
        ] {
            assert_eq!(check_size(text), Ok(()), "{text}");
        }
        assert_eq!(check_size(&["self.length > 0"; 200].join(" && ")), Ok(()), "they stand side by side");
        assert_eq!(check_size(&format!("self.name in [{}]", ["'a'"; 500].join(", "))), Ok(()));
    }

    #[test]
    fn what_would_take_a_parser_deep_is_refused_by_its_reason() {
        let nested =
            |open: &str, count: usize, close: &str| format!("{}1{}", open.repeat(count), close.repeat(count));
        assert_eq!(check_size(&" ".repeat(4097)), Err(TooLarge::Long));
        assert_eq!(check_size(&nested("(", 8, ")")), Ok(()));
        assert_eq!(check_size(&nested("(", 9, ")")), Err(TooLarge::Deep));
        assert_eq!(check_size(&nested("[{1:(", 3, ")}]")), Err(TooLarge::Deep));
        assert_eq!(check_size(&"!".repeat(41)), Err(TooLarge::Deep));
        assert_eq!(check_size(&format!("a{}", ".a".repeat(41))), Err(TooLarge::Deep));
        assert_eq!(check_size(&format!("a{}", ".a".repeat(40))), Ok(()));
        assert_eq!(check_size(&format!("a{}", "[0]".repeat(41))), Err(TooLarge::Deep));
        let both = |row: usize| format!("x.all(y, (y{}) > 0)", ".a".repeat(row));
        assert_eq!(check_size(&both(25)), Ok(()));
        assert_eq!(check_size(&both(28)), Err(TooLarge::Deep), "brackets and rows add up");
    }

    #[test]
    fn nothing_deep_hides_in_what_is_no_literal() {
        let deep = format!("{}1{}", "(".repeat(100), ")".repeat(100));
        for literal in
            ["'X'", "\"X\"", "'''a'X'''", r"r'\X'", "b'X'", r"'\'X\u00e9\x41\101'", "r'''\n\\X'''", "1 // X"]
        {
            assert_eq!(check_size(&literal.replace('X', &deep)), Ok(()), "{literal}");
        }
        for hiding in [
            r"r'\' + X + '",
            r"1r'\'X'",
            r"bar'\'X'",
            r"br'\'X'",
            "'X",
            "'\nX'",
            r"'\qX'",
            r"'\8X'",
            r"'\xgX'",
            "'''X'",
            "''' ''X",
            "// '\nX // '",
            "`a//`X",
            "X'",
            ")))X(((",
        ] {
            assert!(check_size(&hiding.replace('X', &deep)).is_err(), "{hiding}");
        }
    }
}
