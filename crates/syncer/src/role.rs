//! The syncer as a role: what it is told becomes rules, rules become routes, and what came of them becomes a status.

mod believed;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mailboat_api::names::annotation;
use mailboat_engine::breaker::ScopeId;
use mailboat_engine::engine::{Engine, Notice};
use mailboat_engine::mark::OwnerId;
use mailboat_engine::plan::ChangeId;
use mailboat_engine::role::{CallId, CallIds, Ground, Order, Role, Turn};
use mailboat_engine::route::{Destination, Route as _};
use mailboat_object::catalog::{Catalog, Found, Served};
use mailboat_object::digest::Digest;
use mailboat_object::key::{ClusterId, KindId, Name};
use mailboat_object::object::Keep;
use mailboat_object::wire::{Fault, Reply};
use mailboat_store::interest::{Filter, Interest, PlaceId};
use mailboat_store::seen::{Doubt, News};
use mailboat_store::store::Store;
use mailboat_store::time::{Moment, Now};

use self::believed::Believed;
use crate::carry::{EDGE, MAILBOX};
use crate::config::ConfigKind;
use crate::config::merge::{self, Plurals, Rules};
use crate::configured::Configured;
use crate::downsync::{DOWNSYNC, Downsync, Surroundings};
use crate::record::{Kinds, Record};
use crate::renature::denatured;
use crate::report::{Reporter, Sight};
use crate::upsync::{UPSYNC, Upsync};

/// Who a syncer is, and how it behaves.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Whose its copies are.
    pub owner: OwnerId,
    /// Its field manager.
    pub manager: Name,
    /// The mailbox, by the id of its workspace.
    pub mailbox: ClusterId,
    /// The edge, by its SyncTarget's uid.
    pub edge: ClusterId,
    /// The namespace at the edge that it keeps its record in.
    pub namespace: Name,
    /// How often it says that it is alive.
    pub heartbeat_period: Duration,
}

/// The syncer as a role.
pub struct SyncerRole {
    identity: Identity,
    mailbox_serves: Option<Arc<Catalog>>,
    edge_serves: Option<Arc<Catalog>>,
    believed: Believed,
    record: Record,
    plurals: Plurals,
    /// What the configuration asks for, of what is believed of it now.
    rules: Option<Arc<Rules>>,
    /// The kinds that the rules may deliver.
    wanted: Option<Kinds>,
    /// The rules are to be made anew.
    stale: bool,
    /// What is followed, and the routes, are to be compared with what they are made from. There are thousands of turns in
    /// which nothing of that changes.
    unsettled: bool,
    /// What the present routes were made from.
    basis: Option<Basis>,
    down: Option<Arc<Downsync>>,
    followed: Followed,
    interests: Vec<Interest>,
    reporter: Reporter,
    /// Why kinds of configuration are not known, as far as that was logged.
    doubts: BTreeMap<KindId, Doubt>,
    confirm: bool,
    calls: CallIds,
    /// As of which revision the configuration is written down.
    written_down: Option<u64>,
    /// Why what is missing is not believed to be taken back, if so.
    lost: Option<String>,
}

/// All that routes are made from, so that they are made anew only when it changed.
#[derive(PartialEq)]
struct Basis {
    configuration: Digest,
    mailbox_serves: BTreeMap<KindId, Option<Served>>,
    edge_serves: BTreeMap<KindId, Option<Served>>,
    recorded: Kinds,
    followed: Followed,
}

/// The kinds that are followed on each side. What was followed once stays so while it is asked for: if its server stops
/// to serve it, that is to be seen as such.
#[derive(Clone, PartialEq, Default)]
struct Followed {
    mailbox: Arc<BTreeSet<KindId>>,
    edge: Arc<BTreeSet<KindId>>,
}

impl SyncerRole {
    /// A syncer that knows nothing yet.
    pub fn new(identity: Identity) -> Self {
        let Identity { owner, manager, mailbox, edge, namespace, heartbeat_period } = identity.clone();
        Self {
            record: Record::new(edge.clone(), &namespace, &owner, manager.clone()),
            reporter: Reporter::new(mailbox.clone(), edge, manager, heartbeat_period),
            believed: Believed::new(mailbox),
            identity,
            mailbox_serves: None,
            edge_serves: None,
            plurals: Plurals::new(),
            rules: None,
            wanted: None,
            stale: true,
            unsettled: true,
            basis: None,
            down: None,
            followed: Followed::default(),
            interests: Vec::new(),
            doubts: BTreeMap::new(),
            confirm: false,
            calls: CallIds::default(),
            written_down: None,
            lost: None,
        }
    }

