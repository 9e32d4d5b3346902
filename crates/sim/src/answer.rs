//! What a server answers to our own requests, in the words of whoever sent them.

use mailboat_machinery::{
    DeleteOptions, List, ListRequest, ListVersion, Machine, Moment, Patch, Status, WriteOptions,
};
use mailboat_object::key::{Key, KindId, Name, Version};
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Reply, Verb};
use serde_json::{Value, json};

/// Carries out a call; without preconditions, whatever it asks for is done to whatever stands there.
pub fn answer(
    machine: &mut Machine,
    call: &Call,
    preconditions: bool,
    moment: &mut Moment<'_>,
) -> Result<Reply, Fault> {
    carry_out(machine, call, preconditions, moment).map_err(|status| match status.code() {
        404 if lacks_namespace(&status, call) => Fault::new(FaultKind::NoNamespace, status.to_string()),
        _ => fault_of(&status),
    })
}

/// A page of a list, as it travels.
pub fn page(list: &List) -> Vec<u8> {
    let items: Vec<Value> = list.items.iter().map(|object| object.to_value()).collect();
    let mut metadata = json!({ "resourceVersion": list.version.to_string() });
    if let Some(token) = &list.continue_token {
        metadata["continue"] = Value::from(token.as_str());
    }
    json!({ "kind": "List", "metadata": metadata, "items": items }).to_string().into_bytes()
}

/// A server's refusal as whoever reads answers would classify it.
pub fn fault_of(status: &Status) -> Fault {
    let kind = match (status.code(), status.reason()) {
        (409, "AlreadyExists") => FaultKind::Exists,
        (409, _) => FaultKind::Conflict,
        (404, _) if !status.body().details.name.is_empty() => FaultKind::NotFound,
        (404, _) => FaultKind::Unserved,
        (410, _) => FaultKind::Expired,
        (403, _)
            if status.body().details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating") =>
        {
            FaultKind::Retry(None)
        }
        (403, _) => FaultKind::Forbidden,
        (400 | 422, _) => FaultKind::Invalid,
        _ => FaultKind::Retry(None),
    };
    Fault::new(kind, status.to_string())
}

/// Whether a call failed because the namespace that it wrote in is not there.
fn lacks_namespace(status: &Status, call: &Call) -> bool {
    let namespaces = KindId::new("", "namespaces");
    status.body().details.kind == namespaces.resource() && call.key.kind != namespaces
}

/// Who writes, and which part of an object.
pub fn by(manager: &str, part: Part, dry_run: bool) -> WriteOptions {
    WriteOptions { manager: Name::new(manager), part, dry_run, ..WriteOptions::default() }
}

fn carry_out(
    machine: &mut Machine,
    call: &Call,
    preconditions: bool,
    moment: &mut Moment<'_>,
) -> Result<Reply, Status> {
    let read = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap_or(Value::Null);
    let options = |manager: &Name| by(manager, call.part, call.dry_run);
    let key = &call.key;
    let written = match &call.verb {
        Verb::Get => return machine.get(key).map(|object| reply(object.to_json(), false)),
        Verb::GetAt(version) => return get_at(machine, key, *version),
        Verb::Delete { uid, version, propagation } => {
            let options = DeleteOptions {
                uid: preconditions.then(|| uid.clone()),
                version: version.filter(|_| preconditions),
                propagation: Some(*propagation),
                ..DeleteOptions::default()
            };
            return machine.delete(key, &options, moment).map(|gone| reply(gone.object.to_json(), false));
        }
        Verb::Create { body, manager } => machine.create(key, read(body), &options(manager), moment)?,
        Verb::Replace { body, manager } => machine.update(key, read(body), &options(manager), moment)?,
        Verb::Apply { body, manager, force } => {
            let patch = Patch::Apply { intent: &read(body), force: *force };
            machine.patch(key, patch, &options(manager), moment)?
        }
        Verb::Merge { body, manager } => {
            machine.patch(key, Patch::Merge(&read(body)), &options(manager), moment)?
        }
        Verb::Json { body, manager } => {
            machine.patch(key, Patch::Json(&read(body)), &options(manager), moment)?
        }
    };
    Ok(reply(written.object.to_json(), written.created))
}

/// What stood there at a version: a list of one object or none.
fn get_at(machine: &Machine, key: &Key, version: Version) -> Result<Reply, Status> {
    let list = machine.list(&ListRequest {
        cluster: Some(key.cluster.clone()),
        kind: key.kind.clone(),
        version: ListVersion::Exact(version),
        ..ListRequest::default()
    })?;
    let items = list.items.into_iter().filter(|object| object.key == *key).collect();
    Ok(reply(page(&List { items, continue_token: None, ..list }), false))
}

fn reply(body: Vec<u8>, created: bool) -> Reply {
    Reply { body: body.into_boxed_slice(), created, warnings: Vec::new() }
}
