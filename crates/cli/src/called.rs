//! Which command a program's own name asks for.
//!
//! kubectl finds a plugin by its name: `kubectl kubestellar syncer-gen` runs `kubectl-kubestellar-syncer_gen` if that is
//! on the path, and else `kubectl-kubestellar` with `syncer-gen` as its first word.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// A name that leads to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The name of the program.
    pub name: &'static str,
    /// How it is typed, for help texts.
    pub shown: &'static str,
    /// The words that come before those that were typed; `None`: the command that they would lead to is not built.
    pub words: Option<&'static [&'static str]>,
}

/// Every name besides `mailboat` itself.
pub const ALIASES: &[Alias] = &[
    Alias { name: "kubectl-mailboat", shown: "kubectl mailboat", words: Some(&[]) },
    Alias { name: "kubectl-kubestellar", shown: "kubectl kubestellar", words: Some(&[]) },
    Alias {
        name: "kubectl-kubestellar-syncer_gen",
        shown: "kubectl kubestellar",
        words: Some(&["syncer-gen"]),
    },
    Alias {
        name: "kubectl-kcp-workload-edge_sync",
        shown: "kubectl kcp",
        words: Some(&["workload", "edge-sync"]),
    },
    Alias { name: "kubestellar", shown: "kubestellar", words: Some(&["kubestellar"]) },
    Alias {
        name: "kubestellar-list-syncing-objects",
        shown: "kubestellar-list-syncing-objects",
        words: Some(&["kubestellar", "list-syncing-objects"]),
    },
    Alias {
        name: "kubestellar-version",
        shown: "kubestellar-version",
        words: Some(&["kubestellar", "version"]),
    },
    Alias {
        name: "kubestellar-release",
        shown: "kubestellar-release",
        words: Some(&["kubestellar", "release"]),
    },
    Alias { name: "emc-customize", shown: "emc-customize", words: Some(&["kubestellar", "customize"]) },
    Alias { name: "kubectl-ws", shown: "kubectl", words: Some(&["ws"]) },
    Alias { name: "kubectl_complete-mailboat", shown: "kubectl", words: Some(&["complete"]) },
    Alias { name: "kubectl_complete-kubestellar", shown: "kubectl", words: Some(&["complete"]) },
    Alias { name: "kubectl_complete-ws", shown: "kubectl", words: Some(&["complete", "ws"]) },
    Alias { name: "workload-syncer", shown: "workload-syncer", words: None },
    Alias { name: "api-syncagent", shown: "api-syncagent", words: None },
];

/// A command line, once it is clear by which name the program was called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// How the program is typed, for help texts.
    pub shown: &'static str,
    /// The words to parse, the program's name first.
    pub words: Vec<OsString>,
}

/// A name whose command is not built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this version of mailboat cannot be called as {name}; `mailboat --help` lists what it can do")]
pub struct Unbuilt {
    /// The name.
    pub name: &'static str,
}

/// Reads the name that the program was called by, and puts in what it stands for.
pub fn read(words: impl IntoIterator<Item = OsString>) -> Result<Called, Unbuilt> {
    let mut words = words.into_iter();
    let called = words.next().unwrap_or_default();
    let name = Path::new(&called).file_name().and_then(OsStr::to_str).unwrap_or_default();
    let alias = ALIASES.iter().find(|alias| alias.name == name);
    let (shown, stands_for) = match alias {
        None => ("mailboat", &[][..]),
        Some(alias) => (alias.shown, alias.words.ok_or(Unbuilt { name: alias.name })?),
    };
    let words =
        std::iter::once(shown).chain(stands_for.iter().copied()).map(OsString::from).chain(words).collect();
    Ok(Called { shown, words })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Vec<String>, Unbuilt> {
        let called = read(line.split(' ').map(OsString::from))?;
        Ok(called.words.iter().map(|word| word.to_str().unwrap().to_owned()).collect())
    }

    #[test]
    fn each_name_leads_to_its_command() {
        for (line, expected) in [
            ("mailboat version", "mailboat/version"),
            ("/opt/bin/mailboat version", "mailboat/version"),
            ("./renamed version", "mailboat/version"),
            ("/x/kubectl-mailboat syncer-gen a", "kubectl mailboat/syncer-gen/a"),
            ("kubectl-kubestellar syncer-gen a", "kubectl kubestellar/syncer-gen/a"),
            (
                "bin/kubectl-kubestellar-syncer_gen a --syncer-image i",
                "kubectl kubestellar/syncer-gen/a/--syncer-image/i",
            ),
            ("kubestellar start", "kubestellar/kubestellar/start"),
            ("kubestellar-version platform", "kubestellar-version/kubestellar/version/platform"),
            ("emc-customize o.yaml", "emc-customize/kubestellar/customize/o.yaml"),
            ("kubectl-ws root:a", "kubectl/ws/root:a"),
            ("/x/kubectl_complete-mailboat get pl", "kubectl/complete/get/pl"),
            ("kubectl_complete-ws cur", "kubectl/complete/ws/cur"),
            ("kubectl-kcp-workload-edge_sync a --image i", "kubectl kcp/workload/edge-sync/a/--image/i"),
        ] {
            assert_eq!(words(line).map(|words| words.join("/")).as_deref(), Ok(expected), "{line}");
        }
    }

    #[test]
    fn a_name_without_a_command_is_refused_in_one_sentence() {
        for name in ["workload-syncer", "/usr/bin/api-syncagent"] {
            let told = words(name).expect_err(name).to_string();
            assert!(told.contains(name.rsplit('/').next().unwrap()) && told.contains("--help"), "{told}");
        }
    }
}
