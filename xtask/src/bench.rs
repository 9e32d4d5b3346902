//! `cargo xtask bench`: builds and runs the benchmarks and holds them to their bars.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use mailboat_bench::Measurement;

use crate::process::{Job, tail};
use crate::repository::Repository;
use crate::suite::Run;
use crate::table::{Align, Table};
use crate::verdict::{Verdict, refusal};

/// The package whose programs are the benchmarks.
const PACKAGE: &str = "mailboat-bench";
/// The package of the programs that ship, and which of them a benchmark measures.
const SHIPPED: &str = "mailboat-cli";
const MEASURED: [(&str, &str); 4] =
    [("syncer", "mailboat-syncer"), ("hub", "mailboat"), ("center", "mailboat"), ("up", "mailboat")];
/// The benchmarks between two servers, and the program of those who carry there.
const CARRYING: [&str; 2] = ["hop", "syncer"];
const CARRIER: &str = "carrier";
/// The benchmarks that take the names of cases as arguments.
const WITH_CASES: [&str; 4] = ["center", "hop", "hub", "syncer"];
/// How long a release build may take on a fresh machine.
const BUILD_LIMIT: Duration = Duration::from_hours(1);
/// How long one benchmark may take.
const BENCH_LIMIT: Duration = Duration::from_mins(30);
/// How much of a failed program's log is shown.
const LINES_SHOWN: usize = 60;

/// Shown at the end of the help.
const EXAMPLES: &str = "\
Examples:
  cargo xtask bench                    all of them, as a table
  cargo xtask bench object --check     exit with 1 if a bar of `object` does not hold, and say which
  cargo xtask bench hub --case start   one of the cases of `hub`
  cargo xtask bench --json             one JSON object a line, for machines";

/// Measure, beside a floor or a peer, in one run.
///
/// Builds the benchmarks with --release (some minutes the first time), runs them one after the other (from a minute
/// to a quarter of an hour each) and shows a table. A ratio is our number divided by that of what ran beside it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Which benchmarks to run; all, if none is named
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Run only this case of a benchmark that knows its cases apart (`center`, `hop`, `hub`, `syncer`); may be given several times
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<String>,
    /// Print one JSON object a line: bench, case, metric, value, unit, beside, ratio, bar, holds
    #[arg(long)]
    json: bool,
    /// Exit with 1 when a bar does not hold, and say which
    #[arg(long)]
    check: bool,
}

/// Runs the benchmarks.
pub(crate) fn run(arguments: &Arguments, repository: &Repository) -> Result<Verdict> {
    let names = choose(&existing(repository), &arguments.names)?;
    if !arguments.cases.is_empty() && names.iter().any(|name| !WITH_CASES.contains(&name.as_str())) {
        let with_cases = WITH_CASES.join(", ");
        return Err(refusal(format!(
            "--case goes with benchmarks that know their cases apart: {with_cases}"
        )));
    }
    let run = Run::begin(repository, "bench")?;
    build(&run, &names)?;
    let mut measured = Vec::new();
    for name in &names {
        measured.extend(measure(&run, name, &arguments.cases)?);
    }
    if arguments.json {
        for measurement in &measured {
            measurement.print()?;
        }
    } else {
        print!("{}", table(&measured));
    }
    if !arguments.check {
        return Ok(Verdict::Passed);
    }
    let (held, broken) = judge(&measured)?;
    let mut lines = broken.clone();
    lines.push(format!("{held} passed, {} failed", broken.len()));
    // With --json standard output belongs to the measurements alone.
    if arguments.json {
        eprintln!("{}", lines.join("\n"));
    } else {
        println!("\n{}", lines.join("\n"));
    }
    Ok(Verdict::of_failures(broken.len()))
}

fn existing(repository: &Repository) -> Vec<String> {
    let targets = repository.package(PACKAGE).map(|package| package.targets.as_slice()).unwrap_or_default();
    targets.iter().filter(|target| target.is("bin")).map(|target| target.name.clone()).collect()
}

