//! All configuration of a mailbox, joined into rules.
//!
//! An entry that cannot work is held: what it may mean is neither sent nor withdrawn, and its path is told. The rest
//! goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_object::catalog::{Catalog, Found};
use mailboat_object::digest::{Digest, digest_of_value};
use mailboat_object::key::{KindId, Name};
use serde_json::Value;

use super::{Config, ConfigId, Conversion, Entry, Form, KindRef, Options, Scope};
use crate::renature::{KnownConversion, denatured, natured};
use crate::select::comes_with_its_group;

/// One entry, with its kind known.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The entry.
    pub entry: Arc<Entry>,
    /// Why what it means is held, if it is.
    pub held: Option<Name>,
}

/// Something that is wrong with a configuration object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Problem {
    /// Where in it; empty for the whole object.
    pub path: String,
    /// What, in a sentence.
    pub message: String,
}

/// What routes select by.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// What goes to the edge, by the kind that the entry names.
    pub down: BTreeMap<KindId, Vec<Rule>>,
    /// What comes from the edge, by its kind there.
    pub up: BTreeMap<KindId, Vec<Rule>>,
    /// What has another form at the edge.
    pub conversions: Vec<KnownConversion>,
    /// Namespaces that come to exist at the edge.
    pub namespaces: BTreeSet<Name>,
    /// What is wrong, by the object that says so.
    pub problems: BTreeMap<ConfigId, Vec<Problem>>,
    /// Where entries disagree about how one object is carried, by the objects that do.
    pub disagreements: BTreeMap<ConfigId, Vec<Problem>>,
    /// Some entry does not even say which kind it means: what was delivered for it cannot be told from what nobody
    /// selects, so nothing may be taken for deselected.
    pub unclear: bool,
    /// The configuration that they were made from.
    pub configuration: Digest,
}

/// What each side serves, and what was learned of it before.
pub struct Surroundings<'a> {
    /// What the mailbox serves.
    pub mailbox: &'a Catalog,
    /// What the edge serves.
    pub edge: &'a Catalog,
    /// Kinds that were brought up before: all kinds of a group include those, served or not.
    pub brought_up: &'a BTreeSet<KindId>,
}

/// The plurals of kinds that were once found, so that a kind which is no longer served is still the one it was.
pub type Plurals = BTreeMap<(Name, Name), KindId>;

