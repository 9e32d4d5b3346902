//! Tokens of service accounts: what they say of themselves, and how one is asked for.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use mailboat_object::key::{Key, Name};
use mailboat_object::wire::{Call, Part, Verb};
use serde::Deserialize;
use serde_json::json;

use crate::lifetime::Lifetime;

/// A token, with what it says of itself. Whether a server believes it is for the server to say.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    text: String,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    /// Whose it is: `system:serviceaccount:<namespace>:<name>`.
    pub subject: String,
    /// The UID of the account that it is bound to; empty if it does not say.
    pub account_uid: String,
}

/// Why a text is no token of a service account that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not a service account's token that says when it ends")]
pub struct NotAToken;

impl Token {
    /// Reads a token's own claims.
    pub fn read(text: &str) -> Result<Self, NotAToken> {
        let text = text.trim();
        let parts: Vec<&str> = text.split('.').collect();
        let [_, payload, _] = parts.as_slice() else { return Err(NotAToken) };
        let payload = URL_SAFE_NO_PAD.decode(payload).map_err(|_| NotAToken)?;
        let claims: Claims = serde_json::from_slice(&payload).map_err(|_| NotAToken)?;
        let time = |seconds| Timestamp::from_second(seconds).map_err(|_| NotAToken);
        Ok(Self {
            text: text.to_owned(),
            issued_at: time(claims.iat)?,
            expires_at: time(claims.exp)?,
            subject: claims.sub,
            account_uid: claims.kubernetes.service_account.uid,
        })
    }

    /// The token itself. A secret: for requests and Secrets, never for logs.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The namespace and the name of the account that it is of; `None`: it is of somebody else.
    pub fn account(&self) -> Option<(&str, &str)> {
        self.subject.strip_prefix("system:serviceaccount:")?.split_once(':')
    }

    /// How long it lives in all.
    pub fn lifetime(&self) -> Lifetime {
        let seconds = self.expires_at.as_second() - self.issued_at.as_second();
        Lifetime::of_seconds(u64::try_from(seconds).unwrap_or_default())
    }

    /// From when it is renewed: half of its life has passed.
    pub fn renew_from(&self) -> Timestamp {
        let (from, to) = (self.issued_at.as_second(), self.expires_at.as_second());
        Timestamp::from_second(from + (to - from) / 2).unwrap_or(self.expires_at)
    }

    /// Whether it has ended.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }
}

impl fmt::Debug for Token {
    /// Whose it is and how long it lives; never the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token of {} until {}", self.subject, self.expires_at)
    }
}

/// The request for a new token of the account at this key.
pub fn request(account: Key, lifetime: Lifetime) -> Call {
    let body = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": { "expirationSeconds": lifetime.seconds() },
    });
    let body: Arc<[u8]> = body.to_string().into_bytes().into();
    Call {
        key: account,
        verb: Verb::Create { body, manager: Name::EMPTY },
        part: Part::Token,
        dry_run: false,
    }
}

/// The token in the answer to [`request`].
pub fn granted(answer: &[u8]) -> Result<Token, NotAToken> {
    let answer: TokenRequest = serde_json::from_slice(answer).map_err(|_| NotAToken)?;
    Token::read(&answer.status.token)
}

#[derive(Deserialize)]
struct Claims {
    iat: i64,
    exp: i64,
    sub: String,
    #[serde(default, rename = "kubernetes.io")]
    kubernetes: KubernetesClaims,
}

#[derive(Deserialize, Default)]
struct KubernetesClaims {
    #[serde(default, rename = "serviceaccount")]
    service_account: ObjectClaim,
}

#[derive(Deserialize, Default)]
struct ObjectClaim {
    #[serde(default)]
    uid: String,
}

#[derive(Deserialize)]
struct TokenRequest {
    status: TokenStatus,
}

#[derive(Deserialize)]
struct TokenStatus {
    token: String,
}

/// A token that no server would believe.
#[cfg(test)]
pub(crate) fn made_up(issued_at: i64, expires_at: i64) -> String {
    let payload = json!({ "iat": issued_at, "exp": expires_at, "sub": "system:serviceaccount:default:syncer",
        "kubernetes.io": { "serviceaccount": { "name": "syncer", "uid": "u-1" } } });
    format!("h.{}.s3cr3t", URL_SAFE_NO_PAD.encode(payload.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_when_it_is_to_be_renewed_and_when_it_ends() {
        let token = Token::read(&format!("{}\n", made_up(1_000, 5_000))).unwrap();
        assert_eq!(token.renew_from().as_second(), 3_000);
        assert_eq!(token.lifetime().seconds(), 4_000);
        assert_eq!(token.account_uid, "u-1");
        assert_eq!(token.account(), Some(("default", "syncer")));
        let at = |second| token.has_expired(Timestamp::from_second(second).unwrap());
        assert_eq!([at(4_999), at(5_000)], [false, true]);
        assert!(!token.text().ends_with('\n'));
    }

    #[test]
    fn what_is_no_token_is_refused_and_no_token_is_shown() {
        for text in ["", "opaque", "a.b.c", "a.e30.c", "a.b.c.d"] {
            assert_eq!(Token::read(text), Err(NotAToken), "{text}");
        }
        let token = Token::read(&made_up(0, 1_000)).unwrap();
        let shown = format!("{token:?}");
        assert!(!shown.contains("s3cr3t") && shown.contains("1970-01-01T00:16:40Z"), "{shown}");
    }

    #[test]
    fn a_granted_token_is_read_from_the_answer() {
        let answer = json!({ "kind": "TokenRequest", "status": { "token": made_up(0, 600) } }).to_string();
        assert_eq!(granted(answer.as_bytes()).unwrap().expires_at.as_second(), 600);
        assert_eq!(granted(br#"{"status":{}}"#), Err(NotAToken));
    }
}
