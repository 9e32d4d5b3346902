//! What can be known of an object: that it is there, that it is not, or neither.

use std::fmt;
use std::sync::Arc;

use mailboat_object::key::{ClusterId, Key, KindId, Version};
use mailboat_object::object::Object;

use crate::interest::PlaceId;

/// What is known of one object. Only `Absent` may ever lead to a withdrawal, and it carries its proof.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen<T> {
    /// Neither presence nor absence is proven.
    Unknown(Doubt),
    /// It is not there, and here is the proof.
    Absent(Absence),
    /// It is there, as last shown by its server.
    Present(T),
}

impl<T> Seen<T> {
    /// The object if it is there.
    pub fn present(self) -> Option<T> {
        match self {
            Self::Present(object) => Some(object),
            Self::Unknown(_) | Self::Absent(_) => None,
        }
    }

    /// The proof if it is known not to be there.
    pub fn absent(&self) -> Option<Absence> {
        match self {
            Self::Absent(absence) => Some(*absence),
            Self::Unknown(_) | Self::Present(_) => None,
        }
    }

    /// Why nothing is known, if nothing is.
    pub fn doubt(&self) -> Option<Doubt> {
        match self {
            Self::Unknown(doubt) => Some(*doubt),
            Self::Absent(_) | Self::Present(_) => None,
        }
    }

    /// The same knowledge about something made from the object.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Seen<U> {
        match self {
            Self::Unknown(doubt) => Seen::Unknown(doubt),
            Self::Absent(absence) => Seen::Absent(absence),
            Self::Present(object) => Seen::Present(change(object)),
        }
    }
}

impl<T: Clone> Seen<&T> {
    /// The same knowledge, owned.
    pub fn cloned(self) -> Seen<T> {
        self.map(Clone::clone)
    }
}

/// Why something is unknown. Its text is a sentence for people, as conditions and `why` show it.
///
/// Most doubts concern only what has *not* been seen; what was shown last stays `Present`, because a lost link
/// says nothing about an object. A [total](Doubt::is_total) doubt concerns everything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Doubt {
    /// Nobody follows this kind there.
    NotFollowed,
    /// The first list is not complete yet.
    NotListed,
    /// The list is being read again.
    Relisting,
    /// The link to the server is lost.
    Lost,
    /// The server no longer accepts the credential.
    Unauthorized,
    /// The server refuses the request itself.
    Refused,
    /// The view has no endpoint to ask.
    NoEndpoint,
    /// The view does not show this cluster to be bound (or the claim to be applied).
    NotEngaged,
    /// Bound, but the view has not been read up to that moment yet; or the link is back and has not been.
    CatchingUp,
    /// The bindings of the view are not known, or not as far as the view was read; or they contradict each other.
    BindingsBehind,
    /// Seen through a permission claim. kcp takes objects out of such a view without deleting them, and before it
    /// says so; so nothing that is not in it is ever known to be absent.
    Claimed,
    /// Outside of what is followed: an object may be there and not match.
    Filtered,
    /// The server went back in time, as after a restored backup, and has not come as far again as it was.
    WentBack,
    /// What the server shows of this object, be it nothing, is older than what it showed before.
    OlderThanKnown,
    /// The server's answers cannot be read, or some part of them that does not even say what it is about.
    Unreadable,
    /// What the server says of this object cannot be read.
    Malformed,
    /// The server does not serve this kind now.
    Unserved,
    /// The server does not let us read this kind, or the workspace is gone.
    Forbidden,
    /// The binding (or the claim) that showed this cluster in the view was withdrawn.
    Withdrawn,
    /// The kind is bound to another identity than before: what it shows now are other objects.
    IdentityChanged,
    /// The endpoint that showed this cluster was taken out of the view. Stays last: all are counted by it.
    EndpointRemoved,
}

/// A doubt that is added before the last one is not forgotten among all of them.
const _: () = assert!(Doubt::ALL.len() == Doubt::EndpointRemoved as usize + 1);

impl Doubt {
    /// All of them.
    pub const ALL: [Self; 21] = [
        Self::NotFollowed,
        Self::NotListed,
        Self::Relisting,
        Self::Lost,
        Self::Unauthorized,
        Self::Refused,
        Self::NoEndpoint,
        Self::NotEngaged,
        Self::CatchingUp,
        Self::BindingsBehind,
        Self::Claimed,
        Self::Filtered,
        Self::WentBack,
        Self::OlderThanKnown,
        Self::Unreadable,
        Self::Malformed,
        Self::Unserved,
        Self::Forbidden,
        Self::Withdrawn,
        Self::IdentityChanged,
        Self::EndpointRemoved,
    ];

    /// Whether what was shown before may have changed since, unseen: nobody reads along.
    pub(crate) fn is_behind(self) -> bool {
        matches!(
            self,
            Self::NotListed
                | Self::Relisting
                | Self::Lost
                | Self::Unauthorized
                | Self::Refused
                | Self::NoEndpoint
                | Self::Unreadable
        )
    }