impl Rules {
    /// Joins configuration objects. They are taken in the order of their ids, so that the result has one form.
    pub fn join<'a>(
        configs: impl IntoIterator<Item = &'a Config>,
        around: &Surroundings<'_>,
        plurals: &mut Plurals,
    ) -> Self {
        let mut rules = Self::default();
        let mut specs = Vec::new();
        for config in configs {
            specs.push(Value::from(format!("{} {}", config.id, config.spec)));
            if let Some(why) = &config.unreadable {
                rules.problem(&config.id, "spec", why.clone());
                rules.unclear = true;
            }
            rules.namespaces.extend(config.namespaces.iter().cloned());
            for conversion in &config.conversions {
                rules.add_conversion(conversion, around, plurals);
            }
            for entry in &config.down {
                rules.add_down(entry, around, plurals);
            }
            for entry in &config.up {
                rules.add_up(entry, around, plurals);
            }
        }
        rules.configuration = digest_of_value(&Value::from(specs));
        rules.find_unserved(around);
        rules.find_disagreements();
        rules
    }

    /// The kinds of the mailbox whose objects may be selected, served or not: an entry's own kind, its denatured form,
    /// and what conversions start from.
    pub fn sources(&self) -> BTreeSet<KindId> {
        let mut kinds = BTreeSet::new();
        for (kind, rules) in &self.down {
            kinds.insert(kind.clone());
            if natured(kind).is_none() && rules.iter().any(|rule| rule.entry.options.renature) {
                kinds.insert(denatured(kind));
            }
        }
        kinds.extend(self.conversions.iter().map(|conversion| conversion.upstream.clone()));
        if !self.namespaces.is_empty() {
            kinds.insert(KindId::new("", "namespaces"));
        }
        kinds
    }

    /// The kinds that may come to stand at the edge.
    pub fn targets(&self) -> BTreeSet<KindId> {
        let mut kinds = BTreeSet::new();
        for (kind, rules) in &self.down {
            match natured(kind) {
                Some(real) => {
                    let (renatured, kept): (Vec<_>, Vec<_>) =
                        rules.iter().partition(|rule| rule.entry.options.renature);
                    kinds.extend((!renatured.is_empty()).then_some(real));
                    kinds.extend((!kept.is_empty()).then(|| kind.clone()));
                }
                None => drop(kinds.insert(kind.clone())),
            }
        }
        kinds.extend(self.conversions.iter().map(|conversion| conversion.downstream.clone()));
        if !self.namespaces.is_empty() {
            kinds.insert(KindId::new("", "namespaces"));
        }
        kinds
    }

    /// The kinds that may come to stand in the mailbox.
    pub fn brought_up(&self, mailbox: &Catalog) -> BTreeSet<KindId> {
        let mut kinds = BTreeSet::new();
        for kind in self.up.keys() {
            let stored = denatured(kind);
            let is_denatured = matches!(mailbox.find(&stored), Found::Served(_));
            kinds.insert(if is_denatured { stored } else { kind.clone() });
            let converted = self.conversions.iter().filter(|conversion| conversion.downstream == *kind);
            kinds.extend(converted.map(|conversion| conversion.upstream.clone()));
        }
        kinds
    }

    fn problem(&mut self, config: &ConfigId, path: &str, message: String) {
        let problems = self.problems.entry(config.clone()).or_default();
        problems.push(Problem { path: path.to_owned(), message });
    }

    fn add_conversion(&mut self, given: &Conversion, around: &Surroundings<'_>, plurals: &mut Plurals) {
        let known = |form: &Form, first: &Catalog, then: &Catalog, plurals: &mut Plurals| {
            plural(&form.group, &form.kind, &[first, then], plurals)
        };
        let mut upstream = known(&given.upstream, around.mailbox, around.edge, plurals);
        let mut downstream = known(&given.downstream, around.edge, around.mailbox, plurals);
        // A kind of the same name in another group has the same plural.
        if given.upstream.kind == given.downstream.kind {
            let same = |kind: &KindId, form: &Form| KindId::new(&form.group, kind.resource());
            upstream = upstream.or_else(|| downstream.as_ref().map(|kind| same(kind, &given.upstream)));
            downstream = downstream.or_else(|| upstream.as_ref().map(|kind| same(kind, &given.downstream)));
        }
        let wrong = if given.upstream.kind.is_empty() || given.downstream.kind.is_empty() {
            Some("it must name a kind on both sides".to_owned())
        } else if given.upstream.name.is_none() && given.downstream.name.is_some() {
            Some("it would give many objects one name".to_owned())
        } else {
            None
        };
        match (wrong, upstream, downstream) {
            (None, Some(upstream), Some(downstream)) => {
                self.conversions.push(KnownConversion { given: given.clone(), upstream, downstream });
            }
            (wrong, ..) => {
                let message = wrong.unwrap_or_else(|| "neither side serves its kinds".to_owned());
                self.problem(&given.config, &given.path, message);
                self.unclear = true;
            }
        }
    }

    fn add_down(&mut self, entry: &Arc<Entry>, around: &Surroundings<'_>, plurals: &mut Plurals) {
        let kind = match &entry.kind {
            KindRef::Resource(kind) => Some(kind.clone()),
            KindRef::Named { group, kind } => plural(group, kind, &[around.mailbox, around.edge], plurals),
            KindRef::Group(_) => None,
        };
        let Some(kind) = kind else { return self.unknown_kind(entry) };
        let held = entry.wrong.clone().or_else(|| wrong_scope(entry, &kind, around.mailbox));
        self.hold_or_take(entry, kind, held, true);
    }

    fn add_up(&mut self, entry: &Arc<Entry>, around: &Surroundings<'_>, plurals: &mut Plurals) {
        let kinds: BTreeSet<KindId> = match &entry.kind {
            KindRef::Resource(kind) => BTreeSet::from([kind.clone()]),
            KindRef::Named { group, kind } => {
                plural(group, kind, &[around.edge, around.mailbox], plurals).into_iter().collect()
            }
            KindRef::Group(group) => {
                let served = around.edge.iter().filter(|served| served.verbs.can_follow());
                let before =
                    around.brought_up.iter().map(|kind| natured(kind).unwrap_or_else(|| kind.clone()));
                served
                    .map(|served| served.kind.clone())
                    .chain(before)
                    .filter(|kind| kind.group() == group.as_str() && comes_with_its_group(kind))
                    .collect()
            }
        };
        if kinds.is_empty() && !matches!(entry.kind, KindRef::Group(_)) {
            return self.unknown_kind(entry);
        }
        for kind in kinds {
            let held = entry.wrong.clone();
            self.hold_or_take(entry, kind, held, false);
        }
    }

    fn unknown_kind(&mut self, entry: &Entry) {
        let message = format!("neither the mailbox nor the edge serves {}", entry.kind);
        self.problem(&entry.config, &entry.path, entry.wrong.clone().unwrap_or(message));
        self.unclear = true;
    }

    fn hold_or_take(&mut self, entry: &Arc<Entry>, kind: KindId, held: Option<String>, down: bool) {
        if let Some(why) = &held {
            self.problem(&entry.config, &entry.path, why.clone());
        }
        let held = held.map(|why| Name::new(&format!("{}: {why}", entry.place())));
        let rule = Rule { entry: Arc::clone(entry), held };
        let side = if down { &mut self.down } else { &mut self.up };
        side.entry(kind).or_default().push(rule);
    }

    /// Kinds that the side where they are read does not serve. They stay among the sources: nothing is known of them,
    /// so nothing of them is sent or withdrawn.
    fn find_unserved(&mut self, around: &Surroundings<'_>) {
        let mut found = Vec::new();
        for (kind, rules) in &self.down {
            let stored = denatured(kind);
            let converted = self.conversions.iter().filter(|conversion| conversion.downstream == *kind);
            let forms = [kind, &stored].into_iter().chain(converted.map(|conversion| &conversion.upstream));
            found.extend(unserved(forms, kind, around.mailbox, "the mailbox", rules));
        }
        for (kind, rules) in &self.up {
            found.extend(unserved([kind], kind, around.edge, "the edge", rules));
            let stored = denatured(kind);
            let converted = self.conversions.iter().filter(|conversion| conversion.downstream == *kind);
            let forms = [kind, &stored].into_iter().chain(converted.map(|conversion| &conversion.upstream));
            found.extend(unserved(forms, kind, around.mailbox, "the mailbox", rules));
        }
        for (config, path, message) in found {
            self.problem(&config, &path, message);
        }
    }

    fn find_disagreements(&mut self) {
        let mut found = Vec::new();
        for rules in self.down.values() {
            let first = rules.first().map(|rule| rule.entry.options);
            if rules.iter().all(|rule| Some(rule.entry.options) == first) {
                continue;
            }
            for (index, one) in rules.iter().enumerate() {
                for other in &rules[index + 1..] {
                    let (one, other) = (&one.entry, &other.entry);
                    if one.options != other.options
                        && one.names.meets(&other.names)
                        && one.namespaces.meets(&other.namespaces)
                    {
                        let what = differing(one.options, other.options);
                        found.push((one.config.clone(), one.path.clone(), other.place(), what));
                        found.push((other.config.clone(), other.path.clone(), one.place(), what));
                    }
                }
            }
        }
        for (config, path, other, what) in found {
            let message = format!(
                "{other} may mean the same objects and says otherwise about {what}; the cautious choice is taken"
            );
            self.disagreements.entry(config).or_default().push(Problem { path, message });
        }
    }
}

