//! Which objects of a workload workspace a placement selects.
//!
//! A placement's tests are alternatives; within one test every criterion must hold, and an empty one holds for
//! anything. What a test needs and nobody knows yet (the labels of a namespace that was not listed) makes the
//! object undecided, never selected and never dropped. The same goes for a test that cannot be understood: an
//! edit with a misspelled operator must not withdraw what it used to select.

mod definer;
mod exclude;
mod upsync;

use mailboat_api::edge::{DownsyncObjectTest, EdgePlacementSpec, UpsyncSet, ValidationError};
use mailboat_engine::route::View;
use mailboat_engine::want::Hold;
use mailboat_object::key::{Key, KindId, Name};
use mailboat_object::object::Object;
use mailboat_object::select::LabelSelector;
use mailboat_store::seen::{Doubt, Seen};

use crate::denature;
use crate::selector::compile_all;

pub use definer::kinds_defined_by;
pub use exclude::{excluded_kind, excluded_object};
pub use upsync::covers;

/// A name that stands for all names.
const ANY: &str = "*";

/// What a placement selects, understood once.
#[derive(Clone, Debug, Default)]
pub struct What {
    tests: Vec<Test>,
    upsync: Vec<UpsyncSet>,
    errors: Vec<ValidationError>,
}

/// Why an object is selected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Because {
    /// A test matches it.
    Test(usize),
    /// It defines a kind of which this test selects an object.
    Defines(KindId, usize),
    /// It defines a kind that `upsync` names.
    DefinesUpsynced(KindId),
}

/// A test of objects.
#[derive(Clone, Debug)]
struct Test {
    group: Option<String>,
    resources: Names,
    namespaces: Names,
    namespace_selectors: Vec<LabelSelector>,
    names: Names,
    label_selectors: Vec<LabelSelector>,
    /// Why it cannot decide by itself, if it cannot.
    broken: Option<String>,
}

/// Names, of which empty or a lone `*` mean any.
#[derive(Clone, Debug)]
enum Names {
    Any,
    These(Vec<String>),
}

/// What one test says of one object.
enum Answer {
    No,
    Yes,
    Undecided(Hold),
}

impl What {
    /// Understands a placement's `downsync` and `upsync`.
    pub fn of(spec: &EdgePlacementSpec) -> Self {
        let mut errors = Vec::new();
        let tests = spec.downsync.iter().enumerate();
        let tests = tests.map(|(index, test)| Test::of(test, &test_path(index), &mut errors)).collect();
        for (index, set) in spec.upsync.iter().enumerate() {
            errors.extend(upsync::errors(set, &format!("spec.upsync[{index}]")));
        }
        Self { tests, upsync: spec.upsync.clone(), errors }
    }

    /// What cannot work as written, for the placement's status.
    pub fn validation_errors(&self) -> &[ValidationError] {
        &self.errors
    }

    /// Whether it could select objects of a kind, or something that must be known to tell: then that kind has to
    /// be followed.
    pub fn may_select(&self, kind: &KindId) -> bool {
        excluded_kind(kind).is_none() && self.tests.iter().any(|test| test.fits_kind(kind))
    }

    /// Whether an object is selected, and why.
    pub fn select(&self, object: &Object, view: &View<'_>) -> Result<Option<Because>, Hold> {
        if excluded_kind(&object.key.kind).is_some() || excluded_object(object).is_some() {
            return Ok(None);
        }
        // What is brought up from the edges is not sent to them.
        if self.upsync.iter().any(|set| covers(set, &object.key)) {
            return Ok(None);
        }
        if let Some(index) = self.selecting_test(object, view)? {
            return Ok(Some(Because::Test(index)));
        }
        self.defines_selected(object, view)
    }

