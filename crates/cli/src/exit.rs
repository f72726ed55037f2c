//! Exit codes: one enum, and the text that documents it.

use std::process::ExitCode;

/// How `lazaret` ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Everything that was asked for is done.
    Done = 0,
    /// The input or the request was refused, or package code ran and there is no
    /// verified output.
    Refused = 1,
    /// The command line is not understood.
    Usage = 2,
    /// Refused before any package code ran, with a reason; nothing was substituted.
    Blocked = 3,
    /// Package code may have run, and its end could not be proved.
    Unknown = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The exit codes as the help shows them.
pub const HELP: &str = "\
Exit codes:
  0  done
  1  refused or failed: bad input, not approved here and now, or package code ran
     and there is no verified output
  2  usage: the command line is not understood
  3  Blocked: refused before any package code ran; nothing was substituted
  4  Unknown: package code may have run, and its end could not be proved

Data goes to standard output, everything else to standard error.";
