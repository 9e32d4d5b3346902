//! The workspace's tests: building their programs once, choosing among them, and running them.
//!
//! The programs are run here and not by `cargo test`, so that each one's end is seen by itself: a crash
//! is then that program's failure and cannot be lost among the others' output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::libtest::{self, Outcome};
use crate::process::{Job, tail};
use crate::progress::{Progress, clock};
use crate::report::Part;
use crate::repository::{Package, Repository};

/// The name of the test programs that need real servers.
pub(crate) const REAL: &str = "real";

/// How long building all test programs may take on a fresh machine.
const BUILD_LIMIT: Duration = Duration::from_hours(1);
/// How long one test program without servers may take.
const UNIT_LIMIT: Duration = Duration::from_mins(10);
/// How long one test program on real servers may take.
const REAL_LIMIT: Duration = Duration::from_mins(30);
/// The same at full length of the long trials.
const SOAK_LIMIT: Duration = Duration::from_hours(4);
/// How many tests of a program run at once, as libtest reads it.
const TEST_THREADS: &str = "RUST_TEST_THREADS";
/// So many on real servers, for which they wait most of the time, and some for each other's turn.
const REAL_TESTS_AT_ONCE: &str = "3";
/// So many on hubs: tests there wait for periods, and hardly for servers; and those that take turns in one fleet must not
/// keep the others from beginning.
const HUB_TESTS_AT_ONCE: &str = "16";
/// How many lines of a failed program's log are shown.
const LINES_SHOWN: usize = 120;

/// Where a run's progress and logs go.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    /// The checkout.
    pub(crate) repository: &'a Repository,
    /// Says what is being done.
    pub(crate) progress: Progress,
    /// Holds this run's logs.
    pub(crate) logs: PathBuf,
}

/// A test program that cargo built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Package and target: `mailboat-object`, `mailboat-object::real`, `xtask::bin/xtask`.
    pub(crate) label: String,
    /// Whether it needs real servers.
    pub(crate) real: bool,
    package: String,
    executable: PathBuf,
    folder: PathBuf,
}

/// Some or all tests of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    /// The program.
    pub(crate) program: Program,
    tests: Vec<String>,
    whole: bool,
}

/// What the tests of a run get from outside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// Long trials run at their full length.
    pub(crate) soak: bool,
    /// The run folder of the world that real-server tests share.
    pub(crate) testbed: Option<PathBuf>,
    /// The program `mailboat`, if worlds are made of hubs.
    pub(crate) hub: Option<PathBuf>,
}

impl<'a> Run<'a> {
    /// Begins a run of `command`, with a fresh folder for its logs.
    pub(crate) fn begin(repository: &'a Repository, command: &str) -> Result<Self> {
        Ok(Self { repository, progress: Progress::begin(), logs: repository.log_folder(command)? })
    }

    /// Builds the test programs that the arguments (`--workspace`, `-p`, `--test`) select.
    pub(crate) fn build(&self, arguments: &[&str]) -> Result<Vec<Program>> {
        let (log, messages) = (self.logs.join("build.log"), self.logs.join("build.json"));
        let mut command = self.repository.cargo();
        command.args(["test", "--no-run", "--message-format=json-render-diagnostics"]).args(arguments);
        command.env("CARGO_TERM_COLOR", "never");
        let job = Job {
            what: "building the tests",
            command,
            log: &log,
            output: Some(&messages),
            limit: BUILD_LIMIT,
        };
        let ended = job.run(&self.progress)?;
        if !ended.well() {
            let said = tail(&fs::read_to_string(&log).unwrap_or_default(), LINES_SHOWN);
            bail!("cargo {} (log: {}):\n{said}", ended.words(), log.display());
        }
        let messages = fs::read_to_string(&messages).context("cargo's messages cannot be read")?;
        parse_programs(&messages, &self.repository.packages)
    }

