//! What makes a kind exist in a mailbox: APIBindings.
//!
//! A kind that a workload workspace has by an APIBinding is bound in the mailbox to the same export. That export is
//! somebody else's, and so is its view; to see the copies, the center claims the kind by an export of its own, to which
//! the mailbox is bound as well. A kind that a workspace has by a CRD is offered by an export that the center makes from
//! it in the provider workspace: the mailbox is bound to that, and the CRD itself travels as data, for the edge.

use std::borrow::Cow;
use std::sync::Arc;

use mailboat_api::generate::READ;
use mailboat_api::names::{annotation, export, label};
use mailboat_engine::look::identity;
use mailboat_engine::route::View;
use mailboat_engine::want::{Body, Hold};
use mailboat_object::json::Raw;
use mailboat_object::key::{ClusterId, KindId, Name};
use mailboat_object::object::Object;
use mailboat_store::seen::Doubt;
use serde_json::{Value, json};

use super::offer::is_definition;
use crate::body::body;
use crate::denature;
use crate::names::numbered;
use crate::what::kinds_defined_by;

/// Names that bindings of the mailbox itself have.
const TAKEN: [&str; 4] = [
    export::BINDING_IN_MAILBOX,
    crate::mailbox::COMPUTE_BINDING,
    crate::mailbox::DENATURED_BINDING,
    crate::mailbox::MAILBOX_BINDING,
];

/// What stands for the identity of a kind that comes from a CRD, by an export of the center's own.
const FROM_DEFINITION: &str = "definition";

/// The kind of APIBindings.
pub(super) fn api_bindings() -> KindId {
    KindId::new("apis.kcp.io", "apibindings")
}

/// The export that an APIBinding refers to, as path and name; `None` if it is no APIBinding.
pub(super) fn reference(source: &Object) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    if source.key.kind != api_bindings() {
        return None;
    }
    let export = source.get(&["spec", "reference", "export"])?;
    let path = export.member("path").and_then(Raw::as_str).unwrap_or_default();
    Some((path, export.member("name")?.as_str()?))
}

/// The APIBinding in a mailbox that stands for one in a workload workspace; `None` if the source is none.
pub(super) fn binding_of(source: &Object, provider: &str) -> Result<Option<(Name, Body)>, Hold> {
    if source.key.kind != api_bindings() {
        return Ok(None);
    }
    let Some((path, export_name)) = reference(source) else {
        return Err(Hold { reason: "it refers to no APIExport".to_owned(), on: None });
    };
    // Without a path the export stands in the workspace of the binding, which is another one there.
    let path = if path.is_empty() { Cow::Borrowed(source.key.cluster.0.as_str()) } else { path };
    let name = source.key.name.as_str();
    let name = if TAKEN.contains(&name) || path == provider {
        numbered(name, &export_name)
    } else {
        name.to_owned()
    };
    let mut object = binding_object(&name, &path, &export_name);
    let brought = brought_by(source);
    if !brought.is_empty() {
        let pairs: Vec<String> = brought.iter().map(|(kind, from)| format!("{kind}={from}")).collect();
        object["metadata"]["annotations"] = json!({ annotation::BRINGS: pairs.join(" ") });
    }
    Ok(Some((Name::new(&name), body(&object))))
}

/// Why an APIBinding of a workload workspace is not put into a mailbox, if so: another one there, which was first, brings one
/// of its kinds by another identity. kcp binds a kind once in a workspace, and would leave the second without a word to
/// those who wait for it.
pub(super) fn is_brought_otherwise(
    source: &Object,
    name: &Name,
    mailbox: &ClusterId,
    view: &View<'_>,
) -> Result<(), Hold> {
    let wanted = brought_by(source);
    let others = match view.range(mailbox, &api_bindings(), None) {
        Ok(others) => others,
        // Whoever asks from afar does not read mailboxes.
        Err(Doubt::NotFollowed) => return Ok(()),
        Err(doubt) => {
            let reason = format!("what else its mailbox is bound to is not known: {doubt}");
            return Err(Hold { reason, on: None });
        }
    };
    let mut bound: Vec<&Arc<Object>> = others.collect();
    bound.sort_by_key(|binding| (binding.created_seconds(), binding.key.name.clone()));
    for (kind, identity) in &wanted {
        let first = bound.iter().find_map(|binding| Some((*binding, brings(binding, kind)?)));
        if let Some((first, from)) = first
            && first.key.name != *name
            && from != *identity
        {
            let reason = format!(
                "{kind} come to the mailbox from another APIExport, by its APIBinding {}, which was first; a kind is bound \
                 once, and the owner of this export does not see what is there",
                first.key.name
            );
            return Err(Hold { reason, on: Some(first.key.clone()) });
        }
    }
    Ok(())
}

/// The identity by which a binding in a mailbox brings a kind, if it does.
fn brings(binding: &Object, kind: &KindId) -> Option<Name> {
    let told = binding.annotation(annotation::BRINGS)?;
    let mut pairs = told.split(' ').filter_map(|pair| pair.split_once('='));
    pairs.find(|(brought, _)| *brought == kind.to_string()).map(|(_, from)| Name::new(from))
}

