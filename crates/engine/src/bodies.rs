//! What stood there at first sight, kept until it was compared with what is wanted.
//!
//! Of copies only heads are kept, and at a start they are often read before it is known what is wanted of them. Their bodies
//! are at hand in that moment alone. Copies of one source mostly are alike, but for what their servers gave to each and the
//! cluster that their marks name: so one body without that stands for all of them, where each by itself would make a start
//! with many edges take twice the memory.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::{Arc, Weak};

use mailboat_object::json::Raw;
use mailboat_object::key::Version;
use mailboat_object::object::{Keep, Object};
use serde_json::Value;

use crate::slots::SlotId;

/// So many are kept in mind before those that nobody needs any more are looked for.
const FEWEST: usize = 1_024;

/// Bodies that somebody waits to compare.
#[derive(Default)]
pub(crate) struct Bodies {
    /// What stood in a slot, at this version: a body that says the same. One table for all of them, which is given back as a
    /// whole; a piece for each slot would leave holes among what stays.
    kept: HashMap<SlotId, (Version, Arc<String>), foldhash::fast::FixedState>,
    /// By the hash of what they say.
    known: HashMap<u64, Weak<String>, foldhash::fast::FixedState>,
    tidy_at: usize,
    /// The one that was made last, in room that the next takes.
    made: String,
}

impl Bodies {
    /// Keeps what stands in a slot until it was compared.
    pub(crate) fn keep(&mut self, slot: SlotId, object: &Arc<Object>) {
        let body = self.alike(object);
        self.kept.insert(slot, (object.version, body));
    }

    /// What stood in a slot at a version, if that was kept.
    pub(crate) fn of(&self, slot: SlotId, version: Version) -> Option<Raw<'_>> {
        self.kept.get(&slot).filter(|(at, _)| *at == version).map(|(_, body)| Raw::trusted(body))
    }

    /// It was compared, or there is no such slot any more.
    pub(crate) fn let_go(&mut self, slot: SlotId) {
        if self.kept.remove(&slot).is_some()
            && self.kept.capacity() > FEWEST
            && self.kept.len() < self.kept.capacity() / 8
        {
            self.kept.shrink_to(2 * self.kept.len());
        }
    }

    /// As much of an object as an intent may speak of: its own, or that of another which says the same.
    fn alike(&mut self, object: &Object) -> Arc<String> {
        self.made.clear();
        write_what_intents_speak_of(object, &mut self.made);
        let hash = foldhash::fast::FixedState::default().hash_one(&self.made);
        if let Some(known) = self.known.get(&hash).and_then(Weak::upgrade)
            && *known == self.made
        {
            return known;
        }
        if self.known.len() >= self.tidy_at.max(FEWEST) {
            self.known.retain(|_, body| body.strong_count() > 0);
            self.tidy_at = self.known.len() * 2;
        }
        let body = Arc::new(self.made.as_str().to_owned());
        // Of two with one hash the later is known: the other is merely kept twice.
        self.known.insert(hash, Arc::downgrade(&body));
        body
    }
}

/// Writes a body without its status, which no intent speaks of (with a binding of many kinds, that is most of it), and without
/// what its server gave it: of its metadata, what is in the text of a head, and its name.
fn write_what_intents_speak_of(object: &Object, text: &mut String) {
    let head = object.kept(Keep::Head);
    let named = [("namespace", &object.key.namespace), ("name", &object.key.name)];
    let named = named.into_iter().filter(|(_, name)| !name.is_empty());
    text.push('{');
    for (key, value) in object.root().members().filter(|(key, _)| !matches!(&**key, "status" | "metadata")) {
        add(text, &key, value.json());
    }
    text.push_str("\"metadata\":{");
    for (key, name) in named {
        add(text, key, &Value::from(name.as_str()).to_string());
    }
    for (key, value) in head.get(&["metadata"]).into_iter().flat_map(Raw::members) {
        add(text, &key, value.json());
    }
    // A comma follows each member, and the last one here: every object has a name.
    text.pop();
    text.push_str("}}");
}

/// Adds a member, and the comma after it.
fn add(text: &mut String, key: &str, value: &str) {
    text.push_str(&Value::from(key).to_string());
    text.push(':');
    text.push_str(value);
    text.push(',');
}

#[cfg(test)]
mod tests {
    use mailboat_object::key::{ClusterId, Key, KindId, Name};
    use mailboat_object::object::{Keep, Place};
    use serde_json::json;

    use super::*;

    fn object(cluster: &str, metadata: &Value, data: &str) -> Arc<Object> {
        let key = Key {
            cluster: ClusterId::new(cluster),
            kind: KindId::new("", "configmaps"),
            namespace: Name::new("till"),
            name: Name::new("pos"),
        };
        let mut body = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": data }, "status": { "uid": cluster },
            "metadata": { "namespace": "till", "name": "pos", "uid": cluster, "resourceVersion": "7",
                "annotations": { "kcp.io/cluster": cluster } },
        });
        for (name, value) in metadata.as_object().unwrap() {
            body["metadata"][name] = value.clone();
        }
        Arc::new(Object::decode(body.to_string().as_bytes(), &Place::of(&key, "us", Keep::Whole)).unwrap())
    }

    #[test]
    fn copies_that_differ_by_their_server_and_their_cluster_alone_are_kept_once() {
        let mut bodies = Bodies::default();
        let marked = |cluster: &str| {
            let annotations = json!({ "mailboat.dev/mark": format!("configmaps/till/pos,us,u-1,7,0,in={cluster},leave"),
                "kcp.io/cluster": cluster, "note": "\"a\"" });
            object(cluster, &json!({ "annotations": annotations, "labels": { "app": "pos" } }), "x")
        };
        let kept = bodies.alike(&marked("one"));
        let said = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "x" },
            "metadata": { "namespace": "till", "name": "pos", "labels": { "app": "pos" },
                "annotations": { "mailboat.dev/mark": "configmaps/till/pos,us,u-1,7,0,leave", "note": "\"a\"" } },
        });
        assert_eq!(Raw::trusted(&kept).to_value(), said, "what an intent may speak of");
        assert!(Arc::ptr_eq(&bodies.alike(&marked("other")), &kept));
        drop(kept);
        assert_eq!(
            Raw::trusted(&bodies.alike(&marked("other"))).to_value(),
            said,
            "nobody needs the first any more"
        );
    }

    #[test]
    fn whatever_somebody_may_want_of_them_tells_them_apart() {
        let others = [
            (json!({}), "y"),
            (json!({ "labels": { "app": "pos" } }), "x"),
            (json!({ "annotations": { "mailboat.dev/mark": "{}" } }), "x"),
            (json!({ "ownerReferences": [{ "kind": "SyncTarget", "name": "a", "uid": "1" }] }), "x"),
            (json!({ "finalizers": ["example.org/wait"] }), "x"),
        ];
        let mut bodies = Bodies::default();
        let plain = object("one", &json!({}), "x");
        let kept = bodies.alike(&plain);
        for (metadata, data) in others {
            let other = object("one", &metadata, data);
            assert!(!Arc::ptr_eq(&bodies.alike(&other), &kept), "{metadata} {data}");
        }
    }
}
