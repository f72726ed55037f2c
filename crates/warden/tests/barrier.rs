//! The barrier against launchers that break one rule each. All of them are refused
//! before the release, with the rule's name.

#![cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test says what went wrong by stopping"
)]

mod support;

use std::process::Command;

use lazaret_warden::barrier::Fact;
use lazaret_warden::ending::{Ending, Phase, ProcessEnd, Stream};
use support::*;

#[test]
fn a_launcher_that_keeps_the_rules_passes_with_every_fact() {
    let bench = bench!();
    let spec = bench.spec("exit 0");
    let (controller, launched) = launched(&spec);
    assert!(
        launched
            .facts
            .iter()
            .all(|fact| fact.holds && fact.expected == fact.found)
    );
    assert!(launched.facts.len() > 60, "{}", launched.facts.len());
    let mut names: Vec<_> = launched.facts.iter().map(|fact| fact.fact).collect();
    names.dedup();
    assert_eq!(names.len(), launched.facts.len(), "a fact is judged once");
    // Judged facts go into receipts: no host path, no token in them.
    let text = serde_json::to_string(&launched).unwrap();
    for path in [&spec.run_dir, &spec.closure_dir] {
        assert!(!text.contains(path.to_str().unwrap()), "{text}");
    }
    assert!(!text.contains(&hex(spec.token.as_bytes())));
    assert!(
        launched
            .facts
            .iter()
            .any(|fact| fact.fact == Fact::ExecutableDigest)
    );
    assert!(release_and_wait(controller).is_success());
}

/// Which rule is broken, and the fact that shows it first.
const WRONG_FACTS: [(&str, &str); 13] = [
    ("NO_FILTER", "filter-count"),
    ("SECOND_FILTER", "filter-count"),
    ("OPEN_DESCRIPTOR", "descriptors"),
    ("CLOSED_STDERR", "descriptors"),
    ("SWAPPED_STREAMS", "standard-stream 2"),
    ("SECOND_THREAD", "threads"),
    ("CPU_LIMIT", "limit cpu"),
    ("WORKING_DIRECTORY", "working-directory"),
    ("UMASK", "umask"),
    ("BLOCKED_SIGNALS", "blocked-signals"),
    ("CAUGHT_SIGNAL", "caught-signals"),
    ("OTHER_PERSONALITY", "personality"),
    ("HUGE_PAGES", "huge-pages"),
];

#[test]
fn a_launcher_that_breaks_a_rule_is_refused_by_the_fact_that_shows_it() {
    for (rule, fact) in WRONG_FACTS {
        let bench = bench!(&[rule]);
        let outcome = refused(&bench.spec("exit 0"));
        // A thread is a second process to the trace, before the facts are read.
        if rule == "SECOND_THREAD" {
            assert_eq!(outcome.ending, Ending::UnexpectedProcess);
            continue;
        }
        assert_eq!(first_wrong_fact(&outcome), fact, "{rule}");
        assert_eq!(outcome.phase, Phase::Barrier);
    }
}

#[test]
fn a_ready_record_that_is_not_the_one_is_refused() {
    for rule in ["NONCE", "PACKAGE_DIGEST", "VERSION", "FILTER_SIZE"] {
        let bench = bench!(&[rule]);
        let outcome = refused(&bench.spec("exit 0"));
        assert!(
            matches!(outcome.ending, Ending::ReadyWrong { .. }),
            "{rule}: {outcome:#?}"
        );
    }
}

#[test]
fn anything_else_on_a_stream_before_the_release_is_refused() {
    for (rule, which) in [
        ("EARLY_STDERR", Stream::Stderr),
        ("LATE_STDOUT", Stream::Stdout),
        ("LATE_STDERR", Stream::Stderr),
    ] {
        let bench = bench!(&[rule]);
        let mut controller = start(&bench.spec("exit 0"));
        let _ = controller.staged().unwrap();
        // A late one may come after the launch was reported; it is never released.
        let _ = controller.arm().unwrap();
        if controller.state() == lazaret_warden::controller::State::Launched {
            std::thread::sleep(std::time::Duration::from_millis(400));
            controller.release().unwrap();
        }
        let outcome = match controller.state() {
            lazaret_warden::controller::State::Ended => continue,
            _ => controller.wait().unwrap(),
        };
        assert_eq!(outcome.ending, Ending::ExtraOutput { which }, "{rule}");
        assert!(!outcome.released);
        assert_clean(&outcome);
    }
    let bench = bench!(&["EARLY_STDERR"]);
    let outcome = refused(&bench.spec("exit 0"));
    assert_eq!(
        outcome.ending,
        Ending::ExtraOutput {
            which: Stream::Stderr
        }
    );
}

