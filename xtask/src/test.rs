//! `cargo xtask test`: everything that can be tested on this machine, part by part.

use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, Result};

use crate::conformance;
use crate::generate;
use crate::lint;
use crate::report::{Part, Report};
use crate::repository::Repository;
use crate::sim;
use crate::suite::{self, Run, Selection, Surroundings};
use crate::testbed::{BackgroundBuild, SharedWorld};
use crate::verdict::{Verdict, refusal};

/// Shown at the end of the help.
const EXAMPLES: &str = "\
Examples:
  cargo xtask test                         everything
  cargo xtask test a_lost_link             tests with this in their name, and nothing else
  cargo xtask test mailboat-object         all tests of one crate
  cargo xtask test mailboat-cluster::real  its tests on real servers";

/// Run every test there is, or those that are named.
///
/// In order: lint; generated files are current; unit and property tests; documentation tests; 2,000 schedules of the
/// simulation; the real servers are built (once per machine); tests on real servers, which share one kcp. Ends with
/// a table of minutes per part and, alone on the last line, 'N passed, N failed'. A failing test is named with its
/// log.
///
/// Takes up to 60 minutes on a fresh machine, most of it for building the servers, and under 20 when they are built.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Also what is slow and rarely broken: the hub's answers beside kcp's
    #[arg(long)]
    all: bool,
    /// Run long trials at their full length instead of 30 seconds, and property tests with 20,000 newly drawn cases each
    #[arg(long)]
    soak: bool,
    /// Run only tests whose full name (crate::program::module::test) contains one of these
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

/// Runs the tests.
pub(crate) fn run(arguments: &Arguments, repository: &Repository) -> Result<Verdict> {
    let run = Run::begin(repository, "test")?;
    let surroundings = Surroundings { soak: arguments.soak, ..Surroundings::default() };
    if arguments.names.is_empty() {
        everything(&run, &surroundings, arguments.all)
    } else {
        named(&run, &surroundings, &arguments.names)
    }
}

fn everything(run: &Run<'_>, surroundings: &Surroundings, all: bool) -> Result<Verdict> {
    // The Go programs take longest on a fresh machine, and need nothing of the rest.
    let servers = BackgroundBuild::begin(&run.progress)?;
    let mut report = Report::default();
    report.run("lint", &run.progress, || lint::check(run))?;
    report.run("generated files", &run.progress, || generated_files(run))?;
    let mut selected = Vec::new();
    let built = report.run("build of the tests", &run.progress, || {
        selected = suite::select(&run.build(&["--workspace"])?, &[])?;
        Ok(Part::default())
    })?;
    let (real, unit): (Vec<Selection>, Vec<Selection>) =
        selected.into_iter().partition(|selection| selection.program.real);
    report.run("unit and property tests", &run.progress, || {
        if built { tests(run, &unit, surroundings) } else { Ok(Part::not_run("the tests were not built")) }
    })?;
    report.run("documentation tests", &run.progress, || documentation(run, surroundings))?;
    report.run("simulation: 2,000 schedules", &run.progress, || sim::part(run))?;
    let have_servers =
        report.run("build of the servers", &run.progress, || servers.finish().map(|()| Part::default()))?;
    report.run("tests on real servers", &run.progress, || {
        if !built || !have_servers {
            return Ok(Part::not_run("the tests or the servers were not built"));
        }
        on_real_servers(run, &real, surroundings)
    })?;
    if all && have_servers {
        report.run("the hub beside kcp", &run.progress, || conformance::beside_kcp(&run.progress))?;
    }
    finish(&report)
}

fn named(run: &Run<'_>, surroundings: &Surroundings, names: &[String]) -> Result<Verdict> {
    let mut report = Report::default();
    run.progress.say("building the tests …");
    let selected = suite::select(&run.build(&["--workspace"])?, names)?;
    let missing: Vec<String> =
        names.iter().filter(|name| !selected.iter().any(|one| one.has(name))).cloned().collect();
    // Examples in documentation have to be built to be found: only for names that nothing else bears.
    if !missing.is_empty() {
        let mut seen = Vec::new();
        report.run("documentation tests", &run.progress, || {
            let mut part = Part::default();
            seen.extend(run.test_documentation(&missing, surroundings, &mut part)?);
            Ok(part)
        })?;
        if let Some(unknown) = missing.iter().find(|name| !seen.iter().any(|test| test.contains(*name))) {
            return Err(refusal(format!("no test has '{unknown}' in its name, and none was run for it")));
        }
    }
    let (real, unit): (Vec<Selection>, Vec<Selection>) =
        selected.into_iter().partition(|selection| selection.program.real);
    if !unit.is_empty() {
        report.run("unit and property tests", &run.progress, || tests(run, &unit, surroundings))?;
    }
    if !real.is_empty() {
        report.run("tests on real servers", &run.progress, || on_real_servers(run, &real, surroundings))?;
    }
    finish(&report)
}

