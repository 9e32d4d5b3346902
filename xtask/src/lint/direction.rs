//! Dependencies point one way. The rules stand in one table, each with its reason.
//!
//! What a crate reaches is asked of `cargo tree` for each crate by itself: `cargo metadata` shows the
//! features of the whole workspace together, and would say that a crate which takes only kube's derive
//! macros reaches kube's client, because another crate does.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};

use crate::repository::Repository;

/// The rules, in the order in which they are checked.
const RULES: &[Rule] = &[
    Rule {
        of: Of::These(&["object", "store", "engine", "machinery", "api", "registration", "sim"]),
        refuses: Refuses::Reaching(&["tokio", "hyper", "kube-client"]),
        because: "what decides has no I/O and no async runtime, so that simulation can run it",
    },
    Rule {
        of: Of::Shipped,
        refuses: Refuses::Reaching(&[
            "mailboat-testkit",
            "mailboat-bench",
            "mailboat-conformance",
            "mailboat-journey",
            "mailboat-sim",
        ]),
        because: "test code does not ship",
    },
    Rule {
        of: Of::These(&["object"]),
        refuses: Refuses::OtherCratesOfOursThan(&[]),
        because: "everything stands on object, so object stands on nothing of ours",
    },
    Rule {
        of: Of::These(&["store"]),
        refuses: Refuses::OtherCratesOfOursThan(&["object"]),
        because: "store knows objects, and neither servers nor routes",
    },
    Rule {
        of: Of::These(&["cluster"]),
        refuses: Refuses::Reaching(&["mailboat-engine"]),
        because: "cluster moves bytes and does not know what a route is",
    },
    Rule {
        of: Of::Workspace,
        refuses: Refuses::Reaching(&["aws-lc-sys", "openssl-sys"]),
        because: "ring is the one TLS provider",
    },
    Rule {
        of: Of::Workspace,
        refuses: Refuses::TwoVersionsOf(&["rustls", "hyper", "tokio"]),
        because: "two versions do not share connections, types or runtimes, and cost their size twice",
    },
];

/// Packages of the workspace that are never shipped.
const NOT_SHIPPED: &[&str] = &[
    "mailboat-testkit",
    "mailboat-bench",
    "mailboat-conformance",
    "mailboat-journey",
    "mailboat-sim",
    "xtask",
];
/// What our packages' names begin with.
const OURS: &str = "mailboat-";

struct Rule {
    of: Of,
    refuses: Refuses,
    because: &'static str,
}

/// Whose dependencies a rule is about.
enum Of {
    /// These crates' own, for running (not for tests or building). A crate that does not exist yet obeys.
    These(&'static [&'static str]),
    /// Those of every crate that ships, for running.
    Shipped,
    /// Those of the whole workspace, for whatever purpose, on every platform.
    Workspace,
}

enum Refuses {
    /// Reaching one of these packages, however far away.
    Reaching(&'static [&'static str]),
    /// Reaching a crate of ours that is not one of these.
    OtherCratesOfOursThan(&'static [&'static str]),
    /// Reaching one of these in more than one version.
    TwoVersionsOf(&'static [&'static str]),
}

/// Everything that breaks a rule, in words.
pub(super) fn findings(repository: &Repository) -> Result<Vec<String>> {
    let mut graph = Graph::default();
    for package in &repository.packages {
        let tree = cargo_tree(repository, &["--package", &package.name, "--edges", "normal"])?;
        graph.crates.insert(package.name.clone(), tree);
    }
    graph.workspace = cargo_tree(repository, &["--workspace", "--edges", "normal,build,dev"])?;
    Ok(check(&graph))
}

/// What each of our crates reaches, and what all of them together reach.
#[derive(Debug, Default)]
struct Graph {
    crates: BTreeMap<String, Tree>,
    workspace: Tree,
}

/// Everything reached from some roots: the way to each package, and its versions.
#[derive(Debug, Default)]
struct Tree {
    reached: BTreeMap<String, Reached>,
}

#[derive(Debug, Default)]
struct Reached {
    versions: BTreeSet<String>,
    /// The first way found, from the root to the package itself.
    way: Vec<String>,
}

