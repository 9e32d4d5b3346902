//! Permission claims: which objects of a workspace an export's owner sees, because the workspace's binding says so.
//!
//! As in kcp, what was granted bears a label that the server puts on it. So an object that is granted, or granted no more,
//! is seen to come and to go by whoever watches the export's view.

use std::collections::HashSet;
use std::sync::Arc;

use mailboat_machinery::{MARK_PREFIX, Mark, Marks, Stored, builtin};
use mailboat_object::json::Raw;
use mailboat_object::{ClusterId, Key, KindId, LabelSelector, Name};
use serde_json::Value;
use sha2::{Digest, Sha224};

use super::{Round, binding};

/// The kind that a claim is about.
pub(super) fn kind_of(claim: &Value) -> KindId {
    let text = |member: &str| claim[member].as_str().unwrap_or_default();
    KindId::new(text("group"), text("resource"))
}

/// Whether a claim allows a verb. Claims of `v1alpha1` name none, and allow all.
pub(super) fn allows(claim: &Value, verb: &str) -> bool {
    let Some(verbs) = claim["verbs"].as_array() else { return true };
    verbs.iter().any(|one| one == verb || one == "*")
}

/// The label of what an export's owner sees by claims.
pub(super) fn label_of(export: &Key) -> Name {
    let text = format!("{}:{}", export.cluster.0, export.name);
    Name::new(&format!("{MARK_PREFIX}{}", base62(&Sha224::digest(text))))
}

/// The value of that label on objects of a kind.
pub(super) fn value_of(kind: &KindId) -> Name {
    Name::new(&base62(&Sha224::digest(format!("{}/{}", kind.group(), kind.resource()))))
}

/// The claims of an export that a binding accepts.
pub(super) fn accepted<'b>(binding: &'b Value, export: &'b Value) -> impl Iterator<Item = &'b Value> {
    let claimed: HashSet<(KindId, &str)> =
        of(export).map(|claim| (kind_of(claim), identity_of(claim))).collect();
    of(binding).filter(move |claim| {
        claim["state"] == "Accepted" && claimed.contains(&(kind_of(claim), identity_of(claim)))
    })
}

/// Whose kind a claim is about, by the identity of its export; empty for what every workspace has.
pub(super) fn identity_of(claim: &Value) -> &str {
    claim["identityHash"].as_str().unwrap_or_default()
}

/// Whether a binding brings a kind of this identity.
fn brings(binding: &Stored, kind: &KindId, identity: &str) -> bool {
    let mut bound = binding.body()["status"]["boundResources"].as_array().into_iter().flatten();
    bound.any(|bound| kind_of(bound) == *kind && bound["schema"]["identityHash"] == identity)
}

/// Whether a claim that a binding accepts allows a verb on a kind. As in kcp both sides have to name the verb, or both all
/// verbs: `*` on one side and `get` on the other is nothing that both name.
pub(super) fn allow(binding: &Value, export: &Value, kind: &KindId, verb: &str) -> bool {
    let named = |claim: &Value, verb: &str| {
        claim["verbs"].as_array().is_some_and(|verbs| verbs.iter().any(|one| one == verb))
    };
    let claim = of(export).find(|claim| kind_of(claim) == *kind);
    accepted(binding, export).filter(|accepted| kind_of(accepted) == *kind).any(|accepted| {
        let both = |verb: &str| named(accepted, verb) && claim.is_some_and(|claim| named(claim, verb));
        both(verb) || both("*")
    })
}

/// The claims of an export or a binding.
pub(super) fn of(of: &Value) -> impl Iterator<Item = &Value> {
    of["spec"]["permissionClaims"].as_array().into_iter().flatten()
}

impl Round<'_, '_> {
    /// Labels what the bindings of a cluster grant, and takes the labels off all else.
    pub(super) fn follow_claims(&mut self, cluster: &ClusterId) {
        let marks = self.marks_of(cluster);
        self.machine.mark(cluster, &marks);
    }

    /// What the bindings of a cluster grant.
    pub(super) fn marks_of(&self, cluster: &ClusterId) -> Arc<Marks> {
        let mut marks = Marks::new();
        let bindings = self.all(cluster, &binding::kind());
        for binding in &bindings {
            self.add_marks(binding, &bindings, &mut marks);
        }
        self.workspaces.shared(marks)
    }

    fn add_marks(&self, binding: &Stored, all: &[Arc<Stored>], marks: &mut Marks) {
        if binding.is_deleting() {
            return;
        }
        let export = binding::export_of(self.machine, binding).and_then(|key| self.machine.get(&key).ok());
        let Some(export) = export else { return };
        let label = label_of(&export.key);
        for claim in accepted(binding.body(), export.body()) {
            let (kind, identity) = (kind_of(claim), identity_of(claim));
            let Some(objects) = selector(claim) else { continue };
            // A kind of the same name that comes from elsewhere is another one.
            if !identity.is_empty() && !all.iter().any(|other| brings(other, &kind, identity)) {
                continue;
            }
            let kind = kept(kind);
            let mark = Mark { label: label.clone(), value: value_of(&kind), objects };
            let marks = marks.entry(kind).or_default();
            if !marks.contains(&mark) {
                marks.push(mark);
            }
        }
    }
}

