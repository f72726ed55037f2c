//! Runs in the real sandbox: what is done, what fails, what is Blocked, and that
//! nothing is left of any of them.

#![cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use lazaret_contract::formatter;
use lazaret_engine::record::Conclusion;
use lazaret_engine::run::{Cancel, EngineConfig, Gate, Stop, Unfinished};
use lazaret_engine::{Blocked, Cause};
use support::{Always, Bench, FORMATTER};

const DOCUMENT: &[u8] = br#"{"b":[1.50,-0.0,"\u00e9"],"a":{"nested":[true,null]}}"#;

/// A package that never ends by itself and uses no CPU.
const SLEEPER: &[u8] = b"import time\ntime.sleep(60)\n";

fn failed(unfinished: Unfinished) -> (String, String) {
    match unfinished.stop {
        Stop::Failed { cause, stderr, .. } => {
            (cause, String::from_utf8_lossy(&stderr).into_owned())
        }
        other => panic!("not failed: {other:?}"),
    }
}

fn blocked(unfinished: Unfinished) -> Blocked {
    assert_eq!(unfinished.record.conclusion, Conclusion::Blocked);
    match unfinished.stop {
        Stop::Blocked(blocked) => blocked,
        other => panic!("not blocked: {other:?}"),
    }
}

#[test]
fn a_document_is_formatted_verified_and_nothing_is_left() {
    let Some(bench) = Bench::new() else { return };
    let finished = bench.run(FORMATTER, DOCUMENT).unwrap();
    assert_eq!(finished.output, formatter::format(DOCUMENT).unwrap());
    assert!(bench.nothing_left());
    assert_eq!(finished.evidence, None);
    assert_eq!(finished.warnings, Vec::<String>::new());
}

#[test]
fn the_record_keeps_three_facts_apart_and_tells_nothing_that_it_must_not() {
    let Some(bench) = Bench::new() else { return };
    let finished = bench.run(FORMATTER, DOCUMENT).unwrap();
    let record = &finished.record;
    assert_eq!(record.conclusion, Conclusion::Done);
    let process = record.process.as_ref().unwrap();
    assert_eq!((process.exit_code, process.released), (Some(0), true));
    assert!(record.cleanup.as_ref().unwrap().proved);
    let verification = record.verification.as_ref().unwrap();
    assert!(verification.verified && verification.staged_unchanged);
    assert_eq!(verification.output_claim, "exact-bytes");
    let facts = &record.barrier.as_ref().unwrap().facts;
    assert!(facts.len() > 30 && facts.iter().all(|fact| fact.holds));
    assert!(record.no_learning);
    assert_eq!(
        record.profile.standing,
        "accepted, not independently reviewed"
    );

    let text = String::from_utf8(record.to_bytes().unwrap()).unwrap();
    let path = bench.path().to_str().unwrap();
    for secret in [
        path,
        "nested",
        bench.closure.to_str().unwrap(),
        "/root",
        "/home",
    ] {
        assert!(!text.contains(secret), "the record tells {secret}");
    }
    let read: lazaret_engine::record::RunRecord = serde_json::from_str(&text).unwrap();
    assert_eq!(&read, record);
}

#[test]
fn an_output_that_is_not_the_right_one_is_not_given_out() {
    let Some(bench) = Bench::new() else { return };
    let cases: [(&[u8], &str); 5] = [
        (b"import lazaret\nlazaret.write_output([1], indent=2)\n", "output-value-differs"),
        (b"import lazaret\nlazaret.write_output(lazaret.read_input())\n", "output-bytes-differ"),
        (b"pass\n", "output-not-strict-json"),
        (b"open('/out/result.json', 'wb').write(b'{\"a\":1,\"a\":1}')\n", "output-not-strict-json"),
        (
            b"import lazaret\nlazaret.write_output(lazaret.read_input(), indent=2)\nraise SystemExit(3)\n",
            "exited",
        ),
    ];
    for (code, cause) in cases {
        let unfinished = bench.run(code, DOCUMENT).unwrap_err();
        assert_eq!(unfinished.record.conclusion, Conclusion::Failed);
        // The three facts: the process may have ended well while the output is wrong.
        assert!(unfinished.record.cleanup.as_ref().unwrap().proved);
        assert!(!unfinished.record.verification.as_ref().unwrap().verified);
        assert!(unfinished.evidence.is_some());
        assert_eq!(failed(*unfinished).0, cause);
        assert!(bench.nothing_left());
    }
}

