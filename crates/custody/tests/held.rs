//! Names resolved below a held directory: links, moves, FIFOs, devices, hard links
//! and growth (cases C01 to C05 and C07 of the public bug reports).

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod support;

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use lazaret_custody::{CustodyError, FileRules, HeldDir, Refusal, Resolver, Trust};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use support::*;

const LIMIT: u64 = 1000;

fn read(dir: &HeldDir, path: &str) -> Result<Vec<u8>, CustodyError> {
    dir.read_file(&name(path), FileRules::untrusted(LIMIT, uid()))
}

fn refusal(dir: &HeldDir, path: &str) -> Refusal {
    read(dir, path).unwrap_err().refusal
}

#[test]
fn every_symbolic_link_is_refused_the_harmless_one_too() {
    let scratch = Scratch::new();
    scratch.file("beside.json", b"{}");
    scratch.file("package/inside.json", b"{}");
    for (link, target) in [
        ("system", "/etc/hostname"),
        ("beside", "../beside.json"),
        ("inside", "inside.json"),
        ("itself", "itself"),
        ("magic", "/proc/self/environ"),
        ("dangling", "nowhere"),
        ("directory", "/etc"),
    ] {
        symlink(target, scratch.at("package").join(link)).unwrap();
        for resolver in RESOLVERS {
            let held = hold(&scratch.at("package")).with_resolver(resolver);
            let error = read(&held, link).unwrap_err();
            assert!(
                matches!(error.refusal, Refusal::SymbolicLink),
                "{resolver:?} {error}"
            );
            assert!(error.path.ends_with(link));
        }
    }
}

#[test]
fn a_link_in_the_middle_of_a_name_is_refused() {
    let scratch = Scratch::new();
    scratch.file("a/b/f", b"own");
    symlink("a", scratch.at("d")).unwrap();
    for resolver in RESOLVERS {
        let held = scratch.held().with_resolver(resolver);
        assert_eq!(read(&held, "a/b/f").unwrap(), b"own");
        // The walk sees the link or, if the kernel resolved it as a directory's
        // place, that it is none; the kernel's own resolver says ELOOP.
        assert!(
            matches!(refusal(&held, "d/b/f"), Refusal::SymbolicLink),
            "{resolver:?}"
        );
        assert!(
            matches!(refusal(&held, "a/b/f/g"), Refusal::NotDirectory(_)),
            "{resolver:?}"
        );
    }
}

#[test]
fn a_directory_swapped_for_a_link_in_a_loop_never_lends_foreign_bytes() {
    let scratch = Scratch::new();
    scratch.file("outside/passwd", b"foreign");
    scratch.file("package/a/passwd", b"own");
    symlink(scratch.at("outside"), scratch.at("link")).unwrap();
    let (place, link, real) = (
        scratch.at("package/a"),
        scratch.at("link"),
        scratch.at("real"),
    );
    let rounds = 20_000;
    for resolver in RESOLVERS {
        let held = hold(&scratch.at("package")).with_resolver(resolver);
        let mut own = 0_u32;
        let mut refused = 0_u32;
        let swap = || {
            std::fs::rename(&place, &real).unwrap();
            std::fs::rename(&link, &place).unwrap();
            std::fs::rename(&place, &link).unwrap();
            std::fs::rename(&real, &place).unwrap();
        };
        while_disturbed(swap, || {
            for _ in 0..rounds {
                match read(&held, "a/passwd") {
                    Ok(bytes) => {
                        assert_eq!(bytes, b"own");
                        own += 1;
                    }
                    Err(error) => {
                        assert!(
                            matches!(
                                error.refusal,
                                Refusal::SymbolicLink | Refusal::NotFound | Refusal::TryAgain
                            ),
                            "{resolver:?}: {error}"
                        );
                        refused += 1;
                    }
                }
            }
        });
        assert_eq!(own + refused, rounds);
    }
}

#[test]
fn renames_elsewhere_cause_no_spurious_failure() {
    let scratch = Scratch::new();
    scratch.file("package/adapters/adapter.json", b"{}");
    let (one, two) = (
        scratch.file("unrelated/one", b""),
        scratch.at("unrelated/two"),
    );
    let held = hold(&scratch.at("package"));
    let swap = || {
        std::fs::rename(&one, &two).unwrap();
        std::fs::rename(&two, &one).unwrap();
    };
    while_disturbed(swap, || {
        for _ in 0..20_000 {
            assert_eq!(read(&held, "adapters/adapter.json").unwrap(), b"{}");
        }
    });
}

