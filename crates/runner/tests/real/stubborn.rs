//! Objects that do not become what they were sent to be: fields that cannot change, fields that servers and other hands
//! fill in, and copies that are shared with others. None of them makes the engine write again and again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use mailboat_cluster::{Catalog, Lines, Read, Transport};
use mailboat_engine::engine::{Engine, Notice, Options};
use mailboat_engine::mark::{OwnerId, StandardMarks};
use mailboat_engine::plan::{Refusal, Verdict};
use mailboat_engine::role::{CallId, Ground, Order, Role, Turn};
use mailboat_engine::route::{Destination, DestinationId, Route, RouteHead, Selected, Sources, View};
use mailboat_engine::want::{Body, Delivery, Hold, Origin, Policy, Want};
use mailboat_object::digest::digest_of;
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::{Keep, Object};
use mailboat_object::wire::{Abilities, Call, Fault, Part, Reply, Verb};
use mailboat_runner::Process;
use mailboat_store::{Filter, Interest, News, Now, PlaceId, Store};
use mailboat_testkit::{ADMIN, Access, wait_until};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::rig::{SOON, connect, patient};
use crate::waters::{EDGE, config_maps, shared_edge};

/// Long enough for several attempts of anything that tries again without backing off.
pub(crate) const QUIET: Duration = Duration::from_secs(6);
/// A delay that begins at 200 ms and doubles leaves room for so many attempts in that time.
const ATTEMPTS: usize = 6;
const SENDER: &str = "mailboat-stubborn";

#[tokio::test]
async fn what_cannot_be_changed_is_said_once_and_tried_rarely() {
    let shop = Shop::open("stubborn", Delivery::Apply).await;
    let keys = [
        shop.send("service", service(None)).await,
        shop.send("job", job("raft:1")).await,
        shop.send("claim", claim("slow")).await,
    ];
    let webhook = shop.send("webhook", webhook(5)).await;
    shop.until(&keys, "delivered", |verdict| *verdict == Verdict::Settled).await;
    shop.until(std::slice::from_ref(&webhook), "delivered", |verdict| *verdict == Verdict::Settled).await;

    // Servers filled in the Service's address and the Job's selector; others bind the claim and vouch for the webhook.
    let bound = json!({ "spec": { "volumeName": "berth-7" } });
    shop.edit(&keys[2], Verb::Merge { body: bytes(&bound), manager: Name::new("binder") }).await;
    let vouched = json!([{ "op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": CERTIFICATE }]);
    shop.edit(&webhook, Verb::Json { body: bytes(&vouched), manager: Name::new("injector") }).await;
    shop.ledger.forget();
    tokio::time::sleep(QUIET).await;
    assert_eq!(
        shop.ledger.attempts(),
        BTreeMap::new(),
        "what servers and others fill in is not ours to write"
    );

    // Now what cannot change is changed; and in the webhook something that can.
    shop.send("service", service(Some("10.0.0.77"))).await;
    shop.send("job", job("raft:2")).await;
    shop.send("claim", claim("fast")).await;
    shop.send("webhook", self::webhook(7)).await;
    let rejected = |verdict: &Verdict| *verdict == Verdict::Refused(Refusal::Rejected);
    shop.until(&keys, "refused", rejected).await;
    let changed = wait_until("the webhook changed", SOON, || async {
        let found = shop.read(&webhook).await?;
        if found["webhooks"][0]["timeoutSeconds"] == 7 { Ok(found) } else { Err(found.to_string()) }
    });
    let changed = changed.await.unwrap();
    assert_eq!(
        changed["webhooks"][0]["clientConfig"]["caBundle"], CERTIFICATE,
        "the injector's field is gone"
    );
    shop.ledger.forget();
    tokio::time::sleep(QUIET).await;
    let attempts = shop.ledger.attempts();
    for key in &keys {
        let tried = attempts.get(key).copied().unwrap_or_default();
        assert!(tried <= ATTEMPTS, "{key} was tried {tried} times in {QUIET:?}");
        let said = shop.told(key).iter().filter(|verdict| rejected(verdict)).count();
        assert_eq!(said, 1, "{key}: {:?}", shop.told(key));
    }
    assert_eq!(attempts.get(&webhook), None, "the webhook is as wanted");

    // Put right at the source, all is well without a write.
    shop.ledger.forget();
    shop.send("service", service(None)).await;
    shop.send("job", job("raft:1")).await;
    shop.send("claim", claim("slow")).await;
    shop.until(&keys, "as wanted again", |verdict| *verdict == Verdict::Settled).await;
    let writes: Vec<Key> = shop.ledger.attempts().into_keys().collect();
    assert_eq!(writes, Vec::<Key>::new(), "they were as wanted all the time");
    shop.close().await;
}

