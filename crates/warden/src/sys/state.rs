//! What a process inherits, one call for each part of it.

use std::io;

use super::{check, check_long};
use crate::limits::Resource;

/// The kernel's number of a resource.
fn number(resource: Resource) -> libc::__rlimit_resource_t {
    match resource {
        Resource::Cpu => libc::RLIMIT_CPU,
        Resource::FileSize => libc::RLIMIT_FSIZE,
        Resource::Data => libc::RLIMIT_DATA,
        Resource::Stack => libc::RLIMIT_STACK,
        Resource::Core => libc::RLIMIT_CORE,
        Resource::ResidentSet => libc::RLIMIT_RSS,
        Resource::Processes => libc::RLIMIT_NPROC,
        Resource::Descriptors => libc::RLIMIT_NOFILE,
        Resource::LockedMemory => libc::RLIMIT_MEMLOCK,
        Resource::AddressSpace => libc::RLIMIT_AS,
        Resource::Locks => libc::RLIMIT_LOCKS,
        Resource::PendingSignals => libc::RLIMIT_SIGPENDING,
        Resource::MessageQueues => libc::RLIMIT_MSGQUEUE,
        Resource::Nice => libc::RLIMIT_NICE,
        Resource::RealTimePriority => libc::RLIMIT_RTPRIO,
        Resource::RealTimeTime => libc::RLIMIT_RTTIME,
    }
}

/// Soft and hard value of one limit; `u64::MAX` is *unlimited*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The value that counts.
    pub soft: u64,
    /// The value up to which the soft one may be raised.
    pub hard: u64,
}

/// Reads a limit of this process.
///
/// # Errors
/// What getrlimit(2) says.
pub fn get_limit(resource: Resource) -> io::Result<Limit> {
    let mut found = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `found` is valid for writing and outlives the call.
    check(unsafe { libc::getrlimit(number(resource), &raw mut found) })?;
    Ok(Limit {
        soft: found.rlim_cur,
        hard: found.rlim_max,
    })
}

/// Sets soft and hard value of a limit of this process.
///
/// # Errors
/// What setrlimit(2) says: EPERM where the hard value would have to be raised.
pub fn set_limit(resource: Resource, value: u64) -> io::Result<()> {
    let wanted = libc::rlimit {
        rlim_cur: value,
        rlim_max: value,
    };
    // SAFETY: `wanted` outlives the call.
    check(unsafe { libc::setrlimit(number(resource), &raw const wanted) })?;
    Ok(())
}

/// Sets soft and hard value of a limit of another process, which the caller holds
/// unreaped.
///
/// # Errors
/// What prlimit(2) says.
pub fn set_limit_of(pid: i32, resource: Resource, value: u64) -> io::Result<()> {
    let wanted = libc::rlimit {
        rlim_cur: value,
        rlim_max: value,
    };
    // SAFETY: `wanted` outlives the call; a null old value is allowed.
    check(unsafe {
        libc::prlimit(
            pid,
            number(resource),
            &raw const wanted,
            std::ptr::null_mut(),
        )
    })?;
    Ok(())
}

/// Sets the file mode creation mask.
pub fn set_umask(mask: u32) {
    // SAFETY: takes a number and cannot fail.
    unsafe { libc::umask(mask) };
}

/// The execution domain and its flags (personality(2)).
///
/// # Errors
/// What personality(2) says.
pub fn personality() -> io::Result<u32> {
    // SAFETY: 0xffffffff only asks.
    let found = check(unsafe { libc::personality(0xffff_ffff) })?;
    Ok(found.cast_unsigned())
}

/// Sets the personality to plain Linux without flags.
///
/// # Errors
/// What personality(2) says.
pub fn reset_personality() -> io::Result<()> {
    // SAFETY: takes a number.
    check(unsafe { libc::personality(0) })?;
    Ok(())
}

/// The scheduling policy (sched(7)).
///
/// # Errors
/// What sched_getscheduler(2) says.
pub fn scheduling_policy() -> io::Result<i32> {
    // SAFETY: takes numbers.
    check(unsafe { libc::sched_getscheduler(0) })
}