/// The kind as which objects of a kind are kept: a claim on one name for them is one on all of them.
pub(super) fn kept(kind: KindId) -> KindId {
    builtin::kept_as(&kind).unwrap_or(kind)
}

/// Which objects a claim is about; none: it cannot be understood, so that nothing is granted by it.
fn selector(claim: &Value) -> Option<LabelSelector> {
    let selector = &claim["selector"];
    if selector.is_null() || selector["matchAll"] == true {
        return Some(LabelSelector::everything());
    }
    let text = selector.to_string();
    let selector = LabelSelector::from_json(Raw::parse(text.as_bytes()).ok()?).ok()?;
    // One that says nothing selects nothing: only `matchAll` grants everything.
    (!selector.is_everything()).then_some(selector)
}

impl super::Workspaces {
    /// The same marks as others have, if others have them: a thousand mailboxes share one.
    fn shared(&self, marks: Marks) -> Arc<Marks> {
        let mut known = self.marks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.retain(|marks| marks.strong_count() > 0);
        let found = known.iter().filter_map(std::sync::Weak::upgrade).find(|known| **known == marks);
        found.unwrap_or_else(|| {
            let marks = Arc::new(marks);
            known.push(Arc::downgrade(&marks));
            marks
        })
    }
}

/// A digest in letters and digits, short enough for a label.
fn base62(digest: &[u8]) -> String {
    const LETTERS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut number = digest.to_vec();
    let mut text = String::new();
    while number.iter().any(|byte| *byte != 0) {
        let mut rest = 0_u32;
        for byte in &mut number {
            let here = rest * 256 + u32::from(*byte);
            // Below 256, since the rest is below 62.
            *byte = u8::try_from(here / 62).unwrap_or(u8::MAX);
            rest = here % 62;
        }
        text.push(char::from(LETTERS[usize::try_from(rest).unwrap_or(0)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_fit_into_labels() {
        let text = base62(&Sha224::digest("root:espw"));
        assert!(text.len() <= 38 && text.chars().all(|one| one.is_ascii_alphanumeric()), "{text}");
        assert_ne!(value_of(&KindId::new("", "secrets")), value_of(&KindId::new("", "configmaps")));
    }

    #[test]
    fn a_claim_grants_what_both_sides_say() {
        let export = json!({ "spec": { "permissionClaims": [{ "resource": "secrets" }, { "resource": "configmaps" }] } });
        let binding = json!({ "spec": { "permissionClaims": [
            { "resource": "secrets", "state": "Rejected" }, { "resource": "configmaps", "state": "Accepted" },
            { "resource": "namespaces", "state": "Accepted" },
        ] } });
        let granted: Vec<KindId> = accepted(&binding, &export).map(kind_of).collect();
        assert_eq!(granted, [KindId::new("", "configmaps")]);
    }

    #[test]
    fn a_verb_is_allowed_that_both_sides_name() {
        let claims = |verbs: Value| json!({ "spec": { "permissionClaims": [{ "resource": "secrets", "state": "Accepted", "verbs": verbs }] } });
        for (binding, export, verb, allowed) in [
            (json!(["get", "list"]), json!(["get"]), "get", true),
            (json!(["get", "list"]), json!(["get"]), "list", false),
            (json!(["get"]), json!(["get", "delete"]), "delete", false),
            (json!(["*"]), json!(["*"]), "delete", true),
            (json!(["*"]), json!(["get"]), "get", false),
        ] {
            let (binding, export) = (claims(binding), claims(export));
            assert_eq!(
                allow(&binding, &export, &KindId::new("", "secrets"), verb),
                allowed,
                "{binding} {export} {verb}"
            );
            assert!(!allow(&binding, &export, &KindId::new("", "configmaps"), verb));
        }
        let mut rejected = claims(json!(["*"]));
        rejected["spec"]["permissionClaims"][0]["state"] = "Rejected".into();
        assert!(!allow(&rejected, &claims(json!(["*"])), &KindId::new("", "secrets"), "get"));
    }

    #[test]
    fn a_claim_on_another_exports_kind_is_accepted_by_its_identity() {
        let claim = |identity: &str| json!({ "group": "sea.example.com", "resource": "boats", "identityHash": identity, "state": "Accepted" });
        let of = |identity: &str| json!({ "spec": { "permissionClaims": [claim(identity)] } });
        assert_eq!(accepted(&of("ours"), &of("ours")).count(), 1);
        assert_eq!(accepted(&of("ours"), &of("theirs")).count(), 0);
    }

    #[test]
    fn a_selector_that_says_nothing_grants_nothing() {
        assert!(selector(&json!({})).is_some_and(|all| all.is_everything()));
        assert!(selector(&json!({ "selector": { "matchAll": true } })).is_some());
        assert!(selector(&json!({ "selector": { "matchLabels": { "app": "shop" } } })).is_some());
        assert!(selector(&json!({ "selector": {} })).is_none());
        assert!(selector(&json!({ "selector": { "matchLabels": 7 } })).is_none());
    }
}
