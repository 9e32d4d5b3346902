//! How to reach a server as someone: its URL, its authority, a credential; and the same as a kubeconfig.

use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use crate::authority::CertifiedUser;
use crate::error::{Error, Result};
use crate::files::write_private;

/// How to reach one server, or one workspace of it, as one user.
#[derive(Debug, Clone)]
pub struct Access {
    /// The server, with a path prefix such as `/clusters/root:org` where there is one.
    pub url: String,
    /// The certificate of the authority that signed the server's; none for a server without TLS.
    pub ca_pem: Option<String>,
    /// Who asks.
    pub credential: Credential,
}

/// What a user shows.
#[derive(Clone)]
pub enum Credential {
    /// Nothing.
    Anonymous,
    /// A bearer token.
    Token(String),
    /// A client certificate.
    Certificate(CertifiedUser),
}

// Neither tokens nor keys belong into a failed test's output.
impl fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Anonymous => "Anonymous",
            Self::Token(_) => "Token(…)",
            Self::Certificate(_) => "Certificate(…)",
        })
    }
}

impl Access {
    /// A client for this access. It belongs to the runtime that it is made in, so make one per test.
    ///
    /// It does not retry by itself: a test wants to see every answer.
    pub async fn client(&self) -> Result<kube::Client> {
        let refused = |source| Error::Connect { url: self.url.clone(), source: Box::new(source) };
        let kubeconfig: Kubeconfig = serde_json::from_value(self.kubeconfig("testkit")).map_err(|error| {
            Error::Malformed { what: format!("kubeconfig for {}", self.url), why: error.to_string() }
        })?;
        let options = KubeConfigOptions::default();
        let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(refused)?;
        config.default_retry = false;
        config.proxy_url = None;
        kube::Client::try_from(config).map_err(|source| Error::Api {
            doing: format!("making a client for {}", self.url),
            source: Box::new(source),
        })
    }

    /// This access as a kubeconfig with one context, which bears `name`.
    pub fn kubeconfig(&self, name: &str) -> Value {
        let mut cluster = json!({ "server": self.url });
        if let Some(ca_pem) = &self.ca_pem {
            cluster["certificate-authority-data"] = BASE64.encode(ca_pem).into();
        }
        let user = match &self.credential {
            Credential::Anonymous => json!({}),
            Credential::Token(token) => json!({ "token": token }),
            Credential::Certificate(user) => json!({
                "client-certificate-data": BASE64.encode(&user.certificate_pem),
                "client-key-data": BASE64.encode(&user.key_pem),
            }),
        };
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": name, "cluster": cluster }],
            "users": [{ "name": name, "user": user }],
            "contexts": [{ "name": name, "context": { "cluster": name, "user": name } }],
            "current-context": name,
        })
    }

    /// Writes [`Access::kubeconfig`] to a file that only its owner may read.
    pub fn write_kubeconfig(&self, name: &str, path: &Path) -> Result<()> {
        let malformed = |why: String| Error::Malformed { what: path.display().to_string(), why };
        let text =
            serde_saphyr::to_string(&self.kubeconfig(name)).map_err(|error| malformed(error.to_string()))?;
        write_private(path, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_in_the_kubeconfig_and_nowhere_in_debug_output() {
        let access = Access {
            url: "https://127.0.0.1:1/clusters/root:org".to_owned(),
            ca_pem: Some("PEM".to_owned()),
            credential: Credential::Token("secret".to_owned()),
        };
        let kubeconfig = access.kubeconfig("alice");
        assert_eq!(kubeconfig["users"][0]["user"]["token"], "secret", "{kubeconfig}");
        assert_eq!(
            kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"], "UEVN",
            "{kubeconfig}"
        );
        assert!(!format!("{access:?}").contains("secret"), "{access:?}");
    }

    #[test]
    fn a_kubeconfig_file_is_private_and_reads_back_the_same() {
        use std::os::unix::fs::PermissionsExt as _;
        let access = Access {
            url: "https://127.0.0.1:1".to_owned(),
            ca_pem: None,
            credential: Credential::Token("12345".to_owned()),
        };
        let path = std::env::temp_dir().join(format!("mailboat-kubeconfig-{}", std::process::id()));
        access.write_kubeconfig("bob", &path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(mode, 0o600, "{mode:o}");
        let read: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read, access.kubeconfig("bob"), "{text}");
    }
}
