//! Links that are cut, and links that are only slow.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use mailboat_store::Doubt;
use mailboat_testkit::ADMIN;
use mailboat_testkit::proxy::{Delay, Proxy, Scope};

use crate::rig::{Rig, SOON, connect};
use crate::waters::{EDGE, Fleet, config_maps, shared_edge};

/// How soon a dead peer must be noticed, by our own settings; and a moment for the machine.
const NOTICED_WITHIN: Duration = Duration::from_secs(32);

fn cut_for() -> Duration {
    let soak = std::env::var_os("MAILBOAT_SOAK").is_some_and(|value| value == "1");
    if soak { Duration::from_mins(2) } else { Duration::from_secs(30) }
}

#[tokio::test]
async fn a_link_that_is_cut_is_noticed_in_time_and_nothing_is_lost() {
    let world = shared_edge().await;
    let edge = world.edge(EDGE);
    let fleet = Fleet::launch(edge, "cut", 20).await;
    let access = edge.access(ADMIN).unwrap();
    let proxy = Proxy::in_front_of(&access).await.unwrap();
    let rig = Rig::new();
    let connection = connect(&proxy.access(&access).unwrap()).await;
    rig.follow_whole(EDGE, connection.cluster(), &[config_maps()]).await;
    fleet.is_faithful(&rig).await;
    rig.exists(&fleet.keys(0..20));

    let cut = Instant::now();
    proxy.cut();
    fleet.goes_on(&rig).await;
    let lost = rig.until_standing(&config_maps(), cut, NOTICED_WITHIN, Err(Doubt::Lost)).await;
    println!("the cut was noticed after {:.1?}", lost.at - cut);
    assert!(rig.seen(&fleet.key("boat-5")).await.present().is_some(), "{}", rig.told());
    tokio::time::sleep(cut_for().saturating_sub(cut.elapsed())).await;

    let healed = Instant::now();
    proxy.heal(Scope::All).await.unwrap();
    let known = rig.until_standing(&config_maps(), healed, SOON, Ok(())).await;
    println!("all was known again {:.1?} after the link was there", known.at - healed);
    fleet.is_seen(&rig).await;
}

#[tokio::test]
async fn a_link_that_is_only_slow_is_never_taken_for_lost() {
    let world = shared_edge().await;
    let edge = world.edge(EDGE);
    let fleet = Fleet::launch(edge, "slow", 40).await;
    let access = edge.access(ADMIN).unwrap();
    let proxy = Proxy::in_front_of(&access).await.unwrap();
    proxy
        .delay(Scope::All, Delay { latency: Duration::from_millis(300), jitter: Duration::from_millis(400) });
    proxy.throttle(Scope::All, NonZeroU64::new(48 << 10).unwrap());
    let rig = Rig::new();
    let connection = connect(&proxy.access(&access).unwrap()).await;
    let begun = Instant::now();
    rig.follow_whole(EDGE, connection.cluster(), &[config_maps()]).await;
    rig.exists(&fleet.keys(0..40));
    for round in 0..5 {
        for number in 3..20 {
            fleet.load(&format!("boat-{number}"), &format!("round {round}")).await;
        }
    }
    fleet.goes_on(&rig).await;
    fleet.is_seen(&rig).await;
    let doubts: Vec<_> = rig.standings_since(begun).into_iter().filter_map(|one| one.known.err()).collect();
    assert!(doubts.iter().all(|doubt| *doubt == Doubt::NotListed), "{doubts:?}");
}
