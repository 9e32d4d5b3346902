//! The mailboxes that there are: which cluster each is, whether it can take copies yet, and what its syncer is told.

mod bringing;
mod brought;
mod unseen;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_api::edge::UpsyncSet;
use mailboat_api::names::{MailboxName, annotation, group};
use mailboat_engine::engine::Engine;
use mailboat_engine::mark::{Marked, Marks};
use mailboat_engine::plan::{ChangeId, Verdict};
use mailboat_engine::role::Order;
use mailboat_engine::route::{Destination, DestinationId};
use mailboat_object::catalog::Catalog;
use mailboat_object::digest::Digest;
use mailboat_object::key::{ClusterId, Key, KindId, Name, Uid};
use mailboat_object::object::Object;
use mailboat_registration::SyncerId;
use mailboat_store::seen::{Doubt, Seen};
use mailboat_store::store::Store;

use self::bringing::Bringing;
use self::brought::BroughtUp;
use self::unseen::Unseen;
use super::passing::Passing;
use crate::denature;
use crate::mailbox::{Common, Fixture, Found, Furnished, SyncedKinds, workspaces};
use crate::summary::Named;
use crate::the_one::{Carried, TheOne};

/// The provider workspace as a destination. Those of mailboxes are numbered from 1 on.
pub(super) const HERE: DestinationId = DestinationId(0);

/// All mailboxes, by the uid of the SyncTarget.
pub(super) struct Mailboxes {
    provider: ClusterId,
    common: Common,
    marks: Arc<dyn Marks>,
    all: BTreeMap<Uid, Mailbox>,
    by_cluster: BTreeMap<ClusterId, Uid>,
    by_destination: BTreeMap<DestinationId, Uid>,
    /// Those that can take no copies yet, and those of them that may by now.
    unfurnished: BTreeSet<Uid>,
    looked_at: BTreeSet<Uid>,
    /// The clusters of those that were found since that was last asked.
    found: Vec<ClusterId>,
    next_destination: u32,
    /// Those whose routes are to be made anew.
    stale: BTreeSet<Uid>,
    /// Kinds of users' own without a status subresource.
    without_status: BTreeSet<KindId>,
    /// What syncers are told is known as a whole: before that nothing of it is written, since it would be too little.
    told: bool,
    /// Those whose syncers were told before we started what to bring up.
    bringing: BTreeSet<Uid>,
    /// Those whose syncers carry on what is not seen.
    keeping: BTreeSet<Uid>,
    /// Those whose Workspaces are gone.
    vacated: BTreeSet<Uid>,
    /// Clusters that were mailboxes, of which the engine still remembers something.
    buried: BTreeSet<ClusterId>,
}

/// One mailbox that can be written.
struct Mailbox {
    workspace: Name,
    syncer: SyncerId,
    cluster: ClusterId,
    destination: Option<DestinationId>,
    the_one: TheOne,
    /// What `the-one` said when it was last seen.
    told: Option<Digest>,
    /// What is carried on from there, by the kind under which the mailbox stores it.
    carried: BTreeMap<KindId, Versions>,
    /// What its syncer was told before we started, and is not seen to stand here.
    unseen: Unseen,
    upsync: Bringing,
    /// What further configurations bring up that were placed here like any object, by their kind and name.
    placed: BTreeMap<(KindId, Name), Vec<BroughtUp>>,
    /// Its route says what there is to say of it while its syncer is told nothing: that does not change.
    begun: bool,
}

/// In which version each object of a kind is carried, by its namespace and name.
type Versions = BTreeMap<(Name, Name), Name>;

impl Mailbox {
    fn carries(&self, slot: &Key) -> bool {
        self.carried.get(&slot.kind).is_some_and(|versions| versions.contains_key(&address(slot)))
    }

    /// All that is carried on.
    fn all_carried(&self) -> impl Iterator<Item = Carried> {
        self.carried.iter().flat_map(|(kind, versions)| {
            let kind = denature::at_edge(kind);
            versions.iter().map(move |((namespace, name), version)| Carried {
                kind: kind.clone().into_owned(),
                version: version.clone(),
                namespace: namespace.clone(),
                name: name.clone(),
            })
        })
    }

