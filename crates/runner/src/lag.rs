//! How long changes wait until they are carried on.

use std::collections::HashMap;

use mailboat_object::key::{Key, Version};
use mailboat_store::{Moment, News, Seen};

/// Changes that are timed at once. Of more, the older half is not: what waits for somebody would keep all others from being
/// timed for ever.
const CHANGES: usize = 4_096;

/// When changes that may have to be carried on were read: of each object the last one, at its version.
#[derive(Default)]
pub(crate) struct Lags(HashMap<Key, (Version, Moment)>);

impl Lags {
    /// Something was read. What a first list shows was not changed now, so it is not timed.
    pub(crate) fn heed(&mut self, now: Moment, news: &News) {
        let News::Object(change) = news else { return };
        match &change.now {
            Seen::Present(object) if change.live => {
                if self.0.len() >= CHANGES && !self.0.contains_key(&change.key) {
                    self.drop_older_half();
                }
                self.0.insert(change.key.clone(), (object.version, now));
            }
            Seen::Present(_) | Seen::Unknown(_) => {}
            Seen::Absent(_) => drop(self.0.remove(&change.key)),
        }
    }

    /// When this very version of an object was read, if it is timed. By the time that it is asked a later one may have been,
    /// which is another change.
    pub(crate) fn read_at(&self, object: &Key, version: Version) -> Option<Moment> {
        self.0.get(object).filter(|(known, _)| *known == version).map(|(_, read)| *read)
    }

    /// The change of an object that was read then was carried on, and nobody else waits for it.
    pub(crate) fn carried(&mut self, object: &Key, read: Moment) {
        if self.0.get(object).is_some_and(|(_, known)| *known == read) {
            self.0.remove(object);
        }
    }

    /// Everything was carried on.
    pub(crate) fn clear(&mut self) {
        if !self.0.is_empty() {
            self.0 = HashMap::new();
        }
    }

    fn drop_older_half(&mut self) {
        let mut moments: Vec<Moment> = self.0.values().map(|(_, read)| *read).collect();
        let (_, middle, _) = moments.select_nth_unstable(CHANGES / 2);
        let middle = *middle;
        self.0.retain(|_, (_, read)| *read > middle);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mailboat_object::key::{ClusterId, KindId, Name};
    use mailboat_object::object::{Keep, Object, Place};
    use mailboat_store::Change;

    use super::*;

    fn key(name: &str) -> Key {
        Key {
            cluster: ClusterId::new("tenant"),
            kind: KindId::new("", "configmaps"),
            namespace: Name::EMPTY,
            name: Name::new(name),
        }
    }

    fn changed(name: &str, version: u64) -> News {
        let key = key(name);
        let body = format!(r#"{{"metadata":{{"name":"{name}","uid":"u","resourceVersion":"{version}"}}}}"#);
        let object = Object::decode(body.as_bytes(), &Place::of(&key, "us", Keep::Head)).ok();
        let now = object.map_or(Seen::Unknown(mailboat_store::Doubt::Lost), |o| Seen::Present(Arc::new(o)));
        News::Object(Change { key, before: None, now, live: true, watched: true })
    }

    #[test]
    fn a_change_is_timed_from_its_own_reading_and_not_from_a_later_one() {
        let mut lags = Lags::default();
        lags.heed(Moment(1_000), &changed("pos", 7));
        assert_eq!(lags.read_at(&key("pos"), Version(7)), Some(Moment(1_000)));
        lags.heed(Moment(2_000), &changed("pos", 8));
        assert_eq!(lags.read_at(&key("pos"), Version(8)), Some(Moment(2_000)));
        assert_eq!(lags.read_at(&key("pos"), Version(7)), None, "it was never carried on");
    }

    #[test]
    fn what_waits_for_ever_does_not_keep_others_from_being_timed() {
        let mut lags = Lags::default();
        for n in 0..10 * CHANGES {
            let (name, at) = (format!("c{n}"), Moment(n as u64));
            lags.heed(at, &changed(&name, 1));
            assert_eq!(lags.read_at(&key(&name), Version(1)), Some(at), "{n}");
            assert!(lags.0.len() <= CHANGES);
        }
    }
}
