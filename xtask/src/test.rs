//! `cargo xtask test`: all set-up and all tests, each step with its own command.
//!
//! What a host lacks is *Blocked*, in view and with the reason; with `--ci` it
//! is a failure, but for the one profile whose sources only a mirror can give.
//! It must never pass because a thing to be tested was missing.

mod ordinary_user;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Result, bail};

use lazaret_profile::pins::PROFILE_IDS;

use crate::closure::{Blocked, BuildArguments, Built, Standing, obtain, parse_mirror};
use crate::process::{cargo, run};
use crate::{abi, tidy};

/// Packages whose tests start the real sandbox.
const SANDBOX_PACKAGES: [&str; 4] = [
    "lazaret-launcher",
    "lazaret-warden",
    "lazaret-engine",
    "lazaret-cli",
];

/// What to test.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Only what passes on a host without bubblewrap, closure or namespaces.
    #[arg(long)]
    core: bool,
    /// As CI does: what cannot be tested here is a failure.
    #[arg(long, conflicts_with = "core")]
    ci: bool,
    /// A local git mirror of a pinned source, for example cpython=PATH.
    #[arg(long, value_name = "NAME=PATH", value_parser = parse_mirror)]
    git_mirror: Vec<(String, PathBuf)>,
}

/// How a step ended, if it did not fail.
enum Ending {
    Passed,
    /// Could not be done here; the reason is shown again at the end.
    Blocked(String),
}

/// What has been done so far, for the table at the end.
struct Report {
    rows: Vec<(String, f64, Ending)>,
    started: Instant,
}

impl Report {
    fn step(
        &mut self,
        name: &str,
        rerun: &str,
        action: impl FnOnce() -> Result<Ending>,
    ) -> Result<()> {
        eprintln!("\n== {name}   (alone: {rerun})");
        let begun = Instant::now();
        match action() {
            Ok(ending) => {
                self.rows
                    .push((name.to_owned(), begun.elapsed().as_secs_f64(), ending));
                Ok(())
            }
            Err(error) => {
                self.print();
                Err(error.context(format!("step {name} failed; run it alone with: {rerun}")))
            }
        }
    }

    fn print(&self) {
        eprintln!("\n{:<34} {:>8}  ending", "step", "seconds");
        for (name, seconds, ending) in &self.rows {
            let text = match ending {
                Ending::Passed => "passed".to_owned(),
                Ending::Blocked(reason) => format!("BLOCKED: {reason}"),
            };
            eprintln!("{name:<34} {seconds:>8.1}  {text}");
        }
        eprintln!(
            "{:<34} {:>8.1}",
            "all",
            self.started.elapsed().as_secs_f64()
        );
    }
}

/// Runs the steps.
///
/// # Errors
/// The first step that failed.
pub fn main(root: &Path, arguments: &Arguments) -> Result<ExitCode> {
    let mut report = Report {
        rows: Vec::new(),
        started: Instant::now(),
    };
    static_checks(&mut report, root, arguments)?;
    report.step("core tests", "cargo xtask test --core", || core_tests(root))?;
    if !arguments.core {
        sandbox_tests(&mut report, root, arguments)?;
    }
    report.print();
    Ok(ExitCode::SUCCESS)
}

fn static_checks(report: &mut Report, root: &Path, arguments: &Arguments) -> Result<()> {
    report.step("tidy", "cargo xtask tidy", || {
        let findings = tidy::check(root)?;
        for finding in &findings {
            eprintln!("{finding}");
        }
        if findings.is_empty() {
            Ok(Ending::Passed)
        } else {
            bail!("{} findings", findings.len())
        }
    })?;
    report.step(
        "the launcher's ABI is current",
        "cargo xtask abi --check",
        || match abi::is_current(root) {
            Ok(true) => Ok(Ending::Passed),
            Ok(false) => bail!("crates/launcher/src/abi.rs is stale: run cargo xtask abi"),
            Err(error) if !arguments.ci => Ok(Ending::Blocked(format!("{error:#}"))),
            Err(error) => Err(error),
        },
    )?;
    report.step("format", "cargo fmt --all --check", || {
        run(cargo(root).args(["fmt", "--all", "--check"])).map(|()| Ending::Passed)
    })?;
    report.step(
        "clippy",
        "cargo clippy --workspace --all-targets -- -D warnings",
        || {
            run(cargo(root).args([
                "clippy",
                "--quiet",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ]))
            .map(|()| Ending::Passed)
        },
    )
}

