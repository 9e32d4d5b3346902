//! The limits of a request, each asked for from outside.

mod bound;
mod bounds;
mod costs;
mod tenants;
mod waiting;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use http_body_util::{Full, StreamBody};
use hyper::body::Frame;
use serde_json::{Value, json};

use std::time::Duration;

use super::*;
use crate::flow::Shares;
use crate::storage::Memory;
use crate::{Options, cluster};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn hub(limits: Limits) -> Arc<Hub> {
    let options = Options { url: "https://127.0.0.1:6443".to_owned(), ..Options::default() };
    Arc::new(cluster(Memory::default(), options).await.unwrap().hub.with_limits(limits))
}

/// One request of a user at once.
fn one_request() -> Shares {
    Shares { per_user: 1, ..Limits::default().requests }
}

fn admin() -> User {
    User { name: "admin".to_owned(), groups: vec!["system:masters".to_owned()], ..User::anonymous() }
}

fn ask(method: Method, path: &str, media: &str, body: String) -> Request<Full<Bytes>> {
    ask_bytes(method, path, media, body.into_bytes())
}

fn ask_bytes(method: Method, path: &str, media: &str, body: Vec<u8>) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media)
        .body(Full::new(body.into()))
        .unwrap()
}

async fn answered(hub: &Arc<Hub>, request: Request<Full<Bytes>>) -> (u16, Value) {
    answered_to(hub, &admin(), request).await
}