#[test]
fn what_a_failed_package_said_is_kept_and_its_files_too() {
    let Some(bench) = Bench::new() else { return };
    let unfinished = bench
        .run(b"raise ValueError('because of this')\n", DOCUMENT)
        .unwrap_err();
    let evidence = unfinished.evidence.clone().unwrap();
    for name in [
        "package.py",
        "input.json",
        "launch.json",
        "outcome.json",
        "record.json",
    ] {
        assert!(evidence.join(name).is_file(), "{name} is not kept");
    }
    assert_eq!(fs::read(evidence.join("input.json")).unwrap(), DOCUMENT);
    let (cause, stderr) = failed(*unfinished);
    assert_eq!(cause, "exited");
    assert!(stderr.contains("ValueError: because of this"), "{stderr}");
}

#[test]
fn each_limit_ends_a_run_and_the_next_one_is_well() {
    let Some(bench) = Bench::new() else { return };
    let cases: [(&[u8], &[&str]); 4] = [
        // On a host that is busy enough the deadline comes before the CPU budget is used.
        (b"while True: pass\n", &["cpu-limit", "wall-deadline"]),
        (
            b"import sys\nsys.stderr.write('x' * 9000)\nsys.stderr.flush()\n",
            &["stream-limit"],
        ),
        (b"import os\nos.fork()\n", &["denied-call"]),
        (b"x = bytearray(200 * 1024 * 1024)\n", &["exited"]),
    ];
    for (code, causes) in cases {
        let unfinished = bench.run(code, b"[]").unwrap_err();
        let reason = unfinished.record.process.clone().unwrap().reason;
        assert!(
            causes.contains(&reason.as_str()),
            "{reason}: {}",
            String::from_utf8_lossy(code)
        );
        assert_eq!(failed(*unfinished).0, reason);
        assert!(bench.nothing_left());
    }
    assert!(
        bench.run(FORMATTER, b"[]").is_ok(),
        "a benign run afterwards"
    );
}

#[test]
fn the_deadline_ends_a_run_that_sleeps() {
    let Some(bench) = Bench::new() else { return };
    let config = EngineConfig {
        wall: Duration::from_secs(2),
        ..bench.config.clone()
    };
    let unfinished = bench
        .run_with(&config, SLEEPER, b"[]", &mut Always, &Cancel::default())
        .unwrap_err();
    assert_eq!(failed(*unfinished).0, "wall-deadline");
    assert!(bench.nothing_left());
}

#[test]
fn a_deadline_beyond_the_limit_is_refused() {
    let Some(bench) = Bench::new() else { return };
    for wall in [Duration::ZERO, Duration::from_millis(10_001)] {
        let config = EngineConfig {
            wall,
            ..bench.config.clone()
        };
        let unfinished = bench
            .run_with(&config, FORMATTER, b"[]", &mut Always, &Cancel::default())
            .unwrap_err();
        assert_eq!(blocked(*unfinished).what, "the deadline");
    }
}

/// A gate that says no at one step, or does something there first.
struct At<'a> {
    step: &'static str,
    refuse: bool,
    act: &'a dyn Fn(),
}

impl At<'_> {
    fn come_to(&self, step: &str) -> Result<(), Blocked> {
        if self.step != step {
            return Ok(());
        }
        (self.act)();
        if self.refuse {
            return Err(Blocked::new(
                Cause::NotApproved,
                "the approval",
                "taken away",
            ));
        }
        Ok(())
    }
}

impl Gate for At<'_> {
    fn arm(&mut self) -> Result<(), Blocked> {
        self.come_to("arm")
    }

    fn release(&mut self) -> Result<(), Blocked> {
        self.come_to("release")
    }
}

/// Leaves a mark in the output, so that it shows whether it ran.
const MARK: &[u8] = b"open('/out/result.json', 'w').write('it ran')\n";

#[test]
fn what_the_gate_refuses_never_runs() {
    let Some(bench) = Bench::new() else { return };
    for step in ["arm", "release"] {
        let mut gate = At {
            step,
            refuse: true,
            act: &|| (),
        };
        let unfinished = bench
            .run_with(&bench.config, MARK, b"[]", &mut gate, &Cancel::default())
            .unwrap_err();
        let process = unfinished.record.process.clone().unwrap();
        assert!(!process.released, "{step}");
        assert!(unfinished.record.cleanup.as_ref().unwrap().proved);
        let kept = unfinished.evidence.clone().unwrap().join("result.json");
        assert_eq!(fs::read(kept).unwrap(), b"", "{step}: the package ran");
        assert_eq!(blocked(*unfinished).cause, Cause::NotApproved);
        assert!(bench.nothing_left());
    }
}

