//! Get and list.

use std::sync::Arc;

use http::StatusCode;
use mailboat_machinery::{List, ListRequest, Machine, Origin, Status, Stored, TypeMeta, Within};
use mailboat_object::{FieldSelector, KindId};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

use super::held::PIECE_BYTES;
use super::{Call, act, not_allowed};
use crate::answer::{self, Answer};
use crate::flow::{Pass, Work};
use crate::hub::now_seconds;
use crate::media::{Form, Shape};
use crate::protobuf::{self, BadProtobuf};
use crate::table::{self, Columns, Include, list_metadata};

/// A tree of values takes so many times its JSON.
const TREE_PER_JSON: usize = 8;

impl Call<'_> {
    pub(super) async fn get(&self) -> Result<Answer, Status> {
        self.hub.peek(|machine| self.check_seen(machine))?;
        let key = self.key();
        if self.kind.namespaced && key.namespace.is_empty() {
            return Err(Status::unserved());
        }
        match self.path.subresource.as_str() {
            "" => {}
            _ if self.is_finalization() => return Err(not_allowed()),
            "status" if self.kind.rules.status.is_some() => {}
            "scale" if self.kind.rules.scale.is_some() => {
                let mut scale = self.hub.read(|machine| machine.scale(&key)).await?;
                if self.accepted.shape == Shape::Table {
                    scale = table::of_scale(&scale, now_seconds());
                }
                return self.value(StatusCode::OK, &scale);
            }
            // A claim grants objects and their status, and none of what is beside these.
            name if self.place.view.is_none() && self.kind.rules.section(name).is_some() => {}
            "log" if act::is_pod(&self.path) => return self.log().await,
            _ if act::is_act(&self.path) => return Err(not_allowed()),
            _ => return Err(self.no_part()),
        }
        let wanted = self.query.version()?.unwrap_or_default();
        let object = self.hub.read_object(|machine| {
            if wanted > machine.version() {
                return Err(Status::too_large_version(wanted.0, machine.version().0));
            }
            machine.get(&key)
        });
        let object = object.await?;
        self.object(StatusCode::OK, &object)
    }

    pub(super) async fn list(&self) -> Result<Answer, Status> {
        let request = self.list_request()?;
        let mut list = self.hub.read(|machine| machine.list(&request)).await?;
        let room = self.room_for(&list).await?;
        let mut answer = self.listed(&mut list)?;
        if let Some(room) = room {
            answer.extensions_mut().insert(room);
        }
        Ok(answer)
    }

    /// Waits until there is memory for a long list. It goes with the answer, until that is read.
    pub(super) async fn room_for(&self, list: &List) -> Result<Option<Arc<Pass>>, Status> {
        let bytes: usize = list.items.iter().map(|item| item.json_bytes()).sum();
        // These are made as trees first.
        let trees = self.accepted.form == Form::Yaml || self.accepted.shape == Shape::Table;
        let bytes = if trees { bytes.saturating_mul(TREE_PER_JSON) } else { bytes };
        if bytes <= PIECE_BYTES {
            return Ok(None);
        }
        Ok(Some(Arc::new(self.hub.turn(&self.asker, Work::List(bytes)).await?)))
    }

    pub(super) fn listed(&self, list: &mut List) -> Result<Answer, Status> {
        if self.accepted.shape == Shape::Table {
            let columns = Columns::of(&self.kind, &self.version);
            return self.value(StatusCode::OK, &columns.list(list, self.include()?, now_seconds()));
        }
        for item in &mut list.items {
            *item = self.version.shown(item);
        }
        let shown = ShownList { call: self, list };
        Ok(match self.accepted.form {
            Form::Json => answer::json(StatusCode::OK, &shown),
            Form::Yaml => {
                answer::object(StatusCode::OK, &serde_json::to_value(shown).unwrap_or_default(), Form::Yaml)
            }
            Form::Protobuf => answer::in_protobuf(StatusCode::OK, self.in_protobuf(list)),
        })
    }

    /// A list in protobuf, of whose items one at a time is made as a tree.
    fn in_protobuf(&self, list: &List) -> Result<Vec<u8>, BadProtobuf> {
        let (api_version, kind, type_meta) = match self.accepted.shape {
            Shape::Metadata => ("meta.k8s.io/v1", "PartialObjectMetadataList", TypeMeta::MetadataOnly),
            Shape::Whole | Shape::Table => {
                (&*self.version.api_version, &*self.kind.naming.list, TypeMeta::Nothing)
            }
        };
        let items = list
            .items
            .iter()
            .map(|item| serde_json::to_value(item.shown(type_meta)).map_err(|_| BadProtobuf::Damaged));
        protobuf::list(api_version, kind, &list_metadata(list), items)
    }

    pub(super) fn list_request(&self) -> Result<ListRequest, Status> {
        Ok(ListRequest {
            cluster: self.place.cluster.clone(),
            within: self.within(),
            kind: self.kept().clone(),
            namespace: self.path.namespace.clone(),
            labels: self.query.labels()?,
            fields: self.fields()?,
            limit: self.query.limit()?,
            continue_token: self.query.get("continue").map(str::to_owned),
            version: self.query.list_version()?,
        })
    }

    /// The fields by which objects are selected; a watch of one object, by its path, selects it by its name.
    pub(super) fn fields(&self) -> Result<FieldSelector, Status> {
        if self.path.name.is_empty() {
            let refused = |field| Status::bad_request(format!("field label not supported: {field}"));
            return self.version.kept_fields(self.query.fields()?).map_err(refused);
        }
        format!("metadata.name={}", self.path.name).parse().map_err(|_| Status::unserved())
    }

    /// Whether it is asked that a namespace may go, which is only said and never read.
    pub(super) fn is_finalization(&self) -> bool {
        self.kind.id == KindId::new("", "namespaces") && self.path.subresource == "finalize"
    }

    /// 404: the kind has no such subresource.
    pub(super) fn no_part(&self) -> Status {
        match self.kind.origin {
            Origin::Native => Status::unserved().without_details(),
            // Servers look for objects of kinds that are not their own before they look for parts.
            Origin::Custom => Status::not_found(&self.kind.id, &self.path.name),
        }
    }

    /// What is seen from where the request goes; none: everything.
    pub(super) fn within(&self) -> Option<Arc<dyn Within>> {
        let seen = self.hub.peek(|machine| self.place.seen(self.hub, machine, &self.kind.id));
        seen.map(|seen| seen as Arc<dyn Within>)
    }

    /// Refuses an object, or a whole cluster, that is not seen from where the request goes.
    pub(super) fn check_seen(&self, machine: &Machine) -> Result<(), Status> {
        let Some(seen) = self.place.seen(self.hub, machine, &self.kind.id) else { return Ok(()) };
        if !seen.is_granted(machine, &self.cluster) {
            return Err(Status::unserved());
        }
        match machine.get(&self.key()) {
            Ok(object) if !seen.takes(&object) => Err(Status::not_found(self.kept(), &self.path.name)),
            _ => Ok(()),
        }
    }

    /// Which part of an object goes with its row of a table.
    pub(super) fn include(&self) -> Result<Include, Status> {
        match self.query.get("includeObject") {
            None | Some("Metadata") => Ok(Include::Metadata),
            Some("None") => Ok(Include::Nothing),
            Some("Object") => Ok(Include::Object),
            Some(other) => Err(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be \
                 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }

    /// One object, in the shape that was asked for.
    pub(super) fn object(&self, code: StatusCode, object: &Arc<Stored>) -> Result<Answer, Status> {
        if self.accepted.shape == Shape::Table {
            let columns = Columns::of(&self.kind, &self.version);
            let mut table = columns.table([object], self.include()?, true, now_seconds());
            table["metadata"]["resourceVersion"] = object.version.to_string().into();
            return self.value(code, &table);
        }
        let object = &self.version.shown(object);
        let shown = match self.accepted.shape {
            Shape::Metadata => object.shown(TypeMeta::MetadataOnly),
            Shape::Whole | Shape::Table => object.shown(TypeMeta::Version(&self.version.api_version)),
        };
        Ok(match self.accepted.form {
            Form::Json => answer::json(code, &shown),
            form => answer::object(code, &serde_json::to_value(shown).unwrap_or_default(), form),
        })
    }

    /// Anything else that says what it is.
    #[allow(clippy::unnecessary_wraps, reason = "it ends handlers, which can fail")]
    pub(super) fn value(&self, code: StatusCode, value: &Value) -> Result<Answer, Status> {
        Ok(answer::object(code, value, self.accepted.form))
    }
}

/// A list, written as it is read: its items are never copied.
struct ShownList<'l> {
    call: &'l Call<'l>,
    list: &'l List,
}

