//! What every object has: `apiVersion`, `kind` and `metadata`.

use mailboat_object::Name;

use super::{ListPatch, ListRelation, ListShape, MapShape, Node, NodeId, ScalarType, UNTYPED, push};

/// Declares the members that every object has, in place of what a schema says of them.
pub(super) fn declare_object(nodes: &mut Vec<Node>, root: &mut MapShape) {
    let text = push(nodes, scalar(ScalarType::Text));
    root.declare("apiVersion", text);
    root.declare("kind", text);
    root.declare("metadata", object_meta(nodes, text));
}

fn object_meta(nodes: &mut Vec<Node>, text: NodeId) -> NodeId {
    let number = push(nodes, scalar(ScalarType::Number));
    let untyped = push(nodes, scalar(ScalarType::Untyped));
    let texts = map(nodes, |map| {
        map.elements = Some(text);
        map.elements_declared = true;
    });
    let finalizers = list(nodes, text, ListRelation::Set);
    let owner = owner_reference(nodes, text);
    let owners = list(nodes, owner, ListRelation::Map([Name::new("uid")].into()));
    let managed = list(nodes, UNTYPED, ListRelation::Atomic);
    map(nodes, |meta| {
        for name in ["name", "namespace", "generateName", "uid", "resourceVersion", "selfLink"] {
            meta.declare(name, text);
        }
        for name in ["creationTimestamp", "deletionTimestamp"] {
            meta.declare(name, untyped);
        }
        for name in ["generation", "deletionGracePeriodSeconds"] {
            meta.declare(name, number);
        }
        meta.declare("labels", texts);
        meta.declare("annotations", texts);
        meta.declare("finalizers", finalizers);
        meta.declare("ownerReferences", owners);
        meta.declare("managedFields", managed);
    })
}

fn owner_reference(nodes: &mut Vec<Node>, text: NodeId) -> NodeId {
    let truth = push(nodes, scalar(ScalarType::Bool));
    map(nodes, |owner| {
        for name in ["apiVersion", "kind", "name", "uid"] {
            owner.declare(name, text);
        }
        owner.declare("controller", truth);
        owner.declare("blockOwnerDeletion", truth);
        owner.atomic = true;
    })
}

fn scalar(of: ScalarType) -> Node {
    Node { scalar: Some(of), ..Node::default() }
}

fn map(nodes: &mut Vec<Node>, declare: impl FnOnce(&mut MapShape)) -> NodeId {
    let mut shape = MapShape::default();
    declare(&mut shape);
    push(nodes, Node { map: Some(shape), ..Node::default() })
}

fn list(nodes: &mut Vec<Node>, items: NodeId, relation: ListRelation) -> NodeId {
    let patch = match &relation {
        ListRelation::Atomic => ListPatch::Replace,
        ListRelation::Set => ListPatch::Merge(None),
        ListRelation::Map(keys) => ListPatch::Merge(keys.first().cloned()),
    };
    push(nodes, Node { list: Some(ListShape { items, relation, patch }), ..Node::default() })
}
