//! One system call as a filter sees it.

/// `AUDIT_ARCH_X86_64` of `linux/audit.h`; x32 calls carry it as well.
pub const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;

/// `AUDIT_ARCH_I386`: what `int 0x80` gives on an x86_64 kernel.
pub const AUDIT_ARCH_I386: u32 = 0x4000_0003;

/// `__X32_SYSCALL_BIT`: set in the number of every x32 call.
pub const X32_SYSCALL_BIT: u32 = 0x4000_0000;

/// How many arguments a system call has at most.
pub const ARGUMENT_COUNT: usize = 6;

/// `struct seccomp_data` (seccomp(2)) without the instruction pointer, which no
/// filter of ours may look at: an address proves nothing about a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call {
    /// `nr`: the number, with the x32 bit if it was set.
    pub number: u32,
    /// `arch`: the AUDIT_ARCH value of the calling convention.
    pub architecture: u32,
    /// `args`: the registers, all 64 bits of each.
    pub arguments: [u64; ARGUMENT_COUNT],
}

impl Call {
    /// A call by the native x86_64 convention.
    pub const fn x86_64(number: u32, arguments: [u64; ARGUMENT_COUNT]) -> Self {
        Self {
            number,
            architecture: AUDIT_ARCH_X86_64,
            arguments,
        }
    }

    /// The same call as x32 code makes it: only the number differs.
    pub const fn x32(number: u32, arguments: [u64; ARGUMENT_COUNT]) -> Self {
        Self {
            number: number | X32_SYSCALL_BIT,
            architecture: AUDIT_ARCH_X86_64,
            arguments,
        }
    }

    /// A call by `int 0x80`: another table of numbers, 32-bit arguments.
    pub const fn i386(number: u32, arguments: [u64; ARGUMENT_COUNT]) -> Self {
        Self {
            number,
            architecture: AUDIT_ARCH_I386,
            arguments,
        }
    }

    /// Argument `index`, or 0 where there is none.
    pub fn argument(&self, index: u8) -> u64 {
        self.arguments
            .get(usize::from(index))
            .copied()
            .unwrap_or_default()
    }
}
