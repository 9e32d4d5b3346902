//! One case, played on one server.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body as Stream;
use mailboat_hub::protobuf;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::pick;
use crate::plain::Plain;
use crate::script::{Action, Ask, Body, Case};
use crate::server::Server;

/// How long an answer or an event may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);
/// How long something that is waited for may take there: kcp needs a minute for a workspace when others are at work.
const UNTIL_LIMIT: Duration = Duration::from_mins(3);
/// Between two looks at something that is waited for.
const PAUSE: Duration = Duration::from_millis(50);
/// The headers that are compared.
const HEADERS: [&str; 11] = [
    "content-type",
    "content-encoding",
    "warning",
    "retry-after",
    "allow",
    "www-authenticate",
    "cache-control",
    "etag",
    "vary",
    "location",
    "x-content-type-options",
];
/// What is taken for an answer, unless a case says otherwise.
pub(crate) const ACCEPT: &str = "application/json";
/// What Kubernetes' own clients take, and send where they have types.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// In what client-go reads schemas of version 2.
const SCHEMAS: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// What a case gives as the content type of a body that is sent without one.
pub(crate) const NO_TYPE: &str = "none";
/// Who writes, as managed fields name it.
const USER_AGENT: &str = "conformance/1.0";

/// What a server answered to a step.
#[derive(Debug)]
pub(crate) struct Heard {
    /// Which step it was.
    pub(crate) step: usize,
    /// The answer, without what no two servers share.
    pub(crate) answer: Value,
    /// Something was asked for that cannot be, and that was said.
    pub(crate) refused: bool,
}

/// A case on its way.
struct Playing<'p> {
    server: &'p Server,
    words: BTreeMap<String, String>,
    plain: Plain,
    last: Value,
    last_headers: HeaderMap,
    watches: BTreeMap<String, Watch>,
}

struct Watch {
    body: Stream,
    buffer: BytesMut,
    /// Its events come in protobuf, and not as lines.
    is_binary: bool,
}

/// Plays a case; `words` are what its placeholders stand for, `shown` what is shown in place of what.
pub(crate) async fn play(
    server: &Server,
    case: &Case,
    words: &BTreeMap<String, String>,
    shown: &[(String, String)],
) -> Vec<Heard> {
    let mut shown = shown.to_vec();
    shown.push((server.url().to_owned(), "<server>".to_owned()));
    shown.push((server.url().replace("https://", ""), "<address>".to_owned()));
    let mut playing = Playing {
        server,
        words: words.clone(),
        plain: Plain::new(shown),
        last: Value::Null,
        last_headers: HeaderMap::new(),
        watches: BTreeMap::new(),
    };
    let mut heard = Vec::new();
    for (step, taken) in case.steps.iter().enumerate() {
        // What is not compared names nothing: a server may well have more than the other of what it says there.
        let only = taken.action.only();
        let named = (!only.is_empty()).then(|| playing.plain.clone());
        if let Some(answer) = playing.step(&taken.action).await {
            let refused = is_refusal(&answer);
            let answer = confined(answer, only);
            heard.push(Heard { step, answer, refused });
        }
        playing.plain = named.unwrap_or(playing.plain);
    }
    heard
}

