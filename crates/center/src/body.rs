//! Objects that the center writes of its own, as bodies of wants.

use std::sync::Arc;

use mailboat_engine::want::Body;
use mailboat_object::digest::digest_of_value;
use serde_json::Value;

/// The body of an object that was made as a tree.
pub(crate) fn body(object: &Value) -> Body {
    Body { json: Arc::from(object.to_string().into_bytes()), digest: digest_of_value(object) }
}
