//! Open connections to one server, and who uses which.
//!
//! Calls and reads have connections of their own, so that a write never waits behind watches. On HTTP/2 a
//! connection carries many streams, filled up before the next one is opened; on HTTP/1.1 it carries one.
//! A connection that the server closes or takes out of service (GOAWAY) is replaced; requests that provably
//! never reached the server are told apart from those that may have.

use std::collections::VecDeque;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{Request, Response, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use mailboat_object::wire::{Fault, FaultKind};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::dial::{Dialed, Dialer, Origin};
use crate::fault;
use crate::settings::Settings;

/// A request's body.
pub(crate) type Body = Full<Bytes>;

/// What a connection is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lane {
    /// Requests about one object, and discovery.
    Calls,
    /// Lists and watches.
    Reads,
}

/// A request that got no answer.
#[derive(Debug)]
pub(crate) struct SendError {
    pub(crate) fault: Fault,
    /// The server may have acted on it.
    pub(crate) reached: bool,
}

/// The connections to one server.
pub(crate) struct Pool {
    origin: Origin,
    dialer: Arc<Dialer>,
    settings: Arc<Settings>,
    calls: Links,
    reads: Links,
}

/// The connections of one lane.
struct Links {
    state: Mutex<LinksState>,
    /// One connection is opened at a time: who waits may find room on the one just opened.
    dialing: Semaphore,
}

#[derive(Default)]
struct LinksState {
    links: VecDeque<Arc<Link>>,
    /// The last connection that could not be opened, for those who waited meanwhile.
    failed: Option<(Instant, Fault)>,
}

/// One open connection.
struct Link {
    sender: Sender,
    streams: AtomicUsize,
    /// How many streams the server allows, as far as it has said.
    allowed: Arc<AtomicUsize>,
    opened_at: Instant,
}

enum Sender {
    Http2(http2::SendRequest<Body>),
    /// Taken out while a request is being sent.
    Http1(Mutex<Option<http1::SendRequest<Body>>>),
}

/// The right to one stream of a connection; held until the answer's body has been read.
pub(crate) struct Slot(Arc<Link>);

/// Connections without any stream that are kept open for what may come.
const SPARE_LINKS: usize = 2;

impl Pool {
    pub(crate) fn new(origin: Origin, dialer: Arc<Dialer>, settings: Arc<Settings>) -> Self {
        Self { origin, dialer, settings, calls: Links::new(), reads: Links::new() }
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn send(
        &self,
        lane: Lane,
        request: Request<Body>,
    ) -> Result<(Response<Incoming>, Slot), SendError> {
        let slot = self.slot(lane).await.map_err(|fault| SendError { fault, reached: false })?;
        let response = slot.0.send(&self.origin, request).await?;
        Ok((response, slot))
    }

    /// How many connections are open.
    pub(crate) fn open_links(&self) -> usize {
        self.calls.lock().links.len() + self.reads.lock().links.len()
    }

    async fn slot(&self, lane: Lane) -> Result<Slot, Fault> {
        let links = match lane {
            Lane::Calls => &self.calls,
            Lane::Reads => &self.reads,
        };
        let limit = self.settings.streams_per_connection;
        if let Some(slot) = links.free(limit) {
            return Ok(slot);
        }
        let asked = Instant::now();
        // The semaphore is never closed; were it, dialing without it would be right as well.
        let _turn = links.dialing.acquire().await.ok();
        if let Some(slot) = links.free(limit) {
            return Ok(slot);
        }
        if let Some((_, fault)) = links.lock().failed.as_ref().filter(|(at, _)| *at >= asked) {
            return Err(fault.clone());
        }
        // Apart, because it is rare and large: every request would have room for it.
        match Box::pin(self.open()).await {
            Ok(link) => {
                let link = Arc::new(link);
                let slot = Slot::take(&link);
                links.lock().links.push_back(link);
                Ok(slot)
            }
            Err(fault) => {
                links.lock().failed = Some((Instant::now(), fault.clone()));
                Err(fault)
            }
        }
    }

    async fn open(&self) -> Result<Link, Fault> {
        let dialed = self.dialer.dial(&self.origin).await?;
        tracing::debug!(server = %self.origin, http2 = dialed.http2, "connected");
        let opened = if dialed.http2 { self.open_http2(dialed).await } else { open_http1(dialed).await };
        opened.map_err(|error| fault::unreachable(&self.origin.to_string(), &error))
    }

    async fn open_http2(&self, dialed: Dialed) -> hyper::Result<Link> {
        let (sender, mut connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(self.settings.ping_interval)
            .keep_alive_timeout(self.settings.ping_timeout)
            .keep_alive_while_idle(true)
            .handshake::<_, Body>(dialed.wire)
            .await?;
        let allowed = Arc::new(AtomicUsize::new(usize::MAX));
        let said = allowed.clone();
        let origin = self.origin.to_string();
        tokio::spawn(async move {
            let ended = std::future::poll_fn(|context| {
                said.store(connection.current_max_send_streams(), Ordering::Relaxed);
                Pin::new(&mut connection).poll(context)
            });
            match ended.await {
                Ok(()) => tracing::debug!(server = origin, "connection closed"),
                Err(error) => tracing::debug!(server = origin, %error, "connection broke"),
            }
        });
        Ok(Link {
            sender: Sender::Http2(sender),
            streams: AtomicUsize::new(0),
            allowed,
            opened_at: Instant::now(),
        })
    }
}

async fn open_http1(dialed: Dialed) -> hyper::Result<Link> {
    let (sender, connection) = http1::Builder::new().handshake::<_, Body>(dialed.wire).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "connection broke");
        }
    });
    Ok(Link {
        sender: Sender::Http1(Mutex::new(Some(sender))),
        streams: AtomicUsize::new(0),
        allowed: Arc::new(AtomicUsize::new(1)),
        opened_at: Instant::now(),
    })
}

