//! Objects as rows of a table, as `kubectl get` shows them.

mod age;
mod native;
mod path;

use std::sync::Arc;

use mailboat_machinery::{Column, Kind, KindVersion, List, Origin, Stored, TypeMeta};
use serde_json::{Value, json};

pub(crate) use path::values;

/// What the first column of every table tells.
const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some \
    resources may allow a client to request the generation of an appropriate name automatically. Name is primarily \
    intended for creation idempotence and configuration definition. Cannot be updated. More info: \
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// Which part of the object goes with each row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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
}

enum Cell {
    Name,
    Native(fn(&Value, u64) -> Value),
    /// A value of a type, at a path.
    At(String, String),
}

impl Columns {
    /// The columns of a kind in a version.
    pub(crate) fn of(kind: &Kind, version: &KindVersion) -> Self {
        let (mut definitions, mut cells) = (Vec::new(), Vec::new());
        let kept = kind.kept_as.as_ref().unwrap_or(&kind.id);
        // What an event is called matters least.
        let named_last = kind.origin == Origin::Native && native::are_named_last(kept);
        if !named_last {
            definitions.push(name_column(0));
            cells.push(Cell::Name);
        }
        if kind.origin == Origin::Native {
            for (name, value_type, priority, cell) in native::columns(kept) {
                definitions.push(json!({
                    "name": name, "type": value_type, "format": "", "description": "", "priority": priority,
                }));
                cells.push(Cell::Native(*cell));
            }
        } else {
            for column in version.columns.iter() {
                definitions.push(definition(column));
                cells.push(Cell::At(column.value_type.clone(), column.path.clone()));
            }
            if version.columns.is_empty() {
                let path = ".metadata.creationTimestamp";
                definitions.push(json!({
                    "name": "Age", "type": "date", "format": "", "description": "", "priority": 0,
                }));
                cells.push(Cell::At("date".to_owned(), path.to_owned()));
            }
        }
        if named_last {
            definitions.push(name_column(1));
            cells.push(Cell::Name);
        }
        Self { definitions: definitions.into(), cells, version: version.clone() }
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
            Include::Nothing => return json!({ "cells": cells, "object": null }),
            Include::Metadata => TypeMeta::MetadataOnly,
            Include::Object => TypeMeta::Version(&self.version.api_version),
        };
        // What is written here is made of JSON values alone.
        let shown = serde_json::to_value(shown.shown(type_meta)).unwrap_or_default();
        json!({ "cells": cells, "object": shown })
    }
}

/// The column of names.
pub(crate) fn name_column(priority: i64) -> Value {
    json!({ "name": "Name", "type": "string", "format": "name", "priority": priority, "description": NAME })
}

/// A scale as a table.
pub(crate) fn of_scale(scale: &Value, now_seconds: u64) -> Value {
    let metadata = &scale["metadata"];
    let definition = |name: &str, value_type: &str| json!({ "name": name, "type": value_type, "format": "", "priority": 0, "description": "" });
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
            definition("Name", "string"), definition("Desired", "integer"),
            definition("Available", "integer"), definition("Age", "string"),
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

fn definition(column: &Column) -> Value {
    let description = if column.description.is_empty() {
        format!("Custom resource definition column (in JSONPath format): {}", column.path)
    } else {
        column.description.clone()
    };
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
