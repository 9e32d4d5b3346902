//! Copies that are seen by a permission claim: the last edge of some worlds is a mailbox on a server with kcp's ways, and what
//! stands there is shown by a view as long as its binding accepts the claim. kcp does so by a label on every object, which
//! it takes off when the claim is rejected: the view tells that they are deleted, and they stay.

use std::sync::Arc;

use mailboat_machinery::{Mark, Marks};
use mailboat_object::LabelSelector;
use mailboat_object::key::{KindId, Name};
use mailboat_object::wire::Part;
use serde_json::json;

use crate::roles::{bindings, boats, edge, key};
use crate::servers::{Servers, kind_name};

/// What the view shows bears this.
const LABEL: &str = "claimed.internal.apis.kcp.io/sim";
/// The binding that accepts the claim.
const BINDING: &str = "claims";

impl Servers {
    /// What a list or a watch on a server is narrowed to before anybody sees it.
    pub(crate) fn shown_of(&self, server: usize, kind: &KindId) -> LabelSelector {
        let claimed = self.claimed.is_some_and(|edge| usize::from(edge) + 1 == server) && *kind == boats();
        if claimed { LABEL.parse().unwrap_or_default() } else { LabelSelector::default() }
    }

    /// Somebody accepts the claim, or rejects it; the server acts on that, and says so.
    pub(crate) fn answer_claim(&mut self, accepted: bool) {
        let Some(number) = self.claimed else { return };
        let binding = key(edge(number), bindings(), BINDING);
        let kind = boats();
        let (group, resource) = (kind.group(), kind.resource());
        let state = if accepted { "Accepted" } else { "Rejected" };
        let claims = json!([{ "group": group, "resource": resource, "state": state }]);
        let body = json!({
            "apiVersion": "apis.kcp.io/v1", "kind": kind_name(&bindings()),
            "metadata": { "name": BINDING }, "spec": { "permissionClaims": claims },
        });
        self.by_user(&binding, &body, &json!({ "spec": { "permissionClaims": claims } }));
        let mark =
            Mark { label: Name::new(LABEL), value: Name::new("boats"), objects: LabelSelector::default() };
        let marks = if accepted { Marks::from([(boats(), vec![mark])]) } else { Marks::new() };
        if let Some(machine) = self.machines.get_mut(usize::from(number) + 1) {
            machine.mark(&edge(number), &Arc::new(marks));
        }
        let applied = if accepted { json!([{ "group": group, "resource": resource }]) } else { json!([]) };
        let applied = json!({ "status": { "appliedPermissionClaims": applied } });
        let _ = self.merge(&binding, &applied, Part::Status);
    }
}
