//! The marks that a role uses unless it has wire names of its own to keep.

use std::sync::Arc;

use mailboat_object::edit::Edit;
use mailboat_object::json::Raw;
use mailboat_object::key::{Key, Name, Uid};
use mailboat_object::object::Object;
use serde_json::{Value, json};

use super::text::{self, Said};
use super::{Mark, Marked, Marks, OwnerId};
use crate::want::{Delivery, Origin, Want};

/// The label by which copies are found: whose they are.
pub const OWNER_LABEL: &str = "mailboat.dev/owner";
/// The annotation with all else that a copy remembers.
pub use mailboat_object::object::MARK_ANNOTATION;

/// A label with the owner, and an annotation with the rest.
#[derive(Clone, Debug)]
pub struct StandardMarks {
    owner: OwnerId,
}

impl StandardMarks {
    /// Marks of this owner, whose name must be a valid label value.
    pub fn new(owner: OwnerId) -> Self {
        Self { owner }
    }

    /// What the object at a key is a copy of, by the text of its mark, whoever's it is.
    pub fn origin(text: &str, on: &Key) -> Option<Origin> {
        text::read(text, on).map(|said| said.origin)
    }
}

impl Marks for StandardMarks {
    fn read(&self, target: &Object) -> Marked {
        let mark = |owner| {
            let text = target.annotation(MARK_ANNOTATION)?;
            parse(&text, &target.key, owner)
        };
        let marked = match target.label(OWNER_LABEL).map(|owner| OwnerId(Name::new(&owner))) {
            Some(owner) if owner != self.owner => return Marked::Others(owner),
            Some(owner) => mark(owner),
            // Fields on an object that is another's: the label would say that the object is ours.
            None => mark(self.owner.clone()).filter(|mark| mark.overlay),
        };
        marked.map_or(Marked::Nobodys, Marked::Ours)
    }

    fn write(&self, want: &Want, uid: Option<&Uid>) -> Result<Arc<[u8]>, String> {
        // An intent was checked when it was made.
        let intent = std::str::from_utf8(&want.body.json).map_err(|malformed| malformed.to_string())?;
        let mut edit = Edit::of(Raw::trusted(intent));
        if want.policy.delivery != Delivery::Overlay {
            edit.set_label(OWNER_LABEL, &self.owner.0);
        }
        edit.set_annotation(MARK_ANNOTATION, &text::write(want, &self.owner.0, uid.is_some()));
        if let Some(uid) = uid {
            edit.set(&["metadata", "uid"], Value::from(uid.to_string())).map_err(|bad| bad.to_string())?;
        }
        Ok(edit.to_json())
    }

    fn remove(&self) -> Value {
        json!({ "metadata": { "labels": { OWNER_LABEL: null }, "annotations": { MARK_ANNOTATION: null } } })
    }
}

/// The mark that a text says is on the object at a key.
fn parse(text: &str, on: &Key, owner: OwnerId) -> Option<Mark> {
    let Said { origin, intent, leave, confirmed, overlay, owner: said } = text::read(text, on)?;
    if overlay && said? != owner.0 {
        return None;
    }
    // No object is a copy of itself: somebody restored a source from its copy, with all that stood on that.
    if !overlay && origin.key == *on {
        return None;
    }
    Some(Mark { owner, origin, intent, leave, confirmed, overlay })
}

#[cfg(test)]
mod tests {
    use mailboat_object::digest::digest_of;
    use mailboat_object::key::{ClusterId, KindId, Version};
    use mailboat_object::object::{ClusterOf, Keep, Limits, Place};

    use super::*;
    use crate::want::{Body, Policy, Withdrawal};

    fn key(cluster: &str, name: &str) -> Key {
        Key {
            cluster: ClusterId::new(cluster),
            kind: KindId::new("apps", "deployments"),
            namespace: Name::new("till"),
            name: Name::new(name),
        }
    }

    fn marks() -> StandardMarks {
        StandardMarks::new(OwnerId(Name::new("us")))
    }

