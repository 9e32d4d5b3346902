//! Which objects travel: never those that belong to their place, otherwise those that an entry means.

use std::borrow::Cow;

use mailboat_api::edge::OwnerSelector;
use mailboat_api::names::label;
use mailboat_api::places::{KCP_SYSTEM, is_group_of_places, is_kind_of_places, is_token};
use mailboat_object::json::Raw;
use mailboat_object::key::{KindId, Name};
use mailboat_object::object::Object;
use mailboat_object::select::Labels;

use crate::config::Entry;
use crate::renature::natured;

/// On what makes a syncer work (its account, rights, token and record): such objects never travel.
const LABELS_OF_OUR_OWN: [&str; 2] = [label::REGISTRATION, label::SYSTEM];

/// Whether a kind's objects belong to the place where they are. With an empty resource: whether a whole group's do.
pub fn never_travels(group: &str, resource: &str) -> bool {
    is_group_of_places(group)
        || is_kind_of_places(group, resource)
        // A mailbox is bound by the center to what its edge needs.
        || (group, resource) == ("apis.kcp.io", "apibindings")
}

/// Whether an object belongs to the place where it is, whoever selects it: what every place has of its own, tokens, and
/// what makes the place itself work.
pub fn belongs_to_its_place(object: &Object) -> bool {
    let real = natured(&object.key.kind);
    let kind = real.as_ref().unwrap_or(&object.key.kind);
    let name = object.key.name.as_str();
    if never_travels(kind.group(), kind.resource())
        || LABELS_OF_OUR_OWN.iter().any(|label| object.label(label).is_some())
        || object.key.namespace.as_str() == KCP_SYSTEM
    {
        return true;
    }
    match (kind.group(), kind.resource()) {
        ("", "secrets") => {
            object.root().member("type").and_then(Raw::as_str).is_some_and(|kind| is_token(&kind))
        }
        ("", "configmaps") => name == "kube-root-ca.crt",
        ("", "serviceaccounts") => name == "default",
        ("", "namespaces") => name == KCP_SYSTEM,
        // In every workspace of kcp: cluster-admin for the name of whoever made it, which another cluster may give
        // to anybody.
        ("rbac.authorization.k8s.io", "clusterrolebindings") => name == "workspace-admin",
        _ => false,
    }
}

/// Whether an entry means an object that is called so, by its name, labels, annotations and owners.
pub fn means(entry: &Entry, object: &Object, namespace: &Name, name: &Name) -> bool {
    entry.names(namespace, name)
        && entry.labels.matches(object)
        && (entry.annotations.is_everything() || entry.annotations.matches(&Annotations(object)))
        && entry.owner.as_ref().is_none_or(|owner| is_owned(object, owner))
}

fn is_owned(object: &Object, by: &OwnerSelector) -> bool {
    let fits = |wanted: &str, is: &str| wanted.is_empty() || wanted == is;
    object.owner_references().any(|owner| {
        fits(&by.api_version, &owner.api_version)
            && fits(&by.kind, &owner.kind)
            && fits(&by.name, &owner.name)
    })
}

/// Whether a kind may be brought up by an entry that means all kinds of its group.
pub fn comes_with_its_group(kind: &KindId) -> bool {
    !never_travels(kind.group(), kind.resource())
}

/// An object's annotations, selected from as labels are.
struct Annotations<'a>(&'a Object);

