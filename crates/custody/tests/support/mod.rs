//! What the tests of this crate share: a private directory and short names.
#![allow(
    dead_code,
    reason = "each test binary uses its own part of this module"
)]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use lazaret_custody::{HeldDir, RelativeName, Resolver, Trust};

/// Both ways of resolving: every case must end the same in both.
pub const RESOLVERS: [Resolver; 2] = [Resolver::Kernel, Resolver::ComponentWalk];

/// A directory that nobody else may write to, removed at the end.
pub struct Scratch(tempfile::TempDir);

impl Scratch {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        mode(&path, 0o644);
        path
    }

    pub fn dir(&self, name: &str) -> PathBuf {
        let path = self.at(name);
        std::fs::create_dir_all(&path).unwrap();
        mode(&path, 0o755);
        path
    }

    pub fn held(&self) -> HeldDir {
        hold(self.path())
    }
}

pub fn hold(path: &Path) -> HeldDir {
    HeldDir::open_trusted(path, Trust::acting()).unwrap()
}

pub fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

pub fn name(text: &str) -> RelativeName {
    text.parse().unwrap()
}

pub fn uid() -> u32 {
    Trust::acting().acting_uid
}

pub fn is_root() -> bool {
    uid() == 0
}

/// Runs `disturb` again and again in a second thread while `observe` runs.
pub fn while_disturbed(disturb: impl Fn() + Send + Sync, observe: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                disturb();
            }
        });
        // Stops the other thread even when an assertion fails.
        let _stop = StopOnDrop(&stop);
        observe();
    });
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Says that a test is skipped, past the test harness, which captures what is printed.
pub fn skip_visibly(why: &str) {
    use std::io::Write as _;
    // A lost note must not fail the test that it explains.
    let _ = std::io::stderr().write_all(format!("SKIPPED: {why}\n").as_bytes());
}
