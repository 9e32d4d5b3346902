//! Custom resource definitions: objects that make kinds.

use std::collections::BTreeMap;
use std::sync::Arc;

use mailboat_object::wire::Part;
use mailboat_object::{ClusterId, KindId, Name};
use serde_json::{Value, json};

use super::delete::{DeleteOptions, Deleted, Room, mark, set_finalizers};
use super::{Held, ListRequest, Machine, WriteOptions};
use crate::kind::{Column, Definition, Kind, Naming, Rules, ScalePaths, StatusRules};
use crate::object::Stored;
use crate::random::Moment;
use crate::schema::{Origin, Schema};
use crate::time::rfc3339;

const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");
/// Who writes down what became of a definition.
const SERVER: &str = "kube-apiserver";
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

impl Machine {
    /// What deletion means beyond finalizers for the two kinds that others live by; none for all others.
    pub(super) fn delete_by_lifecycle(
        &mut self,
        live: &Arc<Stored>,
        options: &DeleteOptions,
        moment: &mut Moment<'_>,
    ) -> Option<Deleted> {
        if live.key.kind == KindId::new(DEFINITIONS.0, DEFINITIONS.1) {
            return self.delete_definition(live, options, moment);
        }
        self.delete_namespace(live, options, moment)
    }

    /// The first deletion of a definition marks it: its instances go first.
    fn delete_definition(
        &mut self,
        live: &Arc<Stored>,
        options: &DeleteOptions,
        moment: &Moment<'_>,
    ) -> Option<Deleted> {
        if live.is_deleting() {
            return None;
        }
        let mut body = live.body().clone();
        mark(&mut body, live, 0, moment.now_seconds);
        super::write::drop_metadata(&mut body, "deletionGracePeriodSeconds");
        body["metadata"]["generation"] = live.generation().into();
        let mut finalizers: Vec<String> = live.finalizers().into_iter().map(str::to_owned).collect();
        if !finalizers.iter().any(|finalizer| finalizer == CLEANUP) {
            finalizers.push(CLEANUP.to_owned());
        }
        set_finalizers(&mut body, &finalizers);
        let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        set_condition(&mut body, "Terminating", "InstanceDeletionPending", message, moment.now_seconds);
        let stored = live.with_body(body);
        let object = if options.dry_run { Arc::new(stored) } else { self.put(stored) };
        Some(Deleted { object, gone: false })
    }

    /// Does once what the controllers of custom resource definitions do: new and changed ones are served and
    /// become `Established`; of those that are being deleted the instances are deleted, and then they themselves,
    /// and their kinds are served no more. Tells how many changes that made.
    pub fn follow_definitions(&mut self, cluster: &ClusterId, moment: &mut Moment<'_>) -> usize {
        let kind = KindId::new(DEFINITIONS.0, DEFINITIONS.1);
        let definitions: Vec<Arc<Stored>> =
            self.table(cluster, &kind).into_iter().flat_map(|table| table.values()).map(Held::get).collect();
        let before = self.version();
        for definition in definitions {
            if definition.is_deleting() {
                self.clean_up(&definition, moment);
            } else {
                self.establish(&definition, moment);
            }
        }
        usize::try_from(self.version().0 - before.0).unwrap_or(usize::MAX)
    }

    fn establish(&mut self, definition: &Arc<Stored>, moment: &mut Moment<'_>) {
        let from = Definition { uid: definition.uid.clone(), generation: definition.generation() };
        let cluster = &definition.key.cluster;
        let Some(id) = defined(definition.body()) else { return };
        if self.kind(cluster, &id).is_some_and(|kind| kind.definition.as_ref() == Some(&from)) {
            return;
        }
        // Names that another definition or the server itself has are not taken over.
        let taken = self
            .kind(cluster, &id)
            .and_then(|kind| kind.definition.as_ref())
            .map(|other| other.uid != from.uid);
        if taken == Some(true) || (taken.is_none() && self.kind(cluster, &id).is_some()) {
            return;
        }
        let Ok(mut kind) = kind_of(&id, definition.body()) else { return };
        kind.definition = Some(from);
        self.serve(cluster, [Arc::new(kind)]);
        let mut body = definition.body().clone();
        let stored = body["spec"]["versions"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|version| version["storage"] == true);
        let stored = stored.map(|version| version["name"].clone());
        body["status"]["acceptedNames"] = body["spec"]["names"].clone();
        if body["status"]["storedVersions"].is_null() {
            body["status"]["storedVersions"] = stored.into_iter().collect();
        }
        set_condition(&mut body, "NamesAccepted", "NoConflicts", "no conflicts found", moment.now_seconds);
        let message = "the initial names have been accepted";
        set_condition(&mut body, "Established", "InitialNamesAccepted", message, moment.now_seconds);
        if body == *definition.body() {
            return;
        }
        // What it says of itself is known to be the server's.
        let options =
            WriteOptions { manager: Name::new(SERVER), part: Part::Status, ..WriteOptions::default() };
        if self.update(&definition.key, body.clone(), &options, moment).is_err() {
            self.put(definition.with_body(body));
        }
    }

