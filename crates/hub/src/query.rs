//! What a request's query asks for.

use std::fmt::Write as _;
use std::time::Duration;

use mailboat_machinery::{FieldError, ListVersion, Status};
use mailboat_object::{FieldSelector, LabelSelector, Name, Version};
use serde_json::{Value, json};

use crate::path::decoded;

/// The longest name of a field manager.
const MANAGER_LIMIT_BYTES: usize = 128;

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

    /// All names and values.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The first value of a name that is not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.pairs.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// All values of a name.
    pub(crate) fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.pairs().filter(move |(found, _)| *found == name).map(|(_, value)| value)
    }

    /// Whether a name is mentioned, with whatever value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
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
        match text.parse::<i64>() {
            // Less than nothing is nothing.
            Ok(number) => Ok(u64::try_from(number).ok()),
            Err(_) => Err(Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))),
        }
    }

    /// How to delete, as a body would say it.
    pub(crate) fn delete_options(&self) -> Result<Value, Status> {
        let mut options = json!({});
        if let Some(text) = self.get("gracePeriodSeconds") {
            let number: Result<i64, _> = text.parse();
            let bad = |_| Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"));
            options["gracePeriodSeconds"] = number.map_err(bad)?.into();
        }
        if self.has("orphanDependents") {
            options["orphanDependents"] = self.is("orphanDependents").into();
        }
        if let Some(policy) = self.get("propagationPolicy") {
            options["propagationPolicy"] = policy.into();
        }
        let tried: Vec<&str> = self.all("dryRun").filter(|word| !word.is_empty()).collect();
        if !tried.is_empty() {
            options["dryRun"] = json!(tried);
        }
        Ok(options)
    }

    pub(crate) fn labels(&self) -> Result<LabelSelector, Status> {
        let Some(text) = self.get("labelSelector") else { return Ok(LabelSelector::everything()) };
        text.parse().map_err(|error| Status::bad_request(format!("unable to parse requirement: {error}")))
    }

    pub(crate) fn fields(&self) -> Result<FieldSelector, Status> {
        let Some(text) = self.get("fieldSelector") else { return Ok(FieldSelector::default()) };
        text.parse().map_err(|error| Status::bad_request(format!("invalid field selector: {error}")))
    }

    /// The name of the one object that is selected, if it is selected by that and can be part of a path.
    pub(crate) fn selected_name(&self) -> Option<Name> {
        let fields = self.fields().ok()?;
        let term = fields.terms().iter().find(|term| term.path == "metadata.name" && term.equal)?;
        let fits = !matches!(term.value.as_str(), "" | "." | "..") && !term.value.contains(['/', '%']);
        fits.then(|| Name::new(&term.value))
    }

    pub(crate) fn limit(&self) -> Result<Option<usize>, Status> {
        Ok(self.number("limit")?.filter(|limit| *limit > 0).and_then(|limit| usize::try_from(limit).ok()))
    }

    /// Whether a watch begins with everything that is there. One from a version that cannot be read does not begin.
    pub(crate) fn begins_with_a_list(&self) -> bool {
        let from_begin = |version: Option<Version>| version.is_none_or(|version| version == Version(0));
        self.is("sendInitialEvents") || self.version().is_ok_and(from_begin)
    }

    /// The version that is named, if any.
    pub(crate) fn version(&self) -> Result<Option<Version>, Status> {
        let Some(text) = self.get("resourceVersion") else { return Ok(None) };
        text.parse().map(Version).map(Some).map_err(|_| Status::internal(bad_version(text)))
    }

    /// As of which version a list is asked for.
    pub(crate) fn list_version(&self) -> Result<ListVersion, Status> {
        let version = self.version().map_err(|_| {
            let text = self.get("resourceVersion").unwrap_or_default();
            Status::bad_request(format!("invalid resource version: {}", bad_version(text)))
        })?;
        self.check_list(version, false)?;
        match (self.get("resourceVersionMatch"), version) {
            (None, Some(version)) if self.get("limit").is_some() && version.0 > 0 => {
                Ok(ListVersion::Exact(version))
            }
            (Some("Exact"), Some(version)) => Ok(ListVersion::Exact(version)),
            (_, Some(version)) => Ok(ListVersion::NotOlderThan(version)),
            (_, None) => Ok(ListVersion::Latest),
        }
    }

    /// Refuses options of a list or a watch that do not go together.
    pub(crate) fn check_list(&self, version: Option<Version>, watch: bool) -> Result<(), Status> {
        const FIELD: &str = "resourceVersionMatch";
        let wanted = self.get(FIELD);
        let initial = self.get("sendInitialEvents").is_some();
        let forbidden = |what: &str| FieldError::forbidden(FIELD, what);
        let mut errors = Vec::new();
        if watch {
            match wanted {
                None if initial => {
                    errors.push(forbidden(
                        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                    ));
                }
                Some(_) if !initial => {
                    errors.push(forbidden(
                        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                    ));
                }
                Some(other) if other != "NotOlderThan" => {
                    errors.push(forbidden(
                        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                    ));
                    errors.push(FieldError::unsupported(FIELD, &json!(other), &[json!("NotOlderThan")]));
                }
                _ => {}
            }
        } else {
            match wanted {
                Some("Exact" | "NotOlderThan") if version.is_none() => {
                    errors.push(forbidden(
                        "resourceVersionMatch is forbidden unless resourceVersion is provided",
                    ));
                }
                Some("Exact") if version == Some(Version(0)) => {
                    errors.push(forbidden(
                        "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                    ));
                }
                None | Some("Exact" | "NotOlderThan") => {}
                Some(other) => {
                    let known = ["Exact", "NotOlderThan", ""].map(Value::from);
                    errors.push(FieldError::unsupported(FIELD, &json!(other), &known));
                }
            }
            if initial {
                errors.push(FieldError::forbidden(
                    "sendInitialEvents",
                    "sendInitialEvents is forbidden for list",
                ));
            }
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(Status::invalid("meta.k8s.io", "ListOptions", "", &errors))
        }
    }

    /// How long the client wants to wait.
    pub(crate) fn timeout(&self) -> Result<Option<Duration>, Status> {
        Ok(self.number("timeoutSeconds")?.filter(|seconds| *seconds > 0).map(Duration::from_secs))
    }

    /// Whether to check and answer, but store nothing.
    pub(crate) fn dry_run(&self) -> bool {
        self.get("dryRun") == Some("All")
    }

    /// What to do with members that a kind does not declare.
    pub(crate) fn field_validation(&self) -> FieldValidation {
        match self.get("fieldValidation") {
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            _ => FieldValidation::Warn,
        }
    }

    /// The field manager that the query names.
    pub(crate) fn manager(&self) -> Option<Name> {
        self.get("fieldManager").map(Name::new)
    }

    /// Refuses options of a write that make no sense; `what` is the kind of these options, such as `CreateOptions`.
    pub(crate) fn check_write(&self, what: &str) -> Result<(), Status> {
        const KNOWN_VALIDATION: [&str; 4] = ["", "Ignore", "Strict", "Warn"];
        let mut errors = Vec::new();
        if let Some(other) = self.get("dryRun").filter(|text| *text != "All") {
            errors.push(FieldError::unsupported("dryRun", &json!([other]), &[json!("All")]));
        }
        if let Some(manager) = self.get("fieldManager") {
            if manager.len() > MANAGER_LIMIT_BYTES {
                errors.push(FieldError::too_long("fieldManager", MANAGER_LIMIT_BYTES as u64));
            }
            let odd = manager.chars().enumerate().find(|(_, letter)| letter.is_control());
            if let Some((at, letter)) = odd {
                let sentence = format!("invalid character U+{:04X} (at position {at})", u32::from(letter));
                errors.push(FieldError {
                    field: "fieldManager".to_owned(),
                    reason: "FieldValueInvalid",
                    body: format!("Invalid value: {}: {sentence}", quoted(manager)),
                });
            }
        }
        if let Some(other) = self.get("fieldValidation").filter(|text| !KNOWN_VALIDATION.contains(text)) {
            let known = KNOWN_VALIDATION.map(Value::from);
            errors.push(FieldError::unsupported("fieldValidation", &json!(other), &known));
        }
        if errors.is_empty() { Ok(()) } else { Err(Status::invalid("meta.k8s.io", what, "", &errors)) }
    }
}

/// Why a version cannot be read, in the words of real servers.
fn bad_version(text: &str) -> String {
    format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax")
}

/// A text as Go quotes it, as far as it differs from JSON.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '"' | '\\' => out.extend(['\\', letter]),
            control if control.is_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
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
        for (bad, code) in [
            ("resourceVersionMatch=Exact", 422),
            ("resourceVersion=0&resourceVersionMatch=Exact", 422),
            ("resourceVersion=1&resourceVersionMatch=Nearly", 422),
            ("resourceVersion=x", 400),
        ] {
            assert_eq!(version(bad).unwrap_err().code(), code, "{bad}");
        }
    }
}
