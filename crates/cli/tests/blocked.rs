//! What is missing is Blocked: exit code 3, a reason, what to do, and nothing
//! launched.

#![cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;

use lazaret_profile::pins::PROFILE_IDS;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};
use support::{DOCUMENT, Place, Said, accepted, finish, is_root, ready, skip_visibly};

fn format(place: &Place, profile: &str, more: &[&str]) -> Said {
    let arguments = [&["format", "-", "--profile", profile][..], more].concat();
    place.call_with_input(&arguments, DOCUMENT.as_bytes())
}

fn assert_blocked(said: &Said, words: &[&str]) {
    assert_eq!((said.code, said.out.as_str()), (Some(3), ""), "{said:?}");
    assert!(said.err.contains("Blocked: "), "{}", said.err);
    for word in words {
        assert!(said.err.contains(word), "{word} is not in: {}", said.err);
    }
}

#[test]
fn a_profile_without_an_accepted_closure_names_what_accepts_one() {
    for profile in PROFILE_IDS {
        if lazaret_profile::accepted::built_in(profile).is_none() {
            let place = Place::new();
            let words = [
                "this build has accepted no closure",
                "cargo xtask accept-closure",
            ];
            assert_blocked(&format(&place, profile, &[]), &words);
            let said = place.call(&["init", "--approve-bundled", "--profile", profile]);
            assert_blocked(&said, &words);
        }
    }
}

#[test]
fn a_missing_closure_names_the_command_that_builds_it() {
    let Some(accepted) = accepted() else { return };
    let profile = accepted.profile.as_str();
    let mut place = Place::new();
    place.approve(profile);
    let command = format!("cargo xtask build-closure --profile {profile}");
    assert_blocked(
        &format(&place, profile, &[]),
        &[&command, &accepted.closure.to_string()],
    );
    assert_eq!(place.runs(), 0);

    // Another closure in its place is named and not used.
    let other = "0".repeat(64);
    fs::create_dir_all(place.data().join("closures").join(profile).join(&other)).unwrap();
    assert_blocked(&format(&place, profile, &[]), &["was not accepted", &other]);

    // A variable gives a place, never an acceptance.
    place.set("LAZARET_CLOSURES", "/nowhere");
    assert_blocked(&format(&place, profile, &[]), &["/nowhere"]);
}

#[test]
fn the_record_says_that_nothing_ran() {
    let Some(accepted) = accepted() else { return };
    let profile = accepted.profile.as_str();
    let place = Place::new();
    place.approve(profile);
    let said = format(&place, profile, &["--record", "record.json", "--json"]);
    assert_eq!(said.code, Some(3));
    let answer: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&answer["outcome"], &answer["blocked"]["cause"]),
        (&"blocked".into(), &"closure-missing".into())
    );
    let record: serde_json::Value =
        serde_json::from_slice(&fs::read(place.at("work/record.json")).unwrap()).unwrap();
    assert_eq!(record, answer["record"]);
    assert_eq!(record["schema"], "lazaret-run-record/1");
    assert_eq!(record["conclusion"], "blocked");
    assert_eq!(
        record["establishes"],
        serde_json::json!(["that no package code ran"])
    );
    assert_eq!(record["process"], serde_json::Value::Null);
}

#[test]
fn a_record_that_cannot_be_written_is_told_before_anything_is_launched() {
    let Some((place, accepted)) = ready() else {
        return;
    };
    let said = format(
        &place,
        &accepted.profile,
        &["--record", "missing/record.json"],
    );
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    assert!(
        said.err.contains("record cannot be written"),
        "{}",
        said.err
    );
    assert!(!place.data().join("runs").exists() || place.runs() == 0);
}

