//! Sets of fields of an object, as `managedFields` holds them.

mod json;

use std::cmp::Ordering;
use std::fmt;

use mailboat_object::Name;
use serde_json::Value;

use crate::schema::{NodeId, Schema};

/// One step of a path into an object.
///
/// The order is the one in which servers write the members of a set: fields, then keys, values and indices.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathElement {
    /// A member of a map.
    Field(Name),
    /// The element of an associative list with these keys, sorted by their names.
    Key(Box<[(Name, Scalar)]>),
    /// The element of a set with this value.
    Value(Scalar),
    /// The element of a list at this place.
    Index(i64),
}

/// A value that can stand in a path.
#[derive(Clone, Debug)]
pub enum Scalar {
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(Name),
    /// True or false.
    Bool(bool),
    /// What no valid key holds, as JSON; kept so that a path that was read is written back as it was.
    Other(Box<str>),
}

/// A set of fields: a trie whose nodes may themselves be members.
///
/// That a field is a member says nothing of its parents or children.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Sorted by element. Each is a member, or has members below it.
    entries: Vec<Entry>,
}

#[derive(Clone, PartialEq, Eq)]
struct Entry {
    element: PathElement,
    member: bool,
    children: FieldSet,
}

/// What becomes of an element that is in one set, in the other, or in both.
type Pair<'p> = &'p dyn Fn(Option<&Entry>, Option<&Entry>) -> Option<Entry>;

impl PathElement {
    /// A member of a map.
    pub fn field(name: &str) -> Self {
        Self::Field(Name::new(name))
    }
}

impl Scalar {
    /// The value as it can stand in a path.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::String(text) => Self::Text(Name::new(text)),
            Value::Bool(truth) => Self::Bool(*truth),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => Self::Int(whole),
                (None, Some(float)) => Self::Float(float),
                (None, None) => Self::Other(number.to_string().into()),
            },
            other => Self::Other(other.to_string().into()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Int(_) | Self::Float(_) => 0,
            Self::Text(_) => 1,
            Self::Bool(_) => 2,
            Self::Other(_) => 3,
        }
    }

    /// The number, as far as a float can hold it: servers compare whole and other numbers as floats as well.
    #[allow(clippy::cast_precision_loss, reason = "servers lose it too")]
    fn number(&self) -> f64 {
        match self {
            Self::Int(whole) => *whole as f64,
            Self::Float(float) => *float,
            _ => 0.0,
        }
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Scalar {}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Other(a), Self::Other(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()).then_with(|| a.number().total_cmp(&b.number())),
        }
    }
}

