//! Why a body could not be read, and where.

use std::fmt;

use crate::json;
use crate::key::Key;

/// A body that cannot be read: where, under which member, and why, in one sentence without any of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The byte at which reading failed.
    pub at: usize,
    /// The member under which it failed, such as `metadata.labels`; empty at the top. Bounded in length.
    pub path: String,
    /// What is wrong.
    pub what: What,
    /// Whose body it is, if that could still be read: then only this one key is in doubt.
    pub key: Option<Box<Key>>,
}

/// What is wrong with a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum What {
    /// Larger than the limit.
    #[error("it is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// Nested deeper than the limit.
    #[error("it is nested deeper than the limit of {limit} levels")]
    TooDeep {
        /// The limit in levels.
        limit: u32,
    },
    /// Not UTF-8.
    #[error("it is not UTF-8")]
    NotUtf8,
    /// The body ends too early.
    #[error("it ends in the middle of a value")]
    Ends,
    /// A byte that JSON does not allow here.
    #[error("this byte cannot stand here")]
    Unexpected,
    /// Something follows the value.
    #[error("something follows the end of the value")]
    Trailing,
    /// A number that no 64-bit number can hold.
    #[error("the number is out of range")]
    OutOfRange,
    /// A backslash sequence that JSON does not know, or half a surrogate pair.
    #[error("the escape sequence is not valid")]
    Escape,
    /// A control character inside a string.
    #[error("a control character stands unescaped in a string")]
    ControlCharacter,
    /// A member that stands twice in one map.
    #[error("a member appears twice")]
    Duplicate,
    /// Another type of value than expected.
    #[error("it should be {0}")]
    Expected(&'static str),
    /// A resource version that is no decimal number.
    #[error("the resource version is not a decimal number")]
    ResourceVersion,
    /// An object without a name.
    #[error("the object has no name")]
    NoName,
    /// An object from a view over many clusters that does not say from which one it comes.
    #[error("the object has no annotation kcp.io/cluster")]
    NoCluster,
}

/// What the scanner says while reading. One pointer wide, so that a result travels in registers on the way
/// without flaws. Where it stands in the body's structure is worked out afterwards, from the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flaw(Box<(usize, What)>);

impl Flaw {
    #[cold]
    pub(crate) fn new(at: usize, what: What) -> Self {
        Self(Box::new((at, what)))
    }

    /// The same flaw in a text that begins so much earlier.
    pub(crate) fn moved_by(mut self, bytes: usize) -> Self {
        self.0.0 += bytes;
        self
    }

    /// The full account, with the path to the byte in question.
    #[cold]
    pub(crate) fn within(self, json: &[u8]) -> Malformed {
        let (at, what) = *self.0;
        Malformed { at, path: json::path_at(json, at), what, key: None }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "the body of {key} cannot be read at byte {}", self.at)?,
            None => write!(f, "the body cannot be read at byte {}", self.at)?,
        }
        if !self.path.is_empty() {
            write!(f, " ({})", self.path)?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for Malformed {}
