//! A connection against an API server in this process: streams, GOAWAY, dead peers, credentials, faults.

#![allow(clippy::unwrap_used, reason = "tests: a failure here is one of the test itself")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::header::AUTHORIZATION;
use mailboat_cluster::{Cluster, Connection, Lines, Rate, Read, ReadMode, Settings, Transport as _};
use mailboat_object::key::{ClusterId, Key, KindId, Name, Version};
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Reply, Verb};
use support::{CONFIG_MAP, Server, Wish, certificates, endless, handler, json, until, with_type};
use tokio::time::Instant;

fn config_maps() -> KindId {
    KindId::new("", "configmaps")
}

fn call(verb: Verb) -> Call {
    let key = Key {
        cluster: ClusterId::new("here"),
        kind: config_maps(),
        namespace: Name::new("till"),
        name: Name::new("menu"),
    };
    Call { key, verb, part: Part::Whole, dry_run: false }
}

fn create() -> Call {
    call(Verb::Create { body: Arc::from(CONFIG_MAP.as_bytes()), manager: Name::new("m") })
}

async fn get(cluster: &Cluster) -> Result<Reply, Fault> {
    cluster.call(call(Verb::Get)).await
}

async fn watch(cluster: &Cluster) -> Result<Lines, Fault> {
    cluster.fetch(Read::all(config_maps(), ReadMode::Watch { from: Version(1), timeout_seconds: 300 })).await
}

async fn page(cluster: &Cluster) -> Result<Lines, Fault> {
    cluster.fetch(Read::all(config_maps(), ReadMode::Page { limit: 10, continue_token: None })).await
}

fn quick() -> Settings {
    Settings { recheck: Duration::ZERO, ..Settings::default() }
}

const EVENT: &str = "{\"type\":\"BOOKMARK\"}\n";

#[tokio::test]
async fn two_hundred_watches_share_three_connections_and_calls_go_beside_them() {
    let server = Server::start(handler(|request| async move {
        if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
            endless(vec![EVENT])
        } else {
            json(200, CONFIG_MAP)
        }
    }))
    .await;
    let cluster = server.connect(Settings::default()).await.cluster();
    let mut watches = Vec::new();
    for number in 0..200 {
        let mut lines = watch(&cluster).await.unwrap_or_else(|fault| panic!("watch {number}: {fault}"));
        let line =
            lines.next().await.expect("an event").unwrap_or_else(|fault| panic!("watch {number}: {fault}"));
        assert_eq!(&line[..], EVENT.trim_end().as_bytes());
        watches.push(lines);
    }
    let reply = get(&cluster).await.unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(&*reply.body, CONFIG_MAP.as_bytes());
    let mut most = server.most_streams();
    most.sort_unstable();
    assert_eq!(most, [1, 40, 80, 80], "streams on each connection");

    drop(watches);
    until("dropped watches end at the server", || server.open_streams() == 0).await;
}

#[tokio::test]
async fn a_server_that_allows_fewer_streams_is_given_fewer() {
    let wish = Wish { streams: Some(10), ..Wish::default() };
    let server = Server::start_with(handler(|_| async { endless(vec![EVENT]) }), certificates(wish)).await;
    let cluster = server.connect(Settings::default()).await.cluster();
    let mut watches = Vec::new();
    for number in 0..35 {
        let opened = tokio::time::timeout(Duration::from_secs(5), watch(&cluster)).await;
        let mut lines = opened.unwrap_or_else(|_| panic!("watch {number} waits behind the others")).unwrap();
        assert!(lines.next().await.is_some());
        watches.push(lines);
    }
    assert!(server.most_streams().iter().all(|most| *most <= 10), "{:?}", server.most_streams());
}

#[tokio::test]
async fn a_burst_of_calls_shares_connections_instead_of_opening_one_each() {
    let server = Server::start(handler(|_| async { json(200, CONFIG_MAP) })).await;
    let cluster = server.connect(Settings::default()).await.cluster();
    let replies = futures::future::join_all((0..150).map(|_| get(&cluster))).await;
    assert!(replies.iter().all(Result::is_ok));
    assert!(server.accepted() <= 2, "{} connections for 128 calls at once", server.accepted());
}

