//! Every way in which a released run ends, with a launcher that does as it is told;
//! every limit at its value and one beyond.

#![cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test says what went wrong by stopping"
)]

mod support;

use lazaret_warden::ending::{CallEntry, Ending, Phase, ProcessEnd, Stream};
use lazaret_warden::record::{Role, read_launched, read_outcome};
use support::*;

const MIB: u64 = 1024 * 1024;

#[test]
fn a_package_that_ends_by_itself_has_its_exit_code() {
    let bench = bench!();
    for code in [0, 1, 42, 127] {
        let outcome = bench.run(&format!("exit {code}"));
        assert_eq!(outcome.ending, Ending::Exited { code });
        assert_eq!((outcome.phase, outcome.released), (Phase::Running, true));
        assert_eq!(outcome.is_success(), code == 0, "{outcome:#?}");
    }
}

#[test]
fn an_exit_code_that_would_look_like_a_signal_is_a_denied_call() {
    let bench = bench!();
    for code in [128, 137, 159, 255] {
        let outcome = bench.run(&format!("exit {code}"));
        let exit_group = u64::try_from(libc::SYS_exit_group).unwrap();
        let expected = Ending::DeniedCall {
            number: exit_group,
            entry: CallEntry::Syscall,
        };
        assert_eq!(outcome.ending, expected, "{code}");
    }
}

#[test]
fn a_denied_call_is_named_by_its_number_and_entry() {
    let bench = bench!();
    for number in [libc::SYS_socket, libc::SYS_ptrace] {
        let outcome = bench.run(&format!("syscall {number}"));
        let number = u64::try_from(number).unwrap();
        assert_eq!(
            outcome.ending,
            Ending::DeniedCall {
                number,
                entry: CallEntry::Syscall
            }
        );
    }
    // 102 is socketcall there and getuid here.
    let outcome = bench.run("int80 102");
    assert_eq!(
        outcome.ending,
        Ending::DeniedCall {
            number: 102,
            entry: CallEntry::Int80
        }
    );
    let outcome = bench.run(&format!("syscall {}", 0x4000_0000 + libc::SYS_getuid));
    let number = 0x4000_0000 + u64::try_from(libc::SYS_getuid).unwrap();
    assert_eq!(
        outcome.ending,
        Ending::DeniedCall {
            number,
            entry: CallEntry::Syscall
        }
    );
}

#[test]
fn a_fault_of_the_processor_ends_the_run_at_once() {
    let bench = bench!();
    for (command, signal) in [
        ("fault", libc::SIGSEGV),
        ("illegal", libc::SIGILL),
        ("breakpoint", libc::SIGTRAP),
    ] {
        let outcome = bench.run(command);
        assert_eq!(outcome.ending, Ending::Signalled { signal }, "{command}");
        let cpu_ns = outcome.usage.cpu_user_ns + outcome.usage.cpu_system_ns;
        assert!(cpu_ns < 1_000_000_000, "it faulted on: {cpu_ns} ns");
    }
}

#[test]
fn a_signal_that_the_package_raises_itself_is_ignored_for_the_first_process() {
    let bench = bench!();
    for signal in [
        libc::SIGTERM,
        libc::SIGABRT,
        libc::SIGSEGV,
        libc::SIGXFSZ,
        libc::SIGSYS,
    ] {
        let outcome = bench.run(&format!("raise {signal}\nexit 7"));
        assert_eq!(outcome.ending, Ending::Exited { code: 7 }, "{signal}");
    }
}

#[test]
fn cpu_time_ends_at_two_seconds() {
    let bench = bench!();
    let outcome = bench.run("spin");
    assert_eq!(outcome.ending, Ending::CpuLimit);
    // The limit counts whole ticks; where the host takes time away it comes early.
    let cpu_ns = outcome.usage.cpu_user_ns + outcome.usage.cpu_system_ns;
    println!("CPU limit after {cpu_ns} ns");
    assert!(
        (500_000_000..2_500_000_000).contains(&cpu_ns),
        "{cpu_ns} ns"
    );
}

