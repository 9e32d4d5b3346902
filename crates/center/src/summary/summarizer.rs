//! A Summarizer, and what is said on it.

use std::collections::BTreeMap;
use std::sync::Arc;

use mailboat_api::condition::{self, Condition, ConditionStatus, types};
use mailboat_api::edge::{SummarizerStatus, ValidationError};
use mailboat_store::time::{Moment, Now};

use super::board::Board;
use super::rules::Rules;
use super::show;

/// The most errors that a Summarizer's status lists; the schema says the same.
const MOST_ERRORS: usize = 50;

#[derive(Debug)]
pub(super) struct Summarizer {
    pub(super) rules: Arc<Rules>,
    pub(super) generation: i64,
    pub(super) written: SummarizerStatus,
    pub(super) changed: bool,
    pub(super) not_before: Moment,
}

impl Summarizer {
    /// What its status should say.
    pub(super) fn status(&self, boards: &[&Board], now: Now) -> SummarizerStatus {
        let mut errors = self.rules.errors.clone();
        let mut failing: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for (path, told, count) in boards.iter().flat_map(|board| board.failures()) {
            *failing.entry((path, told)).or_default() += count;
        }
        errors.extend(failing.into_iter().map(|((path, told), count)| ValidationError {
            path: path.to_owned(),
            message: format!("for {count} {}: {told}", if count == 1 { "copy" } else { "copies" }),
        }));
        errors.truncate(MOST_ERRORS);
        let (status, reason, message) = match errors.first() {
            None => (ConditionStatus::True, "ExpressionsWork", String::new()),
            Some(first) => {
                let message = format!("{}: {}; see validationErrors", first.path, first.message);
                (ConditionStatus::False, "ExpressionsFail", message)
            }
        };
        let mut conditions = self.written.conditions.clone();
        condition::set(
            &mut conditions,
            Condition {
                type_: types::READY.to_owned(),
                status,
                observed_generation: Some(self.generation),
                last_transition_time: show::time(now.wall_seconds),
                reason: reason.to_owned(),
                message,
                ..Condition::default()
            },
        );
        SummarizerStatus {
            observed_generation: Some(self.generation),
            placement_count: i32::try_from(boards.len()).ok(),
            validation_errors: errors,
            conditions,
        }
    }
}
