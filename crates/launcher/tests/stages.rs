//! Every exit code of the launcher before release, provoked in the accepted launcher itself: each step
//! that fails ends it, with the step's own code, one line on stderr, and nothing on stdout.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};

use lazaret_contract::digest::Sha256Digest;
use lazaret_launcher::abi::LZ_RELEASE_BYTE;
use lazaret_launcher::{LauncherStage, Plan, READY_BYTES, Ready};

const PACKAGE: &[u8] = b"print('ran')\n";

/// The closure under test and a directory to work in.
struct Bench {
    closure: PathBuf,
    scratch: tempfile::TempDir,
}

/// How the launcher ended, and what it said.
struct End {
    status: ExitStatus,
    out: Vec<u8>,
    err: String,
}

impl Bench {
    /// `None` after saying why the test is skipped; a failure where it must not be.
    fn new() -> Option<Self> {
        let Some(closure) = std::env::var_os("LAZARET_CLOSURE_DIR").map(PathBuf::from) else {
            let required = std::env::var_os("LAZARET_REQUIRE_CLOSURE").is_some();
            assert!(
                !required,
                "LAZARET_CLOSURE_DIR names no closure, and one is required"
            );
            // Past the harness, which captures what is printed.
            let note = b"SKIPPED: LAZARET_CLOSURE_DIR names no closure\n";
            std::io::stderr().write_all(note).expect("stderr");
            return None;
        };
        let scratch = tempfile::tempdir().expect("a scratch directory");
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o711)).expect("chmod");
        fs::write(scratch.path().join("result.json"), b"").expect("an output file");
        Some(Self { closure, scratch })
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.scratch.path().join(name);
        fs::write(&path, bytes).expect("a scratch file");
        path
    }

    /// bubblewrap with the least that lets the launcher reach its barrier; `prefix` goes in front.
    fn sandbox(&self, package: &[u8], prefix: &[&str]) -> Command {
        let package = self.file("package.py", package);
        let mut words: Vec<OsString> = prefix.iter().map(OsString::from).collect();
        let mut add = |items: &[&dyn AsRef<std::ffi::OsStr>]| {
            words.extend(items.iter().map(|item| item.as_ref().to_owned()));
        };
        add(&[
            &"--unshare-user",
            &"--unshare-pid",
            &"--as-pid-1",
            &"--die-with-parent",
        ]);
        add(&[&"--ro-bind", &self.closure.join("launcher"), &"/launcher"]);
        add(&[&"--ro-bind", &package, &"/package.py"]);
        add(&[
            &"--dir",
            &"/out",
            &"--bind",
            &self.scratch.path().join("result.json"),
            &"/out/result.json",
        ]);
        add(&[&"--", &"/launcher"]);
        let mut command = Command::new(self.closure.join("bwrap"));
        command.args(words);
        command
    }

    /// The launcher alone, on the host, where it finds no package.
    fn alone(&self) -> Command {
        Command::new(self.closure.join("launcher"))
    }
}

fn plan_of(package: &[u8]) -> Vec<u8> {
    Plan::new([9; 32], package)
        .expect("a small package")
        .encode()
        .to_vec()
}

/// Feeds `input`, closes stdin, and collects everything.
fn run(command: &mut Command, input: &[u8]) -> End {
    run_then(command, input, drop)
}