/// The core as it is on other platforms: no profile, no namespaces. Only our own crates are compiled
/// with the switch, so that everything else is built once.
fn core_tests(root: &Path) -> Result<Ending> {
    run(cargo(root).args(["test", "--quiet", "--workspace"]).env(
        "RUSTC_WORKSPACE_WRAPPER",
        root.join("ci/rustc-without-profile"),
    ))?;
    Ok(Ending::Passed)
}

fn sandbox_tests(report: &mut Report, root: &Path, arguments: &Arguments) -> Result<()> {
    report.step("binaries", "cargo build --workspace --bins", || {
        run(cargo(root).args(["build", "--quiet", "--workspace", "--bins"]))
            .map(|()| Ending::Passed)
    })?;
    let mut closures = Vec::new();
    // The first that can be had is the main one.
    for profile in PROFILE_IDS {
        let rerun = format!("cargo xtask build-closure --profile {profile}");
        report.step(&format!("closure {profile}"), &rerun, || {
            let built = closure(root, profile, arguments)?;
            Ok(match built {
                Ok(built) => {
                    closures.push(built);
                    Ending::Passed
                }
                Err(reason) => Ending::Blocked(reason),
            })
        })?;
    }
    let Some((main, others)) = closures.split_first() else {
        bail!("no profile's closure can be had here; nothing of the sandbox was tested");
    };
    report.step("all tests", "cargo test --workspace", || {
        run(with_closure(
            cargo(root).args(["test", "--workspace"]),
            main,
        ))?;
        Ok(Ending::Passed)
    })?;
    for closure in others {
        report.step(
            &format!("sandbox tests, {}", closure.profile),
            "cargo test -p lazaret-warden",
            || {
                let packages = SANDBOX_PACKAGES.iter().flat_map(|package| ["-p", package]);
                run(with_closure(
                    cargo(root).arg("test").args(packages),
                    closure,
                ))?;
                Ok(Ending::Passed)
            },
        )?;
    }
    report.step(
        "sandbox tests, ordinary user",
        "cargo xtask test (as root)",
        || ordinary_user::run_tests(root, main, &SANDBOX_PACKAGES),
    )
}

/// The accepted closure of `profile`, or the reason why this host cannot have it.
fn closure(root: &Path, profile: &str, arguments: &Arguments) -> Result<Result<Built, String>> {
    let mut wanted = BuildArguments::of_profile(profile);
    wanted.git_mirror.clone_from(&arguments.git_mirror);
    match obtain(root, &wanted) {
        Ok(built) if built.standing == Standing::Accepted => Ok(Ok(built)),
        Ok(built) => {
            for line in &built.difference {
                eprintln!("{line}");
            }
            bail!(
                "the closure of {profile} is not the accepted one of this tree; see cargo xtask accept-closure"
            )
        }
        Err(error) => match error.downcast::<Blocked>() {
            Ok(blocked) => {
                eprintln!("{blocked}");
                Ok(Err(blocked.what))
            }
            Err(error) => Err(error),
        },
    }
}

/// The environment in which a test finds its closure, and fails without it.
fn with_closure<'a>(command: &'a mut Command, closure: &Built) -> &'a mut Command {
    command
        .env("LAZARET_TEST_PROFILE", &closure.profile)
        .env("LAZARET_CLOSURE_DIR", &closure.directory)
        .env("LAZARET_REQUIRE_CLOSURE", "1")
}
