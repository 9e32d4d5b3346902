//! Which change of which object redefines a kind.
//!
//! After a schema is replaced, a watch that is open goes on with the old one, on kcp in silence. So whoever
//! sees such an object change closes the kind's watch and lists it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_object::json::Raw;
use mailboat_object::key::{Key, KindId, Name};
use mailboat_object::object::Object;
use mailboat_store::{Change, Doubt, Seen};

/// Whether objects of this kind decide what a server serves: CRDs, kcp's APIBindings, and APIServices.
pub fn defines_kinds(kind: &KindId) -> bool {
    matches!(
        (kind.group(), kind.resource()),
        ("apiextensions.k8s.io", "customresourcedefinitions")
            | ("apis.kcp.io", "apibindings")
            | ("apiregistration.k8s.io", "apiservices")
    )
}

/// Each defined kind, and what identifies its present definition.
type Defined = BTreeMap<KindId, Name>;

/// Up to so many bindings, what a view shows is listed anew with each that comes or goes. A list costs as much as all of them
/// hold, so beyond, making many workspaces would cost as much as the square of them.
const FEW: usize = 64;

/// What the objects that define kinds at one place define, as last seen.
#[derive(Default)]
pub struct Definitions {
    by: BTreeMap<Key, Arc<Defined>>,
    /// Bindings of many workspaces mostly define the same, which is kept once.
    shapes: BTreeSet<Arc<Defined>>,
    /// How many objects define a kind in the same way.
    alike: BTreeMap<(KindId, Name), usize>,
}

impl Definitions {
    /// Takes in a change, and says which kinds have another definition after it, in order. A view shows many workspaces at
    /// once: one more of them that is bound to what others are bound to, or one fewer, redefines nothing there. A list anew
    /// would only tell at once, and not with the next bookmark, that there is nothing in it; that is worth it while they are few.
    pub fn learn(&mut self, change: &Change, view: bool) -> Vec<KindId> {
        let now = match &change.now {
            Seen::Present(object) => match defined(object) {
                Some(now) => now,
                None => return Vec::new(),
            },
            Seen::Absent(_) => Defined::new(),
            // No view says more of a binding that went, with its workspace or without: it is as one that never was.
            Seen::Unknown(Doubt::NotEngaged) => {
                if let Some(before) = self.by.get(&change.key).cloned() {
                    self.note(&change.key, &before, Defined::new());
                }
                return Vec::new();
            }
            // Nothing is known of it, so nothing is known to be different.
            Seen::Unknown(_) => return Vec::new(),
        };
        let before = self.by.get(&change.key).cloned().unwrap_or_default();
        if *before == now {
            return Vec::new();
        }
        let each_counts = !view || self.by.len() < FEW;
        let new = |of: (&KindId, &Name)| !self.alike.contains_key(&(of.0.clone(), of.1.clone()));
        let came = now.iter().filter(|(kind, by)| match before.get(*kind) {
            Some(before) => before != *by,
            None => each_counts || new((kind, by)),
        });
        let went = before.keys().filter(|kind| each_counts && !now.contains_key(*kind));
        let kinds: BTreeSet<KindId> = came.map(|(kind, _)| kind).chain(went).cloned().collect();
        self.note(&change.key, &before, now);
        kinds.into_iter().collect()
    }

    fn note(&mut self, key: &Key, before: &Defined, now: Defined) {
        for (kind, by) in before {
            let of = (kind.clone(), by.clone());
            if let Some(count) = self.alike.get_mut(&of) {
                *count -= 1;
                if *count == 0 {
                    self.alike.remove(&of);
                }
            }
        }
        for (kind, by) in &now {
            *self.alike.entry((kind.clone(), by.clone())).or_default() += 1;
        }
        self.by.remove(key);
        if now.is_empty() {
            return;
        }
        if let Some(known) = self.shapes.get(&now) {
            self.by.insert(key.clone(), Arc::clone(known));
            return;
        }
        self.shapes.retain(|shape| Arc::strong_count(shape) > 1);
        let shape = Arc::new(now);
        self.shapes.insert(Arc::clone(&shape));
        self.by.insert(key.clone(), shape);
    }
}

/// What an object defines; `None` if so little of it is kept that it does not say.
fn defined(object: &Object) -> Option<Defined> {
    match object.key.kind.resource() {
        "customresourcedefinitions" => Some(crd(object).unwrap_or_default()),
        "apibindings" if object.is_whole() || object.get(&["status"]).is_some() => Some(bound(object)),
        "apibindings" => None,
        _ => Some(Defined::new()),
    }
}

/// A CRD is named after what it defines, and its generation grows with every change of its spec.
fn crd(object: &Object) -> Option<Defined> {
    let (resource, group) = object.key.name.split_once('.')?;
    let definition = Name::new(&format!("{} {}", object.uid, object.generation));
    Some(BTreeMap::from([(KindId::new(group, resource), definition)]))
}

