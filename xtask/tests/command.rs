//! The commands as a user calls them, on a small workspace made for the purpose.

#![allow(clippy::unwrap_used, reason = "what makes the workspace is test code as well")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// A workspace with passing, failing, ignored and crashing tests, and two benchmarks.
fn workspace() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, contents: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    };
    let package =
        |name: &str| format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
    write("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"parcel\", \"bench\"]\n");
    write("parcel/Cargo.toml", &package("parcel"));
    write(
        "parcel/src/lib.rs",
        r#"
/// ```
/// assert_eq!(parcel::weight(), 3);
/// ```
pub fn weight() -> u32 { 3 }

#[test]
fn light_parcels_fly() { assert!(std::path::Path::new("src/lib.rs").exists()); }
#[test]
#[ignore = "needs the sea"]
fn heavy_parcels_swim() {}
#[test]
fn heavy_parcels_fly() { assert_eq!(weight(), 4); }
"#,
    );
    write("parcel/tests/storm.rs", "#[test]\nfn the_boat_sinks() { std::process::abort(); }\n");
    write("bench/Cargo.toml", &package("mailboat-bench"));
    let bench = |name: &str, value: f64| {
        let line = format!(
            r#"{{"bench":"{name}","case":"pods","metric":"live heap","value":{value:?},"unit":"bytes","beside":{{"name":"JSON","value":100.0}},"ratio":null,"bar":{{"at_most":1.3}},"holds":true}}"#
        );
        format!("fn main() {{ println!(r##\"{}\"##); }}\n", line.replace('{', "{{").replace('}', "}}"))
    };
    write("bench/src/bin/light.rs", &bench("light", 120.0));
    write("bench/src/bin/heavy.rs", &bench("heavy", 250.0));
    folder
}

fn xtask(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(arguments)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .output()
        .unwrap()
}

/// Exit code, standard output and standard error.
fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_failing_and_a_crashing_test_are_counted_named_and_logged() {
    let folder = workspace();
    let (code, out, err) = told(&xtask(folder.path(), &["test", "parcel"]));
    assert_eq!(code, Some(1), "{out}{err}");
    assert_eq!(out.lines().last(), Some("1 passed, 2 failed"), "{out}{err}");
    assert!(out.contains("FAILED parcel: heavy_parcels_fly\n"), "{out}{err}");
    assert!(out.contains("FAILED parcel::storm: the test program ended with signal: 6"), "{out}{err}");
    assert!(out.contains("unfinished: the_boat_sinks\n"), "{out}{err}");
    for log in out.lines().filter_map(|line| line.trim().strip_prefix("log: ")) {
        assert!(Path::new(log).is_file(), "{log} is not there: {out}{err}");
    }
    assert!(err.contains("left: 3"), "the failed test's own words are not shown: {err}");
}

#[test]
fn names_choose_tests_and_examples_in_documentation() {
    let folder = workspace();
    for name in ["light_parcels", "weight (line"] {
        let (code, out, err) = told(&xtask(folder.path(), &["test", name]));
        assert_eq!((code, out.lines().last()), (Some(0), Some("1 passed, 0 failed")), "{name}: {out}{err}");
    }
}

#[test]
fn what_does_not_exist_is_refused_in_one_sentence() {
    let folder = workspace();
    for (arguments, sentence) in [
        (["test", "no_such_test"].as_slice(), "no test has 'no_such_test' in its name"),
        (&["test", "heavy_parcels_swim"], "no test was run"),
        (&["bench", "anvil"], "no benchmark is named 'anvil'; there are: heavy, light"),
        (&["e2e", "--on", "hub"], "no package has a test program named 'real' yet"),
        (&["e2e"], "no package has a test program named 'real' yet"),
    ] {
        let (code, out, err) = told(&xtask(folder.path(), arguments));
        assert_eq!(code, Some(2), "{arguments:?}: {out}{err}");
        assert_eq!(out, "", "{arguments:?}");
        let last = err.lines().last().unwrap_or_default();
        assert!(last.starts_with("error: ") && last.contains(sentence), "{arguments:?}: {err}");
    }
}

#[test]
fn tests_that_do_not_compile_fail_with_the_compilers_words() {
    let folder = workspace();
    fs::write(folder.path().join("parcel/tests/storm.rs"), "#[test]\nfn wrong() { no_such_function(); }\n")
        .unwrap();
    let (code, out, err) = told(&xtask(folder.path(), &["test", "light_parcels"]));
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(err.contains("no_such_function"), "{out}{err}");
}

#[test]
fn benches_are_shown_passed_on_and_held_to_their_bars() {
    let folder = workspace();
    let (code, out, err) = told(&xtask(folder.path(), &["bench", "--json"]));
    assert_eq!(code, Some(0), "{out}{err}");
    assert_eq!(out.lines().count(), 2, "{out}{err}");
    assert!(out.lines().all(|line| line.starts_with(r#"{"bench":""#)), "{out}");
    // The heavy one claims to hold its bar, and does not.
    assert!(out.contains(r#""ratio":2.5,"bar":{"at_most":1.3},"holds":false"#), "{out}");

    let (code, out, err) = told(&xtask(folder.path(), &["bench", "--check"]));
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(
        out.contains("FAILED heavy pods: live heap is 2.50 times JSON, and should be at most 1.3\n"),
        "{out}"
    );
    assert_eq!(out.lines().last(), Some("1 passed, 1 failed"), "{out}");

    let (code, out, err) = told(&xtask(folder.path(), &["bench", "light", "--check"]));
    assert_eq!((code, out.lines().last()), (Some(0), Some("1 passed, 0 failed")), "{out}{err}");
}
