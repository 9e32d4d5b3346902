//! The marks that a role uses unless it has wire names of its own to keep.

use std::fmt::Write as _;
use std::sync::Arc;

use mailboat_object::digest::Digest;
use mailboat_object::edit::Edit;
use mailboat_object::json::{Raw, write_string};
use mailboat_object::key::{ClusterId, Key, KindId, Name, Uid, Version};
use mailboat_object::object::Object;
use serde_json::{Value, json};

use super::{Mark, Marked, Marks, OwnerId};
use crate::want::{Delivery, Origin, Want};

/// The label by which copies are found: whose they are.
pub const OWNER_LABEL: &str = "mailboat.dev/owner";
/// The annotation with all else that a copy remembers.
pub const MARK_ANNOTATION: &str = "mailboat.dev/mark";

/// A label with the owner, and an annotation with the rest as JSON.
#[derive(Clone, Debug)]
pub struct StandardMarks {
    owner: OwnerId,
}

impl StandardMarks {
    /// Marks of this owner, whose name must be a valid label value.
    pub fn new(owner: OwnerId) -> Self {
        Self { owner }
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
        edit.set_annotation(MARK_ANNOTATION, &self.text(want, uid.is_some()));
        if let Some(uid) = uid {
            edit.set(&["metadata", "uid"], Value::from(uid.to_string())).map_err(|bad| bad.to_string())?;
        }
        Ok(edit.to_json())
    }

    fn remove(&self) -> Value {
        json!({ "metadata": { "labels": { OWNER_LABEL: null }, "annotations": { MARK_ANNOTATION: null } } })
    }
}

impl StandardMarks {
    /// A mark as text. It names the object that it was put on, because controllers copy annotations along to what
    /// they make: what they made is not ours. What is the same there and at the origin is said once, because a center
    /// holds hundreds of thousands of marks.
    fn text(&self, want: &Want, confirmed: bool) -> String {
        let (origin, slot) = (&want.origin, &want.slot);
        let says_kind = (origin.key.kind != slot.kind).then(|| origin.key.kind.to_string());
        let says = |name: &Name, there: &Name| (name != there).then(|| name.to_string());
        let overlays = want.policy.delivery == Delivery::Overlay;
        let mut mark = Writer::new();
        mark.text("cluster", Some(origin.key.cluster.0.as_str()));
        mark.number("generation", Some(origin.generation).filter(|generation| *generation > 0));
        mark.text("identity", origin.identity.as_deref());
        mark.text("intent", Some(&want.body.digest.to_string()));
        mark.text("kind", says_kind.as_deref());
        mark.truth("leave", want.leaves());
        mark.number("made", origin.made_seconds);
        mark.text("name", says(&origin.key.name, &slot.name).as_deref());
        mark.text("namespace", says(&origin.key.namespace, &slot.namespace).as_deref());
        mark.text("on", Some(&on(slot)));
        mark.truth("overlay", overlays);
        mark.text("owner", overlays.then_some(self.owner.0.as_str()));
        mark.text("uid", Some(&origin.uid.to_string()));
        mark.truth("unconfirmed", !confirmed);
        mark.number("version", Some(origin.version.0));
        mark.finish()
    }
}

/// A mark while it is written: with each write of a copy, so without a tree.
struct Writer(String);

impl Writer {
    fn new() -> Self {
        Self(String::with_capacity(320))
    }

    /// Adds a text, if there is one.
    fn text(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            write_string(text, self.member(name));
        }
    }

    /// Adds a number, if there is one.
    fn number(&mut self, name: &str, number: Option<u64>) {
        if let Some(number) = number {
            // Writing to a String cannot fail.
            _ = write!(self.member(name), "{number}");
        }
    }

    /// Says something, if it is so.
    fn truth(&mut self, name: &str, is_so: bool) {
        if is_so {
            self.member(name).push_str("true");
        }
    }

    fn member(&mut self, name: &str) -> &mut String {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        write_string(name, &mut self.0);
        self.0.push(':');
        &mut self.0
    }

    fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

fn on(slot: &Key) -> String {
    format!("{}/{}/{}", slot.kind, slot.namespace, slot.name)
}

/// Whether a mark was put on the object at this key.
fn is_on(text: &str, key: &Key) -> bool {
    let group = key.kind.group();
    let after_kind = || {
        let rest = text.strip_prefix(key.kind.resource())?;
        if group.is_empty() { Some(rest) } else { rest.strip_prefix('.')?.strip_prefix(group) }
    };
    let name = || after_kind()?.strip_prefix('/')?.strip_prefix(key.namespace.as_str())?.strip_prefix('/');
    name() == Some(key.name.as_str())
}