/// Feeds `input`, does `then` with stdin, and collects everything; what `then` gives back lives on.
fn run_then<T>(command: &mut Command, input: &[u8], then: impl FnOnce(ChildStdin) -> T) -> End {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("piped");
    // A launcher that has ended already does not read; its code says why.
    let _ = stdin.write_all(input);
    let _kept = then(stdin);
    let output = child.wait_with_output().expect("the program ends");
    End {
        status: output.status,
        out: output.stdout,
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[track_caller]
fn assert_stage(end: &End, stage: LauncherStage) {
    let code = end.status.code().and_then(|code| u32::try_from(code).ok());
    assert_eq!(
        code,
        Some(stage.exit_code()),
        "{stage}: {} {}",
        end.status,
        end.err
    );
    assert_eq!(end.out, b"", "{stage} wrote to stdout");
    assert!(
        end.err.starts_with("lazaret-launcher: "),
        "{stage}: {}",
        end.err
    );
    assert_eq!(end.err.lines().count(), 1, "{stage}: {}", end.err);
}

#[test]
fn a_closed_standard_descriptor_ends_the_descriptor_step() {
    let Some(bench) = Bench::new() else { return };
    let launcher = bench.closure.join("launcher");
    for closed in ["0<&-", "1>&-"] {
        let script = format!("exec \"$0\" {closed}");
        let end = run(Command::new("sh").args(["-c", &script]).arg(&launcher), b"");
        assert_stage(&end, LauncherStage::Descriptors);
    }
    let end = run(
        Command::new("sh")
            .args(["-c", "exec \"$0\" 2>&-"])
            .arg(&launcher),
        b"",
    );
    let code = end.status.code().and_then(|code| u32::try_from(code).ok());
    assert_eq!(code, Some(LauncherStage::Descriptors.exit_code()));
}

#[test]
fn a_plan_that_is_short_or_malformed_ends_the_plan_step() {
    let Some(bench) = Bench::new() else { return };
    let good = plan_of(PACKAGE);
    let mut plans = vec![Vec::new(), good[..127].to_vec()];
    // Magic, version, recorded size, a reserved byte, and a package of 4 GiB.
    for (at, value) in [(0, 0), (8, 2), (12, 64), (100, 1), (83, 0xff)] {
        let mut plan = good.clone();
        plan[at] = value;
        plans.push(plan);
    }
    for plan in plans {
        assert_stage(&run(&mut bench.alone(), &plan), LauncherStage::Plan);
    }
}

#[test]
fn a_limit_that_cannot_be_set_ends_the_limit_step() {
    let Some(bench) = Bench::new() else { return };
    // Inside a user namespace nobody can raise a hard limit again.
    let mut command = Command::new("sh");
    let inner = bench.sandbox(PACKAGE, &[]);
    command
        .args(["-c", "ulimit -H -c 0; exec \"$0\" \"$@\""])
        .arg(inner.get_program())
        .args(inner.get_args());
    assert_stage(&run(&mut command, &plan_of(PACKAGE)), LauncherStage::Limits);
}

/// A filter in the form that bubblewrap takes: `number` is answered with EPERM, all else passes.
fn refusing(number: u32) -> Vec<u8> {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const ERRNO_EPERM: u32 = 0x0005_0001;
    const ALLOW: u32 = 0x7fff_0000;
    let program = [
        (LOAD_NUMBER, 0, 0, 0),
        (JUMP_IF_EQUAL, 0, 1, number),
        (RETURN, 0, 0, ERRNO_EPERM),
        (RETURN, 0, 0, ALLOW),
    ];
    program
        .iter()
        .flat_map(|(code, yes, no, k): &(u16, u8, u8, u32)| {
            let mut bytes = code.to_le_bytes().to_vec();
            bytes.extend([*yes, *no]);
            bytes.extend(k.to_le_bytes());
            bytes
        })
        .collect()
}

fn under_a_filter(bench: &Bench, number: u32, package: &[u8]) -> End {
    let filter = bench.file("filter", &refusing(number));
    let inner = bench.sandbox(package, &["--seccomp", "9"]);
    let mut command = Command::new("sh");
    command
        .args(["-c", "exec 9<\"$0\"; exec \"$@\""])
        .arg(filter);
    command.arg(inner.get_program()).args(inner.get_args());
    // Stdin stays open: its end would be noticed before the filter is installed.
    run_then(&mut command, &plan_of(package), |stdin| stdin)
}

#[test]
fn without_the_kernels_entropy_there_is_no_fallback() {
    let Some(bench) = Bench::new() else { return };
    const GETRANDOM: u32 = 318;
    assert_stage(
        &under_a_filter(&bench, GETRANDOM, PACKAGE),
        LauncherStage::Entropy,
    );
}

#[test]
fn a_filter_that_cannot_be_installed_ends_the_filter_step() {
    let Some(bench) = Bench::new() else { return };
    const SECCOMP: u32 = 317;
    assert_stage(
        &under_a_filter(&bench, SECCOMP, PACKAGE),
        LauncherStage::Filter,
    );
}

#[test]
fn relocated_data_that_stays_writable_ends_the_first_step() {
    let Some(bench) = Bench::new() else { return };
    const MPROTECT: u32 = 10;
    assert_stage(
        &under_a_filter(&bench, MPROTECT, PACKAGE),
        LauncherStage::Relocations,
    );
}

#[test]
fn a_package_that_is_not_the_one_of_the_plan_ends_the_package_step() {
    let Some(bench) = Bench::new() else { return };
    assert_stage(
        &run(&mut bench.alone(), &plan_of(PACKAGE)),
        LauncherStage::Package,
    );
    let others: [&[u8]; 3] = [b"print('rat')\n", b"print('ran')\n\n", b"print('ran')"];
    for other in others {
        let end = run(&mut bench.sandbox(other, &[]), &plan_of(PACKAGE));
        assert_stage(&end, LauncherStage::Package);
    }
}

#[test]
fn what_the_compiler_would_read_otherwise_than_a_reviewer_is_refused() {
    let Some(bench) = Bench::new() else { return };
    let packages: [&[u8]; 5] = [
        b"print('ran')\0hidden",
        b"# a comment\rprint('ran')\n",
        b"# \xff\nprint('ran')\n",
        b"# \xed\xa0\x80\n",
        b"print('ran')\r\n",
    ];
    for package in packages {
        let end = run(&mut bench.sandbox(package, &[]), &plan_of(package));
        assert_stage(&end, LauncherStage::Package);
    }
}

#[test]
fn input_that_waits_before_the_barrier_is_no_release() {
    let Some(bench) = Bench::new() else { return };
    let mut early = plan_of(PACKAGE);
    early.push(u8::try_from(LZ_RELEASE_BYTE).expect("one byte"));
    let end = run(&mut bench.sandbox(PACKAGE, &[]), &early);
    assert_stage(&end, LauncherStage::NotReleased);
}

/// Brings a launcher to its barrier and answers with `answer`; gives the ready record and the end.
fn to_the_barrier(bench: &Bench, package: &[u8], answer: &[u8]) -> (Ready, End) {
    let mut child = bench
        .sandbox(package, &[])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bwrap starts");
    let mut stdin = child.stdin.take().expect("piped");
    let mut stdout = child.stdout.take().expect("piped");
    stdin.write_all(&plan_of(package)).expect("the plan");
    let mut record = [0; READY_BYTES];
    if let Err(error) = stdout.read_exact(&mut record) {
        let mut said = String::new();
        let mut stderr = child.stderr.take().expect("piped");
        stderr.read_to_string(&mut said).expect("stderr");
        panic!("no ready record: {error}; stderr: {said}");
    }
    stdin.write_all(answer).expect("the answer");
    drop(stdin);
    let mut out = Vec::new();
    stdout.read_to_end(&mut out).expect("stdout");
    let output = child.wait_with_output().expect("bwrap ends");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    (
        Ready::decode(&record).expect("the record is one"),
        End {
            status: output.status,
            out,
            err,
        },
    )
}

#[test]
fn another_byte_or_the_end_of_the_pipe_is_no_release() {
    let Some(bench) = Bench::new() else { return };
    for answer in [b"".as_slice(), b"X", b"\0"] {
        let (_, end) = to_the_barrier(&bench, PACKAGE, answer);
        assert_stage(&end, LauncherStage::NotReleased);
    }
}

#[test]
fn a_released_launcher_runs_exactly_the_package_of_its_ready_record() {
    let Some(bench) = Bench::new() else { return };
    let (ready, end) = to_the_barrier(&bench, PACKAGE, b"G");
    assert_eq!(ready.nonce, [9; 32]);
    assert_eq!(ready.package_sha256, Sha256Digest::of(PACKAGE));
    assert_eq!(ready.package_bytes as usize, PACKAGE.len());
    let filter = fs::read(bench.closure.join("filter.bpf")).expect("the closure's filter");
    assert_eq!(ready.filter_instructions as usize * 8, filter.len());
    assert_eq!(end.out, b"ran\n", "{}", end.err);
    assert_eq!(end.status.code(), Some(0));
}

#[test]
fn the_launcher_asks_for_four_bytes_of_entropy_and_opens_nothing_before_its_first_step() {
    let Some(bench) = Bench::new() else { return };
    let strace = Path::new("/usr/bin/strace");
    if !strace.is_file() {
        std::io::stderr()
            .write_all(b"SKIPPED: strace is not installed\n")
            .expect("stderr");
        assert!(
            std::env::var_os("LAZARET_REQUIRE_CLOSURE").is_none(),
            "strace is required"
        );
        return;
    }
    let log = bench.scratch.path().join("trace");
    let mut command = Command::new(strace);
    command
        .args(["-f", "-o"])
        .arg(&log)
        .arg(bench.closure.join("launcher"));
    let end = run(&mut command, &plan_of(PACKAGE));
    assert_stage(&end, LauncherStage::Package);
    let trace = fs::read_to_string(&log).expect("a trace");
    let calls = |name: &str| {
        trace
            .lines()
            .filter(|line| line.contains(name))
            .collect::<Vec<_>>()
    };
    let entropy = calls("getrandom(");
    assert_eq!(entropy.len(), 1, "{entropy:?}");
    assert!(
        entropy[0].contains(", 4, GRND_NONBLOCK) = 4"),
        "{entropy:?}"
    );
    let first_step = trace.find("F_GETFD").expect("the descriptor step");
    let before = &trace[..first_step];
    for call in ["open(", "openat(", "getrandom(", "socket("] {
        assert!(
            !before.contains(call),
            "{call} before the descriptor step:\n{before}"
        );
    }
}