/// Sets the ordinary time-sharing policy.
///
/// # Errors
/// What sched_setscheduler(2) says.
pub fn reset_scheduling() -> io::Result<()> {
    let ordinary = libc::sched_param { sched_priority: 0 };
    // SAFETY: `ordinary` outlives the call; 0 means this process.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const ordinary) })?;
    Ok(())
}

/// The nice value.
///
/// # Errors
/// What getpriority(2) says.
pub fn nice() -> io::Result<i32> {
    // SAFETY: errno is this thread's own; it has to be cleared because -1 is a
    // legitimate answer (getpriority(2)).
    let value = unsafe {
        *libc::__errno_location() = 0;
        libc::getpriority(libc::PRIO_PROCESS, 0)
    };
    let error = io::Error::last_os_error();
    if value == -1 && error.raw_os_error() != Some(0) {
        Err(error)
    } else {
        Ok(value)
    }
}

/// Sets the nice value to 0.
///
/// # Errors
/// What setpriority(2) says: EACCES where it would have to be lowered.
pub fn reset_nice() -> io::Result<()> {
    // SAFETY: takes numbers.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 0) })?;
    Ok(())
}

/// ioprio_set(2): this process.
const IOPRIO_WHO_PROCESS: libc::c_int = 1;

/// The I/O priority; 0 is *none*, which follows the nice value.
///
/// # Errors
/// What ioprio_get(2) says.
pub fn io_priority() -> io::Result<i64> {
    // SAFETY: takes numbers.
    check_long(unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0) })
}

/// Sets the I/O priority to *none*.
///
/// # Errors
/// What ioprio_set(2) says.
pub fn reset_io_priority() -> io::Result<()> {
    // SAFETY: takes numbers.
    check_long(unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, 0) })?;
    Ok(())
}

fn prctl(option: libc::c_int, value: libc::c_ulong) -> io::Result<libc::c_int> {
    let zero: libc::c_ulong = 0;
    // SAFETY: the options used here take numbers only.
    check(unsafe { libc::prctl(option, value, zero, zero, zero) })
}

/// Adopts every descendant whose parent dies.
///
/// # Errors
/// What prctl(2) says.
pub fn become_subreaper() -> io::Result<()> {
    prctl(libc::PR_SET_CHILD_SUBREAPER, 1).map(drop)
}

/// No core file, and no other process of the same user looks inside.
///
/// # Errors
/// What prctl(2) says, or that it did not hold.
pub fn set_not_dumpable() -> io::Result<()> {
    prctl(libc::PR_SET_DUMPABLE, 0)?;
    if prctl(libc::PR_GET_DUMPABLE, 0)? == 0 {
        Ok(())
    } else {
        Err(io::Error::other("the process stayed dumpable"))
    }
}

/// Sets the slack of timers to this many nanoseconds.
///
/// # Errors
/// What prctl(2) says.
pub fn set_timer_slack_ns(slack_ns: u32) -> io::Result<()> {
    prctl(libc::PR_SET_TIMERSLACK, libc::c_ulong::from(slack_ns)).map(drop)
}

/// No transparent huge pages, here and in what is started from here.
///
/// # Errors
/// What prctl(2) says.
pub fn disable_huge_pages() -> io::Result<()> {
    prctl(libc::PR_SET_THP_DISABLE, 1).map(drop)
}

/// `PR_SET_MEMORY_MERGE` (Linux 6.4): not in libc for every target yet.
const PR_SET_MEMORY_MERGE: libc::c_int = 67;

/// No merging of equal pages (KSM). A kernel without it has nothing to disable.
///
/// # Errors
/// What prctl(2) says, EINVAL excepted.
pub fn disable_page_merging() -> io::Result<()> {
    match prctl(PR_SET_MEMORY_MERGE, 0) {
        Err(error) if error.raw_os_error() != Some(libc::EINVAL) => Err(error),
        _ => Ok(()),
    }
}

/// `KEYCTL_JOIN_SESSION_KEYRING` (keyctl(2)).
const KEYCTL_JOIN_SESSION_KEYRING: libc::c_int = 1;

