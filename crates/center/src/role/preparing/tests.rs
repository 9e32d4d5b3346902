use mailboat_object::object::Limits;
use mailboat_object::wire::{FaultKind, Verb};
use mailboat_store::interest::{EndpointId, FeedId};
use mailboat_store::store::Nature;
use mailboat_store::time::Now;
use mailboat_store::{Definition, Fetch, Follower, Input, Settings};
use serde_json::json;

use super::*;
use crate::fixtures::object;

const AT: &str = "https://kcp:6443/services/initializingworkspaces/p:mailboat-workload";

/// A center's preparing part, and what it was shown.
struct World {
    preparing: Preparing,
    store: Store,
    follower: Follower,
    ids: mailboat_engine::role::CallIds,
    version: u64,
}

fn a_type(name: &str, spec: &Value, url: &str) -> Arc<Object> {
    let object_ = json!({ "metadata": { "name": name }, "spec": spec,
        "status": { "virtualWorkspaces": [{ "url": url }, { "url": "https://kcp:6443/services/terminatingworkspaces/x" }] } });
    object("p", "workspacetypes.tenancy.kcp.io", &object_)
}

impl World {
    /// One that knows the type of workloads.
    fn new() -> Self {
        let mut preparing = Preparing::new(ClusterId::new("p"), Name::new("center"));
        let mut orders = Vec::new();
        preparing.sees_type(
            WORKLOAD_TYPE,
            Some(&a_type(WORKLOAD_TYPE, &json!({ "initializer": true }), AT)),
            &mut orders,
        );
        let [Order::Open(at, Where::Waiting(url))] = &orders[..] else { panic!("its view is not opened") };
        assert_eq!(url.as_str(), AT);
        let (mut store, mut news) = (Store::new(), Vec::new());
        store.open(at, Nature::View, [EndpointId::new("one")], &mut news);
        let definition = Definition {
            api_version: Name::new("core.kcp.io/v1alpha1"),
            kind_name: Name::new("LogicalCluster"),
            manager: Name::new("center"),
            filter: Filter::All,
            keep: Keep::HeadAndStatus,
            limits: Limits::default(),
        };
        let feed = FeedId { place: at.clone(), endpoint: EndpointId::new("one"), kind: logical_clusters() };
        let follower = Follower::new(feed, definition, Settings::default(), 1, &mut store, &mut news);
        let mut follower = follower.expect("a feed");
        assert!(matches!(follower.next(NOW), Fetch::List { .. }));
        let page = json!({ "metadata": { "resourceVersion": "100" }, "items": [] }).to_string();
        follower.feed(NOW, follower.turn(), Input::Page(page.as_bytes()), &mut store, &mut news);
        assert!(matches!(follower.next(NOW), Fetch::Watch { .. }));
        let opened = Input::Opened { new_connection: false };
        follower.feed(NOW, follower.turn(), opened, &mut store, &mut news);
        Self { preparing, store, follower, ids: mailboat_engine::role::CallIds::default(), version: 100 }
    }

    fn event(&mut self, event: &str, cluster: &str, initializers: &[&str]) {
        self.version += 1;
        let object = json!({
            "metadata": { "name": "cluster", "annotations": { "kcp.io/cluster": cluster },
                "resourceVersion": self.version.to_string() },
            "status": { "phase": "Initializing", "initializers": initializers },
        });
        let line = json!({ "type": event, "object": object }).to_string();
        let mut news = Vec::new();
        let turn = self.follower.turn();
        self.follower.feed(NOW, turn, Input::Line(line.as_bytes()), &mut self.store, &mut news);
        self.preparing.touch();
    }

    fn next(&mut self, at: u64) -> (Vec<Order>, Option<Moment>) {
        let mut orders = Vec::new();
        let Self { preparing, store, ids, .. } = self;
        let wake = preparing.next(Moment(at), store, || ids.fresh(), &mut orders);
        (orders, wake)
    }

    /// Answers the calls among orders, and what follows from that, until nothing is asked any more; gives what was written.
    fn carry_out(&mut self, at: u64, orders: Vec<Order>, initializers: &[&str]) -> Vec<String> {
        let mut written = Vec::new();
        let mut orders = orders;
        while !orders.is_empty() {
            for order in std::mem::take(&mut orders) {
                let Order::Call(id, call) = order else { continue };
                let itself = json!({ "metadata": { "resourceVersion": "7" }, "status": { "initializers": initializers } });
                let reply = match &call.verb {
                    Verb::Get if call.key.kind == logical_clusters() => Ok(itself.to_string()),
                    Verb::Get => Err(Fault::new(FaultKind::NotFound, "none")),
                    _ => {
                        written.push(format!("{} in {}", call.key.kind.resource(), call.key.cluster));
                        Ok("{}".to_owned())
                    }
                };
                let reply = reply.map(|body| Reply {
                    body: body.into_bytes().into_boxed_slice(),
                    created: false,
                    warnings: Vec::new(),
                });
                let Self { preparing, ids, .. } = self;
                assert!(preparing.answered(Moment(at), id, &reply, || ids.fresh(), &mut orders));
            }
        }
        written
    }
}

