//! Connections.

use std::convert::Infallible;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use hyper::body::{Body, Frame, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{interval, timeout};
use tokio_rustls::TlsAcceptor;

use crate::access::user_of;
use crate::answer::{self, TooSlow};
use crate::doors::{Doors, LOOK_EVERY, UnderWay, Visit};
use crate::stall::Stalling;
use crate::workloads::Settings;
use crate::{Hub, control, handle, keeper, simulate};

/// How many requests one HTTP/2 connection may have under way; a client's watches count.
const STREAMS_PER_CONNECTION: u32 = 1000;
/// How long a client may take to agree on TLS.
const TLS_WITHIN: Duration = Duration::from_secs(10);
/// How long a client may take to send the head of a request.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// How often a client is asked whether it is still there, and how long it may take to say so. Real servers ask as often.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_WITHIN: Duration = Duration::from_secs(15);
/// How much of an answer waits at most in a connection, or in a stream of one; the head of a request may be as long.
const BUFFERED_BYTES: usize = 128 * 1024;
/// How long requests that are under way may take when the server stops.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// A server that listens, and is not yet serving.
pub struct Server {
    hub: Arc<Hub>,
    listener: TcpListener,
    tls: TlsAcceptor,
    workloads: Option<(Settings, u64)>,
    control: Option<PathBuf>,
}

impl Server {
    /// A server for whoever connects there.
    pub fn new(hub: Hub, tls: ServerConfig, listener: TcpListener) -> Self {
        Self {
            hub: Arc::new(hub),
            listener,
            tls: TlsAcceptor::from(Arc::new(tls)),
            workloads: None,
            control: None,
        }
    }

    /// The hub that it serves.
    pub fn hub(&self) -> Arc<Hub> {
        Arc::clone(&self.hub)
    }

    /// Plays workloads that run nowhere, for a hub that is one cluster. The seed decides what fails. Pods get what they
    /// would need to speak to the cluster: whoever keeps a node of it may really run them.
    #[must_use]
    pub fn with_workloads(mut self, settings: Settings, seed: u64) -> Self {
        self.hub.give_tokens();
        self.workloads = Some((settings, seed));
        self
    }

    /// Lets the owner of this data folder ask for backups of it.
    #[must_use]
    pub fn with_control(mut self, folder: PathBuf) -> Self {
        self.control = Some(folder);
        self
    }

    /// Serves until `stop` is over; then watches end, and what is under way is answered.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let keeper = tokio::spawn(keeper::keep(Arc::clone(&self.hub)));
        let ringing = Arc::clone(&self.hub);
        let ringer = tokio::spawn(async move { ringing.ring().await });
        let player = self
            .workloads
            .map(|(settings, seed)| tokio::spawn(simulate::simulate(Arc::clone(&self.hub), settings, seed)));
        let control = self.control.map(|folder| tokio::spawn(control::listen(Arc::clone(&self.hub), folder)));
        let doors = Doors::new();
        // Every connection has one end of this; when the last one is gone, so is it.
        let (connected, mut all_gone) = mpsc::channel::<()>(1);
        let mut look = interval(LOOK_EVERY);
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                _ = look.tick() => {
                    doors.close_idle();
                    continue;
                }
                () = &mut stop => break,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Too many open files, most likely: closing connections make room.
                    tracing::warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let Some((visit, closed)) = doors.come() else {
                tracing::warn!("there are too many connections that are in use: one more was closed");
                continue;
            };
            let connection = Connection { hub: Arc::clone(&self.hub), tls: self.tls.clone(), visit };
            let connected = connected.clone();
            tokio::spawn(async move {
                connection.serve(stream, closed).await;
                drop(connected);
            });
        }
        self.hub.stopping.send_replace(true);
        drop(connected);
        let _ = timeout(STOP_WITHIN, all_gone.recv()).await;
        let _ = tokio::join!(keeper, ringer);
        for task in [player, control].into_iter().flatten() {
            let _ = task.await;
        }
    }
}

/// One connection.
struct Connection {
    hub: Arc<Hub>,
    tls: TlsAcceptor,
    visit: Arc<Visit>,
}

impl Connection {
    /// Serves it until its client has enough, it has to go, or the server stops.
    async fn serve(self, stream: TcpStream, closed: oneshot::Receiver<()>) {
        let mut stopping = self.hub.stopping.subscribe();
        let mut leave = pin!(async move {
            tokio::select! {
                _ = closed => {}
                _ = stopping.wait_for(|stopping| *stopping) => {}
            }
        });
        let _ = stream.set_nodelay(true);
        let stream = Stalling::new(stream, self.hub.limits.take_within);
        let agreed = timeout(TLS_WITHIN, self.tls.accept(stream));
        let agreed = tokio::select! {
            agreed = agreed => agreed,
            () = &mut leave => return,
        };
        let stream = match agreed {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "a client does not agree on TLS"),
            Err(_) => return tracing::debug!("a client takes too long to agree on TLS"),
        };
        let (_, tls) = stream.get_ref();
        let user = Arc::new(tls.peer_certificates().and_then(|chain| chain.first()).and_then(user_of));
        if user.is_some() {
            self.visit.knows();
        }
        // What was agreed on need not be guessed from what comes first, which may never come.
        let http2 = tls.alpn_protocol() == Some(b"h2");
        let (hub, visit) = (self.hub, self.visit);
        let service = service_fn(move |request| {
            let (hub, user, visit) = (Arc::clone(&hub), Arc::clone(&user), Arc::clone(&visit));
            async move {
                let under_way = visit.begins();
                let answer = handle::handle(hub, (*user).as_ref(), request).await;
                if answer.extensions().get::<handle::Known>().is_some() {
                    visit.knows();
                }
                Ok::<Response<Attended>, Infallible>(
                    answer.map(|body| Attended { body, _under_way: under_way }),
                )
            }
        });
        let builder = auto::Builder::new(TokioExecutor::new());
        let mut builder = if http2 { builder.http2_only() } else { builder.http1_only() };
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WITHIN)
            .max_buf_size(BUFFERED_BYTES);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_PER_CONNECTION)
            .max_send_buf_size(BUFFERED_BYTES)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_WITHIN);
        let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
        let ended = tokio::select! {
            ended = connection.as_mut() => Some(ended),
            () = &mut leave => None,
        };
        let ended = if let Some(ended) = ended {
            ended
        } else {
            connection.as_mut().graceful_shutdown();
            timeout(STOP_WITHIN, connection).await.unwrap_or(Ok(()))
        };
        if let Err(error) = ended {
            tracing::debug!(error = %error, "a connection ended badly");
        }
    }
}

/// The body of an answer, which is under way until it is sent.
struct Attended {
    body: answer::Body,
    _under_way: UnderWay,
}

impl Body for Attended {
    type Data = Bytes;
    type Error = TooSlow;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TooSlow>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
