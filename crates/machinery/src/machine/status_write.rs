//! What an update keeps of the former object, by the part that it writes.

use mailboat_object::wire::Part;
use serde_json::Value;

use super::write::Writing;
use crate::field_set::PathElement;
use crate::kind::Generation;
use crate::metadata;
use crate::object::Stored;
use crate::schema::Origin;
use crate::status::FieldError;

impl Writing<'_> {
    /// Puts back what this way of writing must not change, and lets the generation grow where content changed.
    pub(super) fn prepare_update(&self, body: &mut Value, live: &Stored, now_seconds: u64) {
        let rules = &self.kind.rules;
        if let Some(section) = self.section {
            (section.keep)(body, live.body(), now_seconds);
        }
        match (self.options.part, &rules.status) {
            _ if self.section.is_some() => {}
            (Part::Status, Some(status)) if status.status_only => {
                let new = body.get("status").cloned();
                body.clone_from(live.body());
                put_back(body, &["status"], new.as_ref());
            }
            (Part::Status, Some(status)) => status.resets.for_each(&mut |path| {
                let path: Vec<_> = path.iter().filter_map(field_name).collect();
                let old = path.iter().try_fold(live.body(), |value, member| value.get(*member));
                put_back(body, &path, old);
            }),
            (Part::Whole, Some(_)) => put_back(body, &["status"], live.body().get("status")),
            (Part::Scale | Part::Token | Part::Whole | Part::Status, _) => {}
        }
        if let Some(prepare) = rules.prepare
            && self.section.is_none_or(|section| section.prepared)
        {
            prepare(body, Some(live.body()));
        }
        let old = live.metadata();
        let generation = live.generation() + u64::from(self.grows(body, live));
        let new = &mut body["metadata"];
        if generation > 0 {
            new["generation"] = generation.into();
        }
        if new.get("uid").is_none() {
            new["uid"] = old["uid"].clone();
        }
        new["creationTimestamp"] = old["creationTimestamp"].clone();
        if !old["deletionTimestamp"].is_null() {
            new["deletionTimestamp"] = old["deletionTimestamp"].clone();
        }
        if !old["deletionGracePeriodSeconds"].is_null() && new.get("deletionGracePeriodSeconds").is_none() {
            new["deletionGracePeriodSeconds"] = old["deletionGracePeriodSeconds"].clone();
        }
    }

    fn grows(&self, body: &Value, live: &Stored) -> bool {
        if self.options.part == Part::Status {
            return false;
        }
        let differs = |member: &str| body.get(member) != live.body().get(member);
        match self.kind.rules.generation {
            Generation::None => false,
            Generation::Spec => differs("spec"),
            Generation::SpecAndAnnotations => {
                differs("spec") || body["metadata"].get("annotations") != live.metadata().get("annotations")
            }
            Generation::Content => {
                let members = |value: &Value| -> Vec<String> {
                    value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
                };
                let all = members(body).into_iter().chain(members(live.body()));
                all.filter(|name| name != "metadata").any(|name| differs(&name))
            }
        }
    }

    pub(super) fn errors_of_update(&self, body: &Value, live: &Stored) -> Vec<FieldError> {
        let rules = &self.kind.rules;
        let mut errors = metadata::validate(&body["metadata"], self.kind.namespaced, rules.names);
        let changes = metadata::validate_change(&body["metadata"], live.metadata());
        if self.kind.origin == Origin::Native {
            // Two parts of real servers look at this, and both say it.
            errors.extend(changes.clone());
            errors.extend(metadata::validate_native_finalizers(&body["metadata"]));
        }
        errors.extend(changes);
        let flaws = self.kept_schema().validate(body, self.options.part == Part::Status);
        let broken = self.kept_schema().obey(body, Some(live.body()), &flaws);
        errors.extend(flaws);
        errors.extend(broken);
        if let Some(section) = self.section {
            errors.extend((section.check)(body, live.body()));
        } else if self.options.part != Part::Status {
            errors.extend(self.check().into_iter().flat_map(|check| check(body, Some(live.body()))));
        }
        errors
    }
}

fn field_name(element: &PathElement) -> Option<&str> {
    match element {
        PathElement::Field(name) => Some(name.as_str()),
        _ => None,
    }
}

/// Sets what is at a path; removes it if there is nothing to set.
pub(super) fn put_back(body: &mut Value, path: &[&str], value: Option<&Value>) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut at = body;
    for parent in parents {
        let Value::Object(members) = at else { return };
        if !members.contains_key(*parent) && value.is_none() {
            return;
        }
        at = members.entry(*parent).or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    let Value::Object(members) = at else { return };
    match value {
        Some(value) => {
            members.insert((*last).to_owned(), value.clone());
        }
        None => {
            members.remove(*last);
        }
    }
}
