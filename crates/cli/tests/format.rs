//! `lazaret format` with the accepted closure: the whole way, and that nothing is
//! left of it.

#![cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use lazaret_profile::accepted::Accepted;
use lazaret_profile::pins::PROFILE_V1;
use support::{DOCUMENT, FORMATTED, Place, finish, ready};

fn arguments<'a>(accepted: &'a Accepted, more: &[&'a str]) -> Vec<&'a str> {
    [
        &["format", "-", "--profile", accepted.profile.as_str()][..],
        more,
    ]
    .concat()
}

#[test]
fn a_document_comes_out_formatted_and_nothing_is_left() {
    let Some((place, accepted)) = ready() else {
        return;
    };
    let said = place.call_with_input(&arguments(&accepted, &[]), DOCUMENT.as_bytes());
    assert_eq!(
        (said.code, said.out.as_str()),
        (Some(0), FORMATTED),
        "{}",
        said.err
    );
    for word in [
        "this is launched:",
        "network=false, secrets=[], env=[]",
        &accepted.closure.to_string(),
        "done",
        "facts as expected at the barrier",
        "nothing left",
    ] {
        assert!(said.err.contains(word), "{word} is not in: {}", said.err);
    }
    let candidate = accepted.profile != PROFILE_V1;
    assert_eq!(said.err.contains("(candidate)"), candidate, "{}", said.err);
    assert_eq!(place.runs(), 0);
    assert_eq!(
        fs::read_dir(place.data().join("evidence")).map_or(0, Iterator::count),
        0
    );
}

#[test]
fn a_real_document_of_the_repository_comes_out_as_the_rules_say() {
    let Some((place, accepted)) = ready() else {
        return;
    };
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/cargo-metadata.json"
    );
    let input = fs::read(path).unwrap();
    let said = place.call(&["format", path, "--quiet", "--profile", &accepted.profile]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(
        said.out.into_bytes(),
        lazaret_contract::formatter::format(&input).unwrap()
    );
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    assert!(said.err.contains("network=false"), "{}", said.err);
}

#[test]
fn the_record_is_written_and_tells_neither_place_nor_document() {
    let Some((place, accepted)) = ready() else {
        return;
    };
    let more = ["--record", "record.json", "--json"];
    let said = place.call_with_input(&arguments(&accepted, &more), DOCUMENT.as_bytes());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let answer: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(answer["schema"], "lazaret-format/1");
    assert_eq!(
        (&answer["outcome"], &answer["output"]),
        (&"done".into(), &FORMATTED.into())
    );
    let text = fs::read_to_string(place.at("work/record.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(record, answer["record"]);
    assert_eq!(record["schema"], "lazaret-run-record/1");
    assert_eq!(record["conclusion"], "done");
    assert_eq!(
        record["profile"]["candidate"],
        accepted.profile != PROFILE_V1
    );
    assert_eq!(record["profile"]["standing"], accepted.standing());
    assert_eq!(record["no_learning"], true);
    assert_eq!(record["cleanup"]["proved"], true);
    assert_eq!(record["verification"]["verified"], true);
    for secret in [place.at("").to_str().unwrap(), "nested", "/tmp/"] {
        assert!(!text.contains(secret), "the record tells {secret}");
    }
}

#[test]
fn evidence_is_kept_where_the_operator_wants_it() {
    let Some((place, accepted)) = ready() else {
        return;
    };
    let more = ["--keep-evidence", "kept"];
    let said = place.call_with_input(&arguments(&accepted, &more), DOCUMENT.as_bytes());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let runs: Vec<_> = fs::read_dir(place.at("work/kept")).unwrap().collect();
    assert_eq!(runs.len(), 1);
    let run = runs[0].as_ref().unwrap().path();
    assert_eq!(fs::metadata(&run).unwrap().mode() & 0o7777, 0o700);
    for name in [
        "package.py",
        "input.json",
        "verified-output.json",
        "outcome.json",
        "record.json",
    ] {
        assert!(run.join(name).is_file(), "{name} is not kept");
    }
    assert_eq!(place.runs(), 0);
}

#[test]
fn several_at_a_time_do_not_meet() {
    let Some((place, accepted)) = ready() else {
        return;
    };
    std::thread::scope(|scope| {
        for worker in 0..6 {
            let (place, accepted) = (&place, &accepted);
            scope.spawn(move || {
                let document = format!("{{\"worker\":{worker}}}");
                let said =
                    place.call_with_input(&arguments(accepted, &["--quiet"]), document.as_bytes());
                assert_eq!(said.code, Some(0), "{}", said.err);
                assert_eq!(said.out, format!("{{\n  \"worker\": {worker}\n}}\n"));
            });
        }
    });
    assert_eq!(place.runs(), 0);
}

#[test]
fn doctor_says_ready_and_not_more_than_that() {
    let Some((place, accepted)) = ready() else {
        return;
    };
    let said = place.call(&["doctor", "--profile", &accepted.profile]);
    assert_eq!(
        (said.code, said.err.as_str()),
        (Some(0), ""),
        "{}",
        said.out
    );
    assert!(
        said.out
            .lines()
            .skip(1)
            .take(14)
            .all(|line| line.starts_with("ok ")),
        "{}",
        said.out
    );
    assert!(said.out.contains("ready. "), "{}", said.out);
    assert!(
        said.out.contains("not that isolation holds"),
        "{}",
        said.out
    );
    let said = place.call(&["doctor", "--json", "--profile", &accepted.profile]);
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&report["schema"], &report["ready"]),
        (&"lazaret-doctor/1".into(), &true.into())
    );
    assert_eq!(place.runs(), 0);
}

#[test]
fn a_reader_that_has_gone_is_an_error_and_no_crash() {
    let Some((place, accepted)) = ready() else {
        return;
    };
    let mut command = place.command(&arguments(&accepted, &["--quiet"]));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdout(writer);
    let said = finish(command, DOCUMENT.as_bytes());
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("standard output"), "{}", said.err);
}

