//! What the warden's tests share: closures for them, run directories, one run.
//!
//! A closure of the tests has the real bwrap and either the real launcher or
//! `launchers/scripted.c`. The bwrap comes from a closure that was built: from the
//! directory named by `LAZARET_CLOSURE_DIR`, or the current one of `.lazaret/closures`.
//! Without one these tests say that they are skipped, and why; with
//! `LAZARET_REQUIRE_CLOSURE=1` they fail.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

use lazaret_contract::digest::Sha256Digest;
use lazaret_profile::manifest::ClosureManifest;
use lazaret_warden::controller::{Controller, Step};
use lazaret_warden::ending::Ending;
use lazaret_warden::frame::RunAs;
use lazaret_warden::record::{Launched, Outcome, Staged};
use lazaret_warden::spec::{ClosureExpectation, ClosureFile, RunId, RunSpec};
use lazaret_warden::sys;
use lazaret_warden::token::RunToken;
use tempfile::TempDir;

/// The uid of runs that root starts; no account has it.
pub const RUN_UID: u32 = 2_030_042_013;

/// BPF instructions of the filter in `launchers/scripted.c`.
const SCRIPTED_INSTRUCTIONS: u32 = 16;
/// The version that `launchers/scripted.c` claims.
const SCRIPTED_VERSION: u32 = 0x030c_08f0;

/// The program under test.
pub fn warden() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_lazaret-warden"))
}

pub fn is_root() -> bool {
    sys::effective_ids().unwrap().0 == 0
}

/// The uid that runs have here.
pub fn run_uid() -> u32 {
    if is_root() {
        RUN_UID
    } else {
        sys::effective_ids().unwrap().0
    }
}

pub fn run_as() -> Option<RunAs> {
    is_root().then_some(RunAs {
        uid: RUN_UID,
        gid: RUN_UID,
    })
}

/// The directory of a closure that was built, or why there is none.
fn built_closure() -> Result<PathBuf, String> {
    if let Some(dir) = std::env::var_os("LAZARET_CLOSURE_DIR") {
        return Ok(PathBuf::from(dir));
    }
    let closures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.lazaret/closures");
    ["json-python-bwrap-v1", "json-python-bwrap-v2-candidate"]
        .iter()
        .find_map(|profile| {
            let current = fs::read(closures.join(profile).join("current.json")).ok()?;
            let current: serde_json::Value = serde_json::from_slice(&current).ok()?;
            Some(closures.join(profile).join(current["closure"].as_str()?))
        })
        .ok_or_else(|| "no closure was built (cargo xtask build-closure)".to_owned())
}

/// Says that a test is skipped, or fails if it must not be.
pub fn skip(test: &str, why: &str) {
    assert!(
        std::env::var_os("LAZARET_REQUIRE_CLOSURE").is_none_or(|value| value != "1"),
        "{test} needs what is not there: {why}"
    );
    println!("SKIPPED {test}: {why}");
}

/// Says that a test is skipped because this user cannot do what it needs. Whoever
/// runs the tests runs them as root as well, where nothing of this is skipped.
pub fn skip_for_user(test: &str, why: &str) {
    println!("SKIPPED {test}: {why}");
}

/// Calls `$body` with a [`Bench`] of a scripted launcher, or skips.
#[macro_export]
macro_rules! bench {
    () => {
        $crate::bench!(&[])
    };
    ($hostile:expr) => {
        match $crate::support::Bench::scripted($hostile) {
            Ok(bench) => bench,
            Err(why) => {
                $crate::support::skip(module_path!(), &why);
                return;
            }
        }
    };
}

/// Where a closure of the tests and its run directories lie.
pub struct Bench {
    dir: TempDir,
    pub closure_dir: PathBuf,
    pub closure: ClosureExpectation,
}

impl Bench {
    /// A closure with the scripted launcher, broken in the given ways.
    pub fn scripted(hostile: &[&str]) -> Result<Self, String> {
        let launcher = compiled(hostile)?;
        let filter = vec![0; SCRIPTED_INSTRUCTIONS as usize * 8];
        Self::with(&launcher, &filter, SCRIPTED_INSTRUCTIONS, SCRIPTED_VERSION)
    }

