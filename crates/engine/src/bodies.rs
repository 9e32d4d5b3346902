//! What stood there at first sight, kept until it was compared with what is wanted.
//!
//! Of copies only heads are kept, and at a start they are often read before it is known what is wanted of them. Their bodies
//! are at hand in that moment alone. Copies of one source mostly are alike, but for what their servers gave to each: so one
//! body stands for all of them, where each by itself would make a start with many edges take twice the memory.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::{Arc, Weak};

use mailboat_object::digest::Digest;
use mailboat_object::json::Raw;
use mailboat_object::key::Version;
use mailboat_object::object::Object;
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
    known: HashMap<(Digest, u64), Weak<String>, foldhash::fast::FixedState>,
    tidy_at: usize,
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

    /// The body of an object, or of another that says the same but for what its server gave it.
    fn alike(&mut self, object: &Object) -> Arc<String> {
        let of = (object.content, rest(object));
        if let Some(known) = self.known.get(&of).and_then(Weak::upgrade) {
            return known;
        }
        if self.known.len() >= self.tidy_at.max(FEWEST) {
            self.known.retain(|_, body| body.strong_count() > 0);
            self.tidy_at = self.known.len() * 2;
        }
        let body = without_status(object);
        self.known.insert(of, Arc::downgrade(&body));
        body
    }
}

/// A body without its status, which no intent speaks of: with a binding of many kinds, that is most of it.
fn without_status(object: &Object) -> Arc<String> {
    let mut text = String::from("{");
    for (key, value) in object.root().members().filter(|(key, _)| key != "status") {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&Value::from(&*key).to_string());
        text.push(':');
        text.push_str(value.json());
    }
    text.push('}');
    text.shrink_to_fit();
    Arc::new(text)
}

/// A digest of what an intent may say that is no content. Labels and annotations of servers' own are nobody's intent.
fn rest(object: &Object) -> u64 {
    let mut digest = foldhash::fast::FixedState::default().build_hasher();
    for member in ["ownerReferences", "finalizers"] {
        digest.write(object.get(&["metadata", member]).map_or("", |member| member.json()).as_bytes());
        digest.write_u8(0xff);
    }
    digest.finish()
}

#[cfg(test)]
mod tests {
    use mailboat_object::key::{ClusterId, Key, KindId, Name};
    use mailboat_object::object::{Keep, Place};
    use serde_json::{Value, json};

    use super::*;

    fn object(cluster: &str, metadata: &Value, data: &str) -> Arc<Object> {
        let key = Key {
            cluster: ClusterId::new(cluster),
            kind: KindId::new("", "configmaps"),
            namespace: Name::new("till"),
            name: Name::new("pos"),
        };
        let mut body = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": data },
            "metadata": { "namespace": "till", "name": "pos", "uid": cluster, "resourceVersion": "7",
                "annotations": { "kcp.io/cluster": cluster } },
        });
        for (name, value) in metadata.as_object().unwrap() {
            body["metadata"][name] = value.clone();
        }
        Arc::new(Object::decode(body.to_string().as_bytes(), &Place::of(&key, "us", Keep::Whole)).unwrap())
    }

    #[test]
    fn copies_that_differ_by_their_server_alone_are_kept_once() {
        let mut bodies = Bodies::default();
        let (one, other) = (object("one", &json!({}), "x"), object("other", &json!({}), "x"));
        let kept = bodies.alike(&one);
        assert!(Arc::ptr_eq(&bodies.alike(&other), &kept));
        assert_eq!(Raw::trusted(&kept).to_value(), one.root().to_value());
        drop(kept);
        let kept = bodies.alike(&other);
        assert_eq!(
            Raw::trusted(&kept).to_value(),
            other.root().to_value(),
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
