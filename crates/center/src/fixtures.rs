//! Objects for tests, read as if a server had sent them.

use std::collections::BTreeMap;
use std::sync::Arc;

use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::{Keep, Limits, Object, Place};
use mailboat_store::interest::{EndpointId, FeedId, Filter, PlaceId};
use mailboat_store::store::{Nature, Store};
use mailboat_store::time::{Moment, Now};
use mailboat_store::{Definition, Fetch, Follower, Input, Settings};
use serde_json::{Value, json};

/// A kind as it is written: `deployments.apps`.
pub(crate) fn kind(text: &str) -> KindId {
    let (resource, group) = text.split_once('.').unwrap_or((text, ""));
    KindId::new(group, resource)
}

pub(crate) fn key(cluster: &str, kind_text: &str, namespace: &str, name: &str) -> Key {
    Key {
        cluster: ClusterId::new(cluster),
        kind: kind(kind_text),
        namespace: Name::new(namespace),
        name: Name::new(name),
    }
}

/// An object of a kind in a cluster.
pub(crate) fn object(cluster: &str, kind_text: &str, json: &Value) -> Arc<Object> {
    let cluster = ClusterId::new(cluster);
    let kind = kind(kind_text);
    let place = Place::in_cluster(&cluster, &kind, "mailboat-center", Keep::Whole);
    Arc::new(Object::decode(json.to_string().as_bytes(), &place).expect("an object"))
}

/// What is known of some clusters, learned as in life: by lists and watch events.
pub(crate) struct Knowledge {
    pub(crate) store: Store,
    followers: BTreeMap<(ClusterId, KindId), Follower>,
    version: u64,
}

impl Knowledge {
    pub(crate) fn new() -> Self {
        Self { store: Store::new(), followers: BTreeMap::new(), version: 100 }
    }

    /// Lists all objects of a kind in a cluster, and follows it from then on.
    pub(crate) fn list(&mut self, cluster: &str, kind_text: &str, objects: &[Value]) -> &mut Self {
        let (id, kind) = (ClusterId::new(cluster), kind(kind_text));
        let place = PlaceId::new(cluster);
        let mut news = Vec::new();
        if !self.followers.keys().any(|(known, _)| *known == id) {
            self.store.open(&place, Nature::Whole(id.clone()), [EndpointId::new("one")], &mut news);
        }
        let definition = Definition {
            api_version: Name::new("v1"),
            kind_name: Name::new("Thing"),
            manager: Name::new("mailboat-center"),
            filter: Filter::All,
            keep: Keep::Whole,
            limits: Limits::default(),
        };
        let feed = FeedId { place, endpoint: EndpointId::new("one"), kind: kind.clone() };
        let mut follower =
            Follower::new(feed, definition, Settings::default(), 1, &mut self.store, &mut news)
                .expect("a feed");
        assert!(matches!(follower.next(NOW), Fetch::List { .. }));
        let items: Vec<Value> = objects.iter().map(|object| self.versioned(object)).collect();
        let page = json!({ "metadata": { "resourceVersion": self.version.to_string() }, "items": items });
        follower.feed(
            NOW,
            follower.turn(),
            Input::Page(page.to_string().as_bytes()),
            &mut self.store,
            &mut news,
        );
        assert!(matches!(follower.next(NOW), Fetch::Watch { .. }));
        let opened = Input::Opened { new_connection: false };
        follower.feed(NOW, follower.turn(), opened, &mut self.store, &mut news);
        self.followers.insert((id, kind), follower);
        self
    }

    /// A watch event: `ADDED`, `MODIFIED` or `DELETED`.
    pub(crate) fn event(&mut self, cluster: &str, kind_text: &str, event: &str, object: &Value) -> &mut Self {
        let line = json!({ "type": event, "object": self.versioned(object) }).to_string();
        let follower = self.followers.get_mut(&(ClusterId::new(cluster), kind(kind_text))).expect("followed");
        let mut news = Vec::new();
        follower.feed(NOW, follower.turn(), Input::Line(line.as_bytes()), &mut self.store, &mut news);
        assert!(!news.is_empty(), "the event told nothing");
        self
    }

    fn versioned(&mut self, object: &Value) -> Value {
        self.version += 1;
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        object
    }
}

const NOW: Now = Now { mono: Moment(1_000), wall_seconds: 1 };
