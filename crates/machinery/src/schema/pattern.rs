//! Regular expressions of schemas and rules: users' text that the server compiles and runs.
//!
//! Servers in Go read `\d`, `\w` and `\s` as ASCII, and so do patterns here. That also keeps them small: a class of all
//! letters of all languages takes kilobytes, each time it stands somewhere. What compiles to too much is refused.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

/// The sizes to which one pattern may compile, tried one after the other: it costs the first that holds it.
const SIZES_BYTES: [usize; 6] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// All patterns of one schema together.
const MOST_OF_SCHEMA_BYTES: usize = 16 << 20;
/// What one pattern may keep of what it has met in texts.
const MET_BYTES: usize = 256 << 10;
/// So many patterns of rules are kept compiled in each thread, and each of them may be so large.
const KEPT_OF_RULES: usize = 32;
const RULE_BYTES: usize = 64 << 10;
/// What looking for the patterns of all rules of one object may cost.
const MOST_OF_RULES: u64 = 1_500_000;

/// Why a pattern cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It is none.
    Wrong(String),
    TooLarge,
    /// Looking for it, and for others, takes too long.
    TooLong,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(why) => f.write_str(why),
            Self::TooLarge => f.write_str("it is too large"),
            Self::TooLong => f.write_str("it is looked for in too much text"),
        }
    }
}

/// A pattern, compiled; told as it was written.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    written: Arc<str>,
    compiled: Regex,
    /// What it compiles to.
    bytes: usize,
}

impl Pattern {
    /// What it costs to look for it in a text. At worst each of its states is looked at for each letter.
    pub(super) fn cost(&self, text: &str) -> u64 {
        cost(self.bytes, text)
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.compiled.is_match(text)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// The patterns of one schema, each of which is compiled once.
#[derive(Default)]
pub(crate) struct Patterns {
    compiled: HashMap<Arc<str>, Pattern>,
    bytes: usize,
}

impl Patterns {
    /// A pattern, compiled; nothing if all of them together would be too large.
    pub(crate) fn compile(&mut self, pattern: &str) -> Result<Pattern, Unusable> {
        if let Some(known) = self.compiled.get(pattern) {
            return Ok(known.clone());
        }
        let (compiled, bytes) = sized(pattern, usize::MAX)?;
        self.bytes += bytes;
        if self.bytes > MOST_OF_SCHEMA_BYTES {
            return Err(Unusable::TooLarge);
        }
        let pattern = Pattern { written: pattern.into(), compiled, bytes };
        self.compiled.insert(pattern.written.clone(), pattern.clone());
        Ok(pattern)
    }
}

fn cost(pattern_bytes: usize, text: &str) -> u64 {
    const STEP: u64 = 32 << 10;
    1 + (pattern_bytes as u64).saturating_mul(text.len() as u64) / STEP
}

thread_local! {
    /// The patterns of rules that were met last.
    static MET: RefCell<HashMap<String, (Regex, usize)>> = RefCell::default();
    /// What the rules of the object that this thread looks at may still cost.
    static LEFT: Cell<u64> = const { Cell::new(MOST_OF_RULES) };
}

/// From here on it is about the rules of another object.
pub(super) fn begin() {
    LEFT.set(MOST_OF_RULES);
}

/// Whether a text has the pattern of a rule.
pub(super) fn is_match(pattern: &str, text: &str) -> Result<bool, Unusable> {
    let (compiled, bytes) = met(pattern)?;
    spend(cost(bytes, text))?;
    Ok(compiled.is_match(text))
}

/// What of a text has the pattern of a rule first.
pub(super) fn find<'t>(pattern: &str, text: &'t str) -> Result<&'t str, Unusable> {
    let (compiled, bytes) = met(pattern)?;
    spend(cost(bytes, text))?;
    Ok(compiled.find(text).map_or("", |found| found.as_str()))
}

