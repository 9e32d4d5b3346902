//! List pages, watch lines and a server's Status, read without building a tree.

use std::borrow::Cow;

use crate::json::{Raw, Shell, Span};
use crate::key::Version;
use crate::malformed::{Flaw, Malformed, What};
use crate::object::Limits;

/// One page of a list.
///
/// Its items are bytes still unread: each is decoded by itself, so that one that cannot be read harms no other.
pub struct Page<'a> {
    /// The version of the whole list, the same on each of its pages. None if the server did not say.
    pub version: Option<Version>,
    /// How to ask for the next page. None on the last one.
    pub continue_token: Option<Cow<'a, str>>,
    /// How many items come after this page, if the server counted them.
    pub remaining: Option<u64>,
    /// The list's `kind`, such as `PodList`; empty if it has none.
    pub kind: Cow<'a, str>,
    /// The list's `apiVersion`; empty if it has none.
    pub api_version: Cow<'a, str>,
    items: Vec<&'a [u8]>,
}

/// One line of a watch.
#[derive(Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// An object came into being, or into sight.
    Added(&'a [u8]),
    /// An object changed.
    Modified(&'a [u8]),
    /// An object went away, or out of sight; with its last state.
    Deleted(&'a [u8]),
    /// Everything up to this version was sent.
    Bookmark {
        /// Up to this version.
        version: Version,
        /// With it ends the initial listing that was asked for with the watch.
        initial_events_end: bool,
    },
    /// The watch is over.
    Error {
        /// The HTTP code; 0 if there was none.
        code: u16,
        /// The machine-readable reason, such as `Expired`.
        reason: Cow<'a, str>,
        /// The server's sentence.
        message: Cow<'a, str>,
    },
}

/// A server's answer about a request: `metav1.Status`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StatusBody {
    /// The HTTP code; 0 if it is missing.
    pub code: u16,
    /// `Success` or `Failure`.
    pub status: String,
    /// The machine-readable reason, such as `NotFound`.
    pub reason: String,
    /// The server's sentence.
    pub message: String,
    /// About what.
    pub details: StatusDetails,
}

/// What a Status is about.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StatusDetails {
    /// The object's name; empty if it is not about one object.
    pub name: String,
    /// The API group.
    pub group: String,
    /// The resource (most servers write the plural here) or kind.
    pub kind: String,
    /// The object's uid.
    pub uid: String,
    /// What exactly, field by field.
    pub causes: Vec<StatusCause>,
    /// How long to wait before trying again, if the server says so.
    pub retry_after_seconds: Option<u64>,
}

/// One cause in a Status.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StatusCause {
    /// The machine-readable reason, such as `FieldValueRequired`.
    pub reason: String,
    /// The field, such as `spec.replicas`.
    pub field: String,
    /// The server's sentence. It may quote values of the object.
    pub message: String,
}

impl<'a> Page<'a> {
    /// Reads a page's frame. Of the limits only that on bytes is used, for the page as a whole.
    pub fn parse(json: &'a [u8], limits: Limits) -> Result<Self, Malformed> {
        if json.len() > limits.bytes {
            return Err(Flaw::new(limits.bytes, What::TooLarge { limit: limits.bytes }).within(json));
        }
        Self::read(json).map_err(|flaw| flaw.within(json))
    }

    /// How to ask for the page after this one, without looking at its items: servers write a list's metadata before
    /// them. None on the last page, and on what is no page.
    pub fn peek_continue(json: &'a [u8]) -> Option<Cow<'a, str>> {
        let mut shell = Shell::map(json).ok()?;
        while let Some((key, value)) = shell.member().ok()? {
            if key == b"metadata" {
                return continue_in(checked(json, value).ok()?);
            }
        }
        None
    }

    /// The items, in the server's order, each to be decoded by itself.
    pub fn items(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + '_ {
        self.items.iter().copied()
    }

    fn read(json: &'a [u8]) -> Result<Self, Flaw> {
        let mut page = Self {
            version: None,
            continue_token: None,
            remaining: None,
            kind: Cow::default(),
            api_version: Cow::default(),
            items: Vec::new(),
        };
        let mut has_items = false;
        let mut shell = Shell::map(json)?;
        while let Some((key, value)) = shell.member()? {
            match key {
                b"kind" => page.kind = checked(json, value)?.as_str().unwrap_or_default(),
                b"apiVersion" => page.api_version = checked(json, value)?.as_str().unwrap_or_default(),
                b"metadata" => page.read_metadata(checked(json, value)?, value.start)?,
                b"items" => {
                    has_items = true;
                    page.read_items(json, value)?;
                }
                _ => {}
            }
        }
        shell.end()?;
        if has_items { Ok(page) } else { Err(Flaw::new(0, What::Expected("a list, with items"))) }
    }

    fn read_metadata(&mut self, metadata: Raw<'a>, at: usize) -> Result<(), Flaw> {
        self.version = version_in(metadata, at)?;
        self.continue_token = continue_in(metadata);
        self.remaining = metadata.member("remainingItemCount").and_then(Raw::as_u64);
        Ok(())
    }

    fn read_items(&mut self, json: &'a [u8], value: Span) -> Result<(), Flaw> {
        if json.get(value.start..value.end) == Some(b"null") {
            // What Go writes for a list that was never filled.
            return Ok(());
        }
        let mut items = Shell::array(json, value.start)?;
        while let Some(item) = items.element()? {
            self.items.push(json.get(item.start..item.end).unwrap_or_default());
        }
        Ok(())
    }
}

fn continue_in(metadata: Raw<'_>) -> Option<Cow<'_, str>> {
    metadata.member("continue").and_then(Raw::as_str).filter(|token| !token.is_empty())
}

impl std::fmt::Debug for Page<'_> {
    /// Its frame; never its items, which are tenants' data.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let more = self.continue_token.is_some();
        write!(
            f,
            "page({} items at {:?}, more: {more}, remaining: {:?})",
            self.items.len(),
            self.version,
            self.remaining
        )
    }
}

