//! Killed, stopped, cancelled, abandoned: in every step, and at any moment.

#![cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test says what went wrong by stopping"
)]

mod support;

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lazaret_warden::controller::{Controller, ControllerError, State, Step};
use lazaret_warden::ending::{Ending, Phase, ProcessEnd};
use lazaret_warden::record::{Launched, Outcome, read_outcome};
use lazaret_warden::spec::RunSpec;
use lazaret_warden::sys::PidFd;
use support::*;

fn kill(pid: i32) {
    PidFd::open(pid).unwrap().kill().unwrap();
}

fn warden_pid(controller: &Controller) -> i32 {
    i32::try_from(controller.warden_pid()).unwrap()
}

/// Brings a run to a state; everything before it has to be reached.
fn bring_to(state: State, spec: &RunSpec) -> (Controller, Option<Launched>) {
    match state {
        State::Started => (start(spec), None),
        State::Staged => (staged(spec).0, None),
        State::Launched => {
            let (controller, launched) = launched(spec);
            (controller, Some(launched))
        }
        _ => {
            let (mut controller, launched) = launched(spec);
            controller.release().unwrap();
            // The order may still be in the pipe; its effect shows that it is not.
            let output = spec.run_dir.join("result.json");
            eventually("the package runs", || {
                std::fs::metadata(&output).unwrap().len() > 0
            });
            (controller, Some(launched))
        }
    }
}

/// A package that shows that it runs, and then waits.
const WAITS: &str = "output 1\nsleep 600000";

const STATES: [State; 4] = [
    State::Started,
    State::Staged,
    State::Launched,
    State::Released,
];

fn assert_nothing_left(spec: &RunSpec, launched: Option<&Launched>) {
    eventually("bwrap is gone", || {
        processes_naming(&spec.run_dir).is_empty()
    });
    if let Some(launched) = launched {
        let (pid, ticks) = (launched.launcher.pid, launched.launcher.start_time_ticks);
        eventually("the launcher is gone", || !is_process(pid, Some(ticks)));
    }
}

fn outcome_on_disk(spec: &RunSpec) -> Outcome {
    let path = spec.run_dir.join("outcome.json");
    eventually("the outcome is on the disk", || path.exists());
    read_outcome(&spec.token, &std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_run_can_be_cancelled_in_every_step() {
    let bench = bench!();
    for state in STATES {
        let spec = bench.spec(WAITS);
        let (controller, launched) = bring_to(state, &spec);
        controller.cancel();
        let outcome = controller.wait().unwrap();
        assert_eq!(outcome.ending, Ending::Cancelled, "{state:?}");
        assert_eq!(outcome.released, state == State::Released);
        assert_clean(&outcome);
        assert_nothing_left(&spec, launched.as_ref());
    }
}

#[test]
fn a_run_can_be_cancelled_at_any_moment_of_its_start() {
    let bench = bench!();
    for round in 0..40_u64 {
        let spec = bench.spec(WAITS);
        let (mut controller, _) = staged(&spec);
        let canceller = controller.canceller();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(round * 300));
            canceller.cancel();
        });
        let outcome = match controller.arm().unwrap() {
            Step::Ended(outcome) => *outcome,
            Step::Reached(_) => controller.wait().unwrap(),
        };
        thread.join().unwrap();
        assert_eq!(outcome.ending, Ending::Cancelled, "round {round}");
        assert!(!outcome.released);
        assert_clean(&outcome);
        assert_nothing_left(&spec, None);
    }
}

#[test]
fn a_cancellation_wins_over_a_release_that_came_with_it() {
    let bench = bench!();
    for _ in 0..10 {
        let spec = bench.spec("stdout 1\nsleep 60000");
        let (mut controller, launched) = launched(&spec);
        // While the warden is stopped both orders pile up in the pipe.
        send_signal(warden_pid(&controller), libc::SIGSTOP);
        controller.release().unwrap();
        controller.cancel();
        send_signal(warden_pid(&controller), libc::SIGCONT);
        let outcome = controller.wait().unwrap();
        assert_eq!(outcome.ending, Ending::Cancelled);
        assert!(!outcome.released);
        assert!(outcome.stdout.kept.is_empty());
        assert_nothing_left(&spec, Some(&launched));
    }
}

#[test]
fn a_controller_that_is_dropped_ends_its_run_in_every_step() {
    let bench = bench!();
    for state in STATES {
        let spec = bench.spec(WAITS);
        let (controller, launched) = bring_to(state, &spec);
        let warden = warden_pid(&controller);
        drop(controller);
        assert!(
            !Path::new(&format!("/proc/{warden}")).exists(),
            "the warden was reaped"
        );
        assert_nothing_left(&spec, launched.as_ref());
        if state >= State::Staged {
            let outcome = outcome_on_disk(&spec);
            assert!(
                matches!(outcome.ending, Ending::ControllerLost { .. }),
                "{:?}",
                outcome.ending
            );
            assert_eq!(outcome.released, state == State::Released);
            assert_clean(&outcome);
        }
    }
}

