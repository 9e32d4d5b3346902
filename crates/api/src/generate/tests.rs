use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::*;
use crate::examples;

/// One `properties` member, and where it stands.
struct Field<'schema> {
    path: String,
    schema: &'schema Value,
}

fn fields(schema: &Value) -> Vec<Field<'_>> {
    fn walk<'schema>(schema: &'schema Value, path: &str, found: &mut Vec<Field<'schema>>) {
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            found.push(Field { path: path.clone(), schema: inner });
            walk(inner, &path, found);
        }
        for (key, suffix) in [("items", "[]"), ("additionalProperties", "{}")] {
            if schema[key].is_object() {
                walk(&schema[key], &format!("{path}{suffix}"), found);
            }
        }
    }
    let mut found = Vec::new();
    walk(schema, "", &mut found);
    found
}

fn crd_schemas() -> BTreeMap<String, Value> {
    crds()
        .expect("CRDs")
        .iter()
        .map(|crd| {
            let json = serde_json::to_value(crd).expect("a CRD is JSON");
            let name = crd.metadata.name.clone().expect("a CRD has a name");
            (name, json["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone())
        })
        .collect()
}

type Exports = BTreeMap<&'static str, Vec<ResourceSchema>>;

/// Made once: without optimization it takes seconds.
static EXPORTS: LazyLock<Exports> = LazyLock::new(|| export_schemas().expect("schemas"));
static FILES: LazyLock<Vec<GeneratedFile>> = LazyLock::new(|| files().expect("files"));

fn all_export_schemas() -> impl Iterator<Item = &'static ResourceSchema> {
    EXPORTS.values().flatten()
}

#[test]
fn every_field_is_explained_to_kubectl() {
    let mut silent = Vec::new();
    for (name, schema) in crd_schemas() {
        for field in fields(&schema).iter().filter(|field| !field.path.starts_with("metadata")) {
            let text = field.schema["description"].as_str().unwrap_or_default();
            if text.len() < 8 || text.contains("[`") || text.contains("Auto-generated") || text.contains('\n')
            {
                silent.push(format!("{name} {}: {text:?}", field.path));
            }
        }
    }
    assert!(silent.is_empty(), "fields without a proper description:\n{}", silent.join("\n"));
}

#[test]
fn every_kind_has_a_status_subresource_and_printed_columns() {
    for crd in crds().expect("CRDs") {
        let version = &crd.spec.versions[0];
        let name = crd.metadata.name.as_deref().unwrap_or_default();
        assert!(version.subresources.as_ref().is_some_and(|sub| sub.status.is_some()), "{name}: no status");
        let columns = version.additional_printer_columns.clone().unwrap_or_default();
        assert!(columns.len() > 1, "{name}: too few columns");
        assert_eq!(columns.last().map(|column| column.name.as_str()), Some("Age"), "{name}");
    }
}

#[test]
fn no_status_field_is_required() {
    fn required(schema: &Value, path: &str, keys: &[Value], found: &mut Vec<String>) {
        for name in schema["required"].as_array().into_iter().flatten() {
            // A list that is merged by a key cannot do without the key.
            if !keys.contains(name) {
                found.push(format!("{path}.{name}"));
            }
        }
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            let keys = inner["x-kubernetes-list-map-keys"].as_array().cloned().unwrap_or_default();
            required(inner, &format!("{path}.{name}"), &[], found);
            required(&inner["items"], &format!("{path}.{name}[]"), &keys, found);
            required(&inner["additionalProperties"], &format!("{path}.{name}{{}}"), &[], found);
        }
    }
    let mut found = Vec::new();
    for (name, schema) in crd_schemas() {
        let status = &schema["properties"]["status"];
        assert!(status.is_object(), "{name} has no status");
        assert!(!schema["required"].to_string().contains("status"), "{name} requires its status");
        required(status, &format!("{name} status"), &[], &mut found);
    }
    assert!(found.is_empty(), "required in a status:\n{}", found.join("\n"));
}

