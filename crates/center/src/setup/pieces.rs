//! The objects of a provider workspace, in the order in which they are needed.

use mailboat_api::names::{export, object as fixed};
use serde_json::{Value, json};

use super::{Offer, Piece};

/// The namespace of the Secrets that hold the exports' identities.
pub const IDENTITIES: &str = "mailboat-identities";
/// The type of a workspace that describes edges.
pub const INVENTORY_TYPE: &str = "mailboat-inventory";
/// The type of a workspace that holds what should run.
pub const WORKLOAD_TYPE: &str = "mailboat-workload";

const RBAC: &str = "rbac.authorization.k8s.io";
/// What lets users bind our exports and use our types of workspaces.
const USERS: &str = "mailboat:users";
/// Exports that anybody may bind. That of the claims over mailboxes is the center's alone.
const FOR_USERS: [&str; 5] =
    [export::EDGE, export::WORKLOAD, export::SCHEDULING, export::COMPUTE, export::DENATURED];

/// The Secret that holds an export's identity, as namespace and name.
pub fn identity_of(export_name: &str) -> (&'static str, &str) {
    (IDENTITIES, export_name)
}

/// Everything, for a provider workspace at this path. Each export's objects are stored under a hash of a secret
/// key, which is drawn here and never again: whoever loses it loses the objects, so backups include these Secrets.
pub fn pieces(provider: &str, offer: &Offer, mut draw_key: impl FnMut() -> String) -> Vec<Piece> {
    let mut pieces = vec![
        Piece::new(
            "",
            "namespaces",
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": IDENTITIES } }),
        ),
        center_access(),
    ];
    pieces.extend(offer.exports.keys().map(|name| identity(name, &draw_key())));
    for schema in offer.schemas.values().flatten() {
        pieces.push(Piece::new("apis.kcp.io", "apiresourceschemas", schema.to_api_resource_schema()).once());
    }
    pieces.extend(offer.exports.iter().map(|(name, export)| exported(name, export)));
    pieces.extend(rights_of_users());
    pieces.push(workspace_type(
        INVENTORY_TYPE,
        provider,
        &[export::EDGE, export::SCHEDULING, export::WORKLOAD],
    ));
    pieces.push(workspace_type(WORKLOAD_TYPE, provider, &[export::EDGE, export::COMPUTE, export::DENATURED]));
    pieces
}

fn identity(export_name: &str, key: &str) -> Piece {
    let (namespace, name) = identity_of(export_name);
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "namespace": namespace, "name": name },
        "stringData": { "key": key },
    });
    Piece::new("", "secrets", secret).once()
}

fn exported(name: &str, export: &Value) -> Piece {
    let (namespace, secret) = identity_of(name);
    let mut export = export.clone();
    export["spec"]["identity"] = json!({ "secretRef": { "namespace": namespace, "name": secret } });
    Piece::new("apis.kcp.io", "apiexports", export)
}

/// kcp makes whoever creates a workspace its administrator as a user, not by group: the center's other instances need
/// this.
fn center_access() -> Piece {
    let binding = json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": { "name": fixed::CENTER_GROUP },
        "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "apiGroup": RBAC, "kind": "Group", "name": fixed::CENTER_GROUP }],
    });
    Piece::new(RBAC, "clusterrolebindings", binding)
}

fn rights_of_users() -> [Piece; 2] {
    let role = json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": "ClusterRole",
        "metadata": { "name": USERS },
        "rules": [
            { "apiGroups": ["apis.kcp.io"], "resources": ["apiexports"], "resourceNames": FOR_USERS, "verbs": ["bind"] },
            {
                "apiGroups": ["tenancy.kcp.io"],
                "resources": ["workspacetypes"],
                "resourceNames": [INVENTORY_TYPE, WORKLOAD_TYPE],
                "verbs": ["use"],
            },
        ],
    });
    let binding = json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": { "name": USERS },
        "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": USERS },
        "subjects": [{ "apiGroup": RBAC, "kind": "Group", "name": "system:authenticated" }],
    });
    [Piece::new(RBAC, "clusterroles", role), Piece::new(RBAC, "clusterrolebindings", binding)]
}

fn workspace_type(name: &str, provider: &str, exports: &[&str]) -> Piece {
    let bindings: Vec<Value> =
        exports.iter().map(|export| json!({ "path": provider, "export": export })).collect();
    let object = json!({
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "WorkspaceType",
        "metadata": { "name": name },
        "spec": {
            "extend": { "with": [{ "name": "universal", "path": "root" }] },
            // Types bring bindings and no rights: a new workspace waits until the center has its own there.
            "initializer": true,
            "defaultAPIBindings": bindings,
        },
    });
    Piece::new("tenancy.kcp.io", "workspacetypes", object)
}