fn cargo_tree(repository: &Repository, arguments: &[&str]) -> Result<Tree> {
    let output = repository
        .cargo()
        .args(["tree", "--prefix", "depth", "--format", "{p}", "--target", "all", "--charset", "ascii"])
        .args(arguments)
        .output()
        .context("cargo cannot be started")?;
    if !output.status.success() {
        bail!("cargo tree failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Tree::parse(&String::from_utf8_lossy(&output.stdout))
}

impl Tree {
    /// Reads lines such as `2hyper v1.8.0` and `1mailboat-object v0.1.0 (path) (*)`: depth, name, version.
    fn parse(text: &str) -> Result<Self> {
        let mut tree = Self::default();
        let mut way: Vec<String> = Vec::new();
        for line in text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())) {
            let package = line.trim_start_matches(|digit: char| digit.is_ascii_digit());
            let depth: usize = line[..line.len() - package.len()].parse()?;
            let mut words = package.split(' ');
            let name = words.next().unwrap_or_default();
            let Some(version) = words.next().and_then(|word| word.strip_prefix('v')) else {
                bail!("cargo tree's line is not understood: {line}");
            };
            way.truncate(depth);
            way.push(name.to_owned());
            // The root itself is not something it depends on.
            if depth > 0 {
                let reached = tree.reached.entry(name.to_owned()).or_default();
                reached.versions.insert(version.to_owned());
                if reached.way.is_empty() {
                    reached.way.clone_from(&way);
                }
            }
        }
        if way.is_empty() {
            bail!("cargo tree printed no package");
        }
        Ok(tree)
    }
}

fn check(graph: &Graph) -> Vec<String> {
    RULES.iter().flat_map(|rule| rule.broken(graph)).collect()
}

impl Rule {
    fn broken(&self, graph: &Graph) -> Vec<String> {
        self.trees(graph)
            .into_iter()
            .flat_map(|(whose, tree)| self.refuses.offences(whose, tree))
            .map(|offence| format!("{offence}; {}", self.because))
            .collect()
    }

    fn trees<'a>(&self, graph: &'a Graph) -> Vec<(&'a str, &'a Tree)> {
        let own = |wanted: &dyn Fn(&str) -> bool| {
            graph
                .crates
                .iter()
                .filter(|(name, _)| wanted(name))
                .map(|(name, tree)| (name.as_str(), tree))
                .collect()
        };
        match self.of {
            Of::These(names) => {
                own(&|package| package.strip_prefix(OURS).is_some_and(|short| names.contains(&short)))
            }
            Of::Shipped => own(&|package| !NOT_SHIPPED.contains(&package)),
            Of::Workspace => vec![("the workspace", &graph.workspace)],
        }
    }
}