async fn answered_to(hub: &Arc<Hub>, user: &User, request: Request<Full<Bytes>>) -> (u16, Value) {
    let answer = handle(Arc::clone(hub), Some(user), request).await;
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

fn map(name: usize, bytes: usize) -> String {
    json!({ "metadata": { "name": format!("map-{name}") }, "data": { "text": "x".repeat(bytes) } })
        .to_string()
}

#[tokio::test]
async fn a_body_has_a_largest_size() {
    let hub = hub(Limits { body_bytes: 10_000, ..Limits::default() }).await;
    let (code, _) = answered(&hub, ask(Method::POST, MAPS, "application/json", map(1, 9_000))).await;
    assert_eq!(code, 201);
    let (code, status) = answered(&hub, ask(Method::POST, MAPS, "application/json", map(2, 10_000))).await;
    assert_eq!((code, &status["reason"]), (413, &json!("RequestEntityTooLarge")), "{status}");
    assert_eq!(Limits::default().body_bytes, 3 << 20, "as real servers have it");
}

#[tokio::test]
async fn a_body_has_a_greatest_depth_in_every_form() {
    let hub = hub(Limits::default()).await;
    // A kind that holds whatever JSON one likes.
    let revisions = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let revision = |data: &str| {
        let begin =
            r#"{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"one"},"revision":1"#;
        format!(r#"{begin},"data":{data}}}"#)
    };
    let (code, said) = answered(&hub, ask(Method::POST, revisions, "application/json", revision("{}"))).await;
    assert_eq!(code, 201, "{said}");
    let refused = async |method: Method, path: &str, media: &str, body: Vec<u8>| {
        let (code, said) = answered(&hub, ask_bytes(method, path, media, body)).await;
        assert_eq!((code, &said["reason"]), (400, &json!("BadRequest")), "{media}: {said}");
    };
    for depth in [110, 100_000] {
        let deep = revision(&(r#"{"a":"#.repeat(depth) + "1" + &"}".repeat(depth)));
        for media in ["application/json", "application/yaml"] {
            refused(Method::POST, revisions, media, deep.clone().into_bytes()).await;
            refused(Method::PUT, &format!("{revisions}/one"), media, deep.clone().into_bytes()).await;
        }
        for (media, query) in [
            ("application/merge-patch+json", ""),
            ("application/strategic-merge-patch+json", ""),
            ("application/apply-patch+yaml", "?fieldManager=test&force=true"),
        ] {
            refused(Method::PATCH, &format!("{revisions}/one{query}"), media, deep.clone().into_bytes())
                .await;
        }
        let patch = format!(
            r#"[{{"op":"add","path":"/data/a","value":{}1{}}}]"#,
            r#"{"a":"#.repeat(depth),
            "}".repeat(depth)
        );
        refused(
            Method::PATCH,
            &format!("{revisions}/one"),
            "application/json-patch+json",
            patch.into_bytes(),
        )
        .await;
        refused(Method::POST, revisions, crate::protobuf::PROTOBUF, nested_revision(depth.min(1000))).await;
    }
    // Each of these lines is as deep as a document may be, and begins where the one before it ends.
    let mut aliases = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: deep}\na0: &a0 [x]\n".to_owned();
    for line in 1..200 {
        let (open, close) = ("[".repeat(60), "]".repeat(60));
        let line = format!("a{line}: &a{line} {open}*a{}{close}\n", line - 1);
        aliases.push_str(&line);
    }
    refused(Method::POST, MAPS, "application/yaml", aliases.into_bytes()).await;
}

/// A ControllerRevision in protobuf, which holds whatever JSON one likes.
fn nested_revision(depth: usize) -> Vec<u8> {
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let length = content.len();
        let length = [u8::try_from(length & 0x7f).unwrap() | 0x80, u8::try_from(length >> 7).unwrap()];
        [&[number << 3 | 2], &length[..], content].concat()
    }
    let json = "[".repeat(depth) + &"]".repeat(depth);
    let revision =
        [field(1, &field(1, b"deep")), field(2, &field(1, json.as_bytes())), vec![3 << 3, 1]].concat();
    let type_meta = [field(1, b"apps/v1"), field(2, b"ControllerRevision")].concat();
    [b"k8s\0".to_vec(), field(1, &type_meta), field(2, &revision)].concat()
}

#[tokio::test]
async fn no_patch_nests_an_object_deeper_than_a_server_can_walk() {
    let hub = hub(Limits::default()).await;
    let (code, _) = answered(&hub, ask(Method::POST, MAPS, "application/json", map(0, 10))).await;
    assert_eq!(code, 201);
    let deep = (0..99).fold(json!({}), |value, _| json!({ "a": value }));
    let mut operations = vec![json!({ "op": "add", "path": "/a", "value": deep })];
    for levels in (0..8).map(|times| 100_usize << times) {
        operations.push(json!({ "op": "copy", "from": "/a", "path": "/a".repeat(levels + 1) }));
    }
    let body = Value::Array(operations).to_string();
    assert!(body.len() < 60_000, "{}", body.len());
    let request = ask(Method::PATCH, &format!("{MAPS}/map-0"), "application/json-patch+json", body);
    let (code, said) = answered(&hub, request).await;
    assert_eq!((code, &said["reason"]), (400, &json!("BadRequest")), "{said}");
}

#[tokio::test]
async fn what_is_stored_is_read_back_however_deep_it_is() {
    let hub = hub(Limits::default()).await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "boats.sea.example.com" },
        "spec": {
            "group": "sea.example.com", "scope": "Namespaced",
            "names": { "plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, said) =
        answered(&hub, ask(Method::POST, definitions, "application/json", definition.to_string())).await;
    assert_eq!(code, 201, "{said}");
    let boats = "/apis/sea.example.com/v1/namespaces/default/boats";
    let nested = |levels: usize| (0..levels).fold(json!({}), |value, _| json!({ "a": value }));
    let mut deepest = 0;
    for levels in [40, 80, 90, 93, 94, 95, 110] {
        let name = format!("boat-{levels}");
        let boat = json!({ "apiVersion": "sea.example.com/v1", "kind": "Boat", "metadata": { "name": name },
            "spec": nested(levels / 2) });
        let (code, said) =
            answered(&hub, ask(Method::POST, boats, "application/json", boat.to_string())).await;
        assert_eq!(code, 201, "{said}");
        // The rest comes by a patch, which says no more than where.
        let patch = json!([{ "op": "add", "path": format!("/spec{}", "/a".repeat(levels / 2)),
            "value": nested(levels - levels / 2 - 1) }]);
        let request =
            ask(Method::PATCH, &format!("{boats}/{name}"), "application/json-patch+json", patch.to_string());
        let (code, said) = answered(&hub, request).await;
        assert!(matches!(code, 200 | 400), "{code} {said}");
        if code == 200 {
            deepest = levels;
        }
    }
    assert_eq!(deepest, 94, "with the object itself, 95 levels");
    // What was not looked at for a while rests, and is read back for the next patch.
    for number in 1..400 {
        let (code, _) = answered(&hub, ask(Method::POST, MAPS, "application/json", map(number, 10))).await;
        assert_eq!(code, 201);
    }
    let label = json!({ "metadata": { "labels": { "a": "b" } } }).to_string();
    let request = ask(Method::PATCH, &format!("{boats}/boat-94"), "application/merge-patch+json", label);
    let (code, said) = answered(&hub, request).await;
    assert_eq!(code, 200, "{said}");
    assert_eq!(said["spec"], nested(93), "it is as it was");
}

#[tokio::test]
async fn whoever_does_not_send_his_body_is_not_waited_for() {
    let hub =
        hub(Limits { body_within: Duration::from_millis(50), requests: one_request(), ..Limits::default() })
            .await;
    let never = futures::stream::pending::<Result<Frame<Bytes>, std::io::Error>>();
    let request = Request::builder().method(Method::POST).uri(MAPS).body(StreamBody::new(never)).unwrap();
    let answer = handle(Arc::clone(&hub), Some(&admin()), request).await;
    assert_eq!(answer.status(), 408);
    let (code, _) = answered(&hub, ask(Method::GET, MAPS, "", String::new())).await;
    assert_eq!(code, 200, "his turn is over");
}

/// A hub with a long list, and a limit of one request at once.
async fn with_a_long_list(answer_within: Duration) -> Arc<Hub> {
    let hub = hub(Limits { answer_within, requests: one_request(), ..Limits::default() }).await;
    for number in 0..5 {
        let (code, _) =
            answered(&hub, ask(Method::POST, MAPS, "application/json", map(number, 50_000))).await;
        assert_eq!(code, 201);
    }
    hub
}

#[tokio::test]
async fn a_large_answer_has_its_turn_until_it_is_read() {
    let hub = with_a_long_list(Duration::from_mins(1)).await;
    let list = || ask(Method::GET, MAPS, "", String::new());
    let first = handle(Arc::clone(&hub), Some(&admin()), list()).await;
    let mut second = pin!(answered(&hub, list()));
    assert!(second.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending(), "two at once");
    let read = first.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(serde_json::from_slice::<Value>(&read).unwrap()["items"].as_array().map(Vec::len), Some(5));
    let (code, again) = second.await;
    assert_eq!(
        (code, again.to_string().len()),
        (200, serde_json::from_slice::<Value>(&read).unwrap().to_string().len())
    );
}

#[tokio::test]
async fn whoever_does_not_read_his_answer_is_not_waited_for() {
    let hub = with_a_long_list(Duration::from_millis(50)).await;
    let list = || ask(Method::GET, MAPS, "", String::new());
    let mut first = handle(Arc::clone(&hub), Some(&admin()), list()).await.into_body();
    assert!(first.frame().await.unwrap().is_ok(), "it began well");
    // It is answered when the other's time is over.
    let (code, _) = answered(&hub, ask(Method::GET, &format!("{MAPS}?limit=1"), "", String::new())).await;
    assert_eq!(code, 200);
    assert!(first.frame().await.unwrap().is_err(), "the rest is not sent");
    let Poll::Ready(_) = pin!(first.frame()).poll(&mut Context::from_waker(Waker::noop())) else { panic!() };
}

/// A hub on which a user may do these things with ConfigMaps of one namespace.
async fn hub_of(user: &User, verbs: &[&str], names: &[&str]) -> Arc<Hub> {
    let hub = hub(Limits::default()).await;
    let rule =
        json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": verbs, "resourceNames": names });
    let role = json!({ "metadata": { "name": "some" }, "rules": [rule] });
    let binding = json!({
        "metadata": { "name": "some" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "some" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user.name }],
    });
    let base = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    for (resource, body) in [("roles", role), ("rolebindings", binding)] {
        let path = format!("{base}/{resource}");
        let (code, said) =
            answered(&hub, ask(Method::POST, &path, "application/json", body.to_string())).await;
        assert_eq!(code, 201, "{said}");
    }
    hub
}

fn alice() -> User {
    User::authenticated("alice", [])
}

#[tokio::test]
async fn whoever_may_patch_but_not_create_makes_nothing_by_applying() {
    let hub = hub_of(&alice(), &["get", "patch", "update"], &[]).await;
    let apply = || {
        let body =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } }).to_string();
        ask(Method::PATCH, &format!("{MAPS}/a?fieldManager=alice"), "application/apply-patch+yaml", body)
    };
    let (code, said) = answered_to(&hub, &alice(), apply()).await;
    assert_eq!(code, 403, "{said}");
    assert!(said["message"].as_str().unwrap().contains("cannot create resource \"configmaps\""), "{said}");
    let (code, _) = answered(&hub, ask(Method::GET, &format!("{MAPS}/a"), "", String::new())).await;
    assert_eq!(code, 404, "nothing was made");
    assert_eq!(answered(&hub, apply()).await.0, 201);
    assert_eq!(answered_to(&hub, &alice(), apply()).await.0, 200, "what is there may be changed");
}