#[test]
fn a_second_process_or_program_before_the_release_is_refused() {
    for rule in ["FORK", "EXEC"] {
        let bench = bench!(&[rule]);
        let outcome = refused(&bench.spec("exit 0"));
        assert_eq!(outcome.ending, Ending::UnexpectedProcess, "{rule}");
    }
}

#[test]
fn a_launcher_that_ends_early_says_at_which_of_its_steps() {
    let bench = bench!(&["STAGE"]);
    let outcome = refused(&bench.spec("exit 0"));
    let Ending::LauncherStageFailed {
        stage,
        exit_code,
        detail,
    } = &outcome.ending
    else {
        panic!("{:?}", outcome.ending);
    };
    assert_eq!((stage.as_str(), *exit_code), ("python", 84));
    assert!(detail.contains("as told"), "{detail}");
    for (rule, end) in [
        ("DEATH", ProcessEnd::Exited(3)),
        ("LATE_DEATH", ProcessEnd::Exited(3)),
    ] {
        let bench = bench!(&[rule]);
        let mut controller = start(&bench.spec("exit 0"));
        let _ = controller.staged().unwrap();
        let step = controller.arm().unwrap();
        let outcome = match step {
            lazaret_warden::controller::Step::Ended(outcome) => *outcome,
            lazaret_warden::controller::Step::Reached(_) => controller.wait().unwrap(),
        };
        let Ending::LauncherEnded { end: found, .. } = outcome.ending else {
            panic!("{rule}: {:?}", outcome.ending);
        };
        assert_eq!(found, end, "{rule}");
        assert!(!outcome.released);
    }
    let bench = bench!(&["FAULT"]);
    let outcome = refused(&bench.spec("exit 0"));
    assert_eq!(
        outcome.ending,
        Ending::Signalled {
            signal: libc::SIGSEGV
        }
    );
}

#[test]
fn a_launcher_that_says_nothing_is_ended_by_the_deadline() {
    let bench = bench!(&["SILENCE"]);
    let outcome = refused(&bench.spec_within("exit 0", 1000));
    assert_eq!(outcome.ending, Ending::WallDeadline);
}

/// An outer filter shows mode 2 for everybody under it; only the count tells.
#[test]
fn under_an_outer_filter_a_launcher_that_skips_its_own_is_refused() {
    // The helper installs a filter, which its children have as well, and calls this
    // very test binary again.
    if std::env::var_os("LAZARET_TEST_UNDER_FILTER").is_some() {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        assert!(
            status.contains("Seccomp_filters:\t1"),
            "no outer filter: {status}"
        );
        let bench = bench!(&["NO_FILTER"]);
        let outcome = refused(&bench.spec("exit 0"));
        let Ending::BarrierFactWrong {
            fact,
            expected,
            found,
        } = &outcome.ending
        else {
            panic!("{:?}", outcome.ending);
        };
        assert_eq!(
            (*fact, expected.as_str(), found.as_str()),
            (Fact::FilterCount, "2", "1")
        );
        let bench = bench!();
        assert!(bench.run("exit 0").is_success());
        return;
    }
    let helper = compile_helper("outer_filter");
    let output = Command::new(helper.path().join("helper"))
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "under_an_outer_filter_a_launcher_that_skips_its_own_is_refused",
            "--nocapture",
        ])
        .env("LAZARET_TEST_UNDER_FILTER", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{complained}");
    assert!(said.contains("1 passed"), "{said}");
    print!(
        "{}",
        said.lines()
            .filter(|line| line.starts_with("SKIPPED"))
            .collect::<String>()
    );
}
