//! The `lazaret` command.
//!
//! It reads arguments, asks, prints, and chooses an exit code; what happens is in
//! the crates below. Data goes to standard output, talk to standard error.
//!
//! This binary must never have a path to package code that has not been approved,
//! take digests to accept from a flag, a variable or a file, or print a package's
//! text other than escaped.

#![forbid(unsafe_code)]

mod arguments;
mod bundled;
mod commands;
mod exit;
mod input;
mod places;
mod show;
mod signals;
mod talk;

use std::process::ExitCode;

use clap::Parser as _;

use arguments::{Arguments, Command};
use exit::Exit;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    let exit = match &arguments.command {
        Command::Doctor(doctor) => commands::doctor::run(&arguments, doctor),
        Command::Init(init) => commands::init::run(&arguments, init),
        Command::Format(format) => commands::format::run(&arguments, format),
        Command::Package(package) => commands::package::run(package),
    };
    exit.unwrap_or_else(|error| {
        talk::line(&format!("failed: {error:#}"));
        Exit::Refused
    })
    .into()
}

/// Help and version go to standard output and are no error.
fn usage(error: &clap::Error) -> ExitCode {
    // Nobody is left to be told if that fails.
    let _ = error.print();
    if error.use_stderr() {
        Exit::Usage.into()
    } else {
        Exit::Done.into()
    }
}
