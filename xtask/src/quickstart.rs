//! `cargo xtask quickstart`: from a fresh clone to one formatted document.
//!
//! Builds what is missing, says what this host lacks, approves the bundled package
//! in view, and runs the main job on a real document. It must never go on with
//! another profile without saying so, and never approve what it did not show.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use lazaret_profile::pins::{PROFILE_V1, PROFILE_V2_CANDIDATE};

use crate::closure::{self, Blocked, BuildArguments, Standing, parse_mirror};
use crate::process::{cargo, run, shown};

/// A real document: what cargo says of two crates of this repository.
const DOCUMENT: &str = "docs/examples/cargo-metadata.json";

/// Everything that quickstart leaves, below the repository.
const PLACE: &str = ".lazaret/quickstart";

/// Where sources may come from.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A git repository of a pinned source, for example cpython=PATH. May be repeated.
    #[arg(long, value_name = "NAME=PATH", value_parser = parse_mirror)]
    git_mirror: Vec<(String, PathBuf)>,
}

/// Runs all of it.
///
/// # Errors
/// The first step that failed, with what to do.
pub fn main(root: &Path, arguments: &Arguments) -> Result<ExitCode> {
    heading("building the lazaret binary");
    run(cargo(root).args([
        "build",
        "--quiet",
        "-p",
        "lazaret-cli",
        "-p",
        "lazaret-warden",
        "--bins",
    ]))?;
    let lazaret = binary(root)?;
    let profile = obtain_profile(root, arguments)?;

    heading("what this host offers");
    let place = root.join(PLACE);
    let data = place.join("data");
    std::fs::create_dir_all(&place).with_context(|| format!("making {PLACE}"))?;
    let call = |words: &[&str]| {
        let mut command = Command::new(&lazaret);
        command
            .arg("--data-dir")
            .arg(&data)
            .args(words)
            .args(["--profile", profile]);
        command
            .env("LAZARET_CLOSURES", root.join(".lazaret/closures"))
            .current_dir(root);
        command
    };
    run(call(&["doctor"]).stdout(std::io::stderr()))?;

    heading("approving the bundled formatter, as shown");
    approve(&call)?;

    heading(&format!("formatting {DOCUMENT}"));
    let record = place.join("record.json");
    let record_argument = record
        .to_str()
        .context("the repository's path is not UTF-8")?;
    run(&mut call(&[
        "format",
        DOCUMENT,
        "--quiet",
        "--record",
        record_argument,
    ]))?;

    heading("what the kernel said of the sandbox before the package was released");
    show_barrier(&record)?;
    eprintln!("\nThe run's record: {PLACE}/record.json");
    eprintln!("Again, by hand: {} format {DOCUMENT}", shown(&call(&[])));
    Ok(ExitCode::SUCCESS)
}

/// A heading on standard error; the document alone goes to standard output.
fn heading(text: &str) {
    eprintln!("\n== {text}");
}

fn binary(root: &Path) -> Result<PathBuf> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let path = target.join("debug/lazaret");
    if !path.is_file() {
        bail!("cargo built no {}", path.display());
    }
    Ok(path)
}

/// v1 where its sources can be had, else the candidate, said plainly.
fn obtain_profile(root: &Path, arguments: &Arguments) -> Result<&'static str> {
    for profile in [PROFILE_V1, PROFILE_V2_CANDIDATE] {
        heading(&format!("the closure of {profile}"));
        let mut wanted = BuildArguments::of_profile(profile);
        wanted.git_mirror.clone_from(&arguments.git_mirror);
        match closure::obtain(root, &wanted) {
            Ok(built) if built.standing == Standing::Accepted => {
                eprintln!(
                    "{profile}: closure {}, accepted, not independently reviewed",
                    built.digest
                );
                return Ok(profile);
            }
            Ok(built) => {
                for line in &built.difference {
                    eprintln!("{line}");
                }
                bail!("the closure of {profile} is not the accepted one; it does not serve");
            }
            Err(error) => match error.downcast::<Blocked>() {
                Ok(blocked) => {
                    eprintln!("{profile} cannot be built on this host:\n{blocked}");
                    if profile == PROFILE_V1 {
                        eprintln!("\nGoing on with {PROFILE_V2_CANDIDATE}, which is a candidate.");
                    }
                }
                Err(error) => return Err(error),
            },
        }
    }
    bail!("neither profile can be built on this host; the reasons are above")
}

/// Shows what would be approved, then approves exactly the digest that was shown.
fn approve(call: &dyn Fn(&[&str]) -> Command) -> Result<()> {
    let mut asking = call(&["init", "--approve-bundled"]);
    let output = asking
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting {}", shown(&asking)))?;
    let talk = String::from_utf8(output.stderr).context("lazaret init did not talk in UTF-8")?;
    eprint!("{talk}");
    let digest = talk
        .split_once("--yes ")
        .map(|(_, rest)| rest.split_whitespace().next().unwrap_or_default())
        .filter(|digest| digest.len() == 64)
        .context("lazaret init named no digest to approve")?;
    let mut approving = call(&["init", "--approve-bundled", "--yes", digest]);
    approving.stdout(Stdio::null()).stderr(Stdio::null());
    run(&mut approving)?;
    eprintln!("approved: {digest}");
    Ok(())
}

fn show_barrier(record: &Path) -> Result<()> {
    let text = std::fs::read(record).with_context(|| format!("reading {}", record.display()))?;
    let value: serde_json::Value =
        serde_json::from_slice(&text).context("reading the run's record")?;
    let facts = value["barrier"]["facts"]
        .as_array()
        .context("the record holds no facts of the barrier")?;
    for fact in facts {
        let word = |name: &str| match &fact[name] {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        eprintln!("  {:<34} {}", word("fact"), word("found"));
    }
    Ok(())
}