#[test]
fn fifos_sockets_and_directories_are_not_regular_files() {
    let scratch = Scratch::new();
    mkfifo(&scratch.at("fifo"), Mode::S_IRWXU).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(scratch.at("socket")).unwrap();
    scratch.dir("manifest.json");
    for resolver in RESOLVERS {
        let held = scratch.held().with_resolver(resolver);
        for (entry, kind) in [
            ("fifo", "FIFO"),
            ("socket", "socket"),
            ("manifest.json", "directory"),
        ] {
            match refusal(&held, entry) {
                Refusal::NotRegular(found) => assert_eq!(found.to_string(), kind),
                other => panic!("{resolver:?} {entry}: {other}"),
            }
        }
    }
}

/// A FIFO with a writer that waits: opening it for reading, even once, would let the
/// writer through.
#[test]
fn a_fifo_is_never_opened_for_reading() {
    use std::os::unix::fs::OpenOptionsExt as _;

    let scratch = Scratch::new();
    let fifo = scratch.at("fifo");
    mkfifo(&fifo, Mode::S_IRWXU).unwrap();
    let opened = AtomicBool::new(false);
    for resolver in RESOLVERS {
        let held = scratch.held().with_resolver(resolver);
        // ENXIO as long as nobody has the reading end open.
        let probe = || {
            let attempt = std::fs::OpenOptions::new()
                .write(true)
                .custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits())
                .open(&fifo);
            if attempt.is_ok() {
                opened.store(true, Ordering::Relaxed);
            }
        };
        while_disturbed(probe, || {
            for _ in 0..5_000 {
                assert!(matches!(refusal(&held, "fifo"), Refusal::NotRegular(_)));
            }
        });
    }
    assert!(
        !opened.load(Ordering::Relaxed),
        "somebody opened the FIFO for reading"
    );
}

#[test]
fn a_regular_file_swapped_for_a_fifo_in_a_loop_blocks_nobody() {
    let scratch = Scratch::new();
    let file = scratch.file("entry", b"own");
    let (fifo, aside) = (scratch.at("fifo"), scratch.at("aside"));
    mkfifo(&fifo, Mode::S_IRWXU).unwrap();
    for resolver in RESOLVERS {
        let held = scratch.held().with_resolver(resolver);
        let swap = || {
            std::fs::rename(&file, &aside).unwrap();
            std::fs::rename(&fifo, &file).unwrap();
            std::fs::rename(&file, &fifo).unwrap();
            std::fs::rename(&aside, &file).unwrap();
        };
        while_disturbed(swap, || {
            for _ in 0..10_000 {
                match read(&held, "entry") {
                    Ok(bytes) => assert_eq!(bytes, b"own"),
                    Err(error) => assert!(
                        matches!(
                            error.refusal,
                            // A rename changes the inode's own time.
                            Refusal::NotRegular(_)
                                | Refusal::NotFound
                                | Refusal::Changed
                                | Refusal::TryAgain
                        ),
                        "{resolver:?}: {error}"
                    ),
                }
            }
        });
    }
}

#[test]
fn devices_are_not_regular_files() {
    // A device node of the host serves as well as one of ours: nothing opens it.
    let held = hold(Path::new("/dev"));
    for resolver in RESOLVERS {
        let held = held.try_clone().unwrap().with_resolver(resolver);
        for device in ["zero", "null", "tty"] {
            assert!(
                matches!(refusal(&held, device), Refusal::NotRegular(_)),
                "{resolver:?} {device}"
            );
        }
    }
}

#[test]
fn hard_links_are_refused_until_only_one_name_is_left() {
    let scratch = Scratch::new();
    let outside = scratch.file("outside", b"text");
    scratch.dir("package");
    std::fs::hard_link(&outside, scratch.at("package/one")).unwrap();
    std::fs::hard_link(&outside, scratch.at("package/two")).unwrap();
    let held = hold(&scratch.at("package"));
    assert!(matches!(refusal(&held, "one"), Refusal::Links(3)));
    std::fs::remove_file(&outside).unwrap();
    assert!(matches!(refusal(&held, "one"), Refusal::Links(2)));
    assert!(matches!(refusal(&held, "two"), Refusal::Links(2)));
    std::fs::remove_file(scratch.at("package/two")).unwrap();
    assert_eq!(read(&held, "one").unwrap(), b"text");
}