    /// A slot is carried on, in this version.
    fn carry(&mut self, slot: &Key, version: &Name) {
        self.carried.entry(slot.kind.clone()).or_default().insert(address(slot), version.clone());
    }

    /// A slot is carried on no more: in which version it was.
    fn carry_no_more(&mut self, slot: &Key) -> Option<Name> {
        let versions = self.carried.get_mut(&slot.kind)?;
        let version = versions.remove(&address(slot));
        if versions.is_empty() {
            self.carried.remove(&slot.kind);
        }
        version
    }
}

fn address(slot: &Key) -> (Name, Name) {
    (slot.namespace.clone(), slot.name.clone())
}

impl Mailboxes {
    pub(super) fn new(provider: ClusterId, path: &str, marks: Arc<dyn Marks>) -> Self {
        Self {
            provider,
            common: Common::of(path),
            marks,
            all: BTreeMap::new(),
            by_cluster: BTreeMap::new(),
            by_destination: BTreeMap::new(),
            unfurnished: BTreeSet::new(),
            looked_at: BTreeSet::new(),
            found: Vec::new(),
            next_destination: 1,
            stale: BTreeSet::new(),
            without_status: BTreeSet::new(),
            told: false,
            bringing: BTreeSet::new(),
            keeping: BTreeSet::new(),
            vacated: BTreeSet::new(),
            buried: BTreeSet::new(),
        }
    }

    /// A Workspace of the provider was seen.
    pub(super) fn observe(&mut self, workspace: &Object, orders: &mut Vec<Order>) {
        let Some(Found { name, cluster: Some(cluster) }) = Found::of(workspace) else { return };
        // Its syncer is called after the SyncTarget. One whose annotation was taken away gets it back, and is seen then.
        let Some(target) = workspace.annotation(annotation::SYNC_TARGET_NAME) else { return };
        let syncer = SyncerId::new(&target, &name.sync_target_uid);
        let uid = Uid::parse(&name.sync_target_uid);
        if self.all.get(&uid).is_some_and(|mailbox| mailbox.cluster == cluster) || workspace.deleting {
            return;
        }
        // Made again, it is another one: nothing of the old one holds for it.
        let old = self.forget(&uid, orders);
        self.buried.extend(old);
        orders.push(Order::Reach(cluster.clone()));
        self.by_cluster.insert(cluster.clone(), uid.clone());
        self.found.push(cluster.clone());
        self.unfurnished.insert(uid.clone());
        self.looked_at.insert(uid.clone());
        self.stale.insert(uid.clone());
        let mailbox = Mailbox {
            workspace: workspace.key.name.clone(),
            syncer,
            cluster,
            destination: None,
            the_one: TheOne::default(),
            told: None,
            carried: BTreeMap::new(),
            unseen: Unseen::default(),
            upsync: Bringing::default(),
            placed: BTreeMap::new(),
            begun: false,
        };
        self.all.insert(uid, mailbox);
    }

    /// A Workspace of the provider is gone. Whose mailbox it was, if it was one.
    pub(super) fn workspace_gone(&mut self, workspace: &Key) -> Option<Uid> {
        let name: MailboxName = workspace.name.as_str().parse().ok()?;
        let uid = Uid::parse(&name.sync_target_uid);
        self.all.get(&uid).filter(|mailbox| mailbox.workspace == workspace.name)?;
        self.vacated.insert(uid.clone());
        Some(uid)
    }

    /// Whether the Workspace of a mailbox is gone, and no other was found since.
    pub(super) fn is_vacated(&self, uid: &Uid) -> bool {
        self.vacated.contains(uid)
    }

