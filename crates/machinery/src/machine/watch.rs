//! Watches: pulled from the log, so that a slow watcher costs nobody anything.

use std::collections::VecDeque;
use std::sync::Arc;

use mailboat_object::{ClusterId, FieldSelector, KindId, LabelSelector, Name, Version};
use serde_json::{Value, json};

use super::table::{Change, Held};
use super::{Flavor, ListRequest, Machine, Within, list};
use crate::kind::Kind;
use crate::object::Stored;
use crate::status::Status;

/// What to watch, and from where.
#[derive(Clone, Debug, Default)]
pub struct WatchRequest {
    /// In which cluster; none: in all of them.
    pub cluster: Option<ClusterId>,
    /// In which of them; none: in each.
    pub within: Option<Arc<dyn Within>>,
    /// Of which kind.
    pub kind: KindId,
    /// In which namespace; empty: in all of them.
    pub namespace: Name,
    /// With which labels. An object that comes to match is `ADDED`, one that no longer does is `DELETED`.
    pub labels: LabelSelector,
    /// With which fields.
    pub fields: FieldSelector,
    /// From where.
    pub start: WatchStart,
}

/// Where a watch begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WatchStart {
    /// With everything there is, as `ADDED`, and then what happens.
    #[default]
    Now,
    /// As `Now`, and with a bookmark after everything there is.
    InitialEvents,
    /// With what happened after a version.
    After(Version),
}

/// One watch: what was asked for, and how far it has come.
#[derive(Clone, Debug)]
pub struct Watch {
    request: WatchRequest,
    /// What was there when it began and is not polled yet, at rest as far as it rests: it holds next to nothing of its own.
    initial: VecDeque<Held>,
    bookmark_due: bool,
    at: Version,
    over: bool,
}

/// One event of a watch.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// An object came into being, or into sight.
    Added(Arc<Stored>),
    /// An object changed.
    Modified(Arc<Stored>),
    /// An object went away, or out of sight: its last state, at the version of its going.
    Deleted(Arc<Stored>),
    /// Everything up to this version was sent.
    Bookmark {
        /// Up to this version.
        version: Version,
        /// With it end the initial events.
        initial_events_end: bool,
    },
    /// The watch is over.
    Error(Status),
}

impl Machine {
    /// Begins a watch. A version that is no longer remembered is told by the first event, as servers do.
    pub fn watch(&self, request: WatchRequest) -> Result<Watch, Status> {
        let kind = self.listed_kind(request.cluster.as_ref(), &request.kind)?;
        list::check_fields(&kind, &request.fields)?;
        let mut watch =
            Watch { initial: VecDeque::new(), bookmark_due: false, at: self.version, over: false, request };
        match watch.request.start {
            WatchStart::After(version) => {
                if version > self.version && self.settings.flavor == Flavor::Kubernetes {
                    return Err(Status::too_large_version(version.0, self.version.0));
                }
                watch.at = version;
            }
            WatchStart::Now | WatchStart::InitialEvents => {
                watch.initial = self.page(&watch.request.as_list())?.items.into();
                watch.at = self.last_concerning(&watch.request);
                watch.bookmark_due = watch.request.start == WatchStart::InitialEvents;
            }
        }
        Ok(watch)
    }

    /// The version of the last change that a list for a watch could show: whoever waits until that is shown waits for
    /// changes of its own kind and cluster alone, and is told when they are.
    fn last_concerning(&self, request: &WatchRequest) -> Version {
        let shown = self.shown();
        let mut later = self.logs.get(&request.kind).into_iter().flat_map(|log| log.after(shown)).rev();
        let concerns = |change: &&Arc<Change>| {
            request.cluster.as_ref().is_none_or(|cluster| *cluster == change.key.cluster)
        };
        later.find(concerns).map_or(shown, |change| change.version)
    }

    /// The next events of a watch, at most so many. None means that nothing happened.
    pub fn poll(&self, watch: &mut Watch, limit: usize) -> Vec<WatchEvent> {
        self.poll_bytes(watch, limit, usize::MAX)
    }

