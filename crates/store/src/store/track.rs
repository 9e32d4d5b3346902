//! What has been read of one kind at one place, and what that says about objects that were not shown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_object::key::{ClusterId, Key, Name, Version};
use mailboat_object::object::Object;

use super::entry::Address;
use crate::interest::{EndpointId, Filter};
use crate::seen::Doubt;

/// Whether an object that was not shown is known to be absent.
pub(super) type Standing = Result<(), Doubt>;

/// What one endpoint has shown of one kind.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    pub(super) listed: Listed,
    /// Why what was not shown is not known to be absent. `None`: listed, and watched since.
    pub(super) doubt: Option<Doubt>,
    /// Up to where everything was read.
    pub(super) version: Version,
    /// The highest version that this endpoint has ever shown. Above `version` when the server went back.
    pub(super) highest: Version,
    /// A probe showed that the server went back since the latest list, however far it has come until the next.
    pub(super) went_back: bool,
    /// The number of the latest list.
    pub(super) list: u32,
    /// The latest list held something that could not even be named: anything may be it.
    pub(super) unnamed: bool,
    /// The follower is to list anew at its next input.
    pub(super) relist: bool,
}

impl Feed {
    pub(super) fn new(highest: Version) -> Self {
        Self {
            listed: Listed::Never,
            doubt: Some(Doubt::NotListed),
            version: Version(0),
            highest,
            went_back: false,
            list: 0,
            unnamed: false,
            relist: false,
        }
    }

    /// Forgets how complete it was, but not how far the server had come.
    pub(super) fn restart(&mut self) {
        let listed = if self.listed == Listed::Never { Listed::Never } else { Listed::Before };
        let Self { list, went_back, highest, .. } = *self;
        *self = Self { listed, list, went_back, relist: true, ..Self::new(highest) };
    }

    /// Whether all that there was has been read, so that only changes since are missing.
    pub(super) fn is_complete(&self) -> bool {
        self.listed == Listed::Now
    }

    /// Whether what it shows now is news and not the first listing.
    pub(super) fn is_live(&self) -> bool {
        self.listed != Listed::Never
    }

    /// Whether the server shows an older state than it showed before.
    pub(super) fn in_the_past(&self) -> bool {
        self.version < self.highest
    }

    pub(super) fn advance(&mut self, version: Version) {
        self.version = self.version.max(version);
        self.highest = self.highest.max(version);
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

/// One cluster as one place shows one kind of it.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) bond: Bond,
    pub(super) identity: Option<Name>,
    /// How far each endpoint had been read when the cluster was engaged again, and by which list, where that is
    /// further than the engagement. What was read while it was withdrawn proves nothing: a binding that comes back
    /// from before its own withdrawal is that of a server that went back in time.
    pub(super) read_withdrawn: BTreeMap<EndpointId, (Version, u32)>,
    /// The version at which it was last withdrawn; the highest there is, if nobody said.
    pub(super) withdrawn_at: Version,
    /// What was last told about this cluster.
    pub(super) announced: Standing,
    /// Everything is in doubt: changes are held back until that ends.
    pub(super) total: bool,
    /// What was known, and whether live, of each object that changed during a total doubt.
    pub(super) held: BTreeMap<Address, (Option<Arc<Object>>, bool)>,
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
    pub(super) former: BTreeMap<EndpointId, Version>,
    pub(super) members: BTreeMap<ClusterId, Member>,
    /// Members that are engaged since a version that was not read yet.
    pub(super) awaiting: BTreeSet<ClusterId>,
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
            members: BTreeMap::new(),
            awaiting: BTreeSet::new(),
            announced: None,
        }
    }

    pub(super) fn member(&mut self, cluster: &ClusterId) -> &mut Member {
        let announced = self.unbound();
        let total = self.standing(Past::Doubted).is_err_and(Doubt::is_total);
        self.members.entry(cluster.clone()).or_insert_with(|| Member {
            bond: Bond::Never,
            identity: None,
            read_withdrawn: BTreeMap::new(),
            withdrawn_at: Version(0),
            announced,
            total,
            held: BTreeMap::new(),
        })
    }

    pub(super) fn is_engaged(&self, cluster: &ClusterId) -> bool {
        self.members.get(cluster).is_some_and(|member| matches!(member.bond, Bond::Engaged(_)))
    }

    /// Whether a delete event is the end of an object and not only of its being shown.
    pub(super) fn proves_deletion(&self, key: &Key, version: Version) -> bool {
        let bond = self.members.get(&key.cluster).map_or(Bond::Never, |member| member.bond);
        let bound = match bond {
            // An event of before the engagement may well be the end of an earlier one.
            Bond::Engaged(since) => self.whole.is_some() || version >= since,
            Bond::Never => self.whole.is_some(),
            Bond::Withdrawn | Bond::Strange => false,
        };
        bound && self.filter.shows_all_of(&key.namespace)
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
            Some(Some(feed)) => Some(feed),
            None => None,
        };
        if let Some(doubt) = home.and_then(|(_, feed)| feed.doubt).filter(|doubt| doubt.is_total()) {
            return Err(doubt);
        }
        let Bond::Engaged(since) = member.bond else { return Err(Doubt::NotEngaged) };
        // One of the endpoints shows the cluster. As long as nobody knows which, all must have come that far.
        let has_come = |(endpoint, feed): (&EndpointId, &Feed)| {
            let read_on = |(version, list): &(Version, u32)| feed.version > *version || feed.list != *list;
            feed.version >= since && member.read_withdrawn.get(endpoint).is_none_or(read_on)
        };
        let reached = match home {
            Some(feed) => has_come(feed),
            None => self.feeds.iter().all(has_come),
        };
        if reached { Ok(()) } else { Err(Doubt::CatchingUp) }
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
