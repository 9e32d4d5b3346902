//! What real servers sent (kube-apiserver 1.36), and values made up for property tests.

use proptest::prelude::*;
use serde_json::Value;

use crate::key::{ClusterId, KindId};
use crate::object::{ClusterOf, Keep, Limits, Object, Place};

/// A Deployment applied by kubectl, as an item of a list: without apiVersion and kind.
pub(crate) const DEPLOYMENT: &[u8] = include_bytes!("../fixtures/deployment.json");
/// A ConfigMap with escapes, last-applied-configuration and binary data.
pub(crate) const CONFIGMAP: &[u8] = include_bytes!("../fixtures/configmap.json");
/// A custom resource: applied by `mailboat-syncer`, status patched, then labeled by kubectl.
pub(crate) const BOAT: &[u8] = include_bytes!("../fixtures/boat.json");
/// A list of four pods.
pub(crate) const PODS: &[u8] = include_bytes!("../fixtures/pods.page.json");
/// The first five of 69 ClusterRoles.
pub(crate) const CLUSTERROLES: &[u8] = include_bytes!("../fixtures/clusterroles.page.json");
/// A watch with an initial listing; then one from a version too old.
pub(crate) const BOATS_WATCH: &str = include_str!("../fixtures/boats.watch.jsonl");
/// The answer to a GET of a pod that is not there.
pub(crate) const NOT_FOUND: &[u8] = include_bytes!("../fixtures/notfound.status.json");

/// One object of every kind at hand.
pub(crate) const OBJECTS: [&[u8]; 9] = [
    DEPLOYMENT,
    CONFIGMAP,
    BOAT,
    include_bytes!("../fixtures/secret.json"),
    include_bytes!("../fixtures/service.json"),
    include_bytes!("../fixtures/flowschema.json"),
    include_bytes!("../fixtures/customresourcedefinition.json"),
    include_bytes!("../fixtures/namespace.json"),
    include_bytes!("../fixtures/job.json"),
];

/// Decodes as from one cluster, with our manager `mailboat-syncer`.
pub(crate) fn decode(json: &[u8], keep: Keep) -> Result<Object, crate::Malformed> {
    let place = Place {
        cluster: ClusterOf::One(&ClusterId::new("north")),
        kind: &KindId::new("example.com", "things"),
        api_version: "example.com/v1",
        kind_name: "Thing",
        manager: "mailboat-syncer",
        keep,
        limits: Limits::default(),
    };
    Object::decode(json, &place)
}

pub(crate) fn value(json: &[u8]) -> Value {
    serde_json::from_slice(json).expect("JSON")
}

/// Any JSON value.
pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no such numbers", |float| float.is_finite()).prop_map(Value::from),
        (-1000..1000_i32).prop_map(|float| Value::from(f64::from(float) / 8.0)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-c\"\\\\\n]{0,3}", inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// One of the real objects with some bytes changed, left out or put in.
pub(crate) fn mutated_object() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop::sample::select(br#"{}[]",:\0129eE.-+ntfu /"#.to_vec());
    let mutation = (any::<prop::sample::Index>(), 0..3_u8, prop_oneof![4 => bytes, 1 => any::<u8>()]);
    (prop::sample::select(OBJECTS.to_vec()), prop::collection::vec(mutation, 1..4)).prop_map(
        |(json, mutations)| {
            let mut json = json.to_vec();
            for (index, operation, byte) in mutations {
                let at = index.index(json.len());
                match operation {
                    0 => json[at] = byte,
                    1 => drop(json.remove(at)),
                    _ => json.insert(at, byte),
                }
            }
            json
        },
    )
}
