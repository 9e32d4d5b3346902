//! Objects as rows of a table, as `kubectl get` shows them.

mod age;
mod native;
mod path;

use std::sync::Arc;

use mailboat_machinery::{Column, Kind, KindVersion, List, Origin, Stored, TypeMeta};
use mailboat_object::KindId;
use serde_json::{Value, json};

pub(crate) use path::values;

/// What the first column of every table tells.
const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some \
    resources may allow a client to request the generation of an appropriate name automatically. Name is primarily \
    intended for creation idempotence and configuration definition. Cannot be updated. More info: \
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// What the column tells that shows when an object was made.
const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not \
    guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is \
    represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
/// What the columns of a scale tell.
const DESIRED: &str = "replicas is the desired number of instances for the scaled object.";
const AVAILABLE: &str = "replicas is the actual number of observed instances of the scaled object.";

/// Which part of the object goes with each row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) enum Include {
    /// None.
    Nothing,
    /// Its metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

/// The columns of a kind's tables.
pub(crate) struct Columns {
    definitions: Value,
    cells: Vec<Cell>,
    version: KindVersion,
    /// Rows tell whether their object has come to its end.
    has_ends: bool,
}

enum Cell {
    Name,
    Native(native::Cell),
    /// Nobody knows how it is made.
    Missing,
    /// A value of a type, at a path.
    At(String, String),
}

impl Columns {
    /// The columns of a kind in a version.
    pub(crate) fn of(kind: &Kind, version: &KindVersion) -> Self {
        let (mut definitions, mut cells): (Vec<Value>, Vec<Cell>) = (Vec::new(), Vec::new());
        let native = kind.origin == Origin::Native;
        if native {
            let kept = kind.kept_as.as_ref().unwrap_or(&kind.id);
            for column in version.columns.iter() {
                definitions.push(definition(column, &column.description));
                cells.push(native::cell(kept, &column.name).map_or(Cell::Missing, Cell::Native));
            }
        } else {
            definitions.push(name_column());
            cells.push(Cell::Name);
            for column in version.columns.iter() {
                definitions.push(definition(column, &described(column)));
                cells.push(Cell::At(column.value_type.clone(), column.path.clone()));
            }
            if version.columns.is_empty() {
                definitions.push(json!({
                    "name": "Age", "type": "date", "format": "", "description": AGE, "priority": 0,
                }));
                cells.push(Cell::At("date".to_owned(), ".metadata.creationTimestamp".to_owned()));
            }
        }
        let has_ends = native && kind.id == KindId::new("", "pods");
        Self { definitions: definitions.into(), cells, version: version.clone(), has_ends }
    }

    /// A table of these objects. Readers of a stream need the columns only once.
    pub(crate) fn table<'o>(
        &self,
        objects: impl IntoIterator<Item = &'o Arc<Stored>>,
        include: Include,
        with_columns: bool,
        now_seconds: u64,
    ) -> Value {
        let rows: Vec<Value> =
            objects.into_iter().map(|object| self.row(object, include, now_seconds)).collect();
        let definitions = if with_columns { self.definitions.clone() } else { Value::Null };
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {},
            "columnDefinitions": definitions, "rows": rows,
        })
    }

    /// A list as a table.
    pub(crate) fn list(&self, list: &List, include: Include, now_seconds: u64) -> Value {
        let mut table = self.table(&list.items, include, true, now_seconds);
        table["metadata"] = list_metadata(list);
        table
    }

    fn row(&self, object: &Arc<Stored>, include: Include, now_seconds: u64) -> Value {
        let shown = &*self.version.shown(object);
        let cells = self.cells.iter().map(|cell| cell.value(object, shown, now_seconds));
        let cells: Vec<Value> = cells.collect();
        let type_meta = match include {
            Include::Nothing => None,
            Include::Metadata => Some(TypeMeta::MetadataOnly),
            Include::Object => Some(TypeMeta::Version(&self.version.api_version)),
        };
        // What is written here is made of JSON values alone.
        let shown = type_meta.map(|told| serde_json::to_value(shown.shown(told)).unwrap_or_default());
        let mut row = json!({ "cells": cells, "object": shown });
        let end = if self.has_ends { native::end_of_pod(object.body()) } else { None };
        if let Some(conditions) = end {
            row["conditions"] = conditions;
        }
        row
    }
}

/// The column of names.
pub(crate) fn name_column() -> Value {
    json!({ "name": "Name", "type": "string", "format": "name", "priority": 0, "description": NAME })
}

/// A scale as a table.
pub(crate) fn of_scale(scale: &Value, now_seconds: u64) -> Value {
    let metadata = &scale["metadata"];
    let definition = |name: &str, value_type: &str, description: &str| json!({ "name": name, "type": value_type, "format": "", "priority": 0, "description": description });
    let cells = json!([
        metadata["name"],
        scale["spec"]["replicas"].as_u64().unwrap_or_default(),
        scale["status"]["replicas"].as_u64().unwrap_or_default(),
        age::since(metadata["creationTimestamp"].as_str().unwrap_or_default(), now_seconds),
    ]);
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1",
        "metadata": { "resourceVersion": metadata["resourceVersion"] },
        "columnDefinitions": [
            definition("Name", "string", NAME), definition("Desired", "integer", DESIRED),
            definition("Available", "integer", AVAILABLE), definition("Age", "string", AGE),
        ],
        "rows": [{
            "cells": cells,
            "object": { "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata },
        }],
    })
}

impl Cell {
    /// Its value: of what a server knows by itself as it is kept, of all else as it is shown.
    fn value(&self, kept: &Stored, shown: &Stored, now_seconds: u64) -> Value {
        match self {
            Self::Name => kept.key.name.as_str().into(),
            Self::Native(cell) => cell(kept.body(), now_seconds),
            Self::Missing => Value::Null,
            Self::At(value_type, path) => custom_value(shown.body(), value_type, path, now_seconds),
        }
    }
}

/// The value of a custom resource's column: one value as it is, several joined as text.
fn custom_value(body: &Value, value_type: &str, path: &str, now_seconds: u64) -> Value {
    let found = values(body, path);
    let Some(first) = found.first() else { return Value::Null };
    match value_type {
        "date" => first.as_str().map_or(Value::Null, |text| age::since(text, now_seconds).into()),
        "string" => {
            let texts: Vec<String> = found.iter().map(|value| path::text(value)).collect();
            texts.join(",").into()
        }
        _ => (*first).clone(),
    }
}

/// What a column of somebody's own tells.
fn described(column: &Column) -> String {
    if column.description.is_empty() {
        format!("Custom resource definition column (in JSONPath format): {}", column.path)
    } else {
        column.description.clone()
    }
}

fn definition(column: &Column, description: &str) -> Value {
    json!({
        "name": column.name, "type": column.value_type, "format": column.format,
        "description": description, "priority": column.priority,
    })
}

/// The metadata of a list.
pub(crate) fn list_metadata(list: &List) -> Value {
    let mut metadata = json!({ "resourceVersion": list.version.to_string() });
    if let Some(token) = &list.continue_token {
        metadata["continue"] = token.as_str().into();
    }
    if let Some(remaining) = list.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    metadata
}
