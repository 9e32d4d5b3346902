//! Watches.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mailboat_machinery::{
    KindVersion, Status, Stored, TypeMeta, Watch, WatchEvent, WatchRequest, WatchStart,
};
use mailboat_object::Version;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::Call;
use crate::Hub;
use crate::answer::{self, Answer};
use crate::flow::Pass;
use crate::hub::now_seconds;
use crate::lines::Line;
use crate::media::Shape;
use crate::table::{Columns, Include};

/// How many events are taken from the log at once, so that a slow reader holds little.
const EVENTS_AT_ONCE: usize = 64;
/// How long a watch lasts whose client does not say.
const LONGEST: Duration = Duration::from_hours(1);
/// How often a watch is told how far it has come,
const BOOKMARKS_EVERY: Duration = Duration::from_mins(1);
/// and how long before its end for the last time, so that the next one need not begin further back.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

impl Call<'_> {
    pub(super) fn watch(&self, turn: Pass) -> Result<Answer, Status> {
        let initial_events = self.query.is("sendInitialEvents");
        self.query.check_list(self.query.version()?, true)?;
        let bookmarks = self.query.is("allowWatchBookmarks");
        let start = match self.query.version()? {
            _ if initial_events => WatchStart::InitialEvents,
            None | Some(Version(0)) => WatchStart::Now,
            Some(version) => WatchStart::After(version),
        };
        let request = WatchRequest {
            cluster: self.place.cluster.clone(),
            within: self.within(),
            kind: self.kept().clone(),
            namespace: self.path.namespace.clone(),
            labels: self.query.labels()?,
            fields: self.fields()?,
            start,
        };
        // Listening begins before looking, so that nothing falls between the two.
        let bell = self.hub.bells.listen(request.cluster.as_ref(), &request.kind);
        let watch = self.hub.peek(|machine| machine.watch(request))?;
        let columns = match self.accepted.shape {
            Shape::Table => Some((Columns::of(&self.kind, &self.version), self.include()?)),
            _ => None,
        };
        let writer = Writer {
            version: self.version.clone(),
            kind: self.kind.name.to_string(),
            metadata_only: self.accepted.shape == Shape::Metadata,
            columns,
            columns_told: false,
        };
        let ends_at = Instant::now() + self.query.timeout()?.unwrap_or(LONGEST).min(LONGEST);
        let stream = Streaming {
            hub: Arc::clone(self.hub),
            watch,
            bell,
            _turn: turn,
            stopping: self.hub.stopping.subscribe(),
            writer,
            bookmark_at: bookmarks.then(|| next_bookmark(ends_at)),
            ends_at,
        };
        Ok(answer::stream(futures::stream::unfold(stream, Streaming::next)))
    }
}

/// One watch on its way out. It is driven by its reader: what nobody reads is not made.
struct Streaming {
    hub: Arc<Hub>,
    watch: Watch,
    bell: watch::Receiver<()>,
    /// It ends with the stream.
    _turn: Pass,
    stopping: watch::Receiver<bool>,
    writer: Writer,
    /// When it is told how far it has come, if its client wants to know.
    bookmark_at: Option<Instant>,
    ends_at: Instant,
}

/// When the next bookmark is due.
fn next_bookmark(ends_at: Instant) -> Instant {
    let now = Instant::now();
    let last = ends_at.checked_sub(BOOKMARK_BEFORE_END).filter(|last| *last > now);
    let next = now + BOOKMARKS_EVERY;
    last.map_or(next, |last| last.min(next))
}

