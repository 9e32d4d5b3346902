//! One connection through a proxy: two pumps, each with a queue in which bytes wait for their time.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::Delay;

/// How much is read at once.
const CHUNK_BYTES: usize = 16 * 1024;
/// How much may wait in one direction; beyond it the sender is made to wait, as by any full link.
const QUEUE_LIMIT_BYTES: usize = 1024 * 1024;
/// A throttled link gives its bytes in this many portions a second, so that it is slow rather than jerky.
const PORTIONS_PER_SECOND: u64 = 20;

/// What happens to bytes on their way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Flow {
    #[default]
    Pass,
    Hold,
    Drop,
}

/// The state of the link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Weather {
    pub(super) flow: Flow,
    pub(super) delay: Option<Delay>,
    pub(super) bytes_per_second: Option<NonZeroU64>,
}

/// What one connection is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Orders {
    pub(super) weather: Weather,
    pub(super) reset: bool,
}

/// Bytes, of all connections together.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) to_server: AtomicU64,
    pub(super) to_client: AtomicU64,
    pub(super) lost: AtomicU64,
}

/// Carries one connection until both sides are done with it or it breaks.
pub(super) async fn carry(
    mut client: TcpStream,
    target: SocketAddr,
    mut orders: watch::Receiver<Orders>,
    counters: &Counters,
    seed: u64,
) {
    let reset = until_reset(orders.clone());
    let carried = async {
        let lost = drain_until_open(&mut client, &mut orders, counters).await?;
        if lost {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let mut server = TcpStream::connect(target).await?;
        // Small writes are the rule between a client and an API server, and ours must not add latency.
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let carried = exchange(&mut client, &mut server, &orders, counters, seed).await;
        if carried.is_err() {
            server.set_zero_linger()?;
        }
        carried
    };
    let broken = tokio::select! {
        carried = carried => carried.is_err(),
        () = reset => true,
    };
    if broken {
        // Closing then sends a RST. If it cannot be set the socket is closed all the same.
        let _ = client.set_zero_linger();
    }
}

async fn until_reset(mut orders: watch::Receiver<Orders>) {
    // An error means that the proxy is gone, which ends the connection as well.
    let _ = orders.wait_for(|orders| orders.reset).await;
}

/// Waits until the link lets a new connection through to the server; says whether bytes were lost before.
async fn drain_until_open(
    client: &mut TcpStream,
    orders: &mut watch::Receiver<Orders>,
    counters: &Counters,
) -> io::Result<bool> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let (mut lost, mut ended) = (false, false);
    loop {
        let flow = orders.borrow_and_update().weather.flow;
        match flow {
            Flow::Pass => return Ok(lost),
            Flow::Hold => changed(orders).await?,
            Flow::Drop => tokio::select! {
                changed = changed(orders) => changed?,
                read = client.read(&mut buffer), if !ended => {
                    let count = read.unwrap_or(0);
                    (lost, ended) = (true, count == 0);
                    counters.lost.fetch_add(as_u64(count), Ordering::Relaxed);
                }
            },
        }
    }
}

async fn exchange(
    client: &mut TcpStream,
    server: &mut TcpStream,
    orders: &watch::Receiver<Orders>,
    counters: &Counters,
    seed: u64,
) -> io::Result<()> {
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let lost = &counters.lost;
    let outward = Pump::new(from_client, to_server, orders.clone(), &counters.to_server, lost, seed);
    let homeward = Pump::new(from_server, to_client, orders.clone(), &counters.to_client, lost, !seed);
    tokio::try_join!(outward.run(), homeward.run()).map(drop)
}

/// One direction of a connection.
struct Pump<'a> {
    from: ReadHalf<'a>,
    to: WriteHalf<'a>,
    orders: watch::Receiver<Orders>,
    carried_bytes: &'a AtomicU64,
    lost_bytes: &'a AtomicU64,
    jitter: Jitter,
    queue: VecDeque<Parcel>,
    queued_bytes: usize,
    /// The sender has finished, or broke off.
    ended: bool,
    /// Something vanished: what follows would not make sense to the receiver.
    torn: bool,
    /// When a throttled link is free again.
    free_at: Instant,
}

struct Parcel {
    due: Instant,
    bytes: Vec<u8>,
    given: usize,
}