    /// The next events of a watch, at most so many, and about so many bytes of JSON; but one, however large.
    pub fn poll_bytes(&self, watch: &mut Watch, limit: usize, bytes: usize) -> Vec<WatchEvent> {
        let mut events = Vec::new();
        let mut room = Room { events: limit, bytes, taken: false };
        if watch.over {
            return events;
        }
        let shown = self.shown();
        if watch.bookmark_due || !watch.initial.is_empty() {
            if self.was_retracted(watch.at) {
                watch.over = true;
                let message = format!("the list at resource version {} did not hold", watch.at);
                events.push(WatchEvent::Error(Status::expired(message)));
                return events;
            }
            if watch.at > shown {
                return events;
            }
        }
        while let Some(held) = watch.initial.front() {
            if !room.take(held.json_bytes()) {
                return events;
            }
            events.extend(watch.initial.pop_front().map(|held| WatchEvent::Added(held.get())));
        }
        // Of a list that was long, nothing is left behind.
        watch.initial = VecDeque::new();
        if watch.bookmark_due {
            if !room.take(0) {
                return events;
            }
            watch.bookmark_due = false;
            events.push(WatchEvent::Bookmark { version: watch.at, initial_events_end: true });
        }
        let floor = self.floor_of(&watch.request.kind, watch.request.cluster.as_ref());
        if watch.at < floor {
            watch.over = true;
            let message = format!("too old resource version: {} ({})", watch.at, floor.0);
            events.push(WatchEvent::Error(Status::expired(message)));
            return events;
        }
        let from = watch.at;
        let changes = self.logs.get(&watch.request.kind).into_iter().flat_map(|log| log.after(from));
        for change in changes.take_while(|change| change.version <= shown) {
            if room.events == 0 {
                return events;
            }
            if let Some(event) = watch.request.event(change) {
                if !room.take(change.json_bytes) {
                    return events;
                }
                events.push(event);
            }
            watch.at = change.version;
        }
        watch.at = watch.at.max(shown);
        events
    }

    /// A bookmark for a watch that has everything: where it can be taken up again.
    pub fn bookmark(&self, watch: &Watch) -> Option<WatchEvent> {
        let complete = !watch.over && watch.initial.is_empty() && watch.at >= self.shown();
        complete.then_some(WatchEvent::Bookmark { version: watch.at, initial_events_end: false })
    }

    /// Forgets what happened up to and including a version: lists and watches from there on answer 410.
    pub fn compact(&mut self, version: Version) {
        let version = version.min(self.version);
        for log in self.logs.values_mut() {
            log.compact(version);
        }
        self.compacted = self.compacted.max(version);
    }
}

impl WatchRequest {
    fn as_list(&self) -> ListRequest {
        ListRequest {
            cluster: self.cluster.clone(),
            within: self.within.clone(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone(),
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            ..ListRequest::default()
        }
    }

    fn event(&self, change: &Change) -> Option<WatchEvent> {
        if self.cluster.as_ref().is_some_and(|cluster| *cluster != change.key.cluster)
            || (!self.namespace.is_empty() && self.namespace != change.key.namespace)
            || self
                .within
                .as_ref()
                .is_some_and(|within| !within.takes_cluster(&change.key.cluster, change.version))
        {
            return None;
        }
        let seen = |object: &Arc<Stored>| {
            self.labels.matches(&**object)
                && object.has_fields(&self.fields)
                && self.within.as_ref().is_none_or(|within| within.takes(object))
        };
        match (change.before().filter(seen), change.after().filter(seen)) {
            (None, None) => None,
            (None, Some(after)) => Some(WatchEvent::Added(after)),
            (Some(_), Some(after)) => Some(WatchEvent::Modified(after)),
            (Some(before), None) => Some(WatchEvent::Deleted(Arc::new(before.at(change.version)))),
        }
    }
}

/// What still goes into one answer to a poll.
struct Room {
    events: usize,
    bytes: usize,
    taken: bool,
}

impl Room {
    /// Whether something of this size goes in; the first one always does.
    fn take(&mut self, bytes: usize) -> bool {
        let fits = self.events > 0 && (bytes <= self.bytes || !self.taken);
        if fits {
            *self = Self { events: self.events - 1, bytes: self.bytes.saturating_sub(bytes), taken: true };
        }
        fits
    }
}

impl Watch {
    /// How many objects that were there when it began are not polled yet.
    pub fn initial_left(&self) -> usize {
        self.initial.len()
    }

    /// About how many bytes of JSON these are.
    pub fn initial_json_bytes(&self) -> usize {
        self.initial.iter().map(Held::json_bytes).sum()
    }

    /// Everything up to this version was polled.
    pub fn version(&self) -> Version {
        self.at
    }

    /// Whether it has ended with an error.
    pub fn is_over(&self) -> bool {
        self.over
    }
}

impl WatchEvent {
    /// As a line of a watch, `type` first so that readers need not buffer.
    pub fn to_json(&self, kind: &Kind) -> String {
        let line = |what: &str, object: &Value| format!(r#"{{"type":"{what}","object":{object}}}"#);
        match self {
            Self::Added(object) => line("ADDED", &object.to_value()),
            Self::Modified(object) => line("MODIFIED", &object.to_value()),
            Self::Deleted(object) => line("DELETED", &object.to_value()),
            Self::Error(status) => line("ERROR", &status.to_json()),
            Self::Bookmark { version, initial_events_end } => {
                let mut metadata = json!({ "resourceVersion": version.to_string() });
                if *initial_events_end {
                    metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
                }
                let api_version = kind.version("").map_or("", |version| version.api_version.as_str());
                line(
                    "BOOKMARK",
                    &json!({ "kind": *kind.name, "apiVersion": api_version, "metadata": metadata }),
                )
            }
        }
    }
}