#[test]
fn a_run_that_is_cancelled_before_its_release_never_runs() {
    let Some(bench) = Bench::new() else { return };
    let early = Cancel::default();
    early.cancel();
    let unfinished = bench
        .run_with(&bench.config, MARK, b"[]", &mut Always, &early)
        .unwrap_err();
    assert_eq!(blocked(*unfinished).cause, Cause::NotReleased);
    for step in ["arm", "release"] {
        let cancel = Cancel::default();
        let mut gate = At {
            step,
            refuse: false,
            act: &|| cancel.cancel(),
        };
        let unfinished = bench
            .run_with(&bench.config, MARK, b"[]", &mut gate, &cancel)
            .unwrap_err();
        assert!(
            !unfinished.record.process.clone().unwrap().released,
            "{step}"
        );
        assert_eq!(blocked(*unfinished).cause, Cause::NotReleased);
        assert!(bench.nothing_left());
    }
}

#[test]
fn a_run_that_is_cancelled_while_it_runs_ends() {
    let Some(bench) = Bench::new() else { return };
    let cancel = Cancel::default();
    let unfinished = std::thread::scope(|scope| {
        let (released, wait) = std::sync::mpsc::channel();
        let cancel = &cancel;
        scope.spawn(move || {
            wait.recv().unwrap();
            std::thread::sleep(Duration::from_millis(300));
            cancel.cancel();
        });
        let mut gate = At {
            step: "release",
            refuse: false,
            act: &|| released.send(()).unwrap(),
        };
        bench
            .run_with(&bench.config, SLEEPER, b"[]", &mut gate, cancel)
            .unwrap_err()
    });
    // It may have come before the release byte did: then it never ran.
    match unfinished.stop {
        Stop::Failed { cause, .. } => assert_eq!(cause, "cancelled"),
        Stop::Blocked(blocked) => assert_eq!(blocked.cause, Cause::NotReleased),
        Stop::Unknown { why } => panic!("{why}"),
    }
    assert!(bench.nothing_left());
}

#[test]
fn several_runs_at_a_time_do_not_meet() {
    let Some(bench) = Bench::new() else { return };
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let bench = &bench;
            scope.spawn(move || {
                for round in 0..3 {
                    let input = format!("{{\"worker\":{worker},\"round\":{round}}}");
                    let finished = bench.run(FORMATTER, input.as_bytes()).unwrap();
                    assert_eq!(
                        finished.output,
                        formatter::format(input.as_bytes()).unwrap()
                    );
                }
            });
        }
    });
    assert!(bench.nothing_left());
}

/// Does something to a copy of a closure.
type Spoil = Box<dyn Fn(&std::path::Path)>;

#[test]
fn a_closure_that_was_spoilt_is_refused_whatever_was_done_to_it() {
    let Some(bench) = Bench::new() else { return };
    let flip = |name: &'static str| {
        move |copy: &std::path::Path| {
            let path = copy.join(name);
            let mut bytes = fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            let mode = fs::metadata(&path).unwrap().permissions();
            fs::remove_file(&path).unwrap();
            fs::write(&path, bytes).unwrap();
            fs::set_permissions(&path, mode).unwrap();
        }
    };
    let mode = |name: &'static str, mode: u32| {
        move |copy: &std::path::Path| {
            fs::set_permissions(copy.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    let remove = |name: &'static str| {
        move |copy: &std::path::Path| fs::remove_file(copy.join(name)).unwrap()
    };
    let spoils: Vec<(&str, Spoil)> = vec![
        ("manifest byte", Box::new(flip("manifest.json"))),
        ("bwrap byte", Box::new(flip("bwrap"))),
        ("launcher byte", Box::new(flip("launcher"))),
        ("filter byte", Box::new(flip("filter.bpf"))),
        ("launcher missing", Box::new(remove("launcher"))),
        ("manifest missing", Box::new(remove("manifest.json"))),
        ("setuid bwrap", Box::new(mode("bwrap", 0o4555))),
        ("bwrap without execute bit", Box::new(mode("bwrap", 0o444))),
        (
            "launcher writable by others",
            Box::new(mode("launcher", 0o777)),
        ),
        ("directory writable by others", Box::new(mode(".", 0o777))),
        (
            "two names of the launcher",
            Box::new(|copy: &std::path::Path| {
                fs::hard_link(copy.join("launcher"), copy.join("second")).unwrap();
            }),
        ),
    ];
    for (name, spoil) in spoils {
        let (place, copy) = bench.copy_closure();
        let config = EngineConfig {
            closure_places: vec![place.clone()],
            ..bench.config.clone()
        };
        spoil(&copy);
        let unfinished = bench
            .run_with(&config, MARK, b"[]", &mut Always, &Cancel::default())
            .unwrap_err();
        let refused = blocked(*unfinished);
        assert!(!refused.why.is_empty(), "{name}");
        assert!(bench.nothing_left(), "{name}");
        fs::remove_dir_all(&place).unwrap();
    }
    // The copy itself is good: what was refused was the spoiling.
    let (place, _) = bench.copy_closure();
    let config = EngineConfig {
        closure_places: vec![place],
        ..bench.config.clone()
    };
    bench
        .run_with(&config, FORMATTER, b"[]", &mut Always, &Cancel::default())
        .unwrap();
}

