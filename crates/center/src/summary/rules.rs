//! What is counted, and how: the rules of a Summarizer, or those that every placement has.

use std::collections::BTreeMap;
use std::sync::Arc;

use mailboat_api::edge::{AggregatorType, SummarizerSpec, SummarySubject, ValidationError};
use mailboat_object::object::Object;
use mailboat_object::select::LabelSelector;
use serde_json::Value;

use super::aggregate::Number;
use super::board::{Contribution, Grouped};
use super::copy::Copy;
use super::counts::Standing;
use super::edge::Edge;
use super::expression::{Expression, Failure, Sight, Variables, with_functions};
use super::health::{Cause, Health};
use super::{CopyId, ObjectId};
use crate::selector;

/// After how many seconds without a beat a copy is stale.
const STALE_AFTER_SECONDS: u64 = 90;
/// How many broken copies are listed.
const BROKEN_LISTED: usize = 20;
/// The longest value of a group; the schema says the same.
const LONGEST_VALUE: usize = 256;

/// Rules, understood once.
#[derive(Debug)]
pub(super) struct Rules {
    /// Which placements; `None` for the rules that all have.
    selector: Option<LabelSelector>,
    subjects: Vec<SummarySubject>,
    pub(super) stale_after_seconds: u64,
    pub(super) broken_listed: usize,
    pub(super) groupers: Vec<Grouper>,
    broken: Vec<Vec<Test>>,
    variables: Variables,
    /// What cannot be understood; all else goes on without it.
    pub(super) errors: Vec<ValidationError>,
    /// Where each expression stands, for what is said of those that fail.
    pub(super) paths: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Grouper {
    pub(super) name: String,
    pub(super) by: Vec<(String, Option<Part>)>,
    pub(super) aggregates: Vec<Aggregate>,
}

#[derive(Debug)]
pub(super) struct Aggregate {
    pub(super) name: String,
    pub(super) type_: AggregatorType,
    subject: Option<Part>,
}

#[derive(Debug)]
struct Test {
    part: Option<Part>,
    value: Value,
    negate: bool,
}

/// An expression, and which of [`Rules::paths`] it stands at.
#[derive(Debug)]
pub(super) struct Part {
    expression: Expression,
    at: usize,
}

impl Rules {
    /// The rules that every placement has.
    pub(super) fn plain() -> Self {
        Self::read(&SummarizerSpec::default(), None)
    }

    /// Reads the rules of a Summarizer.
    pub(super) fn of(summarizer: &Object) -> Self {
        let spec = summarizer.get(&["spec"]).map(|spec| serde_json::from_str::<SummarizerSpec>(spec.json()));
        match spec {
            Some(Ok(spec)) => {
                let mut errors = Vec::new();
                let selector = spec.placement_selector.as_slice();
                let selector = selector::compile_all(selector, "spec.placementSelector", &mut errors).pop();
                let mut rules = Self::read(&spec, selector);
                rules.errors.splice(
                    0..0,
                    errors
                        .into_iter()
                        .map(|error| ValidationError { path: "spec.placementSelector".to_owned(), ..error }),
                );
                rules
            }
            None => Self::read(&SummarizerSpec::default(), None),
            Some(Err(bad)) => {
                let mut rules = Self::read(&SummarizerSpec::default(), None);
                rules.errors.push(ValidationError { path: "spec".to_owned(), message: bad.to_string() });
                rules
            }
        }
    }

    fn read(spec: &SummarizerSpec, selector: Option<LabelSelector>) -> Self {
        let mut reader = Reader::default();
        let groupers = spec.groupers.iter().enumerate().map(|(index, grouper)| {
            let path = format!("spec.groupers[{index}]");
            let by = grouper.group_by.iter().enumerate().map(|(index, part)| {
                (part.name.clone(), reader.part(&part.def, || format!("{path}.groupBy[{index}].def")))
            });
            let by = by.collect();
            let aggregates = grouper.aggregators.iter().enumerate().map(|(index, aggregator)| Aggregate {
                name: aggregator.name.clone(),
                type_: aggregator.type_,
                subject: aggregator.subject.as_deref().and_then(|subject| {
                    reader.part(subject, || format!("{path}.aggregators[{index}].subject"))
                }),
            });
            Grouper { name: grouper.name.clone(), by, aggregates: aggregates.collect() }
        });
        let groupers = groupers.collect();
        let broken = spec.broken.iter().enumerate().map(|(rule, alternative)| {
            let tests = alternative.all.iter().enumerate().map(|(index, test)| Test {
                part: reader.part(&test.part, || format!("spec.broken[{rule}].all[{index}].part")),
                value: test.value.clone().unwrap_or(Value::Bool(true)),
                negate: test.negate.unwrap_or_default(),
            });
            tests.collect()
        });
        let broken = broken.collect();
        let threshold = spec.staleness_threshold_secs.and_then(|seconds| u64::try_from(seconds).ok());
        let listed = spec.broken_limit.and_then(|limit| usize::try_from(limit).ok());
        Self {
            selector,
            subjects: spec.subjects.clone(),
            stale_after_seconds: threshold.unwrap_or(STALE_AFTER_SECONDS),
            broken_listed: listed.unwrap_or(BROKEN_LISTED),
            groupers,
            broken,
            variables: reader.variables,
            errors: reader.errors,
            paths: reader.paths,
        }
    }

