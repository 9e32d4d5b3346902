use serde_json::{Value, json};

use super::*;
use crate::fixtures::{BOAT, CONFIGMAP, DEPLOYMENT, OBJECTS, decode, value};
use crate::object::{Keep, Object};
use crate::travel::{annotation_travels, label_travels, metadata_member_travels};

fn whole(json: &[u8]) -> Object {
    decode(json, Keep::Whole).unwrap_or_else(|error| panic!("{error}"))
}

fn finished(edit: &Edit<'_>) -> Value {
    value(&edit.finish().unwrap().json)
}

/// The same as stripping, on a tree.
fn stripped(json: &[u8]) -> Value {
    let mut tree = value(json);
    let metadata = tree["metadata"].as_object_mut().unwrap();
    metadata.retain(|name, _| metadata_member_travels(name));
    for (map, travels) in [("labels", label_travels as fn(&str) -> bool), ("annotations", annotation_travels)]
    {
        if let Some(texts) = metadata.get_mut(map).and_then(Value::as_object_mut) {
            texts.retain(|key, _| travels(key));
            if texts.is_empty() {
                metadata.remove(map);
            }
        }
    }
    tree
}

#[test]
fn an_edit_that_changes_nothing_gives_the_same_content() {
    for json in OBJECTS {
        let object = whole(json);
        let edited = object.edit().unwrap().finish().unwrap();
        assert_eq!(value(&edited.json), value(object.json()));
        assert_eq!(edited.content, object.content);
    }
}

#[test]
fn stripping_leaves_behind_what_does_not_travel() {
    for json in OBJECTS {
        let object = whole(json);
        let mut edit = object.edit().unwrap();
        let edited = edit.strip().finish().unwrap();
        assert_eq!(value(&edited.json), stripped(object.json()));
        assert_eq!(edited.content, object.content, "what does not travel does not count either");
        assert_eq!(whole(&edited.json).content, edited.content);
    }
}

#[test]
fn only_the_members_in_question_change() {
    let object = whole(DEPLOYMENT);
    let mut edit = object.edit().unwrap();
    edit.strip()
        .remove_status()
        .set_name("pos")
        .set_namespace("shop")
        .set_api_version("core.denatured/v1")
        .set_kind("X");
    edit.set_label("mailboat.dev/owner", "north").set_label("app", "other").remove_annotation("missing");
    edit.set_annotation("quoted \"key\"", "a\nb");
    let mut wanted = stripped(object.json());
    wanted.as_object_mut().unwrap().remove("status");
    wanted["apiVersion"] = json!("core.denatured/v1");
    wanted["kind"] = json!("X");
    wanted["metadata"]["name"] = json!("pos");
    wanted["metadata"]["namespace"] = json!("shop");
    wanted["metadata"]["labels"] = json!({"app": "other", "mailboat.dev/owner": "north"});
    wanted["metadata"]["annotations"] = json!({"quoted \"key\"": "a\nb"});
    assert_eq!(finished(&edit), wanted);
    let edited = edit.finish().unwrap();
    let text = String::from_utf8(edited.json.to_vec()).unwrap();
    let spec = object.get(&["spec"]).unwrap().json();
    assert!(text.contains(spec), "the spec was not copied as it is: {text}");
}

