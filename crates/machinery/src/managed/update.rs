//! What an update does to `managedFields`: whoever changes a field owns it.

use std::collections::BTreeMap;
use std::sync::Arc;

use mailboat_object::{Name, Operation};
use serde_json::Value;

use super::{ANCIENT_CHANGES, Change, ManagedFields, Manager, NEVER_OWNED, UPDATE_MANAGERS_MAX, take_over};
use crate::field_set::FieldSet;
use crate::schema::Schema;

/// The managers after `change` made `before` into `after`. An object that nobody is known to own stays so until
/// its first apply; one that is just made (`exists` is false) is tracked from the start.
pub(crate) fn update(
    schema: &Schema,
    before: &Value,
    after: &Value,
    managed: ManagedFields,
    change: &Change<'_>,
    exists: bool,
) -> ManagedFields {
    if managed.is_empty() && exists {
        return managed;
    }
    let mut managers = managed.entries;
    managers.retain(|manager| (change.served)(&manager.api_version));
    // Nobody is spared: the changer's own former entry gets back what it lost, below.
    let Ok(found) = take_over(&mut managers, None, schema, before, after, change, true) else {
        return ManagedFields { entries: managers };
    };
    let owned = change.without_reset(found.modified.union(&found.added)).difference(&NEVER_OWNED);
    if !owned.is_empty() {
        add(&mut managers, change.entry(Operation::Update, owned), change.now_seconds);
    }
    let mut managed = ManagedFields { entries: managers };
    cap(&mut managed);
    managed.sort();
    managed
}

fn add(managers: &mut Vec<Manager>, mut entry: Manager, now_seconds: u64) {
    entry.time_seconds = Some(now_seconds);
    match managers.iter_mut().find(|manager| manager.is_same_manager(&entry)) {
        Some(former) => {
            entry.fields = Arc::new(entry.fields.union(&former.fields));
            *former = entry;
        }
        None => managers.push(entry),
    }
}

/// Puts the oldest updaters together until few enough are left, one bucket for each version.
fn cap(managed: &mut ManagedFields) {
    let updaters = |managed: &ManagedFields| {
        managed.entries.iter().filter(|manager| manager.operation == Operation::Update).count()
    };
    if updaters(managed) <= UPDATE_MANAGERS_MAX {
        return;
    }
    managed.sort();
    let order: Vec<Manager> =
        managed.entries.iter().filter(|manager| manager.operation == Operation::Update).cloned().collect();
    let mut first_of_version: Vec<&Manager> = Vec::new();
    // What comes together is put together once: a bucket may hold very much.
    let mut gathered: BTreeMap<Name, Vec<Arc<FieldSet>>> = BTreeMap::new();
    for manager in &order {
        if updaters(managed) <= UPDATE_MANAGERS_MAX {
            break;
        }
        let Some(first) = first_of_version.iter().find(|first| first.api_version == manager.api_version)
        else {
            first_of_version.push(manager);
            continue;
        };
        let bucket =
            Manager { name: Name::new(ANCIENT_CHANGES), subresource: Name::EMPTY, ..manager.clone() };
        let former = managed.entries.iter().find(|entry| entry.is_same_manager(&bucket));
        // The first of a version becomes the bucket, unless there is one from former times.
        let founder = if former.is_none() { Some(*first) } else { None };
        let of_version = gathered.entry(manager.api_version.clone()).or_default();
        of_version.extend([Arc::clone(&manager.fields), Arc::clone(&former.unwrap_or(first).fields)]);
        managed.entries.retain(|entry| {
            !entry.is_same_manager(&bucket)
                && !entry.is_same_manager(manager)
                && !founder.is_some_and(|founder| entry.is_same_manager(founder))
        });
        managed.entries.push(bucket);
    }
    let is_bucket = |entry: &Manager| {
        *entry.name == *ANCIENT_CHANGES
            && entry.operation == Operation::Update
            && entry.subresource.is_empty()
    };
    for bucket in managed.entries.iter_mut().filter(|entry| is_bucket(entry)) {
        if let Some(fields) = gathered.remove(&bucket.api_version) {
            bucket.fields = Arc::new(FieldSet::union_of(fields.iter().map(|fields| &**fields)));
        }
    }
}
