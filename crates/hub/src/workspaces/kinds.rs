//! The kinds that every workspace serves: those of kcp, and what kcp has of Kubernetes.

use std::sync::Arc;

use mailboat_machinery::machine::kind_from_definition;
use mailboat_machinery::{Flavor, Kind, Kinds};
use mailboat_object::KindId;
use serde_json::Value;

use super::convert;
use crate::catalog::{self, BadCatalog};

/// The definitions of kcp v0.28.1, cut down to the first sentence of each description.
const KCP: &str = include_str!("../../data/kcp.json");

/// Kinds of the core group that kcp serves. LimitRanges are not among them: they come with the export of Kubernetes' kinds.
const CORE: [&str; 6] =
    ["configmaps", "events", "namespaces", "resourcequotas", "secrets", "serviceaccounts"];
/// Groups that kcp serves as a whole.
const GROUPS: [&str; 6] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "events.k8s.io",
    "rbac.authorization.k8s.io",
];

pub(super) fn universal() -> Result<Arc<Kinds>, BadCatalog> {
    let mut kinds: Vec<Arc<Kind>> = catalog::kinds(Flavor::Kcp)?
        .into_iter()
        .filter(|kind| match kind.id.group() {
            "" => CORE.contains(&kind.id.resource()),
            group => GROUPS.contains(&group),
        })
        .collect();
    for definition in serde_json::from_str::<Vec<Value>>(KCP)? {
        let mut kind = kind_from_definition(&definition).map_err(|error| {
            let kind = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            BadCatalog::Schema { kind, error }
        })?;
        convert::join(&mut kind);
        kinds.push(Arc::new(kind));
    }
    Ok(Arc::new(kinds.into_iter().map(|kind| (kind.id.clone(), kind)).collect()))
}

/// Whether something follows from a change of a kind's objects.
pub(super) fn is_followed(kind: &KindId) -> bool {
    matches!(
        (kind.group(), kind.resource()),
        ("tenancy.kcp.io", "workspaces" | "workspacetypes")
            | ("core.kcp.io", "logicalclusters")
            | ("apiextensions.k8s.io", "customresourcedefinitions")
            | (
                "apis.kcp.io",
                "apibindings" | "apiexports" | "apiresourceschemas" | "apiexportendpointslices"
            )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_serves_kcps_kinds_and_no_workloads() {
        let kinds = universal().unwrap();
        let has = |group: &str, resource: &str| kinds.contains_key(&KindId::new(group, resource));
        assert!(has("tenancy.kcp.io", "workspaces") && has("core.kcp.io", "logicalclusters"));
        assert!(has("apis.kcp.io", "apibindings") && has("", "configmaps"));
        assert!(!has("apps", "deployments") && !has("", "pods") && !has("", "limitranges"));
        assert_eq!(kinds[&KindId::new("apis.kcp.io", "apibindings")].versions[0].name.as_str(), "v1alpha2");
    }
}
