//! The warden of one run. It takes no argument and no variable: the control pipe is
//! its standard input, the report pipe its standard output, and standard error holds
//! at most one line.

#![forbid(unsafe_code)]

use std::process::ExitCode;

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
fn main() -> ExitCode {
    lazaret_warden::warden::main()
}

/// Where there is no profile there is no warden, and nothing takes its place.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile))))]
fn main() -> ExitCode {
    use std::io::Write as _;

    let _ = writeln!(
        std::io::stderr(),
        "lazaret-warden: Blocked: the profile is not supported here"
    );
    ExitCode::FAILURE
}
