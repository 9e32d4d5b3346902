//! Field selectors.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use super::BadSelector;
use crate::object::{HeadOnly, Object};

/// A field selector: all its terms must hold, so that the empty one selects everything.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

/// What a field selector asks of one field.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FieldTerm {
    /// The field's path, such as `metadata.name`.
    pub path: String,
    /// Whether the value must be equal; else it must differ.
    pub equal: bool,
    /// The value. A field that is missing has the empty one.
    pub value: String,
}

impl FieldSelector {
    /// The selector of the one object with this name.
    pub fn name(name: &str) -> Self {
        Self::new([FieldTerm { path: "metadata.name".to_owned(), equal: true, value: name.to_owned() }])
    }

    /// The selector of these terms.
    pub fn new(terms: impl IntoIterator<Item = FieldTerm>) -> Self {
        let mut terms: Vec<_> = terms.into_iter().collect();
        terms.sort();
        terms.dedup();
        Self { terms }
    }

    /// What it asks, sorted.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// Whether it selects this object. What is not kept of an object cannot be compared.
    pub fn matches(&self, object: &Object) -> Result<bool, HeadOnly> {
        for term in &self.terms {
            let value = match term.path.as_str() {
                "metadata.name" => Cow::Borrowed(object.key.name.as_str()),
                "metadata.namespace" => Cow::Borrowed(object.key.namespace.as_str()),
                path if !path.starts_with("metadata.") && !object.is_whole() => {
                    return Err(HeadOnly(object.key.clone()));
                }
                path => field(object, path),
            };
            if (value == term.value) != term.equal {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// As the value of the query parameter `fieldSelector`, not yet percent-encoded.
    pub fn to_query(&self) -> String {
        self.to_string()
    }
}

/// A field's value as text; empty for what is missing or has members of its own.
fn field<'o>(object: &'o Object, path: &str) -> Cow<'o, str> {
    let path: Vec<_> = path.split('.').collect();
    match object.get(&path) {
        Some(value) if value.is_map() || value.is_array() || value.is_null() => Cow::default(),
        Some(value) => value.as_str().unwrap_or(Cow::Borrowed(value.json())),
        None => Cow::default(),
    }
}

impl FromStr for FieldSelector {
    type Err = BadSelector;

    /// Reads `a.b=c,d==e,f!=g`, where a backslash stands before a comma, an equals sign or a backslash that
    /// belongs to a value.
    fn from_str(query: &str) -> Result<Self, BadSelector> {
        let mut terms = Vec::new();
        for (index, term) in split_unescaped(query).into_iter().enumerate() {
            if term.trim().is_empty() {
                continue;
            }
            let position = format!("term {index} of the query");
            let cut = term.find(['=', '!']).unwrap_or(term.len());
            let (path, rest) = term.split_at(cut);
            let operators = [("==", true), ("!=", false), ("=", true)];
            let found = operators.iter().find_map(|(token, equal)| Some((*equal, rest.strip_prefix(token)?)));
            let Some((equal, value)) = found else {
                return Err(BadSelector::new(position, "'=', '==' or '!=' should follow the field's path"));
            };
            if path.is_empty() {
                return Err(BadSelector::new(position, "the field's path is missing"));
            }
            let value = unescape(value).map_err(|what| BadSelector::new(position, what))?;
            terms.push(FieldTerm { path: path.to_owned(), equal, value });
        }
        Ok(Self::new(terms))
    }
}

fn split_unescaped(query: &str) -> Vec<&str> {
    let mut escaped = false;
    query
        .split(|character| {
            let splits = character == ',' && !escaped;
            escaped = character == '\\' && !escaped;
            splits
        })
        .collect()
}

fn unescape(value: &str) -> Result<String, &'static str> {
    let mut text = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => text.push(escaped),
                _ => return Err("a backslash may stand only before ',', '=' or another one"),
            },
            '=' => return Err("an equals sign in a value needs a backslash before it"),
            plain => text.push(plain),
        }
    }
    Ok(text)
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let operator = if term.equal { "=" } else { "!=" };
            let value = term.value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
            write!(f, "{comma}{}{operator}{value}", term.path)?;
        }
        Ok(())
    }
}
