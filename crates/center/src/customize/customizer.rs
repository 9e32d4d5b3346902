//! A Customizer, read once.

use std::borrow::Cow;

use mailboat_api::edge::ValidationError;
use mailboat_object::digest::digest_of;
use mailboat_object::json::Raw;
use mailboat_object::jsonpath::JsonPath;
use mailboat_object::malformed::{Malformed, What};
use mailboat_object::object::Object;
use serde_json::Value;

use super::place::PlainPath;
use super::{Parameters, Uncustomized, expand, expands};

/// What makes an object this object, and what a Customizer may therefore not change.
const IDENTITY: [(&[&str], &str); 4] = [
    (&["apiVersion"], "apiVersion"),
    (&["kind"], "kind"),
    (&["metadata", "name"], "name"),
    (&["metadata", "namespace"], "namespace"),
];

/// A Customizer, read once and applied for every destination.
#[derive(Clone, Debug)]
pub struct Customizer {
    /// For people: `namespace/name`.
    name: String,
    /// Whether its own paths and values have parameters.
    expands: bool,
    replacements: Vec<Replacement>,
}

#[derive(Clone, Debug)]
struct Replacement {
    path: String,
    value: String,
    /// Read beforehand, unless parameters have to be expanded first.
    ready: Option<Result<Ready, Uncustomized>>,
}

/// A replacement with path and value understood.
#[derive(Clone, Debug)]
struct Ready {
    path: JsonPath,
    plain: Option<PlainPath>,
    value: String,
}

/// An object on its way through the replacements.
enum Form {
    Text(String),
    Tree(Value),
}

impl Customizer {
    /// Reads one that a server sent.
    pub fn of(object: &Object) -> Result<Self, Uncustomized> {
        Self::read(object.root(), format!("{}/{}", object.key.namespace, object.key.name))
    }

    /// Reads one from a file.
    pub fn parse(json: &[u8]) -> Result<Self, Uncustomized> {
        let raw = Raw::parse(json).map_err(unreadable)?;
        let text = |member| raw.get(&["metadata", member]).and_then(Raw::as_str).unwrap_or_default();
        Self::read(raw, format!("{}/{}", text("namespace"), text("name")))
    }

    fn read(raw: Raw<'_>, name: String) -> Result<Self, Uncustomized> {
        let mut customizer = Self { name, expands: expands(raw), replacements: Vec::new() };
        let listed = raw.member("replacements").filter(|listed| !listed.is_null());
        if listed.is_some_and(|listed| !listed.is_array()) {
            return Err(unreadable(expected("replacements", "a list")));
        }
        for (index, entry) in listed.into_iter().flat_map(Raw::elements).enumerate() {
            let text = |member: &str| {
                entry.member(member).and_then(Raw::as_str).map(Cow::into_owned).ok_or_else(|| {
                    unreadable(expected(&format!("replacements[{index}].{member}"), "a string"))
                })
            };
            let (path, value) = (text("path")?, text("value")?);
            let ready = (!customizer.expands)
                .then(|| Ready::of(&path, &value, |member| customizer.at(index, member)));
            customizer.replacements.push(Replacement { path, value, ready });
        }
        Ok(customizer)
    }

    /// Whether its paths and values have parameters of their own.
    pub fn expands(&self) -> bool {
        self.expands
    }

    /// What in it cannot work whatever the destination is, for its status. Where parameters are to be expanded,
    /// that can only be said of each destination.
    pub fn validate(&self) -> Vec<ValidationError> {
        let wrong = self.replacements.iter().enumerate().filter_map(|(index, replacement)| {
            let (member, what) = match replacement.ready.as_ref()?.as_ref().err()? {
                Uncustomized::BadPath { what, .. } => ("path", what),
                Uncustomized::BadValue { what, .. } => ("value", what),
                _ => return None,
            };
            Some(ValidationError { path: format!("replacements[{index}].{member}"), message: what.clone() })
        });
        wrong.collect()
    }