impl<'a> Pump<'a> {
    fn new(
        from: ReadHalf<'a>,
        to: WriteHalf<'a>,
        orders: watch::Receiver<Orders>,
        carried_bytes: &'a AtomicU64,
        lost_bytes: &'a AtomicU64,
        seed: u64,
    ) -> Self {
        Self {
            from,
            to,
            orders,
            carried_bytes,
            lost_bytes,
            jitter: Jitter(seed),
            queue: VecDeque::new(),
            queued_bytes: 0,
            ended: false,
            torn: false,
            free_at: Instant::now(),
        }
    }

    async fn run(mut self) -> io::Result<()> {
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let weather = self.orders.borrow_and_update().weather;
            self.submit_to(weather.flow)?;
            if self.ended && self.queue.is_empty() && weather.flow == Flow::Pass {
                return self.to.shutdown().await;
            }
            let due = self.queue.front().map(|parcel| parcel.due.max(self.free_at));
            let may_take = !self.ended && weather.flow != Flow::Hold && self.queued_bytes < QUEUE_LIMIT_BYTES;
            let writable = async {
                match due {
                    Some(due) if weather.flow == Flow::Pass => sleep_until(due).await,
                    _ => std::future::pending().await,
                }
                self.to.writable().await
            };
            tokio::select! {
                changed = changed(&mut self.orders) => changed?,
                read = self.from.read(&mut buffer), if may_take => {
                    self.take(read.map(|count| &buffer[..count]), weather)?;
                }
                writable = writable => {
                    writable?;
                    self.give(weather)?;
                }
            }
        }
    }

    fn submit_to(&mut self, flow: Flow) -> io::Result<()> {
        match flow {
            Flow::Drop => {
                self.lose(self.queued_bytes);
                self.queue.clear();
                self.queued_bytes = 0;
                Ok(())
            }
            Flow::Pass if self.torn => Err(io::ErrorKind::ConnectionReset.into()),
            Flow::Pass | Flow::Hold => Ok(()),
        }
    }

    fn take(&mut self, read: io::Result<&[u8]>, weather: Weather) -> io::Result<()> {
        let dropping = weather.flow == Flow::Drop;
        match read {
            // Nobody hears through a cut link that the other side has gone, so this side is not told yet.
            Ok([]) | Err(_) if dropping => (self.ended, self.torn) = (true, true),
            Ok([]) => self.ended = true,
            Err(error) => return Err(error),
            Ok(bytes) if dropping => self.lose(bytes.len()),
            Ok(bytes) => {
                let delay = weather
                    .delay
                    .map_or(Duration::ZERO, |delay| delay.latency + self.jitter.up_to(delay.jitter));
                let not_before = self.queue.back().map(|parcel| parcel.due);
                let due = (Instant::now() + delay).max(not_before.unwrap_or_else(Instant::now));
                self.queued_bytes += bytes.len();
                self.queue.push_back(Parcel { due, bytes: bytes.to_vec(), given: 0 });
            }
        }
        Ok(())
    }

    fn give(&mut self, weather: Weather) -> io::Result<()> {
        let Some(parcel) = self.queue.front_mut() else { return Ok(()) };
        let mut portion = &parcel.bytes[parcel.given..];
        if let Some(rate) = weather.bytes_per_second {
            let limit = usize::try_from((rate.get() / PORTIONS_PER_SECOND).max(1)).unwrap_or(usize::MAX);
            portion = &portion[..portion.len().min(limit)];
        }
        let count = match self.to.try_write(portion) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        parcel.given += count;
        self.queued_bytes -= count;
        if parcel.given == parcel.bytes.len() {
            self.queue.pop_front();
        }
        self.carried_bytes.fetch_add(as_u64(count), Ordering::Relaxed);
        if let Some(rate) = weather.bytes_per_second {
            let nanoseconds = as_u64(count).saturating_mul(1_000_000_000) / rate.get();
            self.free_at = Instant::now() + Duration::from_nanos(nanoseconds);
        }
        Ok(())
    }

    fn lose(&mut self, count: usize) {
        self.torn |= count > 0;
        self.lost_bytes.fetch_add(as_u64(count), Ordering::Relaxed);
    }
}

async fn changed(orders: &mut watch::Receiver<Orders>) -> io::Result<()> {
    orders.changed().await.map_err(|_| io::ErrorKind::ConnectionAborted.into())
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Numbers from a seed (SplitMix64), so that a run can be had again.
struct Jitter(u64);

impl Jitter {
    fn up_to(&mut self, most: Duration) -> Duration {
        let range = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX).saturating_add(1);
        Duration::from_nanos(self.next() % range)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