/// So much of a text has the pattern of a rule. Each time it is looked for, all that is left may be looked through.
pub(super) fn find_all<'t>(pattern: &str, text: &'t str, most: usize) -> Result<Vec<&'t str>, Unusable> {
    let (compiled, bytes) = met(pattern)?;
    let each = cost(bytes, text);
    spend(each)?;
    compiled.find_iter(text).take(most).map(|found| spend(each).map(|()| found.as_str())).collect()
}

fn spend(steps: u64) -> Result<(), Unusable> {
    let left = LEFT.get().checked_sub(steps);
    LEFT.set(left.unwrap_or_default());
    left.map(|_| ()).ok_or(Unusable::TooLong)
}

/// A pattern of a rule, which is part of its text or of the value: it is compiled when it is met first.
fn met(pattern: &str) -> Result<(Regex, usize), Unusable> {
    if let Some(known) = MET.with_borrow(|met| met.get(pattern).cloned()) {
        return Ok(known);
    }
    let compiled = sized(pattern, RULE_BYTES)?;
    MET.with_borrow_mut(|met| {
        if met.len() >= KEPT_OF_RULES {
            met.clear();
        }
        met.insert(pattern.to_owned(), compiled.clone());
    });
    Ok(compiled)
}

/// A pattern, compiled, and about the size of it.
fn sized(pattern: &str, most_bytes: usize) -> Result<(Regex, usize), Unusable> {
    let pattern = in_ascii(pattern);
    for size in SIZES_BYTES.into_iter().filter(|size| *size <= most_bytes) {
        match compile(&pattern, size) {
            Ok(compiled) => return Ok((compiled, size)),
            Err(Unusable::TooLarge) => {}
            Err(wrong) => return Err(wrong),
        }
    }
    Err(Unusable::TooLarge)
}

fn compile(pattern: &str, most_bytes: usize) -> Result<Regex, Unusable> {
    RegexBuilder::new(pattern).size_limit(most_bytes).dfa_size_limit(MET_BYTES).build().map_err(|error| {
        match error {
            regex::Error::CompiledTooBig(_) => Unusable::TooLarge,
            error => Unusable::Wrong(error.to_string()),
        }
    })
}

/// A pattern of Go as this library has to be told it: classes are of ASCII, and in brackets nothing has a meaning that it has not
/// there as well.
fn in_ascii(pattern: &str) -> String {
    let mut told = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    let mut in_brackets = false;
    while let Some(letter) = rest.next() {
        match letter {
            '\\' => {
                let Some(escaped) = rest.next() else {
                    told.push('\\');
                    break;
                };
                match class(escaped) {
                    Some(class) => {
                        told.push_str(class);
                        // A dash after a class stands for itself there; here it would have to be a range.
                        if in_brackets && rest.next_if_eq(&'-').is_some() {
                            told.push_str("\\-");
                        }
                    }
                    None if escaped == 'b' && !in_brackets => told.push_str("(?-u:\\b)"),
                    None => told.extend(['\\', escaped]),
                }
            }
            '[' if !in_brackets => {
                in_brackets = true;
                told.push('[');
                told.extend(rest.next_if_eq(&'^'));
                told.extend(rest.next_if_eq(&']').map(|_| "\\]"));
            }
            // A class by its name, such as [:alpha:].
            '[' if rest.peek() == Some(&':') => {
                told.push('[');
                for letter in rest.by_ref() {
                    told.push(letter);
                    if letter == ']' {
                        break;
                    }
                }
            }
            '[' | '&' | '~' if in_brackets => told.extend(['\\', letter]),
            ']' => {
                in_brackets = false;
                told.push(']');
            }
            other => told.push(other),
        }
    }
    told
}