const NOW: Now = Now { mono: Moment(1_000), wall_seconds: 1 };

#[test]
fn a_workspace_that_waits_is_prepared_once_and_then_forgotten() {
    let mut world = World::new();
    world.event("ADDED", "new", &["system:apibindings", "p:mailboat-workload"]);
    let (orders, _) = world.next(1_000);
    assert!(
        matches!(&orders[0], Order::ReachWaiting { view, workspace, .. } if view.as_str() == AT && workspace.0.as_str() == "new")
    );
    let written = world.carry_out(1_000, orders, &["p:mailboat-workload"]);
    let at = "waiting/p:mailboat-workload/new";
    assert_eq!(
        written,
        ["clusterroles", "clusterrolebindings", "logicalclusters"].map(|what| format!("{what} in {at}"))
    );
    // What is still shown of it is older than what was done.
    world.event("MODIFIED", "new", &["p:mailboat-workload"]);
    let (orders, wake) = world.next(2_000);
    assert!(orders.is_empty(), "it is not prepared again");
    assert_eq!(wake, Some(Moment(11_000)));
    world.event("DELETED", "new", &[]);
    let (orders, wake) = world.next(3_000);
    let [Order::Leave(_, left), Order::Forget(forgotten)] = &orders[..] else { panic!("it is remembered") };
    assert_eq!((left.0.as_str(), wake), ("new", None));
    assert!(forgotten.iter().any(|one| one.0.as_str() == at) && world.preparing.workspaces.is_empty());
}

#[test]
fn what_waits_for_others_alone_is_left_to_them() {
    let mut world = World::new();
    world.event("ADDED", "new", &["q:mailboat-workload", "p:another"]);
    let (orders, wake) = world.next(1_000);
    assert!(orders.is_empty() && wake.is_none());
}

#[test]
fn a_workspace_of_both_types_gets_the_rights_of_both() {
    let mut world = World::new();
    let inventory = AT.replace("workload", "inventory");
    let spec = json!({ "initializer": true });
    world.preparing.sees_type(
        INVENTORY_TYPE,
        Some(&a_type(INVENTORY_TYPE, &spec, &inventory)),
        &mut Vec::new(),
    );
    world.event("ADDED", "new", &["p:mailboat-inventory", "p:mailboat-workload"]);
    let mut written = Vec::new();
    for at in [1_000, 2_000] {
        let (orders, _) = world.next(at);
        written.extend(world.carry_out(at, orders, &["p:mailboat-inventory", "p:mailboat-workload"]));
    }
    for of in ["mailboat-inventory", "mailboat-workload"] {
        let here = written.iter().filter(|one| one.ends_with(&format!("waiting/p:{of}/new"))).count();
        assert_eq!(here, 3, "{of}: {written:?}");
    }
}

#[test]
fn a_failure_is_tried_again_later_and_holds_up_nobody_else() {
    let mut world = World::new();
    world.event("ADDED", "shut", &["p:mailboat-workload"]);
    world.event("ADDED", "open", &["p:mailboat-workload"]);
    let (orders, _) = world.next(1_000);
    let mut others = Vec::new();
    let mut fresh = mailboat_engine::role::CallIds::default();
    for order in orders {
        match order {
            Order::Call(id, call) if call.key.cluster.0.ends_with("/shut") => {
                let refused = Err(Fault::new(FaultKind::Forbidden, "access denied"));
                let mut more = Vec::new();
                let told = world.preparing.answered(Moment(1_000), id, &refused, || fresh.fresh(), &mut more);
                assert!(told && more.is_empty());
            }
            order => others.push(order),
        }
    }
    assert_eq!(world.carry_out(1_000, others, &["p:mailboat-workload"]).len(), 3);
    let (orders, wake) = world.next(1_001);
    assert!(orders.is_empty());
    assert_eq!(wake, Some(Moment(2_000)), "a second after the first failure");
    let (orders, _) = world.next(2_000);
    assert_eq!(world.carry_out(2_000, orders, &["p:mailboat-workload"]).len(), 3);
}

#[test]
fn a_type_that_holds_nobody_has_no_view_and_one_that_goes_closes_it() {
    let mut world = World::new();
    let mut orders = Vec::new();
    let former = a_type(INVENTORY_TYPE, &json!({}), &AT.replace("workload", "inventory"));
    world.preparing.sees_type(INVENTORY_TYPE, Some(&former), &mut orders);
    world.preparing.sees_type(
        "theirs",
        Some(&a_type("theirs", &json!({ "initializer": true }), AT)),
        &mut orders,
    );
    assert!(orders.is_empty() && world.preparing.interests().count() == 1);
    world.event("ADDED", "new", &["p:mailboat-workload"]);
    world.next(1_000);
    world.preparing.sees_type(WORKLOAD_TYPE, None, &mut orders);
    assert!(matches!(&orders[..], [Order::Close(_)]) && world.preparing.interests().count() == 0);
}
