//! OpenAPI v2: all that there is in one document, for those who do not read version 3: client-go's `OpenAPISchema`, and what
//! compares objects by it. It is made of the documents of version 3 when somebody asks for it, and not kept.

use std::sync::Arc;

use http::HeaderMap;
use mailboat_machinery::Kind;
use serde_json::{Map, Value, json};

use super::{META, document, group_version_kind, marks};
use crate::media::{Clause, accept};

/// The forms in which it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    Json,
    /// As messages of gnostic.
    Gnostic,
}

impl Form {
    /// The media types that are taken for it, and the one that is answered.
    fn subtypes(self) -> (&'static [&'static str], &'static str) {
        match self {
            Self::Json => (&["json"], "application/json"),
            Self::Gnostic => (
                &[
                    "com.github.proto-openapi.spec.v2@v1.0+protobuf",
                    "com.github.proto-openapi.spec.v2.v1.0+protobuf",
                ],
                "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
            ),
        }
    }

    pub(crate) fn media_type(self) -> &'static str {
        self.subtypes().1
    }

    /// The form that a client likes best.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let said = accept(headers);
        let clauses = Clause::all(if said.is_empty() { "*/*" } else { said });
        let takes = |clause: &Clause<'_>, form: Self| {
            matches!(clause.kind, "*" | "application")
                && (clause.subtype == "*" || form.subtypes().0.contains(&clause.subtype))
        };
        let found =
            |clause: &Clause<'_>| [Self::Json, Self::Gnostic].into_iter().find(|form| takes(clause, *form));
        clauses.iter().find_map(found)
    }
}

/// A mark that changes with its content, another one for each form.
pub(crate) fn mark(kinds: &[Arc<Kind>], form: Form) -> String {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hash = DefaultHasher::new();
    (form.media_type(), marks(kinds)).hash(&mut hash);
    format!("{:016X}", hash.finish())
}