impl Refuses {
    fn offences(&self, whose: &str, tree: &Tree) -> Vec<String> {
        let by = |reached: &Reached| reached.way.join(" -> ");
        match self {
            Self::Reaching(names) => names
                .iter()
                .filter_map(|name| Some((name, tree.reached.get(*name)?)))
                .map(|(name, reached)| format!("{whose} depends on {name} ({})", by(reached)))
                .collect(),
            Self::OtherCratesOfOursThan(allowed) => tree
                .reached
                .iter()
                .filter(|(name, _)| name.strip_prefix(OURS).is_some_and(|short| !allowed.contains(&short)))
                .map(|(name, reached)| format!("{whose} depends on {name} ({})", by(reached)))
                .collect(),
            Self::TwoVersionsOf(names) => names
                .iter()
                .filter_map(|name| Some((name, &tree.reached.get(*name)?.versions)))
                .filter(|(_, versions)| versions.len() > 1)
                .map(|(name, versions)| {
                    let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
                    format!("{whose} has {name} more than once ({})", versions.join(", "))
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(crates: &[(&str, &str)], workspace: &str) -> Graph {
        Graph {
            crates: crates
                .iter()
                .map(|(name, tree)| ((*name).to_owned(), Tree::parse(tree).unwrap()))
                .collect(),
            workspace: Tree::parse(workspace).unwrap(),
        }
    }

    const CLEAN: &str = "0xtask v0.1.0 (path)\n";

    #[test]
    fn a_tidy_workspace_breaks_no_rule() {
        let tidy = graph(
            &[
                ("mailboat-object", "0mailboat-object v0.1.0 (path)\n1memchr v2.8.3\n"),
                (
                    "mailboat-store",
                    "0mailboat-store v0.1.0 (path)\n1mailboat-object v0.1.0 (path)\n2memchr v2.8.3\n",
                ),
                (
                    "mailboat-cluster",
                    "0mailboat-cluster v0.1.0 (path)\n1mailboat-object v0.1.0 (path)\n1tokio v1.50.0\n",
                ),
                ("mailboat-testkit", "0mailboat-testkit v0.1.0 (path)\n1tokio v1.50.0\n"),
                (
                    "xtask",
                    "0xtask v0.1.0 (path)\n1mailboat-testkit v0.1.0 (path)\n1mailboat-bench v0.1.0 (path)\n",
                ),
            ],
            "0mailboat-cluster v0.1.0 (path)\n1tokio v1.50.0\n1ring v0.17.0\n\n0xtask v0.1.0 (path)\n1tokio v1.50.0 (*)\n",
        );
        assert_eq!(check(&tidy), Vec::<String>::new());
    }

    #[test]
    fn a_core_that_reaches_a_runtime_is_refused_with_the_way_to_it() {
        let tree =
            "0mailboat-api v0.1.0 (path)\n1serde v1.0.0\n1kube v5.0.0\n2kube-client v5.0.0\n3hyper v1.8.0\n";
        let findings = check(&graph(&[("mailboat-api", tree)], CLEAN));
        assert_eq!(findings.len(), 2, "{findings:#?}");
        assert!(
            findings[0]
                .contains("mailboat-api depends on hyper (mailboat-api -> kube -> kube-client -> hyper)"),
            "{findings:#?}"
        );
    }

    #[test]
    fn shipped_code_does_not_reach_test_code() {
        let tree = |name: &str| format!("0{name} v0.1.0 (path)\n1mailboat-testkit v0.1.0 (path)\n");
        let (cluster, bench) = (tree("mailboat-cluster"), tree("mailboat-bench"));
        let findings = check(&graph(&[("mailboat-cluster", &cluster), ("mailboat-bench", &bench)], CLEAN));
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert!(findings[0].starts_with("mailboat-cluster depends on mailboat-testkit"), "{findings:#?}");
    }

    #[test]
    fn object_store_and_cluster_know_only_what_they_may() {
        for (name, other, refused) in [
            ("mailboat-object", "mailboat-api", true),
            ("mailboat-store", "mailboat-api", true),
            ("mailboat-store", "mailboat-object", false),
            ("mailboat-cluster", "mailboat-engine", true),
            ("mailboat-cluster", "mailboat-store", false),
            ("mailboat-runner", "mailboat-engine", false),
        ] {
            let tree = format!("0{name} v0.1.0 (path)\n1{other} v0.1.0 (path)\n");
            let findings = check(&graph(&[(name, &tree)], CLEAN));
            assert_eq!(findings.len(), usize::from(refused), "{name} -> {other}: {findings:#?}");
        }
    }

    #[test]
    fn another_tls_provider_or_a_second_version_is_refused_anywhere() {
        let workspace =
            "0xtask v0.1.0 (path)\n1rustls v0.23.1\n1rustls v0.24.0\n1openssl-sys v0.9.1\n1hyper v1.8.0\n";
        let findings = check(&graph(&[], workspace));
        assert_eq!(findings.len(), 2, "{findings:#?}");
        assert!(findings[0].contains("openssl-sys"), "{findings:#?}");
        assert!(findings[1].contains("rustls more than once (0.23.1, 0.24.0)"), "{findings:#?}");
    }

    #[test]
    fn a_tree_that_is_empty_or_strange_is_an_error_and_not_a_clean_bill() {
        assert!(Tree::parse("").is_err());
        assert!(Tree::parse("warning: nothing\n").is_err());
        assert!(Tree::parse("0xtask v0.1.0 (path)\n1tokio feature \"net\"\n").is_err());
    }
}
