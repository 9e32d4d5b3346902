//! Syncers that the center installs by itself, in edges whose kubeconfig a SyncTarget names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mailboat_api::condition::{Condition, ConditionStatus, types};
use mailboat_api::names::annotation;
use mailboat_engine::role::{CallId, Order};
use mailboat_engine::route::DestinationId;
use mailboat_object::key::{ClusterId, Key, KindId, Name, Uid};
use mailboat_object::object::Object;
use mailboat_object::wire::{Fault, Reply};
use mailboat_registration::account::ACCOUNT_NAMESPACE;
use mailboat_registration::install::{Installation, Next, Trouble};
use mailboat_registration::manifest::{CenterAddress, EdgeOptions};
use mailboat_registration::names::{check_namespace, check_object_name};
use mailboat_registration::{Mailbox, Registration};
use mailboat_store::time::{Moment, Now};

use super::mailboxes::Mailboxes;
use crate::mailbox::{Installed, name_of};

/// An edge is looked at again after this, whether all is still as it should be there.
const CHECK_EVERY: Duration = Duration::from_mins(10);
/// After a first failure it is tried again after this, after each further one later,
const FIRST_PAUSE: Duration = Duration::from_secs(15);
/// up to this.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);
/// Edges that are worked on at once.
const MOST_UNDER_WAY: usize = 8;

/// How syncers are installed.
#[derive(Clone, Debug)]
pub struct Installs {
    /// How edges reach the center.
    pub center: CenterAddress,
    /// How the syncer is run there.
    pub options: EdgeOptions,
}

/// All edges that the center installs syncers in, by the uid of their SyncTargets.
pub(super) struct Installing {
    how: Option<Arc<Installs>>,
    provider: Arc<str>,
    edges: BTreeMap<Uid, Edge>,
    asked: BTreeMap<CallId, Uid>,
    /// Those that were seen anew, or are to be installed another way.
    seen: BTreeSet<Uid>,
    /// When what is not under way is to be looked at. An edge that comes to be due at another time is here twice.
    due: BTreeSet<(Moment, Uid)>,
    /// Those that are worked on.
    under_way: BTreeSet<Uid>,
    /// Mailboxes that could be used before this one are known.
    furnished: DestinationId,
    /// Those of which something else is to be said.
    changed: Vec<Uid>,
}

struct Edge {
    target: Key,
    mailbox_name: String,
    /// Where its kubeconfig is, or why that is not known.
    secret: Result<Key, Trouble>,
    /// The mailbox that its syncer was last installed for.
    mailbox: Option<ClusterId>,
    run: Option<Installation>,
    due: Moment,
    failures: u32,
    said: Option<Result<(), Trouble>>,
}

impl Installing {
    pub(super) fn new(how: Option<Arc<Installs>>, provider: Arc<str>) -> Self {
        Self {
            how,
            provider,
            edges: BTreeMap::new(),
            asked: BTreeMap::new(),
            seen: BTreeSet::new(),
            due: BTreeSet::new(),
            under_way: BTreeSet::new(),
            furnished: DestinationId(0),
            changed: Vec::new(),
        }
    }

    /// A SyncTarget was seen.
    pub(super) fn sees_target(&mut self, target: &Object) {
        let Some(named) = target.annotation(annotation::KUBECONFIG_SECRET) else {
            self.edges.remove(&target.uid);
            self.asked.retain(|_, asked| *asked != target.uid);
            return;
        };
        let secret = secret(&target.key, &named);
        if self.edges.get(&target.uid).is_some_and(|edge| edge.secret == secret) {
            return;
        }
        let edge = Edge {
            target: target.key.clone(),
            mailbox_name: name_of(target).to_string(),
            secret,
            mailbox: None,
            run: None,
            due: Moment::default(),
            failures: 0,
            said: None,
        };
        self.edges.insert(target.uid.clone(), edge);
        // What the former is answered is none of its business: it would install by another kubeconfig.
        self.asked.retain(|_, asked| *asked != target.uid);
        self.seen.insert(target.uid.clone());
    }

