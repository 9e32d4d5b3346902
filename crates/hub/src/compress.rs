//! Large answers, made smaller for those who can read them so: kubectl and everything made with client-go.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderValue, VARY};
use http::{HeaderMap, Response};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use mailboat_machinery::Status;

use crate::answer::{self, Answer};
use crate::media::Form;

/// From this size on it is worth the time; real servers draw the line here as well.
const WORTH_WHILE_BYTES: u64 = 128 * 1024;

/// Whether a client reads gzip.
pub(crate) fn reads_gzip(headers: &HeaderMap) -> bool {
    let named = headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    named.flat_map(|value| value.split(',')).any(|word| word.trim() == "gzip")
}

/// Compresses an answer that is whole and large; streams are left alone.
pub(crate) async fn compress(answer: Answer) -> Answer {
    let size = answer.body().size_hint().exact();
    if size.is_none_or(|size| size < WORTH_WHILE_BYTES) || answer.headers().contains_key(CONTENT_ENCODING) {
        return answer;
    }
    let (mut head, body) = answer.into_parts();
    let Ok(collected) = body.collect().await else {
        return answer::refusal(&Status::internal(answer::TooSlow.to_string()), Form::Json);
    };
    let content = collected.to_bytes();
    // It takes a core for a tenth of a second and more: others have their turn meanwhile.
    let whole = content.clone();
    let content = match tokio::task::spawn_blocking(move || gzip(&whole)).await {
        Ok(Some(packed)) => {
            head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            head.headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
            packed
        }
        _ => content,
    };
    Response::from_parts(head, answer::whole(content))
}

fn gzip(content: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(content.len() / 8), Compression::fast());
    encoder.write_all(content).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use http::StatusCode;

    use super::*;

    #[tokio::test]
    async fn what_is_large_comes_out_as_it_went_in() {
        let text = "a long list of much the same, ".repeat(10_000);
        let answer = compress(answer::bytes(StatusCode::OK, answer::TEXT, text.clone())).await;
        assert_eq!(answer.headers()[CONTENT_ENCODING], "gzip");
        let packed = answer.into_body().collect().await.unwrap();
        let packed = packed.to_bytes();
        assert!(packed.len() < text.len() / 10, "{}", packed.len());
        let mut unpacked = String::new();
        GzDecoder::new(&packed[..]).read_to_string(&mut unpacked).unwrap();
        assert_eq!(unpacked, text);
        let small = compress(answer::text(StatusCode::OK, "ok")).await;
        assert!(!small.headers().contains_key(CONTENT_ENCODING));
    }

    #[test]
    fn only_those_who_say_so_get_it() {
        for (said, reads) in
            [("gzip", true), ("deflate, gzip", true), ("identity", false), ("gzip;q=0", false)]
        {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(said));
            assert_eq!(reads_gzip(&headers), reads, "{said}");
        }
        assert!(!reads_gzip(&HeaderMap::new()));
    }
}
