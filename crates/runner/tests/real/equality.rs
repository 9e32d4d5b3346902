//! When a copy equals what was intended, and whose hand was at work when it does not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_cluster::{Cluster, Transport as _};
use mailboat_engine::likeness::covers;
use mailboat_object::digest::Digest;
use mailboat_object::json::Raw;
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::{ClusterOf, Keep, Limits, Object, Operation, Place};
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Verb};
use mailboat_testkit::{ADMIN, wait_until};
use serde_json::{Value, json};

use crate::rig::{MANAGER, Rig, SOON, connect};
use crate::waters::{EDGE, shared_edge};

const KINDS: &str = include_str!("kinds.yaml");
const LEAST_KINDS: usize = 30;

/// The kinds whose copy does not hold every field as it was intended, because the server writes a value in
/// another way. All others contain the intent.
const NORMALIZED: [&str; 9] = [
    "Deployment",
    "HorizontalPodAutoscaler",
    "LimitRange",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "ResourceQuota",
    "RuntimeClass",
    "StatefulSet",
];
/// The kinds whose stored bytes settle only at the second apply of the same, with nothing to be seen of it: the
/// content and our hand are equal before and after.
const WRITTEN_TWICE: [&str; 2] = ["Job", "PersistentVolumeClaim"];

#[tokio::test]
async fn applying_the_same_again_settles_and_gives_the_same_content_in_every_kind() {
    let world = shared_edge().await;
    let connection = connect(&world.edge(EDGE).access(ADMIN).unwrap()).await;
    let cluster = connection.cluster();
    let mut copies: Vec<(Intent, Object)> = Vec::new();
    let mut normalized = BTreeMap::new();
    let mut rewritten = BTreeSet::new();
    for document in documents() {
        let intent = Intent::of(&cluster, &document).await;
        let what = intent.key.to_string();
        let first =
            intent.apply(&cluster, false, false).await.unwrap_or_else(|fault| panic!("{what}: {fault}"));
        assert!(first.created, "{what}: the first delivery was not answered 201");
        let copy = first.object;
        if settle(&cluster, &intent, &copy).await > 0 {
            rewritten.insert(intent.kind_name.clone());
        }
        if !covers(copy.root(), Raw::parse(&intent.body).unwrap()) {
            normalized.insert(intent.kind_name.clone(), differences(&document, &copy.root().to_value(), ""));
        }
        copies.push((intent, copy));
    }
    let kinds: BTreeSet<&str> = copies.iter().map(|(one, _)| one.kind_name.as_str()).collect();
    println!("{} kinds; normalized: {normalized:#?}; written twice: {rewritten:?}", kinds.len());
    assert!(kinds.len() >= LEAST_KINDS, "only {} kinds", kinds.len());

    // As after a restart: other connections, nothing remembered but what the copies say.
    let connection = connect(&world.edge(EDGE).access(ADMIN).unwrap()).await;
    let cluster = connection.cluster();
    let rig = Rig::new();
    let mut followed: Vec<KindId> = copies.iter().map(|(one, _)| one.key.kind.clone()).collect();
    followed.sort();
    followed.dedup();
    rig.follow_whole(EDGE, connection.cluster(), &followed).await;
    let mut unlike = Vec::new();
    for (intent, copy) in &copies {
        let what = intent.key.to_string();
        let dry = intent.apply(&cluster, true, true).await.unwrap_or_else(|fault| panic!("{what}: {fault}"));
        let held = rig.until_present(&intent.key, "there", |_| true).await;
        assert_eq!(held.hands.ours, copy.hands.ours, "{what}: our hand differs between reply and list");
        assert!(!held.hands.ours.is_none(), "{what}: none of it is ours");
        if held.content != copy.content {
            unlike.push(format!(
                "{what}: the live copy is not what our write returned: {:?}",
                held.hands.other
            ));
        }
        if dry.object.content != held.content {
            unlike.push(format!("{what}: a dry run gives other content than the live copy has"));
        }
    }
    assert!(unlike.is_empty(), "{unlike:#?}");
    let normalized: Vec<&str> = normalized.keys().map(String::as_str).collect();
    assert_eq!(normalized, NORMALIZED);
    assert_eq!(rewritten.iter().map(String::as_str).collect::<Vec<_>>(), WRITTEN_TWICE);
}

