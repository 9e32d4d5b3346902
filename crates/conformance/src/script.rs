//! The files of cases: requests as plain text.
//!
//! ```text
//! # What this file is about. Its first words may say which server answers: `on kcp`, `on a forgetful server`.
//!
//! === once
//! (steps that run once, before the cases of the file)
//!
//! == a ConfigMap keeps what it was given
//! POST /api/v1/namespaces/{ns}/configmaps
//!   metadata: {name: a}
//!   data: {k: v}
//! let uid = .metadata.uid
//! @alice GET /api/v1/namespaces/{ns}/configmaps/a
//!   > Accept: application/yaml
//! PATCH merge /api/v1/namespaces/{ns}/configmaps/a
//!   data: {k: w}
//! until 404 DELETE /api/v1/namespaces/{ns}/configmaps/a
//! watch w /api/v1/namespaces/{ns}/configmaps?resourceVersion=0
//! events w 2
//! rest w
//! ```
//!
//! Indented lines belong to the request above them: `>` is a header, `?` a path to which the comparison is confined, `|` a line
//! of a body that is sent as it is; all else is the body in YAML, sent as JSON. `events` takes `?`, too. `{ns}` is the case's own namespace,
//! made when it is mentioned, `{id}` a word of the case's own, and `let` gives a name to a part of the last answer, to one of its
//! headers (`@etag`), or with `after` to the rest of a text in it.

use std::fmt;
use std::sync::Arc;

/// One case: steps that are taken in order, on each server.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name of its file, without its ending.
    pub file: Arc<str>,
    /// What it shows.
    pub name: String,
    /// Its steps.
    pub steps: Vec<Step>,
}

/// A file of cases.
#[derive(Clone, Debug)]
pub struct File {
    /// Its name, without its ending.
    pub name: Arc<str>,
    /// Whom it asks.
    pub on: On,
    /// What is done once, before its cases.
    pub once: Case,
    /// Its cases.
    pub cases: Vec<Case>,
}

/// Which servers a file is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum On {
    /// A plain cluster, without controllers.
    Cluster,
    /// One that forgets what happened as soon as it may.
    Forgetful,
    /// A server of workspaces.
    Workspaces,
}

/// One step of a case.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its line in the file.
    pub line: usize,
    /// The line itself.
    pub text: String,
    /// What is done.
    pub action: Action,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Sends a request, and compares the answer.
    Ask(Ask),
    /// Sends it again and again until the answer has this code and, if a path is named, this value there; compares the
    /// last one.
    Until {
        /// The request.
        ask: Ask,
        /// The code that is waited for.
        code: u16,
        /// A path in the body and its value as JSON.
        holds: Option<(String, String)>,
    },
    /// Gives a name to a part of the last answer.
    Let {
        /// The name.
        name: String,
        /// Where in the body it is; or `@` and the name of a header.
        path: String,
        /// The text before it, in what stands there; none: all of it is meant.
        after: Option<String>,
    },
    /// Opens a watch.
    Watch {
        /// Its name.
        name: String,
        /// The request.
        ask: Ask,
    },
    /// Reads so many events of a watch, and compares them.
    Events {
        /// The watch.
        name: String,
        /// How many.
        count: usize,
        /// The paths to which the comparison is confined; none: all that came.
        only: Vec<String>,
    },
    /// Reads a watch to its end, and compares all that came.
    Rest {
        /// The watch.
        name: String,
    },
}

/// A request.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// Who asks; empty: the administrator.
    pub user: String,
    /// Its method.
    pub method: String,
    /// Its path and query.
    pub path: String,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Body,
    /// The paths to which the comparison of the answer is confined; none: all of it.
    pub only: Vec<String>,
}

/// The body of a request.
#[derive(Clone, Debug, Default)]
pub enum Body {
    /// None.
    #[default]
    Nothing,
    /// YAML, sent as JSON.
    Yaml(String),
    /// Sent as it is.
    Text(String),
}

/// A file that cannot be read as cases.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}.txt, line {line}: {why}")]
pub struct BadScript {
    /// Its name.
    pub file: Arc<str>,
    /// The line.
    pub line: usize,
    /// What is wrong there.
    pub why: String,
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.file, self.name)
    }
}

