//! Names that follow from a SyncTarget, and the rules that names must keep.

use std::fmt;

use sha2::{Digest as _, Sha224};

/// On everything that registration makes, on both sides: the [`SyncerId`]. What bears it is never synced.
pub const REGISTRATION_LABEL: &str = mailboat_api::names::label::REGISTRATION;
/// The field manager of what registration writes.
pub const FIELD_MANAGER: &str = "mailboat-registration";
/// What every syncer's name begins with, as users of KubeStellar know it.
const PREFIX: &str = "kubestellar-syncer-";
/// The longest name of a Namespace, and the longest value of a label.
const LABEL_LIMIT: usize = 63;
const NAME_LIMIT: usize = 253;
const HASH_LENGTH: usize = 8;

/// What a syncer and all that belongs to it is called, in the mailbox and at the edge:
/// `kubestellar-syncer-<SyncTarget's name>-<hash of its UID>`.
///
/// It follows from the SyncTarget alone, so that registering twice is registering once; and a SyncTarget that was
/// deleted and made again under its old name is another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SyncerId(String);

impl SyncerId {
    /// The id of the syncer of this SyncTarget. Fit for a Namespace and a label, however long or dotted the name.
    pub fn new(sync_target_name: &str, sync_target_uid: &str) -> Self {
        let room = LABEL_LIMIT - PREFIX.len() - 1 - HASH_LENGTH;
        let plain = sync_target_name.replace('.', "-");
        let cut = plain.get(..room).unwrap_or(&plain).trim_end_matches('-');
        Self(format!("{PREFIX}{cut}-{}", hash(sync_target_uid)))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SyncerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text cannot be a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no name of {what}: {rule}")]
pub struct BadName {
    /// The text.
    pub name: String,
    /// Whose name it should be.
    pub what: &'static str,
    /// The rule that it breaks.
    pub rule: &'static str,
}

/// Checks the name of an object, as API servers do (an RFC 1123 subdomain).
pub fn check_object_name(name: &str, what: &'static str) -> Result<(), BadName> {
    let rule =
        "small letters, digits, dashes and dots, beginning and ending with a letter or digit, at most 253";
    let good = name.len() <= NAME_LIMIT && name.split('.').all(is_label);
    if good { Ok(()) } else { Err(BadName { name: name.to_owned(), what, rule }) }
}

/// Checks the name of a namespace, as API servers do (an RFC 1123 label).
pub fn check_namespace(name: &str) -> Result<(), BadName> {
    let rule = "small letters, digits and dashes, beginning and ending with a letter or digit, at most 63";
    let good = name.len() <= LABEL_LIMIT && is_label(name);
    if good { Ok(()) } else { Err(BadName { name: name.to_owned(), what: "a namespace", rule }) }
}

/// Checks a label's key and value, as API servers do.
pub fn check_label(key: &str, value: &str) -> Result<(), BadName> {
    let word = |text: &str| {
        let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let bytes = text.as_bytes();
        bytes.len() <= LABEL_LIMIT
            && bytes.iter().all(|byte| inside(*byte))
            && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
    };
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let good_key = word(name)
        && prefix.is_none_or(|prefix| prefix.len() <= NAME_LIMIT && prefix.split('.').all(is_label));
    let rule = "at most 63 letters, digits, dashes, underscores and dots, beginning and ending with a letter or digit";
    if !good_key {
        return Err(BadName { name: key.to_owned(), what: "a label", rule });
    }
    if value.is_empty() || word(value) {
        Ok(())
    } else {
        Err(BadName { name: value.to_owned(), what: "a label's value", rule })
    }
}

fn is_label(text: &str) -> bool {
    let inside = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let bytes = text.as_bytes();
    !bytes.is_empty() && bytes.iter().all(inside) && bytes[0] != b'-' && bytes[bytes.len() - 1] != b'-'
}

/// The first eight digits of the UID's SHA-224, read as one number, in base 36.
fn hash(uid: &str) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut number: Vec<u32> = Sha224::digest(uid.as_bytes()).iter().map(|byte| u32::from(*byte)).collect();
    let mut text = Vec::new();
    while number.iter().any(|byte| *byte != 0) {
        let mut rest = 0;
        for byte in &mut number {
            let value = rest * 256 + *byte;
            (*byte, rest) = (value / 36, value % 36);
        }
        text.push(char::from(DIGITS[rest as usize]));
    }
    text.iter().rev().take(HASH_LENGTH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syncers_name_follows_from_its_sync_target_alone() {
        let uid = "123e4567-e89b-12d3-a456-426614174000";
        let id = SyncerId::new("guilder", uid);
        assert_eq!(id.as_str(), "kubestellar-syncer-guilder-co8kev4q");
        assert_eq!(SyncerId::new("guilder", uid), id);
        assert_ne!(SyncerId::new("guilder", "123e4567-e89b-12d3-a456-426614174001"), id);
    }

    #[test]
    fn a_syncers_name_is_fit_for_a_namespace_whatever_its_sync_target_is_called() {
        let long = "x".repeat(250);
        let cut_at_a_dash = format!("{}-tail", "y".repeat(34));
        for name in ["a", "edge.example.org", &long, &cut_at_a_dash] {
            let id = SyncerId::new(name, "f99e773f-3db2-439e-8054-827c4ac55368");
            assert_eq!(check_namespace(id.as_str()), Ok(()), "{name}");
            assert!(!id.as_str().contains("--"), "{id}");
        }
    }

    #[test]
    fn names_are_judged_as_api_servers_judge_them() {
        for good in ["a", "guilder", "edge-1.example.org", "0"] {
            assert_eq!(check_object_name(good, "a SyncTarget"), Ok(()), "{good}");
        }
        let long = "x".repeat(254);
        for bad in ["", "Guilder", "-a", "a-", "a..b", "a_b", "a/b", "ü", &long] {
            let told = check_object_name(bad, "a SyncTarget").expect_err(bad).to_string();
            assert!(told.starts_with(&format!("{bad:?} is no name of a SyncTarget")), "{told}");
        }
        for bad in ["a.b", "", &"x".repeat(64)] {
            assert!(check_namespace(bad).is_err(), "{bad}");
        }
        for (key, value, good) in [
            ("env", "prod", true),
            ("example.org/env", "", true),
            ("Example_1.x", "A.b_c", true),
            ("", "x", false),
            ("/env", "x", false),
            ("a/b/c", "x", false),
            ("env", "-x", false),
            ("env", "a b", false),
        ] {
            assert_eq!(check_label(key, value).is_ok(), good, "{key}={value}");
        }
    }
}
