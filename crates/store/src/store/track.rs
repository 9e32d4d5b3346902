//! What has been read of one kind at one place, and what that says about objects that were not shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use mailboat_object::key::{ClusterId, Key, Name, Version};
use mailboat_object::object::Object;

use super::Unlisted;
use super::by_cluster::ByCluster;
use super::entry::Address;
use crate::interest::{EndpointId, Filter};
use crate::mutation::{Mutation, broken};
use crate::seen::Doubt;

/// Whether an object that was not shown is known to be absent.
pub(super) type Standing = Result<(), Doubt>;

/// What one endpoint has shown of one kind.
#[allow(clippy::struct_excessive_bools, reason = "each is a finding of its own, and all can hold at once")]
#[derive(Clone, Debug)]
pub(super) struct Feed {
    pub(super) listed: Listed,
    /// Why what was not shown is not known to be absent. `None`: listed, and watched since.
    pub(super) doubt: Option<Doubt>,
    /// Up to where everything was read.
    pub(super) version: Version,
    /// The version of the latest list that was read to its end.
    pub(super) listed_at: Version,
    /// How many lists of any feed had begun by its end.
    pub(super) listed_after: u32,
    /// The highest version that this endpoint has ever shown. Above `version` when the server went back.
    pub(super) highest: Version,
    /// How far the server was seen to be when the link to it came back.
    pub(super) reached: Version,
    /// A probe showed that the server went back since the latest list, however far it has come until the next.
    pub(super) went_back: bool,
    /// The number of the latest list.
    pub(super) list: u32,
    /// That of the one before it. When that one began, the latest was not asked for yet.
    pub(super) list_before: u32,
    /// The latest list held something that could not even be named: anything may be it.
    pub(super) unnamed: bool,
    /// The follower is to list anew at its next input.
    pub(super) relist: bool,
    /// A list was never read to its end since, and the link was lost over it.
    pub(super) stalls: bool,
}

impl Feed {
    pub(super) fn new(highest: Version) -> Self {
        Self {
            listed: Listed::Never,
            doubt: Some(Doubt::NotListed),
            version: Version(0),
            listed_at: Version(0),
            listed_after: 0,
            highest,
            reached: Version(0),
            went_back: false,
            list: 0,
            list_before: 0,
            unnamed: false,
            relist: false,
            stalls: false,
        }
    }

    /// Forgets how complete it was, but not how far the server had come.
    pub(super) fn restart(&mut self) {
        let listed = if self.listed == Listed::Never { Listed::Never } else { Listed::Before };
        let Self { list, list_before, went_back, highest, .. } = *self;
        *self = Self { listed, list, list_before, went_back, relist: true, ..Self::new(highest) };
    }

    /// Whether all that there was has been read, so that only changes since are missing.
    pub(super) fn is_complete(&self) -> bool {
        self.listed == Listed::Now
    }

    /// Whether what it shows now is news and not the first listing.
    pub(super) fn is_live(&self) -> bool {
        self.listed != Listed::Never
    }

    /// How the first list stands, while nothing was listed; nothing if none will be.
    pub(super) fn unlisted(&self) -> Option<Unlisted> {
        match self.doubt? {
            Doubt::NotListed if !self.stalls => Some(Unlisted::Yet),
            doubt => (!doubt.is_total()).then_some(Unlisted::Stalled),
        }
    }

    /// Whether the server shows an older state than it showed before.
    pub(super) fn in_the_past(&self) -> bool {
        self.version < self.highest && !broken(Mutation::PastIsPresent)
    }

    /// Whether the link came back and what happened meanwhile was not read yet.
    pub(super) fn is_catching_up(&self) -> bool {
        self.version < self.reached
    }

    pub(super) fn advance(&mut self, version: Version) {
        self.version = self.version.max(version);
        self.highest = self.highest.max(version);
    }

    /// Whether this feed, of bindings, tells what was bound when a list of this version was read.
    pub(super) fn vouches_for(&self, listed_at: Version) -> bool {
        self.doubt.is_none() && !self.unnamed && self.version >= listed_at
    }

    fn standing(&self, past: Past) -> Standing {
        match self.doubt {
            Some(doubt) => Err(doubt),
            None if self.unnamed => Err(Doubt::Unreadable),
            None if past == Past::Doubted && self.in_the_past() => Err(Doubt::WentBack),
            None => Ok(()),
        }
    }
}

/// What is remembered of a feed that is not there now.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Former {
    highest: Version,
    went_back: bool,
}

impl Former {
    pub(super) fn of(feed: &Feed) -> Self {
        Self { highest: feed.highest, went_back: feed.went_back }
    }

    /// Its server went back in time meanwhile.
    pub(super) fn went_back(&mut self) {
        self.went_back = true;
    }

