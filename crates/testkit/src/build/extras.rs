//! What a program needs beside it, taken from its Go module at build time so that running it needs no Go.

use std::fs;
use std::path::{Path, PathBuf};

use super::toolchain::Toolchain;
use super::{BuildError, Program, file};
use crate::error::Doing as _;
use crate::files::copy_folder;

pub(super) const STAGES_FILE: &str = "stages.yaml";
pub(super) const CRDS_FOLDER: &str = "crds";
pub(super) const CHARTS_FOLDER: &str = "charts";

/// Puts beside `program`, in `folder`, what it needs.
pub(super) fn gather(
    program: Program,
    module: &Path,
    toolchain: &Toolchain,
    folder: &Path,
) -> Result<(), BuildError> {
    match program {
        Program::Kwok => {
            let sources = module_folder(program, module, toolchain, "sigs.k8s.io/kwok")?;
            write_stages(&sources.join("kustomize/stage"), &folder.join(STAGES_FILE))
        }
        Program::ReportsController => {
            let sources = module_folder(program, module, toolchain, "github.com/kyverno/kyverno")?;
            for (from, to) in [("config/crds", CRDS_FOLDER), ("charts", CHARTS_FOLDER)] {
                copy_folder(&sources.join(from), &folder.join(to)).map_err(file)?;
            }
            Ok(())
        }
        Program::Kubebox | Program::Kcp | Program::Helm => Ok(()),
    }
}

/// KWOK does nothing without stages: these make nodes and pods ready at once and keep nodes alive.
fn write_stages(stages: &Path, target: &Path) -> Result<(), BuildError> {
    const FILES: [&str; 6] = [
        "node/fast/node-initialize.yaml",
        "node/heartbeat/node-heartbeat.yaml",
        "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
        "pod/fast/pod-ready.yaml",
        "pod/fast/pod-complete.yaml",
        "pod/fast/pod-delete.yaml",
    ];
    let mut documents = Vec::new();
    for name in FILES {
        let path = stages.join(name);
        documents.push(fs::read_to_string(&path).doing("reading", &path).map_err(file)?);
    }
    fs::write(target, documents.join("\n---\n")).doing("writing", target).map_err(file)
}

/// Where Go keeps the sources of a module that another one requires.
fn module_folder(
    program: Program,
    module: &Path,
    toolchain: &Toolchain,
    required: &str,
) -> Result<PathBuf, BuildError> {
    let missing = |why: String| BuildError::Extras { program, why };
    let output = toolchain
        .command(module)
        .args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", required])
        .output()
        .map_err(|error| missing(format!("running `go list`: {error}")))?;
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if output.status.success() && folder.is_dir() {
        return Ok(folder);
    }
    Err(missing(format!("`go list -m {required}` said: {}", String::from_utf8_lossy(&output.stderr).trim())))
}
