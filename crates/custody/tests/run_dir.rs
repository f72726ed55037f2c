//! The run directory: fresh, private, with one output inode that is read back as
//! itself (attack case B14 seen from the host's side).

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod support;

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, symlink};

use lazaret_custody::run_dir::{Sweep, remove_tree};
use lazaret_custody::{HeldDir, Refusal, RunDir, RunOwner};
use support::*;

const LIMIT: u64 = 64 * 1024;

fn run(runs: &HeldDir) -> RunDir {
    RunDir::create(runs, None).unwrap()
}

fn write_output(run: &RunDir, bytes: &[u8]) {
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(run.output_path())
        .unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn a_run_directory_is_fresh_private_and_leaves_nothing() {
    let scratch = Scratch::new();
    let runs = scratch.held();
    let (one, two) = (run(&runs), run(&runs));
    assert_ne!(one.path(), two.path());
    for run in [&one, &two] {
        assert_eq!(
            std::fs::metadata(run.path()).unwrap().mode() & 0o7777,
            0o700
        );
        let output = std::fs::metadata(run.output_path()).unwrap();
        assert_eq!((output.mode() & 0o7777, output.len()), (0o600, 0));
        assert_eq!(std::fs::read_dir(run.path()).unwrap().count(), 1);
    }
    one.remove().unwrap();
    two.remove().unwrap();
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn started_by_root_it_belongs_to_the_run() {
    if !is_root() {
        skip_visibly("only root can give a directory away");
        return;
    }
    let scratch = Scratch::new();
    let run = RunDir::create(
        &scratch.held(),
        Some(RunOwner {
            uid: 4321,
            gid: 4322,
        }),
    )
    .unwrap();
    for path in [run.path(), run.output_path()] {
        let found = std::fs::metadata(path).unwrap();
        assert_eq!((found.uid(), found.gid()), (4321, 4322));
    }
    run.remove().unwrap();
}

#[test]
fn the_output_is_read_back_up_to_its_limit() {
    let scratch = Scratch::new();
    let mut run = run(&scratch.held());
    assert_eq!(run.read_output(LIMIT).unwrap(), b"");
    write_output(&run, &[b'x'; 64 * 1024]);
    assert_eq!(run.read_output(LIMIT).unwrap().len(), 64 * 1024);
    write_output(&run, &[b'x'; 64 * 1024 + 1]);
    assert!(matches!(
        run.read_output(LIMIT).unwrap_err().refusal,
        Refusal::TooLarge { limit_bytes: LIMIT }
    ));
}

#[test]
fn an_output_that_is_not_the_inode_that_was_made_is_refused() {
    let scratch = Scratch::new();
    let runs = scratch.held();

    let mut replaced = run(&runs);
    std::fs::remove_file(replaced.output_path()).unwrap();
    std::fs::write(replaced.output_path(), b"{}").unwrap();
    // The held inode has lost its name.
    assert!(matches!(
        replaced.read_output(LIMIT).unwrap_err().refusal,
        Refusal::Links(0)
    ));

    let mut linked = run(&runs);
    std::fs::hard_link(linked.output_path(), scratch.at("second")).unwrap();
    assert!(matches!(
        linked.read_output(LIMIT).unwrap_err().refusal,
        Refusal::Links(2)
    ));

    let mut moved = run(&runs);
    std::fs::rename(moved.output_path(), scratch.at("moved")).unwrap();
    std::fs::write(moved.output_path(), b"{}").unwrap();
    assert!(matches!(
        moved.read_output(LIMIT).unwrap_err().refusal,
        Refusal::Replaced
    ));

    let mut link = run(&runs);
    std::fs::rename(link.output_path(), scratch.at("target")).unwrap();
    symlink(scratch.at("target"), link.output_path()).unwrap();
    assert!(matches!(
        link.read_output(LIMIT).unwrap_err().refusal,
        Refusal::SymbolicLink
    ));

    let mut fifo = run(&runs);
    std::fs::rename(fifo.output_path(), scratch.at("aside")).unwrap();
    nix::unistd::mkfifo(fifo.output_path(), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(matches!(
        fifo.read_output(LIMIT).unwrap_err().refusal,
        Refusal::Replaced
    ));

    let mut directory = run(&runs);
    std::fs::rename(directory.output_path(), scratch.at("beside")).unwrap();
    std::fs::create_dir(directory.output_path()).unwrap();
    assert!(matches!(
        directory.read_output(LIMIT).unwrap_err().refusal,
        Refusal::Replaced
    ));

    let mut sparse_run = run(&runs);
    let sparse = std::fs::OpenOptions::new()
        .write(true)
        .open(sparse_run.output_path())
        .unwrap();
    sparse.set_len(1 << 40).unwrap();
    assert!(matches!(
        sparse_run.read_output(LIMIT).unwrap_err().refusal,
        Refusal::TooLarge { .. }
    ));

    let mut program = run(&runs);
    mode(program.output_path(), 0o700);
    assert!(matches!(
        program.read_output(LIMIT).unwrap_err().refusal,
        Refusal::ModeBits(0o700)
    ));

    let mut opened = run(&runs);
    mode(opened.output_path(), 0o644);
    assert!(matches!(
        opened.read_output(LIMIT).unwrap_err().refusal,
        Refusal::Replaced
    ));
}

#[test]
fn a_directory_that_took_the_run_directorys_name_is_not_removed() {
    let scratch = Scratch::new();
    let run = run(&scratch.held());
    let path = run.path().to_owned();
    std::fs::rename(&path, scratch.at("aside")).unwrap();
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("precious"), b"x").unwrap();
    assert!(matches!(
        run.remove().unwrap_err().refusal,
        Refusal::Replaced
    ));
    assert!(path.join("precious").exists());
}

#[test]
fn a_directory_inside_is_not_descended_into() {
    let scratch = Scratch::new();
    let runs = scratch.held();
    let run = run(&runs);
    std::fs::create_dir(run.path().join("deep")).unwrap();
    std::fs::write(run.path().join("deep/precious"), b"x").unwrap();
    let path = run.path().to_owned();
    assert!(matches!(
        remove_tree(&runs, run.name()).unwrap_err().refusal,
        Refusal::NotRegular(_)
    ));
    assert!(path.join("deep/precious").exists());
    assert!(run.output_path().exists());
}

#[test]
fn links_inside_are_removed_and_not_followed() {
    let scratch = Scratch::new();
    let precious = scratch.file("precious", b"x");
    scratch.dir("runs");
    let run = run(&hold(&scratch.at("runs")));
    symlink(&precious, run.path().join("link")).unwrap();
    symlink(scratch.path(), run.path().join("up")).unwrap();
    run.remove().unwrap();
    assert!(precious.exists());
}

#[test]
fn only_the_directories_of_the_dead_are_abandoned() {
    let scratch = Scratch::new();
    let runs = scratch.held();
    let alive = run(&runs);
    let dead = run(&runs).name().clone();
    scratch.file("run-but-no-directory/x", b"");
    scratch.dir("other");
    let sweep = Sweep::begin(&runs).unwrap().unwrap();
    let found = sweep.abandoned(100).unwrap();
    assert!(found.contains(&dead));
    assert!(!found.contains(alive.name()));
    assert!(found.iter().all(|name| name.as_str().starts_with("run-")));
    // Only one sweeps at a time.
    assert!(Sweep::begin(&runs).unwrap().is_none());
}