impl Playing<'_> {
    async fn step(&mut self, action: &Action) -> Option<Value> {
        match action {
            Action::Ask(ask) => Some(self.ask(ask).await),
            Action::Until { ask, code, holds } => Some(self.until(ask, *code, holds.as_ref()).await),
            Action::Let { name, path, after } => {
                let value = match path.strip_prefix('@') {
                    Some(header) => {
                        let found = self.last_headers.get(header).and_then(|value| value.to_str().ok());
                        found.unwrap_or_default().into()
                    }
                    None => pick::one(&self.last, path).cloned().unwrap_or_default(),
                };
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let cut = after.as_ref().and_then(|after| text.split_once(after.as_str()));
                let text = cut.map_or_else(|| text.clone(), |(_, rest)| rest.to_owned());
                self.words.insert(name.clone(), text);
                None
            }
            Action::Watch { name, ask } => Some(self.open(name, ask).await),
            Action::Events { name, count, .. } => Some(self.events(name, Some(*count)).await),
            Action::Rest { name } => Some(self.events(name, None).await),
        }
    }

    async fn ask(&mut self, ask: &Ask) -> Value {
        match self.send(ask).await {
            Ok(response) => self.whole(response).await,
            Err(error) => json!({ "broken": error }),
        }
    }

    async fn until(&mut self, ask: &Ask, code: u16, holds: Option<&(String, String)>) -> Value {
        let deadline = Instant::now() + UNTIL_LIMIT;
        let value = |text: String| serde_json::from_str(&text).unwrap_or(Value::String(text));
        let wanted = holds.map(|(path, text)| (self.filled(path), value(self.filled(text))));
        let named = self.plain.clone();
        loop {
            // How often was asked before is no part of the answer: versions are named anew by what comes.
            self.plain.clone_from(&named);
            let answer = self.ask(ask).await;
            let held = wanted
                .as_ref()
                .is_none_or(|(path, value)| pick::one(&self.last, path).is_some_and(|found| found == value));
            if (answer["code"] == code && held) || Instant::now() > deadline {
                return answer;
            }
            sleep(PAUSE).await;
        }
    }

    /// Sends a request and gives the head of the answer.
    async fn send(&mut self, ask: &Ask) -> Result<Response<Stream>, String> {
        let path = self.filled(&ask.path);
        let mut request = Request::builder().method(ask.method.as_str()).uri(path.replace(' ', "%20"));
        request = request.header("user-agent", USER_AGENT);
        if !ask.headers.iter().any(|(name, _)| name == "accept") {
            request = request.header("accept", ACCEPT);
        }
        let body = match &ask.body {
            Body::Nothing => Vec::new(),
            Body::Text(text) => self.filled(text).into_bytes(),
            Body::Yaml(text) => {
                let text = self.filled(text);
                let value: Value =
                    serde_saphyr::from_str(&text).map_err(|error| format!("the body: {error}"))?;
                if is_sent_in_protobuf(ask) {
                    protobuf::write(&value).map_err(|error| format!("the body: {error}"))?
                } else {
                    value.to_string().into_bytes()
                }
            }
        };
        // The last word counts: a case may give a content type of its own.
        let headers: BTreeMap<_, _> = ask.headers.iter().map(|(name, value)| (name, value)).collect();
        for (name, value) in headers {
            if name != "content-type" || !(body.is_empty() || value == NO_TYPE) {
                request = request.header(name, self.filled(value));
            }
        }
        let request = request.body(Stream::from(body)).map_err(|error| error.to_string())?;
        timeout(LIMIT, self.server.send(&ask.user, request))
            .await
            .unwrap_or_else(|_| Err(format!("no answer within {LIMIT:?}")))
    }

    /// The whole answer, as one value.
    async fn whole(&mut self, response: Response<Stream>) -> Value {
        let mut answer = self.head(&response);
        let collected = timeout(LIMIT, response.into_body().collect()).await;
        let Ok(Ok(collected)) = collected else {
            answer["broken"] = "the body does not end well".into();
            return answer;
        };
        let bytes = collected.to_bytes();
        if answer["headers"].get("content-encoding").is_some() {
            answer["body"] = "<compressed>".into();
            return answer;
        }
        let text = || String::from_utf8_lossy(&bytes).into_owned();
        self.last = match answer["headers"]["content-type"].as_str() {
            Some("application/yaml") => serde_saphyr::from_str(&text()).unwrap_or_else(|_| text().into()),
            Some(PROTOBUF) => protobuf::read(&bytes).unwrap_or_else(|error| error.to_string().into()),
            Some(SCHEMAS) => protobuf::read_schemas(&bytes).unwrap_or_else(|error| error.to_string().into()),
            _ => serde_json::from_slice(&bytes).unwrap_or_else(|_| text().into()),
        };
        answer["body"] = self.plain.value(&self.last);
        answer
    }

    fn head(&mut self, response: &Response<Stream>) -> Value {
        self.last_headers.clone_from(response.headers());
        let mut headers = Map::new();
        for name in HEADERS {
            let mut values: Vec<String> = response
                .headers()
                .get_all(name)
                .iter()
                .map(|value| self.plain.text(&String::from_utf8_lossy(value.as_bytes())))
                .collect();
            // What a view of kcp hands on it says twice.
            values.dedup();
            if !values.is_empty() {
                headers.insert(name.to_owned(), values.join("\n").into());
            }
        }
        json!({ "code": response.status().as_u16(), "headers": headers })
    }

    async fn open(&mut self, name: &str, ask: &Ask) -> Value {
        match self.send(ask).await {
            Ok(response) if response.status() == 200 => {
                let head = self.head(&response);
                let kind = head["headers"]["content-type"].as_str().unwrap_or_default();
                let is_binary = kind.starts_with(PROTOBUF);
                let watch = Watch { body: response.into_body(), buffer: BytesMut::new(), is_binary };
                self.watches.insert(name.to_owned(), watch);
                head
            }
            Ok(response) => self.whole(response).await,
            Err(error) => json!({ "broken": error }),
        }
    }

    /// So many events of a watch, or all until it ends.
    async fn events(&mut self, name: &str, count: Option<usize>) -> Value {
        let Some(mut watch) = self.watches.remove(name) else {
            return json!({ "broken": format!("the watch {name:?} was not opened") });
        };
        let deadline = Instant::now() + LIMIT;
        let mut events = Vec::new();
        let mut end = None;
        while count.is_none_or(|count| events.len() < count) {
            match timeout_at(deadline, watch.event()).await {
                Ok(Ok(Some(event))) => {
                    events.push(self.plain.value(&event));
                    self.last = event;
                }
                Ok(Ok(None)) => {
                    end = Some("it ended".to_owned());
                    break;
                }
                Ok(Err(error)) => {
                    end = Some(error);
                    break;
                }
                Err(_) => {
                    end = Some("nothing more came".to_owned());
                    break;
                }
            }
        }
        self.watches.insert(name.to_owned(), watch);
        json!({ "events": events, "end": end })
    }

    fn filled(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.words {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text
    }
}