#[tokio::test]
async fn a_copy_that_is_patched_is_shared_with_others() {
    let shop = Shop::open("shared", Delivery::ThreeWay).await;
    let map = |data: Value| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "chart" }, "data": data });
    let copy = shop.send("chart", map(json!({ "depth": "3", "rocks": "2" }))).await;
    shop.until_data(&copy, json!({ "depth": "3", "rocks": "2" })).await;
    let theirs = json!({ "data": { "depth": "4", "wreck": "1" } });
    shop.edit(&copy, Verb::Merge { body: bytes(&theirs), manager: Name::new("pilot") }).await;
    shop.ledger.forget();
    // A value that the source did not change is theirs to change, and what it no longer has goes.
    shop.send("chart", map(json!({ "depth": "3", "light": "red" }))).await;
    shop.until_data(&copy, json!({ "depth": "4", "light": "red", "wreck": "1" })).await;
    assert_eq!(shop.ledger.attempts().get(&copy), Some(&1), "one change is one write");
    shop.send("chart", map(json!({ "depth": "5", "light": "red" }))).await;
    shop.until_data(&copy, json!({ "depth": "5", "light": "red", "wreck": "1" })).await;
    shop.close().await;
}

/// Any certificate; nobody is called.
const CERTIFICATE: &str = "LS0tLS1CRUdJTg==";

fn service(address: Option<&str>) -> Value {
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "pier" },
        "spec": { "selector": { "app": "pier" }, "ports": [{ "port": 80 }] },
    });
    if let Some(address) = address {
        service["spec"]["clusterIP"] = json!(address);
    }
    service
}

fn job(image: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "haul" },
        "spec": { "template": { "spec": {
            "restartPolicy": "Never", "containers": [{ "name": "raft", "image": image }],
        } } },
    })
}

fn claim(class: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "hold" },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": { "requests": { "storage": "1024Mi" } },
        },
    })
}

fn webhook(timeout: u32) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "stubborn-customs" },
        "webhooks": [{
            "name": "customs.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Ignore", "timeoutSeconds": timeout,
            "clientConfig": { "url": "https://customs.example.com/inspect" },
            "rules": [{ "apiGroups": ["nothing.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothings"] }],
        }],
    })
}

fn bytes(value: &Value) -> Arc<[u8]> {
    value.to_string().into_bytes().into()
}

fn kind_of(object: &Value) -> KindId {
    match object["kind"].as_str().unwrap_or_default() {
        "Service" => KindId::new("", "services"),
        "Job" => KindId::new("batch", "jobs"),
        "PersistentVolumeClaim" => KindId::new("", "persistentvolumeclaims"),
        "ValidatingWebhookConfiguration" => webhooks(),
        "Barge" => crate::emptied::barges(),
        _ => config_maps(),
    }
}

fn webhooks() -> KindId {
    KindId::new("admissionregistration.k8s.io", "validatingwebhookconfigurations")
}

/// A process that carries what ConfigMaps of one namespace hold to another namespace of the same cluster.
pub(crate) struct Shop {
    intents: Name,
    way: Arc<dyn Transport>,
    pub(crate) ledger: Ledger,
    verdicts: Verdicts,
    namespace: Name,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
    _world: Option<Arc<mailboat_testkit::World>>,
}

type Verdicts = Arc<Mutex<BTreeMap<Key, Vec<Verdict>>>>;

impl Shop {
    async fn open(name: &str, delivery: Delivery) -> Self {
        let world = shared_edge().await;
        let access = world.edge(EDGE).access(ADMIN).unwrap();
        Self { _world: Some(world), ..Self::open_at(&access, name, delivery).await }
    }

