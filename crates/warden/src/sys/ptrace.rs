//! Tracing: the kernel's own word on how a process ends.
//!
//! Only PTRACE_SEIZE is used, never PTRACE_TRACEME or PTRACE_ATTACH: a seized
//! process can be stopped and continued by others as usual, and dies with its
//! tracer (PTRACE_O_EXITKILL).

use std::io;

use super::check_long;

/// One process that this thread traces. Nothing is sent to it when this value is
/// dropped; the kernel ends it with its tracer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tracee(i32);

/// What a tracer asks for, beyond EXITKILL and TRACEEXIT, which are always set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceOptions {
    /// Also trace every process that it starts, from its first instruction on.
    pub follow_children: bool,
}

/// What the kernel says of a signal that is about to be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignalInfo {
    /// The signal.
    pub signal: i32,
    /// Its `si_code`: above 0 if the kernel itself raised it (sigaction(2)).
    pub code: i32,
}

/// The way into the kernel that a process had taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// The `syscall` instruction.
    Syscall,
    /// `int 0x80`, the 32-bit entry.
    Int80,
    /// Something else, or it could not be told.
    Other,
}

/// Registers at the moment of death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitRegisters {
    /// The number of the system call that it was in.
    pub call_number: u64,
    /// How it had entered.
    pub entry: Entry,
}

impl Tracee {
    /// Starts to trace a process without stopping it.
    ///
    /// # Errors
    /// What ptrace(2) says: EPERM where Yama or another module forbids it.
    pub fn seize(pid: i32, options: TraceOptions) -> io::Result<Self> {
        let mut bits = libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACEEXIT;
        if options.follow_children {
            bits |= libc::PTRACE_O_TRACEFORK
                | libc::PTRACE_O_TRACEVFORK
                | libc::PTRACE_O_TRACECLONE
                | libc::PTRACE_O_TRACEEXEC;
        }
        // SAFETY: address and data are numbers here, not pointers (ptrace(2)).
        check_long(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0_usize, i64::from(bits)) })?;
        Ok(Self(pid))
    }

    /// A process that the kernel attached by itself, because its parent is traced
    /// with `follow_children`.
    pub fn attached_with_its_parent(pid: i32) -> Self {
        Self(pid)
    }

    /// The process id.
    pub fn pid(self) -> i32 {
        self.0
    }

    /// Lets it run on, with a signal delivered or none (0).
    ///
    /// # Errors
    /// What ptrace(2) says; ESRCH if it was killed meanwhile.
    pub fn resume(self, signal: i32) -> io::Result<()> {
        // SAFETY: address and data are numbers here.
        check_long(unsafe { libc::ptrace(libc::PTRACE_CONT, self.0, 0_usize, i64::from(signal)) })?;
        Ok(())
    }

    /// Leaves it stopped, but awake for SIGCONT: the answer to a group stop.
    ///
    /// # Errors
    /// As [`Tracee::resume`].
    pub fn listen(self) -> io::Result<()> {
        // SAFETY: address and data are unused numbers here.
        check_long(unsafe { libc::ptrace(libc::PTRACE_LISTEN, self.0, 0_usize, 0_usize) })?;
        Ok(())
    }

    /// The message of the event it is stopped at: a child's pid, or an exit status.
    ///
    /// # Errors
    /// What ptrace(2) says.
    pub fn event_message(self) -> io::Result<u64> {
        let mut message: libc::c_ulong = 0;
        // SAFETY: `message` is valid for writing and outlives the call.
        check_long(unsafe {
            libc::ptrace(libc::PTRACE_GETEVENTMSG, self.0, 0_usize, &raw mut message)
        })?;
        Ok(message)
    }

    /// The signal that it is about to receive.
    ///
    /// # Errors
    /// What ptrace(2) says.
    pub fn signal_info(self) -> io::Result<SignalInfo> {
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: the buffer is a siginfo_t that outlives the call.
        check_long(unsafe {
            libc::ptrace(libc::PTRACE_GETSIGINFO, self.0, 0_usize, info.as_mut_ptr())
        })?;
        // SAFETY: all-zero is a valid siginfo_t, and the kernel filled it.
        let info = unsafe { info.assume_init() };
        Ok(SignalInfo {
            signal: info.si_signo,
            code: info.si_code,
        })
    }

    /// The system call that it was in, when it is stopped at its exit.
    ///
    /// # Errors
    /// What ptrace(2) says.
    pub fn exit_registers(self) -> io::Result<ExitRegisters> {
        let mut registers = std::mem::MaybeUninit::<libc::user_regs_struct>::zeroed();
        // SAFETY: the buffer is a user_regs_struct that outlives the call.
        check_long(unsafe {
            libc::ptrace(
                libc::PTRACE_GETREGS,
                self.0,
                0_usize,
                registers.as_mut_ptr(),
            )
        })?;
        // SAFETY: all-zero is a valid user_regs_struct, and the kernel filled it.
        let registers = unsafe { registers.assume_init() };
        Ok(ExitRegisters {
            call_number: registers.orig_rax,
            entry: self.entry_at(registers.rip.wrapping_sub(2)),
        })
    }

    /// Which instruction stands before the one that comes next. Both entries are
    /// two bytes long: `0f 05` and `cd 80`.
    fn entry_at(self, address: u64) -> Entry {
        // SAFETY: reads the tracee's memory at a number; errno is this thread's own
        // and tells a failure from a word of all ones (ptrace(2)).
        let word = unsafe {
            *libc::__errno_location() = 0;
            libc::ptrace(libc::PTRACE_PEEKTEXT, self.0, address, 0_usize)
        };
        if word == -1 && io::Error::last_os_error().raw_os_error() != Some(0) {
            return Entry::Other;
        }
        match word.to_le_bytes() {
            [0x0f, 0x05, ..] => Entry::Syscall,
            [0xcd, 0x80, ..] => Entry::Int80,
            _ => Entry::Other,
        }
    }
}
