//! Which requests a [`FaultyServer`](super::FaultyServer) answers by itself, and with what.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use serde_json::json;
use tokio::time::Instant;

/// One fault: requests that fit get its answer instead of the server's.
#[derive(Debug, Clone)]
pub struct Rule {
    method: Option<Method>,
    path_prefix: Option<String>,
    query: Vec<(String, String)>,
    bearer_token: Option<HeaderValue>,
    status: StatusCode,
    retry_after: Option<Duration>,
    body: Option<(HeaderValue, Bytes)>,
    times: Option<u64>,
    duration: Option<Duration>,
}

/// Names a rule that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleId(u64);

impl Rule {
    /// Every request is answered with `status` and a Kubernetes Status object. What follows narrows it.
    pub fn answer(status: StatusCode) -> Self {
        Self {
            method: None,
            path_prefix: None,
            query: Vec::new(),
            bearer_token: None,
            status,
            retry_after: None,
            body: None,
            times: None,
            duration: None,
        }
    }

    /// Requests with this token are answered 401, as after the token's account was deleted.
    pub fn revoked(token: &str) -> Self {
        let mut rule = Self::answer(StatusCode::UNAUTHORIZED);
        // A token that is no header value can be on no request; an empty one fits none either.
        let value = HeaderValue::try_from(format!("Bearer {token}"));
        rule.bearer_token = Some(value.unwrap_or_else(|_| HeaderValue::from_static("")));
        rule
    }

    /// Only for this method.
    #[must_use]
    pub fn method(mut self, method: Method) -> Self {
        self.method = Some(method);
        self
    }

    /// Only for paths that begin with this, such as `/api/v1/namespaces`.
    #[must_use]
    pub fn path_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.path_prefix = Some(prefix.into());
        self
    }

    /// Only for requests with this query parameter, such as `watch` = `true`. Several must all be there.
    #[must_use]
    pub fn query(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.query.push((name.into(), value.into()));
        self
    }

    /// Tells the client when to come back.
    #[must_use]
    pub fn retry_after(mut self, pause: Duration) -> Self {
        self.retry_after = Some(pause);
        self
    }

    /// The answer's body. With status 200 this can be a watch that says `ERROR`, or no JSON at all.
    #[must_use]
    pub fn body(mut self, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        self.body = Some((HeaderValue::from_static(content_type), body.into()));
        self
    }

    /// Holds for this many requests, then no more.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Holds for this long from the moment it is added, then no more.
    #[must_use]
    pub fn during(mut self, duration: Duration) -> Self {
        self.duration = Some(duration);
        self
    }

    fn fits<Body>(&self, request: &Request<Body>) -> bool {
        let uri = request.uri();
        let has_parameter = |(name, value): &(String, String)| {
            uri.query().unwrap_or_default().split('&').any(|pair| pair.split_once('=') == Some((name, value)))
        };
        self.method.as_ref().is_none_or(|method| method == request.method())
            && self.path_prefix.as_ref().is_none_or(|prefix| uri.path().starts_with(prefix))
            && self.query.iter().all(has_parameter)
            && self
                .bearer_token
                .as_ref()
                .is_none_or(|token| request.headers().get(AUTHORIZATION) == Some(token))
    }

    fn response(&self) -> Response<Bytes> {
        let (content_type, body) = self.body.clone().unwrap_or_else(|| {
            let status = json!({
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": format!("a fault of the testbed: {}", self.status),
                "reason": reason(self.status),
                "code": self.status.as_u16(),
            });
            (HeaderValue::from_static("application/json"), Bytes::from(status.to_string()))
        });
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        if let Some(pause) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(pause.as_secs()));
        }
        response
    }
}

/// The rules in force, in the order in which they were added: the first that fits answers.
#[derive(Debug, Default)]
pub(super) struct Rules {
    next: u64,
    entries: BTreeMap<RuleId, Entry>,
}

#[derive(Debug)]
struct Entry {
    rule: Rule,
    until: Option<Instant>,
    applied: u64,
    removed: bool,
}

impl Rules {
    pub(super) fn add(&mut self, rule: Rule, now: Instant) -> RuleId {
        let id = RuleId(self.next);
        self.next += 1;
        let until = rule.duration.map(|duration| now + duration);
        self.entries.insert(id, Entry { rule, until, applied: 0, removed: false });
        id
    }