    /// Whether a placement with these labels is summarized by these rules.
    pub(super) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let Some(selector) = &self.selector else { return false };
        selector.matches(labels)
    }

    /// Whether copies have to be looked at again as time passes.
    pub(super) fn look_at_age(&self) -> bool {
        self.variables.has("age")
    }

    /// How a copy counts; `None` if it does not.
    pub(super) fn judge(&self, id: &CopyId, copy: &Copy, edge: &Edge, now: u64) -> Option<Contribution> {
        if !self.is_subject(&id.object) {
            return None;
        }
        let stale = edge.is_silent(self.stale_after_seconds, now);
        let mut failures = Vec::new();
        let (cause, groups) = if self.groupers.is_empty() && self.broken.is_empty() {
            (copy.broken(), Vec::new())
        } else {
            let sight = Sight {
                copy: copy.object.as_deref(),
                form: copy.form.as_deref(),
                edge_name: &edge.facts.location,
                labels: &edge.facts.labels,
                annotations: &edge.facts.annotations,
                exists: copy.delivery.delivered,
                current: copy.delivery.current,
                stale,
                age: edge.heard.map(|heard| now.saturating_sub(heard)),
            };
            with_functions(|functions| {
                let scene = functions.scene(&sight, self.variables);
                let mut look = Look { scene: &scene, failures: &mut failures };
                let cause = if self.broken.is_empty() { copy.broken() } else { look.broken(&self.broken) };
                (cause, self.groupers.iter().map(|grouper| look.grouped(grouper)).collect())
            })
        };
        let Copy { delivery, health, .. } = copy;
        let standing = Standing {
            delivered: delivery.delivered,
            current: delivery.current,
            stale,
            healthy: delivery.delivered && delivery.current && cause.is_none() && *health == Health::Well,
            broken: cause.is_some(),
        };
        Some(Contribution::new(standing, Arc::clone(&edge.labels), cause, groups, failures))
    }

    fn is_subject(&self, id: &ObjectId) -> bool {
        let is = |subject: &SummarySubject| {
            subject.api_group == id.kind.group()
                && subject.resources.iter().any(|resource| resource == "*" || resource == id.kind.resource())
        };
        self.subjects.is_empty() || self.subjects.iter().any(is)
    }
}

/// Expressions evaluated for one copy.
struct Look<'l, 'c> {
    scene: &'l super::expression::Scene<'c>,
    failures: &'l mut Vec<(usize, String)>,
}

impl Look<'_, '_> {
    fn given(&mut self, part: Option<&Part>) -> Option<super::expression::Given> {
        let part = part?;
        match part.expression.evaluate(self.scene) {
            Ok(given) => Some(given).filter(|given| !given.is_null()),
            Err(Failure::Missing) => None,
            Err(Failure::Mistake(told)) => {
                self.failures.push((part.at, told));
                None
            }
        }
    }

    fn number(&mut self, part: Option<&Part>) -> Option<Number> {
        let given = self.given(part)?;
        let number = given.number();
        if let (None, Some(part)) = (number, part) {
            self.failures.push((part.at, "it gives no number".to_owned()));
        }
        number
    }

    fn grouped(&mut self, grouper: &Grouper) -> Grouped {
        let by = grouper.by.iter().map(|(_, part)| {
            let Some(given) = self.given(part.as_ref()) else { return "null".to_owned() };
            let text = given.text();
            if let (None, Some(part)) = (&text, part) {
                self.failures
                    .push((part.at, "it gives a list or a map, which cannot be grouped by".to_owned()));
            }
            let mut text = text.unwrap_or_else(|| "null".to_owned());
            let end = (0..=LONGEST_VALUE.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
            text.truncate(end.unwrap_or_default());
            text
        });
        let by = by.collect();
        let numbers = grouper.aggregates.iter().map(|aggregate| self.number(aggregate.subject.as_ref()));
        Grouped { by, numbers: numbers.collect() }
    }

    /// The first alternative of which every test holds.
    fn broken(&mut self, alternatives: &[Vec<Test>]) -> Option<Cause> {
        for (index, tests) in alternatives.iter().enumerate() {
            let mut all = true;
            for test in tests {
                all &= self.holds(test);
            }
            if all {
                let message = format!("spec.broken[{index}] of the Summarizer holds");
                return Some(Cause::new("BrokenByRule", message));
            }
        }
        None
    }

    fn holds(&mut self, test: &Test) -> bool {
        // What cannot be understood holds for nobody, also when it is turned round.
        let Some(part) = &test.part else { return false };
        let equal = match self.given(Some(part)) {
            Some(given) => given.is(&test.value),
            None => test.value.is_null(),
        };
        equal != test.negate
    }
}

/// Understands expressions one after the other.
#[derive(Default)]
struct Reader {
    variables: Variables,
    errors: Vec<ValidationError>,
    paths: Vec<String>,
}

impl Reader {
    fn part(&mut self, text: &str, path: impl Fn() -> String) -> Option<Part> {
        match Expression::compile(text) {
            Ok(expression) => {
                self.variables = self.variables.and(expression.variables());
                self.paths.push(path());
                Some(Part { expression, at: self.paths.len() - 1 })
            }
            Err(bad) => {
                self.errors.push(ValidationError { path: path(), message: bad.to_string() });
                None
            }
        }
    }
}