    /// A SyncTarget is gone. What was installed stays: whoever runs the edge may want it for another center.
    pub(super) fn target_gone(&mut self, target: &Key) {
        self.edges.retain(|_, edge| edge.target != *target);
        self.asked.retain(|_, uid| self.edges.contains_key(uid));
    }

    /// Begins what is due, and says when to ask again. Costs what came, ended or fell due since the last time.
    pub(super) fn next(
        &mut self,
        now: Moment,
        mailboxes: &Mailboxes,
        mut id: impl FnMut() -> CallId,
        orders: &mut Vec<Order>,
    ) -> Option<Moment> {
        self.note_mailboxes(mailboxes);
        let edges = &self.edges;
        let ended = |uid: &Uid| edges.get(uid).is_none_or(|edge| edge.run.is_none());
        for uid in self.under_way.extract_if(.., ended) {
            self.due.extend(edges.get(&uid).map(|edge| (edge.due, uid)));
        }
        // One that ends makes place for the next, and asks.
        while self.under_way.len() < MOST_UNDER_WAY
            && self.due.first().is_some_and(|(at, _)| *at <= now)
            && let Some((at, uid)) = self.due.pop_first()
        {
            let Some(edge) = self.edges.get_mut(&uid).filter(|edge| edge.run.is_none() && edge.due == at)
            else {
                continue;
            };
            let Some(cluster) = &edge.mailbox else { continue };
            match begin(edge, &uid, cluster, self.how.as_deref(), &self.provider) {
                Ok((run, next)) => {
                    edge.run = Some(run);
                    orders.push(Order::Reach(edge.target.cluster.clone()));
                    ask(next, &uid, &mut self.asked, &mut id, orders);
                    self.under_way.insert(uid);
                }
                Err(trouble) => {
                    edge.due = now + LONGEST_PAUSE;
                    self.due.insert((edge.due, uid.clone()));
                    if edge.said.as_ref() != Some(&Err(trouble.clone())) {
                        edge.said = Some(Err(trouble));
                        self.changed.push(uid);
                    }
                }
            }
        }
        self.due.first().map(|(at, _)| *at).filter(|at| *at > now)
    }

    /// Takes up edges whose mailboxes can be used, and were not or are others. One that was made again is another mailbox, whose
    /// syncer needs another token.
    fn note_mailboxes(&mut self, mailboxes: &Mailboxes) {
        let known = std::mem::replace(&mut self.furnished, mailboxes.next_destination());
        let mut seen = std::mem::take(&mut self.seen);
        seen.extend(mailboxes.furnished_from(known).cloned());
        for uid in seen {
            let (Some(edge), Some(mailbox)) = (self.edges.get_mut(&uid), mailboxes.furnished(&uid)) else {
                continue;
            };
            if edge.mailbox.as_ref() != Some(mailbox) {
                edge.mailbox = Some(mailbox.clone());
                (edge.run, edge.due, edge.failures) = (None, Moment::default(), 0);
                self.asked.retain(|_, asked| *asked != uid);
                self.under_way.remove(&uid);
                self.due.insert((edge.due, uid));
            }
        }
    }

    /// What came of a call. False if it was none of these.
    pub(super) fn answered(
        &mut self,
        now: Now,
        id: CallId,
        reply: &Result<Reply, Fault>,
        fresh: impl FnMut() -> CallId,
        orders: &mut Vec<Order>,
    ) -> bool {
        // A run that was given up meanwhile is told nothing: what it asked for was forgotten.
        let Some(uid) = self.asked.remove(&id) else { return false };
        let Some(edge) = self.edges.get_mut(&uid) else { return true };
        let Some(run) = &mut edge.run else { return true };
        let wall = i64::try_from(now.wall_seconds).unwrap_or(i64::MAX);
        let wall = jiff::Timestamp::from_second(wall).unwrap_or(jiff::Timestamp::MAX);
        let said = match run.answered(wall, reply.as_ref().map(|reply| &*reply.body)) {
            Next::Installed(written) => {
                if written > 0 {
                    tracing::info!(target = %edge.target, written, "the syncer is installed in its edge");
                }
                (edge.due, edge.failures) = (now.mono + CHECK_EVERY, 0);
                Ok(())
            }
            Next::Failed(trouble) => {
                tracing::warn!(target = %edge.target, reason = trouble.reason, "the syncer could not be installed in its edge");
                let pause = FIRST_PAUSE.saturating_mul(1 << edge.failures.min(10)).min(LONGEST_PAUSE);
                (edge.due, edge.failures) = (now.mono + pause, edge.failures.saturating_add(1));
                Err(trouble)
            }
            next => {
                let mut fresh = fresh;
                ask(next, &uid, &mut self.asked, &mut fresh, orders);
                return true;
            }
        };
        edge.run = None;
        if edge.said.as_ref() != Some(&said) {
            edge.said = Some(said);
            self.changed.push(uid);
        }
        true
    }

