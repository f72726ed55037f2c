//! The closure that was built: Python packages under the production launcher.

#![cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test says what went wrong by stopping"
)]

mod support;

use lazaret_warden::ending::{CallEntry, Ending, Phase, Stream};
use lazaret_warden::spec::RunSpec;
use support::*;

macro_rules! real {
    () => {
        match Bench::real() {
            Ok(bench) => bench,
            Err(why) => {
                skip(module_path!(), &why);
                return;
            }
        }
    };
}

fn denied(number: libc::c_long) -> Ending {
    Ending::DeniedCall {
        number: u64::try_from(number).unwrap(),
        entry: CallEntry::Syscall,
    }
}

fn output(spec: &RunSpec) -> String {
    std::fs::read_to_string(spec.run_dir.join("result.json")).unwrap()
}

#[test]
fn a_package_reads_its_input_and_writes_its_output() {
    let bench = real!();
    let mut spec = bench.spec(
        "import lazaret\n\
         value = lazaret.read_input()\n\
         lazaret.write_output({'sum': sum(value), 'main': __name__})\n",
    );
    spec.input = b"[1, 2, 39]".to_vec();
    let outcome = run(&spec);
    assert!(outcome.is_success(), "{outcome:#?}");
    let value: serde_json::Value = serde_json::from_str(&output(&spec)).unwrap();
    assert_eq!(value, serde_json::json!({"sum": 42, "main": "__main__"}));
    assert!(outcome.stdout.kept.is_empty() && outcome.stderr.kept.is_empty());
}

#[test]
fn the_standard_library_is_there_without_any_file() {
    let bench = real!();
    let spec = bench.spec(
        "import json, re, datetime, decimal, collections, itertools, math\n\
         json.dump([re.sub('a', 'b', 'aa'), math.isqrt(17)], open('/out/result.json', 'w'))\n",
    );
    let outcome = run(&spec);
    assert!(outcome.is_success(), "{outcome:#?}");
    assert_eq!(output(&spec), "[\"bb\", 4]");
}

#[test]
fn exits_and_exceptions_are_the_packages_own_word() {
    let bench = real!();
    for (package, code, said) in [
        ("import sys; sys.exit(7)", 7, ""),
        ("raise SystemExit", 0, ""),
        ("raise SystemExit('no')", 1, "no\n"),
        ("1 / 0", 1, "ZeroDivisionError"),
        ("x = [0] * 10**9", 1, "MemoryError"),
        ("this is no Python", 1, "SyntaxError"),
        ("import os; os._exit(127)", 127, ""),
    ] {
        let outcome = bench.run(package);
        assert_eq!(outcome.ending, Ending::Exited { code }, "{package}");
        let stderr = String::from_utf8(outcome.stderr.kept).unwrap();
        assert!(stderr.contains(said), "{package}: {stderr}");
    }
}

#[test]
fn an_exit_code_cannot_be_made_to_look_like_a_signal() {
    let bench = real!();
    for code in 128..=255 {
        if code % 16 != 0 && !matches!(code, 137 | 139 | 152 | 153 | 159 | 255) {
            continue;
        }
        let outcome = bench.run(&format!("import os; os._exit({code})"));
        assert_eq!(outcome.ending, denied(libc::SYS_exit_group), "{code}");
    }
}

#[test]
fn denied_calls_are_named_by_their_number() {
    let bench = real!();
    let outcome = bench.run("import os; os.fork()");
    let Ending::DeniedCall { number, .. } = outcome.ending else {
        panic!("{:?}", outcome.ending)
    };
    assert!([libc::SYS_fork, libc::SYS_clone].contains(&i64::try_from(number).unwrap()));
    assert_eq!(bench.run("import os; os.getuid()").phase, Phase::Running);
    assert_eq!(
        bench.run("import os; os.setsid()").ending,
        denied(libc::SYS_setsid)
    );
    let outcome = bench.run("import os; os.execv('/launcher', ['/launcher'])");
    assert_eq!(outcome.ending, denied(libc::SYS_execve));
}

