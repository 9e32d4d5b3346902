//! What both directions share: how things are delivered, and what of an object is.

use std::sync::Arc;

use mailboat_api::edge::DeletePropagation;
use mailboat_api::names::annotation;
use mailboat_engine::mark::{MARK_ANNOTATION, Marks, OWNER_LABEL};
use mailboat_engine::mutation::{Mutation, broken};
use mailboat_engine::route::DestinationId;
use mailboat_engine::want::{Adopt, Body, Delivery, Hold, Origin, Policy, StatusReturn, Withdrawal};
use mailboat_object::catalog::{Catalog, Found};
use mailboat_object::digest::digest_of;
use mailboat_object::key::KindId;
use mailboat_object::object::Object;

use crate::renature::Shape;

/// The edge, as a destination.
pub const EDGE: DestinationId = DestinationId(0);
/// The mailbox, as a destination.
pub const MAILBOX: DestinationId = DestinationId(1);

/// Every policy of one direction, made once, so that objects carried alike share one.
pub struct Policies(Vec<Arc<Policy>>);

const DELIVERIES: [Delivery; 2] = [Delivery::Apply, Delivery::CreateOnly];
const RETURNS: [StatusReturn; 3] = [StatusReturn::Off, StatusReturn::Subresource, StatusReturn::Inline];
const WITHDRAWALS: [Withdrawal; 2] = [Withdrawal::Delete, Withdrawal::Leave];
const ADOPTIONS: [Adopt; 2] = [Adopt::Never, Adopt::Unmarked];

impl Policies {
    /// All policies with these marks.
    pub fn new(marks: &Arc<dyn Marks>) -> Self {
        let mut all = Vec::new();
        for delivery in DELIVERIES {
            for status in RETURNS {
                for withdrawal in WITHDRAWALS {
                    for adopt in ADOPTIONS {
                        let marks = Arc::clone(marks);
                        all.push(Arc::new(Policy {
                            delivery,
                            status,
                            withdrawal,
                            adopt,
                            ..Policy::plain(marks)
                        }));
                    }
                }
            }
        }
        Self(all)
    }

    /// The policy of this kind. `None` only for deliveries that the syncer does not make.
    pub fn get(
        &self,
        delivery: Delivery,
        status: StatusReturn,
        withdrawal: Withdrawal,
        adopt: Adopt,
    ) -> Option<Arc<Policy>> {
        let fits = |policy: &&Arc<Policy>| {
            (policy.delivery, policy.status, policy.withdrawal, policy.adopt)
                == (delivery, status, withdrawal, adopt)
        };
        self.0.iter().find(fits).cloned()
    }
}

/// Whether the source asks for an object in its way to be taken over.
pub fn adoption(source: &Object) -> Adopt {
    let asked = source.annotation(annotation::ON_CONFLICT);
    if asked.as_deref() == Some(annotation::ON_CONFLICT_ADOPT) { Adopt::Unmarked } else { Adopt::Never }
}

/// What becomes of a copy that is no longer wanted. A namespace stays whatever is asked for: it may hold what others put into it.
pub fn withdrawal(kind: &KindId, asked: DeletePropagation) -> Withdrawal {
    match asked {
        DeletePropagation::Delete if !is_namespace(kind) || broken(Mutation::NamespacesGo) => {
            Withdrawal::Delete
        }
        DeletePropagation::Delete | DeletePropagation::Orphan => Withdrawal::Leave,
    }
}

/// Whether a kind is that of namespaces.
pub fn is_namespace(kind: &KindId) -> bool {
    kind.group().is_empty() && kind.resource() == "namespaces"
}

/// Where a copy comes from.
pub fn origin(source: &Object) -> Origin {
    Origin::of(source)
}

/// The version that a place serves of a kind; empty if it serves none.
pub fn version<'a>(catalog: &'a Catalog, kind: &KindId) -> &'a str {
    match catalog.find(kind) {
        Found::Served(served) => &served.version,
        Found::NotServed | Found::Unknown(_) => "",
    }
}

/// An object as it is to stand elsewhere: without what belongs to the place that it comes from, the marks of whoever
/// put it there, and what it asks of us. With its status, where that is part of the object itself.
pub fn body(source: &Object, shape: &Shape, version: &str, with_status: bool) -> Result<Body, Hold> {
    let hold = |reason: String| Hold { reason, on: Some(source.key.clone()) };
    let mut edit = source.edit().map_err(|head| hold(head.to_string()))?;
    edit.strip();
    if !with_status {
        edit.remove_status();
    }
    edit.remove_label(OWNER_LABEL);
    for annotation in [MARK_ANNOTATION, annotation::DOWNSYNCED, annotation::UPSYNCED, annotation::ON_CONFLICT]
    {
        edit.remove_annotation(annotation);
    }
    shape.put_on(source, &mut edit, version).map_err(|bad| hold(bad.to_string()))?;
    let edited = edit.finish().map_err(|malformed| hold(malformed.to_string()))?;
    // The content's digest leaves the status out, which counts here if it is there.
    let digest = if with_status {
        digest_of(&edited.json).map_err(|malformed| hold(malformed.to_string()))?
    } else {
        edited.content
    };
    Ok(Body { json: edited.json, digest })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::marks::NoMarks;
    use crate::testing::object;

    #[test]
    fn there_is_a_policy_for_every_choice() {
        let marks: Arc<dyn Marks> = Arc::new(NoMarks);
        let policies = Policies::new(&marks);
        let wanted = (Delivery::CreateOnly, StatusReturn::Inline, Withdrawal::Leave, Adopt::Unmarked);
        let policy = policies.get(wanted.0, wanted.1, wanted.2, wanted.3).unwrap();
        assert_eq!((policy.delivery, policy.status, policy.withdrawal, policy.adopt), wanted);
    }

    #[test]
    fn what_belongs_to_the_mailbox_stays_there_and_a_center_that_marks_anew_changes_nothing() {
        let source = |version: u32| {
            object(
                "mb",
                "apps",
                "deployments",
                &json!({"kind":"Deployment","metadata":{"name":"a","namespace":"n","uid":"u","finalizers":["x"],
                    "labels":{"app":"a",(OWNER_LABEL):"center"},
                    "annotations":{(MARK_ANNOTATION):format!("{version}"),"mailboat.dev/on-conflict":"adopt","note":"b"}},
                    "spec":{"replicas":3},"status":{"replicas":version}})
                .to_string(),
            )
        };
        let one = source(1);
        let shape = Shape::downward(&one, &[]);
        let made = body(&one, &shape, "v1", false).unwrap();
        let value: Value = serde_json::from_slice(&made.json).unwrap();
        assert_eq!(value["metadata"]["labels"], json!({"app":"a"}));
        assert_eq!(value["metadata"]["annotations"], json!({"note":"b"}));
        assert!(value["metadata"].get("finalizers").is_none() && value.get("status").is_none(), "{value}");
        assert_eq!(made.digest, body(&source(2), &shape, "v1", false).unwrap().digest);
        assert_ne!(
            body(&one, &shape, "v1", true).unwrap().digest,
            body(&source(2), &shape, "v1", true).unwrap().digest,
            "a status that travels counts"
        );
    }
}
