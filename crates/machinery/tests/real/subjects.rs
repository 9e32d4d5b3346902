//! The kinds that are compared, and what is drawn for them.

use std::sync::Arc;
use std::time::Duration;

use mailboat_machinery::Kind;
use mailboat_machinery::builtin::kind_from_openapi;
use mailboat_machinery::machine::kind_from_definition;
use mailboat_object::KindId;
use mailboat_object::merge::merge;
use mailboat_testkit::wait_until;
use serde_json::{Map, Value, json};

use crate::draw::Draw;
use crate::script::Which;
use crate::server::Server;

/// A kind and how its objects are drawn.
pub(crate) struct Subject {
    pub kind: Arc<Kind>,
    collection: &'static str,
    /// What every new object has.
    base: Value,
    spec: fn(&mut Draw) -> Value,
    status: fn(&mut Draw) -> Value,
    pointers: &'static [&'static str],
}

impl Subject {
    pub(crate) fn collection(&self) -> &str {
        self.collection
    }

    /// Content for a change: some metadata, some of the rest.
    pub(crate) fn content(&self, draw: &mut Draw) -> Value {
        let mut content = json!({});
        if draw.chance(40) {
            content["metadata"] = Value::Object(draw.metadata());
        }
        if draw.chance(90) {
            merge(&mut content, &(self.spec)(draw));
        }
        content
    }

    pub(crate) fn status(&self, draw: &mut Draw) -> Value {
        let mut content = if draw.chance(30) { self.content(draw) } else { json!({}) };
        content["status"] = (self.status)(draw);
        content
    }

    /// Content for a new object.
    pub(crate) fn whole(&self, draw: &mut Draw) -> Value {
        let mut whole = self.named(self.base.clone());
        merge(&mut whole, &self.content(draw));
        if draw.chance(20) && self.kind.rules.status.is_some() {
            whole["status"] = (self.status)(draw);
        }
        whole
    }

    /// With kind and version.
    pub(crate) fn named(&self, mut content: Value) -> Value {
        content["apiVersion"] = self.kind.versions[0].api_version.as_str().into();
        content["kind"] = self.kind.name.as_str().into();
        content
    }

    /// The body of an update: the present state, changed.
    pub(crate) fn updated(&self, live: &Value, change: &Value, version: Which, name: &str) -> Value {
        let mut body = if live.is_null() { self.named(self.base.clone()) } else { live.clone() };
        merge(&mut body, change);
        let body = with_name(body, name);
        versioned(body, live, version)
    }

    /// The body of an apply.
    pub(crate) fn intended(live: &Value, intent: &Value, version: Which, name: &str) -> Value {
        versioned(with_name(intent.clone(), name), live, version)
    }

    /// A path for a JSON patch, and a value that may stand there.
    pub(crate) fn pointed(&self, draw: &mut Draw) -> (String, Value) {
        let path = draw.one(self.pointers);
        let value = match draw.below(4) {
            0 => json!("a"),
            1 => json!("b"),
            2 => json!(3),
            _ => json!({ "crew": "a" }),
        };
        (path.to_owned(), value)
    }
}

pub(crate) fn with_name(mut body: Value, name: &str) -> Value {
    body["metadata"]["name"] = name.into();
    body
}

fn versioned(mut body: Value, live: &Value, version: Which) -> Value {
    let metadata = body["metadata"].as_object_mut().unwrap();
    match version {
        Which::None => metadata.remove("resourceVersion"),
        Which::Right => live["metadata"]
            .get("resourceVersion")
            .and_then(|version| metadata.insert("resourceVersion".to_owned(), version.clone())),
        Which::Wrong => metadata.insert("resourceVersion".to_owned(), "1".into()),
    };
    body
}

pub(crate) async fn all(server: &Server) -> Vec<Subject> {
    vec![config_maps(server).await, boats(server).await, services(server).await, deployments(server).await]
}

async fn components(server: &Server, path: &str) -> Value {
    let (code, document) = server.get(&format!("/openapi/v3/{path}")).await;
    assert_eq!(code, 200, "{document}");
    document["components"]["schemas"].clone()
}

