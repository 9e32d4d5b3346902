//! Building with a stand-in for Go: a shell script that counts its calls and fails as it is told.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

struct Workshop {
    folder: PathBuf,
}

impl Workshop {
    /// `build` is what the stand-in does when it is asked to build, with `$OUTPUT` and `$CALLS` (from 1).
    fn new(build: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("mailboat-workshop-{}-{number}", std::process::id()));
        let module = folder.join("sources/helm");
        fs::create_dir_all(&module).unwrap();
        fs::write(module.join("go.mod"), "module x\n\ngo 1.26.0\n").unwrap();
        let calls = folder.join("calls");
        let script = format!(
            "#!/bin/sh\nif [ \"$1\" = env ]; then echo go1.26.1; exit; fi\necho call >> '{calls}'\nCALLS=$(wc -l < \
             '{calls}')\nOUTPUT=$6\n{build}\n",
            calls = calls.display()
        );
        fs::write(folder.join("go"), script).unwrap();
        fs::set_permissions(folder.join("go"), fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    fn programs(&self) -> Programs {
        Programs {
            sources: self.folder.join("sources"),
            cache: self.folder.join("cache"),
            go: self.folder.join("go"),
            pause: Duration::from_millis(1),
        }
    }

    fn calls(&self) -> usize {
        fs::read_to_string(self.folder.join("calls")).unwrap_or_default().lines().count()
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn build(programs: &Programs) -> (Result<(), BuildError>, Vec<Progress>) {
    let mut seen = Vec::new();
    let result = programs.build_one(Program::Helm, &mut |progress| {
        if !matches!(progress, Progress::Building { .. }) {
            seen.push(progress);
        }
    });
    (result, seen)
}

#[test]
fn a_program_is_built_once_and_found_without_go() {
    let workshop = Workshop::new("echo built > \"$OUTPUT\"");
    let mut programs = workshop.programs();
    let error = programs.helm().unwrap_err();
    assert!(error.to_string().contains("cargo xtask testbed build"), "{error}");
    let (result, seen) = build(&programs);
    result.unwrap();
    assert!(matches!(seen[..], [Progress::Built { .. }]), "{seen:?}");
    let (result, seen) = build(&programs);
    result.unwrap();
    assert_eq!((seen, workshop.calls()), (vec![Progress::Cached { program: Program::Helm }], 1));
    programs.go = workshop.folder.join("no-such-go");
    assert_eq!(fs::read_to_string(programs.helm().unwrap()).unwrap(), "built\n");
}

#[test]
fn a_changed_module_is_built_again_and_the_old_one_left_alone() {
    let workshop = Workshop::new("echo built > \"$OUTPUT\"");
    let programs = workshop.programs();
    build(&programs).0.unwrap();
    let old = programs.helm().unwrap();
    fs::write(workshop.folder.join("sources/helm/tools.go"), "package tools\n").unwrap();
    assert!(!programs.is_built(Program::Helm), "an old build is taken for the new module's");
    build(&programs).0.unwrap();
    assert_ne!(programs.helm().unwrap(), old);
    assert!(old.exists(), "{}", old.display());
}

#[test]
fn a_busy_module_server_is_waited_for() {
    let workshop =
        Workshop::new("[ $CALLS -ge 3 ] || { echo '429 Too Many Requests'; exit 1; }\n: > \"$OUTPUT\"");
    let (result, seen) = build(&workshop.programs());
    result.unwrap();
    let retries = seen.iter().filter(|progress| matches!(progress, Progress::Retrying { .. })).count();
    assert_eq!((retries, workshop.calls()), (2, 3), "{seen:?}");
}

#[test]
fn a_module_server_that_stays_busy_ends_the_build() {
    let workshop = Workshop::new("echo '429 Too Many Requests'; exit 1");
    let error = build(&workshop.programs()).0.unwrap_err();
    assert!(matches!(&error, BuildError::Failed { attempt: 30, .. }), "{error}");
    assert!(!workshop.programs().is_built(Program::Helm));
}

#[test]
fn an_error_of_the_compiler_is_shown_and_not_tried_again() {
    let workshop = Workshop::new("echo 'main.go:3:1: undefined: x'; exit 2");
    let error = build(&workshop.programs()).0.unwrap_err();
    assert!(error.to_string().contains("undefined: x"), "{error}");
    assert_eq!(workshop.calls(), 1);
}

#[test]
fn two_builders_at_once_build_once() {
    let workshop = Workshop::new("sleep 0.3; : > \"$OUTPUT\"");
    let programs = workshop.programs();
    std::thread::scope(|scope| {
        let builders: Vec<_> = (0..2).map(|_| scope.spawn(|| build(&programs).0)).collect();
        for builder in builders {
            builder.join().unwrap().unwrap();
        }
    });
    assert_eq!(workshop.calls(), 1);
}

#[test]
fn a_missing_go_is_named_with_what_to_do() {
    let workshop = Workshop::new("");
    let programs = Programs { go: workshop.folder.join("no-such-go"), ..workshop.programs() };
    let error = build(&programs).0.unwrap_err().to_string();
    assert!(error.starts_with("no Go toolchain was found"), "{error}");
    assert!(error.contains("install Go 1.26.0 or newer") && !error.contains('\n'), "{error}");
}

#[test]
fn a_go_that_is_too_old_is_named_with_what_to_do() {
    let workshop = Workshop::new("");
    fs::write(workshop.folder.join("sources/helm/go.mod"), "module x\n\ngo 1.99\n").unwrap();
    let error = build(&workshop.programs()).0.unwrap_err().to_string();
    assert!(error.contains("go1.26.1") && error.contains("needs Go 1.99 or newer"), "{error}");
}