/// The document. `version` is that of Kubernetes whose API this is.
pub(crate) fn whole(kinds: &[Arc<Kind>]) -> Value {
    let (mut paths, mut definitions) = (Map::new(), Map::new());
    let mut versions: Vec<(&str, &str)> = Vec::new();
    for kind in kinds {
        for version in &kind.versions {
            let known = (kind.id.group(), version.name.as_str());
            if !versions.contains(&known) {
                versions.push(known);
            }
        }
    }
    for (group, version) in versions {
        let Some(mut found) = document(kinds, group, version) else { continue };
        let members = |value: &mut Value| match value.take() {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        for (path, item) in members(&mut found["paths"]) {
            paths.insert(path, path_item(item));
        }
        for (name, schema) in members(&mut found["components"]["schemas"]) {
            definitions.entry(name).or_insert_with(|| definition(schema));
        }
    }
    for kind in kinds {
        for version in &kind.versions {
            let of = super::component(kind, &version.name);
            let list = json!({
                "description": format!("{} is a list of {}", kind.naming.list, kind.name),
                "type": "object", "required": ["items"],
                "properties": {
                    "apiVersion": { "type": "string", "description": "The version of this kind." },
                    "items": { "type": "array", "items": { "$ref": format!("{DEFINITIONS}{of}") } },
                    "kind": { "type": "string", "description": "The kind." },
                    "metadata": {
                        "description": "Standard list metadata.", "$ref": format!("{DEFINITIONS}{META}ListMeta"),
                    },
                },
                "x-kubernetes-group-version-kind": [
                    { "group": kind.id.group(), "kind": kind.naming.list.as_str(), "version": version.name.as_str() },
                ],
            });
            let package = of.rsplit_once('.').map_or("", |(package, _)| package);
            definitions.insert(format!("{package}.{}", kind.naming.list), list);
            if let Some(schema) = definitions.get_mut(&of)
                && schema.get(GROUP_VERSION_KIND).is_none()
            {
                schema[GROUP_VERSION_KIND] = json!([group_version_kind(kind, &version.name)]);
            }
        }
    }
    definitions.insert(format!("{META}ListMeta"), list_meta());
    json!({
        "swagger": "2.0", "info": { "title": "Mailboat", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths, "definitions": definitions,
    })
}

const GROUP_VERSION_KIND: &str = "x-kubernetes-group-version-kind";
const COMPONENTS: &str = "#/components/schemas/";
const DEFINITIONS: &str = "#/definitions/";
/// What the older version has no words for.
const LEFT_OUT: [&str; 6] = ["allOf", "anyOf", "default", "not", "nullable", "oneOf"];

fn list_meta() -> Value {
    json!({
        "description": "ListMeta describes metadata that synthetic resources must have, including lists.",
        "type": "object",
        "properties": {
            "continue": { "type": "string", "description": "Where the rest of the list begins." },
            "remainingItemCount": { "type": "integer", "format": "int64", "description": "How many items are left." },
            "resourceVersion": { "type": "string", "description": "The version of the list." },
            "selfLink": { "type": "string", "description": "Deprecated." },
        },
    })
}

fn reference(text: &str) -> Value {
    text.replace(COMPONENTS, DEFINITIONS).into()
}

/// A schema as the older version says it.
fn definition(schema: Value) -> Value {
    let Value::Object(mut members) = schema else { return schema };
    let only =
        members.get("allOf").and_then(Value::as_array).and_then(|all| all.first()?.get("$ref")?.as_str());
    if let Some(of) = only.or_else(|| members.get("$ref")?.as_str()) {
        let mut shown = Map::from_iter([("$ref".to_owned(), reference(of))]);
        shown.extend(members.remove_entry("description"));
        shown.extend(members.into_iter().filter(|(name, _)| name.starts_with("x-")));
        return shown.into();
    }
    let is = |members: &Map<String, Value>, name: &str| members.get(name).is_some_and(|value| *value == true);
    // Servers keep texts and numbers in types of their own, which write themselves as texts.
    if members.contains_key("oneOf")
        && !members.contains_key("type")
        && !is(&members, "x-kubernetes-int-or-string")
    {
        members.insert("type".to_owned(), "string".into());
    }
    let (nullable, keeps_unknown) =
        (is(&members, "nullable"), is(&members, "x-kubernetes-preserve-unknown-fields"));
    // What has no type, and yet members or items, is more than clients understand.
    if nullable || keeps_unknown {
        members.remove("items");
        members.remove("properties");
    }
    let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
    let untyped = nullable
        || (kind == "array" && !members.contains_key("items"))
        || (kind == "object" && keeps_unknown);
    if untyped {
        members.remove("type");
    }
    if let Some(Value::Object(properties)) = members.get("properties") {
        let nullable: Vec<String> = properties
            .iter()
            .filter(|(_, property)| property["nullable"] == true)
            .map(|(name, _)| name.clone())
            .collect();
        if let Some(Value::Array(required)) = members.get_mut("required") {
            required.retain(|name| !nullable.iter().any(|nullable| name == nullable));
        }
    }
    let shown =
        members.into_iter().filter(|(name, _)| !LEFT_OUT.contains(&name.as_str())).map(|(name, value)| {
            let value = match (name.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    properties.into_iter().map(|(name, schema)| (name, definition(schema))).collect()
                }
                ("items" | "additionalProperties", value) => definition(value),
                (_, value) => value,
            };
            (name, value)
        });
    shown.collect()
}

/// A path as the older version says it.
fn path_item(item: Value) -> Value {
    let Value::Object(operations) = item else { return item };
    operations.into_iter().map(|(method, operation)| (method, self::operation(operation))).collect()
}

fn operation(mut operation: Value) -> Value {
    let of =
        operation.pointer("/responses/200/content/application~1json/schema/$ref").and_then(Value::as_str);
    let schema = json!({ "$ref": reference(of.unwrap_or_default()) });
    let mut parameters: Vec<Value> = Vec::new();
    if matches!(operation["x-kubernetes-action"].as_str(), Some("post" | "put" | "patch")) {
        parameters.push(json!({ "name": "body", "in": "body", "required": true, "schema": schema }));
    }
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        parameters
            .push(json!({ "name": parameter["name"], "in": "query", "type": "string", "uniqueItems": true }));
    }
    let mut shown = json!({
        "consumes": ["*/*"], "produces": ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"],
        "parameters": parameters, "responses": { "200": { "description": "OK", "schema": schema } },
    });
    for name in ["x-kubernetes-action", GROUP_VERSION_KIND] {
        shown[name] = match operation[name].take() {
            // Of an operation one kind is said.
            Value::Array(mut all) if !all.is_empty() => all.remove(0),
            said => said,
        };
    }
    shown
}