    /// Forgets those whose Workspaces are gone for good, and names them. Not before nothing is seen to stand in them: what
    /// nobody remembers would look like what nobody wants.
    pub(super) fn take_vacated(
        &mut self,
        store: &Store,
        for_good: impl Fn(&Uid) -> bool,
        orders: &mut Vec<Order>,
    ) -> Vec<Uid> {
        let gone = |uid: &&Uid| {
            let mailbox = self.all.get(*uid);
            for_good(uid)
                && mailbox.is_some_and(|mailbox| {
                    let seen = |object: &Arc<Object>| store.get(&object.key).present().is_some();
                    matches!(store.get(&self.workspace_of(mailbox)), Seen::Absent(_))
                        && !store.standing_in(&mailbox.cluster).any(seen)
                })
        };
        let gone: Vec<Uid> = self.vacated.iter().filter(gone).cloned().collect();
        for uid in &gone {
            let old = self.forget(uid, orders);
            self.buried.extend(old);
        }
        gone
    }

    /// Has what is remembered of mailboxes forgotten that are no more, once no route leads there.
    pub(super) fn bury(&mut self, orders: &mut Vec<Order>) {
        if !self.buried.is_empty() {
            orders.push(Order::Forget(std::mem::take(&mut self.buried)));
        }
    }

    /// Forgets a mailbox, and says which cluster it was.
    fn forget(&mut self, uid: &Uid, orders: &mut Vec<Order>) -> Option<ClusterId> {
        self.vacated.remove(uid);
        let old = self.all.remove(uid)?;
        self.by_cluster.remove(&old.cluster);
        if let Some(destination) = old.destination {
            self.by_destination.remove(&destination);
        }
        for uids in [&mut self.unfurnished, &mut self.looked_at, &mut self.stale, &mut self.keeping] {
            uids.remove(uid);
        }
        orders.push(Order::Configure(Furnished::id_of(&old.workspace, &old.cluster), None));
        Some(old.cluster)
    }

    /// The SyncTarget whose mailbox a cluster is.
    pub(super) fn of(&self, cluster: &ClusterId) -> Option<&Uid> {
        self.by_cluster.get(cluster)
    }

    /// The SyncTargets that have a mailbox, as far as was seen.
    pub(super) fn uids(&self) -> impl Iterator<Item = &Uid> {
        self.all.keys()
    }

    /// The clusters that are mailboxes, as far as was seen.
    pub(super) fn clusters(&self) -> impl Iterator<Item = &ClusterId> {
        self.by_cluster.keys()
    }

    /// Whether a cluster is a mailbox that is there and is not being deleted.
    pub(super) fn is_standing(&self, cluster: &ClusterId, store: &Store) -> bool {
        let Some(mailbox) = self.by_cluster.get(cluster).and_then(|uid| self.all.get(uid)) else {
            return false;
        };
        let workspace = self.workspace_of(mailbox);
        matches!(store.get(&workspace), Seen::Present(found) if !found.deleting)
            || matches!(store.get(&workspace), Seen::Unknown(_))
    }

    fn workspace_of(&self, mailbox: &Mailbox) -> Key {
        Key {
            cluster: self.provider.clone(),
            kind: workspaces(),
            namespace: Name::EMPTY,
            name: mailbox.workspace.clone(),
        }
    }

    /// Where a SyncTarget's copies go, once they can.
    pub(super) fn destination(&self, uid: &Uid) -> Option<DestinationId> {
        self.all.get(uid)?.destination
    }

    /// The cluster of a SyncTarget's mailbox, once copies can go there.
    pub(super) fn furnished(&self, uid: &Uid) -> Option<&ClusterId> {
        let mailbox = self.all.get(uid)?;
        mailbox.destination.map(|_| &mailbox.cluster)
    }

    /// What the next mailbox will be called as a destination that can take copies.
    pub(super) fn next_destination(&self) -> DestinationId {
        DestinationId(self.next_destination)
    }

    /// Whose mailboxes came to take copies, of those that were called so from one on.
    pub(super) fn furnished_from(&self, first: DestinationId) -> impl Iterator<Item = &Uid> {
        self.by_destination.range(first..).map(|(_, uid)| uid)
    }

