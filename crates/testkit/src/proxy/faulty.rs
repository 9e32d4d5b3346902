//! A server in front of an API server that answers some requests by itself.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::header::{CONNECTION, HOST, HeaderName, TRANSFER_ENCODING, UPGRADE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use super::rules::{Rule, RuleId, Rules};
use super::{kubeconfig_redirected, redirected, split_url};
use crate::access::{Access, Credential};
use crate::error::{Error, Result};

/// How many requests are remembered; older ones are forgotten first.
const SEEN_LIMIT: usize = 10_000;

type AnyBody = BoxBody<Bytes, hyper::Error>;

/// A server on 127.0.0.1 that passes requests on to an API server over HTTP/1.1 or HTTP/2, bodies and watches as
/// they come, and answers those by itself for which there is a [`Rule`]. Dropping it ends it.
///
/// Its certificate is signed by an authority of its own, so clients need [`FaultyServer::access`] or
/// [`FaultyServer::kubeconfig_via`]. Tokens pass through. A client certificate cannot: requests without a token are
/// made with the certificate of the access that the server was started with, if it has one. Upgraded connections
/// (exec, port-forward) are not passed on.
#[derive(Debug)]
pub struct FaultyServer {
    address: SocketAddr,
    ca_pem: String,
    shared: Arc<Shared>,
    acceptor: JoinHandle<()>,
}

/// A request that a [`FaultyServer`] saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRequest {
    /// The version of HTTP that it came in.
    pub version: Version,
    /// Its method.
    pub method: Method,
    /// Its path, with the query.
    pub path: String,
    /// What was answered.
    pub status: StatusCode,
    /// Whether a rule answered, and not the API server.
    pub by_rule: bool,
}

#[derive(Debug)]
struct Shared {
    scheme: Scheme,
    authority: Authority,
    client: Client<HttpsConnector<HttpConnector>, Incoming>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rules: Rules,
    seen: VecDeque<SeenRequest>,
}

impl FaultyServer {
    /// Starts a server in front of the one that `access` leads to.
    pub async fn in_front_of(access: &Access) -> Result<Self> {
        let malformed = |why: String| Error::Malformed { what: access.url.clone(), why };
        let (scheme, authority, _) = split_url(&access.url)?;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(client_tls(access)?)
            .https_or_http()
            .enable_all_versions()
            .build();
        let shared = Arc::new(Shared {
            scheme: scheme.parse().map_err(|_| malformed(format!("{scheme:?} is no scheme")))?,
            authority: authority.parse().map_err(|_| malformed(format!("{authority:?} is no host")))?,
            client: Client::builder(TokioExecutor::new()).build(connector),
            state: Mutex::default(),
        });
        let (ca_pem, tls) = serving_tls()?;
        let listening = |source| Error::Io { doing: "listening on 127.0.0.1".to_owned(), source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(listening)?;
        let address = listener.local_addr().map_err(listening)?;
        let acceptor = tokio::spawn(accept(Arc::clone(&shared), listener, TlsAcceptor::from(Arc::new(tls))));
        Ok(Self { address, ca_pem, shared, acceptor })
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate of the authority that signed this server's.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// The same access, by way of this server.
    pub fn access(&self, access: &Access) -> Result<Access> {
        let credential = match &access.credential {
            Credential::Certificate(_) => Credential::Anonymous,
            other => other.clone(),
        };
        Ok(Access {
            url: redirected(&access.url, self.address)?,
            ca_pem: Some(self.ca_pem.clone()),
            credential,
        })
    }

    /// Writes, beside `kubeconfig`, one that is the same but leads every cluster through here; gives its path.
    pub fn kubeconfig_via(&self, kubeconfig: &Path) -> Result<PathBuf> {
        kubeconfig_redirected(kubeconfig, self.address, Some(&self.ca_pem))
    }

    /// Puts a rule in force, after those that are already.
    pub fn add(&self, rule: Rule) -> RuleId {
        self.shared.state().rules.add(rule, Instant::now())
    }

    /// Takes a rule out of force.
    pub fn remove(&self, rule: RuleId) {
        self.shared.state().rules.remove(rule);
    }

    /// Takes every rule out of force.
    pub fn heal(&self) {
        self.shared.state().rules.remove_all();
    }

    /// How many requests a rule has answered.
    pub fn applied(&self, rule: RuleId) -> u64 {
        self.shared.state().rules.applied(rule)
    }

    /// The requests that were answered so far, in the order of the answers; the last 10,000 of them.
    pub fn seen(&self) -> Vec<SeenRequest> {
        self.shared.state().seen.iter().cloned().collect()
    }
}

impl Drop for FaultyServer {
    fn drop(&mut self) {
        // The connections belong to the acceptor, and end with it.
        self.acceptor.abort();
    }
}

async fn accept(shared: Arc<Shared>, listener: TcpListener, tls: TlsAcceptor) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(serve(Arc::clone(&shared), tls.clone(), stream));
                }
            }
        }
    }
}

