//! `cargo xtask`: everything that a developer or CI does with this tree.
//!
//! This file reads the command line, calls the module of the same name, and turns
//! its answer into an exit code: 0 done, 1 failed, 2 usage, 3 Blocked (something
//! outside the tree is missing; nothing was substituted).
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line talks on standard error and gives its data on standard output"
)]

mod abi;
mod closure;
mod packages;
mod process;
mod quickstart;
mod test;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

/// The exit code for what is Blocked.
const EXIT_BLOCKED: u8 = 3;

/// Builds, accepts, tests and measures Lazaret.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask", max_term_width = 100)]
enum Command {
    /// Build the runtime closure of a profile from its pinned sources.
    ///
    /// Takes, in this order: the closure that is there, if it belongs to this tree's inputs; the
    /// accepted closure out of the user's cache; the pinned sources, each from the first origin
    /// that has them. Stages whose inputs have not changed are not built again. Everything happens
    /// below .lazaret/ in the repository; logs are in .lazaret/build/logs.
    ///
    /// The result lies in .lazaret/closures/ID/DIGEST. A closure that accepted.json does not name
    /// is reported as unreviewed with its differences, and does not serve.
    ///
    /// Exit codes: 0 done, 1 failed, 2 usage, 3 Blocked (a source cannot be had; every origin that
    /// was tried is listed with its cause).
    BuildClosure(closure::BuildArguments),
    /// Make the closure that was just built the accepted one.
    ///
    /// Shows the difference to the former one and writes third_party/profiles/ID/accepted.json,
    /// without a review. A commit puts it into force.
    AcceptClosure(closure::AcceptArguments),
    /// From a fresh clone to one formatted document: all set-up, then the main job on real input.
    ///
    /// Builds the closure of v1, or where its sources cannot be had the candidate's, and says so;
    /// asks doctor; approves the bundled formatter in view; formats a document of the repository;
    /// shows what the kernel said of the sandbox, and where the run's record is.
    Quickstart(quickstart::Arguments),
    /// All set-up, all tests; each step says how to run it alone.
    ///
    /// As root the sandbox's tests run twice, the second time as an ordinary user. What this host
    /// lacks is shown as BLOCKED; with --ci it is a failure, but for a profile without sources.
    Test(test::Arguments),
    /// Bind the bundled packages to a profile's accepted closure.
    ///
    /// packages/ holds the form of v1; that of another profile is written below .lazaret/packages/.
    Packages(packages::Arguments),
    /// Check the habits of this house that a tool can check.
    Tidy,
    /// Make the Rust side of the launcher's ABI from its C header (needs libclang).
    Abi {
        /// Only say whether the committed one is current.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    let command = Command::parse();
    match repository().and_then(|root| run(&root, command)) {
        Ok(code) => code,
        Err(error) => {
            // What was being done when it came up explains nothing that Blocked does not say.
            if let Some(blocked) = error.downcast_ref::<closure::Blocked>() {
                eprintln!("{blocked}");
                return ExitCode::from(EXIT_BLOCKED);
            }
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(root: &Path, command: Command) -> Result<ExitCode> {
    match command {
        Command::BuildClosure(arguments) => closure::run(root, &arguments),
        Command::AcceptClosure(arguments) => closure::accept(root, &arguments),
        Command::Quickstart(arguments) => quickstart::main(root, &arguments),
        Command::Test(arguments) => test::main(root, &arguments),
        Command::Packages(arguments) => packages::main(root, &arguments),
        Command::Tidy => tidy::main(root),
        Command::Abi { check } => abi::main(root, check),
    }
}

/// The repository that this program belongs to: cargo says where, wherever it was called from.
fn repository() -> Result<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let root = package.parent().context("xtask lies in no repository")?;
    std::fs::canonicalize(root)
        .with_context(|| format!("looking for the repository at {}", root.display()))
}
