//! What stands natured in a workload workspace though edges are meant: it may act on the workspace itself, and it may be
//! there twice.

use mailboat_api::condition::{Condition, ConditionStatus, find, types};
use mailboat_api::edge::PlacementConflict;
use mailboat_engine::route::View;
use mailboat_object::key::{ClusterId, Key, KindId};
use mailboat_object::object::Object;
use mailboat_store::seen::Doubt;
use mailboat_store::store::Store;

use super::telling::{MOST_LISTED, reference};
use crate::denature;
use crate::what::What;

/// What a placement selects of that.
pub(super) struct Natured {
    /// What acts on the workspace: the first, and how many there are.
    acting: Option<(Key, usize)>,
    /// What is stored denatured as well, and stands back for that.
    doubled: Vec<Key>,
    /// Not all of it could be seen.
    in_doubt: bool,
}

impl Natured {
    /// What a placement selects in its workspace.
    pub(super) fn of(what: &What, cluster: &ClusterId, store: &Store) -> Self {
        let mut found = Self { acting: None, doubled: Vec::new(), in_doubt: false };
        for kind in denature::natured_kinds().filter(|kind| what.may_select(kind)) {
            if denature::acts_on_its_workspace(&kind) {
                found.note_acting(what, cluster, &kind, store);
            }
            found.note_doubled(what, cluster, &kind, store);
        }
        found
    }

    fn note_acting(&mut self, what: &What, cluster: &ClusterId, kind: &KindId, store: &Store) {
        match store.range(cluster, kind, None) {
            Ok(objects) => {
                self.in_doubt |= objects.missing().is_err();
                for object in objects.filter(|object| is_selected(what, object, store)) {
                    self.acting.get_or_insert_with(|| (object.key.clone(), 0)).1 += 1;
                }
            }
            // The workspace does not have the kind.
            Err(Doubt::NotFollowed) => {}
            Err(_) => self.in_doubt = true,
        }
    }

    fn note_doubled(&mut self, what: &What, cluster: &ClusterId, kind: &KindId, store: &Store) {
        let stored = denature::in_mailbox(kind);
        let Ok(objects) = store.range(cluster, &stored, None) else { return };
        for object in objects {
            if self.doubled.len() >= MOST_LISTED {
                return;
            }
            let twin = Key { kind: kind.clone(), ..object.key.clone() };
            let twin = store.get(&twin).present().filter(|twin| is_selected(what, twin, store));
            if let Some(twin) = twin.filter(|_| is_selected(what, object, store)) {
                self.doubled.push(twin.key.clone());
            }
        }
    }

    /// What is there twice, of which one can go.
    pub(super) fn conflicts(&self) -> impl Iterator<Item = PlacementConflict> {
        self.doubled.iter().map(|key| {
            let stored = denature::in_mailbox(&key.kind);
            PlacementConflict {
                object: Some(reference(key)),
                edge: String::new(),
                with: format!("{stored} {}", key.name),
                message: format!("it is stored as {stored} as well, and that one goes to the edges"),
            }
        })
    }

    /// Whether anything acts on the workspace, from the first time on that it is so.
    pub(super) fn condition(&self, placement: &Object) -> Option<Condition> {
        let (status, reason, message) = match &self.acting {
            Some((first, count)) => (ConditionStatus::True, "Natured", told(first, *count)),
            None if self.in_doubt || !was_told(placement) => return None,
            None => (ConditionStatus::False, "NothingNatured", String::new()),
        };
        let (type_, reason) = (types::TAKES_EFFECT_HERE.to_owned(), reason.to_owned());
        Some(Condition { type_, status, reason, message, ..Condition::default() })
    }
}

fn told(first: &Key, count: usize) -> String {
    let (kind, stored) = (&first.kind, denature::in_mailbox(&first.kind));
    let more = if count > 1 { format!("; and {} more", count - 1) } else { String::new() };
    format!(
        "{kind} {} takes effect in this workspace as well as at the edges; kept as {stored} it is for the edges alone{more}",
        first.name
    )
}