    /// The SyncTarget whose copies go to a destination.
    pub(super) fn at(&self, to: DestinationId) -> Option<&Uid> {
        self.by_destination.get(&to)
    }

    /// The mailboxes that can take copies from now on.
    pub(super) fn newly_furnished(&mut self, store: &Store, orders: &mut Vec<Order>) -> Vec<Uid> {
        let mut ready = Vec::new();
        for uid in std::mem::take(&mut self.looked_at) {
            let Some(mailbox) = self.all.get_mut(&uid) else { continue };
            if mailbox.destination.is_some() || takes_copies(store, &mailbox.cluster).is_err() {
                continue;
            }
            self.unfurnished.remove(&uid);
            let id = DestinationId(self.next_destination);
            self.next_destination += 1;
            mailbox.destination = Some(id);
            self.by_destination.insert(id, uid.clone());
            orders.push(Order::Destination(Destination { id, cluster: mailbox.cluster.clone() }));
            ready.push(uid);
        }
        ready
    }

    /// More or less is known of a kind, in one cluster or everywhere: mailboxes that could not take copies may now.
    pub(super) fn may_take_copies(&mut self, cluster: Option<&ClusterId>, kind: &KindId) {
        // Heard of each of some ninety kinds in each mailbox.
        if self.unfurnished.is_empty() || !SHOW_MAILBOXES.contains(&(kind.group(), kind.resource())) {
            return;
        }
        match cluster {
            None => self.looked_at.extend(self.unfurnished.iter().cloned()),
            Some(cluster) => {
                let waiting = self.by_cluster.get(cluster).filter(|uid| self.unfurnished.contains(*uid));
                self.looked_at.extend(waiting.cloned());
            }
        }
    }

    /// The clusters of the mailboxes that were found since this was last asked.
    pub(super) fn take_found(&mut self) -> Vec<ClusterId> {
        std::mem::take(&mut self.found)
    }

    /// Whether there is a mailbox of which it cannot be said at the moment whether it takes copies.
    pub(super) fn is_in_doubt(&self, uid: &Uid, store: &Store) -> bool {
        let mailbox = self.all.get(uid).filter(|mailbox| mailbox.destination.is_none());
        mailbox.is_some_and(|mailbox| {
            let passing = |doubt: &Doubt| !doubt.is_total() && *doubt != Doubt::NotEngaged;
            takes_copies(store, &mailbox.cluster).is_err_and(|doubt| passing(&doubt))
        })
    }

    /// What is brought up from an edge, by all placements that go there.
    pub(super) fn set_upsync(&mut self, uid: &Uid, sets: BTreeSet<UpsyncSet>) {
        let Some(mailbox) = self.all.get_mut(uid) else { return };
        if mailbox.upsync.ask(sets) {
            mailbox.the_one.set_upsync(mailbox.upsync.all());
            self.stale.insert(uid.clone());
        }
    }

    /// All placements are known that may ask for something to be brought up from these edges: what is not asked for is brought
    /// up no more.
    pub(super) fn forget_brought(&mut self, is_known: impl Fn(&Uid) -> bool) {
        let known: Vec<Uid> = self.bringing.iter().filter(|uid| is_known(uid)).cloned().collect();
        for uid in known {
            self.bringing.remove(&uid);
            if let Some(mailbox) = self.all.get_mut(&uid)
                && mailbox.upsync.forget_before()
            {
                mailbox.the_one.set_upsync(mailbox.upsync.all());
                self.stale.insert(uid);
            }
        }
    }

