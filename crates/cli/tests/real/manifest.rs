//! What a registration wrote, and what may be done with the token in it.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mailboat_testkit::{Center, Credential};
use serde_json::Value;

/// A manifest, read.
pub(crate) struct Manifest {
    pub(crate) text: String,
    pub(crate) documents: Vec<Value>,
}

impl Manifest {
    pub(crate) fn read(path: &Path) -> Self {
        Self::of(fs::read_to_string(path).unwrap())
    }

    pub(crate) fn of(text: String) -> Self {
        let documents = serde_saphyr::from_multiple(&text).unwrap();
        Self { text, documents }
    }

    pub(crate) fn id(&self) -> &str {
        self.kind("Deployment")["metadata"]["name"].as_str().unwrap()
    }

    pub(crate) fn kind(&self, kind: &str) -> &Value {
        self.documents.iter().find(|document| document["kind"] == kind).unwrap()
    }

    pub(crate) fn secret(&self, key: &str) -> String {
        let encoded = self.kind("Secret")["data"][key].as_str().unwrap();
        String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap()
    }

    /// The kubeconfig with its token beside it, where a test can read both.
    pub(crate) fn kubeconfig(&self, folder: &Path) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("token"), self.secret("token")).unwrap();
        let text = self.secret("kubeconfig").replace("/kcp/token", folder.join("token").to_str().unwrap());
        fs::write(folder.join("kubeconfig"), text).unwrap();
        folder.join("kubeconfig")
    }
}

/// What a center answers to somebody with a token.
pub(crate) struct Answers<'a> {
    pub(crate) center: &'a Center,
    pub(crate) token: String,
}

impl Answers<'_> {
    pub(crate) async fn code(&self, workspace: &str, method: &str, path: &str, body: &Value) -> u16 {
        let access = self.center.access_with(Credential::Token(self.token.clone()), workspace);
        let client = access.client().await.unwrap();
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind)
            .body(body)
            .unwrap();
        client.send(request.map(kube::client::Body::from)).await.unwrap().status().as_u16()
    }
}
