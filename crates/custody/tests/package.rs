//! Reading an untrusted package directory: names, counts, sizes and what changes
//! under the reader's hands (cases C03, C05, C06 and C07; issue of package reading).

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod support;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use lazaret_contract::limits::{self, PACKAGE_FILES_MAX};
use lazaret_custody::{CustodyError, PackageBytes, PackageReader, Refusal, Trust};
use nix::sys::stat::Mode;
use support::*;

const PACKAGE_BYTES_MAX: u64 = limits::PACKAGE_BYTES_MAX as u64;

/// The smallest directory that looks like a package.
fn package() -> Scratch {
    let scratch = Scratch::new();
    scratch.file("manifest.json", b"{}");
    scratch.file("adapter.py", b"pass\n");
    scratch.file("adapters/adapter.json", b"{}");
    scratch
}

fn read(scratch: &Scratch) -> Result<PackageBytes, CustodyError> {
    let mut results = RESOLVERS.map(|resolver| {
        let reader = PackageReader {
            resolver,
            ..PackageReader::default()
        };
        reader.read(scratch.path(), Trust::acting())
    });
    match &results {
        [Ok(one), Ok(two)] => assert_eq!(one, two),
        [Err(one), Err(two)] => assert_eq!(one.to_string(), two.to_string()),
        [one, two] => panic!("the resolvers disagree: {one:?} {two:?}"),
    }
    std::mem::replace(
        &mut results[0],
        Err(CustodyError::new(scratch.path(), Refusal::NotFound)),
    )
}

fn refused(scratch: &Scratch) -> CustodyError {
    read(scratch).unwrap_err()
}

#[test]
fn the_bytes_come_out_by_name_in_the_order_of_names() {
    let scratch = package();
    scratch.file("README.md", b"text");
    scratch.file("evals/one.json", b"[1]");
    let package = read(&scratch).unwrap();
    let names: Vec<_> = package.files().keys().map(ToString::to_string).collect();
    assert_eq!(
        names,
        [
            "README.md",
            "adapter.py",
            "adapters/adapter.json",
            "evals/one.json",
            "manifest.json"
        ]
    );
    assert_eq!(package.get("evals/one.json"), Some(&b"[1]"[..]));
    assert_eq!(package.get("evals/two.json"), None);
    assert_eq!(package.total_bytes(), 4 + 5 + 2 + 3 + 2);
}