    /// A SyncerConfig or EdgeSyncConfig in a mailbox was seen, or with `None` is gone. What one that was placed there brings
    /// up, the syncer may write.
    pub(super) fn sees_config(&mut self, key: &Key, config: Option<&Object>) {
        let Some(uid) = self.by_cluster.get(&key.cluster) else { return };
        let Some(mailbox) = self.all.get_mut(uid) else { return };
        let from = |config: &Object| match self.marks.read(config) {
            Marked::Ours(mark) => Some(mark.origin.key.cluster),
            Marked::Others(_) | Marked::Nobodys => None,
        };
        let origin = config.and_then(from);
        if let Some(config) = config.filter(|_| !self.told && origin.as_ref() == Some(&self.provider)) {
            mailbox.unseen.reads(config);
            mailbox.upsync.reads(config);
            self.bringing.insert(uid.clone());
            mailbox.the_one.set_upsync(mailbox.upsync.all());
        }
        let placed = config.filter(|_| origin.is_some_and(|origin| origin != self.provider));
        let brought: Vec<BroughtUp> = placed.map(BroughtUp::by).unwrap_or_default();
        let of = (key.kind.clone(), key.name.clone());
        let before = if brought.is_empty() {
            mailbox.placed.remove(&of)
        } else {
            mailbox.placed.insert(of, brought.clone())
        };
        if before.unwrap_or_default() != brought {
            self.stale.insert(uid.clone());
        }
    }

    /// A slot of a mailbox stands otherwise than before: it is carried on from there, or no more.
    pub(super) fn stands(&mut self, slot: &Key, store: &Store, engine: &Engine, passing: &mut Passing) {
        let Some(uid) = self.by_cluster.get(&slot.cluster) else { return };
        let Some(mailbox) = self.all.get_mut(uid) else { return };
        let before = mailbox.carries(slot);
        let claimant = engine.claimant(slot);
        let wanted = match engine.verdict(slot) {
            // Withdrawn, never there, or another's.
            None | Some(Verdict::Refused(_)) => false,
            // As it was wanted until a moment ago: why nobody wants it any more is not known before its source was looked at.
            Some(Verdict::Settled) if claimant.is_none() => before,
            // What nobody can decide about stays as it is, at the edge as well.
            Some(Verdict::Settled | Verdict::Acting | Verdict::Waiting(_) | Verdict::Held(_)) => true,
        };
        let fixture = is_fixture(slot, store, engine, &self.provider, &*self.marks);
        let carries = wanted && may_be_carried(&slot.kind) && !fixture;
        let claimant = claimant.filter(|source| source.cluster != self.provider);
        match (before, carries) {
            (false, true) => {
                let Some(version) = version_of(slot, claimant, store) else { return };
                mailbox.carry(slot, &version);
                let carried = carried(slot, version);
                passing.puts_in(uid, &carried);
                mailbox.unseen.sees(&carried);
                mailbox.the_one.carry(carried);
            }
            (true, false) => {
                if let Some(version) = mailbox.carry_no_more(slot) {
                    let carried = carried(slot, version);
                    if engine.verdict(slot).is_none() {
                        passing.takes_out(uid, &carried);
                    }
                    mailbox.the_one.drop(&carried);
                }
            }
            _ => return,
        }
        self.stale.insert(uid.clone());
    }

    /// What a syncer is told to carry was seen.
    pub(super) fn sees_the_one(&mut self, the_one: &Object) {
        let Some(uid) = self.by_cluster.get(&the_one.key.cluster) else { return };
        if let Some(mailbox) = self.all.get_mut(uid) {
            mailbox.told = match self.marks.read(the_one) {
                Marked::Ours(mark) => Some(mark.intent),
                Marked::Others(_) | Marked::Nobodys => None,
            };
        }
    }

    /// Whether a slot is among what its syncer is told to carry, by `the-one` as it stands. Where it is one of
    /// several, each has a generation of its own, and nobody can tell.
    pub(super) fn tells_of(&self, slot: &Key) -> Named {
        let Some(uid) = self.by_cluster.get(&slot.cluster) else { return Named::Unsure };
        let Some(mailbox) = self.all.get(uid).filter(|mailbox| !mailbox.the_one.is_several()) else {
            return Named::Unsure;
        };
        if mailbox.carries(slot) && self.is_current(uid) { Named::Yes } else { Named::NotYet }
    }

