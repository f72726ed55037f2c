//! Where the profile exists at all: native Linux on x86_64 (ADR-013).
//!
//! Elsewhere, and in a build with `--cfg lazaret_no_profile`, everything else works
//! and the profile is *unsupported, Blocked*. There is no other way to run package
//! code, so nothing here may offer one.

use crate::blocked::{Blocked, Cause};

/// Whether this build holds the profile.
pub const SUPPORTED: bool = cfg!(all(
    target_os = "linux",
    target_arch = "x86_64",
    not(lazaret_no_profile)
));

/// The platform that this build is for, as records name it.
#[must_use]
pub fn name() -> String {
    format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)
}

/// Refuses where the profile does not exist.
///
/// # Errors
/// [`Cause::Unsupported`].
pub fn require_supported(profile: &str) -> Result<(), Blocked> {
    if SUPPORTED {
        return Ok(());
    }
    Err(Blocked::new(
        Cause::Unsupported,
        "the profile",
        format!(
            "{profile} is unsupported on this build for {}; it needs native Linux on x86_64",
            name()
        ),
    )
    .advise("run this on a Linux host with an x86_64 processor; nothing else runs package code"))
}
