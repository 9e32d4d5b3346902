//! OpenAPI v3 documents of a real API server: which are needed, and what of them.
//!
//! An API server's documents hold much that is not needed here. What is kept: which resources exist and which
//! subresources they have (`paths`), and the schemas of the kinds in question with all that these refer to,
//! each description cut to its first sentence.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::GenerateError;
use super::kinds::{BuiltinKind, COMPUTE, DENATURED};
use super::schema::Scope;

/// A document that is kept beside the sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenApiSource {
    /// Where an API server serves it, for example `/openapi/v3/apis/apps/v1`.
    pub server_path: String,
    /// Where it is kept, from the root of the repository.
    pub file_path: String,
}

/// All documents that are kept, by path.
pub fn openapi_sources() -> Vec<OpenApiSource> {
    let prefixes: BTreeSet<_> = COMPUTE.iter().chain(DENATURED).map(BuiltinKind::api_prefix).collect();
    prefixes
        .into_iter()
        .map(|prefix| OpenApiSource {
            server_path: format!("/openapi/v3{prefix}"),
            file_path: format!(
                "crates/api/openapi/{}.json",
                prefix.trim_start_matches('/').replace('/', "__")
            ),
        })
        .collect()
}

/// Cuts a document, as an API server sends it, down to what is kept.
pub fn trim_openapi(raw: &str) -> Result<String, GenerateError> {
    let document = Document::parse("a server", raw)?;
    let mut kept = Document { info: document.info.clone(), ..Document::default() };
    for kind in COMPUTE.iter().chain(DENATURED) {
        let paths = document.paths_of(kind);
        kept.paths.extend(paths.into_iter().map(|path| (path, Value::Object(Map::new()))));
    }
    for kind in COMPUTE.iter().filter(|kind| document.serves(kind)) {
        document.keep_with_references(&document.root_name(kind)?, &mut kept.components.schemas);
    }
    for kind in DENATURED.iter().filter(|kind| document.serves(kind)) {
        let name = document.root_name(kind)?;
        let schema = document.components.schemas.get(&name).cloned().unwrap_or_default();
        kept.components.schemas.entry(name).or_insert_with(|| trim_shallow(&schema));
    }
    // One line for each schema: small, and still a readable difference when Kubernetes moves on.
    let mut schemas = Vec::new();
    for (name, schema) in &kept.components.schemas {
        schemas.push(format!("{}: {}", Value::from(name.as_str()), super::yaml::canonical_json(schema)));
    }
    let info = super::yaml::canonical_json(&kept.info);
    let paths: Vec<_> =
        kept.paths.keys().map(|path| format!("{}: {{}}", Value::from(path.as_str()))).collect();
    Ok(format!(
        "{{\n\"info\": {info},\n\"paths\": {{\n{}\n}},\n\"components\": {{\"schemas\": {{\n{}\n}}}}\n}}\n",
        paths.join(",\n"),
        schemas.join(",\n")
    ))
}

/// A document, whole or trimmed.
#[derive(Serialize, Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct Document {
    info: Value,
    paths: BTreeMap<String, Value>,
    components: Components,
    #[serde(skip)]
    group_version: String,
}

#[derive(Serialize, Deserialize, Debug, Default)]
#[serde(default)]
struct Components {
    schemas: BTreeMap<String, Value>,
}

impl Document {
    pub(super) fn parse(group_version: &str, text: &str) -> Result<Self, GenerateError> {
        let mut document: Self = serde_json::from_str(text).map_err(|source| GenerateError::Json {
            what: format!("the OpenAPI document of {group_version}"),
            source,
        })?;
        group_version.clone_into(&mut document.group_version);
        Ok(document)
    }

    /// The schema that `$ref` names.
    pub(super) fn schema(&self, name: &str) -> Result<&Value, GenerateError> {
        self.components.schemas.get(name).ok_or_else(|| self.missing(format!("schema {name}")))
    }

    /// The schema of a kind.
    pub(super) fn root(&self, kind: &BuiltinKind) -> Result<&Value, GenerateError> {
        self.schema(&self.root_name(kind)?)
    }

    /// Whether objects of a kind are in namespaces.
    pub(super) fn scope(&self, kind: &BuiltinKind) -> Result<Scope, GenerateError> {
        if self.paths.contains_key(&kind.namespaced_path()) {
            Ok(Scope::Namespaced)
        } else if self.paths.contains_key(&kind.cluster_path()) {
            Ok(Scope::Cluster)
        } else {
            Err(self.missing(kind.cluster_path()))
        }
    }

    /// Whether a kind has a subresource, such as `status`.
    pub(super) fn has_subresource(&self, kind: &BuiltinKind, subresource: &str) -> bool {
        [kind.namespaced_path(), kind.cluster_path()]
            .iter()
            .any(|path| self.paths.contains_key(&format!("{path}/{subresource}")))
    }