    /// Whether `the-one` of a mailbox, as it stands, says what the syncer there is to be told.
    pub(super) fn is_current(&self, uid: &Uid) -> bool {
        self.all.get(uid).is_some_and(|mailbox| {
            mailbox.told.is_some() && mailbox.told == mailbox.the_one.only().map(|config| config.body.digest)
        })
    }

    /// Whether syncers are told what they are to carry.
    pub(super) fn are_told(&self) -> bool {
        self.told
    }

    /// From now on syncers are told what they are to carry.
    pub(super) fn tell(&mut self, store: &Store) {
        if !std::mem::replace(&mut self.told, true) {
            self.stale.extend(self.all.keys().cloned());
            for (uid, mailbox) in &mut self.all {
                let seen = mailbox.all_carried().collect();
                let Mailbox { unseen, cluster, the_one, .. } = mailbox;
                if unseen.keep(store, cluster, &seen, the_one) {
                    self.keeping.insert(uid.clone());
                }
            }
        }
    }

    /// Lets go of what syncers were told before and is seen by now not to be there.
    pub(super) fn release_unseen(&mut self, store: &Store) {
        self.keeping.retain(|uid| {
            let Some(mailbox) = self.all.get_mut(uid) else { return false };
            if mailbox.unseen.release(store, &mailbox.cluster, &mut mailbox.the_one) {
                self.stale.insert(uid.clone());
            }
            !mailbox.unseen.is_empty()
        });
    }

    /// The mailboxes whose syncers carry on what is not seen there, and the change by which all of that is let go.
    pub(super) fn keeping(&self) -> impl Iterator<Item = (&Uid, &ClusterId, ChangeId)> {
        let all = self.keeping.iter().filter_map(|uid| Some((uid, self.all.get(uid)?)));
        let keeping = all.filter(|(_, mailbox)| !mailbox.unseen.is_empty());
        keeping.map(|(uid, mailbox)| (uid, &mailbox.cluster, mailbox.unseen.change()))
    }

    /// What a syncer carries on and is not seen in its mailbox, by its kinds at the edge.
    pub(super) fn kept_unseen(&self, uid: &Uid) -> BTreeMap<&KindId, usize> {
        self.all.get(uid).map(|mailbox| mailbox.unseen.count_by_kind()).unwrap_or_default()
    }

    /// Somebody said that what is not seen in a mailbox goes: its syncer is not told of it any more.
    pub(super) fn let_go_unseen(&mut self, uid: &Uid, passing: &mut Passing) {
        let Some(mailbox) = self.all.get_mut(uid) else { return };
        for gone in mailbox.unseen.let_go(&mut mailbox.the_one) {
            passing.takes_out(uid, &gone);
        }
        self.keeping.remove(uid);
        self.stale.insert(uid.clone());
    }

    /// Mailboxes serve these kinds of users' own without a status subresource.
    pub(super) fn serve_without_status(&mut self, kinds: BTreeSet<KindId>) {
        let before = std::mem::replace(&mut self.without_status, kinds);
        for changed in before.symmetric_difference(&self.without_status) {
            let carrying = self.all.iter().filter(|(_, mailbox)| mailbox.carried.contains_key(changed));
            self.stale.extend(carrying.map(|(uid, _)| uid.clone()));
        }
    }

    /// Other kinds are served: what configurations name may be among them.
    pub(super) fn kinds_changed(&mut self) {
        let naming = |mailbox: &Mailbox| {
            mailbox.placed.values().flatten().any(|brought| matches!(brought, BroughtUp::Named(..)))
        };
        let naming = self.all.iter().filter(|(_, mailbox)| naming(mailbox));
        self.stale.extend(naming.map(|(uid, _)| uid.clone()));
    }

