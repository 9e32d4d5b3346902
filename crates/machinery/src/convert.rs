//! Versions whose objects are not kept as they are written: what is kept, as they show it, and back.

use std::borrow::Cow;
use std::sync::Arc;

use mailboat_object::FieldSelector;
use mailboat_object::select::FieldTerm;
use serde_json::Value;

use crate::kind::{Check, Kind, KindVersion};
use crate::object::Stored;
use crate::schema::Schema;

/// How the objects of one version are turned into what is kept, and back.
#[derive(Clone, Copy, Debug)]
pub struct Conversion {
    /// Turns what is kept into this version.
    pub show: fn(&mut Value),
    /// Turns this version into what is kept.
    pub keep: fn(&mut Value) -> Result<(), String>,
    /// The fields by which this version selects objects, each with its name where they are kept. Empty: the same.
    pub fields: &'static [(&'static str, &'static str)],
    /// What this version asks of an object, as it is kept; none: what all ask.
    pub check: Option<Check>,
}

impl KindVersion {
    /// An object as it reads in this version.
    pub fn shown(&self, object: &Arc<Stored>) -> Arc<Stored> {
        // What need not be turned goes on resting.
        match self.conversion {
            None => Arc::clone(object),
            Some(_) => Arc::new(object.with_body(self.show(object.body()).into_owned())),
        }
    }

    /// What is kept, as it reads in this version.
    pub(crate) fn show<'v>(&self, kept: &'v Value) -> Cow<'v, Value> {
        let Some(conversion) = &self.conversion else { return Cow::Borrowed(kept) };
        let mut body = kept.clone();
        (conversion.show)(&mut body);
        named(&mut body, &self.api_version);
        Cow::Owned(body)
    }

    /// Fields by which objects are selected, as what is kept calls them. The first that this version does not know is
    /// the error.
    pub fn kept_fields(&self, fields: FieldSelector) -> Result<FieldSelector, String> {
        let known = self.conversion.map(|conversion| conversion.fields).unwrap_or_default();
        if known.is_empty() {
            return Ok(fields);
        }
        let turned = |term: &FieldTerm| {
            let common = matches!(term.path.as_str(), "metadata.name" | "metadata.namespace");
            let found =
                known.iter().find(|(here, _)| *here == term.path).map(|(_, there)| (*there).to_owned());
            let path =
                found.or_else(|| common.then(|| term.path.clone())).ok_or_else(|| term.path.clone())?;
            Ok(FieldTerm { path, ..term.clone() })
        };
        fields.terms().iter().map(turned).collect::<Result<Vec<_>, String>>().map(FieldSelector::new)
    }
}

impl Kind {
    /// An object of one of its versions as another one has it, with that one's schema. None: versions of this kind are not
    /// converted, or one of these is not there.
    pub(crate) fn turned(&self, object: &Value, from: &str, to: &str) -> Option<(Value, Schema)> {
        let (from, to) = (self.form(from)?, self.form(to)?);
        if from.conversion.is_none() && to.conversion.is_none() {
            return None;
        }
        let mut body = object.clone();
        if let Some(conversion) = &from.conversion {
            (conversion.keep)(&mut body).ok()?;
            named(&mut body, &self.kept()?.api_version);
        }
        Some((to.show(&body).into_owned(), to.schema.clone()))
    }
}

/// Lets an object say its version, if it says one.
pub(crate) fn named(body: &mut Value, api_version: &str) {
    if let Some(said) = body.get_mut("apiVersion") {
        *said = api_version.into();
    }
}