#[test]
fn maps_without_texts_go_and_come() {
    let object = whole(br#"{"metadata":{"name":"a","labels":{"x":"1"}}}"#);
    let mut edit = object.edit().unwrap();
    edit.remove_label("x").set_annotation("y", "2");
    let wanted = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a", "annotations": {"y": "2"}}});
    assert_eq!(finished(&edit), wanted);
    edit.set_label("x", "3");
    assert_eq!(finished(&edit)["metadata"]["labels"], json!({"x": "3"}));
    edit.remove(&["metadata", "labels"]).unwrap();
    assert_eq!(finished(&edit)["metadata"].get("labels"), None);
    edit.set(&["metadata", "labels"], json!({"z": "4"})).unwrap();
    assert_eq!(finished(&edit)["metadata"]["labels"], json!({"z": "4"}));
    edit.set_namespace("n");
    assert_eq!(finished(&edit)["metadata"]["namespace"], "n");
    edit.set_namespace("");
    assert_eq!(finished(&edit)["metadata"].get("namespace"), None);
}

#[test]
fn what_is_set_stays_although_it_would_not_travel() {
    let object = whole(BOAT);
    let mut edit = object.edit().unwrap();
    edit.set(&["metadata", "uid"], json!("u-1")).unwrap().strip();
    edit.set_annotation("kcp.io/cluster", "c");
    let edited = finished(&edit);
    assert_eq!(edited["metadata"]["uid"], "u-1");
    assert_eq!(edited["metadata"]["annotations"]["kcp.io/cluster"], "c");
    assert_eq!(edited["metadata"].get("resourceVersion"), None);
    assert_eq!(edited["metadata"].get("finalizers"), None);
}

#[test]
fn paths_reach_into_members_and_make_what_is_missing() {
    let object = whole(DEPLOYMENT);
    let mut edit = object.edit().unwrap();
    edit.set(&["spec", "replicas"], json!(7)).unwrap();
    edit.set(&["spec", "template", "spec", "containers", "0", "image"], json!("other:2")).unwrap();
    edit.set(&["new", "deep", "member"], json!([1])).unwrap();
    edit.remove(&["spec", "template", "spec", "containers", "1"]).unwrap();
    edit.remove(&["spec", "template", "spec", "not", "there"]).unwrap();
    edit.remove(&["status"]).unwrap();
    edit.set(&["metadata", "annotations", "k"], json!("v")).unwrap();
    let mut wanted = value(object.json());
    wanted["spec"]["replicas"] = json!(7);
    wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!("other:2");
    wanted["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap().remove(1);
    wanted["new"] = json!({"deep": {"member": [1]}});
    wanted.as_object_mut().unwrap().remove("status");
    wanted["metadata"]["annotations"]["k"] = json!("v");
    assert_eq!(finished(&edit), wanted);
}

#[test]
fn a_path_that_cannot_be_followed_says_where() {
    let object = whole(DEPLOYMENT);
    let mut edit = object.edit().unwrap();
    for (path, sentence) in [
        (&["spec", "replicas", "x"][..], "spec.replicas: it is neither a map nor an array"),
        (
            &["spec", "template", "spec", "containers", "9", "image"],
            "spec.template.spec.containers.9: the array has no such element",
        ),
        (&["metadata"], "metadata: an object is changed member by member"),
        (&[], ": an object is changed member by member"),
        (&["metadata", "labels"], "metadata.labels: it must be a map of strings"),
        (&["metadata", "labels", "x"], "metadata.labels.x: it must be a string"),
    ] {
        let error = edit.set(path, json!(1)).unwrap_err();
        assert_eq!(error.to_string(), sentence);
    }
    assert_eq!(finished(&edit), value(object.json()), "a failed change changed something");
}

#[test]
fn a_member_is_replaced_by_json_from_elsewhere() {
    let (copy, source) = (whole(CONFIGMAP), whole(BOAT));
    let mut edit = copy.edit().unwrap();
    edit.replace("data", source.get(&["spec"]).unwrap()).unwrap();
    edit.replace("status", source.get(&["status"]).unwrap()).unwrap();
    assert!(edit.replace("metadata", source.root()).is_err());
    let edited = finished(&edit);
    assert_eq!((&edited["data"], &edited["status"]), (&value(BOAT)["spec"], &value(BOAT)["status"]));
    edit.set(&["data", "length"], json!(3)).unwrap();
    assert_eq!(finished(&edit)["data"]["length"], 3);
    assert_eq!(finished(&edit)["data"]["name"], "Mary");
}

#[test]
fn the_same_edit_gives_the_same_bytes_whatever_the_order_of_its_calls() {
    let object = whole(BOAT);
    let mut one = object.edit().unwrap();
    one.set_label("b", "1").set_label("a", "2").set_annotation("z", "3").set(&["x"], json!(1)).unwrap();
    let mut other = object.edit().unwrap();
    other.set(&["x"], json!(1)).unwrap().set_annotation("z", "3").set_label("a", "2").set_label("b", "1");
    assert_eq!(one.finish().unwrap(), other.finish().unwrap());
}

#[test]
fn what_was_set_too_deep_is_refused() {
    let object = whole(BOAT);
    let mut edit = object.edit().unwrap();
    let deep = (0..200).fold(json!(1), |value, _| json!([value]));
    edit.set(&["spec"], deep).unwrap();
    assert!(matches!(edit.finish().unwrap_err().what, crate::What::TooDeep { .. }));
}

#[test]
fn debug_output_shows_no_value() {
    let object = whole(BOAT);
    let mut edit = object.edit().unwrap();
    edit.set_annotation("password", "swordfish").set(&["data", "x"], json!("swordfish")).unwrap();
    let shown = format!("{edit:?} {:?}", edit.finish().unwrap());
    assert!(shown.contains("password") && !shown.contains("swordfish"), "{shown}");
}

#[test]
fn the_json_alone_is_the_same() {
    let object =
        whole(br#"{"kind":"Boat","metadata":{"name":"a","labels":{"x":"1"}},"spec":{"deep":[1,2]}}"#);
    let mut edit = object.edit().unwrap();
    edit.set_annotation("note", "a \"quoted\" word\n").set_label("y", "2");
    assert_eq!(edit.to_json(), edit.finish().unwrap().json);
}
