//! The pages that begin with `mailboat up`, followed to the letter: every command of theirs is typed into a shell.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use mailboat_testkit::build::Programs;

use crate::process::Up;

/// In docs/scenarios, one after the other in one world: each takes away what it made.
const PAGES: [&str; 6] =
    ["customize", "mailbox-lifecycle", "move-workload", "singleton", "summary", "two-owners"];

#[test]
fn pages() {
    let folder = tempfile::tempdir().unwrap();
    let mut up = Up::start(folder.path(), &["--data", "boat"]);
    up.until_in_place();
    let tools = folder.path().join("bin");
    fs::create_dir(&tools).unwrap();
    let mailboat = Path::new(env!("CARGO_BIN_EXE_mailboat"));
    let linked = Command::new(mailboat).arg("link").arg(&tools).output().unwrap();
    assert!(linked.status.success(), "{linked:?}");
    patient_kubectl(&tools.join("kubectl"));
    let path = std::env::join_paths(
        [tools.as_path(), mailboat.parent().unwrap()]
            .into_iter()
            .map(Path::to_owned)
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for page in PAGES {
        let text = fs::read_to_string(repository.join(format!("docs/scenarios/{page}.md"))).unwrap();
        let commands = commands_of(&text);
        assert!(commands.contains("kubectl"), "{page} has no commands");
        let said = Command::new("bash")
            .args(["-euxo", "pipefail", "-c", &commands])
            .current_dir(&repository)
            .env("PATH", &path)
            .env("HOME", folder.path())
            .env("KUBECONFIG", folder.path().join("boat/kubeconfig"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            said.status.success(),
            "{page}: {}\n{}\n{}",
            said.status,
            text(&said.stdout),
            text(&said.stderr)
        );
    }
    up.interrupt();
}

/// All that a page says in blocks of shell.
fn commands_of(page: &str) -> String {
    let mut commands = String::new();
    let mut inside = false;
    for line in page.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            line if inside => {
                commands.push_str(line);
                commands.push('\n');
            }
            _ => {}
        }
    }
    commands
}

/// A kubectl that waits longer than its half a minute, as a person on a busy machine would.
fn patient_kubectl(place: &Path) {
    let kubectl = Programs::locate().unwrap().kubectl().unwrap();
    let kubectl = kubectl.display();
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in\n*' wait '*) exec '{kubectl}' \"$@\" --timeout=120s ;;\n*) exec '{kubectl}' \"$@\" ;;\nesac\n"
    );
    fs::write(place, script).unwrap();
    fs::set_permissions(place, fs::Permissions::from_mode(0o755)).unwrap();
}
