use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::fixtures::{BOAT, CONFIGMAP, DEPLOYMENT, OBJECTS, PODS, decode, mutated_object, value};
use crate::malformed::What;
use crate::{Page, digest_of_value};

static NOWHERE: LazyLock<ClusterId> = LazyLock::new(ClusterId::default);

fn whole(json: &[u8]) -> Object {
    decode(json, Keep::Whole).unwrap_or_else(|error| panic!("{error}"))
}

fn body(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}

/// The body that every test changes a little.
fn thing() -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7"},
        "spec": {"x": 1}, "status": {"y": 2}
    })
}

/// What a body's JSON should be once read: without managedFields, with apiVersion and kind.
fn expected(json: &[u8]) -> Value {
    let mut tree = value(json);
    tree["metadata"].as_object_mut().unwrap().remove("managedFields");
    let members = tree.as_object_mut().unwrap();
    members.entry("apiVersion").or_insert("example.com/v1".into());
    members.entry("kind").or_insert("Thing".into());
    tree
}

#[test]
fn real_objects_are_kept_without_managed_fields_and_with_their_kind() {
    for json in OBJECTS {
        let object = whole(json);
        assert_eq!(value(object.json()), expected(json));
        assert_eq!(object.key.name.as_str(), value(json)["metadata"]["name"]);
        assert_eq!(object.uid.to_string(), value(json)["metadata"]["uid"].as_str().unwrap());
        assert_eq!(object.version.to_string(), value(json)["metadata"]["resourceVersion"].as_str().unwrap());
        assert_eq!(object.generation, value(json)["metadata"]["generation"].as_u64().unwrap_or(0));
        assert!(!object.deleting && object.is_whole());
        assert_eq!(object.status.is_none(), value(json).get("status").is_none());
    }
}

#[test]
fn an_outline_is_what_decoding_the_same_body_finds() {
    let cluster = ClusterId::new("c");
    let kind = KindId::new("example.com", "things");
    let place = Place::in_cluster(&cluster, &kind, "kubectl", Keep::Head);
    for json in OBJECTS {
        let object = Object::decode(json, &place).unwrap();
        let outline = Outline::decode(json, &place).unwrap();
        let expected = Outline {
            uid: object.uid.clone(),
            version: object.version,
            content: object.content,
            hands: object.hands.clone(),
        };
        assert_eq!(outline, expected);
    }
    for refused in [&b"{\"metadata\":{}}"[..], b"[]", b"{\"metadata\":{\"name\":7}}"] {
        assert_eq!(
            Outline::decode(refused, &place).unwrap_err().to_string(),
            Object::decode(refused, &place).map(drop).unwrap_err().to_string()
        );
    }
}

#[test]
fn every_part_is_found_where_it_stands_after_decoding() {
    for json in OBJECTS {
        for keep in [Keep::Whole, Keep::Head, Keep::HeadAndStatus] {
            let object = decode(json, keep).unwrap();
            let tree = expected(json);
            let metadata = &tree["metadata"];
            for (member, kept) in object.get(&["metadata"]).unwrap().to_value().as_object().unwrap() {
                assert_eq!(*kept, metadata[member], "{member} with {keep:?}");
            }
            for (map, found) in [
                ("labels", object.labels().collect::<Vec<_>>()),
                ("annotations", object.annotations().collect::<Vec<_>>()),
            ] {
                let wanted = metadata.get(map).and_then(Value::as_object);
                assert_eq!(found.len(), wanted.map_or(0, serde_json::Map::len), "{map} with {keep:?}");
                for (key, text) in found {
                    assert_eq!(metadata[map][&*key], *text, "{map} with {keep:?}");
                }
            }
            let status = object.status_json().map(value);
            assert_eq!(status.as_ref(), tree.get("status").filter(|_| keep != Keep::Head), "{keep:?}");
            assert_eq!(object.get(&["spec"]).is_some(), keep == Keep::Whole && tree.get("spec").is_some());
            assert_eq!(object.kind_name(), tree["kind"].as_str().unwrap());
            assert_eq!(object.api_version(), tree["apiVersion"].as_str().unwrap());
        }
    }
}

