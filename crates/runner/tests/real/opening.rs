//! A role that opens and closes a view while it runs: it reads the export's endpoint slice, opens what the slice names,
//! and signs the log of every boat that it sees there, each in its own workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::api::DeleteParams;
use mailboat_cluster::{Catalog, Transport, endpoints};
use mailboat_engine::engine::{Engine, Notice, Options};
use mailboat_engine::mark::{OwnerId, StandardMarks};
use mailboat_engine::role::{CallId, Ground, Order, Role, Turn, Where};
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::wire::{Call, Fault, Part, Reply, Verb};
use mailboat_runner::Process;
use mailboat_store::{Filter, Interest, Keep, News, Now, PlaceId, Seen, Store};
use mailboat_testkit::wait_until;
use serde_json::json;
use tokio::sync::watch;

use crate::harbor::{BOUND, Consumer, EXPORT, Harbor, VIEW, boats};
use crate::rig::{SOON, describe, patient};

const MANAGER: &str = "mailboat-lookout";
const SIGNED: &str = "lookout.example.com/seen";
const PROVIDER: &str = "provider";

#[tokio::test]
async fn a_view_is_opened_closed_and_opened_again_while_the_role_runs() {
    let harbor = Harbor::build(&[]).await;
    let (log, seen) = watch::channel(BTreeMap::new());
    let (open, wanted) = watch::channel(true);
    let mut process = process(&harbor, Lookout::new(log, wanted));

    // Before anybody binds it, an export has no URL, and the view no endpoint.
    let one = harbor.consumer().await;
    let oak = one.boat("oak", "oak").await;
    process.run(one.until_signed("oak")).await;
    let (other, elm) = process
        .run(async {
            let other = harbor.consumer().await;
            let elm = other.boat("elm", "elm").await;
            other.until_signed("elm").await;
            (other, elm)
        })
        .await;
    assert!(process.store().get(&oak).present().is_some() && process.store().get(&elm).present().is_some());

    // A boat that goes is absent: the bindings that vouch for it are followed with the view, unasked.
    process
        .run(async {
            one.boats().delete("oak", &DeleteParams::default()).await.unwrap();
            until(&seen, &oak, "absent").await;
        })
        .await;

    // Closed, nothing is known through it; opened again, all is.
    process
        .run(async {
            open.send_replace(false);
            until(&seen, &elm, "unknown").await;
            open.send_replace(true);
            until(&seen, &elm, "present").await;
            until(&seen, &oak, "absent").await;
        })
        .await;

    // The URL goes with the last binding and comes back with the next: the role gives the open view other endpoints.
    process
        .run(async {
            for consumer in [&one, &other] {
                consumer.bindings().delete(EXPORT, &DeleteParams::default()).await.unwrap();
            }
            until(&seen, &elm, "unknown").await;
            wait_until("no URL any more", BOUND, || async {
                let slice = harbor.slices().get(EXPORT).await.map_err(|error| error.to_string())?;
                let urls = slice.data["status"]["endpoints"].as_array().map_or(0, Vec::len);
                if urls == 0 { Ok(()) } else { Err(format!("{urls} URLs")) }
            })
            .await
            .unwrap();
            wait_until("the binding gone", BOUND, || async {
                match one.bindings().get_opt(EXPORT).await {
                    Ok(None) => Ok(()),
                    found => Err(format!("{:?}", found.map(|found| found.is_some()))),
                }
            })
            .await
            .unwrap();
            harbor.bind(&one).await;
            one.boat("ash", "ash").await;
            one.until_signed("ash").await;
        })
        .await;
    let doubt = process.store().get(&elm).doubt();
    assert!(doubt.is_some(), "a workspace that is bound no more shows nothing to be absent");
}

async fn until(seen: &watch::Receiver<BTreeMap<Key, String>>, key: &Key, how: &str) {
    let mut seen = seen.clone();
    let fits =
        |log: &BTreeMap<Key, String>| log.get(key).is_some_and(|description| description.starts_with(how));
    let reached = tokio::time::timeout(SOON, seen.wait_for(fits)).await.is_ok_and(|found| found.is_ok());
    let last = seen.borrow().get(key).cloned();
    assert!(reached, "{key} is {last:?}, not {how}");
}

impl Consumer {
    async fn until_signed(&self, name: &str) {
        wait_until(format!("boat {name} signed"), BOUND, || async {
            let boat = self.boats().get(name).await.map_err(|error| error.to_string())?;
            let signed = boat.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(SIGNED));
            if signed { Ok(()) } else { Err("there, without a signature") }.map_err(str::to_owned)
        })
        .await
        .unwrap();
    }
}

