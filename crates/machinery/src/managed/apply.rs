//! Server-side apply.

use std::sync::Arc;

use mailboat_object::page::StatusCause;
use mailboat_object::{Name, Operation};
use serde_json::Value;

use super::{BEFORE_FIRST_APPLY, Change, ManagedFields, Manager, NEVER_OWNED, take_over, update};
use crate::field_set::{FieldSet, path_text};
use crate::schema::Schema;
use crate::status::{MOST_ERRORS_BYTES, Status};
use crate::typed;

/// The outcome of an apply.
pub(crate) struct Applied {
    /// The object, if anything in it changed.
    pub object: Option<Value>,
    /// Its managers.
    pub managed: ManagedFields,
}

/// Why an apply cannot be done.
pub(crate) enum ApplyError {
    /// Others own fields that the intent wants to be different.
    Conflicts(Vec<(Manager, FieldSet)>),
    /// The intent does not fit the schema.
    Untyped(String),
    /// The intent cannot be laid over the object.
    Unmergeable(String),
}

/// Applies an intent. `empty` is the object of the kind that holds nothing: what the live object has beyond it
/// belongs to whoever came before the first apply.
pub(crate) fn apply(
    schema: &Schema,
    live: &Value,
    intent: &Value,
    mut managed: ManagedFields,
    change: &Change<'_>,
    empty: &Value,
    force: bool,
) -> Result<Applied, ApplyError> {
    if managed.is_empty() {
        let before = Name::new(BEFORE_FIRST_APPLY);
        managed = update(schema, empty, live, managed, &Change { manager: &before, ..change.clone() }, false);
    }
    typed::check(schema, intent, false).map_err(ApplyError::Untyped)?;
    let mut managers = managed.entries;
    managers.retain(|manager| (change.served)(&manager.api_version));
    let merged = typed::merge(schema, live, intent).map_err(ApplyError::Unmergeable)?;
    let entry = change.entry(Operation::Apply, change.without_reset(typed::field_set(schema, intent)));
    let (keeper, former) = enter(&mut managers, entry);
    let object = match former {
        Some(former) if !former.fields.is_empty() => {
            without_dropped(schema, merged, &managers, &former, change)
        }
        _ => merged,
    };
    let name = managers[keeper].clone();
    take_over(&mut managers, Some(keeper), schema, live, &object, change, force)
        .map_err(ApplyError::Conflicts)?;
    let changed = !typed::same(live, &object);
    if let Some(ours) = managers.iter_mut().find(|manager| manager.is_same_manager(&name)) {
        ours.fields = Arc::new(ours.fields.difference(&NEVER_OWNED));
        if changed {
            ours.time_seconds = Some(change.now_seconds);
        }
    }
    managers.retain(|manager| !manager.fields.is_empty());
    let mut managed = ManagedFields { entries: managers };
    managed.sort();
    Ok(Applied { object: Some(object).filter(|_| changed), managed })
}

/// Puts the applier's new entry in place of its former one, whose time it keeps until something changes.
fn enter(managers: &mut Vec<Manager>, mut entry: Manager) -> (usize, Option<Manager>) {
    if let Some(at) = managers.iter().position(|manager| manager.is_same_manager(&entry)) {
        entry.time_seconds = managers[at].time_seconds;
        return (at, Some(std::mem::replace(&mut managers[at], entry)));
    }
    managers.push(entry);
    (managers.len() - 1, None)
}

/// The object without what the applier had applied before, does not apply now, and nobody else owns. Each manager's fields
/// are those of the version through which it writes, and are looked for in the object as that version has it.
fn without_dropped(
    schema: &Schema,
    merged: Value,
    managers: &[Manager],
    former: &Manager,
    change: &Change<'_>,
) -> Value {
    let declared = |schema: &Schema, set: &FieldSet| set.with_declared_parents(schema, Some(schema.root()));
    let fields = |schema: &Schema, object: &Value| declared(schema, &typed::field_set(schema, object));
    let turned = |object: &Value, from: &str, to: &str| match (change.turned)(object, from, to) {
        Some(turned) if from != to => turned,
        _ => (object.clone(), schema.clone()),
    };
    let home = &former.api_version;
    let (whole, schema_at_home) = turned(&merged, change.api_version, home);
    let former = declared(&schema_at_home, &former.fields);
    let mut rest = typed::remove(&schema_at_home, &whole, &former);
    let mut at = home;
    // What the former version owns is put back first: others may need it to be read at all.
    let mut versions: Vec<&Name> = managers.iter().map(|manager| &manager.api_version).collect();
    versions.sort_by_key(|version| (*version != home, *version));
    versions.dedup();
    let (mut seen, mut schema_there) = (whole.clone(), schema_at_home.clone());
    for version in versions {
        if version != at {
            (rest, _) = turned(&rest, at, version);
            (seen, schema_there) = turned(&seen, at, version);
            at = version;
        }
        let owners = managers.iter().filter(|manager| manager.api_version == *version);
        let owned = FieldSet::union_of(owners.map(|manager| &*manager.fields));
        let kept = fields(&schema_there, &rest).union(&declared(&schema_there, &owned));
        rest = typed::remove(&schema_there, &seen, &fields(&schema_there, &seen).difference(&kept));
    }
    let (rest, _) = turned(&rest, at, home);
    // Only what the applier itself had may go; what nobody owns is not its business.
    let gone = fields(&schema_at_home, &whole).difference(&fields(&schema_at_home, &rest));
    let gone = gone.intersection(&former);
    if gone.is_empty() {
        return merged;
    }
    turned(&typed::remove(&schema_at_home, &whole, &gone), home, change.api_version).0
}

impl ApplyError {
    /// As a server answers it. `what` names the object, as in `default/name; apps/v1, Kind=Deployment`.
    pub(crate) fn status(self, what: &str) -> Status {
        match self {
            Self::Untyped(why) => {
                Status::internal(format!("failed to create typed patch object ({what}): {why}"))
            }
            Self::Unmergeable(why) => Status::internal(format!("failed to merge config: {why}")),
            Self::Conflicts(losers) => conflicts(&losers),
        }
    }
}

fn conflicts(losers: &[(Manager, FieldSet)]) -> Status {
    let (mut causes, mut lines) = (Vec::new(), Vec::new());
    let (mut count, mut bytes) = (0_usize, 0);
    for (manager, fields) in losers {
        let told = manager.told();
        if bytes <= MOST_ERRORS_BYTES {
            lines.push(format!("conflicts with {told}:"));
        }
        fields.for_each(&mut |path| {
            count += 1;
            if bytes > MOST_ERRORS_BYTES {
                return;
            }
            let field = path_text(path);
            bytes += field.len() + told.len();
            lines.push(format!("- {field}"));
            let message = format!("conflict with {told}");
            causes.push(StatusCause { reason: "FieldManagerConflict".to_owned(), message, field });
        });
    }
    if causes.len() < count {
        lines.push("- and more that is not told".to_owned());
    }
    let message = match causes.as_slice() {
        [only] if count == 1 => format!("Apply failed with 1 conflict: {}: {}", only.message, only.field),
        _ => format!("Apply failed with {count} conflicts: {}", lines.join("\n")),
    };
    Status::apply_conflict(causes, message)
}
