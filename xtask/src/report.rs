//! What a run of several parts came to: minutes and counts per part, the failures, and the total.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::libtest::Outcome;
use crate::progress::Progress;
use crate::table::{Align, Table};
use crate::verdict::{Refusal, Verdict};

/// All parts of a run, in order.
#[derive(Debug, Default)]
pub(crate) struct Report {
    parts: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: &'static str,
    elapsed: Duration,
    part: Part,
}

/// What one part came to.
#[derive(Debug, Default)]
pub(crate) struct Part {
    passed: usize,
    ignored: usize,
    failures: Vec<Failure>,
    not_run: Option<String>,
}

/// Something that failed, and the log that tells more.
#[derive(Debug)]
struct Failure {
    what: String,
    log: Option<PathBuf>,
}

impl Part {
    /// A part that could not be run because of an earlier failure.
    pub(crate) fn not_run(why: impl Into<String>) -> Self {
        Self { not_run: Some(why.into()), ..Self::default() }
    }

    /// Counts something as passed.
    pub(crate) fn pass(&mut self, count: usize) {
        self.passed += count;
    }

    /// Counts something as failed.
    pub(crate) fn fail(&mut self, what: impl Into<String>, log: Option<&Path>) {
        self.failures.push(Failure { what: what.into(), log: log.map(Path::to_owned) });
    }

    /// Adds what a test program came to; `of` says whose the failures are.
    pub(crate) fn add(&mut self, of: &str, outcome: &Outcome, log: &Path) {
        self.passed += outcome.passed;
        self.ignored += outcome.ignored;
        for failure in &outcome.failures {
            self.fail(format!("{of}: {failure}"), Some(log));
        }
    }

    /// Adds what ran beside this.
    pub(crate) fn join(&mut self, other: Self) {
        self.passed += other.passed;
        self.ignored += other.ignored;
        self.failures.extend(other.failures);
        self.not_run = self.not_run.take().or(other.not_run);
    }

    /// Whether nothing has passed or failed.
    pub(crate) fn is_empty(&self) -> bool {
        self.passed + self.failures.len() == 0
    }

    /// Whether nothing has failed.
    pub(crate) fn is_well(&self) -> bool {
        self.failures.is_empty() && self.not_run.is_none()
    }
}

impl Report {
    /// Runs one part and keeps its time and outcome. An error is that part's failure, so that the parts
    /// after it still run; a refusal, which only the user can mend, ends the run. Says whether the part is well.
    pub(crate) fn run(
        &mut self,
        name: &'static str,
        progress: &Progress,
        part: impl FnOnce() -> Result<Part>,
    ) -> Result<bool> {
        progress.say(format!("{name} …"));
        let began = Instant::now();
        let part = match part() {
            Ok(part) => part,
            Err(refusal) if refusal.is::<Refusal>() => return Err(refusal),
            Err(error) => {
                let mut part = Part::default();
                part.fail(format!("{name}: {error:#}"), None);
                part
            }
        };
        progress.say(format!("{name}: {}", part.words()));
        let well = part.is_well();
        self.parts.push(Row { name, elapsed: began.elapsed(), part });
        Ok(well)
    }

    /// How many passed and failed in all parts.
    pub(crate) fn totals(&self) -> (usize, usize) {
        self.parts.iter().fold((0, 0), |(passed, failed), row| {
            (passed + row.part.passed, failed + row.part.failures.len())
        })
    }

    /// Prints the failures, the table of minutes and, alone on the last line, the total.
    pub(crate) fn print(&self) -> Verdict {
        print!("{}", self.render());
        if self.parts.iter().all(|row| row.part.is_well()) { Verdict::Passed } else { Verdict::Failed }
    }