fn process(harbor: &Harbor<'_>, role: Lookout) -> Process<Lookout> {
    let owner = OwnerId(Name::new("lookout"));
    let marks = StandardMarks::new(owner.clone());
    let engine = Engine::new(owner, Name::new(MANAGER), vec![Arc::new(marks)], Options::default());
    let mut process = Process::new(role, engine, Name::new(MANAGER), patient(), 7);
    process.ways(Arc::new(harbor.connection.clone()));
    let cluster = ClusterId::new(&harbor.provider.cluster);
    let way: Arc<dyn Transport> = Arc::new(harbor.connection.at(&format!("/clusters/{cluster}")));
    process.place(&PlaceId::new(PROVIDER), &cluster, way);
    process
}

/// What the role knows.
struct Lookout {
    /// What is seen of every boat that was ever seen.
    log: watch::Sender<BTreeMap<Key, String>>,
    /// Whether the view is wanted open.
    wanted: watch::Receiver<bool>,
    urls: Vec<Name>,
    opened: Option<Vec<Name>>,
    introduced: bool,
    reached: BTreeSet<ClusterId>,
    unsigned: Vec<Key>,
    calls: u64,
}

impl Lookout {
    fn new(log: watch::Sender<BTreeMap<Key, String>>, wanted: watch::Receiver<bool>) -> Self {
        Self {
            log,
            wanted,
            urls: Vec::new(),
            opened: None,
            introduced: false,
            reached: BTreeSet::new(),
            unsigned: Vec::new(),
            calls: 0,
        }
    }

    fn sign(&mut self, boat: &Key) -> Call {
        self.calls += 1;
        let patch = json!({ "metadata": { "annotations": { SIGNED: "yes" } } }).to_string();
        let body = Arc::from(patch.into_bytes());
        let verb = Verb::Merge { body, manager: Name::new(MANAGER) };
        Call { key: boat.clone(), verb, part: Part::Whole, dry_run: false }
    }
}

fn slices() -> KindId {
    KindId::new("apis.kcp.io", "apiexportendpointslices")
}

fn interest(place: &str, kind: KindId) -> Interest {
    Interest { place: PlaceId::new(place), kind, filter: Filter::All, keep: Keep::Whole }
}

impl Role for Lookout {
    fn observe(&mut self, _: Now, _: &Store, news: &News) {
        let News::Object(change) = news else { return };
        let Seen::Present(object) = &change.now else { return };
        if change.key.kind == slices() {
            let body = object.root().to_value().to_string();
            let urls = endpoints(body.as_bytes()).unwrap_or_default();
            self.urls = urls.iter().map(|url| Name::new(url)).collect();
        } else if change.key.kind == boats() && object.annotation(SIGNED).is_none() {
            self.unsigned.push(change.key.clone());
        }
    }

    fn served(&mut self, _: &PlaceId, _: &Arc<Catalog>) {}

    fn noticed(&mut self, _: &Notice) {}

    fn answered(&mut self, _: Now, _: CallId, reply: Result<Reply, Fault>) {
        reply.unwrap_or_else(|fault| panic!("a boat cannot be signed: {fault}"));
    }

    fn looked(&mut self, _: Now, _: CallId, _: Result<Ground, Fault>) {}

    fn next(&mut self, now: Now, store: &Store, _: &Engine) -> Turn {
        let mut orders = Vec::new();
        if !std::mem::replace(&mut self.introduced, true) {
            orders.push(Order::Follow(vec![interest(PROVIDER, slices()), interest(VIEW, boats())]));
        }
        let open = *self.wanted.borrow();
        if open && self.opened.as_ref() != Some(&self.urls) {
            self.opened = Some(self.urls.clone());
            orders.push(Order::Open(PlaceId::new(VIEW), Where::View(self.urls.clone())));
        } else if !open && self.opened.take().is_some() {
            orders.push(Order::Close(PlaceId::new(VIEW)));
        }
        for boat in std::mem::take(&mut self.unsigned) {
            if self.reached.insert(boat.cluster.clone()) {
                orders.push(Order::Reach(boat.cluster.clone()));
            }
            let call = self.sign(&boat);
            orders.push(Order::Call(CallId(self.calls), call));
        }
        self.log.send_modify(|log| {
            log.extend(
                store.across(&PlaceId::new(VIEW), &boats()).map(|boat| (boat.key.clone(), String::new())),
            );
            for (key, seen) in log.iter_mut() {
                *seen = describe(&store.get(key));
            }
        });
        // Whether the view is wanted is not news: the test says it from outside.
        let wake = Some(now.mono + std::time::Duration::from_millis(100));
        Turn { orders, wake }
    }
}