/// Killed at any moment, it leaves nothing that runs, and the next run tidies up.
#[test]
fn killed_at_any_moment_it_leaves_no_process_and_the_next_run_tidies_up() {
    let Some((place, accepted)) = ready() else {
        return;
    };
    for round in 0..24_u64 {
        let mut command = place.command(&arguments(&accepted, &["--quiet"]));
        command.stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        use std::io::Write as _;
        // It may be dead before it reads.
        let _ = child.stdin.take().unwrap().write_all(DOCUMENT.as_bytes());
        std::thread::sleep(Duration::from_millis(round * 4));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // The end of the control pipe ends a warden at once.
    let warden = place.at("bin/lazaret-warden");
    wait_until(|| !is_running(&warden));
    // One that was killed in the middle of starting its warden is tidied up after a
    // while, the others by the next run.
    wait_until(|| {
        let said = place.call_with_input(&arguments(&accepted, &["--quiet"]), DOCUMENT.as_bytes());
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(0), FORMATTED),
            "{}",
            said.err
        );
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        place.runs() == 0
    });
}

#[test]
fn asked_to_end_it_ends_its_run_first() {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    let Some((place, accepted)) = ready() else {
        return;
    };
    for round in 0..8_u64 {
        let mut command = place.command(&arguments(&accepted, &["--quiet"]));
        command.stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        use std::io::Write as _;
        child
            .stdin
            .take()
            .unwrap()
            .write_all(DOCUMENT.as_bytes())
            .unwrap();
        std::thread::sleep(Duration::from_millis(round * 8));
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
        kill(pid, Signal::SIGTERM).unwrap();
        let output = child.wait_with_output().unwrap();
        // Before the run the signal ends it as always; during the run it is cancelled;
        // afterwards it may have been too late.
        assert!(
            matches!(output.status.code(), None | Some(0 | 1 | 3)),
            "{:?} {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        if output.status.code() != Some(0) {
            assert_eq!(output.stdout, b"");
        }
    }
    let warden = place.at("bin/lazaret-warden");
    wait_until(|| !is_running(&warden));
}

/// Whether any process runs this program, or has it as its parent's.
fn is_running(program: &std::path::Path) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == program)
            || fs::read(entry.path().join("cmdline"))
                .is_ok_and(|line| line.starts_with(program.to_str().unwrap().as_bytes()))
    })
}

/// Waits for something that will come; if it never does the test does not end well.
fn wait_until(condition: impl Fn() -> bool) {
    for _ in 0..600 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("it did not happen within a minute");
}

#[test]
fn a_place_is_not_needed_twice() {
    let Some((place, accepted)) = ready() else {
        return;
    };
    let one = place.call_with_input(&arguments(&accepted, &[]), DOCUMENT.as_bytes());
    let two = place.call_with_input(&arguments(&accepted, &[]), DOCUMENT.as_bytes());
    assert_eq!((one.code, two.code), (Some(0), Some(0)));
    assert_eq!(one.out, two.out);
    let _: &Place = &place;
}
