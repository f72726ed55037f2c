//! The warden of one run. It takes no argument and no variable: the control pipe is
//! its standard input, the report pipe its standard output, and standard error holds
//! at most one line.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    lazaret_warden::warden::main()
}