impl<'a> Event<'a> {
    /// Reads the frame of one line.
    pub fn parse(line: &'a [u8]) -> Result<Self, Malformed> {
        Self::read(line).map_err(|flaw| flaw.within(line))
    }

    fn read(line: &'a [u8]) -> Result<Self, Flaw> {
        let (mut kind, mut object) = (None, None);
        let mut shell = Shell::map(line)?;
        while let Some((key, value)) = shell.member()? {
            match key {
                b"type" => kind = Some(value),
                b"object" => object = Some(value),
                _ => {}
            }
        }
        shell.end()?;
        let (Some(kind), Some(object)) = (kind, object) else {
            return Err(Flaw::new(0, What::Expected("a watch event, with type and object")));
        };
        let bytes = line.get(object.start..object.end).unwrap_or_default();
        match line.get(kind.start..kind.end).unwrap_or_default() {
            b"\"ADDED\"" => Ok(Self::Added(bytes)),
            b"\"MODIFIED\"" => Ok(Self::Modified(bytes)),
            b"\"DELETED\"" => Ok(Self::Deleted(bytes)),
            b"\"BOOKMARK\"" => Self::read_bookmark(line, object),
            b"\"ERROR\"" => {
                let status = checked(line, object)?;
                Ok(Self::Error {
                    code: code_in(status),
                    reason: text_in(status, "reason"),
                    message: text_in(status, "message"),
                })
            }
            _ => Err(Flaw::new(kind.start, What::Expected("the type of a watch event"))),
        }
    }

    fn read_bookmark(line: &'a [u8], object: Span) -> Result<Self, Flaw> {
        let metadata = checked(line, object)?.member("metadata");
        let version = match metadata {
            Some(metadata) => version_in(metadata, object.start)?,
            None => None,
        };
        let end = metadata.and_then(|metadata| metadata.get(&["annotations", "k8s.io/initial-events-end"]));
        Ok(Self::Bookmark {
            version: version.ok_or_else(|| Flaw::new(object.start, What::ResourceVersion))?,
            initial_events_end: end.and_then(Raw::as_str).is_some_and(|end| end == "true"),
        })
    }
}

impl std::fmt::Debug for Event<'_> {
    /// Its type and size; never the object, which is a tenant's data.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Added(object) => write!(f, "added({} bytes)", object.len()),
            Self::Modified(object) => write!(f, "modified({} bytes)", object.len()),
            Self::Deleted(object) => write!(f, "deleted({} bytes)", object.len()),
            Self::Bookmark { version, initial_events_end } => {
                write!(f, "bookmark({version:?}, initial_events_end: {initial_events_end})")
            }
            Self::Error { code, reason, message } => write!(f, "error({code} {reason}: {message})"),
        }
    }
}

impl StatusBody {
    /// Reads a Status. None if the bytes are no JSON, or JSON of another kind.
    pub fn parse(json: &[u8]) -> Option<Self> {
        let status = Raw::parse(json).ok()?;
        if text_in(status, "kind") != "Status" {
            return None;
        }
        Some(Self {
            code: code_in(status),
            status: text_in(status, "status").into_owned(),
            reason: text_in(status, "reason").into_owned(),
            message: text_in(status, "message").into_owned(),
            details: status.member("details").map(StatusDetails::read).unwrap_or_default(),
        })
    }
}

impl StatusDetails {
    fn read(details: Raw<'_>) -> Self {
        let causes = details.member("causes").into_iter().flat_map(Raw::elements).map(|cause| StatusCause {
            reason: text_in(cause, "reason").into_owned(),
            field: text_in(cause, "field").into_owned(),
            message: text_in(cause, "message").into_owned(),
        });
        Self {
            name: text_in(details, "name").into_owned(),
            group: text_in(details, "group").into_owned(),
            kind: text_in(details, "kind").into_owned(),
            uid: text_in(details, "uid").into_owned(),
            causes: causes.collect(),
            retry_after_seconds: details.member("retryAfterSeconds").and_then(Raw::as_u64),
        }
    }
}

fn text_in<'a>(map: Raw<'a>, key: &str) -> Cow<'a, str> {
    map.member(key).and_then(Raw::as_str).unwrap_or_default()
}

fn code_in(status: Raw<'_>) -> u16 {
    status.member("code").and_then(Raw::as_u64).and_then(|code| u16::try_from(code).ok()).unwrap_or_default()
}

/// `resourceVersion` in a list's or bookmark's metadata; empty means that there is none.
fn version_in(metadata: Raw<'_>, at: usize) -> Result<Option<Version>, Flaw> {
    match metadata.member("resourceVersion").and_then(Raw::as_str).as_deref() {
        None | Some("") => Ok(None),
        Some(text) => Version::parse(text).map(Some).ok_or_else(|| Flaw::new(at, What::ResourceVersion)),
    }
}

/// A small part of the frame, checked.
fn checked(json: &[u8], value: Span) -> Result<Raw<'_>, Flaw> {
    let bytes = json.get(value.start..value.end).unwrap_or_default();
    Raw::check(bytes).map_err(|flaw| flaw.moved_by(value.start))
}

#[cfg(test)]
mod tests;