/// An APIBinding says which schema each kind is bound with. A claim on somebody else's kind, by its identity, lets a view serve
/// that kind from then on; kinds that every workspace has are served anyway.
fn bound(object: &Object) -> Defined {
    let listed = |member: &str| object.get(&["status", member]).into_iter().flat_map(Raw::elements);
    let text = |raw: Raw<'_>, path: &[&str]| {
        raw.get(path).and_then(Raw::as_str).map(|text| Name::new(&text)).unwrap_or_default()
    };
    let kind = |raw: Raw<'_>| KindId::new(&text(raw, &["group"]), &text(raw, &["resource"]));
    let claimed =
        listed("appliedPermissionClaims").map(|claim| (kind(claim), text(claim, &["identityHash"])));
    let bound = listed("boundResources").map(|bound| (kind(bound), text(bound, &["schema", "UID"])));
    claimed.filter(|(_, identity)| !identity.is_empty()).chain(bound).collect()
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

    fn learned(definitions: &mut Definitions, kind: &KindId, json: &str, view: bool) -> Vec<String> {
        let now = object(kind, json);
        let change = Change {
            key: now.key.clone(),
            before: None,
            now: Seen::Present(now),
            live: true,
            watched: false,
        };
        definitions.learn(&change, view).iter().map(ToString::to_string).collect()
    }

    fn redefined(kind: &KindId, before: Option<&str>, now: &str) -> Vec<String> {
        let mut definitions = Definitions::default();
        if let Some(before) = before {
            learned(&mut definitions, kind, before, false);
        }
        learned(&mut definitions, kind, now, false)
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

    #[test]
    fn a_claim_on_another_exports_kind_lets_a_view_serve_it() {
        let bindings = KindId::new("apis.kcp.io", "apibindings");
        let claims = |claims: &str| {
            format!(
                r#"{{"metadata":{{"name":"claim","uid":"u","resourceVersion":"1"}},"status":{{"appliedPermissionClaims":[{claims}]}}}}"#
            )
        };
        let boats = r#"{"group":"sea.example.com","resource":"boats","identityHash":"i"}"#;
        assert_eq!(redefined(&bindings, Some(&claims("")), &claims(boats)), ["boats.sea.example.com"]);
        assert_eq!(redefined(&bindings, Some(&claims(boats)), &claims(boats)), [""; 0]);
        // What every workspace has is served in any case.
        assert_eq!(redefined(&bindings, None, &claims(r#"{"resource":"configmaps"}"#)), [""; 0]);
    }

    #[test]
    fn h28_bindings_that_come_and_go_in_a_view_leave_nothing_behind() {
        let bindings = KindId::new("apis.kcp.io", "apibindings");
        let mut definitions = Definitions::default();
        for number in 0..10_000 {
            let name = format!("binding-{number}");
            let binding = format!(
                r#"{{"metadata":{{"name":"{name}","uid":"u","resourceVersion":"1"}},"status":{{"boundResources":[
                   {{"group":"","resource":"boats{number}","schema":{{"UID":"{number}"}}}}]}}}}"#
            );
            assert_eq!(learned(&mut definitions, &bindings, &binding, true).len(), 1);
            let key = object(&bindings, &binding).key.clone();
            let now = Seen::Unknown(Doubt::NotEngaged);
            let gone = Change { key, before: None, now, live: true, watched: true };
            assert!(definitions.learn(&gone, true).is_empty());
        }
        assert!(definitions.by.is_empty() && definitions.alike.is_empty());
        assert!(definitions.shapes.len() <= 1, "{} kept", definitions.shapes.len());
    }

    #[test]
    fn one_more_workspace_among_many_redefines_nothing_in_a_view_until_its_schema_is_another() {
        let bindings = KindId::new("apis.kcp.io", "apibindings");
        let mut definitions = Definitions::default();
        let mut bound = |name: &str, schema: &str| {
            let binding = format!(
                r#"{{"metadata":{{"name":"{name}","uid":"u","resourceVersion":"1"}},"status":{{"boundResources":[
                   {{"group":"","resource":"pods","schema":{{"UID":"{schema}"}}}}]}}}}"#
            );
            learned(&mut definitions, &bindings, &binding, true)
        };
        assert_eq!(bound("first", "a"), ["pods"]);
        for number in 1..FEW {
            assert_eq!(bound(&format!("early-{number}"), "a"), ["pods"]);
        }
        assert_eq!(bound("second", "a"), [""; 0]);
        // While bindings flip one by one, each of them may have been listed under the old schema.
        assert_eq!((bound("first", "b"), bound("second", "b")), (vec!["pods".into()], vec!["pods".into()]));
        assert_eq!(bound("third", "b"), [""; 0]);
        let of = |name: &str| {
            definitions.by.iter().find(|(key, _)| key.name.as_str() == name).map(|(_, defined)| defined)
        };
        let (first, third) = (of("first").unwrap(), of("third").unwrap());
        assert!(Arc::ptr_eq(first, third), "what is alike is kept once");
    }
}
