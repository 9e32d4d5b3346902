//! What the syncer says of its work, in the status of its configuration: on change and with each beat, never once per
//! object. How everything stands is the engine's to know; here it is only put into words.

mod standing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mailboat_api::Time;
use mailboat_api::condition::{self, Condition, ConditionStatus, types};
use mailboat_api::edge::{AwaitedConfirmation, EdgeSyncConfigStatus, SyncerConfigStatus};
use mailboat_engine::engine::{Engine, Notice};
use mailboat_engine::plan::{ChangeId, Verdict};
use mailboat_engine::role::CallId;
use mailboat_object::catalog::Catalog;
use mailboat_object::json::Raw;
use mailboat_object::key::{ClusterId, Key, KindId, Name, Version};
use mailboat_object::merge::diff;
use mailboat_object::object::Object;
use mailboat_object::wire::{Call, Fault, Part, Reply, Verb};
use mailboat_store::seen::Seen;
use mailboat_store::store::Store;
use mailboat_store::time::{Moment, Now};
use serde_json::{Value, json};

use self::standing::Standing;
use crate::config::merge::{Problem, Rules};
use crate::config::{Config, ConfigId, ConfigKind};
use crate::downsync::Downsync;

/// No status is written more often than this, apart from beats.
const SPACING: Duration = Duration::from_secs(3);
/// The first change after a quiet time waits this long for others to join it.
const GATHERING: Duration = Duration::from_millis(300);
/// A syncer that has just begun says only that it is alive, until it knows how everything stands, but not longer than this:
/// then what keeps it from knowing is what there is to say.
const SILENT_AT_MOST: Duration = Duration::from_secs(30);
/// Problems named in one condition; more are counted.
const PROBLEMS_NAMED: usize = 20;
/// Whether entries that mean the same objects agree on how they are carried.
const OPTIONS_AGREE: &str = "OptionsAgree";

/// Says in time how everything stands.
pub struct Reporter {
    mailbox: ClusterId,
    edge: ClusterId,
    manager: Name,
    period: Duration,
    changed: bool,
    calls: u64,
    beat_at: Moment,
    write_at: Moment,
    delivered: Version,
    delivered_kinds: BTreeMap<KindId, Version>,
    held_since: BTreeMap<ChangeId, u64>,
    under_way: BTreeMap<CallId, ConfigId>,
    begun: Option<Moment>,
    /// Since the beginning there was something to say beside that it is alive.
    speaks: bool,
}

/// What the status is written from.
pub struct Sight<'a> {
    /// What is known.
    pub store: &'a Store,
    /// How slots stand.
    pub engine: &'a Engine,
    /// The configuration objects that are believed.
    pub configs: &'a BTreeMap<ConfigId, Config>,
    /// What they ask for; `None` until that is known.
    pub rules: Option<&'a Rules>,
    /// The route to the edge, once there is one.
    pub down: Option<&'a Downsync>,
    /// What the edge serves.
    pub edge_serves: Option<&'a Arc<Catalog>>,
    /// The kinds of the mailbox that are followed for delivery.
    pub sources: &'a BTreeSet<KindId>,
    /// What keeps the syncer as a whole from its work.
    pub troubles: Vec<String>,
    /// All that is followed was listed, and nothing waits to be evaluated. Asked until it is so once.
    pub is_complete: bool,
}

impl Reporter {
    /// A reporter that beats once in a period.
    pub fn new(mailbox: ClusterId, edge: ClusterId, manager: Name, period: Duration) -> Self {
        Self {
            mailbox,
            edge,
            manager,
            period,
            changed: true,
            calls: 0,
            beat_at: Moment(0),
            write_at: Moment(0),
            delivered: Version(0),
            delivered_kinds: BTreeMap::new(),
            held_since: BTreeMap::new(),
            under_way: BTreeMap::new(),
            begun: None,
            speaks: false,
        }
    }

    /// Whether it says more than that it is alive.
    pub fn speaks(&self) -> bool {
        self.speaks
    }

    /// A verdict changed.
    pub fn noticed(&mut self, notice: &Notice) {
        if notice.verdict != Verdict::Settled {
            tracing::debug!(slot = %notice.slot, verdict = %notice.verdict, fault = notice.fault.as_deref(), "stands");
        }
        self.changed = true;
    }

    /// Something else that is reported changed.
    pub fn touch(&mut self) {
        self.changed = true;
    }

    /// What came of a call. False if it was not the reporter's.
    pub fn answered(&mut self, id: CallId, reply: &Result<Reply, Fault>) -> bool {
        let Some(config) = self.under_way.remove(&id) else { return false };
        if let Err(fault) = reply {
            tracing::warn!(%config, %fault, "the status is not written");
        }
        true
    }

