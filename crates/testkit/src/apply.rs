//! Applying YAML or JSON documents to a place.

use std::path::Path;
use std::time::Duration;

use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiCapabilities, Scope, pinned_kind};
use serde_json::Value;

use crate::error::{Asking, Doing, Error, Result};
use crate::wait::wait_until;

/// A kind is served a moment after its definition is accepted; kcp takes up to 5 s for a new one.
const SERVED_LIMIT: Duration = Duration::from_secs(30);
const FIELD_MANAGER: &str = "testkit";

/// Applies all documents of a file, or of every `.yaml`, `.yml` and `.json` file in a folder, by name.
pub async fn apply_file(client: &kube::Client, path: &Path) -> Result<Vec<DynamicObject>> {
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let entries = std::fs::read_dir(path).doing("listing", path)?;
        let is_document = |path: &std::path::PathBuf| {
            path.extension()
                .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
        };
        files = entries.flatten().map(|entry| entry.path()).filter(is_document).collect();
        files.sort();
    }
    let mut applied = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).doing("reading", &file)?;
        applied.extend(apply(client, &text).await?);
    }
    Ok(applied)
}

/// Applies (server-side, forced) every document in a text of YAML or JSON, in order, and gives what the server
/// made of them. A document whose kind is not served yet waits for it, so a CRD and its objects may stand in one
/// text. Objects without a namespace go to `default` if their kind has namespaces.
pub async fn apply(client: &kube::Client, documents: &str) -> Result<Vec<DynamicObject>> {
    let malformed = |why: String| Error::Malformed { what: "documents to apply".to_owned(), why };
    let values: Vec<Value> =
        serde_saphyr::from_multiple(documents).map_err(|error| malformed(error.to_string()))?;
    let mut applied = Vec::new();
    for value in values.into_iter().filter(|value| !value.is_null()) {
        let object: DynamicObject =
            serde_json::from_value(value).map_err(|error| malformed(error.to_string()))?;
        applied.push(apply_object(client, &object).await?);
    }
    Ok(applied)
}

/// Applies (server-side, forced) one object.
pub async fn apply_object(client: &kube::Client, object: &DynamicObject) -> Result<DynamicObject> {
    let malformed = |why: &str| Error::Malformed { what: "object to apply".to_owned(), why: why.to_owned() };
    let types = object.types.as_ref().ok_or_else(|| malformed("it has no apiVersion and kind"))?;
    let name = object.metadata.name.as_deref().ok_or_else(|| malformed("it has no metadata.name"))?;
    let kind = GroupVersionKind::try_from(types).map_err(|error| malformed(&error.to_string()))?;
    let (resource, capabilities) = served(client, &kind).await?;
    let api = api_for(client, object.metadata.namespace.as_deref(), &resource, &capabilities);
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let applied = api.patch(name, &params, &Patch::Apply(object)).await;
    applied.asking(|| format!("applying {} {name}", types.kind))
}

/// How a kind is served, once it is.
pub async fn served(
    client: &kube::Client,
    kind: &GroupVersionKind,
) -> Result<(ApiResource, ApiCapabilities)> {
    let description = format!("{}/{} {} served", kind.group, kind.version, kind.kind);
    Ok(wait_until(description, SERVED_LIMIT, || pinned_kind(client, kind)).await?)
}

fn api_for(
    client: &kube::Client,
    namespace: Option<&str>,
    resource: &ApiResource,
    capabilities: &ApiCapabilities,
) -> Api<DynamicObject> {
    match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), resource),
        Scope::Namespaced => Api::namespaced_with(client.clone(), namespace.unwrap_or("default"), resource),
    }
}
