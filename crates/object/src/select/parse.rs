//! The query form of label selectors, and what keys and values may look like.

use super::BadSelector;
use super::label::{Operator, Requirement};

/// `[prefix/]name`: the prefix a DNS subdomain, the name at most 63 characters.
pub(super) fn check_key(key: &str) -> Result<(), String> {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if !is_name(name) {
        return Err(
            "a label's name is 1 to 63 letters, digits, '-', '_' or '.', and begins and ends with a \
                    letter or digit"
                .to_owned(),
        );
    }
    if prefix.is_some_and(|prefix| !is_subdomain(prefix)) {
        return Err("a label's prefix is a DNS subdomain of at most 253 characters".to_owned());
    }
    Ok(())
}

/// Empty, or like the name in a key.
pub(super) fn check_value(value: &str) -> Result<(), String> {
    if value.is_empty() || is_name(value) {
        return Ok(());
    }
    Err("a label's value is at most 63 letters, digits, '-', '_' or '.', and begins and ends with a letter or \
         digit"
        .to_owned())
}

fn is_name(text: &str) -> bool {
    text.len() <= 63
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.ends_with(|last: char| last.is_ascii_alphanumeric())
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253
        && text.split('.').all(|label| {
            !label.is_empty()
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}

/// Reads `a=b,c!=d,x in (y,z),w notin (v),e,!n,m>1`.
pub(super) fn label_query(query: &str) -> Result<Vec<Requirement>, BadSelector> {
    let mut reader = Reader { query, at: 0 };
    let mut requirements = Vec::new();
    if reader.peek().is_none() {
        return Ok(requirements);
    }
    loop {
        requirements.push(reader.requirement()?);
        match reader.peek() {
            None => return Ok(requirements),
            Some(',') => reader.at += 1,
            Some(_) => return Err(reader.wrong("a comma should stand here")),
        }
    }
}

struct Reader<'q> {
    query: &'q str,
    at: usize,
}

impl<'q> Reader<'q> {
    fn rest(&self) -> &'q str {
        self.query.get(self.at..).unwrap_or_default()
    }

    fn peek(&mut self) -> Option<char> {
        self.at = self.query.len() - self.rest().trim_start().len();
        self.rest().chars().next()
    }

    fn takes(&mut self, token: &str) -> bool {
        self.peek();
        let taken = self.rest().starts_with(token);
        if taken {
            self.at += token.len();
        }
        taken
    }

    fn word(&mut self) -> &'q str {
        self.peek();
        let rest = self.rest();
        let special = |character: char| character.is_whitespace() || "=!<>(),".contains(character);
        let word = rest.split(special).next().unwrap_or_default();
        self.at += word.len();
        word
    }

    fn wrong(&self, what: &str) -> BadSelector {
        BadSelector::new(format!("character {} of the query", self.at), what)
    }

    fn requirement(&mut self) -> Result<Requirement, BadSelector> {
        let missing = self.takes("!");
        self.peek();
        let start = self.at;
        let key = self.word();
        let (operator, values) =
            if missing { (Operator::DoesNotExist, Vec::new()) } else { self.operator()? };
        Requirement::new(key, operator, values)
            .map_err(|error| BadSelector::new(format!("character {start} of the query"), error.what))
    }

    fn operator(&mut self) -> Result<(Operator, Vec<String>), BadSelector> {
        for (token, operator) in [
            ("==", Operator::In),
            ("=", Operator::In),
            ("!=", Operator::NotIn),
            (">", Operator::GreaterThan),
            ("<", Operator::LessThan),
        ] {
            if self.takes(token) {
                return Ok((operator, vec![self.word().to_owned()]));
            }
        }
        match self.peek() {
            None | Some(',') => return Ok((Operator::Exists, Vec::new())),
            Some(_) => {}
        }
        match self.word() {
            "in" => Ok((Operator::In, self.values()?)),
            "notin" => Ok((Operator::NotIn, self.values()?)),
            _ => Err(self.wrong("'=', '!=', 'in', 'notin', '<' or '>' should follow the key")),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, BadSelector> {
        if !self.takes("(") {
            return Err(self.wrong("'(' should stand here"));
        }
        let mut values = Vec::new();
        loop {
            values.push(self.word().to_owned());
            if self.takes(")") {
                return Ok(values);
            }
            if !self.takes(",") {
                return Err(self.wrong("a comma or ')' should stand here"));
            }
        }
    }
}