#[test]
fn a_killed_package_that_has_not_used_its_time_did_not_use_its_time() {
    let bench = bench!();
    let (mut controller, launched) = launched(&bench.spec("sleep 60000"));
    controller.release().unwrap();
    send_signal(launched.launcher.pid, libc::SIGKILL);
    let outcome = controller.wait().unwrap();
    assert_eq!(
        outcome.ending,
        Ending::Signalled {
            signal: libc::SIGKILL
        }
    );
    assert_clean(&outcome);
}

#[test]
fn the_deadline_ends_a_run_that_waits() {
    let bench = bench!();
    let outcome = run(&bench.spec_within("sleep 60000", 5000));
    assert_eq!(outcome.ending, Ending::WallDeadline);
    assert!(outcome.usage.wall_ns < 6_500_000_000);
    // The same package with time enough ends by itself.
    let outcome = bench.run("sleep 200");
    assert_eq!(outcome.ending, Ending::Exited { code: 0 });
    assert!(outcome.usage.package_wall_ns >= 200_000_000);
}

#[test]
fn a_deadline_that_has_passed_ends_a_run_before_it_begins() {
    let bench = bench!();
    let mut spec = bench.spec("exit 0");
    spec.deadline_boottime_ns = 1;
    // The watchdog is past as well, so this controller kills its warden or hears it.
    match start(&spec).wait() {
        Ok(outcome) => {
            assert_eq!(outcome.ending, Ending::WallDeadline);
            assert!(!outcome.released);
        }
        Err(error) => assert!(error.to_string().contains("did not end"), "{error}"),
    }
    let mut spec = bench.spec("exit 0");
    spec.deadline_boottime_ns = deadline_in(0);
    let outcome = refused(&spec);
    assert_eq!(outcome.ending, Ending::WallDeadline);
}

#[test]
fn a_stream_of_the_limit_is_kept_and_one_byte_more_ends_the_run() {
    let bench = bench!();
    for (name, which) in [("stdout", Stream::Stdout), ("stderr", Stream::Stderr)] {
        let outcome = bench.run(&format!("{name} 8192\nexit 0"));
        assert_eq!(outcome.ending, Ending::Exited { code: 0 }, "{name}");
        assert!(outcome.is_success());
        let record = if which == Stream::Stdout {
            &outcome.stdout
        } else {
            &outcome.stderr
        };
        assert_eq!((record.kept.len(), record.truncated), (8192, false));
        for more in ["8193\nexit 0", "8193\nsleep 60000", "100000000"] {
            let outcome = bench.run(&format!("{name} {more}"));
            assert_eq!(
                outcome.ending,
                Ending::StreamLimit { which },
                "{name} {more}"
            );
            let record = if which == Stream::Stdout {
                &outcome.stdout
            } else {
                &outcome.stderr
            };
            assert_eq!((record.kept.len(), record.truncated), (8192, true));
        }
    }
}

#[test]
fn closed_streams_are_no_end_of_the_run() {
    let bench = bench!();
    let outcome = bench.run("stdout 3\nclose-streams\nsleep 100\nexit 5");
    assert_eq!(outcome.ending, Ending::Exited { code: 5 });
    assert_eq!(outcome.stdout.kept, b"xxx");
}

#[test]
fn an_output_of_the_limit_is_kept_and_one_byte_more_ends_the_run() {
    let bench = bench!();
    let spec = bench.spec("output 65536\nexit 0");
    let outcome = run(&spec);
    assert!(outcome.is_success(), "{outcome:#?}");
    assert_eq!(outcome.usage.output_bytes, 65536);
    let written = std::fs::read(spec.run_dir.join("result.json")).unwrap();
    let output = outcome.closing.unwrap().output.unwrap();
    assert_eq!(output.bytes, 65536);
    let digest = lazaret_contract::digest::Sha256Digest::of(&written);
    assert_eq!(output.sha256, Some(digest));
    for more in ["output 65537", "output 65537\nexit 0", "output 1000000"] {
        let outcome = bench.run(more);
        assert_eq!(outcome.ending, Ending::OutputLimit, "{more}");
        assert_eq!(outcome.usage.output_bytes, 65536);
    }
}