#[tokio::test]
async fn without_http2_each_request_has_a_connection_of_its_own_which_is_used_again() {
    let wish = Wish { http1_only: true, ..Wish::default() };
    let server = Server::start_with(
        handler(|request| async move {
            if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
                endless(vec![EVENT])
            } else {
                json(200, CONFIG_MAP)
            }
        }),
        certificates(wish),
    )
    .await;
    let cluster = server.connect(Settings::default()).await.cluster();
    let mut first = watch(&cluster).await.unwrap_or_else(|fault| panic!("{fault}"));
    let mut second = watch(&cluster).await.unwrap_or_else(|fault| panic!("{fault}"));
    assert!(first.next().await.is_some() && second.next().await.is_some());
    for _ in 0..20 {
        assert!(get(&cluster).await.is_ok());
    }
    assert_eq!(server.accepted(), 3, "two watches and one for all calls and discovery");
    assert_eq!(server.most_streams(), [1, 1, 1]);
}

#[tokio::test]
async fn a_connection_taken_out_of_service_finishes_its_watches_and_fails_nobody() {
    let go_on = Arc::new(tokio::sync::Notify::new());
    let told = go_on.clone();
    let server = Server::start(handler(move |request| {
        let told = told.clone();
        async move {
            if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
                told.notified().await;
            }
            json(200, EVENT)
        }
    }))
    .await;
    let cluster = server.connect(Settings::default()).await.cluster();
    assert!(get(&cluster).await.is_ok());
    let watching = tokio::spawn({
        let cluster = cluster.clone();
        async move {
            watch(&cluster).await?.next().await.unwrap_or_else(|| Err(Fault::new(FaultKind::Bug, "ended")))
        }
    });
    until("the watch is open", || server.open_streams() == 1).await;
    for round in 0..5 {
        server.go_away();
        // Writes in every state of the GOAWAY's arrival: none may fail, none may be sent twice.
        for _ in 0..10 {
            let reply = cluster.call(create()).await;
            assert!(reply.is_ok(), "round {round}: {reply:?}");
        }
    }
    go_on.notify_one();
    let line = watching.await.expect("no panic");
    assert!(line.is_ok(), "the watch on the old connection: {line:?}");
    let creates = server.requests().iter().filter(|(line, _)| line.starts_with("POST")).count();
    assert_eq!(creates, 50);
    assert!(server.accepted() >= 5, "{} connections", server.accepted());
}

/// Its connections live, and each call would be tried for itself, for a minute.
#[tokio::test]
async fn h25_a_server_that_takes_calls_and_answers_none_is_away_until_it_answers_again() {
    let hangs = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&hangs);
    let server = Server::start(handler(move |_| {
        let hangs = Arc::clone(&told);
        async move {
            if hangs.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            json(200, CONFIG_MAP)
        }
    }))
    .await;
    let settings = Settings { call_timeout: Duration::from_millis(300), ..Settings::default() };
    let cluster = server.connect(settings).await.cluster();
    assert!(get(&cluster).await.is_ok());
    for _ in 0..2 {
        hangs.store(true, Ordering::SeqCst);
        let mut kinds = Vec::new();
        for _ in 0..4 {
            // Each handle to it knows the same.
            kinds.push(cluster.clone().call(create()).await.unwrap_err().kind);
        }
        let (retry, away) = (FaultKind::Retry(None), FaultKind::Away);
        assert_eq!(kinds, [retry, retry, away, away]);
        hangs.store(false, Ordering::SeqCst);
        assert!(get(&cluster).await.is_ok());
    }
}

