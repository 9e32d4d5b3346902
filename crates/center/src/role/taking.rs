//! Taking up what is shown: which part of the center hears of an object that comes, changes or goes.

use std::sync::Arc;

use mailboat_api::names::group;
use mailboat_engine::role::Order;
use mailboat_object::key::{Key, KindId};
use mailboat_object::object::Object;
use mailboat_store::time::Now;

use super::endings::Course;
use super::{CenterRole, preparing};
use crate::mailbox;
use crate::schedule::{LocationFacts, TargetFacts};
use crate::translate::api_exports;

impl CenterRole {
    pub(super) fn sees(&mut self, now: Now, object: &Arc<Object>) {
        let key = &object.key;
        match Kind::of(&key.kind) {
            Some(Kind::Target) => {
                self.waiting.push(Order::Reach(key.cluster.clone()));
                self.workspaces.inventory(&key.cluster, &mut self.waiting);
                self.touch_locations(key);
                self.schedule.target(key, Some(TargetFacts::of(object)));
                self.touch_locations(key);
                self.statuses.sees_target(object);
                self.installing.sees_target(object);
                self.summing.target(object);
            }
            Some(Kind::Location) => {
                self.touch_edges(key);
                self.schedule.location(key, Some(LocationFacts::of(object)));
                self.touch_edges(key);
                self.statuses.touch(key);
            }
            Some(Kind::Placement) => {
                self.statuses.touch(key);
                let course = self.endings.sees(object);
                if object.deleting {
                    self.unanswered.gone(key);
                }
                if course != Course::Withdrawn {
                    self.summing.placement(object);
                    self.meets_placement(object, course == Course::Keeps);
                }
            }
            Some(Kind::Summarizer) => self.summing.summarizer(object),
            Some(Kind::Summary) => self.summing.summary(key),
            // What slices said before is read when their placement is taken up.
            Some(Kind::Slice) => {}
            None if key.kind == mailbox::workspaces() && key.cluster == self.identity.provider => {
                self.mailboxes.observe(object, &mut self.waiting);
            }
            None if key.kind == api_exports() && key.cluster == self.identity.provider => {
                self.views.sees_export(object);
            }
            None if key.kind == preparing::workspace_types() && key.cluster == self.identity.provider => {
                self.preparing.sees_type(&key.name, Some(object), &mut self.waiting);
            }
            // Which workspaces are mailboxes is not known yet: what stands in them is looked at when it is.
            None if !self.started => {}
            None => {
                if is_the_one(key) {
                    self.mailboxes.sees_the_one(object);
                }
                if is_configuration(key) {
                    self.mailboxes.sees_config(key, Some(object));
                }
                if let Some(uid) = self.mailboxes.of(&key.cluster) {
                    if is_the_one(key) {
                        self.statuses.hears(uid, object, now);
                        let named = |slot: &Key| self.mailboxes.tells_of(slot);
                        self.summing.reported(uid, object, self.statuses.heard(uid), &named);
                        self.passing.hears(uid, object, self.mailboxes.is_current(uid));
                    }
                    self.summing.touch(key);
                    self.guard.observe(object, &self.identity.provider, &*self.marks);
                }
            }
        }
    }

    /// Something is believed to be gone.
    pub(super) fn loses(&mut self, key: &Key) {
        match Kind::of(&key.kind) {
            Some(Kind::Target) => {
                self.touch_locations(key);
                self.schedule.target(key, None);
                self.statuses.target_gone(key);
                self.summing.target_gone(key);
                self.installing.target_gone(key);
            }
            Some(Kind::Location) => {
                self.touch_edges(key);
                self.schedule.location(key, None);
            }
            Some(Kind::Placement) => {
                self.endings.gone(key);
                self.places_no_more(key);
            }
            Some(Kind::Summarizer) => self.summing.gone(key),
            Some(Kind::Slice | Kind::Summary) | None => {}
        }
    }

    /// The Locations that lead to a SyncTarget count it.
    fn touch_locations(&mut self, target: &Key) {
        for location in self.schedule.locations_of(target) {
            self.statuses.touch(location);
        }
    }

    /// Summaries show the edges that a Location leads to by its name and labels.
    fn touch_edges(&mut self, location: &Key) {
        for target in self.schedule.targets_of(location) {
            self.summing.touch_edge(target);
        }
    }
}

fn is_the_one(key: &Key) -> bool {
    is_syncer_config(key) && key.name.as_str() == mailboat_api::names::object::THE_ONE
}

/// Whether an object tells a syncer what to carry.
pub(super) fn is_configuration(key: &Key) -> bool {
    is_syncer_config(key) || (key.kind.group() == group::EDGE && key.kind.resource() == "edgesyncconfigs")
}

fn is_syncer_config(key: &Key) -> bool {
    key.kind.group() == group::EDGE && key.kind.resource() == "syncerconfigs"
}

/// The kinds that say what goes where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Target,
    Location,
    Placement,
    Slice,
    Summarizer,
    Summary,
}

impl Kind {
    pub(super) fn of(kind: &KindId) -> Option<Self> {
        match (kind.group(), kind.resource()) {
            (group::EDGE | group::WORKLOAD, "synctargets") => Some(Self::Target),
            (group::EDGE | group::SCHEDULING, "locations") => Some(Self::Location),
            (group::EDGE, "edgeplacements") => Some(Self::Placement),
            (group::EDGE, "singleplacementslices") => Some(Self::Slice),
            (group::EDGE, "summarizers") => Some(Self::Summarizer),
            (group::EDGE, "statussummaries") => Some(Self::Summary),
            _ => None,
        }
    }
}
