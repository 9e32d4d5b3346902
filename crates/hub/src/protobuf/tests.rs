//! What is written reads back the same, and what is damaged is refused.

use serde_json::{Value, json};

use super::read::special;
use super::table::MESSAGES;
use super::*;

fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
    out.extend_from_slice(content);
    out
}

fn body(kind: &str, api_version: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), field(1, &type_meta), field(2, raw)].concat()
}

#[test]
fn a_config_map_reads_as_in_json() {
    let metadata = [field(1, b"tide"), field(3, b""), field(8, b"")].concat();
    let entry = [field(1, b"k"), field(2, b"v")].concat();
    let raw = [field(1, &metadata), field(2, &entry)].concat();
    let value = read(&body("ConfigMap", "v1", &raw)).unwrap();
    let expected = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "tide" }, "data": { "k": "v" },
    });
    assert_eq!(value, expected);
}

#[test]
fn numbers_texts_and_inlined_members_are_told_apart() {
    // spec { selector {} template { spec { containers [{ name: "c", env [{ valueFrom { secretKeyRef { name, key }}}] }] } } }
    let key_reference = [field(1, &field(1, b"secret")), field(2, b"key")].concat();
    let env = [field(1, b"E"), field(3, &field(4, &key_reference))].concat();
    let container = [field(1, b"c"), field(7, &env)].concat();
    let pod = field(2, &container);
    let raw = [field(1, &field(1, b"p")), field(2, &pod)].concat();
    let value = read(&body("Pod", "v1", &raw)).unwrap();
    let reference = &value["spec"]["containers"][0]["env"][0]["valueFrom"]["secretKeyRef"];
    assert_eq!(*reference, json!({ "name": "secret", "key": "key" }), "{value}");
}

#[test]
fn damaged_bodies_are_refused() {
    assert_eq!(read(b"{}"), Err(BadProtobuf::NoMagic));
    assert_eq!(read(&body("Boat", "sea.example/v1", &[])), Err(BadProtobuf::UnknownKind));
    let whole = body("ConfigMap", "v1", &field(1, &field(1, b"tide")));
    // Cut between its two fields it is whole, and empty.
    let between = whole.len() - 2 - field(1, &field(1, b"tide")).len();
    for cut in (5..whole.len()).filter(|cut| *cut != between) {
        assert!(read(&whole[..cut]).is_err(), "cut at {cut}");
    }
    assert_eq!(read(&body("ConfigMap", "v1", &[0x0f])), Err(BadProtobuf::Damaged));
}

#[test]
fn every_kind_that_the_list_names_is_complete() {
    for (name, message) in MESSAGES.iter() {
        for field in message.values().filter(|field| field.of.contains('.')) {
            let known = MESSAGES.contains_key(field.of) || special(field.of, &[], 0).is_some();
            assert!(known, "{name}.{} is a {}", field.name, field.of);
        }
    }
}

/// Draws objects of the built-in kinds by their schemas.
struct Drawn<'s> {
    schemas: &'s Value,
    state: u64,
}

