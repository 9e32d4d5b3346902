//! Every schema on real servers: installed, filled with valid objects, and defended against invalid ones.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::time::Duration;

use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use kube::core::GroupVersionKind;
use mailboat_api::condition::{Condition, ConditionStatus, find};
use mailboat_api::examples::{self, InvalidExample};
use mailboat_api::generate::{self, MAILBOX_CLAIMS};
use mailboat_api::{kcp, names};
use mailboat_testkit::{ADMIN, EdgeSpec, Workspace, World, apply_object, served, wait_until};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);
/// kcp takes 5 s to establish a new kind, a minute for all of these at once, and several on a busy machine.
const BOUND_LIMIT: Duration = Duration::from_mins(8);

#[tokio::test]
async fn a_plain_cluster_takes_every_crd_and_judges_every_example() {
    let world = World::builder().edge_with(EdgeSpec::bare("plain")).start().await.unwrap();
    let client = world.edge("plain").client(ADMIN).await.unwrap();
    for crd in generate::crds().expect("CRDs") {
        let applied = apply_object(&client, &object(&serde_json::to_value(crd).unwrap())).await.unwrap();
        let name = applied.metadata.name.unwrap_or_default();
        wait_until(format!("{name} established"), SOON, || accepted(&client, &name)).await.unwrap();
    }
    for valid in examples::valid() {
        create_and_read_back(&client, &valid).await;
    }
    for invalid in examples::invalid() {
        is_refused(&client, &invalid).await;
    }
}

#[tokio::test]
async fn kcp_takes_every_schema_and_judges_every_example() {
    let world = World::shared().await.unwrap();
    let center = world.center();
    let provider = center.workspace("provider").await.unwrap();
    let at_provider = center.client(ADMIN, &provider.path).await.unwrap();
    let schemas = api(&at_provider, "apis.kcp.io/v1alpha1", "APIResourceSchema", None).await;
    let wanted: Vec<_> = generate::export_schemas().expect("schemas").into_values().flatten().collect();
    let created = wanted.iter().map(|schema| async {
        schemas.create(&PostParams::default(), &object(&schema.to_api_resource_schema())).await
    });
    futures::future::try_join_all(created).await.unwrap();
    let exports = generate::exports().expect("exports");
    for export in exports.values() {
        apply_object(&at_provider, &object(export)).await.unwrap();
    }

    let consumer = center.workspace("consumer").await.unwrap();
    let client = center.client(ADMIN, &consumer.path).await.unwrap();
    for name in exports.keys() {
        // While the binding that claims APIBindings comes into force, kcp refuses others for a moment: it wants a
        // label on them that it has not put there yet.
        let binding = object(&binding(&provider.path, name));
        wait_until(format!("{name} taken"), SOON, || apply_object(&client, &binding)).await.unwrap();
    }
    for name in exports.keys() {
        let bound = wait_until(format!("{name} bound"), BOUND_LIMIT, || bound(&client, name)).await.unwrap();
        let count = exports[name]["spec"]["resources"].as_array().map_or(0, Vec::len);
        assert_eq!(bound.status.bound_resources.len(), count, "{name}");
    }

    let ours = examples::valid().into_iter().filter(|object| !is_of_a_plain_cluster(object));
    for valid in ours.chain(examples::valid_compute()).chain(examples::valid_denatured()) {
        create_and_read_back(&client, &valid).await;
    }
    let ours = examples::invalid().into_iter().filter(|case| !is_of_a_plain_cluster(&case.object));
    for invalid in ours.chain(examples::invalid_builtin()) {
        is_refused(&client, &invalid).await;
    }
    the_mailbox_view_shows_what_is_claimed(world, &provider, &consumer).await;
}

/// The claims are accepted, and each claimed kind can be listed through the view over all workspaces.
async fn the_mailbox_view_shows_what_is_claimed(world: &World, provider: &Workspace, consumer: &Workspace) {
    let center = world.center();
    let at_consumer = center.client(ADMIN, &consumer.path).await.unwrap();
    wait_until("all claims in force", BOUND_LIMIT, || async {
        let applied =
            bound(&at_consumer, names::export::MAILBOX).await?.status.applied_permission_claims.len();
        if applied == MAILBOX_CLAIMS.len() { Ok(()) } else { Err(format!("{applied} claims")) }
    })
    .await
    .unwrap();
    let at_provider = center.client(ADMIN, &provider.path).await.unwrap();
    let slices = api(&at_provider, "apis.kcp.io/v1alpha1", "APIExportEndpointSlice", None).await;
    let slice: kcp::ApiExportEndpointSlice = typed(&slices.get(names::export::MAILBOX).await.unwrap());
    let mut access = center.access(ADMIN, &provider.path).unwrap();
    access.url = format!("{}/clusters/*", slice.status.endpoints[0].url);
    let view = access.client().await.unwrap();
    for claim in MAILBOX_CLAIMS {
        let version = if claim.group.ends_with("kcp.io") { "v1alpha1" } else { "v1" };
        let kind = GroupVersionKind::gvk(claim.group, version, "");
        let claimed: Api<DynamicObject> =
            Api::all_with(view.clone(), &ApiResource::from_gvk_with_plural(&kind, claim.resource));
        let listed = wait_until(format!("{} listed in the view", claim.resource), SOON, || {
            let claimed = claimed.clone();
            async move { claimed.list(&ListParams::default()).await }
        });
        let listed = listed.await.unwrap();
        let clusters: BTreeSet<_> = listed.items.iter().filter_map(cluster_of).collect();
        // Every workspace has these; of the other kinds there may be none.
        if ["namespaces", "apibindings", "logicalclusters"].contains(&claim.resource) {
            assert_eq!(clusters, BTreeSet::from([consumer.cluster.as_str()]), "{}", claim.resource);
        }
    }
}

