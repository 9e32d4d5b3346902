//! The marks on what the syncer delivers: the standard one, and beside it the annotation that KubeStellar's syncer wrote.

use std::sync::Arc;

use mailboat_api::names::{OwnedObject, annotation};
use mailboat_engine::mark::{Marked, Marks, OwnerId, StandardMarks};
use mailboat_engine::want::{Body, Delivery, Want};
use mailboat_object::edit::Edit;
use mailboat_object::json::Raw;
use mailboat_object::key::{Name, Uid};
use mailboat_object::object::Object;
use serde_json::{Value, json};

/// The longest label value.
const LABEL_LIMIT: usize = 63;

/// Whose the copies are: this syncer's, by its SyncTarget's uid, so that neither a renamed SyncTarget nor renamed
/// configuration makes them anybody else's.
pub fn owner(sync_target_uid: &str) -> OwnerId {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let name = format!("syncer.{sync_target_uid}");
    let fits = name.len() <= LABEL_LIMIT
        && sync_target_uid.bytes().all(plain)
        && sync_target_uid.bytes().last().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if fits {
        return OwnerId(Name::new(&name));
    }
    let digest = mailboat_object::digest::digest_of_value(&Value::from(sync_target_uid));
    OwnerId(Name::new(&format!("syncer.{:016x}", digest.bits())))
}

/// The marks of one direction.
#[derive(Clone, Debug)]
pub struct SyncerMarks {
    standard: StandardMarks,
    annotation: &'static str,
}

impl SyncerMarks {
    /// The marks on copies at the edge.
    pub fn downsynced(owner: OwnerId) -> Self {
        Self { standard: StandardMarks::new(owner), annotation: annotation::DOWNSYNCED }
    }

    /// The marks on copies in the mailbox.
    pub fn upsynced(owner: OwnerId) -> Self {
        Self { standard: StandardMarks::new(owner), annotation: annotation::UPSYNCED }
    }
}

impl Marks for SyncerMarks {
    /// The standard mark alone decides. The annotation by itself says too little: whose it is, and what it is a copy of.
    fn read(&self, target: &Object) -> Marked {
        self.standard.read(target)
    }

    fn write(&self, want: &Want, uid: Option<&Uid>) -> Result<Arc<[u8]>, String> {
        let raw = Raw::parse(&want.body.json).map_err(|malformed| malformed.to_string())?;
        let owned = OwnedObject {
            kind: raw.member("kind").and_then(Raw::as_str).unwrap_or_default().into_owned(),
            namespace: want.slot.namespace.to_string(),
            name: want.slot.name.to_string(),
        };
        let says_so = raw.get(&["metadata", "annotations", annotation::DOWNSYNC_OVERWRITE]).is_some();
        let mut edit = Edit::of(raw);
        edit.set_annotation(self.annotation, &owned.to_string());
        // What is the edge's own says so, also where a mark alone is written.
        if want.policy.delivery == Delivery::CreateOnly && !says_so {
            edit.set_annotation(annotation::DOWNSYNC_OVERWRITE, "false");
        }
        let json = edit.to_json();
        let annotated = Want { body: Body { json, digest: want.body.digest }, ..want.clone() };
        self.standard.write(&annotated, uid)
    }

    /// Of either direction: whoever lets go of an object may not know by which it came.
    fn remove(&self) -> Value {
        let mut patch = self.standard.remove();
        for annotation in [annotation::DOWNSYNCED, annotation::UPSYNCED] {
            patch["metadata"]["annotations"][annotation] = Value::Null;
        }
        patch
    }
}

/// No marks at all: for what is made to exist and is nobody's from then on.
#[derive(Clone, Copy, Debug)]
pub struct NoMarks;

impl Marks for NoMarks {
    fn read(&self, _: &Object) -> Marked {
        Marked::Nobodys
    }

    fn write(&self, want: &Want, _: Option<&Uid>) -> Result<Arc<[u8]>, String> {
        Ok(Arc::clone(&want.body.json))
    }

    fn remove(&self) -> Value {
        json!({ "metadata": {} })
    }
}

#[cfg(test)]
mod tests {
    use mailboat_engine::want::{Origin, Policy};
    use mailboat_object::digest::digest_of;
    use mailboat_object::key::{ClusterId, Key, KindId, Version};

    use super::*;
    use crate::testing::object;

    #[test]
    fn an_owner_is_always_a_label_value_and_tells_sync_targets_apart() {
        let uid = "f99e773f-3db2-439e-8054-827c4ac55368";
        assert_eq!(&*owner(uid).0, "syncer.f99e773f-3db2-439e-8054-827c4ac55368");
        for odd in ["", "a/b", "ends-with-", &"x".repeat(80)] {
            let name = owner(odd).0;
            assert!(
                name.len() <= LABEL_LIMIT && name.bytes().last().is_some_and(|b| b.is_ascii_alphanumeric()),
                "{name}"
            );
        }
        assert_ne!(owner("a/b"), owner("a/c"));
    }

    #[test]
    fn a_copy_bears_both_marks_and_is_known_again() {
        let marks = SyncerMarks::downsynced(owner("u-1"));
        let key = |cluster: &str| Key {
            cluster: ClusterId::new(cluster),
            kind: KindId::new("apps", "deployments"),
            namespace: Name::new("till"),
            name: Name::new("pos"),
        };
        let json: Arc<[u8]> = Arc::from(
            &br#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"pos","namespace":"till"}}"#
                [..],
        );
        let policy = Policy::plain(Arc::new(marks.clone()));
        let digest = digest_of(&json).unwrap();
        let want = Want {
            slot: key("edge"),
            origin: Origin {
                key: key("mb"),
                uid: Uid::parse("u"),
                version: Version(1),
                generation: 0,
                made_seconds: None,
                identity: None,
            },
            body: Body { json, digest },
            policy: Arc::new(policy),
        };
        let written = String::from_utf8(marks.write(&want, None).unwrap().to_vec()).unwrap();
        let copy = object("edge", "apps", "deployments", &written);
        assert_eq!(copy.annotation(annotation::DOWNSYNCED).as_deref(), Some("Deployment/till/pos"));
        assert!(matches!(marks.read(&copy), Marked::Ours(_)), "{written}");
        assert!(
            matches!(SyncerMarks::upsynced(owner("u-1")).read(&copy), Marked::Ours(_)),
            "in either direction"
        );
        assert!(matches!(SyncerMarks::downsynced(owner("u-2")).read(&copy), Marked::Others(_)));
    }
}
