//! `cargo xtask attack`: the attack suite on a profile's closure.
//!
//! Gets the closure, builds the suite's programs with the closure's own parts, asks
//! preflight, hands everything to `lazaret-attack-suite`, shows what came of it. The
//! judgement is the suite's. It must never call a case contained that was not run, and
//! never run a case in place of another.

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
mod host;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
mod programs;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use lazaret_profile::pins::{PROFILE_IDS, PROFILE_V1};

use crate::closure::parse_mirror;

/// Which cases, on what, and where the results go.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The profile whose closure is attacked.
    #[arg(long, value_name = "ID", default_value = PROFILE_V1, value_parser = PROFILE_IDS)]
    profile: String,
    /// Only the cases of a class: setup, files, processes, abi, network, descriptors, resources,
    /// channels, supervisor, barrier, filter. May be repeated.
    #[arg(long, value_name = "CLASS")]
    class: Vec<String>,
    /// Only cases whose id matches; * stands for anything. May be repeated.
    #[arg(long, value_name = "GLOB")]
    case: Vec<String>,
    /// List the cases and run nothing.
    #[arg(long)]
    list: bool,
    /// Print summary and records as JSON on standard output.
    #[arg(long)]
    json: bool,
    /// Write the records to DIR/ID/INPUTS as well, for example to attack-suite/results.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Say what changed against the records in attack-suite/results.
    #[arg(long)]
    compare: bool,
    /// Where the host lacks what the profile needs: mark the cases as not run instead of failing.
    #[arg(long)]
    allow_not_run: bool,
    /// How many runs at a time; as many as there are processors unless given.
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Write the packages of the chosen cases to DIR, each with a script that runs it under the
    /// closure without anything of ours around it, and run nothing.
    #[arg(long, value_name = "DIR")]
    by_hand: Option<PathBuf>,
    /// As root: run the cases as this user instead of dropping to the run uid.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// A local git mirror of a pinned source, for example cpython=PATH.
    #[arg(long, value_name = "NAME=PATH", value_parser = parse_mirror)]
    git_mirror: Vec<(String, PathBuf)>,
    /// What an earlier invocation has prepared; for the suite's own use.
    #[arg(long, value_name = "FILE", hide = true)]
    prepared: Option<PathBuf>,
}

/// Runs the suite.
///
/// # Errors
/// When the suite itself cannot be read, built or prepared.
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
pub fn main(root: &Path, arguments: &Arguments) -> Result<ExitCode> {
    host::main(root, arguments)
}

/// There is nothing to attack here.
///
/// # Errors
/// Always: Blocked.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile))))]
pub fn main(_: &Path, arguments: &Arguments) -> Result<ExitCode> {
    Err(crate::closure::Blocked {
        what: format!("{} is unsupported here, so there is nothing to attack", arguments.profile),
        tried: Vec::new(),
        hints: vec!["run the suite on Linux on x86_64".to_owned()],
    }
    .into())
}
