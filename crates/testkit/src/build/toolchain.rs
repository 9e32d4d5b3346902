//! The Go toolchain that is on the PATH.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::program::{go_directive, go_mod};
use super::{BuildError, Program};

/// A toolchain that can build one module.
#[derive(Debug)]
pub(super) struct Toolchain {
    go: PathBuf,
    version: String,
}

impl Toolchain {
    /// Asks `go`, in the module's folder: it may fetch a newer toolchain by itself if the module
    /// wants one, and says so if it cannot.
    pub(super) fn for_module(go: &Path, program: Program, module: &Path) -> Result<Self, BuildError> {
        let needed = go_directive(&go_mod(module)?).to_owned();
        let output = match Command::new(go).args(["env", "GOVERSION"]).current_dir(module).output() {
            Ok(output) => output,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(BuildError::NoToolchain { needed });
            }
            Err(error) => return Err(BuildError::File(format!("running `go env`: {error}"))),
        };
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let enough = numbers(&version) >= numbers(&needed);
        if output.status.success() && enough {
            return Ok(Self { go: go.to_owned(), version });
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        let found = if said.is_empty() { version } else { said };
        Err(BuildError::OldToolchain { program, needed, found })
    }

    /// Such as `go1.26.8`.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// A call of `go` in the module's folder.
    pub(super) fn command(&self, module: &Path) -> Command {
        let mut command = Command::new(&self.go);
        // Flags from the surroundings would change what is built, but not the name that it is cached under.
        command.current_dir(module).env("GOFLAGS", "");
        command
    }
}

/// `go1.26.8` and `1.26.8` as numbers that compare; what follows the digits of a part (`rc1`) is left out.
fn numbers(version: &str) -> Vec<u32> {
    let digits =
        |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0);
    version.trim_start_matches("go").split('.').map(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number_and_not_by_letter() {
        assert!(numbers("go1.26.8") >= numbers("1.26"));
        assert!(numbers("go1.9") < numbers("1.21"));
        assert!(numbers("go1.26.10") > numbers("1.26.9"));
        assert!(numbers("go1.27rc1") >= numbers("1.26.8"));
        assert!(numbers("") < numbers("1.21"));
    }
}
