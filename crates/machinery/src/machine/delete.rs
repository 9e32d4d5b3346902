//! Deletion: preconditions, finalizers, grace.

use std::collections::HashSet;
use std::sync::Arc;

use mailboat_object::wire::Propagation;
use mailboat_object::{Key, KindId, Uid, Version};
use serde_json::{Value, json};

use super::write::{drop_metadata, has_grace};
use super::{ListRequest, Machine};
use crate::kind::Kind;
use crate::object::Stored;
use crate::random::Moment;
use crate::status::Status;
use crate::time::rfc3339;

pub(super) const ORPHAN: &str = "orphan";
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// How a deletion is made.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Only the object with this uid.
    pub uid: Option<Uid>,
    /// Only at this version.
    pub version: Option<Version>,
    /// What becomes of its dependents; none: what its finalizers say, else they go after it.
    pub propagation: Option<Propagation>,
    /// How long it may take to go; only kinds with a grace look at it.
    pub grace_seconds: Option<u64>,
    /// Check and answer, but delete nothing.
    pub dry_run: bool,
}

/// What came of a deletion.
#[derive(Clone, Debug)]
pub struct Deleted {
    /// The object: its last state if it is gone, else its state now.
    pub object: Arc<Stored>,
    /// It is gone; else something still holds it.
    pub gone: bool,
}

/// How much is deleted in one round: others wait as long as it takes, and until it is stored all of it is in memory.
#[derive(Clone, Debug)]
pub struct Room {
    changes: usize,
    bytes: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { changes: 500, bytes: 4 << 20 }
    }
}

impl Room {
    /// Whether there is some left.
    pub fn is_left(&self) -> bool {
        self.changes > 0 && self.bytes > 0
    }

    /// Takes room for one object of so many bytes. The first always goes in, however large.
    pub fn take(&mut self, bytes: usize) {
        *self = Self { changes: self.changes.saturating_sub(1), bytes: self.bytes.saturating_sub(bytes) };
    }
}

/// What a round of deletions found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Emptied {
    /// There was something.
    pub found: bool,
    /// Something is left that was held, or could not be looked at in this round.
    pub left: bool,
    /// There is more than goes in one round.
    pub more: bool,
}

impl std::ops::BitOrAssign for Emptied {
    fn bitor_assign(&mut self, other: Self) {
        self.found |= other.found;
        self.left |= other.left;
        self.more |= other.more;
    }
}

impl Deleted {
    /// The answer as JSON: the object, or a Status if it is gone and its kind does not return what is gone.
    pub fn to_json(&self, kind: &Kind) -> Value {
        if !self.gone || kind.rules.returns_deleted {
            return self.object.to_value();
        }
        let (name, id) = (&self.object.key.name, &kind.id);
        let mut details =
            json!({ "name": **name, "kind": id.resource(), "uid": self.object.uid.to_string() });
        if !id.group().is_empty() {
            details["group"] = id.group().into();
        }
        json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
    }
}

impl Machine {
    /// Deletes an object, or marks it for deletion if something holds it.
    pub fn delete(
        &mut self,
        key: &Key,
        options: &DeleteOptions,
        moment: &mut Moment<'_>,
    ) -> Result<Deleted, Status> {
        let kind = self.served(key)?;
        let live = self.find(key).ok_or_else(|| Status::not_found(&key.kind, &key.name))?;
        check_preconditions(&kind, &live, options)?;
        if let Some(deleted) = self.delete_by_lifecycle(&live, options, moment) {
            return Ok(deleted);
        }
        let mut body = live.body().clone();
        let period = grace_period(&kind, &live, options);
        if live.is_deleting() && has_grace(live.body()) && period.is_none() {
            // It is on its way already, and may only be hurried.
            return Ok(Deleted { object: live, gone: false });
        }
        set_finalizers(&mut body, &finalizers_for(&live, options.propagation));
        let held = !crate::metadata::texts(&body, "finalizers").is_empty();
        let period = period.unwrap_or(0);
        if !held && period == 0 {
            if options.version.is_some() && !live.finalizers().is_empty() {
                // A slip of real servers: having dropped the finalizers that say what becomes of dependents, they
                // hold the delete to a version that they forgot.
                let why = "Precondition failed: ResourceVersion in precondition: , ResourceVersion in object meta: ";
                return Err(Status::conflict(&key.kind, &key.name, &format!("{why}{}", live.version)));
            }
            let mut deleted = self.delete_now(&live, options);
            if kind.rules.grace_seconds.is_some() {
                // What has a grace is marked first, however short that is.
                let mut body = deleted.object.body().clone();
                mark(&mut body, &live, 0, moment.now_seconds);
                deleted.object = Arc::new(deleted.object.with_body(body));
            }
            return Ok(deleted);
        }
        mark(&mut body, &live, period, moment.now_seconds);
        if body == *live.body() {
            return Ok(Deleted { object: live, gone: false });
        }
        let stored = live.with_body(body);
        let object = if options.dry_run { Arc::new(stored) } else { self.put(stored) };
        Ok(Deleted { object, gone: false })
    }

