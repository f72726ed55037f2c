//! The one clock of a run.

use std::io;

use super::check;

/// `CLOCK_BOOTTIME` in nanoseconds: it counts suspend and ignores changes of the
/// wall clock (case D07).
///
/// # Errors
/// What clock_gettime(2) says.
pub fn boottime_ns() -> io::Result<u64> {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a valid timespec that outlives the call.
    check(unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) })?;
    let seconds = u64::try_from(now.tv_sec).map_err(io::Error::other)?;
    let nanoseconds = u64::try_from(now.tv_nsec).map_err(io::Error::other)?;
    Ok(seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds))
}
