//! Turning an action into a request, from the bodies at hand.

use std::sync::Arc;

use mailboat_object::edit::Edit;
use mailboat_object::json::Raw;
use mailboat_object::key::{Key, KindId, Name, Uid, Version};
use mailboat_object::merge::{diff, three_way};
use mailboat_object::object::Object;
use mailboat_object::wire::{Call, Part, Propagation, Verb};
use serde_json::{Value, json};

use crate::mark::{Marked, Marks};
use crate::mutation::{Mutation, broken};
use crate::plan::{Action, Expect, How};
use crate::want::{Body, Delivery, StatusReturn, Want};

/// What a request is made from.
pub struct Parts<'a> {
    /// The slot.
    pub key: &'a Key,
    /// Our field manager.
    pub manager: &'a Name,
    /// The marks of the slot's role.
    pub marks: Option<&'a Arc<dyn Marks>>,
    /// What is wanted there.
    pub want: Option<&'a Want>,
    /// The source, if it is present.
    pub source: Option<&'a Object>,
    /// What stands there.
    pub target: Option<&'a Object>,
    /// What is reported back, for a report.
    pub report: Option<&'a Body>,
    /// What to do.
    pub action: &'a Action,
}

/// What became of an action.
#[derive(Debug)]
pub enum Composed {
    /// This request.
    Call(Call),
    /// Nothing: what would be written stands there already.
    Nothing,
    /// It cannot be written; one sentence for people.
    Refused(String),
}

/// The request that carries out an action.
pub fn compose(parts: &Parts<'_>) -> Composed {
    match parts.action {
        Action::EnsureNamespace => ensure_namespace(parts),
        Action::Deliver { expect, how } => deliver(parts, expect, *how, false),
        Action::Read => {
            let key = parts.key.clone();
            Composed::Call(Call { key, verb: Verb::Get, part: Part::Whole, dry_run: false })
        }
        Action::Compare => match parts.target {
            Some(target) => deliver(parts, &Expect::Uid(target.uid.clone()), How::Apply, true),
            None => Composed::Nothing,
        },
        Action::Report(how) => report(parts, *how),
        Action::Finalizer { name, add } => finalizer(parts, name, *add),
        Action::Delete(warrant) => Composed::Call(Call {
            key: parts.key.clone(),
            verb: Verb::Delete {
                uid: warrant.uid().clone(),
                version: Some(warrant.version()),
                propagation: Propagation::Background,
            },
            part: Part::Whole,
            dry_run: false,
        }),
        Action::Release { uid, version } => match parts.marks {
            Some(marks) => Composed::Call(release(parts.key, parts.manager, &**marks, uid, *version)),
            None => Composed::Nothing,
        },
        Action::LetGo { version, .. } => match parts.target {
            Some(target) => Composed::Call(let_go(parts.key, parts.manager, target, Some(*version))),
            None => Composed::Nothing,
        },
        Action::LookBefore { version } => Composed::Call(look_before(parts.key, *version)),
        Action::ConfirmGone(_) => Composed::Nothing,
    }
}

/// Reads an object as it was right before a version of it.
pub fn look_before(key: &Key, version: Version) -> Call {
    let verb = Verb::GetAt(Version(version.0.saturating_sub(1)));
    Call { key: key.clone(), verb, part: Part::Whole, dry_run: false }
}

/// Takes our mark off an object as it was seen, and leaves all else in it.
pub fn release(key: &Key, manager: &Name, marks: &dyn Marks, uid: &Uid, version: Version) -> Call {
    let mut patch = marks.remove();
    marks.last_state().remove(&mut patch);
    patch["metadata"]["uid"] = Value::from(uid.to_string());
    patch["metadata"]["resourceVersion"] = Value::from(version.to_string());
    let verb = Verb::Merge { body: bytes(&patch), manager: manager.clone() };
    Call { key: key.clone(), verb, part: Part::Whole, dry_run: false }
}