impl FieldSet {
    /// The set of these paths.
    pub fn of<'p>(paths: impl IntoIterator<Item = &'p [&'p str]>) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(&path.iter().map(|name| PathElement::field(name)).collect::<Vec<_>>());
        }
        set
    }

    /// Adds the field at `path`, without its parents. Nobody owns an object as a whole: the empty path adds
    /// nothing. Whoever adds many does so in their order: each of them is then put at the end.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let at = match self.find(first) {
            Ok(at) => at,
            Err(at) => {
                let entry = Entry { element: first.clone(), member: false, children: Self::default() };
                self.entries.insert(at, entry);
                at
            }
        };
        if rest.is_empty() {
            self.entries[at].member = true;
        } else {
            self.entries[at].children.insert(rest);
        }
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether the field at `path` is a member.
    pub fn has(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.contains(last),
            [first, rest @ ..] => self.below(first).is_some_and(|children| children.has(rest)),
        }
    }

    /// Whether this element itself is a member.
    pub fn contains(&self, element: &PathElement) -> bool {
        self.find(element).is_ok_and(|at| self.entries[at].member)
    }

    /// What is below an element; none if that is nothing.
    pub fn below(&self, element: &PathElement) -> Option<&Self> {
        let at = self.find(element).ok()?;
        Some(&self.entries[at].children).filter(|children| !children.is_empty())
    }

    /// The members of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.join(other, &|ours, theirs| match (ours, theirs) {
            (Some(ours), Some(theirs)) => Some(Entry {
                element: ours.element.clone(),
                member: ours.member || theirs.member,
                children: ours.children.union(&theirs.children),
            }),
            (one, other) => one.or(other).cloned(),
        })
    }

    /// The members of any of these sets; each is looked at once, however many there are.
    #[must_use]
    pub(crate) fn union_of<'s>(sets: impl IntoIterator<Item = &'s Self>) -> Self {
        Self::from_entries(sets.into_iter().flat_map(|set| set.entries.iter().cloned()).collect())
    }

    /// The set of these, in any order, some of which may be about the same element.
    fn from_entries(mut entries: Vec<Entry>) -> Self {
        entries.sort_by(|a, b| a.element.cmp(&b.element));
        let mut joined: Vec<Entry> = Vec::with_capacity(entries.len());
        let mut repeated = false;
        for entry in entries {
            match joined.last_mut().filter(|last| last.element == entry.element) {
                Some(last) => {
                    last.member |= entry.member;
                    last.children.entries.extend(entry.children.entries);
                    repeated = true;
                }
                None => joined.push(entry),
            }
        }
        if repeated {
            for entry in &mut joined {
                let children = std::mem::take(&mut entry.children.entries);
                entry.children = Self::from_entries(children);
            }
        }
        Self { entries: joined }
    }

    /// The members of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        // One change is compared with each of many managers: what is looked through is the smaller of the two.
        let both = |ours: &Entry, theirs: &Entry| Entry {
            element: ours.element.clone(),
            member: ours.member && theirs.member,
            children: ours.children.intersection(&theirs.children),
        };
        if self.entries.len() <= other.entries.len() {
            self.pick(other, |ours, theirs| Some(both(ours, theirs?)))
        } else {
            other.pick(self, |theirs, ours| Some(both(ours?, theirs)))
        }
    }

    /// The members that are not in the other set. What is below a member of the other set stays.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.pick(other, |ours, theirs| {
            Some(theirs.map_or_else(
                || ours.clone(),
                |theirs| Entry {
                    element: ours.element.clone(),
                    member: ours.member && !theirs.member,
                    children: ours.children.difference(&theirs.children),
                },
            ))
        })
    }

    /// The members that are neither in the other set nor below one of its members.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.pick(other, |ours, theirs| match theirs {
            Some(theirs) if theirs.member => None,
            Some(theirs) => Some(Entry {
                element: ours.element.clone(),
                member: ours.member,
                children: ours.children.recursive_difference(&theirs.children),
            }),
            None => Some(ours.clone()),
        })
    }

    /// This set, and with it every declared field of the schema that has members below it. A set made of
    /// `a.b.c` then has `a` too if that is a declared property, and not if it is a key of a map.
    #[must_use]
    pub(crate) fn with_declared_parents(&self, schema: &Schema, node: Option<NodeId>) -> Self {
        let map = node.and_then(|node| schema.node(node).map.as_ref());
        let list = node.and_then(|node| schema.node(node).list.as_ref());
        let entries = self.entries.iter().map(|entry| {
            let (declared, below) = match (&entry.element, map, list) {
                (PathElement::Field(name), Some(map), _) => match map.field(name) {
                    Some(field) => (true, Some(field.node)),
                    None => (false, map.elements),
                },
                (PathElement::Key(_), _, Some(list)) => (false, Some(list.items)),
                _ => (false, None),
            };
            Entry {
                element: entry.element.clone(),
                member: entry.member || (declared && !entry.children.is_empty()),
                children: entry.children.with_declared_parents(schema, below),
            }
        });
        Self { entries: entries.collect() }
    }

    /// Calls `visit` with the path of each member: at each level the members first, then what is below them,
    /// as servers list conflicts.
    pub fn for_each(&self, visit: &mut impl FnMut(&[PathElement])) {
        self.visit(&mut Vec::new(), visit);
    }

    fn visit(&self, path: &mut Vec<PathElement>, visit: &mut impl FnMut(&[PathElement])) {
        for entry in self.entries.iter().filter(|entry| entry.member) {
            path.push(entry.element.clone());
            visit(path);
            path.pop();
        }
        for entry in &self.entries {
            path.push(entry.element.clone());
            entry.children.visit(path, visit);
            path.pop();
        }
    }

    fn find(&self, element: &PathElement) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.element.cmp(element))
    }

    /// What becomes of each element of this set, seen beside the same one of another; what is left without members is dropped.
    fn pick(&self, other: &Self, pair: impl Fn(&Entry, Option<&Entry>) -> Option<Entry>) -> Self {
        let beside = |entry: &Entry| other.find(&entry.element).ok().map(|at| &other.entries[at]);
        let picked = self.entries.iter().filter_map(|entry| pair(entry, beside(entry)));
        Self { entries: picked.filter(|entry| entry.member || !entry.children.is_empty()).collect() }
    }

    /// Joins two sorted tries level by level; what is left without members is dropped.
    fn join(&self, other: &Self, pair: Pair<'_>) -> Self {
        let (mut ours, mut theirs) = (self.entries.iter().peekable(), other.entries.iter().peekable());
        let mut entries = Vec::with_capacity(self.entries.len());
        loop {
            let order = match (ours.peek(), theirs.peek()) {
                (None, None) => return Self { entries },
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(ours), Some(theirs)) => ours.element.cmp(&theirs.element),
            };
            let joined = match order {
                Ordering::Less => pair(ours.next(), None),
                Ordering::Greater => pair(None, theirs.next()),
                Ordering::Equal => pair(ours.next(), theirs.next()),
            };
            entries.extend(joined.filter(|entry| entry.member || !entry.children.is_empty()));
        }
    }
}

/// A path as servers write it in messages, such as `.spec.ports[port=80,protocol="TCP"].name`.
pub fn path_text(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                f.write_str("[")?;
                for (index, (name, value)) in keys.iter().enumerate() {
                    write!(f, "{}{name}={value}", if index == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(whole) => write!(f, "{whole}"),
            Self::Float(float) => write!(f, "{float}"),
            Self::Text(text) => write!(f, "{:?}", text.as_str()),
            Self::Bool(truth) => write!(f, "{truth}"),
            Self::Other(json) => f.write_str(json),
        }
    }
}

impl fmt::Debug for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut paths = f.debug_set();
        self.for_each(&mut |path| {
            paths.entry(&format_args!("{}", path_text(path)));
        });
        paths.finish()
    }
}

#[cfg(test)]
mod tests;