/// Prints the report. A run in which nothing ran has proven nothing, and fails.
pub(crate) fn finish(report: &Report) -> Result<Verdict> {
    if report.totals() == (0, 0) {
        return Err(refusal("no test was run"));
    }
    Ok(report.print())
}

/// Runs tests on real servers: builds those if need be, starts one kcp for all, and ends it afterwards.
pub(crate) fn on_real_servers(
    run: &Run<'_>,
    selected: &[Selection],
    surroundings: &Surroundings,
) -> Result<Part> {
    if selected.is_empty() {
        return Ok(Part::not_run("there is no test on real servers"));
    }
    BackgroundBuild::begin(&run.progress)?.finish()?;
    let world = SharedWorld::start(&run.progress)?;
    let surroundings = Surroundings { testbed: Some(world.folder().to_owned()), ..surroundings.clone() };
    let part = side_by_side(run, selected, &surroundings);
    world.end(part.as_ref().is_ok_and(Part::is_well), &run.progress);
    part
}

/// The packages whose tests on servers run on the hub as well.
pub(crate) const ON_HUB: [&str; 1] = ["mailboat-cli"];

/// Runs tests on embedded servers, which are built for it. Each program has a center of its own.
pub(crate) fn on_hub(run: &Run<'_>, selected: &[Selection], surroundings: &Surroundings) -> Result<Part> {
    let hub = selected.iter().find_map(|selection| selection.program_beside("mailboat"));
    let hub = hub.context("the program mailboat was not built with the tests")?;
    let surroundings = Surroundings { hub: Some(hub), testbed: None, ..surroundings.clone() };
    tests(run, selected, &surroundings)
}

fn tests(run: &Run<'_>, selected: &[Selection], surroundings: &Surroundings) -> Result<Part> {
    let mut part = Part::default();
    for selection in selected {
        run.test(selection, surroundings, &mut part)?;
    }
    Ok(proven(part))
}

/// So many programs on real servers run at once. They wait for servers more than they compute, so that two take
/// little more than half as long as one after the other; more would only make each other's servers slow.
const LANES: usize = 2;

/// Runs test programs in lanes, those with most tests first, so that no long one is left to the end.
fn side_by_side(run: &Run<'_>, selected: &[Selection], surroundings: &Surroundings) -> Result<Part> {
    let mut waiting: Vec<&Selection> = selected.iter().collect();
    waiting.sort_by_key(|selection| selection.count());
    let waiting = Mutex::new(waiting);
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let lane = || {
        let mut part = Part::default();
        while let Some(selection) = next() {
            run.test(selection, surroundings, &mut part)?;
        }
        Ok(part)
    };
    let lanes: Vec<Result<Part>> = thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(lane)).collect();
        lanes
            .into_iter()
            .map(|lane| lane.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut part = Part::default();
    for lane in lanes {
        part.join(lane?);
    }
    Ok(proven(part))
}

/// A part in which nothing ran has proven nothing, whatever the other parts say.
fn proven(part: Part) -> Part {
    if part.is_empty() { Part::not_run("no test was run") } else { part }
}

fn documentation(run: &Run<'_>, surroundings: &Surroundings) -> Result<Part> {
    let mut part = Part::default();
    run.test_documentation(&[], surroundings, &mut part)?;
    Ok(part)
}

fn generated_files(run: &Run<'_>) -> Result<Part> {
    let mut part = Part::default();
    let stale = generate::stale(run.repository)?;
    if stale.is_empty() {
        part.pass(1);
    }
    for finding in stale {
        part.fail(format!("{finding} (`{}` mends it)", generate::COMMAND), None);
    }
    Ok(part)
}