#[test]
fn names_outside_the_grammar_refuse_the_package() {
    for bad in [
        &b"a\nb"[..],
        b"a b",
        b"trailing ",
        b"back\\slash",
        b"\xff\xfe",
        "caf\u{e9}".as_bytes(),
        b"-rf",
        b".hidden",
        b"dot.",
        &[b'a'; 120],
    ] {
        let scratch = package();
        std::fs::write(scratch.path().join(OsStr::from_bytes(bad)), b"").unwrap();
        let error = refused(&scratch);
        assert!(matches!(error.refusal, Refusal::Name(_)), "{error}");
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}

#[test]
fn names_that_differ_in_case_are_two_files() {
    let scratch = package();
    scratch.file("README", b"1");
    scratch.file("readme", b"2");
    let package = read(&scratch).unwrap();
    assert_eq!(package.get("README"), Some(&b"1"[..]));
    assert_eq!(package.get("readme"), Some(&b"2"[..]));
}

#[test]
fn links_pipes_sockets_and_programs_refuse_the_package() {
    let scratch = package();
    symlink("adapter.py", scratch.at("link.py")).unwrap();
    assert!(matches!(refused(&scratch).refusal, Refusal::SymbolicLink));

    let scratch = package();
    symlink("/etc", scratch.at("evals")).unwrap();
    assert!(matches!(refused(&scratch).refusal, Refusal::SymbolicLink));

    let scratch = package();
    std::fs::hard_link(scratch.at("adapter.py"), scratch.at("second.py")).unwrap();
    assert!(matches!(refused(&scratch).refusal, Refusal::Links(2)));

    let scratch = package();
    nix::unistd::mkfifo(&scratch.at("fifo"), Mode::S_IRWXU).unwrap();
    assert!(matches!(refused(&scratch).refusal, Refusal::NotRegular(_)));

    let scratch = package();
    let _listener = std::os::unix::net::UnixListener::bind(scratch.at("socket")).unwrap();
    assert!(matches!(refused(&scratch).refusal, Refusal::NotRegular(_)));

    let scratch = package();
    mode(&scratch.at("adapter.py"), 0o755);
    assert!(matches!(
        refused(&scratch).refusal,
        Refusal::ModeBits(0o755)
    ));
}

#[test]
#[cfg(target_os = "linux")]
fn a_device_refuses_the_package() {
    if !is_root() {
        skip_visibly("only root can make a device node");
        return;
    }
    use nix::sys::stat::{SFlag, makedev, mknod};
    for (kind, device) in [
        (SFlag::S_IFCHR, makedev(1, 5)),
        (SFlag::S_IFBLK, makedev(7, 200)),
    ] {
        let scratch = package();
        mknod(&scratch.at("device"), kind, Mode::S_IRUSR, device).unwrap();
        assert!(matches!(refused(&scratch).refusal, Refusal::NotRegular(_)));
    }
}

#[test]
fn only_the_two_directories_exist_and_neither_is_empty_or_deep() {
    let scratch = package();
    scratch.file("lib/code.py", b"");
    assert!(matches!(
        refused(&scratch).refusal,
        Refusal::UnexpectedDirectory
    ));

    let scratch = package();
    scratch.file("evals/deep/one.json", b"");
    assert!(matches!(refused(&scratch).refusal, Refusal::NotRegular(_)));

    let scratch = package();
    scratch.dir("evals");
    assert!(matches!(refused(&scratch).refusal, Refusal::EmptyDirectory));

    let scratch = Scratch::new();
    assert!(matches!(refused(&scratch).refusal, Refusal::EmptyDirectory));
}

/// Fills the package up to `count` files in all.
fn fill(scratch: &Scratch, count: usize) {
    for index in 3..count {
        scratch.file(&format!("extra-{index:02}"), b"");
    }
}

#[test]
fn thirty_two_files_are_accepted_and_thirty_three_are_not() {
    let scratch = package();
    fill(&scratch, PACKAGE_FILES_MAX);
    assert_eq!(read(&scratch).unwrap().files().len(), PACKAGE_FILES_MAX);

    let scratch = package();
    fill(&scratch, PACKAGE_FILES_MAX + 1);
    assert!(matches!(
        refused(&scratch).refusal,
        Refusal::TooManyFiles { limit: 32 }
    ));

    // The excess may lie in a directory.
    let scratch = package();
    fill(&scratch, PACKAGE_FILES_MAX);
    scratch.file("evals/one.json", b"");
    assert!(matches!(
        refused(&scratch).refusal,
        Refusal::TooManyFiles { limit: 32 }
    ));

    // An empty directory beside 32 files is refused as what it is.
    let scratch = package();
    fill(&scratch, PACKAGE_FILES_MAX);
    scratch.dir("evals");
    assert!(matches!(refused(&scratch).refusal, Refusal::EmptyDirectory));
}

#[test]
fn a_directory_of_very_many_entries_is_not_read_to_its_end() {
    let scratch = package();
    for index in 0..5_000 {
        std::fs::write(scratch.at(&format!("x{index}")), b"").unwrap();
    }
    assert!(matches!(
        refused(&scratch).refusal,
        Refusal::TooManyEntries { limit: 34 }
    ));
}

#[test]
fn the_size_of_the_whole_is_exact_and_counted_across_files() {
    let whole = usize::try_from(PACKAGE_BYTES_MAX).unwrap();
    let base = b"{}".len() + b"pass\n".len() + b"{}".len();
    let half = vec![b'x'; whole / 2];
    let rest = whole - half.len() - base;

    let scratch = package();
    scratch.file("one.bin", &half);
    scratch.file("two.bin", &vec![b'y'; rest]);
    assert_eq!(read(&scratch).unwrap().total_bytes(), PACKAGE_BYTES_MAX);

    let scratch = package();
    scratch.file("one.bin", &half);
    scratch.file("two.bin", &vec![b'y'; rest + 1]);
    let error = refused(&scratch);
    assert!(
        matches!(
            error.refusal,
            Refusal::PackageTooLarge {
                limit_bytes: PACKAGE_BYTES_MAX
            }
        ),
        "{error}"
    );
}

#[test]
fn a_package_that_grows_while_it_is_read_never_gives_more_than_the_limit() {
    use std::io::Write as _;

    let scratch = package();
    let near = PACKAGE_BYTES_MAX - 10;
    let last = scratch.file("z-last.bin", &vec![b'x'; usize::try_from(near).unwrap()]);
    let grow = || {
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(&last)
            .unwrap();
        for _ in 0..20 {
            file.write_all(b"y").unwrap();
        }
        file.set_len(near).unwrap();
    };
    while_disturbed(grow, || {
        for _ in 0..200 {
            match PackageReader::default().read(scratch.path(), Trust::acting()) {
                Ok(package) => assert!(package.total_bytes() <= PACKAGE_BYTES_MAX),
                Err(error) => assert!(
                    matches!(
                        error.refusal,
                        Refusal::PackageTooLarge { .. } | Refusal::Changed
                    ),
                    "{error}"
                ),
            }
        }
    });
}

#[test]
fn a_directory_that_others_may_write_to_refuses_the_package() {
    let scratch = package();
    mode(scratch.path(), 0o777);
    let error = refused(&scratch);
    assert!(
        matches!(
            error.refusal,
            Refusal::WritableByOthers {
                mode_to_set: 0o755,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_package_whose_entries_come_and_go_is_read_whole_or_refused() {
    let scratch = package();
    scratch.file("evals/one.json", b"[1]");
    let elsewhere = Scratch::new();
    let (inside, outside) = (scratch.at("evals"), elsewhere.at("evals"));
    let swap = || {
        std::fs::rename(&inside, &outside).unwrap();
        std::fs::rename(&outside, &inside).unwrap();
    };
    while_disturbed(swap, || {
        for _ in 0..2_000 {
            match PackageReader::default().read(scratch.path(), Trust::acting()) {
                Ok(package) => {
                    // Whole with the directory or whole without it.
                    let with = package.get("evals/one.json") == Some(&b"[1]"[..]);
                    assert_eq!(package.files().len(), if with { 4 } else { 3 });
                }
                Err(error) => assert!(
                    matches!(
                        error.refusal,
                        Refusal::Changed | Refusal::NotFound | Refusal::TryAgain
                    ),
                    "{error}"
                ),
            }
        }
    });
}

#[test]
fn the_bundled_packages_are_read_as_they_are_in_the_binary() {
    use lazaret_contract::bundled::BUNDLED;
    let packages = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packages");
    for bundled in BUNDLED {
        // A copy: the modes and owners of a checkout are not the package's.
        let scratch = Scratch::new();
        for (path, _) in bundled.files {
            scratch.file(
                path,
                &std::fs::read(packages.join(bundled.id).join(path)).unwrap(),
            );
        }
        let read = read(&scratch).unwrap().into_package_files().unwrap();
        assert_eq!(Some(read), bundled.package_files(), "{}", bundled.id);
    }
}

#[test]
fn what_the_contract_does_not_know_as_a_package_is_refused_by_it() {
    let scratch = package();
    scratch.file("evals/notes.txt", b"text");
    assert!(read(&scratch).unwrap().into_package_files().is_err());
}