/// Applies the same until nothing is written any more, and tells how often something was, other than the status
/// that a server's own controllers write.
async fn settle(cluster: &Cluster, intent: &Intent, copy: &Object) -> usize {
    let what = &intent.key;
    let (mut version, mut status, mut writes) = (copy.version, copy.status, 0);
    for _ in 0..6 {
        let again =
            intent.apply(cluster, false, false).await.unwrap_or_else(|fault| panic!("{what}: {fault}"));
        assert!(!again.created, "{what}: created twice");
        assert_eq!(again.object.content, copy.content, "{what}: the same intent gave other content");
        assert_eq!(again.object.hands.ours, copy.hands.ours, "{what}: the same intent gave another hand");
        if again.object.version == version {
            return writes;
        }
        writes += usize::from(again.object.status == status);
        (version, status) = (again.object.version, again.object.status);
    }
    panic!("{what}: applying the same writes for ever")
}

#[tokio::test]
async fn a_foreign_edit_is_seen_with_its_managers_name() {
    let world = shared_edge().await;
    let connection = connect(&world.edge(EDGE).access(ADMIN).unwrap()).await;
    let cluster = connection.cluster();
    let rig = Rig::new();
    let deployments = KindId::new("apps", "deployments");
    rig.follow_whole(EDGE, connection.cluster(), std::slice::from_ref(&deployments)).await;
    let merge =
        |manager: &str, patch: &Value| Verb::Merge { body: bytes_of(patch), manager: Name::new(manager) };
    // How somebody writes, through which subresource, whether it is content, and whether the field was ours.
    let ours = json!({ "spec": { "template": { "spec": { "containers": [{ "name": "raft", "image": "raft:2" }] } } } });
    let theirs = json!({ "metadata": { "labels": { "painted": "red" } } });
    let cases = [
        (
            "update-of-ours",
            merge("kubectl-edit", &ours),
            Part::Whole,
            "kubectl-edit",
            Operation::Update,
            true,
        ),
        (
            "update-of-theirs",
            merge("kubectl-label", &theirs),
            Part::Whole,
            "kubectl-label",
            Operation::Update,
            false,
        ),
        (
            "scale",
            merge("autoscaler", &json!({ "spec": { "replicas": 5 } })),
            Part::Scale,
            "autoscaler",
            Operation::Update,
            true,
        ),
    ];
    for (name, verb, part, manager, operation, was_ours) in cases {
        let (intent, copy) = deliver(&cluster, name).await;
        cluster
            .call(Call { key: intent.key.clone(), verb, part, dry_run: false })
            .await
            .unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let edited =
            rig.until_present(&intent.key, "edited", move |object| object.version > copy.version).await;
        assert_ne!(edited.content, copy.content, "{name}: the edit is not seen");
        let other = edited.hands.other.clone().unwrap_or_else(|| panic!("{name}: nobody's hand: {edited:?}"));
        let through = if part == Part::Scale { "scale" } else { "" };
        assert_eq!(
            (&*other.manager, other.operation, &*other.subresource),
            (manager, operation, through),
            "{name}"
        );
        // A field that another changed is no longer ours, so the set of ours is another; else it stays.
        assert_eq!(edited.hands.ours != copy.hands.ours, was_ours, "{name}: {edited:?}");
        // A forced apply brings our fields back, and with them our hand.
        let again =
            intent.apply(&cluster, true, false).await.unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert_eq!(again.object.hands.ours, copy.hands.ours, "{name}");
        assert_eq!(again.object.content == copy.content, was_ours, "{name}: what is theirs stays theirs");
    }
    by_apply(&cluster, &rig).await;
    by_status(&cluster, &rig).await;
}