    /// The same in any cluster or workspace.
    pub(crate) async fn open_at(access: &Access, name: &str, delivery: Delivery) -> Self {
        let connection = connect(access).await;
        let way: Arc<dyn Transport> = Arc::new(connection.cluster());
        let (namespace, intents) = (Name::new(name), Name::new(&format!("{name}-intents")));
        for namespace in [&namespace, &intents] {
            let body =
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": &**namespace } });
            call(
                &way,
                &namespace_key(namespace),
                Verb::Create { body: bytes(&body), manager: Name::new("user") },
            )
            .await;
        }
        let owner = OwnerId(Name::new(name));
        let marks = Arc::new(StandardMarks::new(owner.clone()));
        let engine = Engine::new(owner, Name::new(SENDER), vec![marks.clone()], Options::default());
        let policy = Policy { delivery, ..Policy::plain(marks) };
        let route = Dispatch {
            head: RouteHead::new(intents.clone()).reading([Sources {
                place: PlaceId::new(EDGE),
                cluster: Some(ClusterId::new(EDGE)),
                kind: config_maps(),
            }]),
            intents: intents.clone(),
            namespace: namespace.clone(),
            policy: Arc::new(policy),
        };
        let (ledger, verdicts) = (Ledger::default(), Verdicts::default());
        let role = Clerk { route: Some(Arc::new(route)), verdicts: Arc::clone(&verdicts) };
        let mut process = Process::new(role, engine, Name::new(SENDER), patient(), 7);
        process.place(&PlaceId::new(EDGE), &ClusterId::new(EDGE), ledger.noting(Arc::clone(&way)));
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move { drop(process.run(stopped).await) });
        Self { intents, way, ledger, verdicts, namespace, stop, task, _world: None }
    }

    /// Sends an object, or another one in its place; says where it goes.
    pub(crate) async fn send(&self, name: &str, mut object: Value) -> Key {
        let kind = kind_of(&object);
        let namespace = if kind == webhooks() { Name::EMPTY } else { self.namespace.clone() };
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = json!(&*namespace);
        }
        let to = object["metadata"]["name"].as_str().map(Name::new).unwrap_or_default();
        let intent = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": &*self.intents }, "data": { "object": object.to_string() },
        });
        let key = Key {
            cluster: ClusterId::new(EDGE),
            kind: config_maps(),
            namespace: self.intents.clone(),
            name: Name::new(name),
        };
        let verb = Verb::Apply { body: bytes(&intent), manager: Name::new("user"), force: true };
        call(&self.way, &key, verb).await;
        Key { cluster: ClusterId::new(EDGE), kind, namespace, name: to }
    }

    /// Somebody else writes a copy.
    async fn edit(&self, key: &Key, verb: Verb) {
        call(&self.way, key, verb).await;
    }

    pub(crate) async fn read(&self, key: &Key) -> Result<Value, String> {
        let get = Call { key: key.clone(), verb: Verb::Get, part: Part::Whole, dry_run: false };
        let reply = self.way.call(get).await.map_err(|fault| fault.to_string())?;
        serde_json::from_slice(&reply.body).map_err(|error| error.to_string())
    }

    /// All verdicts on a copy, in their order.
    pub(crate) fn told(&self, key: &Key) -> Vec<Verdict> {
        let verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        verdicts.get(key).cloned().unwrap_or_default()
    }

    pub(crate) async fn until(&self, keys: &[Key], what: &str, fits: impl Fn(&Verdict) -> bool) {
        wait_until(format!("all are {what}"), SOON, || async {
            let others: Vec<_> = keys
                .iter()
                .filter(|key| !self.told(key).last().is_some_and(&fits))
                .map(|key| (key, self.told(key)))
                .collect();
            if others.is_empty() { Ok(()) } else { Err(format!("{others:?}")) }
        })
        .await
        .unwrap();
    }

    async fn until_data(&self, key: &Key, data: Value) {
        wait_until(format!("{key} holds {data}"), SOON, || async {
            let found = self.read(key).await?;
            if found["data"] == data { Ok(()) } else { Err(found["data"].to_string()) }
        })
        .await
        .unwrap();
    }

    pub(crate) async fn close(self) {
        drop(self.stop);
        self.task.await.unwrap();
    }
}

fn namespace_key(name: &Name) -> Key {
    Key {
        cluster: ClusterId::new(EDGE),
        kind: KindId::new("", "namespaces"),
        namespace: Name::EMPTY,
        name: name.clone(),
    }
}

async fn call(way: &Arc<dyn Transport>, key: &Key, verb: Verb) {
    let call = Call { key: key.clone(), verb, part: Part::Whole, dry_run: false };
    way.call(call).await.unwrap_or_else(|fault| panic!("{key}: {fault}"));
}

struct Clerk {
    route: Option<Arc<Dispatch>>,
    verdicts: Verdicts,
}

impl Role for Clerk {
    fn observe(&mut self, _: Now, _: &Store, _: &News) {}

