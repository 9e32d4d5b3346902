//! The subset of JSONPath in which Customizers say what to replace.
//!
//! `$`, then any of `.name`, `.0`, `.*`, `[*]`, `['name', "name"]`, `[0, 2]`, `[start:end:step]` with each
//! part optional, and `..` for a value and everything below it. Strings are JavaScript's. There are no
//! filters, no scripts and no negative indices.

mod parse;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde_json::Value;

/// A path into JSON; where it has wildcards, many.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JsonPath {
    selectors: Vec<Selector>,
}

/// A path that cannot be read: at which character, and why.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the path cannot be read at character {at}: {what}")]
pub struct BadJsonPath {
    /// The character, counted from 0.
    pub at: usize,
    /// What is wrong there.
    pub what: &'static str,
}

/// What a replacement did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Replaced {
    /// How many values were replaced.
    pub replaced: usize,
    /// How many members were added.
    pub added: usize,
    /// The first place that a path without wildcards should lead through and that is not there. Nothing was
    /// changed there.
    pub missing: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Selector {
    Names(Vec<String>),
    Indices(Vec<usize>),
    Slice { start: usize, end: Option<usize>, step: usize },
    All,
    Below,
}

/// Where a value stands. Sorted, a value comes before what is below it.
type Location = Vec<Step>;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Step {
    Name(String),
    Index(usize),
}

impl JsonPath {
    /// Replaces what the path leads to by `value`. A path without wildcards may add the last member that it
    /// names; members before that must be there.
    ///
    /// What is put in is not looked into again, although `..` goes on below: else `$..a` with `{"a":1}` would
    /// never end.
    pub fn replace(&self, root: &mut Value, value: &Value) -> Replaced {
        let (found, missing) = self.locate(root);
        let mut outcome = Replaced { missing, ..Replaced::default() };
        let mut last: Option<Location> = None;
        for location in found {
            if last.as_ref().is_some_and(|last| location.starts_with(last)) {
                continue;
            }
            match put(root, &location, value) {
                Some(true) => outcome.added += 1,
                Some(false) => outcome.replaced += 1,
                None => {}
            }
            last = Some(location);
        }
        outcome
    }

    /// What the path leads to, a value before what is below it.
    pub fn find<'v>(&self, root: &'v Value) -> Vec<&'v Value> {
        self.locate(root).0.iter().filter_map(|location| at(root, location)).collect()
    }

    /// Whether it leads to one place for each name and index that it lists, without wildcards.
    pub fn is_definite(&self) -> bool {
        self.selectors.iter().all(|selector| match selector {
            Selector::Names(_) | Selector::Indices(_) => true,
            Selector::Slice { start, end, step } => {
                end.is_some_and(|end| end.saturating_sub(*start) <= *step)
            }
            Selector::All | Selector::Below => false,
        })
    }

    /// Selector by selector, all places reached so far, each once: `$..*..*` costs no more than its places.
    /// The last selector of a definite path also leads to members that could be added.
    fn locate(&self, root: &Value) -> (BTreeSet<Location>, Option<String>) {
        let definite = self.is_definite();
        let mut missing = None;
        let mut reached = BTreeSet::from([Location::new()]);
        for (index, selector) in self.selectors.iter().enumerate() {
            let adds = definite && index + 1 == self.selectors.len();
            let mut next = BTreeSet::new();
            for location in reached {
                let Some(value) = at(root, &location) else { continue };
                for step in selector.steps(value) {
                    let there = child(value, &step).is_some()
                        || (adds && matches!(step, Step::Name(_)) && value.is_object());
                    let mut to = location.clone();
                    to.push(step);
                    if there {
                        next.insert(to);
                    } else if definite && missing.is_none() {
                        missing = Some(written(&to));
                    }
                }
                if *selector == Selector::Below {
                    collect_below(value, location, &mut next);
                }
            }
            reached = next;
        }
        (reached, missing)
    }
}

