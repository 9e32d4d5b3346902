//! What Rust's test harness prints, read with suspicion.
//!
//! A test may run another test program, print without a newline, or take its own process down. So the
//! harness's last word counts only if it agrees with how the program ended and with the number of tests
//! that the program had listed before it ran.

use std::collections::BTreeSet;

use crate::process::Ended;

/// How many unfinished tests a crash names.
const UNFINISHED_NAMED: usize = 8;

/// What one test program, or one crate's documentation tests, came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Tests that passed.
    pub(crate) passed: usize,
    /// Tests that were left out by `#[ignore]`.
    pub(crate) ignored: usize,
    /// A name or a sentence for each failure.
    pub(crate) failures: Vec<String>,
}

/// The names in the answer of a test program to `--list --format terse`.
pub(crate) fn parse_list(output: &str) -> Vec<String> {
    output.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// Judges one test program that was told to run the `listed` tests.
pub(crate) fn judge_program(output: &str, listed: &[String], ended: Ended) -> Outcome {
    let tallies: Vec<Tally> = output.lines().filter_map(Tally::parse).collect();
    let Some(tally) = tallies.last() else {
        return crashed(output, listed, &format!("{} before it reported", ended.words()));
    };
    // Another program's words on our output, or a test that ended the process after its child had reported.
    if tally.total() != listed.len() || (tally.failed == 0) != ended.well() {
        let (said, has) = (tally.total(), listed.len());
        return crashed(output, listed, &format!("{}, having reported {said} of {has} tests", ended.words()));
    }
    Outcome { passed: tally.passed, ignored: tally.ignored, failures: named_failures(output, tally.failed) }
}

/// Judges the documentation tests of one crate, which may come in several blocks.
pub(crate) fn judge_doc_tests(output: &str, ended: Ended) -> Outcome {
    let mut sum = Tally::default();
    for tally in output.lines().filter_map(Tally::parse) {
        sum.passed += tally.passed;
        sum.failed += tally.failed;
        sum.ignored += tally.ignored;
    }
    let mut failures: Vec<String> =
        statuses(output).filter(|(_, s)| s.failed()).map(|(n, _)| n.to_owned()).collect();
    pad(&mut failures, sum.failed);
    if failures.is_empty() && !ended.well() {
        failures.push(format!("the documentation tests: cargo {}", ended.words()));
    }
    Outcome { passed: sum.passed, ignored: sum.ignored, failures }
}

/// The names of the tests that finished or were ignored.
pub(crate) fn finished(output: &str) -> impl Iterator<Item = &str> {
    statuses(output).map(|(name, _)| name)
}

impl Outcome {
    /// How many tests ran.
    pub(crate) fn ran(&self) -> usize {
        self.passed + self.failures.len()
    }

    /// The counts in words.
    pub(crate) fn words(&self) -> String {
        let ignored = if self.ignored == 0 { String::new() } else { format!(", {} ignored", self.ignored) };
        format!("{} passed, {} failed{ignored}", self.passed, self.failures.len())
    }
}

/// The counts of one `test result:` line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: usize,
    failed: usize,
    ignored: usize,
    measured: usize,
}

impl Tally {
    /// Reads `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s`.
    fn parse(line: &str) -> Option<Self> {
        // Not only at the line's start: a test may have printed something without a newline before.
        let (_, rest) = line.split_once("test result: ")?;
        let (_, counts) = rest.split_once(". ")?;
        let mut fields = counts.split("; ");
        let mut field = |word: &str| fields.next()?.strip_suffix(word)?.trim_end().parse().ok();
        Some(Self {
            passed: field("passed")?,
            failed: field("failed")?,
            ignored: field("ignored")?,
            measured: field("measured")?,
        })
    }

    fn total(&self) -> usize {
        self.passed + self.failed + self.ignored + self.measured
    }
}

/// The word after `test NAME ... `.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Ok,
    Failed,
    Ignored,
}

impl Status {
    fn failed(self) -> bool {
        self == Self::Failed
    }
}

/// Each `test NAME ... STATUS` line.
fn statuses(output: &str) -> impl Iterator<Item = (&str, Status)> {
    output.lines().filter_map(|line| {
        let (name, status) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
        let status = match status.split([' ', ',']).next()? {
            "ok" => Status::Ok,
            "FAILED" => Status::Failed,
            "ignored" => Status::Ignored,
            _ => return None,
        };
        Some((name.strip_suffix(" - should panic").unwrap_or(name), status))
    })
}

/// The names of `failed` tests: from the list at the output's end, which no test's own words can follow.
fn named_failures(output: &str, failed: usize) -> Vec<String> {
    if failed == 0 {
        return Vec::new();
    }
    let lines: Vec<&str> = output.lines().collect();
    let heading =
        lines.iter().rposition(|line| *line == "failures:").unwrap_or(lines.len().saturating_sub(1));
    let names = lines[heading + 1..].iter().map_while(|line| line.strip_prefix("    "));
    let mut failures: Vec<String> = names.map(str::to_owned).collect();
    pad(&mut failures, failed);
    failures
}

/// Makes the list as long as the harness's count, so that a failure whose name was not understood still counts.
fn pad(failures: &mut Vec<String>, failed: usize) {
    while failures.len() < failed {
        failures.push("a test whose name was not understood (see the log)".to_owned());
    }
}

/// A test program that did not come to a proper end: one failure more than the failures that it reported.
fn crashed(output: &str, listed: &[String], how: &str) -> Outcome {
    let own: BTreeSet<&str> = listed.iter().map(String::as_str).collect();
    let seen: Vec<(&str, Status)> = statuses(output).filter(|(name, _)| own.contains(name)).collect();
    let count = |status| seen.iter().filter(|(_, own)| *own == status).count();
    let done: BTreeSet<&str> = seen.iter().map(|(name, _)| *name).collect();
    let unfinished: Vec<&str> = own.difference(&done).copied().collect();
    let named = unfinished.iter().take(UNFINISHED_NAMED).copied().collect::<Vec<_>>().join(", ");
    let sentence = match unfinished.len() {
        0 => format!("the test program {how}"),
        n if n <= UNFINISHED_NAMED => format!("the test program {how}; unfinished: {named}"),
        n => format!("the test program {how}; unfinished: {named} and {} more", n - UNFINISHED_NAMED),
    };
    let mut failures: Vec<String> =
        seen.iter().filter(|(_, status)| status.failed()).map(|(name, _)| (*name).to_owned()).collect();
    failures.push(sentence);
    Outcome { passed: count(Status::Ok), ignored: count(Status::Ignored), failures }
}

#[cfg(test)]
mod tests;
