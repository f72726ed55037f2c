//! Starting programs: the controller's warden, and the warden's bwrap.
//!
//! Between fork and exec only async-signal-safe calls are made, on memory that was
//! prepared before (case D08).

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::{check, check_long};

/// Makes everything above standard error close at exec, in the child alone. Nothing
/// of the caller's crosses, whatever flags its descriptors have.
pub fn close_on_exec_before_exec(command: &mut Command) {
    let mark = || {
        let flags = libc::CLOSE_RANGE_CLOEXEC;
        // SAFETY: takes no pointer. The range is marked, not closed, so the standard
        // library's own pipe for an exec error keeps working.
        check_long(unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, flags) })?;
        Ok(())
    };
    // SAFETY: the closure makes one system call and touches no memory, lock or
    // allocator of the parent.
    unsafe { command.pre_exec(mark) };
}

/// Everything that a forked child needs to become another program.
#[derive(Debug)]
pub struct ExecPlan<'a> {
    /// The program, as a descriptor: no path is opened again.
    pub program: BorrowedFd<'a>,
    /// Its arguments, the name first. The environment is empty.
    pub arguments: &'a [CString],
    /// What becomes descriptor 0, 1 and 2.
    pub standard: [BorrowedFd<'a>; 3],
    /// What else stays open, under its own number.
    pub inherited: &'a [BorrowedFd<'a>],
    /// The child waits here for one byte; the end of the pipe ends it.
    pub go: BorrowedFd<'a>,
    /// The other end of that pipe, which the child has to close to notice its end.
    pub go_other_end: BorrowedFd<'a>,
    /// Where it writes one byte once it may be seized, and four bytes of errno if it
    /// could not become the program.
    pub status: BorrowedFd<'a>,
}

/// A child that waits for its go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forked {
    /// Its process id.
    pub pid: i32,
}

/// Forks, and leads the child to the program of the plan.
///
/// # Errors
/// What fork(2) says.
pub fn fork_exec(plan: &ExecPlan<'_>) -> io::Result<Forked> {
    // All that the child touches is made here, so that it need not allocate.
    let mut arguments: Vec<*const libc::c_char> = plan
        .arguments
        .iter()
        .map(|argument| argument.as_ptr())
        .collect();
    arguments.push(std::ptr::null());
    let environment = [std::ptr::null::<libc::c_char>()];
    // SAFETY: the warden has one thread here, so the child's copy of the memory is
    // consistent; the child makes only async-signal-safe calls and never returns.
    let pid = check(unsafe { libc::fork() })?;
    if pid == 0 {
        // SAFETY: this is the child; the plan and both arrays are its own copies.
        let error = unsafe { become_program(plan, &arguments, &environment) };
        // SAFETY: the buffer outlives the call; _exit runs no handler.
        unsafe {
            let bytes = error.to_le_bytes();
            libc::write(plan.status.as_raw_fd(), bytes.as_ptr().cast(), bytes.len());
            libc::_exit(126);
        }
    }
    Ok(Forked { pid })
}

/// Runs in the forked child. Returns the errno of the step that failed.
///
/// # Safety
/// To be called in a child of fork with one thread; `arguments` and `environment`
/// end with a null pointer.
unsafe fn become_program(
    plan: &ExecPlan<'_>,
    arguments: &[*const libc::c_char],
    environment: &[*const libc::c_char],
) -> i32 {
    // SAFETY: every call here is async-signal-safe and gets numbers or memory that
    // was prepared before the fork.
    unsafe {
        libc::close(plan.go_other_end.as_raw_fd());
        // The warden is not dumpable, and its tracer has to be let in.
        if libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 {
            return errno();
        }
        let ready = 1_u8;
        libc::write(plan.status.as_raw_fd(), (&raw const ready).cast(), 1);
        let mut go = 0_u8;
        if libc::read(plan.go.as_raw_fd(), (&raw mut go).cast(), 1) != 1 {
            // The warden is gone; nobody reads an error.
            libc::_exit(126);
        }
        for (number, source) in (0..).zip(plan.standard) {
            if libc::dup2(source.as_raw_fd(), number) < 0 {
                return errno();
            }
        }
        for kept in plan.inherited {
            if libc::fcntl(kept.as_raw_fd(), libc::F_SETFD, 0) < 0 {
                return errno();
            }
        }
        let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        if libc::signal(libc::SIGPIPE, libc::SIG_DFL) == libc::SIG_ERR
            || libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut()) < 0
        {
            return errno();
        }
        libc::syscall(
            libc::SYS_execveat,
            plan.program.as_raw_fd(),
            c"".as_ptr(),
            arguments.as_ptr(),
            environment.as_ptr(),
            libc::AT_EMPTY_PATH,
        );
        errno()
    }
}

fn errno() -> i32 {
    // SAFETY: errno is this thread's own.
    unsafe { *libc::__errno_location() }
}
