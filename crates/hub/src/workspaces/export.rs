//! Exports: an identity, and where the view of one is reached.

use mailboat_machinery::Stored;
use mailboat_object::KindId;
use mailboat_object::wire::Part;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Round, conditions, key, tree};

/// Where identities are kept.
const NAMESPACE: &str = "kcp-system";

pub(crate) fn kind() -> KindId {
    KindId::new("apis.kcp.io", "apiexports")
}

pub(crate) fn slices() -> KindId {
    KindId::new("apis.kcp.io", "apiexportendpointslices")
}

/// The names of an export's schemas, in both of the forms in which exports list them.
pub(super) fn schema_names(export: &Value) -> Vec<String> {
    let texts = |list: &Value, member: Option<&str>| -> Vec<String> {
        let items = list.as_array().into_iter().flatten();
        let text = |item: &Value| member.map_or(item, |member| &item[member]).as_str().map(str::to_owned);
        items.filter_map(text).collect()
    };
    let mut names = texts(&export["spec"]["resources"], Some("schema"));
    names.extend(texts(&export["spec"]["latestResourceSchemas"], None));
    names
}

impl Round<'_, '_> {
    pub(super) fn follow_export(&mut self, export: &Stored) {
        if export.is_deleting() {
            return;
        }
        let (cluster, name) = (&export.key.cluster, export.key.name.as_str());
        let Some(identity) = self.identity(export) else { return };
        // Where its view is, its slice alone says; earlier versions said so here, too.
        let wanted = [("IdentityValid", true, "", "")];
        let status = json!({ "status": {
            "identityHash": identity, "virtualWorkspaces": null,
            "conditions": conditions(export.body(), &wanted, &self.now()),
        } });
        self.patch(&export.key, Part::Status, &status);
        let slice = json!({
            "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExportEndpointSlice",
            "metadata": { "name": name, "ownerReferences": [{
                "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExport",
                "name": name, "uid": export.uid.to_string(),
            }] },
            "spec": { "export": { "name": name, "path": tree::path_of(self.machine, cluster) } },
        });
        // Where one of this name is there already, it is its maker's.
        let _ = self.create(&key(cluster, slices(), "", name), slice);
    }

    /// A slice has the view's address as long as somebody is bound to the export.
    pub(super) fn follow_slice(&mut self, slice: &Stored) {
        let reference = &slice.body()["spec"]["export"];
        let name = reference["name"].as_str().unwrap_or_default().to_owned();
        let path = reference["path"].as_str().unwrap_or_default();
        let found =
            if path.is_empty() { Some(slice.key.cluster.clone()) } else { tree::resolve(self.machine, path) };
        let export = found.and_then(|cluster| self.machine.get(&key(&cluster, kind(), "", &name)).ok());
        let valid = export.is_some();
        let endpoints = match &export {
            Some(export) if self.workspaces.has_bindings(self.machine, &export.key) => {
                let url =
                    format!("{}/services/apiexport/{}/{name}", self.workspaces.url(), export.key.cluster.0);
                json!([{ "url": url }])
            }
            _ => json!([]),
        };
        let wanted = [
            ("APIExportValid", valid, "APIExportNotFound", "there is no such APIExport"),
            ("PartitionValid", true, "", ""),
        ];
        let status = json!({ "status": {
            "endpoints": endpoints,
            "conditions": conditions(slice.body(), &wanted, &self.now()),
        } });
        self.patch(&slice.key, Part::Status, &status);
    }

    pub(super) fn follow_slices_of(&mut self, export: &Stored) {
        for key in self.workspaces.slices_of(self.machine, &export.key) {
            if let Ok(slice) = self.machine.get(&key) {
                self.follow_slice(&slice);
            }
        }
    }

    /// The hash of an export's secret, which tells it from others of the same name. It is made where there is none.
    fn identity(&mut self, export: &Stored) -> Option<String> {
        let cluster = &export.key.cluster;
        let reference = &export.body()["spec"]["identity"]["secretRef"];
        let (namespace, name) = match (reference["namespace"].as_str(), reference["name"].as_str()) {
            (Some(namespace), Some(name)) => (namespace.to_owned(), name.to_owned()),
            _ => (NAMESPACE.to_owned(), export.key.name.to_string()),
        };
        let secret_key = key(cluster, KindId::new("", "secrets"), &namespace, &name);
        if reference.is_null() {
            let namespace_body = json!({ "metadata": { "name": namespace } });
            self.create(&key(cluster, KindId::new("", "namespaces"), "", &namespace), namespace_body).ok()?;
            let bytes: Vec<u8> = (0..4).flat_map(|_| self.moment.random.next().to_be_bytes()).collect();
            let secret = hexadecimal(&bytes);
            let body = json!({ "metadata": { "name": name, "namespace": namespace }, "stringData": { "key": secret } });
            self.create(&secret_key, body).ok()?;
            let patch =
                json!({ "spec": { "identity": { "secretRef": { "name": name, "namespace": namespace } } } });
            self.patch(&export.key, Part::Whole, &patch);
        }
        let secret = self.machine.get(&secret_key).ok()?;
        let value = secret.body()["data"]["key"].as_str().or(secret.body()["stringData"]["key"].as_str())?;
        Some(hexadecimal(&Sha256::digest(value.as_bytes())))
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
