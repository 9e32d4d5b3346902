//! Namespaces: what stands in one goes with it.

use std::sync::Arc;

use mailboat_object::{ClusterId, Key, KindId, Name};

use serde_json::Value;

use super::delete::{DeleteOptions, Deleted, Emptied, Room};
use super::{Held, ListRequest, Machine};
use crate::builtin::NAMESPACE_FINALIZER;
use crate::kind::Kind;
use crate::object::Stored;
use crate::random::Moment;
use crate::status::Status;
use crate::time::rfc3339;

const NAMESPACES: &str = "namespaces";

impl Machine {
    /// Whether something new may come into a namespace. Where namespaces are not served, any will do.
    pub(super) fn check_namespace(&self, key: &Key, kind: &Kind) -> Result<(), Status> {
        let namespaces = KindId::new("", NAMESPACES);
        if !kind.namespaced || self.kind(&key.cluster, &namespaces).is_none() {
            return Ok(());
        }
        let namespace = Key {
            cluster: key.cluster.clone(),
            kind: namespaces.clone(),
            namespace: Name::EMPTY,
            name: key.namespace.clone(),
        };
        match self.held(&namespace) {
            None => Err(Status::not_found(&namespaces, &key.namespace)),
            Some(namespace) if namespace.is_deleting() => {
                Err(Status::namespace_terminating(&key.kind, &key.name, &key.namespace))
            }
            Some(_) => Ok(()),
        }
    }

    /// The first deletion of a namespace only marks it: it is held until it is empty.
    pub(super) fn delete_namespace(
        &mut self,
        live: &Arc<Stored>,
        options: &DeleteOptions,
        moment: &Moment<'_>,
    ) -> Option<Deleted> {
        if !is_namespace(&live.key.kind) || (live.is_deleting() && is_empty(live)) {
            return None;
        }
        if live.is_deleting() {
            return Some(Deleted { object: Arc::clone(live), gone: false });
        }
        let mut body = live.body().clone();
        body["metadata"]["deletionTimestamp"] = rfc3339(moment.now_seconds).into();
        body["status"]["phase"] = "Terminating".into();
        let stored = live.with_body(body);
        let object = if options.dry_run { Arc::new(stored) } else { self.put(stored) };
        Some(Deleted { object, gone: false })
    }

    /// Does once what the namespace controller does: deletes what stands in namespaces that are going, as much as goes in
    /// one round, and lets those go that are empty. Tells how many changes that made; 0 means that nothing is left to do now.
    pub fn empty_namespaces(&mut self, cluster: &ClusterId, moment: &mut Moment<'_>) -> usize {
        let namespaces = KindId::new("", NAMESPACES);
        let going: Vec<Arc<Stored>> = self
            .table(cluster, &namespaces)
            .into_iter()
            .flat_map(|table| table.values())
            .filter(|namespace| namespace.is_deleting())
            .map(Held::get)
            .collect();
        let before = self.version();
        let mut room = Room::default();
        for namespace in going {
            self.empty_namespace(cluster, &namespace, &mut room, moment);
        }
        usize::try_from(self.version().0 - before.0).unwrap_or(usize::MAX)
    }

    fn empty_namespace(
        &mut self,
        cluster: &ClusterId,
        namespace: &Arc<Stored>,
        room: &mut Room,
        moment: &mut Moment<'_>,
    ) {
        let kinds: Vec<KindId> =
            self.kinds(cluster).filter(|kind| kind.namespaced).map(|kind| kind.id.clone()).collect();
        let mut emptied = Emptied::default();
        for kind in kinds {
            let request = ListRequest {
                cluster: Some(cluster.clone()),
                kind,
                namespace: namespace.key.name.clone(),
                ..ListRequest::default()
            };
            emptied |= self.delete_all(&request, room, moment);
        }
        if emptied.left || is_empty(namespace) {
            return;
        }
        let mut body = namespace.body().clone();
        if let Some(spec) = body["spec"].as_object_mut()
            && let Some(Value::Array(held)) = spec.get_mut("finalizers")
        {
            held.retain(|finalizer| finalizer != NAMESPACE_FINALIZER);
            if held.is_empty() {
                spec.remove("finalizers");
            }
        }
        let emptied = namespace.with_body(body);
        if emptied.finalizers().is_empty() && is_empty(&emptied) {
            self.take(&namespace.key);
        } else if emptied.body() != namespace.body() {
            self.put(emptied);
        }
    }
}

/// Whether a namespace must wait although nothing in its metadata holds it.
pub(super) fn is_held(new: &Stored) -> bool {
    is_namespace(&new.key.kind) && !is_empty(new)
}

fn is_namespace(kind: &KindId) -> bool {
    kind.group().is_empty() && kind.resource() == NAMESPACES
}

/// Whether a namespace was found empty: its own finalizers are gone then.
fn is_empty(namespace: &Stored) -> bool {
    namespace.body()["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty)
}
