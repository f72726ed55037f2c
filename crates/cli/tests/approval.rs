//! `lazaret init` and what stands without it.

#![cfg(not(lazaret_no_profile))]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use support::{DOCUMENT, Place, accepted, digest_to_confirm, expect_text};

#[test]
fn without_an_approval_nothing_is_launched_and_the_command_is_named() {
    let Some(accepted) = accepted() else { return };
    let place = Place::new();
    let profile = accepted.profile.as_str();
    let said = place.call_with_input(&["format", "-", "--profile", profile], DOCUMENT.as_bytes());
    assert_eq!((said.code, said.out.as_str()), (Some(3), ""));
    assert!(
        said.err.contains("lazaret init --approve-bundled"),
        "{}",
        said.err
    );
    assert_eq!(place.runs(), 0);
}

#[test]
fn init_shows_everything_and_without_an_answer_approves_nothing() {
    let Some(accepted) = accepted() else { return };
    let place = Place::new();
    let said = place.call(&["init", "--approve-bundled", "--profile", &accepted.profile]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    for word in [
        "seraph.tool.json-format version 1",
        "work.json-format.v1",
        "network=false, secrets=[], env=[], 1 input inode read-only, 1 output inode",
        "CPU 2 s, address space 128 MiB, 10 s in all",
        &accepted.closure.to_string(),
        &accepted.bwrap.to_string(),
        &accepted.launcher.to_string(),
        &accepted.filter.to_string(),
        "accepted, not independently reviewed",
        "import lazaret",
        "not approved; nothing was written",
    ] {
        assert!(said.err.contains(word), "{word} is not in: {}", said.err);
    }
    let approvals = place.data().join("approvals");
    assert_eq!(fs::read_dir(approvals).map_or(0, Iterator::count), 0);
    let shown = place
        .redact(&said.err)
        .replace(&accepted.profile, "[PROFILE]");
    expect_text(
        "init.txt",
        &without_sizes(&shown.replace(" (candidate)", "")),
    );
}

/// The forms of a package for two profiles differ in size.
fn without_sizes(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| match line.split_once(" bytes, sha256") {
            Some((head, tail)) => {
                let name = head.trim_end_matches(|c: char| c.is_ascii_digit());
                format!("{name}[N] bytes, sha256{tail}\n")
            }
            None => format!("{line}\n"),
        });
    lines.collect()
}

#[test]
fn a_digest_that_was_not_shown_approves_nothing() {
    let Some(accepted) = accepted() else { return };
    let place = Place::new();
    let other = accepted.closure.to_string();
    let profile = accepted.profile.as_str();
    let said = place.call(&[
        "init",
        "--approve-bundled",
        "--profile",
        profile,
        "--yes",
        &other,
    ]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    assert!(said.err.contains("was confirmed"), "{}", said.err);
    let said = place.call_with_input(&["format", "-", "--profile", profile], DOCUMENT.as_bytes());
    assert_eq!(said.code, Some(3));
    assert!(said.err.contains("nobody has approved"), "{}", said.err);
}

#[test]
fn the_digest_that_was_shown_approves_exactly_that() {
    let Some(accepted) = accepted() else { return };
    let place = Place::new();
    let digest = place.approve(&accepted.profile);
    let file = place
        .data()
        .join("approvals")
        .join(&accepted.profile)
        .join("seraph.tool.json-format.json");
    let facts = fs::metadata(&file).unwrap();
    assert_eq!(facts.mode() & 0o7777, 0o600);
    let bytes = fs::read(&file).unwrap();
    assert_eq!(
        lazaret_contract::digest::Sha256Digest::of(&bytes).to_string(),
        digest
    );

    // One byte less, and it says nothing.
    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    let profile = accepted.profile.as_str();
    let said = place.call_with_input(&["format", "-", "--profile", profile], DOCUMENT.as_bytes());
    assert_eq!(said.code, Some(3));
    assert!(said.err.contains("approved"), "{}", said.err);
    assert!(
        said.err.contains("lazaret init --approve-bundled"),
        "{}",
        said.err
    );
}

#[test]
fn what_was_approved_is_there_for_programs_too() {
    let Some(accepted) = accepted() else { return };
    let place = Place::new();
    let profile = accepted.profile.as_str();
    let looked = place.call(&["init", "--approve-bundled", "--profile", profile]);
    let digest = digest_to_confirm(&looked.err);
    let arguments = [
        "init",
        "--approve-bundled",
        "--profile",
        profile,
        "--json",
        "--yes",
        &digest,
    ];
    let said = place.call(&arguments);
    assert_eq!(said.code, Some(0), "{said:?}");
    let answer: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(answer["schema"], "lazaret-init/1");
    assert_eq!(answer["approval_sha256"], digest.as_str());
    assert_eq!(answer["subject"]["permissions"]["network"], false);
    assert_eq!(
        answer["subject"]["profile"]["closure"],
        accepted.closure.to_string()
    );
    // The same again is the same.
    assert_eq!(place.call(&arguments).out, said.out);
}

#[test]
fn at_a_terminal_only_yes_is_yes() {
    use std::io::{Read as _, Write as _};
    let Some(accepted) = accepted() else { return };
    for (answer, code) in [("no\n", 1), ("y\n", 1), ("\n", 1), ("yes\n", 0)] {
        let place = Place::new();
        let pty = nix::pty::openpty(None, None).unwrap();
        let mut command =
            place.command(&["init", "--approve-bundled", "--profile", &accepted.profile]);
        command.stdin(pty.slave);
        let child = command.spawn().unwrap();
        drop(command);
        let mut terminal = fs::File::from(pty.master);
        terminal.write_all(answer.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{answer:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("Type yes:"), "{said}");
        // What was typed comes back as the terminal's echo.
        let mut echo = [0; 16];
        assert!(terminal.read(&mut echo).unwrap() > 0);
    }
}