impl Selector {
    /// The steps from a value that this selector asks for, whether or not they lead anywhere.
    fn steps(&self, value: &Value) -> Vec<Step> {
        match self {
            Self::Names(names) => names.iter().cloned().map(Step::Name).collect(),
            Self::Indices(indices) => indices.iter().copied().map(Step::Index).collect(),
            Self::Slice { start, end, step } => {
                let length = value.as_array().map_or(0, Vec::len);
                let end = end.map_or(length, |end| end.min(length));
                (*start..end).step_by(*step).map(Step::Index).collect()
            }
            Self::All => children(value),
            Self::Below => Vec::new(),
        }
    }
}

fn children(value: &Value) -> Vec<Step> {
    match value {
        Value::Object(members) => members.keys().cloned().map(Step::Name).collect(),
        Value::Array(elements) => (0..elements.len()).map(Step::Index).collect(),
        _ => Vec::new(),
    }
}

fn collect_below(value: &Value, location: Location, reached: &mut BTreeSet<Location>) {
    for step in children(value) {
        if let Some(below) = child(value, &step) {
            let mut to = location.clone();
            to.push(step);
            collect_below(below, to, reached);
        }
    }
    reached.insert(location);
}

fn child<'v>(value: &'v Value, step: &Step) -> Option<&'v Value> {
    match step {
        Step::Name(name) => value.as_object()?.get(name),
        Step::Index(index) => value.as_array()?.get(*index),
    }
}

fn at<'v>(root: &'v Value, location: &[Step]) -> Option<&'v Value> {
    location.iter().try_fold(root, child)
}

/// Puts a value where it belongs; whether that is a new member. `None` if its parent is not there.
fn put(root: &mut Value, location: &[Step], value: &Value) -> Option<bool> {
    let Some((last, above)) = location.split_last() else {
        *root = value.clone();
        return Some(false);
    };
    let parent = above.iter().try_fold(root, |parent, step| match step {
        Step::Name(name) => parent.as_object_mut()?.get_mut(name),
        Step::Index(index) => parent.as_array_mut()?.get_mut(*index),
    })?;
    match last {
        Step::Name(name) => Some(parent.as_object_mut()?.insert(name.clone(), value.clone()).is_none()),
        Step::Index(index) => {
            *parent.as_array_mut()?.get_mut(*index)? = value.clone();
            Some(false)
        }
    }
}

fn written(location: &[Step]) -> String {
    let steps = location.iter().map(|step| match step {
        Step::Name(name) => Selector::Names(vec![name.clone()]),
        Step::Index(index) => Selector::Indices(vec![*index]),
    });
    JsonPath { selectors: steps.collect() }.to_string()
}

impl FromStr for JsonPath {
    type Err = BadJsonPath;

    fn from_str(path: &str) -> Result<Self, BadJsonPath> {
        parse::selectors(path).map(|selectors| Self { selectors })
    }
}

impl fmt::Display for JsonPath {
    /// A form that reads back as the same path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        let mut after_below = false;
        for selector in &self.selectors {
            match selector {
                Selector::Names(names)
                    if names.len() == 1 && names.iter().all(|name| parse::is_identifier(name)) =>
                {
                    write!(f, "{}{}", if after_below { "" } else { "." }, names.concat())?;
                }
                Selector::Names(names) => {
                    let names: Vec<_> =
                        names.iter().map(|name| Value::from(name.as_str()).to_string()).collect();
                    write!(f, "[{}]", names.join(","))?;
                }
                Selector::Indices(indices) => {
                    let indices: Vec<_> = indices.iter().map(usize::to_string).collect();
                    write!(f, "[{}]", indices.join(","))?;
                }
                Selector::Slice { start, end, step } => {
                    write!(f, "[{start}:{}:{step}]", end.map(|end| end.to_string()).unwrap_or_default())?;
                }
                Selector::All => f.write_str("[*]")?,
                Selector::Below => f.write_str("..")?,
            }
            after_below = *selector == Selector::Below;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
