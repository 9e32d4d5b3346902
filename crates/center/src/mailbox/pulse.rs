//! Whether a syncer is alive: its heartbeats, and what the SyncTarget says of them.
//!
//! A syncer writes the time of its clock, which may be wrong; the center goes by its own, from the moment when it
//! saw that time change. A silent edge loses `Ready` and nothing else: what runs there goes on.

use mailboat_api::Time;
use mailboat_api::condition::{self, Condition, ConditionStatus, types};

/// How long a silence may be, and how often a time is written down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// After so many seconds without a beat a syncer is silent.
    pub silent_after_seconds: u64,
    /// The time of the last beat is written at most this often, in seconds, unless something else changes.
    pub write_every_seconds: u64,
}

impl Default for Limits {
    /// Three beats missed, and a write for each target every five minutes.
    fn default() -> Self {
        Self { silent_after_seconds: 90, write_every_seconds: 300 }
    }
}

/// The last beat, and when it was heard. All times in Unix seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pulse {
    beat: u64,
    heard: u64,
    /// It was found standing then, and no other was heard since: nobody here knows when it came.
    found: Option<u64>,
}

/// How things are with a SyncTarget besides its heartbeat.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// Why there is no mailbox that could be used yet, in a sentence.
    pub mailbox_missing: Option<String>,
    /// Nothing new goes there.
    pub unschedulable: bool,
    /// Its generation.
    pub generation: i64,
    /// Whether withdrawals from its mailbox are held, as a condition; `None` while that is not known.
    pub held: Option<Condition>,
    /// Whether the center installed its syncer.
    pub installed: Installed,
}

/// What can be said of a syncer's installation by the center.
#[derive(Clone, PartialEq, Default, Debug)]
pub enum Installed {
    /// It is not asked for.
    #[default]
    NotAsked,
    /// It is, and nothing came of it yet: what was said before holds.
    Unsaid,
    /// How it went, as a condition.
    Said(Condition),
}

/// What a SyncTarget's status should say.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// The time of the last beat.
    pub heartbeat: Option<u64>,
}

impl Pulse {
    /// The first beat of a syncer that was not heard of before. Its clock is all there is to go by.
    pub fn first(beat: u64, now: u64) -> Self {
        Self { beat, heard: beat.min(now), found: None }
    }

    /// A beat that stands there when its mailbox is seen for the first time, as after a start. What was said of it before holds
    /// until there was time for another one: the syncer's clock may be wrong, and whoever heard it went by their own.
    pub fn found(beat: u64, now: u64) -> Self {
        Self { found: Some(now), ..Self::first(beat, now) }
    }

    /// What stands in the status now; another time than before is a beat, whatever that time is.
    #[must_use]
    pub fn seen(self, beat: u64, now: u64) -> Self {
        if beat == self.beat { self } else { Self { beat, heard: now, found: None } }
    }

    /// When it was last heard, by the center's own clock.
    pub fn heard(self) -> u64 {
        self.heard
    }

    /// When it was last heard, where somebody said then that it was in time.
    pub fn heard_in_time(self) -> u64 {
        self.found.unwrap_or(self.heard)
    }

    /// When it will have been silent for too long.
    pub fn silent_from(self, limits: Limits) -> u64 {
        self.heard.max(self.found.unwrap_or_default()) + limits.silent_after_seconds
    }

    /// What was said of it before and holds, since no other beat was heard nor missed.
    fn said_before(self, before: &[Condition], now: u64, limits: Limits) -> Option<&Condition> {
        self.found?;
        condition::find(before, types::HEARTBEAT_HEALTHY).filter(|said| match said.status {
            ConditionStatus::True => now < self.silent_from(limits),
            ConditionStatus::False => said.reason == types::REASON_HEARTBEAT,
            ConditionStatus::Unknown => false,
        })
    }
}

/// What should be written into a SyncTarget's status; `None` if it says so already.
pub fn judge(
    before: &[Condition],
    written: Option<u64>,
    pulse: Option<Pulse>,
    standing: &Standing,
    now: u64,
    limits: Limits,
) -> Option<Judged> {
    let mut conditions = before.to_vec();
    let mut changed = false;
    // It was heard of before, as the center itself said, and nothing that stands in its mailbox tells of that.
    let was_heard = condition::find(before, types::HEARTBEAT_HEALTHY)
        .is_some_and(|said| said.status != ConditionStatus::Unknown);
    let lost = pulse.is_none() && written.is_some() && was_heard;
    let made_again = lost && standing.mailbox_missing.is_none();
    let holds = pulse.and_then(|pulse| pulse.said_before(before, now, limits));
    for condition in judged(pulse, holds, standing, lost, now, limits) {
        changed |= condition::set(&mut conditions, condition);
    }
    // Told from the first time on that it is not.
    let said = condition::find(before, types::SYNCER_AUTHORIZED).is_some();
    if made_again || (said && pulse.is_some()) {
        let said = authorized(standing, made_again);
        let observed_generation = Some(standing.generation);
        let said = Condition { last_transition_time: time(now), observed_generation, ..said };
        changed |= condition::set(&mut conditions, said);
    }
    // Told from the first time on that something is held.
    if let Some(held) = &standing.held
        && (held.status == ConditionStatus::True || condition::find(before, &held.type_).is_some())
    {
        let held = Condition { last_transition_time: time(now), ..held.clone() };
        changed |= condition::set(&mut conditions, held);
    }
    match &standing.installed {
        Installed::Said(said) => {
            let observed_generation = Some(standing.generation);
            let said = Condition { last_transition_time: time(now), observed_generation, ..said.clone() };
            changed |= condition::set(&mut conditions, said);
        }
        Installed::Unsaid => {}
        Installed::NotAsked => {
            let before = conditions.len();
            conditions.retain(|condition| condition.type_ != types::SYNCER_INSTALLED);
            changed |= conditions.len() != before;
        }
    }
    // What was written down before was heard by a center's clock.
    let silent = holds.is_some_and(|said| said.status == ConditionStatus::False);
    let heard = pulse.filter(|_| !silent).map(|pulse| match (pulse.found, written) {
        (Some(_), Some(written)) => pulse.heard.max(written),
        _ => pulse.heard,
    });
    let due = match (written, heard) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(written), Some(heard)) => heard >= written + limits.write_every_seconds,
    };
    (changed || due).then(|| Judged { conditions, heartbeat: heard.or(written) })
}