    /// Deletes of what a list finds as much as there is room for.
    pub fn delete_all(&mut self, list: &ListRequest, room: &mut Room, moment: &mut Moment<'_>) -> Emptied {
        let mut emptied = Emptied::default();
        let found = self.page(list).map(|page| page.items).unwrap_or_default();
        for held in found {
            emptied.found = true;
            if !room.is_left() {
                return Emptied { left: true, more: true, ..emptied };
            }
            let (before, bytes) = (self.version, held.json_bytes());
            match self.delete(held.key(), &DeleteOptions::default(), moment) {
                Ok(deleted) => emptied.left |= !deleted.gone,
                Err(status) => emptied.left |= status.code() != 404,
            }
            // What goes already and is held costs no room: it would keep the rest from ever having its turn.
            if self.version > before {
                room.take(bytes);
            }
        }
        emptied
    }

    pub(super) fn delete_now(&mut self, live: &Arc<Stored>, options: &DeleteOptions) -> Deleted {
        let gone = if options.dry_run { None } else { self.take(&live.key) };
        Deleted { object: gone.unwrap_or_else(|| Arc::clone(live)), gone: true }
    }
}

fn check_preconditions(kind: &Kind, live: &Stored, options: &DeleteOptions) -> Result<(), Status> {
    // Here servers put the kind's own name where a resource should stand.
    let named = KindId::new(kind.id.group(), &kind.name);
    if let Some(uid) = options.uid.as_ref().filter(|uid| **uid != live.uid) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). \
             The object might have been deleted and then recreated",
            live.uid
        );
        return Err(Status::conflict(&named, &live.key.name, &why));
    }
    if let Some(version) = options.version.filter(|version| *version != live.version) {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). \
             The object might have been modified",
            live.version
        );
        return Err(Status::conflict(&named, &live.key.name, &why));
    }
    Ok(())
}

/// How long the object may take to go; none if it is on its way and not hurried.
fn grace_period(kind: &Kind, live: &Stored, options: &DeleteOptions) -> Option<u64> {
    let Some(default) = kind.rules.grace_seconds else { return Some(0) };
    let spec = &live.body()["spec"];
    if live.is_deleting() {
        let left = live.metadata()["deletionGracePeriodSeconds"].as_u64().unwrap_or(0);
        return options.grace_seconds.filter(|wished| *wished < left).or(if left == 0 {
            Some(0)
        } else {
            None
        });
    }
    // Nobody is there to say goodbye to.
    let unplaced = spec["nodeName"].as_str().unwrap_or_default().is_empty();
    let ended = matches!(live.body()["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if unplaced || ended {
        return Some(0);
    }
    Some(options.grace_seconds.or(spec["terminationGracePeriodSeconds"].as_u64()).unwrap_or(default))
}

/// The finalizers once deletion begins: the two that say what becomes of dependents are set anew.
fn finalizers_for(live: &Stored, propagation: Option<Propagation>) -> Vec<String> {
    let had = live.finalizers();
    let propagation = propagation.unwrap_or_else(|| {
        had.iter()
            .find_map(|finalizer| match *finalizer {
                ORPHAN => Some(Propagation::Orphan),
                FOREGROUND => Some(Propagation::Foreground),
                _ => None,
            })
            .unwrap_or_default()
    });
    let mut finalizers: Vec<String> = had
        .iter()
        .filter(|name| **name != ORPHAN && **name != FOREGROUND)
        .map(|name| (*name).to_owned())
        .collect();
    match propagation {
        Propagation::Background => {}
        Propagation::Foreground => finalizers.push(FOREGROUND.to_owned()),
        Propagation::Orphan => finalizers.push(ORPHAN.to_owned()),
    }
    let known: HashSet<&str> = had.iter().copied().collect();
    let same = finalizers.len() == had.len() && finalizers.iter().all(|name| known.contains(name.as_str()));
    if same { had.into_iter().map(str::to_owned).collect() } else { finalizers }
}

pub(super) fn set_finalizers(body: &mut Value, finalizers: &[String]) {
    if finalizers.is_empty() {
        drop_metadata(body, "finalizers");
    } else {
        body["metadata"]["finalizers"] = finalizers.iter().map(String::as_str).collect();
    }
}

/// Marks a body for deletion. The generation grows with it, so that controllers look at what they were told to
/// do once more.
pub(super) fn mark(body: &mut Value, live: &Stored, period: u64, now_seconds: u64) {
    if !live.is_deleting() {
        body["metadata"]["deletionTimestamp"] = rfc3339(now_seconds + period).into();
        if live.generation() > 0 {
            body["metadata"]["generation"] = (live.generation() + 1).into();
        }
    }
    body["metadata"]["deletionGracePeriodSeconds"] = period.into();
}