#[test]
fn without_its_warden_nothing_is_launched() {
    let Some((place, accepted)) = ready() else {
        return;
    };
    fs::remove_file(place.at("bin/lazaret-warden")).unwrap();
    assert_blocked(
        &format(&place, &accepted.profile, &[]),
        &["the warden's program", "side by side"],
    );
    fs::write(place.at("bin/lazaret-warden"), b"#!/bin/sh\n").unwrap();
    fs::set_permissions(
        place.at("bin/lazaret-warden"),
        fs::Permissions::from_mode(0o644),
    )
    .unwrap();
    assert_blocked(
        &format(&place, &accepted.profile, &[]),
        &["is not a program"],
    );
    fs::set_permissions(
        place.at("bin/lazaret-warden"),
        fs::Permissions::from_mode(0o777),
    )
    .unwrap();
    assert_blocked(
        &format(&place, &accepted.profile, &[]),
        &["somebody else could change it"],
    );
    fs::set_permissions(place.at("bin"), fs::Permissions::from_mode(0o777)).unwrap();
    assert_blocked(&format(&place, &accepted.profile, &[]), &["chmod 0755"]);
}

#[test]
fn a_directory_that_others_may_change_is_named_with_the_mode_to_set() {
    let Some((place, accepted)) = ready() else {
        return;
    };
    fs::set_permissions(place.at("home"), fs::Permissions::from_mode(0o777)).unwrap();
    let home = place.at("home");
    assert_blocked(
        &format(&place, &accepted.profile, &[]),
        &[home.to_str().unwrap(), "mode 0777", "chmod 0755"],
    );
}

#[test]
fn a_file_system_that_breaks_promises_is_refused_by_name() {
    let Some((place, accepted)) = ready() else {
        return;
    };
    // procfs stands for those that a test cannot mount; the table has them all.
    assert_blocked(
        &format(
            &place,
            &accepted.profile,
            &["--data-dir", "/proc/sys/kernel"],
        ),
        &["the data directory"],
    );
}

#[test]
fn root_below_a_private_home_is_told_where_to_go() {
    let Some(accepted) = accepted() else { return };
    if !is_root() {
        skip_visibly("only root drops to another user");
        return;
    }
    let place = Place::new();
    fs::set_permissions(place.at("home"), fs::Permissions::from_mode(0o700)).unwrap();
    for said in [
        format(&place, &accepted.profile, &[]),
        place.call(&["init", "--approve-bundled", "--profile", &accepted.profile]),
    ] {
        assert_blocked(
            &said,
            &["may not pass through it", "--data-dir", "/var/lib/lazaret"],
        );
    }
    assert_eq!(
        place.home_entries(),
        Vec::<String>::new(),
        "something was made"
    );
    let said = place.call(&["doctor", "--profile", &accepted.profile]);
    assert_eq!(said.code, Some(3));
    assert!(said.out.contains("may not pass through it"), "{}", said.out);
}

#[test]
fn a_closure_that_the_runs_user_cannot_reach_is_told() {
    let Some((mut place, accepted)) = ready() else {
        return;
    };
    if !is_root() {
        skip_visibly("only root drops to another user");
        return;
    }
    let private = place.at("private");
    let copy = private
        .join(&accepted.profile)
        .join(accepted.closure.to_string());
    fs::create_dir_all(&copy).unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).unwrap();
    place.set("LAZARET_CLOSURES", private.to_str().unwrap());
    assert_blocked(
        &format(&place, &accepted.profile, &[]),
        &["the closure", "may not pass through it", "/srv or /opt"],
    );
}

#[test]
fn a_run_user_that_somebody_has_is_refused() {
    let Some((place, accepted)) = ready() else {
        return;
    };
    if is_root() {
        for uid in ["0", "65534", "1"] {
            let said = format(&place, &accepted.profile, &["--run-uid", uid]);
            assert_blocked(&said, &["the user of the run", "--run-uid"]);
        }
    } else {
        let said = format(&place, &accepted.profile, &["--run-uid", "4242"]);
        assert_blocked(&said, &["only root can choose"]);
    }
}