    /// The feed as it begins again.
    pub(super) fn begin(self) -> Feed {
        Feed { went_back: self.went_back, ..Feed::new(self.highest) }
    }
}

/// Whether a list was read to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Listed {
    Never,
    /// Once, but for reasons of the store's own that no longer counts.
    Before,
    Now,
}

/// Whether a server that went back in time is believed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Past {
    Doubted,
    Confirmed,
}

/// How well a cluster is tied to a place: the best answers, of two views.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Strength {
    Unseen,
    Unbound,
    Claimed,
    Bound,
}

/// What binds one cluster to the view through which it is seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bond {
    Never,
    /// Since this version of the cluster's server.
    Engaged(Version),
    Withdrawn,
    /// Bound, but to another identity than the recorded one.
    Strange,
}

/// How far each endpoint was read, and by which list.
pub(super) type ReadWithdrawn = BTreeMap<EndpointId, (Version, u32)>;

/// What was known, and whether live, of each object that changed during a total doubt.
pub(super) type Held = BTreeMap<Address, (Option<Arc<Object>>, bool)>;

/// One cluster as one place shows one kind of it. There are as many as mailboxes times kinds, nearly a million where there are
/// ten thousand mailboxes: what few have is [apart](Odd).
#[derive(Debug)]
pub(super) struct Member {
    pub(super) bond: Bond,
    /// The identity that is believed: the first that was seen, or one that was accepted since.
    identity: Option<Name>,
    odd: Option<Box<Odd>>,
    /// What was read of the kind is as new as the binding that names this identity. A newer binding may have been
    /// rewritten since, and tells nothing of what was read before.
    pub(super) confirmed: bool,
    shown: Shown,
    /// Seen through a claim: objects leave such a view without being deleted, and before the binding says so.
    pub(super) claimed: bool,
    /// What was last told about this cluster.
    pub(super) announced: Standing,
    /// Everything is in doubt: changes are held back until that ends.
    pub(super) total: bool,
}

/// Under which identity a binding shows a kind now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shown {
    /// The one that is believed.
    AsBelieved,
    /// Another, or none: [`Odd::shown_under`].
    Otherwise,
}

/// What few members have.
#[derive(Default, Debug)]
pub(super) struct Odd {
    /// The identity under which its binding shows the kind now, if that is not the one that is believed.
    shown_under: Option<Name>,
    /// How far each endpoint had been read when the cluster was engaged again, and by which list, where that is
    /// further than the engagement. What was read while it was withdrawn proves nothing: a binding that comes back
    /// from before its own withdrawal is that of a server that went back in time.
    pub(super) read_withdrawn: ReadWithdrawn,
    /// The version at which it was last withdrawn; the highest there is, if nobody said.
    pub(super) withdrawn_at: Version,
    /// What changed while everything was in doubt.
    pub(super) held: Held,
}

/// One kind at one place, over all of its endpoints.
#[derive(Debug)]
pub(super) struct Track {
    /// The one cluster of a place that shows it whole; none in a view.
    pub(super) whole: Option<ClusterId>,
    pub(super) followed: bool,
    /// Discovery lacks the kind.
    pub(super) unserved: bool,
    pub(super) filter: Filter,
    pub(super) feeds: BTreeMap<EndpointId, Feed>,
    /// How far endpoints had come that are no longer there.
    pub(super) former: BTreeMap<EndpointId, Former>,
    pub(super) members: ByCluster<Member>,
    /// Members that are engaged since a version that was not read yet.
    pub(super) awaiting: ByCluster<()>,
    /// The identities under which bindings show the kind now, and in how many clusters each.
    identities: BTreeMap<Name, usize>,
    /// The identity that a binding named last: that of the export, and so of what a view shows.
    newest: Option<Name>,
    /// The endpoints of a view whose bindings do not vouch for what is shown there, and why.
    pub(super) unvouched: BTreeMap<EndpointId, Doubt>,
    /// What was last told about the place.
    pub(super) announced: Option<Standing>,
}

impl Track {
    pub(super) fn new(whole: Option<ClusterId>) -> Self {
        Self {
            whole,
            followed: false,
            unserved: false,
            filter: Filter::All,
            feeds: BTreeMap::new(),
            former: BTreeMap::new(),
            members: ByCluster::default(),
            awaiting: ByCluster::default(),
            identities: BTreeMap::new(),
            newest: None,
            unvouched: BTreeMap::new(),
            announced: None,
        }
    }

    pub(super) fn member(&mut self, cluster: &ClusterId) -> &mut Member {
        let announced = self.unbound();
        let total = self.standing(Past::Doubted).is_err_and(Doubt::is_total);
        self.members.of(cluster, || Member {
            bond: Bond::Never,
            identity: None,
            odd: None,
            confirmed: false,
            shown: Shown::AsBelieved,
            claimed: false,
            announced,
            total,
        })
    }

