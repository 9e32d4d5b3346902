//! Watches.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mailboat_machinery::{
    Kind, KindVersion, Status, Stored, TypeMeta, Watch, WatchEvent, WatchRequest, WatchStart,
};
use mailboat_object::Version;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::Call;
use super::ending::{self, Times};
use super::held::PIECE_BYTES;
use crate::Hub;
use crate::answer::{self, Answer};
use crate::flow::Pass;
use crate::hub::now_seconds;
use crate::lines::{Line, Row, SHARED_BYTES};
use crate::media::{Form, JSON, Shape};
use crate::protobuf::{self, BadProtobuf, PROTOBUF_STREAM};
use crate::table::{Columns, Include};

/// How many events are taken from the log at once, and how many bytes, so that a slow reader holds little.
const EVENTS_AT_ONCE: usize = 64;
const BYTES_AT_ONCE: usize = PIECE_BYTES;
/// How long a watch lasts whose client does not say: this, or up to twice as long, so that those who began together do not
/// come again together. Real servers do the same.
const SHORTEST: Duration = Duration::from_mins(30);
/// However long a client wants it.
const LONGEST: Duration = Duration::from_hours(24 * 365);
/// How often a watch is told how far it has come,
const BOOKMARKS_EVERY: Duration = Duration::from_mins(1);
/// and how long before its end for the last time, so that the next one need not begin further back.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

impl Call<'_> {
    /// Begins a watch. It has its turn as long as it lasts; and if it begins with a list, that has a turn of a request until
    /// it is read.
    pub(super) fn watch(&self, lasting: Pass, beginning: Option<Pass>) -> Result<Answer, Status> {
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
            kind: Arc::clone(&self.kind),
            metadata_only: self.accepted.shape == Shape::Metadata,
            form: self.accepted.form,
            columns,
            columns_told: false,
        };
        let ends_at = Instant::now() + lasts(self.query.timeout()?, self.hub.chance());
        // What is sent at once waits for nobody.
        let is_long = watch.initial_left() > EVENTS_AT_ONCE || watch.initial_json_bytes() > SHARED_BYTES;
        let beginning = beginning.filter(|_| is_long);
        let (sent, beginning) = match beginning {
            Some(turn) => {
                let (sent, told) = oneshot::channel();
                (Some(told), Some(Beginning { _turn: turn, _sent: sent }))
            }
            None => (None, None),
        };
        let stream = Streaming {
            hub: Arc::clone(self.hub),
            watch,
            bell,
            _lasting: lasting,
            beginning,
            begun: false,
            stopping: self.hub.stopping.subscribe(),
            writer,
            bookmark_at: bookmarks.then(|| next_bookmark(ends_at)),
            ends_at,
        };
        let stream = futures::stream::unfold(stream, Streaming::next);
        let times = Times { beginning: sent.map(|sent| (sent, self.hub.limits.answer_within)), ends_at };
        let media_type = match self.accepted.form {
            Form::Json | Form::Yaml => JSON,
            Form::Protobuf => PROTOBUF_STREAM,
        };
        Ok(answer::stream(ending::in_time(stream, times), media_type))
    }
}

/// One watch on its way out. It is driven by its reader: what nobody reads is not made.
struct Streaming {
    hub: Arc<Hub>,
    watch: Watch,
    bell: watch::Receiver<()>,
    /// It ends with the stream.
    _lasting: Pass,
    /// There until everything is taken that was there at the beginning.
    beginning: Option<Beginning>,
    /// Somebody came for what there is.
    begun: bool,
    stopping: watch::Receiver<bool>,
    writer: Writer,
    /// When it is told how far it has come, if its client wants to know.
    bookmark_at: Option<Instant>,
    ends_at: Instant,
}

/// What a watch has until its first list is sent.
struct Beginning {
    _turn: Pass,
    /// Tells when it is dropped.
    _sent: oneshot::Sender<()>,
}

/// How long a watch lasts.
fn lasts(asked: Option<Duration>, chance: u64) -> Duration {
    let by_chance = || SHORTEST + Duration::from_millis(chance % 1_800_000);
    asked.unwrap_or_else(by_chance).min(LONGEST)
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
            // Whoever comes back for more has taken what was made before.
            if self.begun && self.watch.initial_left() == 0 {
                self.beginning = None;
            }
            self.begun = true;
            // Those who have a turn are few. All others hold little of their own: what is larger is one event, which
            // they hold together.
            let bytes = if self.beginning.is_some() { BYTES_AT_ONCE } else { SHARED_BYTES };
            // A row may be much larger than what it tells of: none of them goes together with others.
            let is_single = self.beginning.is_none() && self.writer.columns.is_some();
            let at_once = if is_single { 1 } else { EVENTS_AT_ONCE };
            let events = self.hub.peek(|machine| machine.poll_bytes(&mut self.watch, at_once, bytes));
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
                    self.writer.columns_told = true;
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
    kind: Arc<Kind>,
    metadata_only: bool,
    form: Form,
    columns: Option<(Columns, Include)>,
    columns_told: bool,
}