#[test]
fn a_head_is_apart_from_its_body_and_keeps_the_digests_of_the_whole() {
    for json in OBJECTS {
        let (all, head) = (whole(json), decode(json, Keep::Head).unwrap());
        assert_eq!((head.content, head.status), (all.content, all.status));
        let mut members: Vec<_> = value(head.json()).as_object().unwrap().keys().cloned().collect();
        members.sort();
        assert_eq!(members, ["apiVersion", "kind", "metadata"]);
        assert!(!head.is_whole());
        assert_eq!(head.edit().unwrap_err(), HeadOnly(head.key.clone()));
        let with_status = decode(json, Keep::HeadAndStatus).unwrap();
        assert_eq!(with_status.status_json().map(value).as_ref(), value(json).get("status"));
        assert_eq!(with_status.json(), head.json(), "the status is beside the head");
    }
}

#[test]
fn less_of_a_whole_object_is_what_would_have_been_kept_of_its_body() {
    for json in OBJECTS {
        for keep in [Keep::Whole, Keep::Head, Keep::HeadAndStatus] {
            let (less, decoded) = (whole(json).kept(keep), decode(json, keep).unwrap());
            assert_eq!(value(less.json()), value(decoded.json()), "{keep:?}");
            assert_eq!(format!("{less:?}"), format!("{decoded:?}"), "{keep:?}");
            for path in [&["metadata"][..], &["metadata", "labels"], &["status"], &["spec"]] {
                let at = |object: &Object| object.get(path).map(crate::json::Raw::to_value);
                assert_eq!(at(&less), at(&decoded), "{path:?} with {keep:?}");
            }
            assert!(less.labels().eq(decoded.labels()) && less.annotations().eq(decoded.annotations()));
            assert_eq!(less.status_json().map(value), decoded.status_json().map(value));
            assert_eq!(less.kept(Keep::Whole).json(), less.json(), "what was let go of stays so");
            assert_eq!(value(less.kept(Keep::Head).json()), value(whole(json).kept(Keep::Head).json()));
        }
    }
}

/// A copy in a mailbox, as a view shows it.
fn copy(edge: u32, source: u32) -> Object {
    let json = json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {
            "name": "a", "namespace": "n", "uid": format!("f99e773f-3db2-439e-8054-8{edge:011}"),
            "resourceVersion": edge.to_string(), "generation": edge, "creationTimestamp": "2026-11-15T00:00:00Z",
            "labels": { "owner": "us" }, "annotations": { "kcp.io/cluster": format!("edge-{edge}"), "mark": source.to_string(),
                "mailboat.dev/mark": format!("things.example.com/n/a,center,u-{source},7,0f,in=edge-{edge}") },
            "finalizers": ["f"],
        },
    });
    let (cluster, kind) = (ClusterId::new(&format!("edge-{edge}")), KindId::new("example.com", "things"));
    Object::decode(json.to_string().as_bytes(), &Place::in_cluster(&cluster, &kind, "", Keep::Head)).unwrap()
}

#[test]
fn copies_of_one_source_share_the_text_of_their_heads() {
    let copies: Vec<_> = (0..1_000).map(|number| copy(number / 20, number % 20)).collect();
    let texts: std::collections::BTreeSet<_> = copies.iter().map(|copy| copy.json().as_ptr()).collect();
    // Two texts that fall on one place with a third are kept more than once.
    assert!(texts.len() < 100, "{} texts for the copies of 20 sources", texts.len());
    assert_eq!(copies[45].annotation("mark").as_deref(), Some("5"));
    assert_eq!(copies[45].label("owner").as_deref(), Some("us"));
    assert_eq!(copies[45].created_seconds(), Some(1_794_700_800));
    assert!(copies[45].finalizers().eq(["f"]));
    assert!(copies[45].footprint_bytes() < size_of::<Object>() + 40);
}

/// A copy in a cluster, with the mark that it was given in another or in this one.
fn marked(cluster: &str, mark: &str) -> Vec<u8> {
    body(&json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": { "name": "a", "namespace": "n", "uid": cluster, "resourceVersion": "7",
            "annotations": { "kcp.io/cluster": cluster, "mailboat.dev/mark": mark, "note": format!("x,in={cluster}") } },
    }))
}