#[tokio::test]
async fn a_peer_that_falls_silent_is_noticed_by_its_missing_pong() {
    // Between us and the server: a pipe that can be blocked without closing anything.
    let server = Server::start(handler(|_| async { endless(vec![EVENT]) })).await;
    let pipe = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let piped = pipe.local_addr().unwrap();
    let blocked = Arc::new(AtomicBool::new(false));
    let (block, target) = (blocked.clone(), server.address);
    tokio::spawn(async move {
        loop {
            let (client, _) = pipe.accept().await.unwrap();
            let upstream = tokio::net::TcpStream::connect(target).await.unwrap();
            let (client_read, client_write) = client.into_split();
            let (up_read, up_write) = upstream.into_split();
            tokio::spawn(carry(client_read, up_write, block.clone()));
            tokio::spawn(carry(up_read, client_write, block.clone()));
        }
    });
    let kubeconfig = server.kubeconfig("{token: t}");
    let text = std::fs::read_to_string(&kubeconfig)
        .unwrap()
        .replace(&server.address.to_string(), &piped.to_string());
    std::fs::write(&kubeconfig, text).unwrap();
    let settings = Settings {
        ping_interval: Duration::from_millis(200),
        ping_timeout: Duration::from_millis(200),
        ..Settings::default()
    };
    let cluster = support::open(kubeconfig, settings).await.cluster();
    let mut lines = watch(&cluster).await.unwrap_or_else(|fault| panic!("{fault}"));
    assert!(lines.next().await.is_some());

    blocked.store(true, Ordering::SeqCst);
    let begun = Instant::now();
    let end =
        tokio::time::timeout(Duration::from_secs(10), lines.next()).await.expect("the watch ends by itself");
    assert!(matches!(&end, Some(Err(fault)) if matches!(fault.kind, FaultKind::Retry(_))), "{end:?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "noticed after {:?}", begun.elapsed());

    blocked.store(false, Ordering::SeqCst);
    let mut again = watch(&cluster).await.unwrap_or_else(|fault| panic!("{fault}"));
    assert!(again.next().await.is_some(), "a new connection takes its place");
}

async fn carry(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    blocked: Arc<AtomicBool>,
) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut buffer = vec![0; 16 << 10];
    while let Ok(length) = from.read(&mut buffer).await {
        if length == 0 || blocked.load(Ordering::SeqCst) {
            // Swallowed without a word, and the socket stays open.
            std::future::pending::<()>().await;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn reads_outlast_a_short_outage_and_writes_are_never_repeated() {
    let failures = Arc::new(AtomicUsize::new(0));
    let left = failures.clone();
    let server = Server::start(handler(move |_| {
        let left = left.clone();
        async move {
            let failing = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            match failing {
                Ok(left) if left % 2 == 0 => json(503, r#"{"kind":"Status","message":"busy"}"#),
                Ok(_) => json(429, r#"{"kind":"Status","message":"storage is (re)initializing"}"#),
                Err(_) => json(201, CONFIG_MAP),
            }
        }
    }))
    .await;
    let cluster = server.connect(Settings::default()).await.cluster();
    failures.store(3, Ordering::SeqCst);
    assert!(get(&cluster).await.is_ok(), "three failures are outlasted");
    failures.store(100, Ordering::SeqCst);
    let fault = get(&cluster).await.expect_err("a hundred are not");
    assert_eq!(fault.kind, FaultKind::Retry(None));
    assert_eq!(failures.load(Ordering::SeqCst), 96, "four tries, no more");

    failures.store(1, Ordering::SeqCst);
    let fault = cluster.call(create()).await.expect_err("a write is not repeated");
    assert_eq!(fault.kind, FaultKind::Retry(None));
    assert!(cluster.call(create()).await.is_ok_and(|reply| reply.created));
    failures.store(1, Ordering::SeqCst);
    assert!(page(&cluster).await.is_err(), "a follower has its own patience");
}

#[tokio::test]
async fn a_rotated_token_is_taken_up_before_and_after_it_is_refused() {
    let valid = Arc::new(std::sync::Mutex::new("Bearer one".to_owned()));
    let accepted = valid.clone();
    let server = Server::start(Arc::new(move |request| {
        let good = request.headers()[AUTHORIZATION].to_str().unwrap() == *accepted.lock().unwrap();
        let path = request.uri().path().to_owned();
        Box::pin(async move {
            if !good {
                return json(
                    401,
                    r#"{"kind":"Status","message":"Unauthorized","reason":"Unauthorized","code":401}"#,
                );
            }
            support::discovery(&path).unwrap_or_else(|| json(200, CONFIG_MAP))
        })
    }))
    .await;
    let token = server.file("token");
    std::fs::write(&token, "one\n").unwrap();
    let user = format!("{{tokenFile: {}}}", token.display());
    let cluster = server.connect_as(&user, Settings::default()).await.cluster();
    assert!(get(&cluster).await.is_ok());

    // The server has changed its mind before we looked at the file: the refusal makes us look.
    std::fs::write(&token, "second\n").unwrap();
    *valid.lock().unwrap() = "Bearer second".into();
    let reply = get(&cluster).await;
    assert!(reply.is_ok(), "{reply:?}");
    assert_eq!(server.accepted(), 1, "a new token needs no new connection");

    // Revoked, and no new one: one clear fault that shows no token.
    *valid.lock().unwrap() = "Bearer third".into();
    let fault = get(&cluster).await.expect_err("nobody knows this token");
    assert_eq!(fault.kind, FaultKind::Unauthorized);
    assert!(!fault.text.contains("second") && fault.text.contains("renew"), "{fault}");
    let refused = server.requests().iter().filter(|(_, token)| token == "Bearer second").count();
    assert!(refused <= 3, "the refused token was sent {refused} times");

    // Replaced later: taken up without a restart.
    std::fs::write(&token, "third").unwrap();
    let reply = get(&cluster).await;
    assert!(reply.is_ok(), "{reply:?}");
}

#[tokio::test]
async fn a_replaced_kubeconfig_leads_to_the_new_server() {
    let old = Server::start(handler(|_| async { json(200, "{\"old\":1}") })).await;
    let new = Server::start(handler(|_| async { json(200, "{\"new\":1}") })).await;
    let path = old.kubeconfig("{token: t}");
    let cluster = support::open(path.clone(), quick()).await.cluster();
    assert_eq!(&*get(&cluster).await.unwrap().body, b"{\"old\":1}");
    std::fs::write(&path, "clusters: [half written").unwrap();
    assert_eq!(&*get(&cluster).await.unwrap().body, b"{\"old\":1}", "a file in the making changes nothing");
    std::fs::copy(new.kubeconfig("{token: t}"), &path).unwrap();
    assert_eq!(&*get(&cluster).await.unwrap().body, b"{\"new\":1}");
}

#[tokio::test]
async fn each_server_that_cannot_be_used_is_named_with_its_cause() {
    let good = |wish| async move {
        Server::start_with(handler(|_| async { json(200, CONFIG_MAP) }), certificates(wish)).await
    };
    let expired = good(Wish { expired: true, ..Wish::default() }).await;
    let other = good(Wish { for_other_host: true, ..Wish::default() }).await;
    let real = good(Wish::default()).await;
    let stranger = good(Wish::default()).await;
    // The kubeconfig of one server with the address of another: an authority that did not sign.
    let wrong = stranger.kubeconfig("{token: s3cr3t}");
    let text = std::fs::read_to_string(&wrong).unwrap();
    std::fs::write(&wrong, text.replace(&stranger.address.to_string(), &real.address.to_string())).unwrap();
    let page =
        Server::start(Arc::new(|_| Box::pin(async { with_type(200, "text/html", "<html>Sign in</html>") })))
            .await;
    let closed = good(Wish::default()).await;
    closed.close();
    until("the port is closed", || std::net::TcpStream::connect(closed.address).is_err()).await;
    let settings = || Settings { connect_timeout: Duration::from_secs(2), ..Settings::default() };
    for (kubeconfig, cause, hint) in [
        (expired.kubeconfig("{token: s3cr3t}"), "certificate has expired", "renew"),
        (other.kubeconfig("{token: s3cr3t}"), "for another host name", "tls-server-name"),
        (wrong, "not signed by the certificate authority", "certificate-authority-data"),
        (page.kubeconfig("{token: s3cr3t}"), "no Kubernetes API server", "check `server`"),
        (closed.kubeconfig("{token: s3cr3t}"), "connection refused", "check that the server runs"),
    ] {
        let cluster = support::open(kubeconfig, settings()).await.cluster();
        let fault = get(&cluster).await.expect_err(cause);
        assert_eq!(fault.kind, FaultKind::Away, "{fault}");
        assert!(fault.text.contains(cause) && fault.text.contains(hint), "{fault}");
        assert!(!fault.text.contains("s3cr3t") && !fault.text.contains('\n'), "{fault}");
    }
}

#[tokio::test]
async fn lines_split_over_frames_arrive_whole_and_pages_as_one_body() {
    let server = Server::start(handler(|request| async move {
        if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
            endless(vec!["{\"type\":", "\"ADDED\"}\n{\"type\":\"MOD", "IFIED\"}\n"])
        } else {
            json(200, "x".repeat(300_000))
        }
    }))
    .await;
    let cluster = server.connect(Settings::default()).await.cluster();
    let mut lines = watch(&cluster).await.unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(lines.next().await.unwrap().unwrap(), "{\"type\":\"ADDED\"}");
    assert_eq!(lines.next().await.unwrap().unwrap(), "{\"type\":\"MODIFIED\"}");
    let body = page(&cluster).await.unwrap_or_else(|fault| panic!("{fault}")).whole().await;
    assert_eq!(body.map(|body| body.len()), Ok(300_000));
}

#[tokio::test]
async fn an_answer_over_our_limit_is_refused() {
    let server = Server::start(handler(|_| async { json(200, "x".repeat(2000)) })).await;
    let settings = Settings { page_limit_bytes: 1000, reply_limit_bytes: 1000, ..Settings::default() };
    let cluster = server.connect(settings).await.cluster();
    assert_eq!(get(&cluster).await.expect_err("too large").kind, FaultKind::TooLarge);
    let page = page(&cluster).await.unwrap_or_else(|fault| panic!("{fault}")).whole().await;
    assert_eq!(page.expect_err("too large").kind, FaultKind::TooLarge);
}

#[tokio::test]
async fn requests_keep_to_their_rate() {
    let server = Server::start(handler(|_| async { json(200, CONFIG_MAP) })).await;
    let rate = Some(Rate { per_second: 50.0, burst: 5 });
    let cluster = server.connect(Settings { rate, ..Settings::default() }).await.cluster();
    let begun = Instant::now();
    for _ in 0..20 {
        assert!(get(&cluster).await.is_ok());
    }
    // 3 of discovery and 20 calls, 5 of them at once: 18 at 20 ms each.
    assert!(begun.elapsed() >= Duration::from_millis(350), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn what_a_view_cannot_do_is_refused_before_it_is_sent() {
    let server = Server::start(handler(|_| async { json(200, CONFIG_MAP) })).await;
    let connection: Connection = server.connect(Settings::default()).await;
    let url = format!("https://{}/services/apiexport/root:espw/kubernetes", server.address);
    let view = connection.view(&url).unwrap_or_else(|fault| panic!("{fault}"));
    let apply = || call(Verb::Apply { body: Arc::from(&b"{}"[..]), manager: Name::new("m"), force: true });
    let one = view.cluster(&ClusterId::new("36xyox9rhpvrzmlo"));
    assert!(!one.abilities().apply && !one.abilities().whole);
    assert_eq!(one.call(apply()).await.expect_err("an apply through a view").kind, FaultKind::Bug);
    for call in [apply(), create(), call(Verb::Get)] {
        let fault = view.all().call(call).await.expect_err("one object among all workspaces");
        assert_eq!(fault.kind, FaultKind::Bug);
    }
    assert_eq!(server.requests(), [], "nothing was sent");
    let direct = connection.at("/clusters/root:org");
    assert!(direct.abilities().apply && direct.abilities().whole);
    let plain = connection.view("http://127.0.0.1:1/services/apiexport/x/y").err().map(|fault| fault.kind);
    assert_eq!(plain, Some(FaultKind::Invalid), "our credential does not leave TLS");
}

/// A proxy that takes `CONNECT` from whoever shows this authorization, and counts them.
async fn proxy(authorization: &'static str, served: Arc<AtomicUsize>) -> std::net::SocketAddr {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let served = served.clone();
            tokio::spawn(async move {
                let mut client = BufReader::new(client);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    assert_ne!(client.read_line(&mut head).await.unwrap(), 0, "{head}");
                }
                let target =
                    head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next()).unwrap().to_owned();
                if !head.contains(authorization) {
                    client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await.unwrap();
                    return;
                }
                served.fetch_add(1, Ordering::SeqCst);
                let mut upstream = tokio::net::TcpStream::connect(target).await.unwrap();
                client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                tokio::io::copy_bidirectional(&mut client, &mut upstream).await.ok();
            });
        }
    });
    address
}

#[tokio::test]
async fn the_kubeconfigs_proxy_is_used_and_one_that_refuses_us_is_named() {
    let server = Server::start(handler(|_| async { json(200, CONFIG_MAP) })).await;
    let served = Arc::new(AtomicUsize::new(0));
    // "user:opensesame"
    let proxy = proxy("Basic dXNlcjpvcGVuc2VzYW1l", served.clone()).await;
    let through = |credential: &str| {
        let path = server.kubeconfig("{token: t}");
        let text = std::fs::read_to_string(&path).unwrap();
        let entry = format!("proxy-url: 'http://{credential}{proxy}', certificate-authority-data:");
        std::fs::write(&path, text.replace("certificate-authority-data:", &entry)).unwrap();
        path
    };
    let cluster = support::open(through("user:opensesame@"), Settings::default()).await.cluster();
    let reply = get(&cluster).await;
    assert!(reply.is_ok(), "{reply:?}");
    assert_eq!((served.load(Ordering::SeqCst), server.accepted()), (1, 1), "HTTP/2 through one tunnel");

    let cluster = support::open(through("user:wrong@"), Settings::default()).await.cluster();
    let fault = get(&cluster).await.expect_err("the proxy refuses");
    assert_eq!(fault.kind, FaultKind::Away);
    assert!(
        fault.text.contains("the proxy does not let us through") && !fault.text.contains("wrong"),
        "{fault}"
    );
}

#[tokio::test]
async fn a_credential_of_a_plugin_is_renewed_before_it_ends_and_when_it_is_refused() {
    let valid = Arc::new(std::sync::Mutex::new("Bearer 1".to_owned()));
    let accepted = valid.clone();
    let server = Server::start(Arc::new(move |request| {
        let good = request.headers()[AUTHORIZATION].to_str().unwrap() == *accepted.lock().unwrap();
        let path = request.uri().path().to_owned();
        Box::pin(async move {
            match support::discovery(&path) {
                _ if !good => json(401, r#"{"kind":"Status","message":"Unauthorized","code":401}"#),
                Some(answer) => answer,
                None => json(200, CONFIG_MAP),
            }
        })
    }))
    .await;
    // Each run gives the next number; the lifetime is read from a file.
    let (count, life) = (server.file("count"), server.file("life"));
    std::fs::write(&count, "0").unwrap();
    std::fs::write(&life, "3600").unwrap();
    let script = format!(
        "n=$(($(cat {count})+1)); echo $n > {count}; end=$(date -u -d \"+$(cat {life}) seconds\" +%Y-%m-%dT%H:%M:%SZ); \
         echo \"{{\\\"status\\\":{{\\\"token\\\":\\\"$n\\\",\\\"expirationTimestamp\\\":\\\"$end\\\"}}}}\"",
        count = count.display(),
        life = life.display()
    );
    let plugin = server.file("plugin");
    std::fs::write(&plugin, script).unwrap();
    let user = format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, args: ['{}'], interactiveMode: Never}}}}",
        plugin.display()
    );
    let cluster = server.connect_as(&user, Settings::default()).await.cluster();
    for _ in 0..10 {
        assert!(get(&cluster).await.is_ok());
    }
    assert_eq!(std::fs::read_to_string(&count).unwrap().trim(), "1", "one run serves many requests");

    // Revoked early: the refusal makes us run it again, once. A second refusal within a second does not.
    let opened = Instant::now();
    until("the configuration may be read again", || opened.elapsed() > Duration::from_millis(1100)).await;
    *valid.lock().unwrap() = "Bearer 2".into();
    std::fs::write(&life, "1").unwrap();
    let reply = get(&cluster).await;
    assert!(reply.is_ok(), "{reply:?}");

    // That one lives for a second only: the next request comes with a new one, unasked.
    *valid.lock().unwrap() = "Bearer 3".into();
    std::fs::write(&life, "3600").unwrap();
    let renewed = Instant::now();
    until("the credential ends", || renewed.elapsed() > Duration::from_millis(1100)).await;
    assert!(get(&cluster).await.is_ok());
    let refused = server.requests().iter().filter(|(_, token)| token == "Bearer 2").count();
    assert_eq!(refused, 1, "the ended credential was not sent again");
}