/// Calls from a thread under a filter that refuses some system calls, as service
/// managers and containers have them.
fn under_filter(
    calls: &[(i64, Vec<SeccompRule>)],
    errno: u32,
    call: impl FnOnce() -> Said + Send,
) -> Said {
    std::thread::scope(|scope| {
        let filtered = scope.spawn(|| {
            let filter = SeccompFilter::new(
                calls.iter().cloned().collect(),
                SeccompAction::Allow,
                SeccompAction::Errno(errno),
                TargetArch::x86_64,
            )
            .unwrap();
            let program: BpfProgram = filter.try_into().unwrap();
            apply_filter(&program).unwrap();
            call()
        });
        filtered.join().unwrap()
    })
}

const EPERM: u32 = 1;
const ENOSYS: u32 = 38;

#[test]
fn where_a_filter_refuses_openat2_format_and_doctor_are_blocked() {
    const OPENAT2: i64 = 437;
    let Some((place, accepted)) = ready() else {
        return;
    };
    let said = under_filter(&[(OPENAT2, vec![])], EPERM, || {
        format(&place, &accepted.profile, &[])
    });
    assert_blocked(&said, &["openat2", "RestrictSUIDSGID"]);
    let doctor = || place.call(&["doctor", "--profile", &accepted.profile]);
    let said = under_filter(&[(OPENAT2, vec![])], EPERM, doctor);
    assert_eq!(said.code, Some(3));
    assert!(said.out.contains("Blocked  openat2"), "{}", said.out);
}

/// Under a container's filter each refusal is named as what it is, and what stands in
/// the way with it.
#[test]
fn doctor_names_the_call_that_is_refused_and_who_refuses_it() {
    const CLONE: i64 = 56;
    const PTRACE: i64 = 101;
    const UNSHARE: i64 = 272;
    const SECCOMP: i64 = 317;
    const MEMFD_CREATE: i64 = 319;
    const PIDFD_OPEN: i64 = 434;
    const CLONE_NEWUSER: u64 = 0x1000_0000;
    let Some((place, accepted)) = ready() else {
        return;
    };
    let with_user_namespace = SeccompRule::new(vec![
        SeccompCondition::new(
            0,
            SeccompCmpArgLen::Qword,
            SeccompCmpOp::MaskedEq(CLONE_NEWUSER),
            CLONE_NEWUSER,
        )
        .unwrap(),
    ])
    .unwrap();
    let namespaces = vec![(CLONE, vec![with_user_namespace]), (UNSHARE, vec![])];
    let cases = [
        (namespaces, EPERM, "Blocked  namespaces", "seccomp profile"),
        (
            vec![(PTRACE, vec![])],
            EPERM,
            "Blocked  tracing",
            "seccomp profile",
        ),
        (
            vec![(SECCOMP, vec![])],
            EPERM,
            "Blocked  system-call filter",
            "",
        ),
        (
            vec![(MEMFD_CREATE, vec![])],
            EPERM,
            "Blocked  sealed files in memory",
            "allow it",
        ),
        (
            vec![(PIDFD_OPEN, vec![])],
            ENOSYS,
            "Blocked  process descriptors",
            "allow it",
        ),
    ];
    for (calls, errno, need, advice) in cases {
        let doctor = || place.call(&["doctor", "--profile", &accepted.profile]);
        let said = under_filter(&calls, errno, doctor);
        assert_eq!(said.code, Some(3), "{need}: {said:?}");
        assert!(said.out.contains(need), "{need}: {}", said.out);
        assert!(said.out.contains(advice), "{advice}: {}", said.out);
        assert!(!said.out.contains("ready."), "{}", said.out);
        let said = under_filter(&calls, errno, || format(&place, &accepted.profile, &[]));
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(3), ""),
            "{need}: {said:?}"
        );
        assert!(said.err.contains("  to do: "), "{need}: {}", said.err);
        assert_eq!(place.runs(), 0, "{need}");
    }
}

/// A shell that changes something of itself and then becomes the binary.
fn under_shell(place: &Place, prepare: &str, profile: &str) -> Said {
    let mut command = std::process::Command::new("/bin/sh");
    command
        .arg("-c")
        .arg(format!("{prepare}; exec \"$0\" doctor --profile \"$1\""))
        .arg(place.at("bin/lazaret"))
        .arg(profile)
        .current_dir(place.at("work"))
        .env("HOME", place.at("home"))
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .arg0("sh");
    finish(command, b"")
}

