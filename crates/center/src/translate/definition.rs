//! What makes a kind exist in a mailbox: APIBindings.
//!
//! A kind that a workload workspace has by an APIBinding is bound in the mailbox to the same export. A kind that
//! it has by a CRD is offered by an export that the center makes from it in the provider workspace: the mailbox
//! is bound to that, and the CRD itself travels as data, for the edge.

use std::borrow::Cow;

use mailboat_api::names::{export, label};
use mailboat_engine::route::View;
use mailboat_engine::want::{Body, Hold};
use mailboat_object::json::Raw;
use mailboat_object::key::{KindId, Name};
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
    Ok(Some((Name::new(&name), binding(&name, &path, &export_name))))
}

/// The APIBinding that a CRD needs beside it in a mailbox; `None` if the source is no CRD.
pub(super) fn binding_for_definition(source: &Object, provider: &str) -> Option<(Name, Body)> {
    if !is_definition(source) {
        return None;
    }
    let kind = kinds_defined_by(source).into_iter().next()?;
    let export_name = export_for(&kind);
    let name = format!("crd-{export_name}");
    Some((Name::new(&name), binding(&name, provider, &export_name)))
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

fn binding(name: &str, path: &str, export_name: &str) -> Body {
    let object: Value = json!({
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIBinding",
        "metadata": { "name": name, "labels": { label::PROJECTED: label::PROJECTED_YES } },
        "spec": { "reference": { "export": { "path": path, "name": export_name } } },
    });
    body(&object)
}
