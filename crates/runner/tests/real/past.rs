//! A server that is set back in time: an older backup of its etcd is restored.

use std::time::Duration;

use kube::api::ListParams;
use mailboat_object::json::Raw;
use mailboat_store::{Doubt, PlaceId, Seen};
use mailboat_testkit::{ADMIN, Center, Edge, EdgeSpec, Part, World, wait_until};

use crate::harbor::{Harbor, VIEW, boats};
use crate::rig::{Rig, connect, describe};
use crate::waters::{EDGE, Fleet, config_maps, own_edge};

const LIMIT: Duration = Duration::from_mins(1);

#[tokio::test]
async fn an_older_etcd_restored_makes_nothing_absent_until_that_is_confirmed() {
    let world = own_edge(EdgeSpec::bare(EDGE).with_own_etcd()).await;
    let edge = world.edge(EDGE);
    let fleet = Fleet::launch(edge, "restored", 10).await;
    let rig = Rig::new();
    let connection = connect(&edge.access(ADMIN).unwrap()).await;
    rig.follow_whole(EDGE, connection.cluster(), &[config_maps()]).await;
    fleet.is_faithful(&rig).await;
    rig.exists(&fleet.keys(0..10));
    while_stopped(edge, |etcd| etcd.save_data("before").unwrap()).await;

    // What the backup does not have: three objects, a change, a deletion.
    let mut late = Vec::new();
    for number in 0..3 {
        late.push(fleet.create(&format!("late-{number}")).await);
    }
    for round in 0..20 {
        fleet.load("boat-3", &format!("round {round}")).await;
    }
    rig.goes([&fleet.key("boat-4")]);
    fleet.delete("boat-4").await;
    rig.until_absent(&fleet.key("boat-4")).await;
    fleet.is_faithful(&rig).await;
    rig.exists(&late);

    while_stopped(edge, |etcd| etcd.restore_data("before").unwrap()).await;
    for key in &late {
        let wanted = key.clone();
        rig.until(&format!("{key} doubted"), LIMIT, move |store| match store.get(&wanted) {
            Seen::Unknown(Doubt::OlderThanKnown | Doubt::WentBack) => Ok(()),
            other => Err(describe(&other)),
        })
        .await;
    }
    // The followers live in the server's new time, and know what they do not know.
    let new = fleet.create("new").await;
    rig.until_present(&new, "there", |_| true).await;
    fleet.load("boat-5", "after").await;
    rig.until_present(&fleet.key("boat-5"), "changed", |boat| {
        boat.get(&["data", "cargo"]).and_then(Raw::as_str).as_deref() == Some("after")
    })
    .await;
    rig.assert_never_wrong();

    rig.goes(&late);
    let confirm = |followers: &mut mailboat_runner::Followers, news: &mut Vec<mailboat_store::News>| {
        followers.store_mut().confirm_all(&PlaceId::new(EDGE), &config_maps(), news);
    };
    rig.tell(confirm).await;
    for key in &late {
        rig.until_absent(key).await;
    }
    rig.until_present(&fleet.key("boat-4"), "back", |_| true).await;
    fleet.is_faithful(&rig).await;
}

#[tokio::test]
async fn a_center_set_back_or_without_its_exports_identity_makes_nothing_absent() {
    let world = World::builder().center().start().await.unwrap_or_else(|error| panic!("{error}"));
    an_older_center_restored(world.center()).await;
    an_identity_replaced(world.center()).await;
}

async fn an_older_center_restored(center: &Center) {
    let harbor = Harbor::build_at(center, &[]).await;
    let (one, other) = (harbor.consumer().await, harbor.consumer().await);
    let early = [one.boat("early", "oak").await, other.boat("early", "elm").await];
    let rig = harbor.rig(&[boats()]).await;
    let everywhere = [(one.cluster(), one.all_boats()), (other.cluster(), other.all_boats())];
    rig.assert_faithful(&boats(), &everywhere).await;
    rig.exists(&early);
    center.kcp().kill().await.unwrap();
    center.kcp().save_data("before").unwrap();
    center.kcp().start().await.unwrap();
    center.ready().await.unwrap();

    // The followers came through a restart; and this is what the backup does not have.
    let late = [one.boat("late", "ash").await, other.boat("late", "ash").await];
    for round in 0..20 {
        other.boat("early", &format!("round {round}")).await;
    }
    rig.assert_faithful(&boats(), &everywhere).await;
    rig.exists(&late);

    center.kcp().kill().await.unwrap();
    center.kcp().restore_data("before").unwrap();
    center.kcp().start().await.unwrap();
    center.ready().await.unwrap();
    for key in &late {
        let wanted = key.clone();
        rig.until(&format!("{key} doubted"), LIMIT, move |store| match store.get(&wanted) {
            Seen::Unknown(Doubt::OlderThanKnown | Doubt::WentBack) => Ok(()),
            other => Err(describe(&other)),
        })
        .await;
    }
    let new = one.boat("new", "teak").await;
    rig.until_present(&new, "there", |_| true).await;
    rig.assert_never_wrong();
}

/// An export made anew has another identity, under which kcp stores and shows other objects: after its next
/// restart it answers with empty lists, though nothing was deleted.
async fn an_identity_replaced(center: &Center) {
    let harbor = Harbor::build_at(center, &[]).await;
    let consumer = harbor.consumer().await;
    let oak = consumer.boat("oak", "oak").await;
    let rig = harbor.rig(&[boats()]).await;
    rig.assert_faithful(&boats(), &[(consumer.cluster(), consumer.all_boats())]).await;
    // Objects and bindings are listed anew by two requests, and the empty list of boats may well come first.
    rig.exists([&oak]);
    harbor.lose_identity().await;
    // Asked to end, kcp would wait for our watches.
    center.kcp().kill().await.unwrap();
    center.kcp().start().await.unwrap();
    center.ready().await.unwrap();
    wait_until("the boat gone from sight", LIMIT, || async {
        let listed =
            consumer.all_boats().list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        if listed.items.is_empty() { Ok(()) } else { Err(format!("{} boats", listed.items.len())) }
    })
    .await
    .unwrap();
    // Whatever makes the followers list now, the boat is not absent: it is there, under an identity that is not.
    rig.tell(|followers, news| followers.redefine(&PlaceId::new(VIEW), &boats(), news)).await;
    rig.until_unknown(&oak, Doubt::IdentityChanged).await;
    rig.tell(|followers, news| followers.redefine(&PlaceId::new(VIEW), &boats(), news)).await;
    rig.until_unknown(&oak, Doubt::IdentityChanged).await;
    rig.assert_never_wrong();
}

async fn while_stopped(edge: &Edge, change: impl FnOnce(&Part)) {
    edge.apiserver().kill().await.unwrap();
    edge.etcd().kill().await.unwrap();
    change(edge.etcd());
    edge.etcd().start().await.unwrap();
    edge.apiserver().start().await.unwrap();
}
