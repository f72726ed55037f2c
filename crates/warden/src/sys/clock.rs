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
    nanoseconds(now)
}

/// The CPU time of another process as the kernel compares it with RLIMIT_CPU: whole
/// ticks, in user mode and in the kernel, in nanoseconds. What wait4(2) tells is
/// finer, and on a virtual machine often smaller.
///
/// The process is held unreaped, so that the number is its own.
///
/// # Errors
/// What clock_gettime(2) says.
pub fn limited_cpu_time_ns(pid: i32) -> io::Result<u64> {
    /// `CPUCLOCK_PROF` in the kernel's posix-timers.h; a process's clock id is made
    /// of the inverted pid and three bits for the kind of clock.
    const PROFILING: libc::clockid_t = 0;

    let mut used = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `used` is a valid timespec that outlives the call; a clock id is a
    // number that the kernel checks.
    check(unsafe { libc::clock_gettime((!pid << 3) | PROFILING, &raw mut used) })?;
    nanoseconds(used)
}

fn nanoseconds(time: libc::timespec) -> io::Result<u64> {
    let seconds = u64::try_from(time.tv_sec).map_err(io::Error::other)?;
    let nanoseconds = u64::try_from(time.tv_nsec).map_err(io::Error::other)?;
    Ok(seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_cpu_time_grows_with_work() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let before = limited_cpu_time_ns(pid).unwrap();
        let mut rounds = 0_u64;
        while limited_cpu_time_ns(pid).unwrap() == before {
            rounds = std::hint::black_box(rounds + 1);
        }
    }
}
