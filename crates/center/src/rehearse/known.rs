//! What was read, as a store knows it: by the same follower that reads for a running center.

use std::collections::{BTreeMap, BTreeSet};

use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::{Keep, Limits};
use mailboat_object::timestamp::unix_seconds;
use mailboat_store::interest::{EndpointId, FeedId, Filter, PlaceId};
use mailboat_store::seen::News;
use mailboat_store::store::{Nature, Store};
use mailboat_store::time::{Moment, Now};
use mailboat_store::{Definition, Fetch, Follower, Input, Settings};
use serde_json::{Value, json};

use crate::assemble::FIELD_MANAGER;

/// All objects of one kind in one workspace.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The workspace.
    pub cluster: ClusterId,
    /// The kind.
    pub kind: KindId,
    /// The `apiVersion` of the objects, which lists leave out.
    pub api_version: String,
    /// The `kind` of the objects, which lists leave out.
    pub kind_name: String,
    /// The objects, as their server gave them.
    pub items: Vec<Value>,
}

pub(super) struct Known {
    pub(super) store: Store,
    pub(super) news: Vec<News>,
    pub(super) read: BTreeSet<(ClusterId, KindId)>,
    pub(super) reported: BTreeMap<Key, u64>,
}

pub(super) fn learn(listed: &[Listed]) -> Known {
    let mut known =
        Known { store: Store::new(), news: Vec::new(), read: BTreeSet::new(), reported: BTreeMap::new() };
    let mut open = BTreeSet::new();
    for list in listed {
        let place = PlaceId(list.cluster.0.clone());
        if open.insert(list.cluster.clone()) {
            let nature = Nature::Whole(list.cluster.clone());
            known.store.open(&place, nature, [EndpointId::new("read")], &mut known.news);
        }
        if known.read.insert((list.cluster.clone(), list.kind.clone())) {
            feed(list, place, &mut known);
            known.reported.extend(list.items.iter().filter_map(|item| reported(list, item)));
        }
    }
    known
}

fn feed(list: &Listed, place: PlaceId, known: &mut Known) {
    const NOW: Now = Now { mono: Moment(0), wall_seconds: 0 };
    let definition = Definition {
        api_version: Name::new(&list.api_version),
        kind_name: Name::new(&list.kind_name),
        manager: Name::new(FIELD_MANAGER),
        filter: Filter::All,
        keep: Keep::Whole,
        limits: Limits::default(),
    };
    let feed = FeedId { place, endpoint: EndpointId::new("read"), kind: list.kind.clone() };
    let (store, news) = (&mut known.store, &mut known.news);
    let Ok(mut follower) = Follower::new(feed, definition, Settings::default(), 1, store, news) else {
        return;
    };
    let version = |item: &Value| item["metadata"]["resourceVersion"].as_str()?.parse::<u64>().ok();
    let newest = list.items.iter().filter_map(version).max().unwrap_or(1);
    let page = json!({ "metadata": { "resourceVersion": newest.to_string() }, "items": list.items });
    // The follower has to be asked before it is answered.
    if matches!(follower.next(NOW), Fetch::List { .. }) {
        follower.feed(NOW, follower.turn(), Input::Page(page.to_string().as_bytes()), store, news);
    }
    if matches!(follower.next(NOW), Fetch::Watch { .. }) {
        follower.feed(NOW, follower.turn(), Input::Opened { new_connection: false }, store, news);
    }
}

/// When an object's status was last written.
fn reported(list: &Listed, item: &Value) -> Option<(Key, u64)> {
    let entries = item["metadata"]["managedFields"].as_array()?;
    let of_status = entries.iter().filter(|entry| entry["subresource"] == "status");
    let at = of_status.filter_map(|entry| unix_seconds(entry["time"].as_str()?)).max()?;
    let text = |member: &str| Name::new(item["metadata"][member].as_str().unwrap_or_default());
    let key = Key {
        cluster: list.cluster.clone(),
        kind: list.kind.clone(),
        namespace: text("namespace"),
        name: text("name"),
    };
    Some((key, at))
}