    fn serves(&self, kind: &BuiltinKind) -> bool {
        self.scope(kind).is_ok()
    }

    fn paths_of(&self, kind: &BuiltinKind) -> Vec<String> {
        let (namespaced, cluster) = (kind.namespaced_path(), kind.cluster_path());
        let object = if self.paths.contains_key(&namespaced) { namespaced } else { cluster };
        ["", "/status", "/scale"]
            .iter()
            .map(|subresource| format!("{object}{subresource}"))
            .filter(|path| self.paths.contains_key(path))
            .collect()
    }

    fn root_name(&self, kind: &BuiltinKind) -> Result<String, GenerateError> {
        let wanted = serde_json::json!([{ "group": kind.group, "version": kind.version, "kind": kind.kind }]);
        self.components
            .schemas
            .iter()
            .find(|(_, schema)| schema["x-kubernetes-group-version-kind"] == wanted)
            .map(|(name, _)| name.clone())
            .ok_or_else(|| self.missing(format!("kind {}", kind.kind)))
    }

    fn keep_with_references(&self, name: &str, kept: &mut BTreeMap<String, Value>) {
        let Some(schema) = self.components.schemas.get(name) else { return };
        if kept.contains_key(name) {
            return;
        }
        let trimmed = trim(schema);
        let mut references = Vec::new();
        collect_references(&trimmed, &mut references);
        kept.insert(name.to_owned(), trimmed);
        for reference in references {
            self.keep_with_references(&reference, kept);
        }
    }

    fn missing(&self, what: String) -> GenerateError {
        GenerateError::Missing { group_version: self.group_version.clone(), what }
    }
}

/// The name in a `$ref`.
pub(super) fn reference_name(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or(reference)
}

fn collect_references(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get("$ref") {
                references.push(reference_name(reference).to_owned());
            }
            map.values().for_each(|value| collect_references(value, references));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, references)),
        _ => {}
    }
}

fn trim(schema: &Value) -> Value {
    const DROPPED: [&str; 3] =
        ["x-kubernetes-patch-merge-key", "x-kubernetes-patch-strategy", "x-kubernetes-unions"];
    let Value::Object(members) = schema else { return schema.clone() };
    let mut trimmed = Map::new();
    for (key, value) in members.iter().filter(|(key, _)| !DROPPED.contains(&key.as_str())) {
        let value = match (key.as_str(), value) {
            ("description", Value::String(text)) => Value::String(first_sentence(text)),
            // Below, names are of fields, not of keywords.
            ("properties", Value::Object(properties)) => {
                Value::Object(properties.iter().map(|(name, inner)| (name.clone(), trim(inner))).collect())
            }
            ("items" | "additionalProperties", inner) => trim(inner),
            _ => value.clone(),
        };
        trimmed.insert(key.clone(), value);
    }
    Value::Object(trimmed)
}

/// Keeps of each field only what type it has.
fn trim_shallow(schema: &Value) -> Value {
    let mut trimmed = trim(schema);
    if let Some(Value::Object(properties)) = trimmed.get_mut("properties") {
        for property in properties.values_mut() {
            let type_ = property.get("type").cloned().unwrap_or_else(|| "object".into());
            *property = serde_json::json!({ "type": type_, "description": property["description"] });
        }
    }
    trimmed
}

/// The first sentence of a description, or its first paragraph if that is shorter.
pub(super) fn first_sentence(text: &str) -> String {
    const ABBREVIATIONS: [&str; 5] = ["e.g", "i.e", "etc", "vs", "cf"];
    let paragraph =
        text.split("\n\n").next().unwrap_or(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let mut from = 0;
    while let Some(found) = paragraph[from..].find(". ") {
        let end = from + found;
        let word = paragraph[..end].rsplit([' ', '(']).next().unwrap_or_default();
        if !ABBREVIATIONS.contains(&word) {
            return paragraph[..=end].to_owned();
        }
        from = end + 2;
    }
    paragraph
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_cut_after_the_first_sentence() {
        for (text, expected) in [
            ("One. Two.", "One."),
            ("Takes e.g. this one. Two.", "Takes e.g. this one."),
            ("No end", "No end"),
            ("First paragraph\n\nSecond. Third.", "First paragraph"),
            ("Two\nlines. More.", "Two lines."),
        ] {
            assert_eq!(first_sentence(text), expected);
        }
    }

    #[test]
    fn a_document_that_is_no_json_is_refused_by_name() {
        let refusal = trim_openapi("<html>").expect_err("no JSON");
        assert!(refusal.to_string().contains("OpenAPI document"), "{refusal}");
    }

    #[test]
    fn trimming_what_is_trimmed_changes_nothing() {
        for source in openapi_sources() {
            let text = super::super::builtin::document_text(&source.server_path).expect("a kept document");
            assert_eq!(trim_openapi(text).expect("it trims"), text, "{}", source.file_path);
        }
    }
}
