//! Whatever a run is started from, it begins in the same state, or is refused with
//! the part that could not be set.

#![cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test says what went wrong by stopping"
)]

mod support;

use std::fs;
use std::process::Command;

use lazaret_warden::controller::Step;
use lazaret_warden::ending::Ending;
use support::*;

const INSIDE: &str = "LAZARET_TEST_INHERITED";

/// With the lowest priority on a busy host a run takes as long as it takes.
fn patient(package: &str, bench: &Bench) -> lazaret_warden::spec::RunSpec {
    bench.spec_within(package, 300_000)
}

/// Under the hostile parent: one run, whose barrier judges the state exactly.
fn run_inside(what: &str) {
    let bench = Bench::scripted(&[]).unwrap();
    let spec = patient("sleep 20\nstdout 3\nexit 42", &bench);
    let (controller, staged) = staged(&spec);
    drop(controller);
    println!(
        "PRIORITY {} {}",
        staged.inherited_priority.nice, staged.inherited_priority.policy
    );
    let spec = patient("sleep 20\nstdout 3\nexit 42", &bench);
    let (controller, launched) = launched(&spec);
    let pid = launched.launcher.pid;
    assert!(launched.facts.iter().all(|fact| fact.holds));
    assert_eq!(
        std::fs::read_dir(format!("/proc/{pid}/fd"))
            .unwrap()
            .count(),
        3
    );
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let text = String::from_utf8_lossy(&environment);
    assert!(
        !text.contains("SECRET") && !text.contains("LD_"),
        "{what}: {text}"
    );
    let outcome = release_and_wait(controller);
    assert_eq!(outcome.ending, Ending::Exited { code: 42 }, "{what}");
    assert_eq!(outcome.stdout.kept, b"xxx");
}

/// CAP_SYS_RESOURCE: raising hard limits. Root in a container may lack it.
fn may_raise_limits() -> bool {
    has_capability(24)
}

/// Calls the named test of this binary again under a hostile parent.
fn under(what: &str, test: &str, bench: &Bench) -> String {
    let helper = compile_helper("hostile_parent");
    let output = Command::new(helper.path().join("helper"))
        .arg(what)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, what)
        .env("LAZARET_TEST_LAUNCHER", launcher_file(bench))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {said}{complained}");
    assert!(said.contains("1 passed"), "{what}: {said}");
    format!("{said}{complained}")
}

#[test]
fn a_hostile_inherited_state_changes_nothing_inside() {
    let test = "a_hostile_inherited_state_changes_nothing_inside";
    if let Ok(what) = std::env::var(INSIDE) {
        return run_inside(&what);
    }
    let bench = bench!();
    for what in [
        "soft-limits",
        "personality",
        "umask",
        "ignored-signals",
        "blocked-signals",
        "variables",
        "timer-slack",
        "io-idle",
    ] {
        under(what, test, &bench);
    }
    let said = under("descriptors", test, &bench);
    let count: u32 = said
        .lines()
        .find_map(|line| line.strip_suffix(" descriptors are open"))
        .and_then(|count| count.parse().ok())
        .unwrap();
    if may_raise_limits() {
        assert_eq!(count, 60_000);
    } else {
        println!("only {count} descriptors: the hard limit cannot be raised here");
        assert!(count >= 900);
    }
    if is_root() {
        under("real-time", test, &bench);
    }
}

#[test]
fn a_lower_priority_is_set_to_the_usual_or_reported() {
    let test = "a_lower_priority_is_set_to_the_usual_or_reported";
    if let Ok(what) = std::env::var(INSIDE) {
        return run_inside(&what);
    }
    let bench = bench!();
    for (what, kept) in [
        ("nice", "PRIORITY 10 0"),
        ("idle", "PRIORITY 0 5"),
        ("batch", "PRIORITY 0 0"),
    ] {
        let said = under(what, test, &bench);
        // Root can raise it; nobody else can raise it from nice or idle.
        let expected = if is_root() { "PRIORITY 0 0" } else { kept };
        assert!(said.contains(expected), "{what}: {said}");
    }
}

#[test]
fn a_hard_limit_that_cannot_be_raised_is_named() {
    let test = "a_hard_limit_that_cannot_be_raised_is_named";
    if std::env::var_os(INSIDE).is_none() {
        under("no-core", test, &bench!());
        return;
    }
    let bench = Bench::scripted(&[]).unwrap();
    if may_raise_limits() {
        assert!(bench.run("exit 0").is_success());
        return;
    }
    let mut controller = start(&bench.spec("exit 0"));
    let Step::Ended(outcome) = controller.staged().unwrap() else {
        panic!("was staged")
    };
    let Ending::SetupFailed { step, detail } = &outcome.ending else {
        panic!("{:?}", outcome.ending);
    };
    assert_eq!(step, "inherited state");
    assert!(
        detail.contains("Core") && detail.contains("hard limit"),
        "{detail}"
    );
}
