//! What a process says of itself while it carries, while its link is cut, and while it stops.

use std::net::SocketAddr;
use std::sync::Arc;

use mailboat_object::key::{ClusterId, KindId};
use mailboat_runner::{Instruments, Listener, Serves};
use mailboat_testkit::proxy::{Proxy, Scope};
use mailboat_testkit::{ADMIN, wait_until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::ferry::{SOURCE, TARGET, Waters, process};
use crate::rig::{SOON, connect};

const SOME: usize = 30;

#[tokio::test]
async fn a_process_says_when_it_is_ready_what_it_lacks_and_what_it_has_done() {
    let waters = Waters::fill().await;
    let instruments = Arc::new(Instruments::default());
    let listener = Listener::open("127.0.0.1:0", Arc::clone(&instruments)).await.unwrap();
    let at = listener.address();
    assert!(get(at, "/livez").await.starts_with("HTTP/1.1 200"));
    assert!(get(at, "/readyz").await.starts_with("HTTP/1.1 500"), "nothing runs yet");
    instruments.metrics.serves(Serves {
        sync_target: "port".to_owned(),
        workspace: "sea".to_owned(),
        center: ClusterId::new(SOURCE),
        heartbeat: KindId::new("edge.kubestellar.io", "syncerconfigs"),
    });
    let source = connect(&waters.world.edge(SOURCE).access(ADMIN).unwrap()).await;
    let access = waters.world.edge(TARGET).access(ADMIN).unwrap();
    let proxy = Proxy::in_front_of(&access).await.unwrap();
    let target = connect(&proxy.access(&access).unwrap()).await;
    let mut process = process(Arc::new(source.cluster()), Arc::new(target.cluster()));
    process.instruments(instruments);
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(async move { process.run(stopped).await });

    until(at, "/readyz", "HTTP/1.1 200").await;
    waters.put("boat", SOME).await;
    waters.until_carried("boat", SOME).await;
    let synced = format!(
        r#"syncer_resources_synced_total{{sync_target="port",workspace="sea",gvk="/v1, Kind=ConfigMap",direction="kcp-to-cluster"}} {SOME}"#
    );
    until(at, "/metrics", &synced).await;
    until(at, "/metrics", &format!("mailboat_delivery_lag_seconds_count {SOME}\n")).await;
    until(at, "/metrics", "mailboat_queue_depth{queue=\"plan\"} 0\n").await;
    until(at, "/metrics", &format!("mailboat_slots{{state=\"delivered\"}} {SOME}\n")).await;
    let both = "syncer_connection_status{sync_target=\"port\",workspace=\"sea\",target=\"cluster\"} 1\n";
    until(at, "/metrics", both).await;
    assert!(get(at, "/metrics").await.contains("mailboat_leader 1\n"));

    // A server that is away makes it unready, never dead, and it says which.
    proxy.reset();
    proxy.refuse().await.unwrap();
    until(at, "/readyz", "configmaps at target: the link to its server is lost").await;
    assert!(get(at, "/livez").await.starts_with("HTTP/1.1 200"));
    until(at, "/metrics", "target=\"cluster\"} 0\n").await;
    until(at, "/metrics", "mailboat_ready 0\n").await;
    proxy.heal(Scope::All).await.unwrap();
    until(at, "/readyz", "HTTP/1.1 200").await;

    // What somebody has to see to is said, though no call is made for it; and it stays ready.
    waters.occupy("foreign-0").await;
    waters.put("foreign", 1).await;
    until(at, "/readyz?verbose", "deliveries: 1 refused, until somebody changes something").await;
    until(at, "/metrics", "mailboat_degraded 1\n").await;
    assert!(get(at, "/readyz").await.starts_with("HTTP/1.1 200"));

    drop(stop);
    let _ = task.await.unwrap();
    assert!(get(at, "/readyz?verbose").await.contains("the process: is stopping"));
}

async fn until(at: SocketAddr, path: &str, part: &str) {
    wait_until(format!("{path} says {part}"), SOON, || async {
        let answer = get(at, path).await;
        if answer.contains(part) { Ok(()) } else { Err(answer) }
    })
    .await
    .unwrap();
}

async fn get(at: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
