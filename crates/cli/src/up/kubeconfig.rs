//! Kubeconfigs with many contexts: one for each place that somebody may want to look at.

use std::path::Path;

use anyhow::Result;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use mailboat_cluster::ServerAddress;
use mailboat_hub::access::{Certified, write_private};
use serde_json::{Map, Value, json};

use crate::failure::refusal;

/// How a place is reached, and as whom.
#[derive(Clone)]
pub(super) struct Entry {
    cluster: Value,
    user: Value,
}

impl Entry {
    /// By a certificate.
    pub(super) fn certified(url: &str, authority_pem: &str, certified: &Certified) -> Self {
        let data = |pem: &str| BASE64_STANDARD.encode(pem);
        Self {
            cluster: json!({ "server": url, "certificate-authority-data": data(authority_pem) }),
            user: json!({
                "client-certificate-data": data(&certified.certificate_pem),
                "client-key-data": data(&certified.key_pem),
            }),
        }
    }

    /// By a token, at a server that somebody else reached already.
    pub(super) fn with_token(address: &ServerAddress, token: &str) -> Self {
        let mut cluster = json!({ "server": address.url });
        if let Some(pem) = &address.certificate_authority_pem {
            cluster["certificate-authority-data"] = BASE64_STANDARD.encode(pem).into();
        }
        if let Some(name) = &address.tls_server_name {
            cluster["tls-server-name"] = name.as_str().into();
        }
        if address.insecure {
            cluster["insecure-skip-tls-verify"] = true.into();
        }
        Self { cluster, user: json!({ "token": token }) }
    }

    /// As the current context of a file says.
    pub(super) fn read(file: &Path) -> Result<Self> {
        let unusable = |why: &str| refusal(format!("{} cannot be used: {why}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|error| unusable(&error.to_string()))?;
        let config: Value = serde_saphyr::from_str(&text).map_err(|_| unusable("it is no kubeconfig"))?;
        let named = |list: &str, name: &Value, what: &str| {
            let entries = config[list].as_array().into_iter().flatten();
            let entry = entries.into_iter().find(|entry| entry["name"] == *name);
            entry.map(|entry| entry[what].clone())
        };
        let context = named("contexts", &config["current-context"], "context")
            .ok_or_else(|| unusable("it has no current context"))?;
        let cluster = named("clusters", &context["cluster"], "cluster");
        let user = named("users", &context["user"], "user").unwrap_or_else(|| json!({}));
        let mut entry =
            Self { cluster: cluster.ok_or_else(|| unusable("its context names no cluster"))?, user };
        let folder = std::path::absolute(file).ok().and_then(|file| file.parent().map(Path::to_owned));
        for member in ["certificate-authority", "client-certificate", "client-key", "tokenFile"] {
            for part in [&mut entry.cluster, &mut entry.user] {
                if let (Some(folder), Some(Value::String(path))) = (&folder, part.get_mut(member)) {
                    *path = folder.join(&*path).display().to_string();
                }
            }
        }
        Ok(entry)
    }

    /// The same server and user, at a workspace.
    pub(super) fn at(&self, workspace: &str) -> Self {
        let mut entry = self.clone();
        entry.cluster["server"] = format!("{}/clusters/{workspace}", self.server()).into();
        entry
    }

    /// The server, without a workspace.
    pub(super) fn server(&self) -> &str {
        let url = self.cluster["server"].as_str().unwrap_or_default();
        url.split_once("/clusters/").map_or(url, |(server, _)| server).trim_end_matches('/')
    }
}

/// Writes a file that its owner alone may read, with a context for each entry; the first is the current one.
pub(super) fn write(file: &Path, entries: &[(&str, Entry)]) -> Result<()> {
    let named = |name: &str, what: &str, value: Value| {
        let mut entry = Map::new();
        entry.insert("name".to_owned(), name.into());
        entry.insert(what.to_owned(), value);
        Value::Object(entry)
    };
    let each = |make: &dyn Fn(&str, &Entry) -> Value| -> Value {
        entries.iter().map(|(name, entry)| make(name, entry)).collect()
    };
    let config = json!({
        "apiVersion": "v1", "kind": "Config",
        "current-context": entries.first().map(|(name, _)| *name),
        "clusters": each(&|name, entry| named(name, "cluster", entry.cluster.clone())),
        "users": each(&|name, entry| named(name, "user", entry.user.clone())),
        "contexts": each(&|name, _| named(name, "context", json!({ "cluster": name, "user": name }))),
    });
    write_private(file, &format!("{config:#}\n"))
        .map_err(|error| refusal(format!("{} cannot be written: {error}", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_of_a_file_is_taken_over_with_its_paths_made_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kcp.kubeconfig");
        std::fs::write(
            &file,
            "current-context: b\n\
             contexts: [{name: a, context: {cluster: x, user: x}}, {name: b, context: {cluster: y, user: z}}]\n\
             clusters: [{name: y, cluster: {server: 'https://kcp:6443/clusters/root', certificate-authority: ca.pem}}]\n\
             users: [{name: z, user: {tokenFile: /run/token}}]\n",
        )
        .unwrap();
        let entry = Entry::read(&file).unwrap();
        assert_eq!(entry.server(), "https://kcp:6443");
        assert_eq!(entry.at("root:imw1").cluster["server"], "https://kcp:6443/clusters/root:imw1");
        let authority = folder.path().join("ca.pem").display().to_string();
        assert_eq!(entry.cluster["certificate-authority"], authority.as_str());
        assert_eq!(entry.user["tokenFile"], "/run/token");
        let written = folder.path().join("all");
        write(&written, &[("one", entry.clone()), ("two", entry.at("root"))]).unwrap();
        let again = Entry::read(&written).unwrap();
        assert_eq!(again.cluster, entry.cluster, "the first is the current one");
    }

    #[test]
    fn a_file_without_a_context_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("empty");
        std::fs::write(&file, "current-context: a\n").unwrap();
        let refused = Entry::read(&file).err().unwrap().to_string();
        assert!(refused.contains("it has no current context"), "{refused}");
    }
}