/// The other side of the next test: a process that is a controller and waits.
fn be_a_controller(state: State) {
    let bench = Bench::scripted(&[]).unwrap();
    let spec = bench.spec(WAITS);
    let (controller, launched) = bring_to(state, &spec);
    let launcher = launched.map(|launched| launched.launcher);
    println!(
        "controller {} {} {} {} {}",
        spec.run_dir.display(),
        hex(spec.token.as_bytes()),
        warden_pid(&controller),
        launcher.as_ref().map_or(0, |launcher| launcher.pid),
        launcher
            .as_ref()
            .map_or(0, |launcher| launcher.start_time_ticks),
    );
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_controller_that_is_killed_ends_its_run_in_every_step() {
    const STATE: &str = "LAZARET_TEST_CONTROLLER_STATE";

    if let Ok(index) = std::env::var(STATE) {
        return be_a_controller(STATES[index.parse::<usize>().unwrap()]);
    }
    drop(bench!());
    for (index, state) in STATES.into_iter().enumerate() {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "a_controller_that_is_killed_ends_its_run_in_every_step",
            ])
            .arg("--nocapture")
            .env(STATE, index.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.find_map(|line| {
            let line = line.unwrap();
            line.split_once("controller ")
                .map(|(_, rest)| rest.to_owned())
        });
        let line = line.expect("the controller came to its state");
        let words: Vec<&str> = line.split(' ').collect();
        child.kill().unwrap();
        child.wait().unwrap();
        let run_dir = Path::new(words[0]);
        let [warden, launcher] = [words[2], words[3]].map(|word| word.parse::<i32>().unwrap());
        let ticks = words[4].parse().unwrap();
        eventually("the warden is gone", || !is_process(warden, None));
        eventually("bwrap is gone", || processes_naming(run_dir).is_empty());
        assert!(
            launcher == 0 || !is_process(launcher, Some(ticks)),
            "{state:?}"
        );
        if state >= State::Staged {
            let mut token = [0; 32];
            for (byte, digits) in token.iter_mut().zip(words[1].as_bytes().chunks(2)) {
                let digits = std::str::from_utf8(digits).unwrap();
                *byte = u8::from_str_radix(digits, 16).unwrap();
            }
            let token = lazaret_warden::token::RunToken::from_bytes(token);
            let bytes = std::fs::read(run_dir.join("outcome.json")).unwrap();
            let outcome = read_outcome(&token, &bytes).unwrap();
            assert!(matches!(outcome.ending, Ending::ControllerLost { .. }));
            assert_eq!(outcome.released, state == State::Released);
            assert!(outcome.cleanup.is_proved());
        }
        std::fs::remove_dir_all(run_dir.parent().unwrap()).unwrap();
    }
}

#[test]
fn a_warden_that_is_killed_takes_its_run_with_it_in_every_step() {
    let bench = bench!();
    for state in STATES {
        let spec = bench.spec(WAITS);
        let (controller, launched) = bring_to(state, &spec);
        kill(warden_pid(&controller));
        let error = controller.wait().unwrap_err();
        assert!(
            matches!(error, ControllerError::WardenLost { .. }),
            "{state:?}: {error}"
        );
        assert_nothing_left(&spec, launched.as_ref());
        assert!(!spec.run_dir.join("outcome.json").exists());
    }
}

#[test]
fn a_warden_that_is_killed_at_any_moment_of_the_start_leaves_nothing() {
    let bench = bench!();
    for round in 0..300_u64 {
        let spec = bench.spec(WAITS);
        let (mut controller, _) = staged(&spec);
        let warden = warden_pid(&controller);
        let pidfd = PidFd::open(warden).unwrap();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(round * 40));
            pidfd.kill().unwrap();
        });
        let launched = match controller.arm() {
            Ok(Step::Reached(launched)) => Some(launched),
            Ok(Step::Ended(outcome)) => panic!("{outcome:?}"),
            Err(_) => None,
        };
        thread.join().unwrap();
        drop(controller);
        assert_nothing_left(&spec, launched.as_ref());
    }
}

/// The first process that the warden starts, as soon as it is there.
fn first_child(warden: i32) -> Option<i32> {
    let path = format!("/proc/{warden}/task/{warden}/children");
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until {
        let children = std::fs::read_to_string(&path).ok()?;
        if let Some(child) = children.split_whitespace().next() {
            return child.parse().ok();
        }
    }
    None
}