impl Streaming {
    /// The next lines; none at the end.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        loop {
            if self.watch.is_over() {
                return None;
            }
            let events = self.hub.peek(|machine| machine.poll(&mut self.watch, EVENTS_AT_ONCE));
            if !events.is_empty() {
                let bookmarks = self.bookmark_at.is_some();
                let wanted = |event: &&WatchEvent| bookmarks || !matches!(event, WatchEvent::Bookmark { .. });
                let wanted: Vec<&WatchEvent> = events.iter().filter(wanted).collect();
                // Of what is new there is one most often, and others wait for the same.
                if let [event] = *wanted
                    && let Some(line) = self.writer.line(event)
                {
                    let bytes = self.hub.lines.get(&line, || {
                        let mut bytes = Vec::new();
                        self.writer.write(event, &mut bytes);
                        bytes
                    });
                    return Some((bytes, self));
                }
                let mut lines = Vec::new();
                for event in wanted {
                    self.writer.write(event, &mut lines);
                }
                return Some((lines.into(), self));
            }
            // Asked after the look above: what happens to other kinds wakes no watch, and moves it on only when it looks.
            if self.bookmark_at.is_some_and(|due| due <= Instant::now()) {
                self.bookmark_at = Some(next_bookmark(self.ends_at));
                if let Some(bookmark) = self.hub.peek(|machine| machine.bookmark(&self.watch)) {
                    let mut lines = Vec::new();
                    self.writer.write(&bookmark, &mut lines);
                    return Some((lines.into(), self));
                }
            }
            if !self.wait().await {
                return None;
            }
        }
    }

    /// Waits until there may be something to send; false at the end.
    async fn wait(&mut self) -> bool {
        let bookmark_at = self.bookmark_at.unwrap_or(self.ends_at);
        tokio::select! {
            rung = self.bell.changed() => rung.is_ok(),
            () = sleep_until(self.ends_at) => false,
            () = sleep_until(bookmark_at) => true,
            _ = self.stopping.wait_for(|stopping| *stopping) => false,
        }
    }
}

/// How one watch writes its events.
struct Writer {
    /// The version in which objects are shown.
    version: KindVersion,
    kind: String,
    metadata_only: bool,
    columns: Option<(Columns, Include)>,
    columns_told: bool,
}

impl Writer {
    /// What a line tells that others may be told as well; tables are everybody's own.
    fn line(&self, event: &WatchEvent) -> Option<Line> {
        let (what, object) = match event {
            WatchEvent::Added(object) => ("ADDED", object),
            WatchEvent::Modified(object) => ("MODIFIED", object),
            WatchEvent::Deleted(object) => ("DELETED", object),
            WatchEvent::Bookmark { .. } | WatchEvent::Error(_) => return None,
        };
        let (api_version, metadata_only) = (self.version.api_version.clone(), self.metadata_only);
        let line = Line { version: object.version, what, api_version, metadata_only };
        self.columns.is_none().then_some(line)
    }

    fn write(&mut self, event: &WatchEvent, out: &mut Vec<u8>) {
        let (what, object) = match event {
            WatchEvent::Added(object) => ("ADDED", object),
            WatchEvent::Modified(object) => ("MODIFIED", object),
            WatchEvent::Deleted(object) => ("DELETED", object),
            WatchEvent::Error(status) => return line(out, "ERROR", &status.to_json()),
            WatchEvent::Bookmark { version, initial_events_end } => {
                return line(out, "BOOKMARK", &self.bookmark(*version, *initial_events_end));
            }
        };
        match &self.columns {
            Some((columns, include)) => {
                let mut table = columns.table([object], *include, !self.columns_told, now_seconds());
                table["metadata"]["resourceVersion"] = object.version.to_string().into();
                self.columns_told = true;
                line(out, what, &table);
            }
            None => line(out, what, &self.shown(&self.version.shown(object))),
        }
    }

    fn shown<'s>(&'s self, object: &'s Stored) -> mailboat_machinery::Shown<'s> {
        object.shown(if self.metadata_only {
            TypeMeta::MetadataOnly
        } else {
            TypeMeta::Version(&self.version.api_version)
        })
    }

    fn bookmark(&self, version: Version, initial_events_end: bool) -> Value {
        let mut metadata = json!({ "resourceVersion": version.to_string() });
        if initial_events_end {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let (kind, api_version) = match (&self.columns, self.metadata_only) {
            (Some(_), _) => {
                let row = json!({ "cells": [], "object": {
                    "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                } });
                return json!({
                    "kind": "Table", "apiVersion": "meta.k8s.io/v1",
                    "metadata": { "resourceVersion": version.to_string() }, "columnDefinitions": null,
                    "rows": [row],
                });
            }
            (None, true) => ("PartialObjectMetadata", "meta.k8s.io/v1"),
            (None, false) => (self.kind.as_str(), self.version.api_version.as_str()),
        };
        json!({ "kind": kind, "apiVersion": api_version, "metadata": metadata })
    }
}

fn line(out: &mut Vec<u8>, what: &str, object: &impl serde::Serialize) {
    out.extend_from_slice(br#"{"type":""#);
    out.extend_from_slice(what.as_bytes());
    out.extend_from_slice(br#"","object":"#);
    // What is written here is made of JSON values alone, which can always be written.
    let _ = serde_json::to_writer(&mut *out, object);
    out.extend_from_slice(b"}\n");
}
