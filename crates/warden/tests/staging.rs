//! What is refused before anything is started, and what is noticed when it is
//! exchanged afterwards.

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
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;

use lazaret_warden::barrier::Fact;
use lazaret_warden::controller::Step;
use lazaret_warden::ending::{Ending, Phase};
use lazaret_warden::spec::RunSpec;
use support::*;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The order is refused at staging, with this in the reason.
fn refused_because(spec: &RunSpec, reason: &str) {
    let outcome = refused(spec);
    let Ending::SetupFailed { step, detail } = &outcome.ending else {
        panic!("{:?}", outcome.ending);
    };
    assert_eq!((step.as_str(), outcome.phase), ("staging", Phase::Staging));
    assert!(
        detail.contains(reason),
        "{detail:?} does not say {reason:?}"
    );
}

#[test]
fn what_is_staged_is_reported_with_its_digests_and_the_wardens_identity() {
    let bench = bench!();
    let spec = bench.spec("exit 0");
    let (controller, staged) = staged(&spec);
    let digest = lazaret_contract::digest::Sha256Digest::of;
    assert_eq!(staged.digests.package, digest(b"exit 0"));
    assert_eq!(staged.digests.input, digest(b"{}"));
    assert_eq!(staged.digests.bwrap, spec.closure.bwrap.sha256);
    assert_eq!(staged.digests.launcher, spec.closure.launcher.sha256);
    assert_eq!(staged.digests.filter, spec.closure.filter.sha256);
    assert_eq!((staged.package_bytes, staged.input_bytes), (6, 2));
    assert_eq!((staged.uid, staged.gid != 0), (run_uid(), true));
    assert_eq!(
        staged.warden.pid,
        i32::try_from(controller.warden_pid()).unwrap()
    );
    assert!(is_process(
        staged.warden.pid,
        Some(staged.warden.start_time_ticks)
    ));
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert_eq!(staged.warden.boot_id, boot_id.trim());
}

#[test]
fn a_flipped_byte_in_any_file_of_the_closure_is_refused() {
    for name in ["bwrap", "launcher", "filter.bpf"] {
        let bench = bench!();
        let path = bench.closure_dir.join(name);
        let mode = fs::metadata(&path).unwrap().permissions();
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        set_mode(&path, 0o644);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, mode).unwrap();
        refused_because(&bench.spec("exit 0"), "accepted is");
    }
}

#[test]
fn a_missing_file_of_the_closure_is_refused_and_nothing_takes_its_place() {
    for name in ["bwrap", "launcher", "filter.bpf"] {
        let bench = bench!();
        fs::remove_file(bench.closure_dir.join(name)).unwrap();
        refused_because(&bench.spec("exit 0"), "cannot be opened");
    }
}

type Spoil = fn(&Path);

#[test]
fn a_file_of_the_closure_with_other_rights_or_links_is_refused() {
    let spoilt: [(Spoil, &str); 8] = [
        (|path| set_mode(path, 0o4555), "setuid"),
        (|path| set_mode(path, 0o2555), "setuid"),
        (|path| set_mode(path, 0o575), "written by others"),
        (|path| set_mode(path, 0o557), "written by others"),
        (|path| set_mode(path, 0o444), "may not be executed"),
        (
            |path| fs::hard_link(path, path.with_extension("other")).unwrap(),
            "links",
        ),
        (
            |path| {
                let other = path.with_extension("other");
                fs::rename(path, &other).unwrap();
                symlink(other, path).unwrap();
            },
            "cannot be opened",
        ),
        (
            |path| {
                fs::remove_file(path).unwrap();
                fs::create_dir(path).unwrap();
            },
            "regular file",
        ),
    ];
    for name in ["bwrap", "launcher"] {
        for (spoil, reason) in spoilt {
            let bench = bench!();
            spoil(&bench.closure_dir.join(name));
            refused_because(&bench.spec("exit 0"), reason);
        }
    }
}