    /// The place of the mailbox.
    pub fn mailbox_place(&self) -> PlaceId {
        PlaceId(self.identity.mailbox.0.clone())
    }

    /// The place of the edge.
    pub fn edge_place(&self) -> PlaceId {
        PlaceId(self.identity.edge.0.clone())
    }

    /// The destinations, once, before anything is followed.
    fn introduce(&self, orders: &mut Vec<Order>) {
        if self.interests.is_empty() {
            let Identity { mailbox, edge, .. } = &self.identity;
            orders.push(Order::Destination(Destination { id: EDGE, cluster: edge.clone() }));
            orders.push(Order::Destination(Destination { id: MAILBOX, cluster: mailbox.clone() }));
        }
    }

    /// Makes rules anew from all configuration that is believed.
    fn refresh_rules(&mut self) {
        let (Some(mailbox), Some(edge)) = (&self.mailbox_serves, &self.edge_serves) else { return };
        if !std::mem::replace(&mut self.stale, false) {
            return;
        }
        let brought_up = self.record.kinds().map(|kinds| Arc::clone(&kinds.up)).unwrap_or_default();
        let around = merge::Surroundings { mailbox, edge, brought_up: &brought_up };
        let rules = Rules::join(self.believed.configs().values(), &around, &mut self.plurals);
        self.wanted =
            Some(Kinds { down: Arc::new(rules.targets()), up: Arc::new(rules.brought_up(mailbox)) });
        self.rules = Some(Arc::new(rules));
        self.unsettled = true;
        self.reporter.touch();
    }

    fn refresh_followed(&mut self) {
        let wanted = self.wanted.clone().unwrap_or_default();
        let recorded = self.record.kinds().cloned().unwrap_or_default();
        let (mut mailbox, mut edge) = (BTreeSet::new(), BTreeSet::new());
        if let Some(rules) = &self.rules {
            mailbox.extend(rules.sources());
            edge.extend(rules.up.keys().cloned());
        }
        mailbox.extend(wanted.up.iter().chain(recorded.up.iter()).cloned());
        edge.extend(wanted.down.iter().chain(recorded.down.iter()).cloned());
        let keep = |kinds: BTreeSet<KindId>, serves: Option<&Arc<Catalog>>, before: &BTreeSet<KindId>| {
            let can = |kind: &KindId| {
                before.contains(kind)
                    || serves.is_some_and(
                        |serves| matches!(serves.find(kind), Found::Served(served) if served.verbs.can_follow()),
                    )
            };
            Arc::new(kinds.into_iter().filter(can).collect::<BTreeSet<_>>())
        };
        self.followed = Followed {
            mailbox: keep(mailbox, self.mailbox_serves.as_ref(), &self.followed.mailbox),
            edge: keep(edge, self.edge_serves.as_ref(), &self.followed.edge),
        };
    }

    fn wanted_interests(&self) -> Vec<Interest> {
        let interest = |place: &PlaceId, kind: &KindId, keep: Keep| Interest {
            place: place.clone(),
            kind: kind.clone(),
            filter: Filter::All,
            keep,
        };
        let (mailbox, edge) = (self.mailbox_place(), self.edge_place());
        let mut interests: Vec<Interest> =
            ConfigKind::ALL.iter().map(|kind| interest(&mailbox, &kind.kind(), Keep::Whole)).collect();
        interests.push(interest(&mailbox, &namespaces(), Keep::Head));
        interests.push(interest(&edge, &namespaces(), Keep::Head));
        // What decides about served kinds, where it is there.
        for (place, serves) in [(&mailbox, &self.mailbox_serves), (&edge, &self.edge_serves)] {
            for kind in definitions() {
                let served =
                    serves.as_ref().is_some_and(|serves| matches!(serves.find(&kind), Found::Served(_)));
                if served {
                    interests.push(interest(place, &kind, Keep::HeadAndStatus));
                }
            }
        }
        interests.extend(self.followed.mailbox.iter().map(|kind| interest(&mailbox, kind, Keep::Whole)));
        // What comes up is needed whole. A copy is not: it is compared when it is shown, or by its server.
        let comes_up = |kind: &KindId| self.rules.as_ref().is_some_and(|rules| rules.up.contains_key(kind));
        for kind in self.followed.edge.iter() {
            let keep = if comes_up(kind) { Keep::Whole } else { Keep::HeadAndStatus };
            interests.push(interest(&edge, kind, keep));
        }
        interests
    }

