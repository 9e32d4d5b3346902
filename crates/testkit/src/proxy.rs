//! Links that fail on command: a TCP proxy that a test puts between a client and a server, and a server in front
//! of an API server that answers some requests by itself.
//!
//! [`Proxy`] knows bytes only, so TLS passes untouched: it cuts, holds, slows, resets and refuses. [`FaultyServer`]
//! ends TLS with a certificate of its own and knows HTTP: it answers 429, 503 or 401 by rules and passes on the rest. [`ForwardProxy`] is
//! one that a client is configured with: HTTP, HTTPS or SOCKS 5.
//!
//! Read `link` next (what happens to one connection), then `rules` and `faulty`.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::access::Access;
use crate::error::{Doing, Error, Result};
use crate::files::write_private;
use crate::ports::Port;

mod faulty;
mod forward;
mod link;
mod rules;

pub use faulty::{FaultyServer, SeenRequest};
pub use forward::{ForwardProxy, Speaks};
pub use rules::{Rule, RuleId};

/// Which connections a change is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those that are open, and those to come.
    All,
    /// Only those to come: what is open stays as it is.
    New,
}

/// Latency that is added to every byte, in each direction. The order of bytes is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delay {
    /// The least that is added.
    pub latency: Duration,
    /// Up to this much more, drawn from the proxy's seed.
    pub jitter: Duration,
}

/// What a proxy has carried so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Connections that clients opened.
    pub connections: u64,
    /// Connections that are open now.
    pub open_connections: u64,
    /// Bytes that reached the server.
    pub bytes_to_server: u64,
    /// Bytes that reached clients.
    pub bytes_to_client: u64,
    /// Bytes that vanished, both directions together.
    pub bytes_lost: u64,
}

/// A TCP proxy on 127.0.0.1 whose faults are switched while connections run through it. Dropping it ends it and
/// resets what runs through it.
///
/// It speaks for the far side at the level of TCP: the kernel acknowledges bytes and answers keep-alive probes even
/// when the link is cut. A client notices a cut by its own time-outs and HTTP/2 pings only, which is also how it
/// would notice a server that hangs.
#[derive(Debug)]
pub struct Proxy {
    port: Port,
    shared: Arc<Shared>,
    listening: mpsc::Sender<(Listening, oneshot::Sender<Result<()>>)>,
    acceptor: JoinHandle<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listening {
    Yes,
    No,
}

#[derive(Debug)]
struct Shared {
    target: SocketAddr,
    seed: u64,
    counters: Arc<link::Counters>,
    next_connection: AtomicU64,
    connections: Mutex<Connections>,
}

#[derive(Debug, Default)]
struct Connections {
    for_new: link::Weather,
    open: BTreeMap<u64, watch::Sender<link::Orders>>,
}

impl Proxy {
    /// Starts a proxy to `target`. All is well with it at first.
    pub async fn start(target: SocketAddr) -> Result<Self> {
        Self::start_seeded(target, 0).await
    }

    /// As [`Proxy::start`]; what is random about its delays follows from `seed`.
    pub async fn start_seeded(target: SocketAddr, seed: u64) -> Result<Self> {
        let port = Port::reserve()?;
        let listener = listen(port.number()).await?;
        let shared = Arc::new(Shared {
            target,
            seed,
            counters: Arc::default(),
            next_connection: AtomicU64::new(0),
            connections: Mutex::default(),
        });
        let (listening, orders) = mpsc::channel(1);
        let acceptor = tokio::spawn(accept(Arc::clone(&shared), listener, port.number(), orders));
        Ok(Self { port, shared, listening, acceptor })
    }

