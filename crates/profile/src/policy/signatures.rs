//! How wide each argument is that a policy may compare.
//!
//! The register holds 64 bits, and the kernel reads as many of them as the
//! parameter's type has. A filter that compares more bits than the kernel reads
//! can be walked past by setting one of the others (CVE-2019-10063); one that
//! compares fewer lets through what nobody meant. So the width is not a matter
//! of taste: a policy states it, and it must be the one in this table. A call
//! that is not here can have no argument conditions.
//!
//! The types are those of the kernel's `SYSCALL_DEFINE` lines, as the running
//! kernel itself prints them in `/sys/kernel/tracing/events/syscalls/*/format`.

/// How many bits of an argument the kernel reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// The low 32: `int`, `unsigned int`, `clockid_t`, `u32`.
    Dword,
    /// All 64: `long`, `size_t`, `off_t`, pointers.
    Qword,
}

impl Width {
    /// The bits of the register that count.
    pub const fn mask(self) -> u64 {
        match self {
            Self::Dword => 0xffff_ffff,
            Self::Qword => u64::MAX,
        }
    }

    /// The word used in `policy.toml`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dword => "dword",
            Self::Qword => "qword",
        }
    }
}

/// One parameter of a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in the manual page.
    pub name: &'static str,
    /// How much of it the kernel reads.
    pub width: Width,
    /// The family of the constants that mean something there, or nothing.
    pub family: Option<&'static str>,
}

/// The parameters of a system call, in order, if its arguments may be compared.
pub fn parameters_of(syscall: &str) -> Option<&'static [Parameter]> {
    TABLE
        .iter()
        .find(|(known, _)| *known == syscall)
        .map(|&(_, parameters)| parameters)
}

/// Every call whose arguments may be compared.
pub fn all() -> impl Iterator<Item = (&'static str, &'static [Parameter])> {
    TABLE.iter().copied()
}

/// A 32-bit parameter.
const fn d(name: &'static str) -> Parameter {
    Parameter {
        name,
        width: Width::Dword,
        family: None,
    }
}

/// A 64-bit parameter.
const fn q(name: &'static str) -> Parameter {
    Parameter {
        name,
        width: Width::Qword,
        family: None,
    }
}

/// A parameter that takes constants of one family.
const fn of(parameter: Parameter, family: &'static str) -> Parameter {
    Parameter {
        name: parameter.name,
        width: parameter.width,
        family: Some(family),
    }
}

#[rustfmt::skip]
const TABLE: &[(&str, &[Parameter])] = &[
    ("clock_getres", &[of(d("clockid"), "CLOCK_"), q("res")]),
    ("clock_gettime", &[of(d("clockid"), "CLOCK_"), q("tp")]),
    ("clock_nanosleep", &[of(d("clockid"), "CLOCK_"), of(d("flags"), "TIMER_"), q("t"), q("remain")]),
    ("close", &[d("fd")]),
    ("exit", &[d("status")]),
    ("exit_group", &[d("status")]),
    ("fcntl", &[d("fd"), of(d("op"), "F_"), of(q("arg"), "FD_")]),
    ("fstat", &[d("fd"), q("statbuf")]),
    ("ftruncate", &[d("fd"), q("length")]),
    ("futex", &[q("uaddr"), d("op"), d("val"), q("timeout"), q("uaddr2"), d("val3")]),
    ("getdents64", &[d("fd"), q("dirp"), d("count")]),
    ("getrandom", &[q("buf"), q("buflen"), d("flags")]),
    ("ioctl", &[d("fd"), d("op"), q("arg")]),
    ("lseek", &[d("fd"), q("offset"), d("whence")]),
    ("madvise", &[q("addr"), q("length"), d("advice")]),
    ("mmap", &[q("addr"), q("length"), of(q("prot"), "PROT_"), of(q("flags"), "MAP_"), q("fd"), q("offset")]),
    ("mprotect", &[q("addr"), q("size"), of(q("prot"), "PROT_")]),
    ("mremap", &[q("old_address"), q("old_size"), q("new_size"), of(q("flags"), "MREMAP_"), q("new_address")]),
    ("munmap", &[q("addr"), q("length")]),
    ("newfstatat", &[of(d("dirfd"), "AT_"), q("pathname"), q("statbuf"), of(d("flags"), "AT_")]),
    ("open", &[q("pathname"), of(d("flags"), "O_")]),
    ("openat", &[of(d("dirfd"), "AT_"), q("pathname"), of(d("flags"), "O_")]),
    ("pread64", &[d("fd"), q("buf"), q("count"), q("offset")]),
    ("prctl", &[d("op"), q("arg2"), q("arg3"), q("arg4"), q("arg5")]),
    ("read", &[d("fd"), q("buf"), q("count")]),
    ("readv", &[q("fd"), q("iov"), q("iovcnt")]),
    ("rt_sigaction", &[d("signum"), q("act"), q("oldact"), q("sigsetsize")]),
    ("rt_sigprocmask", &[d("how"), q("set"), q("oldset"), q("sigsetsize")]),
    ("socket", &[d("domain"), d("type"), d("protocol")]),
    ("write", &[d("fd"), q("buf"), q("count")]),
    ("writev", &[q("fd"), q("iov"), q("iovcnt")]),
];