#[test]
fn mode_bits_that_make_a_file_more_than_data_are_refused() {
    let scratch = Scratch::new();
    let path = scratch.file("f", b"");
    let held = scratch.held();
    for bits in [0o744, 0o654, 0o645, 0o4644, 0o2644, 0o1644] {
        mode(&path, bits);
        assert!(
            matches!(refusal(&held, "f"), Refusal::ModeBits(m) if m == bits),
            "{bits:o}"
        );
    }
    mode(&path, 0o666);
    assert!(read(&held, "f").is_ok());
    let private = FileRules::private(LIMIT, uid());
    let error = held.read_file(&name("f"), private).unwrap_err();
    assert!(
        matches!(error.refusal, Refusal::FileWritableByOthers(0o666)),
        "{error}"
    );
    mode(&path, 0o555);
    let program = FileRules {
        may_be_executable: true,
        ..private
    };
    assert!(held.read_file(&name("f"), program).is_ok());
    mode(&path, 0o4555);
    assert!(held.read_file(&name("f"), program).is_err());
}

#[test]
fn a_file_of_somebody_else_is_refused() {
    let scratch = Scratch::new();
    scratch.file("f", b"");
    let held = scratch.held();
    let owner = if is_root() {
        std::os::unix::fs::chown(scratch.at("f"), Some(4321), None).unwrap();
        uid()
    } else {
        uid() + 1
    };
    let error = held
        .read_file(&name("f"), FileRules::untrusted(LIMIT, owner))
        .unwrap_err();
    assert!(matches!(error.refusal, Refusal::Owner { .. }), "{error}");
}

#[test]
fn the_limit_is_exact() {
    let scratch = Scratch::new();
    scratch.file("at", &[b'x'; 1000]);
    scratch.file("above", &[b'x'; 1001]);
    let held = scratch.held();
    assert_eq!(read(&held, "at").unwrap().len(), 1000);
    assert!(matches!(
        refusal(&held, "above"),
        Refusal::TooLarge { limit_bytes: 1000 }
    ));
}

#[test]
fn a_sparse_file_of_a_tebibyte_is_refused_by_its_size() {
    let scratch = Scratch::new();
    let path = scratch.file("sparse", b"");
    std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    assert!(matches!(
        refusal(&scratch.held(), "sparse"),
        Refusal::TooLarge { .. }
    ));
}

#[test]
fn a_file_that_states_no_size_is_not_believed() {
    // Files of procfs are regular, readable and state a size of 0.
    let held = hold(Path::new("/proc"));
    assert!(matches!(refusal(&held, "version"), Refusal::Changed));
}

#[test]
fn a_file_that_changed_after_it_was_checked_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.file("f", b"before");
    let held = scratch.held();
    let rules = FileRules::untrusted(LIMIT, uid());

    let file = held.open_file(&name("f"), rules).unwrap();
    std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(b"+")
        .unwrap();
    assert!(matches!(file.read().unwrap_err().refusal, Refusal::Changed));

    let file = held.open_file(&name("f"), rules).unwrap();
    std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(1)
        .unwrap();
    assert!(matches!(file.read().unwrap_err().refusal, Refusal::Changed));

    // Another file in the name's place does not matter: the inode is held. Its own
    // name is gone, which shows in the number of links.
    let file = held.open_file(&name("f"), rules).unwrap();
    scratch.file("other", b"other");
    std::fs::rename(scratch.at("other"), &path).unwrap();
    assert!(matches!(file.read().unwrap_err().refusal, Refusal::Changed));
}

#[test]
fn a_file_that_grows_without_end_is_read_to_the_limit_and_refused() {
    let scratch = Scratch::new();
    let path = scratch.file("f", &[b'x'; 999]);
    let held = scratch.held();
    let grow = || {
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap();
        file.write_all(&[b'y'; 64]).unwrap();
        file.set_len(999).unwrap();
    };
    while_disturbed(grow, || {
        for _ in 0..5_000 {
            match read(&held, "f") {
                Ok(bytes) => assert!(bytes.len() <= 1000),
                Err(error) => assert!(
                    matches!(error.refusal, Refusal::TooLarge { .. } | Refusal::Changed),
                    "{error}"
                ),
            }
        }
    });
}

#[test]
fn a_directory_that_is_moved_stays_the_one_that_is_held() {
    let scratch = Scratch::new();
    scratch.file("package/f", b"own");
    scratch.file("other/f", b"foreign");
    let held = hold(&scratch.at("package"));
    std::fs::rename(scratch.at("package"), scratch.at("moved")).unwrap();
    symlink("other", scratch.at("package")).unwrap();
    assert_eq!(read(&held, "f").unwrap(), b"own");
}