    /// Starts a proxy to the server that `access` leads to.
    pub async fn in_front_of(access: &Access) -> Result<Self> {
        Self::start(target_of(&access.url)?).await
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port.number()))
    }

    /// The same access, by way of this proxy.
    pub fn access(&self, access: &Access) -> Result<Access> {
        Ok(Access { url: redirected(&access.url, self.address())?, ..access.clone() })
    }

    /// Cuts the link, for open and new connections: they stay open, and every byte vanishes.
    ///
    /// A connection that lost bytes is of no use any more, so healing the link resets it, as a peer does that has
    /// long given up. For an outage that TCP itself would bridge, use [`Proxy::hold`].
    pub fn cut(&self) {
        self.drop_bytes(Scope::All);
    }

    /// Lets every byte vanish while connections stay open.
    pub fn drop_bytes(&self, scope: Scope) {
        self.change(scope, |weather| weather.flow = link::Flow::Drop);
    }

    /// Holds every byte back until the link heals; then all arrive, none is lost.
    pub fn hold(&self, scope: Scope) {
        self.change(scope, |weather| weather.flow = link::Flow::Hold);
    }

    /// Adds latency.
    pub fn delay(&self, scope: Scope, delay: Delay) {
        self.change(scope, |weather| weather.delay = Some(delay));
    }

    /// Lets at most this many bytes a second pass, on each connection and in each direction.
    pub fn throttle(&self, scope: Scope, bytes_per_second: NonZeroU64) {
        self.change(scope, |weather| weather.bytes_per_second = Some(bytes_per_second));
    }

    /// Resets the connections that are open. New ones are not concerned.
    pub fn reset(&self) {
        for orders in self.shared.connections().open.values() {
            orders.send_modify(|orders| orders.reset = true);
        }
    }

    /// Stops listening, so that new connections are refused. Open ones are not concerned: see [`Proxy::reset`].
    pub async fn refuse(&self) -> Result<()> {
        self.listen(Listening::No).await
    }

    /// Ends every fault. With [`Scope::New`], connections that are open keep the faults that they have.
    pub async fn heal(&self, scope: Scope) -> Result<()> {
        self.change(scope, |weather| *weather = link::Weather::default());
        self.listen(Listening::Yes).await
    }

    /// What was carried so far.
    pub fn traffic(&self) -> Traffic {
        let connections = self.shared.next_connection.load(Ordering::Relaxed);
        let open_connections = u64::try_from(self.shared.connections().open.len()).unwrap_or(u64::MAX);
        let counters = &self.shared.counters;
        Traffic {
            connections,
            open_connections,
            bytes_to_server: counters.to_server.load(Ordering::Relaxed),
            bytes_to_client: counters.to_client.load(Ordering::Relaxed),
            bytes_lost: counters.lost.load(Ordering::Relaxed),
        }
    }

    fn change(&self, scope: Scope, change: impl Fn(&mut link::Weather)) {
        let mut connections = self.shared.connections();
        change(&mut connections.for_new);
        if scope == Scope::All {
            for orders in connections.open.values() {
                orders.send_modify(|orders| change(&mut orders.weather));
            }
        }
    }

    async fn listen(&self, listening: Listening) -> Result<()> {
        let ended = || Error::NotRunning { part: format!("the proxy on {}", self.address()) };
        let (answer, done) = oneshot::channel();
        self.listening.send((listening, answer)).await.map_err(|_| ended())?;
        done.await.map_err(|_| ended())?
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The connections belong to the acceptor, and end with it.
        self.acceptor.abort();
    }
}

/// Writes, beside `kubeconfig`, one that is the same but leads every cluster through `address`; gives its path.
pub fn kubeconfig_via(kubeconfig: &Path, address: SocketAddr) -> Result<PathBuf> {
    kubeconfig_redirected(kubeconfig, address, None)
}