    /// The closure that was built, with Python.
    pub fn real() -> Result<Self, String> {
        let built = built_closure()?;
        let manifest =
            fs::read(built.join("manifest.json")).map_err(|e| format!("{built:?}: {e}"))?;
        let manifest = ClosureManifest::parse(&manifest).map_err(|error| error.to_string())?;
        let closure = ClosureExpectation::try_from(&manifest).map_err(|error| error.to_string())?;
        let launcher = fs::read(built.join(&closure.launcher.name)).map_err(|e| e.to_string())?;
        let filter = fs::read(built.join(&closure.filter.name)).map_err(|e| e.to_string())?;
        Self::with(
            &launcher,
            &filter,
            closure.filter_instructions,
            closure.python_version_hex,
        )
    }

    fn with(
        launcher: &[u8],
        filter: &[u8],
        filter_instructions: u32,
        python_version_hex: u32,
    ) -> Result<Self, String> {
        let built = built_closure()?;
        let bwrap = fs::read(built.join("bwrap")).map_err(|e| format!("{built:?}: {e}"))?;
        let dir = tempfile::Builder::new()
            .prefix("lazaret-warden-")
            .tempdir()
            .unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
        let closure_dir = dir.path().join("closure");
        fs::DirBuilder::new()
            .mode(0o755)
            .create(&closure_dir)
            .unwrap();
        fs::set_permissions(&closure_dir, fs::Permissions::from_mode(0o711)).unwrap();
        let file = |name: &str, bytes: &[u8], mode: u32| {
            let path = closure_dir.join(name);
            fs::write(&path, bytes).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            ClosureFile {
                name: name.to_owned(),
                sha256: Sha256Digest::of(bytes),
            }
        };
        let closure = ClosureExpectation {
            bwrap: file("bwrap", &bwrap, 0o555),
            launcher: file("launcher", launcher, 0o555),
            filter: file("filter.bpf", filter, 0o444),
            filter_instructions,
            python_version_hex,
        };
        Ok(Self {
            dir,
            closure_dir,
            closure,
        })
    }

    /// A fresh run directory of the run's user, with the output inode in it.
    pub fn run_dir(&self) -> PathBuf {
        let id: [u8; 8] = sys::random_bytes().unwrap();
        let path = self.dir.path().join(format!("run-{}", hex(&id)));
        make_run_dir(&path);
        path
    }

    /// An order for this package, due so late that the deadline decides nothing, also
    /// on a busy host.
    pub fn spec(&self, package: &str) -> RunSpec {
        self.spec_within(package, 120_000)
    }

    pub fn spec_within(&self, package: &str, milliseconds: u64) -> RunSpec {
        RunSpec {
            run_id: RunId::new("test-run").unwrap(),
            token: RunToken::generate().unwrap(),
            run_as: run_as(),
            closure_dir: self.closure_dir.clone(),
            closure: self.closure.clone(),
            run_dir: self.run_dir(),
            package: package.as_bytes().to_vec(),
            input: b"{}".to_vec(),
            deadline_boottime_ns: deadline_in(milliseconds),
        }
    }

    /// Runs a package from start to end; every step has to be reached.
    pub fn run(&self, package: &str) -> Outcome {
        run(&self.spec(package))
    }
}

pub fn make_run_dir(path: &Path) {
    fs::DirBuilder::new().mode(0o700).create(path).unwrap();
    let output = path.join("result.json");
    fs::write(&output, b"").unwrap();
    fs::set_permissions(&output, fs::Permissions::from_mode(0o600)).unwrap();
    if is_root() {
        chown(&output, Some(RUN_UID), Some(RUN_UID)).unwrap();
        chown(path, Some(RUN_UID), Some(RUN_UID)).unwrap();
    }
}

