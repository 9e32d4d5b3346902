use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use super::*;

const WELL: i32 = 0;
const HARNESS_FAILURE: i32 = 101 << 8;
const ABORTED: i32 = 6;

fn ended(raw: i32) -> Ended {
    Ended::Exited(ExitStatus::from_raw(raw))
}

fn listed(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn a_list_gives_tests_and_no_benchmarks() {
    let output = "tests::one: test\ntests::fast: benchmark\ntests::two: test\n";
    assert_eq!(parse_list(output), ["tests::one", "tests::two"]);
}

#[test]
fn passes_failures_and_ignored_tests_are_counted_and_failures_named() {
    let output = "
running 4 tests
test tests::slow ... ignored, only under --soak
test tests::one ... ok
test tests::panics - should panic ... ok
test tests::two ... FAILED

failures:

---- tests::two stdout ----
thread 'tests::two' panicked at src/lib.rs:9:9:
assertion failed

failures:
    tests::two

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.00s
";
    let names = listed(&["tests::slow", "tests::one", "tests::panics", "tests::two"]);
    let outcome = judge_program(output, &names, ended(HARNESS_FAILURE));
    assert_eq!(outcome, Outcome { passed: 2, ignored: 1, failures: listed(&["tests::two"]) });
    assert_eq!(outcome.ran(), 3);
    assert_eq!(outcome.words(), "2 passed, 1 failed, 1 ignored");
}

#[test]
fn the_result_counts_even_behind_text_without_a_newline() {
    let output = "running 1 test\ntest a ... hellotest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; \
                  0 filtered out; finished in 0.00s\n";
    let outcome = judge_program(output, &listed(&["a"]), ended(WELL));
    assert_eq!(outcome, Outcome { passed: 1, ..Outcome::default() });
}

#[test]
fn a_program_that_crashes_fails_and_names_what_it_had_not_finished() {
    let output = "running 3 tests\ntest a ... ok\ntest b ... FAILED\n";
    let outcome = judge_program(output, &listed(&["a", "b", "c"]), ended(ABORTED));
    assert_eq!(outcome.passed, 1);
    assert_eq!(outcome.failures.len(), 2, "{outcome:?}");
    assert_eq!(outcome.failures[0], "b");
    assert!(outcome.failures[1].contains("signal"), "{outcome:?}");
    assert!(outcome.failures[1].ends_with("unfinished: c"), "{outcome:?}");
}

#[test]
fn a_crash_after_a_childs_good_result_is_still_a_crash() {
    // The child that a test started reported into the same output, then the test took its process down.
    let output = "running 2 tests\ntest a ... ok\nrunning 1 test\ntest inner ... ok\n\ntest result: ok. 1 passed; \
                  0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
    for code in [WELL, ABORTED] {
        let outcome = judge_program(output, &listed(&["a", "b"]), ended(code));
        assert_eq!((outcome.passed, outcome.failures.len()), (1, 1), "{outcome:?}");
    }
}

#[test]
fn a_childs_result_inside_a_failures_output_is_not_counted() {
    let output = "running 1 test
test outer ... FAILED

failures:

---- outer stdout ----
running 7 tests
failures:
    inner
test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

failures:
    outer

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";
    let outcome = judge_program(output, &listed(&["outer"]), ended(HARNESS_FAILURE));
    assert_eq!(outcome, Outcome { failures: listed(&["outer"]), ..Outcome::default() });
}

#[test]
fn a_good_report_with_a_bad_exit_fails() {
    let output =
        "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
    let outcome = judge_program(output, &listed(&["a"]), ended(HARNESS_FAILURE));
    assert_eq!(outcome.failures.len(), 1, "{outcome:?}");
}

#[test]
fn a_program_over_its_limit_fails() {
    let outcome =
        judge_program("running 1 test\n", &listed(&["a"]), Ended::OverLimit(Duration::from_secs(90)));
    assert_eq!(
        outcome.failures,
        ["the test program was killed after its limit of 1m 30s before it reported; unfinished: a"]
    );
}

#[test]
fn a_silent_program_fails_even_if_it_ends_well() {
    let outcome = judge_program("", &listed(&["a"]), ended(WELL));
    assert_eq!((outcome.passed, outcome.failures.len()), (0, 1), "{outcome:?}");
}

#[test]
fn a_crash_names_only_so_many_unfinished_tests() {
    let names: Vec<String> = (10..30).map(|n| format!("t{n}")).collect();
    let outcome = judge_program("", &names, ended(ABORTED));
    assert!(outcome.failures[0].ends_with("t17 and 12 more"), "{outcome:?}");
}

#[test]
fn documentation_tests_are_summed_over_their_blocks() {
    let output = "running 2 tests
test src/a.rs - A (line 3) ... ok
test src/a.rs - A::b (line 9) - compile ... ok

test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s


running 1 test
test src/b.rs - B (line 1) ... FAILED

failures:

---- src/b.rs - B (line 1) stdout ----
assertion failed

failures:
    src/b.rs - B (line 1)

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.23s
";
    let outcome = judge_doc_tests(output, ended(HARNESS_FAILURE));
    assert_eq!(outcome, Outcome { passed: 2, ignored: 0, failures: listed(&["src/b.rs - B (line 1)"]) });
    assert_eq!(finished(output).count(), 3);
}

#[test]
fn documentation_tests_that_cannot_be_built_fail() {
    let outcome = judge_doc_tests("error: could not compile `x`\n", ended(HARNESS_FAILURE));
    assert_eq!(outcome.failures.len(), 1, "{outcome:?}");
}