#[test]
fn bwrap_killed_in_its_first_milliseconds_leaves_nothing() {
    let bench = bench!();
    let mut before_launch = 0;
    for round in 0..300_u64 {
        let spec = bench.spec(WAITS);
        let (mut controller, _) = staged(&spec);
        let warden = warden_pid(&controller);
        let thread = std::thread::spawn(move || {
            let bwrap = first_child(warden).expect("bwrap was started");
            std::thread::sleep(Duration::from_micros(round * 25));
            // It may have been reaped already.
            if let Ok(pidfd) = PidFd::open(bwrap) {
                pidfd.kill().unwrap();
            }
        });
        let (outcome, launched) = match controller.arm().unwrap() {
            Step::Ended(outcome) => (*outcome, None),
            Step::Reached(launched) => (controller.wait().unwrap(), Some(launched)),
        };
        thread.join().unwrap();
        before_launch += u32::from(launched.is_none());
        match &outcome.ending {
            Ending::BwrapLost { end } => assert_eq!(*end, ProcessEnd::Signalled(libc::SIGKILL)),
            // It depends on what had been done with it.
            Ending::SetupFailed { .. } => {}
            other => panic!("round {round}: {other:?}"),
        }
        assert!(!outcome.released);
        assert_clean(&outcome);
        assert_nothing_left(&spec, launched.as_ref());
    }
    assert!(
        before_launch > 50,
        "only {before_launch} rounds hit the start"
    );
}

#[test]
fn bwrap_killed_later_ends_the_run() {
    let bench = bench!();
    for state in [State::Launched, State::Released] {
        let spec = bench.spec(WAITS);
        let (controller, launched) = bring_to(state, &spec);
        let launched = launched.unwrap();
        let fact = launched
            .facts
            .iter()
            .find(|fact| fact.fact.to_string() == "parent")
            .unwrap();
        kill(fact.found.parse().unwrap());
        let outcome = controller.wait().unwrap();
        let end = ProcessEnd::Signalled(libc::SIGKILL);
        assert_eq!(outcome.ending, Ending::BwrapLost { end }, "{state:?}");
        assert_clean(&outcome);
        assert_nothing_left(&spec, Some(&launched));
    }
}

#[test]
fn the_launcher_killed_before_the_release_is_no_run() {
    let bench = bench!();
    let (controller, launched) = bring_to(State::Launched, &bench.spec("exit 0"));
    kill(launched.unwrap().launcher.pid);
    let outcome = controller.wait().unwrap();
    let Ending::LauncherEnded { end, .. } = outcome.ending else {
        panic!("{:?}", outcome.ending)
    };
    assert_eq!(end, ProcessEnd::Signalled(libc::SIGKILL));
    assert_eq!((outcome.phase, outcome.released), (Phase::Launched, false));
}

#[test]
fn whoever_is_stopped_and_continued_goes_on() {
    let bench = bench!();
    for state in [State::Staged, State::Launched, State::Released] {
        for whom in ["warden", "bwrap", "launcher"] {
            let (mut controller, launched) =
                bring_to(state, &bench.spec("output 1\nsleep 300\nexit 6"));
            let pid = match (whom, &launched) {
                ("warden", _) => warden_pid(&controller),
                (_, None) => continue,
                ("bwrap", Some(launched)) => {
                    let parent = |fact: &&lazaret_warden::barrier::JudgedFact| {
                        fact.fact == lazaret_warden::barrier::Fact::Parent
                    };
                    launched
                        .facts
                        .iter()
                        .find(parent)
                        .unwrap()
                        .found
                        .parse()
                        .unwrap()
                }
                (_, Some(launched)) => launched.launcher.pid,
            };
            send_signal(pid, libc::SIGSTOP);
            eventually("it stopped", || {
                let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
                text.rsplit_once(") ").unwrap().1.starts_with(['T', 't'])
            });
            std::thread::sleep(Duration::from_millis(50));
            send_signal(pid, libc::SIGCONT);
            if state == State::Staged {
                assert!(matches!(controller.arm().unwrap(), Step::Reached(_)));
            }
            if state != State::Released {
                controller.release().unwrap();
            }
            let outcome = controller.wait().unwrap();
            assert_eq!(
                outcome.ending,
                Ending::Exited { code: 6 },
                "{state:?} {whom}"
            );
            assert_clean(&outcome);
        }
    }
}

#[test]
fn a_stopped_package_is_ended_by_the_deadline_and_a_stopped_warden_by_the_watchdog() {
    let bench = bench!();
    let spec = bench.spec_within(WAITS, 5000);
    let (controller, launched) = bring_to(State::Released, &spec);
    let launched = launched.unwrap();
    send_signal(launched.launcher.pid, libc::SIGSTOP);
    let outcome = controller.wait().unwrap();
    assert_eq!(outcome.ending, Ending::WallDeadline);
    assert_clean(&outcome);

    let spec = bench.spec_within(WAITS, 5000);
    let (controller, launched) = bring_to(State::Released, &spec);
    let warden = warden_pid(&controller);
    send_signal(warden, libc::SIGSTOP);
    assert!(matches!(controller.wait(), Err(ControllerError::Watchdog)));
    assert!(
        !Path::new(&format!("/proc/{warden}")).exists(),
        "the warden was reaped"
    );
    assert_nothing_left(&spec, launched.as_ref());
}