pub fn deadline_in(milliseconds: u64) -> u64 {
    sys::boottime_ns().unwrap() + milliseconds * 1_000_000
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Runs an order from start to end; every step has to be reached.
pub fn run(spec: &RunSpec) -> Outcome {
    let (controller, _) = launched(spec);
    release_and_wait(controller)
}

pub fn release_and_wait(mut controller: Controller) -> Outcome {
    controller.release().unwrap();
    let outcome = controller.wait().unwrap();
    assert_clean(&outcome);
    outcome
}

pub fn start(spec: &RunSpec) -> Controller {
    Controller::start(warden(), spec).unwrap()
}

pub fn staged(spec: &RunSpec) -> (Controller, Staged) {
    let mut controller = start(spec);
    match controller.staged().unwrap() {
        Step::Reached(staged) => (controller, staged),
        Step::Ended(outcome) => panic!("ended while staging: {:#?}", outcome.ending),
    }
}

pub fn launched(spec: &RunSpec) -> (Controller, Launched) {
    let (mut controller, _) = staged(spec);
    match controller.arm().unwrap() {
        Step::Reached(launched) => (controller, launched),
        Step::Ended(outcome) => panic!("ended before the release: {:#?}", outcome),
    }
}

/// Runs an order that has to be refused before the release; gives the outcome.
pub fn refused(spec: &RunSpec) -> Outcome {
    let mut controller = start(spec);
    let outcome = match controller.staged().unwrap() {
        Step::Ended(outcome) => outcome,
        Step::Reached(_) => match controller.arm().unwrap() {
            Step::Ended(outcome) => outcome,
            Step::Reached(launched) => panic!("was launched: {launched:#?}"),
        },
    };
    assert!(!outcome.released);
    assert_clean(&outcome);
    *outcome
}

/// What has to hold at every end that a warden reports.
pub fn assert_clean(outcome: &Outcome) {
    assert!(outcome.cleanup.is_proved(), "{:#?}", outcome.cleanup);
    for reaped in &outcome.cleanup.reaped {
        assert!(!is_process(reaped.pid, None), "{reaped:?} is still there");
    }
}

/// Whether a process with this id is there and not a zombie.
pub fn is_process(pid: i32, start_time_ticks: Option<u64>) -> bool {
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let Some((_, rest)) = text.rsplit_once(") ") else {
        return false;
    };
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let same = start_time_ticks.is_none_or(|ticks| fields[19].parse() == Ok(ticks));
    same && fields[0] != "Z" && fields[0] != "X"
}

/// Every process whose command line names this path: bwrap and its set-up child do.
pub fn processes_naming(path: &Path) -> Vec<i32> {
    let needle = path.as_os_str().as_encoded_bytes();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if line.windows(needle.len()).any(|window| window == needle) && is_process(pid, None) {
            found.push(pid);
        }
    }
    found
}

/// Waits until something holds; fails after ten seconds.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..5000 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    panic!("never happened: {what}");
}

pub fn send_signal(pid: i32, signal: i32) {
    let status = Command::new("/bin/kill")
        .arg(format!("-{signal}"))
        .arg(pid.to_string())
        .status();
    assert!(status.unwrap().success(), "kill -{signal} {pid}");
}

pub fn first_wrong_fact(outcome: &Outcome) -> String {
    match &outcome.ending {
        Ending::BarrierFactWrong { fact, .. } => fact.to_string(),
        other => panic!("no fact is wrong: {other:?}"),
    }
}

/// The inode of a path.
pub fn inode(path: &Path) -> (u64, u64) {
    let facts = fs::metadata(path).unwrap();
    (facts.dev(), facts.ino())
}

/// The scripted launcher as a file, for a process that cannot compile it.
pub fn launcher_file(bench: &Bench) -> PathBuf {
    bench.closure_dir.join(&bench.closure.launcher.name)
}

/// Whether this process has a capability, by its number.
pub fn has_capability(number: u32) -> bool {
    sys::capabilities().unwrap().effective & (1 << number) != 0
}

/// Compiles a program of `launchers/` that runs on the host, as `helper` in the
/// directory that is given back.
pub fn compile_helper(name: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/launchers/{name}.c"));
    let output = Command::new("cc")
        .arg("-o")
        .arg(dir.path().join("helper"))
        .arg(source)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    dir
}

/// Compiles `launchers/scripted.c`, once for each way of breaking it.
fn compiled(hostile: &[&str]) -> Result<Vec<u8>, String> {
    static MADE: OnceLock<Mutex<BTreeMap<String, Vec<u8>>>> = OnceLock::new();

    // Where no compiler can be waited for, because SIGCHLD is ignored.
    if let Some(path) = std::env::var_os("LAZARET_TEST_LAUNCHER") {
        return fs::read(path).map_err(|error| error.to_string());
    }
    let mut made = MADE
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(|e| e.into_inner());
    let name = hostile.join("+");
    if let Some(bytes) = made.get(&name) {
        return Ok(bytes.clone());
    }
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("scripted");
    let manifest_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("cc")
        .args(["-static", "-O1", "-Wall", "-Wno-unused-function"])
        .args(hostile.iter().map(|rule| format!("-DHOSTILE_{rule}")))
        .arg("-I")
        .arg(manifest_dir.join("../launcher/c"))
        .arg("-o")
        .arg(&program)
        .arg(manifest_dir.join("tests/launchers/scripted.c"))
        .output()
        .map_err(|error| format!("there is no C compiler: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let bytes = fs::read(&program).unwrap();
    made.insert(name, bytes.clone());
    Ok(bytes)
}
