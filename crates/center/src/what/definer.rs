//! Objects that make a kind exist: CustomResourceDefinitions and APIBindings.

use mailboat_object::json::Raw;
use mailboat_object::key::KindId;
use mailboat_object::object::Object;

use crate::denature;

/// The kinds that exist in a workspace because of this object; none if it defines none.
pub fn kinds_defined_by(object: &Object) -> Vec<KindId> {
    let kind = denature::at_edge(&object.key.kind);
    match (kind.group(), kind.resource()) {
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            let text = |path: &[&str]| object.get(path).and_then(Raw::as_str);
            let defined = text(&["spec", "group"]).zip(text(&["spec", "names", "plural"]));
            defined.map(|(group, plural)| KindId::new(&group, &plural)).into_iter().collect()
        }
        ("apis.kcp.io", "apibindings") => {
            let bound = object.get(&["status", "boundResources"]).into_iter().flat_map(Raw::elements);
            let kinds = bound.filter_map(|resource| {
                let group = resource.member("group").and_then(Raw::as_str).unwrap_or_default();
                Some(KindId::new(&group, &resource.member("resource")?.as_str()?))
            });
            kinds.collect()
        }
        _ => Vec::new(),
    }
}
