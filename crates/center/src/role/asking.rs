//! What is held and can be confirmed on no SyncTarget, said on the provider's export: an operator finds there what to do. Its
//! status is kcp's, so it is said in an annotation.

use std::sync::Arc;
use std::time::Duration;

use mailboat_api::names::annotation;
use mailboat_engine::role::{CallId, Order};
use mailboat_object::key::Name;
use mailboat_object::object::Object;
use mailboat_object::wire::{Call, Part, Verb};
use mailboat_store::time::Moment;
use serde_json::json;

/// What was written is shown by then, and what could not be written is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// What is to be said on the export, and the call that says it.
#[derive(Default)]
pub(super) struct Asking {
    under_way: Option<CallId>,
    not_before: Option<Moment>,
}

impl Asking {
    /// Says on the export what is held, or that nothing is any more. Says when to ask again.
    pub(super) fn next(
        &mut self,
        now: Moment,
        export: &Object,
        held: Option<&str>,
        manager: &Name,
        id: impl FnOnce() -> CallId,
        orders: &mut Vec<Order>,
    ) -> Option<Moment> {
        let said = export.annotation(annotation::WITHDRAWAL_HELD);
        if said.as_deref() == held || self.under_way.is_some() {
            return None;
        }
        if let Some(at) = self.not_before.filter(|at| *at > now) {
            return Some(at);
        }
        let patch = json!({ "metadata": { "annotations": { annotation::WITHDRAWAL_HELD: held } } });
        let body = Arc::from(patch.to_string().into_bytes());
        let verb = Verb::Merge { body, manager: manager.clone() };
        let id = id();
        self.under_way = Some(id);
        let call = Call { key: export.key.clone(), verb, part: Part::Whole, dry_run: false };
        orders.push(Order::Call(id, call));
        None
    }

    /// What came of the call. False if it was another's.
    pub(super) fn answered(&mut self, now: Moment, id: CallId) -> bool {
        let ours = self.under_way.take_if(|asked| *asked == id).is_some();
        if ours {
            self.not_before = Some(now + AGAIN_AFTER);
        }
        ours
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::fixtures::object;

    #[test]
    fn what_is_held_is_said_once_and_until_it_is_not() {
        let export = |said: Option<&str>| {
            let annotations = said.map(|said| json!({ annotation::WITHDRAWAL_HELD: said }));
            let metadata = json!({ "name": "e", "annotations": annotations.unwrap_or_else(|| json!({})) });
            object("espw", "apiexports.apis.kcp.io", &json!({ "metadata": metadata }))
        };
        let mut asking = Asking::default();
        let mut written = |now: u64, said: Option<&str>, held: Option<&str>| {
            let mut orders = Vec::new();
            let manager = Name::new("m");
            asking.next(Moment(now), &export(said), held, &manager, || CallId(now), &mut orders);
            asking.answered(Moment(now), CallId(now));
            orders.into_iter().next().map(|order| match order {
                Order::Call(_, Call { verb: Verb::Merge { body, .. }, .. }) => {
                    let patch: Value = serde_json::from_slice(&body).unwrap();
                    patch["metadata"]["annotations"][annotation::WITHDRAWAL_HELD].clone()
                }
                _ => panic!("no patch"),
            })
        };
        assert_eq!(written(1, None, None), None);
        assert_eq!(written(2, None, Some("ask")), Some(json!("ask")));
        assert_eq!(written(3, None, Some("ask")), None, "it is about to be shown");
        assert_eq!(written(20_000, Some("ask"), Some("ask")), None);
        assert_eq!(written(40_000, Some("ask"), None), Some(Value::Null));
    }
}