impl Drawn<'_> {
    /// A number below another.
    fn below(&mut self, end: u64) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % end
    }

    fn byte(&mut self) -> u8 {
        self.below(256).to_le_bytes()[0]
    }

    fn text(&mut self) -> String {
        const TEXTS: [&str; 6] = ["a", "tide table", "ж", "\u{1f6a2}", "0", "true"];
        format!("{}{}", TEXTS[usize::from(self.byte() % 6)], self.below(1000))
    }

    fn any(&mut self) -> Value {
        match self.below(4) {
            0 => json!({ "f:spec": { ".": {}, "f:a": [1, -2.5, null, "x"] } }),
            1 => json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "k": self.text() } }),
            2 => json!({ "n": 1_234_567_890_123_i64 }),
            _ => json!({ "s": self.text() }),
        }
    }

    fn component(&mut self, name: &str, depth: usize) -> Value {
        let time =
            |drawn: &mut Self| format!("20{:02}-03-04T05:06:{:02}", drawn.below(90) + 10, drawn.below(60));
        let schema = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
        match name.rsplit('.').next().unwrap() {
            "MicroTime" => format!("{}.{:06}Z", time(self), self.below(1_000_000)).into(),
            "Time" if self.below(9) == 0 => "1815-06-18T11:35:00Z".into(),
            "Time" => format!("{}Z", time(self)).into(),
            "Quantity" => format!("{}Mi", self.below(5000)).into(),
            "IntOrString" if self.below(2) == 0 => self.below(70000).into(),
            "IntOrString" => "25%".into(),
            "RawExtension" | "FieldsV1" => self.any(),
            "JSON" => match self.below(4) {
                0 => json!([1, "a", { "b": false }]),
                1 => json!(0),
                2 => json!(""),
                _ => self.any(),
            },
            "JSONSchemaPropsOrBool" if self.below(2) == 0 => (self.below(2) == 0).into(),
            "JSONSchemaPropsOrArray" if self.below(2) == 0 => {
                json!([{ "type": "string" }, { "type": "null" }])
            }
            "JSONSchemaPropsOrStringArray" if self.below(2) == 0 => json!(["a", "b"]),
            "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrStringArray" => {
                self.component(schema, depth)
            }
            _ => {
                let described = &self.schemas[name];
                assert!(described.is_object(), "there is no schema {name}");
                let mut described = described.clone();
                // What an object is in which no other stands is said beside it; of one in another it is not said.
                if described["properties"].get("metadata").is_some() {
                    let properties = described["properties"].as_object_mut().unwrap();
                    properties.retain(|name, _| name != "apiVersion" && name != "kind");
                }
                self.value(&described, depth)
            }
        }
    }

    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        let reference =
            schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref")).and_then(Value::as_str);
        if let Some(reference) = reference {
            return self.component(reference.rsplit('/').next().unwrap(), depth + 1);
        }
        let format = schema["format"].as_str().unwrap_or_default();
        match schema["type"].as_str().unwrap_or_default() {
            "string" if format == "byte" => {
                let bytes: Vec<u8> = (0..=self.below(5)).map(|_| self.byte()).collect();
                base64::Engine::encode(&base64::prelude::BASE64_STANDARD, bytes).into()
            }
            "string" => self.text().into(),
            "boolean" => true.into(),
            "integer" if self.below(4) == 0 => (-1 - self.below(1 << 30).cast_signed()).into(),
            "integer" if format == "int64" && self.below(2) == 0 => (self.below(1 << 30) << 30 | 1).into(),
            "integer" => (1 + self.below(1 << 30)).into(),
            "number" => (f64::from(self.byte()) + 0.5).into(),
            "array" => (0..=self.below(2)).map(|_| self.value(&schema["items"], depth)).collect(),
            "object" if schema["additionalProperties"].is_object() => {
                let named = |number| {
                    (format!("key.example/{number}"), self.value(&schema["additionalProperties"], depth))
                };
                Value::Object((0..2).map(named).collect())
            }
            "object" => {
                let mut members = serde_json::Map::new();
                let required = schema["required"].as_array().cloned().unwrap_or_default();
                for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                    let likely = if depth < 3 { 8 } else { 11_u64.saturating_sub(depth as u64 * 2) };
                    if required.iter().any(|one| one == name) || self.below(10) < likely {
                        members.insert(name.clone(), self.value(property, depth));
                    }
                }
                members.into()
            }
            other => panic!("no value of {other:?}: {schema}"),
        }
    }
}

/// Says where two values differ, and not all that they are.
fn same(read: &Value, said: &Value, path: &str) {
    match (read, said) {
        (Value::Object(read), Value::Object(said)) => {
            for name in read.keys().chain(said.keys()) {
                let at =
                    |members: &serde_json::Map<String, Value>| members.get(name).cloned().unwrap_or_default();
                same(&at(read), &at(said), &format!("{path}.{name}"));
            }
        }
        (Value::Array(read), Value::Array(said)) if read.len() == said.len() => {
            read.iter().zip(said).for_each(|(read, said)| same(read, said, &format!("{path}[]")));
        }
        _ => assert_eq!(read, said, "{path}"),
    }
}

