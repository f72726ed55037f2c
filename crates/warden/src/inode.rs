//! Which file is meant, and whether it is still as it was.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

/// What tells an inode from every other one, and an unchanged one from a changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InodeFacts {
    /// Device and inode number.
    pub inode: (u64, u64),
    /// Size, in bytes.
    pub size_bytes: u64,
    /// Mode, owner and group.
    pub access: (u32, u32, u32),
    /// Links.
    pub links: u64,
    /// Time of the last change of content and of the inode, in seconds and
    /// nanoseconds.
    pub changed: (i64, i64, i64, i64),
}

impl InodeFacts {
    /// Takes them from what fstat said.
    #[must_use]
    pub fn of(facts: &Metadata) -> Self {
        Self {
            inode: (facts.dev(), facts.ino()),
            size_bytes: facts.size(),
            access: (facts.mode(), facts.uid(), facts.gid()),
            links: facts.nlink(),
            changed: (
                facts.mtime(),
                facts.mtime_nsec(),
                facts.ctime(),
                facts.ctime_nsec(),
            ),
        }
    }
}