    /// Runs the selected tests of one program and adds what came of them to a part.
    pub(crate) fn test(
        &self,
        selection: &Selection,
        surroundings: &Surroundings,
        part: &mut Part,
    ) -> Result<()> {
        let label = &selection.program.label;
        let log = self.logs.join(format!("{}.log", file_name(label)));
        let mut command = selection.command();
        surroundings.describe_to(&mut command);
        let limit = match (selection.program.real, surroundings.soak) {
            (_, true) => SOAK_LIMIT,
            (true, false) => REAL_LIMIT,
            (false, false) => UNIT_LIMIT,
        };
        let began = Instant::now();
        let ended = Job { what: label, command, log: &log, output: None, limit }.run(&self.progress)?;
        let output = read_lossy(&log)?;
        let outcome = libtest::judge_program(&output, &selection.tests, ended);
        self.tell(label, &outcome, began.elapsed(), &output);
        part.add(label, &outcome, &log);
        Ok(())
    }

    /// Runs the examples in all documentation, those that contain one of the names, and gives back the names of
    /// those that ran. All packages in one go: one by one, each would be built with other features of what they
    /// share, which takes minutes.
    pub(crate) fn test_documentation(
        &self,
        names: &[String],
        surroundings: &Surroundings,
        part: &mut Part,
    ) -> Result<Vec<String>> {
        let label = "documentation";
        let log = self.logs.join("documentation.log");
        let mut command = self.repository.cargo();
        command.args(["test", "--doc", "--workspace", "--no-fail-fast", "--"]).args(names);
        command.env("CARGO_TERM_COLOR", "never");
        surroundings.describe_to(&mut command);
        let began = Instant::now();
        let ended =
            Job { what: label, command, log: &log, output: None, limit: UNIT_LIMIT }.run(&self.progress)?;
        let output = read_lossy(&log)?;
        let outcome = libtest::judge_doc_tests(&output, ended);
        if outcome.ran() > 0 {
            self.tell(label, &outcome, began.elapsed(), &output);
        }
        part.add(label, &outcome, &log);
        Ok(libtest::finished(&output).map(str::to_owned).collect())
    }

    /// One line for a finished program, and its output if something failed.
    fn tell(&self, label: &str, outcome: &Outcome, elapsed: Duration, output: &str) {
        self.progress.say(format!("{label}: {} in {}", outcome.words(), clock(elapsed)));
        if !outcome.failures.is_empty() {
            eprintln!("{}", tail(output, LINES_SHOWN));
        }
    }
}

/// Lists each program's tests and keeps those whose full name contains one of the names; all, if there are none.
pub(crate) fn select(programs: &[Program], names: &[String]) -> Result<Vec<Selection>> {
    let listed = programs.iter().map(|program| Ok((program, program.list()?))).collect::<Result<Vec<_>>>()?;
    let full_names =
        || listed.iter().flat_map(|(program, tests)| tests.iter().map(|test| program.full_name(test)));
    let meant: Vec<Meant<'_>> = names.iter().map(|name| Meant::by(name, full_names())).collect();
    Ok(listed.into_iter().filter_map(|(program, tests)| Selection::choose(program, tests, &meant)).collect())
}

impl Program {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        // What `cargo test` gives a test program, and xtask's own description out of the way.
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("CARGO_PKG_NAME", &self.package);
        command
    }

    fn list(&self) -> Result<Vec<String>> {
        let output = self
            .command()
            .args(["--list", "--format", "terse"])
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("{} cannot be started", self.label))?;
        if !output.status.success() {
            bail!("{} cannot list its tests: it ended with {}", self.label, output.status);
        }
        Ok(libtest::parse_list(&String::from_utf8_lossy(&output.stdout)))
    }

    fn full_name(&self, test: &str) -> String {
        format!("{}::{test}", self.label)
    }
}

impl Selection {
    /// The tests of a program that are meant by one of the names; none where there are no tests.
    fn choose(program: &Program, tests: Vec<String>, names: &[Meant<'_>]) -> Option<Self> {
        let all = tests.len();
        let tests: Vec<String> = tests
            .into_iter()
            .filter(|test| names.is_empty() || names.iter().any(|name| name.means(&program.full_name(test))))
            .collect();
        let whole = tests.len() == all;
        (!tests.is_empty()).then(|| Self { program: program.clone(), tests, whole })
    }

    /// A program of the workspace that cargo built beside the tests.
    pub(crate) fn program_beside(&self, name: &str) -> Option<PathBuf> {
        let folder = self.program.executable.parent()?.parent()?;
        Some(folder.join(name)).filter(|program| program.is_file())
    }

    /// How many tests are selected.
    pub(crate) fn count(&self) -> usize {
        self.tests.len()
    }

    /// Whether one of the selected tests has this name in its own.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.tests.iter().any(|test| is_named(&self.program.full_name(test), name))
    }