fn catalog() -> (Value, Vec<(String, String, String)>) {
    let catalog: Value = serde_json::from_str(include_str!("../../data/kubernetes.json")).unwrap();
    let mut kinds = Vec::new();
    for group in catalog["groups"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            let (group, version) = (group["group"].as_str().unwrap(), version["version"].as_str().unwrap());
            let api_version =
                if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
            let resources =
                catalog["groups"].as_array().unwrap().iter().filter(|found| found["group"] == group);
            for resource in resources.flat_map(|found| found["versions"].as_array().unwrap()) {
                for resource in resource["resources"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter(|_| resource["version"] == version)
                {
                    let text = |name: &str| resource[name].as_str().unwrap().to_owned();
                    kinds.push((api_version.clone(), text("kind"), text("schema")));
                }
            }
        }
    }
    (catalog["schemas"].clone(), kinds)
}

#[test]
fn objects_of_all_built_in_kinds_read_back_as_they_were() {
    let (schemas, kinds) = catalog();
    assert!(kinds.len() > 50, "{}", kinds.len());
    for (at, (api_version, kind, schema)) in kinds.iter().enumerate() {
        assert!(is_known(api_version, kind), "{api_version} {kind}");
        let mut drawn = Drawn { schemas: &schemas, state: at as u64 };
        let mut items = Vec::new();
        for _ in 0..12 {
            let mut object = drawn.component(schema, 0);
            items.push(object.clone());
            object["apiVersion"] = api_version.as_str().into();
            object["kind"] = kind.as_str().into();
            let written = write(&object).unwrap_or_else(|error| panic!("{kind}: {error}: {object}"));
            same(&read(&written).unwrap(), &object, kind);
        }
        let list = json!({
            "apiVersion": api_version, "kind": format!("{kind}List"),
            "metadata": { "resourceVersion": "7", "continue": "more", "remainingItemCount": 3 }, "items": items,
        });
        same(&read(&write(&list).unwrap()).unwrap(), &list, kind);
    }
}

#[test]
fn zeros_are_said_where_json_says_them() {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": {
            "replicas": 0, "selector": {}, "strategy": { "rollingUpdate": { "maxSurge": 0, "maxUnavailable": "0%" } },
            "template": { "metadata": {}, "spec": { "automountServiceAccountToken": false, "containers": [
                { "name": "", "resources": {}, "env": [{ "name": "E" }], "command": [""] },
            ] } },
        },
        "status": {},
    });
    assert_eq!(read(&write(&deployment).unwrap()).unwrap(), deployment);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a", "labels": { "k": "" } }, "data": { "k": "" },
    });
    assert_eq!(read(&write(&secret).unwrap()).unwrap(), secret);
    let nothing = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "creationTimestamp": null }, "rules": null,
    });
    let said = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {} });
    assert_eq!(read(&write(&nothing).unwrap()).unwrap(), said);
}

#[test]
fn what_stands_in_items_alone_is_no_list() {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" }, "spec": { "volumes": [{ "name": "v", "projected": {
            "sources": [{ "downwardAPI": { "items": [{ "path": "labels" }] } }],
        } }] },
    });
    assert_eq!(read(&write(&pod).unwrap()).unwrap()["spec"], pod["spec"]);
}

#[test]
fn what_is_nested_as_deep_as_may_be_reads_back() {
    let mut schema = json!({ "type": "string" });
    for _ in 0..85 {
        schema = json!({ "not": schema });
    }
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "a" },
        "spec": { "group": "", "names": { "plural": "", "kind": "" }, "scope": "", "versions": [
            { "name": "v1", "served": false, "storage": false, "schema": { "openAPIV3Schema": schema } },
        ] },
    });
    assert_eq!(read(&write(&definition).unwrap()).unwrap(), definition);
}

#[test]
fn events_of_a_watch_say_how_long_they_are() {
    let status =
        json!({ "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": 410 });
    let mut stream = Vec::new();
    event("ERROR", &write(&status).unwrap(), &mut stream);
    let whole = stream.len();
    assert_eq!(read_event(&stream[..whole - 1]).unwrap(), None);
    event("ERROR", &write(&status).unwrap(), &mut stream);
    let (length, first) = read_event(&stream).unwrap().unwrap();
    assert_eq!((length, first), (whole, json!({ "type": "ERROR", "object": status })));
}

#[test]
fn what_is_of_another_type_is_not_said_at_all() {
    for wrong in [
        json!({ "name": 7 }),
        json!({ "labels": [] }),
        json!({ "generation": "1" }),
        json!({ "creationTimestamp": "now" }),
    ] {
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": wrong });
        assert_eq!(write(&object), Err(BadProtobuf::Damaged), "{object}");
    }
}
