//! What the tests of the real binary share: a hermetic place, one call, and texts
//! with everything that differs from run to run taken out.
//!
//! Each test has its own directory with copies of both programs, its own home and an
//! empty environment. Tests that run the sandbox need the closure that this build has
//! accepted, from the directory named by `LAZARET_CLOSURE_DIR` or from
//! `.lazaret/closures`; without it they say that they are skipped and why, and with
//! `LAZARET_REQUIRE_CLOSURE=1` they fail.

#![allow(dead_code, reason = "each test binary uses its own part of this")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lazaret_profile::accepted::{Accepted, built_in};
use lazaret_profile::pins::PROFILE_IDS;
use tempfile::TempDir;

/// The program under test, where cargo put it.
const LAZARET: &str = env!("CARGO_BIN_EXE_lazaret");

/// A document of no special kind, and what the formatter makes of it.
pub const DOCUMENT: &str = r#"{"b":[1.50,-0.0,"é"],"a":{"nested":[true,null]}}"#;
pub const FORMATTED: &str = "{\n  \"a\": {\n    \"nested\": [\n      true,\n      null\n    ]\n  },\n  \"b\": [\n    1.5,\n    -0.0,\n    \"é\"\n  ]\n}\n";

/// A hermetic place.
pub struct Place {
    root: TempDir,
    variables: Vec<(String, String)>,
}