    fn command(&self) -> Command {
        let mut command = self.program.command();
        if !self.whole {
            command.arg("--exact").args(&self.tests);
        }
        command
    }
}

/// Which tests a name means: those of a module or with a name that is called just so, if there are any, as for a scenario;
/// else all that have it somewhere in their names.
struct Meant<'n> {
    name: &'n str,
    whole: bool,
}

impl<'n> Meant<'n> {
    fn by(name: &'n str, mut full_names: impl Iterator<Item = String>) -> Self {
        let whole = full_names.any(|full_name| has_segment(&full_name, name));
        Self { name, whole }
    }

    fn means(&self, full_name: &str) -> bool {
        if self.whole { has_segment(full_name, self.name) } else { is_named(full_name, self.name) }
    }
}

fn has_segment(full_name: &str, name: &str) -> bool {
    let name = name.replace('-', "_");
    full_name.split("::").any(|segment| segment.replace('-', "_") == name)
}

/// Whether a test has a name in its own. Scenarios are written with dashes, and their modules cannot be.
fn is_named(full_name: &str, name: &str) -> bool {
    full_name.contains(name) || full_name.contains(&name.replace('-', "_"))
}

impl Surroundings {
    fn describe_to(&self, command: &mut Command) {
        if self.soak {
            command.env("MAILBOAT_SOAK", "1");
        }
        // The same cases on every run, so that a change is judged by what it changed; a soak looks for new ones.
        let (name, value) =
            if self.soak { ("PROPTEST_CASES", "20000") } else { ("PROPTEST_RNG_SEED", "20261115") };
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
        if let Some(testbed) = &self.testbed {
            at_once(command.env("MAILBOAT_TESTBED", testbed), REAL_TESTS_AT_ONCE);
        }
        if let Some(hub) = &self.hub {
            at_once(command.env(mailboat_testkit::HUB_VARIABLE, hub), HUB_TESTS_AT_ONCE);
        }
    }
}

/// Tells a test program how many tests to run at once, unless whoever runs it did.
fn at_once(command: &mut Command, tests: &str) {
    if std::env::var_os(TEST_THREADS).is_none() {
        command.env(TEST_THREADS, tests);
    }
}

