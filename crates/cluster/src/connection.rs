//! One server and one credential: requests are sent here, within limits of rate and number, and repeated
//! where that is safe.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, BodyStream};
use hyper::body::Incoming;
use mailboat_object::wire::{Fault, FaultKind, Reply};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::dial::Origin;
use crate::discovery::Alike;
use crate::fault::{self, Answer, Asked};
use crate::lines::{Limits, Lines};
use crate::pool::{Body, Lane, SendError, Slot};
use crate::rate::{Bucket, jittered};
use crate::request::Plain;
use crate::session::Session;
use crate::settings::Settings;
use crate::source::{ConfigError, Source};

/// One per server and credential; cheap to clone. Workspaces and views of it differ only by their path, see
/// [`Connection::at`] in `cluster`.
#[derive(Clone)]
pub struct Connection(Arc<Shared>);

struct Shared {
    source: Source,
    settings: Arc<Settings>,
    bucket: Bucket,
    in_flight: Arc<Semaphore>,
    watches: Arc<Semaphore>,
    state: Mutex<State>,
    /// The configuration is read by one at a time; the others take what that one read.
    renewing: Semaphore,
    alike: Arc<Alike>,
}

struct State {
    session: Arc<Session>,
    looked_at: Instant,
    renewed_at: Instant,
}

/// How a server is reached and known; without anybody's credential.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ServerAddress {
    /// Its URL, without a workspace or view.
    pub url: String,
    /// The certificates of the authority that signed its own, as PEM; `None`: those that the system trusts.
    pub certificate_authority_pem: Option<String>,
    /// The name that its certificate bears, if it is not the URL's.
    pub tls_server_name: Option<String>,
    /// Whether its certificate is not checked at all.
    pub insecure: bool,
}

/// Where below a server a request goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Location {
    /// Where the configuration points to.
    Own,
    /// At this path of the configured server, below whatever its URL has before `/clusters/…` or
    /// `/services/…`.
    Path(String),
    /// At this path of another server that trusts the same credential (a shard).
    Elsewhere(Origin, String),
}

/// So many calls in a row that are not answered in time, and whoever should answer them is away. An API server gives up what takes
/// long before we do, and says so.
const UNANSWERED_AT_MOST: u32 = 3;

/// How many calls to one place were not answered in time since it last answered anything. It takes connections, and their pings are
/// answered, as by a load balancer before a server that hangs.
#[derive(Default)]
pub(crate) struct Silence(AtomicU32);

impl Silence {
    fn is_broken(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Another call was not answered in time: what that means.
    fn goes_on(&self) -> FaultKind {
        let unanswered = self.0.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if unanswered < UNANSWERED_AT_MOST { FaultKind::Retry(None) } else { FaultKind::Away }
    }
}

/// A configuration is not read more often than this, however many requests are refused.
const RENEW_PAUSE: Duration = Duration::from_secs(1);
/// What is read of an answer that is not a success.
const FAULT_LIMIT_BYTES: usize = 64 << 10;

impl Connection {
    /// Reads the configuration. Nothing is sent yet, so a server that is away is no error here.
    pub async fn open(source: Source, settings: Settings) -> Result<Self, ConfigError> {
        let settings = Arc::new(settings);
        let session = Arc::new(Session::open(&source, &settings, None).await?);
        let now = Instant::now();
        Ok(Self(Arc::new(Shared {
            source,
            bucket: Bucket::new(settings.rate),
            in_flight: Arc::new(Semaphore::new(settings.in_flight)),
            watches: Arc::new(Semaphore::new(settings.watches)),
            state: Mutex::new(State { session, looked_at: now, renewed_at: now }),
            renewing: Semaphore::new(1),
            alike: Arc::default(),
            settings,
        })))
    }

    /// The configured server without path and credential, for messages.
    pub fn server(&self) -> String {
        self.lock().session.origin.to_string()
    }

    /// How the configured server is reached and known, for whoever writes a configuration for somebody else.
    pub fn address(&self) -> ServerAddress {
        let state = self.lock();
        let session = &state.session;
        let mut address = session.address.clone();
        address.url = format!("{}{}", session.origin, root_of(&session.base));
        address
    }

    /// The path of the workspace or view that the configuration points to, such as `/clusters/root:org`; empty for
    /// the server itself.
    pub fn path(&self) -> String {
        let base = self.base();
        base[root_of(&base).len()..].to_owned()
    }

    /// The catalogs of this server's workspaces and views.
    pub(crate) fn alike(&self) -> Arc<Alike> {
        Arc::clone(&self.0.alike)
    }

    /// How many TCP connections are open.
    pub fn open_links(&self) -> usize {
        self.lock().session.open_links()
    }