async fn config_maps(server: &Server) -> Subject {
    let components = components(server, "api/v1").await;
    let id = KindId::new("", "configmaps");
    let component = "io.k8s.api.core.v1.ConfigMap";
    Subject {
        kind: Arc::new(kind_from_openapi(id, "v1", "ConfigMap", true, component, &components).unwrap()),
        collection: "/api/v1/namespaces/default/configmaps",
        base: json!({ "data": { "k": "v" } }),
        spec: |draw| json!({ "data": draw.texts(&["k", "l", "m"], &["v", "w", ""]) }),
        status: |_| json!({}),
        pointers: &[
            "/data/k",
            "/data/l",
            "/metadata/labels/crew",
            "/metadata/annotations",
            "/metadata/labels",
        ],
    }
}

async fn services(server: &Server) -> Subject {
    let components = components(server, "api/v1").await;
    let component = "io.k8s.api.core.v1.Service";
    let kind = kind_from_openapi(KindId::new("", "services"), "v1", "Service", true, component, &components);
    Subject {
        kind: Arc::new(kind.unwrap()),
        collection: "/api/v1/namespaces/default/services",
        base: json!({ "spec": { "clusterIP": "None", "ports": [{ "port": 80 }], "selector": { "app": "a" } } }),
        spec: |draw| {
            let mut spec = Map::new();
            if draw.chance(60) {
                let names = ["http", "https", "dns"];
                let ports: Vec<_> = [80, 443, 53]
                    .iter()
                    .zip(names)
                    .filter(|_| draw.chance(50))
                    .map(|(port, name)| json!({ "port": port, "name": name }))
                    .collect();
                if !ports.is_empty() {
                    spec.insert("ports".to_owned(), ports.into());
                }
            }
            // With a selector: the families of a service without one depend on the cluster.
            spec.insert("selector".to_owned(), json!({ "app": draw.one(&["a", "b"]) }));
            if draw.chance(20) {
                spec.insert("publishNotReadyAddresses".to_owned(), json!(true));
            }
            spec.insert("clusterIP".to_owned(), "None".into());
            json!({ "spec": spec })
        },
        status: |draw| {
            let condition = |kind: Value, draw: &mut Draw| {
                json!({
                    "type": kind, "status": draw.one(&["True", "False"]), "reason": "Drawn", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                })
            };
            let kinds = draw.some(&["Ready", "Reachable"]);
            json!({ "conditions": kinds.into_iter().map(|kind| condition(kind, draw)).collect::<Vec<_>>() })
        },
        pointers: &[
            "/metadata/labels/crew",
            "/metadata/annotations",
            "/spec/selector/tier",
            "/spec/selector/app",
        ],
    }
}

async fn deployments(server: &Server) -> Subject {
    let components = components(server, "apis/apps/v1").await;
    let component = "io.k8s.api.apps.v1.Deployment";
    let id = KindId::new("apps", "deployments");
    Subject {
        kind: Arc::new(kind_from_openapi(id, "v1", "Deployment", true, component, &components).unwrap()),
        collection: "/apis/apps/v1/namespaces/default/deployments",
        base: json!({ "spec": {
            "selector": { "matchLabels": { "app": "a" } },
            "template": {
                "metadata": { "labels": { "app": "a" } },
                "spec": { "containers": [{ "name": "main", "image": "boat:1" }] },
            },
        }}),
        spec: deployment_spec,
        status: |draw| json!({ "replicas": 1 + draw.below(3), "observedGeneration": 1 + draw.below(2) }),
        pointers: &[
            "/spec/replicas",
            "/metadata/labels/crew",
            "/metadata/annotations",
            "/spec/minReadySeconds",
        ],
    }
}

fn deployment_spec(draw: &mut Draw) -> Value {
    let mut spec = json!({});
    if draw.chance(50) {
        spec["replicas"] = draw.below(4).into();
    }
    if draw.chance(20) {
        spec["minReadySeconds"] = (1 + draw.below(4)).into();
    }
    if draw.chance(60) {
        let container = |draw: &mut Draw, name: &str| {
            let mut container = json!({ "name": name, "image": draw.one(&["boat:1", "boat:2"]) });
            if draw.chance(50) {
                let env = draw.some(&["A", "B", "C"]).into_iter();
                let env: Vec<_> =
                    env.map(|name| json!({ "name": name, "value": draw.one(&["1", "2"]) })).collect();
                if !env.is_empty() {
                    container["env"] = env.into();
                }
            }
            if draw.chance(30) {
                container["args"] = json!(["sail", draw.one(&["east", "west"])]);
            }
            container
        };
        let mut containers = vec![container(draw, "main")];
        if draw.chance(40) {
            containers.insert(draw.below(2), container(draw, "side"));
        }
        spec["selector"] = json!({ "matchLabels": { "app": "a" } });
        spec["template"] = json!({
            "metadata": { "labels": { "app": "a" } },
            "spec": { "containers": containers },
        });
    }
    json!({ "spec": spec })
}

