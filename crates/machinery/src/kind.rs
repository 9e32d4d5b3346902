//! Kinds: what a server needs to know to serve one.

use std::sync::Arc;

use mailboat_object::{KindId, Name, Uid};
use serde_json::{Value, json};

use crate::convert::Conversion;
use crate::field_set::FieldSet;
use crate::schema::{Origin, Schema};
use crate::status::FieldError;

/// A kind as it is served.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Group and resource.
    pub id: KindId,
    /// The kind's own name, such as `ConfigMap`.
    pub name: Name,
    /// By what else it is called.
    pub naming: Naming,
    /// Whether its objects stand in namespaces.
    pub namespaced: bool,
    /// Its versions; the first is the one that objects are asked for in when no version is named.
    pub versions: Vec<KindVersion>,
    /// Whether the server knows it by itself.
    pub origin: Origin,
    /// What is particular to it.
    pub rules: Rules,
    /// The custom resource definition that it comes from, if any.
    pub definition: Option<Definition>,
    /// The kind whose objects these are, if this is only another name for them.
    pub kept_as: Option<KindId>,
    /// What its objects look like under other names.
    pub forms: Vec<KindVersion>,
}

/// By what else a kind is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    /// Its lowercase singular, such as `configmap`.
    pub singular: Name,
    /// The kind of its lists, such as `ConfigMapList`.
    pub list: Name,
    /// What users may type for it, such as `cm`.
    pub short: Vec<Name>,
    /// Names for it and others together, such as `all`.
    pub categories: Vec<Name>,
}

/// Which state of which custom resource definition a kind comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The definition's uid.
    pub uid: Uid,
    /// Its generation.
    pub generation: u64,
}

/// One version of a kind. Versions differ in their schema alone, unless one says how its objects are converted.
#[derive(Clone, Debug)]
pub struct KindVersion {
    /// Such as `v1`.
    pub name: Name,
    /// Such as `apps/v1`.
    pub api_version: Name,
    /// What its objects hold.
    pub schema: Schema,
    /// The schema as it was given, as JSON, for those who ask what there is; none for kinds of the server's own.
    pub openapi: Option<Arc<str>>,
    /// What a table of its objects shows besides their names, if it says so itself.
    pub columns: Arc<[Column]>,
    /// How its objects are turned into what is kept, and back; none: they are kept as they are.
    pub conversion: Option<Conversion>,
}

/// A column of a kind's tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub value_type: String,
    /// What more is known of its values, such as `name` or `int32`.
    pub format: String,
    /// What it tells.
    pub description: String,
    /// 0: always shown; else only where much is asked for.
    pub priority: i64,
    /// Where its value stands in the object, as JSONPath.
    pub path: String,
}

/// What is particular to a kind, beyond its schema.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Its `status` subresource, if it has one.
    pub status: Option<StatusRules>,
    /// Its `scale` subresource, if it has one.
    pub scale: Option<ScalePaths>,
    /// Ways of writing that the server has rules of its own for.
    pub sections: &'static [Section],
    /// When its generation grows.
    pub generation: Generation,
    /// An update need not say which version it is based on.
    pub unconditional_update: bool,
    /// An update of what is not there makes it.
    pub create_on_update: bool,
    /// What was deleted at once is returned, instead of a Status.
    pub returns_deleted: bool,
    /// It is asked to go before it is deleted, by default with so many seconds to do so.
    pub grace_seconds: Option<u64>,
    /// How its objects may be named.
    pub names: NameRule,
    /// Fields by which its objects can be selected, besides `metadata.name` and `metadata.namespace`.
    pub selectable: Vec<String>,
    /// Its object that holds nothing, as the server decodes it. What this has, nobody adds.
    pub empty: Value,
    /// Defaults of the server's own.
    pub defaults: Option<fn(&mut Value)>,
    /// What the server fills in by itself before it stores a new object, or with the former state a changed
    /// one. Nobody owns it.
    pub prepare: Option<fn(&mut Value, Option<&Value>)>,
    /// What the server asks beyond the schema, of a new object or, with the former state, of a changed one.
    pub check: Option<Check>,
}

/// A check of a new state, beside the former one if there is any.
pub type Check = fn(&Value, Option<&Value>) -> Vec<FieldError>;

/// What a `status` subresource writes.
#[derive(Clone, Debug)]
pub struct StatusRules {
    /// Fields that a write through it leaves as they were.
    pub resets: FieldSet,
    /// Only `status` itself is taken: everything else stays as it was, whether it is in `resets` or not.
    pub status_only: bool,
}

/// A way of writing objects that takes some fields and leaves all others as they were.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// The subresource; empty: the object itself.
    pub name: &'static str,
    /// Fields that nobody comes to own by it.
    pub resets: &'static [&'static [&'static str]],
    /// Whether the server fills in what it fills in where the whole is written.
    pub prepared: bool,
    /// Puts back what it does not write, from the former state; the third is now, in seconds.
    pub keep: fn(&mut Value, &Value, u64),
    /// What the server asks of such a write.
    pub check: fn(&Value, &Value) -> Vec<FieldError>,
}