impl Writer {
    /// What a line tells that others may be told as well.
    fn line(&self, event: &WatchEvent) -> Option<Line> {
        let (what, object) = match event {
            WatchEvent::Added(object) => ("ADDED", object),
            WatchEvent::Modified(object) => ("MODIFIED", object),
            WatchEvent::Deleted(object) => ("DELETED", object),
            WatchEvent::Bookmark { .. } | WatchEvent::Error(_) => return None,
        };
        let (api_version, metadata_only) = (self.version.api_version.clone(), self.metadata_only);
        let table = self.columns.as_ref().map(|(_, include)| Row {
            kind: Arc::downgrade(&self.kind),
            include: *include,
            with_columns: !self.columns_told,
        });
        Some(Line { version: object.version, what, api_version, metadata_only, form: self.form, table })
    }

    fn write(&mut self, event: &WatchEvent, out: &mut Vec<u8>) {
        let (what, object) = match event {
            WatchEvent::Added(object) => ("ADDED", object),
            WatchEvent::Modified(object) => ("MODIFIED", object),
            WatchEvent::Deleted(object) => ("DELETED", object),
            WatchEvent::Error(status) => return self.put(out, "ERROR", &status.to_json()),
            WatchEvent::Bookmark { version, initial_events_end } => {
                return self.put(out, "BOOKMARK", &self.bookmark(*version, *initial_events_end));
            }
        };
        match &self.columns {
            Some((columns, include)) => {
                let mut table = columns.table([object], *include, !self.columns_told, now_seconds());
                table["metadata"]["resourceVersion"] = object.version.to_string().into();
                self.columns_told = true;
                self.put(out, what, &table);
            }
            None => self.put(out, what, &self.shown(&self.version.shown(object))),
        }
    }

    /// Writes one event.
    fn put(&self, out: &mut Vec<u8>, what: &str, object: &impl serde::Serialize) {
        if self.form == Form::Protobuf {
            let said = serde_json::to_value(object).map_err(|_| BadProtobuf::Damaged);
            match said.and_then(|object| protobuf::write(&object)) {
                Ok(object) => protobuf::event(what, &object, out),
                Err(error) => {
                    // A status can always be said.
                    let status = Status::internal(error.to_string()).to_json();
                    protobuf::event("ERROR", &protobuf::write(&status).unwrap_or_default(), out);
                }
            }
            return;
        }
        out.extend_from_slice(br#"{"type":""#);
        out.extend_from_slice(what.as_bytes());
        out.extend_from_slice(br#"","object":"#);
        // What is written here is made of JSON values alone, which can always be written.
        let _ = serde_json::to_writer(&mut *out, object);
        out.extend_from_slice(b"}\n");
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
            (None, false) => (self.kind.name.as_str(), self.version.api_version.as_str()),
        };
        let mut bookmark = json!({ "kind": kind, "apiVersion": api_version, "metadata": metadata });
        // Real servers make it of an object in which nothing is said, and tell what every object has.
        let empty = self.kind.rules.empty.as_object().filter(|_| !self.metadata_only);
        for (name, value) in empty.into_iter().flatten().filter(|(name, _)| *name != "metadata") {
            bookmark[name] = value.clone();
        }
        bookmark
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_lasts_as_long_as_it_was_asked_for_else_by_chance() {
        let minutes = Duration::from_mins;
        assert_eq!(lasts(Some(Duration::from_secs(7)), 3), Duration::from_secs(7));
        assert_eq!(lasts(Some(Duration::from_hours(5)), 3), Duration::from_hours(5), "longer than by chance");
        assert_eq!(lasts(Some(Duration::from_secs(u64::MAX)), 3), LONGEST, "no clock knows that time");
        let all = [0, 1_000_000, u64::MAX].map(|chance| lasts(None, chance));
        assert!(all.iter().all(|time| (minutes(30)..minutes(60)).contains(time)), "{all:?}");
        assert_ne!(all[0], all[1]);
    }
}