fn choose(existing: &[String], names: &[String]) -> Result<Vec<String>> {
    if existing.is_empty() {
        return Err(refusal(format!("no benchmark exists yet: {PACKAGE} has no programs")));
    }
    if let Some(unknown) = names.iter().find(|name| !existing.contains(name)) {
        let known = existing.join(", ");
        return Err(refusal(format!("no benchmark is named '{unknown}'; there are: {known}")));
    }
    Ok(if names.is_empty() { existing.to_vec() } else { names.to_vec() })
}

fn build(run: &Run<'_>, names: &[String]) -> Result<()> {
    run.progress.say("building the benchmarks …");
    let log = run.logs.join("build.log");
    let mut command = run.repository.cargo();
    command.args(["build", "--release", "--package", PACKAGE]).env("CARGO_TERM_COLOR", "never");
    for name in names {
        command.args(["--bin", name]);
    }
    if names.iter().any(|name| CARRYING.contains(&name.as_str())) {
        command.args(["--example", CARRIER]);
    }
    for (_, program) in MEASURED.iter().filter(|(bench, _)| names.iter().any(|name| name == bench)) {
        command.args(["--package", SHIPPED, "--bin", program]);
    }
    let job = Job { what: "building the benchmarks", command, log: &log, output: None, limit: BUILD_LIMIT };
    let ended = job.run(&run.progress)?;
    if !ended.well() {
        bail!("the benchmarks cannot be built: cargo {}\n{}", ended.words(), end_of(&log));
    }
    Ok(())
}

fn measure(run: &Run<'_>, name: &str, cases: &[String]) -> Result<Vec<Measurement>> {
    run.progress.say(format!("{name} …"));
    let (log, output) = (run.logs.join(format!("{name}.log")), run.logs.join(format!("{name}.json")));
    let mut command = Command::new(run.repository.target.join("release").join(name));
    command.args(cases).current_dir(&run.repository.root);
    let job = Job { what: name, command, log: &log, output: Some(&output), limit: BENCH_LIMIT };
    let ended = job.run(&run.progress)?;
    if !ended.well() {
        bail!("{name} {} (log: {})\n{}", ended.words(), log.display(), end_of(&log));
    }
    let lines = fs::read_to_string(&output).with_context(|| format!("what {name} printed cannot be read"))?;
    parse(name, &lines)
}

fn end_of(log: &Path) -> String {
    tail(&fs::read_to_string(log).unwrap_or_default(), LINES_SHOWN)
}

/// Reads a benchmark's lines; anything but measurements of its own is an error, and so is having none.
fn parse(name: &str, lines: &str) -> Result<Vec<Measurement>> {
    let mut measured = Vec::new();
    for line in lines.lines() {
        let measurement: Measurement = serde_json::from_str(line)
            .with_context(|| format!("{name} printed a line that is no measurement: {line}"))?;
        if measurement.bench != name {
            bail!("{name} printed a measurement of '{}'", measurement.bench);
        }
        // Whether a bar holds is worked out here, and not believed.
        measured.push(measurement.judged());
    }
    if measured.is_empty() {
        bail!("{name} measured nothing");
    }
    Ok(measured)
}

/// How many bars hold, and a sentence for each that does not. No bar at all is no check.
fn judge(measured: &[Measurement]) -> Result<(usize, Vec<String>)> {
    let held = measured.iter().filter(|measurement| measurement.holds == Some(true)).count();
    let broken: Vec<String> =
        measured.iter().filter(|measurement| measurement.holds == Some(false)).map(sentence).collect();
    if held + broken.len() == 0 {
        bail!("nothing to check: no measurement has a bar");
    }
    Ok((held, broken))
}

fn sentence(measurement: &Measurement) -> String {
    let Measurement { bench, case, metric, .. } = measurement;
    let bar = measurement.bar.map(|bar| bar.to_string()).unwrap_or_default();
    let number = match (&measurement.beside, measurement.ratio) {
        (Some(beside), Some(ratio)) => format!("{} times {}", short(ratio), beside.name),
        (Some(beside), None) => format!("no ratio to {} ({})", beside.name, beside.value),
        (None, _) => format!("{} {}", short(measurement.value), measurement.unit),
    };
    format!("FAILED {bench} {case}: {metric} is {number}, and should be {bar}")
}