/// The members of a mark that somebody looks at, where they stand.
#[derive(Default)]
struct Members<'t> {
    on: Option<Raw<'t>>,
    cluster: Option<Raw<'t>>,
    uid: Option<Raw<'t>>,
    version: Option<Raw<'t>>,
    intent: Option<Raw<'t>>,
    generation: Option<Raw<'t>>,
    made: Option<Raw<'t>>,
    identity: Option<Raw<'t>>,
    kind: Option<Raw<'t>>,
    namespace: Option<Raw<'t>>,
    name: Option<Raw<'t>>,
    owner: Option<Raw<'t>>,
    leave: Option<Raw<'t>>,
    unconfirmed: Option<Raw<'t>>,
    overlay: Option<Raw<'t>>,
}

impl<'t> Members<'t> {
    /// Finds them in one pass: hundreds of thousands of marks are read when a center starts, each of them several times.
    fn of(mark: Raw<'t>) -> Self {
        let mut found = Self::default();
        for (name, value) in mark.members() {
            let member = match &*name {
                "on" => &mut found.on,
                "cluster" => &mut found.cluster,
                "uid" => &mut found.uid,
                "version" => &mut found.version,
                "intent" => &mut found.intent,
                "generation" => &mut found.generation,
                "made" => &mut found.made,
                "identity" => &mut found.identity,
                "kind" => &mut found.kind,
                "namespace" => &mut found.namespace,
                "name" => &mut found.name,
                "owner" => &mut found.owner,
                "leave" => &mut found.leave,
                "unconfirmed" => &mut found.unconfirmed,
                "overlay" => &mut found.overlay,
                _ => continue,
            };
            // Of two by one name the first counts, as everywhere.
            member.get_or_insert(value);
        }
        found
    }
}

/// Reads a mark where it stands.
fn parse(text: &str, on_key: &Key, owner: OwnerId) -> Option<Mark> {
    let members = Members::of(Raw::parse(text.as_bytes()).ok()?);
    let text = |member: Option<Raw<'_>>| member.and_then(Raw::as_str).map(|text| Name::new(&text));
    if !is_on(&members.on?.as_str()?, on_key) {
        return None;
    }
    let says = |member: Option<Raw<'_>>| member.and_then(Raw::as_bool) == Some(true);
    if says(members.overlay) && members.owner?.as_str()? != owner.0.as_str() {
        return None;
    }
    let kind = members.kind.and_then(Raw::as_str).map_or_else(
        || on_key.kind.clone(),
        |kind| {
            let (resource, group) = kind.split_once('.').unwrap_or((&kind, ""));
            KindId::new(group, resource)
        },
    );
    Some(Mark {
        owner,
        origin: Origin {
            key: Key {
                cluster: ClusterId::new(&members.cluster?.as_str()?),
                kind,
                namespace: text(members.namespace).unwrap_or_else(|| on_key.namespace.clone()),
                name: text(members.name).unwrap_or_else(|| on_key.name.clone()),
            },
            uid: Uid::parse(&members.uid?.as_str()?),
            version: Version(members.version?.as_u64()?),
            generation: members.generation.and_then(Raw::as_u64).unwrap_or_default(),
            made_seconds: members.made.and_then(Raw::as_u64),
            identity: text(members.identity),
        },
        intent: members.intent?.as_str()?.parse::<Digest>().ok()?,
        leave: says(members.leave),
        confirmed: !says(members.unconfirmed),
        overlay: says(members.overlay),
    })
}

#[cfg(test)]
mod tests {
    use mailboat_object::digest::digest_of;
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

    #[test]
    fn a_mark_is_written_as_it_always_was() {
        let text = |want: &Want, confirmed| marks().text(want, confirmed);
        let want = want();
        let digest = want.body.digest;
        assert_eq!(
            text(&want, false),
            format!(
                r#"{{"cluster":"center","generation":3,"identity":"3f5a","intent":"{digest}","leave":true,"made":1700000000,"on":"deployments.apps/till/pos","uid":"u-1","unconfirmed":true,"version":7}}"#
            )
        );
        let mut other = want.clone();
        other.policy = Arc::new(Policy { delivery: Delivery::Overlay, ..Policy::plain(Arc::new(marks())) });
        other.origin.key =
            Key { namespace: Name::EMPTY, kind: KindId::new("", "configmaps"), ..key("a\"b", "o") };
        (other.origin.generation, other.origin.made_seconds, other.origin.identity) = (0, None, None);
        assert_eq!(
            text(&other, true),
            format!(
                r#"{{"cluster":"a\"b","intent":"{digest}","kind":"configmaps","name":"o","namespace":"","on":"deployments.apps/till/pos","overlay":true,"owner":"us","uid":"u-1","version":7}}"#
            )
        );
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
    fn a_mark_that_cannot_be_read_is_no_mark() {
        let want = want();
        let mut value: Value = serde_json::from_slice(&marks().write(&want, None).unwrap()).unwrap();
        for broken in ["", "{}", "[]", r#"{"on":"deployments.apps/till/pos"}"#] {
            value["metadata"]["annotations"][MARK_ANNOTATION] = json!(broken);
            let copy = decode(value.to_string().as_bytes(), &want.slot.kind, "pos");
            assert_eq!(marks().read(&copy), Marked::Nobodys, "{broken:?}");
        }
    }
}
