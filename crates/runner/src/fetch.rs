//! One thing that a follower asked for, as a future that ends with one event.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use mailboat_cluster::{Found, Lines, Read, ReadMode, Transport};
use mailboat_object::key::{KindId, Name};
use mailboat_object::wire::Fault;
use mailboat_store::{Definition, Fetch, Selection};
use tokio::time::Instant;

/// What became of a fetch.
pub(crate) enum Event {
    /// A list page or probe was read.
    Page(Bytes),
    /// A watch was opened.
    Opened(Lines),
    /// A line of an open watch, or its end.
    Line(Lines, Option<Result<Bytes, Fault>>),
    /// The request failed.
    Fault(Fault),
    /// The server names this kind differently than the follower knows.
    Renamed(Names),
    /// It is time to ask the follower again.
    Woken,
    /// The deadline passed first.
    Late,
}

/// What objects of a kind call themselves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Names {
    pub(crate) api_version: Name,
    pub(crate) kind_name: Name,
}

impl Names {
    pub(crate) fn of(definition: &Definition) -> Self {
        Self { api_version: definition.api_version.clone(), kind_name: definition.kind_name.clone() }
    }
}

/// Carries out what a follower asked for. `None`: it asked for nothing any more.
pub(crate) fn carry_out(
    transport: Arc<dyn Transport>,
    kind: KindId,
    known_as: Names,
    fetch: Fetch,
    deadline: Option<Instant>,
    wake_at: impl FnOnce(mailboat_store::Moment) -> Instant,
) -> Option<BoxFuture<'static, Event>> {
    let (mode, selection) = match fetch {
        Fetch::Stopped => return None,
        Fetch::WaitUntil(moment) => {
            let until = wake_at(moment);
            return Some(tokio::time::sleep_until(until).map(|()| Event::Woken).boxed());
        }
        Fetch::List { limit, continue_token, selection } => {
            (ReadMode::Page { limit, continue_token }, selection)
        }
        Fetch::Probe { selection } => (ReadMode::Page { limit: 1, continue_token: None }, selection),
        Fetch::Watch { from, timeout_seconds, selection } => {
            (ReadMode::Watch { from, timeout_seconds }, selection)
        }
    };
    let read = read_of(kind, selection, mode);
    let answer = async move {
        match answer(&*transport, read, known_as).await {
            Ok(event) => event,
            Err(fault) => Event::Fault(fault),
        }
    };
    Some(before(deadline, answer).boxed())
}

/// Waits for the next line of an open watch.
pub(crate) fn next_line(mut lines: Lines, deadline: Option<Instant>) -> BoxFuture<'static, Event> {
    let line = async move {
        let line = lines.next().await;
        Event::Line(lines, line)
    };
    before(deadline, line).boxed()
}

async fn answer(transport: &dyn Transport, read: Read, known_as: Names) -> Result<Event, Fault> {
    if read.is_watch() {
        return transport.fetch(read).await.map(Event::Opened);
    }
    // Items of lists do not say what they are; the names must be right before the first is read.
    if let Found::Served(served) = transport.catalog().await?.find(&read.kind) {
        let api_version = Name::new(&served.api_version());
        let names = Names { api_version, kind_name: served.kind_name.clone() };
        if names != known_as {
            return Ok(Event::Renamed(names));
        }
    }
    Ok(Event::Page(transport.fetch(read).await?.whole().await?))
}

async fn before(deadline: Option<Instant>, event: impl Future<Output = Event>) -> Event {
    match deadline {
        None => event.await,
        Some(deadline) => tokio::time::timeout_at(deadline, event).await.unwrap_or(Event::Late),
    }
}

fn read_of(kind: KindId, selection: Selection, mode: ReadMode) -> Read {
    let mut read = Read::all(kind, mode);
    read.namespace = selection.namespace.unwrap_or_default();
    read.labels = selection.labels.map(|labels| labels.to_string()).unwrap_or_default();
    read
}