impl File {
    /// Reads a file of cases.
    pub fn parse(name: &str, text: &str) -> Result<Self, BadScript> {
        let name: Arc<str> = name.into();
        let empty = |title: &str| Case { file: Arc::clone(&name), name: title.to_owned(), steps: Vec::new() };
        let mut file =
            Self { name: Arc::clone(&name), on: On::Cluster, once: empty("once"), cases: Vec::new() };
        let mut current: Option<Case> = None;
        for (index, line) in text.lines().enumerate() {
            let bad = |why: &str| BadScript { file: Arc::clone(&name), line: index + 1, why: why.to_owned() };
            if line.trim().is_empty() {
                continue;
            }
            if let Some(comment) = line.strip_prefix('#') {
                match comment.trim_start() {
                    comment if comment.starts_with("on kcp") => file.on = On::Workspaces,
                    comment if comment.starts_with("on a forgetful server") => file.on = On::Forgetful,
                    _ => {}
                }
            } else if let Some(title) = line.strip_prefix("=== ") {
                if title.trim() != "once" {
                    return Err(bad("only `once` is known after `===`"));
                }
                file.keep(current.replace(empty("once")));
            } else if let Some(title) = line.strip_prefix("== ") {
                if file.cases.iter().chain(&current).any(|case| case.name == title.trim()) {
                    return Err(bad("another case has this name"));
                }
                file.keep(current.replace(empty(title.trim())));
            } else {
                let case = current.as_mut().ok_or_else(|| bad("a step before the first `==`"))?;
                if line.starts_with(' ') {
                    let step = case.steps.last_mut().ok_or_else(|| bad("nothing above it"))?;
                    step.extend(line).map_err(bad)?;
                } else {
                    let action = Action::parse(line).map_err(|why| bad(&why))?;
                    case.steps.push(Step { line: index + 1, text: line.to_owned(), action });
                }
            }
        }
        file.keep(current);
        Ok(file)
    }

    fn keep(&mut self, case: Option<Case>) {
        match case {
            Some(case) if case.name == "once" => self.once = case,
            Some(case) => self.cases.push(case),
            None => {}
        }
    }
}

impl Action {
    fn parse(line: &str) -> Result<Self, String> {
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        let missing = || format!("`{first}` needs more words");
        match first {
            "let" => {
                let (name, path) = rest.split_once(" = ").ok_or_else(missing)?;
                let (path, after) = match path.split_once(" after ") {
                    Some((path, after)) => (path, Some(after.to_owned())),
                    None => (path, None),
                };
                Ok(Self::Let { name: name.to_owned(), path: path.to_owned(), after })
            }
            "until" => {
                let (code, rest) = rest.split_once(' ').ok_or_else(missing)?;
                let code = code.parse().map_err(|_| "a code is expected after `until`".to_owned())?;
                let (rest, holds) = match rest.split_once(" if ") {
                    Some((rest, condition)) => {
                        let (path, value) = condition.split_once('=').ok_or_else(missing)?;
                        (rest, Some((path.to_owned(), value.to_owned())))
                    }
                    None => (rest, None),
                };
                Ok(Self::Until { ask: Ask::parse(rest)?, code, holds })
            }
            "watch" => {
                let (name, rest) = rest.split_once(' ').ok_or_else(missing)?;
                let (user, path) = match rest.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
                    Some((user, path)) => (user, path),
                    None => ("", rest),
                };
                let path = format!("{path}{}watch=true", if path.contains('?') { '&' } else { '?' });
                let ask = Ask { user: user.to_owned(), method: "GET".to_owned(), path, ..Ask::default() };
                Ok(Self::Watch { name: name.to_owned(), ask })
            }
            "events" => {
                let (name, count) = rest.split_once(' ').ok_or_else(missing)?;
                let count = count.parse().map_err(|_| "a number of events is expected".to_owned())?;
                Ok(Self::Events { name: name.to_owned(), count, only: Vec::new() })
            }
            "rest" => Ok(Self::Rest { name: rest.to_owned() }),
            _ => Ok(Self::Ask(Ask::parse(line)?)),
        }
    }

    /// The paths to which the comparison of what comes is confined; none: all of it is compared.
    pub fn only(&self) -> &[String] {
        match self {
            Self::Ask(ask) | Self::Until { ask, .. } | Self::Watch { ask, .. } => &ask.only,
            Self::Events { only, .. } => only,
            Self::Let { .. } | Self::Rest { .. } => &[],
        }
    }

    fn ask(&mut self) -> Option<&mut Ask> {
        match self {
            Self::Ask(ask) | Self::Until { ask, .. } | Self::Watch { ask, .. } => Some(ask),
            Self::Let { .. } | Self::Events { .. } | Self::Rest { .. } => None,
        }
    }
}