fn table(measured: &[Measurement]) -> String {
    let mut table = Table::new(&[
        ("bench", Align::Left),
        ("case", Align::Left),
        ("metric", Align::Left),
        ("value", Align::Right),
        ("unit", Align::Left),
        ("beside", Align::Left),
        ("its value", Align::Right),
        ("ratio", Align::Right),
        ("bar", Align::Left),
        ("holds", Align::Left),
    ]);
    for measurement in measured {
        let (beside, its_value) = measurement
            .beside
            .as_ref()
            .map(|beside| (beside.name.clone(), short(beside.value)))
            .unwrap_or_default();
        table.row([
            measurement.bench.clone(),
            measurement.case.clone(),
            measurement.metric.clone(),
            short(measurement.value),
            measurement.unit.clone(),
            beside,
            its_value,
            measurement.ratio.map(short).unwrap_or_default(),
            measurement.bar.map(|bar| bar.to_string()).unwrap_or_default(),
            measurement.holds.map(|holds| if holds { "yes" } else { "NO" }.to_owned()).unwrap_or_default(),
        ]);
    }
    table.render()
}

/// A number with about three digits that matter.
fn short(number: f64) -> String {
    let size = number.abs();
    if size >= 100.0 || size == 0.0 {
        format!("{number:.0}")
    } else if size >= 10.0 {
        format!("{number:.1}")
    } else if size >= 0.01 {
        format!("{number:.2}")
    } else {
        format!("{number:.2e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Refusal;

    fn heap(value: f64) -> Measurement {
        Measurement::new("object", "pods", "live heap")
            .value(value, "bytes")
            .beside("JSON", 100.0)
            .at_most(1.3)
    }

    fn lines(measured: &[Measurement]) -> String {
        measured.iter().map(|measurement| serde_json::to_string(measurement).unwrap() + "\n").collect()
    }

    #[test]
    fn a_bar_that_does_not_hold_is_named() {
        let measured = parse("object", &lines(&[heap(120.0), heap(250.0)])).unwrap();
        let (held, broken) = judge(&measured).unwrap();
        assert_eq!(held, 1);
        assert_eq!(broken, ["FAILED object pods: live heap is 2.50 times JSON, and should be at most 1.3"]);
    }

    #[test]
    fn a_line_that_claims_to_hold_is_not_believed() {
        let claimed = Measurement { holds: Some(true), ..heap(250.0) };
        let measured = parse("object", &lines(&[claimed])).unwrap();
        assert_eq!(judge(&measured).unwrap().1.len(), 1, "{measured:?}");
    }

    #[test]
    fn strange_lines_no_lines_and_no_bars_are_errors() {
        for (printed, expected) in [
            ("hello\n".to_owned(), "no measurement: hello"),
            (String::new(), "measured nothing"),
            (lines(&[Measurement { bench: "watch".to_owned(), ..heap(1.0) }]), "a measurement of 'watch'"),
            (lines(&[Measurement::new("object", "pods", "forgot its value")]), "no measurement: {"),
        ] {
            let error = parse("object", &printed).unwrap_err().to_string();
            assert!(error.contains(expected), "{printed:?}: {error}");
        }
        let without_bar = Measurement { bar: None, holds: None, ..heap(1.0) };
        assert!(judge(&[without_bar]).is_err());
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        let existing = ["object".to_owned(), "watch".to_owned()];
        assert_eq!(choose(&existing, &[]).unwrap(), existing);
        assert_eq!(choose(&existing, &existing[1..]).unwrap(), existing[1..]);
        let error = choose(&existing, &["objects".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "no benchmark is named 'objects'; there are: object, watch");
        assert!(error.is::<Refusal>());
        assert!(choose(&[], &[]).unwrap_err().is::<Refusal>());
    }

    #[test]
    fn the_table_shows_what_ran_beside() {
        let text = table(&[heap(250.0), Measurement::new("world", "start", "ready").value(42.26, "s")]);
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(
            rows[2].split_whitespace().collect::<Vec<_>>().join(" "),
            "object pods live heap 250 bytes JSON 100 2.50 at most 1.3 NO"
        );
        assert_eq!(rows[3].split_whitespace().collect::<Vec<_>>().join(" "), "world start ready 42.3 s");
    }
}
