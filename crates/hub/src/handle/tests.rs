//! The limits of a request, each asked for from outside.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use http_body_util::{Full, StreamBody};
use hyper::body::Frame;

use std::time::Duration;

use super::*;
use crate::storage::Memory;
use crate::{Options, cluster};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn hub(limits: Limits) -> Arc<Hub> {
    let options = Options { url: "https://127.0.0.1:6443".to_owned(), ..Options::default() };
    Arc::new(cluster(Memory::default(), options).await.unwrap().hub.with_limits(limits))
}

fn admin() -> User {
    User { name: "admin".to_owned(), groups: vec!["system:masters".to_owned()], ..User::anonymous() }
}

fn ask(method: Method, path: &str, media: &str, body: String) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media)
        .body(Full::new(body.into()))
        .unwrap()
}

async fn answered(hub: &Arc<Hub>, request: Request<Full<Bytes>>) -> (u16, Value) {
    let answer = handle(Arc::clone(hub), Some(&admin()), request).await;
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
    let deep = |count: usize| {
        format!(r#"{{"metadata":{{"name":"deep"}},"data":{}{}}}"#, "[".repeat(count), "]".repeat(count))
    };
    for media in ["application/json", "application/yaml"] {
        let (code, status) = answered(&hub, ask(Method::POST, MAPS, media, deep(100_000))).await;
        assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")), "{media}: {status}");
    }
    for media in [
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ] {
        let path = format!("{MAPS}/deep?fieldManager=test");
        let (code, status) = answered(&hub, ask(Method::PATCH, &path, media, deep(100_000))).await;
        assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")), "{media}: {status}");
    }
}

#[tokio::test]
async fn whoever_does_not_send_his_body_is_not_waited_for() {
    let hub =
        hub(Limits { body_within: Duration::from_millis(50), requests_per_user: 1, ..Limits::default() })
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
    let hub = hub(Limits { answer_within, requests_per_user: 1, ..Limits::default() }).await;
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
