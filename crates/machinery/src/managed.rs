//! Who owns which field: `managedFields`, and what updates and applies do to them.

mod apply;
mod json;
mod update;

use std::sync::{Arc, LazyLock};

use mailboat_object::{Name, Operation};
use serde_json::Value;

use crate::field_set::FieldSet;
use crate::schema::Schema;

pub(crate) use apply::apply;
pub use json::BadManagedFields;
pub(crate) use json::is_reset;
pub(crate) use update::update;

/// The managers of one object, in the order in which servers list them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagedFields {
    entries: Vec<Manager>,
}

/// One manager and its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// Its name.
    pub name: Name,
    /// How it writes.
    pub operation: Operation,
    /// The version through which it writes.
    pub api_version: Name,
    /// The subresource through which it writes; empty for the object itself.
    pub subresource: Name,
    /// When it last changed anything, in Unix seconds.
    pub time_seconds: Option<u64>,
    /// What it owns.
    pub fields: Arc<FieldSet>,
}

/// Who makes a change, how and when.
#[derive(Clone)]
pub(crate) struct Change<'a> {
    pub manager: &'a Name,
    pub api_version: &'a Name,
    pub subresource: Name,
    pub now_seconds: u64,
    /// Fields that this way of writing cannot change; whatever is said of them is ignored.
    pub reset: Option<&'a FieldSet>,
    /// Whether a version is still served. Managers that wrote through others are forgotten.
    pub served: &'a dyn Fn(&str) -> bool,
    /// How objects of one version read in another.
    pub turned: &'a Turned<'a>,
}

/// An object of one version as another one has it, and that one's schema. None: they are the same in both.
pub(crate) type Turned<'a> = dyn Fn(&Value, &str, &str) -> Option<(Value, Schema)> + 'a;

/// What a server keeps to itself, and nobody owns.
static NEVER_OWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    let paths: [&[&str]; 12] = [
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ];
    FieldSet::of(paths)
});

/// The name under which everything stands that was there before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The name under which the oldest updates are put together.
const ANCIENT_CHANGES: &str = "ancient-changes";
/// How many managers that update are kept apart.
const UPDATE_MANAGERS_MAX: usize = 10;

impl ManagedFields {
    /// These managers, in their order.
    pub(crate) fn of(entries: impl Iterator<Item = Manager>) -> Self {
        Self { entries: entries.collect() }
    }

    /// The managers, in order.
    pub fn entries(&self) -> &[Manager] {
        &self.entries
    }

    /// Whether nobody is known to own anything.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What was written through a part of an object that holds no managers of its own bears no time.
    pub(crate) fn forget_times(&mut self, subresource: &str) {
        for manager in self.entries.iter_mut().filter(|manager| *manager.subresource == *subresource) {
            manager.time_seconds = None;
        }
    }

    /// Whether the two differ in nothing but times.
    pub(crate) fn same_but_for_times(&self, other: &Self) -> bool {
        self.entries.len() == other.entries.len()
            && self.entries.iter().zip(&other.entries).all(|(one, other)| {
                one.is_same_manager(other)
                    && one.api_version == other.api_version
                    && one.fields == other.fields
            })
    }

    /// Brings the entries into the order of servers: applies first, then by time, name, version and subresource.
    fn sort(&mut self) {
        self.entries.sort_by(|a, b| {
            let rank =
                |entry: &Manager| (entry.operation == Operation::Update, entry.time_seconds.unwrap_or(0));
            rank(a)
                .cmp(&rank(b))
                .then_with(|| a.name.cmp(&b.name))
                .then_with(|| a.api_version.cmp(&b.api_version))
                .then_with(|| a.subresource.cmp(&b.subresource))
        });
    }
}

impl Manager {
    /// Whether two entries are of one manager: appliers are one across versions, updaters are not.
    fn is_same_manager(&self, other: &Self) -> bool {
        self.name == other.name
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// As conflicts name it.
    fn told(&self) -> String {
        let mut text = format!("{:?}", self.name.as_str());
        if !self.subresource.is_empty() {
            text = format!("{text} with subresource {:?}", self.subresource.as_str());
        }
        if self.operation == Operation::Update {
            text = format!("{text} using {}", self.api_version);
        }
        text
    }
}

impl Change<'_> {
    fn entry(&self, operation: Operation, fields: FieldSet) -> Manager {
        let name = if self.manager.is_empty() { Name::new("unknown") } else { self.manager.clone() };
        Manager {
            name,
            operation,
            api_version: self.api_version.clone(),
            subresource: self.subresource.clone(),
            time_seconds: None,
            fields: Arc::new(fields),
        }
    }

    fn without_reset(&self, fields: FieldSet) -> FieldSet {
        match self.reset {
            Some(reset) => fields.recursive_difference(reset),
            None => fields,
        }
    }
}

/// Takes what changed away from its owners. `keeper` is the entry of whoever made the change, which keeps its
/// own. Without `force`, the owners that lose something are returned instead.
fn take_over(
    managers: &mut Vec<Manager>,
    keeper: Option<usize>,
    schema: &Schema,
    before: &Value,
    after: &Value,
    change: &Change<'_>,
    force: bool,
) -> Result<crate::typed::Comparison, Vec<(Manager, FieldSet)>> {
    let found = crate::typed::compare(schema, before, after);
    let mut differences = Differences { before, after, change, known: Vec::new() };
    differences.learn(change.api_version, &found);
    let mut losers = Vec::new();
    for (index, manager) in managers.iter().enumerate().filter(|(index, _)| Some(*index) != keeper) {
        let lost = manager.fields.intersection(&differences.of(&manager.api_version).changed);
        if !lost.is_empty() {
            losers.push((index, lost));
        }
    }
    if !force && !losers.is_empty() {
        return Err(losers.into_iter().map(|(index, lost)| (managers[index].clone(), lost)).collect());
    }
    for (index, lost) in losers {
        managers[index].fields = Arc::new(managers[index].fields.difference(&lost));
    }
    for (_, manager) in managers.iter_mut().enumerate().filter(|(index, _)| Some(*index) != keeper) {
        let removed = &differences.of(&manager.api_version).removed;
        if !removed.is_empty() {
            manager.fields = Arc::new(manager.fields.difference(removed));
        }
    }
    managers.retain(|manager| !manager.fields.is_empty());
    Ok(found)
}

/// What a change does, as each version calls it: managers own fields of the version through which they write.
struct Differences<'d, 'c> {
    before: &'d Value,
    after: &'d Value,
    change: &'d Change<'c>,
    /// The first is that of the version that is written.
    known: Vec<(Name, Difference)>,
}

struct Difference {
    changed: FieldSet,
    removed: FieldSet,
}

impl Differences<'_, '_> {
    fn of(&mut self, api_version: &Name) -> &Difference {
        let known = self.known.iter().position(|(known, _)| known == api_version);
        let at = known.unwrap_or_else(|| {
            let turned = |object: &Value| (self.change.turned)(object, self.change.api_version, api_version);
            match (turned(self.before), turned(self.after)) {
                (Some((before, schema)), Some((after, _))) => {
                    self.learn(api_version, &crate::typed::compare(&schema, &before, &after))
                }
                // It is the same in both.
                _ => 0,
            }
        });
        &self.known[at].1
    }

    fn learn(&mut self, api_version: &Name, found: &crate::typed::Comparison) -> usize {
        let changed = self.change.without_reset(found.modified.union(&found.added));
        let removed = self.change.without_reset(found.removed.clone());
        self.known.push((api_version.clone(), Difference { changed, removed }));
        self.known.len() - 1
    }
}

#[cfg(test)]
mod tests;