#[test]
fn every_list_that_a_rule_touches_is_bounded() {
    fn walk(schema: &Value, path: &str, unbounded: &[String], seen: &mut usize, found: &mut Vec<String>) {
        for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            *seen += 1;
            let text = rule["rule"].as_str().expect("a rule");
            found.extend(unbounded.iter().map(|list| format!("{path}: {list} is around {text}")));
            for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
                let bounded = match inner["type"].as_str() {
                    Some("array") => inner["maxItems"].is_number(),
                    Some("string") => inner["maxLength"].is_number() || inner["enum"].is_array(),
                    _ => true,
                };
                if text.contains(&format!("self.{name}")) && !bounded {
                    found.push(format!("{path}.{name} is unbounded in {text}"));
                }
            }
        }
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            let mut outer = unbounded.to_vec();
            if inner["type"] == "array" && !inner["maxItems"].is_number() {
                outer.push(path.clone());
            }
            walk(inner, &path, unbounded, seen, found);
            walk(&inner["items"], &path, &outer, seen, found);
        }
    }
    let (mut seen, mut found) = (0, Vec::new());
    for (name, schema) in crd_schemas() {
        walk(&schema, &name, &[], &mut seen, &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(seen >= 8, "only {seen} rules were found");
}

#[test]
fn schemas_are_structural() {
    fn walk(schema: &Value, path: &str, found: &mut Vec<String>) {
        let is_open = schema["x-kubernetes-preserve-unknown-fields"] == true
            || schema["x-kubernetes-int-or-string"] == true;
        if !schema["type"].is_string() && !is_open {
            found.push(format!("{path}: no type in {schema}"));
        }
        let forbidden = ["$ref", "oneOf", "anyOf", "allOf", "not", "nullable", "title"];
        found.extend(
            forbidden.iter().filter(|key| schema.get(key).is_some()).map(|key| format!("{path}: {key}")),
        );
        let formats = [json!("int32"), json!("int64"), json!("date-time"), json!("byte"), json!("double")];
        if schema.get("format").is_some_and(|format| !formats.contains(format)) {
            found.push(format!("{path}: format {}", schema["format"]));
        }
        for key in schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten() {
            let item = &schema["items"];
            let is_required = item["required"].as_array().is_some_and(|required| required.contains(key));
            let key = key.as_str().unwrap_or_default();
            if !is_required && item["properties"][key].get("default").is_none() {
                found.push(format!("{path}: key {key} may be missing"));
            }
        }
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            walk(inner, &format!("{path}.{name}"), found);
        }
        for key in ["items", "additionalProperties"] {
            if schema[key].is_object() {
                walk(&schema[key], &format!("{path}.{key}"), found);
            }
        }
    }
    let mut found = Vec::new();
    for (name, schema) in crd_schemas() {
        walk(&schema, &name, &mut found);
    }
    for schema in all_export_schemas() {
        walk(&schema.schema, &schema.full_resource(), &mut found);
    }
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

#[test]
fn the_deploy_folder_holds_what_is_generated() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let generated: BTreeMap<_, _> = FILES.iter().map(|file| (file.path.clone(), &file.contents)).collect();
    let mut stale: Vec<_> = generated
        .iter()
        .filter(|(path, contents)| std::fs::read_to_string(root.join(path)).ok().as_ref() != Some(*contents))
        .map(|(path, _)| format!("{path} is missing or differs"))
        .collect();
    for folder in ["deploy/crds", "deploy/kcp"] {
        let there = files_below(&root.join(folder));
        let known =
            |path: &PathBuf| path.strip_prefix(&root).ok().map(|path| path.to_string_lossy().into_owned());
        stale.extend(
            there
                .iter()
                .filter_map(known)
                .filter(|path| !generated.contains_key(path))
                .map(|path| format!("{path} is left over")),
        );
    }
    assert!(stale.is_empty(), "run `cargo xtask generate`:\n{}", stale.join("\n"));
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn what_is_generated_fits() {
    let total: usize = FILES.iter().map(|file| file.contents.len()).sum();
    assert!(total < 6_000_000, "deploy/ would take {total} bytes");
    for schema in all_export_schemas() {
        let size = schema.to_api_resource_schema().to_string().len();
        // An object may take 1.5 MiB, its managed fields included.
        assert!(size < 700_000, "{} takes {size} bytes", schema.full_resource());
    }
}

#[test]
fn generating_twice_gives_the_same_bytes() {
    assert_eq!(files().expect("files"), *FILES);
}

#[test]
fn an_unchanged_schema_keeps_its_name_and_a_changed_one_does_not() {
    let schema = |text: &str| ResourceSchema {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Thing".to_owned(),
        plural: "things".to_owned(),
        singular: "thing".to_owned(),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope: Scope::Cluster,
        schema: serde_json::from_str(text).expect("JSON"),
        subresources: Value::Null,
        columns: Vec::new(),
        any_path_segment_as_name: false,
    };
    let name = schema(r#"{"type": "object", "description": "a"}"#).name();
    // A name that others refer to: if this fails, every schema of every installation gets a new name.
    assert_eq!(name, "hf95457ed.things.core");
    assert_eq!(schema(r#"{"description": "a", "type": "object"}"#).name(), name);
    assert_ne!(schema(r#"{"type": "object", "description": "b"}"#).name(), name);
}

#[test]
fn a_schema_belongs_to_one_export_and_names_are_unique() {
    let count = all_export_schemas().count();
    assert_eq!(all_export_schemas().map(ResourceSchema::full_resource).collect::<BTreeSet<_>>().len(), count);
    assert_eq!(all_export_schemas().map(ResourceSchema::name).collect::<BTreeSet<_>>().len(), count);
}

#[test]
fn schemas_in_protected_groups_are_approved_and_others_claim_nothing() {
    for schema in all_export_schemas() {
        let annotations = schema.to_api_resource_schema()["metadata"]["annotations"].clone();
        let protected = schema.group.ends_with(".k8s.io");
        assert_eq!(annotations.get("api-approved.kubernetes.io").is_some(), protected, "{}", schema.group);
    }
}

#[test]
fn only_the_mailbox_export_claims_and_it_only_reads() {
    for (name, export) in exports().expect("exports") {
        let claims = export["spec"]["permissionClaims"].as_array().cloned().unwrap_or_default();
        assert_eq!(claims.is_empty(), name != "mailbox.mailboat.dev", "{name}");
        for claim in claims {
            assert_eq!(claim["verbs"], json!(["get", "list", "watch"]), "{claim}");
        }
    }
}

#[test]
fn scope_and_subresources_are_those_of_the_real_kinds() {
    let schemas = &*EXPORTS;
    let outline = |export: &str, resource: &str| -> (Scope, Vec<String>) {
        let schema =
            schemas[export].iter().find(|schema| schema.full_resource() == resource).expect(resource);
        let subresources = schema.subresources.as_object().cloned().unwrap_or_default();
        (schema.scope, subresources.keys().cloned().collect::<BTreeSet<_>>().into_iter().collect())
    };
    let both = vec!["scale".to_owned(), "status".to_owned()];
    let status = vec!["status".to_owned()];
    for (resource, scope, subresources) in [
        ("deployments.apps", Scope::Namespaced, &both),
        ("replicationcontrollers.core", Scope::Namespaced, &both),
        ("pods.core", Scope::Namespaced, &status),
        ("services.core", Scope::Namespaced, &status),
        ("persistentvolumes.core", Scope::Cluster, &status),
        ("apiservices.apiregistration.k8s.io", Scope::Cluster, &status),
        ("limitranges.core", Scope::Namespaced, &Vec::new()),
        ("storageclasses.storage.k8s.io", Scope::Cluster, &Vec::new()),
    ] {
        assert_eq!(outline("kubernetes", resource), (scope, subresources.clone()), "{resource}");
    }
    let denatured = "denatured.mailboat.dev";
    let roles = outline(denatured, "roles.rbac.authorization.k8s.io.denatured");
    assert_eq!(roles, (Scope::Namespaced, Vec::new()));
    let crds = outline(denatured, "customresourcedefinitions.apiextensions.k8s.io.denatured");
    assert_eq!(crds, (Scope::Cluster, status));
}

#[test]
fn lists_of_real_kinds_keep_their_merge_keys() {
    let schemas = &*EXPORTS;
    let deployment =
        schemas["kubernetes"].iter().find(|schema| schema.kind == "Deployment").expect("it is there");
    let pod = &deployment.schema["properties"]["spec"]["properties"]["template"]["properties"]["spec"]["properties"];
    let containers = &pod["containers"];
    assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
    let ports = &containers["items"]["properties"]["ports"];
    assert_eq!(ports["x-kubernetes-list-map-keys"], json!(["containerPort", "protocol"]));
    assert_eq!(ports["items"]["properties"]["protocol"]["default"], "TCP");
    assert_eq!(pod["imagePullSecrets"]["items"]["properties"]["name"]["default"], "");
}

#[test]
fn denatured_kinds_hold_anything_and_belong_as_a_whole_to_their_writer() {
    for schema in &EXPORTS["denatured.mailboat.dev"] {
        let name = schema.full_resource();
        assert_eq!(schema.schema["x-kubernetes-preserve-unknown-fields"], true, "{name}");
        assert_eq!(schema.any_path_segment_as_name, name.contains(".rbac."), "{name}");
        for (field, inner) in schema.schema["properties"].as_object().expect("fields") {
            match inner["type"].as_str() {
                Some("object") if field != "metadata" => {
                    assert_eq!(inner["x-kubernetes-map-type"], "atomic", "{name} {field}");
                }
                Some("array") => assert_eq!(inner["x-kubernetes-list-type"], "atomic", "{name} {field}"),
                _ => {}
            }
        }
    }
}

#[test]
fn every_kind_has_examples() {
    let kinds_of = |objects: Vec<Value>| -> BTreeSet<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        objects.iter().map(|object| (text(&object["apiVersion"]), text(&object["kind"]))).collect()
    };
    let of_crds: BTreeSet<_> = crds()
        .expect("CRDs")
        .iter()
        .map(|crd| (format!("{}/{}", crd.spec.group, crd.spec.versions[0].name), crd.spec.names.kind.clone()))
        .collect();
    assert_eq!(kinds_of(examples::valid()), of_crds);
    let objects =
        |invalid: Vec<examples::InvalidExample>| invalid.into_iter().map(|case| case.object).collect();
    assert_eq!(kinds_of(objects(examples::invalid())), of_crds);

    let schemas = &*EXPORTS;
    let of_export = |export: &str| -> BTreeSet<_> {
        let api_version = |schema: &ResourceSchema| {
            if schema.group.is_empty() {
                schema.version.clone()
            } else {
                format!("{}/{}", schema.group, schema.version)
            }
        };
        schemas[export].iter().map(|schema| (api_version(schema), schema.kind.clone())).collect()
    };
    let compute = of_export("kubernetes");
    let denatured = of_export("denatured.mailboat.dev");
    assert_eq!(kinds_of(examples::valid_compute()), compute);
    assert_eq!(kinds_of(examples::valid_denatured()), denatured);
    let builtin: BTreeSet<_> = compute.union(&denatured).cloned().collect();
    assert_eq!(kinds_of(objects(examples::invalid_builtin())), builtin);
}

#[test]
fn an_absent_spec_is_read_as_an_empty_one_where_it_may_be_empty() {
    let schemas = crd_schemas();
    let default = |name: &str| schemas[name]["properties"]["spec"]["default"].clone();
    assert_eq!(default("synctargets.edge.kubestellar.io"), Value::Object(Map::new()));
    assert_eq!(default("locations.edge.kubestellar.io"), Value::Null);
}