/// Lets go of an object that is not ours: an apply of nothing takes away what only we had put there.
pub fn let_go(key: &Key, manager: &Name, met: &Object, at: Option<Version>) -> Call {
    let mut body = json!({
        "apiVersion": met.api_version(),
        "kind": met.kind_name(),
        "metadata": { "name": key.name.as_str(), "uid": met.uid.to_string() },
    });
    if let Some(version) = at {
        body["metadata"]["resourceVersion"] = Value::from(version.to_string());
    }
    if !key.namespace.is_empty() {
        body["metadata"]["namespace"] = Value::from(key.namespace.as_str());
    }
    Call {
        key: key.clone(),
        verb: Verb::Apply { body: bytes(&body), manager: manager.clone(), force: false },
        part: Part::Whole,
        dry_run: false,
    }
}

fn ensure_namespace(parts: &Parts<'_>) -> Composed {
    let name = &parts.key.namespace;
    let key = Key {
        cluster: parts.key.cluster.clone(),
        kind: KindId::new("", "namespaces"),
        namespace: Name::EMPTY,
        name: name.clone(),
    };
    let body =
        bytes(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name.as_str() } }));
    let verb = Verb::Create { body, manager: parts.manager.clone() };
    Composed::Call(Call { key, verb, part: Part::Whole, dry_run: false })
}

fn deliver(parts: &Parts<'_>, expect: &Expect, how: How, dry_run: bool) -> Composed {
    let (Some(want), Some(marks)) = (parts.want, parts.marks) else { return Composed::Nothing };
    if how == How::Mark {
        return match parts.target.map(|target| mark_alone(want, marks, target)) {
            Some(Ok(patch)) => merge(parts.key, parts.manager, Part::Whole, &patch),
            Some(Err(sentence)) => Composed::Refused(sentence),
            None => Composed::Nothing,
        };
    }
    let uid = match expect {
        Expect::New => None,
        Expect::Uid(uid) => Some(uid),
    };
    let body = match marks.write(want, uid) {
        Ok(body) => body,
        Err(sentence) => return Composed::Refused(sentence),
    };
    let body = match parts.target.filter(|_| dry_run) {
        Some(target) => marked_as(&body, marks, target),
        None => body,
    };
    let manager = parts.manager.clone();
    let verb = match (how, expect) {
        (How::Apply, Expect::New) => Verb::Apply { body, manager, force: broken(Mutation::ForceTheFirst) },
        // What is another's keeps its fields: who wants them to be ours as well has to agree on them. What was delivered whole
        // until now is ours, and its fields are, by whatever manner of writing they came there.
        (How::Apply, Expect::Uid(_)) => {
            let whole = |target| matches!(marks.read(target), Marked::Ours(mark) if !mark.overlay);
            let force = want.policy.delivery != Delivery::Overlay || parts.target.is_some_and(whole);
            Verb::Apply { body, manager, force }
        }
        (How::Patch | How::Mark, Expect::New) => match remembering(want, marks, &body) {
            Ok(body) => Verb::Create { body: bytes(&body), manager },
            Err(sentence) => return Composed::Refused(sentence),
        },
        (How::Patch | How::Mark, Expect::Uid(_)) => match patch(want, marks, &body, parts.target) {
            Ok(patch) => Verb::Merge { body: bytes(&patch), manager },
            Err(sentence) => return Composed::Refused(sentence),
        },
    };
    Composed::Call(Call { key: parts.key.clone(), verb, part: Part::Whole, dry_run })
}

/// A marked body with the mark that a copy bears by now. Whether a copy is as wanted is not asked of its mark: that of a first
/// delivery, or of an earlier release, says the same in other words, and would be a reason to write each time.
fn marked_as(body: &[u8], marks: &Arc<dyn Marks>, target: &Object) -> Arc<[u8]> {
    let patch = marks.remove();
    let names = patch["metadata"]["annotations"].as_object().into_iter().flatten().map(|(name, _)| name);
    // We made it a moment ago.
    let mut edit = Edit::of(Raw::trusted(std::str::from_utf8(body).unwrap_or("{}")));
    for name in names {
        if let Some(text) = target.annotation(name) {
            edit.set_annotation(name, &text);
        }
    }
    edit.to_json()
}

