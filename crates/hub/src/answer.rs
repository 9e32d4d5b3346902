//! Answers on their way out.

use std::collections::HashSet;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH, LOCATION, RETRY_AFTER, VARY,
    WARNING, X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use mailboat_machinery::Status;
use serde::Serialize;
use serde_json::Value;

use crate::media::{Form, JSON};
use crate::protobuf::{self, BadProtobuf, PROTOBUF};

/// An answer's body: whole, or a stream of lines.
pub(crate) type Body = UnsyncBoxBody<Bytes, TooSlow>;
/// An answer.
pub(crate) type Answer = Response<Body>;

/// The client took too long to read an answer: what is left of it is not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the answer was not read in time")]
pub(crate) struct TooSlow;

/// An answer of this type and content.
pub(crate) fn bytes(code: StatusCode, media_type: &'static str, content: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(whole(content.into()));
    *answer.status_mut() = code;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer
}

/// A body that is sent at once.
pub(crate) fn whole(content: Bytes) -> Body {
    Full::new(content).map_err(|never| match never {}).boxed_unsync()
}

/// A JSON answer.
pub(crate) fn json(code: StatusCode, content: &impl Serialize) -> Answer {
    // What is written here is made of JSON values alone, which can always be written.
    bytes(code, JSON, serde_json::to_vec(content).unwrap_or_default())
}

/// The media type of words.
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

/// An answer in words.
pub(crate) fn text(code: StatusCode, content: impl Into<Bytes>) -> Answer {
    bytes(code, TEXT, content)
}

/// An object in the form in which it is wanted; it says what it is.
pub(crate) fn object(code: StatusCode, content: &Value, form: Form) -> Answer {
    match form {
        Form::Json => json(code, content),
        Form::Yaml => match serde_saphyr::to_string(content) {
            Ok(text) => bytes(code, "application/yaml", text),
            Err(error) => refusal(&Status::internal(error.to_string()), Form::Json),
        },
        Form::Protobuf => in_protobuf(code, protobuf::write(content)),
    }
}

/// An answer in protobuf, if what it says can be said so.
pub(crate) fn in_protobuf(code: StatusCode, content: Result<Vec<u8>, BadProtobuf>) -> Answer {
    match content {
        Ok(content) => bytes(code, PROTOBUF, content),
        Err(error) => refusal(&Status::internal(error.to_string()), Form::Json),
    }
}

/// The same, which no browser is to take for anything else.
pub(crate) fn as_it_is(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

/// How long an answer may be kept by who asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keep {
    /// Not at all, without asking again.
    Asking,
    /// Likewise, and by everybody.
    Everybody,
    /// For ever: its address changes with what it says.
    ForEver,
}

/// An answer that has a mark, by which a client finds out whether it has it already. None: it has.
pub(crate) fn marked(
    headers: &HeaderMap,
    mark: &str,
    keep: Keep,
    content: impl FnOnce() -> Answer,
) -> Answer {
    let mark = format!("\"{mark}\"");
    let known = headers.get(IF_NONE_MATCH).and_then(|known| known.to_str().ok()).unwrap_or_default();
    let mut answer = if known.split(',').any(|known| known.trim() == mark) {
        nothing(StatusCode::NOT_MODIFIED)
    } else {
        content()
    };
    let keep = match keep {
        Keep::Asking => NOT_KEPT,
        Keep::Everybody => HeaderValue::from_static("public"),
        Keep::ForEver => HeaderValue::from_static("public, immutable"),
    };
    if let Ok(mark) = HeaderValue::from_str(&mark) {
        answer.headers_mut().insert(ETAG, mark);
    }
    answer.headers_mut().insert(CACHE_CONTROL, keep);
    answer.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    answer
}

/// What nobody may keep.
pub(crate) const NOT_KEPT: HeaderValue = HeaderValue::from_static("no-cache, private");

/// An answer that says nothing.
pub(crate) fn nothing(code: StatusCode) -> Answer {
    let mut answer = Response::new(whole(Bytes::new()));
    *answer.status_mut() = code;
    answer
}

/// What is asked for is somewhere else, for good.
pub(crate) fn moved(to: &str) -> Answer {
    let mut answer = bytes(StatusCode::MOVED_PERMANENTLY, JSON, Bytes::new());
    if let Ok(to) = HeaderValue::from_str(to) {
        answer.headers_mut().insert(LOCATION, to);
    }
    answer
}

/// A refusal.
pub(crate) fn refusal(status: &Status, form: Form) -> Answer {
    let code = StatusCode::from_u16(status.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = object(code, &status.to_json(), form);
    if let Some(seconds) = status.body().details.retry_after_seconds {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

/// An answer that goes on as long as the stream does.
pub(crate) fn stream(
    lines: impl Stream<Item = Result<Bytes, TooSlow>> + Send + 'static,
    media_type: &'static str,
) -> Answer {
    let frames: BoxStream<'static, _> = lines.map(|line| line.map(Frame::data)).boxed();
    let mut answer = Response::new(StreamBody::new(frames).boxed_unsync());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer
}

/// Adds warnings, which clients such as kubectl show to their users.
pub(crate) fn warn(answer: &mut Answer, warnings: impl IntoIterator<Item = String>) {
    for warning in told(warnings) {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            answer.headers_mut().append(WARNING, value);
        }
    }
}

/// So many letters of warnings real servers send together, and if there are more, so many of each.
const WARNINGS_LETTERS: usize = 4 << 10;
const WARNING_LETTERS: usize = 256;

/// The warnings that are told, as real servers choose them: each once; all of them, or the beginnings of the first.
fn told(warnings: impl IntoIterator<Item = String>) -> Vec<String> {
    let (mut told, mut known) = (Vec::new(), HashSet::new());
    let (mut letters, mut cut) = (0, false);
    for warning in warnings {
        if cut && letters >= WARNINGS_LETTERS {
            break;
        }
        if warning.is_empty() || !known.insert(warning.clone()) {
            continue;
        }
        let counted = |text: &String| text.chars().count();
        letters += counted(&warning);
        told.push(warning);
        if letters > WARNINGS_LETTERS || cut {
            cut = true;
            for warning in &mut told {
                if let Some((end, _)) = warning.char_indices().nth(WARNING_LETTERS) {
                    warning.truncate(end);
                }
            }
            letters = told.iter().map(counted).sum();
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_warnings_are_told_than_a_client_takes_in_its_headers() {
        let few = ["a".to_owned(), "b".repeat(1000), "a".to_owned(), String::new()];
        assert_eq!(told(few.clone()), few[..2], "each once, and whole");
        let much = told(["a".repeat(3000), "é".repeat(3000), "c".repeat(10)]);
        let letters: Vec<usize> = much.iter().map(|text| text.chars().count()).collect();
        assert_eq!(letters, [256, 256, 10], "where they are too long together, each is cut");
        let many = told((0..100_000).map(|number| format!("{number:0300}")));
        assert_eq!(many.len(), WARNINGS_LETTERS / WARNING_LETTERS);
    }
}