    fn follow(&mut self, orders: &mut Vec<Order>) {
        self.refresh_followed();
        let interests = self.wanted_interests();
        if interests != self.interests {
            self.interests.clone_from(&interests);
            orders.push(Order::Follow(interests));
        }
    }

    /// Routes for the present rules, if anything that they are made from changed. Not before it is written down that there is
    /// this configuration: if it were lost while no syncer runs, the next one must know that there was something to lose.
    fn configure(&mut self, orders: &mut Vec<Order>) {
        let written = self.record.configured();
        if !written.is_some_and(|written| written.names_all(self.believed.configs().keys())) {
            self.unsettled = true;
            return;
        }
        let (Some(rules), Some(mailbox_serves), Some(edge_serves), Some(recorded)) =
            (&self.rules, &self.mailbox_serves, &self.edge_serves, self.record.kinds())
        else {
            return;
        };
        let found = |kinds: &BTreeSet<KindId>, catalog: &Catalog| {
            let one = |kind: &KindId| match catalog.find(kind) {
                Found::Served(served) => (kind.clone(), Some(served.clone())),
                Found::NotServed | Found::Unknown(_) => (kind.clone(), None),
            };
            kinds.iter().map(one).collect::<BTreeMap<_, _>>()
        };
        let at_mailbox = &rules.sources() | &rules.brought_up(mailbox_serves);
        let at_edge = &rules.targets() | &rules.up.keys().cloned().collect();
        let basis = Basis {
            configuration: rules.configuration,
            mailbox_serves: found(&at_mailbox, mailbox_serves),
            edge_serves: found(&at_edge, edge_serves),
            recorded: recorded.clone(),
            followed: self.followed.clone(),
        };
        if self.basis.as_ref() == Some(&basis) {
            return;
        }
        let around = |recorded: &Arc<BTreeSet<KindId>>| Surroundings {
            owner: self.identity.owner.clone(),
            mailbox: self.identity.mailbox.clone(),
            edge: self.identity.edge.clone(),
            rules: Arc::clone(rules),
            mailbox_serves: Arc::clone(mailbox_serves),
            edge_serves: Arc::clone(edge_serves),
            followed: Arc::clone(&self.followed.mailbox),
            recorded: Arc::clone(recorded),
        };
        let down = Arc::new(Downsync::new(around(&basis.recorded.down)));
        orders.push(Order::Configure(down.head().id.clone(), Some(Arc::<Downsync>::clone(&down))));
        self.down = Some(down);
        let up = Upsync::new(around(&basis.recorded.up));
        orders.push(Order::Configure(up.head().id.clone(), Some(Arc::new(up))));
        self.basis = Some(basis);
    }

    /// Passes on what somebody confirmed, if that is what is held.
    fn confirm(&mut self, store: &Store, engine: &Engine, orders: &mut Vec<Order>) {
        if !std::mem::replace(&mut self.confirm, false) {
            return;
        }
        let held: BTreeSet<ChangeId> = engine.held().map(|(change, _)| change).collect();
        let Ok(configs) = store.range(&self.identity.mailbox, &ConfigKind::SyncerConfig.kind(), None) else {
            return;
        };
        for config in configs {
            let Some(text) = config.annotation(annotation::CONFIRM_WITHDRAWAL) else { continue };
            let change = u64::from_str_radix(text.trim(), 16).map(ChangeId);
            for change in change.into_iter().filter(|change| held.contains(change)) {
                orders.extend(self.scopes().map(|scope| Order::Confirm(scope, change)));
            }
        }
    }

    /// Everything that the breaker may count together: each direction, and what nobody claimed since the start.
    fn scopes(&self) -> impl Iterator<Item = ScopeId> {
        let unclaimed =
            [&self.identity.edge, &self.identity.mailbox].map(|cluster| format!("unclaimed/{cluster}"));
        let routes = [DOWNSYNC, UPSYNC].map(str::to_owned);
        routes.into_iter().chain(unclaimed).map(|scope| ScopeId(Name::new(&scope)))
    }

