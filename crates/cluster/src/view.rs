//! Views: an APIExport's objects in every workspace that bound it, by the URLs of its endpoint slice.

use std::sync::Arc;

use http::Uri;
use mailboat_object::key::ClusterId;
use mailboat_object::wire::{Fault, FaultKind};
use serde::Deserialize;

use crate::cluster::Cluster;
use crate::connection::{Connection, Location};
use crate::dial::Origin;
use crate::discovery::Known;
use crate::nullable::null_is_empty;

/// The view at one endpoint, which is one shard's part of an export.
#[derive(Clone)]
pub struct View {
    connection: Connection,
    origin: Origin,
    path: String,
    known: Arc<Known>,
}

impl Connection {
    /// The view at a URL of an endpoint slice. It may be on another host than the configured server (a shard),
    /// with the same certificate authority and credential; never without TLS if that one has it.
    pub fn view(&self, url: &str) -> Result<View, Fault> {
        let refused = |why: &str| Fault::new(FaultKind::Invalid, format!("the endpoint URL {url:?} {why}"));
        let uri: Uri = url.parse().map_err(|_| refused("is no URL"))?;
        let origin = Origin::of(&uri).ok_or_else(|| refused("has no host"))?;
        if !self.trusts(&origin) {
            return Err(refused("is without TLS, and our credential does not go there"));
        }
        let path = uri.path().trim_end_matches('/').to_owned();
        Ok(View { connection: self.clone(), origin, path, known: Arc::new(Known::new(self.alike())) })
    }
}

impl View {
    /// All workspaces at once, to list and watch.
    pub fn all(&self) -> Cluster {
        self.below("*")
    }

    /// One workspace, to read and patch objects in.
    pub fn cluster(&self, id: &ClusterId) -> Cluster {
        self.below(&id.0)
    }

    fn below(&self, cluster: &str) -> Cluster {
        let path = format!("{}/clusters/{cluster}", self.path);
        let location = Location::Elsewhere(self.origin.clone(), path.clone());
        Cluster::elsewhere(self.connection.clone(), location, &path, self.known.clone())
    }
}

/// The endpoint URLs in the body of an APIExportEndpointSlice, sorted. None before the first binding on a
/// shard and after the last: then nothing is known of the clusters there, and nothing is absent.
pub fn endpoints(slice: &[u8]) -> Result<Vec<String>, Fault> {
    #[derive(Deserialize)]
    struct Slice {
        #[serde(default, deserialize_with = "null_is_empty")]
        kind: String,
        #[serde(default, deserialize_with = "null_is_empty")]
        status: Status,
    }
    #[derive(Deserialize, Default)]
    struct Status {
        #[serde(default, deserialize_with = "null_is_empty")]
        endpoints: Vec<Endpoint>,
    }
    #[derive(Deserialize)]
    struct Endpoint {
        url: String,
    }
    let slice: Option<Slice> = serde_json::from_slice(slice).ok();
    let slice = slice.filter(|slice| slice.kind == "APIExportEndpointSlice");
    let slice =
        slice.ok_or_else(|| Fault::new(FaultKind::Invalid, "the object is no APIExportEndpointSlice"))?;
    let mut urls: Vec<String> = slice.status.endpoints.into_iter().map(|endpoint| endpoint.url).collect();
    urls.sort();
    urls.dedup();
    Ok(urls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_gives_its_urls_and_nothing_else_does() {
        let slice = br#"{"apiVersion":"apis.kcp.io/v1alpha1","kind":"APIExportEndpointSlice","metadata":{"name":"kubernetes"},
            "spec":{"export":{"name":"kubernetes","path":"root:espw"}},
            "status":{"endpoints":[{"url":"https://b:6443/services/apiexport/x/kubernetes"},{"url":"https://a:6443/services/apiexport/x/kubernetes"}]}}"#;
        let urls = endpoints(slice).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(
            urls,
            [
                "https://a:6443/services/apiexport/x/kubernetes",
                "https://b:6443/services/apiexport/x/kubernetes"
            ]
        );
        assert_eq!(
            endpoints(br#"{"kind":"APIExportEndpointSlice"}"#),
            Ok(vec![]),
            "a slice without a URL yet"
        );
        for body in [&b"{}"[..], b"", br#"{"kind":"Status"}"#] {
            assert_eq!(endpoints(body).map_err(|fault| fault.kind), Err(FaultKind::Invalid));
        }
    }
}