#[tokio::test]
async fn whoever_may_see_one_object_may_list_and_watch_that_one() {
    let hub = hub_of(&alice(), &["list", "watch"], &["one"]).await;
    for (query, code) in [
        ("fieldSelector=metadata.name%3Done", 200),
        ("fieldSelector=metadata.name%3Done&watch=true", 200),
        ("fieldSelector=metadata.name%3Dtwo", 403),
        ("fieldSelector=metadata.name!%3Done", 403),
        ("fieldSelector=metadata.namespace%3Done", 403),
        ("", 403),
        ("watch=true", 403),
    ] {
        let request = ask(Method::GET, &format!("{MAPS}?{query}"), "", String::new());
        let answer = handle(Arc::clone(&hub), Some(&alice()), request).await;
        assert_eq!(answer.status().as_u16(), code, "{query}");
    }
    // The path names the object that is watched, whatever the query selects.
    for (name, code) in [("one", 200), ("two", 403)] {
        let path =
            format!("/api/v1/watch/namespaces/default/configmaps/{name}?fieldSelector=metadata.name%3Done");
        let answer =
            handle(Arc::clone(&hub), Some(&alice()), ask(Method::GET, &path, "", String::new())).await;
        assert_eq!(answer.status().as_u16(), code, "{path}");
    }
}