#[test]
fn a_signal_to_the_warden_ends_the_run_in_order() {
    let bench = bench!();
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        for state in [State::Staged, State::Launched, State::Released] {
            let spec = bench.spec(WAITS);
            let (controller, launched) = bring_to(state, &spec);
            send_signal(warden_pid(&controller), signal);
            let outcome = controller.wait().unwrap();
            assert_eq!(
                outcome.ending,
                Ending::WardenSignalled { signal },
                "{state:?}"
            );
            assert_clean(&outcome);
            assert_nothing_left(&spec, launched.as_ref());
        }
    }
}

#[test]
fn steps_out_of_order_are_refused_on_both_sides() {
    let bench = bench!();
    let mut controller = start(&bench.spec("exit 0"));
    assert!(matches!(
        controller.arm(),
        Err(ControllerError::OutOfOrder { .. })
    ));
    assert!(matches!(
        controller.release(),
        Err(ControllerError::OutOfOrder { .. })
    ));
    assert!(matches!(controller.staged().unwrap(), Step::Reached(_)));
    assert!(matches!(
        controller.staged(),
        Err(ControllerError::OutOfOrder { .. })
    ));
    assert!(matches!(
        controller.release(),
        Err(ControllerError::OutOfOrder { .. })
    ));
}

#[test]
fn the_warden_takes_no_argument_and_no_other_greeting() {
    let output = Command::new(warden()).arg("--help").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("takes no argument"));
    let mut child = Command::new(warden())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    use std::io::Write as _;
    child.stdin.take().unwrap().write_all(&[b'x'; 64]).unwrap();
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(said.contains("greeting") && said.len() < 200, "{said}");
}

#[test]
fn nothing_is_left_after_many_runs() {
    let bench = bench!();
    let count = |path: &str| std::fs::read_dir(path).unwrap().count();
    let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    drop(bench.run("exit 0"));
    let before = (count("/proc/self/fd"), mounts());
    for round in 0..20 {
        let spec = bench.spec(if round % 2 == 0 { "exit 0" } else { WAITS });
        let (mut controller, launched) = launched(&spec);
        controller.release().unwrap();
        if round % 2 == 1 {
            controller.cancel();
        }
        assert_clean(&controller.wait().unwrap());
        assert_nothing_left(&spec, Some(&launched));
    }
    assert_eq!(mounts(), before.1);
    // Other tests of this process open and close pipes meanwhile; a leak would show
    // in every round.
    eventually("descriptors are as before", || {
        count("/proc/self/fd") <= before.0 + 12
    });
}

#[test]
fn runs_start_while_other_threads_allocate_without_pause() {
    use std::sync::atomic::{AtomicBool, Ordering};

    let bench = bench!();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut kept = Vec::new();
                while !done.load(Ordering::Relaxed) {
                    kept.push(vec![0_u8; 3000]);
                    if kept.len() > 100 {
                        kept.clear();
                    }
                }
            });
        }
        for _ in 0..150 {
            let mut controller = start(&bench.spec("exit 0"));
            assert!(matches!(controller.staged().unwrap(), Step::Reached(_)));
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_warden_that_cannot_be_started_is_a_named_error_and_no_process() {
    let bench = bench!();
    let spec = bench.spec("exit 0");
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "no program").unwrap();
    for program in [dir.path().join("missing"), plain, dir.path().to_path_buf()] {
        let error = Controller::start(&program, &spec).unwrap_err();
        assert!(matches!(error, ControllerError::Spawn { .. }), "{error}");
        assert!(
            error.to_string().contains(program.to_str().unwrap()),
            "{error}"
        );
    }
    let mut missing = bench.spec("exit 0");
    missing.run_dir = dir.path().join("nowhere");
    let error = Controller::start(warden(), &missing).unwrap_err();
    assert!(matches!(error, ControllerError::Path { .. }), "{error}");
}

#[test]
fn a_program_that_is_no_warden_is_not_believed() {
    let bench = bench!();
    for (program, expected) in [
        ("/bin/true", "without an outcome"),
        ("/bin/cat", "report pipe"),
    ] {
        let mut controller = Controller::start(Path::new(program), &bench.spec("exit 0")).unwrap();
        let error = controller.staged().unwrap_err();
        assert!(error.to_string().contains(expected), "{program}: {error}");
    }
}
