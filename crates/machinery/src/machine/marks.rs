//! Labels that a server itself keeps on the objects of a kind: by them kcp shows to others what was granted to them.
//!
//! Nobody else can put them on or take them off, and an object that comes to bear one, or bears it no more, changes: so
//! whoever watches by such a label sees it come and go.

use std::collections::BTreeMap;
use std::sync::Arc;

use mailboat_object::{ClusterId, Key, KindId, LabelSelector, Name};
use serde_json::{Map, Value};

use super::{Flavor, Held, Machine};
use crate::object::Stored;

/// What all these labels begin with.
pub const MARK_PREFIX: &str = "claimed.internal.apis.kcp.io/";

/// One label, and which objects bear it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// The label.
    pub label: Name,
    /// Its value.
    pub value: Name,
    /// The objects, by their other labels; those that select everything bear it all.
    pub objects: LabelSelector,
}

/// The marks of each kind. Clusters that are alike share one.
pub type Marks = BTreeMap<KindId, Vec<Mark>>;

impl Machine {
    /// Says which marks the objects of a cluster bear from now on. Those that bear others are changed.
    pub fn mark(&mut self, cluster: &ClusterId, marks: &Arc<Marks>) {
        if self.marks(cluster).is_none_or(|before| *before == **marks) {
            return;
        }
        self.note_cluster(cluster);
        let Some(found) = self.clusters.get_mut(cluster) else { return };
        let before = std::mem::replace(&mut found.marks, Arc::clone(marks));
        let differ = |kind: &&KindId| before.get(*kind) != marks.get(*kind);
        let kinds: Vec<KindId> = before.keys().chain(marks.keys()).filter(differ).cloned().collect();
        for kind in kinds {
            let objects: Vec<Arc<Stored>> = self
                .table(cluster, &kind)
                .into_iter()
                .flat_map(|table| table.values().map(Held::get))
                .collect();
            for object in objects {
                let mut body = object.body().clone();
                self.stamp(&object.key, &mut body);
                if body != *object.body() {
                    self.put(object.with_body(body));
                }
            }
        }
    }

    /// Says which marks the objects of a cluster bear already.
    pub fn assume_marks(&mut self, cluster: &ClusterId, marks: &Arc<Marks>) {
        if let Some(found) = self.clusters.get_mut(cluster) {
            found.marks = Arc::clone(marks);
        }
    }

    /// The marks that objects of a cluster bear.
    pub fn marks(&self, cluster: &ClusterId) -> Option<&Marks> {
        Some(&*self.clusters.get(cluster)?.marks)
    }

    /// Gives an object the marks that it should bear, and takes away all others.
    pub(super) fn stamp(&self, key: &Key, body: &mut Value) {
        if self.settings.flavor != Flavor::Kcp {
            return;
        }
        let marks = self.clusters.get(&key.cluster).and_then(|cluster| cluster.marks.get(&key.kind));
        let labels = body["metadata"].get("labels").and_then(Value::as_object);
        let is_marked =
            labels.is_some_and(|labels| labels.keys().any(|label| label.starts_with(MARK_PREFIX)));
        if marks.is_none() && !is_marked {
            return;
        }
        let mut labels: Map<String, Value> = labels.cloned().unwrap_or_default();
        labels.retain(|label, _| !label.starts_with(MARK_PREFIX));
        let own: BTreeMap<String, String> = labels
            .iter()
            .filter_map(|(label, value)| Some((label.clone(), value.as_str()?.to_owned())))
            .collect();
        for mark in marks.into_iter().flatten().filter(|mark| mark.objects.matches(&own)) {
            labels.insert(mark.label.to_string(), mark.value.as_str().into());
        }
        if let Value::Object(metadata) = &mut body["metadata"] {
            if labels.is_empty() {
                metadata.remove("labels");
            } else {
                metadata.insert("labels".to_owned(), Value::Object(labels));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::machine::{Patch, Settings, WatchEvent, WatchRequest, WatchStart, WriteOptions};
    use crate::random::{Moment, Seeded};

    const LABEL: &str = "claimed.internal.apis.kcp.io/export";

    fn maps() -> KindId {
        KindId::new("", "configmaps")
    }

    fn map(name: &str) -> Key {
        Key {
            cluster: ClusterId::new("one"),
            kind: maps(),
            namespace: Name::new("default"),
            name: Name::new(name),
        }
    }

    fn marks(selector: LabelSelector) -> Arc<Marks> {
        let mark = Mark { label: Name::new(LABEL), value: Name::new("maps"), objects: selector };
        Arc::new(Marks::from([(maps(), vec![mark])]))
    }

    fn label_of(machine: &Machine, name: &str) -> Value {
        machine.get(&map(name)).unwrap().metadata()["labels"][LABEL].clone()
    }

    #[test]
    fn what_is_granted_comes_into_sight_and_goes_and_nobody_can_forge_it() {
        let mut machine = Machine::new(Settings { flavor: Flavor::Kcp, ..Settings::default() });
        let cluster = ClusterId::new("one");
        machine.serve(
            &cluster,
            [Arc::new(crate::builtin::kind_without_schema(maps(), "v1", "ConfigMap", true))],
        );
        let mut random = Seeded(1);
        let mut moment = Moment { now_seconds: 0, random: &mut random };
        let options = WriteOptions::default();
        let body = |name: &str| {
            json!({ "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": name, "namespace": "default", "labels": { LABEL: "forged", "app": name } } })
        };
        machine.create(&map("old"), body("old"), &options, &mut moment).unwrap();
        assert!(label_of(&machine, "old").is_null(), "forged");

        let bears = format!("{LABEL}=maps").parse().unwrap();
        let request = WatchRequest {
            cluster: Some(cluster.clone()),
            kind: maps(),
            labels: bears,
            start: WatchStart::Now,
            ..WatchRequest::default()
        };
        let mut watch = machine.watch(request).unwrap();
        let mut heard = |machine: &Machine| -> Vec<String> {
            let events = machine.poll(&mut watch, 10);
            let told = |event: &WatchEvent| match event {
                WatchEvent::Added(object) => format!("+{}", object.key.name),
                WatchEvent::Deleted(object) => format!("-{}", object.key.name),
                other => format!("{other:?}"),
            };
            events.iter().map(told).collect()
        };
        machine.mark(&cluster, &marks(LabelSelector::everything()));
        assert_eq!(label_of(&machine, "old"), "maps");
        machine.create(&map("new"), body("new"), &options, &mut moment).unwrap();
        assert_eq!(heard(&machine), ["+old", "+new"]);

        let before = machine.version();
        machine.mark(&cluster, &marks(LabelSelector::everything()));
        assert_eq!(machine.version(), before, "what changes nothing writes nothing");
        let strip = json!({ "metadata": { "labels": { LABEL: null } } });
        machine.patch(&map("new"), Patch::Merge(&strip), &options, &mut moment).unwrap();
        assert_eq!(label_of(&machine, "new"), "maps", "taken off by somebody else");

        machine.mark(&cluster, &marks("app=new".parse().unwrap()));
        assert_eq!(heard(&machine).last().map(String::as_str), Some("-old"));
        machine.mark(&cluster, &Arc::default());
        assert_eq!(heard(&machine), ["-new"]);
        assert!(label_of(&machine, "new").is_null());
    }
}