    /// The first test that selects an object.
    fn selecting_test(&self, object: &Object, view: &View<'_>) -> Result<Option<usize>, Hold> {
        let mut undecided = None;
        for (index, test) in self.tests.iter().enumerate() {
            match test.answer(object, view) {
                Answer::Yes => return Ok(Some(index)),
                Answer::Undecided(hold) if undecided.is_none() => undecided = Some(hold),
                Answer::No | Answer::Undecided(_) => {}
            }
        }
        undecided.map_or(Ok(None), Err)
    }

    /// What defines a kind goes along with the objects of that kind: at the edge, and in the mailbox, they could
    /// not stand without it.
    fn defines_selected(&self, object: &Object, view: &View<'_>) -> Result<Option<Because>, Hold> {
        let mut undecided = None;
        for kind in kinds_defined_by(object) {
            if self.upsync.iter().any(|set| upsync::names_kind(set, &kind)) {
                return Ok(Some(Because::DefinesUpsynced(kind)));
            }
            if !self.may_select(&kind) {
                continue;
            }
            match self.first_selected(object, &kind, view) {
                Ok(Some(test)) => return Ok(Some(Because::Defines(kind, test))),
                Ok(None) => {}
                Err(hold) => undecided = Some(hold),
            }
        }
        undecided.map_or(Ok(None), Err)
    }

    /// The kinds that an object defines and of which a test selects something. What is brought up alone is not among them.
    pub fn kinds_sent(&self, definer: &Object, view: &View<'_>) -> Result<Vec<KindId>, Hold> {
        let mut sent = Vec::new();
        for kind in kinds_defined_by(definer) {
            if self.may_select(&kind) && self.first_selected(definer, &kind, view)?.is_some() {
                sent.push(kind);
            }
        }
        Ok(sent)
    }

    fn first_selected(
        &self,
        definer: &Object,
        kind: &KindId,
        view: &View<'_>,
    ) -> Result<Option<usize>, Hold> {
        let cluster = &definer.key.cluster;
        let hold = |doubt: Doubt| Hold {
            reason: format!("it defines {kind}, and whether any of those goes along is not known: {doubt}"),
            on: Some(definer.key.clone()),
        };
        let instances = view.range(cluster, kind, None).map_err(hold)?;
        // Those that are shown may not be all: then that none of them goes along says nothing.
        let mut undecided = instances.missing().err().map(hold);
        for instance in instances {
            if excluded_object(instance).is_some() || self.upsync.iter().any(|set| covers(set, &instance.key))
            {
                continue;
            }
            match self.selecting_test(instance, view) {
                Ok(Some(test)) => return Ok(Some(test)),
                Ok(None) => {}
                Err(hold) => undecided = Some(hold),
            }
        }
        undecided.map_or(Ok(None), Err)
    }
}

impl Because {
    /// The entry of the placement that selects, as a path for people.
    pub fn by(&self) -> Name {
        Name::new(&match self {
            Self::Test(index) => test_path(*index),
            Self::Defines(kind, index) => format!("{} (which selects {kind})", test_path(*index)),
            Self::DefinesUpsynced(kind) => format!("spec.upsync (which names {kind})"),
        })
    }
}

fn test_path(index: usize) -> String {
    format!("spec.downsync[{index}]")
}

impl Test {
    fn of(test: &DownsyncObjectTest, path: &str, errors: &mut Vec<ValidationError>) -> Self {
        let before = errors.len();
        let mut understood = Self {
            group: test.api_group.clone(),
            resources: Names::of(&test.resources),
            namespaces: Names::of(&test.namespaces),
            namespace_selectors: compile_all(
                &test.namespace_selectors,
                &format!("{path}.namespaceSelectors"),
                errors,
            ),
            names: Names::of(&test.object_names),
            label_selectors: compile_all(&test.label_selectors, &format!("{path}.labelSelectors"), errors),
            broken: None,
        };
        if let Some(error) = errors.get(before) {
            understood.broken = Some(format!("{}: {}", error.path, error.message));
        } else if understood.matches_everything() {
            let message =
                "it matches every object there is; at least one criterion must narrow it".to_owned();
            understood.broken = Some(format!("{path}: {message}"));
            errors.push(ValidationError { path: path.to_owned(), message });
        }
        if understood.group.as_deref() == Some(ANY) {
            let message = "* is no wildcard for a group; leave apiGroup out to match any".to_owned();
            errors.push(ValidationError { path: format!("{path}.apiGroup"), message });
        }
        for (member, names) in [
            ("resources", &test.resources),
            ("namespaces", &test.namespaces),
            ("objectNames", &test.object_names),
        ] {
            if names.len() > 1 && names.iter().any(|name| name == ANY) {
                let message = "beside * the other names do nothing".to_owned();
                errors.push(ValidationError { path: format!("{path}.{member}"), message });
            }
        }
        understood
    }

