//! One condition type for every kind: what Kubernetes' conditions hold, and the severity that kcp's add.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Time;

/// One observation about an object, such as `Ready`, with the time it last changed and why.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What is observed, in CamelCase, for example `Ready`. At most one condition of a type is listed.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    pub type_: String,

    /// Whether it holds: `True`, `False`, or `Unknown` while nobody can tell.
    #[serde(default)]
    pub status: ConditionStatus,

    /// How bad it is that the condition is `False`: `Error`, `Warning` or `Info`. Empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub severity: String,

    /// The `metadata.generation` that this was observed at. If the object has a newer one, the condition is
    /// out of date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// When the status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,

    /// One word, in CamelCase, that a program can tell the cause by.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub reason: String,

    /// The cause in a sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32768))]
    pub message: String,
}

/// Whether a condition holds.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody can tell now.
    #[default]
    Unknown,
}

/// Condition types and reasons that other systems know by name.
pub mod types {
    /// Summary of all others.
    pub const READY: &str = "Ready";
    /// The syncer of a SyncTarget is there.
    pub const SYNCER_READY: &str = "SyncerReady";
    /// kcp's name for heartbeats arriving in time.
    pub const HEARTBEAT_HEALTHY: &str = "HeartbeatHealthy";
    /// The workload syncer's name for heartbeats arriving in time.
    pub const HEARTBEAT_READY: &str = "HeartbeatReady";
    /// The syncer may touch at the edge what it is asked to.
    pub const SYNCER_AUTHORIZED: &str = "SyncerAuthorized";
    /// The edge's kinds are known.
    pub const API_IMPORTER_READY: &str = "APIImporterReady";
    /// New work may be placed on a SyncTarget.
    pub const SCHEDULABLE: &str = "Schedulable";
    /// The center installed the syncer of a SyncTarget in its edge.
    pub const SYNCER_INSTALLED: &str = "SyncerInstalled";
    /// Withdrawals are held until a user confirms them.
    pub const WITHDRAWAL_HELD: &str = "WithdrawalHeld";
    /// A placement's deletion waits until what it placed has gone.
    pub const DELETION_WAITS: &str = "DeletionWaits";
    /// Something that a placement selects acts on its own workspace too.
    pub const TAKES_EFFECT_HERE: &str = "TakesEffectHere";
    /// Reason: no heartbeat in time.
    pub const REASON_HEARTBEAT: &str = "ErrorHeartbeat";
}

/// Finds the condition of one type.
pub fn find<'conditions>(
    conditions: &'conditions [Condition],
    type_: &str,
) -> Option<&'conditions Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Puts `condition` into the list and says whether anything changed.
///
/// The old transition time stays unless the status changed, so that a repeated observation is no write; the
/// list is kept with `Ready` first and the rest by name, as kcp does, so that two writers agree on its order.
pub fn set(conditions: &mut Vec<Condition>, mut condition: Condition) -> bool {
    if let Some(old) = conditions.iter_mut().find(|old| old.type_ == condition.type_) {
        if old.status == condition.status {
            condition.last_transition_time.clone_from(&old.last_transition_time);
        }
        if *old == condition {
            return false;
        }
        *old = condition;
    } else {
        conditions.push(condition);
    }
    conditions.sort_by(|a, b| {
        (a.type_ != types::READY, a.type_.as_str()).cmp(&(b.type_ != types::READY, b.type_.as_str()))
    });
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(type_: &str, status: ConditionStatus, at: &str) -> Condition {
        Condition {
            type_: type_.to_owned(),
            status,
            last_transition_time: Some(Time(at.parse().expect("a timestamp"))),
            ..Condition::default()
        }
    }

    #[test]
    fn a_repeated_observation_changes_nothing() {
        let mut conditions = vec![condition("Ready", ConditionStatus::True, "2024-01-01T00:00:00Z")];
        let before = conditions.clone();
        assert!(!set(&mut conditions, condition("Ready", ConditionStatus::True, "2024-01-02T00:00:00Z")));
        assert_eq!(conditions, before);
    }

    #[test]
    fn a_changed_message_keeps_the_time_and_a_flip_does_not() {
        let mut conditions = vec![condition("Ready", ConditionStatus::True, "2024-01-01T00:00:00Z")];
        let told = Condition {
            message: "more".to_owned(),
            ..condition("Ready", ConditionStatus::True, "2024-01-02T00:00:00Z")
        };
        assert!(set(&mut conditions, told));
        assert_eq!(
            conditions[0].last_transition_time,
            condition("", ConditionStatus::True, "2024-01-01T00:00:00Z").last_transition_time
        );
        assert!(set(&mut conditions, condition("Ready", ConditionStatus::False, "2024-01-03T00:00:00Z")));
        assert_eq!(conditions[0].status, ConditionStatus::False);
        assert_eq!(
            conditions[0].last_transition_time,
            condition("", ConditionStatus::True, "2024-01-03T00:00:00Z").last_transition_time
        );
    }

    #[test]
    fn ready_comes_first_and_the_rest_by_name() {
        let mut conditions = Vec::new();
        for type_ in ["Synced", "Alive", "Ready"] {
            assert!(set(&mut conditions, condition(type_, ConditionStatus::True, "2024-01-01T00:00:00Z")));
        }
        let order: Vec<_> = conditions.iter().map(|condition| condition.type_.as_str()).collect();
        assert_eq!(order, ["Ready", "Alive", "Synced"]);
        assert!(find(&conditions, "Alive").is_some());
    }
}
