//! Which change of which object redefines a kind.
//!
//! After a schema is replaced, a watch that is open goes on with the old one, on kcp in silence. So whoever
//! sees such an object change closes the kind's watch and lists it anew.

use std::collections::BTreeMap;

use mailboat_object::key::KindId;
use mailboat_object::object::Object;
use mailboat_store::{Change, Seen};

/// Whether objects of this kind decide what a server serves: CRDs, kcp's APIBindings, and APIServices.
pub fn defines_kinds(kind: &KindId) -> bool {
    matches!(
        (kind.group(), kind.resource()),
        ("apiextensions.k8s.io", "customresourcedefinitions")
            | ("apis.kcp.io", "apibindings")
            | ("apiregistration.k8s.io", "apiservices")
    )
}

/// The kinds whose definition is another after this change, in order.
pub fn redefined_by(change: &Change) -> Vec<KindId> {
    let before = change.before.as_deref();
    let now = match &change.now {
        Seen::Present(object) => Some(&**object),
        Seen::Absent(_) => None,
        // Nothing is known of it, so nothing is known to be different.
        Seen::Unknown(_) => return Vec::new(),
    };
    let (before, now) = match change.key.kind.resource() {
        "customresourcedefinitions" => (before.and_then(crd), now.and_then(crd)),
        "apibindings" => (before.map(bound), now.map(bound)),
        _ => return Vec::new(),
    };
    let (before, now) = (before.unwrap_or_default(), now.unwrap_or_default());
    let mut kinds: Vec<KindId> = before
        .iter()
        .filter(|(kind, definition)| now.get(*kind) != Some(definition))
        .chain(now.iter().filter(|(kind, _)| !before.contains_key(*kind)))
        .map(|(kind, _)| kind.clone())
        .collect();
    kinds.sort();
    kinds
}

/// Each defined kind, and what identifies its present definition.
type Defined = BTreeMap<KindId, String>;

/// A CRD is named after what it defines, and its generation grows with every change of its spec.
fn crd(object: &Object) -> Option<Defined> {
    let (resource, group) = object.key.name.split_once('.')?;
    Some(BTreeMap::from([(KindId::new(group, resource), format!("{} {}", object.uid, object.generation))]))
}

/// An APIBinding says which schema each kind is bound with.
fn bound(object: &Object) -> Defined {
    let Some(resources) = object.get(&["status", "boundResources"]) else { return Defined::new() };
    let text = |raw: mailboat_object::json::Raw<'_>, path: &[&str]| {
        raw.get(path).and_then(|value| value.as_str().map(std::borrow::Cow::into_owned)).unwrap_or_default()
    };
    let kinds = resources.elements().map(|bound| {
        let kind = KindId::new(&text(bound, &["group"]), &text(bound, &["resource"]));
        (kind, text(bound, &["schema", "UID"]))
    });
    kinds.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mailboat_object::key::ClusterId;
    use mailboat_object::object::{ClusterOf, Keep, Limits, Place};

    use super::*;

    fn object(kind: &KindId, json: &str) -> Arc<Object> {
        let cluster = ClusterId::new("here");
        let place = Place {
            cluster: ClusterOf::One(&cluster),
            kind,
            api_version: "x/v1",
            kind_name: "X",
            manager: "",
            keep: Keep::Whole,
            limits: Limits::default(),
        };
        Arc::new(Object::decode(json.as_bytes(), &place).unwrap_or_else(|malformed| panic!("{malformed}")))
    }

    fn redefined(kind: &KindId, before: Option<&str>, now: &str) -> Vec<String> {
        let now = object(kind, now);
        let change = Change {
            key: now.key.clone(),
            before: before.map(|json| object(kind, json)),
            now: Seen::Present(now),
            live: true,
        };
        redefined_by(&change).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_crd_redefines_its_kind_when_its_generation_grows_and_not_with_its_status() {
        let crds = KindId::new("apiextensions.k8s.io", "customresourcedefinitions");
        let crd = |generation: u32, version: u32| {
            format!(
                r#"{{"metadata":{{"name":"boats.sea.example.com","uid":"u","resourceVersion":"{version}","generation":{generation}}}}}"#
            )
        };
        assert_eq!(redefined(&crds, None, &crd(1, 5)), ["boats.sea.example.com"]);
        assert_eq!(redefined(&crds, Some(&crd(1, 5)), &crd(1, 6)), [""; 0]);
        assert_eq!(redefined(&crds, Some(&crd(1, 5)), &crd(2, 6)), ["boats.sea.example.com"]);
        assert!(defines_kinds(&crds) && !defines_kinds(&KindId::new("", "configmaps")));
    }

    #[test]
    fn an_api_binding_redefines_the_kinds_whose_schema_is_another() {
        let bindings = KindId::new("apis.kcp.io", "apibindings");
        let binding = |version: u32, bound: &str| {
            format!(
                r#"{{"metadata":{{"name":"kubernetes","uid":"u","resourceVersion":"{version}"}},"status":{{"boundResources":[{bound}]}}}}"#
            )
        };
        let pods = |uid: &str| {
            format!(r#"{{"group":"","resource":"pods","schema":{{"UID":"{uid}","identityHash":"i"}}}}"#)
        };
        let boats = r#"{"group":"sea.example.com","resource":"boats","schema":{"UID":"b"}}"#;
        assert_eq!(redefined(&bindings, None, &binding(1, &pods("a"))), ["pods"]);
        assert_eq!(redefined(&bindings, Some(&binding(1, &pods("a"))), &binding(2, &pods("a"))), [""; 0]);
        assert_eq!(redefined(&bindings, Some(&binding(1, &pods("a"))), &binding(2, &pods("c"))), ["pods"]);
        let both = format!("{},{boats}", pods("a"));
        assert_eq!(redefined(&bindings, Some(&binding(1, &both)), &binding(2, boats)), ["pods"]);
        assert_eq!(redefined(&bindings, Some(&binding(1, boats)), &binding(2, &both)), ["pods"]);
    }
}