    fn clean_up(&mut self, definition: &Arc<Stored>, moment: &mut Moment<'_>) {
        let cluster = definition.key.cluster.clone();
        let Some(id) = defined(definition.body()) else { return };
        let ours = self
            .kind(&cluster, &id)
            .and_then(|kind| kind.definition.as_ref())
            .is_some_and(|from| from.uid == definition.uid);
        if ours {
            let request =
                ListRequest { cluster: Some(cluster.clone()), kind: id.clone(), ..ListRequest::default() };
            if self.delete_all(&request, &mut Room::default(), moment).left {
                return;
            }
            self.stop_serving(&cluster, &id);
        }
        let finalizers: Vec<String> =
            definition.finalizers().into_iter().filter(|name| *name != CLEANUP).map(str::to_owned).collect();
        if finalizers.is_empty() {
            self.take(&definition.key);
        } else if finalizers.len() < definition.finalizers().len() {
            let mut body = definition.body().clone();
            set_finalizers(&mut body, &finalizers);
            self.put(definition.with_body(body));
        }
    }
}

/// The kind that a definition defines.
fn defined(definition: &Value) -> Option<KindId> {
    let spec = &definition["spec"];
    Some(KindId::new(spec["group"].as_str()?, spec["names"]["plural"].as_str()?))
}

/// The kind that a custom resource definition describes.
pub fn kind_from_definition(definition: &Value) -> Result<Kind, crate::schema::BadSchema> {
    kind_of(&defined(definition).unwrap_or_default(), definition)
}

/// The kind as a definition describes it. The storage version comes first.
fn kind_of(id: &KindId, definition: &Value) -> Result<Kind, crate::schema::BadSchema> {
    let spec = &definition["spec"];
    let mut versions: Vec<&Value> = spec["versions"].as_array().into_iter().flatten().collect();
    versions.retain(|version| version["served"] == true);
    versions.sort_by_key(|version| version["storage"] != true);
    let mut schemas = BTreeMap::new();
    for version in &versions {
        let schema = &version["schema"]["openAPIV3Schema"];
        let schema = match schema {
            Value::Null => Schema::permissive(),
            schema => Schema::from_openapi(schema, &Value::Null, Origin::Custom)?,
        };
        schemas.insert(version["name"].as_str().unwrap_or_default(), schema);
    }
    let named = versions.iter().filter_map(|version| {
        let name = version["name"].as_str()?;
        Some((name, schemas.remove(name)?))
    });
    let mut rules = Rules::custom();
    if let Some(first) = versions.first() {
        let subresources = &first["subresources"];
        rules.status = subresources["status"].is_object().then(StatusRules::custom);
        rules.scale = scale_paths(&subresources["scale"]);
        let fields = first["selectableFields"].as_array().into_iter().flatten();
        rules.selectable = fields
            .filter_map(|field| field["jsonPath"].as_str())
            .map(|path| path.trim_start_matches('.').to_owned())
            .collect();
    }
    let name = spec["names"]["kind"].as_str().unwrap_or_default();
    let namespaced = spec["scope"] == "Namespaced";
    let mut kind = Kind::new(id.clone(), name, namespaced, named.collect::<Vec<_>>(), Origin::Custom, rules);
    kind.naming = naming(&spec["names"], name);
    for version in &mut kind.versions {
        let Some(described) = versions.iter().find(|described| described["name"] == *version.name) else {
            continue;
        };
        version.columns = columns(described);
        version.openapi = described["schema"].get("openAPIV3Schema").map(|schema| schema.to_string().into());
    }
    Ok(kind)
}

fn naming(names: &Value, kind: &str) -> Naming {
    let texts = |member: &str| -> Vec<Name> {
        names[member].as_array().into_iter().flatten().filter_map(Value::as_str).map(Name::new).collect()
    };
    let common = Naming::of(kind);
    let text = |member: &str| names[member].as_str().filter(|text| !text.is_empty()).map(Name::new);
    Naming {
        singular: text("singular").unwrap_or(common.singular),
        list: text("listKind").unwrap_or(common.list),
        short: texts("shortNames"),
        categories: texts("categories"),
    }
}

fn columns(version: &Value) -> Arc<[Column]> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let column = |column: &Value| Column {
        name: text(&column["name"]),
        value_type: text(&column["type"]),
        format: text(&column["format"]),
        description: text(&column["description"]),
        priority: column["priority"].as_i64().unwrap_or(0),
        path: text(&column["jsonPath"]),
    };
    version["additionalPrinterColumns"].as_array().into_iter().flatten().map(column).collect()
}

fn scale_paths(scale: &Value) -> Option<ScalePaths> {
    Some(ScalePaths {
        spec_replicas: scale["specReplicasPath"].as_str()?.to_owned(),
        status_replicas: scale["statusReplicasPath"].as_str()?.to_owned(),
        selector: scale["labelSelectorPath"].as_str().map(str::to_owned),
    })
}

fn set_condition(body: &mut Value, what: &str, reason: &str, message: &str, now_seconds: u64) {
    let condition = json!({
        "type": what, "status": "True", "reason": reason, "message": message,
        "lastTransitionTime": rfc3339(now_seconds),
    });
    let conditions = &mut body["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Value::Array(conditions) = conditions else { return };
    match conditions.iter_mut().find(|condition| condition["type"] == what) {
        Some(present) if present["status"] == "True" => {}
        Some(present) => *present = condition,
        None => conditions.push(condition),
    }
}
