//! What the engine's tests share: a closure that was built, a data directory, and
//! one run with any package code.
//!
//! The closure comes from the directory named by `LAZARET_CLOSURE_DIR`, or is the
//! newest under `.lazaret/closures`; what is accepted is what it is, because here the
//! library is under test and not the acceptance. Without a closure, or without a
//! warden that was built, a test says that it is skipped and why; with
//! `LAZARET_REQUIRE_CLOSURE=1` it fails.

#![allow(dead_code, reason = "each test binary uses its own part of this")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lazaret_contract::digest::Sha256Digest;
use lazaret_engine::run::{
    Cancel, EngineConfig, Finished, Gate, OutputClaim, RunPackage, RunRequest, Unfinished, run_once,
};
use lazaret_engine::{Acting, Blocked, DataDir};
use lazaret_profile::accepted::{ACCEPTED_SCHEMA, Accepted};
use lazaret_profile::manifest::{ClosureManifest, Role};
use tempfile::TempDir;

/// The bundled formatter's code.
pub const FORMATTER: &[u8] =
    include_bytes!("../../../../packages/seraph.tool.json-format/adapter.py");

/// A host for runs: closure, warden, data directory.
pub struct Bench {
    pub closure: PathBuf,
    pub accepted: Accepted,
    pub config: EngineConfig,
    pub data: DataDir,
    root: TempDir,
}

/// A directory through which the run's user may pass.
pub fn scratch() -> TempDir {
    let root = tempfile::Builder::new()
        .prefix("lazaret-engine-")
        .tempdir()
        .unwrap();
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o711)).unwrap();
    root
}

fn built_closure() -> Result<PathBuf, String> {
    if let Some(dir) = std::env::var_os("LAZARET_CLOSURE_DIR") {
        return Ok(PathBuf::from(dir));
    }
    let closures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.lazaret/closures");
    let entries = |dir: &Path| -> Vec<PathBuf> {
        fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect()
    };
    entries(&closures)
        .iter()
        .flat_map(|profile| entries(profile))
        .filter(|dir| dir.join("manifest.json").is_file())
        .max_by_key(|dir| fs::metadata(dir).and_then(|facts| facts.modified()).ok())
        .ok_or_else(|| "no closure has been built".to_owned())
}

/// The warden of the build that this test belongs to.
fn built_warden() -> Result<PathBuf, String> {
    let test = std::env::current_exe().unwrap();
    let warden = test
        .parent()
        .and_then(Path::parent)
        .unwrap()
        .join("lazaret-warden");
    if warden.is_file() {
        Ok(warden)
    } else {
        Err(format!(
            "{} has not been built: cargo build -p lazaret-warden",
            warden.display()
        ))
    }
}

/// What a closure's own manifest says, taken as accepted.
pub fn accepted_of(closure: &Path) -> Accepted {
    let bytes = fs::read(closure.join("manifest.json")).unwrap();
    let manifest = ClosureManifest::parse(&bytes).unwrap();
    let file = |role| manifest.file(role).unwrap().sha256;
    Accepted {
        schema: ACCEPTED_SCHEMA.to_owned(),
        profile: manifest.profile.clone(),
        closure: Sha256Digest::of(&bytes),
        bwrap: file(Role::Bwrap),
        launcher: file(Role::Launcher),
        filter: file(Role::Filter),
        inputs: Sha256Digest::of(b"the inputs are not looked at here"),
        review: None,
    }
}

impl Bench {
    /// Everything that a run needs, or `None` after saying why a test is skipped.
    pub fn new() -> Option<Self> {
        let found = built_closure().and_then(|closure| Ok((closure, built_warden()?)));
        match found {
            Ok((closure, warden)) => Some(Self::of(&closure, warden)),
            Err(why) => {
                let required = std::env::var_os("LAZARET_REQUIRE_CLOSURE").is_some();
                assert!(!required, "a closure is required: {why}");
                // Past the test harness, which captures what is printed; a lost note must
                // not fail the test that it explains.
                let _ = std::io::stderr().write_all(format!("SKIPPED: {why}\n").as_bytes());
                None
            }
        }
    }

    fn of(closure: &Path, warden: PathBuf) -> Self {
        let root = scratch();
        let accepted = accepted_of(closure);
        let places = closure.parent().and_then(Path::parent).unwrap();
        let config = EngineConfig {
            accepted: accepted.clone(),
            closure_places: vec![places.to_path_buf()],
            warden,
            wall: Duration::from_secs(10),
        };
        let acting = Acting::current(None).unwrap();
        let data = DataDir::open(&root.path().join("data"), acting).unwrap();
        Self {
            closure: closure.to_path_buf(),
            accepted,
            config,
            data,
            root,
        }
    }

    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// A copy of the closure that may be spoilt, and the place that it lies in.
    pub fn copy_closure(&self) -> (PathBuf, PathBuf) {
        let place = self.root.path().join("closures");
        let copy = place
            .join(&self.accepted.profile)
            .join(self.accepted.closure.to_string());
        fs::create_dir_all(&copy).unwrap();
        for name in ["manifest.json", "bwrap", "launcher", "filter.bpf"] {
            fs::copy(self.closure.join(name), copy.join(name)).unwrap();
        }
        for dir in copy.ancestors().take(3) {
            fs::set_permissions(dir, fs::Permissions::from_mode(0o711)).unwrap();
        }
        (place, copy)
    }

    /// Runs `code` on `input`.
    pub fn run(&self, code: &[u8], input: &[u8]) -> Result<Finished, Box<Unfinished>> {
        self.run_with(&self.config, code, input, &mut Always, &Cancel::default())
    }

    pub fn run_with(
        &self,
        config: &EngineConfig,
        code: &[u8],
        input: &[u8],
        gate: &mut dyn Gate,
        cancel: &Cancel,
    ) -> Result<Finished, Box<Unfinished>> {
        let request = RunRequest {
            data: &self.data,
            package: RunPackage {
                id: "test.package",
                version: 1,
                capability: "test.capability.v1",
                code,
                content: Sha256Digest::of(code),
                approval: Sha256Digest::of(b"the gate of the test decides"),
            },
            input,
            claim: OutputClaim::FormatterBytes,
            gate,
            cancel,
            keep_evidence: None,
        };
        run_once(config, request)
    }

    /// Whether no run directory is there.
    pub fn nothing_left(&self) -> bool {
        match fs::read_dir(self.data.path().join("runs")) {
            Ok(entries) => entries.count() == 0,
            // No run came so far as to need the directory.
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        }
    }
}

/// Says yes to everything.
pub struct Always;

impl Gate for Always {
    fn arm(&mut self) -> Result<(), Blocked> {
        Ok(())
    }

    fn release(&mut self) -> Result<(), Blocked> {
        Ok(())
    }
}