#[tokio::test]
async fn odd_paths_give_nobody_more_than_straight_ones() {
    let hub = hub_of(&alice(), &["get", "list"], &[]).await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let (code, _) = answered(
        &hub,
        ask(Method::POST, secrets, "application/json", json!({ "metadata": { "name": "s" } }).to_string()),
    )
    .await;
    assert_eq!(code, 201);
    for path in [
        "/api/v1/namespaces/default/secrets/s",
        "//api//v1//namespaces//default//secrets//s",
        "/api/v1/namespaces/default/secrets/s/",
        "/api/v1/namespaces/default/%73ecrets/s",
        "/api/v1/namespaces/default/Secrets/s",
        "/API/V1/namespaces/default/secrets/s",
        "/api/v1/namespaces/default/configmaps/../secrets/s",
        "/api/v1/namespaces/default/configmaps/..%2fsecrets%2fs",
        "/api/v1/namespaces/default/configmaps%2f..%2fsecrets/s",
        "/api/v1/namespaces/default%2fsecrets/s",
        "/api/v1/namespaces/%64efault/secrets/s",
        "/api/v1/namespaces/default/secrets/s?watch=true",
        "/api/v1/watch/namespaces/default/secrets/s",
        "/api/v1/watch/watch/namespaces/default/secrets",
        "/api/v1/proxy/namespaces/default/secrets/s",
        "/api/v1/secrets?fieldSelector=metadata.namespace%3Ddefault",
        "/api/v1/namespaces/default/secrets/s/status",
        "/clusters/cluster/api/v1/namespaces/default/secrets/s",
        "/api/v1/namespaces/default/configmaps;a=b/../secrets/s",
        "/api/v1/namespaces/default/secrets/%00s",
    ] {
        let answer =
            handle(Arc::clone(&hub), Some(&alice()), ask(Method::GET, path, "", String::new())).await;
        let code = answer.status().as_u16();
        assert!(matches!(code, 400 | 403 | 404), "{path}: {code}");
    }
    // What she may do, she may do by any path that says the same.
    for path in [MAPS, "/api//v1/namespaces/default/configmaps/", "/api/v1/namespaces/%64efault/configmaps"] {
        let (code, said) = answered_to(&hub, &alice(), ask(Method::GET, path, "", String::new())).await;
        assert_eq!(code, 200, "{path}: {said}");
    }
}

#[tokio::test]
async fn a_name_that_cannot_be_read_is_not_passed_over() {
    let hub = hub(Limits::default()).await;
    let acting = async |name: &[u8]| {
        let mut request = ask(Method::GET, MAPS, "", String::new());
        let value = http::HeaderValue::from_bytes(name).unwrap();
        request.headers_mut().insert("impersonate-user", value);
        answered(&hub, request).await
    };
    assert_eq!(acting(b"j\xff").await.0, 400, "the administrator does not act as himself");
    let (code, said) = acting("jürgen".as_bytes()).await;
    assert_eq!(code, 403, "{said}");
    assert!(said["message"].as_str().unwrap().contains("User \"jürgen\" cannot list"), "{said}");
}

