//! Which workspaces may be made where: of a type that there is, that its maker may use, and that fits its parent's.
//!
//! kcp decides this when it admits a Workspace, in the same order and in the same words.

use std::sync::Arc;

use mailboat_machinery::{Machine, Status, Stored};
use mailboat_object::{ClusterId, KindId};
use serde_json::{Value, json};

use super::{ROOT, Round, key, tree, types};

fn universal() -> Value {
    json!({ "name": "universal", "path": ROOT })
}

/// The types that every kcp begins with.
fn built_in() -> [(&'static str, Value); 4] {
    let universal = universal();
    let extend = json!({ "with": [universal] });
    [
        // The kinds of kcp are served in every workspace: nothing has to be bound, and nobody to be waited for.
        ("universal", json!({})),
        (
            "root",
            json!({ "extend": extend, "limitAllowedParents": { "none": true },
                "defaultChildWorkspaceType": { "name": "organization", "path": ROOT } }),
        ),
        (
            "organization",
            json!({ "extend": extend, "defaultChildWorkspaceType": universal,
                "limitAllowedChildren": { "types": [universal] },
                "limitAllowedParents": { "types": [{ "name": "root", "path": ROOT }] } }),
        ),
        (
            "team",
            json!({ "extend": extend, "defaultChildWorkspaceType": universal,
                "limitAllowedParents": { "types": [
                    { "name": "organization", "path": ROOT }, { "name": "team", "path": ROOT },
                ] } }),
        ),
    ]
}

impl Round<'_, '_> {
    /// Makes the types that are not there yet.
    pub(super) fn found_types(&mut self) -> Result<(), Status> {
        for (name, spec) in built_in() {
            let body = json!({
                "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType",
                "metadata": { "name": name }, "spec": spec,
            });
            self.create(&key(&ClusterId::new(ROOT), types::kind(), "", name), body)?;
        }
        Ok(())
    }
}

/// What a workspace becomes that somebody asks for in a cluster, as a patch of what was asked for; or why not.
pub(crate) fn admit(
    machine: &Machine,
    parent: &ClusterId,
    workspace: &Value,
    may_use: impl Fn(&Stored) -> bool,
    may_bind: impl Fn(&str, &str) -> bool,
) -> Result<Value, String> {
    if !workspace["spec"]["mount"].is_null() {
        return Ok(json!({}));
    }
    let of_parent = types::of_cluster(machine, parent);
    let asked = &workspace["spec"]["type"];
    let asked = match asked["name"].as_str() {
        // Every type has a default for its children; its schema sees to that.
        None | Some("") => of_parent
            .as_ref()
            .map_or_else(universal, |of| of.body()["spec"]["defaultChildWorkspaceType"].clone()),
        Some(_) => asked.clone(),
    };
    let found = types::find(machine, &asked, parent)?;
    let name = qualified(machine, &found);
    let path = name.rsplit_once(':').map_or("", |(path, _)| path);
    let path = asked["path"].as_str().filter(|path| !path.is_empty()).unwrap_or(path);
    let all = types::with_extended(machine, &found)?;
    for used in &all {
        if !is_for_everybody(used) && !may_use(used) {
            let used = qualified(machine, used);
            return Err(format!(
                "unable to use workspace type {used}: missing verb='use' permission on workspacetype"
            ));
        }
    }
    // The server binds the new workspace, which its maker could not do himself.
    for (path, export) in all.iter().flat_map(|used| types::default_exports(used.body())) {
        if !may_bind(path, export) {
            return Err(format!(
                "unable to use workspace type {name}: no permission to bind to export {path}:{export}"
            ));
        }
    }
    let around =
        of_parent.as_ref().map(|of| types::with_extended(machine, of)).transpose()?.unwrap_or_default();
    let parent_name = of_parent.as_ref().map(|of| qualified(machine, of)).unwrap_or_default();
    let name = format!("{path}:{}", asked["name"].as_str().unwrap_or_default());
    let mut errors = Vec::new();
    for limited in &all {
        let limit = Limit { what: "parent", of: limited, name: &name, others: &around, other: &parent_name };
        errors.extend(limit.broken(machine, &limited.body()["spec"]["limitAllowedParents"]));
    }
    if errors.is_empty() {
        for limited in &around {
            let limit = Limit { what: "child", of: limited, name: &parent_name, others: &all, other: &name };
            errors.extend(limit.broken(machine, &limited.body()["spec"]["limitAllowedChildren"]));
        }
    }
    match &errors[..] {
        [] => {}
        [error] => return Err(error.clone()),
        errors => return Err(format!("[{}]", errors.join(", "))),
    }
    let mut labels = json!({});
    for (label, value) in found.body()["spec"]["additionalWorkspaceLabels"].as_object().into_iter().flatten()
    {
        if workspace["metadata"]["labels"][label].is_null() {
            labels[label] = value.clone();
        }
    }
    Ok(json!({
        "metadata": { "labels": labels },
        "spec": { "type": { "name": asked["name"], "path": path } },
    }))
}

/// Refuses a workspace that somebody puts in a place himself: which cluster it stands for, and where that is reached, is for
/// the server to say. Whoever could say it would have it emptied by deleting the workspace.
pub(crate) fn check_place(before: Option<&Value>, after: &Value) -> Result<(), String> {
    let text = |of: &Value, member: &str| of["spec"][member].as_str().unwrap_or_default().to_owned();
    let Some(before) = before else {
        return match [("cluster", "Cluster"), ("URL", "URL")]
            .iter()
            .find(|(member, _)| !text(after, member).is_empty())
        {
            Some((_, told)) => Err(format!("spec.{told} can only be set by system privileged users")),
            None => Ok(()),
        };
    };
    match ["cluster", "URL"].iter().find(|member| text(before, member) != text(after, member)) {
        Some(member) => Err(format!("spec.{member} can only be changed by system privileged users")),
        None => Ok(()),
    }
}

/// One side's limit to what the other may be.
struct Limit<'l> {
    /// The other side.
    what: &'l str,
    of: &'l Stored,
    name: &'l str,
    others: &'l [Arc<Stored>],
    other: &'l str,
}