#[test]
fn address_space_below_the_limit_can_be_had_and_no_more() {
    let bench = bench!();
    let outcome = bench.run("allocate 100\nexit 0");
    assert_eq!(outcome.ending, Ending::Exited { code: 0 });
    assert!((100 * MIB..130 * MIB).contains(&outcome.usage.peak_memory_bytes));
    assert!(outcome.usage.page_tables_bytes > 0);
    let outcome = bench.run("allocate 128\nexit 0");
    assert_eq!(outcome.ending, Ending::Exited { code: 12 });
}

#[test]
fn a_second_process_or_program_ends_the_run() {
    let bench = bench!();
    // The filter of this launcher lets both through: the limit of one process stops
    // the first, the trace the second.
    let outcome = bench.run("fork\nexit 9");
    assert_eq!(outcome.ending, Ending::Exited { code: 9 });
    let outcome = bench.run("exec\nexit 9");
    assert_eq!(outcome.ending, Ending::UnexpectedProcess);
}

#[test]
fn records_lie_in_the_run_directory_and_are_believed_by_their_token_alone() {
    let bench = bench!();
    let spec = bench.spec("stderr 5\nexit 3");
    let (controller, launched) = launched(&spec);
    let on_disk = std::fs::read(spec.run_dir.join("launch.json")).unwrap();
    assert_eq!(read_launched(&spec.token, &on_disk), Ok(launched.clone()));
    let evidence = spec
        .run_dir
        .join(format!("barrier-{}.txt", launched.evidence));
    let evidence = std::fs::read(evidence).unwrap();
    assert_eq!(
        lazaret_contract::digest::Sha256Digest::of(&evidence),
        launched.evidence
    );
    let outcome = release_and_wait(controller);
    let on_disk = std::fs::read(spec.run_dir.join("outcome.json")).unwrap();
    assert_eq!(read_outcome(&spec.token, &on_disk), Ok(outcome.clone()));
    assert_eq!(outcome.stderr.kept, b"xxxxx");
    let roles: Vec<_> = outcome
        .cleanup
        .reaped
        .iter()
        .map(|reaped| reaped.role)
        .collect();
    assert_eq!(roles, [Role::Launcher, Role::Bwrap]);
    assert_eq!(outcome.cleanup.reaped[0].end, ProcessEnd::Exited(3));
    let other = bench.spec("").token;
    assert!(read_outcome(&other, &on_disk).is_err());
    // Nothing else was written, and nobody else may read it.
    let mut names: Vec<_> = std::fs::read_dir(&spec.run_dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let barrier = format!("barrier-{}.txt", launched.evidence);
    assert_eq!(
        names,
        [
            barrier.as_str(),
            "launch.json",
            "outcome.json",
            "result.json"
        ]
    );
}

#[test]
fn one_run_leaves_nothing_to_the_next() {
    let bench = bench!();
    assert_eq!(bench.run("spin").ending, Ending::CpuLimit);
    let outcome = bench.run("sleep 100\nexit 0");
    assert!(outcome.is_success());
    assert!(outcome.usage.cpu_user_ns < 1_000_000_000);
}

#[test]
fn a_run_goes_on_after_the_thread_that_started_it_is_gone() {
    let bench = bench!();
    let spec = bench.spec("sleep 1500\nexit 4");
    let controller = std::thread::spawn(move || {
        let (mut controller, _) = launched(&spec);
        controller.release().unwrap();
        controller
    });
    let controller = controller.join().unwrap();
    let outcome = controller.wait().unwrap();
    assert_eq!(outcome.ending, Ending::Exited { code: 4 });
}

#[test]
fn several_runs_at_once_do_not_disturb_each_other() {
    let bench = bench!();
    std::thread::scope(|scope| {
        for code in 0..12_u8 {
            let bench = &bench;
            scope.spawn(move || {
                let outcome = bench.run(&format!("stdout {code}\nsleep 50\nexit {code}"));
                assert_eq!(outcome.ending, Ending::Exited { code });
                assert_eq!(outcome.stdout.kept.len(), usize::from(code));
            });
        }
    });
}
