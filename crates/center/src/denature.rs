//! Kinds that must not take effect in the center, and the names under which they are stored there.
//!
//! A webhook, a quota or a role that is meant for an edge would act on the mailbox that merely stores it. So
//! it is stored under its group with `.denatured` appended, where it is data: `clusterroles` of
//! `rbac.authorization.k8s.io.denatured`. The resource, the kind and the version stay; the way back is the
//! same rule read from the other side.

use std::borrow::Cow;

use mailboat_api::generate::{BuiltinKind, DENATURED};
use mailboat_api::names::{denatured_group, natured_group};
use mailboat_object::key::KindId;

/// The kind under which objects of a natured kind are stored in a mailbox, if they must not take effect there.
/// `None` for what is stored as it is.
pub fn denatured(kind: &KindId) -> Option<KindId> {
    is_denatured_in_center(kind).then(|| KindId::new(&denatured_group(kind.group()), kind.resource()))
}

/// The kind that a denatured one stands for; `None` if this kind is not a denatured one.
pub fn natured(kind: &KindId) -> Option<KindId> {
    natured_group(kind.group()).map(|group| KindId::new(group, kind.resource()))
}

/// The `apiVersion` of an object under another group: the version stays.
pub fn api_version_in_group(api_version: &str, group: &str) -> String {
    let version = version_of(api_version);
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The version without the group.
pub fn version_of(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or(api_version, |(_, version)| version)
}

/// A kind as the edge knows it.
pub fn at_edge(kind: &KindId) -> Cow<'_, KindId> {
    natured(kind).map_or(Cow::Borrowed(kind), Cow::Owned)
}

/// A kind as a mailbox stores it.
pub fn in_mailbox(kind: &KindId) -> Cow<'_, KindId> {
    denatured(kind).map_or(Cow::Borrowed(kind), Cow::Owned)
}

/// The kinds that are stored denatured in mailboxes, by their own names.
pub fn natured_kinds() -> impl Iterator<Item = KindId> {
    DENATURED.iter().map(|known| KindId::new(known.group, known.plural))
}

/// Whether objects of a kind act on the workspace that they stand in: kcp asks webhooks and admission policies there, and
/// counts by quotas. Grants do so as well, and are meant to wherever somebody writes one.
pub fn acts_on_its_workspace(kind: &KindId) -> bool {
    match kind.group() {
        "admissionregistration.k8s.io" => is_denatured_in_center(kind),
        group => group.is_empty() && kind.resource() == "resourcequotas",
    }
}

fn is_denatured_in_center(kind: &KindId) -> bool {
    let is = |known: &BuiltinKind| known.plural == kind.resource() && known.group == kind.group();
    DENATURED.iter().any(is)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::kind;

    /// The kinds that KubeStellar meant to denature, as its own list has them.
    const MEANT_TO_BE: [&str; 12] = [
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "apiservices.apiregistration.k8s.io",
        "flowschemas.flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "clusterrolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
        "limitranges",
        "resourcequotas",
        "serviceaccounts",
    ];

    #[test]
    fn what_would_take_effect_is_stored_under_another_group_and_comes_back() {
        for text in MEANT_TO_BE {
            let natural = kind(text);
            let stored =
                denatured(&natural).unwrap_or_else(|| panic!("{text} would take effect in the center"));
            assert!(stored.group().ends_with(".denatured"), "{stored}");
            assert_eq!(stored.resource(), natural.resource());
            assert_eq!(natured(&stored), Some(natural.clone()), "{text}");
            assert_eq!((&*at_edge(&stored), &*in_mailbox(&natural)), (&natural, &stored));
        }
        assert_eq!(denatured(&kind("serviceaccounts")), Some(kind("serviceaccounts.core.denatured")));
    }

    #[test]
    fn what_is_only_data_stays_as_it_is() {
        for text in ["configmaps", "deployments.apps", "namespaces", "crontabs.stable.example.com"] {
            assert_eq!((denatured(&kind(text)), natured(&kind(text))), (None, None), "{text}");
        }
        // Found denatured already, it is not denatured twice.
        assert_eq!(denatured(&kind("roles.rbac.authorization.k8s.io.denatured")), None);
    }

    #[test]
    fn webhooks_policies_and_quotas_act_on_their_workspace() {
        let acting: Vec<String> =
            natured_kinds().filter(acts_on_its_workspace).map(|kind| kind.to_string()).collect();
        assert_eq!(acting.len(), 7, "{acting:?}");
        assert!(acting.contains(&"resourcequotas".to_owned()), "{acting:?}");
        for stored in natured_kinds().filter_map(|kind| denatured(&kind)) {
            assert!(!acts_on_its_workspace(&stored), "{stored}");
        }
    }

    #[test]
    fn the_version_goes_along_with_the_group() {
        for (api_version, group, expected) in [
            ("v1", "core.denatured", "core.denatured/v1"),
            ("core.denatured/v1", "", "v1"),
            (
                "rbac.authorization.k8s.io/v1",
                "rbac.authorization.k8s.io.denatured",
                "rbac.authorization.k8s.io.denatured/v1",
            ),
        ] {
            assert_eq!(api_version_in_group(api_version, group), expected);
        }
    }
}