    /// The configuration to be written down, if it is not yet. Until it is known as a whole, and as long as something may be
    /// lost, what was written stays, and what there is beside that is added.
    fn next_to_write_down(&mut self, store: &Store) -> Option<Configured> {
        let revision = Some(self.believed.revision());
        if self.written_down == revision {
            return None;
        }
        let written = self.record.configured()?;
        let Some(configured) = self.believed.configured(store).filter(|_| self.lost.is_none()) else {
            return Some(written.and(self.believed.configs().keys()));
        };
        if *written == configured {
            self.written_down = revision;
        }
        Some(configured)
    }

    /// Notes whether something is missing that may have gone with its kind while no syncer ran.
    fn miss_what_is_lost(&mut self) {
        let lost = self.record.configured().and_then(|before| self.believed.lost(before)).map(|id| {
            format!(
                "{id} may have gone with its kind, which was bound or defined anew while no syncer ran; \
                 nothing is withdrawn by that until there is one of that name again, if only an empty one"
            )
        });
        if lost == self.lost {
            return;
        }
        if let Some(lost) = &lost {
            tracing::warn!(lost, "the configuration is not known as a whole");
        }
        self.lost = lost;
        self.reporter.touch();
    }

    /// Logs when the mailbox's configuration cannot be read any more, and when it can again: with the mailbox away, or
    /// gone, there is no status to say it in.
    fn tell_of_doubt(&mut self, place: &PlaceId, kind: &KindId, doubt: Option<Doubt>) {
        let configures = ConfigKind::ALL.iter().any(|one| one.kind() == *kind);
        // A list that is only being read, for the first time or again, is no reason for words.
        let passing = matches!(doubt, Some(Doubt::NotListed | Doubt::Relisting | Doubt::CatchingUp));
        if !configures || *place != self.mailbox_place() || passing {
            return;
        }
        let before = match doubt {
            Some(doubt) => self.doubts.insert(kind.clone(), doubt),
            None => self.doubts.remove(kind),
        };
        match doubt {
            Some(doubt) if before != Some(doubt) => {
                tracing::warn!(%kind, %doubt, "the configuration is held as it was; nothing is withdrawn by it");
            }
            None if before.is_some() => tracing::info!(%kind, "the configuration is known again"),
            _ => {}
        }
    }

    /// Whether all that is followed was listed and evaluated, so that what is counted is all there is.
    fn is_complete(&self, store: &Store, engine: &Engine) -> bool {
        let listed = |cluster: &ClusterId, kinds: &BTreeSet<KindId>| {
            kinds
                .iter()
                .all(|kind| store.range(cluster, kind, None).is_ok_and(|range| range.missing().is_ok()))
        };
        self.basis.is_some()
            && !engine.is_busy()
            && listed(&self.identity.mailbox, &self.followed.mailbox)
            && listed(&self.identity.edge, &self.followed.edge)
    }

    fn troubles(&self) -> Vec<String> {
        let mut troubles: Vec<String> = self.record.fault().map(str::to_owned).into_iter().collect();
        for kind in ConfigKind::ALL {
            if let Some(serves) = &self.mailbox_serves
                && serves.find(&kind.kind()) == Found::NotServed
            {
                troubles.push(format!(
                    "the mailbox does not serve {}, so nothing that configuration no longer asks for is withdrawn",
                    kind.kind()
                ));
            }
        }
        troubles.extend(self.believed.doubt().map(str::to_owned));
        troubles.extend(self.lost.clone());
        troubles
    }
}

impl Role for SyncerRole {
    fn observe(&mut self, now: Now, _: &Store, news: &News) {
        if self.believed.observe(now.mono, news) {
            self.stale = true;
            self.reporter.touch();
        }
        match news {
            News::Object(change) => {
                self.confirm |= change.key.kind == ConfigKind::SyncerConfig.kind();
                // It may be there denatured as well, which no verdict tells of.
                if self.followed.mailbox.contains(&denatured(&change.key.kind)) {
                    self.reporter.touch();
                }
            }
            News::Scope { place, kind, known, .. } => self.tell_of_doubt(place, kind, known.err()),
            News::CaughtUp { .. } | News::Stalled { .. } => {}
        }
    }

    fn served(&mut self, place: &PlaceId, catalog: &Arc<Catalog>) {
        if *place == self.mailbox_place() {
            self.mailbox_serves = Some(Arc::clone(catalog));
        } else if *place == self.edge_place() {
            self.edge_serves = Some(Arc::clone(catalog));
        }
        self.stale = true;
        self.unsettled = true;
    }