#[test]
fn a_head_keeps_of_a_mark_no_cluster_but_another_than_its_own() {
    let kind = KindId::new("example.com", "things");
    let place =
        |keep| Place { cluster: ClusterOf::Annotated, keep, ..Place::in_cluster(&NOWHERE, &kind, "", keep) };
    let said = "things.example.com/n/a,center,u-1,7,0f,in=edge-1,made=17";
    let table = [
        ("edge-1", said, "things.example.com/n/a,center,u-1,7,0f,made=17"),
        ("edge-2", said, said),
        ("edge", said, said),
        ("edge-1", "things/n/a,center,u-1,7,0f,in=edge-1", "things/n/a,center,u-1,7,0f"),
        ("edge-1", "things/n/a,center,u-1,7,0f", "things/n/a,center,u-1,7,0f"),
    ];
    for (cluster, mark, kept) in table {
        let json = marked(cluster, mark);
        let whole = Object::decode(&json, &place(Keep::Whole)).unwrap();
        assert_eq!(whole.annotation(MARK_ANNOTATION).as_deref(), Some(mark), "in {cluster}");
        for head in [Object::decode(&json, &place(Keep::Head)).unwrap(), whole.kept(Keep::Head)] {
            assert_eq!(head.annotation(MARK_ANNOTATION).as_deref(), Some(kept), "in {cluster}");
            assert_eq!(head.annotation("note"), Some(format!("x,in={cluster}").into()));
        }
    }
}