#[test]
fn a_file_of_the_closure_that_somebody_else_owns_is_refused() {
    if !is_root() {
        return skip_for_user(
            "a file that somebody else owns",
            "only root can give files away",
        );
    }
    let bench = bench!();
    chown(bench.closure_dir.join("launcher"), Some(12345), None).unwrap();
    refused_because(&bench.spec("exit 0"), "belongs to uid 12345");
}

#[test]
fn file_capabilities_on_a_file_of_the_closure_are_refused() {
    if !is_root() {
        return skip_for_user("file capabilities", "only root can set them");
    }
    let bench = bench!();
    let path = bench.closure_dir.join("bwrap");
    let set = std::process::Command::new("setcap")
        .arg("cap_net_raw+ep")
        .arg(&path)
        .status();
    match set {
        Ok(status) if status.success() => {
            refused_because(&bench.spec("exit 0"), "file capabilities");
        }
        other => skip_for_user("file capabilities", &format!("setcap: {other:?}")),
    }
}

#[test]
fn a_directory_that_others_can_write_is_refused_by_name() {
    let bench = bench!();
    set_mode(&bench.closure_dir, 0o777);
    refused_because(&bench.spec("exit 0"), "0777");
    set_mode(&bench.closure_dir, 0o775);
    refused_because(&bench.spec("exit 0"), "0775");
    set_mode(&bench.closure_dir, 0o711);
    let parent = bench.closure_dir.parent().unwrap();
    set_mode(parent, 0o777);
    let outcome = refused(&bench.spec("exit 0"));
    assert!(
        format!("{:?}", outcome.ending).contains("0777"),
        "{:?}",
        outcome.ending
    );
    set_mode(parent, 0o711);
    assert!(bench.run("exit 0").is_success());
}

#[test]
fn a_run_directory_of_another_form_is_refused() {
    let bench = bench!();
    let spoilt: [(Spoil, &str); 8] = [
        (|dir| set_mode(dir, 0o750), "0750"),
        (|dir| set_mode(dir, 0o701), "0701"),
        (
            |dir| fs::remove_file(dir.join("result.json")).unwrap(),
            "cannot be opened",
        ),
        (
            |dir| fs::write(dir.join("result.json"), "x").unwrap(),
            "not empty",
        ),
        (|dir| set_mode(&dir.join("result.json"), 0o644), "mode 0600"),
        (
            |dir| set_mode(&dir.join("result.json"), 0o4600),
            "mode 0600",
        ),
        (
            |dir| fs::hard_link(dir.join("result.json"), dir.join("other")).unwrap(),
            "regular file of the run's user",
        ),
        (
            |dir| {
                fs::rename(dir.join("result.json"), dir.join("other")).unwrap();
                symlink("other", dir.join("result.json")).unwrap();
            },
            "cannot be opened",
        ),
    ];
    for (spoil, reason) in spoilt {
        let spec = bench.spec("exit 0");
        spoil(&spec.run_dir);
        refused_because(&spec, reason);
    }
}

#[test]
fn package_and_input_of_the_limit_pass_and_one_byte_more_does_not() {
    let bench = bench!();
    let mut spec = bench.spec("");
    let mut package = b"exit 0\n".to_vec();
    package.resize(32 * 1024, b'\n');
    spec.package.clone_from(&package);
    spec.input = vec![b' '; 32 * 1024];
    assert!(run(&spec).is_success());
    let mut spec = bench.spec("");
    package.push(b'\n');
    spec.package = package;
    refused_because(&spec, "package of 32769 bytes");
    let mut spec = bench.spec("exit 0");
    spec.input = vec![b' '; 32 * 1024 + 1];
    refused_because(&spec, "input of 32769 bytes");
}

#[test]
fn a_filter_of_another_length_than_accepted_is_refused() {
    let bench = bench!();
    let mut spec = bench.spec("exit 0");
    spec.closure.filter_instructions += 1;
    refused_because(&spec, "instructions");
}