async fn by_apply(cluster: &Cluster, rig: &Rig) {
    let (intent, copy) = deliver(cluster, "apply").await;
    let foreign = Intent { manager: "helm", ..intent.with(json!({ "spec": { "paused": true } })) };
    foreign.apply(cluster, false, false).await.unwrap_or_else(|fault| panic!("{fault}"));
    let edited = rig.until_present(&intent.key, "edited", move |object| object.version > copy.version).await;
    let other = edited.hands.other.clone().unwrap_or_else(|| panic!("nobody's hand: {edited:?}"));
    assert_eq!((&*other.manager, other.operation), ("helm", Operation::Apply));
    assert_eq!((edited.hands.ours, edited.content != copy.content), (copy.hands.ours, true));
    // What is ours is not theirs to apply, unless by force.
    let taken = Intent { manager: "helm", ..intent.with(json!({ "spec": { "replicas": 9 } })) };
    let refused = taken.apply(cluster, false, false).await.map(|_| ()).expect_err("ours, and not forced");
    assert_eq!(refused.kind, FaultKind::Conflict, "{refused}");
}

async fn by_status(cluster: &Cluster, rig: &Rig) {
    let (intent, copy) = deliver(cluster, "status").await;
    let patch = json!({ "status": { "observedGeneration": 1, "replicas": 1 } });
    let verb = Verb::Merge { body: bytes_of(&patch), manager: Name::new("kube-controller-manager") };
    let call = Call { key: intent.key.clone(), verb, part: Part::Status, dry_run: false };
    cluster.call(call).await.unwrap_or_else(|fault| panic!("{fault}"));
    let before = copy.version;
    let edited = rig.until_present(&intent.key, "edited", move |object| object.version > before).await;
    assert_eq!(
        (edited.content, edited.hands.ours, &edited.hands.other),
        (copy.content, copy.hands.ours, &None)
    );
    assert_ne!(edited.status, copy.status);
}

#[tokio::test]
async fn a_first_delivery_onto_something_foreign_is_answered_200_and_can_be_taken_back() {
    let world = shared_edge().await;
    let connection = connect(&world.edge(EDGE).access(ADMIN).unwrap()).await;
    let cluster = connection.cluster();
    let map = |name: &str, data: Value| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "default" }, "data": data });

    // Somebody else's, created by an update.
    let theirs = Intent::of(&cluster, &map("theirs", json!({ "berth": "7" }))).await;
    let verb = Verb::Create { body: theirs.body.clone(), manager: Name::new("kubectl-create") };
    let call = Call { key: theirs.key.clone(), verb, part: Part::Whole, dry_run: false };
    let before = theirs.object(&cluster.call(call).await.unwrap_or_else(|fault| panic!("{fault}")).body);
    let ours = Intent::of(&cluster, &map("theirs", json!({ "cargo": "rope" }))).await;
    let met = ours.apply(&cluster, false, false).await.unwrap_or_else(|fault| panic!("{fault}"));
    assert!(!met.created, "201 for something that was there");
    // Released: an apply of nothing takes our fields away and leaves theirs as they were.
    let nothing = Intent::of(&cluster, &json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "theirs", "namespace": "default", "uid": before.uid.to_string() } })).await;
    let released = nothing.apply(&cluster, false, false).await.unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!((released.object.content, released.object.hands.ours), (before.content, Digest::NONE));

    // An intent without a field is nobody's: nothing of it is recorded, and the next apply writes once more. What
    // we deliver bears our mark, so this is never sent.
    let bare = Intent::of(&cluster, &json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "bare", "namespace": "default" } })).await;
    let made = bare.apply(&cluster, false, false).await.unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!((made.created, made.object.hands.ours), (true, Digest::NONE));

    // Unforced onto a field of theirs: refused, nothing written.
    let clash = Intent::of(&cluster, &map("theirs", json!({ "berth": "8" }))).await;
    let refused = clash.apply(&cluster, false, false).await.map(|_| ()).expect_err("a field of theirs");
    assert_eq!(refused.kind, FaultKind::Conflict, "{refused}");

    // A uid that is not the object's, be the object there or not.
    for name in ["theirs", "nobodys"] {
        let uid = "00000000-0000-0000-0000-000000000001";
        let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "default", "uid": uid }, "data": { "cargo": "tar" } });
        let wrong = Intent::of(&cluster, &body).await;
        let refused = wrong.apply(&cluster, true, false).await.map(|_| ()).expect_err(name);
        assert_eq!(refused.kind, FaultKind::Conflict, "{name}: {refused}");
        assert!(refused.text.contains("uid") || refused.text.contains("UID"), "{name}: {refused}");
    }
}