#[test]
fn the_cut_leaves_valid_json_wherever_managed_fields_stand() {
    let fields = r#""managedFields":[{"manager":"x","operation":"Update"}]"#;
    for metadata in [
        format!(r#"{{{fields},"name":"a","labels":{{"k":"v"}}}}"#),
        format!(r#"{{"name":"a",{fields},"labels":{{"k":"v"}}}}"#),
        format!(r#"{{"name":"a","labels":{{"k":"v"}},{fields}}}"#),
        format!("{{ {fields} ,\n \"name\" : \"a\" ,\n \"labels\" : {{\"k\":\"v\"}} }}"),
        format!("{{ \"labels\" : {{\"k\":\"v\"}} , \"name\" : \"a\"\n , {fields}\n }}"),
    ] {
        for json in [
            format!(r#"{{"metadata":{metadata},"spec":1,"status":{{"s":1}}}}"#),
            format!(r#" {{ "status":{{"s":1}} , "spec":1, "metadata":{metadata} }} "#),
        ] {
            for keep in [Keep::Whole, Keep::HeadAndStatus] {
                let object = decode(json.as_bytes(), keep).unwrap();
                let metadata = match keep {
                    Keep::Whole => json!({"name": "a", "labels": {"k": "v"}}),
                    _ => json!({"labels": {"k": "v"}}),
                };
                assert_eq!(value(object.json())["metadata"], metadata, "{json}");
                assert_eq!(object.label("k").as_deref(), Some("v"), "{json}");
                assert_eq!(object.status_json(), Some(&br#"{"s":1}"#[..]), "{json}");
                assert_eq!(object.hands.other.as_ref().unwrap().manager.as_str(), "x");
            }
        }
    }
    let alone = decode(br#"{"metadata":{"managedFields":[]}}"#, Keep::Whole).unwrap_err();
    assert_eq!(alone.what, What::NoName);
}

#[test]
fn our_own_hand_and_the_last_other_one_stay_of_managed_fields() {
    let boat = whole(BOAT);
    let tree = value(BOAT);
    let ours = &tree["metadata"]["managedFields"][0]["fieldsV1"];
    assert_eq!(boat.hands.ours, digest_of_value(ours));
    let other = boat.hands.other.as_ref().unwrap();
    assert_eq!(
        (other.manager.as_str(), other.operation, other.subresource.as_str()),
        ("kubectl-label", Operation::Update, "")
    );
    assert_eq!(Some(other.at_seconds), unix_seconds("2026-11-15T21:09:39Z"));
    let deployment = whole(DEPLOYMENT);
    assert_eq!(deployment.hands.ours, Digest::NONE);
    assert_eq!(deployment.hands.other.as_ref().unwrap().manager.as_str(), "kubectl-client-side-apply");
}

#[test]
fn among_writers_the_latest_counts_and_our_own_updates_are_nobodys() {
    let with = |fields: Value| {
        let mut thing = thing();
        thing["metadata"]["managedFields"] = fields;
        whole(&body(&thing)).hands
    };
    let entry = |manager: &str, operation: &str, time: &str, subresource: &str| {
        json!({"manager": manager, "operation": operation, "time": time, "subresource": subresource,
               "fieldsV1": {"f:spec": {"f:x": {}}}})
    };
    let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    let latest = with(json!([entry("b", "Update", late, ""), entry("a", "Apply", early, "")]));
    assert_eq!(latest.other.unwrap().manager.as_str(), "b");
    let tie = with(json!([entry("b", "Update", late, ""), entry("a", "Apply", late, "")])).other.unwrap();
    assert_eq!((tie.manager.as_str(), tie.operation), ("a", Operation::Apply));
    let ours = with(json!([
        entry("mailboat-syncer", "Update", late, ""),
        entry("mailboat-syncer", "Apply", late, "status")
    ]));
    let at = unix_seconds(late).unwrap();
    assert_eq!(
        ours,
        Hands { ours_at_seconds: at, ..Hands::default() },
        "an update owns nothing that we apply"
    );
    let status =
        with(json!([entry("b", "Update", early, ""), entry("controller", "Update", late, "status")]));
    assert_eq!(status.other.unwrap().manager.as_str(), "b", "a writer of status hides no writer of content");
    let scaled = with(json!([entry("b", "Update", early, ""), entry("scaler", "Update", late, "scale")]));
    assert_eq!(scaled.other.unwrap().subresource.as_str(), "scale");
    let applied = with(json!([entry("mailboat-syncer", "Apply", late, "")]));
    assert_eq!(applied.ours, digest_of_value(&json!({"f:spec": {"f:x": {}}})));
    let odd = with(json!([{"manager": "q\"uote", "operation": null, "time": 7, "subresource": null}]))
        .other
        .unwrap();
    assert_eq!((odd.manager.as_str(), odd.at_seconds, odd.subresource.as_str()), ("q\"uote", 0, ""));
    assert_eq!(with(json!(null)), Hands::default());
    assert_eq!(with(json!([])), Hands::default());
}

#[test]
fn what_does_not_travel_does_not_count_and_everything_else_does() {
    let base = whole(&body(&thing()));
    let changed = |path: &str, new: Value| {
        let mut thing = thing();
        let mut at = &mut thing;
        for segment in path.split('.') {
            at = &mut at[segment.replace('~', ".")];
        }
        *at = new;
        whole(&body(&thing))
    };
    for (path, new) in [
        ("metadata.uid", json!("v")),
        ("metadata.resourceVersion", json!("8")),
        ("metadata.generation", json!(3)),
        ("metadata.creationTimestamp", json!("2026-01-01T00:00:00Z")),
        ("metadata.deletionTimestamp", json!("2026-01-01T00:00:00Z")),
        ("metadata.finalizers", json!(["f"])),
        ("metadata.ownerReferences", json!([{"uid": "o"}])),
        ("metadata.managedFields", json!([{"manager": "m"}])),
        ("metadata.selfLink", json!("/x")),
        ("metadata.labels", json!({})),
        ("metadata.annotations", json!(null)),
        ("metadata.labels", json!({"claimed.internal.apis.kcp.io/x": "y"})),
        ("metadata.annotations", json!({"kcp.io/cluster": "c", "deployment.kubernetes.io/revision": "4"})),
        ("status", json!({"y": 3})),
    ] {
        let object = changed(path, new);
        assert_eq!(object.content, base.content, "{path}");
        assert_eq!(object.status == base.status, path != "status", "{path}");
    }
    for (path, new) in [
        ("metadata.name", json!("b")),
        ("metadata.namespace", json!("m")),
        ("metadata.labels", json!({"k": "v"})),
        ("metadata.annotations", json!({"k": "v"})),
        ("metadata.somethingNew", json!(1)),
        ("apiVersion", json!("example.com/v2")),
        ("kind", json!("Other")),
        ("spec.x", json!(2)),
        ("data", json!(null)),
    ] {
        assert_ne!(changed(path, new).content, base.content, "{path}");
    }
    assert_ne!(
        changed("metadata.labels", json!({"k": "v"})).content,
        changed("metadata.annotations", json!({"k": "v"})).content
    );
}

#[test]
fn an_item_of_a_list_equals_the_same_object_by_itself() {
    let mut thing = thing();
    let alone = whole(&body(&thing));
    thing.as_object_mut().unwrap().remove("apiVersion");
    thing.as_object_mut().unwrap().remove("kind");
    let item = whole(&body(&thing));
    assert_eq!(item.content, alone.content);
    assert!(item.json().starts_with(br#"{"apiVersion":"example.com/v1","kind":"Thing","#), "{item:?}");
    let head = decode(&body(&thing), Keep::Head).unwrap();
    assert_eq!(value(head.json())["kind"], "Thing");
}

#[test]
fn a_body_from_a_view_tells_its_cluster() {
    let kind = KindId::new("", "configmaps");
    let place = Place {
        cluster: ClusterOf::Annotated,
        kind: &kind,
        api_version: "v1",
        kind_name: "ConfigMap",
        manager: "",
        keep: Keep::Whole,
        limits: Limits::default(),
    };
    let mut thing = thing();
    thing["metadata"]["annotations"] = json!({"kcp.io/cluster": "2sxa8riw5xha32po"});
    let object = Object::decode(&body(&thing), &place).unwrap();
    assert_eq!(object.key.to_string(), "2sxa8riw5xha32po|configmaps n/a");
    assert_eq!(object.annotation("kcp.io/cluster").as_deref(), Some("2sxa8riw5xha32po"));
    thing["metadata"]["annotations"] = json!({});
    let malformed = Object::decode(&body(&thing), &place).unwrap_err();
    assert_eq!((malformed.what, malformed.key), (What::NoCluster, None));
}

#[test]
fn what_stands_in_metadata_is_found() {
    let boat = whole(BOAT);
    assert_eq!(boat.finalizers().collect::<Vec<_>>(), ["sea.example/anchor"]);
    assert_eq!(boat.created_seconds(), unix_seconds("2026-11-15T21:09:38Z"));
    assert_eq!(boat.deleted_seconds(), None);
    assert_eq!(boat.get(&["spec", "big"]).and_then(Raw::as_u64), Some(9_007_199_254_740_993));
    let page = Page::parse(PODS, Limits::default()).unwrap();
    let pod = whole(page.items().last().unwrap());
    let owners: Vec<_> = pod.owner_references().collect();
    assert_eq!(owners.len(), 1);
    assert_eq!((&*owners[0].api_version, &*owners[0].kind), ("apps/v1", "ReplicaSet"));
    let note = whole(CONFIGMAP).annotation("note").unwrap().into_owned();
    assert_eq!(note, "a \"quoted\" <b>&</b> note\nwith ünïcödé 🚢");
    let mut leaving = thing();
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let leaving = whole(&body(&leaving));
    assert!(leaving.deleting);
    assert_eq!(leaving.deleted_seconds(), Some(1_767_225_600));
}

/// A malformed body: the JSON, what is wrong, under which path, and whether the object could still be named.
#[test]
fn a_body_that_cannot_be_read_says_where_and_why_and_whose_it_is() {
    let deep = format!(r#"{{"metadata":{{"name":"a"}},"spec":{}}}"#, "[".repeat(200));
    let late = r#"{"spec":{"x":tru},"metadata":{"name":"a"}}"#;
    for (json, what, path, named) in [
        (r#"[{"metadata":{"name":"a"}}]"#, What::Expected("an object"), "", false),
        ("", What::Expected("an object"), "", false),
        ("\"text\"", What::Expected("an object"), "", false),
        (r#"{"metadata":[]}"#, What::Expected("an object"), "metadata", false),
        (r#"{"spec":{}}"#, What::NoName, "", false),
        (r#"{"metadata":{"namespace":"n"}}"#, What::NoName, "metadata", false),
        (r#"{"metadata":{"name":""}}"#, What::NoName, "metadata", false),
        (r#"{"metadata":{"name":7}}"#, What::Expected("a string"), "metadata.name", false),
        (
            r#"{"metadata":{"resourceVersion":"x7","name":"a"}}"#,
            What::ResourceVersion,
            "metadata.resourceVersion",
            true,
        ),
        (
            r#"{"metadata":{"resourceVersion":"-7","name":"a"}}"#,
            What::ResourceVersion,
            "metadata.resourceVersion",
            true,
        ),
        (
            r#"{"metadata":{"resourceVersion":"99999999999999999999","name":"a"}}"#,
            What::ResourceVersion,
            "metadata.resourceVersion",
            true,
        ),
        (
            r#"{"metadata":{"resourceVersion":7,"name":"a"}}"#,
            What::Expected("a string"),
            "metadata.resourceVersion",
            true,
        ),
        (
            r#"{"metadata":{"labels":{"x":1},"name":"a"}}"#,
            What::Expected("a string"),
            "metadata.labels.x",
            true,
        ),
        (
            r#"{"metadata":{"labels":["x"],"name":"a"}}"#,
            What::Expected("a map of strings"),
            "metadata.labels",
            true,
        ),
        (
            r#"{"metadata":{"generation":-1,"name":"a"}}"#,
            What::Expected("a whole number"),
            "metadata.generation",
            true,
        ),
        (
            r#"{"metadata":{"managedFields":{},"name":"a"}}"#,
            What::Expected("an array"),
            "metadata.managedFields",
            false,
        ),
        (r#"{"metadata":{"name":"a"},"kind":1}"#, What::Expected("a string"), "kind", true),
        (r#"{"metadata":{"name":"a"},"spec":{"x":1,"x":2}}"#, What::Duplicate, "spec.x", true),
        (r#"{"metadata":{"name":"a","name":"b"}}"#, What::Duplicate, "metadata.name", false),
        (r#"{"metadata":{"name":"a"},"metadata":{"name":"b"}}"#, What::Duplicate, "metadata", true),
        (r#"{"metadata":{"name":"a"},"spec":{"x":tru}}"#, What::Unexpected, "spec.x", true),
        (r#"{"metadata":{"name":"a"},"spec":{"x":"#, What::Ends, "spec.x", true),
        (r#"{"metadata":{"name":"a"}} {}"#, What::Trailing, "", true),
        (late, What::Unexpected, "spec.x", false),
        (&deep, What::TooDeep { limit: 100 }, "spec[0][0][0][0][0][0][0][0][0]…", true),
    ] {
        let malformed = decode(json.as_bytes(), Keep::Whole).unwrap_err();
        let seen = (malformed.what, malformed.path.as_str(), malformed.key.is_some());
        assert_eq!(seen, (what, path, named), "{json}\n{malformed}");
        assert!(malformed.at <= json.len());
    }
    let malformed = decode(b"{\"metadata\":{\"name\":\"a\"},\"spec\":\"\xff\"}", Keep::Whole).unwrap_err();
    assert_eq!((malformed.at, malformed.path.as_str(), malformed.what), (33, "spec", What::NotUtf8));
    assert!(malformed.key.is_some(), "{malformed}");
}

#[test]
fn a_body_that_is_too_large_names_the_limit_and_the_object() {
    let cluster = ClusterId::new("north");
    let kind = KindId::new("", "things");
    let place = Place {
        cluster: ClusterOf::One(&cluster),
        kind: &kind,
        api_version: "v1",
        kind_name: "Thing",
        manager: "",
        keep: Keep::Whole,
        limits: Limits { bytes: 50, depth: 3 },
    };
    let malformed =
        Object::decode(br#"{"spec":{"secret":"swordfish"},"metadata":{"name":"a"}}"#, &place).unwrap_err();
    assert_eq!(malformed.what, What::TooLarge { limit: 50 });
    assert_eq!(malformed.key.as_ref().unwrap().name.as_str(), "a");
    let sentence = malformed.to_string();
    assert_eq!(
        sentence,
        "the body of north|things a cannot be read at byte 50 (metadata.name): it is larger than the limit of 50 bytes"
    );
    let malformed = Object::decode(br#"{"metadata":{"name":"a"},"s":[[[[1]]]]}"#, &place).unwrap_err();
    assert_eq!(malformed.what, What::TooDeep { limit: 3 });
}

#[test]
fn an_object_is_small_and_shows_no_value() {
    assert!(size_of::<Object>() <= 184, "{} bytes", size_of::<Object>());
    let object = whole(br#"{"metadata":{"name":"a"},"data":{"password":"swordfish"}}"#);
    assert!(!format!("{object:?}").contains("swordfish"), "{object:?}");
}

proptest! {
    #[test]
    fn no_bytes_make_decoding_panic(json in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode(&json, Keep::Whole);
    }

    #[test]
    fn a_mutated_object_is_refused_or_read_right(json in mutated_object()) {
        for keep in [Keep::Whole, Keep::Head, Keep::HeadAndStatus] {
            match decode(&json, keep) {
                Ok(object) => {
                    let tree = expected(&json);
                    let kept = value(object.json());
                    if keep == Keep::Whole {
                        prop_assert_eq!(&kept, &tree);
                    }
                    for (member, kept) in kept["metadata"].as_object().into_iter().flatten() {
                        if member != "annotations" {
                            prop_assert_eq!(kept, &tree["metadata"][member]);
                        }
                    }
                    let less = whole(&json).kept(keep);
                    prop_assert_eq!(less.json(), object.json());
                    for (key, label) in object.labels() {
                        prop_assert_eq!(&tree["metadata"]["labels"][&*key], &*label);
                    }
                }
                Err(malformed) => prop_assert!(malformed.at <= json.len(), "{}", malformed),
            }
        }
    }
}