    /// Ends a rule; how often it applied stays known.
    pub(super) fn remove(&mut self, id: RuleId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.removed = true;
        }
    }

    pub(super) fn remove_all(&mut self) {
        for entry in self.entries.values_mut() {
            entry.removed = true;
        }
    }

    pub(super) fn applied(&self, id: RuleId) -> u64 {
        self.entries.get(&id).map_or(0, |entry| entry.applied)
    }

    /// The answer of the first rule that fits, if one does; it counts as applied.
    pub(super) fn answer<Body>(&mut self, request: &Request<Body>, now: Instant) -> Option<Response<Bytes>> {
        let entry = self.entries.values_mut().find(|entry| entry.holds(now) && entry.rule.fits(request))?;
        entry.applied += 1;
        Some(entry.rule.response())
    }
}

impl Entry {
    fn holds(&self, now: Instant) -> bool {
        !self.removed
            && self.until.is_none_or(|until| now < until)
            && self.rule.times.is_none_or(|times| self.applied < times)
    }
}

fn reason(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "BadRequest",
        StatusCode::UNAUTHORIZED => "Unauthorized",
        StatusCode::FORBIDDEN => "Forbidden",
        StatusCode::NOT_FOUND => "NotFound",
        StatusCode::CONFLICT => "Conflict",
        StatusCode::GONE => "Expired",
        StatusCode::UNPROCESSABLE_ENTITY => "Invalid",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::INTERNAL_SERVER_ERROR => "InternalError",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        StatusCode::GATEWAY_TIMEOUT => "Timeout",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, uri: &str, token: &str) -> Request<()> {
        Request::builder()
            .method(method)
            .uri(uri)
            .header(AUTHORIZATION, format!("Bearer {token}"))
            .body(())
            .unwrap()
    }

    #[test]
    fn a_rule_fits_only_what_it_is_narrowed_to() {
        let watches =
            Rule::answer(StatusCode::GONE).method(Method::GET).path_prefix("/api/v1/").query("watch", "true");
        let revoked = Rule::revoked("stolen");
        let cases = [
            (&watches, request("GET", "/api/v1/pods?limit=5&watch=true", "t"), true),
            (&watches, request("GET", "/api/v1/pods?watch=false", "t"), false),
            (&watches, request("GET", "/api/v1/pods", "t"), false),
            (&watches, request("GET", "/apis/apps/v1/deployments?watch=true", "t"), false),
            (&watches, request("POST", "/api/v1/pods?watch=true", "t"), false),
            (&revoked, request("POST", "/api/v1/pods", "stolen"), true),
            (&revoked, request("POST", "/api/v1/pods", "stolen-not"), false),
        ];
        for (rule, request, fits) in cases {
            assert_eq!(rule.fits(&request), fits, "{rule:?} and {request:?}");
        }
    }

    #[test]
    fn a_rule_ends_by_count_by_time_and_when_it_is_removed() {
        let start = Instant::now();
        let any = request("GET", "/", "t");
        let mut rules = Rules::default();
        let counted = rules.add(Rule::answer(StatusCode::TOO_MANY_REQUESTS).times(2), start);
        let timed =
            rules.add(Rule::answer(StatusCode::SERVICE_UNAVAILABLE).during(Duration::from_secs(5)), start);
        let last = rules.add(Rule::answer(StatusCode::NOT_FOUND), start);
        let status = |rules: &mut Rules, seconds| {
            rules.answer(&any, start + Duration::from_secs(seconds)).map(|answer| answer.status().as_u16())
        };
        let seen = [0, 1, 2, 4, 5].map(|seconds| status(&mut rules, seconds));
        assert_eq!(seen, [429, 429, 503, 503, 404].map(Some));
        rules.remove(last);
        assert_eq!(status(&mut rules, 6), None);
        assert_eq!([counted, timed, last].map(|id| rules.applied(id)), [2, 2, 1]);
    }

    #[test]
    fn an_answer_is_a_status_object_and_says_when_to_come_back() {
        let rule = Rule::answer(StatusCode::TOO_MANY_REQUESTS).retry_after(Duration::from_secs(3));
        let answer = rule.response();
        assert_eq!(answer.headers()[RETRY_AFTER], "3");
        let status: serde_json::Value = serde_json::from_slice(answer.body()).unwrap();
        assert_eq!(
            (&status["kind"], &status["code"], &status["reason"]),
            (&json!("Status"), &json!(429), &json!("TooManyRequests"))
        );
    }
}