/// A marked body that remembers what it delivers.
fn remembering(want: &Want, marks: &Arc<dyn Marks>, body: &[u8]) -> Result<Value, String> {
    let mut body = Raw::parse(body).map_err(|malformed| malformed.to_string())?.to_value();
    let state = std::str::from_utf8(&want.body.json).map_err(|malformed| malformed.to_string())?;
    marks.last_state().write(&mut body, state);
    Ok(body)
}

/// The patch that brings a copy from what was last delivered to what is wanted, at the version that was seen. Of what
/// stands there unseen nothing is known, and nothing is taken out of it.
fn patch(want: &Want, marks: &Arc<dyn Marks>, body: &[u8], target: Option<&Object>) -> Result<Value, String> {
    let wanted = remembering(want, marks, body)?;
    let Some(target) = target else { return Ok(wanted) };
    let last = marks.last_state().read(target).unwrap_or(Value::Null);
    let live = target.root().to_value();
    let mut patch = three_way(&last, &wanted, &live).unwrap_or_else(|| json!({}));
    // What the object is called does not change with what is in it; its version may be another than ours.
    if let Some(members) = patch.as_object_mut() {
        members.remove("apiVersion");
        members.remove("kind");
    }
    patch["metadata"]["uid"] = Value::from(target.uid.to_string());
    patch["metadata"]["resourceVersion"] = Value::from(target.version.to_string());
    Ok(patch)
}

/// The patch that puts our mark as it is to be on an object, at the version that was seen, and leaves all else alone.
fn mark_alone(want: &Want, marks: &Arc<dyn Marks>, target: &Object) -> Result<Value, String> {
    let name = json!({ "apiVersion": target.api_version(), "kind": target.kind_name(), "metadata": {} });
    let bare = Want { body: Body { json: bytes(&name), digest: want.body.digest }, ..want.clone() };
    let marked = marks.write(&bare, Some(&target.uid))?;
    let marked = Raw::parse(&marked).map_err(|malformed| malformed.to_string())?;
    let mut metadata = marked.get(&["metadata"]).map_or_else(|| json!({}), Raw::to_value);
    metadata["resourceVersion"] = Value::from(target.version.to_string());
    Ok(json!({ "metadata": metadata }))
}

fn report(parts: &Parts<'_>, how: StatusReturn) -> Composed {
    let (Some(source), Some(report)) = (parts.source, parts.report) else { return Composed::Nothing };
    let Ok(new) = serde_json::from_slice::<Value>(&report.json) else { return Composed::Nothing };
    let old = source.get(&["status"]).map_or(Value::Null, Raw::to_value);
    if old == new {
        return Composed::Nothing;
    }
    let patch = json!({
        "metadata": { "uid": source.uid.to_string(), "resourceVersion": source.version.to_string() },
        "status": diff(&old, &new),
    });
    let part = if how == StatusReturn::Subresource { Part::Status } else { Part::Whole };
    merge(&source.key, parts.manager, part, &patch)
}

fn finalizer(parts: &Parts<'_>, name: &Name, add: bool) -> Composed {
    // Where nothing is made of it any more, it is its own slot.
    let Some(source) = parts.source.or(parts.target) else { return Composed::Nothing };
    let mut finalizers: Vec<String> = source
        .finalizers()
        .filter(|finalizer| *finalizer != name.as_str())
        .map(std::borrow::Cow::into_owned)
        .collect();
    if add {
        finalizers.push(name.to_string());
    }
    let patch = json!({ "metadata": {
        "uid": source.uid.to_string(),
        "resourceVersion": source.version.to_string(),
        "finalizers": finalizers,
    }});
    merge(&source.key, parts.manager, Part::Whole, &patch)
}

fn merge(key: &Key, manager: &Name, part: Part, patch: &Value) -> Composed {
    let verb = Verb::Merge { body: bytes(patch), manager: manager.clone() };
    Composed::Call(Call { key: key.clone(), verb, part, dry_run: false })
}

fn bytes(value: &Value) -> Arc<[u8]> {
    Arc::from(value.to_string().into_bytes())
}
