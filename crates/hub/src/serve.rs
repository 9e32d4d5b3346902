//! Connections.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::access::user_of;
use crate::workloads::Settings;
use crate::{Hub, control, handle, keeper, simulate};

/// How many requests one HTTP/2 connection may have under way; a client's watches count.
const STREAMS_PER_CONNECTION: u32 = 1000;
/// How long a client may take to agree on TLS.
const TLS_WITHIN: Duration = Duration::from_secs(10);
/// How long a client may take to send the head of a request.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
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
        let connections = GracefulShutdown::new();
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
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
            let _ = stream.set_nodelay(true);
            let (hub, tls, watcher) = (Arc::clone(&self.hub), self.tls.clone(), connections.watcher());
            tokio::spawn(async move {
                let stream = match tokio::time::timeout(TLS_WITHIN, tls.accept(stream)).await {
                    Ok(Ok(stream)) => stream,
                    Ok(Err(error)) => return tracing::debug!(%error, "a client does not agree on TLS"),
                    Err(_) => return tracing::debug!("a client takes too long to agree on TLS"),
                };
                let certificates = stream.get_ref().1.peer_certificates();
                let user = Arc::new(certificates.and_then(|chain| chain.first()).and_then(user_of));
                let service = service_fn(move |request| {
                    let (hub, user) = (Arc::clone(&hub), Arc::clone(&user));
                    async move { Ok::<_, Infallible>(handle::handle(hub, (*user).as_ref(), request).await) }
                });
                let mut builder = auto::Builder::new(TokioExecutor::new());
                builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
                builder.http2().timer(TokioTimer::new()).max_concurrent_streams(STREAMS_PER_CONNECTION);
                let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
                if let Err(error) = watcher.watch(connection.into_owned()).await {
                    tracing::debug!(error = %error, "a connection ended badly");
                }
            });
        }
        self.hub.stopping.send_replace(true);
        let _ = tokio::time::timeout(STOP_WITHIN, connections.shutdown()).await;
        let _ = tokio::join!(keeper, ringer);
        for task in [player, control].into_iter().flatten() {
            let _ = task.await;
        }
    }
}
