//! Which programs there are, what each is built from, and the hash that its cache folder is named after.

use std::fmt::{self, Write as _};
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::{BuildError, file};
use crate::error::Doing as _;

/// A program of the testbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Program {
    /// etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl in one, by the name it is called.
    Kubebox,
    /// kcp with its embedded etcd.
    Kcp,
    /// Nodes and pods that become ready without a kubelet.
    Kwok,
    /// The installer of charts.
    Helm,
    /// The part of Kyverno that writes `PolicyReports`.
    ReportsController,
}

impl Program {
    /// All programs, those that most tests need first.
    pub const ALL: [Self; 5] = [Self::Kubebox, Self::Kcp, Self::Kwok, Self::Helm, Self::ReportsController];

    /// The program's name, which is also its file's.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kubebox => "kubebox",
            Self::Kcp => "kcp",
            Self::Kwok => "kwok",
            Self::Helm => "helm",
            Self::ReportsController => "reports-controller",
        }
    }

    /// The folder of its module in `testbed/`.
    pub(super) fn module(self) -> &'static str {
        match self {
            Self::Kubebox => "k8s",
            Self::Kcp => "kcp",
            Self::Kwok => "kwok",
            Self::Helm => "helm",
            Self::ReportsController => "kyverno",
        }
    }

    /// The package that is built.
    pub(super) fn package(self) -> &'static str {
        match self {
            Self::Kubebox => ".",
            Self::Kcp => "github.com/kcp-dev/kcp/cmd/kcp",
            Self::Kwok => "sigs.k8s.io/kwok/cmd/kwok",
            Self::Helm => "helm.sh/helm/v3/cmd/helm",
            Self::ReportsController => "github.com/kyverno/kyverno/cmd/reports-controller",
        }
    }

    /// The names under which one program is called.
    pub(super) fn other_names(self) -> &'static [&'static str] {
        match self {
            Self::Kubebox => {
                &["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"]
            }
            Self::Kcp | Self::Kwok | Self::Helm | Self::ReportsController => &[],
        }
    }

    /// The linker's flags: no debug tables (a third of the size), and the version that the server reports about
    /// itself, which charts and clients ask for; a plain `go build` would leave `v0.0.0-master`.
    pub(super) fn linker_flags(self, go_mod: &str) -> String {
        let mut flags = "-s -w".to_owned();
        let version = match self {
            Self::Kubebox => required_version(go_mod, "k8s.io/kubernetes").map(str::to_owned),
            Self::Kcp => required_version(go_mod, "k8s.io/kubernetes")
                .zip(required_version(go_mod, "github.com/kcp-dev/kcp"))
                .map(|(kubernetes, kcp)| format!("{kubernetes}+kcp-{kcp}")),
            Self::Kwok | Self::Helm | Self::ReportsController => None,
        };
        if let Some(version) = version {
            let mut numbers = version.trim_start_matches('v').split('.');
            let (major, minor) = (numbers.next().unwrap_or("0"), numbers.next().unwrap_or("0"));
            for (variable, value) in
                [("gitVersion", version.as_str()), ("gitMajor", major), ("gitMinor", minor)]
            {
                // Writing to a String cannot fail.
                let _ = write!(flags, " -X k8s.io/component-base/version.{variable}={value}");
            }
        }
        flags
    }
}

impl fmt::Display for Program {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The text of a module's `go.mod`.
pub(super) fn go_mod(module: &Path) -> Result<String, BuildError> {
    let path = module.join("go.mod");
    fs::read_to_string(&path).doing("reading", &path).map_err(file)
}

/// The version of Go that a `go.mod` asks for.
pub(super) fn go_directive(go_mod: &str) -> &str {
    go_mod.lines().find_map(|line| line.strip_prefix("go ")).map_or("1.21", str::trim)
}

/// A hash over everything that decides what is built: the module's files and the linker's flags.
pub(super) fn hash_sources(program: Program, module: &Path) -> Result<String, BuildError> {
    let entries = fs::read_dir(module).doing("listing", module).map_err(file)?;
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| counts(path)).collect();
    files.sort();
    let mut hasher = Sha256::new();
    for path in files {
        let contents = fs::read(&path).doing("reading", &path).map_err(file)?;
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        for piece in [name, contents.as_slice()] {
            hasher.update(u64::try_from(piece.len()).unwrap_or(u64::MAX).to_le_bytes());
            hasher.update(piece);
        }
    }
    hasher.update(program.linker_flags(&go_mod(module)?));
    let digest = hasher.finalize();
    Ok(digest.iter().take(6).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

fn counts(path: &Path) -> bool {
    let is_go = path.extension().is_some_and(|extension| extension == "go");
    is_go || path.file_name().is_some_and(|name| name == "go.mod" || name == "go.sum")
}

/// The version of a module that a `go.mod` requires.
fn required_version<'a>(go_mod: &'a str, module: &str) -> Option<&'a str> {
    go_mod.lines().find_map(|line| {
        let mut words = line.trim().trim_start_matches("require ").split_ascii_whitespace();
        let is_it = words.next() == Some(module);
        words.next().filter(|version| is_it && version.starts_with('v'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GO_MOD: &str = "module x\n\ngo 1.26.0\n\nrequire (\n\tgithub.com/kcp-dev/kcp v0.28.1\n\tk8s.io/kubernetes \
                          v1.32.3\n)\n\nreplace k8s.io/kubernetes => github.com/kcp-dev/kubernetes v0.0.0-2025\n";

    #[test]
    fn the_reported_version_comes_from_the_module() {
        assert_eq!(go_directive(GO_MOD), "1.26.0");
        let flags = Program::Kcp.linker_flags(GO_MOD);
        assert!(flags.contains("gitVersion=v1.32.3+kcp-v0.28.1"), "{flags}");
        assert!(flags.contains("gitMajor=1 ") && flags.ends_with("gitMinor=32"), "{flags}");
        assert_eq!(Program::Helm.linker_flags(GO_MOD), "-s -w");
    }

    #[test]
    fn the_hash_changes_with_the_sources_and_with_nothing_else() {
        let module = std::env::temp_dir().join(format!("mailboat-module-{}", std::process::id()));
        fs::create_dir_all(&module).unwrap();
        fs::write(module.join("go.mod"), GO_MOD).unwrap();
        let first = hash_sources(Program::Kcp, &module).unwrap();
        fs::write(module.join("README.md"), "nothing that is compiled").unwrap();
        let with_readme = hash_sources(Program::Kcp, &module).unwrap();
        fs::write(module.join("go.sum"), "a sum").unwrap();
        let with_sum = hash_sources(Program::Kcp, &module).unwrap();
        fs::remove_dir_all(&module).unwrap();
        assert_eq!(first, with_readme);
        assert_ne!(first, with_sum);
    }
}