#[test]
fn a_hard_limit_that_leaves_no_room_is_named() {
    let Some((place, accepted)) = ready() else {
        return;
    };
    let said = under_shell(&place, "ulimit -Hn 64; ulimit -n 64", &accepted.profile);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.out.contains("Blocked  hard limits"), "{}", said.out);
    assert!(said.out.contains("limits.conf"), "{}", said.out);
}

/// On a mount of its own, where only the right to mount is needed.
fn in_mount_namespace(place: &Place, prepare: &str, arguments: &[&str]) -> Option<Said> {
    if !is_root() {
        skip_visibly("only root can mount");
        return None;
    }
    let mut command = std::process::Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private", "/bin/sh", "-c"])
        .arg(format!("{prepare} && shift && exec \"$0\" \"$@\""))
        .arg(place.at("bin/lazaret"))
        .arg(place.at(""))
        .args(arguments)
        .current_dir(place.at("work"))
        .env_clear()
        .env("HOME", place.at("home"))
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    Some(finish(command, b""))
}

#[test]
fn a_read_only_proc_sys_is_named_with_the_setting_that_makes_it_so() {
    let Some((place, accepted)) = ready() else {
        return;
    };
    let closures = place.closures();
    let prepare = format!(
        "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && \
         export LAZARET_CLOSURES={closures}"
    );
    let arguments = ["doctor", "--profile", accepted.profile.as_str()];
    let Some(said) = in_mount_namespace(&place, &prepare, &arguments) else {
        return;
    };
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.out.contains("Blocked  namespaces"), "{}", said.out);
    assert!(
        said.out.contains("ProtectKernelTunables=no"),
        "{}",
        said.out
    );
}

#[test]
fn a_closure_on_a_noexec_mount_is_refused_as_that() {
    let Some((place, accepted)) = ready() else {
        return;
    };
    let profile = accepted.profile.as_str();
    let digest = accepted.closure.to_string();
    let mounted = place.data().join("closures");
    fs::create_dir_all(&mounted).unwrap();
    let prepare = format!(
        "mount -t tmpfs -o noexec,mode=0711 none {m} && mkdir -p {m}/{profile}/{digest} && chmod 0711 {m}/{profile} {m}/{profile}/{digest}",
        m = mounted.display()
    );
    let Some(said) = in_mount_namespace(&place, &prepare, &["doctor", "--profile", profile]) else {
        return;
    };
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.out.contains("noexec"), "{}", said.out);
}

#[test]
fn a_full_disk_is_a_refusal_and_leaves_nothing() {
    let Some((place, accepted)) = ready() else {
        return;
    };
    let closures = place.closures();
    let document = place.file("document.json", DOCUMENT);
    let full = place.at("full");
    fs::create_dir(&full).unwrap();
    let (profile, full) = (accepted.profile.as_str(), full.to_str().unwrap());
    let approve = place.call(&["init", "--approve-bundled", "--profile", profile]);
    let digest = support::digest_to_confirm(&approve.err);
    // Room for the approval and nothing more: the rest is filled.
    let prepare = format!(
        "mount -t tmpfs -o size=64k,mode=0711 none {full} && export LAZARET_CLOSURES={closures} && \
         $0 init --approve-bundled --data-dir {full} --profile {profile} --yes {digest} >&2 && \
         {{ dd if=/dev/zero of={full}/filler bs=4096 2>/dev/null; true; }}"
    );
    let arguments = [
        "format",
        document.to_str().unwrap(),
        "--data-dir",
        full,
        "--profile",
        profile,
    ];
    let Some(said) = in_mount_namespace(&place, &prepare, &arguments) else {
        return;
    };
    assert!(matches!(said.code, Some(1 | 3)), "{said:?}");
    assert_eq!(said.out, "");
    assert!(said.err.contains("No space left"), "{}", said.err);
}