    /// How well a cluster is tied to the place.
    pub(super) fn strength(&self, cluster: &ClusterId) -> Strength {
        match self.members.get(cluster) {
            None => Strength::Unseen,
            Some(Member { bond: Bond::Engaged(_), claimed: true, .. }) => Strength::Claimed,
            Some(Member { bond: Bond::Engaged(_), .. }) => Strength::Bound,
            Some(_) => Strength::Unbound,
        }
    }

    /// Notes under which identity a cluster's binding shows the kind.
    pub(super) fn shown_under(&mut self, cluster: &ClusterId, identity: Option<Name>) {
        let member = self.member(cluster);
        let before = member.shown_under().cloned();
        if before == identity {
            return;
        }
        member.show_under(identity.clone());
        if let Some(before) = before
            && let Some(count) = self.identities.get_mut(&before)
        {
            *count -= 1;
            if *count == 0 {
                self.identities.remove(&before);
            }
        }
        if let Some(identity) = identity {
            self.newest = Some(identity.clone());
            *self.identities.entry(identity).or_default() += 1;
        }
    }

    pub(super) fn forget(&mut self, cluster: &ClusterId) -> Option<Member> {
        self.awaiting.remove(cluster);
        self.shown_under(cluster, None);
        self.members.remove(cluster)
    }

    /// An export has one identity. While some binding names another than the one that was named last, they are being
    /// rewritten one by one, and a view that already shows the new one lacks the objects of all whose binding still
    /// names the old one. That the binding which named the new one is gone again changes nothing.
    fn in_flux(&self) -> bool {
        self.whole.is_none() && self.identities.keys().any(|named| self.newest.as_ref() != Some(named))
    }

    /// Whether a delete event is the end of an object and not only of its being shown.
    pub(super) fn proves_deletion(&self, key: &Key, version: Version) -> bool {
        let bond = self.members.get(&key.cluster).map_or(Bond::Never, |member| member.bond);
        let bound = match bond {
            // An event of before the engagement may well be the end of an earlier one.
            Bond::Engaged(since) => {
                self.whole.is_some() || (version >= since && !self.is_claimed(&key.cluster))
            }
            Bond::Never => self.whole.is_some(),
            Bond::Withdrawn | Bond::Strange => false,
        };
        bound && !self.in_flux() && self.filter.shows_all_of(&key.namespace)
    }

    fn is_claimed(&self, cluster: &ClusterId) -> bool {
        self.members.get(cluster).is_some_and(|member| member.claimed)
    }

    /// What is known of the place as a whole. Total only if no endpoint is left that says otherwise.
    pub(super) fn standing(&self, past: Past) -> Standing {
        if !self.followed {
            return Err(Doubt::NotFollowed);
        }
        if self.unserved {
            return Err(Doubt::Unserved);
        }
        // No endpoint, nothing asked, nothing known: "complete over every endpoint" must not hold of none.
        let mut result = if self.feeds.is_empty() { Err(Doubt::NoEndpoint) } else { Ok(()) };
        let mut all_total = !self.feeds.is_empty();
        for feed in self.feeds.values() {
            let standing = feed.standing(past);
            all_total &= standing.is_err_and(Doubt::is_total);
            result = result.and(standing);
        }
        match result {
            Err(doubt) if doubt.is_total() && !all_total => Err(Doubt::Lost),
            Ok(()) => match self.unvouched.values().next() {
                Some(doubt) => Err(*doubt),
                None if self.in_flux() => Err(Doubt::BindingsBehind),
                None => Ok(()),
            },
            result => result,
        }
    }

    /// What is known of one cluster, beside what is known of the place. `home`: the endpoint that shows it.
    pub(super) fn standing_of(&self, cluster: &ClusterId, home: Option<&EndpointId>) -> Standing {
        let Some(member) = self.members.get(cluster) else { return self.unbound() };
        match member.bond {
            Bond::Withdrawn => return Err(Doubt::Withdrawn),
            Bond::Strange => return Err(Doubt::IdentityChanged),
            Bond::Never | Bond::Engaged(_) => {}
        }
        if self.whole.is_some() {
            return Ok(());
        }
        let home = match home.map(|endpoint| self.feeds.get_key_value(endpoint)) {
            Some(None) => return Err(Doubt::EndpointRemoved),
            None => return Err(Doubt::NotEngaged),
            Some(Some(feed)) => feed,
        };
        let (endpoint, feed) = home;
        if let Some(doubt) = feed.doubt.filter(|doubt| doubt.is_total()) {
            return Err(doubt);
        }
        let Bond::Engaged(since) = member.bond else { return Err(Doubt::NotEngaged) };
        let read_on = |(version, list): &(Version, u32)| feed.version > *version || feed.list != *list;
        if feed.version < since
            || !member.odd().and_then(|odd| odd.read_withdrawn.get(endpoint)).is_none_or(read_on)
        {
            return Err(Doubt::CatchingUp);
        }
        if member.claimed { Err(Doubt::Claimed) } else { Ok(()) }
    }