async fn boats(server: &Server) -> Subject {
    let definition: Value = serde_json::from_str(include_str!("boats.json")).unwrap();
    let (code, answer) =
        server.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
    assert_eq!(code, 201, "{answer}");
    let collection = "/apis/example.dev/v1/namespaces/default/boats";
    wait_until("boats are served", Duration::from_secs(30), || async {
        match server.get(collection).await {
            (200, _) => Ok(()),
            (code, answer) => Err(format!("{code} {answer}")),
        }
    })
    .await
    .unwrap();
    Subject {
        kind: Arc::new(kind_from_definition(&definition).unwrap()),
        collection,
        base: json!({ "spec": { "name": "guppy" } }),
        spec: boat_spec,
        status: |draw| {
            let conditions: Vec<_> = draw
                .some(&["Ready", "Afloat"])
                .into_iter()
                .map(|kind| json!({ "type": kind, "status": draw.one(&["True", "False"]) }))
                .collect();
            let mut status = json!({ "phase": draw.one(&["moored", "sailing"]) });
            if draw.chance(60) {
                status["conditions"] = conditions.into();
            }
            if draw.chance(10) {
                status["phase"] = json!(7);
            }
            status
        },
        pointers: &[
            "/spec/name",
            "/spec/count",
            "/spec/harbors/north",
            "/spec/harbors",
            "/spec/tags/0",
            "/spec/tags/-",
            "/spec/extra/x",
            "/metadata/labels/crew",
            "/spec/unknown",
        ],
    }
}

fn boat_spec(draw: &mut Draw) -> Value {
    let mut spec = Map::new();
    let mut set = |draw: &mut Draw, name: &str, percent: usize, value: &dyn Fn(&mut Draw) -> Value| {
        if draw.chance(percent) {
            spec.insert(name.to_owned(), value(draw));
        }
    };
    set(draw, "name", 40, &|draw| draw.one(&["guppy", "perch", "x"]).into());
    set(draw, "count", 30, &|draw| [json!(1), json!(2), json!(-1), json!("many")][draw.below(4)].clone());
    set(draw, "size", 20, &|draw| draw.one(&["small", "large", "huge"]).into());
    set(draw, "tags", 30, &|draw| draw.some(&["red", "green", "blue"]).into());
    set(draw, "stops", 20, &|draw| draw.some(&["ely", "cove"]).into());
    set(draw, "harbors", 40, &|draw| draw.texts(&["north", "south"], &["a", "b"]));
    set(draw, "options", 20, &|draw| draw.texts(&["sail", "oar"], &["a", "b"]));
    set(
        draw,
        "extra",
        20,
        &|draw| json!({ "x": draw.texts(&["y", "z"], &["a"]), "list": draw.some(&["p"]) }),
    );
    set(draw, "nested", 30, &|draw| {
        let mut nested = json!({});
        if draw.chance(60) {
            nested["deep"] = draw.texts(&["a", "b"], &["a", "b"]);
        }
        if draw.chance(30) {
            nested["flag"] = draw.chance(50).into();
        }
        nested
    });
    set(draw, "cargo", 40, &|draw| {
        let items = draw.some(&["coal", "tea", "post"]).into_iter();
        let mut items: Vec<_> = items.map(|id| json!({ "id": id, "weight": draw.below(3) })).collect();
        if draw.chance(20) {
            for item in &mut items {
                item["note"] = draw.one(&["a", "b"]).into();
            }
        }
        items.into()
    });
    set(draw, "maybe", 15, &|draw| if draw.chance(50) { Value::Null } else { "yes".into() });
    set(draw, "unknown", 8, &|_| json!(1));
    json!({ "spec": spec })
}