    /// Routes for the mailboxes that changed.
    pub(super) fn configure(&mut self, catalogs: &[&Arc<Catalog>], orders: &mut Vec<Order>) {
        let told = self.told;
        for uid in std::mem::take(&mut self.stale) {
            let Some(mailbox) = self.all.get_mut(&uid) else { continue };
            if std::mem::replace(&mut mailbox.begun, true) && !told {
                continue;
            }
            let carried: BTreeSet<KindId> =
                mailbox.carried.keys().cloned().chain(mailbox.unseen.kinds()).collect();
            let synced = SyncedKinds {
                without_status: carried.intersection(&self.without_status).cloned().collect(),
                carried,
                upsync: {
                    let placed = mailbox.placed.values().flatten();
                    let placed = placed.flat_map(|brought| brought.sets(catalogs));
                    mailbox.upsync.all().cloned().chain(placed).collect()
                },
            };
            let mut fixtures = self.common.and(&mailbox.syncer, &synced);
            if !told {
                // What a syncer may do follows from what it carries. Said too early, it would take rights from it.
                fixtures.retain(|fixture| fixture.kind.resource() != "clusterroles");
            }
            if told {
                let kind = KindId::new(group::EDGE, "syncerconfigs");
                fixtures.extend(mailbox.the_one.configs().map(|config| Fixture {
                    kind: kind.clone(),
                    namespace: Name::EMPTY,
                    name: config.name.clone(),
                    body: config.body.clone(),
                }));
            }
            let workspace = Key {
                cluster: self.provider.clone(),
                kind: workspaces(),
                namespace: Name::EMPTY,
                name: mailbox.workspace.clone(),
            };
            let id = Furnished::id_of(&mailbox.workspace, &mailbox.cluster);
            let route =
                Furnished::new(workspace, mailbox.cluster.clone(), fixtures, HERE, Arc::clone(&self.marks));
            orders.push(Order::Configure(id, Some(Arc::new(route))));
        }
    }
}

/// Whether the views show a mailbox: its bindings are in force, and copies in it would be seen.
fn takes_copies(store: &Store, cluster: &ClusterId) -> Result<(), Doubt> {
    for kind in SHOW_MAILBOXES.map(|(group, resource)| KindId::new(group, resource)) {
        match store.range(cluster, &kind, None)?.missing() {
            Ok(_) | Err(Doubt::Claimed | Doubt::CatchingUp) => {}
            Err(doubt) => return Err(doubt),
        }
    }
    Ok(())
}

/// The kinds by which a mailbox is seen to be furnished: one that is bound there, and one that is claimed.
const SHOW_MAILBOXES: [(&str, &str); 2] = [(group::EDGE, "syncerconfigs"), ("", "configmaps")];

/// Kinds that are for the mailbox and not for the edge.
pub(crate) fn may_be_carried(kind: &KindId) -> bool {
    !matches!(kind.group(), group::EDGE | "apis.kcp.io" | "tenancy.kcp.io" | "core.kcp.io")
}

/// What stands in a mailbox whatever is placed there is no copy: its route says so, or, before that claims it, its mark.
fn is_fixture(slot: &Key, store: &Store, engine: &Engine, provider: &ClusterId, marks: &dyn Marks) -> bool {
    if let Some(source) = engine.claimant(slot) {
        return source.cluster == *provider;
    }
    match store.get(slot) {
        Seen::Present(standing) => {
            matches!(marks.read(standing), Marked::Ours(mark) if mark.origin.key.cluster == *provider)
        }
        Seen::Absent(_) | Seen::Unknown(_) => false,
    }
}

/// In which version a slot is carried: that of its source, or of what stands there.
fn version_of(slot: &Key, source: Option<&Key>, store: &Store) -> Option<Name> {
    let seen = |key: &Key| match store.get(key) {
        Seen::Present(object) => Some(Name::new(denature::version_of(&object.api_version()))),
        Seen::Absent(_) | Seen::Unknown(_) => None,
    };
    source.and_then(seen).or_else(|| seen(slot))
}

fn carried(slot: &Key, version: Name) -> Carried {
    let (kind, (namespace, name)) = (denature::at_edge(&slot.kind).into_owned(), address(slot));
    Carried { kind, version, namespace, name }
}

#[cfg(test)]
mod tests;
