//! What a follower asks for and what it is told: plain values between it and whoever does the I/O.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mailboat_object::key::{Name, Version};
use mailboat_object::object::{Keep, Limits};
use mailboat_object::wire::Fault;

use crate::interest::Filter;
use crate::time::Moment;

/// What to do next for a follower.
#[derive(Clone, PartialEq, Debug)]
pub enum Fetch {
    /// Read one page of the list, from the server's store: without `resourceVersion`, never with 0.
    List {
        /// `limit`.
        limit: u32,
        /// `continue`, from the page before.
        continue_token: Option<String>,
        /// Which objects.
        selection: Selection,
    },
    /// Read a list with `limit=1`, to see that the server has not gone back in time.
    Probe {
        /// Which objects.
        selection: Selection,
    },
    /// Watch, with `allowWatchBookmarks=true`, and without `sendInitialEvents`.
    Watch {
        /// `resourceVersion`.
        from: Version,
        /// `timeoutSeconds`.
        timeout_seconds: u32,
        /// Which objects.
        selection: Selection,
    },
    /// Do nothing, and ask again at that time.
    WaitUntil(Moment),
    /// Nothing any more: drop the follower.
    Stopped,
}

/// Which objects of the kind a request asks for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// In the path; all namespaces if none.
    pub namespace: Option<Name>,
    /// `labelSelector`.
    pub labels: Option<Arc<str>>,
}

impl Selection {
    pub(super) fn of(filter: &Filter) -> Self {
        match filter {
            Filter::All => Self::default(),
            Filter::Namespace(namespace) => Self { namespace: Some(namespace.clone()), labels: None },
            Filter::Labels(selector) => Self { namespace: None, labels: Some(selector.to_query().into()) },
        }
    }
}

/// Numbers a follower's wishes. A fetch belongs to the turn at which it was asked for; as soon as the turn is
/// another, it is to be dropped, and what it still brings does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Turn(pub(super) u64);

/// What came of a fetch.
#[derive(Clone, Copy)]
pub enum Input<'a> {
    /// The body of a list page or probe.
    Page(&'a [u8]),
    /// The watch is open: its answer was 200.
    Opened {
        /// It runs over a connection that was made after this follower's last page or probe was asked for: the
        /// server behind it may be another one, or the same one restored from a backup.
        new_connection: bool,
    },
    /// One line of the watch.
    Line(&'a [u8]),
    /// The answer came to its regular end.
    Ended,
    /// The request or its answer failed.
    Fault(&'a Fault),
    /// Time has passed: to be fed when [`Follower::deadline`](super::Follower::deadline) is reached.
    Tick,
}

impl fmt::Debug for Input<'_> {
    /// Sizes instead of bodies, which are tenants' data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Page(body) => write!(f, "page({} bytes)", body.len()),
            Self::Opened { new_connection } => write!(f, "opened(new connection: {new_connection})"),
            Self::Line(line) => write!(f, "line({} bytes)", line.len()),
            Self::Ended => f.write_str("ended"),
            Self::Fault(fault) => write!(f, "fault({:?}: {fault})", fault.kind),
            Self::Tick => f.write_str("tick"),
        }
    }
}

/// How objects of the followed kind are read.
#[derive(Clone, PartialEq, Debug)]
pub struct Definition {
    /// `apiVersion` of the objects, as this endpoint serves them.
    pub api_version: Name,
    /// `kind` of the objects.
    pub kind_name: Name,
    /// Our field manager there; empty if we own nothing.
    pub manager: Name,
    /// Which objects are followed.
    pub filter: Filter,
    /// How much of each is kept.
    pub keep: Keep,
    /// How large an object may be.
    pub limits: Limits,
}

/// When to look, before a watch is resumed, whether the server has gone back in time. A watch from a version of
/// the future answers 200 and stays silent for ever on kcp.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ProbeWhen {
    /// Before every resumed watch: right for a transport that cannot tell its connections apart.
    #[default]
    Always,
    /// After a fault, and when [`Input::Opened`] says that the connection is new.
    NewConnection,
}

/// The numbers of a follower.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Objects on the first page of a list, and at most on any.
    pub page_limit: (u32, u32),
    /// About so many bytes make a page: after each, the next is asked for with as many objects as come to this.
    /// Every page costs the server some milliseconds whatever is on it, and its reader as many bytes as it has.
    pub page_bytes: usize,
    /// How long one page or probe may take.
    pub page_timeout: Duration,
    /// `timeoutSeconds` of a watch is drawn from here, so that watches opened together do not end together.
    pub watch_seconds: (u32, u32),
    /// A watch that the server has not ended this long after its time is on a dead link.
    pub watch_margin: Duration,
    /// The first wait after a failure; doubled at each further one.
    pub backoff_first: Duration,
    /// The longest wait, also when a server asks for a longer one.
    pub backoff_limit: Duration,
    /// After so long without a failure the waits begin from the first again.
    pub backoff_forgotten_after: Duration,
    /// When to probe.
    pub probe: ProbeWhen,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            page_limit: (500, 2500),
            page_bytes: 2 << 20,
            page_timeout: Duration::from_mins(1),
            watch_seconds: (240, 300),
            watch_margin: Duration::from_secs(30),
            backoff_first: Duration::from_millis(800),
            backoff_limit: Duration::from_secs(30),
            backoff_forgotten_after: Duration::from_mins(2),
            probe: ProbeWhen::Always,
        }
    }
}
