//! Copies that a center cannot see since it started, and that syncers carry on: the SyncTarget says so, and how to let them go.

use std::collections::{BTreeMap, BTreeSet};

use mailboat_api::condition::{Condition, ConditionStatus, types};
use mailboat_api::names::annotation;
use mailboat_engine::engine::Engine;
use mailboat_engine::plan::ChangeId;
use mailboat_object::key::{ClusterId, Key, KindId};
use mailboat_store::store::Store;
use mailboat_store::time::Moment;

use super::CenterRole;
use super::endings::confirms;
use super::guard::Told;

/// The most kinds that are named.
const MOST_NAMED: usize = 10;

/// What is said of mailboxes in which copies cannot be seen.
#[derive(Default)]
pub(super) struct Unsighted {
    told: Told,
    /// By the SyncTarget on which it is said.
    said: BTreeMap<Key, Said>,
}

#[derive(Clone, PartialEq, Eq)]
struct Said {
    change: ChangeId,
    /// `None`: it has not lasted yet. What another center said of it holds.
    message: Option<String>,
}

impl Unsighted {
    /// Whether copies in the mailbox of a SyncTarget cannot be seen.
    pub(super) fn concerns(&self, target: &Key) -> bool {
        self.said.contains_key(target)
    }

    /// What a SyncTarget says of that; `None`: what it says already.
    pub(super) fn condition(&self, target: &Key) -> Option<Condition> {
        let message = self.said.get(target)?.message.clone()?;
        Some(Condition {
            type_: types::WITHDRAWAL_HELD.to_owned(),
            status: ConditionStatus::True,
            reason: "OutOfSight".to_owned(),
            message,
            ..Condition::default()
        })
    }
}

impl CenterRole {
    /// Lets go what somebody confirmed, and says the rest once it lasts. Says when to ask again.
    pub(super) fn carry_on_unseen(&mut self, now: Moment, store: &Store, engine: &Engine) -> Option<Moment> {
        let settled = self.known.is_some() && self.stale.is_empty() && !engine.is_busy();
        let confirmed = |uid, change| {
            let target = self.statuses.target_of(uid).and_then(|key| store.get(key).present());
            target.is_some_and(|target| confirms(target, change))
        };
        let confirmed: Vec<_> = self
            .mailboxes
            .keeping()
            .filter(|(uid, _, change)| settled && confirmed(uid, *change))
            .map(|(uid, cluster, change)| (uid.clone(), cluster.clone(), change))
            .collect();
        for (uid, mailbox, change) in confirmed {
            tracing::info!(%mailbox, %change, "copies that cannot be seen are let go, as somebody confirmed");
            self.mailboxes.let_go_unseen(&uid, &mut self.passing);
        }
        let mailboxes: BTreeSet<&ClusterId> =
            self.mailboxes.keeping().map(|(_, cluster, _)| cluster).collect();
        let (lost, _) = self.unsighted.told.note(now, &mailboxes);
        for mailbox in lost {
            tracing::warn!(%mailbox, "copies that cannot be seen in a mailbox are carried on from there");
        }
        let before = std::mem::take(&mut self.unsighted.said);
        let mut said = BTreeMap::new();
        for (uid, cluster, change) in self.mailboxes.keeping() {
            let Some(target) = self.statuses.target_of(uid) else { continue };
            let lasts = self.unsighted.told.says(cluster);
            let same =
                before.get(target).filter(|one| one.change == change && one.message.is_some() == lasts);
            let now = same.cloned().unwrap_or_else(|| Said {
                change,
                message: lasts.then(|| message(&self.mailboxes.kept_unseen(uid), change)),
            });
            said.insert(target.clone(), now);
        }
        let changed = |target: &&Key| before.get(*target) != said.get(*target);
        for target in before.keys().chain(said.keys()).filter(changed) {
            self.statuses.touch(target);
        }
        self.unsighted.said = said;
        self.unsighted.told.due()
    }
}

fn message(kept: &BTreeMap<&KindId, usize>, change: ChangeId) -> String {
    let mut kinds: Vec<String> =
        kept.iter().take(MOST_NAMED).map(|(kind, count)| format!("{count} of {kind}")).collect();
    if kept.len() > MOST_NAMED {
        kinds.push(format!("those of {} more kinds", kept.len() - MOST_NAMED));
    }
    format!(
        "copies in this edge's mailbox cannot be seen, and stay at the edge: {}; if they will not be seen again, the annotation \
         {}={change} on this SyncTarget lets them go",
        kinds.join(", "),
        annotation::CONFIRM_WITHDRAWAL
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_are_named_as_far_as_they_can_be_read() {
        let kinds: Vec<KindId> =
            (0..12).map(|number| KindId::new("example.dev", &format!("k{number:02}"))).collect();
        let kept: BTreeMap<&KindId, usize> = kinds.iter().map(|kind| (kind, 2)).collect();
        let said = message(&kept, ChangeId(0xc0_ffee));
        assert!(said.contains("2 of k00.example.dev, 2 of k01.example.dev"), "{said}");
        assert!(said.contains("2 of k09.example.dev, those of 2 more kinds; "), "{said}");
        assert!(said.contains("mailboat.dev/confirm-withdrawal=0000000000c0ffee"), "{said}");
    }
}