/// Leaves the inherited session keyring for a new, anonymous one. A kernel without
/// keys has none to leave.
///
/// # Errors
/// What keyctl(2) says, ENOSYS excepted.
pub fn join_new_session_keyring() -> io::Result<()> {
    // SAFETY: a null name asks for an anonymous keyring.
    let result = check_long(unsafe {
        libc::syscall(
            libc::SYS_keyctl,
            KEYCTL_JOIN_SESSION_KEYRING,
            std::ptr::null::<libc::c_char>(),
        )
    });
    match result {
        Err(error) if error.raw_os_error() != Some(libc::ENOSYS) => Err(error),
        _ => Ok(()),
    }
}

/// The kernel's `struct sigaction` on x86_64 (rt_sigaction(2)).
#[repr(C)]
struct KernelAction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// Gives every signal its default action, but for SIGPIPE, which is ignored so that
/// a closed pipe is an error that can be handled. By the bare system call: libc
/// would leave the two signals that it keeps for itself as they were inherited.
///
/// # Errors
/// What rt_sigaction(2) says.
pub fn reset_signals() -> io::Result<()> {
    /// All that the kernel has.
    const SIGNAL_MAX: i32 = 64;

    for signal in 1..=SIGNAL_MAX {
        if signal == libc::SIGKILL || signal == libc::SIGSTOP {
            continue;
        }
        let handler = if signal == libc::SIGPIPE {
            libc::SIG_IGN
        } else {
            libc::SIG_DFL
        };
        let action = KernelAction {
            handler,
            flags: 0,
            restorer: 0,
            mask: 0,
        };
        let mask_bytes = size_of::<u64>();
        // SAFETY: `action` has the kernel's layout and outlives the call; both
        // handlers are constants, so nothing of ours is ever called by a signal.
        check_long(unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                &raw const action,
                std::ptr::null_mut::<KernelAction>(),
                mask_bytes,
            )
        })?;
    }
    Ok(())
}

/// Gives up root for good: no supplementary group, then this gid and uid, real,
/// effective and saved.
///
/// # Errors
/// What setgroups(2), setresgid(2) and setresuid(2) say.
pub fn drop_to(uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: a size of 0 needs no list.
    check(unsafe { libc::setgroups(0, std::ptr::null()) })?;
    // SAFETY: takes numbers.
    check(unsafe { libc::setresgid(gid, gid, gid) })?;
    // SAFETY: takes numbers.
    check(unsafe { libc::setresuid(uid, uid, uid) })?;
    Ok(())
}

/// Three of the capability sets of a process, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// What counts.
    pub effective: u64,
    /// What may be made to count.
    pub permitted: u64,
    /// What an exec may hand on.
    pub inheritable: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilityWords {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: libc::c_int,
}

/// `_LINUX_CAPABILITY_VERSION_3` (capset(2)).
const CAPABILITY_VERSION_3: u32 = 0x2008_0522;

/// Reads this process's capabilities.
///
/// # Errors
/// What capget(2) says.
pub fn capabilities() -> io::Result<Capabilities> {
    let mut header = CapabilityHeader {
        version: CAPABILITY_VERSION_3,
        pid: 0,
    };
    let mut words = [CapabilityWords::default(); 2];
    // SAFETY: header and the two elements that version 3 wants are valid for
    // writing and outlive the call.
    check_long(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, words.as_mut_ptr()) })?;
    let [low, high] = words;
    let join = |low: u32, high: u32| u64::from(low) | (u64::from(high) << 32);
    Ok(Capabilities {
        effective: join(low.effective, high.effective),
        permitted: join(low.permitted, high.permitted),
        inheritable: join(low.inheritable, high.inheritable),
    })
}

/// Empties the three sets of this process.
///
/// # Errors
/// What capset(2) says.
pub fn clear_capabilities() -> io::Result<()> {
    let mut header = CapabilityHeader {
        version: CAPABILITY_VERSION_3,
        pid: 0,
    };
    let words = [CapabilityWords::default(); 2];
    // SAFETY: header and both elements outlive the call.
    check_long(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, words.as_ptr()) })?;
    Ok(())
}

/// Empties the ambient set.
///
/// # Errors
/// What prctl(2) says.
pub fn clear_ambient_capabilities() -> io::Result<()> {
    let clear =
        libc::c_ulong::try_from(libc::PR_CAP_AMBIENT_CLEAR_ALL).map_err(io::Error::other)?;
    prctl(libc::PR_CAP_AMBIENT, clear).map(drop)
}