impl Step {
    fn extend(&mut self, line: &str) -> Result<(), &'static str> {
        let content = line.trim();
        if let (Action::Events { only, .. }, Some(path)) = (&mut self.action, content.strip_prefix("? ")) {
            only.push(path.to_owned());
            return Ok(());
        }
        let ask = self.action.ask().ok_or("this step takes no lines of its own")?;
        if let Some(header) = content.strip_prefix("> ") {
            let (name, value) = header.split_once(": ").ok_or("a header reads `> Name: value`")?;
            ask.headers.push((name.to_lowercase(), value.to_owned()));
        } else if let Some(path) = content.strip_prefix("? ") {
            ask.only.push(path.to_owned());
        } else if let Some(text) = content.strip_prefix('|') {
            let text = text.strip_prefix(' ').unwrap_or(text);
            match &mut ask.body {
                Body::Text(whole) => {
                    whole.push('\n');
                    whole.push_str(text);
                }
                Body::Nothing => ask.body = Body::Text(text.to_owned()),
                Body::Yaml(_) => return Err("a body is either YAML or lines with `|`"),
            }
        } else {
            match &mut ask.body {
                Body::Yaml(whole) => {
                    whole.push('\n');
                    whole.push_str(line);
                }
                Body::Nothing => ask.body = Body::Yaml(line.to_owned()),
                Body::Text(_) => return Err("a body is either YAML or lines with `|`"),
            }
        }
        Ok(())
    }
}

impl Ask {
    fn parse(line: &str) -> Result<Self, String> {
        let mut words = line.split(' ').filter(|word| !word.is_empty()).peekable();
        let user = words.next_if(|word| word.starts_with('@')).map(|word| word[1..].to_owned());
        let method = words.next().unwrap_or_default().to_owned();
        if !["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"].contains(&method.as_str()) {
            return Err(format!("`{method}` is neither a method nor a word that begins a step"));
        }
        let mut ask = Self { user: user.unwrap_or_default(), method, ..Self::default() };
        let content = match ask.method.as_str() {
            "PATCH" => match words.next_if(|word| !word.starts_with('/')) {
                Some("json") => "application/json-patch+json",
                Some("merge") => "application/merge-patch+json",
                Some("strategic") => "application/strategic-merge-patch+json",
                Some("apply") => "application/apply-patch+yaml",
                _ => return Err("after PATCH comes json, merge, strategic or apply".to_owned()),
            },
            _ => "application/json",
        };
        ask.headers.push(("content-type".to_owned(), content.to_owned()));
        let path = words.next().filter(|path| path.starts_with(['/', '{'])).ok_or("a path is missing")?;
        ask.path.push_str(path);
        match words.next() {
            None => Ok(ask),
            Some(more) => Err(format!("`{more}` is not understood; a path has no spaces")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_reads_as_its_cases() {
        let text = "\
# on kcp
=== once
POST /a
  x: 1
== first
@bob PATCH apply /b?c=d
  > Accept: text/plain
  ? .code
  a:
    b: 1
let uid = .metadata.uid
== second
until 200 GET /c if .status.phase=\"Ready\"
watch w /d?resourceVersion=0
events w 2
PUT /e
  | {
  | }
";
        let file = File::parse("test", text).unwrap();
        assert_eq!((file.on, file.once.steps.len(), file.cases.len()), (On::Workspaces, 1, 2));
        let Action::Ask(ask) = &file.cases[0].steps[0].action else { panic!("{file:?}") };
        assert_eq!((ask.user.as_str(), ask.path.as_str()), ("bob", "/b?c=d"));
        assert_eq!(ask.headers[0].1, "application/apply-patch+yaml");
        assert_eq!(ask.headers[1], ("accept".to_owned(), "text/plain".to_owned()));
        assert!(matches!(&ask.body, Body::Yaml(text) if text == "  a:\n    b: 1"), "{ask:?}");
        let Action::Until { code: 200, holds: Some((path, value)), .. } = &file.cases[1].steps[0].action
        else {
            panic!("{file:?}")
        };
        assert_eq!((path.as_str(), value.as_str()), (".status.phase", "\"Ready\""));
        let Action::Watch { ask, .. } = &file.cases[1].steps[1].action else { panic!("{file:?}") };
        assert_eq!(ask.path, "/d?resourceVersion=0&watch=true");
    }

    #[test]
    fn what_is_not_a_case_is_refused_with_its_line() {
        for (text, why) in [
            ("GET /a", "a step before the first `==`"),
            ("== a\nFETCH /a", "`FETCH` is neither a method nor a word that begins a step"),
            ("== a\nPATCH /a", "after PATCH comes json, merge, strategic or apply"),
            ("== a\nGET /a b", "`b` is not understood; a path has no spaces"),
            ("== a\nlet x = .y\n  z: 1", "this step takes no lines of its own"),
            ("== a\nGET /a\n== a", "another case has this name"),
        ] {
            let error = File::parse("test", text).unwrap_err();
            assert_eq!((error.why.as_str(), error.line), (why, text.lines().count()), "{text}");
        }
    }
}