// A connection that fails concerns its client alone, which sees it for itself.
async fn serve(shared: Arc<Shared>, tls: TlsAcceptor, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let Ok(stream) = tls.accept(stream).await else { return };
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(shared.answer(request).await) }
    });
    let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<AnyBody> {
        let (version, method) = (request.version(), request.method().clone());
        let path = request.uri().path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
        let answered_by_rule = self.state().rules.answer(&request, Instant::now());
        let by_rule = answered_by_rule.is_some();
        let response = match answered_by_rule {
            Some(response) => {
                // What is left unread of a request would end an HTTP/1.1 connection.
                let _ = request.into_body().collect().await;
                response.map(whole)
            }
            None => self.pass_on(request).await,
        };
        self.state().remember(SeenRequest { version, method, path, status: response.status(), by_rule });
        response
    }

    async fn pass_on(&self, request: Request<Incoming>) -> Response<AnyBody> {
        let (mut parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().cloned();
        let uri = Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(path.unwrap_or_else(|| PathAndQuery::from_static("/")))
            .build();
        let Ok(uri) = uri else { return bad_gateway("the request's path cannot be passed on") };
        parts.uri = uri;
        // The version and these headers speak of the connection to us, not of the one to the server.
        parts.version = Version::HTTP_11;
        parts.headers.remove(HOST);
        remove_connection_headers(&mut parts.headers);
        match self.client.request(Request::from_parts(parts, body)).await {
            Ok(mut response) => {
                *response.version_mut() = Version::HTTP_11;
                remove_connection_headers(response.headers_mut());
                response.map(Incoming::boxed)
            }
            Err(error) => bad_gateway(&error.to_string()),
        }
    }
}

impl State {
    fn remember(&mut self, request: SeenRequest) {
        if self.seen.len() == SEEN_LIMIT {
            self.seen.pop_front();
        }
        self.seen.push_back(request);
    }
}

fn remove_connection_headers(headers: &mut HeaderMap) {
    for name in [CONNECTION, TRANSFER_ENCODING, UPGRADE, HeaderName::from_static("keep-alive")] {
        headers.remove(name);
    }
}

fn bad_gateway(why: &str) -> Response<AnyBody> {
    let mut response = Response::new(whole(Bytes::from(format!("the server behind the testbed's: {why}\n"))));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}

fn whole(body: Bytes) -> AnyBody {
    Full::new(body).map_err(|never| match never {}).boxed()
}

/// An authority of this server's own, and the certificate that it signed for 127.0.0.1.
pub(super) fn serving_tls() -> Result<(String, ServerConfig)> {
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "mailboat testbed faulty server");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate()?;
    let ca_pem = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);

    let mut params = CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()])?;
    params.distinguished_name.push(DnType::CommonName, "127.0.0.1");
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?;
    let private_key =
        PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).map_err(|why| bad_tls(&why))?;
    let mut tls = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|why| bad_tls(&why))?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private_key)
        .map_err(|why| bad_tls(&why))?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok((ca_pem, tls))
}

fn client_tls(access: &Access) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let ca_pem = access.ca_pem.as_deref().unwrap_or_default();
    for certificate in CertificateDer::pem_slice_iter(ca_pem.as_bytes()) {
        let certificate = certificate.map_err(|why| bad_tls(&why))?;
        roots.add(certificate).map_err(|why| bad_tls(&why))?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|why| bad_tls(&why))?
        .with_root_certificates(roots);
    let Credential::Certificate(user) = &access.credential else { return Ok(builder.with_no_client_auth()) };
    let chain: std::result::Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(user.certificate_pem.as_bytes()).collect();
    let key = PrivateKeyDer::from_pem_slice(user.key_pem.as_bytes()).map_err(|why| bad_tls(&why))?;
    builder.with_client_auth_cert(chain.map_err(|why| bad_tls(&why))?, key).map_err(|why| bad_tls(&why))
}

fn bad_tls(why: &dyn std::fmt::Display) -> Error {
    Error::Malformed { what: "certificates of the faulty server".to_owned(), why: why.to_string() }
}