    /// The SyncTargets that have something else to say.
    pub(super) fn take_changed(&mut self) -> Vec<Uid> {
        std::mem::take(&mut self.changed)
    }

    /// What a SyncTarget says of its syncer's installation.
    pub(super) fn said(&self, uid: &Uid) -> Installed {
        let Some(edge) = self.edges.get(uid) else { return Installed::NotAsked };
        let (status, reason, message) = match &edge.said {
            None => return Installed::Unsaid,
            Some(Ok(())) => (ConditionStatus::True, "Installed", String::new()),
            Some(Err(trouble)) => (ConditionStatus::False, trouble.reason, trouble.message.clone()),
        };
        let severity = if status == ConditionStatus::False { "Error" } else { "" };
        Installed::Said(Condition {
            type_: types::SYNCER_INSTALLED.to_owned(),
            status,
            severity: severity.to_owned(),
            reason: reason.to_owned(),
            message,
            ..Condition::default()
        })
    }
}

fn begin(
    edge: &Edge,
    uid: &Uid,
    mailbox: &ClusterId,
    how: Option<&Installs>,
    provider: &str,
) -> Result<(Installation, Next), Trouble> {
    let secret = edge.secret.clone()?;
    let Some(Installs { center, options }) = how else {
        let message = "the center was started without --syncer-image, so it installs no syncers";
        return Err(Trouble::new("NoImage", message));
    };
    let mailbox = Mailbox {
        path: format!("{provider}:{}", edge.mailbox_name),
        cluster: mailbox.to_string(),
        sync_target_uid: uid.to_string(),
    };
    let registration = Registration::new(mailbox, &edge.target.name, ACCOUNT_NAMESPACE)
        .map_err(|bad| Trouble::new("BadName", bad.to_string()))?;
    Ok(Installation::begin(registration, center.clone(), options.clone(), secret))
}

fn ask(
    next: Next,
    uid: &Uid,
    asked: &mut BTreeMap<CallId, Uid>,
    fresh: &mut impl FnMut() -> CallId,
    orders: &mut Vec<Order>,
) {
    let id = fresh();
    match next {
        Next::Call(call) => orders.push(Order::Call(id, call)),
        Next::Reach(cluster, kubeconfig) => orders.push(Order::ReachBy(id, cluster, kubeconfig)),
        Next::Installed(_) | Next::Failed(_) => return,
    }
    asked.insert(id, uid.clone());
}

/// Where the Secret is that an annotation names: in the SyncTarget's own workspace.
fn secret(target: &Key, named: &str) -> Result<Key, Trouble> {
    let parts = named.split_once('/').filter(|(namespace, name)| {
        check_namespace(namespace).is_ok() && check_object_name(name, "a Secret").is_ok()
    });
    let Some((namespace, name)) = parts else {
        let message = format!(
            "the annotation {} must be the namespace and the name of a Secret in this workspace, as default/guilder",
            annotation::KUBECONFIG_SECRET
        );
        return Err(Trouble::new("BadAnnotation", message));
    };
    Ok(Key {
        cluster: target.cluster.clone(),
        kind: KindId::new("", "secrets"),
        namespace: Name::new(namespace),
        name: Name::new(name),
    })
}

#[cfg(test)]
mod tests;