/// What we read of cargo's message about something that it built.
#[derive(Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: ArtifactTarget,
    profile: ArtifactProfile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct ArtifactTarget {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct ArtifactProfile {
    test: bool,
}

/// The test programs in cargo's messages, those of one package together.
fn parse_programs(messages: &str, packages: &[Package]) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for line in messages.lines().filter(|line| line.starts_with(r#"{"reason":"compiler-artifact""#)) {
        let artifact: Artifact = serde_json::from_str(line).context("cargo's message is not understood")?;
        let Some(executable) = artifact.executable.filter(|_| artifact.profile.test) else { continue };
        let package = packages
            .iter()
            .find(|package| package.manifest_path == artifact.manifest_path)
            .with_context(|| format!("{} is no package of ours", artifact.manifest_path.display()))?;
        let is_test = artifact.target.kind.iter().any(|kind| kind == "test");
        let label = match artifact.target.kind.first().map(String::as_str) {
            Some("test") => format!("{}::{}", package.name, artifact.target.name),
            Some(kind @ ("bin" | "example" | "bench")) => {
                format!("{}::{kind}/{}", package.name, artifact.target.name)
            }
            _ => package.name.clone(),
        };
        programs.push(Program {
            label,
            real: is_test && artifact.target.name == REAL,
            package: package.name.clone(),
            executable,
            folder: package.folder().to_owned(),
        });
    }
    programs.sort_by(|one, other| one.label.cmp(&other.label));
    Ok(programs)
}

fn file_name(label: &str) -> String {
    label.replace("::", "-").replace('/', "-")
}

fn read_lossy(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages() -> Vec<Package> {
        serde_json::from_str(
            r#"[{"name": "mailboat-object", "manifest_path": "/r/crates/object/Cargo.toml", "targets": []}]"#,
        )
        .unwrap()
    }

    fn artifact(kind: &str, name: &str, test: bool, executable: &str) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","package_id":"x","manifest_path":"/r/crates/object/Cargo.toml","target":{{"kind":["{kind}"],"name":"{name}"}},"profile":{{"test":{test}}},"executable":{executable},"fresh":true}}"#
        )
    }

    fn program(label: &str) -> Program {
        Program {
            label: label.to_owned(),
            real: false,
            package: "mailboat-object".to_owned(),
            executable: "/bin/true".into(),
            folder: "/".into(),
        }
    }

    #[test]
    fn test_programs_are_found_among_cargos_messages() {
        let messages = [
            r#"{"reason":"build-script-executed","package_id":"y"}"#.to_owned(),
            artifact("lib", "mailboat_object", false, "null"),
            artifact("test", "real", true, r#""/t/real-1""#),
            artifact("bin", "tool", true, r#""/t/tool-1""#),
            artifact("lib", "mailboat_object", true, r#""/t/object-1""#),
            artifact("bin", "tool", false, r#""/t/tool""#),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ]
        .join("\n");
        let found = parse_programs(&messages, &packages()).unwrap();
        let seen: Vec<_> = found.iter().map(|program| (program.label.as_str(), program.real)).collect();
        assert_eq!(
            seen,
            [
                ("mailboat-object", false),
                ("mailboat-object::bin/tool", false),
                ("mailboat-object::real", true)
            ]
        );
        assert!(found.iter().all(|program| program.folder == Path::new("/r/crates/object")), "{found:?}");
    }

    #[test]
    fn a_unit_test_module_named_real_needs_no_servers() {
        let messages = artifact("lib", "real", true, r#""/t/real""#);
        assert!(!parse_programs(&messages, &packages()).unwrap()[0].real);
    }

    fn choose(tests: &[String], names: &[String]) -> Option<Selection> {
        let program = program("mailboat-object");
        let full_names = || tests.iter().map(|test| program.full_name(test));
        let meant: Vec<Meant<'_>> = names.iter().map(|name| Meant::by(name, full_names())).collect();
        Selection::choose(&program, tests.to_vec(), &meant)
    }

    #[test]
    fn names_choose_by_any_part_of_the_full_name() {
        let tests = || {
            ["patch::adds", "patch::removes", "head::reads_a_patch", "status_return::x"]
                .map(str::to_owned)
                .to_vec()
        };
        for (names, expected, whole) in [
            (vec![], 4, true),
            // A module called just so leaves out what has its name somewhere in another; part of a name finds both.
            (vec!["patch".to_owned()], 2, false),
            (vec!["patc".to_owned()], 3, false),
            (vec!["object::head".to_owned()], 1, false),
            (vec!["mailboat-object".to_owned()], 4, true),
            (vec!["adds".to_owned(), "reads".to_owned()], 2, false),
            (vec!["status-return".to_owned()], 1, false),
        ] {
            let selection = choose(&tests(), &names).unwrap();
            assert_eq!(
                (selection.tests.len(), selection.whole),
                (expected, whole),
                "{names:?}: {selection:?}"
            );
            assert!(names.iter().all(|name| selection.has(name)), "{names:?}");
        }
        assert_eq!(choose(&tests(), &["nothing".to_owned()]), None);
        assert_eq!(choose(&[], &[]), None);
    }

    #[test]
    fn surroundings_reach_the_tests_as_environment() {
        let mut command = Command::new("true");
        Surroundings { soak: true, testbed: Some("/run/world".into()), hub: None }.describe_to(&mut command);
        let seen: Vec<_> = command.get_envs().map(|(name, value)| (name, value.unwrap())).collect();
        let expected = [
            ("MAILBOAT_SOAK", "1"),
            ("MAILBOAT_TESTBED", "/run/world"),
            ("PROPTEST_CASES", "20000"),
            (TEST_THREADS, REAL_TESTS_AT_ONCE),
        ];
        assert_eq!(seen, expected.map(|(name, value)| (name.as_ref(), value.as_ref())));
    }
}
