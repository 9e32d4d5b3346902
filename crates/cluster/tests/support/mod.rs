//! A small API server in this process, which behaves as badly as a test asks it to.

#![allow(dead_code, reason = "each test program uses its own part of this")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "support for tests")]

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use mailboat_cluster::{Connection, Settings, Source};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub(crate) type Answer = Response<BoxBody<Bytes, Infallible>>;
pub(crate) type Handler =
    Arc<dyn Fn(Request<Incoming>) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// A certificate authority and a server certificate signed by it.
pub(crate) struct Certificates {
    pub(crate) authority_pem: String,
    pub(crate) server: Arc<rustls::ServerConfig>,
    pub(crate) streams: u32,
}

/// What a server certificate is to be like.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wish {
    pub(crate) expired: bool,
    pub(crate) for_other_host: bool,
    pub(crate) http1_only: bool,
    /// Streams on one connection; none: as kube-apiserver does.
    pub(crate) streams: Option<u32>,
}

pub(crate) fn certificates(wish: Wish) -> Certificates {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let host = if wish.for_other_host { "elsewhere.example.com" } else { "127.0.0.1" };
    let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
    if wish.expired {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    }
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let mut server = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .unwrap();
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    if !wish.http1_only {
        server.alpn_protocols.insert(0, b"h2".to_vec());
    }
    Certificates {
        authority_pem: authority.pem(),
        server: Arc::new(server),
        streams: wish.streams.unwrap_or(SERVER_STREAMS),
    }
}

/// What all connections of a server together have seen.
#[derive(Default)]
pub(crate) struct Seen {
    /// Connections accepted so far.
    pub(crate) accepted: AtomicUsize,
    /// For each connection: streams open now, and the most at once.
    pub(crate) streams: Mutex<Vec<(usize, usize)>>,
    /// Method, path and query, and authorization of every request.
    pub(crate) requests: Mutex<Vec<(String, String)>>,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Seen>,
    authority_pem: String,
    graceful: watch::Sender<u64>,
    directory: tempfile::TempDir,
    accepting: tokio::task::JoinHandle<()>,
}

/// How many streams the server allows on one connection, as kube-apiserver does.
pub(crate) const SERVER_STREAMS: u32 = 100;

impl Server {
    pub(crate) async fn start(handler: Handler) -> Self {
        Self::start_with(handler, certificates(Wish::default())).await
    }

    pub(crate) async fn start_with(handler: Handler, certificates: Certificates) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let (graceful, told) = watch::channel(0);
        let acceptor = (tokio_rustls::TlsAcceptor::from(certificates.server), certificates.streams);
        let shared = seen.clone();
        let accepting = tokio::spawn(async move {
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                let number = shared.accepted.fetch_add(1, Ordering::SeqCst);
                shared.streams.lock().unwrap().push((0, 0));
                tokio::spawn(serve(
                    tcp,
                    acceptor.clone(),
                    handler.clone(),
                    shared.clone(),
                    number,
                    told.clone(),
                ));
            }
        });
        let directory = tempfile::tempdir().unwrap();
        Self { address, seen, authority_pem: certificates.authority_pem, graceful, directory, accepting }
    }

    /// Takes every open connection out of service with a GOAWAY; new ones are accepted.
    pub(crate) fn go_away(&self) {
        self.graceful.send_modify(|times| *times += 1);
    }

    /// Refuses new connections.
    pub(crate) fn close(&self) {
        self.accepting.abort();
    }

    pub(crate) fn accepted(&self) -> usize {
        self.seen.accepted.load(Ordering::SeqCst)
    }

    /// The most streams at once on each connection.
    pub(crate) fn most_streams(&self) -> Vec<usize> {
        self.seen.streams.lock().unwrap().iter().map(|(_, most)| *most).collect()
    }

    pub(crate) fn open_streams(&self) -> usize {
        self.seen.streams.lock().unwrap().iter().map(|(now, _)| *now).sum()
    }

    pub(crate) fn requests(&self) -> Vec<(String, String)> {
        self.seen.requests.lock().unwrap().clone()
    }

    /// A file in this server's own directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a kubeconfig whose user is this YAML.
    pub(crate) fn kubeconfig(&self, user: &str) -> PathBuf {
        use base64::Engine as _;
        let authority = base64::engine::general_purpose::STANDARD.encode(&self.authority_pem);
        let text = format!(
            "{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}],
              clusters: [{{name: c, cluster: {{server: 'https://{}', certificate-authority-data: {authority}}}}}],
              users: [{{name: u, user: {user}}}]}}",
            self.address
        );
        let path = self.file("kubeconfig");
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) async fn connect(&self, settings: Settings) -> Connection {
        self.connect_as("{token: t}", settings).await
    }

    pub(crate) async fn connect_as(&self, user: &str, settings: Settings) -> Connection {
        open(self.kubeconfig(user), settings).await
    }
}

