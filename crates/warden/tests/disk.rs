//! A full disk under the run directory.

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
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use lazaret_warden::ending::Ending;
use support::*;

/// A small file system of its own, unmounted at the end.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new(kibibytes: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let status = Command::new("mount")
            .args([
                "-t",
                "tmpfs",
                "-o",
                &format!("size={kibibytes}k,mode=711"),
                "lazaret-test",
            ])
            .arg(dir.path())
            .status()
            .unwrap();
        assert!(status.success(), "mount");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
        Self(dir)
    }

    fn run_dir(&self) -> std::path::PathBuf {
        let path = self.0.path().join("run");
        make_run_dir(&path);
        path
    }

    /// Takes all the room there is.
    fn fill(&self) {
        let mut file = fs::File::create(self.0.path().join("filler")).unwrap();
        while file.write(&[0; 4096]).is_ok_and(|count| count > 0) {}
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let status = Command::new("umount").arg(self.0.path()).status().unwrap();
        assert!(status.success(), "nothing may keep the file system busy");
    }
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn without_room_for_the_launch_record_nothing_is_released() {
    if !is_root() {
        return skip_for_user(
            "a full disk before the launch",
            "only root can mount a small disk",
        );
    }
    let bench = bench!();
    let disk = SmallDisk::new(64);
    let mut spec = bench.spec("exit 0");
    spec.run_dir = disk.run_dir();
    disk.fill();
    let outcome = refused(&spec);
    let Ending::RecordFailed {
        record, instead_of, ..
    } = &outcome.ending
    else {
        panic!("{:?}", outcome.ending);
    };
    // There is no room for the outcome either: the last word is the report's.
    assert_eq!((record.as_str(), outcome.recorded), ("outcome", false));
    let Some(Ending::RecordFailed { record, .. }) = instead_of.as_deref() else {
        panic!("{instead_of:?}");
    };
    assert_eq!(record, "launch");
    assert!(!names(&spec.run_dir).contains(&"outcome.json".to_owned()));
    assert!(!names(&spec.run_dir).contains(&"launch.json".to_owned()));
}

#[test]
fn without_room_for_the_outcome_the_report_says_so_and_it_is_no_success() {
    if !is_root() {
        return skip_for_user(
            "a full disk after the launch",
            "only root can mount a small disk",
        );
    }
    let bench = bench!();
    let disk = SmallDisk::new(128);
    let mut spec = bench.spec("exit 0");
    spec.run_dir = disk.run_dir();
    let (controller, _) = launched(&spec);
    disk.fill();
    let outcome = release_and_wait(controller);
    let Ending::RecordFailed {
        record, instead_of, ..
    } = &outcome.ending
    else {
        panic!("{:?}", outcome.ending);
    };
    assert_eq!(record, "outcome");
    assert_eq!(instead_of.as_deref(), Some(&Ending::Exited { code: 0 }));
    assert!(!outcome.recorded && !outcome.is_success());
    assert!(!names(&spec.run_dir).contains(&"outcome.json".to_owned()));
}

#[test]
fn a_package_that_finds_the_disk_full_only_fails_itself() {
    if !is_root() {
        return skip_for_user(
            "a full disk under the output",
            "only root can mount a small disk",
        );
    }
    let bench = bench!();
    let disk = SmallDisk::new(128);
    let mut spec = bench.spec("output 60000\nexit 0");
    spec.run_dir = disk.run_dir();
    let (controller, _) = launched(&spec);
    disk.fill();
    let filler = fs::OpenOptions::new()
        .write(true)
        .open(disk.0.path().join("filler"))
        .unwrap();
    filler
        .set_len(filler.metadata().unwrap().len() - 32 * 1024)
        .unwrap();
    let outcome = release_and_wait(controller);
    match &outcome.ending {
        Ending::Exited { code } => assert_eq!(i32::from(*code), libc::ENOSPC),
        Ending::RecordFailed { instead_of, .. } => {
            let code = u8::try_from(libc::ENOSPC).unwrap();
            assert_eq!(instead_of.as_deref(), Some(&Ending::Exited { code }));
        }
        other => panic!("{other:?}"),
    }
}