async fn create_and_read_back(client: &kube::Client, example: &Value) {
    let object = object(example);
    let name = object.metadata.name.clone().unwrap_or_default();
    let api = api_of(client, &object).await;
    let what = format!("{} {} {name}", example["apiVersion"], example["kind"]);
    let created = api.create(&PostParams::default(), &object).await;
    created.unwrap_or_else(|error| panic!("{what} was refused: {error}"));
    let read = serde_json::to_value(api.get(&name).await.unwrap()).unwrap();
    let mut lost = Vec::new();
    find_lost(example, &read, "", &mut lost);
    assert!(lost.is_empty(), "{what} lost {lost:?}: {read:#}");
}

async fn is_refused(client: &kube::Client, invalid: &InvalidExample) {
    let object = object(&invalid.object);
    let what = format!(
        "{} {} without a right {}",
        invalid.object["apiVersion"], invalid.object["kind"], invalid.field
    );
    match api_of(client, &object).await.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(status)) => {
            assert_eq!(status.code, 422, "{what}: {}", status.message);
            let causes = status.details.as_ref().map(|details| details.causes.clone()).unwrap_or_default();
            let names: Vec<_> = causes.iter().map(|cause| cause.field.as_str()).collect();
            assert!(names.contains(&invalid.field), "{what}: {names:?} named in {}", status.message);
        }
        other => panic!("{what}: {other:?}"),
    }
}

/// What of `wanted` is not in `seen`; servers may add, and drop what is null.
fn find_lost(wanted: &Value, seen: &Value, path: &str, lost: &mut Vec<String>) {
    match (wanted, seen) {
        (Value::Null, _) => {}
        (Value::Object(wanted), Value::Object(seen)) => {
            for (key, value) in wanted {
                find_lost(value, seen.get(key).unwrap_or(&Value::Null), &format!("{path}.{key}"), lost);
            }
        }
        (Value::Array(wanted), Value::Array(seen)) if wanted.len() == seen.len() => {
            for (index, (wanted, seen)) in wanted.iter().zip(seen).enumerate() {
                find_lost(wanted, seen, &format!("{path}[{index}]"), lost);
            }
        }
        _ if wanted == seen => {}
        _ => lost.push(format!("{path} (now {seen})")),
    }
}

/// PublishedResources stand in service clusters, and no export offers them.
fn is_of_a_plain_cluster(object: &Value) -> bool {
    object["kind"] == "PublishedResource"
}

fn binding(provider: &str, export: &str) -> Value {
    let mut binding = json!({
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIBinding",
        "metadata": { "name": export },
        "spec": { "reference": { "export": { "path": provider, "name": export } } },
    });
    if export == names::export::MAILBOX {
        binding["spec"]["permissionClaims"] = MAILBOX_CLAIMS
            .iter()
            .map(|claim| {
                json!({ "group": claim.group, "resource": claim.resource, "verbs": claim.verbs,
                        "state": "Accepted", "selector": { "matchAll": true } })
            })
            .collect();
    }
    binding
}

async fn bound(client: &kube::Client, name: &str) -> Result<kcp::ApiBinding, String> {
    let bindings = api(client, "apis.kcp.io/v1alpha2", "APIBinding", None).await;
    let binding: kcp::ApiBinding = typed(&bindings.get(name).await.map_err(|error| error.to_string())?);
    if binding.status.phase == "Bound" {
        Ok(binding)
    } else {
        Err(format!("{:?}", binding.status.conditions))
    }
}

/// Names accepted, established, and nothing to complain about the schema.
async fn accepted(client: &kube::Client, name: &str) -> Result<(), String> {
    let crds = api(client, "apiextensions.k8s.io/v1", "CustomResourceDefinition", None).await;
    let crd = crds.get(name).await.map_err(|error| error.to_string())?;
    let conditions: Vec<Condition> =
        typed::<Option<_>>(&crd.data["status"]["conditions"]).unwrap_or_default();
    let established =
        find(&conditions, "Established").is_some_and(|found| found.status == ConditionStatus::True);
    assert!(find(&conditions, "NonStructuralSchema").is_none(), "{name}: {conditions:?}");
    if established { Ok(()) } else { Err(format!("{conditions:?}")) }
}

async fn api_of(client: &kube::Client, object: &DynamicObject) -> Api<DynamicObject> {
    let types = object.types.as_ref().expect("an example has a kind");
    api(client, &types.api_version, &types.kind, object.metadata.namespace.as_deref()).await
}

async fn api(
    client: &kube::Client,
    version: &str,
    kind: &str,
    namespace: Option<&str>,
) -> Api<DynamicObject> {
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = GroupVersionKind::gvk(group, version, kind);
    let (resource, _) = served(client, &kind).await.unwrap();
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

fn cluster_of(object: &DynamicObject) -> Option<&str> {
    object.metadata.annotations.as_ref()?.get(names::annotation::KCP_CLUSTER).map(String::as_str)
}

fn object(value: &Value) -> DynamicObject {
    serde_json::from_value(value.clone()).expect("an example is an object")
}

fn typed<T: DeserializeOwned>(value: &impl Serialize) -> T {
    serde_json::from_value(serde_json::to_value(value).unwrap()).unwrap()
}