    fn matches_everything(&self) -> bool {
        let all = |selectors: &[LabelSelector]| {
            selectors.is_empty() || selectors.iter().any(LabelSelector::is_everything)
        };
        self.group.is_none()
            && matches!(
                (&self.resources, &self.namespaces, &self.names),
                (Names::Any, Names::Any, Names::Any)
            )
            && all(&self.namespace_selectors)
            && all(&self.label_selectors)
    }

    /// A kind found denatured in a workload workspace is meant by its real group as well.
    fn fits_kind(&self, kind: &KindId) -> bool {
        let fits_group = |wanted: &String| {
            wanted == kind.group() || denature::natured(kind).is_some_and(|natured| wanted == natured.group())
        };
        self.group.as_ref().is_none_or(fits_group) && self.resources.hold(kind.resource())
    }

    fn answer(&self, object: &Object, view: &View<'_>) -> Answer {
        let key = &object.key;
        if !(self.fits_kind(&key.kind) && self.names.hold(&key.name) && self.namespaces.hold(&key.namespace))
        {
            return Answer::No;
        }
        if let Some(why) = &self.broken {
            return Answer::Undecided(Hold {
                reason: format!("a test cannot be understood: {why}"),
                on: None,
            });
        }
        if !(self.label_selectors.is_empty() || self.label_selectors.iter().any(|one| one.matches(object))) {
            return Answer::No;
        }
        self.fits_namespace_labels(key, view)
    }

    fn fits_namespace_labels(&self, key: &Key, view: &View<'_>) -> Answer {
        if self.namespace_selectors.is_empty() {
            return Answer::Yes;
        }
        let answer = |fits: bool| if fits { Answer::Yes } else { Answer::No };
        if key.namespace.is_empty() {
            let no_labels: [(&str, &str); 0] = [];
            return answer(self.namespace_selectors.iter().any(|one| one.matches(&no_labels[..])));
        }
        let namespace = namespace_of(key);
        let undecided = |reason: String| Answer::Undecided(Hold { reason, on: Some(namespace.clone()) });
        match view.get(&namespace) {
            Seen::Present(found) => answer(self.namespace_selectors.iter().any(|one| one.matches(&**found))),
            Seen::Unknown(doubt) => undecided(format!("what is known of its namespace: {doubt}")),
            // A namespace that goes takes its objects along, each of which is looked at for itself. Taken for
            // "no longer selected", a deleted workspace would empty the edges.
            Seen::Absent(_) => undecided("its namespace is gone, and it is not".to_owned()),
        }
    }
}

/// The Namespace that an object is in.
pub(crate) fn namespace_of(key: &Key) -> Key {
    Key {
        cluster: key.cluster.clone(),
        kind: KindId::new("", "namespaces"),
        namespace: Name::EMPTY,
        name: key.namespace.clone(),
    }
}

impl Names {
    fn of(names: &[String]) -> Self {
        if names.is_empty() || names.iter().any(|name| name == ANY) {
            Self::Any
        } else {
            Self::These(names.to_vec())
        }
    }

    /// Whether a name is among them. The empty namespace of a cluster-scoped object is among any, and among no
    /// others.
    fn hold(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::These(names) => names.iter().any(|listed| listed == name && !name.is_empty()),
        }
    }
}

#[cfg(test)]
mod tests;
