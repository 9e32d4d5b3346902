//! A watch that goes on: a busy server ends the watches of those who read too slowly.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use mailboat_cluster::{Cluster, Lines, Read, ReadMode, Transport as _};
use mailboat_object::{KindId, Name, Version};

use super::NAMESPACE;

const WATCHED_SECONDS: u32 = 3_600;

/// What changes of the ConfigMaps that are carried, from a version on.
pub struct Watch {
    cluster: Cluster,
    version: Version,
    lines: Option<Lines>,
}

impl Watch {
    /// Begins at a version.
    pub fn from(cluster: Cluster, version: Version) -> Self {
        Self { cluster, version, lines: None }
    }

    /// Asks for it now rather than with the first line.
    pub async fn open(&mut self) -> Result<()> {
        let mode = ReadMode::Watch { from: self.version, timeout_seconds: WATCHED_SECONDS };
        self.lines = Some(self.cluster.fetch(read(mode)).await?);
        Ok(())
    }

    /// The next line. Nothing is lost if the future is dropped before it is done.
    pub async fn next(&mut self) -> Result<Bytes> {
        loop {
            let Some(lines) = &mut self.lines else {
                self.open().await?;
                continue;
            };
            let Some(Ok(line)) = lines.next().await else {
                self.lines = None;
                continue;
            };
            ensure!(!line.starts_with(br#"{"type":"ERROR""#), "the server has forgotten what changed");
            if let Some(version) = text_after(&line, r#""resourceVersion":""#).and_then(Version::parse) {
                self.version = version;
            }
            return Ok(line);
        }
    }
}

/// A read of the ConfigMaps that are carried.
pub fn read(mode: ReadMode) -> Read {
    let mut read = Read::all(config_maps(), mode);
    read.namespace = Name::new(NAMESPACE);
    read
}

/// What is carried.
pub fn config_maps() -> KindId {
    KindId::new("", "configmaps")
}

/// A version as a list says it.
pub fn version(text: &str) -> Result<Version> {
    Version::parse(text).with_context(|| format!("'{text}' is no version"))
}

/// What stands between the first occurrence of a text and the next quote. Servers write the names and versions of objects
/// before all that could have members of the same name.
pub fn text_after<'a>(line: &'a [u8], text: &str) -> Option<&'a str> {
    let rest = std::str::from_utf8(line).ok()?.split_once(text)?.1;
    rest.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_versions_are_those_of_the_object() {
        let line = br#"{"type":"ADDED","object":{"kind":"ConfigMap","metadata":{"name":"map-1","resourceVersion":"42"},"data":{"name":"no"}}}"#;
        assert_eq!(text_after(line, r#""name":""#), Some("map-1"));
        assert_eq!(text_after(line, r#""resourceVersion":""#), Some("42"));
        assert_eq!(text_after(b"{}", r#""name":""#), None);
    }
}