    /// Whether a URL may be sent our credential: over TLS, unless the configured server goes without.
    pub(crate) fn trusts(&self, origin: &Origin) -> bool {
        origin.is_tls() || !self.lock().session.origin.is_tls()
    }

    /// The path that the configured URL has.
    pub(crate) fn base(&self) -> String {
        self.lock().session.base.clone()
    }

    /// Sends a request about one object (or discovery), and reads its whole answer.
    pub(crate) async fn call(
        &self,
        to: &Location,
        plain: &Plain,
        asked: &Asked<'_>,
        silence: &Silence,
    ) -> Result<Reply, Fault> {
        let settings = &self.0.settings;
        let begun = Instant::now();
        let mut attempt = 1;
        loop {
            let tried = tokio::time::timeout(settings.call_timeout, self.call_once(to, plain, asked));
            let error = match tried.await {
                Ok(Ok(reply)) => {
                    silence.is_broken();
                    return Ok(reply);
                }
                Ok(Err(error)) => {
                    if !matches!(error.fault.kind, FaultKind::Away | FaultKind::Retry(None)) {
                        silence.is_broken();
                    }
                    error
                }
                Err(_) => {
                    let text = format!("{} did not answer within {:?}", self.server(), settings.call_timeout);
                    SendError { fault: Fault::new(silence.goes_on(), text), reached: true }
                }
            };
            let safe = !error.reached || plain.is_read();
            let Some(pause) = self.pause(&error.fault, attempt, begun).filter(|_| safe) else {
                return Err(error.fault);
            };
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    /// Begins a list page or a watch.
    pub(crate) async fn fetch(
        &self,
        to: &Location,
        plain: &Plain,
        asked: &Asked<'_>,
        watch: bool,
    ) -> Result<Lines, Fault> {
        let settings = &self.0.settings;
        let permits = if watch { &self.0.watches } else { &self.0.in_flight };
        let permit = permits.clone().acquire_owned().await.ok();
        let mut tries = 0;
        let (response, slot) = loop {
            tries += 1;
            match tokio::time::timeout(settings.fetch_timeout, self.exchange(Lane::Reads, to, plain)).await {
                Ok(Ok(answered)) => break answered,
                // A connection that was closed under us is replaced at once. All else is for the follower,
                // which has its own patience.
                Ok(Err(error)) if !error.reached && error.fault.kind != FaultKind::Away && tries < 3 => {}
                Ok(Err(error)) => return Err(error.fault),
                Err(_) => {
                    let text = format!(
                        "{} did not begin to answer within {:?}",
                        self.server(),
                        settings.fetch_timeout
                    );
                    return Err(Fault::new(FaultKind::Retry(None), text));
                }
            }
        };
        if !is_json_success(&response) {
            let read = read_fault(response, asked);
            return Err(self.told(tokio::time::timeout(settings.fetch_timeout, read).await.unwrap_or_else(
                |_| Fault::new(FaultKind::Retry(None), "the server stopped in the middle of an answer"),
            )));
        }
        let limits = Limits {
            line_bytes: settings.line_limit_bytes,
            whole_bytes: settings.page_limit_bytes,
            pause: settings.fetch_timeout,
        };
        let connected_at = slot.opened_at();
        Ok(Lines::new(pieces(response.into_body(), slot, permit, self.server()), limits).over(connected_at))
    }

    /// What we know of a refusal that the server does not say.
    fn told(&self, fault: Fault) -> Fault {
        let ended = self.lock().session.certificate_ended();
        match (fault.kind, ended) {
            (FaultKind::Unauthorized, Some(ended)) => Fault::new(
                fault.kind,
                format!(
                    "the server does not accept our client certificate (401): it expired at {ended}; renew it in the \
                     kubeconfig, which is read again without a restart"
                ),
            ),
            _ => fault,
        }
    }

    async fn call_once(&self, to: &Location, plain: &Plain, asked: &Asked<'_>) -> Result<Reply, SendError> {
        let _permit = self.0.in_flight.acquire().await.ok();
        let (response, slot) = self.exchange(Lane::Calls, to, plain).await?;
        let status = response.status();
        if !is_json_success(&response) {
            let fault = self.told(read_fault(response, asked).await);
            return Err(SendError { fault, reached: true });
        }
        let warnings = warnings(response.headers());
        let limits = Limits {
            line_bytes: 0,
            whole_bytes: self.0.settings.reply_limit_bytes,
            pause: self.0.settings.call_timeout,
        };
        let lines = Lines::new(pieces(response.into_body(), slot, None, self.server()), limits);
        let body = lines.whole().await.map_err(|fault| SendError { fault, reached: true })?;
        Ok(Reply {
            body: Vec::from(body).into_boxed_slice(),
            created: status == StatusCode::CREATED,
            warnings,
        })
    }

    /// Sends a request with the present credential; once more with a new one if that is refused.
    async fn exchange(
        &self,
        lane: Lane,
        to: &Location,
        plain: &Plain,
    ) -> Result<(Response<Incoming>, Slot), SendError> {
        let session = self.session().await;
        self.0.bucket.turn().await;
        let (response, slot) = match self.send(lane, to, plain, &session).await {
            Err(error) if error.fault.kind == FaultKind::Away => {
                // Perhaps the server has moved, or has a new authority, and the files say so already.
                let moved = if session.is_outdated() { Box::pin(self.renew(&session)).await } else { None };
                match moved {
                    Some(session) => return self.send(lane, to, plain, &session).await,
                    None => return Err(error),
                }
            }
            answered => answered?,
        };
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok((response, slot));
        }
        match Box::pin(self.renew(&session)).await {
            Some(renewed) if !renewed.says_the_same_as(&session) => {
                self.send(lane, to, plain, &renewed).await
            }
            _ => Ok((response, slot)),
        }
    }

    async fn send(
        &self,
        lane: Lane,
        to: &Location,
        plain: &Plain,
        session: &Session,
    ) -> Result<(Response<Incoming>, Slot), SendError> {
        let (origin, path) = to.resolve(session);
        let request = build(&origin, &path, plain, &session.headers)
            .map_err(|fault| SendError { fault, reached: false })?;
        session.pool(&origin, &self.0.settings).send(lane, request).await
    }

    /// The present session, renewed if its credential ends or its files have changed.
    async fn session(&self) -> Arc<Session> {
        let now = Instant::now();
        let (session, look) = {
            let mut state = self.lock();
            let look = now.saturating_duration_since(state.looked_at) >= self.0.settings.recheck;
            if look {
                state.looked_at = now;
            }
            (state.session.clone(), look)
        };
        if session.is_ending() || (look && session.is_outdated()) {
            return Box::pin(self.renew(&session)).await.unwrap_or(session);
        }
        session
    }

    /// Reads the configuration again, unless somebody did since `seen`. `None`: there is nothing newer. A
    /// file that is just being written is not understood; then the old session serves on. Boxed by whoever waits
    /// for it: it is rare and large, and every request would have room for it.
    async fn renew(&self, seen: &Session) -> Option<Arc<Session>> {
        let _turn = self.0.renewing.acquire().await.ok();
        let current = {
            let mut state = self.lock();
            if state.session.number != seen.number {
                return Some(state.session.clone());
            }
            let now = Instant::now();
            let pause = now.saturating_duration_since(state.renewed_at) < RENEW_PAUSE;
            if pause && !state.session.is_outdated() {
                return None;
            }
            state.renewed_at = now;
            state.session.clone()
        };
        match Session::open(&self.0.source, &self.0.settings, Some(&current)).await {
            Ok(session) => {
                let session = Arc::new(session);
                self.lock().session = session.clone();
                Some(session)
            }
            Err(error) => {
                tracing::warn!(%error, "the configuration cannot be read again; the old one stays in use");
                None
            }
        }
    }

    /// How long to wait before another try; `None`: no more.
    fn pause(&self, fault: &Fault, attempt: u32, begun: Instant) -> Option<Duration> {
        let retry = &self.0.settings.retry;
        let asked_for = match fault.kind {
            FaultKind::Retry(after) => after,
            FaultKind::Away => None,
            _ => return None,
        };
        let pause = jittered(retry.first_pause * 2_u32.saturating_pow(attempt - 1))
            .max(asked_for.unwrap_or_default());
        (attempt < retry.attempts && begun.elapsed() + pause <= retry.total).then_some(pause)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connection to {}", self.server())
    }
}

impl Location {
    fn resolve(&self, session: &Session) -> (Origin, String) {
        match self {
            Self::Own => (session.origin.clone(), session.base.clone()),
            Self::Path(path) => (session.origin.clone(), format!("{}{path}", root_of(&session.base))),
            Self::Elsewhere(origin, path) => (origin.clone(), path.clone()),
        }
    }
}

/// A URL's path without the workspace or view at its end: kcp behind a gateway may stand below a path.
fn root_of(base: &str) -> &str {
    let end = ["/clusters/", "/services/"].iter().filter_map(|mark| base.find(mark)).min();
    &base[..end.unwrap_or(base.len())]
}

fn build(origin: &Origin, path: &str, plain: &Plain, headers: &HeaderMap) -> Result<Request<Body>, Fault> {
    let uri = Uri::builder()
        .scheme(origin.scheme.clone())
        .authority(origin.authority.clone())
        .path_and_query(format!("{path}{}", plain.target))
        .build();
    let uri =
        uri.map_err(|error| Fault::new(FaultKind::Bug, format!("the request has no valid path: {error}")))?;
    let mut request = Request::new(Body::new(plain.body.clone()));
    *request.method_mut() = plain.method.clone();
    *request.uri_mut() = uri;
    *request.headers_mut() = headers.clone();
    request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static(plain.accept));
    if let Some(content_type) = plain.content_type {
        request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    Ok(request)
}

/// The pieces of a body; the stream and the permit are given back with its end.
fn pieces(
    body: Incoming,
    slot: Slot,
    permit: Option<OwnedSemaphorePermit>,
    server: String,
) -> futures::stream::BoxStream<'static, Result<Bytes, Fault>> {
    let held = (slot, permit);
    BodyStream::new(body)
        .filter_map(move |frame| {
            let _held = &held;
            let piece = match frame {
                Ok(frame) => frame.into_data().ok().map(Ok),
                Err(error) => Some(Err(fault::broken(&server, &error))),
            };
            std::future::ready(piece)
        })
        .boxed()
}

fn content_type(headers: &HeaderMap) -> &str {
    headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn is_json_success(response: &Response<Incoming>) -> bool {
    response.status().is_success() && content_type(response.headers()).starts_with(crate::request::JSON)
}

async fn read_fault(response: Response<Incoming>, asked: &Asked<'_>) -> Fault {
    let (head, body) = response.into_parts();
    let content_type = content_type(&head.headers);
    if head.status.is_success() {
        return fault::no_api_server(head.status, content_type);
    }
    let retry_after =
        head.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let limited = http_body_util::Limited::new(body, FAULT_LIMIT_BYTES).collect().await;
    // What cannot be read is judged by its status alone.
    let body = limited.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let answer = Answer {
        status: head.status,
        content_type,
        retry_after: retry_after.map(Duration::from_secs),
        body: &body,
    };
    fault::classify(&answer, asked)
}

/// The texts of `Warning` headers: `299 - "text"`.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let texts = headers.get_all(header::WARNING).iter().filter_map(|value| {
        let quoted = value.to_str().ok()?.splitn(3, ' ').nth(2)?;
        let text = quoted.strip_prefix('"')?.strip_suffix('"')?;
        Some(text.replace("\\\"", "\"").replace("\\\\", "\\"))
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_path_replaces_the_one_of_the_kubeconfig_and_nothing_before_it() {
        for (base, root) in [
            ("", ""),
            ("/clusters/root", ""),
            ("/clusters/root:org:ws", ""),
            ("/services/apiexport/root/x/clusters/*", ""),
            ("/gateway/clusters/root", "/gateway"),
            ("/plain", "/plain"),
        ] {
            assert_eq!(root_of(base), root, "{base}");
        }
    }

    #[tokio::test]
    async fn a_connection_says_where_it_leads_and_nothing_of_its_credential() {
        let certificate = rcgen::generate_simple_self_signed(vec!["kcp".to_owned()]).unwrap().cert;
        let mut config =
            kube::Config::new("https://kcp.example.org:6443/gateway/clusters/root:org".parse().unwrap());
        config.root_cert = Some(vec![certificate.der().to_vec()]);
        config.tls_server_name = Some("kcp".to_owned());
        config.auth_info.token = Some("s3cr3t".to_owned().into());
        let source = Source::Given(Box::new(config));
        let connection = Connection::open(source, Settings::default()).await.unwrap();
        let address = connection.address();
        assert_eq!(address.url, "https://kcp.example.org:6443/gateway");
        assert_eq!(connection.path(), "/clusters/root:org");
        let pem = address.certificate_authority_pem.clone().unwrap_or_default();
        assert_eq!(pem, certificate.pem().replace("\r\n", "\n"));
        assert_eq!((address.tls_server_name.as_deref(), address.insecure), (Some("kcp"), false));
        assert!(!format!("{address:?}").contains("s3cr3t"));
    }

    #[test]
    fn a_warning_is_its_text() {
        let mut headers = HeaderMap::new();
        headers.append(header::WARNING, HeaderValue::from_static(r#"299 - "unknown field \"spec.sail\"""#));
        headers.append(header::WARNING, HeaderValue::from_static(r#"299 - "v1beta1 is deprecated""#));
        headers.append(header::WARNING, HeaderValue::from_static("odd"));
        assert_eq!(warnings(&headers), ["unknown field \"spec.sail\"", "v1beta1 is deprecated"]);
    }
}