/// What a call came to. It is to be looked at: a result that nobody checks is a test
/// that cannot fail.
#[must_use]
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Place {
    pub fn new() -> Self {
        let root = tempfile::Builder::new()
            .prefix("lazaret-cli-")
            .tempdir()
            .unwrap();
        let place = Self {
            root,
            variables: Vec::new(),
        };
        for dir in ["", "bin", "home", "work"] {
            let dir = place.at(dir);
            fs::create_dir_all(&dir).unwrap();
            fs::set_permissions(&dir, fs::Permissions::from_mode(0o711)).unwrap();
        }
        place.install("lazaret", Path::new(LAZARET));
        let warden = Path::new(LAZARET).with_file_name("lazaret-warden");
        if warden.is_file() {
            place.install("lazaret-warden", &warden);
        }
        place
    }

    /// A copy, so that nothing of the repository is found by walking up from it.
    fn install(&self, name: &str, from: &Path) {
        let to = self.at("bin").join(name);
        if fs::hard_link(from, &to).is_ok() {
            return;
        }
        // Not by this process: a child that another test is starting at this moment would inherit the
        // descriptor that writes, and the copy could not be executed while it has it (ETXTBSY).
        let copied = Command::new("cp").arg(from).arg(&to).status().unwrap();
        assert!(copied.success());
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    /// The default data directory.
    pub fn data(&self) -> PathBuf {
        self.at("home/.local/share/lazaret")
    }

    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// Where the closures are that this place was made ready with.
    pub fn closures(&self) -> &str {
        let set = self
            .variables
            .iter()
            .find(|(name, _)| name == "LAZARET_CLOSURES");
        set.map_or("", |(_, value)| value)
    }

    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at("work").join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// A call that has not been started.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.at("bin/lazaret"));
        command
            .args(arguments)
            .current_dir(self.at("work"))
            .env_clear()
            .env("HOME", self.at("home"))
            .env("PATH", "/usr/bin:/bin")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn call(&self, arguments: &[&str]) -> Said {
        finish(self.command(arguments), b"")
    }

    pub fn call_with_input(&self, arguments: &[&str], input: &[u8]) -> Said {
        finish(self.command(arguments), input)
    }

    /// Takes out of a text what differs from run to run.
    pub fn redact(&self, text: &str) -> String {
        let root = self.at("");
        let root = root.to_str().unwrap().trim_end_matches('/');
        let text = text.replace(root, "[PLACE]");
        let mut redacted = String::new();
        let mut word = String::new();
        for c in text.chars().chain(['\0']) {
            if c.is_ascii_hexdigit() {
                word.push(c);
                continue;
            }
            redacted.push_str(if word.len() == 64 { "[DIGEST]" } else { &word });
            word.clear();
            if c != '\0' {
                redacted.push(c);
            }
        }
        redacted
    }

    /// Every file and directory below the home, relative to it.
    pub fn home_entries(&self) -> Vec<String> {
        let home = self.at("home");
        let mut found = Vec::new();
        let mut waiting = vec![home.clone()];
        while let Some(dir) = waiting.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                found.push(
                    path.strip_prefix(&home)
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned(),
                );
                if path.is_dir() {
                    waiting.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// Approves the bundled formatter as an operator would: looks, then confirms.
    pub fn approve(&self, profile: &str) -> String {
        let looked = self.call(&["init", "--approve-bundled", "--profile", profile]);
        assert_eq!(looked.code, Some(1), "{looked:?}");
        let digest = digest_to_confirm(&looked.err);
        let approved = self.call(&[
            "init",
            "--approve-bundled",
            "--profile",
            profile,
            "--yes",
            &digest,
        ]);
        assert_eq!(approved.code, Some(0), "{approved:?}");
        digest
    }

    /// How many run directories there are.
    pub fn runs(&self) -> usize {
        fs::read_dir(self.data().join("runs")).map_or(0, Iterator::count)
    }
}

/// The digest after `--yes` in what `init` said.
pub fn digest_to_confirm(talk: &str) -> String {
    let (_, rest) = talk
        .split_once("--yes ")
        .unwrap_or_else(|| panic!("no digest in: {talk}"));
    rest.split_whitespace().next().unwrap().to_owned()
}

pub fn finish(mut command: Command, input: &[u8]) -> Said {
    if !input.is_empty() {
        command.stdin(Stdio::piped());
    }
    let mut child = command.spawn().unwrap();
    if let Some(mut stdin) = child.stdin.take() {
        // A program that refuses early does not read to the end.
        let _ = stdin.write_all(input);
    }
    let output = child.wait_with_output().unwrap();
    Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

pub fn is_root() -> bool {
    nix::unistd::Uid::effective().is_root()
}

/// The profile under test: the one named by `LAZARET_TEST_PROFILE`, else the first of
/// which this build has accepted a closure.
pub fn test_profile() -> Option<Accepted> {
    match std::env::var("LAZARET_TEST_PROFILE") {
        Ok(profile) => built_in(&profile),
        Err(_) => PROFILE_IDS.iter().find_map(|profile| built_in(profile)),
    }
}

/// What a test needs is missing: says so, or fails where it is required.
pub fn skip(why: &str) {
    let required = std::env::var_os("LAZARET_REQUIRE_CLOSURE").is_some();
    assert!(!required, "{why}, and it is required");
    skip_visibly(why);
}

/// Says that a test is skipped, past the test harness, which captures what is printed.
pub fn skip_visibly(why: &str) {
    // A lost note must not fail the test that it explains.
    let _ = std::io::stderr().write_all(format!("SKIPPED: {why}\n").as_bytes());
}

/// The accepted profile, or `None` after saying why a test is skipped.
pub fn accepted() -> Option<Accepted> {
    let accepted = test_profile();
    if accepted.is_none() {
        skip("this build has accepted no closure");
    }
    accepted
}

/// A place in which everything is ready for a run with the accepted closure.
pub fn ready() -> Option<(Place, Accepted)> {
    let accepted = accepted()?;
    let closures = match std::env::var_os("LAZARET_CLOSURE_DIR") {
        // The place is two levels above the closure: <place>/<profile>/<digest>.
        Some(dir) => Path::new(&dir).parent()?.parent()?.to_path_buf(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.lazaret/closures"),
    };
    let dir = closures
        .join(&accepted.profile)
        .join(accepted.closure.to_string());
    if !dir.join("manifest.json").is_file() {
        skip(&format!(
            "the accepted closure {} is not there",
            accepted.closure
        ));
        return None;
    }
    let mut place = Place::new();
    if !place.at("bin/lazaret-warden").is_file() {
        skip("lazaret-warden has not been built: cargo build -p lazaret-warden");
        return None;
    }
    place.set(
        "LAZARET_CLOSURES",
        closures.canonicalize().unwrap().to_str().unwrap(),
    );
    place.approve(&accepted.profile);
    Some((place, accepted))
}

/// Compares a text with the one kept in `tests/expected/`. With
/// `LAZARET_UPDATE_EXPECTED=1` the kept one is written anew, to be looked at in the
/// difference of the commit.
pub fn expect_text(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/expected")
        .join(name);
    if std::env::var_os("LAZARET_UPDATE_EXPECTED").is_some() {
        fs::write(&path, found).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == found,
        "{name} differs; found:\n{found}\nkept:\n{kept}"
    );
}