    /// What to write now, and when to ask again.
    pub fn next(
        &mut self,
        now: Now,
        sight: &Sight<'_>,
        mut id: impl FnMut() -> CallId,
    ) -> (Vec<(CallId, Call)>, Option<Moment>) {
        if sight.engine.calls() != self.calls {
            self.calls = sight.engine.calls();
            if !self.changed {
                self.write_at = self.write_at.max(now.mono + GATHERING);
            }
            self.changed = true;
        }
        let silent_until = *self.begun.get_or_insert(now.mono) + SILENT_AT_MOST;
        self.speaks |= sight.is_complete || now.mono >= silent_until;
        let write_at = if self.speaks { self.write_at } else { silent_until };
        let beats = now.mono >= self.beat_at;
        let writes = self.changed && now.mono >= write_at;
        if sight.configs.is_empty() || !(beats || writes) {
            let change = (self.changed && !sight.configs.is_empty()).then_some(write_at);
            let beat = (!sight.configs.is_empty()).then_some(self.beat_at);
            return (Vec::new(), [change, beat].into_iter().flatten().min());
        }
        // A slot that is written anew keeps its last verdict meanwhile: what is said now may not be all.
        self.changed = sight.engine.is_busy() || !self.speaks;
        self.write_at = now.mono + SPACING;
        if beats {
            self.beat_at = now.mono + self.period;
        }
        let standing = self.standing(sight);
        let mut calls = Vec::new();
        for config in sight.configs.values() {
            if self.under_way.values().any(|under_way| *under_way == config.id) {
                self.changed = true;
                continue;
            }
            if let Some(call) = self.write(now, sight, config, &standing, beats) {
                let id = id();
                self.under_way.insert(id, config.id.clone());
                calls.push((id, call));
            }
        }
        let again = if self.speaks { self.write_at } else { silent_until };
        (calls, Some(if self.changed { again.min(self.beat_at) } else { self.beat_at }))
    }

    fn standing(&mut self, sight: &Sight<'_>) -> Standing {
        let read: BTreeMap<&KindId, Option<Version>> = sight
            .sources
            .iter()
            .map(|kind| {
                let range = sight.store.range(&self.mailbox, kind, None);
                (kind, range.and_then(|range| range.missing()).ok())
            })
            .collect();
        // What was delivered once stays so, unless the mailbox itself went back.
        let further = |before: Version, read: Version| {
            let delivered = sight.engine.delivered_up_to(&self.mailbox, read)?;
            Some(delivered.max(before.min(read)))
        };
        // The kind that was read least far says how far the mailbox was read.
        if let Some(Some(read)) = read.values().min() {
            self.delivered = further(self.delivered, *read).unwrap_or(self.delivered);
        }
        let kinds = read.iter().filter_map(|(kind, read)| {
            let before = self.delivered_kinds.get(*kind).copied().unwrap_or_default();
            let delivered = further(before, (*read)?).unwrap_or(before);
            (delivered > Version(0)).then(|| ((*kind).clone(), delivered))
        });
        self.delivered_kinds = kinds.collect();
        Standing::of(&self.mailbox, &self.edge, sight)
    }

    fn write(
        &mut self,
        now: Now,
        sight: &Sight<'_>,
        config: &Config,
        standing: &Standing,
        beats: bool,
    ) -> Option<Call> {
        let key = Key {
            cluster: self.mailbox.clone(),
            kind: config.id.kind.kind(),
            namespace: Name::EMPTY,
            name: config.id.name.clone(),
        };
        let Seen::Present(object) = sight.store.get(&key) else { return None };
        let time = jiff::Timestamp::from_second(i64::try_from(now.wall_seconds).ok()?).ok().map(Time)?;
        let old = object.get(&["status"]).map_or_else(|| json!({}), Raw::to_value);
        if !self.speaks {
            let beat = json!({ "lastSyncerHeartbeatTime": time });
            return Some(self.patch(key, &json!({ "status": beat })));
        }
        let mut new = self.status(now, &time, sight, config, standing, object);
        let heartbeat = new.get("lastSyncerHeartbeatTime").cloned();
        if !beats {
            // Alone it is no reason to write.
            new["lastSyncerHeartbeatTime"] = old.get("lastSyncerHeartbeatTime").cloned().unwrap_or_default();
            diff(&old, &new)?;
            new["lastSyncerHeartbeatTime"] = heartbeat.unwrap_or_default();
        }
        Some(self.patch(key, &json!({ "status": diff(&old, &new)? })))
    }

    fn patch(&self, key: Key, patch: &Value) -> Call {
        let body = Arc::from(patch.to_string().into_bytes());
        let verb = Verb::Merge { body, manager: self.manager.clone() };
        Call { key, verb, part: Part::Status, dry_run: false }
    }