impl Serialize for ShownList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { call, list } = self;
        let metadata_only = call.accepted.shape == Shape::Metadata;
        let mut map = serializer.serialize_map(None)?;
        if metadata_only {
            map.serialize_entry("kind", "PartialObjectMetadataList")?;
            map.serialize_entry("apiVersion", "meta.k8s.io/v1")?;
        } else {
            map.serialize_entry("kind", call.kind.naming.list.as_str())?;
            map.serialize_entry("apiVersion", call.version.api_version.as_str())?;
        }
        let mut metadata = list_metadata(list);
        if call.kind.origin == Origin::Custom && !metadata_only && list.continue_token.is_none() {
            // So real servers write lists of kinds that they do not know by themselves.
            metadata["continue"] = "".into();
        }
        map.serialize_entry("metadata", &metadata)?;
        let type_meta = match call.kind.origin {
            _ if metadata_only => TypeMeta::MetadataOnly,
            // A server that decodes into types of its own says the type once, for the list.
            Origin::Native => TypeMeta::Nothing,
            Origin::Custom => TypeMeta::Version(&call.version.api_version),
        };
        map.serialize_entry("items", &Items { items: &list.items, type_meta })?;
        map.end()
    }
}

struct Items<'l> {
    items: &'l [Arc<Stored>],
    type_meta: TypeMeta<'l>,
}

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut items = serializer.serialize_seq(Some(self.items.len()))?;
        for item in self.items {
            items.serialize_element(&item.shown(self.type_meta))?;
        }
        items.end()
    }
}