/// What all rules that mean one object say together: by the first of them, as the most cautious. An object that only
/// held entries mean is held, and the error says why.
pub fn together<'a>(rules: impl IntoIterator<Item = &'a Rule>) -> Result<Option<(Name, Options)>, Name> {
    let mut chosen: Option<(Name, Options)> = None;
    let mut held = None;
    for Rule { entry, held: why } in rules {
        chosen = match (chosen, why) {
            (chosen, Some(why)) => {
                held.get_or_insert(why);
                chosen
            }
            (None, None) => Some((Name::new(&entry.place()), entry.options)),
            (Some((by, options)), None) => Some((by, options.cautious(entry.options))),
        };
    }
    match (chosen, held) {
        (None, Some(why)) => Err(why.clone()),
        (chosen, _) => Ok(chosen),
    }
}

fn differing(one: Options, other: Options) -> &'static str {
    if one.propagation != other.propagation {
        "deletePropagation"
    } else if one.return_status == other.return_status {
        "renature"
    } else {
        "returnStatus"
    }
}

/// The entries of rules whose kind is served in none of its forms.
fn unserved<'a>(
    forms: impl IntoIterator<Item = &'a KindId>,
    kind: &KindId,
    catalog: &Catalog,
    side: &str,
    rules: &[Rule],
) -> Vec<(ConfigId, String, String)> {
    let mut unknown = None;
    for form in forms {
        match catalog.find(form) {
            Found::Served(_) => return Vec::new(),
            Found::Unknown(why) => unknown = Some(why),
            Found::NotServed => {}
        }
    }
    let message = match unknown {
        Some(why) => format!("whether {side} serves {kind} is not known: {why}"),
        None => format!("{side} does not serve {kind}"),
    };
    let entries = rules.iter().filter(|rule| !matches!(rule.entry.kind, KindRef::Group(_)));
    entries.map(|rule| (rule.entry.config.clone(), rule.entry.path.clone(), message.clone())).collect()
}

