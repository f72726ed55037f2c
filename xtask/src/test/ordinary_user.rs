//! The sandbox's tests once more, as a user without any right.
//!
//! Started by root, a sandbox drops to a uid of its own; started by a user it
//! stays that user. Both ways must hold, so root runs the tests both ways.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Ending;
use crate::closure::Built;
use crate::process::{cargo, read, run};

/// The account, made on first use; it owns nothing.
const USER: &str = "lazaret-test";

/// Runs the test programs of `packages` as [`USER`].
pub fn run_tests(root: &Path, closure: &Built, packages: &[&str]) -> Result<Ending> {
    if !rustix::process::geteuid().is_root() {
        return Ok(Ending::Blocked(
            "the steps above ran as an ordinary user; root's half needs root".to_owned(),
        ));
    }
    let (uid, gid) = account()?;
    let programs = test_programs(root, packages)?;
    if programs.is_empty() {
        bail!("cargo named no test program of {}", packages.join(", "));
    }
    let home = tempfile::Builder::new()
        .prefix("lazaret-test-home-")
        .tempdir()
        .context("a home directory")?;
    std::os::unix::fs::chown(home.path(), Some(uid), Some(gid))
        .context("giving the home directory away")?;
    for (program, directory) in &programs {
        eprintln!(
            "-- {} as {USER}",
            program.file_name().unwrap_or_default().to_string_lossy()
        );
        let mut command = Command::new("setpriv");
        command
            .arg(format!("--reuid={}", uid))
            .arg(format!("--regid={}", gid))
            .args(["--clear-groups", "--inh-caps=-all", "--"])
            .arg(program)
            .arg("--quiet")
            .current_dir(directory)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", home.path());
        for name in ["LAZARET_REQUIRE_CONFORMANCE", "LAZARET_CONFORMANCE_DIR"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        run(super::with_closure(&mut command, closure))?;
    }
    Ok(Ending::Passed)
}

/// The account's numbers; it is made when it is not there.
fn account() -> Result<(u32, u32)> {
    let known = Command::new("id")
        .args(["-u", USER])
        .output()
        .context("looking the test account up")?;
    if !known.status.success() {
        run(Command::new("useradd").args([
            "--no-create-home",
            "--shell",
            "/usr/sbin/nologin",
            USER,
        ]))?;
    }
    let number = |option: &str| -> Result<u32> {
        let text = read(Command::new("id").args([option, USER]))?;
        text.trim()
            .parse()
            .with_context(|| format!("id {option} {USER} said {text:?}"))
    };
    Ok((number("-u")?, number("-g")?))
}

/// Each test program that cargo builds, with the directory that cargo would run it in.
fn test_programs(root: &Path, packages: &[&str]) -> Result<BTreeMap<PathBuf, PathBuf>> {
    let selected = packages.iter().flat_map(|package| ["-p", package]);
    let messages = read(
        cargo(root)
            .args(["test", "--no-run", "--message-format=json"])
            .args(selected),
    )?;
    let mut programs = BTreeMap::new();
    for line in messages.lines() {
        let message: serde_json::Value =
            serde_json::from_str(line).context("reading cargo's messages")?;
        let test = message["profile"]["test"].as_bool() == Some(true);
        let manifest = message["manifest_path"]
            .as_str()
            .map(Path::new)
            .and_then(Path::parent);
        if let (true, Some(program), Some(directory)) =
            (test, message["executable"].as_str(), manifest)
        {
            programs.insert(PathBuf::from(program), directory.to_owned());
        }
    }
    Ok(programs)
}