#[test]
fn a_listing_stops_at_its_limit() {
    let scratch = Scratch::new();
    for index in 0..50 {
        scratch.file(&format!("f{index:02}"), b"");
    }
    let held = scratch.held();
    assert_eq!(held.list(50).unwrap().len(), 50);
    let error = held.list(49).unwrap_err();
    assert!(
        matches!(error.refusal, Refusal::TooManyEntries { limit: 49 }),
        "{error}"
    );
}

/// The kernel's resolver refused by a filter, as service managers and containers do
/// it: the walk must take over, and hold.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn where_a_filter_refuses_openat2_the_walk_holds_the_same_cases() {
    use nix::errno::Errno;
    for errno in [Errno::ENOSYS, Errno::EPERM] {
        let scratch = Scratch::new();
        scratch.file("a/f", b"own");
        symlink("a", scratch.at("d")).unwrap();
        symlink("/etc/hostname", scratch.at("l")).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                refuse_openat2(errno);
                let refused = lazaret_custody::openat2_answers().unwrap_err();
                assert_eq!(refused.raw_os_error(), Some(errno as i32));
                let held = scratch.held().with_resolver(Resolver::Kernel);
                assert_eq!(read(&held, "a/f").unwrap(), b"own");
                assert!(matches!(refusal(&held, "d/f"), Refusal::SymbolicLink));
                assert!(matches!(refusal(&held, "l"), Refusal::SymbolicLink));
            });
        });
    }
    // The filter belongs to the threads that ended.
    lazaret_custody::openat2_answers().unwrap();
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn refuse_openat2(errno: nix::errno::Errno) {
    use seccompiler::{SeccompAction, SeccompFilter, TargetArch, apply_filter};
    const OPENAT2: i64 = 437;
    let filter = SeccompFilter::new(
        [(OPENAT2, vec![])].into_iter().collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(u32::try_from(errno as i32).unwrap()),
        TargetArch::x86_64,
    )
    .unwrap();
    let program: seccompiler::BpfProgram = filter.try_into().unwrap();
    apply_filter(&program).unwrap();
}

/// Needs the right to mount: an ordinary user gets it in a user namespace, so the
/// test runs itself again under unshare(1).
#[test]
#[cfg(target_os = "linux")]
fn a_mount_point_inside_is_refused() {
    const INSIDE: &str = "LAZARET_TEST_INSIDE_MOUNT_NAMESPACE";
    if std::env::var_os(INSIDE).is_none() {
        let unshare = || {
            let mut command = std::process::Command::new("unshare");
            command.args(["--user", "--map-root-user", "--mount"]);
            command
        };
        if !unshare()
            .arg("true")
            .status()
            .is_ok_and(|status| status.success())
        {
            let required = std::env::var_os("LAZARET_REQUIRE_CLOSURE").is_some();
            assert!(
                !required,
                "no mount namespace is to be had, and one is required"
            );
            skip_visibly("no mount namespace is to be had here");
            return;
        }
        let status = unshare()
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "a_mount_point_inside_is_refused", "--nocapture"])
            .env(INSIDE, "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let scratch = Scratch::new();
    scratch.file("package/f", b"own");
    scratch.dir("package/evals");
    scratch.file("source/g", b"foreign");
    let mount = |from: &Path, to: &Path| {
        let status = std::process::Command::new("mount")
            .arg("--bind")
            .arg(from)
            .arg(to)
            .status()
            .unwrap();
        assert!(status.success());
    };
    // The same file system, so the device number says nothing.
    mount(&scratch.at("source"), &scratch.at("package/evals"));
    mount(&scratch.at("source/g"), &scratch.at("package/f"));
    for resolver in RESOLVERS {
        // In a user namespace the host's root shows as the overflow uid.
        let trust = Trust {
            acting_uid: if owner_of_root() == 0 { 0 } else { 65_534 },
        };
        let held = HeldDir::open_trusted(&scratch.at("package"), trust).unwrap();
        let held = held.with_resolver(resolver);
        assert!(
            matches!(refusal(&held, "evals/g"), Refusal::OtherMount),
            "{resolver:?}"
        );
        assert!(
            matches!(refusal(&held, "f"), Refusal::OtherMount),
            "{resolver:?}"
        );
        let error = held.open_dir(&name("evals")).unwrap_err();
        assert!(matches!(error.refusal, Refusal::OtherMount), "{error}");
    }
    for mounted in ["package/evals", "package/f"] {
        std::process::Command::new("umount")
            .arg(scratch.at(mounted))
            .status()
            .unwrap();
    }
}

fn owner_of_root() -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/").unwrap().uid()
}
