//! Both implementations, one verdict: every document of the conformance corpus goes
//! raw through the sandboxed formatter, and documents made from a seed besides.
//!
//! The Rust side is held to the same corpus by its own tests. What the sandbox
//! refuses it refuses by an exception whose text begins with the reason's name; that
//! is the package's word, and here exactly that word is under test.

#![cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests"
)]

mod support;

use lazaret_contract::conformance::{
    Case, generated_cases, open_corpus, public_report_cases, rule_cases,
};
use lazaret_contract::json::JsonErrorKind;
use lazaret_contract::limits::INPUT_BYTES_MAX;
use lazaret_engine::run::Stop;
use support::{Bench, FORMATTER};

/// How many documents are made from a seed.
const GENERATED: usize = 64;

/// How many wrong verdicts are shown.
const SHOWN_MAX: usize = 20;

/// What the sandboxed formatter made of a document.
fn verdict(bench: &Bench, input: &[u8]) -> Result<Vec<u8>, JsonErrorKind> {
    match bench.run(FORMATTER, input) {
        Ok(finished) => Ok(finished.output),
        Err(unfinished) => match unfinished.stop {
            Stop::Failed {
                ref cause,
                ref stderr,
                ..
            } if cause == "exited" => Err(reason(stderr)),
            Stop::Blocked(ref blocked)
                if input.len() > INPUT_BYTES_MAX && blocked.why.contains("over the limit") =>
            {
                Err(JsonErrorKind::SizeIn)
            }
            other => panic!("no verdict: {other:?}"),
        },
    }
}

/// The reason in the last line of a traceback.
fn reason(stderr: &[u8]) -> JsonErrorKind {
    let text = String::from_utf8_lossy(stderr);
    let last = text.trim_end().lines().last().unwrap_or_default();
    let name = last.split(": ").nth(1).unwrap_or_default();
    JsonErrorKind::from_name(name).unwrap_or_else(|| panic!("no reason in: {text}"))
}

fn check(cases: Vec<Case>) {
    let Some(bench) = Bench::new() else { return };
    let queue = std::sync::Mutex::new(cases.iter());
    let wrong = std::sync::Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let Some(case) = queue.lock().unwrap().next() else {
                        break;
                    };
                    let given = verdict(&bench, &case.input);
                    if let Err(difference) = case.judge(given.as_deref().map_err(|kind| *kind)) {
                        wrong.lock().unwrap().push(difference);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    for difference in wrong.iter().take(SHOWN_MAX) {
        eprintln!("{difference}");
    }
    assert!(
        wrong.is_empty(),
        "{} of {} verdicts are wrong",
        wrong.len(),
        cases.len()
    );
    assert!(bench.nothing_left());
}

#[test]
fn the_cases_of_public_reports_end_the_same_in_the_sandbox() {
    check(public_report_cases());
}

#[test]
fn our_own_rules_end_the_same_in_the_sandbox() {
    check(rule_cases());
}

#[test]
fn the_public_test_suite_ends_the_same_in_the_sandbox() {
    if let Some(corpus) = open_corpus("the public test suite in the sandbox").unwrap() {
        check(corpus.suite_cases().unwrap());
    }
}

#[test]
fn every_double_of_the_table_is_written_the_same_in_the_sandbox() {
    if let Some(corpus) = open_corpus("the table of doubles in the sandbox").unwrap() {
        check(corpus.float_batches().unwrap());
    }
}

#[test]
fn documents_made_from_a_seed_give_the_same_bytes_in_the_sandbox() {
    // Another seed with each hour would find more, and a failure that nobody can
    // repeat; the fuzz targets do that part.
    check(generated_cases(20_261_003, GENERATED));
}