#[test]
fn a_name_that_leads_out_of_the_closure_is_refused() {
    let bench = bench!();
    for name in ["../closure/launcher", "/bin/true", "", ".", ".."] {
        let mut spec = bench.spec("exit 0");
        spec.closure.launcher.name = name.to_owned();
        refused_because(&spec, "not a plain name");
    }
}

#[test]
fn root_has_to_name_a_run_user_and_nobody_else_may() {
    let bench = bench!();
    let mut spec = bench.spec("exit 0");
    spec.run_as = match spec.run_as {
        Some(_) => None,
        None => Some(lazaret_warden::frame::RunAs {
            uid: 12345,
            gid: 12345,
        }),
    };
    let mut controller = start(&spec);
    let Step::Ended(outcome) = controller.staged().unwrap() else {
        panic!("was staged")
    };
    assert!(
        format!("{:?}", outcome.ending).contains("inherited state"),
        "{:?}",
        outcome.ending
    );
    assert!(!outcome.released && !outcome.recorded);
    if is_root() {
        spec.run_as = Some(lazaret_warden::frame::RunAs { uid: 0, gid: 0 });
        let mut controller = start(&spec);
        assert!(matches!(controller.staged().unwrap(), Step::Ended(_)));
    }
}

/// Puts a copy in a file's place: the same bytes, another inode.
fn exchange(path: &Path) {
    let copy = path.with_extension("copy");
    fs::copy(path, &copy).unwrap();
    let facts = fs::metadata(path).unwrap();
    fs::set_permissions(&copy, facts.permissions()).unwrap();
    if is_root() {
        use std::os::unix::fs::MetadataExt as _;
        chown(&copy, Some(facts.uid()), Some(facts.gid())).unwrap();
    }
    fs::rename(copy, path).unwrap();
}

#[test]
fn what_is_exchanged_between_staging_and_start_is_noticed() {
    let bench = bench!();
    let arm = |spoil: &dyn Fn(&RunSpec)| {
        let spec = bench.spec("exit 0");
        let (mut controller, _) = staged(&spec);
        spoil(&spec);
        match controller.arm().unwrap() {
            Step::Ended(outcome) => *outcome,
            Step::Reached(_) => release_and_wait(controller),
        }
    };
    // bwrap runs from its descriptor, so the exchanged file is never executed; but
    // the staged one has lost its name, and a run of a changed closure is none.
    let outcome = arm(&|spec| exchange(&spec.closure_dir.join("bwrap")));
    assert_eq!(outcome.ending, Ending::Exited { code: 0 });
    assert!(!outcome.closing.as_ref().unwrap().unchanged && !outcome.is_success());
    let outcome = arm(&|spec| exchange(&spec.closure_dir.join("launcher")));
    assert_eq!(first_wrong_fact(&outcome), Fact::LauncherInode.to_string());
    let outcome = arm(&|spec| exchange(&spec.run_dir.join("result.json")));
    assert_eq!(first_wrong_fact(&outcome), Fact::OutputInode.to_string());
    let outcome = arm(&|spec| {
        fs::remove_file(spec.closure_dir.join("launcher")).unwrap();
    });
    assert!(
        matches!(outcome.ending, Ending::SetupFailed { .. }),
        "{:?}",
        outcome.ending
    );
}

#[test]
fn a_closure_that_changes_while_a_package_runs_is_no_success() {
    let bench = bench!();
    let spec = bench.spec("sleep 100\nexit 0");
    let (controller, _) = launched(&spec);
    set_mode(&bench.closure_dir.join("filter.bpf"), 0o644);
    let outcome = release_and_wait(controller);
    assert_eq!(outcome.ending, Ending::Exited { code: 0 });
    assert!(!outcome.is_success());
}

#[test]
fn a_running_launcher_cannot_be_written() {
    let bench = bench!();
    let path = bench.closure_dir.join("launcher");
    set_mode(&path, 0o755);
    let spec = bench.spec("exit 0");
    let (controller, _) = launched(&spec);
    let error = fs::OpenOptions::new().write(true).open(&path).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ExecutableFileBusy);
    assert!(release_and_wait(controller).is_success());
}