    fn status(
        &mut self,
        now: Now,
        time: &Time,
        sight: &Sight<'_>,
        config: &Config,
        standing: &Standing,
        object: &Object,
    ) -> Value {
        let generation = i64::try_from(config.generation).ok();
        let mut conditions: Vec<Condition> = object
            .get(&["status", "conditions"])
            .and_then(|conditions| serde_json::from_str(conditions.json()).ok())
            .unwrap_or_default();
        let awaited = self.awaited(now, standing);
        let mut set = |type_: &str, (status, reason, message): (ConditionStatus, &str, String)| {
            let condition = Condition {
                type_: type_.to_owned(),
                status,
                observed_generation: generation,
                last_transition_time: Some(time.clone()),
                reason: reason.to_owned(),
                message,
                ..Condition::default()
            };
            condition::set(&mut conditions, condition);
        };
        set(types::READY, ready(sight, config));
        set(OPTIONS_AGREE, options_agree(sight, config));
        let held = match &awaited {
            Some(awaited) => (ConditionStatus::True, "ConfirmationAwaited", awaited.message.clone()),
            None => (ConditionStatus::False, "NothingHeld", String::new()),
        };
        set(types::WITHDRAWAL_HELD, held);
        let value = match config.id.kind {
            ConfigKind::SyncerConfig => serde_json::to_value(SyncerConfigStatus {
                last_syncer_heartbeat_time: Some(time.clone()),
                observed_generation: generation,
                delivered_resource_version: match self.delivered {
                    Version(0) => String::new(),
                    version => version.to_string(),
                },
                delivered_kinds: self
                    .delivered_kinds
                    .iter()
                    .map(|(kind, version)| (kind.to_string(), version.to_string()))
                    .collect(),
                counts: Some(standing.counts),
                not_current: standing.not_current.clone(),
                not_current_omitted: (standing.omitted > 0).then_some(standing.omitted),
                awaiting_confirmation: awaited,
                conditions,
            }),
            ConfigKind::EdgeSyncConfig => serde_json::to_value(EdgeSyncConfigStatus {
                last_syncer_heartbeat_time: Some(time.clone()),
                observed_generation: generation,
                conditions,
            }),
        };
        value.unwrap_or_default()
    }

    /// The held change that has the most to withdraw.
    fn awaited(&mut self, now: Now, standing: &Standing) -> Option<AwaitedConfirmation> {
        self.held_since.retain(|change, _| standing.held.contains_key(change));
        for change in standing.held.keys() {
            self.held_since.entry(*change).or_insert_with(|| {
                tracing::warn!(%change, "much would be deleted at once; it is held until somebody confirms this change");
                now.wall_seconds
            });
        }
        let (change, count) = standing.held.iter().max_by_key(|(_, count)| **count)?;
        let since = self.held_since.get(change).and_then(|seconds| i64::try_from(*seconds).ok());
        Some(AwaitedConfirmation {
            change_id: change.to_string(),
            withdrawals: i64::try_from(*count).ok(),
            since: since.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok()).map(Time),
            message: format!(
                "{count} objects would be deleted at once; the annotation {}={change} on a SyncerConfig lets them go",
                mailboat_api::names::annotation::CONFIRM_WITHDRAWAL
            ),
        })
    }
}

fn ready(sight: &Sight<'_>, config: &Config) -> (ConditionStatus, &'static str, String) {
    if !sight.troubles.is_empty() {
        return (ConditionStatus::False, "SyncerTroubled", sight.troubles.join("; "));
    }
    match sight.rules {
        None => {
            (ConditionStatus::Unknown, "NotYetKnown", "what both sides serve is being found out".to_owned())
        }
        Some(rules) => match rules.problems.get(&config.id) {
            None => (ConditionStatus::True, "EntriesWork", String::new()),
            Some(problems) => (ConditionStatus::False, "EntriesHeld", listed(problems)),
        },
    }
}

fn options_agree(sight: &Sight<'_>, config: &Config) -> (ConditionStatus, &'static str, String) {
    let disagreements = sight.rules.and_then(|rules| rules.disagreements.get(&config.id));
    match disagreements {
        None => (ConditionStatus::True, "NoneDisagree", String::new()),
        Some(disagreements) => (ConditionStatus::False, "EntriesDisagree", listed(disagreements)),
    }
}

fn listed(problems: &[Problem]) -> String {
    let named = problems.iter().take(PROBLEMS_NAMED);
    let mut text: Vec<String> =
        named.map(|problem| format!("{}: {}", problem.path, problem.message)).collect();
    if problems.len() > PROBLEMS_NAMED {
        text.push(format!("and {} more", problems.len() - PROBLEMS_NAMED));
    }
    text.join("; ")
}