/// Where a `scale` subresource finds its numbers, as dotted paths with a leading dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// The wished number of replicas.
    pub spec_replicas: String,
    /// The present number of replicas.
    pub status_replicas: String,
    /// The selector as text, or as an object with `matchLabels`.
    pub selector: Option<String>,
}

/// When an object's generation grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Generation {
    /// It has none.
    None,
    /// With every change outside `metadata`, and outside `status` where that is a subresource.
    Content,
    /// With changes of `spec`.
    Spec,
    /// With changes of `spec` or of annotations.
    SpecAndAnnotations,
}

/// How objects of a kind may be named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameRule {
    /// As a DNS subdomain.
    Subdomain,
    /// As a DNS label.
    Label,
    /// As a DNS label that begins with a letter.
    LetterLabel,
    /// As anything that can be a part of a path.
    PathSegment,
}

impl Kind {
    /// A kind without schema or subresources, in one version.
    pub fn permissive(id: KindId, version: &str, name: &str, namespaced: bool) -> Self {
        let rules = Rules::custom();
        Self::new(id, name, namespaced, [(version, Schema::permissive())], Origin::Custom, rules)
    }

    /// A kind with these versions.
    pub fn new<'v>(
        id: KindId,
        name: &str,
        namespaced: bool,
        versions: impl IntoIterator<Item = (&'v str, Schema)>,
        origin: Origin,
        rules: Rules,
    ) -> Self {
        let group = id.group().to_owned();
        let version = |(version, schema): (&str, Schema)| KindVersion {
            name: Name::new(version),
            api_version: if group.is_empty() {
                Name::new(version)
            } else {
                Name::new(&format!("{group}/{version}"))
            },
            schema,
            openapi: None,
            columns: Arc::from([]),
            conversion: None,
        };
        Self {
            versions: versions.into_iter().map(version).collect(),
            id,
            name: Name::new(name),
            naming: Naming::of(name),
            namespaced,
            origin,
            rules,
            definition: None,
            kept_as: None,
            forms: Vec::new(),
        }
    }

    /// This kind with a status subresource as custom resources have it.
    #[must_use]
    pub fn with_status(mut self) -> Self {
        self.rules.status = Some(StatusRules::custom());
        self
    }

    /// A version of it; the first if `name` is empty.
    pub fn version(&self, name: &str) -> Option<&KindVersion> {
        if name.is_empty() {
            self.versions.first()
        } else {
            self.versions.iter().find(|version| *version.name == *name)
        }
    }

    /// A version of it, or one that shows its objects under another name, by what objects say of themselves.
    pub fn form(&self, api_version: &str) -> Option<&KindVersion> {
        self.versions.iter().chain(&self.forms).find(|version| *version.api_version == *api_version)
    }

    /// The version in which its objects are kept where they have to be converted.
    pub(crate) fn kept(&self) -> Option<&KindVersion> {
        self.versions.iter().find(|version| version.conversion.is_none())
    }
}

impl Naming {
    /// What a kind is called where nothing else is said.
    pub fn of(kind: &str) -> Self {
        Self {
            singular: Name::new(&kind.to_lowercase()),
            list: Name::new(&format!("{kind}List")),
            short: Vec::new(),
            categories: Vec::new(),
        }
    }
}

impl Rules {
    /// The rules of custom resources.
    pub fn custom() -> Self {
        Self {
            status: None,
            scale: None,
            sections: &[],
            generation: Generation::Content,
            unconditional_update: false,
            create_on_update: false,
            returns_deleted: false,
            grace_seconds: None,
            names: NameRule::Subdomain,
            selectable: Vec::new(),
            empty: json!({}),
            defaults: None,
            prepare: None,
            check: None,
        }
    }
}

impl Rules {
    /// The rules for writing through a subresource, or the object itself, where it has any of its own.
    pub fn section(&self, name: &str) -> Option<&'static Section> {
        self.sections.iter().find(|section| section.name == name)
    }
}

impl StatusRules {
    /// The status subresource of custom resources: it takes `status` and nothing else.
    pub fn custom() -> Self {
        let paths: [&[&str]; 2] = [&["metadata"], &["spec"]];
        Self { resets: FieldSet::of(paths), status_only: true }
    }

    /// A status subresource that takes everything but these fields.
    pub fn resetting<'p>(paths: impl IntoIterator<Item = &'p [&'p str]>) -> Self {
        Self { resets: FieldSet::of(paths), status_only: false }
    }
}

impl ScalePaths {
    /// The path of the wished replicas, as members.
    pub(crate) fn spec_path(&self) -> Vec<&str> {
        members(&self.spec_replicas)
    }
}

/// The members of a dotted path.
pub(crate) fn members(path: &str) -> Vec<&str> {
    path.trim_start_matches('.').split('.').collect()
}