/// As [`kubeconfig_via`]; with `ca_pem`, the server at `address` shows a certificate of that authority.
fn kubeconfig_redirected(kubeconfig: &Path, address: SocketAddr, ca_pem: Option<&str>) -> Result<PathBuf> {
    let malformed = |why: String| Error::Malformed { what: kubeconfig.display().to_string(), why };
    let text = std::fs::read_to_string(kubeconfig).doing("reading", kubeconfig)?;
    let mut document: Value = serde_saphyr::from_str(&text).map_err(|error| malformed(error.to_string()))?;
    let clusters = document.get_mut("clusters").and_then(Value::as_array_mut);
    for entry in clusters.ok_or_else(|| malformed("it has no clusters".to_owned()))? {
        let Some(Value::Object(cluster)) = entry.get_mut("cluster") else {
            return Err(malformed("a cluster is not an object".to_owned()));
        };
        let server = cluster.get("server").and_then(Value::as_str);
        let server = server.ok_or_else(|| malformed("a cluster has no server".to_owned()))?;
        let server = redirected(server, address)?;
        cluster.insert("server".to_owned(), server.into());
        if let Some(ca_pem) = ca_pem {
            cluster.remove("certificate-authority");
            cluster.insert("certificate-authority-data".to_owned(), BASE64.encode(ca_pem).into());
        }
    }
    let stem = kubeconfig.file_stem().unwrap_or_default().to_string_lossy();
    let path = kubeconfig.with_file_name(format!("{stem}-via-{}.yaml", address.port()));
    let text = serde_saphyr::to_string(&document).map_err(|error| malformed(error.to_string()))?;
    write_private(&path, &text)?;
    Ok(path)
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn carry(self: Arc<Self>, client: TcpStream) {
        let number = self.next_connection.fetch_add(1, Ordering::Relaxed);
        let orders = {
            let mut connections = self.connections();
            let orders = link::Orders { weather: connections.for_new, reset: false };
            let (sender, receiver) = watch::channel(orders);
            connections.open.insert(number, sender);
            receiver
        };
        let _registration = Registration { shared: &self, number };
        // Two connections of one seed must not jitter in step.
        let seed = self.seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        link::carry(client, self.target, orders, &self.counters, seed).await;
    }
}

/// Takes a connection off the list however its task ends.
struct Registration<'a> {
    shared: &'a Shared,
    number: u64,
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.shared.connections().open.remove(&self.number);
    }
}

async fn accept(
    shared: Arc<Shared>,
    listener: TcpListener,
    port: u16,
    mut orders: mpsc::Receiver<(Listening, oneshot::Sender<Result<()>>)>,
) {
    let mut listener = Some(listener);
    let mut connections = JoinSet::new();
    loop {
        let accepted = async {
            match &listener {
                Some(listener) => listener.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Those that ended are taken off the set, or it would grow for as long as the proxy lives.
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = accepted => {
                // A client that gave up between its SYN and our accept is no concern of the others.
                if let Ok((client, _)) = accepted {
                    connections.spawn(Arc::clone(&shared).carry(client));
                }
            }
            order = orders.recv() => match order {
                None => return,
                Some((Listening::No, answer)) => {
                    listener = None;
                    // The proxy may be gone by now; there is nobody left to tell then.
                    let _ = answer.send(Ok(()));
                }
                Some((Listening::Yes, answer)) => {
                    let outcome = match listener {
                        Some(_) => Ok(()),
                        None => listen(port).await.map(|again| listener = Some(again)),
                    };
                    let _ = answer.send(outcome);
                }
            },
        }
    }
}

async fn listen(port: u16) -> Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .map_err(|source| Error::Io { doing: format!("listening on 127.0.0.1:{port}"), source })
}

/// The address of a URL whose host is an IP address, as in every kubeconfig of this crate.
pub(crate) fn target_of(url: &str) -> Result<SocketAddr> {
    let (_, authority, _) = split_url(url)?;
    authority.parse().map_err(|_| Error::Malformed {
        what: url.to_owned(),
        why: format!("{authority} is no IP address with port"),
    })
}

/// The URL with another host and port; its path, which names a workspace in kcp, stays.
fn redirected(url: &str, address: SocketAddr) -> Result<String> {
    let (scheme, _, path) = split_url(url)?;
    Ok(format!("{scheme}://{address}{path}"))
}

fn split_url(url: &str) -> Result<(&str, &str, &str)> {
    let no_url = || Error::Malformed { what: url.to_owned(), why: "it is no URL".to_owned() };
    let (scheme, rest) = url.split_once("://").ok_or_else(no_url)?;
    let path_start = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(path_start);
    Ok((scheme, authority, path))
}

#[cfg(test)]
mod tests;
