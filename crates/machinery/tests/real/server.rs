//! The real server, asked with raw requests.

use http_body_util::BodyExt as _;
use kube::client::Body;
use mailboat_object::wire::Propagation;
use serde_json::{Value, json};

use crate::answer::{Answer, normalized, refusal};
use crate::script::{Step, Which};
use crate::subjects::{Subject, with_name};

pub(crate) struct Server {
    client: kube::Client,
    names: u64,
}

/// One script on its way.
pub(crate) struct Running<'r> {
    client: kube::Client,
    subject: &'r Subject,
    name: String,
    live: Value,
}

impl Server {
    pub(crate) fn new(client: kube::Client) -> Self {
        Self { client, names: 0 }
    }

    pub(crate) fn fresh_name(&mut self) -> String {
        self.names += 1;
        format!("boat-{}", self.names)
    }

    pub(crate) fn running<'r>(&self, subject: &'r Subject, name: &str) -> Running<'r> {
        Running { client: self.client.clone(), subject, name: name.to_owned(), live: Value::Null }
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        request(&self.client, "GET", path, "", &Value::Null).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        request(&self.client, "POST", path, "application/json", body).await
    }
}

async fn request(
    client: &kube::Client,
    method: &str,
    path: &str,
    content: &str,
    body: &Value,
) -> (u16, Value) {
    let mut builder = http::Request::builder().method(method).uri(path).header("accept", "application/json");
    if !content.is_empty() {
        builder = builder.header("content-type", content);
    }
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let response = client.send(builder.body(Body::from(bytes)).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    (code, body)
}

impl Running<'_> {
    pub(crate) async fn step(&mut self, step: &Step) -> Answer {
        let (code, body) = self.ask(step).await;
        let before = self.live["metadata"]["resourceVersion"].clone();
        let (found, live) = request(&self.client, "GET", &self.path(""), "", &Value::Null).await;
        self.live = if found == 200 { live } else { Value::Null };
        let bumped = before != self.live["metadata"]["resourceVersion"];
        let failed = code >= 300;
        let (reason, causes, message) = if failed { refusal(&body) } else { Default::default() };
        Answer {
            code,
            reason,
            causes,
            message,
            bumped,
            body: if failed || body["kind"] == "Status" { Value::Null } else { normalized(body, &self.name) },
            stored: normalized(self.live.clone(), &self.name),
        }
    }

    async fn ask(&self, step: &Step) -> (u16, Value) {
        let send = async |method: &str, path: String, content: &str, body: &Value| {
            request(&self.client, method, &path, content, body).await
        };
        let part = |status: bool| if status { "/status" } else { "" };
        let query = |manager: &str| format!("?fieldManager={manager}");
        match step {
            Step::Create { body, manager } => {
                let body = with_name(body.clone(), &self.name);
                let path = format!("{}{}", self.subject.collection(), query(manager));
                send("POST", path, "application/json", &body).await
            }
            Step::Update { change, version, status, manager } => {
                let body = self.subject.updated(&self.live, change, *version, &self.name);
                let path = format!("{}{}", self.path(part(*status)), query(manager));
                send("PUT", path, "application/json", &body).await
            }
            Step::Apply { intent, force, version, status, manager } => {
                let body = Subject::intended(&self.live, intent, *version, &self.name);
                let path = format!("{}{}&force={force}", self.path(part(*status)), query(manager));
                send("PATCH", path, "application/apply-patch+yaml", &body).await
            }
            Step::Merge { patch, status, manager } => {
                let path = format!("{}{}", self.path(part(*status)), query(manager));
                send("PATCH", path, "application/merge-patch+json", patch).await
            }
            Step::Json { patch, manager } => {
                let path = format!("{}{}", self.path(""), query(manager));
                send("PATCH", path, "application/json-patch+json", patch).await
            }
            Step::Delete { uid, version, propagation } => {
                send(
                    "DELETE",
                    self.path(""),
                    "application/json",
                    &self.delete_options(*uid, *version, *propagation),
                )
                .await
            }
        }
    }

    fn delete_options(&self, uid: Which, version: Which, propagation: Option<Propagation>) -> Value {
        let mut options = json!({ "kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {} });
        let metadata = &self.live["metadata"];
        match uid {
            Which::None => {}
            Which::Right => options["preconditions"]["uid"] = metadata["uid"].clone(),
            Which::Wrong => options["preconditions"]["uid"] = "00000000-0000-4000-8000-000000000000".into(),
        }
        match version {
            Which::None => {}
            Which::Right => options["preconditions"]["resourceVersion"] = metadata["resourceVersion"].clone(),
            Which::Wrong => options["preconditions"]["resourceVersion"] = "1".into(),
        }
        if let Some(propagation) = propagation {
            options["propagationPolicy"] = format!("{propagation:?}").into();
        }
        options
    }

    fn path(&self, part: &str) -> String {
        format!("{}/{}{part}", self.subject.collection(), self.name)
    }

    /// Removes what the script left.
    pub(crate) async fn clean_up(&self) {
        let patch = json!({ "metadata": { "finalizers": null } });
        request(&self.client, "PATCH", &self.path(""), "application/merge-patch+json", &patch).await;
        request(&self.client, "DELETE", &self.path(""), "", &Value::Null).await;
    }
}
