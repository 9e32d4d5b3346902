//! Writing the changed JSON.

use super::{Change, Edit, TextChanges};
use crate::json::{Raw, unescape, write_string};
use crate::travel::{annotation_travels, label_travels, metadata_member_travels};

/// A JSON map while it is written.
struct MapWriter<'j> {
    json: &'j mut String,
    empty: bool,
}

impl<'j> MapWriter<'j> {
    fn open(json: &'j mut String) -> Self {
        json.push('{');
        Self { json, empty: true }
    }

    fn comma(&mut self) {
        if !std::mem::take(&mut self.empty) {
            self.json.push(',');
        }
    }

    /// A key to be escaped; the value is written by the caller.
    fn key(&mut self, key: &str) -> &mut String {
        self.comma();
        write_string(key, self.json);
        self.json.push(':');
        self.json
    }

    /// A member as it stood.
    fn copy(&mut self, escaped_key: &str, value: Raw<'_>) {
        self.comma();
        self.json.push('"');
        self.json.push_str(escaped_key);
        self.json.push_str("\":");
        self.json.push_str(value.json());
    }

    fn change(&mut self, key: &str, change: &Change<'_>) {
        if let Some(tree) = &change.tree {
            let text = tree.to_string();
            self.key(key).push_str(&text);
        } else if let Some(json) = change.json {
            self.key(key).push_str(json.json());
        }
    }

    fn close(self) {
        self.json.push('}');
    }
}

impl Edit<'_> {
    pub(super) fn write(&self, json: &mut String) {
        let mut map = MapWriter::open(json);
        for (escaped_key, value) in self.root.escaped_members() {
            let key = unescape(escaped_key);
            if key == "metadata" {
                self.write_metadata(Some(value), &mut map);
            } else if let Some(change) = self.members.get(&key) {
                map.change(&key, change);
            } else {
                map.copy(escaped_key, value);
            }
        }
        if self.metadata.is_none() {
            self.write_metadata(None, &mut map);
        }
        for (key, change) in self.members.iter() {
            if !change.removes() && self.root.member(key).is_none() {
                map.change(key, change);
            }
        }
        map.close();
    }

    fn write_metadata(&self, base: Option<Raw<'_>>, object: &mut MapWriter<'_>) {
        let mut map = MapWriter::open(object.key("metadata"));
        let (mut has_labels, mut has_annotations) = (false, false);
        for (escaped_key, value) in base.into_iter().flat_map(Raw::escaped_members) {
            let key = unescape(escaped_key);
            match (&*key, self.metadata_members.get(&key)) {
                ("labels", _) => {
                    has_labels = true;
                    self.labels.write("labels", Some(value), self.travels(label_travels), &mut map);
                }
                ("annotations", _) => {
                    has_annotations = true;
                    self.annotations.write(
                        "annotations",
                        Some(value),
                        self.travels(annotation_travels),
                        &mut map,
                    );
                }
                (_, Some(change)) => map.change(&key, change),
                (_, None) if self.strips && !metadata_member_travels(&key) => {}
                (_, None) => map.copy(escaped_key, value),
            }
        }
        if !has_annotations {
            self.annotations.write("annotations", None, |_| true, &mut map);
        }
        if !has_labels {
            self.labels.write("labels", None, |_| true, &mut map);
        }
        let has = |key: &str| base.is_some_and(|base| base.member(key).is_some());
        for (key, change) in self.metadata_members.iter() {
            if !change.removes() && !has(key) {
                map.change(key, change);
            }
        }
        map.close();
    }

    fn travels(&self, travels: fn(&str) -> bool) -> fn(&str) -> bool {
        if self.strips { travels } else { |_| true }
    }
}

impl TextChanges {
    /// Writes the map, unless nothing would be in it.
    fn write(
        &self,
        name: &str,
        base: Option<Raw<'_>>,
        travels: fn(&str) -> bool,
        metadata: &mut MapWriter<'_>,
    ) {
        let base = base.filter(|_| !self.cleared);
        let stays = |key: &str| self.texts.get(key).is_none() && travels(key);
        let added = |key: &str| base.is_none_or(|base| base.member(key).is_none());
        let mut base_members = base.into_iter().flat_map(Raw::escaped_members);
        if !base_members.any(|(key, _)| stays(&unescape(key)))
            && self.texts.iter().all(|(_, text)| text.is_none())
        {
            return;
        }
        let mut map = MapWriter::open(metadata.key(name));
        for (escaped_key, value) in base.into_iter().flat_map(Raw::escaped_members) {
            let key = unescape(escaped_key);
            match self.texts.get(&key) {
                Some(Some(text)) => write_string(text, map.key(&key)),
                None if travels(&key) => map.copy(escaped_key, value),
                Some(None) | None => {}
            }
        }
        for (key, text) in self.texts.iter() {
            if let Some(text) = text
                && added(key)
            {
                write_string(text, map.key(key));
            }
        }
        map.close();
    }
}
