//! JSON web tokens of the hub's own: one algorithm, one key, and nothing of the header believed.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::AuthorityError;
use crate::storage::{Storage, kept_since_begin};

/// Where the key is kept.
const KEPT_KEY: &str = "tokens.key";
/// No token of ours is longer.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// The key that signs service accounts' tokens (ES256).
pub struct SigningKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
    id: String,
}

/// Why a token is not accepted. It never holds the token.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadToken {
    /// It is not a token of ours.
    #[error("invalid bearer token")]
    Invalid,
    /// Its time is over, or has not come.
    #[error("service account token has expired")]
    Expired,
    /// It is for others.
    #[error("token audiences do not match")]
    Audience,
    /// Its account, or what it is bound to, is gone.
    #[error("service account token has been invalidated")]
    Invalidated,
}

impl SigningKey {
    /// The key that a storage keeps, or at the first start a new one.
    pub fn of(storage: &mut dyn Storage) -> Result<Self, AuthorityError> {
        let random = SystemRandom::new();
        let kept = if let Some(kept) = kept_since_begin(storage, KEPT_KEY)? {
            kept
        } else {
            let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
                .map_err(|_| AuthorityError::Tls("the system gives no randomness".to_owned()))?;
            storage.keep(&[(KEPT_KEY, made.as_ref())])?;
            made.as_ref().to_owned()
        };
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &kept, &random)
            .map_err(|_| AuthorityError::Kept)?;
        let id = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(pair.public_key().as_ref()));
        Ok(Self { pair, random, id })
    }

    /// Signs claims.
    pub fn sign(&self, claims: &Value) -> Option<String> {
        let header = json!({ "alg": "ES256", "kid": self.id }).to_string();
        let mut token = BASE64_URL_SAFE_NO_PAD.encode(header);
        token.push('.');
        token.push_str(&BASE64_URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = self.pair.sign(&self.random, token.as_bytes()).ok()?;
        token.push('.');
        token.push_str(&BASE64_URL_SAFE_NO_PAD.encode(signature));
        Some(token)
    }

    /// A number that no other token has.
    pub fn number(&self) -> Option<String> {
        let mut bytes = [0; 16];
        self.random.fill(&mut bytes).ok()?;
        Some(uuid(bytes))
    }

    /// The claims of a token that this key signed, whatever they say.
    pub fn claims(&self, token: &str) -> Result<Value, BadToken> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(BadToken::Invalid);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(BadToken::Invalid)?;
        let signature = decoded(signature)?;
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key());
        key.verify(signed.as_bytes(), &signature).map_err(|_| BadToken::Invalid)?;
        let (_, claims) = signed.split_once('.').ok_or(BadToken::Invalid)?;
        serde_json::from_slice(&decoded(claims)?).map_err(|_| BadToken::Invalid)
    }
}

/// A random number as it is written down, by RFC 9562.
fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        let dash = if matches!(index, 4 | 6 | 8 | 10) { "-" } else { "" };
        let _ = write!(text, "{dash}{byte:02x}");
    }
    text
}

fn decoded(part: &str) -> Result<Vec<u8>, BadToken> {
    BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| BadToken::Invalid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;

    #[test]
    fn numbers_are_written_as_others_write_them() {
        assert_eq!(uuid([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }

    #[test]
    fn what_was_signed_is_read_and_nothing_else() {
        let mut storage = Memory::default();
        let key = SigningKey::of(&mut storage).unwrap();
        let token = key.sign(&json!({ "sub": "alice" })).unwrap();
        assert_eq!(key.claims(&token).unwrap(), json!({ "sub": "alice" }));
        assert_eq!(SigningKey::of(&mut storage).unwrap().claims(&token).unwrap()["sub"], "alice");
        let other = SigningKey::of(&mut Memory::default()).unwrap();
        assert_eq!(other.claims(&token), Err(BadToken::Invalid));
        let none = BASE64_URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
        let claims = token.split('.').nth(1).unwrap();
        for forged in [format!("{none}.{claims}."), format!("{token}x"), String::new(), "a.b.c".to_owned()] {
            assert_eq!(key.claims(&forged), Err(BadToken::Invalid), "{forged}");
        }
        let swapped = BASE64_URL_SAFE_NO_PAD.encode(r#"{"sub":"eve"}"#);
        let parts: Vec<&str> = token.split('.').collect();
        let forged = [parts[0], &swapped, parts[2]].join(".");
        assert_eq!(key.claims(&forged), Err(BadToken::Invalid));
    }
}
