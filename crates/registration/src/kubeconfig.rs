//! Where a kubeconfig points to, changed as kcp's own `kubectl ws` does: a context for where one is, another for
//! where one was before. What else stands in the file stays.

use serde_json::{Value, json};

/// The context of the workspace that one is in.
pub const CURRENT: &str = "workspace.kcp.io/current";
/// The context of the workspace that one was in before.
pub const PREVIOUS: &str = "workspace.kcp.io/previous";

/// Why a kubeconfig cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unchangeable {
    /// It has no such context.
    #[error("the kubeconfig has no context {0:?}")]
    NoContext(String),
    /// The context has no such cluster.
    #[error("the kubeconfig has no cluster {0:?}, which its context {1:?} names")]
    NoCluster(String, String),
    /// Nobody was anywhere before.
    #[error("there is no workspace to go back to")]
    NoPrevious,
}

/// The name of the context that is used.
pub fn current_context(config: &Value) -> &str {
    config["current-context"].as_str().unwrap_or_default()
}

/// The URL that a context points to.
pub fn server<'c>(config: &'c Value, context: &str) -> Result<&'c str, Unchangeable> {
    let (_, cluster) = parts(config, context)?;
    Ok(cluster["server"].as_str().unwrap_or_default())
}

/// Points the kubeconfig at a workspace's URL, with the credentials of the context that is used now, and remembers
/// that one as the previous.
pub fn enter(config: &mut Value, context: &str, url: &str) -> Result<(), Unchangeable> {
    let (from, cluster) = parts(config, context)?;
    let (mut from, mut cluster) = (from.clone(), cluster.clone());
    // A context of one's own stays as it is; its copy is where `-` leads.
    put(config, PREVIOUS, from.clone(), cluster.clone());
    cluster["server"] = json!(url);
    from["cluster"] = json!(CURRENT);
    put(config, CURRENT, from, cluster);
    config["current-context"] = json!(CURRENT);
    Ok(())
}

/// Goes back to where one was before.
pub fn go_back(config: &mut Value, context: &str) -> Result<(), Unchangeable> {
    let (now, now_cluster) = parts(config, context)?;
    let (now, now_cluster) = (now.clone(), now_cluster.clone());
    let (before, before_cluster) = parts(config, PREVIOUS).map_err(|_| Unchangeable::NoPrevious)?;
    let (before, before_cluster) = (before.clone(), before_cluster.clone());
    put(config, CURRENT, before, before_cluster);
    put(config, PREVIOUS, now, now_cluster);
    config["current-context"] = json!(CURRENT);
    Ok(())
}

/// A context and its cluster.
fn parts<'c>(config: &'c Value, context: &str) -> Result<(&'c Value, &'c Value), Unchangeable> {
    let found =
        named(config, "contexts", context).ok_or_else(|| Unchangeable::NoContext(context.to_owned()))?;
    let found = &found["context"];
    let cluster = found["cluster"].as_str().unwrap_or_default();
    let missing = || Unchangeable::NoCluster(cluster.to_owned(), context.to_owned());
    let cluster = named(config, "clusters", cluster).ok_or_else(missing)?;
    Ok((found, &cluster["cluster"]))
}

fn named<'c>(config: &'c Value, list: &str, name: &str) -> Option<&'c Value> {
    config[list].as_array()?.iter().find(|entry| entry["name"] == name)
}

/// Sets a context and the cluster of the same name.
fn put(config: &mut Value, name: &str, mut context: Value, cluster: Value) {
    context["cluster"] = json!(name);
    for (list, member, value) in [("contexts", "context", context), ("clusters", "cluster", cluster)] {
        let entry = json!({ "name": name, member: value });
        if !config[list].is_array() {
            config[list] = json!([]);
        }
        let Some(entries) = config[list].as_array_mut() else { continue };
        match entries.iter_mut().find(|entry| entry["name"] == name) {
            Some(known) => *known = entry,
            None => entries.push(entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Value {
        json!({ "apiVersion": "v1", "kind": "Config", "current-context": "base", "preferences": { "colors": true },
            "contexts": [{ "name": "base", "context": { "cluster": "kcp", "user": "admin", "namespace": "n" } }],
            "clusters": [{ "name": "kcp", "cluster": { "server": "https://kcp:6443", "certificate-authority-data": "ca" } }],
            "users": [{ "name": "admin", "user": { "token": "secret" } }] })
    }

    fn at(config: &Value) -> &str {
        server(config, current_context(config)).unwrap()
    }

    #[test]
    fn entering_keeps_credentials_and_everything_else() {
        let mut config = config();
        enter(&mut config, "base", "https://kcp:6443/clusters/root:a").unwrap();
        assert_eq!((current_context(&config), at(&config)), (CURRENT, "https://kcp:6443/clusters/root:a"));
        let current = named(&config, "contexts", CURRENT).unwrap();
        assert_eq!(current["context"], json!({ "cluster": CURRENT, "user": "admin", "namespace": "n" }));
        assert_eq!(server(&config, "base"), Ok("https://kcp:6443"), "one's own context stays");
        assert_eq!(
            (&config["preferences"]["colors"], config["users"].as_array().unwrap().len()),
            (&json!(true), 1)
        );
        assert_eq!(
            named(&config, "clusters", CURRENT).unwrap()["cluster"]["certificate-authority-data"],
            "ca"
        );
    }

    #[test]
    fn back_and_forth() {
        let mut config = config();
        assert_eq!(go_back(&mut config, "base"), Err(Unchangeable::NoPrevious));
        enter(&mut config, "base", "https://kcp:6443/clusters/root:a").unwrap();
        enter(&mut config, CURRENT, "https://kcp:6443/clusters/root:b").unwrap();
        for expected in ["root:a", "root:b", "root:a"] {
            go_back(&mut config, CURRENT).unwrap();
            assert!(at(&config).ends_with(expected), "{expected}: {}", at(&config));
        }
        assert_eq!(config["contexts"].as_array().unwrap().len(), 3);
        assert_eq!(config["clusters"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let mut broken = config();
        assert_eq!(
            enter(&mut broken, "other", "u").unwrap_err().to_string(),
            "the kubeconfig has no context \"other\""
        );
        broken["clusters"] = json!([]);
        assert!(enter(&mut broken, "base", "u").unwrap_err().to_string().contains("\"kcp\""));
    }
}