impl Labels for Annotations<'_> {
    fn label_value(&self, key: &str) -> Option<Cow<'_, str>> {
        self.0.annotation(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigKind;
    use crate::testing::{config, object};

    #[test]
    fn what_every_place_has_of_its_own_stays() {
        let stays = [
            (
                "",
                "secrets",
                r#"{"type":"kubernetes.io/service-account-token","metadata":{"name":"t","namespace":"n"}}"#,
            ),
            (
                "",
                "secrets",
                r#"{"type":"bootstrap.kubernetes.io/token","metadata":{"name":"t","namespace":"n"}}"#,
            ),
            (
                "core.denatured",
                "secrets",
                r#"{"type":"bootstrap.kubernetes.io/token","metadata":{"name":"t","namespace":"n"}}"#,
            ),
            ("", "configmaps", r#"{"metadata":{"name":"kube-root-ca.crt","namespace":"n"}}"#),
            ("core.denatured", "serviceaccounts", r#"{"metadata":{"name":"default","namespace":"n"}}"#),
            (
                "rbac.authorization.k8s.io",
                "clusterrolebindings",
                r#"{"metadata":{"name":"workspace-admin"}}"#,
            ),
            ("", "configmaps", r#"{"metadata":{"name":"a","namespace":"kcp-system"}}"#),
            (
                "",
                "serviceaccounts",
                r#"{"metadata":{"name":"s","namespace":"n","labels":{"mailboat.dev/system":"true"}}}"#,
            ),
            (
                "",
                "secrets",
                r#"{"metadata":{"name":"s-token","namespace":"n","labels":{"mailboat.dev/registration":"s"}}}"#,
            ),
            ("apis.kcp.io", "apibindings", r#"{"metadata":{"name":"a"}}"#),
        ];
        for (group, resource, json) in stays {
            assert!(belongs_to_its_place(&object("mb", group, resource, json)), "{resource}.{group} {json}");
        }
        let goes = [
            ("", "secrets", r#"{"type":"Opaque","metadata":{"name":"t","namespace":"n"}}"#),
            ("", "configmaps", r#"{"metadata":{"name":"kube-root-ca","namespace":"n"}}"#),
            ("", "serviceaccounts", r#"{"metadata":{"name":"kyverno","namespace":"default"}}"#),
            ("", "namespaces", r#"{"metadata":{"name":"default"}}"#),
            ("rbac.authorization.k8s.io", "clusterroles", r#"{"metadata":{"name":"workspace-admin"}}"#),
        ];
        for (group, resource, json) in goes {
            assert!(!belongs_to_its_place(&object("mb", group, resource, json)), "{resource}.{group} {json}");
        }
    }

    #[test]
    fn labels_annotations_and_owners_all_must_fit() {
        let config = config(
            ConfigKind::EdgeSyncConfig,
            "c",
            r#"{"upSyncedResources":[{"kind":"Reading","group":"m","namespace":"*","name":"*",
                 "labelSelector":{"matchLabels":{"tier":"shop"}},"annotationSelector":{"matchLabels":{"a/b":"c"}},
                 "ownerSelector":{"kind":"Deployment","apiVersion":"apps/v1"}}]}"#,
        );
        let entry = &config.up[0];
        assert_eq!(entry.wrong, None);
        let reading = |labels: &str, annotations: &str, owner: &str| {
            let json = format!(
                r#"{{"metadata":{{"name":"r","namespace":"n","labels":{labels},"annotations":{annotations},"ownerReferences":[{owner}]}}}}"#
            );
            let object = object("edge", "m", "readings", &json);
            means(entry, &object, &object.key.namespace, &object.key.name)
        };
        let owner = r#"{"apiVersion":"apps/v1","kind":"Deployment","name":"d","uid":"u"}"#;
        assert!(reading(r#"{"tier":"shop"}"#, r#"{"a/b":"c"}"#, owner));
        assert!(!reading(r#"{"tier":"bank"}"#, r#"{"a/b":"c"}"#, owner));
        assert!(!reading(r#"{"tier":"shop"}"#, r#"{"a/b":"d"}"#, owner));
        assert!(!reading(r#"{"tier":"shop"}"#, r#"{"a/b":"c"}"#, &owner.replace("apps/v1", "batch/v1")));
        assert!(!reading(r#"{"tier":"shop"}"#, r#"{"a/b":"c"}"#, ""));
    }
}
