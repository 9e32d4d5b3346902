//! Paths of workspaces, as users type them: like folders, with colons.

use std::fmt;

/// The workspace that all others are in.
pub const ROOT: &str = "root";

/// The whole path of a workspace, such as `root:org:team`. It may also be the id of a logical cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkspacePath(String);

/// What somebody asks for with a word after `ws`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Stay, and say where that is: `.`.
    Here,
    /// Where one was before: `-`.
    Previous,
    /// One's own workspace: `~`, or nothing.
    Home,
    /// This workspace.
    Path(WorkspacePath),
}

/// Why a text is no way to a workspace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// A part of it is no name.
    #[error("{path:?} is no path of a workspace: {part:?} should be small letters, digits and dashes")]
    Part {
        /// The text.
        path: String,
        /// The part.
        part: String,
    },
    /// There is nothing above.
    #[error("there is no workspace above {0}")]
    NoParent(WorkspacePath),
    /// It needs a place to begin from.
    #[error(
        "{0:?} is relative, and the kubeconfig does not point to a workspace to begin from; write it from the root, as root:a:b"
    )]
    Nowhere(String),
}

impl WorkspacePath {
    /// Reads a whole path; a colon before it may be there.
    pub fn parse(text: &str) -> Result<Self, BadPath> {
        let path = text.strip_prefix(':').unwrap_or(text);
        for part in path.split(':') {
            let fits =
                part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
            if part.is_empty() || !fits {
                return Err(BadPath::Part { path: text.to_owned(), part: part.to_owned() });
            }
        }
        Ok(Self(path.to_owned()))
    }

    /// The workspace above.
    pub fn parent(&self) -> Result<Self, BadPath> {
        let parent = self.0.rsplit_once(':').map(|(parent, _)| Self(parent.to_owned()));
        parent.ok_or_else(|| BadPath::NoParent(self.clone()))
    }

    /// A workspace in this one.
    pub fn child(&self, name: &str) -> Result<Self, BadPath> {
        Self::parse(&format!("{self}:{name}"))
    }

    /// Its own name.
    pub fn name(&self) -> &str {
        self.0.rsplit_once(':').map_or(&self.0, |(_, name)| name)
    }

    /// The whole path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Destination {
    /// Reads a word; `current` is where one is, `home_folder` what a shell may have made of `~`.
    pub fn read(
        word: Option<&str>,
        current: Option<&WorkspacePath>,
        home_folder: Option<&str>,
    ) -> Result<Self, BadPath> {
        let Some(word) = word.filter(|word| Some(*word) != home_folder) else { return Ok(Self::Home) };
        let here = || current.cloned().ok_or_else(|| BadPath::Nowhere(word.to_owned()));
        match word {
            "." => Ok(Self::Here),
            "-" => Ok(Self::Previous),
            "~" => Ok(Self::Home),
            _ if word.starts_with(':') || word == ROOT || word.starts_with("root:") => {
                WorkspacePath::parse(word).map(Self::Path)
            }
            _ => {
                let mut path = here()?;
                for part in word.split(':').flat_map(|part| part.split('/')) {
                    path = match part {
                        ".." => path.parent()?,
                        "." => path,
                        name => path
                            .child(name)
                            .map_err(|_| BadPath::Part { path: word.to_owned(), part: name.to_owned() })?,
                    };
                }
                Ok(Self::Path(path))
            }
        }
    }
}

/// The workspace that a server's URL or path points to, if it points to one.
pub fn workspace_of(url: &str) -> Option<WorkspacePath> {
    let (_, path) = url.split_once("/clusters/")?;
    WorkspacePath::parse(path.trim_end_matches('/')).ok()
}

/// The URL of a workspace on the server that another URL points to.
pub fn url_of(url: &str, workspace: &WorkspacePath) -> String {
    let base = url.split_once("/clusters/").map_or(url, |(base, _)| base);
    // A view of kcp is no base: workspaces are at the server itself.
    let base = base.split_once("/services/").map_or(base, |(base, _)| base);
    format!("{}/clusters/{workspace}", base.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> WorkspacePath {
        WorkspacePath::parse(text).unwrap()
    }

    #[test]
    fn words_lead_where_folders_would() {
        let current = path("root:org:team");
        let at = |text: &str| Destination::Path(path(text));
        for (word, expected) in [
            (".", Destination::Here),
            ("-", Destination::Previous),
            ("~", Destination::Home),
            ("/home/me", Destination::Home),
            ("..", at("root:org")),
            ("..:..", at("root")),
            ("../other", at("root:org:other")),
            ("x", at("root:org:team:x")),
            ("x:y", at("root:org:team:x:y")),
            (":root:x", at("root:x")),
            ("root", at("root")),
            ("root:x", at("root:x")),
            (":1xf9b3k", at("1xf9b3k")),
        ] {
            assert_eq!(
                Destination::read(Some(word), Some(&current), Some("/home/me")),
                Ok(expected),
                "{word}"
            );
        }
        assert_eq!(Destination::read(None, None, None), Ok(Destination::Home));
    }

    #[test]
    fn what_leads_nowhere_says_why() {
        let root = path("root");
        for word in ["..", "a::b", "A", "a_b", ":", "root:", "a b"] {
            let told = Destination::read(Some(word), Some(&root), None).expect_err(word).to_string();
            assert!(told.lines().count() == 1, "{told}");
        }
        let told = Destination::read(Some("x"), None, None).unwrap_err().to_string();
        assert!(told.contains("root:a:b"), "{told}");
    }

    #[test]
    fn urls_point_to_workspaces() {
        let base = "https://kcp:6443";
        assert_eq!(workspace_of("https://kcp:6443/clusters/root:a"), Some(path("root:a")));
        assert_eq!(workspace_of("https://kcp:6443/clusters/root:a/"), Some(path("root:a")));
        for none in [base, "https://kcp:6443/clusters/*", "https://kcp:6443/clusters/"] {
            assert_eq!(workspace_of(none), None, "{none}");
        }
        for from in [
            base,
            "https://kcp:6443/",
            "https://kcp:6443/clusters/root",
            "https://kcp:6443/services/x/clusters/*",
        ] {
            assert_eq!(url_of(from, &path("root:a")), "https://kcp:6443/clusters/root:a", "{from}");
        }
    }
}
