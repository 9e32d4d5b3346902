use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::wait::wait_until;

const LIMIT: Duration = Duration::from_secs(10);

/// A server that sends back what it gets.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    address
}

async fn ask(stream: &mut TcpStream, question: &str) -> std::io::Result<String> {
    stream.write_all(question.as_bytes()).await?;
    let mut answer = vec![0; question.len()];
    stream.read_exact(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[tokio::test]
async fn bytes_pass_both_ways_and_are_counted() {
    let proxy = Proxy::start(echo().await).await.unwrap();
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(ask(&mut stream, "ahoy").await.unwrap(), "ahoy");
    let expected = Traffic {
        connections: 1,
        open_connections: 1,
        bytes_to_server: 4,
        bytes_to_client: 4,
        bytes_lost: 0,
    };
    assert_eq!(proxy.traffic(), expected);
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"", "the end of the stream passes as well");
    wait_until("connection over", LIMIT, async || match proxy.traffic() {
        Traffic { open_connections: 0, .. } => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_cut_link_swallows_bytes_and_keeps_connections_open_until_it_heals() {
    let proxy = Proxy::start(echo().await).await.unwrap();
    let mut old = TcpStream::connect(proxy.address()).await.unwrap();
    ask(&mut old, "ahoy").await.unwrap();
    proxy.cut();
    let mut new = TcpStream::connect(proxy.address()).await.unwrap();
    for stream in [&mut old, &mut new] {
        let answer = tokio::time::timeout(Duration::from_millis(200), ask(stream, "anyone?")).await;
        assert!(answer.is_err(), "through a cut link came {answer:?}");
    }
    assert_eq!(proxy.traffic().bytes_lost, 14, "{:?}", proxy.traffic());
    proxy.heal(Scope::All).await.unwrap();
    for stream in [&mut old, &mut new] {
        let end = tokio::time::timeout(LIMIT, stream.read_u8()).await.unwrap();
        let kind = end.map_err(|error| error.kind());
        assert_eq!(kind, Err(std::io::ErrorKind::ConnectionReset), "a torn connection goes on");
    }
    let mut fresh = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(ask(&mut fresh, "again").await.unwrap(), "again");
}

#[tokio::test]
async fn a_link_healed_for_new_connections_leaves_old_ones_dead() {
    let proxy = Proxy::start(echo().await).await.unwrap();
    let mut old = TcpStream::connect(proxy.address()).await.unwrap();
    ask(&mut old, "ahoy").await.unwrap();
    proxy.cut();
    proxy.heal(Scope::New).await.unwrap();
    let mut new = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(ask(&mut new, "new").await.unwrap(), "new");
    let answer = tokio::time::timeout(Duration::from_millis(200), ask(&mut old, "old")).await;
    assert!(answer.is_err(), "{answer:?}");
}

#[tokio::test]
async fn held_bytes_arrive_when_the_link_heals() {
    let proxy = Proxy::start(echo().await).await.unwrap();
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    ask(&mut stream, "ahoy").await.unwrap();
    proxy.hold(Scope::All);
    stream.write_all(b"patience").await.unwrap();
    let early = tokio::time::timeout(Duration::from_millis(200), stream.read_u8()).await;
    assert!(early.is_err(), "{early:?}");
    proxy.heal(Scope::All).await.unwrap();
    let mut answer = [0; 8];
    tokio::time::timeout(LIMIT, stream.read_exact(&mut answer)).await.unwrap().unwrap();
    assert_eq!(&answer, b"patience");
    assert_eq!(proxy.traffic().bytes_lost, 0);
}

#[tokio::test]
async fn refused_and_reset_connections_fail_at_once_and_work_after_healing() {
    let proxy = Proxy::start(echo().await).await.unwrap();
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    ask(&mut stream, "ahoy").await.unwrap();
    proxy.refuse().await.unwrap();
    let refused = TcpStream::connect(proxy.address()).await.map(drop).map_err(|error| error.kind());
    assert_eq!(refused, Err(std::io::ErrorKind::ConnectionRefused));
    assert_eq!(ask(&mut stream, "still").await.unwrap(), "still", "an open connection is not concerned");
    proxy.reset();
    let reset = stream.read_u8().await.map_err(|error| error.kind());
    assert_eq!(reset, Err(std::io::ErrorKind::ConnectionReset));
    proxy.heal(Scope::All).await.unwrap();
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(ask(&mut stream, "again").await.unwrap(), "again");
}

#[tokio::test]
async fn delay_is_added_in_each_direction_and_throttling_limits_the_rate() {
    let proxy = Proxy::start_seeded(echo().await, 7).await.unwrap();
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    let delay = Delay { latency: Duration::from_millis(60), jitter: Duration::from_millis(20) };
    proxy.delay(Scope::All, delay);
    let start = std::time::Instant::now();
    ask(&mut stream, "ahoy").await.unwrap();
    let round_trip = start.elapsed();
    assert!(round_trip >= Duration::from_millis(120), "{round_trip:?}");
    proxy.heal(Scope::All).await.unwrap();

    proxy.throttle(Scope::All, NonZeroU64::new(20_000).unwrap());
    let start = std::time::Instant::now();
    let question = "x".repeat(10_000);
    assert_eq!(ask(&mut stream, &question).await.unwrap(), question);
    let took = start.elapsed();
    // Half a second for 10,000 bytes at 20,000 a second, less the last portion of each direction, which waits for
    // nothing after it.
    assert!(took >= Duration::from_millis(400), "{took:?}");
    assert!(took < LIMIT, "{took:?}");
}

#[tokio::test]
async fn a_server_that_is_away_resets_its_clients() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let target = listener.local_addr().unwrap();
    drop(listener);
    let proxy = Proxy::start(target).await.unwrap();
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    let end = tokio::time::timeout(LIMIT, stream.read_u8()).await.unwrap();
    assert_eq!(end.map_err(|error| error.kind()), Err(std::io::ErrorKind::ConnectionReset));
}

#[tokio::test]
async fn a_dropped_proxy_ends_its_connections() {
    let proxy = Proxy::start(echo().await).await.unwrap();
    let address = proxy.address();
    let mut stream = TcpStream::connect(address).await.unwrap();
    ask(&mut stream, "ahoy").await.unwrap();
    drop(proxy);
    let end = tokio::time::timeout(LIMIT, stream.read_u8()).await.unwrap();
    assert!(end.is_err(), "{end:?}");
    wait_until("refused", LIMIT, async || match TcpStream::connect(address).await {
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await
    .unwrap();
}

#[test]
fn a_kubeconfig_is_led_through_the_proxy_with_its_path_kept() {
    let folder = std::env::temp_dir().join(format!("mailboat-proxy-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let access = Access {
        url: "https://127.0.0.1:6443/clusters/root:org".to_owned(),
        ca_pem: Some("PEM".to_owned()),
        credential: crate::access::Credential::Token("0123".to_owned()),
    };
    let direct = folder.join("alice.yaml");
    access.write_kubeconfig("alice", &direct).unwrap();
    let via = kubeconfig_via(&direct, SocketAddr::from((Ipv4Addr::LOCALHOST, 7777))).unwrap();
    let text = std::fs::read_to_string(&via).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let read: Value = serde_saphyr::from_str(&text).unwrap();
    let expected = Access { url: "https://127.0.0.1:7777/clusters/root:org".to_owned(), ..access };
    assert_eq!(read, expected.kubeconfig("alice"));
}

#[test]
fn a_url_without_an_ip_address_is_no_target() {
    assert_eq!(target_of("https://127.0.0.1:6443/clusters/root").unwrap().port(), 6443);
    for url in ["https://example.com:6443", "127.0.0.1:6443", "https://127.0.0.1"] {
        assert!(target_of(url).is_err(), "{url}");
    }
}