/// Whether a syncer's credential is one for the mailbox that stands.
fn authorized(standing: &Standing, made_again: bool) -> Condition {
    let type_ = types::SYNCER_AUTHORIZED.to_owned();
    if !made_again {
        let (status, reason) = (ConditionStatus::True, "Heard".to_owned());
        return Condition { type_, status, reason, ..Condition::default() };
    }
    let how = if standing.installed == Installed::NotAsked {
        format!(
            "run `kubectl mailboat prep-for-syncer {}` and apply what it writes to the edge",
            standing.name
        )
    } else {
        "the center gives it one".to_owned()
    };
    let message = format!(
        "its mailbox was made again, as another workspace, for which its syncer needs a new credential: {how}; what runs at \
         the edge stays"
    );
    let (status, severity) = (ConditionStatus::False, "Error".to_owned());
    Condition { type_, status, severity, reason: MADE_AGAIN.to_owned(), message, ..Condition::default() }
}

/// Why a syncer that was heard of is not heard any more: its mailbox is not there, or is another.
const NO_MAILBOX: &str = "NoMailbox";
const MADE_AGAIN: &str = "MailboxMadeAgain";

fn judged(
    pulse: Option<Pulse>,
    said: Option<&Condition>,
    standing: &Standing,
    lost: bool,
    now: u64,
    limits: Limits,
) -> [Condition; 3] {
    let condition = |type_: &str, status: ConditionStatus, reason: &str, message: String| Condition {
        type_: type_.to_owned(),
        status,
        severity: if status == ConditionStatus::False { "Error".to_owned() } else { String::new() },
        observed_generation: Some(standing.generation),
        last_transition_time: time(now),
        reason: reason.to_owned(),
        message,
    };
    let heartbeat = match (said, pulse) {
        (Some(said), _) => {
            condition(types::HEARTBEAT_HEALTHY, said.status, &said.reason, said.message.clone())
        }
        (None, Some(pulse)) if now < pulse.heard + limits.silent_after_seconds => {
            condition(types::HEARTBEAT_HEALTHY, ConditionStatus::True, "Heard", String::new())
        }
        (None, Some(pulse)) => {
            let last = time(pulse.heard).map(|time| time.0.to_string()).unwrap_or_default();
            let message =
                format!("no heartbeat for {} seconds; the last was at {last}", limits.silent_after_seconds);
            condition(types::HEARTBEAT_HEALTHY, ConditionStatus::False, types::REASON_HEARTBEAT, message)
        }
        // Never again `Unknown`, also while the workspace is being made: that it was heard of is known by this alone.
        (None, None) if lost => {
            let (reason, message) = match &standing.mailbox_missing {
                Some(why) => (NO_MAILBOX, why.clone()),
                None => (MADE_AGAIN, authorized(standing, true).message),
            };
            condition(types::HEARTBEAT_HEALTHY, ConditionStatus::False, reason, message)
        }
        (None, None) => {
            let message = "its syncer has not been heard of yet".to_owned();
            condition(types::HEARTBEAT_HEALTHY, ConditionStatus::Unknown, "NeverHeard", message)
        }
    };
    let ready = match &standing.mailbox_missing {
        Some(why) => condition(types::READY, ConditionStatus::False, NO_MAILBOX, why.clone()),
        None => Condition { type_: types::READY.to_owned(), ..heartbeat.clone() },
    };
    let schedulable = if standing.unschedulable {
        let message = "spec.unschedulable keeps new work away".to_owned();
        let held = condition(types::SCHEDULABLE, ConditionStatus::False, "Unschedulable", message);
        Condition { severity: "Info".to_owned(), ..held }
    } else {
        condition(types::SCHEDULABLE, ConditionStatus::True, "Schedulable", String::new())
    };
    [ready, heartbeat, schedulable]
}

fn time(seconds: u64) -> Option<Time> {
    jiff::Timestamp::from_second(i64::try_from(seconds).ok()?).ok().map(Time)
}