/// An entry for namespaced kinds that names one which is not, or the other way round.
fn wrong_scope(entry: &Entry, kind: &KindId, mailbox: &Catalog) -> Option<String> {
    let stored = denatured(kind);
    let served = [kind, &stored].into_iter().find_map(|kind| match mailbox.find(kind) {
        Found::Served(served) => Some(served),
        Found::NotServed | Found::Unknown(_) => None,
    })?;
    match (entry.scope?, served.namespaced) {
        (Scope::Namespaced, false) => Some(format!("{kind} does not live in namespaces")),
        (Scope::Cluster, true) => Some(format!("{kind} lives in namespaces")),
        (Scope::Namespaced, true) | (Scope::Cluster, false) => None,
    }
}

/// The plural of a kind that is known by its name: as it is served somewhere, natured or denatured, or as it once was.
fn plural(group: &Name, kind: &Name, catalogs: &[&Catalog], plurals: &mut Plurals) -> Option<KindId> {
    let stored = mailboat_api::names::denatured_group(group);
    let find = |catalog: &&Catalog| {
        let found = catalog.find_named(group, kind).or_else(|| catalog.find_named(&stored, kind));
        found.map(|served| KindId::new(group, served.resource()))
    };
    let key = (group.clone(), kind.clone());
    match catalogs.iter().find_map(find) {
        Some(found) => {
            plurals.insert(key, found.clone());
            Some(found)
        }
        None => plurals.get(&key).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigKind;
    use crate::testing::{catalog, config};

    fn join(configs: &[Config], mailbox: &Catalog, edge: &Catalog) -> Rules {
        let around = Surroundings { mailbox, edge, brought_up: &BTreeSet::new() };
        Rules::join(configs, &around, &mut Plurals::new())
    }

    fn texts(problems: &BTreeMap<ConfigId, Vec<Problem>>) -> Vec<String> {
        let all = problems.iter().flat_map(|(config, problems)| problems.iter().map(move |p| (config, p)));
        all.map(|(config, problem)| format!("{config}: {}: {}", problem.path, problem.message)).collect()
    }

    #[test]
    fn a_kind_that_is_not_served_is_told_and_stays_a_source() {
        let config = config(
            ConfigKind::SyncerConfig,
            "the-one",
            r#"{"clusterScope":[{"group":"kyverno.io","resource":"clusterpolicies","apiVersion":"v1","objects":["*"]},
                                {"group":"","resource":"namespaces","apiVersion":"v1","objects":["a"]}]}"#,
        );
        let rules =
            join(&[config], &catalog(&["!namespaces Namespace"]), &catalog(&["!namespaces Namespace"]));
        assert_eq!(
            texts(&rules.problems),
            [
                "SyncerConfig the-one: spec.clusterScope[0]: the mailbox does not serve clusterpolicies.kyverno.io"
            ]
        );
        let policies = KindId::new("kyverno.io", "clusterpolicies");
        assert!(rules.sources().contains(&policies) && rules.sources().contains(&denatured(&policies)));
        assert!(!rules.unclear, "what it means is clear, though it is not there");
    }

    #[test]
    fn a_kind_known_only_by_its_name_must_be_served_somewhere_or_nothing_is_deselected() {
        let spec =
            r#"{"downSyncedResources":[{"kind":"Policy","group":"kyverno.io","namespace":"n","name":"p"}]}"#;
        let config = config(ConfigKind::EdgeSyncConfig, "c", spec);
        let (nothing, served) = (catalog(&[]), catalog(&["policies.kyverno.io Policy"]));
        let mut plurals = Plurals::new();
        let mut join = |mailbox: &Catalog, edge: &Catalog| {
            let around = Surroundings { mailbox, edge, brought_up: &BTreeSet::new() };
            Rules::join([&config], &around, &mut plurals)
        };
        let rules = join(&nothing, &nothing);
        assert!(rules.unclear && rules.down.is_empty(), "{rules:?}");
        assert!(!join(&nothing, &served).unclear, "the edge knows its plural");
        assert!(!join(&nothing, &nothing).unclear, "what was known once stays known");
    }

    #[test]
    fn a_kind_stored_denatured_alone_is_served() {
        let config = config(
            ConfigKind::EdgeSyncConfig,
            "c",
            r#"{"downSyncedResources":[{"kind":"ClusterRole","group":"rbac.authorization.k8s.io","name":"*"}]}"#,
        );
        let mailbox = catalog(&["!clusterroles.rbac.authorization.k8s.io.denatured ClusterRole"]);
        let rules = join(&[config], &mailbox, &catalog(&[]));
        assert_eq!(texts(&rules.problems), Vec::<String>::new());
        let kind = KindId::new("rbac.authorization.k8s.io", "clusterroles");
        assert_eq!(rules.targets(), BTreeSet::from([kind.clone()]));
        assert_eq!(rules.sources(), BTreeSet::from([denatured(&kind), kind]));
    }

    #[test]
    fn entries_that_disagree_are_told_on_both_sides_and_others_are_not() {
        let one = config(
            ConfigKind::SyncerConfig,
            "a",
            r#"{"namespacedObjects":[{"group":"","resource":"configmaps","apiVersion":"v1","deletePropagation":"Orphan",
                 "objectsByNamespace":[{"namespace":"n","names":["x"]}]}]}"#,
        );
        let other = config(
            ConfigKind::SyncerConfig,
            "b",
            r#"{"namespaceScope":{"namespaces":["n"],"resources":[{"group":"","resource":"configmaps","apiVersion":"v1"}]},
                "namespacedObjects":[{"group":"","resource":"configmaps","apiVersion":"v1",
                 "objectsByNamespace":[{"namespace":"m","names":["x"]}]}]}"#,
        );
        let served = catalog(&["configmaps ConfigMap", "!namespaces Namespace"]);
        let told = texts(&join(&[one, other], &served, &served).disagreements);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].contains("SyncerConfig a: spec.namespacedObjects[0]")
                && told[0].contains("deletePropagation")
        );
        assert!(told[1].starts_with("SyncerConfig b: spec.namespaceScope.resources[0]"), "{told:?}");
    }

    #[test]
    fn a_whole_group_comes_up_with_what_it_had_before() {
        let config = config(
            ConfigKind::SyncerConfig,
            "a",
            r#"{"upsync":[{"apiGroup":"m.example","resources":["*"],"namespaces":["*"],"names":["*"]}]}"#,
        );
        let edge = catalog(&["readings.m.example Reading", "pods Pod"]);
        let gone = BTreeSet::from([KindId::new("m.example", "gauges"), KindId::new("other", "things")]);
        let around = Surroundings { mailbox: &edge, edge: &edge, brought_up: &gone };
        let rules = Rules::join([&config], &around, &mut Plurals::new());
        let kinds: Vec<String> = rules.up.keys().map(ToString::to_string).collect();
        assert_eq!(kinds, ["gauges.m.example", "readings.m.example"]);
    }

    #[test]
    fn a_wrong_scope_is_held() {
        let config = config(
            ConfigKind::SyncerConfig,
            "a",
            r#"{"clusterScope":[{"group":"","resource":"configmaps","apiVersion":"v1","objects":["*"]}]}"#,
        );
        let served = catalog(&["configmaps ConfigMap"]);
        let rules = join(&[config], &served, &served);
        assert!(rules.down[&KindId::new("", "configmaps")][0].held.is_some());
        assert_eq!(
            texts(&rules.problems),
            ["SyncerConfig a: spec.clusterScope[0]: configmaps lives in namespaces"]
        );
    }
}