    fn render(&self) -> String {
        let mut text = String::new();
        for failure in self.parts.iter().flat_map(|row| &row.part.failures) {
            let log =
                failure.log.as_ref().map(|log| format!("\n    log: {}", log.display())).unwrap_or_default();
            let _ = writeln!(text, "FAILED {}{log}", failure.what);
        }
        if !text.is_empty() {
            text.push('\n');
        }
        let mut table = Table::new(&[
            ("part", Align::Left),
            ("minutes", Align::Right),
            ("passed", Align::Right),
            ("failed", Align::Right),
            ("ignored", Align::Right),
            ("", Align::Left),
        ]);
        for row in &self.parts {
            let part = &row.part;
            table.row([
                row.name.to_owned(),
                minutes(row.elapsed),
                part.passed.to_string(),
                part.failures.len().to_string(),
                part.ignored.to_string(),
                part.not_run.as_ref().map(|why| format!("not run: {why}")).unwrap_or_default(),
            ]);
        }
        let (passed, failed) = self.totals();
        let elapsed = self.parts.iter().map(|row| row.elapsed).sum();
        let ignored: usize = self.parts.iter().map(|row| row.part.ignored).sum();
        table.row([
            "all".to_owned(),
            minutes(elapsed),
            passed.to_string(),
            failed.to_string(),
            ignored.to_string(),
            String::new(),
        ]);
        text += &table.render();
        let _ = writeln!(text, "\n{passed} passed, {failed} failed");
        text
    }
}

impl Part {
    fn words(&self) -> String {
        match &self.not_run {
            Some(why) => format!("not run: {why}"),
            // A part that only prepares the next ones counts nothing.
            None if self.is_empty() => "done".to_owned(),
            None => format!("{} passed, {} failed", self.passed, self.failures.len()),
        }
    }
}

fn minutes(elapsed: Duration) -> String {
    format!("{:.1}", elapsed.as_secs_f64() / 60.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::refusal;

    fn report() -> Report {
        let mut report = Report::default();
        let progress = Progress::begin();
        let lint = report.run("lint", &progress, || {
            let mut part = Part::default();
            part.pass(4);
            Ok(part)
        });
        assert!(lint.unwrap());
        report
    }

    #[test]
    fn the_total_stands_alone_on_the_last_line() {
        let text = report().render();
        assert!(text.ends_with("\n\n4 passed, 0 failed\n"), "{text}");
        assert_eq!(report().print(), Verdict::Passed);
    }

    #[test]
    fn failures_are_named_with_their_log_and_fail_the_run() {
        let mut report = report();
        let outcome = Outcome { passed: 2, ignored: 1, failures: vec!["a_test".to_owned()] };
        let well = report.run("unit tests", &Progress::begin(), || {
            let mut part = Part::default();
            part.add("mailboat-object", &outcome, Path::new("logs/object.log"));
            Ok(part)
        });
        assert!(!well.unwrap());
        let text = report.render();
        assert!(text.starts_with("FAILED mailboat-object: a_test\n    log: logs/object.log\n"), "{text}");
        assert!(text.ends_with("\n6 passed, 1 failed\n"), "{text}");
        assert_eq!(report.print(), Verdict::Failed);
    }

    #[test]
    fn an_error_is_its_parts_failure_and_a_refusal_ends_the_run() {
        let mut report = report();
        let progress = Progress::begin();
        assert!(!report.run("generated files", &progress, || anyhow::bail!("no disk")).unwrap());
        assert_eq!(report.totals(), (4, 1));
        let refused = report.run("testbed", &progress, || Err(refusal("Go is not installed")));
        assert_eq!(refused.unwrap_err().to_string(), "Go is not installed");
    }

    #[test]
    fn a_part_that_did_not_run_is_not_well_and_says_why() {
        let mut report = report();
        let well = report.run("unit tests", &Progress::begin(), || Ok(Part::not_run("they do not compile")));
        assert!(!well.unwrap());
        assert!(report.render().contains("not run: they do not compile"), "{}", report.render());
        assert_eq!(report.print(), Verdict::Failed);
    }
}
