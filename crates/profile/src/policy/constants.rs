//! The kernel's constants that a policy may name.
//!
//! Values are those of the x86_64 kernel ABI, not of one libc: `O_LARGEFILE` is
//! 0x8000 although glibc's header calls it 0. A name belongs to the family of
//! its prefix (`O_`, `MAP_`, …), and an argument takes names of its own family
//! only, so that `F_SETFD` cannot be written where open flags are meant.

/// The value of a named constant, negative ones as the `int` that C passes.
pub fn value_of(name: &str) -> Option<i64> {
    TABLE
        .iter()
        .find(|(known, _)| *known == name)
        .map(|&(_, value)| value)
}

/// The family of a constant: its prefix, underscore included.
pub fn family_of(name: &str) -> &str {
    name.find('_').map_or(name, |at| &name[..=at])
}

/// Every constant of the table.
pub fn all() -> impl Iterator<Item = (&'static str, i64)> {
    TABLE.iter().copied()
}

/// `include/uapi/asm-generic/fcntl.h`, `mman-common.h`, `linux/mman.h`,
/// `linux/time.h`, `linux/fcntl.h`; checked against the crate `libc` in a test.
const TABLE: &[(&str, i64)] = &[
    ("AT_EMPTY_PATH", 0x1000),
    ("AT_FDCWD", -100),
    ("AT_SYMLINK_NOFOLLOW", 0x100),
    ("CLOCK_BOOTTIME", 7),
    ("CLOCK_MONOTONIC", 1),
    ("CLOCK_PROCESS_CPUTIME_ID", 2),
    ("CLOCK_REALTIME", 0),
    ("CLOCK_THREAD_CPUTIME_ID", 3),
    ("F_DUPFD", 0),
    ("F_DUPFD_CLOEXEC", 1030),
    ("F_GETFD", 1),
    ("F_GETFL", 3),
    ("F_SETFD", 2),
    ("F_SETFL", 4),
    ("FD_CLOEXEC", 1),
    ("MAP_ANONYMOUS", 0x20),
    ("MAP_FIXED", 0x10),
    ("MAP_NORESERVE", 0x4000),
    ("MAP_PRIVATE", 0x2),
    ("MAP_SHARED", 0x1),
    ("MREMAP_DONTUNMAP", 4),
    ("MREMAP_FIXED", 2),
    ("MREMAP_MAYMOVE", 1),
    ("O_APPEND", 0o2000),
    ("O_CLOEXEC", 0o2_000_000),
    ("O_CREAT", 0o100),
    ("O_DIRECTORY", 0o200_000),
    ("O_EXCL", 0o200),
    ("O_LARGEFILE", 0o100_000),
    ("O_NOFOLLOW", 0o400_000),
    ("O_NONBLOCK", 0o4000),
    ("O_PATH", 0o10_000_000),
    ("O_RDONLY", 0),
    ("O_RDWR", 2),
    ("O_TRUNC", 0o1000),
    ("O_WRONLY", 1),
    ("PROT_EXEC", 4),
    ("PROT_NONE", 0),
    ("PROT_READ", 1),
    ("PROT_WRITE", 2),
    ("TIMER_ABSTIME", 1),
];
