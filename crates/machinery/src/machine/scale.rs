//! The `scale` subresource: the number of replicas, as an object of its own.

use std::sync::Arc;

use mailboat_object::Key;
use serde_json::{Value, json};

use super::status_write::put_back;
use super::{Machine, Patch, WriteOptions, Written};
use crate::json_patch;
use crate::kind::{Kind, ScalePaths, members};
use crate::metadata::Incoming;
use crate::object::Stored;
use crate::random::Moment;
use crate::schema::Origin;
use crate::status::{FieldError, Status};

impl Kind {
    /// The scale of an object of this kind, as `autoscaling/v1`, if it has one.
    pub fn scale_of(&self, object: &Stored) -> Option<Value> {
        self.rules.scale.as_ref().map(|paths| scale_of(object, paths))
    }
}

impl Machine {
    /// The scale of an object, as `autoscaling/v1`.
    pub fn scale(&self, key: &Key) -> Result<Value, Status> {
        let kind = self.served(key)?;
        let paths = kind.rules.scale.as_ref().ok_or_else(Status::unserved)?;
        Ok(scale_of(&*self.get(key)?, paths))
    }

    pub(super) fn update_scale(
        &mut self,
        key: &Key,
        scale: &Value,
        options: &WriteOptions,
        moment: &mut Moment<'_>,
    ) -> Result<Written, Status> {
        let live = self.get(key)?;
        self.write_scale(key, &live, scale, options, moment)
    }

    pub(super) fn patch_scale(
        &mut self,
        key: &Key,
        patch: Patch<'_>,
        options: &WriteOptions,
        moment: &mut Moment<'_>,
    ) -> Result<Written, Status> {
        let live = self.get(key)?;
        let mut scale = self.scale(key)?;
        match patch {
            Patch::Json(patch) => {
                json_patch::apply(&mut scale, patch).map_err(|_| Status::unprocessable_patch())?;
            }
            // A scale has no lists, so that both merge alike.
            Patch::Merge(patch) | Patch::Strategic(patch) => mailboat_object::merge::merge(&mut scale, patch),
            Patch::Apply { .. } => return Err(Status::method_not_allowed(&key.kind, "apply of scale")),
        }
        self.write_scale(key, &live, &scale, options, moment)
    }

    fn write_scale(
        &mut self,
        key: &Key,
        live: &Arc<Stored>,
        scale: &Value,
        options: &WriteOptions,
        moment: &mut Moment<'_>,
    ) -> Result<Written, Status> {
        let writing = self.writing(key, options)?;
        let paths = writing.kind.rules.scale.clone().ok_or_else(Status::unserved)?;
        let replicas = &scale["spec"]["replicas"];
        let replicas = if replicas.is_null() { json!(0) } else { replicas.clone() };
        if replicas.as_i64().is_none_or(|replicas| replicas < 0) {
            if writing.kind.origin == Origin::Custom {
                let what = "should be a non-negative integer";
                let error = FieldError::invalid(&paths.spec_replicas, &replicas, what);
                return Err(Status::invalid(key.kind.group(), &writing.kind.name, &key.name, &[error]));
            }
            let error = FieldError::invalid("spec.replicas", &replicas, "must be greater than or equal to 0");
            return Err(Status::invalid("autoscaling", "Scale", &key.name, &[error]));
        }
        let version = Incoming::decode(scale.clone()).map_err(Status::bad_request)?.version;
        let mut body = live.body().clone();
        put_back(&mut body, &paths.spec_path(), Some(&replicas));
        let mut managed = writing.managed_after(live.body(), &body, (**live.managed()).clone(), moment, true);
        managed.forget_times("scale");
        let incoming = Incoming { body, version: version.or(Some(live.version)), managed: None };
        self.modify(writing, live, incoming, managed, moment.now_seconds)
    }
}

fn scale_of(object: &Stored, paths: &ScalePaths) -> Value {
    let at =
        |path: &str| members(path).into_iter().try_fold(object.body(), |value, member| value.get(member));
    let number = |path: &str| at(path).and_then(Value::as_i64).unwrap_or(0);
    let metadata = object.metadata();
    let mut scale = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
            "resourceVersion": object.version.to_string(), "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": { "replicas": number(&paths.spec_replicas) },
        "status": { "replicas": number(&paths.status_replicas) },
    });
    match paths.selector.as_deref().and_then(at) {
        Some(Value::String(selector)) => scale["status"]["selector"] = selector.as_str().into(),
        Some(selector) => {
            // One kind of old selects by labels alone, and has them where others have what holds them.
            let is_plain = selector.get("matchLabels").or(selector.get("matchExpressions")).is_none();
            let labels = if is_plain { selector } else { &selector["matchLabels"] };
            let pairs = labels.as_object().into_iter().flatten();
            let pairs: Vec<_> =
                pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
            scale["status"]["selector"] = pairs.join(",").into();
        }
        None => {}
    }
    scale
}