    fn want() -> Want {
        let json: Arc<[u8]> = Arc::from(&br#"{"kind":"Deployment","metadata":{"name":"pos"},"spec":{}}"#[..]);
        let policy = Policy { withdrawal: Withdrawal::Leave, ..Policy::plain(Arc::new(marks())) };
        let digest = digest_of(&json).unwrap();
        let origin = Origin {
            key: key("center", "pos"),
            uid: Uid::parse("u-1"),
            version: Version(7),
            generation: 3,
            made_seconds: Some(1_700_000_000),
            identity: Some(Name::new("3f5a")),
        };
        Want { slot: key("edge", "pos"), origin, body: Body { json, digest }, policy: Arc::new(policy) }
    }

    fn decode(body: &[u8], kind: &KindId, name: &str) -> Object {
        let mut value: Value = serde_json::from_slice(body).unwrap();
        value["metadata"]["name"] = json!(name);
        value["metadata"]["namespace"] = json!("till");
        let place = Place {
            cluster: ClusterOf::One(&ClusterId::new("edge")),
            kind,
            api_version: "apps/v1",
            kind_name: "Deployment",
            manager: "",
            keep: Keep::Head,
            limits: Limits::default(),
        };
        Object::decode(value.to_string().as_bytes(), &place).unwrap()
    }

    #[test]
    fn a_mark_comes_back_as_it_was_written() {
        let want = want();
        let body = marks().write(&want, Some(&Uid::parse("u-2"))).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&body).unwrap()["metadata"]["uid"], "u-2");
        let copy = decode(&body, &want.slot.kind, "pos");
        let expected = Mark {
            owner: OwnerId(Name::new("us")),
            origin: want.origin.clone(),
            intent: want.body.digest,
            leave: true,
            confirmed: true,
            overlay: false,
        };
        assert_eq!(marks().read(&copy), Marked::Ours(expected.clone()));
        let first = decode(&marks().write(&want, None).unwrap(), &want.slot.kind, "pos");
        assert_eq!(marks().read(&first), Marked::Ours(Mark { confirmed: false, ..expected }));
        let them = StandardMarks::new(OwnerId(Name::new("them")));
        assert_eq!(them.read(&copy), Marked::Others(OwnerId(Name::new("us"))));
    }

    /// A want of something of another kind and name, from a cluster with an odd one, whose fields are put on another's object.
    fn odd() -> Want {
        let mut odd = want();
        odd.policy = Arc::new(Policy { delivery: Delivery::Overlay, ..Policy::plain(Arc::new(marks())) });
        odd.origin.key =
            Key { namespace: Name::EMPTY, kind: KindId::new("", "configmaps"), ..key("a\"b,=%ü", "o") };
        (odd.origin.generation, odd.origin.made_seconds, odd.origin.identity) = (0, None, None);
        odd
    }

    #[test]
    fn a_mark_is_short_and_has_nothing_to_escape() {
        let text = |want: &Want, confirmed| text::write(want, &marks().owner.0, confirmed);
        let digest = want().body.digest;
        let plain = format!(
            "deployments.apps/till/pos,center,u-1,7,{digest},in=edge,generation=3,made=1700000000,identity=3f5a,leave"
        );
        assert_eq!(text(&want(), true), plain);
        assert_eq!(text(&want(), false), format!("{plain},unconfirmed"));
        assert_eq!(
            text(&odd(), true),
            format!(
                "deployments.apps/till/pos,a%22b%2c%3d%25%c3%bc,u-1,7,{digest},in=edge,kind=configmaps,namespace=,name=o,owner=us,overlay"
            )
        );
    }

    /// Marks as releases before this one wrote them, and what they say.
    fn earlier() -> [(Want, bool, String); 3] {
        let digest = want().body.digest;
        let plain = format!(
            r#"{{"cluster":"center","generation":3,"identity":"3f5a","intent":"{digest}","leave":true,"made":1700000000,"on":"deployments.apps/till/pos","uid":"u-1","version":7}}"#
        );
        let first = plain.replace(r#""version""#, r#""unconfirmed":true,"version""#);
        let overlay = format!(
            r#"{{"cluster":"a\"b,=%ü","intent":"{digest}","kind":"configmaps","name":"o","namespace":"","on":"deployments.apps/till/pos","overlay":true,"owner":"us","uid":"u-1","version":7}}"#
        );
        [(want(), true, plain), (want(), false, first), (odd(), true, overlay)]
    }

    #[test]
    fn a_mark_of_an_earlier_release_says_what_it_said() {
        for (want, confirmed, mark) in earlier() {
            let uid = Uid::parse("u-2");
            let body = marks().write(&want, confirmed.then_some(&uid)).unwrap();
            let now = marks().read(&decode(&body, &want.slot.kind, "pos"));
            let mut value: Value = serde_json::from_slice(&body).unwrap();
            value["metadata"]["annotations"][MARK_ANNOTATION] = json!(mark);
            let then = marks().read(&decode(value.to_string().as_bytes(), &want.slot.kind, "pos"));
            assert!(matches!(&then, Marked::Ours(said) if said.origin == want.origin), "{then:?}");
            assert_eq!(then, now, "{mark}");
        }
    }

    #[test]
    fn what_a_mark_was_not_put_on_is_not_known_by_it_in_either_form() {
        for (want, _, earlier) in earlier() {
            for text in [earlier, text::write(&want, &marks().owner.0, true)] {
                assert!(parse(&text, &want.slot, marks().owner).is_some(), "{text}");
                let other = |slot: Key| parse(&text, &slot, marks().owner);
                assert_eq!(other(key("edge", "pos-5f7c")), None, "{text}");
                assert_eq!(other(Key { namespace: Name::new("kitchen"), ..key("edge", "pos") }), None);
                let replicas = KindId::new("apps", "replicasets");
                assert_eq!(other(Key { kind: replicas, ..key("edge", "pos") }), None);
            }
        }
    }

    #[test]
    fn fields_on_an_object_of_another_are_marked_without_claiming_the_object() {
        let mut want = want();
        want.policy = Arc::new(Policy { delivery: Delivery::Overlay, ..(*want.policy).clone() });
        want.origin.key = Key { kind: KindId::new("", "configmaps"), ..key("center", "other") };
        let body = marks().write(&want, Some(&Uid::parse("u-2"))).unwrap();
        let overlaid = decode(&body, &want.slot.kind, "pos");
        assert_eq!(overlaid.label(OWNER_LABEL), None, "whoever looks for copies by label must not find it");
        let Marked::Ours(mark) = marks().read(&overlaid) else { panic!("not known again") };
        assert!(mark.overlay && mark.confirmed);
        assert_eq!(mark.origin, want.origin);
        let them = StandardMarks::new(OwnerId(Name::new("them")));
        assert_eq!(them.read(&overlaid), Marked::Nobodys, "it is not theirs, and it is not ours");
    }

    #[test]
    fn a_mark_that_a_controller_copied_along_is_no_mark() {
        let want = want();
        let body = marks().write(&want, None).unwrap();
        let replica_set = decode(&body, &KindId::new("apps", "replicasets"), "pos");
        assert_eq!(marks().read(&replica_set), Marked::Nobodys);
        let other_name = decode(&body, &want.slot.kind, "pos-5f7c");
        assert_eq!(marks().read(&other_name), Marked::Nobodys);
    }

    #[test]
    fn what_people_copied_to_another_cluster_is_theirs_there() {
        for want in [want(), odd()] {
            let text = text::write(&want, &marks().owner.0, true);
            assert!(parse(&text, &want.slot, marks().owner).is_some(), "{text}");
            assert_eq!(parse(&text, &key("another", "pos"), marks().owner), None, "{text}");
        }
    }

    #[test]
    fn no_object_is_a_copy_of_itself() {
        let itself = key("center", "pos");
        let here = Want { slot: itself.clone(), ..want() };
        let [(_, _, earlier), ..] = earlier();
        for text in [earlier, text::write(&here, &marks().owner.0, true)] {
            assert!(
                parse(&text.replace("in=center", "in=edge"), &key("edge", "pos"), marks().owner).is_some()
            );
            assert_eq!(parse(&text, &itself, marks().owner), None, "{text}");
        }
        let overlay = Policy { delivery: Delivery::Overlay, ..(*want().policy).clone() };
        let want = Want { slot: itself.clone(), policy: Arc::new(overlay), ..want() };
        let text = text::write(&want, &marks().owner.0, true);
        assert!(
            parse(&text, &itself, marks().owner).is_some(),
            "fields of ours on a source are no copy: {text}"
        );
    }

    #[test]
    fn a_mark_that_cannot_be_read_is_no_mark() {
        let want = want();
        let mut value: Value = serde_json::from_slice(&marks().write(&want, None).unwrap()).unwrap();
        let whole = text::write(&want, &marks().owner.0, true);
        let on = "deployments.apps/till/pos";
        let broken = ["", "{}", "[]", r#"{"on":"deployments.apps/till/pos"}"#, on].map(str::to_owned);
        let cut = (0..whole.find(",in=").unwrap()).map(|end| whole[..end].to_owned());
        let garbled = [
            whole.replace("made=17", "made=x"),
            whole.replace("center", "%"),
            whole.replace("center", "%zz"),
            whole.replace("center", "%ff"),
            whole.replace(",7,", ",-7,"),
        ];
        for broken in broken.into_iter().chain(cut).chain(garbled) {
            value["metadata"]["annotations"][MARK_ANNOTATION] = json!(broken);
            let copy = decode(value.to_string().as_bytes(), &want.slot.kind, "pos");
            assert_eq!(marks().read(&copy), Marked::Nobodys, "{broken:?}");
        }
    }
}