#[test]
fn a_closure_that_was_not_accepted_is_named_and_not_used() {
    let Some(bench) = Bench::new() else { return };
    // A place of one's own: the one where the closure was built may not be listed by everybody.
    let (place, _) = bench.copy_closure();
    let mut config = EngineConfig {
        closure_places: vec![place],
        ..bench.config.clone()
    };
    config.accepted.closure = lazaret_contract::digest::Sha256Digest::of(b"another");
    let unfinished = bench
        .run_with(&config, MARK, b"[]", &mut Always, &Cancel::default())
        .unwrap_err();
    assert!(unfinished.record.process.is_none());
    let refused = blocked(*unfinished);
    assert_eq!(refused.cause, Cause::ClosureMissing);
    assert!(
        refused.why.contains(&bench.accepted.closure.to_string()),
        "{refused}"
    );
    assert!(
        refused.advice[0].starts_with("cargo xtask build-closure"),
        "{:?}",
        refused.advice
    );
}

#[test]
fn an_acceptance_that_contradicts_the_manifest_is_refused() {
    let Some(bench) = Bench::new() else { return };
    let mut config = bench.config.clone();
    config.accepted.launcher = lazaret_contract::digest::Sha256Digest::of(b"another");
    let unfinished = bench
        .run_with(&config, MARK, b"[]", &mut Always, &Cancel::default())
        .unwrap_err();
    assert_eq!(blocked(*unfinished).cause, Cause::ClosureDiffers);
}

#[test]
fn without_its_warden_nothing_runs() {
    let Some(bench) = Bench::new() else { return };
    let config = EngineConfig {
        warden: bench.path().join("missing"),
        ..bench.config.clone()
    };
    let unfinished = bench
        .run_with(&config, MARK, b"[]", &mut Always, &Cancel::default())
        .unwrap_err();
    assert_eq!(blocked(*unfinished).cause, Cause::WardenMissing);
    assert!(bench.nothing_left());
    // A program that is none of ours says nothing that is believed.
    let config = EngineConfig {
        warden: "/bin/true".into(),
        ..bench.config.clone()
    };
    let unfinished = bench
        .run_with(&config, MARK, b"[]", &mut Always, &Cancel::default())
        .unwrap_err();
    assert_eq!(blocked(*unfinished).cause, Cause::Setup);
    assert!(bench.nothing_left());
}

#[test]
fn an_input_of_the_limit_passes_and_one_byte_more_is_refused() {
    let Some(bench) = Bench::new() else { return };
    let limit = lazaret_contract::limits::INPUT_BYTES_MAX;
    let mut input = b"[]".to_vec();
    input.resize(limit, b' ');
    assert_eq!(bench.run(FORMATTER, &input).unwrap().output, b"[]\n");
    input.push(b' ');
    let refused = blocked(*bench.run(FORMATTER, &input).unwrap_err());
    assert!(refused.why.contains("over the limit"), "{refused}");
}

/// Under a service manager's filter that refuses openat2 a run is Blocked, in both
/// spellings of the refusal.
#[test]
fn where_openat2_is_refused_a_run_is_blocked() {
    use seccompiler::{SeccompAction, SeccompFilter, TargetArch, apply_filter};
    const OPENAT2: i64 = 437;
    let Some(bench) = Bench::new() else { return };
    for errno in [1, 38] {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let filter = SeccompFilter::new(
                    [(OPENAT2, vec![])].into_iter().collect(),
                    SeccompAction::Allow,
                    SeccompAction::Errno(errno),
                    TargetArch::x86_64,
                )
                .unwrap();
                let program: seccompiler::BpfProgram = filter.try_into().unwrap();
                apply_filter(&program).unwrap();
                let refused = blocked(*bench.run(MARK, b"[]").unwrap_err());
                assert_eq!(refused.cause, Cause::Openat2);
            });
        });
    }
}

#[test]
fn doctor_finds_everything_and_leaves_nothing() {
    use lazaret_engine::preflight::{Need, Request, Verdict, probe};
    let Some(bench) = Bench::new() else { return };
    let report = probe(&Request {
        profile: bench.accepted.profile.clone(),
        accepted: Ok(bench.accepted.clone()),
        closure_places: bench.config.closure_places.clone(),
        warden: Ok(bench.config.warden.clone()),
        data_dir: Ok(bench.data.path().to_path_buf()),
        acting: lazaret_engine::Acting::current(None),
    });
    assert!(report.ready, "{report:#?}");
    assert!(report.probes.iter().any(|probe| probe.need == Need::Barrier
        && matches!(&probe.verdict, Verdict::Ok { detail } if detail.contains("facts as expected"))));
    assert!(report.says.contains("not that isolation holds"));
    assert!(bench.nothing_left());
}