/// The kinds that an APIBinding brings, and by which identities, as far as it says so.
fn brought_by(source: &Object) -> Vec<(KindId, Name)> {
    let mut brought: Vec<(KindId, Name)> = kinds_defined_by(source)
        .into_iter()
        .filter_map(|kind| identity_in(source, &kind).map(|hash| identity(&hash)).map(|hash| (kind, hash)))
        .collect();
    brought.sort();
    brought
}

/// What lets the center see the copies of a kind that somebody else's export offers.
pub(super) struct Claim {
    /// The APIExport in the provider workspace. A claim cannot be changed to another identity without losing sight of what
    /// was placed before, so each identity has its own.
    pub(super) export: (Name, Body),
    /// The APIBinding in a mailbox. A mailbox has one of each kind, whose ever it is: where two workspaces have the kind
    /// from different exports, the older placement's counts there, and the other is told.
    pub(super) binding: (Name, Body),
}

/// What the names of claims begin with.
const CLAIM_PREFIX: &str = "claim-";

/// Whether an export of the provider workspace is a claim.
pub(crate) fn is_claim(export_name: &str) -> bool {
    export_name.starts_with(CLAIM_PREFIX)
}

/// The claims on these kinds, which an APIBinding brings to its workspace.
pub(super) fn claims_on(source: &Object, kinds: &[KindId], provider: &str) -> Result<Vec<Claim>, Hold> {
    let claims = kinds.iter().map(|kind| {
        let Some(hash) = identity_in(source, kind) else {
            let reason = format!("it does not say by which identity {kind} is known");
            return Err(Hold { reason, on: Some(source.key.clone()) });
        };
        Ok(claim(kind, &hash, provider))
    });
    claims.collect()
}

/// The identity under which a binding brings a kind.
fn identity_in<'s>(binding: &'s Object, kind: &KindId) -> Option<Cow<'s, str>> {
    let mut bound = binding.get(&["status", "boundResources"]).into_iter().flat_map(Raw::elements);
    let brought = bound.find(|resource| {
        let text = |member| resource.member(member).and_then(Raw::as_str).unwrap_or_default();
        text("group") == kind.group() && text("resource") == kind.resource()
    })?;
    brought.get(&["schema", "identityHash"])?.as_str().filter(|hash| !hash.is_empty())
}

fn claim(kind: &KindId, hash: &str, provider: &str) -> Claim {
    let claimed = json!({
        "group": kind.group(), "resource": kind.resource(), "identityHash": hash, "verbs": READ,
    });
    let mut accepted = claimed.clone();
    accepted["state"] = json!("Accepted");
    accepted["selector"] = json!({ "matchAll": true });
    let name = format!("{CLAIM_PREFIX}{kind}");
    let export_name = numbered(&name, &identity(hash));
    let export = json!({
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIExport",
        "metadata": { "name": export_name, "labels": { label::PROJECTED: label::PROJECTED_YES } },
        "spec": { "permissionClaims": [claimed] },
    });
    let mut bound = binding_object(&name, provider, &export_name);
    bound["spec"]["permissionClaims"] = json!([accepted]);
    Claim { export: (Name::new(&export_name), body(&export)), binding: (Name::new(&name), body(&bound)) }
}

/// The APIBinding that a CRD needs beside it in a mailbox; `None` if the source is no CRD.
pub(super) fn binding_for_definition(source: &Object, provider: &str) -> Option<(Name, Body)> {
    if !is_definition(source) {
        return None;
    }
    let kind = kinds_defined_by(source).into_iter().next()?;
    let export_name = export_for(&kind);
    let name = format!("crd-{export_name}");
    let mut object = binding_object(&name, provider, &export_name);
    object["metadata"]["annotations"] = json!({ annotation::BRINGS: format!("{kind}={FROM_DEFINITION}") });
    Some((Name::new(&name), body(&object)))
}

/// Whether a CRD that is stored denatured is there for the edges alone: its workspace has the kind by an APIBinding, which
/// the mailboxes get as well.
pub(super) fn is_bound_otherwise(source: &Object, view: &View<'_>) -> Result<bool, Hold> {
    if denature::natured(&source.key.kind).is_none() {
        return Ok(false);
    }
    let defined = kinds_defined_by(source);
    let hold = |doubt: Doubt| Hold {
        reason: format!("whether its kind is bound in its workspace is not known: {doubt}"),
        on: Some(source.key.clone()),
    };
    let mut bindings = view.range(&source.key.cluster, &api_bindings(), None).map_err(hold)?;
    let all = bindings.missing();
    if bindings.any(|binding| kinds_defined_by(binding).iter().any(|kind| defined.contains(kind))) {
        return Ok(true);
    }
    // Those that are shown may not be all.
    all.map(|_| false).map_err(hold)
}

/// The export by which the center offers a kind that users defined: one for each group and resource.
pub fn export_for(kind: &KindId) -> String {
    kind.to_string()
}

fn binding_object(name: &str, path: &str, export_name: &str) -> Value {
    json!({
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIBinding",
        "metadata": { "name": name, "labels": { label::PROJECTED: label::PROJECTED_YES } },
        "spec": { "reference": { "export": { "path": path, "name": export_name } } },
    })
}
