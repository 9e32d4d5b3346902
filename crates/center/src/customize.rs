//! An object made to fit one destination: parameters expanded, a Customizer's replacements made.
//!
//! All of it or nothing: whatever is missing or cannot be read is an error that names the path and the
//! parameter, and the object is held for that destination. It is never sent half-customized, and never as if
//! nobody had asked.
//!
//! An object is changed in its bytes. Only a replacement whose path has wildcards or brackets makes a tree of
//! it.

mod customizer;
mod expand;
mod files;
mod place;

use std::borrow::Cow;
use std::collections::BTreeMap;

use mailboat_api::names::annotation;
use mailboat_object::json::Raw;
use mailboat_object::key::{Key, KindId, Name};
use mailboat_object::malformed::Malformed;
use mailboat_object::object::Object;
use serde_json::Value;

pub use customizer::Customizer;
pub use files::{Files, Shown, Unshown};

/// Where parameters come from: for a destination, its Location.
pub trait Parameters {
    /// The value of a parameter, if there is one of this name.
    fn parameter(&self, name: &str) -> Option<Cow<'_, str>>;
}

impl Parameters for Object {
    /// A Location's labels and, where it has no such label, its annotations.
    fn parameter(&self, name: &str) -> Option<Cow<'_, str>> {
        self.label(name).or_else(|| self.annotation(name))
    }
}

impl Parameters for BTreeMap<String, String> {
    fn parameter(&self, name: &str) -> Option<Cow<'_, str>> {
        self.get(name).map(|value| Cow::Borrowed(value.as_str()))
    }
}

/// Why an object cannot be made to fit a destination, as the end of a sentence that begins with the object.
/// Paths, names and parameters are said; values, which are a tenant's data, are not.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Uncustomized {
    /// A parameter that the destination does not have.
    #[error(
        "{path} asks for the parameter {name:?}, which is neither a label nor an annotation of the Location"
    )]
    MissingParameter {
        /// Where it is asked for.
        path: String,
        /// The parameter.
        name: String,
    },
    /// A parameter's name that does not end.
    #[error("{path} has a %( without a ) after it; a plain % is written as %%")]
    UnclosedParameter {
        /// Where.
        path: String,
    },
    /// The annotation that names a Customizer does not name one.
    #[error("its annotation edge.kubestellar.io/customizer is no name of a Customizer: {what}")]
    BadReference {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The Customizer is not there.
    #[error("its Customizer {customizer} is missing")]
    MissingCustomizer {
        /// The Customizer, as `namespace/name`.
        customizer: String,
    },
    /// A replacement's path cannot be read.
    #[error("{at} cannot be read: {what}")]
    BadPath {
        /// Which replacement of which Customizer.
        at: String,
        /// What is wrong with it.
        what: String,
    },
    /// A replacement's value is no JSON.
    #[error("{at} is not JSON: {what}")]
    BadValue {
        /// Which replacement of which Customizer.
        at: String,
        /// What is wrong with it.
        what: String,
    },
    /// A path without wildcards that leads nowhere in this object.
    #[error("{at} ({path}) leads nowhere: there is no {missing}")]
    LeadsNowhere {
        /// Which replacement of which Customizer.
        at: String,
        /// The path.
        path: String,
        /// The first part of it that is missing.
        missing: String,
    },
    /// A customized object would be another object.
    #[error("Customizer {customizer} would change its {member}, which would make it another object")]
    AnotherObject {
        /// The Customizer.
        customizer: String,
        /// The member that may not be changed.
        member: &'static str,
    },
    /// The object or the Customizer is not what it should be.
    #[error("{what}: {malformed}")]
    Malformed {
        /// Which of them.
        what: &'static str,
        /// What is wrong.
        malformed: Malformed,
    },
}

impl Uncustomized {
    /// One word that a program can tell the cause by.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::MissingParameter { .. } => "MissingParameter",
            Self::UnclosedParameter { .. } => "UnclosedParameter",
            Self::BadReference { .. } => "BadCustomizerReference",
            Self::MissingCustomizer { .. } => "MissingCustomizer",
            Self::BadPath { .. } => "BadPath",
            Self::BadValue { .. } => "BadValue",
            Self::LeadsNowhere { .. } => "PathLeadsNowhere",
            Self::AnotherObject { .. } => "IdentityChanged",
            Self::Malformed { .. } => "Malformed",
        }
    }
}

/// Makes an object fit one destination: expands parameters if it asks for that by its annotation, then makes a
/// Customizer's replacements.
pub fn customize(
    object: &[u8],
    customizer: Option<&Customizer>,
    parameters: &dyn Parameters,
) -> Result<Vec<u8>, Uncustomized> {
    let raw = Raw::parse(object)
        .map_err(|malformed| Uncustomized::Malformed { what: "the object cannot be read", malformed })?;
    let customized = customize_text(raw.json(), expands(raw), customizer, parameters)?;
    Ok(customized.into_owned().into_bytes())
}

/// The same for JSON that was checked before, of an object whose annotations were looked at.
pub(crate) fn customize_text<'j>(
    json: &'j str,
    expands: bool,
    customizer: Option<&Customizer>,
    parameters: &dyn Parameters,
) -> Result<Cow<'j, str>, Uncustomized> {
    let expanded = if expands { expand::in_json(json, parameters)? } else { Cow::Borrowed(json) };
    match customizer {
        Some(customizer) => customizer.apply(&expanded, parameters).map(Cow::Owned),
        None => Ok(expanded),
    }
}

/// Whether an object or a Customizer asks for its parameters to be expanded.
pub(crate) fn expands(object: Raw<'_>) -> bool {
    let asked = object.get(&["metadata", "annotations", annotation::EXPAND_PARAMETERS]);
    asked.and_then(Raw::as_str).is_some_and(|text| text == "true")
}

/// The same of a tree.
fn expands_value(object: &Value) -> bool {
    object["metadata"]["annotations"][annotation::EXPAND_PARAMETERS] == "true"
}

/// The Customizer that an object asks for, if it asks for one: `name` in the object's own namespace, or
/// `namespace/name`.
pub fn wanted_customizer(object: &Object) -> Option<Result<Key, Uncustomized>> {
    let asked = object.annotation(annotation::CUSTOMIZER)?;
    let named = reference(&asked, &object.key.namespace);
    Some(named.map(|(namespace, name)| Key {
        cluster: object.key.cluster.clone(),
        kind: KindId::new(mailboat_api::names::group::EDGE, "customizers"),
        namespace: Name::new(namespace),
        name: Name::new(name),
    }))
}

/// The namespace and name that the annotation of an object in `own_namespace` refers to.
fn reference<'t>(text: &'t str, own_namespace: &'t str) -> Result<(&'t str, &'t str), Uncustomized> {
    let bad = |what| Err(Uncustomized::BadReference { what });
    match text.split('/').collect::<Vec<_>>().as_slice() {
        [""] => bad("it is empty"),
        [_] if own_namespace.is_empty() => bad("a cluster-scoped object has to say namespace/name"),
        [name] => Ok((own_namespace, name)),
        [namespace, name] if !namespace.is_empty() && !name.is_empty() => Ok((namespace, name)),
        _ => bad("it should be name or namespace/name"),
    }
}

#[cfg(test)]
mod tests;
