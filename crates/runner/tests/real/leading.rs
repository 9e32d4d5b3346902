//! Several processes of one role: one writes, whatever happens to it another takes over, and never do two write.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease as LeaseObject;
use kube::Api;
use mailboat_cluster::Transport;
use mailboat_runner::Lease;
use mailboat_runner::election::Times;
use mailboat_runner::lease::Election;
use mailboat_testkit::proxy::{Proxy, Scope};
use mailboat_testkit::{ADMIN, Access, World, wait_until};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::ferry::{Ledger, SOURCE, TARGET, Waters, process};
use crate::rig::{SOON, connect};

const LEASE: &str = "mailboat-ferry";
const TIMES: Times = Times {
    lease: Duration::from_secs(4),
    renew_within: Duration::from_millis(2_500),
    retry: Duration::from_millis(500),
};
const SOME: usize = 20;

#[tokio::test]
async fn h45_a_standby_takes_over_from_a_leader_that_stops_dies_or_is_cut_off_and_two_never_write() {
    let waters = Waters::fill().await;
    let ledger = Ledger::default();
    let target = waters.world.edge(TARGET).access(ADMIN).unwrap();
    let proxy = Proxy::in_front_of(&target).await.unwrap();
    let leases: Api<LeaseObject> =
        Api::namespaced(waters.world.edge(TARGET).client(ADMIN).await.unwrap(), "kube-system");

    let first = Crew::launch(&waters, &ledger, "first", &target).await;
    until_held_by(&leases, "first").await;
    let second = Crew::launch(&waters, &ledger, "second", &target).await;
    waters.put("calm", SOME).await;
    waters.until_carried("calm", SOME).await;
    let carried = waters.uids().await;

    // Asked to stop, the leader finishes and hands over, well before its lease would have ended.
    let stopped = Instant::now();
    first.stop().await;
    until_held_by(&leases, "second").await;
    let handed_over = stopped.elapsed();
    println!("handed over after {handed_over:.1?}");
    assert!(handed_over < TIMES.lease, "the lease was not given up: {handed_over:?}");
    waters.put("stopped", SOME).await;
    waters.until_carried("stopped", SOME).await;

    // Killed, it says nothing; its lease ends by itself.
    let third = Crew::launch(&waters, &ledger, "third", &proxy.access(&target).unwrap()).await;
    waters.put("kept", SOME).await;
    waters.until_carried("kept", SOME).await;
    let killed = Instant::now();
    second.kill();
    waters.put("killed", SOME).await;
    waters.until_carried("killed", SOME).await;
    println!("a killed leader's work went on after {:.1?}", killed.elapsed());
    until_held_by(&leases, "third").await;

    // Cut off, it goes on believing for a while that all is well, and writes nothing once another may.
    let fourth = Crew::launch(&waters, &ledger, "fourth", &target).await;
    waters.put("before", SOME).await;
    waters.until_carried("before", SOME).await;
    let cut = Instant::now();
    proxy.cut();
    waters.put("cut", SOME).await;
    waters.until_carried("cut", SOME).await;
    println!("the work of a leader that was cut off went on after {:.1?}", cut.elapsed());
    until_held_by(&leases, "fourth").await;
    proxy.heal(Scope::All).await.unwrap();
    waters.put("healed", SOME).await;
    waters.until_carried("healed", SOME).await;
    third.stop().await;
    fourth.stop().await;

    let mut eras: Vec<&str> = ledger.writers().iter().map(|(_, who)| *who).collect();
    eras.dedup();
    assert_eq!(eras, ["first", "second", "third", "fourth"], "whoever was succeeded has written again");
    // H45: a change of the leader is no reason to delete or make anew what was carried.
    let still = waters.uids().await;
    assert!(carried.iter().all(|(name, uid)| still.get(name) == Some(uid)), "{carried:?}, now {still:?}");
    let transitions = leases.get(LEASE).await.unwrap().spec.and_then(|spec| spec.lease_transitions);
    assert_eq!(transitions, Some(3));
}

#[tokio::test]
async fn a_lease_is_kept_in_a_workspace_of_kcp_too_and_what_may_not_be_had_is_said() {
    let center = World::shared().await.unwrap_or_else(|error| panic!("{error}")).center();
    let workspace = center.workspace("lease").await.unwrap();
    let connection = connect(&center.access(ADMIN, &workspace.path).unwrap()).await;
    let lease = Lease::seek(Arc::new(connection.cluster()), election("boat", "default"));
    let gate = lease.gate();
    wait_until("the lease held", SOON, || async {
        if gate.is_open() { Ok(()) } else { Err(format!("{:?}", gate.word())) }
    })
    .await
    .unwrap();
    assert_eq!(gate.word().holder.as_deref(), Some("boat"));
    lease.release().await;
    assert!(!gate.is_open(), "it was given up");
    let leases: Api<LeaseObject> =
        Api::namespaced(center.client(ADMIN, &workspace.path).await.unwrap(), "default");
    let spec = leases.get(LEASE).await.unwrap().spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some(""), "{spec:?}");

    let nowhere = Lease::seek(Arc::new(connection.cluster()), election("boat", "nowhere"));
    let gate = nowhere.gate();
    let trouble = wait_until("a trouble said", SOON, || async {
        gate.word().trouble.ok_or_else(|| format!("{:?}", gate.word()))
    });
    let trouble = trouble.await.unwrap();
    assert!(trouble.contains("nowhere") && !gate.is_open(), "{trouble}");
}

fn election(identity: &str, namespace: &str) -> Election {
    Election {
        namespace: namespace.to_owned(),
        name: LEASE.to_owned(),
        identity: identity.to_owned(),
        times: TIMES,
    }
}

async fn until_held_by(leases: &Api<LeaseObject>, who: &str) {
    wait_until(format!("the lease held by {who}"), SOON, || async {
        let lease = leases.get(LEASE).await.map_err(|error| error.to_string())?;
        let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
        if holder == who { Ok(()) } else { Err(holder) }
    })
    .await
    .unwrap();
}

/// A process in a task of its own.
struct Crew {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Crew {
    async fn launch(waters: &Waters, ledger: &Ledger, name: &'static str, target: &Access) -> Self {
        let source = connect(&waters.world.edge(SOURCE).access(ADMIN).unwrap()).await;
        let target = connect(target).await;
        let kept_at: Arc<dyn Transport> = Arc::new(target.cluster());
        let mut process = process(
            ledger.noting(name, Arc::new(source.cluster())),
            ledger.noting(name, Arc::new(target.cluster())),
        );
        process.lease(Lease::seek(kept_at, election(name, "kube-system")));
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let _ = process.run(stopped).await;
        });
        Self { stop, task }
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        self.task.await.unwrap();
    }

    fn kill(self) {
        self.task.abort();
    }
}
