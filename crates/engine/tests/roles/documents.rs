//! The documents that say which test proves what, held against the tests that there are.

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_hazard_is_listed_and_names_tests_that_exist() {
    let sources = sources();
    let list = document("hazards.md");
    let rows: Vec<&str> = list.lines().filter(|line| line.starts_with("| H")).collect();
    for (at, row) in rows.iter().enumerate() {
        assert!(row.starts_with(&format!("| H{} |", at + 1)), "H{} is not in its place: {row}", at + 1);
        let tests = tests_named_in(row);
        assert!(row.contains("does not apply") || !tests.is_empty(), "no test answers {row}");
        for test in tests {
            assert!(is_a_test(&sources, test), "no test is called {test}: {row}");
        }
    }
    assert_eq!(rows.len(), 45);
}

#[test]
fn every_promise_names_tests_that_exist() {
    let sources = sources();
    let list = document("engine.md");
    let promises = |line: &&str| line.starts_with("| ") && !line.starts_with("| promise ");
    let rows: Vec<&str> = list.lines().filter(promises).collect();
    assert!(rows.len() > 30, "{} promises", rows.len());
    for row in rows {
        let tests = tests_named_in(row);
        assert!(!tests.is_empty(), "no test proves {row}");
        for test in tests {
            assert!(is_a_test(&sources, test), "no test is called {test}: {row}");
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).unwrap()
}

/// What all crates are written in, as one text.
fn sources() -> String {
    let mut sources = String::new();
    let mut directories = vec![root().join("crates")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    sources
}

/// What stands between backticks and can be a function's name. A metric answers too, and is named after us; so does the end of
/// many names.
fn tests_named_in(row: &str) -> Vec<&str> {
    let names = row.split('`').skip(1).step_by(2).filter(|name| !name.contains(['/', ' ', '.']));
    names
        .filter(|name| name.contains('_') && !name.starts_with("mailboat_") && !name.starts_with('_'))
        .collect()
}

/// Whether a function of this name is run as a test: an attribute right above it says so.
fn is_a_test(sources: &str, name: &str) -> bool {
    let mut rest = sources;
    while let Some((before, after)) = rest.split_once(&format!("fn {name}(")) {
        let line = before.rfind('\n').map_or("", |at| &before[..at]);
        if line
            .lines()
            .next_back()
            .is_some_and(|above| above.trim().ends_with("test]") || above.contains("::test("))
        {
            return true;
        }
        rest = after;
    }
    false
}