/// An object to be delivered.
struct Intent {
    key: Key,
    api_version: String,
    kind_name: String,
    document: Value,
    body: Arc<[u8]>,
    manager: &'static str,
}

struct Applied {
    object: Object,
    created: bool,
}

impl Intent {
    async fn of(cluster: &Cluster, document: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind_name) = (text(&document["apiVersion"]), text(&document["kind"]));
        let group = api_version.split_once('/').map_or("", |(group, _)| group).to_owned();
        let served = wait_until(format!("{api_version} {kind_name} served"), SOON, || async {
            let catalog = cluster.catalog().await.map_err(|fault| fault.to_string())?;
            let found = catalog.find_named(&group, &kind_name).cloned();
            if found.is_none() {
                cluster.stale();
            }
            found.ok_or_else(|| "not in discovery".to_owned())
        })
        .await
        .unwrap();
        let namespace =
            if served.namespaced { text(&document["metadata"]["namespace"]) } else { String::new() };
        let key = Key {
            cluster: ClusterId::new(EDGE),
            kind: served.kind,
            namespace: Name::new(&namespace),
            name: Name::new(&text(&document["metadata"]["name"])),
        };
        Self {
            key,
            api_version,
            kind_name,
            document: document.clone(),
            body: bytes_of(document),
            manager: MANAGER,
        }
    }

    /// The same object with other content.
    fn with(&self, mut content: Value) -> Self {
        content["apiVersion"] = self.document["apiVersion"].clone();
        content["kind"] = self.document["kind"].clone();
        content["metadata"] = json!({ "name": &*self.key.name, "namespace": &*self.key.namespace });
        Self {
            key: self.key.clone(),
            api_version: self.api_version.clone(),
            kind_name: self.kind_name.clone(),
            body: bytes_of(&content),
            document: content,
            manager: self.manager,
        }
    }

    async fn apply(&self, cluster: &Cluster, force: bool, dry_run: bool) -> Result<Applied, Fault> {
        let verb = Verb::Apply { body: self.body.clone(), manager: Name::new(self.manager), force };
        let call = Call { key: self.key.clone(), verb, part: Part::Whole, dry_run };
        let reply = cluster.call(call).await?;
        Ok(Applied { object: self.object(&reply.body), created: reply.created })
    }

    fn object(&self, json: &[u8]) -> Object {
        let place = Place {
            cluster: ClusterOf::One(&self.key.cluster),
            kind: &self.key.kind,
            api_version: &self.api_version,
            kind_name: &self.kind_name,
            manager: MANAGER,
            keep: Keep::Whole,
            limits: Limits::default(),
        };
        Object::decode(json, &place).unwrap_or_else(|malformed| panic!("{}: {malformed}", self.key))
    }
}

/// A Deployment of ours.
async fn deliver(cluster: &Cluster, name: &str) -> (Intent, Object) {
    let document = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "raft", "image": "raft:1" }] },
            },
        },
    });
    let intent = Intent::of(cluster, &document).await;
    let applied = intent.apply(cluster, false, false).await.unwrap_or_else(|fault| panic!("{name}: {fault}"));
    assert!(applied.created, "{name} was there before");
    assert_eq!(applied.object.hands.other, None, "{name}");
    (intent, applied.object)
}

fn documents() -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(KINDS).unwrap();
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

fn bytes_of(value: &Value) -> Arc<[u8]> {
    value.to_string().into_bytes().into()
}

/// Where a copy does not have what was intended, and what it has instead.
fn differences(intent: &Value, copy: &Value, path: &str) -> Vec<String> {
    match (intent, copy) {
        (Value::Object(wanted), Value::Object(found)) => wanted
            .iter()
            .flat_map(|(name, wanted)| {
                let found = found.get(name).unwrap_or(&Value::Null);
                differences(wanted, found, &format!("{path}.{name}"))
            })
            .collect(),
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => wanted
            .iter()
            .zip(found)
            .enumerate()
            .flat_map(|(at, (wanted, found))| differences(wanted, found, &format!("{path}[{at}]")))
            .collect(),
        (wanted, found) if wanted == found => Vec::new(),
        (wanted, found) => vec![format!("{path}: {wanted} became {found}")],
    }
}
