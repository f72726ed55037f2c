//! Error numbers that a policy may answer with.
//!
//! A refusal by errno is for the runtime, which knows what to do with that very
//! number; the list is therefore closed, and each use gives its reason.

use std::fmt;

/// An error number of the x86_64 ABI, by its name in errno(3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(u16);

impl Errno {
    /// The error of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        TABLE
            .iter()
            .find(|(known, _)| *known == name)
            .map(|&(_, number)| Self(number))
    }

    /// The error with this number, if it is one of the table.
    pub fn by_number(number: u16) -> Option<Self> {
        TABLE
            .iter()
            .any(|&(_, known)| known == number)
            .then_some(Self(number))
    }

    /// The number, as the program finds it in `errno`.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The name, as in errno(3).
    pub fn name(self) -> &'static str {
        TABLE
            .iter()
            .find(|&&(_, number)| number == self.0)
            .map_or("?", |&(name, _)| name)
    }

    /// Every error of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|&(_, number)| Self(number))
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// `include/uapi/asm-generic/errno-base.h` and `errno.h`; checked against the
/// crate `libc` in a test.
const TABLE: &[(&str, u16)] = &[
    ("EPERM", 1),
    ("ENOENT", 2),
    ("EINTR", 4),
    ("EBADF", 9),
    ("EAGAIN", 11),
    ("ENOMEM", 12),
    ("EACCES", 13),
    ("EEXIST", 17),
    ("ENODEV", 19),
    ("ENOTDIR", 20),
    ("EINVAL", 22),
    ("ENOTTY", 25),
    ("ENOSPC", 28),
    ("EROFS", 30),
    ("ERANGE", 34),
    ("ENOSYS", 38),
    ("EOPNOTSUPP", 95),
];
