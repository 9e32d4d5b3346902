//! Whether all that a placement selects stands in its edges' mailboxes as it should: its condition `Ready`.

use mailboat_api::condition::{Condition, ConditionStatus, types};
use mailboat_api::edge::{HeldCopy, PlacementConflict, ValidationError};
use mailboat_engine::engine::NotCurrent;
use mailboat_engine::plan::Verdict;

/// What is known of a placement.
pub(super) struct Standing<'s> {
    pub(super) errors: &'s [ValidationError],
    /// How many edges it goes to.
    pub(super) edges: usize,
    /// How many of these have no mailbox yet: nothing can be wanted there, so nothing is missing there either.
    pub(super) without_mailbox: usize,
    pub(super) conflicts: &'s [PlacementConflict],
    pub(super) held: &'s [HeldCopy],
    /// Copies that are not as wanted.
    pub(super) not_current: &'s [NotCurrent],
}

/// What to say of it, given what was said of the same generation. Nothing new while copies are on their way: otherwise
/// every edit of an object would be told twice on each placement that selects it.
pub(super) fn condition(standing: &Standing<'_>, before: Option<&Condition>) -> Option<Condition> {
    let Standing { errors, edges, without_mailbox, conflicts, held, not_current } = standing;
    let on_its_way = |copy: &&NotCurrent| matches!(copy.verdict, Verdict::Acting | Verdict::Settled);
    let waits = not_current.iter().find(|copy| !on_its_way(copy));
    let no = |reason, message: String| Some(said(ConditionStatus::False, reason, message));
    if let Some(error) = errors.first() {
        return no("Invalid", counted(errors.len(), &format!("{}: {}", error.path, error.message)));
    }
    if *edges == 0 {
        return no("NoEdges", "no Location that it selects has an edge".to_owned());
    }
    if let Some(conflict) = conflicts.first() {
        return no("Conflict", counted(conflicts.len(), &conflict.message));
    }
    if let Some(copy) = held.first() {
        return no("Held", counted(held.len(), &copy.message));
    }
    if let Some(copy) = waits {
        return no("Waiting", copy.verdict.to_string());
    }
    if *without_mailbox > 0 {
        return no("Waiting", format!("{without_mailbox} of {edges} edges have no mailbox yet"));
    }
    if !not_current.is_empty() {
        return if before.is_some() { None } else { no("Delivering", String::new()) };
    }
    Some(said(ConditionStatus::True, "Delivered", String::new()))
}

/// The first of several, and how many there are.
fn counted(count: usize, first: &str) -> String {
    if count > 1 { format!("{first}; and {} more", count - 1) } else { first.to_owned() }
}

fn said(status: ConditionStatus, reason: &str, message: String) -> Condition {
    let (type_, reason) = (types::READY.to_owned(), reason.to_owned());
    Condition { type_, status, reason, message, ..Condition::default() }
}

#[cfg(test)]
mod tests {
    use mailboat_engine::plan::Wait;

    use super::*;

    fn copy(verdict: Verdict) -> NotCurrent {
        NotCurrent {
            slot: None,
            source: None,
            generation: None,
            delivered_generation: None,
            verdict,
            fault: None,
        }
    }

    const WELL: Standing<'_> =
        Standing { errors: &[], edges: 2, without_mailbox: 0, conflicts: &[], held: &[], not_current: &[] };

    fn told(standing: &Standing<'_>) -> (ConditionStatus, String, String) {
        let Condition { type_, status, reason, message, .. } = condition(standing, None).unwrap();
        assert_eq!(type_, types::READY);
        (status, reason, message)
    }

    #[test]
    fn it_is_ready_when_nothing_is_missing() {
        assert_eq!(told(&WELL), (ConditionStatus::True, "Delivered".to_owned(), String::new()));
    }

    #[test]
    fn the_first_thing_that_somebody_has_to_mend_is_told() {
        let held = [
            HeldCopy { message: "no such parameter".to_owned(), ..HeldCopy::default() },
            HeldCopy::default(),
        ];
        let error = [ValidationError { path: "spec.downsync[0]".to_owned(), message: "no".to_owned() }];
        let waiting = [copy(Verdict::Waiting(Wait::Kind))];
        for (standing, reason, message) in [
            (Standing { errors: &error, held: &held, ..WELL }, "Invalid", "spec.downsync[0]: no"),
            (Standing { edges: 0, ..WELL }, "NoEdges", "no Location that it selects has an edge"),
            (Standing { held: &held, ..WELL }, "Held", "no such parameter; and 1 more"),
            (Standing { without_mailbox: 1, ..WELL }, "Waiting", "1 of 2 edges have no mailbox yet"),
            (
                Standing { not_current: &waiting, ..WELL },
                "Waiting",
                "waiting: its kind is not served there yet",
            ),
        ] {
            assert_eq!(told(&standing), (ConditionStatus::False, reason.to_owned(), message.to_owned()));
        }
    }

    #[test]
    fn an_edit_on_its_way_is_not_told_twice() {
        let not_current = [copy(Verdict::Acting)];
        let standing = Standing { not_current: &not_current, ..WELL };
        assert_eq!(told(&standing).1, "Delivering");
        assert_eq!(condition(&standing, condition(&WELL, None).as_ref()), None);
    }
}
