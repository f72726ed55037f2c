//! Running a command in view: what it is, that it ran, and what to do when it fails.
//!
//! For the commands that a developer watches (cargo, git, our own binaries).
//! The closure's build has its own runner with logs and a scrubbed environment.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs `command` with its output shown, and fails unless it succeeds.
///
/// # Errors
/// When it cannot be started or ends with anything but success.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("starting {shown}"))?;
    if !status.success() {
        bail!("{shown} ended with {status}");
    }
    Ok(())
}

/// Runs `command` and returns its standard output; standard error is shown.
///
/// # Errors
/// As [`run`], and when the output is not UTF-8.
pub fn read(command: &mut Command) -> Result<String> {
    let shown = shown(command);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("starting {shown}"))?;
    if !output.status.success() {
        bail!("{shown} ended with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("output of {shown} is not UTF-8"))
}

/// A cargo command in the repository at `root`.
pub fn cargo(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root);
    command
}

/// The command as a person would type it.
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