fn is_selected(what: &What, object: &Object, store: &Store) -> bool {
    what.select(object, &View::new(store)).is_ok_and(|because| because.is_some())
}

fn was_told(placement: &Object) -> bool {
    let said = placement.get(&["status", "conditions"]);
    let said: Option<Vec<Condition>> = said.and_then(|said| serde_json::from_str(said.json()).ok());
    said.is_some_and(|said| find(&said, types::TAKES_EFFECT_HERE).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::fixtures::{Knowledge, object};

    const SHOP: &str = "shop";
    const QUOTAS: &str = "resourcequotas";
    const ROLES: &str = "clusterroles.rbac.authorization.k8s.io";

    fn named(namespace: &str, name: &str) -> Value {
        json!({ "metadata": { "namespace": namespace, "name": name } })
    }

    fn what(spec: &Value) -> What {
        What::of(&serde_json::from_value(spec.clone()).unwrap())
    }

    fn natured(what: &What, knowledge: &Knowledge) -> Natured {
        Natured::of(what, &ClusterId::new(SHOP), &knowledge.store)
    }

    fn placement(conditions: &Value) -> std::sync::Arc<Object> {
        let placement = json!({ "metadata": { "name": "shops" }, "status": { "conditions": conditions } });
        object(SHOP, "edgeplacements.edge.kubestellar.io", &placement)
    }

    #[test]
    fn what_acts_on_its_own_workspace_is_told_until_it_does_not() {
        let mut knowledge = Knowledge::new();
        let all = what(&json!({ "downsync": [{ "namespaces": ["till"] }] }));
        let silent = placement(&json!([]));
        assert_eq!(natured(&all, &knowledge).condition(&silent), None);
        knowledge.list(SHOP, QUOTAS, &[named("till", "a"), named("till", "b"), named("back", "c")]);
        let said = natured(&all, &knowledge).condition(&silent).unwrap();
        assert_eq!((said.status, said.type_.as_str()), (ConditionStatus::True, "TakesEffectHere"));
        assert!(said.message.contains("resourcequotas a takes effect in this workspace"), "{}", said.message);
        assert!(said.message.contains("resourcequotas.core.denatured"), "{}", said.message);
        assert!(said.message.ends_with("and 1 more"), "{}", said.message);
        for name in ["a", "b"] {
            knowledge.event(SHOP, QUOTAS, "DELETED", &named("till", name));
        }
        assert_eq!(natured(&all, &knowledge).condition(&silent), None, "nobody was told");
        let told = placement(&json!([{ "type": "TakesEffectHere", "status": "True" }]));
        let said = natured(&all, &knowledge).condition(&told).unwrap();
        assert_eq!(said.status, ConditionStatus::False);
    }

    #[test]
    fn grants_and_what_is_kept_for_edges_act_on_nothing() {
        let mut knowledge = Knowledge::new();
        knowledge.list(SHOP, ROLES, &[named("", "reader")]);
        knowledge.list(SHOP, "resourcequotas.core.denatured", &[named("till", "a")]);
        let all = what(&json!({ "downsync": [{ "objectNames": ["reader", "a"] }] }));
        assert_eq!(natured(&all, &knowledge).condition(&placement(&json!([]))), None);
    }

    #[test]
    fn what_is_stored_both_ways_is_a_conflict_if_both_are_selected() {
        let mut knowledge = Knowledge::new();
        knowledge.list(SHOP, ROLES, &[named("", "reader"), named("", "writer")]);
        knowledge.list(SHOP, &format!("{ROLES}.denatured"), &[named("", "reader"), named("", "other")]);
        let all = what(&json!({ "downsync": [{ "resources": ["clusterroles"] }] }));
        let told: Vec<_> = natured(&all, &knowledge).conflicts().collect();
        let [conflict] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!(conflict.with, format!("{ROLES}.denatured reader"));
        assert_eq!(conflict.object.as_ref().map(|object| object.name.as_str()), Some("reader"));
        let one = what(&json!({ "downsync": [{ "apiGroup": "rbac.authorization.k8s.io.denatured" }] }));
        assert_eq!(natured(&one, &knowledge).conflicts().count(), 0, "the other is not selected");
    }
}
