//! What belongs to the place where it stands, and so never travels: neither from a workload workspace to mailboxes, nor from a
//! mailbox to its edge, nor back.

use crate::names::group;

/// Groups whose objects are about the server that they stand in.
const GROUPS: [&str; 7] = [
    group::EDGE,
    group::SCHEDULING,
    group::WORKLOAD,
    group::SYNCAGENT,
    "tenancy.kcp.io",
    "topology.kcp.io",
    "core.kcp.io",
];

/// Kinds in other groups whose objects are: what a server notes, what it is asked, and what it is made of.
const KINDS: [(&str, &str); 21] = [
    ("apis.kcp.io", "apiconversions"),
    ("apis.kcp.io", "apiexportendpointslices"),
    ("apis.kcp.io", "apiexports"),
    ("apis.kcp.io", "apiresourceschemas"),
    ("apiresource.kcp.io", "apiresourceimports"),
    ("apiresource.kcp.io", "negotiatedapiresources"),
    ("apps", "controllerrevisions"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("cache.kcp.io", "cachedresources"),
    ("certificates.k8s.io", "certificatesigningrequests"),
    ("coordination.k8s.io", "leases"),
    ("events.k8s.io", "events"),
    ("", "bindings"),
    ("", "componentstatuses"),
    ("", "events"),
    ("", "nodes"),
];

/// The namespace that kcp keeps for itself in every workspace.
pub const KCP_SYSTEM: &str = "kcp-system";

/// Types of Secrets that are good for the server alone that gave them out.
const TOKENS: [&str; 2] = ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"];

/// Whether a group's objects are about the server that they stand in.
pub fn is_group_of_places(group: &str) -> bool {
    GROUPS.contains(&group)
}

/// Whether a kind's objects belong to the server that they stand in, though not all of its group do.
pub fn is_kind_of_places(group: &str, resource: &str) -> bool {
    KINDS.contains(&(group, resource))
}

/// Whether a Secret of this type is a token, which another server would not take.
pub fn is_token(secret_type: &str) -> bool {
    TOKENS.contains(&secret_type)
}