impl Links {
    fn new() -> Self {
        Self { state: Mutex::default(), dialing: Semaphore::new(1) }
    }

    fn lock(&self) -> MutexGuard<'_, LinksState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room on the fullest connection that has some, so that few are open. Forgets closed connections and
    /// idle ones beyond the spare.
    fn free(&self, limit: usize) -> Option<Slot> {
        let mut state = self.lock();
        let mut idle = 0;
        state.links.retain(|link| {
            idle += usize::from(link.streams() == 0);
            !link.is_closed() && (link.streams() > 0 || idle <= SPARE_LINKS)
        });
        let roomy = state.links.iter().filter(|link| link.streams() < link.capacity(limit));
        roomy.max_by_key(|link| link.streams()).map(Slot::take)
    }
}

impl Link {
    fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    fn capacity(&self, limit: usize) -> usize {
        self.allowed.load(Ordering::Relaxed).min(limit).max(1)
    }

    fn is_closed(&self) -> bool {
        match &self.sender {
            Sender::Http2(sender) => sender.is_closed(),
            Sender::Http1(sender) => {
                let sender = sender.lock().unwrap_or_else(PoisonError::into_inner);
                // Without a sender it is in use, or whoever used it gave it up.
                match &*sender {
                    Some(sender) => sender.is_closed(),
                    None => self.streams() == 0,
                }
            }
        }
    }

    async fn send(&self, origin: &Origin, request: Request<Body>) -> Result<Response<Incoming>, SendError> {
        match &self.sender {
            Sender::Http2(sender) => {
                let sent = sender.clone().try_send_request(request);
                sent.await.map_err(|error| judge(origin, &error))
            }
            Sender::Http1(place) => {
                let taken = place.lock().unwrap_or_else(PoisonError::into_inner).take();
                let Some(mut sender) = taken else { return Err(unsent(origin)) };
                sender.ready().await.map_err(|_| unsent(origin))?;
                let answer = sender.try_send_request(in_origin_form(request)).await;
                *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
                answer.map_err(|error| judge(origin, &error))
            }
        }
    }
}

impl Slot {
    /// When its connection was opened.
    pub(crate) fn opened_at(&self) -> Instant {
        self.0.opened_at
    }

    fn take(link: &Arc<Link>) -> Self {
        link.streams.fetch_add(1, Ordering::Relaxed);
        Self(link.clone())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether a request without an answer may have reached the server.
fn judge(origin: &Origin, error: &TrySendError<Request<Body>>) -> SendError {
    if error.message().is_some() || is_refused(error.error()) {
        return unsent(origin);
    }
    SendError { fault: fault::broken(&origin.to_string(), error.error()), reached: true }
}

fn unsent(origin: &Origin) -> SendError {
    let text = format!("the connection to {origin} was closed before the request was taken");
    SendError { fault: Fault::new(FaultKind::Retry(None), text), reached: false }
}

/// A stream beyond a GOAWAY, or refused, was not processed by the server (RFC 9113, 8.7): safe to repeat.
fn is_refused(error: &hyper::Error) -> bool {
    use std::error::Error as _;
    let Some(error) = error.source().and_then(|source| source.downcast_ref::<h2::Error>()) else {
        return false;
    };
    error.is_remote()
        && ((error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR))
            || (error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM)))
}

/// HTTP/1.1 wants the path alone, and the host in a header.
fn in_origin_form(mut request: Request<Body>) -> Request<Body> {
    let host = request.uri().authority().and_then(|authority| authority.as_str().parse().ok());
    if let Some(host) = host {
        request.headers_mut().insert(header::HOST, host);
    }
    if let Some(path) = request.uri().path_and_query().cloned() {
        *request.uri_mut() = Uri::from(path);
    }
    request
}