    fn noticed(&mut self, notice: &Notice) {
        self.confirm |= matches!(notice.verdict, mailboat_engine::plan::Verdict::Held(_));
        self.reporter.noticed(notice);
    }

    fn answered(&mut self, now: Now, id: CallId, reply: Result<Reply, Fault>) {
        let before = self.record.kinds().cloned();
        if self.record.answered(now.mono, id, &reply) {
            if let Some(fault) = self.record.fault() {
                tracing::warn!(fault, "nothing is delivered before it is written down");
            }
            self.stale |= self.record.kinds().cloned() != before;
            self.reporter.touch();
        } else {
            self.reporter.answered(id, &reply);
        }
    }

    fn looked(&mut self, now: Now, id: CallId, found: Result<Ground, Fault>) {
        self.believed.looked(now.mono, id, found);
        self.reporter.touch();
    }

    fn next(&mut self, now: Now, store: &Store, engine: &Engine) -> Turn {
        let mut orders = Vec::new();
        self.introduce(&mut orders);
        self.stale |= self.believed.let_go(store);
        self.refresh_rules();
        self.miss_what_is_lost();
        let configured = self.next_to_write_down(store);
        let (call, record_at) =
            self.record.next(now.mono, self.wanted.as_ref(), configured.as_ref(), || self.calls.fresh());
        orders.extend(call.map(|(id, call)| Order::Call(id, call)));
        let (look, look_at) = self.believed.next(now.mono, store, || self.calls.fresh());
        orders.extend(look.map(|(id, kind)| Order::Look(id, self.identity.mailbox.clone(), kind)));
        if std::mem::replace(&mut self.unsettled, false) {
            self.follow(&mut orders);
            self.configure(&mut orders);
        }
        // Only once routes stand for all that is believed, and every entry says what it means.
        let clear = self.basis.is_some()
            && self.rules.as_ref().is_some_and(|rules| !rules.unclear)
            && !self.stale
            && !self.unsettled
            && self.lost.is_none();
        orders.extend(self.believed.tell_known(clear));
        self.confirm(store, engine, &mut orders);
        let mut calls = std::mem::take(&mut self.calls);
        let sight = Sight {
            store,
            engine,
            configs: self.believed.configs(),
            rules: self.rules.as_deref(),
            down: self.down.as_deref(),
            edge_serves: self.edge_serves.as_ref(),
            sources: &self.followed.mailbox,
            troubles: self.troubles(),
            // What was just ordered is not evaluated yet.
            is_complete: self.reporter.speaks() || (orders.is_empty() && self.is_complete(store, engine)),
        };
        let (written, report_at) = self.reporter.next(now, &sight, || calls.fresh());
        self.calls = calls;
        orders.extend(written.into_iter().map(|(id, call)| Order::Call(id, call)));
        let wake: Option<Moment> = [record_at, look_at, report_at].into_iter().flatten().min();
        Turn { orders, wake }
    }
}

fn namespaces() -> KindId {
    KindId::new("", "namespaces")
}

fn crds() -> KindId {
    KindId::new("apiextensions.k8s.io", "customresourcedefinitions")
}

/// The kinds whose objects decide what is served.
fn definitions() -> [KindId; 3] {
    [crds(), KindId::new("apis.kcp.io", "apibindings"), KindId::new("apiregistration.k8s.io", "apiservices")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_read_again_is_no_reason_for_words_and_a_lost_link_is() {
        let mut role = SyncerRole::new(Identity {
            owner: OwnerId(Name::new("syncer/c0ffee")),
            manager: Name::new("mailboat-syncer"),
            mailbox: ClusterId::new("mailbox"),
            edge: ClusterId::new("edge"),
            namespace: Name::new("default"),
            heartbeat_period: Duration::from_secs(30),
        });
        let (place, kind) = (role.mailbox_place(), ConfigKind::SyncerConfig.kind());
        let mut told = |doubt| {
            role.tell_of_doubt(&place, &kind, doubt);
            role.doubts.get(&kind).copied()
        };
        assert_eq!(told(Some(Doubt::NotListed)), None);
        assert_eq!(told(Some(Doubt::Relisting)), None);
        assert_eq!(told(Some(Doubt::Lost)), Some(Doubt::Lost));
        assert_eq!(
            told(Some(Doubt::Relisting)),
            Some(Doubt::Lost),
            "it is not known again before it was read"
        );
        assert_eq!(told(None), None);
    }
}