impl Watch {
    /// The next event; none at the end.
    async fn event(&mut self) -> Result<Option<Value>, String> {
        loop {
            if self.is_binary {
                let event = protobuf::read_event(&self.buffer).map_err(|error| error.to_string())?;
                if let Some((length, event)) = event {
                    self.buffer.advance(length);
                    return Ok(Some(event));
                }
            } else if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end + 1);
                return match serde_json::from_slice(&line) {
                    Ok(event) => Ok(Some(event)),
                    Err(_) => Ok(Some(String::from_utf8_lossy(&line).into_owned().into())),
                };
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(error.to_string()),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}

/// Whether a body is sent in protobuf. Cases say what is in it.
fn is_sent_in_protobuf(ask: &Ask) -> bool {
    ask.headers
        .iter()
        .rev()
        .find(|(name, _)| name == "content-type")
        .is_some_and(|(_, kind)| kind == PROTOBUF)
}

/// The answer, or the parts of it that the step is about.
fn confined(answer: Value, only: &[String]) -> Value {
    if only.is_empty() {
        return answer;
    }
    let found = |path: &String| {
        let values = pick::all(&answer, path).into_iter().cloned().collect::<Vec<_>>();
        (path.clone(), Value::Array(values))
    };
    Value::Object(only.iter().map(found).collect())
}

/// Whether an answer refuses what was asked for, or tells a watch that it cannot go on.
fn is_refusal(answer: &Value) -> bool {
    let ends = |event: &Value| event["type"] == "ERROR";
    answer["code"].as_u64().is_some_and(|code| code >= 400)
        || answer["events"].as_array().is_some_and(|events| events.iter().any(ends))
}

/// Whether a case mentions a placeholder.
pub(crate) fn mentions(case: &Case, word: &str) -> bool {
    let mark = format!("{{{word}}}");
    case.steps.iter().any(|step| {
        let body = match &step.action {
            Action::Ask(ask) | Action::Until { ask, .. } | Action::Watch { ask, .. } => match &ask.body {
                Body::Yaml(text) | Body::Text(text) => text.contains(&mark),
                Body::Nothing => false,
            },
            _ => false,
        };
        body || step.text.contains(&mark)
    })
}
