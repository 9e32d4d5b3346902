//! The provider workspace's APIExports: which schemas each offers, and what it claims.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::schema::ResourceSchema;
use super::{GenerateError, builtin, crd};
use crate::names::{export as names, group};

/// A kind, served by kcp itself, that the center reads in mailboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailboxClaim {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The lowercase plural.
    pub resource: &'static str,
    /// What may be done through the view.
    pub verbs: &'static [&'static str],
}

/// Through the view the center only reads. It writes into a mailbox directly, since a view takes a
/// server-side apply for a plain update.
pub const READ: &[&str] = &["get", "list", "watch"];

/// What the export `mailbox.mailboat.dev` claims, in the order of the export.
pub const MAILBOX_CLAIMS: &[MailboxClaim] = &[
    MailboxClaim { group: "", resource: "configmaps", verbs: READ },
    MailboxClaim { group: "", resource: "namespaces", verbs: READ },
    MailboxClaim { group: "", resource: "secrets", verbs: READ },
    MailboxClaim { group: "", resource: "serviceaccounts", verbs: READ },
    MailboxClaim { group: "apiextensions.k8s.io", resource: "customresourcedefinitions", verbs: READ },
    MailboxClaim { group: "apis.kcp.io", resource: "apibindings", verbs: READ },
    MailboxClaim { group: "coordination.k8s.io", resource: "leases", verbs: READ },
    MailboxClaim { group: "core.kcp.io", resource: "logicalclusters", verbs: READ },
    MailboxClaim { group: "rbac.authorization.k8s.io", resource: "clusterrolebindings", verbs: READ },
    MailboxClaim { group: "rbac.authorization.k8s.io", resource: "clusterroles", verbs: READ },
    MailboxClaim { group: "rbac.authorization.k8s.io", resource: "rolebindings", verbs: READ },
    MailboxClaim { group: "rbac.authorization.k8s.io", resource: "roles", verbs: READ },
];

/// The schemas of each export. No schema stands under two: kcp would mix up their objects.
pub(super) fn schemas() -> Result<BTreeMap<&'static str, Vec<ResourceSchema>>, GenerateError> {
    let served: Vec<_> = crd::all()?.iter().map(ResourceSchema::from_crd).collect::<Result<_, _>>()?;
    let of_group =
        |group: &str| -> Vec<_> { served.iter().filter(|schema| schema.group == group).cloned().collect() };
    Ok(BTreeMap::from([
        (names::EDGE, of_group(group::EDGE)),
        (names::WORKLOAD, of_group(group::WORKLOAD)),
        (names::SCHEDULING, of_group(group::SCHEDULING)),
        (names::COMPUTE, builtin::compute()?),
        (names::DENATURED, builtin::denatured()?),
        (names::MAILBOX, Vec::new()),
    ]))
}

/// The folder under `deploy/kcp` that an export's schemas go to.
pub(super) fn folder(export: &str) -> &str {
    match export {
        names::COMPUTE => "compute",
        names::DENATURED => "denatured",
        _ => "schemas",
    }
}

/// The APIExport (`apis.kcp.io/v1alpha2`).
pub(super) fn export(name: &str, schemas: &[ResourceSchema]) -> Value {
    let mut spec = json!({});
    if !schemas.is_empty() {
        spec["resources"] = schemas.iter().map(resource).collect();
    }
    if name == names::MAILBOX {
        spec["permissionClaims"] = MAILBOX_CLAIMS
            .iter()
            .map(|claim| json!({ "group": claim.group, "resource": claim.resource, "verbs": claim.verbs }))
            .collect();
    }
    json!({
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIExport",
        "metadata": { "name": name },
        "spec": spec,
    })
}

fn resource(schema: &ResourceSchema) -> Value {
    json!({
        "group": schema.group,
        "name": schema.plural,
        "schema": schema.name(),
        "storage": { "crd": {} },
    })
}
