//! What a request's query asks for.

use std::time::Duration;

use mailboat_machinery::{ListVersion, Status};
use mailboat_object::{FieldSelector, LabelSelector, Name, Version};

use crate::path::decoded;

/// A request's query.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

/// What to do with members that a kind does not declare.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum FieldValidation {
    /// Drop them and say nothing.
    Ignore,
    /// Drop them and warn.
    #[default]
    Warn,
    /// Refuse the request.
    Strict,
}

impl Query {
    /// Reads a query. What cannot be read is refused.
    pub(crate) fn read(query: Option<&str>) -> Result<Self, Status> {
        let mut pairs = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let part = |text: &str| decoded(&text.replace('+', " "));
            match (part(name), part(value)) {
                (Some(name), Some(value)) => pairs.push((name, value)),
                _ => return Err(Status::bad_request("the query cannot be read")),
            }
        }
        Ok(Self { pairs })
    }

    /// The first value of a name that is not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.pairs.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Whether something is asked for: `watch=1`, `watch=true` or `watch`.
    pub(crate) fn is(&self, name: &str) -> bool {
        let found = self.pairs.iter().find(|(found, _)| found == name);
        found.is_some_and(|(_, value)| {
            !matches!(value.as_str(), "0" | "false" | "f" | "F" | "False" | "FALSE")
        })
    }

    fn number(&self, name: &str) -> Result<Option<u64>, Status> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(Status::bad_request(format!("{name}: a whole number is expected, not {text:?}"))),
        }
    }

    pub(crate) fn labels(&self) -> Result<LabelSelector, Status> {
        let Some(text) = self.get("labelSelector") else { return Ok(LabelSelector::everything()) };
        text.parse().map_err(|error| Status::bad_request(format!("unable to parse requirement: {error}")))
    }

    pub(crate) fn fields(&self) -> Result<FieldSelector, Status> {
        let Some(text) = self.get("fieldSelector") else { return Ok(FieldSelector::default()) };
        text.parse().map_err(|error| Status::bad_request(format!("invalid field selector: {error}")))
    }

    pub(crate) fn limit(&self) -> Result<Option<usize>, Status> {
        Ok(self.number("limit")?.filter(|limit| *limit > 0).and_then(|limit| usize::try_from(limit).ok()))
    }

    /// The version that is named, if any.
    pub(crate) fn version(&self) -> Result<Option<Version>, Status> {
        let Some(text) = self.get("resourceVersion") else { return Ok(None) };
        let bad = || Status::bad_request(format!("invalid resource version {text:?}"));
        text.parse().map(Version).map(Some).map_err(|_| bad())
    }

    /// As of which version a list is asked for.
    pub(crate) fn list_version(&self) -> Result<ListVersion, Status> {
        let version = self.version()?;
        let forbidden = |what: &str| Err(Status::bad_request(format!("resourceVersionMatch: {what}")));
        match (self.get("resourceVersionMatch"), version) {
            (None, None) => Ok(ListVersion::Latest),
            (None, Some(version)) if self.get("limit").is_some() && version.0 > 0 => {
                Ok(ListVersion::Exact(version))
            }
            (None | Some("NotOlderThan"), Some(version)) => Ok(ListVersion::NotOlderThan(version)),
            (Some("Exact"), Some(Version(0))) => forbidden("Exact cannot be used with resourceVersion 0"),
            (Some("Exact"), Some(version)) => Ok(ListVersion::Exact(version)),
            (Some("Exact" | "NotOlderThan"), None) => forbidden("cannot be used without resourceVersion"),
            (Some(other), _) => forbidden(&format!("Exact and NotOlderThan are known, {other:?} is not")),
        }
    }

    /// How long the client wants to wait.
    pub(crate) fn timeout(&self) -> Result<Option<Duration>, Status> {
        Ok(self.number("timeoutSeconds")?.filter(|seconds| *seconds > 0).map(Duration::from_secs))
    }

    /// Whether to check and answer, but store nothing.
    pub(crate) fn dry_run(&self) -> Result<bool, Status> {
        match self.get("dryRun") {
            None => Ok(false),
            Some("All") => Ok(true),
            Some(other) => Err(Status::bad_request(format!("dryRun: All is known, {other:?} is not"))),
        }
    }

    pub(crate) fn field_validation(&self) -> Result<FieldValidation, Status> {
        match self.get("fieldValidation") {
            None | Some("Warn") => Ok(FieldValidation::Warn),
            Some("Ignore") => Ok(FieldValidation::Ignore),
            Some("Strict") => Ok(FieldValidation::Strict),
            Some(other) => Err(Status::bad_request(format!(
                "fieldValidation: Ignore, Warn and Strict are known, {other:?} is not"
            ))),
        }
    }

    /// The field manager that the query names.
    pub(crate) fn manager(&self) -> Option<Name> {
        self.get("fieldManager").map(Name::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded() {
        let query = Query::read(Some("labelSelector=a%3Db%2Cc+in+%28d%29&watch=true&limit=0&x")).unwrap();
        assert_eq!(query.get("labelSelector"), Some("a=b,c in (d)"));
        assert!(query.is("watch") && query.is("x") && !query.is("y"));
        assert_eq!(query.limit().unwrap(), None);
        assert!(query.labels().is_ok());
        assert!(Query::read(Some("a=%g0")).is_err());
    }

    #[test]
    fn versions_are_matched_as_servers_match_them() {
        let version = |query: &str| Query::read(Some(query)).unwrap().list_version();
        assert_eq!(version("").unwrap(), ListVersion::Latest);
        assert_eq!(version("resourceVersion=0").unwrap(), ListVersion::NotOlderThan(Version(0)));
        assert_eq!(version("resourceVersion=7&limit=2").unwrap(), ListVersion::Exact(Version(7)));
        assert_eq!(
            version("resourceVersion=7&resourceVersionMatch=Exact").unwrap(),
            ListVersion::Exact(Version(7))
        );
        for bad in [
            "resourceVersionMatch=Exact",
            "resourceVersion=0&resourceVersionMatch=Exact",
            "resourceVersion=x",
        ] {
            assert_eq!(version(bad).unwrap_err().code(), 400, "{bad}");
        }
    }
}
