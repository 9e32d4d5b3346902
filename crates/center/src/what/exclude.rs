//! What no placement ever selects.

use mailboat_api::names::{group, label, object as fixed};
use mailboat_api::places::{KCP_SYSTEM, is_group_of_places, is_kind_of_places, is_token};
use mailboat_object::json::Raw;
use mailboat_object::key::KindId;
use mailboat_object::object::Object;

/// Kinds of excluded groups that travel after all: by these, workload users reach conversions and the options
/// of delivery.
const EXCEPTIONS: [(&str, &str); 2] = [(group::EDGE, "edgesyncconfigs"), (group::EDGE, "syncerconfigs")];

/// Why no object of this kind is selected, if so.
pub fn excluded_kind(kind: &KindId) -> Option<&'static str> {
    let named = (kind.group(), kind.resource());
    if EXCEPTIONS.contains(&named) {
        None
    } else if is_group_of_places(kind.group()) {
        Some("objects of its group are about the center itself")
    } else if is_kind_of_places(kind.group(), kind.resource()) {
        Some("objects of its kind belong to the server that they stand in")
    } else {
        None
    }
}

/// Why this one object is not selected although others of its kind may be, if so.
pub fn excluded_object(object: &Object) -> Option<&'static str> {
    let (kind, name) = (&object.key.kind, object.key.name.as_str());
    let in_kcp_system = object.key.namespace.as_str() == KCP_SYSTEM;
    match (kind.group(), kind.resource()) {
        _ if in_kcp_system => Some("the namespace kcp-system is kcp's own"),
        ("", "namespaces") if name == KCP_SYSTEM => Some("the namespace kcp-system is kcp's own"),
        ("", "configmaps") if name == "kube-root-ca.crt" => Some("every server makes its own"),
        ("", "serviceaccounts") if name == "default" => Some("every server makes its own"),
        ("", "serviceaccounts") if is_ours(object) => Some("it is an account of this installation"),
        ("", "secrets") => {
            let token = object.get(&["type"]).and_then(Raw::as_str).is_some_and(|kind| is_token(&kind));
            token.then_some("a token is good for the server that gave it out alone")
        }
        ("rbac.authorization.k8s.io", resource) => excluded_grant(object, resource, name),
        (group::EDGE, "syncerconfigs") if name == fixed::THE_ONE => {
            Some("the-one is written by the center in each mailbox")
        }
        _ => None,
    }
}

/// Grants that are about the workspace. kcp makes whoever creates a workspace its administrator, by name: at an
/// edge that would be cluster-admin for whoever bears the name there.
fn excluded_grant(object: &Object, resource: &str, name: &str) -> Option<&'static str> {
    if resource == "clusterrolebindings" && name == "workspace-admin" {
        return Some("it makes somebody administrator of this workspace");
    }
    let subjects = object.get(&["subjects"]).into_iter().flat_map(Raw::elements);
    let names_the_center = subjects
        .filter_map(|subject| subject.member("name")?.as_str())
        .any(|subject| subject == fixed::CENTER_GROUP);
    (names_the_center || is_ours(object)).then_some("it is a grant to this installation")
}

fn is_ours(object: &Object) -> bool {
    object.label(label::OWNER).is_some()
}
