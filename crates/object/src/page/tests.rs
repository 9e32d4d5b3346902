use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::fixtures::{BOATS_WATCH, CLUSTERROLES, NOT_FOUND, PODS, any_value, value};

#[test]
fn a_real_page_is_read_into_its_items() {
    let page = Page::parse(CLUSTERROLES, Limits::default()).unwrap();
    let tree = value(CLUSTERROLES);
    assert_eq!(page.version, Some(Version(263)));
    assert_eq!(page.remaining, Some(64));
    assert_eq!(page.continue_token.as_deref(), tree["metadata"]["continue"].as_str());
    assert_eq!(Page::peek_continue(CLUSTERROLES), page.continue_token);
    assert_eq!((&*page.kind, &*page.api_version), ("ClusterRoleList", "rbac.authorization.k8s.io/v1"));
    let items: Vec<Value> = page.items().map(value).collect();
    assert_eq!(Value::from(items), tree["items"]);
    let last = Page::parse(PODS, Limits::default()).unwrap();
    assert_eq!((last.continue_token, last.remaining, last.items.len()), (None, None, 4));
}

#[test]
fn one_bad_item_harms_only_itself() {
    let json = br#"{"metadata":{"resourceVersion":"5"},"items":[{"a":1},{"b":tru,"c":"}\"]"},{"d":[]}]}"#;
    let page = Page::parse(json, Limits::default()).unwrap();
    let items: Vec<_> = page.items().collect();
    assert_eq!(items, [&br#"{"a":1}"#[..], br#"{"b":tru,"c":"}\"]"}"#, br#"{"d":[]}"#]);
}

#[test]
fn lists_without_items_are_empty_and_other_bodies_are_no_lists() {
    for json in
        [r#"{"items":null,"metadata":{}}"#, r#" { "metadata" : { "continue" : "" } , "items" : [ ] } "#]
    {
        let page = Page::parse(json.as_bytes(), Limits::default()).unwrap();
        assert_eq!((page.items().len(), &page.continue_token, page.version), (0, &None, None), "{json}");
        assert_eq!(Page::peek_continue(json.as_bytes()), None, "{json}");
    }
    for (json, what) in [
        ("", What::Ends),
        ("[]", What::Expected("an object")),
        ("{}", What::Expected("a list, with items")),
        (r#"{"kind":"Status","code":500}"#, What::Expected("a list, with items")),
        (r#"{"items":{}}"#, What::Expected("an array")),
        (r#"{"items":[{"a":1}"#, What::Ends),
        (r#"{"items":[{"a":1},]}"#, What::Unexpected),
        (r#"{"items":[] "metadata":{}}"#, What::Unexpected),
        (r#"{"items":[]}x"#, What::Trailing),
        (r#"{"metadata":{"resourceVersion":"a"},"items":[]}"#, What::ResourceVersion),
        (r#"{"metadata":{"resourceVersion":"1},"items":[]}"#, What::Ends),
    ] {
        let malformed = Page::parse(json.as_bytes(), Limits::default()).unwrap_err();
        assert_eq!(malformed.what, what, "{json}: {malformed}");
    }
    let malformed = Page::parse(PODS, Limits { bytes: 100, depth: 9 }).unwrap_err();
    assert_eq!(malformed.what, What::TooLarge { limit: 100 });
}

#[test]
fn the_lines_of_a_real_watch_are_read() {
    let events: Vec<_> = BOATS_WATCH.lines().map(|line| Event::parse(line.as_bytes()).unwrap()).collect();
    let Event::Added(boat) = events[0] else { panic!("{:?}", events[0]) };
    assert_eq!(value(boat)["metadata"]["name"], "mary");
    assert_eq!(events[1], Event::Bookmark { version: Version(263), initial_events_end: true });
    let Event::Error { code: 410, reason, message } = &events[2] else { panic!("{:?}", events[2]) };
    assert_eq!((&**reason, &**message), ("Expired", "too old resource version: 1 (259)"));
    assert_eq!(events.len(), 3);
}

#[test]
fn every_type_of_line_is_told_apart() {
    let object = br#"{"x":[1]}"#;
    for (line, event) in [
        (r#"{"type":"ADDED","object":{"x":[1]}}"#, Event::Added(object)),
        (r#"{"type":"MODIFIED","object":{"x":[1]}}"#, Event::Modified(object)),
        (r#"{ "object" : {"x":[1]} , "type" : "DELETED" }"#, Event::Deleted(object)),
        (
            r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}"#,
            Event::Bookmark { version: Version(9), initial_events_end: false },
        ),
    ] {
        assert_eq!(Event::parse(line.as_bytes()).unwrap(), event, "{line}");
    }
    for (line, what) in [
        ("", What::Ends),
        ("{}", What::Expected("a watch event, with type and object")),
        (r#"{"type":"ADDED"}"#, What::Expected("a watch event, with type and object")),
        (r#"{"type":"RENAMED","object":{}}"#, What::Expected("the type of a watch event")),
        (r#"{"type":"ADDED","object":{"a"#, What::Ends),
        (r#"{"type":"BOOKMARK","object":{"metadata":{}}}"#, What::ResourceVersion),
        (r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"x"}}}"#, What::ResourceVersion),
    ] {
        let malformed = Event::parse(line.as_bytes()).unwrap_err();
        assert_eq!(malformed.what, what, "{line}: {malformed}");
    }
}

#[test]
fn a_status_is_read_with_its_details() {
    let status = StatusBody::parse(NOT_FOUND).unwrap();
    assert_eq!((status.code, status.reason.as_str()), (404, "NotFound"));
    assert_eq!((status.details.name.as_str(), status.details.kind.as_str()), ("none", "pods"));
    let invalid = br#"{"kind":"Status","status":"Failure","reason":"Invalid","code":422,"details":{"group":"apps",
        "retryAfterSeconds":5,"causes":[{"reason":"FieldValueRequired","message":"needed","field":"spec.x"}]}}"#;
    let details = StatusBody::parse(invalid).unwrap().details;
    assert_eq!((details.group.as_str(), details.retry_after_seconds), ("apps", Some(5)));
    assert_eq!(details.causes[0].field, "spec.x");
    for json in [&b"404 page not found\n"[..], b"{}", b"<html>", br#"{"kind":"Pod"}"#] {
        assert_eq!(StatusBody::parse(json), None, "{}", String::from_utf8_lossy(json));
    }
}

proptest! {
    #[test]
    fn any_list_gives_back_its_items(items in prop::collection::vec(any_value(), 0..6), pretty in any::<bool>()) {
        let tree = serde_json::json!({"kind": "L", "metadata": {"resourceVersion": "3"}, "items": items});
        let json = if pretty { serde_json::to_vec_pretty(&tree) } else { serde_json::to_vec(&tree) }.unwrap();
        let page = Page::parse(&json, Limits::default()).unwrap();
        prop_assert_eq!(page.items().map(value).collect::<Vec<_>>(), items);
    }

    #[test]
    fn no_bytes_make_a_page_or_a_line_panic(
        json in prop::collection::vec(prop::sample::select(br#"{}[]",:\0temsyp"#.to_vec()), 0..60)
    ) {
        let _ = Page::parse(&json, Limits::default());
        let _ = Event::parse(&json);
        let _ = StatusBody::parse(&json);
    }
}