pub(crate) async fn open(kubeconfig: PathBuf, settings: Settings) -> Connection {
    let source = Source::Kubeconfig { path: Some(kubeconfig), context: None };
    Connection::open(source, settings).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn serve(
    tcp: TcpStream,
    (acceptor, streams): (tokio_rustls::TlsAcceptor, u32),
    handler: Handler,
    seen: Arc<Seen>,
    number: usize,
    mut told: watch::Receiver<u64>,
) {
    let Ok(tls) = acceptor.accept(tcp).await else { return };
    let service = service_fn(move |request: Request<Incoming>| {
        let authorization =
            request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
        let line = format!("{} {}", request.method(), request.uri().path_and_query().unwrap());
        seen.requests.lock().unwrap().push((line, authorization.unwrap_or_default()));
        let open = OpenStream::new(seen.clone(), number);
        let answer = handler(request);
        async move { Ok::<_, Infallible>(answer.await.map(|body| holding(body, open))) }
    });
    let mut builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(streams).timer(TokioTimer::new());
    let connection = builder.serve_connection(TokioIo::new(tls), service);
    tokio::pin!(connection);
    told.mark_unchanged();
    loop {
        tokio::select! {
            _ = connection.as_mut() => return,
            Ok(()) = told.changed() => connection.as_mut().graceful_shutdown(),
        }
    }
}

/// Counts a stream for as long as its body lives.
struct OpenStream(Arc<Seen>, usize);

impl OpenStream {
    fn new(seen: Arc<Seen>, number: usize) -> Self {
        {
            let mut streams = seen.streams.lock().unwrap();
            let (now, most) = &mut streams[number];
            *now += 1;
            *most = (*most).max(*now);
        }
        Self(seen, number)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.streams.lock().unwrap()[self.1].0 -= 1;
    }
}

fn holding(body: BoxBody<Bytes, Infallible>, open: OpenStream) -> BoxBody<Bytes, Infallible> {
    body.map_frame(move |frame| {
        let _held = &open;
        frame
    })
    .boxed()
}

pub(crate) fn json(status: u16, body: impl Into<Bytes>) -> Answer {
    with_type(status, "application/json", body)
}

pub(crate) fn with_type(status: u16, content_type: &str, body: impl Into<Bytes>) -> Answer {
    Response::builder()
        .status(StatusCode::from_u16(status).unwrap())
        .header("content-type", content_type)
        .body(Full::new(body.into()).boxed())
        .unwrap()
}

/// A body that comes in these pieces and then stays open.
pub(crate) fn endless(pieces: Vec<&'static str>) -> Answer {
    let pieces =
        futures::stream::iter(pieces).map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes()))));
    let body = BodyExt::boxed(StreamBody::new(pieces.chain(futures::stream::pending())));
    Response::builder().header("content-type", "application/json").body(body).unwrap()
}

pub(crate) const CONFIG_MAP: &str =
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"menu","namespace":"till"}}"#;

/// Discovery of an API server with ConfigMaps only; `None` for other paths.
pub(crate) fn discovery(path: &str) -> Option<Answer> {
    Some(match path {
        "/api" => json(200, r#"{"kind":"APIVersions","versions":["v1"]}"#),
        "/apis" => json(200, r#"{"kind":"APIGroupList","groups":[]}"#),
        "/api/v1" => json(
            200,
            r#"{"kind":"APIResourceList","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,
                "verbs":["create","delete","get","list","patch","update","watch"]}]}"#,
        ),
        _ => return None,
    })
}

pub(crate) fn handler<F, R>(answer: F) -> Handler
where
    F: Fn(Request<Incoming>) -> R + Send + Sync + 'static,
    R: Future<Output = Answer> + Send + 'static,
{
    Arc::new(move |request| match discovery(request.uri().path()) {
        Some(known) => Box::pin(async move { known }),
        None => Box::pin(answer(request)),
    })
}

/// Waits for a condition, with a limit.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = tokio::time::Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(tokio::time::Instant::now() < limit, "not within 20 s: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
