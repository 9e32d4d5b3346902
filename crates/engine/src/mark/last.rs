//! What was last delivered to a copy that is patched, so that what is no longer wanted can be taken out of it.
//!
//! Server-side apply leaves this to the server. Where a copy is patched instead (a view of kcp does not truly apply; a
//! publisher's copies belong to its operators as much as to us), somebody has to remember it.

use mailboat_object::json::Raw;
use mailboat_object::object::Object;
use serde_json::Value;

/// The annotation in which a copy remembers what was last delivered to it.
pub const LAST_ANNOTATION: &str = "mailboat.dev/last-delivered";

/// Where the state that was last delivered is kept. It is written by the very call that delivers the next one: were it
/// kept by another, a process that ends between the two would not know any more what it has delivered.
pub trait LastState: Send + Sync {
    /// The state that a copy remembers; none if it remembers none.
    fn read(&self, copy: &Object) -> Option<Value>;
    /// Lets a body that is to be delivered remember this state, as JSON.
    fn write(&self, body: &mut Value, state: &str);
    /// Lets a merge patch take the memory off the copy.
    fn remove(&self, patch: &mut Value);
}

/// In an annotation of the copy.
#[derive(Clone, Copy, Debug)]
pub struct OnTheCopy;

impl LastState for OnTheCopy {
    fn read(&self, copy: &Object) -> Option<Value> {
        let text = copy.annotation(LAST_ANNOTATION)?;
        Raw::parse(text.as_bytes()).ok().map(Raw::to_value).filter(Value::is_object)
    }

    fn write(&self, body: &mut Value, state: &str) {
        body["metadata"]["annotations"][LAST_ANNOTATION] = Value::from(state);
    }

    fn remove(&self, patch: &mut Value) {
        patch["metadata"]["annotations"][LAST_ANNOTATION] = Value::Null;
    }
}