    fn served(&mut self, _: &PlaceId, _: &Arc<Catalog>) {}

    fn noticed(&mut self, notice: &Notice) {
        let mut verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        verdicts.entry(notice.slot.clone()).or_default().push(notice.verdict.clone());
    }

    fn answered(&mut self, _: Now, _: CallId, _: Result<Reply, Fault>) {}

    fn looked(&mut self, _: Now, _: CallId, _: Result<Ground, Fault>) {}

    fn next(&mut self, _: Now, _: &Store, _: &Engine) -> Turn {
        let Some(route) = self.route.take() else { return Turn::default() };
        let kinds = ["services", "persistentvolumeclaims", "namespaces"].map(|kind| KindId::new("", kind));
        let definitions = KindId::new("apiextensions.k8s.io", "customresourcedefinitions");
        let others =
            [config_maps(), webhooks(), crate::emptied::barges(), KindId::new("batch", "jobs"), definitions];
        let interests = kinds.into_iter().chain(others).map(|kind| {
            let keep = if kind == config_maps() { Keep::Whole } else { Keep::Head };
            Interest { place: PlaceId::new(EDGE), kind, filter: Filter::All, keep }
        });
        let orders = vec![
            Order::Follow(interests.collect()),
            Order::Destination(Destination { id: DestinationId(0), cluster: ClusterId::new(EDGE) }),
            Order::Configure(route.head().id.clone(), Some(route)),
            Order::ConfigurationKnown(Some(1)),
        ];
        Turn { orders, wake: None }
    }
}

/// What a ConfigMap holds, as an object of its own.
struct Dispatch {
    head: RouteHead,
    intents: Name,
    namespace: Name,
    policy: Arc<Policy>,
}

impl Route for Dispatch {
    fn head(&self) -> &RouteHead {
        &self.head
    }

    fn select(&self, source: &Object, _: &View<'_>) -> Result<Selected, Hold> {
        if source.key.namespace != self.intents || source.get(&["data", "object"]).is_none() {
            return Ok(Selected::nowhere());
        }
        Ok(Selected { to: Arc::new([DestinationId(0)]), by: Name::new("its namespace") })
    }

    fn project(&self, source: &Object, to: &Destination, _: &View<'_>) -> Result<Vec<Want>, Hold> {
        let text =
            source.get(&["data", "object"]).and_then(mailboat_object::json::Raw::as_str).unwrap_or_default();
        let object: Value = serde_json::from_str(&text)
            .map_err(|error| Hold { reason: error.to_string(), on: Some(source.key.clone()) })?;
        let kind = kind_of(&object);
        let namespace = if kind == webhooks() { Name::EMPTY } else { self.namespace.clone() };
        let name = object["metadata"]["name"].as_str().map(Name::new).unwrap_or_default();
        let json = bytes(&object);
        let digest = digest_of(&json).map_err(|bad| Hold { reason: bad.to_string(), on: None })?;
        Ok(vec![Want {
            slot: Key { cluster: to.cluster.clone(), kind, namespace, name },
            origin: Origin::of(source),
            body: Body { json, digest },
            policy: Arc::clone(&self.policy),
        }])
    }

    fn report(&self, _: &Object, _: &Object, _: &View<'_>) -> Result<Option<Body>, Hold> {
        Ok(None)
    }
}

/// How often each object was written, or tried to be.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<BTreeMap<Key, usize>>>);

impl Ledger {
    pub(crate) fn attempts(&self) -> BTreeMap<Key, usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn noting(&self, way: Arc<dyn Transport>) -> Arc<dyn Transport> {
        Arc::new(Noting { way, ledger: self.clone() })
    }
}

struct Noting {
    way: Arc<dyn Transport>,
    ledger: Ledger,
}

impl Transport for Noting {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, Fault>> {
        if !matches!(call.verb, Verb::Get | Verb::GetAt(_)) && !call.dry_run {
            *self
                .ledger
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .entry(call.key.clone())
                .or_default() += 1;
        }
        self.way.call(call).boxed()
    }

    fn fetch(&self, read: Read) -> BoxFuture<'static, Result<Lines, Fault>> {
        self.way.fetch(read)
    }

    fn catalog(&self) -> BoxFuture<'static, Result<Arc<Catalog>, Fault>> {
        self.way.catalog()
    }

    fn stale(&self) {
        self.way.stale();
    }

    fn abilities(&self) -> Abilities {
        self.way.abilities()
    }
}
