//! What a server serves: kinds, their versions and what can be done with them, as plain values.
//!
//! How a server is asked is the business of the `cluster` crate; what is decided from the answer needs nothing but
//! this.

use std::collections::BTreeMap;
use std::fmt;

use crate::key::{KindId, Name};

/// One kind at one version, as a server serves it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Served {
    /// Group and resource.
    pub kind: KindId,
    /// The version, for example `v1`.
    pub version: Name,
    /// The name of the kind, for example `Deployment`.
    pub kind_name: Name,
    /// The singular resource name, for example `deployment`; some servers leave it empty.
    pub singular: Name,
    /// Objects of this kind live in namespaces.
    pub namespaced: bool,
    /// It has a `status` subresource.
    pub status: bool,
    /// It has a `scale` subresource.
    pub scale: bool,
    /// What can be done with it.
    pub verbs: Verbs,
    /// Short names, for example `deploy`.
    pub short_names: Box<[Name]>,
}

impl Served {
    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.kind.group()
    }

    /// The plural resource name.
    pub fn resource(&self) -> &str {
        self.kind.resource()
    }

    /// `apiVersion` as objects of this kind and version bear it.
    pub fn api_version(&self) -> String {
        match self.group() {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// A set of the verbs that discovery speaks of.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Verbs(u8);

const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

impl Verbs {
    /// Whether `verb`, in discovery's own word, is among them.
    pub fn has(self, verb: &str) -> bool {
        VERBS.iter().position(|known| *known == verb).is_some_and(|bit| self.0 & (1 << bit) != 0)
    }

    /// Whether objects can be listed and watched, so that they can be followed.
    pub fn can_follow(self) -> bool {
        self.has("list") && self.has("watch")
    }

    /// The set of these words; a word that nobody here asks about is left out.
    pub fn of<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let bit = |word: &str| VERBS.iter().position(|known| *known == word).map_or(0, |bit| 1_u8 << bit);
        Self(words.into_iter().map(bit).fold(0, |set, bit| set | bit))
    }
}

impl fmt::Debug for Verbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(VERBS.iter().filter(|verb| self.has(verb))).finish()
    }
}

/// All that one server or workspace serves, as far as it could be learned.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Catalog {
    /// Each kind's versions, the server's preferred one first; never empty.
    kinds: BTreeMap<KindId, Vec<Served>>,
    /// Groups of which the server could not say everything, and why.
    unknown: BTreeMap<Name, String>,
}

/// The answer to "is this kind served?".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found<'a> {
    /// Yes, and this is its preferred version.
    Served(&'a Served),
    /// No: the server listed its group in full (or named no such group), and the kind was not there.
    NotServed,
    /// Nobody knows: the group's own server did not answer. Never to be read as "not served".
    Unknown(&'a str),
}

impl Catalog {
    /// Whether a kind is served, and how.
    pub fn find(&self, kind: &KindId) -> Found<'_> {
        if let Some(served) = self.versions(kind).first() {
            return Found::Served(served);
        }
        match self.unknown.get(kind.group()) {
            Some(why) => Found::Unknown(why),
            None => Found::NotServed,
        }
    }

    /// All served versions of a kind, preferred first; empty if there is none.
    pub fn versions(&self, kind: &KindId) -> &[Served] {
        self.kinds.get(kind).map_or(&[], Vec::as_slice)
    }

    /// The kind that objects with this group and `kind` belong to.
    pub fn find_named(&self, group: &str, kind_name: &str) -> Option<&Served> {
        self.iter().find(|served| served.group() == group && &*served.kind_name == kind_name)
    }

    /// What a person means by a word: `deployments.apps`, `deployments`, `deployment` or `deploy`. The core
    /// group wins over others, then the first group by name.
    pub fn find_word(&self, word: &str) -> Option<&Served> {
        let (word, group) = word.split_once('.').map_or((word, None), |(word, group)| (word, Some(group)));
        let means = |served: &&Served| {
            group.is_none_or(|group| group == served.group())
                && (served.resource() == word
                    || &*served.singular == word
                    || served.short_names.iter().any(|short| &**short == word)
                    || served.kind_name.eq_ignore_ascii_case(word))
        };
        self.iter().filter(means).min_by_key(|served| served.group().to_owned())
    }

    /// Every kind at its preferred version, by kind.
    pub fn iter(&self) -> impl Iterator<Item = &Served> {
        self.kinds.values().filter_map(|versions| versions.first())
    }

    /// Groups of which the server could not say everything, and why.
    pub fn unknown_groups(&self) -> impl Iterator<Item = (&str, &str)> {
        self.unknown.iter().map(|(group, why)| (&**group, why.as_str()))
    }

    /// Adds a kind at a version, after those that the server prefers to it.
    pub fn add(&mut self, served: Served) {
        self.kinds.entry(served.kind.clone()).or_default().push(served);
    }

    /// Says that a group is not known in full, and why.
    pub fn doubt(&mut self, group: &str, why: impl Into<String>) {
        self.unknown.insert(Name::new(group), why.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(group: &str, resource: &str, version: &str, kind_name: &str) -> Served {
        Served {
            kind: KindId::new(group, resource),
            version: Name::new(version),
            kind_name: Name::new(kind_name),
            singular: Name::EMPTY,
            namespaced: true,
            status: false,
            scale: false,
            verbs: Verbs::of(["get", "list", "watch", "impersonate"]),
            short_names: Box::new([]),
        }
    }

    #[test]
    fn a_kind_is_served_not_served_or_nobody_knows() {
        let mut catalog = Catalog::default();
        catalog.add(served("apps", "deployments", "v1", "Deployment"));
        catalog.doubt("metrics.k8s.io", "its server is away");
        let find = |group, resource| catalog.find(&KindId::new(group, resource));
        assert!(matches!(find("apps", "deployments"), Found::Served(one) if one.api_version() == "apps/v1"));
        assert_eq!(find("apps", "statefulsets"), Found::NotServed);
        assert_eq!(find("metrics.k8s.io", "pods"), Found::Unknown("its server is away"));
        assert!(catalog.find_named("apps", "Deployment").is_some_and(|one| one.verbs.can_follow()));
        assert!(catalog.find_named("", "Deployment").is_none());
    }

    #[test]
    fn words_that_are_no_known_verbs_are_left_out() {
        assert_eq!(format!("{:?}", Verbs::of(["watch", "impersonate", "get"])), r#"{"get", "watch"}"#);
    }
}