    /// Whether some endpoint never listed the kind.
    pub(super) fn awaits_first_list(&self) -> bool {
        self.feeds.values().any(|feed| !feed.is_live())
    }

    /// Why everything of this cluster is unknown, if it is.
    pub(super) fn total_doubt(&self, cluster: &ClusterId, home: Option<&EndpointId>) -> Option<Doubt> {
        [self.standing(Past::Doubted), self.standing_of(cluster, home)]
            .into_iter()
            .find_map(|standing| standing.err().filter(|doubt| doubt.is_total()))
    }

    /// The version up to which a cluster was read.
    pub(super) fn version_of(&self, home: Option<&EndpointId>) -> Version {
        let home = home.and_then(|endpoint| self.feeds.get(endpoint));
        let lowest = || self.feeds.values().map(|feed| feed.version).min();
        home.map(|feed| feed.version).or_else(lowest).unwrap_or_default()
    }

    /// What holds of a cluster that nothing was told about.
    fn unbound(&self) -> Standing {
        if self.whole.is_some() { Ok(()) } else { Err(Doubt::NotEngaged) }
    }
}

impl Member {
    /// The identity that is believed.
    pub(super) fn identity(&self) -> Option<&Name> {
        self.identity.as_ref()
    }

    /// Another identity is believed from now on.
    pub(super) fn believe(&mut self, identity: Option<Name>) {
        let shown = self.shown_under().cloned();
        self.identity = identity;
        self.show_under(shown);
    }

    fn shown_under(&self) -> Option<&Name> {
        match self.shown {
            Shown::AsBelieved => self.identity.as_ref(),
            Shown::Otherwise => self.odd()?.shown_under.as_ref(),
        }
    }

    fn show_under(&mut self, identity: Option<Name>) {
        if identity == self.identity {
            self.shown = Shown::AsBelieved;
            self.tidy(|odd| odd.shown_under = None);
        } else {
            self.shown = Shown::Otherwise;
            if identity.is_some() || self.odd.is_some() {
                self.odd_mut().shown_under = identity;
            }
        }
    }

    /// When it was last withdrawn; the beginning if it never was.
    pub(super) fn withdrawn_at(&self) -> Version {
        self.odd().map_or(Version(0), |odd| odd.withdrawn_at)
    }

    /// Takes what changed while everything was in doubt.
    pub(super) fn take_held(&mut self) -> Held {
        let mut held = Held::new();
        self.tidy(|odd| held = std::mem::take(&mut odd.held));
        held
    }

    fn odd(&self) -> Option<&Odd> {
        self.odd.as_deref()
    }

    /// What few have, to be added to.
    pub(super) fn odd_mut(&mut self) -> &mut Odd {
        self.odd.get_or_insert_default()
    }

    /// Takes back some of what few have, and gives the room back if nothing of it is left.
    pub(super) fn tidy(&mut self, take: impl FnOnce(&mut Odd)) {
        let Some(odd) = &mut self.odd else { return };
        take(odd);
        if odd.is_nothing() {
            self.odd = None;
        }
    }
}

impl Odd {
    fn is_nothing(&self) -> bool {
        self.shown_under.is_none()
            && self.read_withdrawn.is_empty()
            && self.withdrawn_at == Version(0)
            && self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_small_and_remembers_what_it_was_shown_under() {
        assert!(size_of::<Member>() <= 40, "{} bytes", size_of::<Member>());
        let (one, other) = (Some(Name::new("one")), Some(Name::new("other")));
        let mut track = Track::new(None);
        let member = track.member(&ClusterId::new("mailbox"));
        member.show_under(one.clone());
        assert_eq!((member.shown_under(), member.identity()), (one.as_ref(), None));
        member.believe(one.clone());
        assert_eq!((member.shown_under(), member.identity()), (one.as_ref(), one.as_ref()));
        assert!(member.odd.is_none(), "what is as believed takes no room");
        member.show_under(other.clone());
        assert_eq!((member.shown_under(), member.identity()), (other.as_ref(), one.as_ref()));
        member.show_under(None);
        assert_eq!((member.shown_under(), member.identity()), (None, one.as_ref()));
        member.show_under(one.clone());
        member.believe(other.clone());
        assert_eq!((member.shown_under(), member.identity()), (one.as_ref(), other.as_ref()));
    }
}
