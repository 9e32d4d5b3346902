//! Requests to a hub as its handler gets them, without a connection.

use std::sync::Arc;

use http::{Method, Request};
use http_body_util::{BodyExt, Full as Body};
use hyper::body::Bytes;
use serde_json::Value;

use crate::Hub;
use crate::access::User;
use crate::handle::handle;

/// What an administrator is answered: the code and the body.
pub(super) async fn asked_of(hub: &Arc<Hub>, method: Method, path: &str, body: Value) -> (u16, Bytes) {
    let admin =
        User { name: "admin".to_owned(), groups: vec!["system:masters".to_owned()], ..User::anonymous() };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let answer =
        handle(Arc::clone(hub), Some(&admin), request.body(Body::new(Bytes::from(body))).unwrap()).await;
    let code = answer.status().as_u16();
    (code, answer.into_body().collect().await.unwrap().to_bytes())
}