impl Limit<'_> {
    fn broken(&self, machine: &Machine, limit: &Value) -> Option<String> {
        let (what, name) = (self.what, self.name);
        if limit["none"] == true {
            return Some(format!("workspace type {name} cannot have any {what}"));
        }
        let mut allowed: Vec<String> =
            limit["types"].as_array().into_iter().flatten().map(types::told).collect();
        let mut implemented: Vec<String> = self.others.iter().map(|one| qualified(machine, one)).collect();
        if allowed.is_empty() || implemented.iter().any(|one| allowed.contains(one)) {
            return None;
        }
        for names in [&mut allowed, &mut implemented] {
            names.sort();
            names.dedup();
        }
        let of = qualified(machine, self.of);
        let extends = if of == name { String::new() } else { format!(" extends {of}, which") };
        let (allowed, implemented, other) = (allowed.join(" "), implemented.join(" "), self.other);
        Some(format!(
            "workspace type {name}{extends} only allows [{allowed}] {what} workspaces, but {what} type {other} only \
             implements [{implemented}]"
        ))
    }
}

/// Whether all who come in may use a type.
fn is_for_everybody(of: &Stored) -> bool {
    *of.key.cluster.0 == *ROOT && ["universal", "organization", "team"].contains(&&*of.key.name)
}

/// The path and name of a type, such as `root:universal`.
pub(super) fn qualified(machine: &Machine, of: &Stored) -> String {
    let path = tree::path_of(machine, &of.key.cluster).unwrap_or_default();
    format!("{path}:{}", of.key.name)
}

/// The kind of types, as errors name it.
pub(super) fn missing(reference: &Value) -> String {
    let kind: KindId = types::kind();
    format!(
        "Internal error occurred: {}.{} {:?} not found",
        kind.resource(),
        kind.group(),
        types::told(reference)
    )
}

#[cfg(test)]
mod tests {
    use mailboat_machinery::WriteOptions;
    use mailboat_object::Name;

    use super::*;
    use crate::storage::Memory;
    use crate::workspaces::resolve;
    use crate::{Hub, Options, workspaces};

    async fn make(hub: &Hub, path: &str, kind: KindId, object: Value) {
        let cluster = hub.peek(|machine| resolve(machine, path)).unwrap();
        let key = key(&cluster, kind, "", object["metadata"]["name"].as_str().unwrap());
        let options = WriteOptions { manager: Name::new("test"), ..WriteOptions::default() };
        hub.write(|machine, moment| machine.create(&key, object, &options, moment)).await.unwrap();
    }

    fn workspace(name: &str, of: &Value) -> Value {
        json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace",
            "metadata": { "name": name }, "spec": { "type": of } })
    }

    #[tokio::test]
    async fn a_workspace_is_of_a_type_that_is_there_and_fits() {
        let options = Options { url: "https://127.0.0.1:6443".to_owned(), ..Options::default() };
        let hub = workspaces(Memory::default(), options).await.unwrap().hub;
        let of = |name: &str| json!({ "name": name, "path": "root" });
        make(&hub, "root", tree::kind(), workspace("org", &of("organization"))).await;
        make(&hub, "root:org", tree::kind(), workspace("plain", &of("universal"))).await;
        let own = json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType",
            "metadata": { "name": "own" }, "spec": { "extend": { "with": [of("universal")] } } });
        make(&hub, "root:org", types::kind(), own).await;
        let becomes = |path: &str, asked: Value, may_use: bool| {
            hub.peek(|machine| {
                let parent = resolve(machine, path).unwrap();
                let admitted = admit(machine, &parent, &workspace("new", &asked), |_| may_use, |_, _| true);
                admitted.map_or_else(|why| why, |more| types::told(&more["spec"]["type"]))
            })
        };
        for (path, asked, expected) in [
            ("root", Value::Null, "root:organization"),
            ("root:org", Value::Null, "root:universal"),
            ("root:org:plain", Value::Null, "root:universal"),
            ("root:org:plain", of("universal"), "root:universal"),
            ("root:org:plain", json!({ "name": "own" }), "root:org:own"),
            ("root:org", json!({ "name": "team" }), "root:team"),
            ("root", json!({ "name": "own" }), "workspace type \"own\" cannot be resolved"),
            (
                "root",
                of("own"),
                "Internal error occurred: workspacetypes.tenancy.kcp.io \"root:own\" not found",
            ),
            ("root", of("root"), "workspace type root:root cannot have any parent"),
            (
                "root:org",
                of("organization"),
                "workspace type root:organization only allows [root:root] parent workspaces, but parent type \
                 root:organization only implements [root:organization root:universal]",
            ),
        ] {
            assert_eq!(becomes(path, asked.clone(), true), expected, "{asked} in {path}");
        }
        let refused =
            "unable to use workspace type root:org:own: missing verb='use' permission on workspacetype";
        assert_eq!(becomes("root:org", json!({ "name": "own" }), false), refused);
        assert_eq!(becomes("root:org", of("universal"), false), "root:universal", "it is for everybody");
    }
}