#[test]
fn every_limit_ends_a_package_by_its_name() {
    let bench = real!();
    let outcome = bench.run("while True: pass");
    assert_eq!(outcome.ending, Ending::CpuLimit);
    let outcome = bench.run("pow(3, 10**9)");
    assert_eq!(outcome.ending, Ending::CpuLimit, "one long call into C");
    let outcome = run(&bench.spec_within("import time; time.sleep(60)", 6000));
    assert_eq!(outcome.ending, Ending::WallDeadline);
    let outcome = bench.run("print('x' * 8191)");
    assert_eq!(
        (outcome.is_success(), outcome.stdout.kept.len()),
        (true, 8192)
    );
    let outcome = bench.run("print('x' * 8192)");
    assert_eq!(
        outcome.ending,
        Ending::StreamLimit {
            which: Stream::Stdout
        }
    );
    let outcome = bench.run("import sys; sys.stderr.write('x' * 8193)");
    assert_eq!(
        outcome.ending,
        Ending::StreamLimit {
            which: Stream::Stderr
        }
    );
    let outcome = bench.run("open('/out/result.json', 'w').write('x' * 65536)");
    assert_eq!(
        (outcome.is_success(), outcome.usage.output_bytes),
        (true, 65536)
    );
    let outcome = bench.run("open('/out/result.json', 'w').write('x' * 65537)");
    assert_eq!(outcome.ending, Ending::OutputLimit);
}

#[test]
fn a_package_that_crashes_the_interpreter_is_ended_by_the_signal() {
    let bench = real!();
    // A code object with an index far beyond its constants.
    let outcome = bench.run(
        "def f(): pass\n\
         code = f.__code__\n\
         f.__code__ = code.replace(co_code=bytes([100, 255]) * 4, co_consts=())\n\
         f()\n",
    );
    match outcome.ending {
        Ending::Signalled { .. } | Ending::DeniedCall { .. } | Ending::Exited { .. } => {}
        other => panic!("{other:?}"),
    }
    assert!(!matches!(outcome.ending, Ending::CpuLimit));
}

#[test]
fn the_package_sees_nothing_of_the_host() {
    let bench = real!();
    let spec = bench.spec(
        "import json, os, sys\n\
         def look(path):\n\
         \x20   try:\n\
         \x20       open(path)\n\
         \x20   except OSError as error:\n\
         \x20       return error.errno\n\
         \x20   return 0\n\
         paths = ['/proc/self/status', '/dev/null', '/sys', '/tmp', '/etc/passwd', '/out/x']\n\
         found = {'paths': [look(path) for path in paths], 'environment': dict(os.environ),\n\
         \x20        'path': sys.path}\n\
         json.dump(found, open('/out/result.json', 'w'))\n",
    );
    let outcome = run(&spec);
    assert!(outcome.is_success(), "{outcome:#?}");
    let found: serde_json::Value = serde_json::from_str(&output(&spec)).unwrap();
    assert_eq!(found["paths"], serde_json::json!([2, 2, 2, 2, 2, 2]));
    assert_eq!(found["environment"], serde_json::json!({}));
    assert_eq!(found["path"], serde_json::json!([]));
}

#[test]
fn a_package_with_a_nul_byte_stops_the_launcher_at_its_package_step() {
    let bench = real!();
    let outcome = refused(&bench.spec("print(1)\n\0print(2)\n"));
    let Ending::LauncherStageFailed {
        stage, exit_code, ..
    } = &outcome.ending
    else {
        panic!("{:?}", outcome.ending)
    };
    assert_eq!((stage.as_str(), *exit_code), ("package", 85));
}

#[test]
fn python_runs_side_by_side_and_after_each_ending_a_good_one_succeeds() {
    let bench = real!();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let outcome = bench.run("import os; os._exit(159)");
                assert_eq!(outcome.ending, denied(libc::SYS_exit_group));
                assert!(bench.run("print('ok')").is_success());
            });
        }
    });
}