#[tokio::test]
async fn nothing_in_a_namespace_is_made_without_one() {
    let hub = hub(Limits::default()).await;
    let lease =
        json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "a" } });
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
    let all = [
        (Method::PUT, "/apis/coordination.k8s.io/v1/leases/a", "application/json", &lease),
        (Method::PATCH, "/api/v1/configmaps/a?fieldManager=x", "application/apply-patch+yaml", &map),
        (Method::PUT, "/api/v1/configmaps/a", "application/json", &map),
        (Method::DELETE, "/api/v1/configmaps/a", "application/json", &Value::Null),
    ];
    for (method, path, media, body) in all {
        let (code, said) = answered(&hub, ask(method.clone(), path, media, body.to_string())).await;
        assert!((400..500).contains(&code), "{method} {path}: {code} {said}");
    }
}

#[tokio::test]
async fn tokens_of_pages_that_nobody_gave_out_are_refused() {
    use base64::Engine as _;
    let hub = hub(Limits::default()).await;
    let token = |text: &str| base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(text);
    for bad in [
        "x".repeat(10_000),
        token("{}"),
        token("[[[["),
        token(&"[".repeat(5_000)),
        token(r#"{"v":"meta.k8s.io/v1","rv":-1,"start":["cluster","",""]}"#),
        token(r#"{"v":"meta.k8s.io/v1","rv":18446744073709551615,"start":["cluster","",""]}"#),
        token(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"cluster"}"#),
        token(r#"{"v":"meta.k8s.io/v1","rv":0,"start":["cluster","default","map-0"]}"#),
        token(r#"{"v":"meta.k8s.io/v1","rv":-2,"start":["cluster","default","map-0"]}"#),
    ] {
        let path = format!("{MAPS}?limit=1&continue={bad}");
        let (code, said) = answered(&hub, ask(Method::GET, &path, "", String::new())).await;
        assert!((400..500).contains(&code) || code == 504, "{code} {said}");
    }
}

#[tokio::test]
async fn an_object_does_not_grow_beyond_what_a_server_keeps() {
    let hub = hub(Limits::default()).await;
    let (code, _) = answered(&hub, ask(Method::POST, MAPS, "application/json", map(0, 10))).await;
    assert_eq!(code, 201);
    let mut codes = Vec::new();
    for number in 0..12 {
        // Annotations have a limit of their own; labels and owners have none.
        let owner = json!({ "apiVersion": "v1", "kind": "Secret", "name": "x".repeat(200_000),
            "uid": format!("00000000-0000-0000-0000-{number:012}") });
        let patch = json!([{ "op": "add", "path": if number == 0 { "/metadata/ownerReferences" } else { "/metadata/ownerReferences/-" },
            "value": if number == 0 { json!([owner]) } else { owner } }]);
        let request =
            ask(Method::PATCH, &format!("{MAPS}/map-0"), "application/json-patch+json", patch.to_string());
        codes.push(answered(&hub, request).await.0);
    }
    assert_eq!(codes[0], 200, "{codes:?}");
    assert_eq!(codes.last(), Some(&413), "{codes:?}");
}

#[tokio::test]
async fn whoever_rules_one_workspace_does_not_act_as_one_who_rules_all() {
    let options = Options { url: "https://127.0.0.1:6443".to_owned(), ..Options::default() };
    let hub = Arc::new(crate::workspaces(Memory::default(), options).await.unwrap().hub);
    let workspace = json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": { "name": "mine" } });
    let binding = json!({
        "metadata": { "name": "alice" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice" }],
    });
    for (path, body) in [
        ("/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces", workspace),
        ("/clusters/root:mine/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding),
    ] {
        let (code, said) =
            answered(&hub, ask(Method::POST, path, "application/json", body.to_string())).await;
        assert_eq!(code, 201, "{path}: {said}");
    }
    let acting = async |groups: &[&str]| {
        let mut request = ask(Method::GET, "/clusters/root:mine/api/v1/configmaps", "", String::new());
        if !groups.is_empty() {
            request.headers_mut().insert("impersonate-user", "bob".parse().unwrap());
        }
        for group in groups {
            request.headers_mut().append("impersonate-group", group.parse().unwrap());
        }
        answered_to(&hub, &alice(), request).await
    };
    assert_eq!(acting(&[]).await.0, 200, "she rules it");
    for group in ["system:masters", "system:kcp:admin", "system:kcp:logical-cluster-admin"] {
        let (code, said) = acting(&["sailors", group]).await;
        let message = said["message"].as_str().unwrap_or_default();
        assert_eq!(
            (code, message),
            (403, "forbidden: impersonation is not allowed for the requestor"),
            "{group}"
        );
    }
    let (code, said) = acting(&["sailors"]).await;
    assert!(code == 403 && said["message"].as_str().unwrap().contains("User \"bob\""), "{said}");
}
