//! No file of the repository speaks of the machine that it was written on, or still has both sides of a merge.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Beginnings of paths that exist on some builder's machine only. Each is written in two halves, so that
/// this file passes its own check.
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/tmp/go", "bin")];

/// Beginnings of lines by which git sets the two sides of a conflict apart. The line between them is not among these: a
/// heading may be underlined so.
const MERGE_MARKS: &[&str] = &[concat!("<<<<<", "<< "), concat!(">>>>>", ">> ")];

/// Variables that may name a private package registry or proxy.
const REGISTRY_VARIABLES: &[&str] =
    &["GOPROXY", "GOSUMDB", "CARGO_HTTP_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];

/// Hosts that everyone has, and that documentation may well name.
const PUBLIC_HOSTS: &[&str] = &[
    "localhost",
    "127.0.0.1",
    "crates.io",
    "index.crates.io",
    "static.crates.io",
    "github.com",
    "proxy.golang.org",
    "sum.golang.org",
];

/// Each place where a file has a forbidden word: `path:line: …`.
pub(super) fn findings(root: &Path) -> Result<Vec<String>> {
    let hosts = private_hosts(std::env::vars());
    let mut findings = Vec::new();
    for path in files(root)? {
        let contents = match fs::read(root.join(&path)) {
            Ok(contents) => contents,
            // Git still knows it, but it is gone from the checkout.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| format!("{path} cannot be read")),
        };
        // Bytes that are not text have no words.
        let Ok(text) = String::from_utf8(contents) else { continue };
        findings.extend(words_in(&text, &hosts).map(|(line, what)| format!("{path}:{line}: {what}")));
    }
    Ok(findings)
}

/// What git tracks, and what it would track once added.
fn files(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("git cannot be started")?;
    if !output.status.success() {
        bail!("git cannot list the repository's files: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let names = String::from_utf8(output.stdout).context("a file's name is not UTF-8")?;
    // A symbolic link has a target, not words of its own, and may point to a folder.
    Ok(names.split_terminator('\0').filter(|name| !root.join(name).is_symlink()).map(str::to_owned).collect())
}

fn words_in<'a>(text: &'a str, hosts: &'a [String]) -> impl Iterator<Item = (usize, String)> + 'a {
    text.lines().enumerate().flat_map(move |(index, line)| {
        let paths = MACHINE_PATHS
            .iter()
            .filter(|path| has_absolute(line, path))
            .map(|path| format!("a path of one machine, '{path}'"));
        // The host itself is not repeated: this output may be published.
        let hosts = hosts
            .iter()
            .filter(|host| line.contains(host.as_str()))
            .map(|_| "the package registry of one machine".to_owned());
        let merges = MERGE_MARKS
            .iter()
            .filter(|mark| line.starts_with(**mark))
            .map(|_| "a merge that was not finished".to_owned());
        paths.chain(hosts).chain(merges).map(move |what| (index + 1, what))
    })
}

/// Whether the line has this path at the beginning of a path, and not in the middle of another or of a URL.
fn has_absolute(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|before| before.is_alphanumeric() || "._-~/*$}>".contains(before))
    })
}

/// The hosts that the environment names as registries or proxies, without the public ones.
fn private_hosts(variables: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let names_registry = |name: &str| {
        REGISTRY_VARIABLES.contains(&name)
            || (name.starts_with("CARGO_REGISTRIES_") && name.ends_with("_INDEX"))
            || (name.starts_with("CARGO_SOURCE_") && name.ends_with("_REGISTRY"))
    };
    let mut hosts: Vec<String> = variables
        .filter(|(name, _)| names_registry(name))
        .flat_map(|(_, value)| {
            value.split([',', '|', ' ']).filter_map(host_of).map(str::to_owned).collect::<Vec<_>>()
        })
        .filter(|host| !PUBLIC_HOSTS.contains(&host.as_str()))
        .collect();
    hosts.sort();
    hosts.dedup();
    hosts
}

/// The host of a URL; nothing for words such as `direct` and `off`.
fn host_of(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = host.split_once(':').map_or(host, |(host, _)| host);
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, String)> {
        words_in(text, &["registry.example.test".to_owned()]).collect()
    }

    #[test]
    fn a_machines_path_is_found_with_its_line() {
        let text = format!("first\nsee {}main/README.md\n", MACHINE_PATHS[0]);
        assert_eq!(found(&text), [(2, format!("a path of one machine, '{}'", MACHINE_PATHS[0]))]);
        assert_eq!(found(&format!("\"{}.cache\"", MACHINE_PATHS[1])).len(), 1);
    }

    #[test]
    fn a_merge_that_was_not_finished_is_found() {
        let text = format!("one\n{}HEAD\ntwo\n=======\nthree\n{}main\n", MERGE_MARKS[0], MERGE_MARKS[1]);
        let lines: Vec<usize> = found(&text).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [2, 6]);
        assert_eq!(found("shifted 1 <<<<<<< 2"), []);
    }

    #[test]
    fn the_same_letters_inside_another_path_are_not_a_machines_path() {
        for before in ["https://example.com", "..", "$HOME", "${DIR}", "docs", "*", "/var"] {
            let text = format!("{before}{}x", MACHINE_PATHS[0]);
            assert_eq!(found(&text), [], "{text}");
        }
    }

    #[test]
    fn files_that_git_tracks_or_would_track_are_read_and_ignored_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let git = |arguments: &[&str]| {
            assert!(
                Command::new("git").args(arguments).current_dir(root).status().unwrap().success(),
                "{arguments:?}"
            );
        };
        git(&["init", "--quiet"]);
        let text = format!("at {}x", MACHINE_PATHS[1]);
        for name in ["tracked.md", "gone.md", "new.md", "ignored.log"] {
            fs::write(root.join(name), &text).unwrap();
        }
        fs::write(root.join("picture.png"), [0xff, 0xfe, b'/']).unwrap();
        fs::write(root.join(".gitignore"), "*.log\n").unwrap();
        git(&["add", "tracked.md", "gone.md"]);
        fs::remove_file(root.join("gone.md")).unwrap();
        let mut found = findings(root).unwrap();
        found.sort();
        let places: Vec<&str> = found.iter().filter_map(|finding| finding.split(": ").next()).collect();
        assert_eq!(places, ["new.md:1", "tracked.md:1"], "{found:?}");
    }

    #[test]
    fn a_private_registry_is_found_but_never_repeated() {
        let findings = found("GOPROXY=https://registry.example.test/go");
        assert_eq!(findings.len(), 1);
        assert!(!findings[0].1.contains("example"), "{findings:?}");
    }

    #[test]
    fn private_hosts_come_from_the_environment_and_public_ones_do_not_count() {
        let variables = [
            ("GOPROXY", "https://user:secret@go.example.test:8443/x|https://proxy.golang.org,direct"),
            ("GOSUMDB", "off"),
            ("CARGO_REGISTRIES_MINE_INDEX", "sparse+https://rust.example.test/index/"),
            ("UNRELATED", "https://other.example.test"),
        ];
        let hosts =
            private_hosts(variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(hosts, ["go.example.test", "rust.example.test"]);
    }
}