    /// Whether even what was shown before is no longer known to be there.
    pub fn is_total(self) -> bool {
        match self {
            Self::NotFollowed
            | Self::Unserved
            | Self::Forbidden
            | Self::Withdrawn
            | Self::IdentityChanged
            | Self::EndpointRemoved => true,
            Self::NotListed
            | Self::Relisting
            | Self::Lost
            | Self::Unauthorized
            | Self::Refused
            | Self::NoEndpoint
            | Self::NotEngaged
            | Self::CatchingUp
            | Self::BindingsBehind
            | Self::Claimed
            | Self::Filtered
            | Self::WentBack
            | Self::OlderThanKnown
            | Self::Unreadable
            | Self::Malformed => false,
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFollowed => "nobody follows this kind there",
            Self::NotListed => "its first list is not complete yet",
            Self::Relisting => "its list is being read again",
            Self::Lost => "the link to its server is lost",
            Self::Unauthorized => "its server no longer accepts our credential",
            Self::Refused => "its server refuses to list this kind",
            Self::NoEndpoint => "the view it would be seen through has no endpoint",
            Self::NotEngaged => "its workspace is not seen to be bound to the view it would be seen through",
            Self::CatchingUp => {
                "its link or binding came back a moment ago and what happened meanwhile is still being read"
            }
            Self::BindingsBehind => "the bindings that say what its view shows are not known up to now",
            Self::Claimed => "it would be seen through a permission claim, which proves no absence",
            Self::Filtered => "it is outside of what is followed, where it may or may not be",
            Self::WentBack => "its server went back in time and has not come as far again",
            Self::OlderThanKnown => "what its server shows of it is older than what it showed before",
            Self::Unreadable => "the answers of its server cannot be read",
            Self::Malformed => "what its server says of it cannot be read",
            Self::Unserved => "its server does not serve this kind now",
            Self::Forbidden => "its server does not let us read this kind, or the workspace is gone",
            Self::Withdrawn => "the binding or claim through which it was seen was withdrawn",
            Self::IdentityChanged => "its kind is now bound to another identity than before",
            Self::EndpointRemoved => "the endpoint that showed its workspace was taken out of the view",
        })
    }
}

/// The proof that an object was not there at one version of its server. Only this crate can make one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Absence {
    how: Gone,
    version: Version,
}

impl Absence {
    pub(crate) fn new(how: Gone, version: Version) -> Self {
        Self { how, version }
    }

    /// How it came to be known.
    pub fn how(self) -> Gone {
        self.how
    }

    /// The server's version at which the object was not there. In a view over several endpoints it is the
    /// version of the endpoint that shows the object's cluster.
    pub fn version(self) -> Version {
        self.version
    }
}

/// How an absence came to be known. Leaving a filter or a view is neither.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gone {
    /// By a delete event of a watch without a label filter. Remembered for the latest deletions only; an older
    /// one reads [`Gone::NotInList`], the more cautious of the two.
    Deleted,
    /// By a complete, consistent list, kept up to date by its watch.
    NotInList,
}

/// What became known of one object.
#[derive(Clone, Debug)]
pub struct Change {
    /// Which object.
    pub key: Key,
    /// The object last known before, as it was kept, if one was and was not let go of in a time of doubt.
    pub before: Option<Arc<Object>>,
    /// What is known now. When the object was just shown, all of it is here, however little of it the store keeps;
    /// told later, after a total doubt, it is as it was kept.
    pub now: Seen<Arc<Object>>,
    /// False while the first list is read: live changes go before these.
    pub live: bool,
    /// The object was just shown by an event of a watch, and not by a list.
    pub watched: bool,
}

/// One piece of news from the store. Replayed from the start, news give exactly what the store holds.
#[derive(Clone, Debug)]
pub enum News {
    /// One object.
    Object(Change),
    /// A whole kind became known or doubtful: one line, however many objects it concerns. A
    /// [total](Doubt::is_total) doubt makes all of them unknown, any other only what was not shown. When a total
    /// doubt ends, what changed meanwhile follows as [`News::Object`].
    Scope {
        /// Where.
        place: PlaceId,
        /// One cluster of a view, or everything that the place shows.
        cluster: Option<ClusterId>,
        /// Which kind.
        kind: KindId,
        /// Whether an object that was not shown is now known to be absent. In a view that takes both the line
        /// for the place and the line for the cluster.
        known: Result<(), Doubt>,
    },
    /// The first list of a kind failed at an endpoint: it may take long until it is read. Told once.
    Stalled {
        /// Where.
        place: PlaceId,
        /// Which kind.
        kind: KindId,
    },
    /// The link to an endpoint was lost and came back, and all that happened meanwhile is read now: what is shown of
    /// this kind is no longer behind.
    CaughtUp {
        /// Where.
        place: PlaceId,
        /// Which kind.
        kind: KindId,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_doubt_has_a_sentence_of_its_own() {
        let sentences: std::collections::BTreeSet<String> =
            Doubt::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(sentences.len(), Doubt::ALL.len(), "{sentences:?}");
        for sentence in sentences {
            assert!(sentence.len() > 20 && !sentence.ends_with('.'), "{sentence}");
        }
    }

    #[test]
    fn h03_a_lost_link_takes_nothing_away_that_was_seen() {
        for doubt in [Doubt::Lost, Doubt::Unauthorized, Doubt::NotListed, Doubt::Relisting, Doubt::Unreadable]
        {
            assert!(!doubt.is_total(), "{doubt}");
        }
        for doubt in [Doubt::Unserved, Doubt::Forbidden, Doubt::Withdrawn, Doubt::IdentityChanged] {
            assert!(doubt.is_total(), "{doubt}");
        }
    }

    #[test]
    fn only_one_of_the_three_answers_is_given() {
        let absence = Absence::new(Gone::Deleted, Version(7));
        let all: [Seen<u8>; 3] = [Seen::Unknown(Doubt::Lost), Seen::Absent(absence), Seen::Present(1)];
        let given =
            all.map(|seen| (seen.doubt().is_some(), seen.absent().is_some(), seen.present().is_some()));
        assert_eq!(given, [(true, false, false), (false, true, false), (false, false, true)]);
        assert_eq!((absence.how(), absence.version()), (Gone::Deleted, Version(7)));
    }
}