    /// Makes its replacements in an object's JSON, in their order.
    pub(super) fn apply(&self, json: &str, parameters: &dyn Parameters) -> Result<String, Uncustomized> {
        let mut form = Form::Text(json.to_owned());
        let mut identity_at_stake = false;
        for (index, replacement) in self.replacements.iter().enumerate() {
            let at = |member: &str| self.at(index, member);
            let ready = match &replacement.ready {
                Some(ready) => Cow::Borrowed(ready.as_ref().map_err(Clone::clone)?),
                None => Cow::Owned(replacement.expanded(parameters, at)?),
            };
            let member = ready.plain.as_ref().and_then(PlainPath::member);
            identity_at_stake |= member.is_none_or(|name| matches!(name, "apiVersion" | "kind" | "metadata"));
            form = ready.apply(form).map_err(|missing| Uncustomized::LeadsNowhere {
                at: at("path"),
                path: ready.path.to_string(),
                missing,
            })?;
        }
        let customized = match form {
            Form::Text(text) => text,
            Form::Tree(tree) => tree.to_string(),
        };
        if identity_at_stake && let Some(member) = changed_identity(json, &customized) {
            return Err(Uncustomized::AnotherObject { customizer: self.name.clone(), member });
        }
        Ok(customized)
    }

    fn at(&self, index: usize, member: &str) -> String {
        format!("replacements[{index}].{member} of Customizer {}", self.name)
    }
}

impl Replacement {
    fn expanded(
        &self,
        parameters: &dyn Parameters,
        at: impl Fn(&str) -> String,
    ) -> Result<Ready, Uncustomized> {
        let path = expand::in_text(&self.path, parameters, || at("path"))?;
        let value = expand::in_json_text(&self.value, parameters, || at("value"))?;
        Ready::of(&path, &value, at)
    }
}

impl Ready {
    fn of(path: &str, value: &str, at: impl Fn(&str) -> String) -> Result<Self, Uncustomized> {
        let plain = PlainPath::of(path);
        let path = path
            .parse::<JsonPath>()
            .map_err(|bad| Uncustomized::BadPath { at: at("path"), what: bad.to_string() })?;
        // A digest is taken because that pass also refuses a member that stands twice, as servers do.
        digest_of(value.as_bytes())
            .map_err(|bad| Uncustomized::BadValue { at: at("value"), what: bad.to_string() })?;
        Ok(Self { path, plain, value: value.trim().to_owned() })
    }

    /// Makes the replacement; an error is the part of the path that is missing.
    fn apply(&self, form: Form) -> Result<Form, String> {
        match (form, &self.plain) {
            (Form::Text(text), Some(plain)) => {
                plain.replace(Raw::trusted(&text), &self.value).map(Form::Text)
            }
            (form, _) => {
                let mut tree = match form {
                    Form::Tree(tree) => tree,
                    Form::Text(text) => {
                        Raw::parse(text.as_bytes()).map(Raw::to_value).map_err(|bad| bad.to_string())?
                    }
                };
                let value = Raw::parse(self.value.as_bytes()).map(Raw::to_value).unwrap_or_default();
                match self.path.replace(&mut tree, &value).missing {
                    Some(missing) => Err(missing),
                    None => Ok(Form::Tree(tree)),
                }
            }
        }
    }
}

/// Which part of an object's identity differs, if one does.
fn changed_identity(before: &str, after: &str) -> Option<&'static str> {
    let (before, after) = (Raw::parse(before.as_bytes()).ok()?, Raw::parse(after.as_bytes()).ok()?);
    let text = |object: Raw<'_>, path: &[&str]| object.get(path).map(Raw::to_value);
    IDENTITY.iter().find(|(path, _)| text(before, path) != text(after, path)).map(|(_, member)| *member)
}

fn expected(path: &str, what: &'static str) -> Malformed {
    Malformed { at: 0, path: path.to_owned(), what: What::Expected(what), key: None }
}

fn unreadable(malformed: Malformed) -> Uncustomized {
    Uncustomized::Malformed { what: "its Customizer cannot be read", malformed }
}