/// A class of letters, which may stand in brackets as well.
fn class(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        's' => "[\\t\\n\\x0C\\r ]",
        'S' => "[^\\t\\n\\x0C\\r ]",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_to_servers_in_go() {
        let table: [(&str, &[&str], &[&str]); 12] = [
            (r"^\d+$", &["042"], &["", "٤٢", "x"]),
            (r"^\w+$", &["a_Z9"], &["é", "-"]),
            (r"^\s$", &[" ", "\t"], &["\u{a0}", "\u{b}"]),
            (r"^\D\W\S$", &["a-b", "٤é\u{a0}"], &["0-b", "aab"]),
            (r"^[\w-.]+$", &["a-b.c"], &["a b"]),
            (r"^[\d\-]+$", &["1-2"], &["a"]),
            (r"^[^\s]+$", &["ab", "\u{a0}"], &["a b"]),
            (r"^[[&~]+$", &["[&~"], &["a"]),
            (r"^[]a]+$", &["]a"], &["b"]),
            (r"^[^]a]+$", &["bc"], &["]"]),
            (r"^[[:alpha:]\d]+$", &["a1"], &["-"]),
            (r"\ba\b", &["x a y", "éa"], &["xay"]),
        ];
        for (pattern, meant, other) in table {
            let compiled =
                Patterns::default().compile(pattern).unwrap_or_else(|why| panic!("{pattern}: {why}"));
            assert_eq!(compiled.to_string(), pattern);
            for text in meant {
                assert!(compiled.is_match(text), "{compiled:?}: {text:?}");
            }
            for text in other {
                assert!(!compiled.is_match(text), "{compiled:?}: not {text:?}");
            }
        }
    }

    #[test]
    fn what_compiles_to_too_much_is_refused_alone_and_together() {
        let refused = |pattern: &str| Patterns::default().compile(pattern).map(|_| ()).err();
        assert_eq!(refused(r"(\pL{900}){900}"), Some(Unusable::TooLarge));
        assert!(matches!(refused("("), Some(Unusable::Wrong(_))));
        assert!(matches!(refused("a\\"), Some(Unusable::Wrong(_))));
        assert_eq!(refused(r"^\w{150}$"), None, "60 of these once took half a gigabyte");

        let mut patterns = Patterns::default();
        for _ in 0..1000 {
            patterns.compile(r"^\pL{30}$").unwrap();
        }
        assert_eq!(patterns.compiled.len(), 1, "one that stands in many places is there once");
        let many = (0..2000).map(|number| patterns.compile(&format!(r"^{number}\pL{{9}}$")));
        assert!(many.into_iter().any(|compiled| compiled.is_err()), "{} bytes", patterns.bytes);
    }

    #[test]
    fn patterns_of_rules_are_kept_while_they_are_few() {
        for round in 0..3 * KEPT_OF_RULES {
            assert_eq!(is_match(&format!("^{round}$"), &round.to_string()), Ok(true));
        }
        assert_eq!(is_match(r"\pL{900}", ""), Err(Unusable::TooLarge));
    }

    #[test]
    fn looking_for_a_pattern_costs_by_its_size_and_by_that_of_the_text() {
        let (short, long) = ("x".repeat(250), "ab".repeat(500_000));
        let patterns = [r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "[ab]*a[ab]{50}", "[ab]*a[ab]{5000}"];
        let costs = patterns.map(|pattern| {
            let pattern = Patterns::default().compile(pattern).unwrap();
            (pattern.cost(&short), pattern.cost(&long))
        });
        assert!(costs[0].0 < 50 && costs[0].1 < MOST_OF_RULES / 10, "{costs:?}");
        assert!(costs[1].1 < MOST_OF_RULES && costs[2].1 > 10 * MOST_OF_RULES, "{costs:?}");
        begin();
        // A letter that is not there is looked for to the end, after each of those that are.
        let found = find_all("a[^c]*c|a", &long, usize::MAX);
        assert_eq!(found.err(), Some(Unusable::TooLong));
        assert_eq!(is_match("a", &long), Err(Unusable::TooLong), "nothing is left for this object");
        begin();
        assert_eq!(is_match("a", &long), Ok(true));
        assert_eq!(find_all("[0-9]+", "1, 23", 9), Ok(vec!["1", "23"]));
    }
}
